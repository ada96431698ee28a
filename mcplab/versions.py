"""The order of versions and names: what people expect, not what characters say."""

from __future__ import annotations

import re
from typing import Final

Key = tuple[tuple[int, int, str], ...]

EARLY: Final = (
    "alpha", "a", "beta", "b", "c", "rc", "pre", "preview", "dev", "canary", "next", "nightly", "snapshot", "insider",
    "insiders",
)  # fmt: skip
"""Words of a version that come before its release."""

_VERSION: Final = re.compile("[vV]?[0-9]")


def version_key(text: str) -> Key:
    """Sorts versions oldest first: 0.9.4 < 0.20.1, 2.0.0-rc.1 < 2.0.0 < 2.0.0.1; text between numbers by letter.

    A ``v`` in front and what follows ``+`` count only between versions that are else equal.
    """
    parts: list[tuple[int, int, str]] = []
    plain = text[1:] if _VERSION.match(text) and not text[0].isdecimal() else text
    for token in re.findall(r"\d+|[A-Za-z]+", plain.partition("+")[0]):
        if token.isdecimal():
            parts.append((2, int(token), ""))
        else:
            word = token.casefold()
            parts.append((0 if word in EARLY else 3, 0, word))
    return (*parts, (1, 0, ""), (0, 0, text))


def natural_key(text: str) -> Key:
    """Sorts names without regard to case, numbers in them by size."""
    return tuple((0, int(t), "") if t.isdecimal() else (1, 0, t) for t in re.findall(r"\d+|\D+", text.casefold()))


def label_key(text: str) -> tuple[bool, Key, str]:
    """Sorts what may be a version or a name, versions first; equal for equal text only."""
    named = _VERSION.match(text) is None
    return named, natural_key(text) if named else version_key(text), text
