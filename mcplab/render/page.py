"""The transport display as HTML, for notebooks, panels and reports. Whatever a trace says is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, Final

from mcplab.look import ACTIVITIES, STATES
from mcplab.render.facts import COUNTS, Facts, Row, facts
from mcplab.render.plain import HEADS, clock, header, mark, scale
from mcplab.render.segments import Segments, segments
from mcplab.render.tokens import Token
from mcplab.told import safe

MOST: Final = 8
"""Instances shown in full; a capture of more says how many are left out."""

_RULES: Final = """
.mcplab-display{margin:.4em 0 1em;font-size:13px;line-height:1.5;overflow-x:auto;max-width:100%}
.mcplab.mcplab-display table{border-collapse:collapse;margin:0;font-size:inherit;border:0}
.mcplab.mcplab-display table tr,.mcplab.mcplab-display table tr:hover{background:none}
.mcplab.mcplab-display table th,.mcplab.mcplab-display table td{text-align:left;padding:1px 10px 1px 0;
vertical-align:top;white-space:nowrap;background:none;border:0;font-weight:normal;max-width:none}
.mcplab.mcplab-display table td.wide{white-space:normal;overflow-wrap:anywhere;min-width:8em;max-width:40em}
.mcplab.mcplab-display table th{opacity:.65}
.mcplab.mcplab-display table td.who{font-weight:bold}
.mcplab.mcplab-display table td.n{text-align:right;font-variant-numeric:tabular-nums}
.mcplab.mcplab-display table td.strip{font-family:monospace;line-height:1.5;padding-right:1em}
.mcplab-display .strip i{display:inline-block;width:.62em;text-align:center;font-style:normal}
.mcplab-display .off{opacity:.65}
.mcplab-display .note{opacity:.75;margin:2px 0;overflow-wrap:anywhere}
.mcplab-display .key{margin:2px 0}
.mcplab-display .tokens span{font-family:monospace;margin-right:.7em}
.mcplab-display .marked{font-weight:bold;text-decoration:underline}
.mcplab-display .strip .a-ping{font-size:60%;width:1.03em}
.mcplab-display .key .a-ping{font-size:60%;vertical-align:middle}
.mcplab-picks .strip i{cursor:pointer}
.mcplab-picks .strip i:hover,.mcplab-picks .strip i.picked{box-shadow:0 0 0 1px currentColor}
.mcplab-display .a-error{font-weight:bold}
"""


def html(
    trace: Any,
    *,
    steps: int = 60,
    step_seconds: float = 1.0,
    end: Any = None,
    instance: str | None = None,
    channels: Sequence[str] | None = None,
    most: int = MOST,
) -> str:
    """The display of each instance (the first ``most``), one below the other.

    Args:
        trace: a Trace.
        steps, step_seconds, end: the strip's steps, as for ``timeline``; ``end="now"``: this moment.
        instance: only this one.
        channels: only these rows.

    Raises:
        TraceError: no such instance, wrong steps, or an end that is no time.
    """
    names = list(dict.fromkeys(trace.connections["instance"])) if instance is None else [instance]
    asked: dict[str, Any] = {"steps": steps, "step_seconds": step_seconds, "end": end}
    blocks = [block(facts(trace, name)[0], segments(trace, name, **asked), channels, end) for name in names[:most]]
    if not names:
        blocks = ['<p class="note">no connection was captured</p>']
    if len(names) > most:
        blocks.append(
            f'<p class="note">and {len(names) - most:,} more instances: name one with instance= to see it</p>'
        )
    return framed("".join(blocks))


def framed(inner: str) -> str:
    """HTML of this module in the element and with the style that it needs."""
    # the classes keep MathJax, which notebooks load, from reading $ as mathematics
    return f'<div class="mcplab mcplab-display tex2jax_ignore mathjax_ignore">{style()}{inner}</div>'


@cache
def style() -> str:
    """The style sheet: colours of activities and states on a light ground, and on a dark one in JupyterLab."""
    rules = [_RULES]
    for prefix, table in (("a", ACTIVITIES), ("s", STATES)):
        for word, look in table.items():
            light = look.light if word != "varies" else "#857A00"  # its own colour is a ground, not ink
            rules.append(f".mcplab-display .{prefix}-{word}{{color:{light}}}")
            rules.append(f'[data-jp-theme-light="false"] .mcplab-display .{prefix}-{word}{{color:{look.dark}}}')
    return f"<style>{''.join(rules)}</style>"


def block(
    one: Facts,
    strips: Segments,
    channels: Sequence[str] | None = None,
    end: Any = None,
    picked: tuple[str, int] | None = None,
) -> str:
    """The display of one instance; goes into ``framed``. ``picked``: channel and number of a segment to set apart."""
    rows = [(number, row) for number, row in enumerate(one.channels) if channels is None or row.channel in channels]
    bold = {"name": " who", "protocol": " who"}
    head = "".join(
        f'<tr><th scope="row">{name}</th><td class="wide{bold.get(name, "")}">{_text(value)}</td></tr>'
        for name, value in header(one, now=end == "now")
    )
    names = [name for name in COUNTS if not (name == "ping" and one.modern)]
    titles = "".join(f'<th scope="col">{HEADS[name]}</th>' for name in names)
    lines = "".join(
        _row(row, number, strips, names, picked[1] if picked and picked[0] == row.channel else None)
        for number, row in rows
    )
    notes = [f"mcp calls: {_text(one.calls) or 'none'}"]
    after = [_text("; ".join(scale(strips)))]
    if one.found:
        after.append(f"△ Discovery: {_text(one.found)}")
    if one.pings_out_of_place:
        after.append(f"{one.pings_out_of_place} ping messages, which this protocol does not have")
    return (
        f'<p class="note"><b>{_text(one.instance)}</b></p><table>{head}</table>{_notes(notes)}'
        f'<table><tr><th scope="col">channel</th><th scope="col">segments</th>{titles}'
        f'<th scope="col">state</th></tr>{lines}</table>{_notes(after)}'
        f'<p class="key">{_legend(one)}</p>{_tokens(one.tokens)}'
    )


def _text(value: object) -> str:
    return escape(safe(value))


def _notes(lines: Sequence[str]) -> str:
    return "".join(f'<p class="note">{line}</p>' for line in lines)


def _row(row: Row, number: int, strips: Segments, names: Sequence[str], picked: int | None) -> str:
    cells = strips.cells.get(row.channel, ["none"] * strips.count)
    counts = "".join(
        f'<td class="n{" a-error" if name == "error" and row.counts and row.counts[name] else ""}">'
        f"{'-' if row.counts is None else format(row.counts[name], ',')}</td>"
        for name in names
    )
    last = [row.words]
    last += [f"{row.failures} refused or unreadable"] if row.failures and row.state != "disabled" else []
    last += [f"last error: {row.last_error}"] if row.last_error is not None else []
    last += [f"last status: {row.last_status}"] if row.last_status is not None else []
    spoken = _text(_spoken(row, cells))
    return (
        f'<tr class="{"" if row.usable else "off"}"><td>{row.arrow} {_text(row.channel)}</td>'
        f'<td class="strip" role="img" aria-label="{spoken}" data-row="{number}">'
        f"{''.join(_symbols(cells, strips, picked))}</td>"
        f'{counts}<td class="wide">{_text("; ".join(last))}</td></tr>'
    )


def _symbols(cells: Sequence[str], strips: Segments, picked: int | None) -> Iterator[str]:
    for at, word in enumerate(cells):
        chosen = " picked" if at == picked else ""
        if word == "none":
            yield f'<i class="a-none{chosen}">·</i>'
            continue
        back = len(cells) - 1 - at
        if strips.seconds is None:
            when = f"segment {at + 1}"
        elif back == 0:
            when = f"from {clock(strips.last)}"
        else:
            when = f"{back * strips.seconds:g} s before the last"
        yield f'<i class="a-{word}{chosen}" title="{word}, {when}">{ACTIVITIES[word].symbol}</i>'


def _spoken(row: Row, cells: Sequence[str]) -> str:
    counted = {word: cells.count(word) for word in ACTIVITIES if word != "none" and word in cells}
    words = ", ".join(f"{n} of {word}" for word, n in counted.items())
    return f"{row.channel}: segments {words}" if words else f"{row.channel}: nothing in these segments"


def _legend(one: Facts) -> str:
    words = ["error", "disabled", "request", "response", "notification", *([] if one.modern else ["ping"]), "none"]
    return "legend: " + " ".join(
        f'<span class="a-{word}">{ACTIVITIES[word].symbol}</span> {"idle" if word == "none" else word}&ensp;'
        for word in words
    )


def _tokens(found: Sequence[Token]) -> str:
    parts: list[str] = []
    party = "server"
    for token in found:
        if token.party != party:
            party = token.party
            parts.append("<span>•</span>")
        marked = " marked" if token.marked else ""
        parts.append(
            f'<span class="s-{token.state}{marked}" title="{_text(token.words)}">{token.name}{mark(token)}</span>'
        )
    states = dict.fromkeys(token.state for token in found)
    key = [f'<span class="s-{state}">{STATES[state].symbol}</span> {state}' for state in states]
    key += ["* list changes announced"] if any(token.marked for token in found) else []
    details = "; ".join(f"{token.name}: {_text(token.detail)}" for token in found if token.detail)
    return f'<p class="key tokens">{"".join(parts)}</p><p class="key">{"&ensp;".join(key)}</p>' + (
        f'<p class="note">{details}</p>' if details else ""
    )
