"""MCP Inspector's protocol export (``inspector-protocol-SERVER-TIME.json``): rows with the response folded in.

Row: id, timestamp, direction, origin, message, response, duration, clientError (modelcontextprotocol/inspector,
core/mcp/types.ts, MessageEntry). The response has no time of its own: the row's time and ``duration`` (ms) give it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import clock, documents, scan, text
from mcplab.formats.build import NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.direction import NOTE, Directions
from mcplab.formats.head import look
from mcplab.formats.plain import Conns, when
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "inspector"
TITLE = "MCP Inspector protocol export"

_FIRST = ("id", "timestamp", "direction", "origin", "message", "response", "duration")
_SIGN = re.compile(r'"direction"\s*:\s*"(?:request|response|notification)"')
_OTHER = {"c2s": "s2c", "s2c": "c2s"}


def sniff(data: bytes) -> bool:
    """Is it a list of rows with Inspector's three directions and a message?"""
    head = text.start(data, 1 << 16)
    return text.is_document(head) and _SIGN.search(head) is not None and '"message"' in head and '"timestamp"' in head


def _is_row(value: dict[str, Any]) -> bool:
    return isinstance(value.get("message"), dict) and "direction" in value


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the rows; requests and responses stand in the order of their times, the rest in the order of the rows."""
    builder = Builder(source, NAME)
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    placed: list[tuple[str, int, int, str, int, str | None]] = []  # ts, row, part, text, line, direction
    rows = 0
    for item in documents.items(whole, documents.path_of(whole, _is_row), _FIRST, _is_row):
        if not isinstance(item.value, dict) or not _is_row(item.value):
            builder.lost(lines[item.start], item.text, item.reason or "no row of a protocol export")
            for part, (at, body, _) in enumerate(scan.rescue(item.text)):
                line = lines[item.start + at]
                placed.append((placed[-1][0] if placed else "", rows, part, body, line, None))
            rows += 1
            continue
        rows = _row(builder, item, lines, placed, rows)
    if _falls(placed):
        builder.note("rows stand newest first in the file; they are read oldest first")
        placed = [(*row[:1], rows - row[1], *row[2:]) for row in placed]  # type: ignore[misc]
    if all(row[0] for row in placed):
        placed.sort(key=lambda row: row[:3])
    else:
        placed.sort(key=lambda row: row[1:3])
        builder.note("not all rows have a readable time: they stand in the order of the file")
    state = Directions()
    conns = Conns(builder)
    for ts, _, _, body, line, told in placed:
        heads = look(body.encode("utf-8", "surrogateescape"))
        direction: Any = told
        if isinstance(heads, list):
            if direction is None:
                direction = state.of(heads)
                builder.note(NOTE)
            else:
                state.note(heads, direction)
        told = UNSET if direction is None else direction
        conn = conns.of(heads) if isinstance(heads, list) else conns.current
        builder.message(body, line, conn=conn, dir=told, ts=ts or UNSET)
    builder.note("a response has no time of its own: the request's time and the duration give it")
    builder.note(
        "messages are as Inspector parsed and wrote them again, not their own bytes; text that is no JSON-RPC is not "
        "in it"
    )
    builder.note(NO_TRANSPORT)
    builder.note(NO_HTTP)
    return builder.record()


def _row(builder: Builder, item: documents.Item, lines: documents.Lines, placed: list[Any], rows: int) -> int:
    value = item.value
    origin = {"client": "c2s", "server": "s2c"}.get(str(value.get("origin")))
    members = dict(jsontext.places(item.text))
    parts = dict(jsontext.members(item.text))
    stamp = when(value.get("timestamp"))
    ts = stamp if isinstance(stamp, str) else ""
    placed.append((ts, rows, 0, parts["message"], lines[item.start + members["message"]], origin))
    if "response" in parts and parts["response"][:1] == "{":
        answered = clock.later(stamp, value.get("duration"))
        told = _OTHER[origin] if origin is not None else None
        placed.append(
            (
                answered if isinstance(answered, str) else ts,
                rows,
                1,
                parts["response"],
                lines[item.start + members["response"]],
                told,
            )
        )
    known = (parts["message"], parts.get("response", ""))
    if item.text.count('"jsonrpc"') > sum(each.count('"jsonrpc"') for each in known):
        builder.lost(lines[item.start], item.text, "a row with a message where the export has none")
        for at, body, _ in scan.rescue(item.text):
            if not any(body in each for each in known):
                placed.append((ts, rows, 2, body, lines[item.start + at], None))
    if value.get("clientError"):
        builder.note(f"line {lines[item.start]}: the client refused this answer: {str(value['clientError'])[:200]}")
    return rows + 1


def _falls(placed: list[Any]) -> bool:
    """Do the times of the rows go backwards more often than forwards?"""
    times = [row[0] for row in placed if row[2] == 0 and row[0]]
    steps = [(a > b) - (a < b) for a, b in pairwise(times)]
    return sum(steps) > 0
