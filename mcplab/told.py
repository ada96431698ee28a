"""Text for a reader, made from data: HTML in a notebook, plain text elsewhere; names from a trace do no harm in it."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

_UNPRINTED: Final = re.compile(
    # control characters (terminal escapes begin with them), line separators, marks that turn the direction of text,
    # what nobody sees (a text for a machine may hide in it), and what no XML may hold
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def framed(inner: str) -> str:
    """HTML in an element whose classes keep MathJax, which notebooks load, from reading $ as mathematics."""
    return f'<div class="mcplab tex2jax_ignore mathjax_ignore">{inner}</div>'


_NARROWEST: Final = 8
_PADDED: Final = 400
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
LONG: Final = 60
"""Characters: a word longer than that may be broken where a table shows it."""


def safe(text: object) -> str:
    """The same text with control and invisible characters shown as their escapes (``\\x1b``)."""
    return _UNPRINTED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, wanted: int) -> str:
    """The text, with blanks up to this width."""
    return text + " " * (wanted - columns_of(text))


def fit(text: str, wanted: int) -> str:
    """The text at exactly this width: padded, or cut with an ellipsis."""
    if columns_of(text[: wanted + 1]) > wanted or columns_of(text) > wanted:
        used = 0
        for at, char in enumerate(text):  # from the left: a name may be a megabyte long
            used += columns_of(char)
            if used > wanted - 1:
                text = text[:at]
                break
        text += "…"
    return pad(text, wanted)


def side_by_side(header: Sequence[str], rows: Sequence[Sequence[str]], room: int | None = None) -> str:
    """Lines of a table. Where there is no more room than that, the widest columns are cut (``…``) until a row fits."""
    # one cell of a megabyte must not make a megabyte of blanks of each row: it stands out of its column
    wide = [min(max(map(columns_of, column)), _PADDED) for column in zip(header, *rows, strict=True)]
    if room is not None:
        while sum(wide) + 2 * (len(wide) - 1) > room and max(wide) > _NARROWEST:
            wide[wide.index(max(wide))] -= 1
    put = pad if room is None else fit
    return "\n".join("  ".join(map(put, row, wide)).rstrip() for row in (header, *rows))


class Code(NamedTuple):
    """Lines that keep their shape: a message, a strip of symbols."""

    text: str


class Name(str):
    """A word from a trace inside a sentence: set as code in HTML, as it is in plain text."""

    __slots__ = ()


Sentence = Sequence[str]
"""Parts of a sentence; a ``Name`` among them is set as code."""


class Told:
    """Paragraphs (sentences), lists, tables and code, one below the other.

    A block is a text, a tuple of texts and ``Name``s (one paragraph), a list of those (bullets), a DataFrame, ``Code``.
    """

    def __init__(self, *blocks: Any) -> None:
        self.blocks = [block for block in blocks if block is not None]

    def __repr__(self) -> str:
        return "\n".join(_plain(block) for block in self.blocks)

    def _repr_html_(self) -> str:
        return framed("".join(_html(block) for block in self.blocks))


def _plain(block: Any) -> str:
    if isinstance(block, Code):
        return "\n".join(map(safe, block.text.split("\n")))
    if isinstance(block, list):
        return "\n".join(f"- {_plain(item)}" for item in block)
    if isinstance(block, str | tuple):
        return safe("".join(block))
    header, rows = _cells(block)
    if not rows:
        return "(no rows)"
    return side_by_side(header, rows)


def _html(block: Any) -> str:
    if isinstance(block, Code):
        text = "\n".join(map(safe, block.text.split("\n")))
        style = "font-family:monospace;line-height:1.35;overflow-x:auto;margin-bottom:1em"
        return f'<pre style="{style}">{html.escape(text)}</pre>'
    if isinstance(block, list):
        return f"<ul>{''.join(f'<li>{_words(item)}</li>' for item in block)}</ul>"
    if isinstance(block, str | tuple):
        return f"<p>{_words(block)}</p>"
    return table_html(block)


def _words(sentence: str | Sentence) -> str:
    parts = (sentence,) if isinstance(sentence, str) else sentence
    return "".join(
        f"<code>{html.escape(safe(part))}</code>" if isinstance(part, Name) else html.escape(safe(part))
        for part in parts
    )


def _cells(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    flat = frame if all(name is None for name in frame.index.names) else frame.reset_index(allow_duplicates=True)
    names = [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in flat.columns]
    return [safe(name) for name in names], [list(map(_cell, row)) for row in flat.itertuples(index=False, name=None)]


def _cell(value: Any) -> str:
    import pandas as pd

    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    return f"{value:.4g}" if isinstance(value, float) else safe(value)


def table_html(frame: pd.DataFrame) -> str:
    """A table with its index (where that has a name) as columns; text to the left, in full, in a box that scrolls."""
    header, rows = _cells(frame)
    left = "text-align:left;vertical-align:top"
    # a message is one long word to a browser: it may break anywhere, in a column that stays wide
    widths = [max((len(word) for row in rows for word in row[n].split()), default=0) for n in range(len(header))]
    styles = [f"{left};overflow-wrap:anywhere;min-width:18em" if width > LONG else left for width in widths]
    dates = [all(not row[n] or _DATE.fullmatch(row[n]) for row in rows) for n in range(len(header))]
    styles = [f"{style};white-space:nowrap" if date else style for style, date in zip(styles, dates, strict=True)]
    words = [html.escape(name).replace("_", "_<wbr>") for name in header]  # a name may be broken between its words
    head = "".join(f'<th scope="col" style="{left}">{name}</th>' for name in words)
    lines = [[f'<td style="{s}">{html.escape(cell)}</td>' for s, cell in zip(styles, row, strict=True)] for row in rows]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    empty = "" if rows else f'<tr><td colspan="{max(len(header), 1)}">no rows</td></tr>'
    return (
        '<div style="overflow-x:auto;max-width:100%">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}{empty}</tbody></table></div>"
    )


# Sentences -----------------------------------------------------------------------------------------


def count(n: int, noun: str, plural: str = "") -> str:
    """``1 capture``, ``2 captures``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def series(names: Sequence[str], joint: str = "and", *, most: int = 12) -> Iterator[str]:
    """Parts of a sentence: names as code, with commas; beyond ``most`` a number."""
    shown = list(names[:most])
    rest = len(names) - len(shown)
    items: list[str] = [*map(Name, shown), *([f"{rest} more"] if rest else [])]
    for at, item in enumerate(items):
        if at:
            yield f" {joint} " if at == len(items) - 1 else ", "
        yield item


# Pictures ------------------------------------------------------------------------------------------


class Picture:
    """A chart as a notebook shows it, with its alternative text for who cannot see it.

    Made from an Axes or a Figure, whose figure is closed: a notebook would otherwise show it a second time.
    """

    def __init__(self, chart: Any, dpi: int = 160) -> None:
        import io

        import matplotlib.pyplot as plt

        from mcplab.look import ALT

        figure = chart if hasattr(chart, "savefig") else chart.get_figure(root=True)
        self.alt = safe(" ".join(filter(None, (getattr(ax, ALT, "") for ax in figure.axes))))
        buffer = io.BytesIO()
        with plt.rc_context({"text.hinting": "none"}):  # else a text's length depends on the resolution
            figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
        plt.close(figure)
        self.png = buffer.getvalue()
        self.width = round(int.from_bytes(self.png[16:20], "big") * 120 / dpi)  # a little larger than on paper

    def __repr__(self) -> str:
        return f"<picture: {self.alt}>"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        import base64

        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": repr(self)}
        return data, {"image/png": {"width": self.width, "alt": self.alt}}
