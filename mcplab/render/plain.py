"""The transport display as text: for terminals, pipes and logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

import pandas as pd

from mcplab.look import ACTIVITIES, STATES
from mcplab.render.facts import COUNTS, Facts, Row, brief, facts
from mcplab.render.segments import PLAIN, Segments, overall, segments
from mcplab.render.tokens import Token
from mcplab.told import columns_of, fit, pad, safe

WIDTH: Final = 120
NARROWEST: Final = 60
HEADS: Final = {"request": "req", "response": "resp", "notification": "notif", "ping": "ping", "error": "err"}
_DIM, _BOLD, _RED, _YELLOW = "2", "1", "91", "1;93"
_LINES: Final = 4
"""Lines that one name or reason may take."""
_COUNT: Final = 6
"""Columns of a count."""

Piece = tuple[str, str]
"""Text and the code of its colour (``""``: none)."""


def text(
    trace: Any,
    *,
    steps: int = 60,
    step_seconds: float = 1.0,
    end: Any = None,
    instance: str | None = None,
    width: int = WIDTH,
    colour: bool = False,
    short: bool = False,
) -> str:
    """The display of each instance, one below the other.

    Args:
        trace: a Trace.
        steps, step_seconds, end: the strip's steps, as for ``timeline``; ``end="now"``: this moment.
        instance: only this one.
        width: columns of the terminal; steps merge where there are fewer columns than steps.
        colour: with the terminal's colours. Without, an error is ✖ and a ping •, for shape must speak alone.
        short: three lines an instance.

    Raises:
        TraceError: no such instance, wrong steps, or an end that is no time.
    """
    width = max(width, NARROWEST)
    blocks: list[str] = []
    for one in facts(trace, instance):
        asked = {"steps": steps, "step_seconds": step_seconds, "end": end}
        lines = _short(trace, one, width, colour, asked) if short else _full(trace, one, width, colour, asked)
        blocks.append("".join(f"{_join(line, colour)}\n" for line in lines))
    return ("" if short else "\n").join(blocks) or "no connection was captured\n"


def _join(line: Sequence[Piece], colour: bool) -> str:
    if colour:
        return "".join(f"\x1b[{code}m{part}\x1b[0m" if code and part else part for part, code in line)
    return "".join(part for part, _ in line).rstrip()


# The block of one instance ---------------------------------------------------------------------------


def _full(trace: Any, one: Facts, width: int, colour: bool, asked: dict[str, Any]) -> Iterator[list[Piece]]:
    yield [_rule(f"▎{safe(one.instance)} ", width)]
    for name, value in header(one, now=asked["end"] == "now"):
        yield from _told(f"{name:<10}", value, _code(name, one), width, then=" " * 10)
    yield []
    yield from folded("mcp calls: ", _calls(one), width, then="           ")
    yield []
    heads = [name for name in COUNTS if not (name == "ping" and one.modern)]
    wide = max((columns_of(row.channel) for row in one.channels), default=0) + 6
    room = max(width - wide - _COUNT * len(heads), 10)
    strips = segments(trace, one.instance, room=room, **asked)
    top = f"┌ {(one.transport or 'unknown transport').upper()} "
    yield [
        (top + "─" * max(wide + strips.count - len(top), 0), _DIM),
        *((f"{HEADS[n]:>{_COUNT}}", _DIM) for n in heads),
    ]
    for row in one.channels:
        yield from _channel(row, strips, heads, wide, width, colour)
    yield from _told("│ ", "; ".join(scale(strips)), _DIM, width)
    for line in _remarks(one):
        yield from _told("│ ", line, "", width, then="│     ")
    yield from folded("└ ", _legend(one, strips, colour), width, then="  ")
    yield from _tokens(one.tokens, width)


def header(one: Facts, *, now: bool = False) -> Iterator[tuple[str, str]]:
    """Names and values of the lines above the channels; session and health are left out where all is modern."""
    yield "name", one.server or "unknown"
    yield "version", one.server_version or "unknown"
    yield "client", one.caller
    if one.config and one.config != one.trace.rpartition("/")[2]:
        yield "config", one.config
    yield "protocol", one.label
    if not one.modern:
        yield "session", one.session or "None"
        if one.health is not None:
            yield "health", one.health
            yield "pings", ", ".join(_pulse(one))
        if one.incomplete:
            yield "handshake", "incomplete: initialize, its result or notifications/initialized was not seen"
    yield "transport", one.transport or "unknown"
    yield "activity", _activity(one, now)


def _calls(one: Facts) -> list[Piece]:
    names = (safe(one.calls) or "none").split(", ")
    return [(f"{name}, ", "") for name in names[:-1]] + [(names[-1], "")]


def _pulse(one: Facts) -> Iterator[str]:
    yield f"every {one.interval:.3g} s" if one.interval is not None else "interval not known"
    yield f"missed {one.missed} of {one.limit}"
    if one.answered_before is not None:
        yield f"last answer {brief(one.answered_before)} before the end"


def _activity(one: Facts, now: bool) -> str:
    counted = f"{one.messages:,} message{'' if one.messages == 1 else 's'}"
    if one.connections > 1:
        counted += f" on {one.connections:,} connections"
    if one.first is None or one.last is None:
        return f"{counted}, no clock"
    day = f"{one.first:%Y-%m-%d}"
    until = clock(one.last) if f"{one.last:%Y-%m-%d}" == day else f"{one.last:%Y-%m-%d} {clock(one.last)}"
    span = (one.last - one.first).total_seconds()
    ago = f", last {brief((pd.Timestamp.now(tz='UTC') - one.last).total_seconds())} ago" if now else ""
    return f"{counted}, {day} {clock(one.first)} to {until} UTC ({span:.3g} s{ago})"


def clock(moment: datetime) -> str:
    """``11:16:20.057``."""
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"


def _code(name: str, one: Facts) -> str:
    """The colour of a header line's value."""
    if name == "health":
        return {"ok": "32", "pending": _DIM}.get(one.health or "", _RED)
    return {"protocol": _BOLD, "name": _BOLD, "handshake": _RED}.get(name, "")


