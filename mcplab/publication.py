"""Tables for a paper: a comparison, or any table, as great-tables sets it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from mcplab.look import CELLS, symbol
from mcplab.model import MCPLabError
from mcplab.told import safe

_ID: Final = "mcplab"
"""Great-tables would otherwise make ids at random, and the same table be another file each time."""


def publish(frame: pd.DataFrame, *, title: str | None = None, caption: str | None = None, words: bool = False) -> Any:
    """A comparison, or any table, as a ``great_tables.GT``: a notebook shows it, ``export`` writes html or tex.

    Of a comparison each column becomes a row, clients as groups, paths across; cells are symbols, explained below.

    Args:
        frame: what ``compare`` returns, with any tier; or another DataFrame, taken as it is.
        title: the finding.
        caption: where the data come from: ``mcplab.caption(traces)``.
        words: words in place of symbols, for LaTeX that lacks the symbols' glyphs (pdfLaTeX).

    Raises:
        MCPLabError: great-tables is not installed.
    """
    try:
        from great_tables import GT
    except ImportError:
        raise MCPLabError("a table for publication needs great-tables: pip install 'mcplab[lab]'") from None

    if frame.index.name == "path":
        body, group, used = _turned(frame, words=words)
        table = GT(body, rowname_col=body.columns[0 if group is None else 1], groupname_col=group, id=_ID)
    else:
        used = []
        table = GT(frame.astype(object).where(frame.notna(), "").map(safe).rename(columns=safe), id=_ID)
    if title:
        table = table.tab_header(safe(title))
    if used and not words:
        table = table.tab_source_note("  ".join(f"{CELLS[word].symbol} {word}" for word in used))
    return table.tab_source_note(safe(caption)) if caption else table


def _turned(frame: pd.DataFrame, *, words: bool) -> tuple[pd.DataFrame, str | None, list[str]]:
    """A row a column of the comparison; the name of the column that groups them; the words that occur."""
    flat = frame.astype(object)
    used = [word for word in CELLS if (flat == word).any(axis=None)]
    turned = (flat if words else flat.map(symbol)).T
    turned.columns = [safe(path) for path in turned.columns]
    names = [safe(name or "who") for name in turned.index.names]
    levels = turned.index.to_frame(index=False).astype(object).map(safe)
    levels.columns = pd.Index(names)
    whole = turned.reset_index(drop=True)
    whole.columns = pd.Index(_apart([*names, " ".join(names[1:])], whole.columns))
    if len(names) == 1:
        return pd.concat([levels, whole], axis=1), None, used
    rest = levels[names[1:]].agg(" ".join, axis=1).rename(" ".join(names[1:]))
    return pd.concat([levels[names[0]], rest, whole], axis=1), names[0], used


def _apart(taken: Sequence[str], columns: Iterable[str]) -> list[str]:
    """These columns' names, with blanks behind what is taken already: a capability may be called "client"."""
    seen, out = set(taken), []
    for name in columns:
        while name in seen:
            name += " "
        seen.add(name)
        out.append(name)
    return out
