"""The table ``connections``: one row a connection; discovery and calls are those of its instance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcplab.frames.links import Link, said
from mcplab.frames.table import build
from mcplab.frames.verdicts import calls, discovery, pulse
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, NO_TIME


def connections(wire: Wire, name: str, found: dict[str, Link], ts: np.ndarray) -> pd.DataFrame:
    """One row a connection, in the order in which they were first seen."""
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["connections"]}
    add(columns, wire, name, found, ts)
    return build("connections", columns)


def add(columns: dict[str, list[Any]], wire: Wire, name: str, found: dict[str, Link], ts: np.ndarray) -> None:
    """Append the rows of one capture to columns that may hold those of others."""
    by_instance: dict[str, list[int]] = {}
    by_conn: dict[str, list[int]] = {}
    for n, row in enumerate(wire.rows):
        conn = wire.conns[row.event]
        by_conn.setdefault(conn, []).append(n)
        by_instance.setdefault(found[conn].instance, []).append(n)
    shared = {instance: (*discovery(wire, rows), calls(wire, rows)) for instance, rows in by_instance.items()}
    seen = _spans(wire, ts)
    ping = wire.record.header.get("ping")
    for link in found.values():
        how, detail, called = shared.get(link.instance, ("none", None, ""))
        client = said(link.client, "name")
        first, last = seen[link.name]
        beat = pulse(wire, link, by_conn.get(link.name, []), ts, ping)
        row = {
            "trace": name, "instance": link.instance, "conn": link.name, "transport": link.transport,
            "era": link.era, "mode": link.mode, "label": link.label,
            "offered": ", ".join(link.offers) or None, "selected": link.selected,
            "discovery": how, "discovery_detail": detail,
            "client": client or link.info_name,
            "client_from": "header" if client else ("wire" if link.info_name is not None else None),
            "client_info": link.info_name,
            "client_version": said(link.client, "version") or link.info_version,
            "server": link.server or said(_server(wire), "name"),
            "server_version": link.server_version or said(_server(wire), "version"),
            "session": link.session,
            "health": beat.health, "ping_interval": beat.interval, "ping_missed": beat.missed,
            "ping_limit": beat.limit, "ping_answered": beat.answered,
            "instructions": link.instructions, "calls": called, "complete": link.complete,
            "first": first, "last": last, "messages": link.messages, "peers": ", ".join(link.peers),
            "config": link.config, "first_seq": wire.record.events[link.first].seq,
            "last_seq": wire.record.events[link.last].seq,
        }  # fmt: skip
        for key, value in row.items():
            columns[key].append(value)


def _server(wire: Wire) -> Any:
    server = wire.record.header.get("server")
    return server if isinstance(server, dict) else None


def _spans(wire: Wire, ts: np.ndarray) -> dict[str, tuple[int | None, int | None]]:
    """Connection -> time of its first and of its last event that has one."""
    found: dict[str, tuple[int | None, int | None]] = {}
    for n, conn in enumerate(wire.conns):
        first, last = found.get(conn, (None, None))
        moment = int(ts[n])
        if moment != NO_TIME:
            first = moment if first is None else first
            last = moment
        found[conn] = (first, last)
    return found
