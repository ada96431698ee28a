"""Which channel carried what, and what it shows."""

from __future__ import annotations

import pytest

from mcplab import channels, make_trace, read_trace
from mcplab.model import ACTIVITIES


@pytest.mark.parametrize(
    ("method", "content_type", "facts", "channel"),
    [
        ("POST", "application/json", {"answered": True}, "POST (JSON)"),
        ("POST", "text/event-stream; charset=utf-8", {"answered": True}, "POST (SSE)"),
        ("POST", "TEXT/EVENT-STREAM", {"answered": True}, "POST (SSE)"),
        ("POST", None, {"answered": True}, "POST (JSON)"),
        ("POST", None, {"answered": False}, "POST"),
        ("POST", "application/json", {"answered": True, "listens": True}, "LISTEN (SSE)"),
        ("GET", "text/event-stream", {"answered": True}, "GET (SSE)"),
        ("GET", None, {"answered": True}, "GET (SSE)"),
        ("GET", None, {"answered": True, "resumes": True}, "RESUMPTION"),
        ("DELETE", None, {"answered": True}, "DELETE"),
        ("HEAD", None, {"answered": True}, "unknown"),
        (None, None, {"answered": False}, "unknown"),
    ],
)
def test_channel_of_an_exchange(method, content_type, facts, channel):
    assert channels.http_channel(method, content_type, **facts) == channel


@pytest.mark.parametrize(
    ("kind", "ping", "status", "method", "activity"),
    [
        ("request", False, None, "POST", "request"), ("request", True, None, "POST", "ping"),
        ("response", False, 200, "POST", "response"), ("response", True, 200, "POST", "ping"),
        ("error", False, 200, "POST", "error"), ("error", True, None, None, "error"),
        ("response", False, 500, "POST", "error"), ("error", False, 405, "GET", "disabled"),
        ("error", False, 405, "POST", "error"), ("notification", False, None, "POST", "notification"),
        ("invalid", False, None, None, "error"),
    ],
)  # fmt: skip
def test_activity_of_a_message(kind, ping, status, method, activity):
    assert channels.message_activity(kind, ping=ping, status=status, http_method=method) == activity


@pytest.mark.parametrize(
    ("kind", "status", "method", "keepalive", "activity"),
    [
        ("http", 202, "POST", False, "none"), ("http", 404, "GET", False, "error"),
        ("http", 405, "GET", False, "disabled"), ("unparsed", None, None, False, "error"),
        ("sse", 200, "GET", True, "ping"), ("sse", 200, "GET", False, "none"), ("open", None, None, False, "none"),
        ("close", None, None, False, "none"), ("stderr", None, None, False, "none"),
    ],
)  # fmt: skip
def test_activity_of_other_events(kind, status, method, keepalive, activity):
    assert channels.event_activity(kind, status=status, http_method=method, keepalive=keepalive) == activity


@pytest.mark.parametrize("first", ACTIVITIES)
@pytest.mark.parametrize("second", ACTIVITIES)
def test_the_stronger_of_two(first, second):
    order = ["none", "ping notification", "response", "request disabled", "error"]
    rank = {word: n for n, words in enumerate(order) for word in words.split()}
    expected = first if rank[first] > rank[second] else second
    assert channels.stronger(first, second) == expected


def test_counts_add_up_to_the_messages(captures):
    for path in captures[::7]:
        trace = read_trace(path)
        table = trace.channels.set_index("channel")
        counted = table[["request", "response", "notification", "ping", "error"]].sum(axis=1)
        assert counted[counted > 0].to_dict() == trace.messages.groupby("channel").size().to_dict()


def test_without_transport_facts_the_channel_is_unknown():
    trace = read_trace([{"kind": "message", "seq": 0, "conn": "c1", "dir": "c2s", "msg": {"method": "ping", "id": 1}}])
    assert trace.messages["channel"].tolist() == ["unknown"]


def test_the_old_http_sse_transport():
    post = {"method": "POST", "path": "/messages?session_id=a", "exchange": "x2"}
    trace = read_trace([
        {"kind": "http", "seq": 0, "conn": "c1", "dir": "c2s", "http": {"method": "GET", "path": "/sse", "exchange": "x1"}},
        {"kind": "sse", "seq": 1, "conn": "c1", "dir": "s2c", "sse": {"event": "endpoint", "data": "/messages?session_id=a"},
         "http": {"status": 200, "headers": {"content-type": "text/event-stream"}, "exchange": "x1"}},
        {"kind": "message", "seq": 2, "conn": "c2", "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
         "http": post},
        {"kind": "http", "seq": 3, "conn": "c2", "dir": "s2c", "http": {"status": 202, "exchange": "x2"}},
        {"kind": "message", "seq": 4, "conn": "c1", "dir": "s2c", "msg": {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}},
         "http": {"status": 200, "headers": {"content-type": "text/event-stream"}, "exchange": "x1"}},
    ])  # fmt: skip
    assert set(trace.http["channel"]) == {"SSE (legacy transport)"}
    assert set(trace.messages["conn"]) == {"c1"}
    assert trace.exchanges["outcome"].tolist() == ["result"]


def test_a_modern_listen_channel_is_disabled_only_with_a_reason():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}

    def state(capabilities):
        trace = make_trace([
            ("client", {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}),
            ("server", {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "capabilities": capabilities}}),
        ], transport="http")  # fmt: skip
        row = trace.channels.set_index("channel").loc["LISTEN (SSE)"]
        return row["state"]

    assert state({"tools": {}}) == "disabled"
    assert state({"tools": {"listChanged": True}}) == "not observed"
