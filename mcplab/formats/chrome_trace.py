"""Writes a Chrome trace (Trace Event Format, JSON object form) for chrome://tracing and Perfetto.

A row a connection, a bar a request with its answer, a mark for everything else. Bars that overlap stand on rows of
their own: the format has bars of one row nest. A request without an answer is a bar without an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

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


def write(record: Record) -> Iterator[bytes]:
    """The document, an event a line."""
    timed = any(isinstance(event.ts, str) for event in record.events)
    conns: dict[str, int] = {}
    waiting: dict[tuple[str, str, str], tuple[float, str, str]] = {}
    rows: list[dict[str, Any]] = []
    for event in record.events:
        at = _micros(event, timed)
        if at is None:
            continue
        conn = event.conn if isinstance(event.conn, str) else "unknown"
        rows.extend(_rows(event, at, conn, conns.setdefault(conn, len(conns) + 1), waiting))
    for (conn, _, _), (at, name, message) in waiting.items():
        rows.append({"name": f"{name} (unanswered)", "ph": "B", "ts": at, "pid": 1, "tid": conns[conn],
                     "args": {"request": message}})  # fmt: skip
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


def _rows(
    event: Event, at: float, conn: str, tid: int, waiting: dict[tuple[str, str, str], tuple[float, str, str]]
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
        waiting[conn, way, head.key] = (at, head.name, text)
        return
    if head is not None and head.key is not None:
        asked = waiting.pop((conn, {"c2s": "s2c", "s2c": "c2s"}.get(way, "?"), head.key), None)
        if asked is not None:
            begun, name, request = asked
            failed = head.error is not UNSET
            args = {"outcome": "error" if failed else "result", "request": request, "response": text}
            bar = {**base, "name": name, "ph": "X", "ts": begun, "dur": max(0.0, at - begun), "args": args}
            yield {**bar, "cname": "terrible"} if failed else bar
            return
    name = (head.name if head is not None else None) or (
        "batch" if isinstance(heads, list) and len(heads) > 1 else "message"
    )
    yield {**base, "name": name, "ph": "i", "s": "t", "ts": at, "args": {"dir": way, "message": text}}
