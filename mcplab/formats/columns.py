"""Plain lines of version 1 as columns of small numbers: what a big trace's messages table is made from.

A list of event objects costs several times what its facts weigh. Where every line is plain, the facts are taken out of
a piece of decoded lines at once, and the objects go; ``Events`` makes them again for whoever asks for one.
"""

from __future__ import annotations

import gc
import io
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcplab.model import Event, Http
from mcplab.progress import bytewise

CHUNK = 1 << 17  # what a decoded piece needs fits the cache
BLOCK = 1 << 23  # message texts are kept in blocks of about this size
COUNTED = 1 << 19  # bytes whose lines are counted at once
WAITING = 1 << 19  # bytes of HTTP facts that are turned into numbers at once
MANY = 1 << 15  # names are turned into numbers so many at once
STAMP = 27  # characters of a time as recorders write it
READING = "reading"  # what a bar says

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_STAMP = b"0000-00-00T00:00:00.000000Z\n"
_EXCHANGE = b'"exchange":"'
_headers = msgspec.json.Decoder(dict[str, str])


class _Facts(Http, frozen=True, gc=False):
    """HTTP facts with their headers as text."""

    method: Literal["POST", "GET", "DELETE"] | UnsetType = UNSET
    headers: Raw | UnsetType = UNSET  # type: ignore[assignment]


class _Line(Event, frozen=True, gc=False):
    """An event with the words of version 1 only, its HTTP facts as text: but for the exchange many have the same."""

    kind: Literal["message", "http", "sse", "open", "close", "stderr", "unparsed"]
    dir: Literal["c2s", "s2c"] | UnsetType = UNSET
    http: Raw | UnsetType = UNSET  # type: ignore[assignment]


_lines = msgspec.json.Decoder(_Line)
_facts = msgspec.json.Decoder(_Facts)


