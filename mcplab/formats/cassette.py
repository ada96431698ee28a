"""mcp-recorder cassettes: interactions with request and response (devhelmhq/mcp-recorder, src/mcp_recorder/_types.py).

No message has a time; ``latency_ms`` is how long each answer took. ``transport_type`` may name the transport behind the
recorder; what stands between client and recorder is HTTP in any case.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import documents, text
from mcplab.formats.build import Builder
from mcplab.formats.direction import Directions
from mcplab.formats.head import look
from mcplab.formats.http import path as path_of
from mcplab.formats.source import Source
from mcplab.model import Http, Record

NAME = "mcp-recorder"
TITLE = "mcp-recorder cassette"

_FIRST = ("type", "request", "response", "response_is_sse", "response_status", "latency_ms")
_SIGN = re.compile(r'"type"\s*:\s*"(?:jsonrpc_request|notification|lifecycle)"')


def sniff(data: bytes) -> bool:
    """Is it an object with ``interactions`` of the cassette's types?"""
    head = text.start(data, 1 << 16)
    return (
        text.is_document(head)
        and '"interactions"' in head
        and (_SIGN.search(head) is not None or '"server_url"' in head)
    )


def _is_row(value: dict[str, Any]) -> bool:
    return value.get("type") in ("jsonrpc_request", "notification", "lifecycle") or (
        isinstance(value.get("request"), dict) and "response" in value and isinstance(value.get("type"), str)
    )


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the interactions in order, each an HTTP exchange."""
    builder = Builder(source, NAME)
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    header = re.search(r'"metadata"\s*:\s*', whole)
    url = "/"
    if header is not None:
        try:
            metadata, _ = jsontext.value(whole, header.end())
            url = _metadata(builder, metadata) if isinstance(metadata, dict) else "/"
        except ValueError:
            builder.note("the cassette's metadata cannot be read")
    number = 0
    state = Directions()
    for item in documents.items(whole, ("interactions",), _FIRST, _is_row):
        number += 1
        if not isinstance(item.value, dict) or not _is_row(item.value):
            if any(word in item.text for word in ('"request"', '"response"', "jsonrpc")):
                builder.lost(lines[item.start], item.text, item.reason or "no interaction")
                builder.rescue(item.text, lines[item.start])
            continue
        _interaction(builder, item, lines, f"x{number}", url, state)
    builder.note("no times: a cassette has one for the whole recording, and how long each answer took")
    builder.note("no headers; of an event stream only the answer is kept, other messages on it are not")
    builder.note(
        "messages are as mcp-recorder wrote them again, secrets scrubbed where that was asked for; not their own bytes"
    )
    builder.note("the cassette has no marks between connections: taken as one")
    return builder.record()


def _metadata(builder: Builder, metadata: dict[str, Any]) -> str:
    """Take over what the header can hold; the path of the server's URL."""
    kind = metadata.get("transport_type")
    builder.header["transport"] = "streamable-http"
    if kind not in (None, "http", "streamable-http"):
        builder.note(
            f"the server behind the recorder spoke {kind}; what was recorded is HTTP between client and recorder"
        )
    if isinstance(metadata.get("recorded_at"), str):
        builder.header["captured_at"] = metadata["recorded_at"]
    return path_of(str(metadata.get("server_url") or "/"))


def _interaction(
    builder: Builder, item: documents.Item, lines: documents.Lines, exchange: str, url: str, state: Directions
) -> None:
    value = item.value
    places, parts = dict(jsontext.places(item.text)), dict(jsontext.members(item.text))
    status = value.get("response_status")
    facts = Http(
        status=status if isinstance(status, int) and not isinstance(status, bool) else UNSET,
        headers={"content-type": "text/event-stream"} if value.get("response_is_sse") is True else UNSET,
        exchange=exchange,
    )
    if value["type"] == "lifecycle":
        asked = Http(
            method=str(value.get("http_method") or "GET"), path=str(value.get("http_path") or url), exchange=exchange
        )
        builder.add("http", lines[item.start], conn="c1", dir="c2s", http=asked)
        builder.add("http", lines[item.start], conn="c1", dir="s2c", http=facts)
        return
    known: list[str] = []
    for name, told, http in (
        ("request", "c2s", Http(method="POST", path=url, exchange=exchange)),
        ("response", "s2c", facts),
    ):
        if parts.get(name, "null") != "null":
            known.append(parts[name])
            heads = look(parts[name].encode("utf-8", "surrogateescape"))
            if isinstance(heads, list):
                state.note(heads, told)
            builder.message(parts[name], lines[item.start + places[name]], dir=told, http=http)
        elif name == "response":
            builder.add("http", lines[item.start], conn="c1", dir="s2c", http=http)
    if item.text.count('"jsonrpc"') > sum(each.count('"jsonrpc"') for each in known):
        builder.lost(lines[item.start], item.text, "an interaction with a message where the cassette has none")
        builder.rescue(item.text, lines[item.start], known=known)
