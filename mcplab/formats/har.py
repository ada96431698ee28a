"""HAR 1.2: what browsers, proxies and test tools save of HTTP traffic (w3c/web-performance HAR, log.entries)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from msgspec import UNSET

from mcplab.formats import clock, documents, http, text
from mcplab.formats.build import Builder
from mcplab.formats.http import Exchange
from mcplab.formats.source import Source
from mcplab.model import Record, TraceError

NAME = "har"
TITLE = "HAR 1.2 (HTTP Archive)"

_FIRST = (
    "_initiator", "_priority", "_resourceType", "_connectionId", "connection", "pageref", "startedDateTime", "request",
    "_fetchType", "serverIPAddress", "time", "cache", "timings", "response",
)  # fmt: skip
MAPPED = (
    "written by mcpsnoop: URLs, status and times are a mapping of its own, and bodies hold params and results without "
    "the JSON-RPC message around them, so no message can be recovered; read its session JSONL"
)
_TELLING = ('"request"', '"response"', '"text"', "jsonrpc")
_SIGN = re.compile(r'"log"\s*:\s*\{')


def sniff(data: bytes) -> bool:
    """Is it a HAR document (also one that is cut off)?"""
    head = text.start(data, 1 << 16).lstrip()
    return text.is_document(head) and (
        (_SIGN.search(head[:400]) is not None and ('"entries"' in head or '"creator"' in head))
        or '"startedDateTime"' in head
    )


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the entries that are MCP, in the order in which requests and responses were sent, as times tell it."""
    builder = Builder(source, NAME, transport="streamable-http")
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    exchanges: list[Exchange] = []
    salvaged: list[tuple[str, int]] = []
    creator = re.search(r'"creator"\s*:\s*\{\s*"name"\s*:\s*"([^"]*)"', whole[:4096])
    for item in documents.items(whole, ("log", "entries"), _FIRST, lambda v: isinstance(v.get("request"), dict)):
        if not isinstance(item.value, dict):
            if '"' in item.text and (item.value is not None or any(word in item.text for word in _TELLING)):
                builder.lost(lines[item.start], item.text, item.reason or "no HAR entry")
                salvaged.append((item.text, lines[item.start]))
            continue
        try:
            made = _exchange(item, lines)
            exchanges.append(made)
            bodies = (made.request_body or "", made.response_body or "")
            if item.text.count('\\"jsonrpc\\"') > sum(body.count('"jsonrpc"') for body in bodies):
                builder.lost(lines[item.start], item.text, "an entry with a message where HAR has none")
                salvaged.append((item.text, lines[item.start]))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            builder.lost(lines[item.start], item.text, f"no HAR entry: {error}")
            salvaged.append((item.text, lines[item.start]))
    if creator is not None and creator[1] == "mcpsnoop":
        builder.note(MAPPED)
    ours = _ours(exchanges)
    if len(ours) < len(exchanges):
        builder.note(f"{len(exchanges) - len(ours)} entries that are not MCP are left out")
    _name_connections(ours, builder)
    if any(exchange.started is UNSET for exchange in ours):
        builder.note("entries without a readable time stand where they are in the file")
    http.add(builder, ours, by_time=True)
    if any(event.sse is not UNSET for event in builder.events):
        builder.note("HAR gives a stream one time for its whole body: all but its last event have none")
    rescue(builder, salvaged)
    if not builder.events and exchanges:
        raise TraceError(f"{source.file}: a HAR of {len(exchanges)} entries, none of them MCP")
    return builder.record()


def _exchange(item: documents.Item, lines: documents.Lines) -> Exchange:
    entry: dict[str, Any] = item.value
    request, response = entry["request"], entry.get("response") or {}
    content = response.get("content") or {}
    post = request.get("postData") or {}
    body = post.get("text")
    started = clock.utc(entry.get("startedDateTime"))
    timings = entry.get("timings") if isinstance(entry.get("timings"), dict) else {}
    waits = [timings.get(name) for name in ("blocked", "dns", "connect", "send", "wait")]  # type: ignore[union-attr]
    before = sum(w for w in waits if isinstance(w, (int, float)) and not isinstance(w, bool) and w > 0)
    status = response.get("status")
    known = isinstance(status, int) and not isinstance(status, bool) and status > 0
    at = item.text.find('"content"')
    error = response.get("_error") or response.get("statusText") or ""
    return Exchange(
        method=str(request.get("method", "")),
        url=str(request.get("url", "")),
        line=lines[item.start + max(0, item.text.find('"postData"'))],
        conn=str(entry.get("connection", "")) if entry.get("connection") is not None else "",
        request_headers=http.pairs(request.get("headers")),
        request_body=body if isinstance(body, str) else None,
        started=started,
        quoted=True,
        status=status if known else None,
        response_headers=http.pairs(response.get("headers")),
        response_body=_body(content),
        response_line=lines[item.start + max(0, at)],
        answered=clock.later(started, before),
        ended=clock.later(started, entry.get("time")),
        broken="" if known else f"no response{': ' + str(error) if error else ''}",
    )


def _body(content: dict[str, Any]) -> str | None:
    body = content.get("text")
    if not isinstance(body, str):
        return None
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(body, validate=False).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):
            return body
    return body


def _ours(exchanges: list[Exchange]) -> list[Exchange]:
    """The MCP entries: those that say so, then the others at the same address."""
    found: set[str] = set()
    for exchange in exchanges:
        if http.is_mcp(exchange, set()):
            found.add(exchange.url.split("?")[0])
    return [exchange for exchange in exchanges if http.is_mcp(exchange, found) and exchange.method.upper() != "OPTIONS"]


def _name_connections(exchanges: list[Exchange], builder: Builder) -> None:
    names: dict[str, str] = {}
    for exchange in exchanges:
        exchange.conn = names.setdefault(exchange.conn, f"c{len(names) + 1}")
    if "" in names:
        builder.note("the entries do not name their TCP connections: taken as one")


def rescue(builder: Builder, salvaged: list[tuple[str, int]]) -> None:
    """Messages out of damaged entries: without HTTP facts, at the end."""
    known = {event.text for event in builder.events}
    for broken, line in salvaged:
        if builder.rescue(broken, line, known=known):
            builder.note("messages out of damaged entries stand at the end and have no HTTP facts")
