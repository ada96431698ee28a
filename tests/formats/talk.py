"""One invented conversation, and how each kind of log writes it down: the samples in this folder.

``python tests/formats/talk.py`` writes the files; a test holds them against this module. Every message carries a word of
its own (``mark-07``), so that a test can tell which of them a damaged file still holds whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
START = datetime(2026, 2, 3, 14, 0, 0, tzinfo=UTC)
SERVER = "weather"


@dataclass(frozen=True)
class Message:
    """A message of the conversation: who sent it, when (seconds), what, and on which HTTP exchange."""

    dir: str
    at: float
    body: dict[str, Any]
    exchange: int

    @property
    def text(self) -> str:
        return json.dumps(self.body, separators=(",", ":"))

    @property
    def time(self) -> datetime:
        return START + timedelta(seconds=self.at)

    @property
    def iso(self) -> str:
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.time.microsecond // 1000:03d}Z"

    @property
    def local(self) -> str:
        return self.iso[:-1].replace("T", " ")


def _ask(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _tell(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _answer(id: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


TALK = [
    Message("c2s", 0.010, _ask(0, "initialize", protocolVersion="2025-06-18",
            capabilities={"roots": {"listChanged": True}, "sampling": {}}, clientInfo={"name": "mark-00", "version": "2.1"}), 1),
    Message("s2c", 0.040, _answer(0, protocolVersion="2025-06-18", capabilities={"tools": {"listChanged": False}, "logging": {}},
            serverInfo={"name": "mark-01", "version": "0.3.0"}), 1),
    Message("c2s", 0.060, _tell("notifications/initialized", _meta={"note": "mark-02"}), 2),
    Message("c2s", 0.100, _ask(1, "tools/list", _meta={"note": "mark-03"}), 3),
    Message("s2c", 0.130, _answer(1, tools=[{"name": "mark-04", "inputSchema": {"type": "object"}}]), 3),
    Message("c2s", 0.200, _ask("two", "tools/call", name="mark-05", arguments={"city": "Zürich", "big": 12345678901234567890}), 4),
    Message("s2c", 0.250, {"jsonrpc": "2.0", "id": "two", "error": {"code": -32602, "message": "mark-06"}}, 4),
    Message("c2s", 0.300, _ask(3, "tools/call", name="mark-07", arguments={}), 5),
    Message("s2c", 0.320, _tell("notifications/message", level="info", data="mark-08"), 5),
    Message("s2c", 0.350, _answer(3, content=[{"type": "text", "text": "mark-09 says \"hi\"\nand more"}]), 5),
]  # fmt: skip

Piece = tuple[str, int | None]  # text of the file, and the number of the message that it is (None: what stands around)


def _lines(
    line: Callable[[Message], tuple[str, str]], before: str = "", after: str = "", end: str = "\n"
) -> list[Piece]:
    pieces: list[Piece] = [(before, None)]
    for number, message in enumerate(TALK):
        lead, trail = line(message)
        pieces += [(lead, None), (message.text, number), (trail + end, None)]
    return [*pieces, (after, None)]


def mcplab() -> list[Piece]:
    pieces: list[Piece] = [('{"kind":"header","format":"mcplab-trace","version":1,"transport":"stdio"}\n', None)]
    for n, m in enumerate(TALK):
        head = f'{{"kind":"message","seq":{n},"ts":"{m.iso[:-1]}000Z","conn":"c1","dir":"{m.dir}","msg":'
        pieces += [(head, None), (m.text, n), ("}\n", None)]
    return pieces


def claude_desktop() -> list[Piece]:
    def line(m: Message) -> tuple[str, str]:
        return f"{m.iso} [{SERVER}] [info] Message from {'client' if m.dir == 'c2s' else 'server'}: ", ""

    t = TALK[0].iso
    return _lines(
        line,
        f"{t} [{SERVER}] [info] Initializing server...\n{t} [{SERVER}] [info] Server started and connected successfully\n",
        f"npm warn something (stderr)\n{TALK[-1].iso} [{SERVER}] [info] Client transport closed\n",
    )


def claude_desktop_mcp_log() -> list[Piece]:
    def line(m: Message) -> tuple[str, str]:
        who = "client" if m.dir == "c2s" else "server"
        return f"{m.iso} [info] [{SERVER}] Message from {who}: ", " { metadata: undefined }"

    return _lines(line, f"==> ~/Library/Logs/Claude/mcp.log <==\n{TALK[0].iso} [info] [{SERVER}] Server started and "
                        "connected successfully { metadata: undefined }\n")  # fmt: skip


def vscode() -> list[Piece]:
    def line(m: Message) -> tuple[str, str]:
        return f"{m.local} [trace] [{'editor -> server' if m.dir == 'c2s' else 'server -> editor'}] ", ""

    t = TALK[0].local
    return _lines(
        line,
        f"{t} [info] Starting server {SERVER}\n{t} [info] Connection state: Starting\n{t} [info] Connection state: Running\n",
        f"{TALK[-1].local} [warning] [server stderr] bye\n{TALK[-1].local} [info] Connection state: Stopped\n",
    )


def go_sdk() -> list[Piece]:
    return _lines(lambda m: ("read: " if m.dir == "c2s" else "write: ", ""))


def lines() -> list[Piece]:
    return _lines(lambda m: ("", ""))


def array() -> list[Piece]:
    pieces = _lines(lambda m: ("", ","), "[", "]")
    return [*pieces[:-2], ("\n", None), ("]\n", None)]


def pretty() -> list[Piece]:
    pieces: list[Piece] = []
    for number, m in enumerate(TALK):
        way = "received" if m.dir == "c2s" else "sent"
        pieces += [(f"{m.local.replace('.', ',')} INFO [traffic] (worker-1) MCP message {way} [c1]:\n\n", None),
                   (json.dumps(m.body, indent=2), number), ("\n", None)]  # fmt: skip
    return pieces


def arrows() -> list[Piece]:
    return _lines(lambda m: ("--> " if m.dir == "c2s" else "<-- ", ""))


def framed() -> list[Piece]:
    return _lines(lambda m: (f"Content-Length: {len(m.text.encode())}\r\n\r\n", ""), end="")


def mcpsnoop() -> list[Piece]:
    def line(m: Message) -> tuple[str, str]:
        n = TALK.index(m) + 2
        head = {
            "session_id": f"{SERVER}-77",
            "server_label": SERVER,
            "seq": n,
            "ts": m.iso,
            "direction": m.dir,
            "transport": "stdio",
        }
        return json.dumps(head, separators=(",", ":"))[:-1] + ',"raw":', "}"

    meta = {"session_id": f"{SERVER}-77", "server_label": SERVER, "seq": 1, "ts": TALK[0].iso, "direction": "meta",
            "transport": "stdio", "raw": {"command": ["weather-server"], "cwd": "/w"}}  # fmt: skip
    return _lines(line, json.dumps(meta, separators=(",", ":")) + "\n")


def mcp_rec() -> list[Piece]:
    def line(m: Message) -> tuple[str, str]:
        way = "client->server" if m.dir == "c2s" else "server->client"
        return f'{{"ts": {m.time.timestamp()}, "dir": "{way}", "msg": ', "}"

    return _lines(line)


def mcporter() -> list[Piece]:
    def meta(way: str, iso: str) -> str:
        return f'"_meta":{{"dir":"{way}","server":"{SERVER}","ts":"{iso}"}}'

    pieces: list[Piece] = [
        (f'{{"jsonrpc":"2.0","method":"$transport/start",{meta("lifecycle", TALK[0].iso)}}}\n', None)
    ]
    for number, m in enumerate(TALK):
        way = "send" if m.dir == "c2s" else "recv"
        pieces += [(m.text[:-1] + "," + meta(way, m.iso) + "}", number), ("\n", None)]  # whole only with what was added
    return pieces


def _paired() -> list[tuple[int, int | None]]:
    """(request or notification, its answer) by number."""
    pairs: list[tuple[int, int | None]] = []
    for number, m in enumerate(TALK):
        if "method" in m.body:
            answers = (
                n
                for n, a in enumerate(TALK)
                if "method" not in a.body and a.dir != m.dir and a.body["id"] == m.body.get("id")
            )
            pairs.append((number, next(answers, None) if "id" in m.body else None))
    return pairs


def _indented(body: Any, depth: int) -> str:
    return json.dumps(body, indent=2).replace("\n", "\n" + " " * depth)


def inspector() -> list[Piece]:
    pieces: list[Piece] = [("[\n", None)]
    for place, (number, answer) in enumerate(_paired()):
        m = TALK[number]
        kind = "request" if "id" in m.body else "notification"
        origin = "client" if m.dir == "c2s" else "server"
        pieces += [((",\n" if place else "") + f'  {{\n    "id": "e{number}",\n    "timestamp": "{m.iso}",\n    "direction": "{kind}",\n'
                    f'    "origin": "{origin}",\n    "message": ', None), (_indented(m.body, 4), number)]  # fmt: skip
        if answer is not None:
            took = round((TALK[answer].at - m.at) * 1000)
            pieces += [
                (',\n    "response": ', None),
                (_indented(TALK[answer].body, 4), answer),
                (f',\n    "duration": {took}', None),
            ]
        pieces.append(("\n  }", None))
    return [*pieces, ("\n]\n", None)]


def mcpjam() -> list[Piece]:
    pieces: list[Piece] = [("[\n", None)]
    for number in reversed(range(len(TALK))):
        m = TALK[number]
        head = {"timestamp": m.iso, "source": "mcp-server", "serverId": SERVER, "serverName": SERVER,
                "direction": "SEND" if m.dir == "c2s" else "RECEIVE", "method": m.body.get("method", "result")}  # fmt: skip
        text = json.dumps(head, indent=2).replace("\n", "\n  ")[:-4]
        pieces += [
            ("  " + text + ',\n    "payload": ', None),
            (_indented(m.body, 4), number),
            ("\n  }" + ("," if number else "") + "\n", None),
        ]
    return [*pieces, ("]\n", None)]


def cassette() -> list[Piece]:
    head = {
        "version": "1.0",
        "metadata": {"recorded_at": "2026-02-03T14:00:00+00:00", "server_url": "http://127.0.0.1:9/mcp"},
    }
    pieces: list[Piece] = [(json.dumps(head, indent=2)[:-2] + ',\n  "interactions": [\n', None)]
    rows = [pair for pair in _paired() if TALK[pair[0]].dir == "c2s"]
    for place, (number, answer) in enumerate(rows):
        kind = "jsonrpc_request" if answer is not None else "notification"
        pieces += [(f'    {{\n      "type": "{kind}",\n      "request": ', None), (_indented(TALK[number].body, 6), number),
                   (',\n      "response": ', None)]  # fmt: skip
        pieces.append(("null", None) if answer is None else (_indented(TALK[answer].body, 6), answer))
        tail = f',\n      "response_is_sse": false,\n      "response_status": {202 if answer is None else 200},\n      "latency_ms": 7\n    }}'
        pieces.append((tail + ("," if place < len(rows) - 1 else "") + "\n", None))
    return [*pieces, ("  ]\n}\n", None)]


def _exchanges() -> list[tuple[int, list[int]]]:
    """(request, messages of the response) by number."""
    found: dict[int, list[int]] = {}
    for number, m in enumerate(TALK):
        found.setdefault(m.exchange, []).append(number)
    return [(numbers[0], numbers[1:]) for numbers in found.values()]


def _quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


def _body(numbers: list[int]) -> list[Piece]:
    """A response body inside a JSON string: JSON for one message, an event stream for more."""
    if len(numbers) <= 1:
        return [(_quoted(TALK[n].text), n) for n in numbers]
    pieces: list[Piece] = []
    for n in numbers:
        pieces += [("event: message\\ndata: ", None), (_quoted(TALK[n].text), n), ("\\n\\n", None)]
    return pieces


def har() -> list[Piece]:
    pieces: list[Piece] = [
        ('{"log": {"version": "1.2", "creator": {"name": "tests", "version": "1"}, "entries": [\n', None)
    ]
    page = {"startedDateTime": TALK[0].iso, "time": 3, "request": {"method": "GET", "url": "http://localhost:8000/logo.png",
            "headers": []}, "response": {"status": 200, "headers": [{"name": "content-type", "value": "image/png"}],
            "content": {"size": 9, "mimeType": "image/png"}}, "timings": {"send": 0, "wait": 3, "receive": 0}}  # fmt: skip
    pieces.append((json.dumps(page) + ",\n", None))
    for place, (number, answers) in enumerate(_exchanges()):
        m = TALK[number]
        took = round((TALK[answers[-1]].at - m.at) * 1000) if answers else 5
        kind = "application/json" if len(answers) == 1 else "text/event-stream" if answers else ""
        sent = [{"name": "Content-Type", "value": "application/json"}, {"name": "Authorization", "value": "Bearer s3cret"},
                {"name": "MCP-Protocol-Version", "value": "2025-06-18"}]  # fmt: skip
        got = [{"name": "Content-Type", "value": kind}] if kind else []
        asked = f'{{"startedDateTime": "{m.iso}", "time": {took}, "connection": "41", "request": {{"method": "POST", "url": '
        asked += f'"http://localhost:8000/mcp", "headers": {json.dumps(sent)}, "postData": {{"mimeType": "application/json", "text": "'
        told = f'"}}}}, "response": {{"status": {200 if answers else 202}, "headers": {json.dumps(got)}, "content": '
        told += f'{{"mimeType": "{kind}", "text": "'
        pieces += [(asked, None), (_quoted(m.text), number), (told, None)]
        pieces += _body(answers)
        pieces.append(
            (
                '"}}, "timings": {"send": 0, "wait": '
                + str(took)
                + ', "receive": 0}}'
                + ("," if place < 4 else "")
                + "\n",
                None,
            )
        )
    return [*pieces, ("]}}\n", None)]


def inspector_network() -> list[Piece]:
    pieces: list[Piece] = [("[\n", None)]
    for place, (number, answers) in enumerate(_exchanges()):
        m = TALK[number]
        kind = "application/json" if len(answers) == 1 else "text/event-stream" if answers else ""
        took = round((TALK[answers[-1]].at - m.at) * 1000) if answers else 5
        pieces += [((",\n" if place else "") + f'{{"id":"r{place}","timestamp":"{m.iso}","method":"POST","url":"http://localhost:8000/mcp",'
                    '"requestHeaders":{"content-type":"application/json"},"requestBody":"', None), (_quoted(m.text), number),
                   (f'","responseStatus":{200 if answers else 202},"responseHeaders":{{"content-type":"{kind}"}},"responseBody":"', None)]  # fmt: skip
        pieces += [*_body(answers), (f'","duration":{took},"category":"transport"}}', None)]
    return [*pieces, ("\n]\n", None)]


def curl() -> list[Piece]:
    pieces: list[Piece] = []
    for number, answers in _exchanges():
        kind = "application/json" if len(answers) == 1 else "text/event-stream" if answers else ""
        pieces += [("$ curl -N -v http://localhost:8000/mcp \\\n    -H 'content-type: application/json' \\\n    -d '", None),
                   (TALK[number].text, number),
                   ("'\n* Trying 127.0.0.1:8000...\n> POST /mcp HTTP/1.1\n> Host: localhost:8000\n> content-type: application/json\n>\n"
                    + (f"< HTTP/1.1 200 OK\n< content-type: {kind}\n<\n" if answers else "< HTTP/1.1 202 Accepted\n<\n\n"), None)]  # fmt: skip
        for n in answers:
            pieces += [("event: message\ndata: ", None)] if len(answers) > 1 else []
            pieces += [(TALK[n].text, n), ("\n\n" if len(answers) > 1 else "\n", None)]
        pieces.append((f"* Connection #{number} to host localhost left intact\n", None))
    return pieces


def curl_i() -> list[Piece]:
    pieces: list[Piece] = []
    for number, answers in _exchanges()[:4]:
        pieces += [("$ curl -i -X POST http://localhost:8000/mcp -H 'Content-Type: application/json' --data '", None),
                   (TALK[number].text, number),
                   ("'\nHTTP/1.1 200 OK\nContent-Type: application/json\n\n" if answers else "'\nHTTP/1.1 202 Accepted\n\n", None)]  # fmt: skip
        for n in answers:
            pieces += [(TALK[n].text, n), ("\n", None)]
    return pieces


def http_plain() -> list[Piece]:
    pieces: list[Piece] = []
    for number, answers in _exchanges():
        kind = "application/json" if len(answers) == 1 else "text/event-stream"
        pieces += [("POST /mcp HTTP/1.1\nHost: localhost:8000\nContent-Type: application/json\n\n", None), (TALK[number].text, number),
                   (f"\n\nHTTP/1.1 200 OK\nContent-Type: {kind}\n\n" if answers else "\n\nHTTP/1.1 202 Accepted\n\n", None)]  # fmt: skip
        for n in answers:
            pieces += [("event: message\ndata: ", None)] if len(answers) > 1 else []
            pieces += [(TALK[n].text, n), ("\n\n", None)]
    return pieces


def event_stream() -> list[Piece]:
    pieces: list[Piece] = [(": keep-alive\n\nretry: 3000\n\n", None)]
    for n, m in enumerate(TALK):
        if m.dir == "s2c":
            pieces += [(f"id: {n}\nevent: message\ndata: ", None), (m.text, n), ("\n\n", None)]
    return pieces


def _repr(m: Message) -> str:
    name = (
        "JSONRPCNotification" if "id" not in m.body else "JSONRPCRequest" if "method" in m.body else "JSONRPCResponse"
    )
    body = dict(m.body)
    if "error" in body:
        name = "JSONRPCError"
    inner = ", ".join(
        f"{key}="
        + (
            f"ErrorData(code={value['code']}, message={value['message']!r}, data=None)"
            if key == "error"
            else repr(value)
        )
        for key, value in body.items()
    )
    return f"root={name}({inner})"


def python_sdk() -> list[Piece]:
    pieces: list[Piece] = []
    for n, m in enumerate(TALK):
        words = "Sending client message: " if m.dir == "c2s" else "SSE message: "
        pieces += [
            (f"{m.local.replace('.', ',')} - mcp.client.streamable_http - DEBUG - {words}", None),
            (_repr(m), n),
            ("\n", None),
        ]
    return pieces


@dataclass(frozen=True)
class Form:
    """A sample: the file, how it is made, its reader, and what it holds of the conversation besides the messages."""

    file: str
    make: Callable[[], list[Piece]]
    format: str
    times: bool
    transport: str | None
    directions: bool = True
    own: bool = True  # the message's own text, byte for byte

    @property
    def numbers(self) -> list[int]:
        """The messages in it."""
        return sorted(n for _, n in self.make() if n is not None)

    def data(self) -> bytes:
        """The file's bytes."""
        return "".join(text for text, _ in self.make()).encode()


