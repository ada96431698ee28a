"""Streamable HTTP of both eras, and the HTTP+SSE transport of 2024-11-05, over the recording transport.

The texts are posted with httpx2 itself and not through the SDK's HTTP transport: that one takes parsed models only and
serialises them anew, so that ``1.50``, duplicate keys and text that is no JSON could not be sent as they are given.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from urllib.parse import urlsplit

import httpx2

from mcplab import __version__
from mcplab.live.capture import Capture, parts
from mcplab.live.link import Down, Finished, Happening, Incoming, Junk, Outgoing, StartError
from mcplab.live.recording import RecordingTransport, why
from mcplab.live.sse import SseEvent
from mcplab.live.texts import said
from mcplab.redaction import MASKS

_BOTH = "application/json, text/event-stream"
_GOODBYE = 2.0  # seconds for the DELETE that ends a session
_VERSION_HEADER_FROM = "2025-06-18"  # basic/transports#protocol-version-header: earlier revisions know none
_RESUMPTIONS = 3
_HOPS = 5


class _Ear:
    """Passes what an exchange brings on to the inbox."""

    def __init__(self, link: HttpLink, number: int) -> None:
        self._link = link
        self._number = number
        self.status: int | None = None
        self.answered = False
        self.said = ""
        self.last_id: str | None = None
        self.retry = 1000
        self.hops = 0
        self.unreachable = False

    def responded(self, response: httpx2.Response) -> None:
        self.status = self._link.statuses[self._number] = response.status_code

    def body(self, text: bytes) -> None:
        if not self._pass(text):
            self.said = said(b" ".join(text[:4000].split()), 200)

    def event(self, event: SseEvent) -> None:
        if event.id:
            self.last_id = event.id
        if event.retry is not None and event.retry.isdigit():
            self.retry = int(event.retry)
        if event.is_message and event.data is not None:
            if not self._pass(event.data):
                self._link.inbox.put_nowait(Junk(event.data))
        elif event.event == "endpoint" and event.data:
            self._link.endpoint(event.data.decode("utf-8", "replace"))

    def _pass(self, text: bytes) -> bool:
        found = parts(text)
        for part, message in found:
            self.answered = self.answered or ("method" not in message and "id" in message)
            self._link.inbox.put_nowait(Incoming(part, message, self._number))
        return bool(found)


class HttpLink:
    """One MCP endpoint. ``session``, ``version`` and ``sse`` change as the negotiation goes on."""

    def __init__(self, capture: Capture, url: str) -> None:
        parsed = urlsplit(url)
        if parsed.scheme not in ("http", "https") or not parsed.hostname:
            raise StartError(f"{url!r} is no http or https address")
        self.inbox: asyncio.Queue[Happening] = asyncio.Queue()
        self.session: str | None = None
        self.version = ""
        self._url = url
        self._post_to = url
        self._sse = False
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.last = 0
        self.statuses: dict[int, int] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        agent = f"mcplab/{__version__} {httpx2.__title__}/{httpx2.__version__}"
        self._client = httpx2.AsyncClient(
            transport=RecordingTransport(capture),
            headers={"user-agent": agent, "accept-encoding": "identity"},
            timeout=None,  # whoever waits has the deadline
            trust_env=False,  # a proxy from the environment would go round the recording
        )

    # Sending -------------------------------------------------------------------------------------

    async def send(self, out: Outgoing) -> int | None:
        headers = {"content-type": "application/json", "accept": _BOTH, **self._standing(out)}
        if out.modern:
            headers["mcp-protocol-version"] = out.version
            if out.method:
                headers["mcp-method"] = header_value(out.method)
            if out.name is not None:
                headers["mcp-name"] = header_value(out.name)
            headers |= dict(out.headers)
        return self._start("POST", self._post_to, headers, out)

    def listen(self) -> int:
        """Open the stream on which a legacy server may speak unasked (GET)."""
        return self._start("GET", self._url, {"accept": "text/event-stream", **self._standing(None)}, None)

    async def open_sse(self) -> None:
        """Open the HTTP+SSE transport: GET, then the ``endpoint`` event. Never returns where that does not come."""
        self.session, self._sse = None, True
        self._start("GET", self._url, {"accept": "text/event-stream"}, None)
        self._post_to = await asyncio.shield(self._endpoint)

    def endpoint(self, data: str) -> None:
        """The address of the old transport's POSTs. One of another origin is not believed."""
        if self._sse and not self._endpoint.done() and (url := self._near(data)):
            self._endpoint.set_result(url)

    def _near(self, reference: str) -> str | None:
        """``reference`` as an address of this origin, or None."""
        here, url = httpx2.URL(self._url), httpx2.URL(self._url).join(reference)
        same = (url.scheme, url.host, url.port) == (here.scheme, here.host, here.port)
        return str(url) if same else None

    def cancel(self, exchange: int) -> bool:
        """Close an exchange's response stream: the cancellation of a modern request."""
        task = self._tasks.get(exchange)
        return task is not None and task.cancel()

    def _standing(self, out: Outgoing | None) -> dict[str, str]:
        """Headers of a legacy session; ``initialize`` opens one and has none of them."""
        if self._sse or (out is not None and (out.modern or out.method == "initialize")):
            return {}
        headers = {"mcp-session-id": self.session} if self.session is not None else {}
        if self.version >= _VERSION_HEADER_FROM:
            headers["mcp-protocol-version"] = self.version
        return headers

    def _start(self, method: str, url: str, headers: dict[str, str], out: Outgoing | None) -> int:
        self.last += 1
        number = self.last
        task = asyncio.create_task(self._exchange(number, method, url, headers, out))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))
        return number

    # One exchange --------------------------------------------------------------------------------

    async def _exchange(
        self, number: int, method: str, url: str, headers: dict[str, str], out: Outgoing | None
    ) -> None:
        ear = _Ear(self, number)
        content = None if out is None else out.text
        detail = await self._once(ear, method, url, headers, content, out)
        tries = 0
        while self._resumable(ear, out, detail) and tries < _RESUMPTIONS:
            await asyncio.sleep(ear.retry / 1000)  # basic/transports#sending-messages-to-the-server: respect retry
            again = {"accept": "text/event-stream", **self._standing(None), "last-event-id": ear.last_id or ""}
            detail, tries = await self._once(ear, "GET", self._url, again, None, None), tries + 1
        fine = detail is None and ear.status is not None and ear.status < 300
        if self._sse and method == "GET" and self._endpoint.done():
            self.inbox.put_nowait(Down(f"the server's event stream ended{f': {detail}' if detail else ''}"))
        elif not (self._sse and fine and out is not None and out.kind == "request"):  # answered on the GET stream
            self.inbox.put_nowait(Finished(number, ear.status, detail or ear.said, not ear.unreachable))

    def _resumable(self, ear: _Ear, out: Outgoing | None, detail: str | None) -> bool:
        legacy_request = out is not None and out.kind == "request" and not out.modern and not self._sse
        return legacy_request and not ear.answered and bool(ear.last_id) and ear.status == 200

    async def _once(
        self,
        ear: _Ear,
        method: str,
        url: str,
        headers: dict[str, str],
        content: bytes | None,
        out: Outgoing | None,
    ) -> str | None:
        """One request with its response, to the end. None, or why it broke."""
        try:
            request = self._client.build_request(
                method, url, headers=headers, content=content, extensions={"mcplab": ear}
            )
            response = await self._client.send(request, stream=True)
            moved = self._near(response.headers.get("location", "")) if response.status_code in (307, 308) else None
            try:
                if out is not None and out.method == "initialize" and "mcp-session-id" in response.headers:
                    self.session = response.headers["mcp-session-id"]
                async for _ in response.aiter_raw():
                    pass
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            ear.unreachable = isinstance(error, (httpx2.ConnectError, httpx2.InvalidURL, httpx2.UnsupportedProtocol))
            return f"{why(error)} at {MASKS.address(url)}"
        if moved is not None and ear.hops < _HOPS:  # the same request again, as 307 and 308 ask
            ear.hops += 1
            self._url, self._post_to = moved, moved if self._post_to == self._url else self._post_to
            return await self._once(ear, method, moved, headers, content, out)
        return None

    # The end -------------------------------------------------------------------------------------

    async def close(self) -> str:
        try:
            if self.session is not None and not self._sse:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GOODBYE):
                        await self._once(_Ear(self, 0), "DELETE", self._url, self._standing(None), None, None)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._client.aclose()
        return ""


def header_value(value: str) -> str:
    """A body value as a header, in Base64 where it must be (2026-07-28 streamable-http#value-encoding)."""
    plain = all(0x20 <= ord(char) <= 0x7E or char == "\t" for char in value) and value == value.strip(" \t")
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="
