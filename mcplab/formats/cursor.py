"""Cursor's "MCP Logs": prose about what the client did, no protocol message.

Seen in microsoft/mcp#1045 and GLips/Figma-Context-MCP#77.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import clock, text
from mcplab.formats.build import Builder
from mcplab.formats.claude_desktop import not_json
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "cursor"
TITLE = "Cursor MCP log (lifecycle only)"

_ENTRY = re.compile(
    r"[>\s]*(\d{3,4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?) \[(\w+)\]\s+(?:([^\s:][^:]{0,80}): )?(.*)"
)
_SIGN = re.compile(
    r"Handling (?:CreateClient|ListOfferings|DeleteClient|ReloadClient) action"
    r"|Starting new (?:stdio|streamableHttp|SSE) process"
    r"|Successfully connected to (?:stdio|streamableHttp|sse) server|Found \d+ tools, \d+ (?:prompts|resources)"
    r"|Client (?:closed|error) for command|Storing stdio client"
)  # fmt: skip
HOW = (
    "Cursor's log holds no protocol message, only what the client did: no declaration, version or call can be told "
    "from it; record with `mcplab tap` or another logger to see them"
)


def sniff(data: bytes) -> bool:
    """Are there Cursor's own words?"""
    return _SIGN.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read connections coming and going, and stdout text that was no JSON; all else is counted in the notes."""
    builder = Builder(source, NAME)
    local = clock.zone(tz)
    builder.header["clock"] = "naive" if local is None else "utc"
    counts: dict[str, int] = {}
    other = 0
    offered = ""
    for number, line in enumerate(text.lines(source.data), 1):
        entry = _ENTRY.match(line)
        if entry is None:
            other += bool(line.strip())
            continue
        ts, server, words = clock.utc(entry[1], local), entry[3] or "", entry[4]
        if server and _SIGN.search(f"{server}: {words}") and not _SIGN.search(words):
            words = f"{server}: {words}"
            server = ""
        conn = f"{server or 'c'}{counts.get(server, 1) if not server else ''}"
        refused = not_json(words)
        if re.match(r"Starting new (?:stdio|streamableHttp|SSE)", words):
            counts[server] = counts.get(server, 0) + 1
            conn = f"{server or 'c'}{counts[server] if not server else ''}"
            if "stdio" in words:
                builder.header["transport"] = "stdio"
            builder.add("open", number, conn=conn, ts=ts, label=server or UNSET)
        elif refused is not None:
            builder.add("unparsed", number, conn=conn, ts=ts, dir="s2c", raw=refused or UNSET, reason=words)
            builder.note("of a stdout line that is no JSON the log keeps ten characters at most")
        elif re.match(r"Client closed|Error in MCP: Client closed", words):
            builder.add("close", number, conn=conn, ts=ts, reason=words)
        else:
            other += 1
            found = re.search(r"Found \d+ tools.*", words)
            offered = found[0] if found is not None else offered
    builder.notes.insert(0, HOW)
    if offered:
        builder.note(f"the log says: {offered[:200]}")
    if local is None:
        builder.note(clock.NAIVE)
    if other:
        builder.note(f"{other} other lines of the log are left out")
    return builder.record(need=HOW)
