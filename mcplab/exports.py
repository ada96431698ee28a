"""Figures and tables to files: the same input gives the same bytes, and a file is there whole or not at all."""

from __future__ import annotations

import base64
import html
import io
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from mcplab.look import ALT
from mcplab.model import ExportError, FormatError
from mcplab.told import safe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_FORMATS: Final = ("svg", "pdf", "png")
TABLE_FORMATS: Final = ("csv", "md", "parquet", "tex", "html")

# Text stays text in svg (searchable, editable), fonts are embedded as TrueType in pdf, and svg ids are made from a
# fixed salt instead of a random one: the same figure is the same file.
_RC: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mcplab",
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
    "text.hinting": "none",  # else letters are moved to whole pixels, and a text's length depends on the resolution
}
_PNG_DPI: Final = 200
_PACKAGES: Final = "% needs booktabs and caption; symbols need XeLaTeX or LuaLaTeX: publish(..., words=True) has none\n"


def export(
    figure_or_frame: Any, path: str | os.PathLike[str], *, formats: str | Iterable[str] | None = None
) -> list[Path]:
    """Write a figure (svg, pdf, png, html) or a DataFrame (csv, md, parquet, tex, html); return the files.

    Parameters
    ----------
    figure_or_frame
        An Axes (its whole figure is written), a Figure, a DataFrame (a Series counts as one column), or what
        ``publish`` made of one (html, tex).
    path
        With a known suffix and no ``formats``: that one file. Else the name that the suffixes are put to. Folders are
        made.
    formats
        Default without a suffix: ``svg pdf png`` for a figure, ``csv md`` for a table.

    Notes
    -----
    In one environment the same input gives the same bytes. A figure's alternative text becomes ``<desc>`` in svg, the
    subject in pdf, the description in png, ``alt`` in html, which holds the svg. In a table several column levels are
    joined by a space, an index is written unless it is a plain row number, missing is an empty cell, time is ISO 8601
    in UTC. A csv text that a spreadsheet would run as a formula gets an apostrophe in front; markdown, tex and html are
    escaped.

    Raises
    ------
    ExportError
        Nothing that can be written, an unknown format, or the file system refuses. No half file is left.
    """
    render, known, default = _renderer(figure_or_frame)
    rendered = [(file, render(kind)) for file, kind in _plan(Path(path), known, default, formats)]
    for file, data in rendered:
        _write(file, data)
    return [file for file, _ in rendered]


def _renderer(what: Any) -> tuple[Callable[[str], bytes], tuple[str, ...], tuple[str, ...]]:
    if isinstance(what, pd.Series):
        what = what.to_frame(what.name if what.name is not None else "value")
    if isinstance(what, pd.DataFrame):
        frame = what
        return (lambda kind: _table_bytes(frame, kind)), TABLE_FORMATS, ("csv", "md")
    if hasattr(what, "as_raw_html"):  # great-tables need not be installed to find out
        return (lambda kind: _published(what, kind)), ("html", "tex"), ("html", "tex")
    figure = _figure_of(what)
    if figure is not None:
        return (lambda kind: _figure_bytes(figure, kind)), (*FIGURE_FORMATS, "html"), FIGURE_FORMATS
    raise ExportError(f"cannot export {type(what).__name__}: give an Axes, a Figure or a DataFrame")


def _plan(
    target: Path, known: tuple[str, ...], default: tuple[str, ...], formats: str | Iterable[str] | None
) -> list[tuple[Path, str]]:
    """Each file to write with its format."""
    suffix = target.suffix[1:].lower()
    if target.name in ("", "-") or target.is_dir():
        what, at = ("is a folder", target) if target.is_dir() else ("names no file", Path())
        raise FormatError(f"cannot export to {str(target)!r}: it {what}; name a file, as {at / f'NAME.{default[0]}'}")
    if formats is None:
        if suffix in known:
            return [(target, suffix)]
        if suffix in (*FIGURE_FORMATS, *TABLE_FORMATS) or (suffix.isalpha() and len(suffix) <= 5):
            raise FormatError(f"cannot export to {target.name!r}: this is written as {', '.join(known)}")
        wanted = list(default)
    else:
        given = [formats] if isinstance(formats, str) else list(formats)
        wanted = list(dict.fromkeys(kind.lower().lstrip(".") for kind in given))
        unknown = [kind for kind in wanted if kind not in known]
        if unknown or not wanted:
            raise FormatError(
                f"cannot export as {', '.join(unknown) or 'nothing'}: this is written as {', '.join(known)}"
            )
    base = target.with_suffix("") if suffix in known else target
    return [(base.with_name(f"{base.name}.{kind}"), kind) for kind in wanted]


