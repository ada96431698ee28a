"""Statements of every tier in one table, and side by side; each cell leads to what it rests on."""

from __future__ import annotations

import pandas as pd
import pytest

from mcplab import TraceError, claims, compare, comparison, load, make_trace, statements
from mcplab.model import COLUMNS
from mcplab.published import claims as read_claims
from mcplab.tiers import TIERS, joined

ROOTS = {"jsonrpc": "2.0", "id": 7, "method": "roots/list"}


def session(capabilities, *more, name="sample-agent", version="1.0"):
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": version},
    }
    said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    return make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": said}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}), *more,
    ])  # fmt: skip


@pytest.fixture(scope="module")
def bundled():
    return load(["bundled:fast-agent", "bundled:codex", "bundled:opencode", "bundled:cline", "bundled:python-sdk"])


@pytest.fixture(scope="module")
def table(bundled):
    return statements(bundled)


def test_one_long_table_of_four_tiers(table):
    assert list(table.columns) == list(COLUMNS["statements"])
    for name, dtype in COLUMNS["statements"].items():
        assert str(table[name].dtype) == dtype, name
    assert list(dict.fromkeys(table["tier"])) == ["observed", "exercised", "read", "listed"]
    assert set(TIERS) == set(table["tier"])


def test_every_statement_leads_to_its_evidence(bundled, table):
    proven = table[(table["tier"] != "exercised") | (table["n"] > 0)]
    assert proven["evidence"].notna().all()
    wire = table[table["tier"].isin(["observed", "exercised"]) & table["evidence"].notna()]
    for trace, path, party, evidence, tier in zip(
        *(wire[name] for name in ("trace", "path", "party", "evidence", "tier")), strict=True
    ):
        for one in evidence.split("; "):
            name, _, seq = one.rpartition("#")
            assert name == trace
            if tier == "observed" and party == "client" and path not in ("$", ""):
                assert path.split(".")[0].split("[")[0] in bundled[name].raw(int(seq))
    cited = table[table["tier"].isin(["read", "listed"])]
    assert cited["source"].str.startswith("https://").all()


def test_observed_says_what_compare_says(bundled, table):
    rows = table[(table["tier"] == "observed") & (table["party"] == "client") & (table["client"] == "cline")]
    assert set(rows["path"]) == {"$"}
    frame = comparison.compare(bundled)
    assert set(table.loc[(table["tier"] == "observed") & (table["party"] == "client"), "path"]) == set(frame.index)
    assert frame.equals(compare(bundled, tier="observed"))


def test_exercised_tells_worked_from_refused_and_from_nobody_asked():
    answered = ("client", {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}})
    refused = ("client", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})
    traces = load([
        session({"roots": {}}, ("server", ROOTS), answered, name="does"),
        session({"roots": {}}, ("server", ROOTS), refused, name="refuses"),
        session({"roots": {}}, ("server", ROOTS), name="hangs"),
        session({"roots": {}}, name="unasked"),
        session({}, ("server", ROOTS), answered, name="secret"),
    ])  # fmt: skip
    frame = compare(traces, tier="exercised")
    assert frame.loc["roots"].to_dict() == {
        "does": "yes", "refuses": "no", "hangs": "unknown", "unasked": "unknown", "secret": "yes",
    }  # fmt: skip
    rows = statements(traces, tier="exercised").query("path == 'roots'").set_index("client")
    assert rows["declares"].to_dict() == dict.fromkeys(["does", "refuses", "hangs", "unasked"], "yes") | {
        "secret": "no"
    }
    assert rows[["n", "worked", "refused"]].astype(int).to_numpy().tolist() == [
        [1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0],
    ]  # fmt: skip
    assert frame.attrs["evidence"]["roots", "does"] == [(traces[0].name, 3)]


