"""What the logs of single tools have beyond the conversation of the samples."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET

from mcplab import formats
from mcplab.formats import source
from mcplab.model import Http, Record, TraceError

HELLO = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
HI = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"y","version":"1"}}}'
T = "2026-01-05T10:00:00.%03dZ"
L = "2026-01-05 10:00:00.%03d"


def read(*lines: str, **options: str) -> Record:
    return formats.read(source.load("\n".join(lines) + "\n"), **options)


def said(record: Record) -> str:
    return " ".join(record.notes)


# Claude Desktop


def claude(n: int, words: str, server: str = "db", level: str = "info") -> str:
    return f"{T % n} [{server}] [{level}] {words}"


def test_claude_runs_of_a_server_are_connections() -> None:
    record = read(
        claude(0, "Initializing server..."),
        claude(1, "Server started and connected successfully"),
        claude(2, f"Message from client: {HELLO}"),
        claude(3, "Server transport closed"),
        claude(4, "Client transport closed"),
        claude(5, "Server transport closed unexpectedly, this is likely due to the process exiting early."),
        claude(6, "Initializing server..."),
        claude(7, "Server started and connected successfully"),
        claude(8, f"Message from client: {HELLO}"),
    )
    assert [(event.kind, event.conn) for event in record.events] == [
        ("open", "db"), ("message", "db"), ("close", "db"), ("open", "db#2"), ("message", "db#2"),
    ]  # fmt: skip
    assert record.events[2].unexpected is True
    assert record.events[0].label == "db"


def test_claude_a_terminal_s_colours_are_no_part_of_the_log() -> None:
    plain = [claude(0, f"Message from client: {HELLO}"), claude(1, f"Message from server: {HI}")]
    coloured = [f"\x1b[34m{line}\x1b[0m" for line in plain]
    one, two = ([(e.kind, e.conn, e.ts, e.dir) for e in read(*lines).events] for lines in (plain, coloured))
    assert [event[1] for event in one] == ["db"] * 3
    assert one == two


def test_claude_two_runs_at_once_are_told_apart_by_ids() -> None:
    record = read(
        claude(0, "Server started and connected successfully"),
        claude(0, "Server started and connected successfully"),
        claude(2, f"Message from client: {HELLO}"),
        claude(2, f"Message from client: {HELLO}"),
        claude(3, f"Message from server: {HI}"),
        claude(3, f"Message from server: {HI}"),
    )
    assert [event.conn for event in record.events if event.kind == "message"] == ["db", "db#2", "db", "db#2"]
    assert "open at once" in said(record)


def test_claude_text_that_was_no_json_keeps_what_the_log_quotes() -> None:
    record = read(
        claude(0, f"Message from client: {HELLO}"),
        claude(1, "Unexpected token 'L', \"Loading it\"... is not valid JSON", level="error"),
        claude(2, "Unexpected end of JSON input", level="error"),
        claude(3, "Expected ',' or '}' after property value in JSON at position 41 (line 1 column 42)", level="error"),
    )
    assert [(event.kind, event.raw, event.dir) for event in record.events[2:]] == [
        ("unparsed", "Loading it", "s2c"), ("unparsed", UNSET, "s2c"), ("unparsed", UNSET, "s2c"),
    ]  # fmt: skip


def test_claude_stderr_and_entries_of_many_lines() -> None:
    record = read(
        claude(0, f"Message from client: {HELLO}"),
        claude(1, "Using MCP server command: node with args and path: {"),
        "  args: [ 'x.js', [length]: 1 ],",
        "  paths: [ '/usr/bin' ]",
        "}",
        "Traceback (most recent call last):",
        '  File "x.py", line 1',
    )
    assert [event.raw for event in record.events if event.kind == "stderr"] == [
        "Traceback (most recent call last):",
        '  File "x.py", line 1',
    ]


def test_claude_shortened_messages_are_named() -> None:
    whole = '{"jsonrpc":"2.0","id":1,"result":{"text":"a...[18778 chars truncated]...z"}}'
    cut = '{"jsonrpc":"2.0","id":2,"result":{"text":"a...[20 chars truncated]...}'
    record = read(claude(0, f"Message from server: {whole}"), claude(1, f"Message from server: {cut}"))
    assert [event.text for event in record.events if event.kind == "message"] == [whole]
    assert "the log shortened it" in record.unread[0].reason
    assert "1 messages were shortened" in said(record)


def test_claude_tail_of_two_files_keeps_a_message_once() -> None:
    line = claude(1, f"Message from client: {HELLO}")
    record = read("==> mcp.log <==", line, "", "==> mcp-server-db.log <==", line, "oops")
    assert [event.kind for event in record.events] == ["open", "message", "stderr"]
    assert record.events[2].conn == "db"
    assert "kept once" in said(record)


# VS Code


def test_vscode_failures_and_exit_codes() -> None:
    record = read(
        f"{L % 0} [info] Starting server x",
        f"{L % 1} [info] Connection state: Running",
        f'{L % 2} [warning] Failed to parse message: "junk \\"quoted\\"\\n"',
        f"{L % 3} [info] Connection state: Error Process exited with code 127",
        f"{L % 4} [info] Connection state: Running",
        f"{L % 5} [debug] [editor -> server] {HELLO}",
    )
    assert [(event.kind, event.conn) for event in record.events] == [
        ("open", "c1"), ("unparsed", "c1"), ("close", "c1"), ("open", "c2"), ("message", "c2"),
    ]  # fmt: skip
    assert record.events[1].raw == 'junk "quoted"'
    assert (record.events[2].exit_code, record.events[2].unexpected) == (127, True)
    assert record.header["transport"] == "stdio"


def test_vscode_pasted_text_is_read() -> None:
    wrapped = read(f"> {L % 5} [trace] [editor -> server] {HELLO[:40]}", HELLO[40:])
    assert [event.text for event in wrapped.events] == [HELLO]
    bare = read(f"[editor -> server] {HELLO}", f"[server -> editor] {HI}")
    assert [event.dir for event in bare.events] == ["c2s", "s2c"]
    assert "clock" not in bare.header
    old = read(f"{L % 5} [info] [Client Says] {HELLO}", f"{L % 6} [info] [Server Says] {HI}")
    assert [event.dir for event in old.events] == ["c2s", "s2c"]


def test_vscode_without_frames_says_how_to_get_them() -> None:
    record = read(f"{L % 0} [info] Connection state: Running", f"{L % 1} [info] Discovered 3 tools")
    assert "Trace" in said(record)
    assert "no protocol message" in said(record)
    assert [event.kind for event in record.events] == ["open"]


# Logs without messages


def test_cursor_has_no_message_and_says_so() -> None:
    record = read(
        f"{L % 0} [info] Handling CreateClient action",
        f"{L % 1} [info] user-db: Starting new stdio process with command: x",
        f"{L % 2} [error] user-db: Client error for command Unexpected token 'a', \"abcdefghij\"... is not valid JSON",
        f"{L % 3} [info] user-db: Found 3 tools, 0 prompts, and 0 resources",
        f"{L % 4} [info] user-db: Client closed for command",
    )
    assert record.format == "cursor"
    assert [(event.kind, event.conn) for event in record.events] == [
        ("open", "user-db"),
        ("unparsed", "user-db"),
        ("close", "user-db"),
    ]
    assert "holds no protocol message" in record.notes[0]
    with pytest.raises(TraceError, match="holds no protocol message"):
        read(f"{L % 0} [info] Handling ListOfferings action")


def test_mcp_remote_names_and_whole_messages() -> None:
    printed = json.dumps(json.loads(HELLO), indent=2).split("\n")
    refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}'
    record = read(
        "[77] Using transport strategy: http-first",
        "[77] Connected to remote server using StreamableHTTPClientTransport",
        "[77] [Local→Remote] initialize",
        f"[77] {printed[0]}",
        *printed[1:],
        "[77] [Remote→Local] 0",
        "[77] [Local→Remote] tools/call",
        f"[77] Error from remote server: Error: Error POSTing to endpoint (HTTP 404): {refusal}",
        "[77] Shutting down...",
    )
    assert [event.kind for event in record.events] == ["open", "message", "message", "close"]
    assert json.loads(record.events[1].text) == json.loads(HELLO)
    assert isinstance(record.events[2].http, Http)
    assert record.events[2].http.status == 404
    assert record.header["transport"] == "streamable-http"
    assert "initialize, tools/call" in said(record)


def test_claude_code_summaries_and_quoted_messages() -> None:
    rows = [
        {"debug": "Starting connection with timeout of 30000ms"},
        {"debug": "Successfully connected (transport: stdio) in 20ms"},
        {
            "debug": 'Connection established with capabilities: {"hasTools":true,"negotiatedProtocolVersion":"2025-11-25"}'
        },
        {"error": "Server stderr: careful"},
        {"debug": f"Received message: {HI}"},
        {"debug": "STDIO connection dropped after 3s uptime"},
    ]
    record = read(
        *[json.dumps({**row, "timestamp": T % n, "sessionId": "s", "cwd": "/w"}) for n, row in enumerate(rows)]
    )
    assert [event.kind for event in record.events] == ["open", "stderr", "message", "close"]
    assert record.events[2].dir == "s2c"
    assert "2025-11-25" in said(record)
    text = read(*[f'{T % n} [DEBUG] MCP server "w": {next(iter(row.values()))}' for n, row in enumerate(rows)])
    assert [(event.kind, event.conn) for event in text.events] == [
        ("open", "w"),
        ("stderr", "w"),
        ("message", "w"),
        ("close", "w"),
    ]


def test_fast_agent_lifecycle() -> None:
    def row(message: str, **more: object) -> str:
        return json.dumps(
            {"level": "INFO", "timestamp": "2026-01-05T10:00:00", "namespace": "x", "message": message, **more},
            separators=(",", ":"),
        )

    record = read(row("db: Up and running with a persistent connection!"), row("db (stderr): hm"), row("something", data={"x": 1}),
                  row("db: Lifecycle task encountered an error: boom"))  # fmt: skip
    assert [(event.kind, event.conn) for event in record.events] == [("open", "db"), ("stderr", "db"), ("close", "db")]
    assert record.header["clock"] == "naive"


# HTTP


def test_old_transport_is_recognised_by_its_endpoint_event() -> None:
    record = read(
        "$ curl -N -v http://localhost:9/sse",
        "> GET /sse HTTP/1.1",
        ">",
        "< HTTP/1.1 200 OK",
        "< content-type: text/event-stream",
        "<",
        "event: endpoint",
        "data: /messages?sessionId=1",
        "",
        ": ping",
        "",
        f"data: {HI}",
        "",
    )
    assert record.header["transport"] == "sse"
    assert [event.kind for event in record.events] == ["http", "http", "sse", "sse", "message"]
    assert record.events[2].sse.data == "/messages?sessionId=1"  # type: ignore[union-attr]


def test_answer_on_a_get_stream_comes_after_its_request() -> None:
    stream = f"event: message\ndata: {HI}\n\n"
    entries = [
        {"startedDateTime": "2026-01-05T10:00:00Z", "time": 9000, "request": {"method": "GET", "url": "http://x/mcp", "headers": []},
         "response": {"status": 200, "headers": [{"name": "content-type", "value": "text/event-stream"}], "content": {"text": stream}}},
        {"startedDateTime": "2026-01-05T10:00:01Z", "time": 10,
         "request": {"method": "POST", "url": "http://x/mcp", "headers": [], "postData": {"text": HELLO}},
         "response": {"status": 202, "headers": [], "content": {"text": ""}}},
    ]  # fmt: skip
    record = read(json.dumps({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}}))
    assert [(event.kind, event.http.exchange) for event in record.events] == [  # type: ignore[union-attr]
        ("http", "x1"), ("http", "x1"), ("message", "x2"), ("http", "x2"), ("message", "x1"),
    ]  # fmt: skip


def test_curl_command_forms() -> None:
    for command in (
        f"curl -sS -i -X POST 'http://x/mcp?api_key=s3cret&sessionId=9' -H 'Accept: a' -d '{HELLO}'",
        f"PS C:\\> curl.exe -i http://x/mcp?sessionId=9 -HAccept:a --data-raw '{HELLO}'",
        f"$ curl -i --json '{HELLO}' --url http://x/mcp?sessionId=9 --header 'Accept: a'",
    ):
        record = read(command, "HTTP/1.1 200 OK", "content-type: application/json", "", HI)
        assert [event.text for event in record.events] == [HELLO, HI]
        http = record.events[0].http
        assert isinstance(http, Http)
        assert (http.method, http.path) == ("POST", "/mcp?sessionId=9")
        assert "a" in http.headers["accept"]  # type: ignore[index]


@pytest.mark.parametrize("line", ["POST /mcp HTTP/1.1", "POST /mcp", "POST http://x/mcp HTTP/2"])
def test_an_exchange_as_http_has_it(line) -> None:
    """Words between the body and the response are neither's."""
    record = read(
        "# What was sent", line, "Accept: a", "", HELLO, "", "It answers:", "HTTP/1.1 200 OK", "Content-Type: application/json",
        "", HI, "", "DELETE /mcp", "Mcp-Session-Id: 9", "", "HTTP/1.1 405 Method Not Allowed", "", "POST /token", "Accept: a", "",
        "grant_type=x", "", "HTTP/1.1 404 Not Found",
    )  # fmt: skip
    assert [event.text for event in record.events][:2] == [HELLO, HI]
    said = [(event.http.method, event.http.status, event.http.path) for event in record.events]  # type: ignore[union-attr]
    assert [one for one in said if one[0] is not UNSET] == [
        ("POST", UNSET, "/mcp"), ("DELETE", UNSET, "/mcp"), ("POST", UNSET, "/token"),
    ]  # fmt: skip
    assert [one[1] for one in said if one[1] is not UNSET] == [200, 405, 404]


