"""What the checks said: counts and breaches, of one instance in one revision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mcplab.rulebook.outcome import Broken


class Found(NamedTuple):
    """One breach, without the message: a capture may hold many."""

    rule: int
    said: Broken
    seq: int
    part: int | None
    sender: str | None
    conn: str


class Many(NamedTuple):
    """One breach that many messages have: a place a message in each of the two arrays."""

    rule: int
    said: Broken
    sender: str | None
    seqs: np.ndarray
    conns: np.ndarray


class Board:
    """What the checks said about the events of one instance in one revision (None: a revision nobody could tell).

    ``alike``: (number of what was said of a message, its sender) -> events, until the pass is over.
    """

    def __init__(self, rules: int) -> None:
        self.kept = [0] * rules
        self.unknown = [0] * rules
        self.broken: list[Found] = []
        self.many: list[Many] = []
        self.bulks: dict[int, int] = {}
        self.alike: dict[tuple[int, str], list[np.ndarray]] = {}

    def breaches(self) -> Iterator[Found]:
        """All of them, one by one."""
        yield from self.broken
        for rule, said, sender, seqs, conns in self.many:
            for seq, conn in zip(seqs.tolist(), conns.tolist(), strict=True):
                yield Found(rule, said, seq, None, sender, conn)
