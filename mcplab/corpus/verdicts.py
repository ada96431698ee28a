"""Findings of many captures as columns of small numbers.

Most instances of a busy gateway keep, break and leave unexercised the same rules: such a pattern is worded once, and
each instance adds its name and how often each rule applied.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from mcplab.frames import Tables
from mcplab.jsontext import printable
from mcplab.model import COLUMNS
from mcplab.rulebook.board import Board
from mcplab.rulebook.engine import MEMO, Run
from mcplab.rulebook.keys import Keyring
from mcplab.rulebook.tables import add, certain, doubt
from mcplab.spec import REVISIONS

EXTRA: Final = ("client", "client_version")
LEADS: Final = "leads"
"""Columns that the stored table has besides those of the contract, so that counts need no other table. ``leads``: the
first row of its instance, rule and verdict."""

_WORDS: Final = [name for name, dtype in COLUMNS["findings"].items() if dtype == "str"]
_NUMBERS: Final = [name for name, dtype in COLUMNS["findings"].items() if dtype != "str"]
_PATTERNS: Final = 5_000


class _Memory:
    """What equal facts led to, for the passes over many captures."""

    def __init__(self) -> None:
        self.keys = Keyring()
        self.outcomes: dict[Any, int] = {}

    def begin(self) -> None:
        if len(self.outcomes) > MEMO:
            self.keys, self.outcomes = Keyring(), {}
        self.keys._headers.clear()


class _Run(Run):
    def __init__(self, tables: Tables, memory: _Memory) -> None:
        self._shared = memory
        super().__init__(tables.wire, tables.links, certain())

    def _first_versions(self) -> None:
        self._shared.begin()
        self.keys, self._memo = self._shared.keys, self._shared.outcomes
        super()._first_versions()


class _Pattern:
    """The rows of instances with the same verdicts and breaches: words as codes, and whose count gives ``n``."""

    def __init__(self, codes: dict[str, np.ndarray], at: np.ndarray, broken: int) -> None:
        self.codes = codes
        self.at = at  # a rule of a board, or -1: n is 1
        self.broken = broken


class Findings:
    """Rows waiting to be written. ``take`` adds a capture's."""

    def __init__(self) -> None:
        self._words: dict[str, dict[str | None, int]] = {name: {None: -1} for name in [*_WORDS, *EXTRA]}
        self._patterns: dict[Any, _Pattern] = {}
        self._memory = _Memory()
        self._rules = {rule.id: number for number, rule in enumerate(certain().rules)}
        self._clear()

    def _clear(self) -> None:
        self._blocks: dict[str, list[np.ndarray]] = {name: [] for name in [*_WORDS, *_NUMBERS, *EXTRA, LEADS]}

    def take(self, tables: Tables, whose: dict[str, tuple[str | None, str | None]]) -> dict[str, int]:
        """Judge a capture. ``whose``: instance -> client and version. Returns instance -> breaches."""
        run = _Run(tables, self._memory)
        doubt(run, tables.record)
        boards: dict[str, list[tuple[str | None, Board]]] = {name: [] for name in whose}
        for revision in [*REVISIONS, None]:
            for instance in whose:
                board = run.boards.get((instance, revision))
                if board is not None:
                    boards[instance].append((revision, board))
        made = {name: self._one(tables.name, name, run, boards[name], whose[name]) for name in whose}
        breaches: dict[str, int] = {}
        for name, (columns, broken) in made.items():  # only now that nothing can go wrong any more
            for column, block in columns.items():
                self._blocks[column].append(block)
            breaches[name] = broken
        return breaches

    def _one(
        self, trace: str, instance: str, run: Run, boards: list[tuple[str | None, Board]], who: Any
    ) -> tuple[dict[str, np.ndarray], int]:
        counts = [(np.array(board.kept), np.array(board.unknown)) for _, board in boards]
        total = np.concatenate([kept + unknown for kept, unknown in counts]) if counts else np.empty(0, dtype="int64")
        key = tuple(
            (revision, (kept > 0).tobytes(), (unknown > 0).tobytes(), tuple(board.broken))
            for (revision, board), (kept, unknown) in zip(boards, counts, strict=True)
        )
        pattern = self._patterns.get(key)
        if pattern is None:
            if len(self._patterns) > _PATTERNS:
                self._patterns.clear()
            pattern = self._patterns[key] = self._new(run, instance, boards)
        n = np.where(pattern.at < 0, 1, total[pattern.at])
        length = len(pattern.at)
        same = {"trace": trace, "instance": instance, **dict(zip(EXTRA, who, strict=True))}
        columns = {name: np.full(length, self._code(name, word), dtype="int32") for name, word in same.items()}
        return {**pattern.codes, **columns, "n": n}, pattern.broken

    def _code(self, column: str, word: str | None) -> int:
        known = self._words[column]
        code = known.get(word)
        if code is None:
            word = None if word is None else printable(word)  # Arrow holds no lone surrogate
            code = known.setdefault(word, len(known) - 1)
        return code

    def _new(self, run: Run, instance: str, boards: list[tuple[str | None, Board]]) -> _Pattern:
        rows: dict[str, list[Any]] = {name: [] for name in COLUMNS["findings"]}
        add(rows, run, instance, "")
        start = {revision: n * len(self._rules) for n, (revision, _) in enumerate(boards)}
        at = [
            -1 if verdict == "broken" else start[said] + self._rules[rule]
            for said, rule, verdict in zip(rows["revision"], rows["rule"], rows["verdict"], strict=True)
        ]
        codes = {
            name: np.array([self._code(name, word) for word in rows[name]], dtype="int32")
            for name in _WORDS
            if name not in ("trace", "instance")
        }
        for name in ("seq", "part"):
            codes[name] = np.array([-1 if value is None else value for value in rows[name]], dtype="int64")
        seen: set[tuple[str, str]] = set()
        pairs = list(zip(rows["rule"], rows["verdict"], strict=True))
        codes[LEADS] = np.array([pair not in seen and not seen.add(pair) for pair in pairs], dtype=bool)
        return _Pattern(codes, np.array(at, dtype="int64"), rows["verdict"].count("broken"))

    def arrow(self, schema: pa.Schema) -> pa.Table:
        """What waits, as a table; nothing waits afterwards."""
        arrays: list[pa.Array] = []
        for field in schema:
            blocks = self._blocks[field.name]
            values = np.concatenate(blocks) if blocks else np.empty(0, dtype="int64")
            if field.name == LEADS:
                arrays.append(pa.array(values.astype(bool)))
            elif field.name in _NUMBERS:
                arrays.append(pa.array(values, type=field.type, mask=values < 0))
            else:
                words = [word for word in self._words[field.name] if word is not None]
                codes = pa.array(values.astype("int32"), mask=values < 0)
                arrays.append(pa.DictionaryArray.from_arrays(codes, pa.array(words, type=pa.large_string())))
        self._clear()
        for name in ("trace", "instance"):
            self._words[name] = {None: -1}
        return pa.Table.from_arrays(arrays, schema=schema)
