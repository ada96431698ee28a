"""The tables ``messages`` and ``exchanges``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec import UNSET

from mcplab import envelope
from mcplab.envelope import Failure, Params
from mcplab.frames.table import build, extend, texts
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, NO_TIME
from mcplab.pairing import same


def messages(wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray) -> pd.DataFrame:
    """One row a message (a batch has one for each part), in the wire's order."""
    columns: dict[str, Any] = {key: [] for key in COLUMNS["messages"]}
    add_messages(columns, wire, name, instance, ts)
    return build("messages", {**columns, "message": texts(columns["message"])})


def add_messages(
    columns: dict[str, list[Any]], wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray
) -> None:
    """Append the messages of one capture to columns that may hold those of others; texts are raw bytes."""
    events, rows = wire.record.events, wire.rows
    at = [row.event for row in rows]
    conns = [wire.conns[n] for n in at]
    moments = ts[at] if at else ts[:0]
    status: list[int | None] = []
    content: list[str | None] = []
    exchange_key: list[str | None] = []
    http_method: list[str | None] = []
    if not wire.http:
        for column in (status, content, exchange_key, http_method):
            column += [None] * len(at)
    for n in at if wire.http else ():
        http = events[n].http
        exchange = wire.exchange_of[n]
        if http is UNSET:
            status.append(None)
            content.append(None)
        else:
            status.append(http.status if http.status is not UNSET else None)
            content.append(http.headers.get("content-type") if http.headers is not UNSET else None)
        exchange_key.append(exchange.key if exchange is not None else None)
        http_method.append(exchange.method if exchange is not None else None)
    extend(
        columns,
        {
            "trace": [name] * len(rows),
            "instance": [instance[conn] for conn in conns],
            "conn": conns,
            "peer": [wire.peers[n] for n in at],
            "seq": [events[n].seq for n in at],
            "part": [row.part for row in rows],
            "ts": moments.tolist(),
            "sender": wire.sender,
            "kind": wire.kind,
            "method": wire.method,
            "id": wire.id,
            "reply_to": [None if r is None else events[rows[r].event].seq for r in wire.reply_to],
            "reply_part": [None if r is None else rows[r].part for r in wire.reply_to],
            "latency": _latency(wire, moments).tolist(),
            "era": wire.era,
            "version": wire.version,
            "channel": [wire.channel_of[n] for n in at],
            "activity": wire.activity,
            "http_exchange": exchange_key,
            "http_method": http_method,
            "status": status,
            "content_type": content,
            "size": [memoryview(row.raw).nbytes for row in rows],
            "message": [row.raw for row in rows],
        },
    )


def _latency(wire: Wire, moments: np.ndarray) -> np.ndarray:
    """Seconds from a request to this answer; NaN for other rows and without a clock."""
    out = np.full(len(wire.rows), np.nan)
    pairs = [(n, r) for n, r in enumerate(wire.reply_to) if r is not None]
    if pairs:
        answers, asked = np.array(pairs, dtype="int64").T
        known = (moments[answers] != NO_TIME) & (moments[asked] != NO_TIME)
        out[answers[known]] = (moments[answers[known]] - moments[asked[known]]) / 1e6
    return out


def exchanges(wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray) -> pd.DataFrame:
    """One row a request, with its answer or without.

    ``waited``: seconds to the answer, or to the connection's last event. ``status``: of the HTTP response to the
    request's own POST. ``notifications``: those that name the request: its progress, its log messages on the same
    POST, its subscription. ``group``: seq of the first round of a multi-round-trip request.
    """
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["exchanges"]}
    add_exchanges(columns, wire, name, instance, ts)
    return build("exchanges", columns)


def add_exchanges(table: dict[str, list[Any]], wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray) -> None:
    """Append the exchanges of one capture to columns that may hold those of others."""
    events, rows = wire.record.events, wire.rows
    asked = [n for n, kind in enumerate(wire.kind) if kind == "request"]
    last: dict[str, int] = {}
    for n, conn in enumerate(wire.conns):
        if ts[n] != NO_TIME:
            last[conn] = max(last.get(conn, NO_TIME), int(ts[n]))
    told = _notified(wire)
    groups = rounds(wire, asked)
    cancelled = _cancelled(wire)
    columns: dict[str, list[Any]] = {
        key: [] for key in ("outcome", "waited", "code", "latency", "status", "group", "rs", "rp")
    }
    for n in asked:
        event = rows[n].event
        answer = wire.answer.get(n)
        sent = int(ts[event])
        if answer is None:
            columns["outcome"].append("cancelled" if n in cancelled else "unanswered")
            ended = last.get(wire.conns[event], NO_TIME)
        else:
            columns["outcome"].append(_outcome(wire, answer))
            ended = int(ts[rows[answer].event])
        seconds = (ended - sent) / 1e6 if sent != NO_TIME and ended != NO_TIME else None
        columns["waited"].append(seconds)
        columns["latency"].append(seconds if answer is not None else None)
        columns["code"].append(_code(wire, answer))
        exchange = wire.exchange_of[event]
        columns["status"].append(exchange.status if exchange is not None else None)
        group = groups.get(n)
        columns["group"].append(None if group is None else events[rows[group].event].seq)
        columns["rs"].append(None if answer is None else events[rows[answer].event].seq)
        columns["rp"].append(None if answer is None else rows[answer].part)
    at = [rows[n].event for n in asked]
    extend(
        table,
        {
            "trace": [name] * len(asked),
            "instance": [instance[wire.conns[n]] for n in at],
            "conn": [wire.conns[n] for n in at],
            "seq": [events[n].seq for n in at],
            "part": [rows[n].part for n in asked],
            "ts": ts[at].tolist() if at else [],
            "sender": [wire.sender[n] for n in asked],
            "method": [wire.method[n] for n in asked],
            "id": [wire.id[n] for n in asked],
            "outcome": columns["outcome"],
            "waited": columns["waited"],
            "error_code": columns["code"],
            "latency": columns["latency"],
            "channel": [wire.channel_of[n] for n in at],
            "status": columns["status"],
            "notifications": [told.get(n, 0) for n in asked],
            "group": columns["group"],
            "reply_seq": columns["rs"],
            "reply_part": columns["rp"],
            "era": [wire.era[n] for n in asked],
            "version": [wire.version[n] for n in asked],
        },
    )


