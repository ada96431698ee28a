"""Research notes: front matter, tables and links of a Markdown file, and the statements in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcplab.jsontext import printable
from mcplab.published.frontmatter import split_note
from mcplab.published.words import answer, capability_of, declared
from mcplab.spec import ROOT

MAX_TABLES: Final = 200
MAX_ROWS: Final = 5000
MAX_CELL: Final = 2000

_LINK: Final = re.compile(r"\[\[([^\[\]|\n]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_RULE: Final = re.compile(r"[ |:-]*-[ |:-]*$")
_CELLS: Final = re.compile(r"(?<!\\)\|")
_LINES: Final = re.compile(r"(.*):([0-9]+(?:[-,][0-9]+)*)$")
_TEXT_LINK: Final = re.compile(r"\[([^\[\]]{0,300})\]\([^()\s]{0,600}\)")


@dataclass(frozen=True)
class Table:
    """One table of a note's body: where it stands, its header, its rows; a missing cell is missing (None)."""

    line: int
    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Note:
    """One research note. ``about``: its front matter, text as given; a field that is not there is missing.

    ``links``: targets of ``[[...]]`` in the body, each once, in order.
    """

    file: str
    about: Mapping[str, Any]
    tables: tuple[Table, ...] = ()
    links: tuple[str, ...] = ()
    cut: tuple[str, ...] = field(default=())
    """What was left out because it went over the limits."""

    def texts(self, name: str) -> list[str]:
        """A field of several texts; [] where it is missing or something else."""
        value = self.about.get(name)
        given = value if isinstance(value, list) else [value]
        return [one for one in given if isinstance(one, str)]

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """The sources that are mappings."""
        value = self.about.get("sources")
        return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def read_note(text: str, file: str) -> Note:
    """A note from its text.

    Raises:
        ClaimsError: it has no front matter, or one that is not understood.
    """
    about, body, first = split_note(text, file)
    cut: list[str] = []
    tables = tuple(_tables(body, first, cut))
    return Note(file, about, tables, tuple(dict.fromkeys(one.strip() for one in _LINK.findall(body))), tuple(cut))


def _tables(body: str, first: int, cut: list[str]) -> Iterator[Table]:
    lines = body.split("\n")
    heading, fence, at, count = "", "", 0, 0
    while at < len(lines):
        line = lines[at]
        mark = _FENCE.match(line)
        if mark is not None and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence and line.startswith("#"):
            heading = line.lstrip("#").strip()[:MAX_CELL]
        elif not fence and "|" in line and at + 1 < len(lines) and "|" in (rule := lines[at + 1]) and _RULE.match(rule):
            columns = tuple(cell or "" for cell in _cells(line))
            start, at = at, at + 2
            rows: list[tuple[str | None, ...]] = []
            while at < len(lines) and "|" in lines[at]:
                cells = _cells(lines[at])[: len(columns)]
                rows.append((*cells, *[None] * (len(columns) - len(cells))))
                at += 1
            count += 1
            if count > MAX_TABLES or len(rows) > MAX_ROWS:
                cut.append(f"line {first + start}: a table beyond {MAX_TABLES} tables of {MAX_ROWS} rows")
                rows = rows[:MAX_ROWS] if count <= MAX_TABLES else []
            if count <= MAX_TABLES:
                yield Table(first + start, heading, columns, tuple(rows))
            continue
        at += 1


def _cells(line: str) -> list[str | None]:
    text = line.strip()
    text = text.removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return [cell.replace("\\|", "|").strip()[:MAX_CELL] or None for cell in _CELLS.split(text)]


# Statements ------------------------------------------------------------------------------------------------


def place_of(path: str | None) -> tuple[str | None, str | None]:
    """``src/a.py:3-9,12`` -> (``src/a.py``, ``3-9,12``)."""
    match = _LINES.match(path) if path else None
    return (path, None) if match is None else (match[1], match[2])


