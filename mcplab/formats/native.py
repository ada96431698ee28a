"""mcplab's own trace file, version 1: JSON Lines, a header and then one event a line (docs/trace-format.md)."""

from __future__ import annotations

import gc
import json
import operator
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import columns, scan
from mcplab.formats.source import Source
from mcplab.lines import encode, head_of
from mcplab.model import FORMAT_NAME, FORMAT_VERSION, Event, Http, Record, TraceError, Unread
from mcplab.progress import bytewise

NAME = "mcplab"
TITLE = "mcplab trace, version 1"

KINDS = ("message", "http", "sse", "open", "close", "stderr", "unparsed")


class _KnownHttp(Http, frozen=True, omit_defaults=True, gc=False):
    """HTTP facts whose method is one of few: Literal makes all events share the words."""

    method: Literal["POST", "GET", "DELETE"] | msgspec.UnsetType = UNSET


class _Known(Event, frozen=True, omit_defaults=True, gc=False):
    """An event with the words of version 1 only."""

    kind: Literal["message", "http", "sse", "open", "close", "stderr", "unparsed"]
    dir: Literal["c2s", "s2c"] | msgspec.UnsetType = UNSET
    http: _KnownHttp | msgspec.UnsetType = UNSET


_known = msgspec.json.Decoder(_Known)
BIG = 1 << 20  # bytes of a file whose events are made only when they are asked for
_TEXT_LIMIT = 2000  # of a line quoted in `unparsed`
_CHUNK = 1 << 16  # what a decoded piece needs fits the cache
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


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
    """Read a version 1 trace. What is no event goes to ``unread`` with its line, and reading goes on; what is an event
    in spite of a fault (a time that is none, an unknown kind) is kept, and its line is named there too.

    Raises ``TraceError`` for a version that is not known and for a file without any event.
    """
    data = source.data
    notes: list[str] = list(source.notes)
    start, number = _first(data)
    end = data.find(b"\n", start)
    line = data[start : end if end >= 0 else len(data)]
    header = _header(line)
    header_line = b""
    if header is not None:
        header_line = line.rstrip(b"\r")
        version = header.get("version")
        if "version" not in header:
            notes.append(f"the header names no version: read as version {FORMAT_VERSION}")
        elif version != FORMAT_VERSION or isinstance(version, bool):
            raise TraceError(
                f"{source.file}, line {number}: trace format version {version!r}; this mcplab reads {FORMAT_VERSION}"
            )
        start, number = (end + 1 if end >= 0 else len(data)), number + 1
    else:
        notes.append("no header: client, transport and configuration are unknown")
    if header is not None and isinstance(stopped := header.get("stopped"), str):
        notes.append(f"the recorder had to stop before the end: {stopped}")
    ending = data[max(start, len(data) - 4096) :]
    found = columns.gather(data, start) if len(data) > BIG and b'"unparsed"' not in ending else None
    if found is not None:
        # nothing in it needs a second look: the event objects can wait until somebody asks for one
        where = range(number, number + len(found.seq))
        events = columns.Events(found, _Reading(source.file, data, start, number).all)
        return Record(
            header or {},
            events,
            (),
            NAME,
            notes,
            source.name,
            header_line,
            _Lines(data, where, {}),
            where,
            (source.file,),
        )
    reading = _Reading(source.file, data, start, number)
    reading.run()
    events, unread = reading.events, reading.unread
    if not events and header is None and unread:
        raise TraceError(f"{source.file}, line {unread[0].line}: {unread[0].reason}; no event could be read")
    kept: Sequence[bytes] = _Lines(data, reading.linenos, reading.rewritten)
    if not _grows(events):
        _name_repeats(reading)
        events = [msgspec.structs.replace(event, seq=n) for n, event in enumerate(events)]
        kept = [b""] * len(events)
        notes.append("seq was missing or did not grow: events are numbered by their line")
    return Record(
        header or {}, events, unread, NAME, notes, source.name, header_line, kept, reading.linenos, (source.file,)
    )


def _first(data: bytes) -> tuple[int, int]:
    """Where the first line that holds anything begins, and its number."""
    start = len(data) - len(data.lstrip(b" \t\r\n")) if data[:1] in (b" ", b"\t", b"\r", b"\n") else 0
    start = data.rfind(b"\n", 0, start) + 1
    return start, data.count(b"\n", 0, start) + 1


def _grows(events: list[Event]) -> bool:
    seqs = [event.seq for event in events]
    return not seqs or (seqs[0] >= 0 and all(map(operator.lt, seqs, seqs[1:])))


