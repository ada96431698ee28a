"""The content of a declaration matrix before it is drawn: rows, columns, states, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pandas as pd

from mcplab.look import CELLS
from mcplab.model import DrawError
from mcplab.plots.releases import NAMELESS, Who, shown, whos

_STEP = re.compile(r'\.?[A-Za-z0-9_-]+|\["(?:[^"\\]|\\.)*"\]')


SILENT: Final = frozenset({"absent", "unknown"})
"""Words of a row that is left out: nobody says anything of the path. Somebody's ``no`` is something."""


class PathRow(NamedTuple):
    """One path: itself, the part of it that its nearest drawn ancestor does not say, its depth below that, its root."""

    path: str
    label: str
    depth: int
    root: str


class Cells(NamedTuple):
    """What a matrix shows: ``left_out`` are paths nobody declares, ``commonest`` (state, n, m) of varying cells."""

    paths: list[PathRow]
    whos: list[Who]
    state: dict[tuple[str, Hashable], str]
    commonest: dict[tuple[str, Hashable], tuple[str, int, int]]
    instances: dict[Hashable, int]
    era: dict[Hashable, str]
    left_out: list[str]
    tiers: bool
    tier: str = "observed"


def prepare(frame: pd.DataFrame, *, order: str, show_all: bool) -> Cells:
    """Check the frame and put it in drawing order.

    Raises ``DrawError`` for cells that hold no state, and for rows or columns that are there twice.
    """
    if not frame.index.is_unique or not frame.columns.is_unique:
        raise DrawError("this is no comparison: a path or a column is there twice")
    words = frame.astype(object).to_numpy()
    strange = sorted({repr(word) for word in words.ravel() if word not in CELLS})
    if strange:
        raise DrawError(f"this is no comparison: a cell holds {strange[0]}, not one of {', '.join(CELLS)}")
    if frame.empty:
        raise DrawError("nothing to draw: the comparison has no rows or no columns")
    columns = whos(frame.columns, order)
    paths = [str(path) for path in frame.index]
    silent = {path for path, row in zip(paths, words, strict=True) if path != "$" and {*row} <= SILENT}
    kept = [path for path in paths if show_all or path not in silent]
    state = {(path, who.key): words[at][who.at] for at, path in enumerate(paths) for who in columns if path in kept}
    counts = frame.attrs.get("counts") or {}
    tier = str(frame.attrs.get("tier") or "observed")
    runs, eras = (_of(frame.attrs.get(name), columns) for name in ("instances", "era"))
    return Cells(
        paths=rows(kept),
        whos=columns,
        state=state,
        commonest={
            place: _commonest(counts[place]) for place, word in state.items() if word == "varies" and counts.get(place)
        },
        instances=runs,
        era=eras if tier == "observed" else {who: era for who, era in eras.items() if who in runs},
        left_out=[] if show_all else [path for path in paths if path in silent],
        tiers=frame.columns.nlevels > 1,
        tier=tier,
    )


def _of(given: Mapping[Hashable, Any] | None, columns: list[Who]) -> dict[Hashable, Any]:
    """What is known of each column. No number of instances is shown for a document, which rests on none."""
    return {who.key: given[who.key] for who in columns if given.get(who.key)} if given is not None else {}


def _commonest(counts: Mapping[str, int]) -> tuple[str, int, int]:
    """Of what has a mark; on a tie what says more: ``absent`` is drawn only where it leads."""
    marked = [word for word in CELLS if word in counts and CELLS[word].marker]
    if not marked:
        return "", 0, 0
    best = max(marked, key=lambda word: (counts[word], word != "absent"))
    return best, int(counts[best]), int(sum(counts.values()))


def steps(path: str) -> list[str]:
    """The members a path names, as they are written: ``extensions["a/b"].c`` -> ``extensions``, ``["a/b"]``, ``.c``."""
    return _STEP.findall(path) if "".join(_STEP.findall(path)) == path else [path]


def rows(paths: list[str]) -> list[PathRow]:
    """The rows of these paths, each labelled by what its nearest ancestor among them does not say."""
    drawn, found = set(paths), []
    for path in paths:
        parts = steps(path)
        above = [n for n in range(1, len(parts)) if "".join(parts[:n]) in drawn]
        nearest = above[-1] if above else 0
        found.append(PathRow(path, "".join(parts[nearest:]), len(above), parts[0]))
    return found


# Marks of identity ---------------------------------------------------------------------------------


def gid(kind: str, path: str, who: Hashable) -> str:
    """``cell:<path>:<who>``, percent-encoded so that it is a valid id in svg; the parts of ``who`` joined by ``/``."""
    parts = list(who) if isinstance(who, tuple) else [who]
    named = "/".join("" if shown(part) == NAMELESS else quote(str(part), safe="") for part in parts)
    return f"{kind}:{quote(path, safe='')}:{named}"


def identity(mark: str) -> tuple[str, Hashable]:
    """The path and who of a gid; text as it was shown, missing parts as missing."""
    _, path, named = mark.split(":")
    parts = [unquote(part) if part else None for part in named.split("/")]
    return unquote(path), tuple(parts) if len(parts) > 1 else parts[0]
