"""fast-agent's ``fast-agent-log.jsonl``: level, timestamp, namespace, message, data (evalstate/fast-agent,
core/logging/transport.py). Lifecycle and stderr; a message only where ``data`` holds one."""

from __future__ import annotations

import re
from typing import Any

from mcplab import jsontext
from mcplab.formats import clock, scan, text
from mcplab.formats.build import NO_HTTP, Builder
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "fast-agent"
TITLE = "fast-agent log (lifecycle only)"

_SIGN = re.compile(
    r'^[ \t]*\{"level"\s*:\s*"[A-Z]+"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"namespace"\s*:', re.MULTILINE
)
_OPEN = re.compile(r"^(\S[^:]{0,80}): (?:Up and running|Session initialized|Connected|Initialized)")
_CLOSE = re.compile(
    r"^(\S[^:]{0,80}): (?:Lifecycle task (?:encountered|is exiting)|Requesting shutdown|Disconnect|Session invalidated)"
)
_STDERR = re.compile(r"^(\S.{0,80}?) \(stderr\): (.*)", re.DOTALL)


def sniff(data: bytes) -> bool:
    """Are there objects with level, timestamp and namespace in fast-agent's order?"""
    return _SIGN.search(text.start(data, 1 << 17)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read connections coming and going and stderr; times are local."""
    builder = Builder(source, NAME, infer=True)
    local = clock.zone(tz)
    other = 0
    naive = False
    for number, line in enumerate(text.lines(source.data), 1):
        whole = line.strip("\0 \t")
        if not whole:
            continue
        try:
            value = jsontext.loads(whole)
        except (ValueError, RecursionError) as error:
            builder.lost(number, whole, str(error) if isinstance(error, ValueError) else "nested too deeply")
            continue
        if not isinstance(value, dict) or not isinstance(value.get("message"), str):
            builder.lost(number, whole, "no line of fast-agent's log")
            continue
        naive = naive or clock.is_naive(value.get("timestamp"))
        other += not _take(builder, number, whole, value, clock.utc(value.get("timestamp"), local))
    if naive:
        builder.header["clock"] = "naive" if local is None else "utc"
        if local is None:
            builder.note(clock.NAIVE)
    builder.note("fast-agent logs what happened around the traffic, not the messages; by default warnings only")
    builder.note(NO_HTTP)
    if other:
        builder.note(f"{other} other lines are left out")
    return builder.record(need="fast-agent's log holds no message and no connection")


def _take(builder: Builder, number: int, whole: str, value: dict[str, Any], ts: Any) -> bool:
    said = value["message"]
    for pattern, kind in ((_OPEN, "open"), (_CLOSE, "close")):
        found = pattern.match(said)
        if found is not None:
            more = {"label": found[1]} if kind == "open" else {"reason": jsontext.printable(said[:300])}
            if "encountered" in said:
                more["unexpected"] = True  # type: ignore[assignment]
            builder.add(kind, number, conn=found[1], ts=ts, **more)
            return True
    stderr = _STDERR.match(said)
    if stderr is not None:
        builder.add("stderr", number, conn=stderr[1], ts=ts, dir="s2c", raw=jsontext.printable(stderr[2]))
        return True
    data, _ = jsontext.get(whole, "data")
    inner = scan.unwrap(data) if data is not None and data[:1] == "{" else None
    if inner is not None and isinstance(inner.heads, list):
        builder.message(inner.text, number, ts=ts, heads=inner.heads)
        return True
    return False
