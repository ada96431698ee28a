"""The recording proxy against no proxy and mitmproxy in reverse mode, in one run; exit 1 where a limit is missed.

Client, server and proxy are processes of their own. The server answers a POST with a small JSON-RPC result at once, so
that what is measured is what stands between. Rounds alternate, so that other work on the machine hits all alike.
Latency is that of the least disturbed round of each way (the lowest median); throughput is that of all rounds, which
have the same length. mitmproxy gets an environment of its own under ``build/`` the first time.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
MITM = ROOT / "build" / "mitmproxy-venv"
ADDED = 0.4  # ms at the median
TIMES = 8  # of mitmproxy's throughput
SEEN = 0.050  # seconds until an event of a stream is seen
ROUNDS, MESSAGES, SECONDS, CONNECTIONS = 12, 100, 2.0, 8

BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":'
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
)
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}],"isError":false}}'
RESPONSE = (
    b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\nserver: bench\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER
)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


# The server ----------------------------------------------------------------------------------------


class Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            if self.data.startswith(b"GET"):
                self.data = self.data[end + 4 :]
                self.task = asyncio.ensure_future(self.stream())
                continue
            if len(self.data) < end + 4 + len(BODY):
                return
            self.data = self.data[end + 4 + len(BODY) :]
            self.transport.write(RESPONSE)  # type: ignore[attr-defined]

    async def stream(self) -> None:
        write = self.transport.write  # type: ignore[attr-defined]
        write(STREAM)
        for number in range(30):
            await asyncio.sleep(1)
            event = (
                b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":'
                b'{"n":%d,"at":%.6f}}}\n\n' % (number, time.monotonic())
            )
            write(b"%x\r\n" % len(event) + event + b"\r\n")
        write(b"0\r\n\r\n")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", flush=True)
    await server.serve_forever()


# The client ----------------------------------------------------------------------------------------


class Client(asyncio.Protocol):
    """Posts one message after the other over one connection: so many, or until a time."""

    def __init__(self, url: str, count: float, end: float) -> None:
        self.left = count
        self.end = end
        self.times: list[float] = []
        self.done = asyncio.get_running_loop().create_future()
        self.request = (
            f"POST /mcp HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAccept: application/json, text/event-stream\r\n"
            "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: bench\r\n"
            "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
            f"Mcp-Name: echo\r\nContent-Length: {len(BODY)}\r\n\r\n"
        ).encode() + BODY

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""
        self.ask()

    def ask(self) -> None:
        self.start = time.perf_counter()
        self.transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.data += data
        if not self.data.endswith(ANSWER):
            return
        self.times.append(time.perf_counter() - self.start)
        self.data = b""
        self.left -= 1
        if self.left and time.perf_counter() < self.end:
            self.ask()
        else:
            self.left = 0
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.left:
            self.done.set_exception(exc or ConnectionError("the connection ended early"))
        else:
            self.done.set_result(self.times)


async def post(url: str, *, count: float = math.inf, seconds: float = math.inf, connections: int = 1) -> list[float]:
    """The time of each message, in seconds."""
    parts = urlsplit(url)
    end = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(
            lambda: Client(url, count, end), parts.hostname or "", parts.port or 80
        )
        clients.append(client)
    return [one for client in clients for one in await client.done]


async def listen(url: str) -> list[float]:
    """Seconds from each event's departure until it is here."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET /mcp HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: text/event-stream\r\n\r\n".encode())
    late: list[float] = []
    async for line in reader:
        if line.startswith(b"data:"):
            late.append(time.monotonic() - float(line.rpartition(b'"at":')[2].rstrip(b"}\r\n")))
        elif line == b"0\r\n":
            break
    writer.close()
    await writer.wait_closed()
    return late


# What is compared ----------------------------------------------------------------------------------


