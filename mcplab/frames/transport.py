"""The tables ``http``, ``events`` and ``unparsed``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from msgspec import UNSET

from mcplab import jsontext
from mcplab.channels import stronger
from mcplab.frames.activity import ended
from mcplab.frames.table import build, times
from mcplab.frames.wire import SENDER, Wire, event_text
from mcplab.model import COLUMNS, NO_TIME


def http(wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray) -> pd.DataFrame:
    """One row an HTTP exchange. ``ended`` is missing where the end of its stream was not recorded."""
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["http"]}
    events = wire.record.events

    def moment(number: int | None) -> int | None:
        return None if number is None or ts[number] == NO_TIME else int(ts[number])

    for x in wire.exchanges:
        row = {
            "trace": name, "instance": instance[x.conn], "conn": x.conn, "peer": x.peer, "http_exchange": x.key,
            "channel": x.channel, "method": x.method, "path": _text(x.path), "status": x.status,
            "content_type": _text(x.content_type),
            "session": _text(x.request_headers.get("mcp-session-id") or x.response_headers.get("mcp-session-id")),
            "version_header": _text(x.request_headers.get("mcp-protocol-version")),
            "last_event_id": _text(x.request_headers.get("last-event-id")),
            "seq": events[x.first].seq,
            "response_seq": None if x.response is None else events[x.response].seq,
            "last_seq": events[x.last].seq,
            "ts": moment(x.first), "response_ts": moment(x.response), "last_ts": moment(x.last),
            "client_messages": x.client_messages, "server_messages": x.server_messages, "ended": ended(wire, x),
            "request_headers": jsontext.dumps(x.request_headers),
            "response_headers": jsontext.dumps(x.response_headers),
        }  # fmt: skip
        for key, value in row.items():
            columns[key].append(value)
    return build("http", columns)


def _text(value: str | None) -> str | None:
    return None if value is None else jsontext.printable(value)


def events(wire: Wire, name: str, instance: dict[str, str], ts: np.ndarray) -> pd.DataFrame:
    """One row an event. ``activity`` of a batch is its strongest part's; ``text`` is what carries no message."""
    record = wire.record
    shown: list[str] = list(wire.activity_of)
    for n, row in enumerate(wire.rows):
        shown[row.event] = stronger(shown[row.event], wire.activity[n])
    status: list[int | None] = []
    content: list[str | None] = []
    for event in record.events:
        facts = event.http
        status.append(facts.status if facts is not UNSET and facts.status is not UNSET else None)
        content.append(
            _text(facts.headers.get("content-type")) if facts is not UNSET and facts.headers is not UNSET else None
        )
    count = len(record.events)
    files = list(record.files) * count if len(record.files) == 1 else (list(record.files) or [None] * count)
    return build(
        "events",
        {
            "trace": [name] * count,
            "instance": [instance[conn] for conn in wire.conns],
            "conn": wire.conns,
            "peer": wire.peers,
            "seq": [event.seq for event in record.events],
            "ts": times(ts),
            "kind": [jsontext.printable(event.kind) for event in record.events],
            "sender": [SENDER.get(event.dir) if event.dir is not UNSET else None for event in record.events],
            "channel": wire.channel_of,
            "activity": shown,
            "http_exchange": [x.key if x is not None else None for x in wire.exchange_of],
            "http_method": [x.method if x is not None else None for x in wire.exchange_of],
            "status": status,
            "content_type": content,
            "size": [_size(event) for event in record.events],
            "text": [event_text(event) if event.msg is UNSET else None for event in record.events],
            "reason": [_text(event.reason) if isinstance(event.reason, str) else None for event in record.events],
            "file": files,
            "line": list(record.linenos) or [None] * count,
        },
    )


def _size(event: Any) -> int:
    return memoryview(event.msg).nbytes if event.msg is not UNSET else len(event_text(event).encode())


def unparsed(wire: Wire, name: str) -> pd.DataFrame:
    """What is no message: ``wire`` where a party wrote it, ``file`` where this reader could not read a line."""
    record = wire.record
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["unparsed"]}
    lines = record.linenos or [None] * len(record.events)
    many = len(record.files) > 1
    for number, event in enumerate(record.events):
        if event.kind != "unparsed":
            continue
        file = record.files[number] if many else (record.files[0] if record.files else None)
        reason = _text(event.reason) if isinstance(event.reason, str) else None
        for key, value in (
            ("trace", name), ("where", "wire"), ("conn", wire.conns[number]), ("seq", event.seq), ("file", file),
            ("line", lines[number]), ("text", event_text(event)), ("reason", reason or "no JSON-RPC message"),
        ):  # fmt: skip
            columns[key].append(value)
    for unread in record.unread:
        for key, value in (
            ("trace", name), ("where", "file"), ("conn", None), ("seq", None), ("file", unread.file),
            ("line", unread.line), ("text", unread.text), ("reason", unread.reason),
        ):  # fmt: skip
            columns[key].append(_text(value) if isinstance(value, str) else value)
    return build("unparsed", columns)
