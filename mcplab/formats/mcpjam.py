"""MCPJam's log export (``json-rpc-logs-TIME.json``, newest first) and the ``_rpcLogs`` that its CLI puts into results.

Export row: timestamp, source, serverId, serverName, direction (SEND, RECEIVE), method, payload (MCPJam/inspector,
logger view). ``_rpcLogs`` row: serverId, serverName, direction (send, receive), timestamp, message. Both sides are
MCPJam's, which is the client.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import documents, plain, scan, text, words
from mcplab.formats.build import NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.direction import NOTE
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "mcpjam"
TITLE = "MCPJam JSON-RPC log"

_FIRST = ("timestamp", "source", "serverId", "serverName", "direction", "method", "payload", "message")
_SIGN = re.compile(r'"direction"\s*:\s*"(?:send|receive)"', re.IGNORECASE)


def sniff(data: bytes) -> bool:
    """Are there rows with ``serverId`` and a direction of send or receive?"""
    head = text.start(data, 1 << 20)
    return (
        text.is_document(head) and '"serverId"' in head
        and any(word in head for word in ('"payload"', '"_rpcLogs"', '"message"'))
        and (_SIGN.search(head) is not None or '"_rpcLogs"' in head)
    )  # fmt: skip


def _is_row(value: dict[str, Any]) -> bool:
    return "direction" in value and ("payload" in value or "message" in value)


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the rows, oldest first. A connection is a server, as the log names it."""
    builder = Builder(source, NAME)
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    path = ("_rpcLogs",) if whole.lstrip()[:1] == "{" else ()
    rows: list[tuple[str, int, str, int, str, str]] = []
    others = 0
    for number, item in enumerate(documents.items(whole, path, _FIRST, _is_row)):
        if not isinstance(item.value, dict) or not _is_row(item.value):
            builder.lost(lines[item.start], item.text, item.reason or "no row of the log")
            server = re.search(r'"serverId"\s*:\s*"([^"\\]*)"', item.text)
            for at, body, _ in scan.rescue(item.text):
                rows.append(
                    (
                        rows[-1][0] if rows else "",
                        number,
                        body,
                        lines[item.start + at],
                        server[1] if server else "c1",
                        "",
                    )
                )
            continue
        value = item.value
        name = "payload" if "payload" in value else "message"
        stamp = plain.when(value.get("timestamp"))
        body = dict(jsontext.members(item.text))[name]
        if value.get("source") in ("mcp-apps", "oauth", "http"):
            others += 1
            continue
        at = lines[item.start + dict(jsontext.places(item.text))[name]]
        server = str(value.get("serverId", value.get("serverName", "c1")))
        rows.append((stamp if isinstance(stamp, str) else "", number, body, at, server, str(value["direction"])))
    _tell(builder, rows, others)
    return builder.record()


def _opening(body: str) -> bool:
    return jsontext.get(body, "method")[0] in ('"initialize"', '"server/discover"')


def _tell(builder: Builder, rows: list[tuple[str, int, str, int, str, str]], others: int) -> None:
    times = [row[0] for row in rows if row[0]]
    falls = sum((a > b) - (a < b) for a, b in pairwise(times)) > 0
    if falls or (len(times) > 1 and len(set(times)) == 1 and _opening(rows[-1][2]) and not _opening(rows[0][2])):
        rows.reverse()
        builder.note(
            "rows stand newest first in the file; they are read oldest first, rows of one time in reverse file order"
        )
    if all(row[0] for row in rows):
        rows.sort(key=lambda row: row[0])
    for ts, _, body, line, server, direction in rows:
        heads = look(body.encode("utf-8", "surrogateescape"))
        told = words.resolve(words.direction(direction), "c2s")
        if told is UNSET and isinstance(heads, list):
            told = builder.directions(server).of(heads)
            builder.note(NOTE)
        if isinstance(heads, str):
            builder.lost(line, body, heads)
        else:
            builder.message(body, line, conn=server, dir=told, ts=ts or UNSET, heads=heads)
    if others:
        builder.note(f"{others} rows of other traffic (authorization, HTTP, apps in the page) are left out")
    builder.note("messages are as MCPJam parsed and wrote them again, some redacted; not their own bytes")
    builder.note("reconnects of one server are not marked")
    builder.note(NO_TRANSPORT)
    builder.note(NO_HTTP)