def _write(file: Path, data: bytes) -> None:
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise OSError(21, "it is a folder, a device or a pipe")
        try:
            temporary.write_bytes(data)
            temporary.replace(file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(f"cannot write {str(file)!r}: {reason}; choose another path") from error


# Figures -------------------------------------------------------------------------------------------


def _figure_of(what: Any) -> Figure | None:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    if isinstance(what, Axes | SubFigure):
        what = what.get_figure(root=True)
    return what if isinstance(what, Figure) else None


def _figure_bytes(figure: Figure, kind: str) -> bytes:
    import matplotlib as mpl

    title, alt = _title(figure), _alt(figure)
    if kind == "html":
        return _figure_html(_figure_bytes(figure, "svg"), title, alt)
    metadata: dict[str, Any]
    if kind == "svg":
        metadata = {"Date": None, "Title": title or None}
    elif kind == "pdf":
        metadata = {"CreationDate": None, "Title": title or None, "Subject": alt or None}
    else:
        metadata = {"Title": title or None, "Description": alt or None}
    buffer = io.BytesIO()
    with mpl.rc_context(_RC):
        figure.savefig(
            buffer,
            format=kind,
            dpi=_PNG_DPI if kind == "png" else figure.dpi,
            metadata={key: value for key, value in metadata.items() if value is not None or key.endswith("Date")},
        )
    data = buffer.getvalue()
    return _describe(data, title, alt) if kind == "svg" else data


def _figure_html(svg: bytes, title: str, alt: str) -> bytes:
    """The svg as a picture in a ``<figure>``: its text can still be searched, and no id in it meets one of the page."""
    data = base64.b64encode(svg).decode()
    head, said = html.escape(title), html.escape(alt)
    picture = f'<img alt="{said or head}" src="data:image/svg+xml;base64,{data}" />'
    return _ascii(f"<figure>\n{picture}\n<figcaption>{head}</figcaption>\n</figure>\n".encode())


def _published(table: Any, kind: str) -> bytes:
    # great-tables keeps a leading bracket from the line end before it, but no star
    text = table.as_raw_html() if kind == "html" else _PACKAGES + re.sub(r"(?m)^( *)\*", r"\1{*}", table.as_latex())
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "backslashreplace")


