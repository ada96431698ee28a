"""What ``wire.Wire`` knows of a capture, for one that was walked as numbers: each fact is made when it is asked for.

Rules look closely at few messages of a big trace. For these, events, texts and exchanges come into being one by one,
and go again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Raw

from mcplab import envelope
from mcplab.envelope import Meta
from mcplab.frames.direct import INITIALIZE, KINDS, NOTIFICATION, REQUEST, Texts, Walked
from mcplab.frames.exchange import NO_HEADERS, Exchange
from mcplab.frames.wire import Row
from mcplab.model import Event, Http, Record

T = TypeVar("T")
_headers = msgspec.json.Decoder(dict[str, str])
_events = msgspec.json.Decoder(Event)
_SIDES = {ord("c"): Event("message", dir="c2s"), ord("s"): Event("message", dir="s2c"), ord("-"): Event("message")}
_CLOSE = Event("close")


class Made(Sequence[T], Generic[T]):
    """A sequence whose members are made when they are asked for."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        return self._make(number)


class Sparse:
    """As ``Wire``, made from a walk on numbers. An exchange is forgotten after its last event."""

    def __init__(self, record: Record, walked: Walked) -> None:
        self.walked = walked
        columns, shells, posts, at = walked.columns, walked.shells, walked.posts, walked.at
        self.record = record
        self._latest: tuple[int, Event] | None = None
        self._peers = list(columns.peers)
        self._closes = frozenset(columns.closes)
        self.http = posts.http
        self.transport = walked.transport if walked.transport is not None else ("http" if self.http else None)
        self.disputed: dict[int, int] = {}
        self.orphans: dict[int, str] = {}
        events, count = len(columns.seq), len(at)
        self.events: Sequence[Event] = Made(events, self._event)
        self.texts = Texts(columns)
        self.first_row = _plain(np.searchsorted(at, np.arange(events + 1)))
        kinds, sent, saying, where = map(_plain, (shells.kind, walked.sent, walked.walk.saying, at))
        self._methods_of, self._ids_of, self._reply = map(_plain, (shells.method, shells.id, walked.walk.reply))
        self._place, self._conn = _plain(posts.event), _plain(posts.conn)
        self.rows = Made(count, lambda row: Row(where[row], None, Raw(self.texts[row])))
        self.kind = Made(count, lambda row: KINDS[kinds[row]])
        self.sender = Made(count, lambda row: "client" if sent[row] else "server")
        self._methods: list[Any] = [None, *list(shells.methods)[1:]]
        self._ids: list[bytes] = list(shells.ids)
        self._said: list[tuple[str, str | None]] = list(walked.walk.said)
        reply = self._reply
        self.method = Made(count, self._method)
        self.id = Made(count, self._id)
        self.era = Made(count, lambda row: self._said[saying[row]][0])
        self.version = Made(count, lambda row: self._said[saying[row]][1])
        self.reply_to = Made(count, lambda row: None if reply[row] < 0 else reply[row])
        answers = np.flatnonzero(walked.walk.reply >= 0)[::-1]
        self.first_answer = np.full(count, -1)
        self.first_answer[walked.walk.reply[answers]] = answers  # of several the last one written stays: the earliest
        self.answer, self.meta = _Answers(self.first_answer), _Metas(walked)
        self._names = list(posts.conns)
        self.conns = Made(events, lambda number: self._names[self._conn[number]])
        self.exchange_of = Made(events, self._exchange)
        self.open: dict[int, Exchange] = {}
        self._heads: dict[int, dict[str, str]] = {}
        self._facts: dict[int, Http] = {}
        self._bounds()

    def _bounds(self) -> None:
        """Of each exchange its events, one exchange after the other."""
        inside = np.flatnonzero(self.walked.posts.event >= 0)
        place = self.walked.posts.event[inside]
        self._order = _plain(inside[np.argsort(place, kind="stable")])
        starts = np.zeros(int(place.max(initial=-1)) + 2, dtype="int64")
        np.cumsum(np.bincount(place, minlength=len(starts) - 1), out=starts[1:])
        self._starts = _plain(starts)

    def openings(self) -> Iterator[int]:
        """Rows of requests of the client that begin something: each initialize, and all of the modern era."""
        walked = self.walked
        modern = np.array([era == "modern" for era, _ in self._said], dtype=bool)[walked.walk.saying]
        found = (walked.shells.kind == REQUEST) & walked.sent & ((walked.shells.method == INITIALIZE) | modern)
        return iter(np.flatnonzero(found).tolist())

    def events_of(self, place: int) -> Sequence[int]:
        """The events of an exchange."""
        return self._order[self._starts[place] : self._starts[place + 1]]

    def lengths(self) -> np.ndarray:
        """How many events each exchange has."""
        return np.diff(self._starts)

    def headers(self, fact: int) -> dict[str, str]:
        """The headers of a set of HTTP facts; always the same object."""
        found = self._heads.get(fact)
        if found is None:
            text = self.walked.columns.facts[fact]
            found = self._heads[fact] = NO_HEADERS if text is None or text[3] is UNSET else _headers.decode(text[3])
        return found

    def exchange(self, place: int) -> Exchange:
        """An exchange as ``Wire`` gathers it, as far as rules ask for it."""
        columns, posts = self.walked.columns, self.walked.posts
        numbers = self.events_of(place)
        found = Exchange(self._peers[columns.peer[numbers[0]]], str(columns.exchange[numbers[0]]), numbers[0])
        for number in numbers:
            place_of = columns.fact[number]
            facts = self._facts.get(place_of)
            if facts is None:
                method, path, status, head = columns.facts[place_of] or (UNSET, UNSET, UNSET, UNSET)
                headers = UNSET if head is UNSET else self.headers(place_of)
                facts = self._facts[place_of] = Http(method=method, path=path, status=status, headers=headers)
            found.see(number, _CLOSE if number in self._closes else _SIDES[columns.dir[number]], facts)
        found.initializes = bool(posts.initializes[place])
        found.channel = posts.channels[posts.channel[place]]
        found.conn = self._names[self._conn[numbers[0]]]
        return found

    def _exchange(self, number: int) -> Exchange | None:
        place = self._place[number] if self.walked.posts.http else -1
        if place < 0:
            return None
        found = self.open.get(place)
        if found is None:
            found = self.open[place] = self.exchange(place)
        if number == found.last:
            del self.open[place]
        return found

    def _event(self, number: int) -> Event:
        latest = self._latest
        if latest is None or latest[0] != number:
            latest = self._latest = number, _events.decode(self.record.lines[number])
        return latest[1]

    def _method(self, row: int) -> str | None:
        reply = self._reply[row]
        return self._methods[self._methods_of[row if reply < 0 else reply]]

    def _id(self, row: int) -> str | None:
        code = self._ids_of[row]
        return None if code == 0 else str(self._ids[code], "utf-8", "replace")


def _plain(numbers: np.ndarray) -> array[int]:
    """The same numbers where one at a time is asked for: numpy makes an object of its own for each."""
    return array("i", numbers.astype("int32").tobytes())


class _Answers:
    """Request row -> its first answer's row."""

    def __init__(self, first: np.ndarray) -> None:
        self._first = _plain(first)

    def get(self, row: int) -> int | None:
        found = self._first[row]
        return None if found < 0 else found


class _Metas:
    """Row -> what its ``_meta`` says."""

    def __init__(self, walked: Walked) -> None:
        self._inside = walked.shells.inside
        self._calls = walked.shells.kind <= NOTIFICATION

    def get(self, row: int) -> Meta | None:
        params = self._inside.get(row)
        if params is None or params.meta is UNSET or not self._calls[row]:
            return None
        return envelope.decode(params.meta, Meta)
