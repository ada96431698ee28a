"""Marks of a capture on its channels: the table ``channels`` and what a timeline is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcplab import channels
from mcplab.channels import Marks
from mcplab.frames.declared import capabilities_text
from mcplab.frames.exchange import Exchange
from mcplab.frames.links import Link
from mcplab.frames.table import build, empty
from mcplab.frames.wire import Wire, event_text
from mcplab.jsontext import get
from mcplab.model import CHANNELS


def marks(wire: Wire, found: dict[str, Link], ts: np.ndarray) -> Marks:
    """Messages (each part of a batch) and the other events that have a channel."""
    rows: dict[int, list[int]] = {}
    for n, row in enumerate(wire.rows):
        rows.setdefault(row.event, []).append(n)
    seq: list[int] = []
    at: list[int] = []
    instance: list[str] = []
    channel: list[str] = []
    activity: list[str] = []
    for number, event in enumerate(wire.record.events):
        place = wire.channel_of[number]
        if place is None:
            continue
        mine = rows.get(number)
        shown = [wire.activity[n] for n in mine] if mine else [wire.activity_of[number]]
        for one in shown:
            seq.append(event.seq)
            at.append(number)
            instance.append(found[wire.conns[number]].instance)
            channel.append(place)
            activity.append(one)
    return Marks(seq, ts[at] if at else ts[:0], instance, channel, activity)


HTTP_ROWS = (channels.GET, channels.LISTEN, channels.POST_SSE, channels.POST_JSON)
"""Channels that every HTTP instance has a row for, seen or not."""


def channel_table(wire: Wire, name: str, found: dict[str, Link]) -> pd.DataFrame:
    """One row an instance and channel: state and why, and messages counted by their activity.

    ``request`` to ``error`` count messages and add up to the channel's rows in ``messages``; ``failures`` counts
    refusals and unreadable text that carried none.
    """
    columns: dict[str, list[Any]] = {}
    for instance in dict.fromkeys(link.instance for link in found.values()):
        mine = [link for link in found.values() if link.instance == instance]
        conns = {link.name for link in mine}
        seen = {place for n, place in enumerate(wire.channel_of) if place is not None and wire.conns[n] in conns}
        due = set(HTTP_ROWS) if wire.transport == "http" else ({channels.STDIO} if wire.transport == "stdio" else set())
        for channel in (place for place in CHANNELS if place in seen | due):
            state, why = _state(wire, mine, conns, channel, observed=channel in seen)
            row = {
                "trace": name, "instance": instance, "channel": channel, "state": state, "why": why,
                **_counts(wire, conns, channel),
            }  # fmt: skip
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
    return build("channels", columns) if columns else empty("channels")


def _counts(wire: Wire, conns: set[str], channel: str) -> dict[str, Any]:
    counts: dict[str, int] = dict.fromkeys(("request", "response", "notification", "ping", "error", "failures"), 0)
    error: str | None = None
    status: int | None = None
    carried = {row.event for row in wire.rows}
    for n, row in enumerate(wire.rows):
        if wire.channel_of[row.event] == channel and wire.conns[row.event] in conns:
            activity = wire.activity[n]
            counts["error" if activity == "disabled" else activity] += 1
    last = {row.event: n for n, row in enumerate(wire.rows)}
    for number, event in enumerate(wire.record.events):
        if wire.channel_of[number] != channel or wire.conns[number] not in conns:
            continue
        http = event.http
        if event.dir != "c2s" and hasattr(http, "status") and isinstance(http.status, int):  # type: ignore[union-attr]
            status = http.status  # type: ignore[union-attr]
        if number in carried:
            n = last[number]
            if wire.kind[n] == "error":
                text = wire.rows[n].body.error
                message, _ = get(bytes(text).decode("utf-8", "replace"), "message")  # type: ignore[arg-type]
                code, _ = get(bytes(text).decode("utf-8", "replace"), "code")  # type: ignore[arg-type]
                error = " ".join(part for part in (code, message) if part)
            elif wire.activity[n] == "error":
                error = f"HTTP {status}" if channels.refused(status) else "no JSON-RPC message"
        elif wire.activity_of[number] in ("error", "disabled"):
            counts["failures"] += 1
            error = f"HTTP {status}" if event.kind != "unparsed" else "no JSON-RPC: " + event_text(event)[:80]
    return {**counts, "last_error": error, "last_status": status}


def _state(wire: Wire, mine: list[Link], conns: set[str], channel: str, *, observed: bool) -> tuple[str, str | None]:
    eras = {era for link in mine for era, _ in link.agreed}
    if channel == channels.LISTEN and not observed:
        if eras == {"legacy"}:
            return "unavailable", "legacy protocol"
        why = _listens_to_nothing(wire, conns) if eras == {"modern"} else None
        return ("disabled", why) if why else ("not observed", None)
    if channel == channels.GET and not observed and eras == {"modern"}:
        return "unavailable", "modern protocol has no GET stream"
    if not observed:
        return "not observed", None
    if channel in (channels.STDIO, channels.UNKNOWN):
        ends = [link.closed for link in mine]
        return ("closed", None) if ends and all(ends) else ("open", None)
    exchanges = [x for x in wire.exchanges if x.channel == channel and x.conn in conns]
    last = exchanges[-1] if exchanges else None
    if last is None:
        return "open", None
    if last.method == "GET" and last.status == 405:
        return "disabled", "HTTP 405"
    if channels.refused(last.status):
        return "closed", f"HTTP {last.status}"
    return ("closed", None) if all(ended(wire, x) is True for x in exchanges) else ("open", None)


def ended(wire: Wire, exchange: Exchange) -> bool | None:
    """Did this exchange end within the capture? None where a stream's end was not recorded."""
    if exchange.ended:
        return True
    if not exchange.answered:
        return False
    if not exchange.streams:
        return True
    if exchange.method == "POST" and not exchange.listens:
        # a POST's stream ends with the answer to what was posted (2025-11-25 basic/transports)
        asked = [
            n
            for n, row in enumerate(wire.rows)
            if wire.exchange_of[row.event] is exchange and wire.kind[n] == "request"
        ]
        if asked and all(n in wire.answer for n in asked):
            return True
    return None


def _listens_to_nothing(wire: Wire, conns: set[str]) -> str | None:
    """Why nobody would listen: the server's discover result offers neither list changes nor subscriptions."""
    told = None
    for n, kind in enumerate(wire.kind):
        if kind == "response" and wire.method[n] == "server/discover" and wire.conns[wire.rows[n].event] in conns:
            told = capabilities_text(wire.rows[n], "discover_result")[0]
    if told is None:
        return None
    offered = [
        ("tools", "listChanged"),
        ("prompts", "listChanged"),
        ("resources", "listChanged"),
        ("resources", "subscribe"),
    ]
    if any(get(told, *path)[0] == "true" for path in offered):
        return None
    return "the server advertises neither list changes nor subscriptions"