# Channels ------------------------------------------------------------------------------------------------


def _channel(
    row: Row, strips: Segments, heads: Sequence[str], wide: int, width: int, colour: bool
) -> Iterator[list[Piece]]:
    cells = strips.cells.get(row.channel, ["none"] * strips.count)
    head = f"{row.arrow} {safe(row.channel)}"
    line: list[Piece] = [("│ ", _DIM), (pad(head, wide - 2), "" if row.usable else _DIM)]
    words = "" if row.state in ("open", "closed") and not row.why else row.words
    quiet = all(cell == "none" for cell in cells)
    inside = quiet and bool(words) and columns_of(words) <= strips.count
    line += [(pad(safe(words), strips.count), _DIM)] if inside else strip(cells, colour)
    line += [
        (f"{'-' if row.counts is None else row.counts[name]:>{_COUNT}}",
         _RED if name == "error" and row.counts and row.counts[name] else "")
        for name in heads
    ]  # fmt: skip
    tail = safe("; ".join(_tail(row, "" if inside else words)))
    used = sum(columns_of(part) for part, _ in line)
    if tail and used + 2 + columns_of(tail) <= width:
        line.append((f"  {tail}", _DIM))
    yield line
    if tail and used + 2 + columns_of(tail) > width:
        yield from _told("│     ", tail, _DIM, width)


def _tail(row: Row, words: str) -> Iterator[str]:
    """What stands behind a channel's counts: its state, then what went wrong last."""
    if words:
        yield words
    elif row.state in ("open", "closed"):
        yield row.state
    if row.failures and row.state != "disabled":
        yield f"{row.failures} refused or unreadable"
    if row.last_error is not None:
        yield f"last error: {row.last_error}"
    if row.last_status is not None:
        yield f"last status: {row.last_status}"


def strip(cells: Sequence[str], colour: bool) -> list[Piece]:
    """A row of symbols; neighbours of one colour in one piece."""
    pieces: list[Piece] = []
    for word in cells:
        symbol = ACTIVITIES[word].symbol if colour else PLAIN[word]
        code = ACTIVITIES[word].sgr
        if pieces and pieces[-1][1] == code:
            pieces[-1] = (pieces[-1][0] + symbol, code)
        else:
            pieces.append((symbol, code))
    return pieces


def scale(strips: Segments) -> Iterator[str]:
    """What the strip's steps are, and what they leave out."""
    if not strips.count:
        yield "nothing that a strip could show"
        return
    before, after, timeless = strips.outside
    if strips.seconds is None:
        per = "one event" if strips.merged == 1 else f"{strips.merged} events"
        yield f"{strips.count} segments of {per} each, seq {strips.first} to {strips.last} (no clock)"
    else:
        yield (
            f"{strips.count} segments of {strips.seconds:g} s, the last from "
            f"{strips.last:%Y-%m-%d} {clock(strips.last)} UTC"
        )
        if strips.merged > 1:
            yield f"{strips.merged} steps merged into each"
    hidden = [
        f"{n:,} {where}" for n, where in ((before, "earlier"), (after, "later"), (timeless, "without a time")) if n
    ]
    if hidden:
        yield f"not shown: {', '.join(hidden)}"


