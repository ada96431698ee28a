"""Two recorders that write a line a message: mcp-rec (yubinkim444/mcp-rec, recorder.py) and mcporter
(openclaw/mcporter, src/runtime/record-transport.ts).

mcp-rec: ``{"ts": seconds, "dir": "client->server", "msg": {...}}``; a line that is no JSON has ``msg`` ``{"_raw": text,
"_unparsed": true}``. mcporter: the message with a member ``_meta`` ``{"dir": "send" | "recv" | "lifecycle", "server",
"ts"}`` added, which was not on the wire and is taken out again.
"""

from __future__ import annotations

import re
from typing import Any

from mcplab import jsontext
from mcplab.formats import clock, plain, text, words
from mcplab.formats.build import NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "recorder-lines"
TITLE = "mcp-rec JSONL and mcporter NDJSON"

_REC = re.compile(r'^[ \t]*\{"ts"\s*:.{1,40}"dir"\s*:\s*"(?:client->server|server->client)"', re.MULTILINE)
_PORTER = re.compile(r'"_meta"\s*:\s*\{(?:[^{}]{0,200},)?\s*"(?:dir|direction)"\s*:\s*"[A-Za-z]+"')


def sniff(data: bytes) -> bool:
    """Are there lines of either recorder?"""
    head = text.start(data, 1 << 16)
    return _REC.search(head) is not None or _PORTER.search(head) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the lines in order. mcp-rec records stdio; mcporter any transport, and its connections are servers."""
    builder = Builder(source, NAME, infer=True)
    kinds: set[str] = set()
    opened: dict[str, int] = {}
    for number, line in enumerate(text.lines(source.data), 1):
        whole = line.strip("\0 \t")
        if not whole:
            continue
        _line(builder, number, whole, kinds, opened)
    if kinds == {"mcp-rec"}:
        builder.header["transport"] = "stdio"
        builder.note("mcp-rec does not keep stderr, and appends: several runs in one file are not told apart")
    else:
        builder.note(NO_TRANSPORT)
        builder.note(
            "mcporter records what its client library parsed: text that is no JSON-RPC, and HTTP, are not in it"
        )
    builder.note("messages were parsed and written again by the recorder: not their own bytes")
    builder.note(NO_HTTP)
    return builder.record()


def _line(builder: Builder, number: int, whole: str, kinds: set[str], opened: dict[str, int]) -> None:
    """One line; where damage took the line break away, more than one."""
    pos = 0
    while 0 <= pos < len(whole):
        try:
            value, end = jsontext.value(whole, pos)
        except ValueError as error:
            builder.lost(number, whole[pos:], str(error))
            _without_meta(builder, number, whole[pos:])
            return
        if isinstance(value, dict) and "msg" in value and "dir" in value:
            kinds.add("mcp-rec")
            _rec(builder, number, whole[pos:end], value)
        elif isinstance(value, dict) and isinstance(value.get("_meta"), dict):
            kinds.add("mcporter")
            _porter(builder, number, whole[pos:end], value, opened)
        else:
            builder.lost(number, whole[pos:], "no line of mcp-rec or mcporter")
            _without_meta(builder, number, whole[pos:])
            return
        if whole[end:].strip():
            builder.lost(number, whole[end:], "text after a message on its line")
        pos = whole.find("{", end)


def _without_meta(builder: Builder, number: int, whole: str) -> None:
    """Messages of a damaged line; mcporter's addition, the last member, is cut off where it is the damaged part."""
    for mark in (whole.rfind(',"_'), whole.rfind('meta":{')):
        end = whole.rfind("}", 0, mark)
        if mark > 0 and end > 0 and builder.rescue(whole[: end + 1] + "}", number):
            builder.rescue(whole[mark:], number)
            return
    builder.rescue(whole, number)


def _rec(builder: Builder, number: int, whole: str, value: dict[str, Any]) -> None:
    told = words.resolve(words.direction(value["dir"]), None)
    ts = plain.when(value.get("ts"))
    message = value["msg"]
    if isinstance(message, dict) and message.get("_unparsed") is True and "_raw" in message:
        raw = jsontext.printable(str(message["_raw"]))
        builder.add("unparsed", number, conn="c1", dir=told, ts=ts, raw=raw, reason="no JSON, says mcp-rec")
        return
    builder.message(jsontext.get(whole, "msg")[0] or "null", number, dir=told, ts=ts)


def _porter(builder: Builder, number: int, whole: str, value: dict[str, Any], opened: dict[str, int]) -> None:
    meta = value["_meta"]
    way = meta.get("dir", meta.get("direction"))
    ts = clock.utc(meta.get("ts", meta.get("timestamp")))
    server = str(meta.get("server", "c1"))
    if way == "lifecycle":
        start = str(value.get("method", "")).endswith("start")
        opened[server] = opened.get(server, 0) + start
        conn = _conn(server, opened)
        builder.add(
            "open" if start else "close",
            number,
            conn=conn,
            ts=ts,
            **({} if start else {"reason": str(value.get("method"))}),
        )
        return
    told = words.resolve(words.direction(way), "c2s")
    builder.message(jsontext.without(whole, "_meta"), number, conn=_conn(server, opened), dir=told, ts=ts)


def _conn(server: str, opened: dict[str, int]) -> str:
    return server if opened.get(server, 0) < 2 else f"{server}#{opened[server]}"
