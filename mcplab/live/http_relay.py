"""A relay of HTTP/1.1 connections: the bytes go on as they came, a copy is told to a recorder before.

A connection of a client gets one to the server behind, so everything that belongs to a connection (its order, its end,
what is pipelined) stays as it is. Of the bytes only the value of each ``Host`` header changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from mcplab.live.admission import Admission
from mcplab.live.capture import Recording, raw
from mcplab.live.exchanges import Exchange, response_facts
from mcplab.live.framing import Framing, FramingError, Head
from mcplab.live.recording import why

HEAD_TIME: Final = 30.0
"""Seconds in which a request's head must be there."""
CONNECT_TIME: Final = 10.0
LINGER: Final = 2.0
"""Seconds that a side gets to take what is still due to it, once the other one has gone."""
MOST: Final = 400
"""Connections of clients at once: two descriptors each, where many systems give a process 1,024."""

_HOST = re.compile(rb"(\r\n[Hh][Oo][Ss][Tt]:[ \t]*)[^\r\n]*")
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Upstream:
    """The server behind. ``authority`` is what its ``Host`` header says."""

    host: str
    port: int
    authority: str
    tls: ssl.SSLContext | None = None


@dataclass
class Hub:
    """What all connections of a relay share."""

    recorder: Recording
    upstream: Upstream
    admission: Admission
    warn: Callable[[str], None]
    clients: set[ClientSide] = field(default_factory=set)
    open: set[asyncio.Protocol] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    _told: set[str] = field(default_factory=set)

    def note(self, text: str) -> None:
        """Warn, once of each thing."""
        if text not in self._told:
            self._told.add(text)
            self.warn(text)

    def left(self, side: asyncio.Protocol) -> None:
        self.open.discard(side)
        if not self.open:
            self.empty.set()

    async def stop(self, reason: str) -> None:
        """End every connection; returns when none is left."""
        for client in list(self.clients):
            client.end(None, reason, at_once=True)
        self.empty.clear()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.open:
            await self.empty.wait()


