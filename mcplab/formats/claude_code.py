"""Claude Code's MCP logs: ``mcp-logs-SERVER/TIME.jsonl`` (an object a line) and the text of ``--debug``.

They hold summaries: booleans for capabilities, era and version in newer builds. Messages are read where one is quoted
whole (anthropics/claude-code#69427 says that they can be).
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import clock, text, words
from mcplab.formats.build import NO_HTTP, Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "claude-code"
TITLE = "Claude Code MCP log (summaries)"

_OBJECT = re.compile(r'^[ \t]*\{\s*"(?:debug|error)"\s*:\s*"', re.MULTILINE)
_ANY_ORDER = re.compile(r'\{[^{}]{0,400}?"(?:debug|error)"\s*:\s*"')
_LINE = re.compile(r'(?:(\d{4}-\d\d-\d\dT\S+Z?) )?\[(DEBUG|ERROR|WARN|INFO)\] MCP server "([^"]+)":? (.*)', re.DOTALL)
_SIGN = re.compile(r'\[(?:DEBUG|ERROR|WARN|INFO)\] MCP server "[^"]+"')
_MESSAGE = re.compile(r'\{\s*"(?:jsonrpc|method|id|result|error|params)"\s*:')


def sniff(data: bytes) -> bool:
    """Are there objects with ``debug`` or ``error`` and a time, or lines of the debug text?"""
    head = text.start(data, 1 << 17)
    own = _OBJECT.search(head) is not None or (
        '"sessionId"' in head and '"cwd"' in head and _ANY_ORDER.search(head) is not None
    )
    return (own and '"timestamp"' in head) or _SIGN.search(head) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read connections coming and going, stderr, and quoted messages. What it says of capabilities stands in notes."""
    builder = Builder(source, NAME, infer=True)
    log = _Log(builder)
    for number, block in text.blocks(
        text.lines(source.data), re.compile(r"\s*\{|.{0,40}\[(?:DEBUG|ERROR|WARN|INFO)\] ")
    ):
        whole = "\n".join(block)
        if not whole.strip(" \t\n[],"):
            continue  # the frame of a list
        line = _LINE.match(whole.lstrip())
        if whole.lstrip()[:1] == "{":
            log.object(number, whole)
        elif line is not None:
            log.take(number, line[3], clock.utc(line[1]), line[4])
        else:
            log.other += 1
    builder.note("Claude Code logs summaries: capabilities as booleans, no message unless one is quoted")
    builder.note(NO_HTTP)
    if log.other:
        builder.note(f"{log.other} other lines are left out")
    return builder.record(need="Claude Code's log holds summaries, and none of a connection")


class _Log:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.counts: dict[str, int] = {}
        self.opened: set[str] = set()
        self.other = 0

    def object(self, number: int, whole: str) -> None:
        try:
            value = jsontext.loads(whole.strip().rstrip(",]").rstrip() if whole.lstrip()[:1] == "{" else whole)
        except (ValueError, RecursionError) as error:
            self.builder.lost(number, whole, str(error) if isinstance(error, ValueError) else "nested too deeply")
            return
        said = value.get("debug", value.get("error")) if isinstance(value, dict) else None
        if not isinstance(said, str):
            self.builder.lost(number, whole, "no line of Claude Code's log")
            return
        named = re.match(r'MCP server "([^"]+)":? ', said)
        server = named[1] if named is not None else ""
        self.take(number, server, clock.utc(value.get("timestamp")), said[named.end() :] if named is not None else said)

    def take(self, number: int, server: str, ts: Any, said: str) -> None:
        builder = self.builder
        if said.startswith("Starting connection") or server not in self.counts:
            self.counts[server] = self.counts.get(server, 0) + 1
        base = server or "c1"
        conn = base if self.counts[server] == 1 else f"{base}#{self.counts[server]}"
        connected = re.match(r"Successfully connected \(transport: ([\w-]+)\)", said)
        if connected is not None:
            kind = {"stdio": "stdio", "http": "streamable-http", "sse": "sse"}.get(connected[1])
            if kind is not None:
                builder.header["transport"] = kind
            self._open(number, conn, ts, server)
        elif said.startswith("Connection established with capabilities: "):
            self._open(number, conn, ts, server)
            builder.note(f"line {number}, {base}: Claude Code says: {said.split(': ', 1)[1][:400]}")
        elif re.match(r"Server stderr: ", said):
            builder.add("stderr", number, conn=conn, ts=ts, dir="s2c", raw=jsontext.printable(said.split(": ", 1)[1]))
        elif re.match(
            r"(?:\w+ connection (?:dropped|closed)|Connection (?:closed|failed)|Closing transport)",
            said,
        ):
            builder.add("close", number, conn=conn, ts=ts, reason=jsontext.printable(said[:300]))
        elif (quoted := _MESSAGE.search(said)) is not None:
            found = text.json_in(said, quoted.start())
            heads = look(found[0].encode("utf-8", "surrogateescape")) if not isinstance(found, str) else found
            if isinstance(found, str) or isinstance(heads, str):
                self.other += 1
                return
            way = words.resolve(words.said(said[: quoted.start()]), "c2s")
            builder.message(found[0], number, conn=conn, ts=ts, dir=way, heads=heads)
        else:
            self.other += 1

    def _open(self, number: int, conn: str, ts: Any, server: str) -> None:
        """Both lines that tell of a connection are there in some builds, one of them in others."""
        if conn not in self.opened:
            self.opened.add(conn)
            self.builder.add("open", number, conn=conn, ts=ts, label=server or UNSET)
