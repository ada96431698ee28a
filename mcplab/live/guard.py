"""One gate around everything that a session of the official SDK sends: calls, retries, background jobs, answers.

The SDK's sessions write all that they send to one stream. That stream is wrapped here, so no message goes round the
check; what comes in by the other stream tells what was declared. A server of the SDK that speaks 2026-07-28 over HTTP
answers each POST without streams: there is nothing to wrap (in that revision it may send no requests anyway).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

from mcplab.gating import OTHER, Gate, Verdict
from mcplab.model import ABSENT, UNKNOWN, GateError, UsageError
from mcplab.spec import META_CAPABILITIES, META_VERSION, REVISIONS

Party: TypeAlias = Literal["client", "server"]

OPENING = ("initialize", "server/discover")
"""Requests that find out what is agreed: no declaration can gate them yet."""


@dataclass(frozen=True)
class Refused:
    """A message that was not sent. ``kind``: request, notification, result or error. ``method``: of an answer the one
    that it answers, ``""`` where that is not known."""

    kind: str
    method: str
    message: dict[str, Any]
    verdict: Verdict

    def __str__(self) -> str:
        what = self.method if self.kind in ("request", "notification") else f"the {self.kind} of {self.method}"
        rule = f" ({self.verdict.rule})" if self.verdict.rule else ""
        return f"{what} was not sent: {self.verdict.reason}{rule}"


@dataclass
class _Request:
    method: str
    version: str | None
    declared: Any


@dataclass
class Guard:
    """A transport with the gate on its way out, for ``mcp.Client``; made by ``guarded``.

    Attributes:
        refused: what was not sent, in order.
        sent: how many messages went out, by method (of an answer ``result`` or ``error``).
        unjudged: those of them that nobody could judge, as the declarations that matter were not seen.
    """

    transport: Any
    sender: Party
    given: Gate | None
    notifications: Literal["raise", "drop"]
    strict: bool
    refused: list[Refused] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    _agreed: Gate | None = None
    _server: Any = UNKNOWN
    _open: dict[tuple[str, str], _Request] = field(default_factory=dict)

    async def __aenter__(self) -> tuple[Any, Any]:
        self._agreed, self._server = None, UNKNOWN  # declarations belong to one connection
        self._open.clear()
        pair = isinstance(self.transport, tuple)
        read, write = self.transport if pair else await self.transport.__aenter__()
        return _Ear(read, self), _Mouth(write, self)

    async def __aexit__(self, *error: Any) -> bool | None:
        return None if isinstance(self.transport, tuple) else await self.transport.__aexit__(*error)

    # What was declared ---------------------------------------------------------------------------

    def heard(self, message: Mapping[str, Any], sender: str) -> None:
        """Take in a message that passed, for what it declares."""
        name, ident = message.get("method"), json.dumps(message.get("id"))
        if isinstance(name, str) and "id" in message:
            params = message.get("params")
            version, declared = _stamped(params)
            if name == "initialize":
                declared = params.get("capabilities", ABSENT) if isinstance(params, Mapping) else ABSENT
            if version is not None and version in REVISIONS and name not in OPENING:
                self._agreed = Gate(version, UNKNOWN, self._server)
            self._open[sender, ident] = _Request(name, version, declared)
        elif not isinstance(name, str):
            request, result = self._open.pop((OTHER[sender], ident), None), message.get("result")
            if request is None or request.method not in OPENING or not isinstance(result, Mapping):
                return
            self._server = result.get("capabilities", ABSENT)
            version = result.get("protocolVersion") if request.method == "initialize" else request.version
            if version in REVISIONS:
                client = request.declared if request.method == "initialize" else UNKNOWN
                self._agreed = Gate(str(version), client, self._server)

    def gate(self, message: Mapping[str, Any], related: Any = None) -> Gate | None:
        """The gate in force for a message of ours; None before a revision is known.

        A modern request is judged by its own declaration, an answer or a message that belongs to a request by that
        request's, everything else by what was agreed last. What was given to ``guarded`` comes first.
        """
        version, declared = _stamped(message.get("params")) if self.sender == "client" else (None, UNKNOWN)
        if self.sender == "server":
            ident = json.dumps(message.get("id") if "method" not in message else related)
            request = self._open.get(("client", ident))
            if request is not None and request.version is not None:
                version, declared = request.version, request.declared
        found = Gate(version, declared, self._server) if version in REVISIONS else self._agreed
        if self.given is None:
            return found
        halves = (found.client, found.server) if found is not None else (UNKNOWN, UNKNOWN)
        client, server = self.given.client, self.given.server
        return Gate(
            self.given.revision, halves[0] if client is UNKNOWN else client, halves[1] if server is UNKNOWN else server
        )

    # The check -----------------------------------------------------------------------------------

    def check(self, message: dict[str, Any], related: Any = None) -> Refused | None:
        """May this go out? Counts it, and takes in what it declares; a message that may not is listed and returned."""
        name = message.get("method")
        if isinstance(name, str):
            kind, shown = ("request" if "id" in message else "notification"), name
        else:
            asked = self._open.get((OTHER[self.sender], json.dumps(message.get("id"))))
            kind, name = ("error" if "error" in message else "result"), asked.method if asked is not None else ""
            shown = kind
        door = None if name in OPENING else self.gate(message, related)
        allowed: bool | None = True if name in OPENING else None
        verdict = None
        if door is not None:
            verdict = door.allows(message, self.sender, answers=name)
        elif self.strict and kind in ("request", "notification") and name not in (*OPENING, "ping"):
            verdict = Verdict(None, None, None, "no revision is agreed on yet")
        if verdict is not None:
            allowed = verdict.allowed
            if allowed is False or (self.strict and allowed is None):
                self.refused.append(Refused(kind, name, message, verdict))
                return self.refused[-1]
        self.heard(message, self.sender)
        self.sent[shown] += 1
        if allowed is None:
            self.unjudged[shown] += 1
        return None


def guarded(
    transport: Any,
    gate: Gate | None = None,
    *,
    sender: Party = "client",
    notifications: Literal["raise", "drop"] = "raise",
    strict: bool = False,
) -> Guard:
    """Put the gate between a session of the official SDK and its transport.

    ``mcp.Client(guarded("http://127.0.0.1:8000/mcp"))``; with a session of your own, or a server:
    ``async with guarded(stdio_server(), sender="server") as (read, write): await server.run(read, write, ...)``.

    A request that may not be sent raises ``GateError`` where it was made, and so does a notification. In place of an
    answer that may not be sent the other side gets a JSON-RPC error (-32603), as it waits for one. ``.refused`` of what
    this returns lists them all.

    Args:
        transport: what ``mcp.Client`` takes (an address, ``StdioServerParameters``, a transport), any context manager
            that gives a pair of streams, or such a pair.
        gate: the revision and the declarations in force, ``UNKNOWN`` where they are to be taken from the traffic; None:
            all of it, from the ``initialize`` exchange, or from each request's ``_meta`` and the discover result.
        sender: which party the session is.
        notifications: ``raise``, or ``drop`` those that may not be sent without a word to the caller.
        strict: refuse also what cannot be judged, as the declaration that matters was not seen.

    Raises:
        UsageError: no transport that has streams, or an option is none of its words.
    """
    for name, value, words in (("sender", sender, OTHER), ("notifications", notifications, ("raise", "drop"))):
        if value not in words:
            raise UsageError(f"{name}={value!r} is neither of {', '.join(words)}")
    if not isinstance(gate, Gate | None):
        raise UsageError(f"gate={gate!r} is no gate: mcplab.gate(revision, client=..., server=...) makes one")
    if isinstance(transport, str):
        transport = streamable_http_client(transport)
    elif isinstance(transport, StdioServerParameters):
        transport = stdio_client(transport)
    if not isinstance(transport, tuple) and not hasattr(transport, "__aenter__"):
        what = type(transport).__name__
        raise UsageError(f"{what} has no streams to guard: give an address, a transport or a pair of streams")
    return Guard(transport, sender, gate, notifications, strict)


def _stamped(params: Any) -> tuple[Any, Any]:
    """Version and client capabilities in a modern request's ``_meta``: (None, UNKNOWN) where it is none."""
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    if not isinstance(meta, Mapping) or not isinstance(meta.get(META_VERSION), str):
        return None, UNKNOWN
    return meta[META_VERSION], meta.get(META_CAPABILITIES, ABSENT)


