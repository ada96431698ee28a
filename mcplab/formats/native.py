"""mcplab's own trace file, version 1: JSON Lines, a header and then one event a line (docs/trace-format.md)."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats.source import Source
from mcplab.model import FORMAT_NAME, FORMAT_VERSION, Event, Record, TraceError, Unread

NAME = "mcplab"
TITLE = "mcplab trace, version 1"

KINDS = ("message", "http", "sse", "open", "close", "stderr", "unparsed")


class _Known(Event, frozen=True, omit_defaults=True, gc=False):
    """An event with the words of version 1 only: Literal makes every event share the same few strings."""

    kind: Literal["message", "http", "sse", "open", "close", "stderr", "unparsed"]
    dir: Literal["c2s", "s2c"] | msgspec.UnsetType = UNSET


_known = msgspec.json.Decoder(_Known)
_TEXT_LIMIT = 2000  # of a line quoted in `unparsed`


def sniff(data: bytes) -> bool:
    """Is the first line that holds anything a header, or an event, of this format?"""
    line = data[:65536].lstrip().split(b"\n", 1)[0]
    try:
        first = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        # a first line that is damaged or longer than what was looked at: the format's name decides
        return b'"' + FORMAT_NAME.encode() + b'"' in line[:400] and b'"header"' in line[:400]
    return isinstance(first, dict) and (
        (first.get("kind") == "header" and first.get("format") == FORMAT_NAME)
        or (first.get("kind") in KINDS and "seq" in first and "conn" in first)
    )


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read a version 1 trace. What is no event goes to ``unread`` with its line, and reading goes on.

    Raises ``TraceError`` for a version that is not known and for a file without any event.
    """
    lines = source.data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    header: dict[str, Any] = {}
    header_line = b""
    notes: list[str] = []
    unread: list[Unread] = []
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    found = _header(lines[first]) if lines else None
    if found is not None:
        header, header_line = found, lines[first]
        version = header.get("version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise TraceError(
                f"{source.file}, line {first + 1}: trace format version {version!r}; this mcplab reads {FORMAT_VERSION}"
            )
        start = first + 1
    else:
        start = first
        notes.append("no header: client, transport and configuration are unknown")
    events, kept, linenos = _events(source, lines, start, unread)
    if not events and not header and unread:
        raise TraceError(f"{source.file}, line {unread[0].line}: {unread[0].reason}; no event could be read")
    if any(event.seq < 0 for event in events) or any(a.seq >= b.seq for a, b in zip(events, events[1:], strict=False)):
        events = [msgspec.structs.replace(event, seq=n) for n, event in enumerate(events)]
        kept = [b""] * len(events)
        notes.append("seq was missing or did not grow: events are numbered by their line")
    return Record(header, events, unread, NAME, notes, source.name, header_line, kept, linenos, (source.file,))


def _header(line: bytes) -> dict[str, Any] | None:
    try:
        value = jsontext.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("kind") == "header" else None


def _events(
    source: Source, lines: list[bytes], start: int, unread: list[Unread]
) -> tuple[list[Event], list[bytes], array[int]]:
    events: list[Event] = []
    kept: list[bytes] = []
    linenos = array("q")
    decode = _known.decode
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of new objects, none of them garbage
    try:
        for number in range(start, len(lines)):
            line = lines[number]
            try:
                event: Event = decode(line)
            except (msgspec.DecodeError, RecursionError):
                slow = _slowly(line)
                if slow is None:
                    continue
                if isinstance(slow, str):
                    text = line[:_TEXT_LIMIT].decode("utf-8", "replace")
                    unread.append(Unread(source.file, number + 1, text, slow))
                    continue
                event = slow
            if event.kind == "message" and event.msg is UNSET:
                text = line[:_TEXT_LIMIT].decode("utf-8", "replace")
                unread.append(Unread(source.file, number + 1, text, "a message without msg"))
                continue
            if event.kind == "sse" and event.sse is UNSET:
                event, line = _mark(event, line)
            events.append(event)
            kept.append(line)
            linenos.append(number + 1)
    finally:
        if collecting:
            gc.enable()
    return events, kept, linenos


def _mark(event: Event, line: bytes) -> tuple[Event, bytes]:
    """Some recorders mark the ends of a stream as ``sse`` lines without an SSE event: they are an open or a close."""
    if event.raw == "stream opened":
        return msgspec.structs.replace(event, kind="open", raw=UNSET), b""
    if event.raw == "stream closed by client":
        return msgspec.structs.replace(event, kind="close", raw=UNSET, reason=event.raw, by="client"), b""
    return event, line


def _slowly(line: bytes) -> Event | str | None:
    """An event that the fast decoder refused (a word of a later version, a lone surrogate), or why it is none."""
    text = line.decode("utf-8", "surrogateescape")
    if not text.strip():
        return None
    try:
        value = jsontext.loads(text)
    except RecursionError:
        return "nested too deeply to be read"
    except ValueError as error:
        return f"no JSON: {error}"
    if not isinstance(value, dict):
        return "a JSON value, but no event object"
    if value.get("kind") == "header":
        return "a second header: one file holds one capture"
    if "msg" in value:
        message, _ = jsontext.get(text, "msg")
        value["msg"] = msgspec.Raw((message or "").encode("utf-8", "surrogateescape"))
    if "seq" in value and (isinstance(value["seq"], bool) or not isinstance(value["seq"], int)):
        return "seq is no integer"
    try:
        return msgspec.convert(value, Event)
    except msgspec.ValidationError as error:
        return f"no event: {error}"


def encode(event: Event) -> bytes:
    """One event as a line of version 1, its message spliced in as it is.

    A line break between a message's tokens becomes a space: JSON Lines has no other way to hold it.
    """
    if event.msg is not UNSET and (b"\n" in bytes(event.msg) or b"\r" in bytes(event.msg)):
        flat = bytes(event.msg).replace(b"\r", b" ").replace(b"\n", b" ")
        event = msgspec.structs.replace(event, msg=msgspec.Raw(flat))
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:  # a lone surrogate: json escapes it, msgspec will not
        fields = {k: v for k, v in msgspec.to_builtins(_without(event)).items()}
        text = jsontext.dumps(fields)
        if event.msg is not UNSET:
            text = text[:-1] + ',"msg":' + event.text + "}"
        return text.encode()


def _without(event: Event) -> Event:
    return msgspec.structs.replace(event, msg=UNSET)


def write(record: Record) -> Iterator[bytes]:
    """The record's lines, each with its line break. Lines that were read are written as they were."""
    yield (record.header_line or jsontext.dumps(header_of(record)).encode()) + b"\n"
    lines = record.lines or [b""] * len(record.events)
    for event, line in zip(record.events, lines, strict=True):
        yield (line or encode(event)) + b"\n"


def header_of(record: Record) -> dict[str, Any]:
    """The record's header with the three members that every header starts with."""
    head = {"kind": "header", "format": FORMAT_NAME, "version": FORMAT_VERSION}
    return {**head, **{key: value for key, value in record.header.items() if key not in head}}
