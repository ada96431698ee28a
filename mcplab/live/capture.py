"""Events as they happen: two clocks, a running number, the message's own bytes. The end is a ``model.Record``."""

from __future__ import annotations

import base64
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from mcplab import __version__, jsontext
from mcplab.credentials import is_secret_header
from mcplab.model import Event, Http, Record, Sse

Direction = Literal["c2s", "s2c"]

_KEPT: Final = frozenset(
    (
        "accept", "allow", "content-type", "host", "last-event-id", "origin", "retry-after", "user-agent",
        "www-authenticate", "x-accel-buffering",
    )
)  # fmt: skip
_NO_JSON: Final = frozenset(bytes([byte]) for byte in range(256) if chr(byte) not in "{[ \t\r\n")
_JSONRPC: Final = frozenset(("jsonrpc", "method", "result", "error"))


class Recording(ABC):
    """Where events go as they happen: into memory (``Capture``) or into a file (``recorder.Recorder``)."""

    keeps_secrets = True

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._conns = itertools.count(1)
        self._exchanges = itertools.count(1)

    def conn(self) -> str:
        """A name for a new connection: ``c1``, ``c2``, ..."""
        return f"c{next(self._conns)}"

    def exchange(self) -> str:
        """A name for a new HTTP exchange: ``x1``, ``x2``, ..."""
        return f"x{next(self._exchanges)}"

    @abstractmethod
    def add(self, kind: str, conn: str, **fields: Any) -> Event:
        """Append an event; ``fields`` are members of ``model.Event``. Number and clocks come from here."""

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

    def head(self, transport: str) -> dict[str, Any]:
        """What every header says. ``transport`` is its word: ``stdio``, ``streamable-http`` or ``sse``."""
        return {
            "captured_at": self.started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "tool": f"mcplab {__version__}",
            "transport": transport,
            "clock": "utc",
        }


class Capture(Recording):
    """Collects the events of one capture in memory. ``watcher`` is called with each event as soon as it is there."""

    def __init__(self, watcher: Callable[[Event], None] | None = None) -> None:
        super().__init__()
        self.events: list[Event] = []
        self._watcher = watcher

    def add(self, kind: str, conn: str, **fields: Any) -> Event:
        event = Event(kind, seq=len(self.events), **clocks(), conn=conn, **fields)
        self.events.append(event)
        if self._watcher is not None:
            self._watcher(event)
        return event

    def record(self, transport: str, **header: Any) -> Record:
        """The record so far; ``header`` joins what ``head`` says."""
        return Record({**self.head(transport), **header}, tuple(self.events), name="handshake")


def clocks() -> dict[str, Any]:
    """Both clocks, as an event has them."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return {"ts": f"{now[:-6]}Z", "mono": time.monotonic_ns()}


def raw(text: bytes) -> dict[str, str]:
    """``raw``, or ``raw_b64`` where the bytes are no UTF-8."""
    try:
        return {"raw": text.decode()}
    except UnicodeDecodeError:
        return {"raw_b64": base64.b64encode(text).decode()}


class _Outside(msgspec.Struct, gc=False):
    """The members that make an object JSON-RPC, their values unread."""

    jsonrpc: msgspec.Raw | msgspec.UnsetType = UNSET
    method: msgspec.Raw | msgspec.UnsetType = UNSET
    result: msgspec.Raw | msgspec.UnsetType = UNSET
    error: msgspec.Raw | msgspec.UnsetType = UNSET

    @property
    def ours(self) -> bool:
        return not (self.jsonrpc is self.method is self.result is self.error is UNSET)


_outsides = msgspec.json.Decoder(_Outside | list[_Outside])


def is_message(text: bytes) -> bool:
    """Is this JSON-RPC: an object with ``jsonrpc``, ``method``, ``result`` or ``error``, or a batch of such?"""
    try:
        text.decode()
        found = _outsides.decode(text)
    except UnicodeDecodeError:
        return False
    except (msgspec.DecodeError, RecursionError):  # of JSON it refuses lone surrogates and deep nesting
        return text[:1] not in _NO_JSON and bool(parts(text))
    return all(one.ours for one in found) and bool(found) if isinstance(found, list) else found.ours


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


def kept(pairs: Iterable[tuple[str, str]], *, secrets: bool = False) -> dict[str, str]:
    """The headers that a trace keeps, in lower case; of ``www-authenticate`` only the scheme.

    ``secrets``: those that carry a credential too, for whoever masks them before they are written.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        low, fate = _fate(name)
        if fate == "scheme":
            value = value.split(" ", 1)[0]
        elif fate == "no" or (fate == "secret" and not secrets):
            continue
        found[low] = f"{found[low]}, {value}" if low in found else value
    return found


@lru_cache(maxsize=512)
def _fate(name: str) -> tuple[str, Literal["scheme", "secret", "yes", "no"]]:
    low = name.lower()
    if low == "www-authenticate":
        return low, "scheme"
    if is_secret_header(low):
        return low, "secret"
    return low, "yes" if low in _KEPT or low.startswith("mcp-") else "no"