FORMS = [
    Form("mcplab.jsonl", mcplab, "mcplab", True, "stdio"),
    Form("mcp-server-weather.log", claude_desktop, "claude-desktop", True, "stdio"),
    Form("claude-mcp.log", claude_desktop_mcp_log, "claude-desktop", True, "stdio"),
    Form("vscode.log", vscode, "vscode", True, "stdio"),
    Form("go-sdk.txt", go_sdk, "go-sdk", False, None),
    Form("lines.ndjson", lines, "jsonrpc", False, None),
    Form("array.json", array, "jsonrpc", False, None),
    Form("traffic.log", pretty, "text", True, None, own=False),
    Form("arrows.txt", arrows, "text", False, None),
    Form("framed.bin", framed, "lsp-framed", False, "stdio"),
    Form("mcpsnoop.jsonl", mcpsnoop, "mcpsnoop", True, "stdio"),
    Form("mcp-rec.jsonl", mcp_rec, "recorder-lines", True, "stdio"),
    Form("mcporter.ndjson", mcporter, "recorder-lines", True, None),
    Form("inspector-protocol.json", inspector, "inspector", True, None, own=False),
    Form("inspector-network.json", inspector_network, "inspector-network", False, "streamable-http"),
    Form("mcpjam.json", mcpjam, "mcpjam", True, None, own=False),
    Form("cassette.json", cassette, "mcp-recorder", False, "streamable-http", own=False),
    Form("session.har", har, "har", False, "streamable-http"),
    Form("curl-Nv.txt", curl, "curl", False, "streamable-http"),
    Form("curl-i.txt", curl_i, "curl", False, "streamable-http"),
    Form("http.txt", http_plain, "curl", False, "streamable-http"),
    Form("stream.txt", event_stream, "event-stream", False, None),
    Form("python-sdk.log", python_sdk, "python-sdk", True, "streamable-http", own=False),
]

if __name__ == "__main__":
    for form in FORMS:
        (HERE / form.file).write_bytes(form.data())
