"""Readers and writers of trace files: one module a format, each with ``sniff`` and ``read`` (and ``write``).

``FORMATS`` is the declared order in which formats are tried; the first whose ``sniff`` says yes reads the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from mcplab.formats import (
    cassette,
    chrome_trace,
    claude_code,
    claude_desktop,
    clock,
    curl,
    cursor,
    event_stream,
    fast_agent,
    golog,
    har,
    inspector,
    inspector_network,
    lsp,
    mcp_remote,
    mcpjam,
    mcpsnoop,
    native,
    plain,
    prose,
    python_sdk,
    recordings,
    vscode,
)
from mcplab.formats.source import Source, as_utf8
from mcplab.model import ArgumentError, Record, TraceError


class Format(Protocol):
    """What a module in this package offers."""

    NAME: str
    TITLE: str

    def sniff(self, data: bytes) -> bool: ...

    def read(self, source: Source, *, tz: str | None = None) -> Record: ...


FORMATS: tuple[Format, ...] = (  # type: ignore[assignment]
    native,
    mcpsnoop,
    har,
    inspector,
    inspector_network,
    mcpjam,
    cassette,
    recordings,
    claude_desktop,
    vscode,
    claude_code,
    fast_agent,
    mcp_remote,
    cursor,
    python_sdk,
    curl,
    golog,
    lsp,
    event_stream,
    plain,
    prose,
)

WRITERS = {module.NAME: module for module in (native, mcpsnoop, chrome_trace)}
"""The formats that can be written: ``write(record)`` gives the file in pieces, ``LOST`` says what it cannot hold."""


def write(record: Record, format: str = native.NAME, answers: Mapping[int, int] | None = None) -> Iterator[bytes]:
    """The record as a file of the named format, in pieces; ``TraceError`` names the formats that can be written.

    ``answers``: seq of an answer -> seq of its request, for a format that draws both as one.
    """
    if format not in WRITERS:
        raise ArgumentError(f"no format {format!r} to write; formats that can be written: {', '.join(WRITERS)}")
    if format == chrome_trace.NAME:
        return chrome_trace.write(record, answers)
    return WRITERS[format].write(record)


def lost(format: str) -> tuple[str, ...]:
    """What a file of this format cannot hold, in words."""
    return getattr(WRITERS[format], "LOST", ())


def names() -> list[str]:
    """The names that ``format=`` takes."""
    return [module.NAME for module in FORMATS]


def find(name: str) -> Format:
    """The format of that name; ``TraceError`` names the known ones."""
    for module in FORMATS:
        if name == module.NAME:
            return module
    raise ArgumentError(f"no format {name!r}; known formats: {', '.join(names())}")


def read(source: Source, *, format: str | None = None, tz: str | None = None) -> Record:
    """Read one capture, by the named format or the first that recognises it.

    Raises ``TraceError``, in one line, for an empty source and for one that no reader knows.
    """
    if not source.data.lstrip(b"\0 \t\r\n"):  # at its end it would be a copy of nearly all files
        raise TraceError(f"{source.file}: empty, so there is no trace to read")
    clock.zone(tz)  # a wrong zone is an error for every format
    found = find(format) if format is not None else next((m for m in FORMATS if m.sniff(source.data)), None)
    if found is None:
        start = source.data.lstrip(b"\0 \t\r\n")[:60].decode("utf-8", "backslashreplace").split("\n")[0].strip()
        why = f"not a trace that mcplab knows (starts {start!r}); known formats: {', '.join(names())}"
        raise TraceError(f"{source.file}: {why}; mcplab tap, wrap and proxy record one")
    return found.read(source if found is native else as_utf8(source), tz=tz)
