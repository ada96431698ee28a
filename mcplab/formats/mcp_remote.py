"""mcp-remote's own log on stderr: ``[pid] [Local→Remote] tools/list`` (geelen/mcp-remote, src/lib/utils.ts).

It names methods and ids. Whole are only the ``initialize`` request that some versions print (with the clientInfo that
mcp-remote has changed) and the body of an HTTP refusal.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import clock, text
from mcplab.formats.build import Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Http, Record

NAME = "mcp-remote"
TITLE = "mcp-remote log"

_ENTRY = re.compile(r"(?:\[(\d{4}-\d\d-\d\dT[^\]]+)\]\s?)?\[(\d+)\] (.*)")
_WAY = re.compile(r"\[(Local→Remote|Remote→Local)\] (.*)|(Local → Remote|Remote → Local) message (.*)")
_SIGN = re.compile(
    r"\[\d+\] (?:\[\d+\] Connecting to remote server|Using transport strategy|Proxy established)"
    r"|\[(?:Local→Remote|Remote→Local)\] "
)
_REFUSED = re.compile(r"\(?HTTP (\d{3})\)?:? (?=[\[{])")


def sniff(data: bytes) -> bool:
    """Are there mcp-remote's arrows or words?"""
    return _SIGN.search(_arrows(text.start(data))) is not None


def _arrows(line: str) -> str:
    """The line with the arrows that an editor saved in another encoding put right."""
    return line.replace("â†’", "→") if "â" in line else line


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read what is whole as messages; the rest as counts in the notes. A connection is a process of mcp-remote."""
    builder = Builder(source, NAME)
    named: dict[str, dict[str, int]] = {"Local→Remote": {}, "Remote→Local": {}}
    whole = [_arrows(line) for line in text.lines(source.data)]
    lines = [*whole, ""]
    skip = 0
    opened: set[str] = set()
    for number, line in enumerate(whole, 1):
        entry = _ENTRY.match(line)
        if number <= skip:
            continue
        pid, words = (entry[2], entry[3]) if entry is not None else ("", line)
        conn = f"c{pid}" if pid else "c1"
        ts = clock.utc(entry[1]) if entry is not None and entry[1] else UNSET
        way = _WAY.search(words)
        if conn not in opened and ((way is not None and way[1]) or "Connecting to remote server" in words):
            opened.add(conn)
            builder.add("open", number, conn=conn, ts=ts)
        if way is not None and way[1]:
            count = named[way[1]]
            count[way[2].strip()] = count.get(way[2].strip(), 0) + 1
        elif words.startswith("{") and entry is not None:
            skip = _printed(builder, lines, number, words, conn)
        elif (refused := _REFUSED.search(words)) is not None:
            _refusal(builder, number, words, refused, conn, ts)
        elif words.startswith(("Connected to remote server using", "Proxy established")):
            if conn not in opened:
                opened.add(conn)
                builder.add("open", number, conn=conn, ts=ts)
            _transport(builder, words)
        elif re.match(r"\s*(?:Shutting down|Remote transport closed|Local transport closed|Fatal error)", words):
            builder.add("close", number, conn=conn, ts=ts, reason=words.strip()[:200])
        else:
            _transport(builder, words)
    _say(builder, named)
    return builder.record(need="mcp-remote's log names methods and ids only: there is no message in it")


def _printed(builder: Builder, lines: list[str], number: int, words: str, conn: str) -> int:
    """A message that was printed with indentation, from this line on; the last line of it."""
    last = number
    while last < min(number + 2000, len(lines)) and not lines[last - 1].startswith("}"):
        if _ENTRY.match(lines[last]):
            break
        last += 1
    body = "\n".join([words, *lines[number:last]])
    found = text.json_in(body)
    if isinstance(found, str) or isinstance(look(found[0].encode("utf-8", "surrogateescape")), str):
        builder.lost(number, body, found if isinstance(found, str) else "a printed object that is no message")
        return number
    builder.message(found[0], number, conn=conn, dir="c2s")
    builder.note("the initialize request is as mcp-remote sent it on: clientInfo.name and capabilities are its own")
    return number + found[0].count("\n")


def _refusal(builder: Builder, number: int, words: str, refused: re.Match[str], conn: str, ts: object) -> None:
    found = text.json_in(words, refused.end())
    facts = Http(status=int(refused[1]))
    if isinstance(found, str):
        builder.lost(number, words, found)
        return
    builder.message(found[0], number, conn=conn, dir="s2c", ts=ts, http=facts)  # type: ignore[arg-type]


def _transport(builder: Builder, words: str) -> None:
    if "SSEClientTransport" in words:
        builder.header["transport"] = "sse"
    elif "StreamableHTTPClientTransport" in words:
        builder.header["transport"] = "streamable-http"


def _say(builder: Builder, named: dict[str, dict[str, int]]) -> None:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in list(counts.items())[:40]) or "nothing"

    sent, received = listed(named["Local→Remote"]), listed(named["Remote→Local"])
    builder.note(
        f"mcp-remote logs method names and ids, not messages: client to server {sent}; server to client {received}"
    )
    builder.note(
        "no headers and no session id, so what concerns them cannot be judged; no times unless it ran with --debug"
    )
