"""Small parts of the wire: event streams, what counts as a message, headers kept, texts built, values encoded."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab.live.capture import Capture, is_message, kept, parts, raw
from mcplab.live.handshakes import handshake
from mcplab.live.http import header_value
from mcplab.live.recording import RecordingTransport, why
from mcplab.live.server.demo import serving
from mcplab.live.server.http import _decoded
from mcplab.live.sse import SseParser
from mcplab.live.texts import dump, message, mirrored, modern_params
from mcplab.model import ABSENT, HandshakeError, JsonText
from mcplab.redaction import MASKS

STREAM = (
    b"id: 1\nretry: 20\ndata: \n\n"
    b": keep-alive\n\n"
    b"event: message\r\ndata: {\"a\":1,\r\ndata: \"b\":2}\r\n\r\n"
    b"event: endpoint\rdata:/messages?x=1\r\r"
    b"data\n\n\n"
    b"data: cut"
)  # fmt: skip


def test_event_streams():
    parser = SseParser()
    events = list(parser.feed(STREAM))
    assert [(e.event, e.data, e.id, e.retry, e.comment) for e in events] == [
        (None, b"", "1", "20", None),
        (None, None, None, None, "keep-alive"),
        ("message", b'{"a":1,\n"b":2}', None, None, None),
        ("endpoint", b"/messages?x=1", None, None, None),
        (None, b"", None, None, None),
    ]
    assert [e.is_message for e in events] == [False, False, True, False, False]
    assert parser.rest() == b"data: cut"
    assert events[0].facts(True).retry == 20


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_event_streams_in_any_pieces(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    parser = SseParser()
    events = [e for a, b in itertools.pairwise(edges) for e in parser.feed(STREAM[a:b])]
    whole = SseParser()
    assert [e.__dict__ for e in events] == [e.__dict__ for e in whole.feed(STREAM)]
    assert parser.rest() == whole.rest()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 1),
        (b' {"result":{}}\r', 1),
        (b'[{"method":"a"},{"id":1,"error":{}}]', 2),
        (b"[]", 0),
        (b'[{"method":"a"},7]', 0),
        (b'{"id":1}', 0),
        (b'{"level":"info","msg":"hello"}', 0),
        (b'"jsonrpc"', 0),
        (b'{"method":NaN}', 0),
        (b'{"method":"a"', 0),
        (b"\xff", 0),
        (b'{"method":"deep","id":3,"params":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 1),
    ],
)
def test_what_is_a_message(text, count):
    assert len(parts(text)) == count
    assert is_message(text.strip()) is (count > 0)
    if b"deep" in text:
        assert parts(text)[0][1] == {"method": "deep", "id": 3}


def test_headers_and_paths_that_are_kept():
    given = [
        ("Authorization", "Bearer x"),
        ("Cookie", "a=b"),
        ("X-Api-Key", "x"),
        ("Mcp-Session-Id", "s"),
        ("Mcp-Param-Token", "x"),
        ("WWW-Authenticate", 'Bearer realm="secret"'),
        ("Accept", "a"),
        ("accept", "b"),
    ]
    assert kept(given) == {"mcp-session-id": "s", "www-authenticate": "Bearer", "accept": "a, b"}
    assert MASKS.address("/mcp") == "/mcp"
    assert MASKS.address("/m?session_id=1&access_token=x&b&apiKey=") == "/m?session_id=1&access_token=***&b&apiKey="


def test_raw_text():
    assert raw("é".encode()) == {"raw": "é"}
    assert raw(b"\xff\x00") == {"raw_b64": "/wA="}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_texts_are_json(value):
    assert json.loads(dump(value)) == value
    assert json.loads(message(id=1, method="m", params={"x": value}))["params"]["x"] == value


def test_texts_keep_what_was_given():
    value = {"a": JsonText("1.50"), "b": ABSENT, "c": [JsonText("{ }"), True]}
    assert dump(value) == '{"a":1.50,"c":[{ },true]}'
    assert message(method="m", params=ABSENT) == b'{"jsonrpc":"2.0","method":"m"}'
    with pytest.raises(HandshakeError, match="ABSENT"):
        dump([ABSENT])


def test_meta_of_a_modern_request():
    made = modern_params({"name": "x", "_meta": {"progressToken": 1}}, "2026-07-28", {}, ABSENT)
    assert list(made) == ["name", "_meta"]
    assert '"progressToken":1' in dump(made)
    assert "clientInfo" not in dump(made)
    assert modern_params(JsonText("[1]"), "2026-07-28", {}, {}) == "[1]"
    assert modern_params({"_meta": None}, "2026-07-28", {}, {}) == {"_meta": None}


@given(st.text())
def test_header_values_come_back(value):
    encoded = header_value(value)
    assert encoded.isascii()
    assert "\n" not in encoded
    if not any(0xD800 <= ord(char) <= 0xDFFF for char in value):
        assert _decoded(encoded) == value


@pytest.mark.parametrize(
    ("value", "header"),
    [  # the table of 2026-07-28 streamable-http#value-encoding
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
def test_header_values_of_the_specification(value, header):
    assert header_value(value) == header


def test_mirrored_parameters():
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {
        "properties": {
            "region": region,
            "deep": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "list": {"items": {"properties": {"region": region}}},
            "none": {"type": "string", "x-mcp-header": "None"},
        }
    }
    arguments = {"region": "eu", "deep": {"flag": True}, "list": [{"region": "us"}], "none": None}
    assert sorted(mirrored(schema, arguments)) == [("mcp-param-flag", "true"), ("mcp-param-region", "eu")]
    assert mirrored(None, arguments) == ()


def test_why_opens_groups_and_causes():
    inner = ConnectionRefusedError(111, "Connect call failed")
    outer = RuntimeError("wrapped")
    outer.__cause__ = ExceptionGroup("all attempts failed", [inner])
    assert why(outer) == "Connection refused"
    assert why(ValueError("plain")) == "plain"
    assert why(TimeoutError()) == "TimeoutError"


def test_the_recording_transport_serves_any_client_above_it():
    """The official SDK's client over it: the trace has what the wire carried, its declaration with it."""

    async def talk(url: str, capture: Capture) -> None:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        below = httpx2.AsyncClient(transport=RecordingTransport(capture), headers={"accept-encoding": "identity"})
        async with below, Client(streamable_http_client(url, http_client=below)) as client:
            await client.call_tool("progress", {"steps": 2, "delay": 0})

    capture = Capture()
    with serving() as server:
        asyncio.run(talk(server.url, capture))
        seen = server.wire.texts
    recorded = [(event.dir, event.text) for event in capture.events if event.kind == "message"]
    for direction in ("c2s", "s2c"):
        assert [text for d, text in recorded if d == direction] == [text for d, text in seen if d == direction]
    assert capture.events[0].kind == "open"
    assert capture.events[-1].kind == "close"