def _title(figure: Figure) -> str:
    found = [figure.get_suptitle()]
    found += [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center", "right")]
    return _plain(next((text for text in found if text), ""))


def _alt(figure: Figure) -> str:
    return _plain(" ".join(filter(None, (getattr(ax, ALT, "") for ax in figure.axes))))


def _plain(text: str) -> str:
    """Text without matplotlib's escaped dollars and without what XML and pdf strings cannot hold."""
    return _visible(text.replace(r"\$", "$"))


def _describe(svg: bytes, title: str, alt: str) -> bytes:
    """Name and description as the first children of the root, where screen readers look for them."""
    parts = [f"<title>{html.escape(title)}</title>"] if title else []
    parts += [f"<desc>{html.escape(alt)}</desc>"] if alt else []
    if not parts:
        return svg
    head, tag, rest = svg.decode("utf-8").partition("<svg ")
    attributes, _, body = rest.partition(">")
    return f'{head}{tag}role="img" {attributes}>\n {"".join(parts)}{body}'.encode()


# Tables --------------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """A table as text: one header row, rows of the same length, and which columns are numbers."""

    header: list[str]
    rows: list[tuple[str, ...]]
    numeric: list[bool]
    text: list[bool]


def as_text(frame: pd.DataFrame, kind: str) -> str:
    """A table as ``export`` writes it (csv, md), for a terminal: of the control characters only line ends stay."""
    return "\n".join(map(safe, _table_bytes(frame, kind).decode().split("\n")))


def _table_bytes(frame: pd.DataFrame, kind: str) -> bytes:
    if kind == "parquet":
        return _parquet(frame)
    writer = {"csv": _csv, "md": _markdown, "tex": _tex, "html": _html}[kind]
    data = writer(_grid(frame)).encode("utf-8", "backslashreplace")
    return _ascii(data) if kind == "html" else data


def _ascii(page: bytes) -> bytes:
    """A piece of html without a head that could name its coding."""
    return page.decode().encode("ascii", "xmlcharrefreplace")


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with one level of text column names and the index as columns, unless it is a plain row number."""
    flat = frame.copy(deep=False)
    flat.attrs = {}  # evidence maps have tuple keys, which no file format takes
    flat.columns = pd.Index([_name(column) for column in frame.columns], dtype=object)
    index = frame.index
    if index.nlevels == 1 and index.name is None and isinstance(index, pd.RangeIndex):
        return flat.reset_index(drop=True)
    names = [("index" if name is None else _name(name)) for name in index.names]
    levels = index.to_frame(index=False)
    levels.columns = pd.Index(names, dtype=object)
    return pd.concat([levels, flat.reset_index(drop=True)], axis=1)


def _name(column: Any) -> str:
    return " ".join(_cell(part) for part in column if _cell(part)) if isinstance(column, tuple) else _cell(column)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, pd.Timestamp):
        aware: Any = value  # pandas' stubs lose the type after the test for NaT
        if aware.tzinfo is None:
            return aware.isoformat(timespec="microseconds")
        return aware.tz_convert("UTC").tz_localize(None).isoformat(timespec="microseconds") + "Z"
    return str(value)


def _grid(frame: pd.DataFrame) -> Grid:
    flat = _flat(frame)
    columns = [flat.iloc[:, at] for at in range(flat.shape[1])]
    numeric = [pd.api.types.is_numeric_dtype(c.dtype) and not pd.api.types.is_bool_dtype(c.dtype) for c in columns]
    text = [not (number or pd.api.types.is_bool_dtype(c.dtype) or pd.api.types.is_datetime64_any_dtype(c.dtype))
            for number, c in zip(numeric, columns, strict=True)]  # fmt: skip
    cells = [[_visible(_cell(value)) for value in column] for column in columns]
    return Grid([_visible(str(name)) for name in flat.columns], list(zip(*cells, strict=True)), numeric, text)


_KEPT = re.compile("([\t\n\r])")


def _visible(text: str) -> str:
    """Control and invisible characters as escapes, but tabs and line ends: a terminal or editor would act on them."""
    return "".join(part if _KEPT.fullmatch(part) else safe(part) for part in _KEPT.split(text))


_QUOTED = re.compile(r'[",\r\n]')
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # wide ones too: some spreadsheets take them for the same


def _csv(grid: Grid) -> str:
    def line(cells: Sequence[str], text: Sequence[bool]) -> str:
        inert = [
            f"'{cell}" if is_text and cell.startswith(_FORMULA) else cell
            for cell, is_text in zip(cells, text, strict=True)
        ]
        # Quoted by hand: csv.writer leaves a bare carriage return unquoted when lines end in a plain newline.
        quoted = ['"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell for cell in inert]
        return (",".join(quoted) if quoted != [""] else '""') + "\n"

    names = line(grid.header, [True] * len(grid.header))
    return names + "".join(line(row, grid.text) for row in grid.rows)


# An underscore inside a word is plain text in GitHub's flavour; everything else that could start markup is escaped.
_MARKDOWN = re.compile(r"[\\`*\[|~]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
# What begins a formula in a notebook or on GitHub, escaped or not: an element around it keeps it from being one.
_MATHS = re.compile(r"\$|\\\\(?=[(\[]|\\\[|begin)")


def _markdown(grid: Grid) -> str:
    def escaped(text: str) -> str:
        text = _MARKDOWN.sub(lambda found: "\\" + found[0], text)
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        text = _MATHS.sub(r"<span>\g<0></span>", text)
        return re.sub(r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]", "<br>", text)

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    rule = line("---:" if number else "---" for number in grid.numeric)
    return line(map(escaped, grid.header)) + rule + "".join(line(map(escaped, row)) for row in grid.rows)


_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': r"\textquotedbl{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


def _tex(grid: Grid) -> str:
    """A ``tabular`` that needs no package but ``fontenc`` T1 for straight quotes."""

    def escaped(text: str) -> str:
        text = "".join(" " if ord(char) < 32 else _TEX.get(char, char) for char in text)
        return re.sub(r"^( *)([\[*])", r"\1{\2}", text)  # bare, the line end before it takes these for its own

    def line(cells: Sequence[str]) -> str:
        return " & ".join(escaped(cell) for cell in cells) + " \\\\\n"

    spec = "".join("r" if number else "l" for number in grid.numeric)
    body = "".join(line(row) for row in grid.rows)
    return f"\\begin{{tabular}}{{{spec}}}\n\\hline\n{line(grid.header)}\\hline\n{body}\\hline\n\\end{{tabular}}\n"


def _html(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in grid.header)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in grid.rows)
    inert = "tex2jax_ignore mathjax_ignore"
    return f'<table class="{inert}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    flat = _flat(frame)
    if not flat.columns.is_unique:
        twice = flat.columns[flat.columns.duplicated()][0]
        raise ExportError(f"cannot export as parquet: two columns are called {twice!r}; rename one")
    try:
        flat.to_parquet(buffer, index=False)
    except (ValueError, TypeError, OverflowError) as error:  # pyarrow's own errors are ValueErrors and TypeErrors
        raise ExportError(f"cannot export as parquet: {str(error).splitlines()[0]}; use csv") from error
    return buffer.getvalue()