def _outcome(wire: Wire, answer: int) -> str:
    if wire.kind[answer] == "error":
        return "error"
    result = wire.results.get(answer)
    if result is not None and envelope.string(result.kind) == "input_required":
        return "input_required"
    return "result"


def _code(wire: Wire, answer: int | None) -> int | None:
    if answer is None or wire.kind[answer] != "error":
        return None
    return envelope.integer(envelope.decode(wire.rows[answer].body.error, Failure).code)


def _cancelled(wire: Wire) -> set[int]:
    """Requests that their own sender cancelled."""
    open_: dict[tuple[str, str | None, str | None], int] = {}
    found: set[int] = set()
    for n, kind in enumerate(wire.kind):
        conn = wire.conns[wire.rows[n].event]
        if kind == "request":
            open_[conn, wire.sender[n], same(wire.id[n])] = n
        elif kind == "notification" and wire.method[n] == "notifications/cancelled":
            params = wire.params.get(n)
            said = envelope.text(params.request) if params is not None else None
            target = open_.get((conn, wire.sender[n], same(said)))
            if target is not None:
                found.add(target)
    return found


def _notified(wire: Wire) -> dict[int, int]:
    """Request row -> notifications of the other party that belong to it: by progress token, subscription, or POST."""
    tokens: dict[tuple[str, str | None, str], int] = {}
    posts: dict[int, int] = {}
    subscriptions: dict[tuple[str, str], int] = {}
    counted: dict[int, int] = {}
    for n, kind in enumerate(wire.kind):
        event = wire.rows[n].event
        conn = wire.conns[event]
        exchange = wire.exchange_of[event]
        meta = wire.meta.get(n)
        if kind == "request":
            if meta is not None and meta.progress is not UNSET:
                tokens[conn, wire.sender[n], same(envelope.text(meta.progress) or "")] = n
            if exchange is not None and wire.sender[n] == "client":
                posts[id(exchange)] = n
            if wire.method[n] == "subscriptions/listen":
                subscriptions[conn, same(wire.id[n] or "")] = n
        elif kind == "notification":
            target = None
            if wire.method[n] == "notifications/progress":
                params = wire.params.get(n) or _params(wire, n)
                token = same(envelope.text(params.progress) or "")
                other = "server" if wire.sender[n] == "client" else "client"
                target = tokens.get((conn, other, token))
            elif meta is not None and meta.subscription is not UNSET:
                target = subscriptions.get((conn, same(envelope.text(meta.subscription) or "")))
            if target is None and exchange is not None and wire.sender[n] == "server":
                target = posts.get(id(exchange))
            if target is not None:
                counted[target] = counted.get(target, 0) + 1
    return counted


def _params(wire: Wire, n: int) -> Params:
    body = wire.rows[n].body
    return envelope.decode(body.params, Params) if body.params is not UNSET else Params()


def rounds(wire: Wire, asked: list[int]) -> dict[int, int]:
    """Request row -> row of its first round, for requests that were answered ``input_required`` and their retries.

    A retry carries ``requestState`` or ``inputResponses``; it belongs to the open round with the same state, else to
    the latest one of the same method and name (2026-07-28 basic/patterns/mrtr).
    """
    first: dict[int, int] = {}
    waiting: list[tuple[int, str | None, tuple[Any, ...]]] = []  # row, requestState, what is asked for
    for n in asked:
        params = wire.params.get(n)
        key = _target(wire, n, params)
        if params is not None and (params.state is not UNSET or params.responses is not UNSET):
            state = envelope.text(params.state)
            match = next((w for w in reversed(waiting) if state is not None and w[1] == state and w[2] == key), None)
            match = match or next((w for w in reversed(waiting) if w[2] == key), None)
            if match is not None:
                waiting.remove(match)
                first[n] = first.setdefault(match[0], match[0])
        answer = wire.answer.get(n)
        if answer is not None and wire.kind[answer] == "response" and _outcome(wire, answer) == "input_required":
            first.setdefault(n, n)
            waiting.append((n, envelope.text(wire.results[answer].state), key))
    return first


def _target(wire: Wire, n: int, params: Params | None) -> tuple[Any, ...]:
    name = uri = None
    if params is not None:
        name, uri = envelope.text(params.name), envelope.text(params.uri)
    return wire.method[n], name, uri