class Closed(BaseHTTPRequestHandler):
    """A resource server that lets nobody in: its refusal is OAuth's, not JSON-RPC."""

    def do_POST(self) -> None:
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"error":"invalid_token"}')

    def log_message(self, *args: object) -> None:
        pass


def test_a_refusal_of_oauth_is_no_message():
    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(HandshakeError) as failure:
                handshake(f"http://127.0.0.1:{server.server_port}/mcp", mode="legacy", timeout=20)
        finally:
            server.shutdown()
            thread.join()
    messages = failure.value.trace.messages
    assert list(messages.sender) == ["client"]


class Moved(BaseHTTPRequestHandler):
    """An MCP endpoint that has moved to its address with a slash, and once more where ``elsewhere`` is set."""

    elsewhere = ""
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/mcp/" and not self.elsewhere:
            ident = json.loads(body)["id"]
            result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
            self._send(200, json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode())
        else:
            self._send(307, b"", location=self.elsewhere or "/mcp/")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize("elsewhere", ["", "http://127.0.0.2:9/mcp"])
def test_redirects_stay_on_their_origin(elsewhere):
    handler = type("Handler", (Moved,), {"elsewhere": elsewhere})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        try:
            if elsewhere:
                with pytest.raises(HandshakeError, match="HTTP 307"):
                    handshake(url, mode="modern", timeout=10)
                return
            shake = handshake(url, timeout=10)
        finally:
            server.shutdown()
    assert shake.label == "2026-07-28 (modern)"
    sent = [event.http.path for event in shake.record.events if event.kind == "message" and event.dir == "c2s"]
    assert sent == ["/mcp", "/mcp/"]  # both are on the wire, so both are in the trace