class ClientSide(asyncio.Protocol):
    """A client's connection: requests in, responses out."""

    transport: asyncio.Transport

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.add: Callable[..., Any]
        self.pending: deque[Exchange] = deque()  # requests whose response is not over, in order
        self.over = False
        self.half_closed = False
        self._framing = Framing("request")
        self._current: Exchange | None = None
        self._server: ServerSide | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # what waits for the connection to the server
        self._down = ""  # why there is none
        self._refusal: tuple[Exchange | None, int, str] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # asyncio's side --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.hub.open.add(self)
        self.hub.clients.add(self)
        self.add = partial(self.hub.recorder.add, conn=self.hub.recorder.conn())
        self.add("open")
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(HEAD_TIME, self._late)
        if len(self.hub.clients) > MOST:
            self.end(None, f"more than {MOST} connections at once", at_once=True)

    def data_received(self, data: bytes) -> None:
        if self.over or self._refusal is not None:
            return
        out: list[bytes] = []
        try:
            for kind, wire, body in self._framing.feed(data):
                if kind == "head":
                    wire = self._head()
                    if self._refusal is not None:
                        break
                elif kind == "body":
                    assert self._current is not None
                    self._current.request_body(body)
                elif kind == "end":
                    self._asked()
                out.append(wire)
        except FramingError as error:
            self._broken(error)
        self._time()
        if out and not self.over:
            self._send(b"".join(out))
        if self._refusal is not None:
            self._refuse()

    def eof_received(self) -> bool:
        if self.over or self._refusal is not None:
            return False
        asking = self._current is not None and not self._current.request_over
        server = self._server.transport if self._server is not None else None
        if asking or not self.pending or server is None or not server.can_write_eof():
            self.end("client", "connection closed")
            return False
        self.half_closed = True  # it may still read: the server decides, as it does without a relay
        server.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.end("client", "connection closed" if exc is None else why(exc))
        self.hub.left(self)

    def pause_writing(self) -> None:
        if self._server is not None and self._server.transport is not None:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._server is not None and self._server.transport is not None:
            self._server.transport.resume_reading()

    # Requests --------------------------------------------------------------------------------------

    def _head(self) -> bytes:
        """A request begins: let in or refused. Its head as it goes on."""
        head = self._framing.head
        assert head is not None
        name, encoded = self.hub.recorder.exchange(), self.hub.recorder.keeps_secrets
        exchange = self._current = Exchange(self.add, name, head, self.hub.note, encoded)
        self.pending.append(exchange)
        refusal = self.hub.admission.refusal(head)
        if refusal is not None:
            self._refusal = (exchange, refusal.status, refusal.text)
        elif self._down and head.get("expect") is not None:  # the client waits for leave to send the rest
            self._refusal = (exchange, 502, self._down)
        return _HOST.sub(lambda found: found[1] + self.hub.upstream.authority.encode(), head.wire, count=1)

    def _asked(self) -> None:
        """A request is complete."""
        assert self._current is not None
        self._current.request_end()
        if self._down:
            self._refusal = (self._current, 502, self._down)

    def _broken(self, error: FramingError) -> None:
        """What came is no request (or its body no body), so nobody can tell where the next one begins."""
        current = self._current if self._current is not None and not self._current.request_over else None
        if current is None and self._framing.held:
            self.add("unparsed", dir="c2s", **raw(self._framing.held[:65536]))
        self._refusal = (current, error.status, str(error))

    def _time(self) -> None:
        waiting = self._framing.mode == "head" and bool(self._framing.held)
        if self._timer is not None and not waiting:
            self._timer.cancel()
            self._timer = None
        elif self._timer is None and waiting:
            self._timer = self._loop.call_later(HEAD_TIME, self._late)

    def _late(self) -> None:
        self._timer = None
        if self._framing.held:
            self._broken(FramingError(408, f"the head of the request was not there within {HEAD_TIME:.0f} s"))
            self._refuse()
        else:
            self.end(None, f"no request within {HEAD_TIME:.0f} s")

    def _send(self, data: bytes) -> None:
        if self._down:
            return
        if self._server is None:
            self._server = ServerSide(self)
            self.transport.pause_reading()
            self._connecting = self._loop.create_task(self._connect(self._server))
            self.hub.tasks.add(self._connecting)
            self._connecting.add_done_callback(self.hub.tasks.discard)
        if self._server.transport is None:
            self._early.append(data)
        else:
            self._server.transport.write(data)

    async def _connect(self, server: ServerSide) -> None:
        to = self.hub.upstream
        try:
            async with asyncio.timeout(CONNECT_TIME):
                await self._loop.create_connection(
                    lambda: server, to.host, to.port, ssl=to.tls, server_hostname=to.host if to.tls else None
                )
        except (OSError, TimeoutError) as error:
            cure = "; --cafile FILE trusts a certificate of one's own" * isinstance(error, ssl.SSLCertVerificationError)
            self._unreachable(f"{why(error)}{cure}" if str(error) else "no connection in time")
            return
        assert server.transport is not None
        if self.over:
            server.transport.abort()
            return
        self.transport.resume_reading()
        server.transport.write(b"".join(self._early))
        self._early.clear()

    def _unreachable(self, reason: str) -> None:
        """No connection to the server: the request is heard to its end, then answered here."""
        self._down = f"mcplab proxy: no connection to {self.hub.upstream.authority}: {reason}"
        self.hub.note(self._down.removeprefix("mcplab proxy: "))
        self._server = None
        self._early.clear()
        if self.over:
            return
        self.transport.resume_reading()
        first = self.pending[0]
        if self._refusal is None and (first.request_over or first.head.get("expect") is not None):
            self._refusal = (first, 502, self._down)
        if self._refusal is not None:
            self._refuse()

    # Responses of the relay's own ---------------------------------------------------------------------

    def answered(self) -> None:
        """The response to the oldest request is over."""
        self.pending.popleft()
        if self._refusal is not None:
            self._loop.call_soon(self._refuse)  # after the last bytes of that response

    def switching(self) -> None:
        """The server has changed to another protocol."""
        self._refusal = (self.pending[0] if self.pending else None, 502, "only HTTP/1.1 is relayed; the server left it")
        self._refuse()

    def _refuse(self) -> None:
        """Answer here, when it is the refused request's turn; the connection ends with that."""
        assert self._refusal is not None
        exchange, status, text = self._refusal
        if self.over or (self.pending and self.pending[0] is not exchange):
            return
        if exchange is not None and exchange.status is not None:  # the server has answered it, or is doing so
            if exchange.over:
                self.end(None, text)
            return
        body = f"{text}\n".encode()
        wire = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        head = Head(wire, request=False)
        reason = f"answered by the proxy: {text}"
        if exchange is not None:
            exchange.refused(head, body, reason)
            self.pending.popleft()
        else:
            self.add("http", dir="s2c", http=response_facts(None, head), **raw(body))
        self.transport.write(wire if exchange is not None and exchange.head.method == "HEAD" else wire + body)
        self.end(None, reason)

    # The end -----------------------------------------------------------------------------------------

    def end(self, by: str | None, reason: str, *, at_once: bool = False, reset: bool = False) -> None:
        """Write down how it ended, and let go of both sides; what is due to them still goes out.

        ``reset``: the server broke off, so the client gets a broken connection and not an orderly end.
        """
        if self.over:
            return
        self.over = True
        if self.half_closed:
            by, reason = "client", "connection closed"
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._current is not None and not self._current.request_over:
            self._current.request_end(cut=True)
        elif self._framing.held and self._refusal is None:
            self.add("unparsed", dir="c2s", **raw(self._framing.held))
        if self._server is not None:
            self._server.rest()
        marks: dict[str, Any] = {} if by is None else {"by": by}
        if by == "server" and self.pending:
            marks["unexpected"] = True
        while self.pending:
            self.pending.popleft().cut(reason, by=by)
        self.add("close", reason=reason, **marks)
        self.hub.clients.discard(self)
        sides = [self.transport]
        if self._server is not None and self._server.transport is not None:
            self._server.transport.close()
            sides.append(self._server.transport)
        for side in sides:
            if at_once:
                side.abort()
            else:
                self._loop.call_later(LINGER, side.abort)
        if at_once:
            return
        if reset:
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if self._refusal is not None and self.transport.can_write_eof():
            self.transport.write_eof()  # it may still be sending: closed at once, it would not get to read the answer
        else:
            self.transport.close()


