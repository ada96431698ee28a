"""What speaks against a claim, and what can be told of why: each rule on invented sides, then the captures."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from mcplab import TraceError, claims, contradictions, load, make_trace
from mcplab.frames.table import build
from mcplab.model import COLUMNS
from tests.test_varying import run


def claim(client="agent", path="roots", **row):
    """One claim as a table of statements."""
    full = {"party": "client", "client": client, "name": client, "path": path, "tier": "read", "source": "https://example.org/note",
            "date": "2026-01-01", "evidence": "https://example.org/note (n.md:1)", **row}  # fmt: skip
    return build("statements", {name: [full.get(name)] for name in COLUMNS["statements"]})


def against(claims_, *traces):
    frame = contradictions(load([trace.renamed(f"t{n}") for n, trace in enumerate(traces)]), claims_)
    assert list(frame.columns) == list(COLUMNS["contradictions"])
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def only(rows):
    assert len(rows) == 1, rows
    return rows[0]


# The rules -------------------------------------------------------------------------------------------------


def test_what_agrees_has_no_row():
    assert against(claim(declares="yes"), run({"roots": {}})) == []
    assert against(claim(declares="no"), run({})) == []
    assert against(claim(declares="unknown"), run({})) == []
    assert against(claim(client="another", declares="yes"), run({})) == []
    assert against(claim(declares="yes", when="under a full moon"), run({})) == []


def test_differs_by_configuration_says_with_what():
    row = only(against(claim(declares="yes"), run({}, {"x": 1}), run({"roots": {}}, {"x": 2})))
    assert (row["reason"], row["found"], row["instances"], row["agree"]) == ("differs by configuration", "varies", 2, 1)
    assert row["why"] == "captures of one release differ, with configuration (x)"
    assert row["evidence"] == "t0#0"


def test_one_release_that_differs_in_nothing_recorded_is_unknown():
    row = only(against(claim(declares="yes"), run({}, {"x": 1}), run({"roots": {}}, {"x": 1})))
    assert row["reason"] == "unknown"
    assert "nothing that was recorded" in row["why"]


def test_changed_since_has_releases_and_days_on_both_sides():
    row = only(against(
        claim(declares="yes", client_version=None),
        run({"roots": {}}, {}, version="1.9", captured_at="2026-01-02T00:00:00Z"),
        run({}, {}, version="1.10", captured_at="2026-03-04T00:00:00Z"),
        run({}, {}, version="2.0", captured_at="2026-05-06T00:00:00Z"),
    ))  # fmt: skip
    assert row["reason"] == "changed since"
    assert row["why"].startswith("it holds for 1.9 and not for 1.10, 2.0")
    assert (row["claimed_date"], row["found_date"]) == ("2026-01-01", "2026-03-04 to 2026-05-06")
    assert (row["found_version"], row["claimed_version"]) == ("1.10, 2.0", None)


@pytest.mark.parametrize(
    ("about", "true_of", "reason"),
    [
        (None, ["1.9"], "changed since"),
        (None, ["1.10"], "differs by release"),  # true of the newest: nothing changed since it was written
        (None, ["1.9", "2.0"], "differs by release"),
        ("0.9", ["1.9"], "changed since"),
        ("9.9", ["1.9"], "unknown"),  # what was captured is older than what the claim is about
        ("0.9", ["1.10"], "unknown"),
    ],
)
def test_what_changed_is_told_by_the_order_of_releases(about, true_of, reason):
    given = ["1.9", "1.10", *(true_of[1:])]
    runs = [run({"roots": {}} if version in true_of else {}, {}, version=version) for version in given]
    row = only(against(claim(declares="yes", client_version=about), *runs))
    assert row["reason"] == reason
    assert f"it holds for {', '.join(true_of)} and not for" in row["why"]


def test_wrong_about_the_very_release():
    row = only(against(claim(declares="yes", client_version="1.0"), run({}, {}), run({"roots": {}}, {}, version="2.0")))
    assert (row["reason"], row["claimed_version"], row["found_version"]) == ("wrong", "1.0", "1.0")
    assert row["instances"] == 1


def test_wrong_by_a_reading_of_the_release_captured():
    reading = claim(declares="no", client_version="1.0", source="https://example.org/source", evidence="src/a.py:3")
    rows = against(pd.concat([claim(declares="yes"), reading], ignore_index=True), run({}, {}))
    row = only([row for row in rows if row["against"] == "observed"])
    assert row["reason"] == "wrong"
    assert row["why"].endswith("nor does a reading of 1.0 itself: src/a.py:3")
    assert [(row["against"], row["reason"]) for row in rows if row["against"] == "read"] == [("read", "unknown")]


def test_a_claim_about_no_release_or_another_is_not_called_wrong():
    row = only(against(claim(declares="yes"), run({}, {})))
    assert row["reason"] == "unknown"
    assert "names no release" in row["why"]
    row = only(against(claim(declares="yes", client_version="0.9"), run({}, {})))
    assert (row["reason"], row["why"]) == ("unknown", "the claim is about 0.9, and what was captured is 1.0")


def test_by_default_is_held_against_runs_without_settings():
    by_default = claim(declares="yes", when="by default")
    assert against(by_default, run({"roots": {}}, {}), run({}, {"roots": "off"})) == []
    assert only(against(by_default, run({}, {"server_entry": {}}), run({"roots": {}}, {"x": 1})))["instances"] == 1
    assert against(by_default, run({})) == []  # nobody knows its settings


def test_what_a_source_leaves_out_that_names_all():
    whole = claim(path="$", declares="no", only=True)
    row = only(against(whole, run({"sampling": {"tools": {}}, "roots": {}}, {}), run({}, {}, version="2"))[:1])
    assert (row["path"], row["claimed"], row["reason"]) == ("roots", "no", "differs by release")
    both = pd.concat([claim(path="$", declares="yes", only=True), claim(declares="yes")], ignore_index=True)
    assert [row["path"] for row in against(both, run({"sampling": {}, "roots": {}}, {}))] == ["sampling"]
    assert against(claim(path="$", declares="no"), run({"sampling": {}}, {})) == []  # it does not say that it names all


def test_settings_that_do_not_switch_by_themselves():
    def server(sampling, entry=None, **more):
        return run({"sampling": {}} if sampling else {}, {"server_entry": entry or {}, **more})

    said = claim(path="sampling", declares="yes", when="by default", settings="server_entry")
    default, off = server(True), server(False, auto=False)
    assert against(said, default, off) == []  # no server entry was tried
    tried = server(True, {"sampling": None})
    row = only(against(said, default, off, tried))
    assert (row["what"], row["claimed"], row["reason"]) == ("settings", "switched by server_entry", "unknown")
    assert row["found"] == "switched by auto"
    back = server(True, {"sampling": {"model": "m"}}, auto=False)
    assert only(against(said, default, off, tried, back))["found"] == (
        'switched by auto; by server_entry.sampling only given {"auto": false}'
    )
    works = server(False, {"sampling": "off"})
    assert against(said, default, off, tried, works) == []


def test_use_speaks_against_implements():
    ask = ("server", {"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "agent", "version": "1"},
    }
    start = [
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}), ask,
    ]  # fmt: skip
    works = make_trace([*start, ("client", {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}})])
    fails = make_trace([*start, ("client", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})])
    row = only(against(claim(implements="no"), works))
    assert (row["what"], row["against"], row["found"], row["reason"]) == ("implements", "exercised", "yes", "unknown")
    assert row["evidence"] == "t0#2"
    assert only(against(claim(implements="yes", client_version="1"), fails))["reason"] == "wrong"
    assert against(claim(implements="yes"), works) == []
    assert against(claim(implements="yes"), make_trace(start)) == []  # asked, and never answered: nothing is known


def test_a_record_of_a_name_that_several_products_send_is_held_against_none():
    record = claim(client="i", client_info="i", declares="yes")
    alone = run({}, {}, name="i")
    assert len(against(record, alone)) == 1
    assert against(record, alone, run({"roots": {}}, {}, name="another")) == []


def test_two_documents_disagree():
    pair = [claim(declares="yes"), claim(declares="no", tier="listed", source="https://example.org/table", date=None)]
    row = only(against(pd.concat(pair, ignore_index=True), run({}, {}, name="somebody-else")))
    assert (row["against"], row["claimed"], row["found"], row["reason"]) == ("read", "no", "yes", "unknown")
    assert row["found_date"] == "2026-01-01"


def test_two_documents_about_two_releases_may_both_be_right():
    pair = [claim(declares="yes", client_version="1"), claim(declares="no", client_version="2", source="another")]
    assert against(pd.concat(pair, ignore_index=True), run({}, {}, name="somebody-else")) == []


def test_what_is_no_table_of_claims_is_told():
    with pytest.raises(TraceError, match="these are no claims"):
        contradictions(load([run({})]), pd.DataFrame())


# The captures ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five():
    traces = load([f"bundled:{name}" for name in ("codex", "opencode", "cline", "fast-agent", "gemini-cli")])
    return traces, contradictions(traces)


def test_the_one_place_where_the_note_is_wrong(five):
    _, frame = five
    wrong = frame[frame["reason"] == "wrong"]
    assert wrong[["client", "path", "what", "claimed"]].values.tolist() == [
        ["fast-agent", "sampling", "settings", "switched by server_entry"],
    ]  # fmt: skip
    row = wrong.iloc[0]
    assert row["found"] == (
        "switched by mcp.client.auto_sampling, top_level.auto_sampling; "
        'by server_entry.sampling only given {"mcp.client.auto_sampling": false}'
    )
    assert (row["found_version"], row["claimed_date"], row["found_date"]) == ("0.10.48", "2026-08-25", "2026-11-30")
    assert "client_callback_runtime.py" in row["why"]
    assert "server-sampling-null" in row["evidence"]


def test_of_the_five_clients_codex_and_opencode_differ(five):
    _, frame = five
    read = frame[(frame["tier"] == "read") & (frame["against"] == "observed") & (frame["what"] == "declares")]
    assert read[["client", "path", "reason"]].values.tolist() == [
        ["codex", "experimental", "differs by configuration"], ["codex", "extensions", "differs by configuration"],
        ["opencode", "roots", "differs by release"],
    ]  # fmt: skip
    codex = read.set_index("path").loc["experimental"]
    assert codex["why"] == "captures of one release differ, with transport, sub-command (how)"
    opencode = read[read["client"] == "opencode"].iloc[0]
    assert opencode["why"].startswith("it holds for 1.18.33 and not for 1.3.2")


def test_a_published_table_against_the_wire(five):
    _, frame = five
    listed = frame[(frame["tier"] == "listed") & (frame["against"] == "observed")]
    assert listed[["client", "path", "claimed", "reason"]].values.tolist() == [
        ["gemini-cli", "roots", "no", "unknown"], ["opencode", "roots", "no", "changed since"],
    ]  # fmt: skip


def test_every_row_against_the_wire_leads_to_messages(five):
    traces, frame = five
    for against_, evidence in zip(frame["against"], frame["evidence"], strict=True):
        if against_ in ("observed", "exercised"):
            for one in evidence.split(" "):
                trace, _, seq = one.rpartition("#")
                assert json.loads(traces[trace].raw(int(seq)))["jsonrpc"] == "2.0"


def test_a_note_alone_is_judged_by_the_bundled_reading(five, tmp_path):
    traces, _ = five
    path = tmp_path / "note.md"
    path.write_text(
        "---\nid: n\ncanonical: https://example.org/n\nlastVerified: 2026-08-25\nclients: [fast-agent]\n---\n"
        "| Client | Declares |\n|---|---|\n"
        "| fast-agent | sampling and elicitation by default; roots per server; all three configurable per server |\n",
        encoding="utf-8",
    )
    frame = contradictions(traces, claims(path))
    assert frame[["client", "path", "what", "reason"]].values.tolist() == [
        ["fast-agent", "sampling", "settings", "wrong"]
    ]
