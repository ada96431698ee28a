"""Events as they happen: two clocks, a running number, the message's own bytes. The end is a ``model.Record``."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from mcplab import __version__, jsontext
from mcplab.model import Event, Http, Record, Sse

Direction = Literal["c2s", "s2c"]

_KEPT: Final = frozenset(
    (
        "accept", "allow", "content-type", "host", "last-event-id", "origin", "retry-after", "user-agent",
        "www-authenticate", "x-accel-buffering",
    )
)  # fmt: skip
_SECRET: Final = ("key", "token", "secret", "password", "passwd", "credential", "signature", "auth")
_JSONRPC: Final = frozenset(("jsonrpc", "method", "result", "error"))


class Capture:
    """Collects the events of one capture in memory. ``watcher`` is called with each event as soon as it is there."""

    def __init__(self, watcher: Callable[[Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self.started = datetime.now(UTC)
        self._watcher = watcher
        self._conns = 0
        self._exchanges = 0

    def conn(self) -> str:
        """A name for a new connection: ``c1``, ``c2``, ..."""
        self._conns += 1
        return f"c{self._conns}"

    def exchange(self) -> str:
        """A name for a new HTTP exchange: ``x1``, ``x2``, ..."""
        self._exchanges += 1
        return f"x{self._exchanges}"

    def add(self, kind: str, conn: str, **fields: Any) -> Event:
        """Append an event; ``fields`` are members of ``model.Event``."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        event = Event(kind, seq=len(self.events), ts=now, mono=time.monotonic_ns(), conn=conn, **fields)
        self.events.append(event)
        if self._watcher is not None:
            self._watcher(event)
        return event

    def text(
        self,
        conn: str,
        direction: Direction,
        text: bytes,
        *,
        http: Http | None = None,
        sse: Sse | None = None,
        known: bool | None = None,
    ) -> Event:
        """What a party wrote where a message is due: a ``message`` when it is JSON-RPC, else ``unparsed``.

        ``known``: whether it is, where the caller has looked already.
        """
        facts: dict[str, Any] = {"dir": direction, "http": http or UNSET, "sse": sse or UNSET}
        if is_message(text) if known is None else known:
            return self.add("message", conn, msg=msgspec.Raw(text.strip(b" \t\r\n")), **facts)
        return self.add("unparsed", conn, **raw(text), **facts)

    def record(self, transport: str, **header: Any) -> Record:
        """The record so far. ``transport`` is the header's word: ``stdio``, ``streamable-http`` or ``sse``."""
        head = {
            "captured_at": self.started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "tool": f"mcplab {__version__}",
            "transport": transport,
            "clock": "utc",
        }
        return Record({**head, **header}, tuple(self.events), name="handshake")


def raw(text: bytes) -> dict[str, str]:
    """``raw``, or ``raw_b64`` where the bytes are no UTF-8."""
    try:
        return {"raw": text.decode()}
    except UnicodeDecodeError:
        return {"raw_b64": base64.b64encode(text).decode()}


def is_message(text: bytes) -> bool:
    """Is this JSON-RPC: an object with ``jsonrpc``, ``method``, ``result`` or ``error``, or a batch of such?"""
    return bool(parts(text))


def parts(text: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a message or batch, each as (its text, decoded); [] where the text is no JSON-RPC."""
    try:
        decoded = text.decode().strip(" \t\r\n")
        value = jsontext.loads(decoded)
    except RecursionError:  # JSON as far as one can see: only the outside is looked at
        return _outside(text.decode().strip(" \t\r\n"))
    except ValueError:
        return []
    if isinstance(value, list):
        found = list(zip(jsontext.elements(decoded), value, strict=True))
    else:
        found = [(decoded, value)]
    fine = all(isinstance(one, dict) and not _JSONRPC.isdisjoint(one) for _, one in found)
    return found if fine else []


def _outside(text: str) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    try:
        for part in jsontext.elements(text) if jsontext.kind(text) == "array" else [text]:
            members = jsontext.members(part)
            if _JSONRPC.isdisjoint(key for key, _ in members):
                return []
            found.append((part, {key: jsontext.loads(value) for key, value in members if key in ("id", "method")}))
    except (ValueError, RecursionError):
        return []
    return found


def kept(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that a trace keeps, in lower case; of credentials only the scheme of ``www-authenticate``."""
    found: dict[str, str] = {}
    for name, value in pairs:
        low = name.lower()
        if low == "www-authenticate":
            value = value.split(" ", 1)[0]
        elif not (low in _KEPT or (low.startswith("mcp-") and not any(word in low for word in _SECRET))):
            continue
        found[low] = f"{found[low]}, {value}" if low in found else value
    return found


def masked(path: str) -> str:
    """A request's path with the values of query members that name a credential replaced."""
    head, mark, query = path.partition("?")
    if not mark:
        return path
    members = []
    for member in query.split("&"):
        name, equals, _ = member.partition("=")
        hide = equals and any(word in name.lower() for word in _SECRET)
        members.append(f"{name}=***" if hide else member)
    return f"{head}?{'&'.join(members)}"
