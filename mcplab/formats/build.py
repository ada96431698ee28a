"""The record under construction that every reader fills: events in order, what could not be read, what is not known."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Container, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcplab.formats import scan
from mcplab.formats.direction import NOTE, Dir, Directions
from mcplab.formats.head import Head, look
from mcplab.formats.source import Source
from mcplab.model import Event, Http, Record, Sse, TraceError, Unread

QUOTED = 2000
"""So much of a text that could not be read is quoted."""

NO_CLOCK = "no times: the source has no clock"
NO_HTTP = "no transport facts: HTTP methods, status and headers, if there were any, are not in this source"
NO_TRANSPORT = "the source does not name its transport, so no channel can be told"


class Builder:
    """Collects what a reader finds. Events are numbered when the record is made, so they may be reordered before."""

    def __init__(self, source: Source, name: str, *, transport: str | None = None, infer: bool = False) -> None:
        self.source = source
        self.name = name
        self.header: dict[str, Any] = {"transport": transport} if transport else {}
        self.events: list[Event] = []
        self.lines = array("q")
        self.unread: list[Unread] = []
        self.notes: list[str] = []
        self.infer = infer
        self._directions: dict[str, Directions] = {}
        self._lost: set[str] = set()

    def directions(self, conn: str) -> Directions:
        """What is known of the requests that wait on a connection."""
        return self._directions.setdefault(conn, Directions())

    def add(self, kind: str, line: int, **fields: Any) -> None:
        """An event of any kind; ``raw`` may hold undecodable bytes as surrogates and is then stored as ``raw_b64``."""
        raw = fields.get("raw", UNSET)
        if isinstance(raw, str):
            try:
                raw.encode()
            except UnicodeEncodeError:
                del fields["raw"]
                fields["raw_b64"] = base64.b64encode(
                    raw.encode("utf-8", "surrogatepass" if _pairs(raw) else "surrogateescape")
                ).decode()
        self.events.append(Event(kind=kind, **fields))
        self.lines.append(line)

    def message(
        self,
        text: str | bytes,
        line: int,
        *,
        conn: str | UnsetType = "c1",
        dir: Dir = UNSET,
        ts: str | UnsetType | None = UNSET,
        http: Http | UnsetType = UNSET,
        sse: Sse | UnsetType = UNSET,
        heads: Sequence[Head] | None = None,
    ) -> bool:
        """Text that stands where a message belongs: a ``message`` event, or ``unparsed`` (False) where it is none.

        With ``infer`` a missing direction is inferred (``direction``).
        """
        body = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        found = heads if heads is not None else look(body)
        state = self.directions(conn if isinstance(conn, str) else "")
        if isinstance(found, str):
            shown = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
            if dir is UNSET and self.infer:
                dir = state.answer(shown)
            self.add("unparsed", line, ts=ts, conn=conn, dir=dir, raw=shown, reason=found, http=http, sse=sse)
            return False
        if dir is UNSET and self.infer:
            self.note(NOTE)
            dir = state.of(found)
        else:
            state.note(found, dir)
        self.events.append(Event(kind="message", ts=ts, conn=conn, dir=dir, msg=Raw(body), http=http, sse=sse))
        self.lines.append(line)
        return True

    def lost(self, line: int, text: str | bytes, reason: str) -> None:
        """A place of the file that could not be turned into an event."""
        if isinstance(text, bytes):
            text = text[: QUOTED * 4].decode("utf-8", "replace")
        shown = text[:QUOTED].encode("utf-8", "replace").decode()
        self.unread.append(Unread(self.source.file, line, shown, reason))

    def rescue(
        self,
        text: str,
        line: int,
        *,
        conn: str | UnsetType = "c1",
        ts: Any = UNSET,
        known: Container[str] = (),
        dir: Dir = UNSET,
    ) -> int:
        """Messages that are whole in a damaged stretch of the file, but for the ``known`` ones; without ``dir`` their
        direction is inferred. How many there were."""
        count = seen = 0
        at = line
        for start, body, heads in scan.rescue(text):
            at, seen = at + text.count("\n", seen, start), start
            if body in known:
                continue
            state = self.directions(conn if isinstance(conn, str) else "")
            self.message(body, at, conn=conn, ts=ts, dir=state.of(heads) if dir is UNSET else dir, heads=heads)
            count += 1
        if count:
            self.note(
                "whole messages out of damaged places are kept; who sent them is inferred, other facts of them are lost"
            )
        return count

    def note(self, text: str) -> None:
        """Something that this source cannot tell; said once."""
        if text not in self._lost:
            self._lost.add(text)
            self.notes.append(text)

    @property
    def messages(self) -> int:
        """How many messages were found."""
        return sum(event.kind == "message" for event in self.events)

    def record(self, *, need: str = "") -> Record:
        """The record, events numbered in order. A source without any event raises ``TraceError`` with ``need``."""
        if not self.events:
            where = f", line {self.unread[0].line}: {self.unread[0].reason}" if self.unread else ""
            raise TraceError(f"{self.source.file}{where or ': nothing in it'}; {need or 'no event could be read'}")
        if not self.messages:
            self.note("no protocol message in this source: only what the log says around them")
        events = [msgspec.structs.replace(event, seq=number) for number, event in enumerate(self.events)]
        notes = [*self.source.notes, *self.notes]
        return Record(
            self.header, events, self.unread, self.name, notes, self.source.name, b"", (), self.lines,
            (self.source.file,),
        )  # fmt: skip


def _pairs(text: str) -> bool:
    """Does it hold surrogates that do not stand for undecodable bytes?"""
    return any("\ud800" <= c <= "\udfff" and not "\udc80" <= c <= "\udcff" for c in text)
