"""Capability objects taken apart into paths and states, and put together again. Nothing is read or written here.

A path is dotted as the specification names it; ``$`` is the capability object itself. Every member at every depth has
a row, parents too; arrays are leaves. Only leaves have a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mcplab import jsontext
from mcplab.model import ABSENT, JsonText, Sentinel
from mcplab.spec import join, split

ROOT = "$"


class Leaf(NamedTuple):
    """One row of a flattened object. ``value`` is the JSON text of a leaf, None for a parent and where absent."""

    path: str
    state: str
    value: str | None
    duplicate: bool


def state_of(text: str | None) -> str:
    """The state of a JSON text: absent (None), null, empty, object, true, false or value."""
    if text is None:
        return "absent"
    kind = jsontext.kind(text)
    if kind == "object":
        return "object" if jsontext.members(text) else "empty"
    return kind if kind in ("null", "true", "false") else "value"


def as_text(value: Any) -> str | None:
    """JSON text of a declaration given as text, as any JSON value, or as ABSENT (None)."""
    if isinstance(value, Sentinel):
        if value is ABSENT:
            return None
        raise TypeError(f"{value} is no declaration that could be flattened")
    return str(value) if isinstance(value, JsonText) else jsontext.dumps(value)


def flatten(text: str | None) -> list[Leaf]:
    """The rows of a declaration's JSON text; None is an absent declaration, which has its ``$`` row too.

    Of duplicate keys the last counts, and its row says ``duplicate``.
    """
    rows: list[Leaf] = []
    stack: list[tuple[tuple[str, ...], str | None, bool]] = [((), text, False)]
    while stack:  # not recursive: a declaration may be nested as deep as its sender likes
        path, value, duplicate = stack.pop()
        state = state_of(value)
        leaf = value.strip(" \t\r\n") if value is not None and state != "object" else None
        rows.append(Leaf(join(path), state, leaf, duplicate))
        if state != "object" or value is None:
            continue
        last: dict[str, str] = {}
        twice: set[str] = set()
        for key, inner in jsontext.members(value):
            if key in last:
                twice.add(key)
            last[key] = inner
        stack.extend(((*path, key), last[key], key in twice) for key in reversed(last))
    return rows


def unflatten(rows: Iterable[tuple[str, str]] | Mapping[str, str]) -> Any:
    """The JSON value that leaf rows (path, JSON text) describe; ABSENT where there are none.

    The inverse of ``flatten``: ``unflatten((r.path, r.value) for r in flatten(text) if r.value is not None)`` equals
    ``json.loads(text)``.
    """
    given: Any = rows.items() if isinstance(rows, Mapping) else rows
    pairs: list[tuple[str, str]] = list(given)
    if not pairs:
        return ABSENT
    whole: Any = {}
    for path, text in pairs:
        value = jsontext.loads(text)
        steps = split(path)
        if not steps:
            return value
        place = whole
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
    return whole
