"""Messages found in text of any make: whole lines, after a prefix, over several lines, or wrapped in a log object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import UNSET, Struct

from mcplab import jsontext
from mcplab.formats import sse, words
from mcplab.formats.head import Head, look

_EFFORT = 64
_BLANK = "\0 \t\r\ufeff"
_SPACE = re.compile(r"[\0 \t\r\ufeff]+")
_ENDS = re.compile(r"[\0 \t\r\ufeff,\]]*(?:\n|\Z)")
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
    "log",
    "text",
    "line",
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
    """Everything in the lines, in order; blank lines are passed over. What follows a message on its line comes next."""
    text = "\n".join(found)
    effort = _EFFORT * max(len(text), 1024)
    pos, number, fresh = 0, 1, True  # fresh: at the beginning of a line
    while pos < len(text):
        blank = _SPACE.match(text, pos)
        first = pos if blank is None else blank.end()
        if first == len(text):
            return
        if text[first] == "\n":
            pos, number, fresh = first + 1, number + 1, True
            continue
        stop = text.find("\n", pos)
        stop = len(text) if stop < 0 else stop
        made, end = None, stop
        if fresh and text[first] in "{[":
            line = text[first:stop].strip(_BLANK)
            heads = look(line.encode("utf-8", "surrogateescape")) if line[-1] in "}]" else ""
            if not isinstance(heads, str):
                made, end = Found(line, number, heads, last=number), stop
        elif fresh and text[first] == '"' and '\\"jsonrpc\\"' in text[first:stop]:
            made, end = _quoted(text[first:stop].strip(_BLANK + ","), number), stop
        for begin in () if made is not None else (spot.start() for spot in islice(_OPEN.finditer(text, pos, stop), 4)):
            if effort < 0:
                break
            try:
                _, end = jsontext.value(text, begin)
            except ValueError as error:
                effort -= getattr(error, "pos", len(text)) - begin
                continue
            effort -= end - begin
            whole = not text[pos:begin].strip("\0 \t,[") and _ENDS.match(text, end) is not None
            made = _made(text[begin:end], number, text[pos:begin], whole, number + text.count("\n", begin, end))
            if made is not None:
                break
        if made is None:
            line = text[first:stop].strip(_BLANK)
            reason = look(line.encode("utf-8", "surrogateescape")) if line[0] in '{["-0123456789tfn' else "no JSON"
            yield Found(line if line[0] in "{[" else text[pos:stop].strip("\0\r"), number,
                        reason if isinstance(reason, str) else "no JSON", last=number)  # fmt: skip
            pos, number, fresh = stop + 1, number + 1, True
            continue
        yield made
        number, fresh = made.last, False
        over = _ENDS.match(text, end)
        pos = end if over is None else over.end()
        if over is not None:
            number, fresh = number + 1, True


def _quoted(line: str, number: int) -> Found | None:
    """A line that is a message written as a JSON string."""
    try:
        inner = jsontext.loads(line)
    except ValueError:
        return None
    heads = look(inner.encode("utf-8", "surrogateescape")) if isinstance(inner, str) else ""
    return None if isinstance(heads, str) else Found(inner, number, heads, last=number, wrapped=True)


def _made(text: str, line: int, before: str, whole: bool, last: int) -> Found | None:
    heads = look(text.encode("utf-8", "surrogateescape"))
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
        led = ""
        if inner[:1] == '"':
            try:
                inner = jsontext.loads(inner)
            except ValueError:
                continue
            led, inner = _led(inner)
        heads = look(inner.encode("utf-8", "surrogateescape")) if inner.strip()[:1] in ("{", "[") else "no JSON"
        if isinstance(heads, str):
            continue
        plain = {key: _plain(value) for key, value in members.items() if key != name}
        way = next((word for key in _WAYS if (word := words.direction(plain.get(key))) is not None), words.said(led))
        time = next((plain[key] for key in _TIMES if plain.get(key) is not None), None)
        conn = next((str(plain[key]) for key in _CONNS if isinstance(plain.get(key), (str, int))), None)
        return Found(inner, 0, heads, word=way, time=time, conn=conn, wrapped=True)
    return None


def _led(said: str) -> tuple[str, str]:
    """Words of a log entry apart from the message that they end with, if they do."""
    at = said.find("{")
    if at > 0 and '"jsonrpc"' in said and said[0] != "[":
        try:
            _, end = jsontext.value(said, at)
        except ValueError:
            return "", said
        if not said[end:].strip():
            return said[:at], said[at:end]
    return "", said


def _plain(text: str) -> Any:
    if text[:1] in ("{", "["):
        return None
    try:
        return jsontext.loads(text)
    except ValueError:
        return None


_START = re.compile(r'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:|\[\s*\{\s*"jsonrpc"\s*:')
_STRING = re.compile(r'"(?=(?:event|data|id|retry)?:\s|\s*[\[{](?:\\[nrt]|\s)*\\")')
_ESCAPED = re.compile(r'[\[{](?:[^"\\\n]|\\(?![nr]).)*')
_ESCAPED_START = re.compile(r'\[?\{\s*\\"(?:jsonrpc|id|method|params|result|error)\\"')
_MESSAGE = {"jsonrpc", "id", "method", "params", "result", "error"}


def rescue(text: str) -> Iterator[tuple[int, str, list[Head]]]:
    """The whole messages in damaged text: where each begins, its text, its heads. Only what says ``jsonrpc``, and has
    no other members than a message has, counts.

    Messages inside JSON strings (bodies, also of event streams) are found too, even where the string is damaged.
    """
    effort = _EFFORT * max(len(text), 1024)
    pos = 0
    starts = sorted(
        (found.start(), kind)
        for kind, pattern in enumerate((_START, _STRING, _ESCAPED_START))
        for found in pattern.finditer(text)
    )
    for start, kind in starts:
        if start < pos or effort < 0:
            continue
        source, begin = text, start
        if kind == 2:
            source, begin = _escaped(text, start), 0
        try:
            value, end = jsontext.value(source, begin)
        except ValueError as error:
            effort -= getattr(error, "pos", len(source)) - begin
            continue
        effort -= end - begin
        made = list(_bodies(text[start:end] if kind == 0 else value))
        for body, heads in made:
            yield start, body, heads
        if made:
            pos = start + (end - begin) - (2 if kind == 2 else 0)


def _escaped(text: str, start: int) -> str:
    """The JSON string that is left of a damaged one, from a message's beginning to the next line break or fault."""
    found = _ESCAPED.match(text, start)
    string = f'"{found[0]}"' if found is not None else '""'
    try:
        jsontext.value(string)
    except ValueError as error:
        return string[: getattr(error, "pos", 0)] + '"'
    return string


def _bodies(body: str) -> Iterator[tuple[str, list[Head]]]:
    heads = look(body.encode("utf-8", "surrogateescape")) if body.lstrip()[:1] in ("{", "[") else ""
    if isinstance(heads, list):
        texts = [body] if body.lstrip()[:1] == "{" else jsontext.elements(body)
        names = {name for text in texts for name, _ in jsontext.members(text)}
        if names <= _MESSAGE and all(head.jsonrpc is not UNSET for head in heads):
            yield body, heads
    elif body[:1] in ("{", "["):
        try:
            _, end = jsontext.value(body)
        except ValueError:
            return
        if end < len(body):
            yield from _bodies(body[:end])
    elif "data:" in body:
        for part in sse.split(body):
            for line in part.data.split("\n") if isinstance(part.data, str) else ():
                yield from _bodies(line)