def test_read_and_listed_answer_yes_no_varies_unknown(bundled):
    read = compare(bundled, tier="read")
    assert read["goose"][["roots", "sampling", "elicitation", "elicitation.url"]].tolist() == [
        "yes",
        "yes",
        "yes",
        "no",
    ]
    assert read["codex"][["elicitation", "elicitation.url", "sampling", "roots.listChanged"]].tolist() == [
        "yes", "unknown", "no", "no",  # what is above it is not declared, so it is not either
    ]  # fmt: skip
    assert set(read["cline"]) == {"no"}
    assert read["fast-agent"][["sampling", "roots"]].tolist() == ["varies", "varies"]
    assert any("1bb8433" in one for one in read.attrs["evidence"]["sampling", "goose"])
    listed = compare(bundled, tier="listed")
    assert listed.loc["elicitation", "codex"] == "yes"  # by its clientInfo.name, codex-mcp-client
    assert listed.loc["roots", "opencode"] == "no"
    assert compare(bundled, tier="listed", party="server").loc["tools", "opencode"] == "yes"


def test_all_tiers_side_by_side(bundled):
    frame = compare(bundled, tier="all")
    assert frame.columns.names == ["client", "tier"]
    assert frame["fast-agent"].loc["sampling"].to_dict() == {
        "observed": "varies",
        "exercised": "unknown",
        "read": "varies",
    }
    assert frame["goose"].loc["sampling"].to_dict() == {"read": "yes", "listed": "no"}
    assert ("Zed", "listed") not in frame.columns  # nobody captured it, no document tells of it
    for path in frame.index:
        for who in frame.columns:
            if frame.loc[path, who] not in ("unknown",):
                assert frame.attrs["evidence"][path, who], (path, who)
    flat = compare(bundled, tier="all", by=["client", "client_version"], long=True)
    assert list(flat.columns) == [
        "path", "client", "client_version", "tier", "state", "states", "messages", "instances", "evidence", "cite",
    ]  # fmt: skip
    row = flat[(flat["client"] == "goose") & (flat["path"] == "sampling") & (flat["tier"] == "read")].iloc[0]
    assert (row["state"], row["messages"]) == ("yes", 0)
    assert "mcp_client.rs" in row["evidence"]


def test_a_capture_of_an_unknown_client_joins(tmp_path, bundled):
    own = session({"sampling": {}}, name="never-heard-of-it", version="0.0.1").save(tmp_path / "mine.jsonl")
    for tier in ("observed", "all"):
        frame = compare(load(["bundled:opencode", str(own)]), tier=tier)
        who = "never-heard-of-it" if tier == "observed" else ("never-heard-of-it", "observed")
        assert frame.loc["sampling", who] == "empty"
        assert len(frame.attrs["evidence"]["sampling", who]) == 1


def test_whose_claim_it_is_is_told_or_left_open():
    rows = read_claims()
    listed = (
        rows[rows["tier"] == "listed"]
        .iloc[:2]
        .assign(name=["shared", "Sample Agent"], client=["shared", "Sample Agent"])
    )
    both = load([session({}, name="shared")])
    assert joined(listed, both)["client"].tolist() == ["shared", "Sample Agent"]
    agent = load([session({}, name="sample-agent")])
    assert joined(listed, agent)["client"].tolist() == ["shared", "sample-agent"]
    header = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mcp", "version": "1"}}
    said = {
        "kind": "message",
        "dir": "c2s",
        "seq": 0,
        "msg": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
    }
    two = load([[{**header, "client": {"name": name, "version": "1"}}, said] for name in ("one", "two")])
    claim = listed.assign(name=["mcp", "mcp"], client=["mcp", "mcp"])
    assert joined(claim, two)["client"].tolist() == ["mcp", "mcp"]  # two products call themselves so
    assert joined(claim, load([[{**header, "client": {"name": "one", "version": "1"}}, said]]))["client"].tolist() == [
        "one", "one",
    ]  # fmt: skip


def test_wrong_use_is_told(bundled):
    with pytest.raises(TraceError, match="tier='told': it is one of observed, exercised, read, listed, all"):
        compare(bundled, tier="told")
    with pytest.raises(TraceError, match="tier='all': it is one of"):
        statements(bundled, tier="all")
    with pytest.raises(TraceError, match=r"these are no claims \(no column client"):
        statements(bundled, pd.DataFrame({"a": [1]}), tier="read")
    assert len(statements(None, tier="observed")) == 0
    assert set(statements(claims=claims())["tier"]) == {"read", "listed"}
