"""Writes a Chrome trace (Trace Event Format, JSON object form) for chrome://tracing and Perfetto.

A row a connection, a bar a request with its answer, a mark for everything else. Bars that overlap stand on rows of
their own: the format has bars of one row nest. A request without an answer is a bar without an end. An error's
name says so: Perfetto gives colours by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats.head import look
from mcplab.model import Event, Record

NAME = "chrome-trace"
TITLE = "Chrome trace (Trace Event Format)"

LOST = (
    "events without a time, unless no event has one: then seq stands for milliseconds",
    "HTTP and SSE facts, headers, text of stderr and of what is no message beyond 200 characters",
    "batches: one mark for all elements",
    "the header, and what was unread",
)
"""What a trace loses when it is written in this form. It cannot be read back."""


class _Asked(NamedTuple):
    """A request that waits for its answer, on the row of its connection."""

    at: float
    tid: int
    name: str
    text: str


def write(record: Record, answers: Mapping[int, int] | None = None) -> Iterator[bytes]:
    """The document, an event a line.

    ``answers``: seq of an answer -> seq of its request, as the tables pair them: over HTTP an answer may come on
    another peer. Without, an answer belongs to the request with its id on its own peer.
    """
    timed = any(isinstance(event.ts, str) for event in record.events)
    conns: dict[str, int] = {}
    waiting: dict[Hashable, _Asked] = {}
    rows: list[dict[str, Any]] = []
    for event in record.events:
        at = _micros(event, timed)
        if at is None:
            continue
        conn = event.conn if isinstance(event.conn, str) else "unknown"
        rows.extend(_rows(event, at, conn, conns.setdefault(conn, len(conns) + 1), waiting, answers))
    rows.extend(map(_unanswered, waiting.values()))
    rows.sort(key=lambda row: row["ts"])
    threads = _spread(rows, {tid: conn for conn, tid in conns.items()})
    names = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": jsontext.printable(record.name)}}]
    names += [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": tid, "args": {"name": name}}
        for tid, name in threads.items()
    ]  # type: ignore[misc]
    yield b'{"displayTimeUnit":"ms","traceEvents":[\n'
    for number, row in enumerate([*names, *rows]):
        yield (b"," if number else b"") + jsontext.dumps(row).encode() + b"\n"
    yield b"]}\n"


def _spread(rows: list[dict[str, Any]], conns: dict[int, str]) -> dict[int, str]:
    """Move each bar, in the order of their beginnings, to the first free row of its connection; the rows' names."""
    free: dict[int, list[tuple[int, float]]] = {tid: [(tid, float("-inf"))] for tid in conns}
    names = dict(conns)
    for row in rows:
        if row["ph"] not in ("X", "B"):
            continue
        lanes = free[row["tid"]]
        at = next((n for n, (_, end) in enumerate(lanes) if end <= row["ts"]), len(lanes))
        if at == len(lanes):
            lanes.append((len(names) + 1, float("-inf")))
            names[lanes[at][0]] = f"{conns[row['tid']]} ({at + 1})"
        lanes[at] = (lanes[at][0], row["ts"] + row["dur"] if row["ph"] == "X" else float("inf"))
        row["tid"] = lanes[at][0]
    return names


def _micros(event: Event, timed: bool) -> float | None:
    if not timed:
        return event.seq * 1000.0
    if not isinstance(event.ts, str):
        return None
    try:
        return datetime.fromisoformat(event.ts).timestamp() * 1e6
    except (ValueError, OverflowError):
        return None


def _unanswered(asked: _Asked) -> dict[str, Any]:
    return {"name": f"{asked.name} (unanswered)", "ph": "B", "ts": asked.at, "pid": 1, "tid": asked.tid,
            "args": {"request": asked.text}}  # fmt: skip


def _rows(
    event: Event, at: float, conn: str, tid: int, waiting: dict[Hashable, _Asked], answers: Mapping[int, int] | None
) -> Iterator[dict[str, Any]]:
    base = {"pid": 1, "tid": tid}
    way = event.dir if isinstance(event.dir, str) else "?"
    if event.kind != "message":
        said = event.raw if isinstance(event.raw, str) else event.reason if isinstance(event.reason, str) else ""
        yield {**base, "name": event.kind, "ph": "i", "s": "t", "ts": at, "args": {"text": said[:200]}}
        return
    heads = look(bytes(event.msg))  # type: ignore[arg-type]
    text = jsontext.printable(event.text)
    head = heads[0] if isinstance(heads, list) and len(heads) == 1 else None
    if head is not None and head.key is not None and head.name is not None:
        key = event.seq if answers is not None else (conn, way, head.key)
        if key in waiting:  # its id is used again before it has an answer
            yield _unanswered(waiting[key])
        waiting[key] = _Asked(at, tid, head.name, text)
        return
    if head is not None and head.key is not None:
        mine = (conn, {"c2s": "s2c", "s2c": "c2s"}.get(way, "?"), head.key)
        asked = waiting.pop(mine if answers is None else answers.get(event.seq), None)
        if asked is not None:
            failed = head.error is not UNSET
            yield {
                "name": f"{asked.name} (error)" if failed else asked.name, "ph": "X", "ts": asked.at,
                "dur": max(0.0, at - asked.at), "pid": 1, "tid": asked.tid,
                "args": {"outcome": "error" if failed else "result", "request": asked.text, "response": text},
            } | ({"cname": "terrible"} if failed else {})  # fmt: skip
            return
    name = (head.name if head is not None else None) or (
        "batch" if isinstance(heads, list) and len(heads) > 1 else "message"
    )
    yield {**base, "name": name, "ph": "i", "s": "t", "ts": at, "args": {"dir": way, "message": text}}
