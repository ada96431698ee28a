"""MCP Inspector's network export (``inspector-network-SERVER-TIME.json``): HTTP exchanges with headers and bodies.

Row: id, timestamp, method, url, requestHeaders, requestBody, responseStatus, responseHeaders, responseBody (an event
stream as text), duration (ms), error, category (modelcontextprotocol/inspector, core/mcp/types.ts, FetchRequestEntry).
"""

from __future__ import annotations

import re
from typing import Any

from mcplab import jsontext
from mcplab.formats import clock, documents, http, text
from mcplab.formats.build import Builder
from mcplab.formats.har import rescue
from mcplab.formats.http import Exchange
from mcplab.formats.plain import when
from mcplab.formats.source import Source
from mcplab.model import Record, TraceError

NAME = "inspector-network"
TITLE = "MCP Inspector network export"

_FIRST = ("id", "timestamp", "method", "url", "requestHeaders", "category")
_SIGN = re.compile(r'"requestHeaders"\s*:')


def sniff(data: bytes) -> bool:
    """Is it a list of rows with ``requestHeaders`` and a ``url``?"""
    head = text.start(data, 1 << 16)
    return text.is_document(head) and _SIGN.search(head) is not None and '"url"' in head and '"log"' not in head[:200]


def _is_row(value: dict[str, Any]) -> bool:
    return isinstance(value.get("url"), str) and "requestHeaders" in value


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the rows of MCP traffic; authorization traffic (category ``auth``) is counted and left out."""
    builder = Builder(source, NAME, transport="streamable-http")
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    exchanges: list[Exchange] = []
    salvaged: list[tuple[str, int]] = []
    auth = 0
    for item in documents.items(whole, documents.path_of(whole, _is_row), _FIRST, _is_row):
        if not isinstance(item.value, dict) or not _is_row(item.value):
            builder.lost(lines[item.start], item.text, item.reason or "no row of a network export")
            salvaged.append((item.text, lines[item.start]))
        elif item.value.get("category") == "auth":
            auth += 1
        else:
            made = _exchange(item, lines)
            exchanges.append(made)
            bodies = (made.request_body or "", made.response_body or "")
            if item.text.count('\\"jsonrpc\\"') > sum(body.count('"jsonrpc"') for body in bodies):
                builder.lost(lines[item.start], item.text, "a row with a message where the export has none")
                salvaged.append((item.text, lines[item.start]))
    if auth:
        builder.note(f"{auth} exchanges of authorization are left out")
    exchanges.sort(key=lambda x: x.started if isinstance(x.started, str) else "")
    builder.note("the rows do not name their TCP connections: taken as one")
    builder.note("a stream has one time for its whole body: all but its last event have none")
    http.add(builder, exchanges, by_time=True)
    rescue(builder, salvaged)
    if not builder.events and auth:
        raise TraceError(f"{source.file}: {auth} exchanges, all of them authorization: no MCP traffic in it")
    return builder.record()


def _exchange(item: documents.Item, lines: documents.Lines) -> Exchange:
    row = item.value
    status = row.get("responseStatus")
    known = isinstance(status, int) and not isinstance(status, bool)
    started = when(row.get("timestamp"))
    body, answer = (_body(item, name) for name in ("requestBody", "responseBody"))
    at = {name: lines[item.start + max(0, item.text.find(f'"{name}"'))] for name in ("requestBody", "responseBody")}
    error = str(row.get("error") or "")
    return Exchange(
        method=str(row.get("method", "")),
        url=row["url"],
        line=at["requestBody"],
        request_headers=http.pairs(row.get("requestHeaders")),
        request_body=body,
        started=started,
        quoted=True,
        status=status if known else None,
        response_headers=http.pairs(row.get("responseHeaders")),
        response_body=answer,
        response_line=at["responseBody"],
        answered=started,
        ended=clock.later(started, row.get("duration")),
        broken="" if known else f"no response{': ' + error if error else ''}",
    )


def _body(item: documents.Item, name: str) -> str | None:
    """A body as text; where it stands as JSON and not as a string of it, its own text."""
    value = item.value.get(name)
    if value is None or isinstance(value, str):
        return value
    return jsontext.get(item.text, name)[0]
