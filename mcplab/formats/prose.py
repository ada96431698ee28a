"""Text with JSON-RPC messages in it: traffic logs of servers, pretty-printed or after a prefix, pasted conversations.

Direction words (``received``, ``sent``, ``-->``), times and connection names are taken from the words before a message.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import clock, direction, scan, text, words
from mcplab.formats.build import NO_CLOCK, NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.plain import kind, when
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "text"
TITLE = "text with JSON-RPC messages in it"

_CONN = re.compile(r"\[([A-Za-z0-9][\w.:-]{0,80})\]\s*:?\s*$")

_MARK = re.compile(r"(?:^|\s)([<>])\s*$")


def sniff(data: bytes) -> bool:
    """Are there messages with other words around them?"""
    return kind(text.start(data)) == "prose" or (b'"jsonrpc"' in data[: 1 << 20] and kind(text.start(data)) != "none")


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the messages; the words around them give time and direction where they can, and are not kept themselves."""
    builder = Builder(source, NAME, infer=True)
    local = clock.zone(tz)
    found: list[scan.Found] = []
    lead = ""
    other = 0
    for each in scan.scan(text.lines(source.data)):
        if isinstance(each.heads, str):
            lead = text.ANSI.sub("", each.text)
            if each.text.lstrip()[:1] == "{" and '"jsonrpc"' in each.text:
                builder.lost(each.line, each.text, each.heads)
            else:
                other += 1
            continue
        before = text.ANSI.sub("", each.before) if each.before.strip() else lead
        each.before, lead = before, ""
        if each.word is None:
            each.word = words.said(before)
        found.append(each)
    marks = [_MARK.search(each.before[-200:]) for each in found]
    if {"<", ">"} <= {mark[1] for mark in marks if mark is not None}:  # alone, > is a quotation
        for each, mark in zip(found, marks, strict=True):
            each.word = each.word or words.direction(mark and mark[1])
    sent = words.side(_votes(found))
    relative = any(each.word in ("sent", "received") for each in found)
    if relative:
        builder.note(words.SIDE if sent is not None else words.NO_SIDE)
    naive = timed = odd = False
    for each in found:
        stamp = clock.written(each.before)
        odd = odd or stamp == ""
        ts = clock.utc(stamp, local) if stamp else when(each.time, local)
        naive, timed = naive or (ts is not UNSET and clock.is_naive(stamp or each.time)), timed or ts is not UNSET
        conn = _CONN.search(each.before[-200:])
        name = each.conn or (conn[1] if conn is not None and conn[1].lower() not in _LEVELS else "c1")
        builder.message(each.text, each.line, conn=name, dir=words.resolve(each.word, sent), ts=ts, heads=each.heads)  # type: ignore[arg-type]
    if naive:
        builder.header["clock"] = "naive" if local is None else "utc"
        if local is None:
            builder.note(clock.NAIVE)
    if not timed:
        builder.note(clock.OTHER_FORM if odd else NO_CLOCK)
    if other:
        builder.note(f"{other} lines that hold no message are left out")
    builder.note(NO_TRANSPORT)
    builder.note(NO_HTTP)
    return builder.record()


_LEVELS = {"info", "debug", "warn", "warning", "error", "trace", "fine", "finest", "fatal"}


def _votes(found: list[scan.Found]) -> list[tuple[str, direction.Dir]]:
    state = direction.Directions()
    return [(each.word or "", state.of(each.heads)) for each in found if isinstance(each.heads, list)]
