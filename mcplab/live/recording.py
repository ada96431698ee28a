"""An httpx2 transport that records: what it sends and receives is in the trace, whoever the client above it is.

It stands below every client, so it sees what the wire carries: an answer's own id, a body that is no JSON-RPC, a stream
that was cut off. Give it to ``httpx2.AsyncClient(transport=...)``, also to one that the official SDK uses; ask for
``accept-encoding: identity`` there, for bodies are read as they come.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from mcplab.live.capture import Recording, kept, raw
from mcplab.live.exchanges import speaks
from mcplab.live.sse import SseEvent, SseParser
from mcplab.model import Http
from mcplab.redaction import MASKS


class Listener(Protocol):
    """Told of an exchange as it goes: put one into ``request.extensions["mcplab"]``."""

    def responded(self, response: httpx2.Response) -> None: ...
    def body(self, text: bytes) -> None: ...
    def event(self, event: SseEvent) -> None: ...


@dataclass
class _Slot:
    """One TCP connection at a time, so that every exchange can name the one it went over."""

    inner: httpx2.AsyncHTTPTransport
    busy: bool = False
    conn: str = ""


@dataclass
class _Exchange:
    slot: _Slot
    request: httpx2.Request
    content: bytes
    name: str = ""
    listener: Listener | None = None
    connected: list[str] = field(default_factory=list)


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Records into ``capture`` what passes. ``make`` builds the transport below (for TLS options and proxies)."""

    def __init__(self, capture: Recording, make: Callable[[], httpx2.AsyncHTTPTransport] | None = None) -> None:
        self._capture = capture
        self._make = make or httpx2.AsyncHTTPTransport
        self._slots: list[_Slot] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        slot = next((one for one in self._slots if not one.busy), None)
        if slot is None:
            slot = _Slot(self._make())
            self._slots.append(slot)
        slot.busy = True
        content = await request.aread()
        exchange = _Exchange(slot, request, content, listener=request.extensions.get("mcplab"))

        async def trace(name: str, info: dict[str, Any]) -> None:
            if name == "connection.connect_tcp.complete":
                self._connected(slot)
            elif name == "http11.send_request_headers.started":
                self._sent(exchange)

        request.extensions = {**request.extensions, "trace": trace}
        try:
            response = await slot.inner.handle_async_request(request)
        except BaseException as error:
            self._broken(exchange, error)
            await slot.inner.aclose()
            slot.busy = False
            raise
        if exchange.listener is not None:
            exchange.listener.responded(response)
        stream = _Body(self._capture, exchange, response)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    def _connected(self, slot: _Slot) -> None:
        if slot.conn:
            self._capture.add("close", slot.conn, by="server", reason="closed between two requests")
        slot.conn = self._capture.conn()
        self._capture.add("open", slot.conn)

    def _sent(self, exchange: _Exchange) -> None:
        request = exchange.request
        exchange.name = self._capture.exchange()
        content = exchange.content
        facts: dict[str, Any] = {
            "method": request.method,
            "path": MASKS.address(request.url.raw_path.decode("ascii", "replace")),
            "headers": kept(request.headers.multi_items()),
            "exchange": exchange.name,
        }
        if content:
            self._capture.text(exchange.slot.conn, "c2s", content, http=Http(**facts))
        else:
            self._capture.add("http", exchange.slot.conn, dir="c2s", http=Http(**facts, body=False))

    def _broken(self, exchange: _Exchange, error: BaseException) -> None:
        slot = exchange.slot
        if isinstance(error, Exception):
            by, reason, unexpected = "server", why(error), True
        else:  # we were cancelled: nobody waits any longer
            by, reason, unexpected = "client", "gave up waiting", False
        if not slot.conn:
            if isinstance(error, Exception):
                self._capture.add("close", self._capture.conn(), reason=f"not connected: {reason}", unexpected=True)
            return
        marks = {"unexpected": True} if unexpected else {}
        self._capture.add("close", slot.conn, by=by, reason=reason, **marks)
        slot.conn = ""

    async def aclose(self) -> None:
        for slot in self._slots:
            await slot.inner.aclose()
            if slot.conn:
                self._capture.add("close", slot.conn, by="client")
                slot.conn = ""
        self._slots.clear()


class _Body(httpx2.AsyncByteStream):
    """A response's body: passed on as it is, recorded piece by piece."""

    def __init__(self, capture: Recording, exchange: _Exchange, response: httpx2.Response) -> None:
        self._capture = capture
        self._exchange = exchange
        self._response = response
        self._facts: dict[str, Any] = {
            "status": response.status_code,
            "headers": kept(response.headers.multi_items()),
            "exchange": exchange.name,
        }
        essence = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._parser = SseParser() if essence == "text/event-stream" else None
        self._held = bytearray()
        self._over = self._lost = False
        if self._parser is not None:
            self._add("http", http=Http(**self._facts))

    def _add(self, kind: str, **fields: Any) -> None:
        self._capture.add(kind, self._exchange.slot.conn, dir="s2c", **fields)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        try:
            async for chunk in self._response.stream:
                self._took(chunk)
                yield chunk
        except (httpx2.TransportError, OSError) as error:
            self._lost = True
            self._end("server", why(error), unexpected=True)
            raise
        self._end("server", "stream ended")

    def _took(self, chunk: bytes) -> None:
        if self._parser is None:
            self._held += chunk
            return
        for event in self._parser.feed(chunk):
            self._event(event)

    def _event(self, event: SseEvent) -> None:
        http = Http(status=self._facts["status"], exchange=self._exchange.name)
        if event.is_message:
            assert event.data is not None
            self._capture.text(self._exchange.slot.conn, "s2c", event.data, http=http, sse=event.facts(False))
        else:
            self._add("sse", http=http, sse=event.facts(True), **raw(event.raw))
        if self._exchange.listener is not None:
            self._exchange.listener.event(event)

    def _end(self, by: str, reason: str, *, unexpected: bool = False) -> None:
        if self._over:
            return
        self._over = True
        slot, name = self._exchange.slot, self._exchange.name
        marks = {"unexpected": True} if unexpected else {}
        if self._parser is not None:
            if rest := self._parser.rest():
                self._add("unparsed", http=Http(exchange=name), **raw(rest))
            self._capture.add("close", slot.conn, http=Http(exchange=name), by=by, reason=reason, **marks)
        else:
            body = bytes(self._held)
            if body and speaks(body):
                self._capture.text(slot.conn, "s2c", body, http=Http(**self._facts), known=True)
            elif body:
                self._add("http", http=Http(**self._facts), **raw(body))
            else:
                self._add("http", http=Http(**self._facts, body=False))
            if unexpected:
                self._capture.add("close", slot.conn, http=Http(exchange=name), by=by, reason=reason, **marks)
            if self._exchange.listener is not None:
                self._exchange.listener.body(body)

    async def aclose(self) -> None:
        slot, early = self._exchange.slot, not self._over
        self._end("client", "stream closed")
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        await self._response.stream.aclose()
        if (early or self._lost) and slot.conn:  # a response that is not read to its end takes its connection along
            self._capture.add("close", slot.conn, by="client" if early else "server")
            slot.conn = ""
        slot.busy = False


def why(error: BaseException) -> str:
    """An exception of the network in one line, groups opened."""
    root: BaseException | None = error
    while root is not None:
        if isinstance(root, ConnectionError) and root.errno:
            return os.strerror(root.errno)
        if isinstance(root, OSError) and root.strerror:
            return root.strerror
        inner = root.exceptions[0] if isinstance(root, BaseExceptionGroup) else None
        root = inner or root.__cause__ or root.__context__
    return str(error) or type(error).__name__
