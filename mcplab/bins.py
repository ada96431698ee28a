"""Activity in equal steps of time: what one segment of a timeline shows."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from mcplab.channels import Marks
from mcplab.model import CHANNELS, NO_TIME, PRIORITY, ArgumentError, TraceError

MOST_STEPS = 1_000_000
"""More steps than this are refused: nobody reads them, and their table would fill the memory."""

EARLIEST, FARTHEST = -62_135_596_800 * 10**6, 253_402_300_800 * 10**6
"""Microseconds from 1970 to the years 1 and 10000: all steps have to lie between them."""


def timeline(
    trace: Any,
    *,
    steps: int | None = 60,
    step_seconds: float = 1.0,
    end: Any = None,
    instance: str | None = None,
    axis: str = "time",
) -> pd.DataFrame:
    """Activity of each channel in steps of time.

    Args:
        trace: a Trace (or Traces).
        steps: how many steps, fewer where the calendar's first year comes earlier; None: as many as the trace needs.
        step_seconds: length of a step. Step = floor(time since 1970 / step_seconds).
        end: a time (anything ``pandas.Timestamp`` takes; UTC where it names no zone) that the last step holds; default:
            the last event. Later events are not shown.
        instance: only this one.
        axis: ``time``, or ``seq`` for one step an event (for a capture without a clock).

    Returns:
        Index (instance, channel): channels in which something was seen. Columns ``step``: the step's start (UTC), or
        ``seq``. Cells: an activity word; where several fell into one step the highest: error > disabled = request >
        response > notification = ping > none; on a tie the later event.

    Raises:
        TraceError: no event has a time (use ``axis="seq"``), there is no such instance, or so many steps are no table.
    """
    if axis not in ("time", "seq"):
        raise ArgumentError(f"axis={axis!r}: it is 'time' or 'seq'")
    if steps is not None and (not isinstance(steps, Integral) or steps < 1):
        raise ArgumentError(f"steps={steps!r}: a timeline has a whole number of steps, at least one")
    if not isinstance(step_seconds, Real) or not math.isfinite(step_seconds) or step_seconds <= 0:
        raise ArgumentError(f"step_seconds={step_seconds!r}: a step lasts longer than nothing, and not for ever")
    marks: Marks = trace.marks
    instances = np.asarray(marks.instance, dtype=object)
    chosen = np.ones(len(instances), dtype=bool) if instance is None else instances == instance
    if instance is not None and not chosen.any():
        known = ", ".join(dict.fromkeys(marks.instance)) or "none"
        raise TraceError(f"no instance {instance!r} in this trace; it has: {known}")
    if axis == "seq":
        return _by_seq(marks, chosen, steps)
    clocked = chosen & (marks.ts != NO_TIME)
    if not clocked.any():
        raise TraceError("no event of this trace has a time stamp; axis='seq' shows it event by event")
    step_us = microseconds(step_seconds)
    last = (
        int(np.floor(_moment(end) / step_us)) if end is not None else int(np.floor(marks.ts[clocked].max() / step_us))
    )
    bins = np.floor(np.where(clocked, marks.ts, 0) / step_us).astype("int64")
    first = int(bins[clocked].min()) if steps is None else last - steps + 1
    if end is None:  # an event with a wild clock must not hide the others
        first = min(max(first, math.ceil(EARLIEST / step_us)), last)
    count = max(last - first + 1, 1)
    if count > MOST_STEPS:
        raise TraceError(f"{count:,} steps are too many to show (at most {MOST_STEPS:,}); make step_seconds longer")
    if first * step_us < EARLIEST or (first + count - 1) * step_us > FARTHEST:
        raise TraceError(f"{count:,} steps of {step_seconds:g} s reach beyond the years that a calendar has; give end=")
    columns = pd.DatetimeIndex(
        (np.arange(first, first + count) * step_us).astype("int64").view("datetime64[us]"), name="step"
    ).tz_localize("UTC")
    return _frame(marks, np.flatnonzero(chosen), bins - first, clocked, count, columns)


def microseconds(seconds: float) -> float:
    """A step's length: a whole number wherever it is one but for the rounding of ``1.001 * 1e6``."""
    length = seconds * 1e6
    whole = round(length)
    if whole < 1:
        raise ArgumentError(f"step_seconds={seconds}: times are known to the microsecond, no step is shorter")
    return whole if math.isclose(length, whole, rel_tol=1e-12) else length


def _by_seq(marks: Marks, chosen: np.ndarray, steps: int | None) -> pd.DataFrame:
    seqs = np.asarray(marks.seq, dtype="int64")
    known, first = np.unique(seqs[chosen], return_index=True)
    order = np.argsort(first)  # in the wire's order
    shown = known[order] if steps is None else known[order][-steps:]
    place = pd.Index(shown, name="seq", dtype="int64")
    return _frame(marks, np.flatnonzero(chosen), place.get_indexer(pd.Index(seqs)), chosen, len(shown), place)


def _frame(
    marks: Marks, rows: np.ndarray, bins: np.ndarray, usable: np.ndarray, count: int, columns: pd.Index
) -> pd.DataFrame:
    """The strongest activity of each cell. Of equal priority the later event wins: the last write of a stable sort."""
    instance, instances = pd.factorize(np.asarray(marks.instance, dtype=object)[rows])
    channel, channels = pd.factorize(np.asarray(marks.channel, dtype=object)[rows])
    rank = np.array([CHANNELS.index(word) for word in channels], dtype="int64")
    keys, line = np.unique(instance * len(CHANNELS) + (rank[channel] if len(rank) else channel), return_inverse=True)
    words = [(instances[key // len(CHANNELS)], CHANNELS[key % len(CHANNELS)]) for key in keys]
    activity = np.asarray(marks.activity, dtype=object)[rows]
    code, names = pd.factorize(activity)
    strength = np.array([PRIORITY[word] for word in names], dtype="int64")
    cells = np.full((len(words), count), "none", dtype=object)
    at = bins[rows]
    inside = np.flatnonzero(usable[rows] & (at >= 0) & (at < count))
    if len(inside):
        inside = inside[np.argsort(strength[code[inside]], kind="stable")]
        cells[line[inside], at[inside]] = activity[inside]
    index = pd.MultiIndex.from_tuples(words, names=["instance", "channel"])
    return pd.DataFrame(cells, index=index, columns=columns, dtype="str")


def _moment(end: Any) -> int:
    try:
        moment = pd.Timestamp(end)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"end={end!r} is no time: {error}") from None
    if pd.isna(moment):
        raise ArgumentError(f"end={end!r} is no time")
    moment = moment.tz_localize("UTC") if moment.tzinfo is None else moment.tz_convert("UTC")
    return int(moment.as_unit("us").asm8.view("int64"))  # .value would be nanoseconds in any unit
