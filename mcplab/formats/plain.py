"""Plain JSON-RPC: a message a line (JSON Lines, ``tee``), one JSON array, or pretty-printed one after another."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import clock, direction, documents, scan, text, words
from mcplab.formats.build import NO_CLOCK, NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.direction import Dir
from mcplab.formats.head import Head, look
from mcplab.formats.scan import Found
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "jsonrpc"
TITLE = "plain JSON-RPC messages (lines, array, pretty-printed)"

SPLIT = (
    "no mark between connections: an initialize or server/discover whose id the client has used before begins the next"
)
HALF = (
    "messages of one party only: this may be one half of the traffic; read_trace((client half, server half)) reads both"
)
ARRAY = "the file is one JSON array: its elements are read as messages one after another, not as a batch"


def sniff(data: bytes) -> bool:
    """Do the messages in it stand on lines of their own?"""
    return kind(text.start(data)) == "lines"


def kind(start: str) -> str:
    """``lines``, ``prose`` (messages with other words around them) or ``none``."""
    head = start.lstrip("\0 \t\r\n\ufeff")
    if head[:1] == "[" and '"' in head[:400] and _is_array(head):
        return "lines"
    own = other = led = said = long = 0
    lead = ""
    for found in scan.scan(start.split("\n")[:4000]):
        if isinstance(found.heads, list):
            own += found.whole
            other += not found.whole
            long += found.last > found.line
            led += found.whole and words.said(lead) is not None
            lead = ""
        else:
            lead = found.text
            said += found.text.lstrip()[:1] not in ("{", "[")
        if own + other >= 50:
            break
    if own + other == 0:
        return "none"
    return "prose" if other > own or 2 * led >= own or (2 * long > own and 2 * said >= own) else "lines"


def _is_array(head: str) -> bool:
    """Is the document one array whose first readable element is a message or holds one?"""
    pos = head.find("{")
    try:
        _, end = jsontext.value(head, pos)
    except ValueError:
        return False
    if head[:pos].strip("[ \t\r\n"):
        return False
    after = head[end:].lstrip()
    element = head[pos:end]
    ours = not isinstance(look(element.encode("utf-8", "surrogateescape")), str) or scan.unwrap(element) is not None
    return ours and (after[:1] in ("", ",") or "\n" in head[:pos] or after.rstrip() == "]")


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read messages in file order. Who sent them is inferred (``direction``); text that is no message is kept."""
    return parse(source, NAME, tz=tz)


def parse(source: Source, name: str, *, tz: str | None = None, given: Dir = UNSET) -> Record:
    """The reading itself; ``given`` is the direction of all of it, for one half of a capture."""
    builder = Builder(source, name, infer=given is UNSET)
    local = clock.zone(tz)
    found = list(_found(source.data, builder))
    sent = words.side(_votes(found)) if any(each.word in ("sent", "received") for each in found) else None
    if any(each.word in ("sent", "received") for each in found):
        builder.note(words.SIDE if sent is not None else words.NO_SIDE)
    conns = Conns(builder)
    timed = False
    lines = source.data.count(b"\n")
    for each in found:
        if isinstance(each.heads, str):
            if each.line > lines and each.text.lstrip()[:1] in ("{", "["):
                builder.lost(each.line, each.text, f"the file ends inside a message: {each.heads}")
                builder.rescue(each.text, each.line, conn=conns.current)
            else:
                state = builder.directions(conns.current)
                told = given if given is not UNSET else state.answer(each.text)
                builder.add("unparsed", each.line, conn=conns.current, dir=told, raw=each.text, reason=each.heads)
            continue
        ts = when(each.time, local)
        timed = timed or ts is not UNSET
        told = words.resolve(each.word, sent)
        conn = each.conn or conns.of(each.heads)
        builder.message(each.text, each.line, conn=conn, dir=told if given is UNSET else given, ts=ts, heads=each.heads)
    if not timed:
        builder.note(NO_CLOCK)
    builder.note(NO_HTTP)
    builder.note(NO_TRANSPORT)
    if given is UNSET and len({event.dir for event in builder.events if event.dir is not UNSET}) == 1:
        builder.note(HALF)
    return builder.record()


def _found(data: bytes, builder: Builder) -> list[Found]:
    whole = text.decode(data).strip("\0 \t\r\n\ufeff")
    if whole[:1] == "[" and _is_array(whole[: 1 << 20]):
        full = text.decode(data)
        lines = documents.Lines(full)
        found: list[Found] = []
        builder.note(ARRAY)
        for item in documents.items(full, (), _FIRST, lambda v: True):
            heads: list[Head] | str = look(item.text.encode("utf-8", "surrogateescape"))
            made = (
                Found(item.text, lines[item.start], heads)
                if isinstance(heads, list)
                else scan.unwrap(item.text)
                if item.value is not None
                else None
            )
            if made is None:
                builder.lost(lines[item.start], item.text, item.reason or str(heads))
                found.extend(Found(body, lines[item.start + at], inner) for at, body, inner in scan.rescue(item.text))
            else:
                made.line = lines[item.start]
                found.append(made)
        return found
    return list(scan.scan(text.lines(data)))


_FIRST = (
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "ts",
    "timestamp",
    "time",
    "dir",
    "direction",
    "type",
    "message",
    "msg",
)


def _votes(found: list[Found]) -> list[tuple[str, Dir]]:
    state = direction.Directions()
    return [
        (each.word, state.of(each.heads)) for each in found if isinstance(each.heads, list) and each.word is not None
    ]


def when(time: Any, local: Any = None) -> Any:
    """A time as log objects have it: ISO text, seconds, milliseconds, or nanoseconds since 1970."""
    if isinstance(time, str):
        return clock.utc(time, local)
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        scale = 1e9 if abs(time) > 1e17 else 1e6 if abs(time) > 1e14 else 1e3 if abs(time) > 1e11 else 1
        return clock.epoch(time / scale)
    return UNSET


class Conns:
    """Connections of a source without marks between them (``SPLIT``)."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.number = 1

    @property
    def current(self) -> str:
        return f"c{self.number}"

    def of(self, heads: list[Head]) -> str:
        first = heads[0]
        begins = len(heads) == 1 and first.name in ("initialize", "server/discover")
        if begins and first.key in self.builder.directions(self.current).used["c2s"]:
            self.number += 1
            self.builder.note(SPLIT)
        return self.current
