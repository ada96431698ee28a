"""Who declares what, side by side."""

from __future__ import annotations

import json

import pytest

from mcplab import ABSENT, JsonText, TraceError, compare, diff, make_trace, reach, read_traces
from mcplab.comparison import declares
from mcplab.model import CELL_STATES


def legacy(capabilities, name="c", version="1", result=True, revision="2025-11-25"):
    params = {"protocolVersion": revision, "clientInfo": {"name": name, "version": version}}
    if capabilities is not ABSENT:
        params["capabilities"] = capabilities
    messages = [("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})]
    answer = {"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}}
    messages.append(
        ("server", {"jsonrpc": "2.0", "id": 1, **(answer if result else {"error": {"code": 1, "message": "no"}})})
    )
    return make_trace(messages)


def modern(*capabilities, name="c", version="1"):
    messages = []
    for n, declared in enumerate(capabilities):
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": name, "version": version},
                "io.modelcontextprotocol/clientCapabilities": declared}  # fmt: skip
        messages.append(("client", {"jsonrpc": "2.0", "id": n, "method": "tools/list", "params": {"_meta": meta}}))
        messages.append(("server", {"jsonrpc": "2.0", "id": n, "result": {"resultType": "complete", "tools": []}}))
    return make_trace(messages)


@pytest.fixture(scope="module")
def bundled(captures):
    return read_traces(captures, progress=False)


def test_the_seven_states_stay_apart():
    traces = read_traces(
        legacy(ABSENT, "absent"), legacy(None, "null"), legacy({}, "empty"), legacy({"roots": {}}, "object"),
        legacy(True, "true"), legacy(False, "false"), legacy([], "value"),
    )  # fmt: skip
    frame = compare(traces)
    assert {name: frame.loc["$", name] for name in frame.columns} == {name: name for name in frame.columns}
    assert frame.loc["roots"].to_dict() == {**dict.fromkeys(frame.columns, "absent"), "object": "empty"}
    assert frame.index[0] == "$"


def test_varies_unknown_and_their_evidence():
    silent = make_trace([("server", {"jsonrpc": "2.0", "method": "notifications/message"})])
    a, b = legacy({"roots": {}}, "two"), legacy({}, "two")
    frame = compare(read_traces(a, b, silent))
    assert frame.loc["roots", "two"] == "varies"
    assert frame.loc["roots", "unknown"] == "unknown"
    assert frame.attrs["counts"]["roots", "two"] == {"empty": 1, "absent": 1}
    assert len(frame.attrs["evidence"]["$", "two"]) == 2
    assert len(frame.attrs["evidence"]["roots", "two"]) == 2  # the absence has its message too
    assert frame.attrs["evidence"]["roots", "unknown"] == []


def test_a_modern_instance_may_vary_between_its_requests():
    frame = compare(modern({"sampling": {}}, {}))
    assert frame.loc["sampling", "c"] == "varies"
    assert frame.loc["roots" if "roots" in frame.index else "$", "c"] == "varies"


def test_a_legacy_connection_speaks_by_its_initialize():
    probe = modern({"sampling": {}}).record.events[:1]
    refusal = make_trace([("server", {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "x"}})])
    session = legacy({})
    lines = []
    for n, event in enumerate([*probe, *refusal.record.events, *session.record.events]):
        lines.append({"kind": "message", "seq": n, "conn": "c1", "dir": event.dir, "msg": json.loads(event.text)})
    from mcplab import read_trace

    trace = read_trace(lines)
    assert trace.connections["era"].tolist() == ["legacy"]
    assert compare(trace)["c"].to_dict() == {"$": "empty"}


def test_a_refused_initialize_still_says_what_was_declared():
    frame = compare(legacy({"roots": {}}, result=False))
    assert frame.loc["roots", "c"] == "empty"


def test_by_a_list_gives_a_multiindex_and_by_server_party():
    traces = read_traces(legacy({}, "a", "1.10"), legacy({}, "a", "1.9"))
    frame = compare(traces, by=["client", "client_version"])
    assert frame.columns.tolist() == [("a", "1.9"), ("a", "1.10")]
    assert frame.columns.names == ["client", "client_version"]
    server = compare(traces, party="server")
    assert server.loc["tools", "a"] == "empty"


def test_every_by_of_the_bundled_captures(bundled):
    for by in ("client", "client_version", "config", "transport", "era", "instance", "trace"):
        frame = compare(bundled, by=by)
        assert set(frame.to_numpy().ravel()) <= set(CELL_STATES)
        assert frame.index[0] == "$"
    with pytest.raises(TraceError, match="by="):
        compare(bundled, by="colour")
    with pytest.raises(TraceError, match="party="):
        compare(bundled, party="proxy")
    with pytest.raises(TraceError, match="tier="):
        compare(bundled, tier="guessed")


def test_every_cell_has_evidence_that_says_so(bundled):
    frame = compare(bundled, by=["client", "client_version"])
    rows = bundled.declarations
    states = {}
    for trace, seq, path, state in zip(rows["trace"], rows["seq"], rows["path"], rows["state"], strict=True):
        states[trace, seq, path] = state
    for who in frame.columns:
        for path in frame.index:
            cell = frame.loc[path, who]
            proof = frame.attrs["evidence"][path, who]
            assert proof
            found = {states.get((trace, seq, path), "absent") for trace, seq in proof}
            assert (
                found == {cell} if cell != "varies" else len(found) > 1 or "absent" in frame.attrs["counts"][path, who]
            )


def test_long_form_says_the_same(bundled):
    wide, long = compare(bundled), compare(bundled, long=True)
    assert len(long) == wide.size
    assert all(wide.loc[p, c] == s for p, c, s in zip(long["path"], long["client"], long["state"], strict=True))


def test_diff_of_json_values():
    frame = diff({"roots": {"listChanged": True}, "x": ["a"]}, JsonText('{"roots":{"listChanged":false},"x":["b"]}'))
    assert frame[["a", "b"]].to_dict("index") == {
        "roots.listChanged": {"a": "true", "b": "false"},
        "x": {"a": "value", "b": "value"},
    }
    assert frame.loc["x", "a_value"] == '["a"]'
    assert diff({}, {}).empty
    assert diff(ABSENT, {})["a"].to_dict() == {"$": "absent"}
    assert diff(None, {})["b"].to_dict() == {"$": "empty"}
    with pytest.raises(TraceError, match="no JSON"):
        diff(JsonText("{"), {})


def test_diff_of_traces_covers_both_parties():
    frame = diff(legacy({"roots": {}}), legacy({}))
    assert frame.index.tolist() == [("client", "$"), ("client", "roots")]
    assert diff(legacy({}), legacy({}), party="server").empty


@pytest.mark.parametrize(
    ("capabilities", "answers"),
    [
        ({"elicitation": {}}, {"elicitation": "yes", "elicitation.form": "yes", "elicitation.url": "no"}),
        ({"elicitation": {"url": {}}}, {"elicitation": "yes", "elicitation.form": "no", "elicitation.url": "yes"}),
        ({"elicitation": {"form": None}}, {"elicitation": "yes", "elicitation.form": "no", "elicitation.url": "no"}),
        ({"roots": {"listChanged": False}}, {"roots": "yes", "roots.listChanged": "no"}),
        ({"roots": {"listChanged": True}}, {"roots.listChanged": "yes"}),
        ({"roots": {"listChanged": "true"}}, {"roots.listChanged": "no"}),
        ({"sampling": True}, {"sampling": "no"}), ({"roots": None}, {"roots": "no"}), ({}, {"roots": "no"}),
        ({"experimental": {"a/b": {}}}, {'experimental["a/b"]': "yes"}), (ABSENT, {"roots": "no"}),
    ],
)  # fmt: skip
def test_reach(capabilities, answers):
    frame = reach(list(answers), legacy(capabilities))
    assert frame.loc[("c", "1")].to_dict() == answers


def test_reach_over_several_and_none():
    silent = make_trace([("server", {"jsonrpc": "2.0", "method": "notifications/message"})])
    frame = reach("roots", read_traces(legacy({"roots": {}}), legacy({}), silent))
    assert frame["roots"].to_dict() == {("c", "1"): "varies", ("unknown", "unknown"): "unknown"}


def test_a_version_nobody_published_is_no_error():
    assert reach("roots", legacy({"roots": {}}, revision="2099-01-01")).loc[("c", "1"), "roots"] == "yes"
    assert declares({"roots": "empty"}, "roots", "nonsense")


@pytest.mark.parametrize("wrong", [5, "file.jsonl", [], [make_trace([])], None])
def test_what_is_no_trace_is_told(wrong):
    for ask in (compare, lambda traces: reach(["roots"], traces)):
        with pytest.raises(TraceError, match="is no trace; read_traces makes Traces"):
            ask(wrong)


def test_space_between_the_parts_of_a_value_is_no_difference():
    a, b = JsonText('{"x":["a b", {"c" : 1.50}],"y":[]}'), JsonText('{"x":["a b",{"c":1.50}],"y":[ ]}')
    assert diff(a, b).empty
    assert diff(a, JsonText('{"x":["ab",{"c":1.50}],"y":[]}')).index.tolist() == ["x"]
    assert diff(a, JsonText('{"x":["a b",{"c":1.5}],"y":[]}')).index.tolist() == ["x"]
    said = [
        ("client", f'{{"id":{n},"method":"initialize","params":{{"capabilities":{text}}}}}')
        for n, text in enumerate((a, b))
    ]
    assert diff(make_trace(said), make_trace(said[:1])).empty
