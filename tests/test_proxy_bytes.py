"""Random streams through the proxy: every byte but Host as it was, and each message once in the trace.

The suite sends some hundreds; ``python tests/test_proxy_bytes.py 10000 SEED`` as many as one likes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
import tempfile
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UNSET

from mcplab.live.proxy import Proxy
from mcplab.traces import read_trace

WORDS = ["", "a", "ü", "\u2028", "\U0001f600", "x" * 300, "null", '"', "\\", "\t", "data: x", "id", "\x7f"]
HEADERS = ["X-a", "ACCEPT", "x-Long-Name-1", "Mcp-Session-Id", "cookie", "X~!", "Content-Language"]


@dataclass
class Case:
    """One connection: what the client writes, what the server must read, and the answers it writes."""

    number: int
    exchanges: list[tuple[bytes, bytes]] = field(default_factory=list)  # request, response
    sent: list[str] = field(default_factory=list)  # messages in requests
    came: list[str] = field(default_factory=list)  # messages in responses
    pipelined: bool = False
    closing: bool = False  # the last response ends with the connection
    got: bytes = b""  # what the server read
    back: bytes = b""  # what the client read


def value(r: random.Random, depth: int = 0) -> str:
    kinds = ["n", "s", "w", "big"] + (["o", "a"] if depth < 4 else [])
    kind = r.choice(kinds)
    space = r.choice(["", "", " ", "\n", " \r\n\t"])
    if kind == "n":
        return r.choice(["1.50", "-0", "1e400", "0.1", "17", "-3E-7"])
    if kind == "big":
        return str(r.randrange(10**30))
    if kind == "w":
        return r.choice(["true", "false", "null", r'"\ud800 alone"'])
    if kind == "s":
        word = r.choice(WORDS) + r.choice(WORDS)
        return json.dumps(word, ensure_ascii=r.random() < 0.5)
    inner = [value(r, depth + 1) for _ in range(r.randrange(4))]
    if kind == "a":
        return "[" + space + ("," + space).join(inner) + "]"
    members = [f"{json.dumps(r.choice(WORDS), ensure_ascii=True)}{space}:{space}{one}" for one in inner]
    return "{" + space + ("," + space).join(members) + "}"


def message(r: random.Random, *, batch: bool = True) -> str:
    ident = r.choice(["1", '"1"', "null", str(r.randrange(10**25)), "1.0"])
    one = r.choice(
        [
            f'{{"jsonrpc":"2.0","id":{ident},"method":"m","params":{value(r)}}}',
            f'{{ "id" : {ident} , "result" : {value(r)} , "jsonrpc" : "2.0" }}',
            f'{{"jsonrpc":"2.0","id":{ident},"error":{{"code":-1,"message":"x","data":{value(r)}}}}}',
            f'{{"jsonrpc":"2.0","method":"a","method":"b","\\u006darams":{value(r)}}}',
        ]
    )
    if batch and r.random() < 0.1:
        one = f"[{one},\n{message(r, batch=False)}]" if r.random() < 0.5 else f"[{one}]"
    return one


def junk(r: random.Random) -> bytes:
    return r.choice([r.randbytes(r.randrange(1, 3000)), b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"\x00", b"{", b"[]"])


def headers(r: random.Random) -> bytes:
    lines = []
    for _ in range(r.randrange(4)):
        text = bytes(r.choice(range(0x21, 0x7F)) for _ in range(r.randrange(1, 20))) + r.choice(
            [b"", b"\xff", b" \t y"]
        )
        lines.append(r.choice(HEADERS).encode() + b":" + r.choice([b"", b" ", b" \t"]) + text + b"\r\n")
    return b"".join(lines)


def chunked(r: random.Random, body: bytes) -> bytes:
    out = b""
    while body:
        size = r.randrange(1, len(body) + 1)
        form = r.choice(["%x", "%X", "00%x"])
        extension = r.choice(["", "", ";a=1", ';b="x"'])
        out += (form % size + extension).encode() + b"\r\n" + body[:size] + b"\r\n"
        body = body[size:]
    return out + b"0\r\n" + r.choice([b"", b"", b"X-Trailer: 1\r\n"]) + b"\r\n"


def framed(r: random.Random, body: bytes, *, empty: bool = True) -> bytes:
    """The framing headers, the end of the head, and the body."""
    if not body and empty and r.random() < 0.5:
        return b"\r\n"
    if r.random() < 0.5:
        return b"Content-Length: %d\r\n\r\n" % len(body) + body
    return b"Transfer-Encoding: chunked\r\n\r\n" + chunked(r, body)


def events(r: random.Random, came: list[str]) -> bytes:
    """An event stream; the messages in it are noted."""
    out = b"\xef\xbb\xbf" if r.random() < 0.1 else b""
    for _ in range(r.randrange(6)):
        end = r.choice([b"\n", b"\r\n", b"\r"])
        kind = r.random()
        lines: list[bytes] = []
        if r.random() < 0.3:
            lines.append(b"id: %d" % r.randrange(100))
        if kind < 0.6:
            text = message(r)
            parts = re.split(r"\r\n|\r|\n", text)  # a stream cannot hold them within a line
            lines += [b"data:" + r.choice([b"", b" "]) + part.encode() for part in parts]
            if r.random() < 0.3:
                lines.insert(0, b"event: message")
            # what a reader of the stream gets: one space after the colon goes, lines are joined by line feeds
            came.append(
                "\n".join(
                    line.partition(b":")[2].removeprefix(b" ").decode() for line in lines if line[:4] == b"data"
                ).strip(" \t\n")
            )
        elif kind < 0.7:
            lines.append(b": keep-alive " + r.choice([b"", b"\xff"]))
        elif kind < 0.8:
            lines += [b"retry: 1" + b"0" * r.randrange(40), b"data: "]
        elif kind < 0.9:
            lines += [b"event: other", b"data: " + message(r).replace("\n", "").replace("\r", "").encode()]
        else:
            lines.append(b"data: no json \xfe")
        out += end.join(lines) + end + end
    return out


def request(r: random.Random, case: Case) -> tuple[str, bytes]:
    method = r.choice(["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT"])
    host = r.choice(["Host: 127.0.0.1:1", "host:localhost", "HOST: \t[::1]:99"])
    target = r.choice(["/mcp", "/", "/mcp?x=%20&y", "/a/../b;c"])
    head = f"{method} {target} HTTP/1.1\r\n".encode() + headers(r)
    head += host.encode() + b"\r\nMcp-Case: %d\r\n" % case.number + headers(r)
    body = b""
    if method in ("POST", "PUT"):
        if r.random() < 0.8:
            text = r.choice(["", " ", "\r\n"]) + message(r) + r.choice(["", "\n"])
            body = text.encode()
            case.sent.append(text.strip(" \t\r\n"))
            head += b"Content-Type: application/json\r\n"
        elif r.random() < 0.7:
            body = junk(r)
    return method, head + framed(r, body)


def response(r: random.Random, method: str, case: Case, last: bool) -> bytes:
    start = r.choice([b"", b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"])
    status = r.choice([200, 200, 200, 400, 404, 500, 202, 204, 304])
    head = start + f"HTTP/1.1 {status} {r.choice(['OK', '', 'What Ever'])}\r\n".encode() + headers(r)
    if status in (204, 304) or method == "HEAD":
        return head + r.choice([b"\r\n", b"Content-Length: 7\r\n\r\n"] if status != 204 else [b"\r\n"])
    kind = r.random()
    came: list[str] = []
    if kind < 0.4:
        text = message(r)
        body = text.encode()
        came.append(text)
        head += b"content-type: application/json; charset=utf-8\r\n"
    elif kind < 0.8:
        body = events(r, came)
        head += b"Content-Type: text/event-stream\r\n"
    else:
        body = r.choice([b"", junk(r), b"<html>", b'{"error":"invalid_token"}'])
    if r.random() < 0.2:
        head += b"Content-Encoding: gzip\r\n" if r.random() < 0.5 else b"Content-Encoding: deflate\r\n"
        body = gzip.compress(body) if b"gzip\r\n" in head[-30:] else zlib.compress(body)
    case.came += came
    if last and r.random() < 0.3:
        case.closing = True
        return head + b"\r\n" + body
    return head + framed(r, body, empty=False)


def make(number: int, seed: int) -> Case:
    r = random.Random(f"{seed}/{number}")
    case = Case(number, pipelined=r.random() < 0.3)
    count = r.randrange(1, 5)
    for n in range(count):
        method, asked = request(r, case)
        case.exchanges.append((asked, response(r, method, case, n == count - 1)))
    return case


async def trickle(r: random.Random, writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write in pieces of any size."""
    while data:
        size = r.choice([1, 2, 7, 50, len(data), len(data)])
        writer.write(data[:size])
        await writer.drain()
        data = data[size:]
        if r.random() < 0.3:
            await asyncio.sleep(0)


