"""The segment strip: what each step of time shows on each channel, and how steps merge when there is little room."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from mcplab.bins import microseconds, timeline
from mcplab.channels import stronger
from mcplab.look import ACTIVITIES
from mcplab.model import NO_TIME, TraceError

PLAIN: Final = {word: look.symbol for word, look in ACTIVITIES.items()} | {"ping": "•", "error": "✖"}
"""Activity -> symbol where there is no colour: three activities share the disc, so shape must speak alone."""


class Segments(NamedTuple):
    """Strips of one instance. ``cells``: channel -> activity words, oldest first.

    ``seconds``: length of a step, None where a step is an event. ``merged``: how many of the steps asked for make one
    of these. ``first``, ``last``: start of the first and of the last step (UTC), or seq. ``outside``: how many marks
    lie before, after, and have no time. ``starts``: the start of each segment (UTC), or the seq that it begins with.
    """

    cells: dict[str, list[str]]
    count: int
    seconds: float | None
    merged: int
    first: Any
    last: Any
    outside: tuple[int, int, int]
    starts: pd.Index


def segments(
    trace: Any, instance: str, *, steps: int = 60, step_seconds: float = 1.0, end: Any = None, room: int | None = None
) -> Segments:
    """The strips of one instance, merged to at most ``room`` steps.

    A capture without a clock has one step an event: its last ``steps`` events.

    Raises:
        TraceError: wrong steps, or an end that is no time.
    """
    marks = trace.marks
    mine = np.asarray(marks.instance, dtype=object) == instance
    if not mine.any():
        return Segments({}, 0, None, 1, None, None, (0, 0, 0), pd.Index([]))
    clocked = mine & (marks.ts != NO_TIME)
    clock = bool(clocked.any())
    if not clock and end is not None and end != "now":
        raise TraceError("no event has a time stamp, so there is no end to ask for; leave it out")
    if end == "now":
        end = pd.Timestamp.now(tz="UTC")
    frame = timeline(
        trace, steps=steps, step_seconds=step_seconds, end=end if clock else None, instance=instance,
        axis="time" if clock else "seq",
    )  # fmt: skip
    outside = _outside(marks, mine, clocked, frame, step_seconds) if clock else (0, 0, 0)
    if not clock:
        hidden = int(mine.sum()) - int(np.isin(np.asarray(marks.seq)[mine], frame.columns.to_numpy()).sum())
        outside = (hidden, 0, 0)
    merged = 1 if room is None else _merging(frame, step_seconds, max(room, 1))
    shown = merge(frame, merged, step_seconds)
    channels = [str(channel) for _, channel in shown.index]
    cells = dict(zip(channels, (list(row) for row in shown.to_numpy()), strict=True))
    return Segments(
        cells, shown.shape[1], step_seconds * merged if clock else None, merged, shown.columns[0], shown.columns[-1],
        outside, shown.columns,
    )  # fmt: skip


def within(seq: np.ndarray, ts: np.ndarray, start: Any, seconds: float | None) -> np.ndarray:
    """Which of these events lie in the segment that begins at ``start``, a time or a seq.

    Args:
        seq, ts: of each event; microseconds since 1970, ``NO_TIME`` where there is none.
        seconds: length of the segment; None: it is one event.
    """
    if seconds is None:
        return seq == int(start)
    length = microseconds(seconds)
    number = np.rint(pd.Timestamp(start).tz_convert("UTC").as_unit("us").asm8.view("int64") / length)
    return (ts != NO_TIME) & (np.floor(np.where(ts == NO_TIME, 0, ts) / length) == number)


def merge(frame: pd.DataFrame, k: int, step_seconds: float = 1.0) -> pd.DataFrame:
    """A timeline of ``k`` times the step from a timeline of the step: the stronger activity, on a tie the later.

    Steps of time are aligned to 1970, so the first and last may merge fewer; steps that are events are counted from
    the last.
    """
    if k == 1:
        return frame
    group = _numbers(frame, step_seconds) // k
    names = list(dict.fromkeys(group.tolist()))
    cells = np.full((len(frame), len(names)), "none", dtype=object)
    values = frame.to_numpy()
    place = {name: at for at, name in enumerate(names)}
    for column, name in enumerate(group.tolist()):
        at = place[name]
        for row in range(len(frame)):
            cells[row, at] = stronger(cells[row, at], values[row, column])
    if isinstance(frame.columns, pd.DatetimeIndex):
        micros = (np.array(names) * (microseconds(step_seconds) * k)).astype("int64")
        columns: pd.Index = pd.DatetimeIndex(micros.view("datetime64[us]"), name="step").tz_localize("UTC")
    else:
        columns = pd.Index([frame.columns[int(np.argmax(group == name))] for name in names], name=frame.columns.name)
    return pd.DataFrame(cells, index=frame.index, columns=columns, dtype="str")


def _numbers(frame: pd.DataFrame, step_seconds: float) -> np.ndarray:
    """The number of each step: since 1970, or for events up to -1 for the last."""
    if isinstance(frame.columns, pd.DatetimeIndex):
        micros = frame.columns.tz_localize(None).as_unit("us").to_numpy().view("int64")
        return np.rint(micros / microseconds(step_seconds)).astype("int64")
    return np.arange(-frame.shape[1], 0)


def _merging(frame: pd.DataFrame, step_seconds: float, room: int) -> int:
    """The smallest k with which the steps fit."""
    numbers = _numbers(frame, step_seconds)
    k = 1
    while int(numbers[-1]) // k - int(numbers[0]) // k + 1 > room:
        k += 1
    return k


def _outside(marks: Any, mine: Any, clocked: Any, frame: pd.DataFrame, step_seconds: float) -> tuple[int, int, int]:
    numbers = _numbers(frame, step_seconds)
    bins = np.floor(marks.ts[clocked] / microseconds(step_seconds))
    before, after = int((bins < numbers[0]).sum()), int((bins > numbers[-1]).sum())
    return before, after, int(mine.sum() - clocked.sum())


def overall(found: Segments) -> list[str]:
    """All channels in one strip: the strongest activity of each step."""
    shown = ["none"] * found.count
    for cells in found.cells.values():
        shown = [stronger(one, other) for one, other in zip(shown, cells, strict=True)]
    return shown
