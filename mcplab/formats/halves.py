"""Captures in several files: two of ``tee``, one a direction, and the logs of one capture side by side."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from mcplab.formats import plain
from mcplab.formats.head import Head, look
from mcplab.formats.source import Source
from mcplab.model import Event, Record, TraceError, Unread

NAME = "halves"
TITLE = "two files of one capture, one a direction"

ORDER = (
    "the order between the two halves follows from ids alone: an answer stands after its request, the rest of a half "
    "as near to its next answer as it can"
)


def read(client: Source, server: Source) -> Record:
    """What the client wrote and what the server wrote as one record on one stdio connection.

    Raises ``TraceError`` where the halves are the wrong way round, or where there is no message in either.
    """
    halves = [_half(client, "c2s"), _half(server, "s2c")]
    queues = [[_Item(half, n) for n in range(len(half.events))] for half in halves]
    if _methods(queues[1]) & {"initialize", "server/discover"} and not _methods(queues[0]) & {
        "initialize",
        "server/discover",
    }:
        raise TraceError(
            f"{server.file} holds the client's requests: "
            f"give the client's half first, then the server's ({client.file})"
        )
    merged = _merge(queues[0], queues[1])
    events = [msgspec.structs.replace(item.event, seq=n) for n, item in enumerate(merged)]
    notes = [
        ORDER,
        *dict.fromkeys(
            note for half in halves for note in half.notes if note != plain.NO_TRANSPORT and note != plain.SPLIT
        ),
    ]
    return Record(
        {"transport": "stdio"}, events, [*halves[0].unread, *halves[1].unread], NAME, notes, client.name, b"", (),
        array("q", [item.line for item in merged]), tuple(item.file for item in merged),
    )  # fmt: skip


def _half(source: Source, direction: str) -> Record:
    if not source.data.strip():
        return Record({}, [], (), NAME, [f"{source.file} is empty"], source.name)
    record = plain.parse(source, NAME, given=direction)
    return msgspec.structs.replace(record, events=[msgspec.structs.replace(e, conn="c1") for e in record.events])


class _Item:
    """An event of a half with what it asks and what it answers."""

    def __init__(self, half: Record, number: int) -> None:
        self.event: Event = half.events[number]
        self.line = half.linenos[number]
        self.file = half.files[0]
        found = look(bytes(self.event.msg)) if self.event.kind == "message" else ""  # type: ignore[arg-type]
        heads: list[Head] = found if isinstance(found, list) else []
        self.methods = {head.name for head in heads if head.name is not None}
        self.asks = [head.key for head in heads if head.method is not UNSET and head.key is not None]
        self.answers = [head.key for head in heads if head.method is UNSET and head.key not in (None, "null")]


def _methods(queue: Sequence[_Item]) -> set[str]:
    return {method for item in queue[:50] for method in item.methods}


def _merge(client: list[_Item], server: list[_Item]) -> list[_Item]:
    """Both queues in one, each in its own order."""
    queues = (client, server)
    at = [0, 0]
    asked: list[list[str]] = [[], []]  # ids each side has asked and the other has not answered
    later = [[key for item in queue for key in item.asks] for queue in queues]  # ids that a side will still ask
    order: list[_Item] = []

    def ready(side: int) -> bool:
        """May the next event of this side come now (no answer before its request, if that request ever comes)?"""
        item = queues[side][at[side]]
        return all(key in asked[1 - side] or key not in later[1 - side] for key in item.answers)

    def take(side: int) -> None:
        item = queues[side][at[side]]
        at[side] += 1
        for key in item.asks:
            asked[side].append(key)
            later[side].remove(key)
        for key in item.answers:
            if key in asked[1 - side]:
                asked[1 - side].remove(key)
        order.append(item)

    while at[0] < len(client) or at[1] < len(server):
        if at[1] == len(server):
            take(0)
        elif at[0] == len(client):
            take(1)
        elif client[at[0]].answers and ready(0):
            take(0)
        elif server[at[1]].answers and ready(1):
            take(1)
        elif server[at[1]].answers or not ready(0):
            # the client has to speak first, unless it waits itself: then the server goes on, ready or not
            take(0 if ready(0) else 1)
        else:
            take(1 if _due(server, at[1], asked[0]) else 0)
    return order


def _due(server: list[_Item], start: int, asked: Sequence[str]) -> bool:
    """Has the client asked what the server's next answer answers? Then all that stands before that answer may come."""
    for item in server[start:]:
        if item.answers:
            return all(key in asked for key in item.answers)
    return False


def merge(records: Sequence[Record], name: str = "merged") -> Record:
    """Several records of one capture (logs of several servers) as one: by time where all have it, else in turn.

    Connections that bear the same name in two files are told apart by the file.
    """
    names = [{event.conn for event in record.events if event.conn is not UNSET} for record in records]
    rows: list[tuple[str, int, int, Event, int, str]] = []
    timed = all(isinstance(event.ts, str) for record in records for event in record.events)
    for number, record in enumerate(records):
        shared = {conn for other, found in enumerate(names) if other != number for conn in found}
        for n, event in enumerate(record.events):
            if event.conn is not UNSET and event.conn in shared:
                event = msgspec.structs.replace(event, conn=f"{record.name}:{event.conn}")
            line = record.linenos[n] if len(record.linenos) else 0
            file = (
                record.files[n]
                if len(record.files) == len(record.events)
                else record.files[0]
                if record.files
                else record.name
            )
            rows.append((event.ts if timed and isinstance(event.ts, str) else "", number, n, event, line, file))
    rows.sort(key=lambda row: row[:3])
    events = [msgspec.structs.replace(row[3], seq=n) for n, row in enumerate(rows)]
    transports = {record.header.get("transport") for record in records}
    header = {"transport": transports.pop()} if len(transports) == 1 and None not in transports else {}
    unread: list[Unread] = [each for record in records for each in record.unread]
    notes = [
        f"{len(records)} files as one capture, ordered by {'their times' if timed else 'file: not all have times'}",
        *dict.fromkeys(note for record in records for note in record.notes),
    ]
    formats = dict.fromkeys(record.format for record in records)
    return Record(
        header, events, unread, "+".join(formats), notes, name, b"", (), array("q", [row[4] for row in rows]),
        tuple(row[5] for row in rows),
    )  # fmt: skip