@contextlib.contextmanager
def process(words: list[str], **options: object) -> Iterator[tuple[str, int]]:
    """A process that prints its address in its first line: the address, and its number."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, **options) as child:  # type: ignore[call-overload]
        try:
            assert child.stdout is not None
            yield child.stdout.readline().decode().strip(), child.pid
        finally:
            child.terminate()


def mitmproxy() -> Path:
    """The program, installed on the first use."""
    program = MITM / "bin" / "mitmdump"
    if not program.exists():
        print("installing mitmproxy ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(MITM)], check=True)
        subprocess.run([str(MITM / "bin" / "pip"), "install", "-qq", "mitmproxy"], check=True)
    return program


@contextlib.contextmanager
def reverse(upstream: str, folder: Path) -> Iterator[tuple[str, int]]:
    """mitmproxy in reverse mode that saves its flows, as we save ours."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(mitmproxy()), "-q", "--mode", f"reverse:{upstream.removesuffix('/mcp')}"]
    words += ["--listen-host", "127.0.0.1", "-p", str(port), "-w", str(folder / "flows")]
    words += ["--set", f"confdir={folder}", "--set", "stream_large_bodies=1m"]
    child = subprocess.Popen(words)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                asyncio.run(post(f"http://127.0.0.1:{port}/mcp", count=1))
                break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/mcp", child.pid
    finally:
        child.terminate()
        child.wait()


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    me = [sys.executable, __file__, "--server"]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(process(me))
        words = [sys.executable, "-m", "mcplab", "proxy", "--upstream", upstream, "-o", str(folder / "trace.jsonl")]
        ways = {
            "no proxy": (upstream, 0),
            "mcplab proxy": stack.enter_context(process(words)),
            "mitmproxy": stack.enter_context(reverse(upstream, folder)),
        }
        latency: dict[str, list[float]] = {way: [] for way in ways}  # the median of each round
        passed = dict.fromkeys(ways, 0)
        spent = dict.fromkeys(ways, 0.0)
        for url, _ in ways.values():
            asyncio.run(post(url, count=50))  # warm
        for _ in range(ROUNDS):
            for way, (url, _) in ways.items():
                latency[way].append(statistics.median(asyncio.run(post(url, count=MESSAGES))))
            for way, (url, pid) in ways.items():
                before = cpu(pid) if pid else 0.0
                passed[way] += len(asyncio.run(post(url, seconds=SECONDS, connections=CONNECTIONS)))
                spent[way] += (cpu(pid) if pid else 0.0) - before
        late = {way: asyncio.run(listen(url)) for way, (url, _) in ways.items() if way != "mitmproxy"}
    base = min(latency["no proxy"])
    titles = ("ms, best", "added", "ms, all", "messages/s", "CPU ms each", "SSE worst ms")
    print(f"{'way':<14}" + "".join(f"{title:>14}" for title in titles))
    for way in ways:
        best = min(latency[way])
        numbers = (best * 1000, (best - base) * 1000, statistics.median(latency[way]) * 1000)
        each = spent[way] / passed[way] * 1000
        worst = f"{max(late[way]) * 1000:.1f}" if way in late else "-"
        print(
            f"{way:<14}"
            + "".join(f"{number:>14.3f}" for number in numbers)
            + f"{passed[way] / ROUNDS / SECONDS:>14.0f}{each:>14.3f}{worst:>14}"
        )
    added = (min(latency["mcplab proxy"]) - base) * 1000
    times = passed["mcplab proxy"] / passed["mitmproxy"]
    seen = late["mcplab proxy"]
    checks = {
        f"added at the median: {added:.3f} ms (limit {ADDED})": added <= ADDED,
        f"throughput of mitmproxy's: {times:.1f} times (limit {TIMES})": times >= TIMES,
        f"{len(seen)} events of a stream, the last of them to be seen after {max(seen) * 1000:.1f} ms "
        f"(limit {SEEN * 1000:.0f})": len(seen) == 30 and max(seen) <= SEEN,
    }
    for text, fine in checks.items():
        print(f"{'kept  ' if fine else 'MISSED'} {text}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    if "--server" in sys.argv:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve())
    else:
        sys.exit(main())
