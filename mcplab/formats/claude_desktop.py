"""Claude Desktop's ``mcp.log`` and ``mcp-server-NAME.log``, alone or pasted from ``tail`` with its file headers.

Seen in the wild: both orders of the brackets, `` { metadata: undefined }`` after the text, long messages shortened in
the middle (``...[18778 chars truncated]...``), the server's stderr without any prefix (modelcontextprotocol/
typescript-sdk#179, go-sdk#395, olaservo/skilljack-mcp#27).
"""

from __future__ import annotations

import re

import msgspec
from msgspec import UNSET, UnsetType

from mcplab.formats import clock, text
from mcplab.formats.build import NO_HTTP, Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "claude-desktop"
TITLE = "Claude Desktop log (mcp.log, mcp-server-NAME.log)"

_LEVELS = {"info", "error", "warn", "warning", "debug", "trace", "silly", "verbose"}
_ENTRY = re.compile(
    r"[>\s]*(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?Z?)\s+(?:\[([^\][{}\"]*)\]\s?)?(?:\[([^\][{}\"]*)\]\s?)?(.*)",
    re.DOTALL,
)
_MESSAGE = re.compile(r"Message from (client|server): ?")
_TAIL = re.compile(r"==> (.*) <==\s*$")
_FILE = re.compile(r"mcp-server-(.+?)\.log")
_AFTER = re.compile(r"\s*\{ metadata: \w+ \}\s*")
_SHORTENED = re.compile(r"\.\.\.\[\d+ chars truncated\]\.\.\.")
_NOT_JSON = re.compile(
    r"(?:(?:Unexpected|Expected|Bad control|Bad escaped|Unterminated|Invalid) .*\bJSON\b|\".*\" is not valid JSON)",
    re.DOTALL,
)
_SIGN = re.compile(
    r"\] Message from (?:client|server): ?[\[{]|^.{0,60}\[[^\]]+\] (?:\[[^\]]+\] )?(?:Initializing server\.\.\."
    r"|Server started and connected successfully|(?:Client|Server) transport closed)",
    re.MULTILINE,
)


def sniff(data: bytes) -> bool:
    """Does it hold lines of this log?"""
    return _SIGN.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the log. Connections are named by their server: ``files``, ``files#2`` for the next run of it."""
    builder = Builder(source, NAME, transport="stdio")
    local = clock.zone(tz)
    lines = [text.ANSI.sub("", line) if line[:1] == "\x1b" else line for line in text.lines(source.data)]
    log = _Log(builder)
    log.first = next((log.server(entry[2], entry[3]) for line in lines if (entry := _ENTRY.match(line))), "")
    for number, line in enumerate(lines, 1):
        log.take(number, line, local)
    builder.note(NO_HTTP)
    log.close()
    return builder.record()


class _Link:
    def __init__(self, name: str) -> None:
        self.name = name
        self.used: set[str] = set()
        self.closed_at: int | None = None


