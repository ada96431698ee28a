"""The nouns everything else is made of: events, records, states, columns, errors.

Nothing here reads, writes or computes; every other module imports this one and it imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

# Exceptions ----------------------------------------------------------------------------------------
#
#   MCPLabError                 anything this package tells its user
#   ├── TraceError              a trace cannot be read, or cannot answer the question asked
#   ├── HandshakeError          a live handshake failed; .trace holds what was recorded so far
#   ├── GateError               a message was not sent: nobody declared what it needs
#   ├── ClaimsError             a note or a published table cannot be read
#   ├── SpecError               the protocol data does not know what was asked for
#   ├── DrawError               a frame or an option that cannot be drawn; a ValueError too
#   ├── ExportError             a figure or table cannot be written
#   └── UsageError                an argument is none of those that can be (the command line exits with 2)
#       ├── ArgumentError       ... of a question about traces; a TraceError too
#       └── FormatError         ... of an export; an ExportError too


class MCPLabError(Exception):
    """Base of all errors of this package. ``str(error)`` is one line: what happened, where, what to do next."""


class TraceError(MCPLabError):
    """A trace cannot be read, or cannot answer the question asked."""


class HandshakeError(MCPLabError):
    """A live handshake failed. ``trace`` is what was recorded until then (or None).

    ``handshake``: the ``Handshake``, with the answers until then, where only what followed it failed. ``__notes__``:
    how a stdio server's process ended, and the last lines of its stderr, masked.
    """

    def __init__(self, message: str, trace: Any = None) -> None:
        super().__init__(message)
        self.trace = trace
        self.handshake: Any = None


class GateError(MCPLabError):
    """A message was not sent, as what it needs was not declared. ``refused``: which, and the gate's verdict."""

    def __init__(self, message: str, refused: Any = None) -> None:
        super().__init__(message)
        self.refused = refused


class ClaimsError(MCPLabError):
    """A research note or a published table cannot be read."""


class SpecError(MCPLabError):
    """The protocol data does not know the revision, method or path that was asked for."""


class DrawError(MCPLabError, ValueError):
    """A frame or an option that cannot be drawn, or a frame in which there is nothing to draw."""


class ExportError(MCPLabError):
    """A figure or table cannot be written."""


class UsageError(MCPLabError):
    """An argument is none of those that can be: the caller's mistake, and nothing that a trace could cause."""


class ArgumentError(UsageError, TraceError):
    """A question about traces with an argument that cannot be."""


class FormatError(UsageError, ExportError):
    """A format or file name that nothing can be exported as."""


# Sentinels -----------------------------------------------------------------------------------------


class Sentinel:
    """A named value that is none of JSON's: equal to itself only, and without a truth value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise TypeError(f"{self.name} is neither true nor false; compare with `is {self.name}`")

    def __copy__(self) -> Sentinel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Sentinel:
        return self

    def __reduce__(self) -> str:
        return self.name


ABSENT: Final = Sentinel("ABSENT")
"""The member was not there (as opposed to null, false or {})."""

UNKNOWN: Final = Sentinel("UNKNOWN")
"""Nobody saw whether it was there: the capture cannot tell."""


class JsonText(str):
    """JSON text that is used as it is, byte for byte, instead of being serialised."""

    __slots__ = ()


# States --------------------------------------------------------------------------------------------

State = Literal["absent", "null", "empty", "object", "true", "false", "value"]

STATES: Final[tuple[str, ...]] = ("absent", "null", "empty", "object", "true", "false", "value")
"""The seven states of a capability path. Different facts; nothing may merge two of them."""

CELL_STATES: Final[tuple[str, ...]] = (*STATES, "varies", "unknown")
"""What a cell of a comparison may hold besides a state: more than one state, or no declaration captured."""

ACTIVITIES: Final[tuple[str, ...]] = ("none", "ping", "notification", "response", "request", "disabled", "error")

PRIORITY: Final[dict[str, int]] = {
    "none": 0, "ping": 1, "notification": 1, "response": 2, "request": 3, "disabled": 3, "error": 4,
}  # fmt: skip
"""Which activity a timeline segment shows: the higher wins, on a tie the later event."""

CHANNELS: Final[tuple[str, ...]] = (
    "STDIO", "POST (JSON)", "POST (SSE)", "POST", "GET (SSE)", "LISTEN (SSE)", "RESUMPTION", "DELETE",
    "SSE (legacy transport)", "unknown",
)  # fmt: skip
"""All channels, in the order in which tables and charts list them."""

TRANSPORTS: Final[dict[str, str]] = {"stdio": "stdio", "streamable-http": "http", "http": "http", "sse": "sse"}
"""The header's word for a transport -> the column's."""

NO_TIME: Final = -(2**63)
"""Microseconds since 1970 of an event without a time: what numpy calls NaT."""

# Trace file ----------------------------------------------------------------------------------------

FORMAT_NAME: Final = "mcplab-trace"
FORMAT_VERSION: Final = 1

Opt = UnsetType  # shorthand for "the member may be missing", which is not null


class Http(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Transport facts of one event of an HTTP transport, as far as the recorder saw them."""

    method: str | Opt = UNSET
    path: str | Opt = UNSET
    status: int | Opt = UNSET
    headers: dict[str, str] | Opt = UNSET
    exchange: str | Opt = UNSET
    body: bool | Opt = UNSET


