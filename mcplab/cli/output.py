"""What the commands print: tables as text, csv, json or md, and notes on stderr; names from a trace do no harm."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcplab.model import ExportError, FormatError
from mcplab.told import columns_of, safe, side_by_side

if TYPE_CHECKING:
    import pandas as pd

_PLAIN_WIDTH: Final = 120


class Format(StrEnum):
    """How a table is printed."""

    text = "text"
    csv = "csv"
    json = "json"
    md = "md"


def note(text: str) -> None:
    """One line on stderr."""
    print(safe(text), file=sys.stderr)


def say(text: str) -> None:
    """Text on stdout; what the terminal cannot show is replaced."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        coding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(coding, "backslashreplace").decode(coding))


def width() -> int:
    """Columns of the terminal; of a pipe or file, enough for a page."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH


# Tables --------------------------------------------------------------------------------------------


def show(frame: pd.DataFrame, kind: Format, *, columns: Sequence[str] | None = None) -> None:
    """Print a table. ``columns``: those that text and md show; csv and json have all of them."""
    flat = flattened(frame)
    shown = flat[list(columns)] if columns is not None else flat
    if kind is Format.json:
        say(records(flat))
    elif kind is Format.text:
        say(aligned([str(name) for name in shown.columns], cells(shown)) + "(no rows)\n" * shown.empty)
    else:
        from mcplab.exports import as_text

        say(as_text(flat if kind is Format.csv else shown, kind.value))


def flattened(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with the index as columns and one level of column names."""
    flat = frame.copy()
    flat.attrs = {}
    flat.columns = [" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns]
    named = any(name is not None for name in frame.index.names)
    return flat.reset_index(allow_duplicates=True) if named else flat  # a client may be called "path"


def cells(frame: pd.DataFrame) -> list[list[str]]:
    """Every cell as text; missing is empty."""
    return [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]


def _cell(value: Any) -> str:
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}"
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else safe(value)


def records(frame: pd.DataFrame) -> str:
    """JSON: a list of objects, missing as null, time as ISO 8601; plain ASCII."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ExportError(f"cannot print as json: two columns are called {twice!r}; use csv, or another --by")
    text = frame.to_json(orient="records", date_format="iso", date_unit="us", force_ascii=True, double_precision=15)
    return re.sub(r"[\x7f]", r"\\u007f", text) + "\n"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side. On a terminal the widest are cut (``…``) until a row fits."""
    return side_by_side(list(map(safe, header)), rows, width() if sys.stdout.isatty() else None) + "\n"


def matrix(frame: pd.DataFrame) -> str:
    """A comparison as text: symbols with their legend; turned, paths lettered above, where it would be too wide."""
    from mcplab.look import CELLS, legend, symbol

    whos = [safe(" ".join(who) if isinstance(who, tuple) else who) for who in frame.columns]
    paths = [safe(path) for path in frame.index]
    found = set(frame.to_numpy().ravel().tolist())
    words = [f"{symbol(word)} {word}" for word in CELLS if word in found]
    body = [[path, *(f"{symbol(v)} {v}" for v in row)] for path, row in zip(paths, frame.to_numpy(), strict=True)]
    across = max(map(columns_of, paths), default=4) + sum(2 + max(len(who), 9) for who in whos)
    if across <= width():
        return aligned(["path", *whos], body)
    letters = [_letter(n) for n in range(len(paths))]
    key = "".join(f"{letter:>3}  {path}\n" for letter, path in zip(letters, paths, strict=True))
    turned = [[who, *map(symbol, frame.iloc[:, at])] for at, who in enumerate(whos)]
    shown = legend({word: CELLS[word] for word in CELLS if word in found}) if words else ""
    return f"{key}\n{aligned(['', *letters], turned)}\n{shown}\n"


def _letter(n: int) -> str:
    """a … z, aa, ab …"""
    text = ""
    n += 1
    while n:
        n, rest = divmod(n - 1, 26)
        text = chr(97 + rest) + text
    return text


def save(what: Any, output: Path) -> None:
    """Export a table or a chart, its suffix says as what, and say so."""
    from mcplab.exports import export

    if output.name == "-":
        raise FormatError("-o names a file; without it a table is printed, with --format csv as csv")
    wrote(export(what, output))


def wrote(files: Iterable[Path]) -> None:
    """Say on stderr which files were written."""
    note(f"wrote {', '.join(map(str, files))}")
