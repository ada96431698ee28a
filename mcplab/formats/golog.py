"""The Go SDK's LoggingTransport: ``read: {...}`` and ``write: {...}`` (modelcontextprotocol/go-sdk, mcp/transport.go).

It writes what it decoded and encoded again, so a message's own bytes are not in it; which side wrote it is not said.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import direction, text, words
from mcplab.formats.build import NO_CLOCK, NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "go-sdk"
TITLE = "Go SDK LoggingTransport (read: / write:)"

_LINE = re.compile(r"\s*(?:\S.{0,80}?\s)?(read|write): (?=[\[{])")
_ERROR = re.compile(r"\s*(?:read|write) error: (.*)")
_SIGN = re.compile(r"^(?:\S.{0,80}?\s)?(?:read|write): \{", re.MULTILINE)


def sniff(data: bytes) -> bool:
    """Do lines begin with ``read: {`` or ``write: {``?"""
    return _SIGN.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the log. ``read`` is client to server where the log is the server's, which an ``initialize`` tells."""
    builder = Builder(source, NAME)
    found = []
    state = direction.Directions()
    votes = []
    for number, line in enumerate(text.lines(source.data), 1):
        head = _LINE.match(line)
        if head is None:
            loose = re.search(r'\{"(?:jsonrpc|id|method|result|error)"', line)
            if loose is None or isinstance(text.json_in(line, loose.start()), str):
                found.append((number, None, line, None))
                continue
            begin, word = loose.start(), None
        else:
            begin, word = head.end(), "received" if head[1] == "read" else "sent"
        body = text.json_in(line, begin)
        if isinstance(body, str):
            builder.lost(number, line, body)
            continue
        heads = look(body[0].encode("utf-8", "surrogateescape"))
        votes.append((word or "", state.of(heads) if isinstance(heads, list) else UNSET))
        found.append((number, word, body[0], heads))
    sent = words.side(votes)
    builder.note(words.SIDE if sent is not None else words.NO_SIDE)
    for number, word, line, heads in found:
        if heads is None:
            failed = _ERROR.match(line)
            if failed is not None:
                odd = UNSET if "EOF" in line else True
                builder.add("close", number, conn="c1", reason=line.strip(), unexpected=odd)
            elif line.strip("\0 \t"):
                builder.note("lines that are none of the transport's are left out")
            continue
        builder.message(line, number, dir=words.resolve(word, sent))
    builder.note(NO_CLOCK)
    builder.note("the log holds messages as the SDK encoded them again, not their own bytes")
    builder.note(NO_TRANSPORT + " (LoggingTransport wraps any)")
    builder.note(NO_HTTP)
    return builder.record()
