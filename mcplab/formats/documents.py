"""JSON documents that hold a list of objects, read also where they are damaged or cut off.

A whole document is taken apart by the scanners of ``jsontext``. A damaged one is searched for objects that begin with
one of the format's own first members; each is read for itself, and inside a broken one its messages are looked for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mcplab import jsontext

_EFFORT = 64  # so many times its own length a damaged document may be scanned


class Item(Struct):
    """An object of the list: its text, where it begins, and its value (None: broken, the text runs to the next one)."""

    text: str
    start: int
    value: Any
    reason: str = ""


class Lines:
    """The line (from 1) of a character position."""

    def __init__(self, text: str) -> None:
        self._breaks = [found.start() for found in re.finditer("\n", text)]

    def __getitem__(self, position: int) -> int:
        return bisect_right(self._breaks, position - 1) + 1


def items(
    text: str, path: Sequence[str], first: Sequence[str], accept: Callable[[dict[str, Any]], bool]
) -> Iterator[Item]:
    """The objects of the list at ``path`` (() for the document itself).

    ``first`` are member names that such an object may begin with, ``accept`` tells one of them from objects inside it.
    """
    found = _whole(text, path)
    if found is not None:
        for start, end in found:
            part = text[start:end]
            try:
                yield Item(part, start, jsontext.loads(part))
            except (ValueError, RecursionError) as error:
                yield Item(part, start, None, str(error) if isinstance(error, ValueError) else "nested too deeply")
        return
    yield from _salvage(text, first, accept)


def path_of(text: str, accept: Callable[[dict[str, Any]], bool]) -> tuple[str, ...]:
    """Where the list is: () for the document itself, else the first member of it that is a list of such objects."""
    if text.lstrip(" \t\r\n\ufeff")[:1] != "{" or jsontext.check(text):
        return ()
    for name, place in jsontext.places(text, text.find("{")):
        if text[place : place + 1] == "[":
            for start, end in jsontext.spans(text, place)[:1]:
                value = jsontext.loads(text[start:end])
                if isinstance(value, dict) and accept(value):
                    return (name,)
    return ()


def _whole(text: str, path: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where the list's elements are, or None where the document is damaged."""
    if jsontext.check(text) not in ("", "nested too deeply"):
        return None
    start = 0
    try:
        for step in path:
            place = _member(text, start, step)
            if place is None:
                return None
            start = place
        return jsontext.spans(text, start)
    except ValueError:  # nested too deeply for a parser to say so before
        return None


def _member(text: str, start: int, name: str) -> int | None:
    """Where the value of the object's member begins."""
    pos = text.find("{", start)
    if pos < 0:
        return None
    found = None
    for key, value in jsontext.places(text, pos):
        if key == name:
            found = value
    return found


def _salvage(text: str, first: Sequence[str], accept: Callable[[dict[str, Any]], bool]) -> Iterator[Item]:
    starts = [found.start() for found in re.finditer(r'\{\s*"(?:' + "|".join(map(re.escape, first)) + r')"\s*:', text)]
    effort = _EFFORT * len(text)
    pos = 0
    reason = "damaged"
    for start in starts:
        if start < pos:
            continue
        try:
            value, end = jsontext.value(text, start)
        except ValueError as error:
            effort -= getattr(error, "pos", len(text)) - start
            reason = f"damaged: {error}"
            if effort < 0:
                reason = "too damaged: given up here"
                break
            continue
        effort -= end - start
        if isinstance(value, dict) and accept(value):
            yield from _gap(text, pos, start, reason)
            yield Item(text[start:end], start, value)
            pos, reason = end, "damaged"
    yield from _gap(text, pos, len(text), reason)


def _gap(text: str, start: int, end: int, reason: str) -> Iterator[Item]:
    """What lies between two readable objects, where it is more than the punctuation between them."""
    gap = text[start:end]
    if len(gap) > 8 and any(c not in " \t\r\n,[]{}" for c in gap):
        yield Item(gap, start, None, reason)
