"""What became of what clients declared, with the messages; and what they cannot declare apart."""

from __future__ import annotations

import pytest

from mcplab import load, make_trace, promises
from mcplab.keeping import KINDS, acts
from mcplab.model import COLUMNS


def session(capabilities, *more, version="1"):
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "agent", "version": version},
    }
    said = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    return make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": said}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}), *more,
    ])  # fmt: skip


ASK = ("server", {"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
GIVES = ("client", {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}})
REFUSES = ("client", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})
CHANGED = ("client", {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})


def told(*traces):
    frame = promises(load([trace.renamed(f"t{n}") for n, trace in enumerate(traces)]))
    assert list(frame.columns) == list(COLUMNS["promises"])
    assert set(frame["kind"]) <= set(KINDS)
    return frame.astype(object).where(frame.notna(), None)


def kinds(frame, path):
    rows = frame[(frame["path"] == path) & (frame["kind"] != "never apart")]
    return rows[["kind", "other", "instances", "n", "evidence"]].values.tolist()


@pytest.mark.parametrize(
    ("trace", "path", "row"),
    [
        (session({"roots": {}}, ASK, GIVES), "roots", ["kept", None, 1, 1, "t0#3"]),
        (session({"roots": {}}, ASK, REFUSES), "roots", ["refused", None, 1, 1, "t0#3"]),
        (session({"roots": {}}, ASK), "roots", ["unanswered", None, 1, 1, "t0#3"]),
        (session({"roots": {}}), "roots", ["declared, never used", None, 1, 0, "t0#0"]),
        (session({}, ASK, GIVES), "roots", ["used undeclared", "answered", 1, 1, "t0#3"]),
        (session({}, ASK, REFUSES), "roots", ["used undeclared", "refused", 1, 1, "t0#3"]),
        (session({"roots": {"listChanged": True}}), "roots.listChanged", ["declared, never used", None, 1, 0, "t0#0"]),
        (session({"roots": {"listChanged": True}}, CHANGED), "roots.listChanged", ["kept", None, 1, 1, "t0#3"]),
        (session({"roots": {}}, CHANGED), "roots.listChanged", ["used undeclared", "answered", 1, 1, "t0#3"]),
    ],
)
def test_what_became_of_it(trace, path, row):
    assert row in kinds(told(trace), path)


def test_who_has_to_act():
    assert acts("roots.listChanged") == "client"
    assert [acts(path) for path in ("roots", "sampling", "sampling.tools", "elicitation.url")] == ["server"] * 4
    frame = told(session({"roots": {"listChanged": True}})).set_index("path")
    assert frame.loc["roots.listChanged"].iloc[0]["by"] == "client"


def test_a_broken_rule_of_the_capability():
    bad = ("client", {"jsonrpc": "2.0", "id": 7, "result": {"roots": "none"}})
    frame = told(session({"roots": {}}, ASK, bad), session({"roots": {}}, ASK, GIVES))
    broke = frame[frame["kind"] == "broke a rule"]
    assert broke[["path", "rule", "instances", "of", "evidence"]].values.tolist() == [
        ["roots", "roots.result-shape", 1, 2, "t0#4"],
    ]  # fmt: skip


def apart(frame):
    rows = frame[frame["kind"] == "never apart"]
    return {(row["path"], row["other"]): row["instances"] for row in rows.to_dict("records")}


def test_never_apart_is_of_every_message_of_a_release():
    both = session({"elicitation": {"form": {}, "url": {}}})
    assert apart(told(both, session({}))) == {
        ("elicitation.form", "elicitation"): 1, ("elicitation.url", "elicitation"): 1,
        ("elicitation.form", "elicitation.url"): 1,
    }  # fmt: skip
    # {} declares form, and url not
    assert apart(told(both, session({"elicitation": {}}))) == {("elicitation.form", "elicitation"): 2}
    assert ("elicitation.form", "elicitation.url") in apart(told(both, session({"elicitation": {}}, version="2")))
    assert apart(told(session({"sampling": {}}))) == {}


def test_never_apart_counts_the_messages_that_have_both():
    def request(ident, capabilities):
        meta = {f"io.modelcontextprotocol/{key}": value for key, value in (
            ("protocolVersion", "2026-07-28"), ("clientInfo", {"name": "agent", "version": "1"}),
            ("clientCapabilities", capabilities),
        )}  # fmt: skip
        return ("client", {"jsonrpc": "2.0", "id": ident, "method": "tools/list", "params": {"_meta": meta}})

    frame = told(make_trace([request(1, {}), request(2, {"sampling": {"tools": {}}}), request(3, {})]))
    assert frame[frame["kind"] == "never apart"]["n"].tolist() == [1]


@pytest.fixture(scope="module")
def table():
    names = ("fast-agent", "codex", "chuk-mcp", "python-sdk", "typescript-sdk")
    return promises(load([f"bundled:{name}" for name in names]))


def rows(table, client, path, kind):
    found = table[(table["client"] == client) & (table["path"] == path) & (table["kind"] == kind)]
    return found.sort_values("client_version").to_dict("records")


def test_fast_agent_declares_list_changes_and_never_sends_one(table):
    row = rows(table, "fast-agent", "roots.listChanged", "declared, never used")[0]
    assert (row["by"], row["instances"], row["of"]) == ("client", 4, 4)
    assert "fast-agent-0.10.48-http-legacy-roots#" in row["evidence"]
    assert not rows(table, "fast-agent", "roots.listChanged", "kept")
    assert rows(table, "fast-agent", "roots", "kept")[0]["instances"] == 6
    assert [row["client_version"] for row in rows(table, "python-sdk", "roots.listChanged", "kept")] == [
        "1.30.0",
        "2.3.0",
    ]


def test_form_and_url_come_together_in_fast_agent_and_not_in_codex(table):
    pairs = table[(table["kind"] == "never apart") & (table["other"] == "elicitation.url")]
    assert set(pairs["client"]) == {"fast-agent", "python-sdk", "typescript-sdk"}
    row = pairs[pairs["client"] == "fast-agent"].iloc[0]
    assert (row["path"], row["instances"], row["of"]) == ("elicitation.form", 36, 48)
    assert row["configurations"] > 10
    assert rows(table, "fast-agent", "sampling.tools", "never apart")[0]["other"] == "sampling"


def test_asked_without_a_declaration(table):
    used = table[table["kind"] == "used undeclared"]
    assert dict(zip(used["client"], used["other"], strict=True)) == {
        "codex": "answered", "fast-agent": "refused", "python-sdk": "refused", "typescript-sdk": "refused",
    }  # fmt: skip
    assert rows(table, "chuk-mcp", "roots", "unanswered")[0]["instances"] == 4
