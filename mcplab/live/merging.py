"""Several files of one capture as one trace: a client that started its server more than once, or two servers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from mcplab.model import Event, Record, TraceError
from mcplab.traces import Trace


def merged(traces: Sequence[Trace], *, name: str | None = None, **header: Any) -> Trace:
    """The traces as one, in the order of their clocks; connections (and HTTP exchanges) stay apart.

    The order within a trace stays what it is. Between two it is the monotonic clock's, which all processes of one
    machine share, or else the clock's on the wall. ``header`` joins the first trace's header.

    Raises:
        TraceError: there is no trace: no client came.
    """
    if not traces:
        raise TraceError("no trace: no client came; is it configured for the probe, and was it started?")
    steady = all(event.mono is not UNSET for trace in traces for event in trace)
    queues = [_placed(trace, n, steady) for n, trace in enumerate(traces)]
    conns: dict[tuple[int, Any], str] = {}
    exchanges: dict[tuple[int, Any], str] = {}
    events = []
    for seq, (_, n, event) in enumerate(heapq.merge(*queues, key=lambda one: one[:2])):
        facts: dict[str, Any] = {"seq": seq}
        if event.conn is not UNSET:
            facts["conn"] = conns.setdefault((n, event.conn), f"c{len(conns) + 1}")
        if event.http is not UNSET and event.http.exchange is not UNSET:
            exchange = exchanges.setdefault((n, event.http.exchange), f"x{len(exchanges) + 1}")
            facts["http"] = msgspec.structs.replace(event.http, exchange=exchange)
        events.append(msgspec.structs.replace(event, **facts))
    places = list(dict.fromkeys(itertools.chain(*(trace.header.get("redacted", []) for trace in traces))))
    told = {**traces[0].header, **({"redacted": places} if places else {}), **header}
    unread = [line for trace in traces for line in trace.record.unread]
    notes = list(dict.fromkeys(note for trace in traces for note in trace.record.notes))
    return Trace(Record(told, tuple(events), unread, notes=notes, name=name or traces[0].name))


def _placed(trace: Trace, n: int, steady: bool) -> Iterator[tuple[Any, int, Event]]:
    """Events with where they belong: never before the one ahead of them in their own trace."""
    latest: Any = None
    for event in trace:
        at: Any = event.mono if steady else event.ts if isinstance(event.ts, str) else ""
        latest = at if latest is None else max(latest, at)
        yield latest, n, event
