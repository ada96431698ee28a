"""The body of an event stream by itself, as ``curl -N`` prints it: ``event: message`` / ``data: {...}``."""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import sse, text
from mcplab.formats.build import NO_CLOCK, NO_HTTP, Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record, Sse

NAME = "event-stream"
TITLE = "body of an event stream (SSE text)"

_SIGN = re.compile(r"^data: ?[\[{]", re.MULTILINE)
_FIELD = re.compile(r"(?:data|event|id|retry)(?::|$)|:|$")


def sniff(data: bytes) -> bool:
    """Are most of the first lines fields of an event stream, with JSON in ``data``?"""
    head = text.start(data, 1 << 16)
    lines = [line.rstrip("\r") for line in head.split("\n")[:200]]
    return _SIGN.search(head) is not None and sum(_FIELD.match(line) is not None for line in lines) > 0.8 * len(lines)


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the events. All of them are the server's: only a server sends an event stream."""
    builder = Builder(source, NAME)
    body = "\n".join(text.lines(source.data)) + "\n"
    for part in sse.split(body):
        known = Sse(id=part.id, event=part.event, retry=part.retry, comment=part.comment)
        if part.event == "endpoint":
            builder.header["transport"] = "sse"
        heads = look(part.data.encode("utf-8", "surrogateescape")) if isinstance(part.data, str) else "no data"
        if isinstance(part.data, str) and isinstance(heads, list):
            builder.message(part.data, part.line + 1, dir="s2c", sse=known, heads=heads)
        elif isinstance(part.data, str) and part.data[:1] in ("{", "["):
            for line in part.data.split("\n"):  # an empty line between two events was lost: each line for itself
                if not isinstance(look(line.encode("utf-8", "surrogateescape")), str):
                    builder.message(line, part.line + 1, dir="s2c", sse=known)
                elif line.strip() and not builder.rescue(line, part.line + 1, dir="s2c"):
                    builder.lost(part.line + 1, line, f"data of an event that cannot be read: {heads}")
        elif '"jsonrpc"' in part.raw and builder.rescue(part.raw, part.line + 1):
            builder.lost(part.line + 1, part.raw, "damaged: a message, but no data field")
        else:
            whole = Sse(id=part.id, event=part.event, retry=part.retry, comment=part.comment, data=part.data)
            builder.add("sse", part.line + 1, conn="c1", dir="s2c", sse=whole, raw=part.raw or UNSET)
    builder.note("the server's half of one exchange or more: what the client sent is not in it")
    builder.note(NO_CLOCK)
    builder.note(NO_HTTP)
    return builder.record()