def _json(item: SessionMessage) -> dict[str, Any]:
    return item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)


class _Passing:
    """A stream that is wrapped; what is not named here is the stream's own."""

    def __init__(self, inner: Any, guard: Guard) -> None:
        self._inner = inner
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._inner.__aexit__(*error)


class _Ear(_Passing):
    async def receive(self) -> Any:
        item = await self._inner.receive()
        if isinstance(item, SessionMessage):
            self._guard.heard(_json(item), OTHER[self._guard.sender])
        return item

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        if isinstance(item, SessionMessage):
            self._guard.heard(_json(item), OTHER[self._guard.sender])
        return item


class _Mouth(_Passing):
    def clone(self) -> _Mouth:
        return _Mouth(self._inner.clone(), self._guard)

    def send_nowait(self, item: SessionMessage) -> None:
        raise GateError("send_nowait goes round the gate; await send(...)")

    async def send(self, item: SessionMessage) -> None:
        related = item.metadata.related_request_id if isinstance(item.metadata, ServerMessageMetadata) else None
        refused = self._guard.check(_json(item), related)
        if refused is None:
            await self._inner.send(item)
        elif refused.kind in ("result", "error"):
            error = ErrorData(code=INTERNAL_ERROR, message=str(refused))
            instead = JSONRPCError(jsonrpc="2.0", id=refused.message["id"], error=error)
            await self.send(SessionMessage(instead, item.metadata))  # gated by nothing, so it goes out
        elif refused.kind == "request" or self._guard.notifications == "raise":
            raise GateError(f"{refused}; send only what was declared", refused)
