"""The ladder: two life lines, an arrow a message, and what each decided."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from mcplab.look import ACTIVITIES as LOOKS
from mcplab.look import Ground
from mcplab.model import DrawError
from mcplab.plots import paper
from mcplab.plots.paper import SMALL, Key, literal, measure, put_row
from mcplab.render.arrows import Arrow, arrows, how_many

LIMIT: Final = 26
"""Arrows that a page holds."""
_PITCH: Final = 19.0
_SLANT: Final = 5.0
_SIDE: Final = 128.0
_LINE: Final = 8.6
"""Points that each further line of a row takes."""
_ROOM: Final = 16.0
"""Points from a life line to a label: the arrow's mark stands between."""
_SHOWN: Final = ("error", "disabled", "request", "response", "notification", "ping")


def sequence(
    frame: pd.DataFrame,
    *,
    events: pd.DataFrame | None = None,
    instance: str | None = None,
    limit: int = LIMIT,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    theme: str = "light",
) -> Axes:
    """Draw who said what to whom, in the wire's order, from the first message on.

    Parameters
    ----------
    frame
        ``trace.messages``; needed are ``seq sender kind method message``, used where there ``trace instance conn part
        ts reply_to reply_part activity status version http_exchange peer``.
    events
        ``trace.events``: adds HTTP requests without a message (GET, DELETE) and refusals.
    instance
        Which one; default: the first of the frame. The caption says how many others there are.
    limit
        How many arrows; the caption says how many follow. ``mcplab.render.mermaid`` writes the same as text.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        The client's life line is at x = 0, the server's at x = 1; y grows downwards, by 1 a row (more where what
        matters takes lines of its own). Arrows have the gid ``arrow:<seq>``. Slant shows the direction of time, not how
        long a message took: a recorder sees each message once.

    Raises
    ------
    DrawError
        A column is missing, there is nothing to draw, or there is no such instance.
    """
    frame, events, notes = one_instance(frame, events, instance)
    shown = arrows(frame, events, limit=max(limit, 1))
    if (more := how_many(frame, events) - len(shown)) > 0:
        notes.append(f"{more:,} more arrows follow.")
    with paper.page(theme) as ground:
        ax = _Ladder(shown, theme, ground).draw(ax, title, caption, notes)
    paper.describe(ax, _sentence(shown, title))
    return ax


def one_instance(
    frame: pd.DataFrame, events: pd.DataFrame | None, instance: str | None
) -> tuple[pd.DataFrame, pd.DataFrame | None, list[str]]:
    """The rows of one instance, and a note where there are others."""
    if "instance" not in frame.columns:
        return frame, events, []
    names = list(dict.fromkeys(frame["instance"].dropna()))
    if instance is not None and instance not in names:
        raise DrawError(f"no instance {instance!r} in this frame; it has: {', '.join(names[:8]) or 'none'}")
    if not names:
        return frame, events, []
    name = names[0] if instance is None else instance
    events = events[events["instance"] == name] if events is not None and "instance" in events.columns else events
    notes = [f"Instance {name}; {len(names) - 1:,} more in this frame."] if len(names) > 1 else []
    return frame[frame["instance"] == name], events, notes


class _Row(NamedTuple):
    """An arrow with its words: what matters stands beside the label or in lines below it. ``height``: in rows."""

    arrow: Arrow
    label: str
    beside: str
    below: list[str]
    height: float


