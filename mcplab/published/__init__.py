"""What documents and published tables say of clients: research notes, claims files, tables of support."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from mcplab.data import claims_dir, registry
from mcplab.frames.table import build
from mcplab.jsontext import printable
from mcplab.model import COLUMNS, ClaimsError
from mcplab.published import kept, listed
from mcplab.published.note import Note, read_note, statements_of

__all__ = ["Note", "claims"]

INSTALLED: Final = "installed:"
PACKAGE: Final = "mcp-client-capabilities"
MAX_BYTES: Final = 16_000_000
MAX_FILES: Final = 10_000
MAX_DEPTH: Final = 100
_READ: Final = (".md", ".markdown", ".txt", ".toml", ".json")


def claims(path: str | os.PathLike[str] | None = None, *, names: Mapping[str, str] | None = None) -> pd.DataFrame:
    """What a document, or a published table, says of clients.

    Args:
        path: a research note (Markdown with front matter: ``.md``, ``.txt``), a claims file (``.toml``),
            ``mcp-clients.json`` of the package mcp-client-capabilities, canimcp's ``matrix.json``, or a folder of them;
            ``installed:mcp-client-capabilities``: the installed package's own file; None: the bundled claims.
        names: product as captures name it, for a client as the source names it, beside those of the bundled claims.

    Returns:
        The columns of ``statements`` (docs/columns.md), tier ``read`` or ``listed``; a row a statement on one
        capability path, ``$`` for the whole declaration. ``.attrs["notes"]``: the notes read (``about``, ``tables``,
        ``links``). ``.attrs["skipped"]``: (where, what) that makes no statement about a capability.
        ``.attrs["failed"]``: (file, error) of what a folder holds besides.

    Raises:
        ClaimsError: there is nothing to read, or it is none of these. In a folder: nothing of it could be read.
    """
    notes: list[Note] = []
    skipped: list[tuple[str, str]] = []
    failed: list[tuple[str, str]] = []
    rows: list[dict[str, Any]] = []
    files, many = _files(path)
    for file, source, day in files:
        try:
            rows += _of_file(file, source, day, notes, skipped)
        except ClaimsError as error:
            if not many:
                raise
            failed.append((file.name, str(error)))
    if many and failed and len(failed) == len(files):
        raise ClaimsError(f"{failed[0][1]} (and none of the other {len(failed) - 1} files there can be read either)")
    known = {**_bundled_names(), **(names or {})}
    folded = {fold(name): product for name, product in known.items()}
    for row in rows:
        row.setdefault("client", folded.get(fold(str(row["name"])), row["name"]))
        row["name"] = row["name"] or row["client"]
    frame = build("statements", {name: [_cell(row.get(name)) for row in rows] for name in COLUMNS["statements"]})
    frame.attrs.update(notes=tuple(notes), skipped=tuple(skipped), failed=tuple(failed))
    return frame


def fold(name: str) -> str:
    """A name without regard to case, spaces and punctuation: how a client's name is looked up."""
    return "".join(sign for sign in name.casefold() if sign.isalnum()) or name


def _cell(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


@cache
def _bundled_names() -> dict[str, str]:
    """How the bundled claims files name the products."""
    found: dict[str, str] = {}
    for file in sorted(claims_dir().glob("*.toml")):
        for one in kept.read_kept(_text(file), file.name).get("claims", []):
            if "client" in one and "product" in one:
                found[one["client"]] = one["product"]
    return found


# Files -----------------------------------------------------------------------------------------------------


def _files(path: Any) -> tuple[list[tuple[Path, str | None, str | None]], bool]:
    """(file, source, day) of what is to be read, and whether it is a folder's."""
    if path is None:
        root = claims_dir()
        rows = {row.path: row for row in registry()}
        found = []
        for file in sorted(file for file in root.rglob("*") if file.suffix in _READ and file.name != "LICENSE.txt"):
            row = rows.get(file.relative_to(root.parent).as_posix())
            found.append((file, row.source if row else None, row.captured_at if row else None))
        return found, True
    if isinstance(path, str) and path.startswith(INSTALLED):
        return [_installed(path.removeprefix(INSTALLED))], False
    file = Path(path)
    if not file.is_dir():
        return [(file, None, None)], False
    inside = sorted(one for one in file.rglob("*") if one.suffix.lower() in _READ and one.is_file())[: MAX_FILES + 1]
    if not inside:
        raise ClaimsError(f"{path}: the folder holds no note or table ({', '.join(_READ)})")
    if len(inside) > MAX_FILES:
        raise ClaimsError(f"{path}: more than {MAX_FILES} files; name a smaller folder")
    return [(one, None, None) for one in inside], True


def _installed(name: str) -> tuple[Path, str | None, str | None]:
    if name != PACKAGE:
        raise ClaimsError(f"{INSTALLED}{name}: only {INSTALLED}{PACKAGE} is known")
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is None or found.origin is None:
        raise ClaimsError(f"{PACKAGE} is not installed here; install it, or name the path of its mcp-clients.json")
    version = importlib.metadata.version(PACKAGE)
    return Path(found.origin).parent / "mcp-clients.json", f"{listed.SOURCE_CAPABILITIES} {version}", None


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ClaimsError(f"{file.name}: larger than {MAX_BYTES // 1_000_000} MB, so it is no note or table")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ClaimsError(f"{file}: cannot be read ({(error.strerror or str(error)).lower()})") from None
    except UnicodeDecodeError as error:
        raise ClaimsError(f"{file.name}: no UTF-8 text (byte {error.start})") from None


def _of_file(
    file: Path, source: str | None, day: str | None, notes: list[Note], skipped: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The statements of one file, by what it is."""
    text, name = _text(file), file.name
    if file.suffix.lower() == ".toml":
        return _checked(kept.kept_rows(kept.read_kept(text, name), name), name)
    if file.suffix.lower() == ".json" or text.lstrip()[:1] == "{":
        data = _json(text, name)
        if listed.is_matrix(data):
            return _checked(listed.matrix_rows(data, name, skipped, date=day), name)
        if listed.is_capabilities(data):
            origin = source or listed.SOURCE_CAPABILITIES
            return _checked(listed.capabilities_rows(data, name, source=origin, date=day), name)
        raise ClaimsError(
            f"{name}: JSON, but neither mcp-clients.json (records by clientInfo.name) nor matrix.json (clients, matrix)"
        )
    note = read_note(text, name)
    notes.append(note)
    skipped += [(note.file, what) for what in note.cut]
    return _checked(statements_of(note, skipped), name)


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ClaimsError(f"{name}: no JSON ({error})") from None


def _checked(rows: Iterator[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows; whatever a malformed file makes fail inside is told as such."""
    try:
        return list(rows)
    except (AttributeError, TypeError, KeyError, ValueError, RecursionError) as error:
        raise ClaimsError(f"{name}: a part of it has another form than expected ({error})") from None
