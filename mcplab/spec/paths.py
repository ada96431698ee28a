"""Capability paths as text: ``sampling.tools``, ``extensions["io.modelcontextprotocol/ui"].mimeTypes``, ``$``.

A key of letters, digits, ``_`` and ``-`` stands as it is, after a dot unless it comes first. Any other key, the empty
one and ``$`` too, is bracketed as ``json.dumps`` writes it. ``$`` alone is the capability object itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mcplab.model import SpecError

ROOT: Final = "$"
"""The path of the capability object itself."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_STEP: Final = re.compile(r'\[("(?:[^"\\]|\\.)*")\]|(\.?)([A-Za-z0-9_-]+)', re.DOTALL)


def join(segments: Iterable[str]) -> str:
    """The path of a list of keys. No key at all is ``$``.

    Every key that JSON text can hold comes back from :func:`split`. (A Python string can also hold the two halves
    of a surrogate pair apart; JSON has one character for both, and so has the path.)
    """
    out: list[str] = []
    for key in segments:
        if _PLAIN.fullmatch(key) is None:
            out.append(f"[{json.dumps(key)}]")
        else:
            out.append(f".{key}" if out else key)
    return "".join(out) or ROOT


def split(path: str) -> list[str]:
    """The keys of a path, outermost first; ``$`` has none. The inverse of :func:`join`.

    Brackets around a plain key and characters that need no escape are accepted: ``join(split(path))`` gives the path
    in its one canonical form.

    Raises:
        SpecError: ``path`` is no path; the message says at which character.
    """
    if path == ROOT:
        return []
    keys: list[str] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (step[1] is None and (step[2] == "") is (at > 0)):
            raise _no_path(path, at)
        if step[1] is None:
            keys.append(step[3])
        else:
            try:
                keys.append(json.loads(step[1], strict=False))
            except ValueError:
                raise _no_path(path, at) from None
        at = step.end()
    if not keys:
        raise _no_path(path, 0)
    return keys


def _no_path(path: str, at: int) -> SpecError:
    return SpecError(
        f"{path!r} is no capability path (character {at + 1}): write sampling.tools, and bracket any key that has other"
        f' characters than letters, digits, _ and -, as in extensions["io.modelcontextprotocol/ui"]'
    )


@lru_cache(maxsize=65536)
def parent(path: str) -> str:
    """The path one key up: ``sampling`` for ``sampling.tools``, ``$`` for ``sampling`` and for ``$``."""
    return join(split(path)[:-1])
