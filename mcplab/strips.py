"""A timeline as text: one line of symbols a channel."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from mcplab.look import ACTIVITIES
from mcplab.model import NO_TIME
from mcplab.told import count, safe

# Without colour a shape must speak alone: three activities share the disc of the charts.
PLAIN = {word: look.symbol for word, look in ACTIVITIES.items()} | {"ping": "•", "error": "✖"}
"""Activity -> its symbol in plain text."""

SHORTEST = 0.001
"""Seconds: the shortest step that ``step_for`` gives."""


def has_clock(trace: Any) -> bool:
    """Does any event have a time?"""
    return bool((trace.marks.ts != NO_TIME).any())


def step_for(trace: Any, steps: int = 60) -> float:
    """The shortest step of 1, 2 or 5 times a power of ten seconds with which ``steps`` segments hold the whole trace.

    1 second where the trace has no clock; never under a millisecond.
    """
    if not has_clock(trace):
        return 1.0
    clocked = trace.marks.ts[trace.marks.ts != NO_TIME]
    first, last = int(clocked.min()), int(clocked.max())
    power = math.floor(math.log10(max((last - first) / 1e6 / steps, SHORTEST)))
    for size in (m * 10.0**p for p in (power, power + 1) for m in (1, 2, 5)):
        step = round(max(size, SHORTEST), 6)
        # steps are counted from 1970, so one more may be touched than the length alone says
        if math.floor(last / (step * 1e6)) - math.floor(first / (step * 1e6)) < steps:
            return step
    return round(10.0 ** (power + 2), 6)


def strip(frame: pd.DataFrame, seconds: float | None = None) -> str:
    """A timeline as text: a block an instance, a line of symbols a channel, and the legend.

    Args:
        frame: what ``timeline`` returns.
        seconds: length of a step, for the line above; None: a step is an event.
    """
    channels = [channel for _, channel in frame.index]
    wide = max(map(len, channels), default=0)
    lines: list[str] = []
    for instance in dict.fromkeys(frame.index.get_level_values(0)):
        lines.append(safe(instance))
        rows = frame.loc[[instance]]
        lines += [
            f"  {channel:<{wide}}  {''.join(map(PLAIN.__getitem__, row))}"
            for (_, channel), row in zip(rows.index, rows.to_numpy(), strict=True)
        ]
    lines.append(_scale(frame, seconds))
    lines.append("  ".join(f"{shape} {word}" for word, shape in PLAIN.items()))
    return "\n".join(lines)


def _scale(frame: pd.DataFrame, seconds: float | None) -> str:
    if seconds is None or not isinstance(frame.columns, pd.DatetimeIndex):
        return f"{count(frame.shape[1], 'segment')}, one an event"
    first, last = frame.columns[0], frame.columns[-1]
    return f"{count(frame.shape[1], 'segment')} of {seconds:g} s, from {_clock(first)} to {_clock(last)} UTC"


def _clock(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
