"""The messages table of big traces: made from columns, it is the table that the walk over events makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mcplab
from benchmarks.generate import generate
from mcplab.data import data_dir
from mcplab.formats import columns, native
from mcplab.traces import Trace

HEAD = {"kind": "header", "format": "mcplab-trace", "version": 1}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "k", "version": "1"}},
}  # fmt: skip
BEGUN = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s"}}}
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def call(ident: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": "echo", **more}}


def result(ident: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "result": {"content": [], **more}}


def said(sender: str, message: Any, conn: str = "c1", **more: Any) -> dict[str, Any]:
    way = "c2s" if sender == "client" else "s2c"
    event = {"kind": "message", "conn": conn, "dir": way, **more}
    return event if message is None else {**event, "msg": message}


def post(key: str, message: Any, conn: str = "c1", method: str = "POST", **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    http = {"method": method, "path": "/mcp?x=1", "headers": {"host": "localhost", **named}, "exchange": key}
    return said("client", message, conn, kind="message" if message is not None else "http", http=http)


def answer(key: str, message: Any, conn: str = "c1", status: int = 200, **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    http = {"status": status, "headers": named, "exchange": key}
    return said("server", message, conn, kind="message" if message is not None else "http", http=http)


SESSION = [
    post("a", INITIALIZE),
    answer("a", BEGUN, mcp_session_id="S", content_type="application/json"),
    post("b", {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id="S"),
    answer("b", None, status=202),
]
TRAFFIC: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "sessions over peers": ("streamable-http", [
        *SESSION,
        post("c", call(2), mcp_session_id="S", mcp_protocol_version="2025-06-18"),
        answer("c", result(2), content_type="text/event-stream; charset=utf-8"),
        post("d", call(2), "c2", mcp_session_id="S"), answer("d", result(2), "c2"), answer("d", result(2), "c2"),
        post("e", None, "c2", method="GET", mcp_session_id="S", last_event_id="3"), answer("e", None, "c2", status=405),
        post("f", {**INITIALIZE, "id": 7}), answer("f", {**BEGUN, "id": 7}, mcp_session_id="T"),
        post("g", call(8), mcp_session_id="T"), said("client", None, kind="close"),
    ]),
    "both eras": ("streamable-http", [
        *SESSION, post("m", call(1, **META), "c3"), answer("m", result(9, resultType="complete"), "c3"),
        post("n", call(1), "c3", mcp_protocol_version="2026-07-28"), answer("n", None, "c3", status=400),
        post("o", call(2, _meta={"io.modelcontextprotocol/clientCapabilities": {}}), "c4"), post("p", call(3), "c4"),
        post("q", call(4, _meta=5), "c4"), answer("q", {"jsonrpc": "2.0", "id": None, "error": {"code": 1}}, "c4"),
    ]),
    "a client that an open event names": ("stdio", [
        said("client", None, "p1", kind="open", client={"name": "z"}), said("client", INITIALIZE, "p1"),
        said("server", BEGUN, "p1"), said("server", None, "p1", kind="stderr", raw="x"), said("client", call(4), "p1"),
        said("client", call(4), "p1"), said("server", result(4), "p1"), said("server", result(4), "p1"),
        said("server", result(4), "p1"), said("server", result("4"), "p1"), said("server", {"id": 1}, "p1"),
        said("server", {"result": 1, "error": 2}, "p1"), said("client", {"jsonrpc": "2.0", "method": "ping", "id": 1.0}),
        said("server", {"jsonrpc": "2.0", "id": 1.0, "result": {}}),
    ]),
    "no transport": ("", [said("client", call(1)), said("server", result(1)), said("server", call(1))]),
}  # fmt: skip
ODD = {
    "a batch": [said("client", [call(1), call(2)])],
    "no object": [said("client", "words")],
    "no direction": [{"kind": "message", "conn": "c1", "msg": call(1)}],
    "a method that is no string": [said("client", {"jsonrpc": "2.0", "id": 1, "method": 5})],
    "a result for another id": [said("client", INITIALIZE), said("server", {**BEGUN, "id": "1"})],
    "a message beside HTTP": [*SESSION, said("client", call(1))],
}


def write(path: Path, transport: str, events: list[dict[str, Any]]) -> Path:
    lines = [{**HEAD, "transport": transport} if transport else HEAD]
    for seq, event in enumerate(events):
        lines.append({"seq": seq, "ts": f"2026-01-05T10:00:00.{seq:06d}Z", **event})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    """The trace from columns, and from event objects."""
    monkeypatch.setattr(native, "BIG", 0)
    quick = mcplab.read_trace(path)
    monkeypatch.setattr(native, "BIG", 1 << 40)
    return quick, mcplab.read_trace(path)


@pytest.mark.parametrize("name", TRAFFIC)
def test_columns_give_the_same_table(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = both(write(tmp_path / "t.jsonl", *TRAFFIC[name]), monkeypatch)
    assert quick.tables.direct is not None
    assert slow.tables.direct is None
    pd.testing.assert_frame_equal(quick.messages, slow.messages, check_exact=True)


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_goes_the_long_way(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = both(write(tmp_path / "t.jsonl", "stdio", ODD[name]), monkeypatch)
    assert quick.tables.direct is None
    assert len(quick.messages) > 0
    pd.testing.assert_frame_equal(quick.messages, slow.messages, check_exact=True)


def test_captures_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    for path in sorted((data_dir() / "traces").rglob("*.jsonl"))[::4]:
        quick, slow = both(path, monkeypatch)
        pd.testing.assert_frame_equal(quick.messages, slow.messages, check_exact=True)
        made += quick.tables.direct is not None
    assert made > 30


def test_bytes_that_are_no_utf8_read_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.jsonl", "stdio", [said("client", call("é")), said("client", call("plain"))])
    path.write_bytes(path.read_bytes().replace(b"\\u00e9", b"\xc3\xa9").replace(b"echo", b"\xff", 1))
    quick, slow = both(path, monkeypatch)
    assert quick.tables.direct is not None
    pd.testing.assert_frame_equal(quick.messages, slow.messages, check_exact=True)
    assert "�" in quick.messages["message"][0]


def test_events_are_made_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.jsonl"
    generate(path, 4000)
    quick = mcplab.read_trace(path)
    assert isinstance(quick.record.events, columns.Events)
    monkeypatch.setattr(native, "BIG", 1 << 40)
    slow = mcplab.read_trace(path)
    assert len(quick) == len(slow)
    assert quick.messages["message"].iloc[-1] == slow.record.events[-1].text
    assert quick.record.events._made is None
    assert list(quick.record.linenos) == list(slow.record.linenos)
    assert quick.record.events == slow.record.events
    assert quick.record.events[-1] == slow.record.events[-1]
    assert list(quick.record.lines[:50]) == list(slow.record.lines[:50])
    assert b"".join(native.write(quick.record)) == path.read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"message","seq":1,"conn":"c1","dir":"c2s","msg":{}}',
        '{"kind":"message","seq":1,"ts":"2026-01-05T10:00:00Z","conn":"c1","dir":"c2s","msg":{}}',
        '{"kind":"message","seq":0,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1","dir":"c2s","msg":{}}',
        '{"kind":"message","seq":1,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1","dir":"c2s"}',
        '{"kind":"later","seq":1,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1"}',
        '{"kind":"http","seq":1,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1","http":{"headers":{"a":1}}}',
        "",
        "words",
    ],
)
def test_a_line_that_needs_a_second_look_ends_the_columns(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", "stdio", [said("client", call(1))])
    data = path.read_bytes() + line.encode() + b"\n"
    assert columns.gather(data, data.index(b"\n") + 1) is None
    assert columns.gather(path.read_bytes(), data.index(b"\n") + 1) is not None
