"""A byte stream framed as in the Language Server Protocol (``Content-Length: N``, empty line, body).

MCP's stdio transport ends messages with line breaks and has no headers (specification, basic/transports, stdio), so the
headers are kept as ``unparsed`` text of the party that wrote them, and the bodies are read.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab.formats import documents, scan, text
from mcplab.formats.build import NO_CLOCK, Builder
from mcplab.formats.head import look
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "lsp-framed"
TITLE = "messages framed with Content-Length headers"

_HEADERS = re.compile(r"(?i)Content-Length:[ \t]*(\d+)[ \t]*\r?\n(?:[A-Za-z-]+:[^\r\n]*\r?\n)*[ \t]*\r?\n?")
_SIGN = re.compile(
    r"(?i)(?:^|[}\n])Content-Length:[ \t]*\d+[ \t]*\r?\n(?:Content-Type:[^\n]*\n)?[ \t]*\r?\n?[ \t]*[\[{]"
)
WRONG = (
    "the messages are framed with Content-Length headers, as in the Language Server Protocol: MCP's stdio transport "
    "has none, and a conforming reader finds no message there"
)


def sniff(data: bytes) -> bool:
    """Is there a Content-Length header with JSON after it, and no HTTP status line?"""
    start = text.start(data)
    return _SIGN.search(start) is not None and re.search(r"HTTP/[\d.]+ \d{3}|\bHTTP/1\.1\b", start) is None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read framed bodies, and unframed lines between them. Directions are inferred."""
    builder = Builder(source, NAME, transport="stdio", infer=True)
    whole = text.decode(source.data)
    lines = documents.Lines(whole)
    pos = 0
    for head in _HEADERS.finditer(whole):
        if head.start() < pos:
            continue
        _unframed(builder, whole[pos : head.start()], lines[pos])
        pos = head.end()
        body = text.json_in(whole[pos : _next(whole, pos)])
        if isinstance(body, str):
            _header(builder, head[0], lines[head.start()], UNSET)
            continue
        heads = look(body[0].encode("utf-8", "surrogateescape"))
        told = builder.directions("c1").of(heads) if isinstance(heads, list) else UNSET
        _header(builder, head[0], lines[head.start()], told)
        builder.message(body[0], lines[pos], dir=told)
        size = len(body[0].encode("utf-8", "surrogateescape"))
        if int(head[1][:12]) != size:
            builder.note(f"line {lines[head.start()]}: Content-Length says {head[1][:12]}, the body has {size} bytes")
        pos += body[1]
    _unframed(builder, whole[pos:], lines[pos])
    builder.note(WRONG)
    builder.note(NO_CLOCK)
    return builder.record()


def _next(whole: str, pos: int) -> int:
    following = _HEADERS.search(whole, pos)
    return following.start() if following is not None else len(whole)


def _header(builder: Builder, raw: str, line: int, told: object) -> None:
    builder.add("unparsed", line, conn="c1", dir=told, raw=raw, reason="a Content-Length header, no JSON-RPC message")


def _unframed(builder: Builder, between: str, line: int) -> None:
    for each in scan.scan(between.replace("\r\n", "\n").split("\n")):
        if isinstance(each.heads, list):
            builder.message(each.text, line + each.line - 1, heads=each.heads)
        elif each.text.lstrip()[:1] in ("{", "["):
            builder.lost(line + each.line - 1, each.text, each.heads)
        else:
            builder.add("unparsed", line + each.line - 1, conn="c1", raw=each.text, reason=each.heads)