class _Ladder:
    """Lays out in points, then draws; one use."""

    def __init__(self, shown: list[Arrow], theme: str, ground: Ground) -> None:
        self.shown, self.theme, self.ground = shown, theme, ground

    def draw(self, ax: Axes | None, title: str | None, caption: str | None, notes: list[str]) -> Axes:
        times = [self._time(one) for one in self.shown]
        left = 8 + max(map(measure, times)) + 10
        side = _SIDE if any(one.decides for one in self.shown) else 12.0
        width = paper.PAGE - left - side if ax is None else paper.extent(ax)[0]
        rows = [self._row(one, width) for one in self.shown]
        tops = [0.0, *accumulate(row.height for row in rows)]
        tall = _PITCH * tops[-1] if ax is None else paper.extent(ax)[1]
        total = left + width + side
        text = total - 16
        titles = paper.title_lines(title, text)
        keys = paper.flow(self._keys(), text)
        said = paper.paragraphs(" ".join([*notes, self._caption() if caption is None else caption]).strip(), text)
        above = 20 + (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 4
        below = 10 + len(keys) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
        ax = paper.new_axes(ax, self.ground, (total, above + tall + below), (left, below, width, tall))
        ax.set_axis_off()
        ax.set_xlim(0, 1)
        ax.set_ylim(tops[-1], 0)
        pitch = tall / tops[-1]
        for x, name, where in ((0.0, "client", "left"), (1.0, "server", "right")):
            ax.add_artist(Line2D([x, x], [0, tops[-1]], color=self.ground.muted, linewidth=0.9, clip_on=False))
            put_row(ax, x * width, -9 / pitch, name, self.ground.ink, ha=where, weight="bold")
        for row, top, time in zip(rows, tops, times, strict=False):
            low = top + row.height - 0.23
            put_row(ax, -8, low - 0.27, time, self.ground.muted, ha="right")
            self._arrow(ax, low, row.arrow, width, pitch)
            self._words(ax, top + 0.33, row, width)
            if row.arrow.decides:
                self._decision(ax, low, row.arrow.decides, width, pitch)
        paper.set_title(ax, titles, 8 - left, 22, self.ground)
        at = -10.0
        at -= paper.legend(ax, keys, 8 - left, at, self.theme, self.ground) + 3
        paper.lines_of(ax, said, 8 - left, at, self.ground.muted)
        return ax

    def _time(self, one: Arrow) -> str:
        return f"seq {one.seq}" if one.after is None else f"{one.after:,.3f} s"

    def _row(self, one: Arrow, width: float) -> _Row:
        """What matters goes beside the label where it fits, else below it, whole."""
        label = paper.fitting(f"[{one.conn}] {one.label}" if one.conn else one.label, width * 0.62, bold=True)
        beside = literal(one.matters)
        if measure(beside) <= width - 2 * _ROOM - 8 - measure(label, bold=True):
            return _Row(one, label, beside, [], 1.0)
        below = paper.wrap(beside, width - 2 * _ROOM, lines=4)
        return _Row(one, label, "", below, 1 + len(below) * _LINE / _PITCH)

    def _arrow(self, ax: Axes, low: float, one: Arrow, width: float, pitch: float) -> None:
        look = LOOKS.get(one.activity, LOOKS["none"])
        plain = one.activity == "none" or one.activity not in _SHOWN
        colour = self.ground.muted if plain else look.colour(self.theme)
        slant = _SLANT / pitch / 2
        ends = {"client": (0.0, 1.0), "server": (1.0, 0.0)}.get(one.sender, (0.0, 1.0))
        arrow = FancyArrowPatch(
            (ends[0], low - slant), (ends[1], low + slant), arrowstyle="-" if not one.sender else "-|>",
            mutation_scale=7, linewidth=1.1, color=colour, shrinkA=0, shrinkB=0, gid=f"arrow:{one.seq}",
            linestyle=(0, (3, 2)) if one.kind in ("response", "error") else "-", clip_on=False,
        )  # fmt: skip
        ax.add_artist(arrow)
        if not plain:
            at = ends[0] + (ends[1] - ends[0]) * 9 / width
            spot = low - slant + 2 * slant * 9 / width
            ax.add_artist(Line2D([at], [spot], zorder=4, **paper.marker(look, self.theme, 6.5, self.ground)))
            if look.inner:
                ax.add_artist(Line2D([at], [spot], zorder=5, **paper.inner(look, 6.5, self.ground)))

    def _words(self, ax: Axes, y: float, row: _Row, width: float) -> None:
        """Label and what matters, at the sender's end of the arrow."""
        far = row.arrow.sender == "server"
        ink, muted, side = self.ground.ink, self.ground.muted, "right" if far else "left"

        def x(points: float) -> float:
            return width - points if far else points

        put_row(ax, x(_ROOM), y, row.label, ink, ha=side, weight="bold")
        if row.beside:
            put_row(ax, x(_ROOM + 8 + measure(row.label, bold=True)), y, row.beside, muted, ha=side)
        for number, line in enumerate(row.below, 1):
            put_row(ax, x(_ROOM), y + number * _LINE / _PITCH, line, muted, ha=side)

    def _decision(self, ax: Axes, low: float, text: str, width: float, pitch: float) -> None:
        lines = paper.wrap(literal(text), _SIDE - 26, lines=2)
        for number, line in enumerate(lines):
            put_row(ax, width + 14, low + (number - (len(lines) - 1) / 2) * _LINE / pitch, line, self.ground.ink)
        place = ax.get_yaxis_transform()
        tick = Line2D([1.0, 1 + 10 / width], [low, low], transform=place, color=self.ground.ink, linewidth=0.8)
        tick.set_clip_on(False)
        ax.add_artist(tick)

    def _keys(self) -> list[Key]:
        seen = {one.activity for one in self.shown}
        keys = [Key(LOOKS[word].meaning, LOOKS[word]) for word in _SHOWN if word in seen]
        if any(one.kind == "http" and one.activity == "none" for one in self.shown):
            keys.append(Key("HTTP without a message", line={"color": self.ground.muted, "linewidth": 1.1}))
        return keys

    def _caption(self) -> str:
        first = self.shown[0]
        clock = "" if first.after is not None else " This capture has no clock: numbers are seq."
        return f"Times since the first arrow.{clock}" if first.after is not None else clock.strip()


def _sentence(shown: list[Arrow], title: str | None) -> str:
    lead = f"{title.rstrip('.')}: a ladder" if title else "Ladder"
    settled = "; ".join(one.decides for one in shown if one.decides)
    sent = sum(one.sender == "client" for one in shown)
    more: Any = f" {settled}." if settled else ""
    return f"{lead} of {len(shown)} arrows, {sent} of them from the client.{more}"
