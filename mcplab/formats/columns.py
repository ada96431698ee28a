"""Plain lines of version 1 as columns of small numbers: what a big trace's messages table is made from.

A list of event objects costs several times what its facts weigh. Where every line is plain, the facts are taken out of
a piece of decoded lines at once, and the objects go; ``Events`` makes them again for whoever asks for one.
"""

from __future__ import annotations

import gc
import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcplab.model import Event, Http

CHUNK = 1 << 16  # what a decoded piece needs fits the cache
BLOCK = 1 << 23  # message texts are kept in blocks of about this size
STAMP = 27  # characters of a time as recorders write it

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_STAMP = b"0000-00-00T00:00:00.000000Z"
_headers = msgspec.json.Decoder(dict[str, str])


class _Facts(Http, frozen=True, gc=False):
    """HTTP facts with their headers as text: most events of a connection have the same."""

    method: Literal["POST", "GET", "DELETE"] | UnsetType = UNSET
    headers: Raw | UnsetType = UNSET  # type: ignore[assignment]


class _Line(Event, frozen=True, gc=False):
    """An event with the words of version 1 only."""

    kind: Literal["message", "http", "sse", "open", "close", "stderr", "unparsed"]
    dir: Literal["c2s", "s2c"] | UnsetType = UNSET
    http: _Facts | UnsetType = UNSET


_lines = msgspec.json.Decoder(_Line)


class Codes(dict[Any, int]):
    """Values -> numbers, in the order of their first sight: ``codes[value]``."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class FactCodes(Codes):
    """The same for HTTP facts: headers that are no object of strings raise ``msgspec.DecodeError``."""

    def __missing__(self, key: Any) -> int:
        if key is not None and key[3] is not UNSET:
            _headers.decode(key[3])
        return super().__missing__(key)


class Columns:
    """The facts of events, a place an event; of messages, a place a message (no batch is split here)."""

    def __init__(self) -> None:
        self.seq = array("q")
        self.stamps: list[str] = []  # times, STAMP characters each, a text a piece
        self.peers = Codes()
        self.peer = array("i")
        self.dir = bytearray()  # c, s, or - for none
        self.facts = FactCodes({None: 0})  # (method, path, status, text of the headers), each UNSET where missing
        self.fact = array("i")
        self.exchanges = Codes({UNSET: 0})
        self.exchange = array("i")
        self.closes = array("i")  # events of kind close
        self.opens: list[tuple[int, Any]] = []  # events of kind open with their client
        self.endpoint = False  # did an SSE event name an endpoint (2024-11-05)?
        self.at = array("i")  # a message's event
        self.sizes = array("q")
        self.blocks: list[bytes] = []  # texts of the messages, one behind the other
        self.pieces: list[tuple[int, int, int, int]] = []  # (block, from, to, messages)
        self._pending: list[bytes] = []
        self._fill = 0

    def take(self, made: list[_Line]) -> bool:
        """Add events; False where one of them needs a second look."""
        stamps = [event.ts for event in made]
        try:
            text = "".join(stamps)  # type: ignore[arg-type]
        except TypeError:
            return False
        if not text.isascii() or text.encode().translate(_DIGITS) != _STAMP * len(made):
            return False
        if set(map(len, stamps)) != {STAMP}:  # type: ignore[arg-type]
            return False
        start = len(self.seq)
        raws = [event.msg for event in made]
        try:
            joined = b"".join(raws)  # type: ignore[arg-type]
            self.at.extend(range(start, start + len(made)))
        except TypeError:  # not every event has a message
            if not self._others(made, start):
                return False
            raws = [raw for raw in raws if raw is not UNSET]
            joined = b"".join(raws)  # type: ignore[arg-type]
        self._http(made)
        self.stamps.append(text)
        self.seq.extend([event.seq for event in made])
        self.peer.extend(map(self.peers.__getitem__, [event.conn for event in made]))
        dirs = [event.dir for event in made]
        try:
            self.dir += "".join(dirs).encode()[::3]  # type: ignore[arg-type]
        except TypeError:
            self.dir += "".join("-" if each is UNSET else each[0] for each in dirs).encode()
        self.sizes.extend(map(len, raws))  # type: ignore[arg-type]
        if raws:
            self.pieces.append((len(self.blocks), self._fill, self._fill + len(joined), len(raws)))
            self._pending.append(joined)
            self._fill += len(joined)
            if self._fill >= BLOCK:
                self.flush()
        return True

    def flush(self) -> None:
        """Close a block."""
        if self._pending:
            self.blocks.append(b"".join(self._pending))
            self._pending, self._fill = [], 0

    def _others(self, made: list[_Line], start: int) -> bool:
        for number, event in enumerate(made, start):
            kind = event.kind
            if event.msg is not UNSET:
                self.at.append(number)
            elif kind == "message" or (kind == "sse" and event.sse is UNSET):
                return False
            elif kind == "sse" and event.sse is not UNSET and event.sse.event == "endpoint":
                self.endpoint = True
            if kind == "open":
                self.opens.append((number, event.client))
            elif kind == "close":
                self.closes.append(number)
        return True

    def _http(self, made: list[_Line]) -> None:
        facts: list[Any] = [event.http for event in made]
        try:
            exchanges = [http.exchange for http in facts]
        except AttributeError:  # not every event has HTTP facts
            for http in facts:
                if http is UNSET:
                    self.fact.append(0)
                    self.exchange.append(0)
                else:
                    text = UNSET if http.headers is UNSET else bytes(http.headers)
                    self.fact.append(self.facts[http.method, http.path, http.status, text])
                    self.exchange.append(self.exchanges[http.exchange])
            return
        headers: Any = [http.headers for http in facts]
        try:
            headers = list(map(bytes, headers))
        except TypeError:
            headers = [UNSET if each is UNSET else bytes(each) for each in headers]
        methods, paths = [http.method for http in facts], [http.path for http in facts]
        statuses = [http.status for http in facts]
        self.fact.extend(map(self.facts.__getitem__, zip(methods, paths, statuses, headers, strict=True)))
        self.exchange.extend(map(self.exchanges.__getitem__, exchanges))


def gather(data: bytes, start: int) -> Columns | None:
    """The columns of all lines from ``start`` on; None where a line is not plain, or the order is not growing."""
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of new objects, none of them garbage
    try:
        return _gather(data, start)
    finally:
        if collecting:
            gc.enable()


def _gather(data: bytes, start: int) -> Columns | None:
    columns, view, size = Columns(), memoryview(data), len(data)
    while start < size:
        end = data.find(b"\n", start + CHUNK) + 1 or size
        try:
            made = _lines.decode_lines(view[start:end])
            if len(made) != data.count(b"\n", start, end) + (end == size and data[-1:] != b"\n"):
                return None
            if not columns.take(made):
                return None
        except (msgspec.DecodeError, RecursionError, OverflowError):
            return None
        start = end
    columns.flush()
    seq = columns.seq
    if not seq or seq[0] < 0 or not all(map(operator.lt, seq, seq[1:])):
        return None
    return columns


class Events(Sequence[Event]):
    """The events of a file, made when one is asked for; ``columns`` holds their facts."""

    def __init__(self, columns: Columns, make: Callable[[], Sequence[Event]]) -> None:
        self.columns = columns
        self._make = make
        self._made: Sequence[Event] | None = None

    @property
    def made(self) -> Sequence[Event]:
        """All events."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self.columns.seq)

    def __getitem__(self, index: Any) -> Any:
        return self.made[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.made)

    def __eq__(self, other: object) -> bool:
        return list(self.made) == list(other) if isinstance(other, (list, tuple, Events)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.made)
