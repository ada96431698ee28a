"""One conversation: a link, a negotiation, then requests; what the server asks meanwhile gets canned answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcplab import negotiation as n
from mcplab.live import texts
from mcplab.live.http import HttpLink, header_value
from mcplab.live.link import Down, Finished, Incoming, Junk, Link, Outgoing, StartError
from mcplab.model import ABSENT, HandshakeError
from mcplab.spec import META_SUBSCRIPTION_ID

PROBE_SHARE: Final = 1 / 3
PROBE_LIMIT: Final = 10.0  # seconds that `auto` waits for an answer to server/discover, at most
ROUNDS: Final = 10  # of one multi-round-trip request

CANNED: Final[dict[str, Any]] = {
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "A canned answer."},
        "model": "mcplab-canned",
        "stopReason": "endTurn",
    },
    "elicitation/create": {"action": "decline"},
}
"""Answers to what a server asks when the client declared it and the caller gave none."""

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass(frozen=True)
class Answer:
    """What became of one request of ``then``.

    ``outcome``: ``result``, ``error`` (JSON-RPC), ``rejected`` (an HTTP status without a JSON-RPC answer), ``sent``
    (a notification), ``listening`` (a subscription that stays open). ``rounds``: how often it was sent until the
    server needed no more input; ``notifications``: what came meanwhile.
    """

    method: str
    params: Any
    outcome: str
    result: Any = ABSENT
    error: Any = ABSENT
    status: int | None = None
    rounds: int = 1
    notifications: tuple[dict[str, Any], ...] = ()


@dataclass
class Conversation:
    """Owns the link from the first byte to the shut-down; used by one task only.

    ``connect`` opens a link, a second time where the first process died of the probe.
    """

    connect: Callable[[], Awaitable[Link]]
    transport: n.Transport
    declare: Any
    client_info: Any
    answers: Mapping[str, Any]
    timeout: float
    agreed: n.Accept | None = None
    state: n.Negotiation = field(default_factory=n.Negotiation)
    notifications: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    strays: dict[str, str] = field(default_factory=dict)
    link: Link | None = None
    session: str | None = None
    closing: str = ""
    _deadline: float = 0.0
    _next_id: int = 0
    _probes: list[int] = field(default_factory=list)
    _tools: dict[str, Any] = field(default_factory=dict)
    _open: list[tuple[int, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.timeout

    # Negotiation ---------------------------------------------------------------------------------

    async def negotiate(self, mode: str) -> n.Accept:
        """Agree on an era and a revision, or raise ``HandshakeError``."""
        self.state = n.Negotiation(mode)
        event: n.Event = await self._open_link()
        while True:
            self.state, commands = self.state.feed(event)
            for command in commands:
                match command:
                    case n.Accept():
                        self.agreed = command
                        if isinstance(self.link, HttpLink) and command.era == "legacy":
                            self.link.version = command.revision
                    case n.Notify(method):
                        accepted = next(c for c in commands if isinstance(c, n.Accept))
                        if isinstance(self.link, HttpLink):
                            self.link.version = accepted.revision
                        await self._notify(method, ABSENT, modern=False)
                    case n.Fail(what, advice):
                        raise HandshakeError(self._explained(what, advice))
                    case n.Request(method, version, probe):
                        event = await self._ask(method, version, probe) or n.Ended("nothing came")
                    case n.Restart():
                        await self.close()
                        if self._left() == 0:  # a second process would only cost its own shut-down
                            what = "the server ended, and no time was left to start it again for initialize"
                            raise HandshakeError(self._explained(what, "a longer timeout gives it a second chance"))
                        event = await self._open_link()
                    case n.Switch():
                        event = await self._open_sse()
            if self.agreed is not None:
                return self.agreed

    def judge(self) -> None:
        """Once all is said: raise for a result of the wrong shape, which stopped nothing that was asked for."""
        if self.agreed is not None and self.agreed.flaw:
            advice = f"mcplab went on in {self.agreed.revision}; the result is in the trace: report it to the server"
            raise HandshakeError(self._explained(self.agreed.flaw, advice))

    async def _open_link(self) -> n.Event:
        try:
            self.link = await self.connect()
        except StartError as error:
            return n.Unreachable(str(error))
        return n.Opened(self.transport)

    async def _open_sse(self) -> n.Event:
        assert isinstance(self.link, HttpLink)
        link = self.link
        opening = asyncio.create_task(link.open_sse())
        try:
            while True:
                getting = asyncio.create_task(link.inbox.get())
                done, _ = await asyncio.wait(
                    {opening, getting}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
                )
                item = getting.result() if getting in done else None
                getting.cancel()
                if opening in done:
                    self.transport = "sse"
                    return n.Opened("sse")
                if isinstance(item, Finished) and item.exchange == link.last:
                    return self._ended(item)
                if item is None:
                    return n.Silent(self.timeout)
        finally:
            opening.cancel()

    async def _ask(self, method: str, version: str, probe: bool) -> n.Event | None:
        if method == "initialize":
            params = texts.initialize_params(version, self.declare, self.client_info)
        else:
            params = texts.modern_params(ABSENT, version, self.declare, self.client_info)
        number = self._number()
        if method == "server/discover":
            self._probes.append(number)
        text = texts.message(id=number, method=method, params=params)
        out = Outgoing(text, "request", method, version, modern=method != "initialize")
        until = self._deadline
        if probe:
            until = min(until, time.monotonic() + min(self.timeout * PROBE_SHARE, PROBE_LIMIT))
        return await self._exchange(out, number, until)

    # Requests after the handshake ----------------------------------------------------------------

    async def then(self, method: str, params: Any) -> Answer:
        """Send one more request (or notification) and wait for what becomes of it.

        Raises:
            HandshakeError: no answer in time, or the server went away.
        """
        assert self.agreed is not None
        before = len(self.notifications)
        if method.startswith("notifications/"):
            given = self._dressed(params)
            await self._notify(method, given, modern=self.agreed.era == "modern")
            return Answer(method, params, "sent")
        extra: dict[str, Any] = {}
        rounds = 0
        while True:
            rounds += 1
            whole = {**(params if isinstance(params, Mapping) else {}), **extra} if extra else params
            event = await self._call(method, whole)
            answer = replace(
                self._answer(method, params, event),
                rounds=rounds,
                notifications=tuple(self.notifications[before:]),
            )
            more = self._inputs(answer.result)
            if more is None or rounds == ROUNDS:
                self._remember(answer)
                return answer
            extra = more

    async def pause(self, seconds: float) -> None:
        """Wait, and take in what the server sends meanwhile. The time does not count against the timeout."""
        until = time.monotonic() + seconds
        self._deadline += seconds
        await self._wait(None, None, until)

    async def listen(self) -> Answer | None:
        """Open the stream on which the server may speak unasked: GET, or ``subscriptions/listen`` for all it offers."""
        assert self.agreed is not None
        if self.agreed.era == "modern":
            offered = self.agreed.result.get("capabilities")
            offered = offered if isinstance(offered, dict) else {}
            wanted = {
                f"{name}ListChanged": True
                for name in ("tools", "prompts", "resources")
                if isinstance(offered.get(name), dict) and offered[name].get("listChanged") is True
            }
            return await self.then("subscriptions/listen", {"notifications": wanted})
        if isinstance(self.link, HttpLink) and self.transport == "http":
            self.link.listen()
        return None

    def _dressed(self, params: Any) -> Any:
        assert self.agreed is not None
        if self.agreed.era == "modern":
            return texts.modern_params(params, self.agreed.revision, self.declare, self.client_info)
        return ABSENT if params is None else params

    async def _call(self, method: str, params: Any) -> n.Event | None:
        assert self.agreed is not None
        number = self._number()
        text = texts.message(id=number, method=method, params=self._dressed(params))
        modern = self.agreed.era == "modern"
        name = params.get(_NAMED.get(method, "")) if isinstance(params, Mapping) else None
        headers: tuple[tuple[str, str], ...] = ()
        if modern and method == "tools/call" and isinstance(params, Mapping):
            pairs = texts.mirrored(self._tools.get(str(name)), params.get("arguments"))
            headers = tuple((key, header_value(value)) for key, value in pairs)
        shown = name if isinstance(name, str) else None
        out = Outgoing(text, "request", method, self.agreed.revision, modern, shown, headers)
        event = await self._exchange(out, number, self._deadline, listening=method == "subscriptions/listen")
        if isinstance(event, n.Silent):
            await self._cancel(number, modern)
        if isinstance(event, n.Silent | n.Ended | n.Unreachable):
            what = f"{method}: {n.words(event)}"
            raise HandshakeError(self._explained(what, "the handshake itself was complete: see the trace"))
        return event

    def _answer(self, method: str, params: Any, event: n.Event | None) -> Answer:
        match event:
            case n.Result(value):
                return Answer(method, params, "result", result=value)
            case n.Refused(code, words, data, status):
                error = {"code": code, "message": words, **({} if data is ABSENT else {"data": data})}
                return Answer(method, params, "error", error=error, status=status)
            case n.Rejected(status):
                return Answer(method, params, "rejected", status=status)
        return Answer(method, params, "listening")

    def _inputs(self, result: Any) -> dict[str, Any] | None:
        """What to add to the request for its next round, or None where nothing (more) can be given."""
        if not isinstance(result, dict) or result.get("resultType") != "input_required":
            return None
        asked = result.get("inputRequests", {})
        given: dict[str, Any] = {}
        for key, request in asked.items() if isinstance(asked, dict) else ():
            if not isinstance(request, dict):
                return None
            self.asked.append(request)
            reply = self._canned(request)
            if reply is ABSENT:
                return None
            given[key] = reply
        extra: dict[str, Any] = {"inputResponses": given} if given else {}
        if "requestState" in result:
            extra["requestState"] = result["requestState"]
        return extra or None

    def _remember(self, answer: Answer) -> None:
        tools = answer.result.get("tools") if isinstance(answer.result, dict) else None
        if answer.method == "tools/list" and isinstance(tools, list):
            named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
            self._tools |= {tool["name"]: tool.get("inputSchema") for tool in named}

    # What the server asks ------------------------------------------------------------------------

    def _canned(self, request: dict[str, Any]) -> Any:
        method = request.get("method")
        if not isinstance(method, str):
            return ABSENT
        if method in self.answers:
            given = self.answers[method]
            return given(request.get("params")) if callable(given) else given
        declared = method.partition("/")[0]
        if isinstance(self.declare, Mapping) and isinstance(self.declare.get(declared), Mapping):
            return CANNED.get(method, ABSENT)
        return ABSENT

    async def _reply(self, request: dict[str, Any]) -> None:
        self.asked.append(request)
        reply = {} if request["method"] == "ping" else self._canned(request)
        if reply is ABSENT:
            error = {"code": -32601, "message": "Method not found"}
            text = texts.message(id=request["id"], error=error)
        else:
            text = texts.message(id=request["id"], result=reply)
        await self._send(Outgoing(text, "response"), self._deadline)

    # The wire ------------------------------------------------------------------------------------

    async def _notify(self, method: str, params: Any, *, modern: bool) -> None:
        version = self.agreed.revision if self.agreed is not None else ""
        out = Outgoing(texts.message(method=method, params=params), "notification", method, version, modern)
        exchange = await self._send(out, self._deadline)
        if exchange is None:
            return
        event = await self._wait(None, exchange, self._deadline)
        if isinstance(event, n.Silent | n.Unreachable):
            raise HandshakeError(
                self._explained(f"{method}: {n.words(event)}", "does the server hang after initialize?")
            )
        if isinstance(event, n.Rejected):
            self.strays["notification"] = f"{method} was answered with HTTP {event.status}"

    async def _cancel(self, number: int, modern: bool) -> None:
        exchange = next((x for i, x in self._open if i == number), None)
        if modern and isinstance(self.link, HttpLink):
            if exchange is not None:
                self.link.cancel(exchange)
            return
        params = {"requestId": number, "reason": "no answer in time"}
        out = Outgoing(texts.message(method="notifications/cancelled", params=params), "notification")
        with contextlib.suppress(HandshakeError):
            await self._send(out, time.monotonic() + 1)

    async def _exchange(self, out: Outgoing, number: int, until: float, *, listening: bool = False) -> n.Event | None:
        started = time.monotonic()
        exchange = await self._send(out, until)
        self._open.append((number, exchange))
        event = await self._wait(number, exchange, until, listening=listening)
        if isinstance(event, n.Silent):
            if out.method == "server/discover" and isinstance(self.link, HttpLink) and exchange is not None:
                self.link.cancel(exchange)
            return n.Silent(time.monotonic() - started)
        return event

    async def _send(self, out: Outgoing, until: float) -> int | None:
        assert self.link is not None
        try:
            return await self._within(self.link.send(out), until)
        except TimeoutError:
            what = f"{out.method or 'a response'} could not be written in time"
            raise HandshakeError(self._explained(what, "the server does not read its input")) from None

    async def _within(self, awaitable: Awaitable[Any], until: float) -> Any:
        async with asyncio.timeout(max(until - time.monotonic(), 0)):
            return await awaitable

    async def _wait(
        self, number: int | None, exchange: int | None, until: float, *, listening: bool = False
    ) -> n.Event | None:
        """Take in what comes until ``number`` is answered, ``exchange`` is over or the time is up."""
        assert self.link is not None
        while True:
            try:
                item = await self._within(self.link.inbox.get(), until)
            except TimeoutError:
                return n.Silent(self.timeout)
            match item:
                case Incoming(_, message, where):
                    event = await self._heard(message, number, exchange is None or where == exchange)
                    if event is not None:
                        return event
                    if listening and _acknowledges(message, number):
                        return None
                case Junk(text):
                    self.strays["junk"] = f"text that is no JSON-RPC: '{texts.said(text, 60)}'"
                case Finished() if item.exchange == exchange:
                    return self._ended(item)
                case Down(detail) if number is not None or exchange is not None:
                    return n.Ended(detail)
                case Down():
                    return None

    async def _heard(self, message: dict[str, Any], number: int | None, here: bool) -> n.Event | None:
        if isinstance(message.get("method"), str):
            if "id" in message and self.agreed is not None and self.agreed.era == "modern":
                # No answer: the client MUST NOT send responses (2026-07-28, basic/transports/stdio#sending-messages).
                self.asked.append(message)
                self.strays["request"] = (
                    f"the server sent the request {texts.said(texts.encode(message['method']), 60)}"
                )
            elif "id" in message:
                await self._reply(message)
            else:
                self.notifications.append(message)
            return None
        ident = message.get("id")
        mine = number is not None and type(ident) is int and ident == number
        unreadable = number is not None and ident is None and "error" in message and here
        if mine or unreadable:
            if "error" in message:
                error = message["error"] if isinstance(message["error"], dict) else {}
                words = error.get("message")
                return n.Refused(
                    error.get("code"),
                    words if isinstance(words, str) else "",
                    error.get("data", ABSENT),
                    self._status_of(number),
                )
            return n.Result(message.get("result"))
        if type(ident) is int and ident in self._probes:
            if "result" in message:
                self.state, _ = self.state.feed(n.Late(message["result"]))
            self.strays["late"] = "server/discover was answered after its time was up"
        else:
            shown = f"id {'(nested)' if isinstance(ident, dict | list) else texts.dump(ident)}"
            shown = shown if "id" in message else "no id"
            due = "which nothing asked for" if number is None else f"where one with id {number} was due"
            self.strays["answer"] = f"an answer with {texts.said(texts.encode(shown), 60)}, {due}"
        return None

    def _status_of(self, number: int | None) -> int | None:
        exchange = next((x for i, x in self._open if i == number), None)
        return self.link.statuses.get(exchange or 0) if isinstance(self.link, HttpLink) else None

    def _ended(self, item: Finished) -> n.Event:
        if not item.reached:
            return n.Unreachable(item.detail)
        if item.status is None:
            return n.Ended(f"the connection broke: {item.detail}")
        if item.status >= 300:
            return n.Rejected(item.status, item.detail)
        return n.Ended(f"HTTP {item.status} without an answer{f': {item.detail}' if item.detail else ''}")

    def _number(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0)

    def _explained(self, what: str, advice: str) -> str:
        seen = f" (also seen: {'; '.join(self.strays.values())})" if self.strays else ""
        return f"{texts.said(texts.encode(what), 600)}{seen}; {texts.said(texts.encode(advice), 300)}"

    async def close(self) -> None:
        """Shut the link down; ``closing`` says what went wrong with that."""
        link, self.link = self.link, None
        if link is None:
            return
        self.session = link.session
        self.closing = await link.close() or self.closing


def _acknowledges(message: dict[str, Any], number: int | None) -> bool:
    if message.get("method") != "notifications/subscriptions/acknowledged":
        return False
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    ident = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
    return type(ident) is int and ident == number