class Sse(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Fields of one SSE event; ``data`` only where it is no JSON-RPC message."""

    id: str | Opt | None = UNSET
    event: str | Opt | None = UNSET
    retry: int | str | Opt | None = UNSET
    comment: str | Opt | None = UNSET
    data: str | Opt | None = UNSET


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing seen on the wire. Order is ``seq``, never the clock (-1: not numbered yet).

    ``msg`` holds the message's own text, never re-serialised; a JSON array is a batch.
    """

    kind: str
    seq: int = -1
    ts: str | Opt | None = UNSET
    mono: int | Opt = UNSET
    conn: str | Opt = UNSET
    dir: str | Opt = UNSET
    msg: msgspec.Raw | Opt = UNSET
    http: Http | Opt = UNSET
    sse: Sse | Opt = UNSET
    raw: str | Opt = UNSET
    raw_b64: str | Opt = UNSET
    exit_code: int | Opt | None = UNSET
    reason: str | Opt | None = UNSET
    by: str | Opt | None = UNSET
    unexpected: bool | Opt = UNSET
    client: dict[str, Any] | Opt = UNSET
    label: str | Opt = UNSET
    mode: str | Opt = UNSET

    @property
    def text(self) -> str:
        """The message's text, or ``""`` where the event carries none. Bytes that are no UTF-8 read as U+FFFD."""
        return "" if self.msg is UNSET else bytes(self.msg).decode("utf-8", "replace")


class Unread(msgspec.Struct, frozen=True, gc=False):
    """A line of a file that the reader could not turn into an event."""

    file: str
    line: int
    text: str
    reason: str


class Record(msgspec.Struct, frozen=True):
    """What a reader returns and a writer takes: one capture.

    ``format`` names the reader that read it; ``notes`` says what this source cannot tell; ``name`` is the trace's name.
    ``lines`` (version 1 only) holds the text of each event's line, so that a save leaves nothing out that the reader
    did not know; ``linenos`` the line each event came from, ``files`` its file, or one name for all. All three run
    parallel to ``events`` or are empty.
    """

    header: Mapping[str, Any]
    events: Sequence[Event]
    unread: Sequence[Unread] = ()
    format: str = FORMAT_NAME
    notes: Sequence[str] = ()
    name: str = "trace"
    header_line: bytes = b""
    lines: Sequence[bytes] = ()
    linenos: Sequence[int] = ()
    files: Sequence[str] = ()


# Columns -------------------------------------------------------------------------------------------
# One place for the names and dtypes of every table: str, Int64 (may be missing), float (NaN where missing),
# bool, boolean (may be missing), time (UTC, microseconds). A missing str is NaN, as everywhere in pandas.

_WHERE = {"trace": "str", "instance": "str", "conn": "str"}
_SAID = {
    "party": "str", "client": "str", "client_version": "str", "client_info": "str", "config": "str",
    "transport": "str", "server": "str", "revision": "str", "era": "str", "place": "str",
}  # fmt: skip
_STATED = {"path": "str", "state": "str", "value": "str", "tier": "str", "evidence": "str"}

COLUMNS: Final[dict[str, dict[str, str]]] = {
    "messages": {
        **_WHERE, "peer": "str", "seq": "int64", "part": "Int64", "ts": "time", "sender": "str", "kind": "str",
        "method": "str", "id": "str", "reply_to": "Int64", "reply_part": "Int64", "latency": "float", "era": "str",
        "version": "str", "channel": "str", "activity": "str", "http_exchange": "str", "http_method": "str",
        "status": "Int64", "content_type": "str", "size": "int64", "message": "str",
    },
    "exchanges": {
        **_WHERE, "seq": "int64", "part": "Int64", "ts": "time", "sender": "str", "method": "str", "id": "str",
        "outcome": "str", "waited": "float", "error_code": "Int64", "latency": "float", "channel": "str",
        "status": "Int64", "notifications": "int64", "group": "Int64", "reply_seq": "Int64", "reply_part": "Int64",
        "era": "str", "version": "str",
    },
    "connections": {
        **_WHERE, "transport": "str", "era": "str", "mode": "str", "label": "str", "offered": "str",
        "selected": "str", "discovery": "str", "discovery_detail": "str", "client": "str", "client_from": "str",
        "client_info": "str", "client_version": "str", "server": "str", "server_version": "str", "session": "str",
        "health": "str", "instructions": "str", "calls": "str", "complete": "boolean", "first": "time",
        "last": "time", "messages": "int64", "peers": "str", "config": "str", "first_seq": "int64",
        "last_seq": "int64", "ping_interval": "float", "ping_missed": "Int64", "ping_limit": "Int64",
        "ping_answered": "time",
    },
    "declarations": {
        **_WHERE, **_SAID, "seq": "int64", "part": "Int64", **_STATED, "duplicate": "bool", "disputed": "bool",
    },
    "channels": {
        "trace": "str", "instance": "str", "channel": "str", "state": "str", "why": "str", "request": "int64",
        "response": "int64", "notification": "int64", "ping": "int64", "error": "int64", "last_error": "str",
        "last_status": "Int64", "failures": "int64",
    },
    "findings": {
        "rule": "str", "level": "str", "confidence": "str", "party": "str", "verdict": "str", **_WHERE,
        "seq": "Int64", "part": "Int64", "anchor": "str", "related": "str", "n": "int64", "revision": "str",
        "title": "str", "detail": "str", "section": "str",
    },
    "http": {
        **_WHERE, "peer": "str", "http_exchange": "str", "channel": "str", "method": "str", "path": "str",
        "status": "Int64", "content_type": "str", "session": "str", "version_header": "str", "last_event_id": "str",
        "seq": "int64", "response_seq": "Int64", "last_seq": "int64", "ts": "time", "response_ts": "time",
        "last_ts": "time", "client_messages": "int64", "server_messages": "int64", "ended": "boolean",
        "request_headers": "str", "response_headers": "str",
    },
    "events": {
        **_WHERE, "peer": "str", "seq": "int64", "ts": "time", "kind": "str", "sender": "str", "channel": "str",
        "activity": "str", "http_exchange": "str", "http_method": "str", "status": "Int64", "content_type": "str",
        "size": "int64", "text": "str", "reason": "str", "file": "str", "line": "Int64",
    },
    "unparsed": {
        "trace": "str", "where": "str", "conn": "str", "seq": "Int64", "file": "str", "line": "Int64", "text": "str",
        "reason": "str",
    },
    "instances": {
        "trace": "str", "instance": "str", "kind": "str", "client": "str", "client_version": "str", "config": "str",
        "transport": "str", "era": "str", "label": "str", "server": "str", "server_version": "str",
        "discovery": "str", "calls": "str", "first": "time", "last": "time", "connections": "int64",
        "messages": "int64", "broken": "Int64", "setup": "str",
    },
    "statements": {
        **_WHERE, **_SAID, "seq": "Int64", "part": "Int64", **_STATED, "name": "str", "declares": "str",
        "implements": "str", "only": "boolean", "when": "str", "settings": "str", "status": "str", "n": "Int64",
        "worked": "Int64", "refused": "Int64", "date": "str", "source": "str", "commit": "str", "file": "str",
        "lines": "str", "text": "str",
    },
    "contradictions": {
        "client": "str", "party": "str", "path": "str", "what": "str", "tier": "str", "claimed": "str",
        "claimed_version": "str", "claimed_date": "str", "when": "str", "source": "str", "citation": "str",
        "against": "str", "found": "str", "found_version": "str", "found_date": "str", "instances": "int64",
        "agree": "int64", "reason": "str", "why": "str", "evidence": "str",
    },
    "variance": {
        "client": "str", "path": "str", "factor": "str", "name": "str", "a": "str", "b": "str", "state_a": "str",
        "state_b": "str", "contexts": "int64", "same": "int64", "given": "str", "evidence_a": "str",
        "evidence_b": "str",
    },
    "promises": {
        "client": "str", "client_version": "str", "path": "str", "kind": "str", "by": "str", "other": "str",
        "rule": "str", "instances": "int64", "of": "int64", "configurations": "int64", "n": "int64", "evidence": "str",
    },
}  # fmt: skip
"""Table -> column -> dtype word."""
