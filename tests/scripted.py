"""A server that writes given bytes, a client that writes given bytes, and the proxy between them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UNSET

from mcplab.live.proxy import Proxy
from mcplab.model import Event
from mcplab.traces import Trace

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(PONG) + PONG
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def ask(method: str = "POST", target: str = "/mcp", body: bytes = PING, **more: str) -> bytes:
    headers = {"Host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in more.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\n{lines}{length}\r\n".encode() + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


@dataclass
class Scripted:
    """A server of bytes: ``script`` gets each accepted socket, in a thread."""

    script: Callable[[socket.socket], None]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    failures: list[BaseException] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"

    def __enter__(self) -> Scripted:
        self._start(self._accept)
        return self

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(20)
            self._start(self._one, connection)

    def _one(self, connection: socket.socket) -> None:
        with connection:
            try:
                self.script(connection)
            except BaseException as error:
                self.failures.append(error)

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(20)
        assert not self.failures


@contextmanager
def proxied(script: Callable[[socket.socket], None], path: Path, **options: Any) -> Iterator[tuple[Proxy, list[str]]]:
    warnings: list[str] = []
    with Scripted(script) as server, Proxy(server.url, path, warn=warnings.append, **options) as proxy:
        yield proxy, warnings


def dial(proxy: Proxy) -> socket.socket:
    host, port = proxy.url.split("/")[2].rsplit(":", 1)
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(20)
    return connection


def until(connection: socket.socket, end: bytes) -> bytes:
    """What comes until ``end`` is there, and no byte more."""
    data = b""
    while not data.endswith(end):
        more = connection.recv(1)
        assert more, data
        data += more
    return data


def rest(connection: socket.socket) -> bytes:
    data = b""
    while more := connection.recv(65536):
        data += more
    return data


def answer(connection: socket.socket) -> None:
    """One request, one answer."""
    until(connection, PING)
    connection.sendall(OK)


def told(trace: Trace) -> list[str]:
    """The events in a word each: kind, direction or side, status."""
    found = []
    for event in trace.record.events:
        status = event.http.status if event.http is not UNSET and event.http.status is not UNSET else None
        side = event.dir if event.dir is not UNSET else event.by if event.by is not UNSET else None
        stream = "stream" if event.kind == "close" and event.http is not UNSET else None
        found.append(" ".join(str(word) for word in (event.kind, side, status, stream) if word is not None))
    return found


def last(trace: Trace, kind: str = "close") -> Event:
    return [event for event in trace.record.events if event.kind == kind][-1]


def on_disk(path: Path, text: bytes) -> bool:
    return text in path.read_bytes()
