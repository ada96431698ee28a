"""Readers and writers of trace files: one module a format, each with ``sniff`` and ``read`` (and ``write``).

``FORMATS`` is the declared order in which formats are tried; the first whose ``sniff`` says yes reads the source.
"""

from __future__ import annotations

from typing import Protocol

from mcplab.formats import (
    claude_desktop,
    clock,
    curl,
    golog,
    har,
    lsp,
    mcpsnoop,
    native,
    plain,
    prose,
    vscode,
)
from mcplab.formats.source import Source, as_utf8
from mcplab.model import Record, TraceError


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
    curl,
    vscode,
    claude_desktop,
    golog,
    lsp,
    plain,
    prose,
)


def names() -> list[str]:
    """The names that ``format=`` takes."""
    return [module.NAME for module in FORMATS]


def find(name: str) -> Format:
    """The format of that name; ``TraceError`` names the known ones."""
    for module in FORMATS:
        if name == module.NAME:
            return module
    raise TraceError(f"no format {name!r}; known formats: {', '.join(names())}")


def read(source: Source, *, format: str | None = None, tz: str | None = None) -> Record:
    """Read one capture, by the named format or the first that recognises it.

    Raises ``TraceError``, in one line, for an empty source and for one that no reader knows.
    """
    if not source.data.strip(b"\0 \t\r\n"):
        raise TraceError(f"{source.name}: empty, so there is no trace to read")
    clock.zone(tz)  # a wrong zone is an error for every format
    found = find(format) if format is not None else next((m for m in FORMATS if m.sniff(source.data)), None)
    if found is None:
        start = source.data[:60].decode("utf-8", "backslashreplace").strip().splitlines()[0].strip()
        known = ", ".join(names())
        raise TraceError(f"{source.name}: not a trace that mcplab knows (starts {start!r}); known formats: {known}")
    return found.read(source if found is native else as_utf8(source), tz=tz)
