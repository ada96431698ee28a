"""HTTP exchanges as events, for the sources that hold HTTP: HAR, curl, Inspector's network export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from mcplab.formats import sse
from mcplab.formats.build import Builder
from mcplab.formats.head import look
from mcplab.model import Event, Http, Sse

_KEPT = {
    "accept", "allow", "content-type", "host", "last-event-id", "origin", "retry-after", "user-agent",
    "x-accel-buffering",
}  # fmt: skip
_SECRET = re.compile(r"(?i)token|secret|password|passwd|api[-_]?key|^key$|^code$|auth|signature|^sig$|credential")
STREAM_ORDER = (
    "events of a GET stream have no time of their own: they stand where the stream opened, and an answer on it after "
    "the request that it answers"
)


def headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that a trace keeps, lower-case; a repeated one is joined with a comma. Never a secret."""
    kept: dict[str, str] = {}
    for name, value in pairs:
        name = name.strip().lower()
        if name == "www-authenticate":
            value = value.strip().split(" ", 1)[0]
        elif name not in _KEPT and not (name.startswith("mcp-") and not _SECRET.search(name)):
            continue
        kept[name] = f"{kept[name]}, {value.strip()}" if name in kept else value.strip()
    return kept


def path(url: str) -> str:
    """Path and query of a URL; what names a key or token in the query is taken out."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "/"
    if not parts.query:
        return parts.path or "/"
    pairs = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if not _SECRET.search(k)]
    query = urlencode(pairs) if len(pairs) < len(parts.query.split("&")) else parts.query
    return (parts.path or "/") + (f"?{query}" if query else "")


class Exchange(Struct):
    """One HTTP request with its response, as far as the source has it. Bodies are None where the source has none.

    ``line`` and ``response_line`` are where the body begins in the file. ``broken`` is why there was no response;
    ``quoted``: the body is a JSON string in the file, so all of it is on one line.
    """

    method: str
    url: str
    line: int
    conn: str = "c1"
    request_headers: Iterable[tuple[str, str]] = ()
    request_body: str | None = None
    started: str | UnsetType = UNSET
    status: int | None = None
    response_headers: Iterable[tuple[str, str]] = ()
    response_body: str | None = None
    response_line: int = 0
    answered: str | UnsetType = UNSET
    ended: str | UnsetType = UNSET
    broken: str = ""
    closed: bool = False
    quoted: bool = False
    name: str = field(default="")


def is_mcp(exchange: Exchange, endpoints: set[str]) -> bool:
    """Is this exchange MCP: a JSON-RPC body, an ``Mcp-`` header, or the address of one that had either?"""
    body = (exchange.request_body or "").strip()
    if body[:1] in ("{", "[") and not isinstance(look(body.encode("utf-8", "surrogateescape")), str):
        return True
    pairs = [*exchange.request_headers, *exchange.response_headers]
    if any(name.strip().lower().startswith("mcp-") for name, _ in pairs):
        return True
    return exchange.url.split("?")[0] in endpoints or is_old_stream(exchange)


def is_old_stream(exchange: Exchange) -> bool:
    """Is this the GET stream of the 2024-11-05 transport (its first event names the endpoint)?"""
    return exchange.method.upper() == "GET" and any(
        part.event == "endpoint" for part in sse.split((exchange.response_body or "")[:4096])
    )


class _Placed(Struct):
    when: str
    event: Event
    line: int
    stream: bool


def add(builder: Builder, exchanges: list[Exchange], *, by_time: bool) -> None:
    """Put the events of all exchanges into the builder, named x1, x2 ... in the order given.

    ``by_time`` orders the events of exchanges that overlap by their times, else they stay as they come.
    """
    placed: list[_Placed] = []
    for number, exchange in enumerate(exchanges, 1):
        exchange.name = f"x{number}"
        before = len(builder.events)
        _request(builder, exchange)
        middle = len(builder.events)
        _response(builder, exchange)
        is_stream = exchange.method.upper() == "GET"
        start = exchange.started if isinstance(exchange.started, str) else ""
        answer = exchange.answered if isinstance(exchange.answered, str) else start
        end = exchange.ended if isinstance(exchange.ended, str) and not is_stream else answer
        for position in range(before, len(builder.events)):
            event = builder.events[position]
            when = start if position < middle else answer if event.kind == "http" and is_stream else end
            placed.append(_Placed(when, event, builder.lines[position], is_stream and position >= middle))
        del builder.events[before:], builder.lines[before:]
    if by_time and all(item.when for item in placed):
        placed.sort(key=lambda item: item.when)
    for item in _causal(placed, builder):
        builder.events.append(item.event)
        builder.lines.append(item.line)
    if any(isinstance(item.event.sse, Sse) and item.event.sse.event == "endpoint" for item in placed):
        builder.header["transport"] = "sse"


def _causal(placed: list[_Placed], builder: Builder) -> list[_Placed]:
    """No answer on a GET stream before the request that it answers: hold the stream back until then."""
    asked: dict[str, int] = {}  # id -> position of the last event of the exchange that asked
    last = {item.event.http.exchange: n for n, item in enumerate(placed) if isinstance(item.event.http, Http)}
    for n, item in enumerate(placed):
        if item.event.kind == "message" and item.event.dir == "c2s" and isinstance(item.event.http, Http):
            for key in _ids(item.event, answers=False):
                asked.setdefault(key, max(n, last[item.event.http.exchange]))
    order: list[tuple[float, int, _Placed]] = []
    hold: dict[str, int] = {}
    held = False
    for n, item in enumerate(placed):
        at = float(n)
        if item.stream and isinstance(item.event.http, Http) and isinstance(item.event.http.exchange, str):
            stream = item.event.http.exchange
            waits = [asked[key] for key in _ids(item.event, answers=True) if asked.get(key, -1) > n]
            hold[stream] = max([hold.get(stream, -1), *waits])
            at = max(at, hold[stream] + 0.5)
            held = held or at != n or item.event.kind == "message"
        order.append((at, n, item))
    if held:
        builder.note(STREAM_ORDER)
    return [item for _, _, item in sorted(order, key=lambda entry: entry[:2])]


def _ids(event: Event, *, answers: bool) -> list[str]:
    if event.msg is UNSET:
        return []
    heads = look(bytes(event.msg))  # type: ignore[arg-type]
    if isinstance(heads, str):
        return []
    return [head.key for head in heads if head.key is not None and (head.method is UNSET) == answers]


def _request(builder: Builder, exchange: Exchange) -> None:
    if not exchange.method and exchange.request_body is None:
        return  # only the response is in the source
    facts = Http(
        method=exchange.method.upper(),
        path=path(exchange.url),
        headers=headers(exchange.request_headers),
        exchange=exchange.name,
    )
    body = exchange.request_body
    if body and not isinstance(look(body.encode("utf-8", "surrogateescape")), str):
        builder.message(body, exchange.line, conn=exchange.conn, dir="c2s", ts=exchange.started, http=facts)
        return
    facts = msgspec.structs.replace(facts, body=bool(body)) if body is not None else facts
    builder.add(
        "http", exchange.line, conn=exchange.conn, dir="c2s", ts=exchange.started, http=facts, raw=body or UNSET
    )


def _response(builder: Builder, exchange: Exchange) -> None:
    if exchange.status is None and not exchange.response_body:
        if exchange.broken:
            builder.add("close", exchange.line, conn=exchange.conn, ts=exchange.ended, reason=exchange.broken,
                        unexpected=True, http=Http(exchange=exchange.name))  # fmt: skip
        return
    kept = headers(exchange.response_headers)
    status = UNSET if exchange.status is None else exchange.status
    facts = Http(status=status, headers=kept if exchange.response_headers else UNSET, exchange=exchange.name)
    body = exchange.response_body
    line = exchange.response_line or exchange.line
    at: dict[str, Any] = {"conn": exchange.conn, "dir": "s2c"}
    kind = kept.get("content-type", "")
    unnamed = body and "json" not in kind.lower() and sse.looks_like(body) and "data:" in body
    if unnamed or "text/event-stream" in kind.lower():
        _stream(builder, exchange, facts, body, line)
    elif body and not isinstance(look(body.encode("utf-8", "surrogateescape")), str):
        builder.message(body, line, ts=exchange.ended, http=facts, **at)
    else:
        facts = msgspec.structs.replace(facts, body=bool(body)) if body is not None else facts
        builder.add("http", line, ts=exchange.ended, http=facts, raw=body or UNSET, **at)


def _stream(builder: Builder, exchange: Exchange, facts: Http, body: str | None, line: int) -> None:
    parts = list(sse.split(body or ""))
    is_get = exchange.method.upper() == "GET"
    if is_get or not parts:
        ts = exchange.answered if is_get else exchange.ended
        builder.add("http", line, conn=exchange.conn, dir="s2c", ts=ts, http=facts, raw="" if body == "" else UNSET)
    if body is None:
        builder.note(f"the body of an event stream is not in this source (exchange {exchange.name})")
    for number, part in enumerate(parts):
        at_line = line if exchange.quoted else line + part.line
        last = number == len(parts) - 1 and not is_get
        ts = exchange.ended if last else UNSET
        at: dict[str, Any] = {"conn": exchange.conn, "dir": "s2c", "ts": ts, "http": facts}
        heads = look(part.data.encode("utf-8", "surrogateescape")) if isinstance(part.data, str) else ""
        known = {"id": part.id, "event": part.event, "retry": part.retry, "comment": part.comment}
        if isinstance(part.data, str) and isinstance(heads, list):
            builder.message(part.data, at_line, sse=Sse(**known), heads=heads, **at)
        elif not part.whole and isinstance(part.data, str) and part.data[:1] in ("{", "["):
            builder.lost(at_line, part.raw, f"the stream is cut off inside an event: {heads}")
        else:
            builder.add("sse", at_line, raw=part.raw, sse=Sse(**known, data=part.data), **at)
            if '"jsonrpc"' in part.raw:  # whole messages in an event that is none
                builder.rescue(part.raw, at_line, conn=exchange.conn, ts=ts, dir="s2c")
    if exchange.closed:
        builder.add("close", line, conn=exchange.conn, http=Http(exchange=exchange.name))


def pairs(value: object) -> list[tuple[str, str]]:
    """Header pairs from what JSON sources hold: a list of {name, value}, of [name, value], or an object."""
    found: list[tuple[str, str]] = []
    if isinstance(value, Mapping):
        for name, item in value.items():
            found.extend((str(name), str(each)) for each in (item if isinstance(item, list) else [item]))
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                found.append((item["name"], str(item.get("value", ""))))
            elif isinstance(item, list) and len(item) == 2:
                found.append((str(item[0]), str(item[1])))
    return found