class ServerSide(asyncio.Protocol):
    """The connection to the server that belongs to a client's."""

    def __init__(self, client: ClientSide) -> None:
        self.transport: asyncio.Transport | None = None
        self._client = client
        self._framing = Framing("response", self._bodiless)
        self._exchange: Exchange | None = None
        self._lost = False  # it speaks no HTTP: nothing can be told apart any more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._client.hub.open.add(self)

    def data_received(self, data: bytes) -> None:
        client = self._client
        if not client.over and self._copied(data):
            client.transport.write(data)
            if client.half_closed and not client.pending:
                client.end("client", "connection closed")

    def eof_received(self) -> None:
        if self._framing.until_close and self._exchange is not None:
            self._exchange.end()
            self._client.answered()
        self._client.end("server", "connection closed")

    def connection_lost(self, exc: Exception | None) -> None:
        reason = "connection closed" if exc is None else why(exc)
        self._client.end("server", reason, reset=exc is not None)
        self._client.hub.left(self)

    def pause_writing(self) -> None:
        self._client.transport.pause_reading()

    def resume_writing(self) -> None:
        self._client.transport.resume_reading()

    def _bodiless(self) -> bool:
        pending = self._client.pending
        return bool(pending) and pending[0].head.method == "HEAD"

    def _copied(self, data: bytes) -> bool:
        """Tell the recorder. May the bytes go on?"""
        client, framing = self._client, self._framing
        if self._lost:
            client.add("unparsed", dir="s2c", **raw(data))
            return True
        try:
            for kind, _, body in framing.feed(data):
                head = framing.head
                assert head is not None
                if head.interim:
                    continue
                if kind == "head":
                    if head.status == 101:
                        client.switching()
                        return False
                    self._exchange = client.pending[0] if client.pending else None
                    if self._exchange is not None:
                        self._exchange.answered(head)
                    else:  # nobody asked
                        client.add("http", dir="s2c", http=response_facts(None, head))
                elif kind == "body" and self._exchange is not None:
                    self._exchange.body(body, open_ended=framing.until_close)
                elif kind == "body":
                    client.add("unparsed", dir="s2c", **raw(body))
                elif kind == "end" and self._exchange is not None:
                    self._exchange.end()
                    self._exchange = None
                    client.answered()
        except FramingError as error:
            self._lost = True
            client.hub.note(f"the server's answer is {error}: relayed, and recorded as it is")
            client.add("unparsed", dir="s2c", **raw(framing.held))
        return True

    def rest(self) -> None:
        """What the end of the connection cut off in the middle of a head."""
        if self._framing.mode == "head" and self._framing.held and not self._lost:
            self._client.add("unparsed", dir="s2c", **raw(self._framing.held))