def cited(source: Mapping[str, Any]) -> str:
    """One source in a line: address, commit, file and lines, date, as far as they are given."""
    commit, path, date = (_text(source.get(name)) for name in ("commit", "path", "date"))
    where = (_text(source.get("url")) or _text(source.get("title")) or "") + (f"@{commit}" if commit else "")
    return " ".join(filter(None, (where, path, f"({date})" if date else "")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def citing(sources: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """The columns ``commit``, ``file`` and ``lines`` of a statement that rests on these sources."""
    parts = [(_text(one.get("commit")), *place_of(_text(one.get("path")))) for one in sources]
    columns = zip(*parts, strict=True) if parts else ((), (), ())
    names = ("commit", "file", "lines")
    return {
        name: "; ".join(dict.fromkeys(filter(None, column))) or None
        for name, column in zip(names, columns, strict=True)
    }


def statements_of(note: Note, skipped: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The rows of ``statements`` that a note makes; what is none goes to ``skipped`` as (where, what).

    A table with a column Client (or Product) and columns Declares, Implements, or named by capability paths makes
    statements about those clients. The sources in the front matter stand for the clients that the front matter names;
    of any other client the note itself is all that there is. A client of the front matter has a row for each capability
    there that no table speaks of: ``unknown``, for the note's prose is not read.
    """
    own = {_folded(name) for name in note.texts("clients")}
    said: set[tuple[str, str]] = set()
    for table in note.tables:
        names = [_folded(column) for column in table.columns]
        at = next((names.index(word) for word in ("client", "product") if word in names), None)
        kinds = {n: _kind(column) for n, column in enumerate(table.columns) if n != at}
        if at is None or not any(kinds.values()):
            skipped.append((f"{note.file}:{table.line}", f"a table of {', '.join(filter(None, table.columns))}"))
            continue
        for offset, row in enumerate(table.rows, 2):
            name = _plain(row[at])
            if name is None:
                continue
            base = _base(note, name, f"{note.file}:{table.line + offset}", _folded(name) in own)
            for row_ in _row_statements(row, kinds):
                said.add((_folded(name), row_["path"]))
                yield {**base, **row_}
    for name in note.texts("clients"):
        for path in filter(None, map(capability_of, note.texts("capabilities"))):
            if (_folded(name), path) not in said:
                yield {**_base(note, name, note.file, True), "path": path, "declares": "unknown"}


def _row_statements(row: tuple[str | None, ...], kinds: Mapping[int, str | None]) -> Iterator[dict[str, Any]]:
    for n, kind in kinds.items():
        text = _plain(row[n])
        if kind in ("declares", "implements"):
            for one in declared(text or ""):
                if kind == "implements":
                    one["implements"] = one.pop("declares", None)
                    one.pop("only", None)
                yield one
        elif kind is not None:
            yield {"path": kind, "declares": answer(text), "text": text}


def _kind(column: str) -> str | None:
    word = _folded(column)
    if word in ("declares", "declared", "implements", "implemented"):
        return "declares" if word.startswith("d") else "implements"
    path = capability_of(_plain(column) or "")
    return None if path == ROOT else path


def _base(note: Note, name: str, place: str, own: bool) -> dict[str, Any]:
    address = _text(note.about.get("canonical")) or _text(note.about.get("id")) or note.file
    sources = note.sources if own else []
    dates = [_text(note.about.get(key)) for key in ("lastVerified", "last-updated")]
    return {
        "tier": "read", "party": "client", "name": printable(name), "place": place, "source": address,
        "revision": ", ".join(note.texts("specVersions")) or None, "date": next(filter(None, dates), None),
        "evidence": "; ".join([f"{address} ({place})", *map(cited, sources)]), **citing(sources),
    }  # fmt: skip


def _plain(cell: str | None) -> str | None:
    """A cell without its marks: links read as their text, no code or bold signs."""
    if cell is None:
        return None
    return _TEXT_LINK.sub(r"\1", cell).replace("`", "").replace("**", "").strip() or None


def _folded(text: str) -> str:
    return "".join(text.replace("`", "").replace("*", "").split()).casefold()