def _remarks(one: Facts) -> Iterator[str]:
    if one.found:
        yield f"△ Discovery: {one.found}"
    if one.pings_out_of_place:
        yield f"{one.pings_out_of_place} ping messages, which this protocol does not have"


def _legend(one: Facts, strips: Segments, colour: bool) -> list[Piece]:
    seen = {word for cells in strips.cells.values() for word in cells}
    words = [
        word for word in ("error", "disabled", "request", "response", "notification", "ping")
        if word in seen or not (word == "disabled" or (word == "ping" and one.modern))
    ]  # fmt: skip
    shapes = [(ACTIVITIES[word].symbol if colour else PLAIN[word], word) for word in words]
    pieces: list[Piece] = [("legend: ", _DIM)]
    for shape, word in [*shapes, ("·", "idle")]:
        code = ACTIVITIES["none" if word == "idle" else word].sgr
        pieces.append((f"{shape} {word}  ", code))
    return pieces


def folded(head: str, pieces: Sequence[Piece], width: int, then: str | None = None) -> Iterator[list[Piece]]:
    """Pieces on as many lines as they need. Each begins with ``head``, later ones with ``then`` where it is given."""
    line: list[Piece] = [(head, _DIM)]
    used = columns_of(head)
    for part, code in pieces:
        if used + columns_of(part.rstrip()) > width and len(line) > 1:
            yield line
            start = head if then is None else then
            line, used = [(start, _DIM)], columns_of(start)
        part = fit(part, width - used).rstrip() if columns_of(part.rstrip()) > width - used else part
        line.append((part, code))
        used += columns_of(part)
    yield line


def _told(head: str, text: str, code: str, width: int, then: str | None = None) -> Iterator[list[Piece]]:
    """A text on as many lines as its words need, at most ``_LINES``."""
    text = fit(safe(text), (width - columns_of(head)) * _LINES).rstrip()
    whole = columns_of(head) + columns_of(text) <= width
    words = [text] if whole else text.split(" ")
    pieces = [(f"{word} ", code) for word in words[:-1]] + [(words[-1], code)]
    yield from islice(folded(head, pieces, width, then), _LINES)


# Tokens --------------------------------------------------------------------------------------------------


def _tokens(found: Sequence[Token], width: int) -> Iterator[list[Piece]]:
    """One bar: the server's tokens, a dot, the client's; then what the bar has no room for."""
    bar: list[Piece] = []
    party = "server"
    for token in found:
        dot = "• " if token.party != party else ""
        party = token.party
        bar.append((f"{dot}{token.name}{mark(token)} ", _style(token)))
    lines = list(folded("─| ", [*bar, ("|", _DIM)], width, then="   "))
    used = sum(columns_of(part) for part, _ in lines[-1])
    yield from lines[:-1]
    yield [*lines[-1], ("─" * max(width - used, 0), _DIM)]
    states = dict.fromkeys(token.state for token in found)
    key = [f"{STATES[state].symbol} {state}  " for state in states]
    key += ["* list changes announced"] if any(token.marked for token in found) else []
    yield from folded("   ", [(part, _DIM) for part in key], width)
    details = [f"{token.name}: {token.detail}" for token in found if token.detail]
    if details:
        yield from folded("   ", [(f"{part}; ", _DIM) for part in details[:-1]] + [(details[-1], _DIM)], width)


def mark(token: Token) -> str:
    """The state's symbol, with a star where list changes are announced."""
    return STATES[token.state].symbol + ("*" if token.marked else "")


def _style(token: Token) -> str:
    return _YELLOW if token.marked else STATES[token.state].sgr


# Short -----------------------------------------------------------------------------------------------------


def _short(trace: Any, one: Facts, width: int, colour: bool, asked: dict[str, Any]) -> Iterator[list[Piece]]:
    who = f"{safe(one.instance)}: {safe(one.implementation)} ← {safe(one.caller)}"
    protocol = f"  {safe(one.label)}  {one.transport or 'unknown'}"
    if not one.modern and one.health is not None:
        protocol += f"  health {one.health}"
    protocol = fit(protocol, max(width - 20, 20)).rstrip()
    yield [(fit(who, max(width - columns_of(protocol), 20)).rstrip(), _BOLD), (protocol, "")]
    yield [("  mcp calls: ", _DIM), (fit(safe(one.calls) or "none", width - 13).rstrip(), "")]
    strips = segments(trace, one.instance, room=width - 2, **asked)
    yield [("  ", ""), *strip(overall(strips), colour)]


def _rule(head: str, width: int) -> Piece:
    head = fit(head, width).rstrip() + " "
    return head + "─" * max(width - columns_of(head), 0), _BOLD