def changed(asked: bytes, authority: bytes) -> bytes:
    """The request as it must arrive."""
    return re.sub(rb"(?i)(\r\nhost:[ \t]*)[^\r\n]*", lambda found: found[1] + authority, asked, count=1)


async def pass_through(cases: list[Case], path: Path, seed: int, at_once: int = 8) -> None:
    """All cases through one proxy, some at the same time."""
    by_number = {case.number: case for case in cases}
    authority = b""

    served: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        first = await reader.readuntil(b"\r\n\r\n")
        case = by_number[int(re.search(rb"\r\nMcp-Case: (\d+)\r\n", first)[1])]  # type: ignore[index]
        r = random.Random(f"{seed}/{case.number}/server")
        case.got = first
        for n, (_, answer) in enumerate(case.exchanges):
            due = len(b"".join(changed(a, authority) for a, _ in case.exchanges[: n + 1])) - len(case.got)
            case.got += await reader.readexactly(due)
            await trickle(r, writer, answer)
        if not case.closing:
            case.got += await reader.read()
        writer.close()
        await writer.wait_closed()

    async def ask(case: Case, port: int) -> None:
        r = random.Random(f"{seed}/{case.number}/client")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if case.pipelined:
            await trickle(r, writer, b"".join(asked for asked, _ in case.exchanges))
        for asked, answer in case.exchanges:
            if not case.pipelined:
                await trickle(r, writer, asked)
            case.back += await reader.readexactly(len(answer))
        if case.closing:
            case.back += await reader.read()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    authority = f"127.0.0.1:{port}".encode()
    warnings: list[str] = []
    async with server, Proxy(f"http://127.0.0.1:{port}/mcp", path, warn=warnings.append, keep_secrets=True) as proxy:
        ours = int(proxy.url.rpartition(":")[2].partition("/")[0])
        for start in range(0, len(cases), at_once):
            async with asyncio.timeout(60):
                await asyncio.gather(*(ask(case, ours) for case in cases[start : start + at_once]))
    await asyncio.gather(*(task for task in served if task is not None))
    assert not warnings
    for case in cases:
        assert case.got == b"".join(changed(asked, authority) for asked, _ in case.exchanges), case.number
        assert case.back == b"".join(answer for _, answer in case.exchanges), case.number


