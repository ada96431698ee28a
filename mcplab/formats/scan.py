"""Messages found in text of any make: whole lines, after a prefix, over several lines, or wrapped in a log object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mcplab import jsontext
from mcplab.formats import words
from mcplab.formats.head import Head, look

_EFFORT = 64
_OPEN = re.compile(r'\{(?=\s*(?:"|$))|\[(?=\s*(?:\{|$))', re.MULTILINE)
_MEMBERS = (
    "message",
    "msg",
    "payload",
    "raw",
    "frame",
    "data",
    "body",
    "json",
    "jsonrpc_message",
    "content",
    "rpc",
    "params",
)
_TIMES = ("ts", "timestamp", "time", "at", "@timestamp", "timestamp_ns", "date")
_WAYS = ("direction", "dir", "origin", "from", "source", "way", "type")
_CONNS = (
    "connection",
    "conn",
    "conn_id",
    "session_id",
    "sessionId",
    "server_id",
    "serverId",
    "server_name",
    "serverName",
    "server",
)


class Found(Struct):
    """A message, or a stretch of other text (``heads`` says why it is no message)."""

    text: str
    line: int
    heads: list[Head] | str
    before: str = ""
    whole: bool = True  # it has its line, or lines, to itself
    last: int = 0
    word: str | None = None
    time: Any = None
    conn: str | None = None
    wrapped: bool = False


def scan(found: list[str]) -> Iterator[Found]:
    """Everything in the lines, in order; blank lines are passed over."""
    starts: list[int] = []
    total = 0
    for line in found:
        starts.append(total)
        total += len(line) + 1
    text = "\n".join(found)
    effort = _EFFORT * max(total, 1024)
    number = 0
    while number < len(found):
        line = found[number].strip("\0 \t\r\ufeff")
        if not line:
            number += 1
            continue
        if line[0] in "{[" and line[-1] in "}]":
            heads = look(line.encode("utf-8", "surrogateescape"))
            if not isinstance(heads, str):
                yield Found(line, number + 1, heads, last=number + 1)
                number += 1
                continue
        made = None
        for at in [spot.start() for spot in _OPEN.finditer(found[number])][:4]:
            if effort < 0:
                break
            begin = starts[number] + at
            try:
                _, end = jsontext.value(text, begin)
            except ValueError as error:
                effort -= getattr(error, "pos", total) - begin
                continue
            effort -= end - begin
            last = number + text.count("\n", begin, end)
            made = _made(
                text[begin:end], number + 1, found[number][:at], text[end : starts[last] + len(found[last])], last + 1
            )
            if made is not None:
                break
        if made is None:
            reason = look(line.encode("utf-8", "surrogateescape")) if line[0] in '{["-0123456789tfn' else "no JSON"
            yield Found(
                found[number].strip("\0"), number + 1, reason if isinstance(reason, str) else "no JSON", last=number + 1
            )
            number += 1
        else:
            yield made
            number = made.last


def _made(text: str, line: int, before: str, after: str, last: int) -> Found | None:
    heads = look(text.encode("utf-8", "surrogateescape"))
    whole = not before.strip("\0 \t,[") and not after.strip("\0 \t\r,]")
    if not isinstance(heads, str):
        return Found(text, line, heads, before, whole, last)
    if text[0] == "{":
        inner = unwrap(text)
        if inner is not None:
            inner.line, inner.last, inner.before, inner.whole = line, last, before, whole
            return inner
    return None


def unwrap(text: str) -> Found | None:
    """The message inside a log object of an unknown tool, with the time and direction that stand beside it."""
    members = dict(jsontext.members(text))
    for name in _MEMBERS:
        inner = members.get(name)
        if inner is None:
            continue
        if inner[:1] == '"':
            try:
                inner = jsontext.loads(inner)
            except ValueError:
                continue
        heads = look(inner.encode("utf-8", "surrogateescape")) if inner.strip()[:1] in ("{", "[") else "no JSON"
        if isinstance(heads, str):
            continue
        plain = {key: _plain(value) for key, value in members.items() if key != name}
        way = next((word for key in _WAYS if (word := words.direction(plain.get(key))) is not None), None)
        time = next((plain[key] for key in _TIMES if plain.get(key) is not None), None)
        conn = next((str(plain[key]) for key in _CONNS if isinstance(plain.get(key), (str, int))), None)
        return Found(inner, 0, heads, word=way, time=time, conn=conn, wrapped=True)
    return None


def _plain(text: str) -> Any:
    if text[:1] in ("{", "["):
        return None
    try:
        return jsontext.loads(text)
    except ValueError:
        return None
