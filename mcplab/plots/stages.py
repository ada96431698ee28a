"""A negotiation as steps: what was asked, what came, what followed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mcplab.look import STATES, Ground
from mcplab.model import DrawError
from mcplab.plots import paper
from mcplab.plots.ladder import one_instance
from mcplab.plots.paper import SMALL, Key, literal, put_row
from mcplab.render.arrows import Step, how_many_steps, steps

GOOD: Final = STATES["true"]._replace(word="good", meaning="got a result")
BAD: Final = STATES["false"]._replace(word="bad", meaning="got none")
_LINE: Final = SMALL * 1.35
LIMIT: Final = 16
"""Steps that a page holds."""


def negotiation(
    frame: Any,
    *,
    events: pd.DataFrame | None = None,
    instance: str | None = None,
    limit: int = LIMIT,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    theme: str = "light",
) -> Axes:
    """Draw discovery, fallback and initialize as steps with their reasons, the first on top.

    Parameters
    ----------
    frame
        ``trace.messages`` (needed are ``seq sender kind method message``, used where there ``version reply_to
        reply_part status http_exchange peer part trace instance``), or the ``steps`` of a handshake.
    events
        ``trace.events``: adds refusals that carried no message.
    instance
        Which one; default: the first of the frame.
    limit
        How many steps; the caption says how many follow.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        Step n (from 0) has its mark at x = 0 with the gid ``step:<n>:good`` or ``step:<n>:bad``; y grows downwards, in
        points.

    Raises
    ------
    DrawError
        A column is missing, or there is no such instance.
    """
    notes: list[str] = []
    if isinstance(frame, pd.DataFrame):
        frame, events, notes = one_instance(frame, events, instance)
        missing = [name for name in ("seq", "sender", "kind", "method", "message") if name not in frame.columns]
        if missing:
            raise DrawError(f"this is no messages frame: it has no column {missing[0]!r}")
        found: Sequence[Step] = steps(frame, events, limit=max(limit, 1))
        more = how_many_steps(frame) - len(found)
    else:
        found = [_of_handshake(number, one) for number, one in enumerate(frame)][: max(limit, 1)]
        more = len(frame) - len(found)
    if more > 0:
        notes.append(f"{more:,} more step{'' if more == 1 else 's'} follow{'s' if more == 1 else ''}.")
    with paper.page(theme) as ground:
        ax = _draw(found, ax, title, caption, notes, theme, ground)
    paper.describe(ax, _sentence(found, title))
    return ax


def _of_handshake(number: int, one: Any) -> Step:
    """A step of our own handshake: the same three texts."""
    return Step(number, one.asked, one.came, one.so, one.came == "a result" or one.so.startswith("agreed"), None)


def _draw(
    found: Sequence[Step],
    ax: Axes | None,
    title: str | None,
    caption: str | None,
    notes: list[str],
    theme: str,
    ground: Ground,
) -> Axes:
    left, right = 8 + 10.0, 8.0
    width = paper.PAGE - left - right if ax is None else paper.extent(ax)[0]
    blocks = [_block(one, width - 16) for one in found] or [[("no negotiation was captured", False)]]
    if ax is None:  # no wider than its text, its title or a legend need
        widest = max(paper.measure(text, bold=strong) for block in blocks for text, strong in block) + 20
        named = paper.measure(literal(title or "", bold=True), 9.5, bold=True) + 16
        width = min(width, max(widest, named, 260.0))
    tops: list[float] = [0.0]
    for block in blocks:
        tops.append(tops[-1] + len(block) * _LINE + 11)
    tall = tops[-1]
    total = left + width + right
    titles = paper.title_lines(title, total - 16)
    seen = {one.good for one in found}
    keys = paper.flow(
        [Key(look.meaning, look) for look, good in ((GOOD, True), (BAD, False)) if good in seen], total - 16
    )
    said = paper.paragraphs(" ".join([*notes, caption or ""]).strip(), total - 16)
    above = 8 + (8 + len(titles) * 9.5 * 1.3 if titles else 0)
    below = 6 + len(keys) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
    ax = paper.new_axes(ax, ground, (total, above + tall + below), (left, below, width, tall))
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(tall, 0)
    centres = [top + _LINE / 2 + 1 for top in tops[:-1]]
    if len(found) > 1:
        rail = Line2D([0, 0], [centres[0], centres[-1]], color=ground.muted, linewidth=0.9, clip_on=False)
        ax.add_artist(rail)
    for number, (block, top) in enumerate(zip(blocks, tops, strict=False)):
        if found:
            look = GOOD if found[number].good else BAD
            disc = Line2D([0], [centres[number]], marker="o", markersize=12, color=ground.paper, linestyle="none")
            disc.set_clip_on(False)
            ax.add_artist(disc)
            gid = f"step:{number}:{look.word}"
            mark = Line2D(
                [0], [centres[number]], gid=gid, clip_on=False, zorder=4, **paper.marker(look, theme, 9, ground)
            )
            ax.add_artist(mark)
        for line, (text, strong) in enumerate(block):
            y = top + _LINE * (line + 0.5) + 1
            weight = "bold" if strong else "normal"
            put_row(ax, 14, y, text, ground.ink if strong else ground.muted, weight=weight)
    paper.set_title(ax, titles, 8 - left, 8, ground)
    at = -6.0
    at -= paper.legend(ax, keys, 8 - left, at, theme, ground) + 3
    paper.lines_of(ax, said, 8 - left, at, ground.muted)
    return ax


def _block(one: Step, room: float) -> list[tuple[str, bool]]:
    """The lines of one step: what was asked, what came, what followed."""
    lines = [(line, True) for line in paper.wrap(literal(one.asked, bold=True), room, bold=True, lines=2)]
    lines += [(line, False) for line in paper.wrap(literal(f"came: {one.came}"), room, lines=3)]
    return lines + [(line, True) for line in paper.wrap(literal(f"→ {one.so}", bold=True), room, bold=True, lines=2)]


def _sentence(found: Sequence[Step], title: str | None) -> str:
    lead = f"{title.rstrip('.')}: a negotiation" if title else "Negotiation"
    told = "; ".join(f"{one.asked} came to {one.came}, {one.so}" for one in found)
    return f"{lead} in {len(found)} step{'' if len(found) == 1 else 's'}{': ' if told else ''}{told}."
