"""The segment strip: one row a channel, one symbol a step, as people know it from live displays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mcplab.look import ACTIVITIES as LOOKS
from mcplab.look import Ground
from mcplab.model import ACTIVITIES, PRIORITY, DrawError
from mcplab.plots import paper
from mcplab.plots.scene import NO_CLOCK, Lane, Scene

_RANK = np.array([PRIORITY[word] for word in ACTIVITIES])


class Strip(NamedTuple):
    """``cells``: an index of ``ACTIVITIES`` for each lane and step. Steps start at ``left`` and are ``step`` long."""

    lanes: list[Lane]
    cells: np.ndarray
    left: np.ndarray
    step: float


def nice(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is not less; of the same size below 1."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= value * (1 - 1e-9)))


def segments(scene: Scene, steps: int, step_seconds: float | None) -> Strip:
    """Each step shows the strongest activity in it, on a tie the later event; at most ``steps``, the last ones.

    A step is floor(time since 1970 / its length) on the clock, floor(seconds since the trace's start / its length)
    where each trace starts at 0, and so many events where there is no clock.
    """
    if steps < 1:
        raise DrawError(f"steps {steps}: a strip has at least one")
    if step_seconds is not None and not step_seconds > 0:
        raise DrawError(f"step_seconds {step_seconds}: a step is longer than nothing")
    seq = np.concatenate([scene.seq, scene.event_seq])
    x = np.concatenate([scene.x, scene.event_x])
    lane = np.concatenate([scene.lane, scene.event_lane])
    activity = np.concatenate([scene.activity, scene.event_activity])
    usable = ~np.isnan(x)
    if not usable.any():
        return Strip(scene.lanes, np.zeros((len(scene.lanes), 0), dtype=int), np.empty(0), 1.0)
    span = float(np.ptp(x[usable]))
    if not scene.clock:
        step = float(max(1, int(np.ceil((span + 1) / steps))))
        bins, zero = np.floor(x / step), 0.5  # an event stands in the middle of its segment
    else:
        step = step_seconds or (nice(max(span / max(steps - 1, 1), 1e-6)) if span else 1.0)
        if scene.aligned or scene.start is None:
            bins, zero = np.floor(x / step), 0.0
        else:
            micros = np.concatenate([scene.micros, scene.event_micros])
            bins = np.floor(np.where(micros == NO_CLOCK, 0, micros) / (step * 1e6))
            zero = scene.zero / 1e6
    last = int(bins[usable].max())
    first = max(int(bins[usable].min()), last - steps + 1)
    cells = np.zeros((len(scene.lanes), last - first + 1), dtype=int)
    rows = np.flatnonzero(usable & (bins >= first))
    rows = rows[np.argsort(seq[rows], kind="stable")]
    rows = rows[np.argsort(_RANK[activity[rows]], kind="stable")]
    cells[lane[rows], bins[rows].astype(int) - first] = activity[rows]
    return Strip(scene.lanes, cells, np.arange(first, last + 1) * step - zero, step)


def from_frame(frame: pd.DataFrame) -> Strip:
    """A frame of ``mcplab.timeline``: index (instance, channel), columns the steps' starts or seq."""
    words = frame.astype(object).to_numpy()
    strange = {str(word) for word in words.ravel()} - {*ACTIVITIES}
    if strange:
        raise DrawError(f"this is no timeline: a cell holds {min(strange)!r}, not one of {', '.join(ACTIVITIES)}")
    if frame.empty:
        raise DrawError("nothing to draw: the timeline has no rows or no steps")
    cells = np.array([[ACTIVITIES.index(word) for word in row] for row in words])
    lanes = [Lane(str(instance), str(channel)) for instance, channel in frame.index]
    if isinstance(frame.columns, pd.DatetimeIndex):
        left = np.asarray((frame.columns - frame.columns[0]) / pd.Timedelta(seconds=1), dtype=float)
    else:
        left = np.arange(frame.shape[1], dtype=float)
    step = float(left[1] - left[0]) if len(left) > 1 else 1.0
    return Strip(lanes, cells, left, step)


def height(strip: Strip, several: bool) -> float:
    """Points it takes down the chart."""
    return len(strip.lanes) * ROW + (len({lane.instance for lane in strip.lanes}) * HEAD if several else 0)


ROW = 11.0
HEAD = 12.0


def draw(
    ax: Axes, strip: Strip, top: float, pitch: float, left: float, several: bool, theme: str, ground: Ground
) -> set[str]:
    """Rows from ``top`` points down; ``pitch`` is a step's width in points. Returns the activities drawn."""
    size = float(np.clip(pitch * 0.8, 2.2, 7.5))
    seen: set[str] = set()
    y, instance = top, None
    for row, lane in enumerate(strip.lanes):
        if several and lane.instance != instance:
            paper.put_row(
                ax,
                -left,
                y + HEAD / 2,
                paper.fitting(lane.instance, left + paper.extent(ax)[0], bold=True),
                ground.ink,
                weight="bold",
            )
            y += HEAD
        instance = lane.instance
        middle = y + ROW / 2
        paper.put_row(ax, -6, middle, paper.literal(lane.channel), ground.ink, ha="right")
        for code in np.unique(strip.cells[row]):
            word = ACTIVITIES[code]
            look = LOOKS[word]
            xs = strip.left[strip.cells[row] == code] + strip.step / 2
            name = f"strip:{row}:{word}"
            style: dict[str, Any] = paper.marker(look, theme, size, ground)
            ax.add_artist(Line2D(xs, np.full(len(xs), middle), gid=name, zorder=3, clip_on=False, **style))
            if look.inner and size > 3.5:
                cross = paper.inner(look, size, ground)
                ax.add_artist(Line2D(xs, np.full(len(xs), middle), zorder=3.1, clip_on=False, **cross))
            seen.add(word)
        y += ROW
    return seen
