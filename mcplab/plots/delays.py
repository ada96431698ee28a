"""How long answers took, method by method."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from mcplab.look import ACTIVITIES, Ground, Look
from mcplab.model import DrawError
from mcplab.plots import paper
from mcplab.plots.paper import SMALL, Key, fitting, literal, measure, put_row

_ROW: Final = 17.0
_EACH: Final = 200
"""Up to so many answers of a method are drawn one by one."""
_MARKED: Final = 12
"""Up to so many errors of a method have a mark each; more are ticks, with the mark on their median."""
_FLOOR: Final = 1e-6
"""Seconds: the clock's step, and where an answer stands that took no time by it."""
ANSWER: Final = ACTIVITIES["response"]._replace(meaning="an answer", marker="|", filled=True)
ERROR: Final = ACTIVITIES["error"]._replace(meaning="an error")


class Line(NamedTuple):
    """One method. ``good`` and ``bad``: seconds to each result and to each error; ``none``: how many got no answer."""

    method: str
    sender: str
    good: np.ndarray
    bad: np.ndarray
    none: int

    @property
    def mark(self) -> str:
        """The method, and the server where it asks, as a part of an id in svg."""
        return quote(self.method, safe="/") + (":server" if self.sender == "server" else "")

    @property
    def every(self) -> np.ndarray:
        return np.concatenate([self.good, self.bad])


def latency(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    most: int = 24,
    theme: str = "light",
) -> Axes:
    """Draw the time from request to answer for each method, slowest median on top, on a logarithmic axis.

    Parameters
    ----------
    frame
        ``exchanges`` of a Trace or Traces; needed are ``method sender outcome latency``.
    most
        How many methods; the caption says how many are left out (those with fewest requests).
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        x is seconds; row i has its middle at y = i + 0.5. The box spans the quartiles, its line is the median; answers
        are ticks (above 200 of a method the box speaks alone, with the range as a thin line), errors are marks (above
        12 ticks too, below the answers' ones). Gids: ``box:<method>``, ``answers:<method>``, ``errors:<method>``.

    Raises
    ------
    DrawError
        A column is missing, or no request of the frame has an answer and a clock.
    """
    rows, left_out, unclocked = lines(frame, most)
    notes = []
    if left_out:
        notes.append(f"{left_out:,} rarer methods are left out.")
    if unclocked:
        notes.append(f"{unclocked:,} answers without a clock are left out.")
    with paper.page(theme) as ground:
        ax = _draw(rows, ax, title, caption, notes, theme, ground)
    paper.describe(ax, _sentence(rows, title))
    return ax


def lines(frame: pd.DataFrame, most: int) -> tuple[list[Line], int, int]:
    """The methods to draw, how many are left out, and how many answers have no time."""
    missing = [name for name in ("method", "sender", "outcome", "latency") if name not in frame.columns]
    if missing:
        raise DrawError(f"this is no exchanges frame: it has no column {missing[0]!r}")
    answered = frame["outcome"].isin(["result", "error", "input_required"])
    unclocked = int((answered & frame["latency"].isna()).sum())
    if not (answered & frame["latency"].notna()).any():
        raise DrawError("nothing to draw: no request of this frame has an answer and a clock")
    found: list[Line] = []
    for (method, sender), part in frame.groupby(["method", "sender"], sort=False, dropna=False):
        seconds = part["latency"].to_numpy(dtype=float)
        known = ~np.isnan(seconds)
        bad = (part["outcome"] == "error").to_numpy() & known
        none = int(part["outcome"].isin(["unanswered", "cancelled"]).sum())
        name = "no method" if pd.isna(method) else str(method)
        who = "" if pd.isna(sender) else str(sender)
        found.append(Line(name, who, np.sort(seconds[known & ~bad]), np.sort(seconds[bad]), none))
    found.sort(key=lambda one: (-(len(one.every) + one.none), one.method))
    shown = found[:most]
    shown.sort(key=lambda one: (-float(np.median(one.every)) if len(one.every) else np.inf, one.method))
    return shown, len(found) - len(shown), unclocked


def _draw(
    rows: list[Line],
    ax: Axes | None,
    title: str | None,
    caption: str | None,
    notes: list[str],
    theme: str,
    ground: Ground,
) -> Axes:
    names = [fitting(f"{one.method}{' (server asks)' if one.sender == 'server' else ''}", 150) for one in rows]
    counts = [_told(one) for one in rows]
    left = 8 + max(map(measure, names)) + 10
    right = 10 + max(*map(measure, counts), measure("answers, median")) + 8
    width = max(paper.PAGE - left - right, 120.0) if ax is None else paper.extent(ax)[0]
    tall = _ROW * len(rows)
    total = left + width + right
    titles = paper.title_lines(title, total - 16)
    keys = paper.flow(_keys(rows, ground, theme), total - 16)
    said = paper.paragraphs(" ".join([*notes, caption or ""]).strip(), total - 16)
    above = 18 + (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 4
    below = 34 + len(keys) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
    ax = paper.new_axes(ax, ground, (total, above + tall + below), (left, below, width, tall))
    every = np.maximum(np.concatenate([one.every for one in rows]), _FLOOR)
    ax.set_xscale("log")
    low, high = 10 ** np.floor(np.log10(every.min() * 0.9)), 10 ** np.ceil(np.log10(every.max() * 1.1))
    ax.set_xlim(low, high)
    ax.set_ylim(len(rows), 0)
    _axis(ax, ground)
    pitch = paper.extent(ax)[1] / len(rows)
    for at, one in enumerate(rows):
        if at:
            ax.axhline(at, color=ground.rule, linewidth=0.4, zorder=0)
        put_row(ax, -8, at + 0.5, names[at], ground.ink, ha="right")
        put_row(ax, width + 10, at + 0.5, counts[at], ground.ink)
        _line(ax, at, one, pitch, theme, ground)
    put_row(ax, width + 10, -9 / pitch, "answers, median", ground.muted)
    paper.set_title(ax, titles, 8 - left, 20, ground)
    place = -34.0
    place -= paper.legend(ax, keys, 8 - left, place, theme, ground) + 3
    paper.lines_of(ax, said, 8 - left, place, ground.muted)
    return ax


def _axis(ax: Axes, ground: Ground) -> None:
    for name in ("left", "right", "top"):
        ax.spines[name].set_visible(False)
    ax.spines["bottom"].set_color(ground.muted)
    ax.set_yticks([])
    ax.tick_params(axis="x", which="both", colors=ground.ink, labelsize=7.5)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=12))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("from request to answer", color=ground.ink, labelpad=2, parse_math=False)


