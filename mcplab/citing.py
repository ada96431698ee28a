"""Names that a paper can cite: ``fast-agent-0.10.48-http-legacy-default#3`` is event 3 of that capture."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_PROOF: Final = re.compile(r"(\S.*?)#([0-9]+)(?= |$)")


def proofs(text: str) -> list[tuple[str, int]]:
    """(trace, seq) of a text of several ``trace#seq`` with a blank between them; a trace's name may hold blanks too."""
    return [(name, int(seq)) for name, seq in _PROOF.findall(text)]


def short_names(traces: Iterable[str]) -> dict[str, str]:
    """Trace -> the last part of its name, or the whole name where two captures share that part."""
    names = list(dict.fromkeys(traces))
    ends = Counter(name.rpartition("/")[2] for name in names)
    return {name: end if ends[end := name.rpartition("/")[2]] == 1 else name for name in names}


def citation(proof: Sequence[Any], short: Mapping[str, str]) -> str:
    """The first of what a cell rests on: ``trace#seq``, or a document's citation; "" where there is nothing."""
    if not proof:
        return ""
    one = proof[0]
    return one if isinstance(one, str) else f"{short.get(one[0], one[0])}#{one[1]}"


class Cites(Mapping[tuple[str, Any], str]):
    """(path, who) -> the id by which a cell is cited, looked up when asked for."""

    def __init__(self, evidence: Mapping[tuple[str, Any], Sequence[Any]], traces: Iterable[str]) -> None:
        self._evidence, self._traces = evidence, traces
        self._short: dict[str, str] | None = None

    def __getitem__(self, key: tuple[str, Any]) -> str:
        if self._short is None:
            self._short = short_names(self._traces)
        return citation(self._evidence[key], self._short)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._evidence)

    def __len__(self) -> int:
        return len(self._evidence)

    def __deepcopy__(self, memo: Any) -> Cites:
        return self  # pandas copies attrs at every step

    def __repr__(self) -> str:
        return f"<cites for {len(self)} cells>"
