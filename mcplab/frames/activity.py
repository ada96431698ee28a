"""Marks of a capture on its channels: the table ``channels`` and what a timeline is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec import UNSET

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
    facts = _gather(wire, found)
    links: dict[str, list[Link]] = {}
    for link in found.values():
        links.setdefault(link.instance, []).append(link)
    exchanges: dict[tuple[str, str], list[Exchange]] = {}
    for exchange in wire.exchanges:
        exchanges.setdefault((found[exchange.conn].instance, exchange.channel), []).append(exchange)
    told = _discovered(wire)
    due = set(HTTP_ROWS) if wire.transport == "http" else ({channels.STDIO} if wire.transport == "stdio" else set())
    for instance, mine in links.items():
        for channel in CHANNELS:
            fact = facts.get((instance, channel))
            if fact is None and channel not in due:
                continue
            seen = exchanges.get((instance, channel), [])
            state, why = _state(wire, mine, channel, seen, told, observed=fact is not None)
            row = {
                "trace": name, "instance": instance, "channel": channel, "state": state, "why": why,
                **(fact or _Fact()).columns(),
            }  # fmt: skip
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
    return build("channels", columns) if columns else empty("channels")


class _Fact:
    """What one channel of one instance carried."""

    __slots__ = ("counts", "error", "status")

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(
            ("request", "response", "notification", "ping", "error", "failures"), 0
        )
        self.error: str | None = None
        self.status: int | None = None

    def columns(self) -> dict[str, Any]:
        return {**self.counts, "last_error": self.error, "last_status": self.status}


def _gather(wire: Wire, found: dict[str, Link]) -> dict[tuple[str, str], _Fact]:
    """(instance, channel) -> what it carried, in one walk over the events."""
    facts: dict[tuple[str, str], _Fact] = {}
    carried: dict[int, list[int]] = {}
    for n, row in enumerate(wire.rows):
        carried.setdefault(row.event, []).append(n)
    for number, event in enumerate(wire.record.events):
        channel = wire.channel_of[number]
        if channel is None:
            continue
        key = (found[wire.conns[number]].instance, channel)
        fact = facts.get(key)
        if fact is None:
            fact = facts[key] = _Fact()
        http = event.http
        if event.dir != "c2s" and http is not UNSET and isinstance(http.status, int):
            fact.status = http.status
        if number not in carried:
            if wire.activity_of[number] in ("error", "disabled"):
                fact.counts["failures"] += 1
                unread = event.kind == "unparsed"
                fact.error = "no JSON-RPC: " + event_text(event)[:80] if unread else f"HTTP {fact.status}"
            continue
        for n in carried[number]:
            activity = wire.activity[n]
            fact.counts["error" if activity == "disabled" else activity] += 1
            if wire.kind[n] == "error":
                text = bytes(wire.rows[n].body.error).decode("utf-8", "replace")  # type: ignore[arg-type]
                code, message = get(text, "code")[0], get(text, "message")[0]
                fact.error = " ".join(part for part in (code, message) if part)
            elif activity == "error":
                refused = channels.refused(fact.status)
                fact.error = f"HTTP {fact.status}" if refused else "no JSON-RPC message"
    return facts


def _state(
    wire: Wire,
    mine: list[Link],
    channel: str,
    exchanges: list[Exchange],
    told: dict[str, tuple[int, str | None]],
    *,
    observed: bool,
) -> tuple[str, str | None]:
    eras = {era for link in mine for era, _ in link.agreed}
    if channel == channels.LISTEN and not observed:
        if eras == {"legacy"}:
            return "unavailable", "legacy protocol"
        latest = max((told[link.name] for link in mine if link.name in told), default=(-1, None))[1]
        why = _listens_to_nothing(latest) if eras == {"modern"} else None
        return ("disabled", why) if why else ("not observed", None)
    if channel == channels.GET and not observed and eras == {"modern"}:
        return "unavailable", "modern protocol has no GET stream"
    if not observed:
        return "not observed", None
    if channel in (channels.STDIO, channels.UNKNOWN):
        ends = [link.closed for link in mine]
        return ("closed", None) if ends and all(ends) else ("open", None)
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
        asked = [n for n in exchange.rows if wire.kind[n] == "request"]
        if asked and all(n in wire.answer for n in asked):
            return True
    return None


def _discovered(wire: Wire) -> dict[str, tuple[int, str | None]]:
    """Connection -> (row, capabilities as text) of the latest discover result that it got."""
    return {
        wire.conns[wire.rows[n].event]: (n, capabilities_text(wire.rows[n], "discover_result")[0])
        for n, kind in enumerate(wire.kind)
        if kind == "response" and wire.method[n] == "server/discover"
    }


def _listens_to_nothing(told: str | None) -> str | None:
    """Why nobody would listen: the server's discover result offers neither list changes nor subscriptions."""
    if told is None:
        return None
    offered = ("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")
    if any(get(told, *path.split("."))[0] == "true" for path in offered):
        return None
    return "the server advertises neither list changes nor subscriptions"
