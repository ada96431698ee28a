"""Activity in equal steps of time: what one segment of a timeline shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcplab.channels import Marks
from mcplab.model import CHANNELS, NO_TIME, PRIORITY, TraceError


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
        steps: how many steps; None: as many as the trace needs.
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
        TraceError: no event has a time (use ``axis="seq"``), or there is no such instance.
    """
    if axis not in ("time", "seq"):
        raise TraceError(f"axis={axis!r}: it is 'time' or 'seq'")
    if steps is not None and steps < 1:
        raise TraceError(f"steps={steps}: a timeline has at least one step")
    if not step_seconds > 0:
        raise TraceError(f"step_seconds={step_seconds}: a step lasts longer than nothing")
    marks: Marks = trace.marks
    instances = np.array(marks.instance, dtype=object)
    chosen = np.ones(len(instances), dtype=bool) if instance is None else instances == instance
    if instance is not None and not chosen.any():
        known = ", ".join(dict.fromkeys(marks.instance)) or "none"
        raise TraceError(f"no instance {instance!r} in this trace; it has: {known}")
    if axis == "seq":
        return _by_seq(marks, chosen, steps)
    clocked = chosen & (marks.ts != NO_TIME)
    if not clocked.any():
        raise TraceError("no event of this trace has a time stamp; axis='seq' shows it event by event")
    step_us = step_seconds * 1e6
    last = (
        int(np.floor(_moment(end) / step_us)) if end is not None else int(np.floor(marks.ts[clocked].max() / step_us))
    )
    bins = np.floor(np.where(clocked, marks.ts, 0) / step_us).astype("int64")
    first = int(bins[clocked].min()) if steps is None else last - steps + 1
    count = max(last - first + 1, 1)
    columns = pd.DatetimeIndex(
        (np.arange(first, first + count) * step_us).astype("int64").view("datetime64[us]"), name="step"
    ).tz_localize("UTC")
    return _frame(marks, np.flatnonzero(chosen), bins - first, clocked, count, columns)


def _by_seq(marks: Marks, chosen: np.ndarray, steps: int | None) -> pd.DataFrame:
    seqs = list(dict.fromkeys(marks.seq[n] for n in np.flatnonzero(chosen)))
    shown = seqs if steps is None else seqs[-steps:]
    place = {seq: n for n, seq in enumerate(shown)}
    bins = np.array([place.get(seq, -1) for seq in marks.seq], dtype="int64")
    columns = pd.Index(shown, name="seq", dtype="int64")
    return _frame(marks, np.flatnonzero(chosen), bins, chosen, len(shown), columns)


def _frame(
    marks: Marks, rows: np.ndarray, bins: np.ndarray, usable: np.ndarray, count: int, columns: pd.Index
) -> pd.DataFrame:
    """The strongest activity of each cell. Of equal priority the later event wins: the last write of a stable sort."""
    keys = [(marks.instance[n], marks.channel[n]) for n in rows]
    order = {instance: n for n, instance in enumerate(dict.fromkeys(key[0] for key in keys))}
    index = sorted(dict.fromkeys(keys), key=lambda key: (order[key[0]], CHANNELS.index(key[1])))
    place = {key: n for n, key in enumerate(index)}
    cells = np.full((len(index), count), "none", dtype=object)
    inside = [(n, key) for n, key in zip(rows, keys, strict=True) if usable[n] and 0 <= bins[n] < count]
    ranks = np.array([PRIORITY[marks.activity[n]] for n, _ in inside], dtype="int64")
    for at in np.argsort(ranks, kind="stable"):
        n, key = inside[at]
        cells[place[key], bins[n]] = marks.activity[n]
    names = pd.MultiIndex.from_tuples(index, names=["instance", "channel"])
    return pd.DataFrame(cells, index=names, columns=columns, dtype="str")


def _moment(end: Any) -> int:
    try:
        moment = pd.Timestamp(end)
    except (ValueError, TypeError) as error:
        raise TraceError(f"end={end!r} is no time: {error}") from None
    moment = moment.tz_localize("UTC") if moment.tzinfo is None else moment.tz_convert("UTC")
    return int(moment.as_unit("us").value)