class _Log:
    """Walks through the lines; knows which connections of which server are open."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.open: dict[str, list[_Link]] = {}
        self.counts: dict[str, int] = {}
        self.starting: dict[str, int] = {}
        self.last: dict[str, _Link] = {}
        self.section = _FILE.search(builder.source.file)[1] if _FILE.search(builder.source.file) else ""  # type: ignore[index]
        self.first = ""  # the server that the log speaks of first
        self.early = 0
        self.tailed = False
        self.seen: set[tuple[object, ...]] = set()
        self.depth = 0  # of an entry that goes on over several lines
        self.other = self.shortened = self.twice = 0

    def take(self, number: int, line: str, local: object) -> None:
        tail = _TAIL.match(line)
        if tail is not None:
            named = _FILE.search(tail[1])
            self.section, self.tailed, self.depth = named[1] if named else "", True, 0
            return
        entry = _ENTRY.match(line)
        message = _MESSAGE.search(line)
        if entry is None and message is None:
            self._loose(number, line)
            return
        if entry is not None:
            ts = clock.utc(entry[1], local)  # type: ignore[arg-type]
            server, rest = self.server(entry[2], entry[3]), entry[4]
        else:
            ts, rest = UNSET, line
            names = [name for name in re.findall(r"\[([^\]]*)\]", line[: message.start()]) if name not in _LEVELS]  # type: ignore[union-attr]
            server = names[0] if names else self.section
        self.depth = 0
        found = _MESSAGE.match(rest) or (message and _MESSAGE.search(rest))
        if found:
            self._message(number, server, ts, "c2s" if found[1] == "client" else "s2c", rest[found.end() :])
        else:
            self._lifecycle(number, server, ts, rest)

    def server(self, first: str | None, second: str | None) -> str:
        """The server that an entry's brackets name, in either order."""
        names = [name for name in (first, second) if name is not None]
        if len(names) == 2 and names[0].lower() in _LEVELS:
            return names[1]
        return names[0] if names and names[0].lower() not in _LEVELS else self.section

    def _message(self, number: int, server: str, ts: str | UnsetType, direction: str, rest: str) -> None:
        if self.tailed:  # mcp.log and the server's own file hold the same lines
            key = (server, ts, direction, rest)
            if key in self.seen:
                self.twice += 1
                return
            self.seen.add(key)
        found = text.json_in(rest)
        if isinstance(found, str):
            cut = " (the log shortened it)" if _SHORTENED.search(rest) else ""
            self.builder.lost(number, rest, f"{found}{cut}")
            self._rescue(number, server, ts, rest)
            return
        body, end = found
        if _SHORTENED.search(body):
            self.shortened += 1
        after = rest[end:]
        if after.strip() and not _AFTER.fullmatch(after):
            self.builder.lost(number, after, "text after a message")
            self._rescue(number, server, ts, after)
        heads = look(body.encode("utf-8", "surrogateescape"))
        link = self._link(server, number, ts, direction, heads)
        self.builder.message(
            body, number, conn=link.name, dir=direction, ts=ts, heads=None if isinstance(heads, str) else heads
        )

    def _link(self, server: str, number: int, ts: str | UnsetType, direction: str, heads: object) -> _Link:
        """The connection a message belongs to; where several of one server are open, ids decide."""
        links = self.open.get(server) or [self._begin(server, number, ts)]
        link = links[-1]
        if isinstance(heads, list) and heads and heads[0].key is not None:
            key = heads[0].key
            asks = heads[0].method is not UNSET
            mark = f"{direction}{key}" if asks else f"{'s2c' if direction == 'c2s' else 'c2s'}{key}!"
            if len(links) > 1:
                self.builder.note(
                    f"several connections to {server!r} were open at once and the log does not say which one a message "
                    "belongs to: each request goes to the oldest one that has not used its id, each answer likewise"
                )
                link = next(
                    (each for each in links if mark not in each.used and (asks or mark[:-1] in each.used)), link
                )
            link.used.add(mark)
        return link

    def _begin(self, server: str, number: int, ts: str | UnsetType) -> _Link:
        self.counts[server] = self.counts.get(server, 0) + 1
        base = server or "c1"
        link = _Link(base if self.counts[server] == 1 else f"{base}#{self.counts[server]}")
        self.open.setdefault(server, []).append(link)
        self.last[server] = link
        self.builder.add("open", number, ts=ts, conn=link.name, label=server or UNSET)
        return link

    def _lifecycle(self, number: int, server: str, ts: str | UnsetType, rest: str) -> None:
        words = _bare(rest)
        if '"jsonrpc"' in rest and self._rescue(number, server, ts, rest):
            self.builder.lost(number, rest, "damaged: a message, but not the words that go before one")
        elif words.startswith("Initializing server"):
            self.starting[server] = self.starting.get(server, 0) + 1
        elif words.startswith("Server started and connected"):
            self._begin(server, number, ts)
        elif re.match(r"(?:Client|Server) transport closed", words):
            self._closed(number, server, ts, words)
        elif words.startswith("Shutting down server"):
            self.other += 1
        elif (quoted := not_json(words)) is not None:
            link = (self.open.get(server) or [self._begin(server, number, ts)])[-1]
            self.builder.add("unparsed", number, ts=ts, conn=link.name, dir="s2c", reason=words,
                             raw=quoted or UNSET)  # fmt: skip
            self.builder.note("of a stdout line that is no JSON the log keeps ten characters at most")
        else:
            self.other += 1
            self.depth = max(0, _balance(words))

    def _closed(self, number: int, server: str, ts: str | UnsetType, words: str) -> None:
        links = self.open.get(server, [])
        unexpected = True if "unexpectedly" in words else UNSET
        if links:
            link = links.pop(0)
            link.closed_at = len(self.builder.events)
            self.last[server] = link
            self.builder.add("close", number, ts=ts, conn=link.name, reason=words, unexpected=unexpected)
        elif unexpected is True and server in self.last and self.last[server].closed_at is not None:
            at: int = self.last[server].closed_at  # type: ignore[assignment]
            event = self.builder.events[at]
            self.builder.events[at] = msgspec.structs.replace(event, unexpected=True, reason=words.split(",")[0])

    def _loose(self, number: int, line: str) -> None:
        """A line without a prefix: the rest of an entry, else what the server wrote to stderr."""
        if not line.strip("\0 \t"):
            return
        if '"jsonrpc"' in line and self._rescue(number, self.section, UNSET, line):
            self.builder.lost(number, line, "damaged: a message, but not the words that go before one")
            return
        if self.depth > 0:
            self.depth = max(0, self.depth + _balance(line))
            return
        if line.strip().startswith("```"):
            return  # pasted with its fences
        if not self.last and not self.section:
            self.early += 1
            return
        servers = [self.section] if self.section else list(self.last)
        conn = self.last[servers[0]].name if len(servers) == 1 and servers[0] in self.last else self.section or UNSET
        self.builder.add("stderr", number, conn=conn, dir="s2c", raw=line)

    def _rescue(self, number: int, server: str, ts: str | UnsetType, rest: str) -> int:
        links = (
            self.open.get(server) or list(self.last.values())[-1:] or [self._begin(server or self.first, number, ts)]
        )
        return self.builder.rescue(rest, number, conn=links[-1].name, ts=ts)

    def close(self) -> None:
        if self.other:
            self.builder.note(f"{self.other} log lines of Claude Desktop itself carry no traffic and are left out")
        if self.early:
            self.builder.note(f"{self.early} lines before the first entry of the log are left out")
        if self.shortened:
            self.builder.note(f"{self.shortened} messages were shortened by the log and are not whole")
        if self.twice:
            self.builder.note(f"{self.twice} messages stood in two of the files and are kept once")


def not_json(words: str) -> str | None:
    """What V8's "... is not valid JSON" quotes of a text that was no JSON ("" where nothing); None for other words."""
    words = words[:2000]
    if _NOT_JSON.match(words.removeprefix("Client error for command ")) is None:
        return None
    first, last = words.find('"'), words.rfind('"', 0, words.find(" is not valid JSON") + 1)
    return words[first + 1 : last] if 0 <= first < last else ""


def _bare(words: str) -> str:
    """The words without what the logger hangs on them."""
    at = words.rfind("{ metadata: ")
    return words[:at].rstrip() if at >= 0 and words.rstrip().endswith("}") else words


def _balance(line: str) -> int:
    return sum(line.count(c) for c in "{[") - sum(line.count(c) for c in "}]")
