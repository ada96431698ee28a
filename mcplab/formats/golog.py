"""The Go SDK's LoggingTransport: ``read: {...}`` and ``write: {...}`` (modelcontextprotocol/go-sdk, mcp/transport.go).

It writes what it decoded and encoded again, so a message's own bytes are not in it; which side wrote it is not said.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from mcplab.formats import clock, direction, scan, text, words
from mcplab.formats.build import NO_CLOCK, NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.head import look
from mcplab.formats.plain import Conns
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
    found: list[tuple[int, str | None, str, Any]] = []
    state = direction.Directions()
    votes = []
    times: dict[int, str] = {}
    for number, line in enumerate(text.lines(source.data), 1):
        head = _LINE.match(line)
        if head is None:
            whole = list(scan.rescue(line))
            for _, inner, heads in whole:
                found.append((number, None, inner, heads))
                builder.lost(number, line, "damaged: a message, but not the word that goes before one")
            if not whole:
                found.append((number, None, line, None))
            continue
        if stamp := clock.written(line[: head.end()]):
            times[number] = stamp
        begin, word = head.end(), "received" if head[1] == "read" else "sent"
        body = text.json_in(line, begin)
        if isinstance(body, str):
            builder.lost(number, line, body)
            found.extend((number, None, inner, heads) for _, inner, heads in scan.rescue(line))
            continue
        heads = look(body[0].encode("utf-8", "surrogateescape"))
        if '"jsonrpc"' in line[body[1] :]:
            builder.lost(number, line[body[1] :], "damaged: text after a message")
        votes.append((word or "", state.of(heads) if isinstance(heads, list) else UNSET))
        found.append((number, word, body[0], heads))
        found.extend((number, None, inner, each) for _, inner, each in scan.rescue(line[body[1] :]))
    sent = words.side(votes)
    builder.note(words.SIDE if sent is not None else words.NO_SIDE)
    conns = Conns(builder)
    local = clock.zone(tz)
    timed = False
    for number, word, line, heads in found:
        if heads is None:
            failed = _ERROR.match(line)
            if failed is not None:
                odd = UNSET if "EOF" in line else True
                builder.add("close", number, conn=conns.current, reason=line.strip(), unexpected=odd)
            elif line.strip("\0 \t"):
                builder.note("lines that are none of the transport's are left out")
            continue
        told = words.resolve(word, sent)
        if told is UNSET and isinstance(heads, list):
            told = builder.directions(conns.current).of(heads)
        conn = conns.of(heads) if isinstance(heads, list) else conns.current
        ts = clock.utc(times.get(number), local)
        timed = timed or ts is not UNSET
        builder.message(line, number, conn=conn, dir=told, ts=ts)
    if not timed:
        builder.note(NO_CLOCK)
    elif local is None and any(map(clock.is_naive, times.values())):
        builder.header["clock"] = "naive"
        builder.note(clock.NAIVE)
    builder.note("the log holds messages as the SDK encoded them again, not their own bytes")
    builder.note(NO_TRANSPORT + " (LoggingTransport wraps any)")
    builder.note(NO_HTTP)
    return builder.record()
