"""A capture as arrays, made once, so that a panel can filter and redraw at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcplab.channels import Marks
from mcplab.model import NO_TIME, PRIORITY
from mcplab.render import Facts, facts, within
from mcplab.told import safe

WITHOUT = "(no method)"
"""Stands in the list of methods for what has none: HTTP and SSE events, stderr, answers to nothing known."""


class _Marked(NamedTuple):
    """Stands for a trace where only its marks are looked at."""

    marks: Marks


class View:
    """Messages (each part of a batch) and other events of a trace, in the wire's order."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        messages, events = trace.messages, trace.events
        others = events[events["kind"] != "message"]
        shared = ["seq", "ts", "instance", "sender", "kind", "channel", "activity", "status", "http_method"]
        frame = pd.concat([
            messages[[*shared, "part", "method", "id"]],
            others[shared],
        ], ignore_index=True)  # fmt: skip
        frame = frame.sort_values(["seq", "part"], kind="stable", ignore_index=True)
        self.frame = frame
        self.seq = frame["seq"].to_numpy(dtype="int64")
        self.ts = _micros(frame["ts"])
        self._instance = pd.Categorical(frame["instance"].astype(object))
        self._channel = pd.Categorical(frame["channel"].astype(object).where(frame["channel"].notna(), ""))
        self._method = pd.Categorical(frame["method"].astype(object).where(frame["method"].notna(), WITHOUT))
        self._words = [frame[name].to_numpy(dtype=object) for name in ("instance", "channel", "activity")]
        self._facts: dict[str, Facts] = {}

    @property
    def instances(self) -> list[str]:
        return list(dict.fromkeys(self.trace.connections["instance"]))

    def facts(self, instance: str) -> Facts:
        """The display's facts, gathered once."""
        if instance not in self._facts:
            self._facts[instance] = facts(self.trace, instance)[0]
        return self._facts[instance]

    def methods(self, instance: str) -> list[tuple[str, int]]:
        """Methods of an instance with their number, the commonest first."""
        codes = self._method.codes[self._of(self._instance, [instance])]
        counts = np.bincount(codes, minlength=len(self._method.categories))
        order = sorted(np.flatnonzero(counts), key=lambda at: (-counts[at], str(self._method.categories[at])))
        return [(str(self._method.categories[at]), int(counts[at])) for at in order]

    def chosen(self, instance: str, channels: Collection[str], methods: Collection[str]) -> np.ndarray:
        """Positions of what the filters let through; an empty filter lets all through."""
        mask = self._of(self._instance, [instance])
        if channels:
            mask = mask & self._of(self._channel, channels)
        if methods:
            mask = mask & self._of(self._method, methods)
        return np.flatnonzero(mask)

    def within(self, at: np.ndarray, channel: str, start: Any, seconds: float | None) -> np.ndarray:
        """Those of these rows that lie on a channel in the segment that begins at ``start``."""
        on = at[self._of(self._channel, [channel])[at]]
        return on[within(self.seq[on], self.ts[on], start, seconds)]

    def strongest(self, at: np.ndarray) -> int:
        """The row whose activity a segment of these rows shows: the strongest, on a tie the last."""
        words = self._words[2][at]
        return int(at[max(range(len(at)), key=lambda n: (PRIORITY[words[n]], n))])

    def marked(self, at: np.ndarray) -> _Marked:
        """The marks of these rows, for a strip."""
        at = at[self._channel.codes[at] != self._code(self._channel, "")]
        words = [column[at] for column in self._words]
        return _Marked(Marks(self.seq[at], self.ts[at], *words))  # type: ignore[arg-type]  # arrays serve as well

    @staticmethod
    def _code(column: pd.Categorical, word: str) -> int:
        return int(column.categories.get_indexer([word])[0])

    @classmethod
    def _of(cls, column: pd.Categorical, words: Collection[str]) -> np.ndarray:
        return np.isin(column.codes, [cls._code(column, word) for word in words])

    def lines(self, at: np.ndarray) -> list[str]:
        """Rows as a list has them: seq, time, direction, what it is."""
        return [_line(row) for row in self.frame.iloc[at].to_dict("records")]


def _line(row: dict[str, Any]) -> str:
    when = "" if pd.isna(row["ts"]) else f"{row['ts']:%H:%M:%S}.{row['ts'].microsecond // 1000:03d}"
    arrow = {"client": "→", "server": "←"}.get(row["sender"], " ")
    part = "" if pd.isna(row["part"]) else f"[{row['part']}]"
    asks = row["kind"] == "http" and row["sender"] == "client"  # of an exchange without a message the verb says most
    words = [
        row["kind"],
        row["http_method"] if asks else row["method"],
        None if pd.isna(row["id"]) else f"id {row['id']}",
    ]
    words.append(None if pd.isna(row["status"]) else f"HTTP {row['status']}")
    words.append("✖" if row["activity"] == "error" else None)
    told = "  ".join(safe(word)[:60] for word in words if word is not None and word == word)
    return f"{row['seq']:>6}{part}  {when}  {arrow} {told}"


def _micros(times: pd.Series) -> np.ndarray:
    stamps = pd.DatetimeIndex(times).tz_localize(None).as_unit("us").asi8  # type: ignore[attr-defined]
    return np.where(stamps == np.iinfo("int64").min, NO_TIME, stamps)
