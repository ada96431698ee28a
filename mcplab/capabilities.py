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


class _Object:
    """An object that is being read: its members so far, the last of each key, and where they are."""

    __slots__ = ("keys", "members", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.members: dict[str, tuple[int, int, _Object | None]] = {}  # key -> start, end, the object it is
        self.keys: set[str] = set()  # given more than once


def _parse(text: str) -> tuple[int, int, _Object | None]:
    """Start, end and members of the outermost value, in one pass and without recursion; arrays are not looked into."""
    if jsontext.kind(text) != "object":
        return 0, len(text), None
    spot = text.index("{")
    root = _Object(spot)
    stack: list[tuple[_Object, str]] = []
    current = root
    at = spot + 1
    while True:
        at = jsontext.skip(text, at)
        mark = text[at]
        if mark == ",":
            at += 1
        elif mark == "}":
            if not stack:
                return spot, at + 1, root
            closed, (current, key) = current, stack.pop()
            current.members[key] = (closed.start, at + 1, closed)
            at += 1
        else:
            key, at = jsontext.scanstring(text, at + 1, False)
            if key in current.members:
                current.keys.add(key)
            at = jsontext.skip(text, jsontext.skip(text, at) + 1)  # the colon
            if text[at] == "{":
                current.members[key] = (at, at, None)  # keeps the place of the key among its siblings
                stack.append((current, key))
                current = _Object(at)
                at += 1
            else:
                end = jsontext.value_end(text, at)
                current.members[key] = (at, end, None)
                at = end


def flatten(text: str | None) -> list[Leaf]:
    """The rows of a declaration's JSON text; None is an absent declaration, which has its ``$`` row too.

    Of duplicate keys the last counts, and its row says ``duplicate``.
    """
    if text is None:
        return [Leaf(ROOT, "absent", None, False)]
    rows: list[Leaf] = []
    stack: list[tuple[tuple[str, ...], tuple[int, int, _Object | None], bool]] = [((), _parse(text), False)]
    while stack:  # not recursive: a declaration may be nested as deep as its sender likes
        path, (start, end, inner), duplicate = stack.pop()
        if inner is None or not inner.members:
            leaf = text[start:end].strip(" \t\r\n")
            rows.append(Leaf(join(path), state_of(leaf), leaf, duplicate))
        else:
            rows.append(Leaf(join(path), "object", None, duplicate))
            members = inner.members
            stack.extend(((*path, key), members[key], key in inner.keys) for key in reversed(members))
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
