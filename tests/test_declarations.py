"""Declarations of every capture, held against the raw JSON by a reading of its own that shares no code with mcplab."""

from __future__ import annotations

import json

import pytest

from mcplab import read_trace
from mcplab.capabilities import unflatten
from mcplab.model import ABSENT

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def declared(lines):
    """(seq, place, value or ABSENT) of every declaring message, straight from the file's lines."""
    found = []
    methods = {}
    for line in lines:
        event = json.loads(line)
        message = event.get("msg")
        if event["kind"] != "message" or not isinstance(message, dict):
            continue
        key = (event["conn"], json.dumps(message.get("id")))
        params = message.get("params") if isinstance(message.get("params"), dict) else {}
        meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
        if event["dir"] == "c2s" and "method" in message and "id" in message:
            methods[key] = message["method"]
            if message["method"] == "initialize":
                found.append((event["seq"], "initialize", params.get("capabilities", ABSENT)))
            elif VERSION in meta:
                found.append((event["seq"], "request_meta", meta.get(CAPABILITIES, ABSENT)))
        elif event["dir"] == "s2c" and "result" in message and methods.get(key) in ("initialize", "server/discover"):
            place = "initialize_result" if methods[key] == "initialize" else "discover_result"
            result = message["result"] if isinstance(message["result"], dict) else {}
            found.append((event["seq"], place, result.get("capabilities", ABSENT)))
    return found


def check(text):
    trace = read_trace(text)
    rows = trace.declarations
    expected = declared(text.strip().split("\n")[1:])
    assert [(int(s), p) for s, p in rows.loc[rows["path"] == "$", ["seq", "place"]].to_numpy()] == [
        e[:2] for e in expected
    ]
    for seq, place, value in expected:
        mine = rows[(rows["seq"] == seq) & (rows["place"] == place)]
        leaves = {p: v for p, v in zip(mine["path"], mine["value"], strict=True) if isinstance(v, str)}
        got = unflatten(leaves)
        assert (got is ABSENT and value is ABSENT) or (got == value and type(got) is type(value)), (seq, got, value)
        assert set(mine["evidence"]) == {f"{trace.name}#{seq}"}
        for path, state in zip(mine["path"], mine["state"], strict=True):
            assert state == state_of(value, path), (seq, path)
    return rows


def state_of(value, path):
    """The state at a path of a Python value; for paths without brackets."""
    if "[" in path:
        return (
            {True: "object", False: "empty"}[bool(value_at(value, path))]
            if isinstance(value_at(value, path), dict)
            else "value"
        )
    for step in [] if path == "$" else path.split("."):
        value = value[step]
    if value is ABSENT:
        return "absent"
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    return ("object" if value else "empty") if isinstance(value, dict) else "value"


def value_at(value, path):
    rest = path
    while rest:
        if rest.startswith("["):
            key, length = json.JSONDecoder().raw_decode(rest[1:])
            rest = rest[length + 2 :]
        else:
            rest = rest.removeprefix(".")
            key = rest.split(".", 1)[0].split("[", 1)[0]
            rest = rest[len(key) :]
        value = value[key]
    return value


def test_declarations_equal_the_raw_json_in_all_captures(captures):
    assert len(captures) >= 284
    total = sum(len(check(path.read_text(encoding="utf-8"))) for path in captures)
    assert total > 2500


MUTATIONS = {
    "absent": lambda p: {k: v for k, v in p.items() if k != "capabilities"},
    "null": lambda p: {**p, "capabilities": None},
    "array": lambda p: {**p, "capabilities": []},
    "empty": lambda p: {**p, "capabilities": {}},
}
STATE = {"absent": "absent", "null": "null", "array": "value", "empty": "empty"}


def mutated(path, change):
    lines = path.read_text(encoding="utf-8").strip().split("\n")
    for n, line in enumerate(lines):
        event = json.loads(line)
        if (event.get("msg") or {}).get("method") == "initialize":
            event["msg"]["params"] = change(event["msg"]["params"])
            lines[n] = json.dumps(event)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_declaration_reads_as_what_it_is(captures, name):
    path = next(p for p in captures if p.stem == "fast-agent-0.10.48-stdio-legacy-default")
    rows = check(mutated(path, MUTATIONS[name]))
    mine = rows[rows["place"] == "initialize"]
    assert mine["path"].tolist() == ["$"]
    assert mine["state"].tolist() == [STATE[name]]
    assert mine["value"].isna().tolist() == [name == "absent"]


def test_duplicate_keys_are_marked_and_the_last_counts(captures):
    path = next(p for p in captures if p.stem == "fast-agent-0.10.48-stdio-legacy-default")
    text = path.read_text(encoding="utf-8")
    twice = text.replace('"capabilities": {"sampling"', '"capabilities": {"roots": {}}, "capabilities": {"sampling"')
    assert twice != text
    rows = read_trace(twice).declarations
    mine = rows[rows["place"] == "initialize"].set_index("path")
    assert mine.loc["$", "duplicate"]
    assert "roots" not in mine.index
    assert not mine.loc["sampling", "duplicate"]
    inner = text.replace('{"sampling": {"tools": {}}', '{"sampling": false, "sampling": {"tools": {}}')
    rows = read_trace(inner).declarations
    mine = rows[rows["place"] == "initialize"].set_index("path")
    assert mine.loc["sampling", "state"] == "object"
    assert mine.loc["sampling", "duplicate"]
    assert not mine.loc["$", "duplicate"]


def test_a_modern_request_without_a_declaration_has_its_row():
    lines = [
        {"kind": "message", "seq": 0, "conn": "c1", "dir": "c2s",
         "msg": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {VERSION: "2026-07-28"}}}},
        {"kind": "message", "seq": 1, "conn": "c1", "dir": "c2s",
         "msg": {"jsonrpc": "2.0", "id": 2, "method": "server/discover"}},
    ]  # fmt: skip
    rows = read_trace(lines).declarations
    assert rows[["seq", "path", "state"]].to_numpy().tolist() == [[0, "$", "absent"], [1, "$", "absent"]]


def test_an_initialize_result_under_another_id_is_disputed():
    lines = [
        {"kind": "message", "seq": 0, "conn": "c1", "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}},
        {"kind": "message", "seq": 1, "conn": "c1", "dir": "s2c", "msg": {"jsonrpc": "2.0", "id": "0",
         "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}}},
    ]  # fmt: skip
    trace = read_trace(lines)
    rows = trace.declarations
    assert rows.loc[rows["party"] == "server", "disputed"].all()
    assert not rows.loc[rows["party"] == "client", "disputed"].any()
    # whether the client took it nobody saw
    assert trace.connections["era"].tolist() == ["unknown"]
    going_on = [*lines, {"kind": "message", "seq": 2, "conn": "c1", "dir": "c2s",
                         "msg": {"jsonrpc": "2.0", "method": "notifications/initialized"}}]  # fmt: skip
    assert read_trace(going_on).connections["era"].tolist() == ["legacy"]


def test_a_result_declares_though_its_request_was_not_captured() -> None:
    result = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "b", "version": "1"},
    }
    lines = [{"jsonrpc": "2.0", "id": 0, "result": result}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]
    trace = read_trace("\n".join(map(json.dumps, lines)) + "\n")
    rows = trace.declarations
    assert rows[["party", "place", "revision", "path"]].values.tolist() == [
        ["server", "initialize_result", "2025-06-18", path] for path in ("$", "tools")
    ]
    link = trace.connections.iloc[0]
    assert (link["era"], link["selected"], link["server"]) == ("legacy", "2025-06-18", "b")
    assert any("one half" in note for note in trace.notes)