class Codes(dict[Any, int]):
    """Values -> numbers, in the order of their first sight: ``codes[value]``."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class _OtherOrderError(Exception):
    """HTTP facts do not end with their exchange, as recorders write it."""


class _Heads(Codes):
    """Texts of HTTP facts up to their exchange -> places in ``facts``; each text is decoded once."""

    def __init__(self) -> None:
        super().__init__({None: 0})
        self.facts: list[tuple[Any, ...] | None] = [None]

    def __missing__(self, key: Any) -> int:
        self.add(_facts.decode(key + _EXCHANGE + b'"}'))
        return super().__missing__(key)

    def add(self, facts: _Facts) -> int:
        """A place for facts; headers that are no object of strings raise ``msgspec.DecodeError``."""
        text: Any = UNSET
        if facts.headers is not UNSET:
            text = bytes(facts.headers)
            _headers.decode(text)
        self.facts.append((facts.method, facts.path, facts.status, text))
        return len(self.facts) - 1

    def whole(self, text: bytes) -> tuple[int, Any]:
        """Place and exchange of facts in any other order."""
        facts = _facts.decode(text)
        key = (facts.method, facts.path, facts.status, UNSET if facts.headers is UNSET else bytes(facts.headers))
        place = self.get(key)
        if place is None:
            place = self[key] = self.add(facts)
        return place, facts.exchange


class _Tails(Codes):
    """What follows ``_EXCHANGE`` -> codes of exchanges; ``_OtherOrderError`` where that is not the end of the facts."""

    def __init__(self, exchanges: Codes) -> None:
        super().__init__()
        self._exchanges = exchanges

    def __missing__(self, key: Any) -> int:
        if key[-2:] != b'"}' or b'"' in key[:-2] or b"\\" in key:
            raise _OtherOrderError
        self[key] = code = self._exchanges[msgspec.json.decode(b'"' + key[:-1], type=str)]
        return code


class Columns:
    """The facts of events, a place an event; of messages, a place a message (no batch is split here)."""

    def __init__(self) -> None:
        self.seq = array("q")
        self.stamps: list[bytes] = []  # times, STAMP characters each, a text a piece
        self.peers = Codes()
        self.peer = array("i")
        self.dir = bytearray()  # c, s, or - for none
        self._heads = _Heads()
        self.facts = self._heads.facts  # (method, path, status, text of the headers), each UNSET where missing
        self.fact = array("i")
        self.exchanges = Codes({UNSET: 0})
        self._tails = _Tails(self.exchanges)
        self.exchange = array("i")
        self.closes = array("i")  # events of kind close
        self.opens: list[tuple[int, Any]] = []  # events of kind open with their client
        self.framed = array("i")  # events that have fields of an SSE event
        self.endpoint = False  # did an SSE event name an endpoint (2024-11-05)?
        self.at = array("i")  # a message's event
        self.sizes = array("q")
        self.blocks: list[bytes] = []  # texts of the messages, one behind the other
        self.pieces: list[tuple[int, int, int, int]] = []  # (block, from, to, messages)
        self._block = io.BytesIO()
        self._texts = io.BytesIO()  # of HTTP facts, not yet numbers, a line each
        self._waiting = 0
        self._names: list[Any] = []  # of peers, not yet numbers

    def take(self, made: list[_Line]) -> bool:
        """Add events; False where one of them needs a second look."""
        try:
            text = "\n".join([event.ts for event in made]) + "\n"  # type: ignore[misc]
        except TypeError:
            return False
        if not text.isascii() or (stamps := text.encode()).translate(_DIGITS) != _STAMP * len(made):
            return False
        start = len(self.seq)
        raws = [event.msg for event in made]
        try:
            sizes = array("q", list(map(len, raws)))  # type: ignore[arg-type]
            self.at.extend(range(start, start + len(made)))
        except TypeError:  # not every event has a message
            if not self._others(made, start):
                return False
            raws = [raw for raw in raws if raw is not UNSET]
            sizes = array("q", list(map(len, raws)))  # type: ignore[arg-type]
        self._http(made)
        frames = [event.sse for event in made]
        if frames.count(UNSET) != len(frames):
            self.framed.extend(number for number, each in enumerate(frames, start) if each is not UNSET)
        self.stamps.append(stamps.replace(b"\n", b""))
        self.seq.extend(array("q", [event.seq for event in made]))
        self._names += [event.conn for event in made]
        if len(self._names) >= MANY:
            self._number()
        dirs = [event.dir for event in made]
        try:
            self.dir += "".join(dirs).encode()[::3]  # type: ignore[arg-type]
        except TypeError:
            self.dir += "".join("-" if each is UNSET else each[0] for each in dirs).encode()
        self.sizes.extend(sizes)
        if raws:
            begin = self._block.tell()
            self._block.write(b"".join(raws))  # type: ignore[arg-type]
            self.pieces.append((len(self.blocks), begin, self._block.tell(), len(raws)))
            if self._block.tell() >= BLOCK:
                self.flush()
        return True

    def _number(self) -> None:
        """Turn names of peers into numbers: Arrow finds the few different ones among many much faster."""
        import numpy as np
        import pyarrow as pa

        names, self._names = self._names, []
        try:
            found = pa.array(names, type=pa.string()).dictionary_encode()
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):  # not every event names one
            self.peer.extend(array("i", [self.peers[name] for name in names]))
            return
        known = np.array([self.peers[name] for name in found.dictionary.to_pylist()], dtype="int32")
        self.peer.frombytes(known[found.indices.to_numpy()].tobytes())

    def flush(self) -> None:
        """Close a block."""
        if self._block.tell():
            self.blocks.append(self._block.getvalue())  # no copy: what was written is a bytes object already
            self._block = io.BytesIO()

    def done(self) -> None:
        """Let go of what only reading needs."""
        self.flush()
        self._number()
        self._settle()
        self._heads.clear()
        self._tails.clear()

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
        texts: list[Any] = [event.http for event in made]
        try:
            self._texts.write(b"\n".join(texts))
        except TypeError:  # not every event has them
            self._settle()
            self._slowly([None if text is UNSET else bytes(text) for text in texts])
            return
        self._texts.write(b"\n")
        self._waiting += len(made)
        if self._texts.tell() >= WAITING:
            self._settle()

    def _settle(self) -> None:
        """Turn the texts of HTTP facts that wait into numbers, all at once where they end as recorders write them."""
        data, count = self._texts.getvalue(), self._waiting
        self._texts, self._waiting = io.BytesIO(), 0
        if not count or self._quickly(data, count):
            return
        texts = data[:-1].split(b"\n")
        if len(texts) != count:
            raise _OtherOrderError
        self._slowly(texts)

    def _quickly(self, data: bytes, count: int) -> bool:
        """Heads and tails by turns. A text with more or less than one exchange would put a head in a tail's place,
        which no tail can look like."""
        words, where = numbered(data.replace(_EXCHANGE, b"\n"))
        if len(where) != 2 * count:
            return False
        try:
            exchanges = known(words, where[1::2], self._tails)
            places = known(words, where[::2], self._heads)
        except (_OtherOrderError, msgspec.DecodeError):
            return False
        self.exchange.frombytes(exchanges)
        self.fact.frombytes(places)
        return True

    def _slowly(self, texts: Sequence[bytes | None]) -> None:
        """Texts in any order, or none."""
        for text in texts:
            place, exchange = (0, UNSET) if text is None else self._heads.whole(text)
            self.fact.append(place)
            self.exchange.append(self.exchanges[exchange])


def numbered(lines: bytes) -> tuple[list[bytes], Any]:
    """The different lines, in the order of their first sight, and of each line its place there."""
    import numpy as np
    import pyarrow as pa

    ends = np.flatnonzero(np.frombuffer(lines, "u1") == 10) + 1
    offsets = np.zeros(len(ends) + 1, dtype="int64")
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(lines)]
    found = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).dictionary_encode()
    return [line[:-1] for line in found.dictionary.to_pylist()], found.indices.to_numpy()


def known(words: list[bytes], where: Any, codes: Codes) -> bytes:
    """The numbers (int32, as bytes) that ``codes`` gives for the words at these places."""
    import numpy as np

    used = np.zeros(len(words), dtype=bool)
    used[where] = True
    made = np.zeros(len(words), dtype="int32")
    for place in np.flatnonzero(used).tolist():
        made[place] = codes[words[place]]
    return made[where].tobytes()


def gather(data: bytes, start: int) -> Columns | None:
    """The columns of all lines from ``start`` on; None where a line is not plain, or the order is not growing."""
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of new objects, none of them garbage
    try:
        with bytewise(len(data) - start, READING) as done:
            return _gather(data, start, done)
    finally:
        if collecting:
            gc.enable()


def _gather(data: bytes, start: int, done: Callable[[int], object]) -> Columns | None:
    import numpy as np

    columns, view, size = Columns(), memoryview(data), len(data)
    breaks = np.frombuffer(data, "u1")
    counted, events = start, 0
    while start < size:
        end = data.find(b"\n", start + CHUNK) + 1 or size
        try:
            made = _lines.decode_lines(view[start:end])
            if not columns.take(made):
                return None
            if end == size:
                columns.done()
        except (msgspec.DecodeError, RecursionError, OverflowError, _OtherOrderError):
            return None
        events += len(made)
        done(end - start)
        start = end
        if start - counted >= COUNTED or start == size:  # one event a line?
            lines = int(np.count_nonzero(breaks[counted:start] == 10))  # several times faster than bytes.count
            if events != lines + (start == size and data[-1:] != b"\n"):
                return None
            counted, events = start, 0
    seq = np.frombuffer(columns.seq, "int64")
    if not len(seq) or seq[0] < 0 or not (seq[1:] > seq[:-1]).all():
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