def test_mcpsnoop_text_batch_and_http_facts() -> None:
    def row(**more: object) -> str:
        return json.dumps({"session_id": "s", "server_label": "l", "seq": 1, "ts": T % 0, **more})

    record = read(
        row(direction="c2s", transport="http", conn_id="k1", mcp_method="tools/list", mcp_protocol_version="2026-07-28", batch=True,
            raw={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        row(direction="s2c", transport="http", conn_id="k1", status=401, auth_challenge='Bearer realm="x"', text="no json"),
        row(direction="stderr", text="hm"),
    )  # fmt: skip
    assert [(event.kind, event.conn) for event in record.events] == [
        ("message", "s/k1"),
        ("unparsed", "s/k1"),
        ("stderr", "s"),
    ]
    assert record.events[0].http.headers == {"mcp-method": "tools/list", "mcp-protocol-version": "2026-07-28"}  # type: ignore[union-attr]
    assert (record.events[1].http.status, record.events[1].http.headers) == (401, {"www-authenticate": "Bearer"})  # type: ignore[union-attr]
    assert "batch" in said(record)


def test_mcp_rec_keeps_text_that_was_no_json() -> None:
    record = read(
        json.dumps({"ts": 1.5, "dir": "client->server", "msg": json.loads(HELLO)}),
        json.dumps({"ts": 2.5, "dir": "server->client", "msg": {"_raw": "hello there", "_unparsed": True}}),
    )
    assert [(event.kind, event.dir, event.raw) for event in record.events] == [
        ("message", "c2s", UNSET),
        ("unparsed", "s2c", "hello there"),
    ]


def test_python_reprs_of_both_generations() -> None:
    record = read(
        "DEBUG:mcp.client.sse:Sending client message: root=JSONRPCRequest(method='tools/call', params={'a': None, 'b': [1, True]}, jsonrpc='2.0', id=4)",
        "DEBUG:mcp.client.sse:SSE message: jsonrpc='2.0' id='x' result={'content': [{'text': \"it's\"}]}",
        'DEBUG:mcp.server.sse:Received JSON: b\'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1.50}}\'',
        "DEBUG:mcp.client.sse:SSE message: root=JSONRPCError(jsonrpc='2.0', id=5, error=ErrorData(code=-1, message='no', data=None))",
        "DEBUG:mcp.client.sse:SSE message: root=JSONRPCResponse(broken",
    )
    assert [event.text for event in record.events] == [
        '{"method":"tools/call","params":{"a":null,"b":[1,true]},"jsonrpc":"2.0","id":4}',
        '{"jsonrpc":"2.0","id":"x","result":{"content":[{"text":"it\'s"}]}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1.50}}',
        '{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}',
    ]
    assert len(record.unread) == 1


@pytest.mark.parametrize("received", [
    """Received JSON: b'{"jsonrpc":"2.0","id":4,"method":"ping"}'""",
    "Received JSON: {'jsonrpc': '2.0', 'id': 4, 'method': 'ping'}",
    "",
])  # fmt: skip
def test_a_message_that_a_python_server_logs_three_times_is_one(received: str) -> None:
    record = read(
        f"DEBUG:mcp.server.sse:{received}",
        "DEBUG:mcp.server.sse:Validated client message: root=JSONRPCRequest(method='ping', jsonrpc='2.0', id=4)",
        "DEBUG:mcp.server.sse:Sending message to writer: root=JSONRPCRequest(method='ping', jsonrpc='2.0', id=4)",
        "DEBUG:mcp.server.sse:Sending message via SSE: root=JSONRPCResponse(jsonrpc='2.0', id=4, result={})",
    )
    assert [event.dir for event in record.events] == ["c2s", "s2c"]
    assert json.loads(record.events[0].text) == {"jsonrpc": "2.0", "id": 4, "method": "ping"}


def test_sessions_of_a_python_server_are_connections() -> None:
    words = []
    for name in "ab":
        words += [f"Parsed session ID: {name}", f"Received JSON: b'{json.dumps(OPENING)}'"]
    answer = "Sending message via SSE: root=JSONRPCResponse(jsonrpc='2.0', id=0, result={})"
    hello = """Received JSON: b'{"jsonrpc":"2.0","method":"notifications/initialized"}'"""
    words += [answer, answer, "Parsed session ID: b", hello, "Parsed session ID: a", hello]
    record = read(*(f"DEBUG:mcp.server.sse:{each}" for each in words))
    assert [event.conn for event in record.events] == ["c1", "c2", "c1", "c2", "c2", "c1"]
    assert "no mark of a server's message's session" in said(record)


def test_python_clients_one_after_the_other_are_connections() -> None:
    line = "DEBUG:mcp.client.streamable_http:Sending client message: root=JSONRPCRequest(method='initialize', jsonrpc='2.0', id=0)"
    assert [event.conn for event in read(line, line).events] == ["c1", "c2"]


def test_framing_is_read_and_called_wrong() -> None:
    record = read(f"{HELLO}", f"Content-Length: {len(HI)}\r", "\r", HI)
    assert [event.kind for event in record.events] == ["message", "unparsed", "message"]
    assert record.events[1].dir == "s2c"
    assert "conforming reader" in said(record)


OPENING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}
OPENED = {
    "jsonrpc": "2.0",
    "id": 0,
    "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "b", "version": "1"}},
}


def test_claude_log_pasted_with_other_words_and_quotes() -> None:
    log = [
        claude(0, f"Message from client: {json.dumps(OPENING)}"),
        claude(1, f"Message from server: {json.dumps(OPENED)}"),
    ]
    for lines in (
        ["Hello, my log:", "```", *log, "```"],
        ["> " + line for line in log],
        ["    " + line for line in log],
    ):
        record = read(*lines)
        assert {event.conn for event in record.events} == {"db"}
        assert all(event.ts is not UNSET for event in record.events if event.kind == "message")


@pytest.mark.parametrize(
    ("client", "server"), [("C->S: ", "S->C: "), ("[client => server] ", "[server => client] "), ("S <- C ", "C <- S ")]
)
def test_pairs_of_parties_are_directions(client: str, server: str) -> None:
    record = read(client + json.dumps(OPENING), server + json.dumps(OPENED))
    assert [event.dir for event in record.events] == ["c2s", "s2c"]


def test_angle_brackets_are_directions_only_where_both_are_there() -> None:
    stray = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no"}})
    lines = [f"> {json.dumps(OPENING)}", f"< {json.dumps(OPENED)}", f"< {stray}"]
    assert [event.dir for event in read(*lines).events] == ["c2s", "s2c", "s2c"]
    quoted = [f"> {line[2:]}" for line in lines]
    assert [event.dir for event in read(*quoted).events] == ["c2s", "s2c", UNSET]


def test_messages_inside_strings_of_a_log() -> None:
    whole = [json.dumps({"level": "debug", "time": 1767607200000, "msg": f"recv {json.dumps(OPENING)}"})]
    whole.append(json.dumps({"log": json.dumps(OPENED) + "\n", "stream": "stdout", "time": "2026-01-05T10:00:00.5Z"}))
    for lines in (whole, [json.dumps(json.dumps(each)) for each in (OPENING, OPENED)]):
        assert [json.loads(event.text) for event in read(*lines).events] == [OPENING, OPENED]


@pytest.mark.parametrize(
    ("time", "ts"),
    [
        ("2026/01/05 10:00:00", "2026-01-05T10:00:00.000000Z"),
        ("05.01.2026 10:00:00,5", "2026-01-05T10:00:00.500000Z"),
        ("1/5/2026 10:00:00 AM", UNSET),
    ],
)
def test_times_of_other_forms_are_read_where_they_have_one_meaning(time: str, ts: object) -> None:
    record = read(f"{time} got {json.dumps(OPENING)}", f"{time} put {json.dumps(OPENED)}")
    assert {event.ts for event in record.events} == {ts}
    assert any("form" in note for note in record.notes) == (ts is UNSET)


def test_a_response_without_its_command_keeps_its_status_and_headers() -> None:
    record = read("HTTP/1.1 200 OK", "content-type: application/json", "mcp-session-id: s", "", json.dumps(OPENED))
    (event,) = record.events
    assert isinstance(event.http, Http)
    assert (event.dir, event.http.method, event.http.status) == ("s2c", UNSET, 200)
    assert event.http.headers == {"content-type": "application/json", "mcp-session-id": "s"}
    assert any("no method" in note for note in record.notes)


def test_claude_code_objects_in_any_order_and_in_a_list() -> None:
    said = "Connection established with capabilities: {}"
    rows = [{"cwd": "/w", "sessionId": "s", "timestamp": "2026-01-05T10:00:00.100Z", "debug": said}]
    for text in (json.dumps(rows[0]), json.dumps(rows, indent=2)):
        record = read(text)
        assert (record.format, [event.kind for event in record.events]) == ("claude-code", ["open"])


def test_mcp_remote_alone_is_lifecycle() -> None:
    record = read("[7] Connecting to remote server: http://x", "[7] [Localâ†’Remote] initialize")
    assert (record.format, [event.kind for event in record.events]) == ("mcp-remote", ["open"])
    assert any("no protocol message" in note for note in record.notes)
