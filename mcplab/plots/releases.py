"""Who stands beside whom: products, their releases oldest first, as rows or columns of a figure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from mcplab.model import DrawError
from mcplab.versions import natural_key, version_key

NAMELESS = "—"
"""Stands where a name or a version is missing."""


class Who(NamedTuple):
    """One column of a comparison: its label there, the product it belongs to, what tells it from its siblings."""

    key: Hashable
    group: str
    label: str
    at: int


def shown(value: Any) -> str:
    """A label's text; ``—`` where it is missing."""
    return str(value) if isinstance(value, str) or not pd.isna(value) else NAMELESS


def whos(columns: pd.Index, order: str) -> list[Who]:
    """The columns of a comparison in drawing order: ``name`` (products by name, releases oldest first) or ``given``.

    With several levels the product is the level called ``client``, else the first one. With ``given`` too the columns
    of one product stand together, where its first one stands. A level ``tier`` keeps the order that it has.
    """
    names = list(columns.names)
    home = names.index("client") if "client" in names else 0
    found: list[Who] = []
    keys: list[tuple[Any, ...]] = []
    for at, key in enumerate(columns):
        parts = list(key) if isinstance(key, tuple) else [key]
        rest = [(name, part) for level, (name, part) in enumerate(zip(names, parts, strict=True)) if level != home]
        group = shown(parts[home])
        found.append(Who(key, group, " ".join(shown(part) for _, part in rest) or group, at))
        keys.append((natural_key(group), group, [_rank(str(name), shown(part), at) for name, part in rest], at))
    if order == "name":
        return [found[at] for at in sorted(range(len(found)), key=keys.__getitem__)]
    if order != "given":
        raise DrawError(f"order {order!r} is none of name, given")
    first: dict[str, int] = {}
    for who in found:
        first.setdefault(who.group, who.at)
    return sorted(found, key=lambda who: (first[who.group], who.at))


def _rank(name: str, text: str, at: int) -> Any:
    """What one level's label is sorted by."""
    return at if name == "tier" else version_key(text) if name.endswith("version") else natural_key(text)


def spans(groups: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of one group: (group, first position, last position)."""
    runs: list[tuple[str, int, int]] = []
    for at, group in enumerate(groups):
        if runs and runs[-1][0] == group:
            runs[-1] = (group, runs[-1][1], at)
        else:
            runs.append((group, at, at))
    return runs