def flat(texts: list[str]) -> list[str]:
    return [text.strip(" \t\r\n").replace("\r", " ").replace("\n", " ") for text in texts]


def compare_trace(cases: list[Case], path: Path) -> int:
    """Each message once, in order, with its text. The number of messages."""
    trace = read_trace(path)
    assert not len(trace.unparsed[trace.unparsed["where"] == "file"])
    owner: dict[str, int] = {}
    sent, came = defaultdict(list), defaultdict(list)
    seen = 0
    for event in trace.record.events:
        if event.http is UNSET or event.http.exchange is UNSET:
            continue
        name = event.http.exchange
        if event.http.headers is not UNSET and "mcp-case" in event.http.headers:
            owner[name] = int(event.http.headers["mcp-case"])
        if event.kind == "message":
            (sent if event.dir == "c2s" else came)[owner[name]].append(event.text)
            seen += 1
    for case in cases:
        assert sent[case.number] == flat(case.sent), case.number
        assert came[case.number] == flat(case.came), case.number
    return seen


def run(count: int, seed: int, path: Path, first: int = 0) -> int:
    cases = [make(number, seed) for number in range(first, first + count)]
    asyncio.run(pass_through(cases, path, seed))
    return compare_trace(cases, path)


def test_random_streams(tmp_path):
    assert run(300, 1, tmp_path / "t.jsonl") > 300


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        total, seed = int(sys.argv[1]), int(sys.argv[2])
        for start in range(0, total, 500):
            found = run(min(500, total - start), seed, Path(folder, f"{start}.jsonl"), start)
            print(f"{start + 500} streams, {found} messages", flush=True)  # noqa: T201