def _name_repeats(reading: _Reading) -> None:
    last = -1
    for event, line in zip(reading.events, reading.linenos, strict=True):
        if event.seq <= last and event.seq >= 0:
            reading.fault(line, f"seq {event.seq} comes after {last}: the event is kept in the order of the lines")
        last = max(last, event.seq)


class _Lines(Sequence[bytes]):
    """The text of each event's line, cut out of the file when it is asked for."""

    def __init__(self, data: bytes, linenos: Sequence[int], rewritten: dict[int, bytes]) -> None:
        self._data = data
        self._linenos = linenos
        self._rewritten = rewritten
        self._starts: array[int] | None = None

    def __len__(self) -> int:
        return len(self._linenos)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if self._starts is None:
            self._starts = array("q", [0])
            self._starts.extend(_breaks(self._data))
            self._starts.append(len(self._data) + 1)
        number = self._linenos[index]
        if number in self._rewritten:
            return self._rewritten[number]
        return self._data[self._starts[number - 1] : self._starts[number] - 1].rstrip(b"\r")


def _breaks(data: bytes) -> Iterator[int]:
    """Where each line ends; in a big file with numpy, which is several times faster."""
    if len(data) <= BIG:
        yield from (found.end() for found in re.finditer(b"\n", data))
        return
    import numpy as np

    for at in range(0, len(data), _CHUNK):
        yield from (np.flatnonzero(np.frombuffer(data[at : at + _CHUNK], "u1") == 10) + (at + 1)).tolist()


def _header(line: bytes) -> dict[str, Any] | None:
    try:
        value = jsontext.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("kind") == "header" else None