def _line(ax: Axes, at: int, one: Line, pitch: float, theme: str, ground: Ground) -> None:
    every = np.maximum(one.every, _FLOOR)
    if not len(every):
        return
    half = 5.0 / pitch
    middle = at + 0.5
    colour = ANSWER.colour(theme)
    if len(every) > 2:
        first, median, third = np.quantile(every, [0.25, 0.5, 0.75])
        box = Rectangle((first, middle - half), third - first, 2 * half, gid=f"box:{one.mark}", zorder=1)
        box.set(facecolor=ground.band, edgecolor=ground.muted, linewidth=0.7)
        ax.add_artist(box)
        ax.add_artist(Line2D([median] * 2, [middle - half, middle + half], color=ground.ink, linewidth=1.4, zorder=4))
    if len(one.good) > _EACH:
        ax.add_artist(Line2D([every.min(), every.max()], [middle] * 2, color=colour, linewidth=1, zorder=0.9))
    many = len(one.bad) > _MARKED
    if 0 < len(one.good) <= _EACH:
        foot = middle if many else middle + half * 0.75
        ax.add_collection(_ticks(one.good, middle - half * 0.75, foot, colour, f"answers:{one.mark}"), autolim=False)
    if many:
        red = ERROR.colour(theme)
        ticks = _ticks(one.bad, middle + half * 0.2, middle + half * 1.2, red, f"errors:{one.mark}")
        ax.add_collection(ticks, autolim=False)
    if len(one.bad):
        bad = np.maximum(one.bad, _FLOOR)
        spots, y = (np.array([np.median(bad)]), middle + half * 0.7) if many else (bad, middle)
        ys = np.full(len(spots), y)
        gid = None if many else f"errors:{one.mark}"
        ax.add_artist(Line2D(spots, ys, gid=gid, zorder=5, clip_on=False, **paper.marker(ERROR, theme, 5.5, ground)))
        ax.add_artist(Line2D(spots, ys, zorder=5.1, clip_on=False, **paper.inner(ERROR, 5.5, ground)))


def _ticks(at: np.ndarray, top: float, foot: float, colour: str, gid: str) -> LineCollection:
    spots = [[(x, top), (x, foot)] for x in np.maximum(at, _FLOOR)]
    return LineCollection(spots, colors=colour, linewidths=1.0, gid=gid, zorder=3)


def _told(one: Line) -> str:
    parts = [f"{len(one.every):,}"]
    if len(one.every):
        parts.append(seconds(float(np.median(one.every))))
    if len(one.bad) > _MARKED:
        parts.append(f"{len(one.bad):,} errors")
    if one.none:
        parts.append(f"{one.none:,} unanswered")
    return ", ".join(parts)


def _keys(rows: list[Line], ground: Ground, theme: str) -> list[Key]:
    keys: list[Key] = []
    if any(0 < len(one.good) <= _EACH for one in rows):
        keys.append(Key(ANSWER.meaning, line=_tick(ANSWER, theme)))
    if any(len(one.bad) for one in rows):
        keys.append(Key(ERROR.meaning, ERROR))
    if any(len(one.bad) > _MARKED for one in rows):
        keys.append(Key("one of many errors, the mark on their median", line=_tick(ERROR, theme)))
    if any(len(one.every) > 2 for one in rows):
        keys.append(Key("middle half", patch={"facecolor": ground.band, "edgecolor": ground.muted, "linewidth": 0.7}))
        keys.append(Key("median", line={"color": ground.ink, "linewidth": 1.4}))
    if any(len(one.good) > _EACH for one in rows):
        keys.append(Key("range", line={"color": ANSWER.colour(theme), "linewidth": 1}))
    return keys


def _tick(look: Look, theme: str) -> dict[str, Any]:
    return {"color": look.colour(theme), "marker": "|", "markersize": 8, "linewidth": 0, "markeredgewidth": 1.2}


def seconds(value: float) -> str:
    """``350 µs``, ``12 ms``, ``1.5 s``, ``2 min``."""
    for size, unit in ((1e-3, "µs"), (1.0, "ms"), (60.0, "s")):
        if value < size * 0.9995:
            return f"{value / {'µs': 1e-6, 'ms': 1e-3, 's': 1.0}[unit]:.3g} {unit}"
    return f"{value / 60:.3g} min"


def _sentence(rows: list[Line], title: str | None) -> str:
    lead = f"{title.rstrip('.')}: latency" if title else "Latency"
    told = [one for one in rows if len(one.every)]
    total = sum(len(one.every) for one in told)
    slow = told[0]
    return (
        f"{lead} of {total:,} answers to {len(rows)} method{'' if len(rows) == 1 else 's'}; slowest by median "
        f"{literal(slow.method)}, {seconds(float(np.median(slow.every)))}."
    )
