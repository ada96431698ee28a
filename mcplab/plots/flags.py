"""Where things go on a lane so that nothing lies on anything else: levels of bars and marks, rows of labels."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = 6
ROWS = 10


def levels(begin: Sequence[float], end: Sequence[float], limit: int = LEVELS) -> tuple[list[int], int]:
    """The lowest level at which each interval touches none before it, and how many found none and share the last.

    Intervals come in the order of ``begin``.
    """
    free = [float("-inf")] * limit
    found = []
    shared = 0
    for start, stop in zip(begin, end, strict=True):
        level = next((at for at in range(limit) if free[at] <= start), limit)
        if level == limit:
            level, shared = limit - 1, shared + 1
        free[level] = max(free[level], stop)
        found.append(level)
    return found, shared


def label_rows(x: Sequence[float], width: Sequence[float], limit: int = ROWS) -> list[int]:
    """A row for each label that starts at ``x`` and runs right, so that no label or its stem crosses another one.

    A label stands on a stem at its ``x``. Those further right stand lower, so no stem goes through a text. -1: there
    is no room within ``limit`` rows. ``x`` ascends.
    """
    rows = [-1] * len(x)
    for at in reversed(range(len(x))):
        under = [rows[k] for k in range(at + 1, len(x)) if rows[k] >= 0 and x[k] < x[at] + width[at]]
        row = max(under, default=-1) + 1
        rows[at] = row if row < limit else -1
    return rows