class _Reading:
    """Goes through the lines: a megabyte at once where all of it is plain, else line by line."""

    def __init__(self, file: str, data: bytes, start: int, number: int) -> None:
        self.file = file
        self.data = data
        self.view = memoryview(data)
        self.start = start
        self.number = number
        self.events: list[Event] = []
        self.linenos = array("q")
        self.unread: list[Unread] = []
        self.rewritten: dict[int, bytes] = {}
        self._shared: dict[tuple[str, ...], dict[str, str]] = {}
        self._last: dict[Any, dict[str, str]] = {}

    def all(self) -> list[Event]:
        """Read, and give the events."""
        self.run()
        return self.events

    def run(self) -> None:
        collecting = gc.isenabled()
        gc.disable()  # hundreds of thousands of new objects, none of them garbage
        try:
            data, pos = self.data, self.start
            with bytewise(len(data) - pos, columns.READING) as done:
                while pos < len(data):
                    end = data.find(b"\n", pos + _CHUNK) + 1 or len(data)
                    self._piece(pos, end)
                    done(end - pos)
                    pos = end
            self._cut()
        finally:
            if collecting:
                gc.enable()

    def _cut(self) -> None:
        """Text that is the beginning of a message, as the very last event: nobody knows whether the rest came."""
        last = self.events[-1] if self.events else None
        if last is None or last.kind != "unparsed" or last.reason is not UNSET or not isinstance(last.raw, str):
            return
        if jsontext.unfinished(last.raw):
            self.events[-1] = msgspec.structs.replace(last, reason="the capture is cut off inside this message")

    def _piece(self, pos: int, end: int) -> None:
        """Decode a piece; where something in it is odd, its halves, and the odd lines for themselves."""
        data = self.data
        lines = data.count(b"\n", pos, end) + (end == len(data) and data[-1:] != b"\n")
        if not self._at_once(pos, end, lines):
            middle = data.find(b"\n", (pos + end) // 2, end) + 1
            if lines > 2 and pos < middle < end:
                self._piece(pos, middle)
                self._piece(middle, end)
                return
            self._one_by_one(pos, end)
        self.number += lines

    def _at_once(self, pos: int, end: int, lines: int) -> bool:
        try:
            made = _known.decode_lines(self.view[pos:end])
        except (msgspec.DecodeError, RecursionError):
            return False
        if len(made) != lines or not _plain(made):
            return False
        self._share(made)
        self.events += made
        self.linenos.extend(range(self.number, self.number + lines))
        return True

    def _share(self, made: list[_Known]) -> None:
        """Let events with equal headers share one dict: they are most of what a long HTTP trace weighs."""
        shared, last, put = self._shared, self._last, msgspec.structs.force_setattr
        for event in made:
            http = event.http
            if http is UNSET or http.headers is UNSET:
                continue
            headers = http.headers
            before = last.get(http.status)
            if before != headers:
                key = tuple(headers.values())
                known = shared.get(key)
                before = known if known is not None and known == headers else shared.setdefault(key, headers)
                if before != headers:
                    before = headers
                last[http.status] = before
            put(http, "headers", before)

    def _one_by_one(self, pos: int, end: int) -> None:
        number = self.number
        while pos < end:
            stop = self.data.find(b"\n", pos, end)
            stop = end if stop < 0 else stop
            self._line(self.view[pos:stop], number)
            pos, number = stop + 1, number + 1

    def _line(self, view: memoryview, number: int) -> None:
        try:
            event: Event = _known.decode(view)
        except (msgspec.DecodeError, RecursionError):
            line = bytes(view)
            if not line.strip(b" \t\r\0"):
                self.fault(number, "an empty line" if not line.strip() else "nothing but NUL bytes", line)
                return
            found, faults = _slowly(line)
            for fault in faults:
                self.fault(number, fault, line)
            for each in found:
                self._keep(each, number, line)
            return
        self._keep(event, number, bytes(view))

    def _keep(self, event: Event, number: int, line: bytes) -> None:
        if event.kind == "message" and event.msg is UNSET:
            self.fault(number, "a message without msg", line)
            for _, body, _ in scan.rescue(line.decode("utf-8", "surrogateescape")):
                raw = msgspec.Raw(body.encode("utf-8", "surrogateescape"))
                self._keep(msgspec.structs.replace(event, msg=raw), number, line)
            return
        if event.kind == "sse" and event.sse is UNSET:
            event = self._mark(event, number)
        if isinstance(event.ts, str) and not _TIME.match(event.ts):
            self.fault(number, f"ts {event.ts[:40]!r} is no time: the event is kept without one", line)
            event = msgspec.structs.replace(event, ts=UNSET)
        if event.kind not in KINDS:
            self.fault(number, f"kind {event.kind!r} is none of version {FORMAT_VERSION}: kept as it is", line)
        self.events.append(event)
        self.linenos.append(number)

    def fault(self, number: int, reason: str, line: bytes | None = None) -> None:
        """Name a line that is not as it should be."""
        if line is None:
            line = b""
        text = line[:_TEXT_LIMIT].decode("utf-8", "replace")
        self.unread.append(Unread(self.file, number, text, reason))

    def _mark(self, event: Event, number: int) -> Event:
        """Some recorders mark the ends of a stream as ``sse`` lines without an SSE event: an open or a close."""
        if event.raw == "stream opened":
            event = msgspec.structs.replace(event, kind="open", raw=UNSET)
        elif event.raw == "stream closed by client":
            event = msgspec.structs.replace(event, kind="close", raw=UNSET, reason=event.raw, by="client")
        else:
            return event
        self.rewritten[number] = b""
        return event


def _plain(made: list[_Known]) -> bool:
    """Is there nothing in these events that needs a second look?"""
    times = [event.ts for event in made if isinstance(event.ts, str)]
    texts = "".join(times).encode("utf-8", "replace").translate(_DIGITS)
    if texts != b"0000-00-00T00:00:00.000000Z" * len(times) and not all(map(_TIME.match, times)):
        return False
    return not any(
        event.msg is UNSET and (event.kind == "message" or (event.kind == "sse" and event.sse is UNSET))
        for event in made
    )


def _slowly(line: bytes) -> tuple[list[Event], list[str]]:
    """Events of a line that the fast decoder refused (a later word, a lone surrogate, damage); and what is wrong."""
    text = line.decode("utf-8", "surrogateescape").strip("\0 \t\r")
    try:
        event, faults = _event(text, jsontext.loads(text))
        return ([] if event is None else [event]), faults
    except RecursionError:
        return [], ["nested too deeply to be read"]
    except ValueError as error:
        found, faults = [], [f"no JSON: {error}"]
    pos = 0
    while 0 <= pos < len(text):  # two lines whose line break was lost, or damage
        try:
            value, end = jsontext.value(text, pos)
        except ValueError:
            break
        if not isinstance(value, dict) or not {"kind", "msg", "seq"} & value.keys():
            break
        event, wrong = _event(text[pos:end], value)
        found += [] if event is None else [event]
        faults += wrong
        pos = text.find("{", end)
    if pos >= 0:
        more, saved = _rescued(text[pos:])
        found, faults = found + more, faults + saved
    return found, faults


def _event(text: str, value: Any) -> tuple[Event | None, list[str]]:
    if not isinstance(value, dict):
        return None, ["a JSON value, but no event object"]
    if value.get("kind") == "header":
        return None, ["a second header: read_traces takes a file of several captures apart"]
    if "msg" in value:
        message, _ = jsontext.get(text, "msg")
        value["msg"] = msgspec.Raw((message or "").encode("utf-8", "surrogateescape"))
    faults: list[str] = []
    if "seq" in value and (isinstance(value["seq"], bool) or not isinstance(value["seq"], int)):
        faults.append(f"seq {jsontext.dumps(value.pop('seq'))[:40]} is no integer: the event is kept in its place")
    elif value.get("seq") is not None and abs(value["seq"]) >= 2**63:
        faults.append("seq is too big: the event is kept in its place")
        del value["seq"]
    if "dir" in value and value["dir"] not in ("c2s", "s2c"):
        faults.append(f"dir {jsontext.dumps(value.pop('dir'))[:40]} is neither c2s nor s2c: kept without a direction")
    if value.get("kind") not in KINDS and "msg" in value:
        said = jsontext.dumps(value.get("kind"))[:40]
        faults.append(f"kind {said} is none of version {FORMAT_VERSION}: taken as a message because it has msg")
        value["kind"] = "message"
    try:
        return msgspec.convert(value, Event), faults
    except msgspec.ValidationError as error:
        first = f"no event: {error}"
    except UnicodeEncodeError:
        first = "a member with bytes that are no UTF-8"
    bare = {
        key: jsontext.printable(value[key]) if isinstance(value[key], str) else value[key]
        for key in ("kind", "seq", "conn", "dir", "msg", "ts", "raw", "reason")
        if key in value
    }
    try:  # a member that nobody needs to understand the message is wrong
        return msgspec.convert(bare, Event), [*faults, f"{first}: kept without its other members"]
    except msgspec.ValidationError:
        return None, [*faults, first]


def _rescued(text: str) -> tuple[list[Event], list[str]]:
    """The messages of a line that is damaged around them, with the members that can still be read."""
    found: list[Event] = []
    for start, body, _ in scan.rescue(text):
        fields: dict[str, Any] = {"kind": "message", "msg": msgspec.Raw(body.encode("utf-8", "surrogateescape"))}
        for name, pattern in _MEMBERS:
            member = re.search(rf'"{name}"\s*:\s*{pattern}\s*[,}}]', text[max(0, start - 400) : start])
            if member is not None:
                fields[name] = int(member[1]) if name == "seq" else member[1]
        found.append(Event(**fields))
    return found, ["its message is kept, with the members that can be read"] if found else []


_MEMBERS = (("seq", r"(\d{1,15})"), ("conn", r'"([^"\\]*)"'), ("dir", r'"(c2s|s2c)"'), ("ts", r'"([0-9T:.Z-]+)"'))


def write(record: Record) -> Iterator[bytes]:
    """The record's lines, each with its line break. Lines that were read are written as they were."""
    yield (record.header_line or jsontext.dumps(head_of(record.header)).encode()) + b"\n"
    lines = record.lines or [b""] * len(record.events)
    for event, line in zip(record.events, lines, strict=True):
        yield (line or encode(event)) + b"\n"


def from_dicts(items: Sequence[Mapping[str, Any]], name: str = "trace") -> Record:
    """A record from event objects (a header first, if there is one), or from plain JSON-RPC messages as dicts.

    A ``msg`` that is ``str`` (``JsonText``) or ``bytes`` is taken as the message's own text; any other value is
    serialised. Raises ``TraceError`` for what is neither an event nor a message.
    """
    lines: list[bytes] = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, Mapping):
            raise TraceError(f"event {number} is {type(item).__name__}, not an object")
        event = dict(item)
        if "kind" not in event:
            event = {"kind": "message", "msg": item} if "msg" not in item else {"kind": "message", **item}
        event.setdefault("conn", "c1")
        try:
            lines.append(_event_text(event).encode("utf-8", "surrogatepass"))
        except (TypeError, ValueError, RecursionError) as error:
            raise TraceError(f"event {number} cannot be written as JSON: {error}") from None
    if not lines:
        raise TraceError("no events in the list, so there is no trace to read")
    if all("kind" not in item and "msg" not in item for item in items):
        from mcplab.formats import plain

        texts = [jsontext.get(line.decode("utf-8", "surrogatepass"), "msg")[0] or "" for line in lines]
        return plain.read(Source("<list>", "\n".join(texts).encode("utf-8", "surrogatepass"), name))
    return read(Source("<list>", b"\n".join(lines), name))


def _event_text(event: dict[str, Any]) -> str:
    message = event.pop("msg", UNSET)
    text = json.dumps(event, allow_nan=False, separators=(",", ":"))
    if message is UNSET:
        return text
    if isinstance(message, (bytes, bytearray, msgspec.Raw)):
        body = bytes(message).decode("utf-8", "surrogateescape")
    elif isinstance(message, str):
        body = str(message)
    else:
        body = json.dumps(message, allow_nan=False, separators=(",", ":"))
    return text[:-1] + (',"msg":' if len(text) > 2 else '"msg":') + body.replace("\r", " ").replace("\n", " ") + "}"
