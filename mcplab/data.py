"""The bundled files: where they are, what the registry says of each, and whether the two agree.

Works in a checkout (``data/`` and ``notebooks/`` beside the package) and in an installed wheel (both inside the
package). ``python -m mcplab.data --check`` compares the registry with the folder, ``--write`` brings it up to date.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from mcplab.model import MCPLabError

_PACKAGE = Path(__file__).resolve().parent
_UNREGISTERED = ("README.md", "registry.csv")
_ASIDE = (".ipynb_checkpoints", "__pycache__", ".DS_Store")


@dataclass(frozen=True, slots=True)
class Row:
    """What the registry says of one bundled file. An empty text means: the file does not say, or it does not apply."""

    path: str  # below data/, with forward slashes
    sha256: str
    bytes: int
    client: str  # product and version, as the capture's header names them
    version: str
    transport: str
    server_mode: str  # what the recording server spoke: legacy, modern, dual
    captured_at: str  # RFC 3339 UTC for a capture, else the date of the file's source
    tool: str  # what recorded it
    made: str  # how: recipe:<name in recipes/clients.toml>, or a few words
    source: str
    licence: str


_HEADER_COLUMNS = ("client", "version", "transport", "server_mode", "captured_at", "tool")
_BY_HAND = ("made", "source", "licence")


# Folders -------------------------------------------------------------------------------------------


def data_dir() -> Path:
    """The folder of bundled data (read only when installed). Raises MCPLabError when it is missing."""
    return _shared("data")


def traces_dir() -> Path:
    """The folder of bundled captures, one folder a client."""
    return data_dir() / "traces"


def claims_dir() -> Path:
    """The folder of research notes and published tables, as data."""
    return data_dir() / "claims"


def notebooks_dir() -> Path:
    """The folder of the bundled notebooks. Raises MCPLabError when it is missing."""
    return _shared("notebooks")


def _shared(name: str) -> Path:
    places = (_PACKAGE / "_share" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise MCPLabError(
        f"the bundled {name} are missing: no folder {' or '.join(map(str, places))}; reinstall mcplab, "
        "or run it from a complete checkout"
    )


# Registry ------------------------------------------------------------------------------------------


def registry(folder: Path | None = None) -> list[Row]:
    """One row a bundled file, sorted by path. Raises MCPLabError when the registry cannot be read."""
    file = (folder or data_dir()) / "registry.csv"
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            names = [field.name for field in fields(Row)]
            if reader.fieldnames != names:
                raise MCPLabError(f"{file}: the columns are {reader.fieldnames}, not {names}")
            lines: list[dict[str, Any]] = [{**line, "bytes": int(line["bytes"])} for line in reader]
            return [Row(**line) for line in lines]
    except (OSError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise MCPLabError(f"{file}: the registry cannot be read ({error}); restore it from the repository") from error


def check(folder: Path | None = None) -> list[str]:
    """What disagrees between the registry and the folder, one line each; empty when nothing does."""
    folder = folder or data_dir()
    rows = registry(folder)
    problems = [f"registry.csv: {path} stands there twice" for path in _twice([row.path for row in rows])]
    if [row.path for row in rows] != sorted(row.path for row in rows):
        problems.append("registry.csv: the rows are not sorted by path")
    files = {_below(path, folder): path for path in _files(folder)}
    listed = {row.path for row in rows}
    problems += [f"{path}: in the folder, not in the registry" for path in sorted(files.keys() - listed)]
    recipes = _recipes(folder)
    for row in rows:
        if row.path not in files:
            problems.append(f"{row.path}: in the registry, not in the folder")
            continue
        seen = _facts(files[row.path])
        problems += [
            f"{row.path}: {name} is {seen[name]!r}, the registry says {getattr(row, name)!r}"
            for name in seen
            if seen[name] != getattr(row, name)
        ]
        problems += [f"{row.path}: no {name} given" for name in _BY_HAND if not getattr(row, name).strip()]
        kind, _, recipe = row.made.partition(":")
        if kind == "recipe" and row.version not in recipes.get(recipe, ()):
            problems.append(f"{row.path}: no recipe {recipe!r} for version {row.version!r} in recipes/clients.toml")
    return problems


def write(folder: Path | None = None) -> list[str]:
    """Bring ``registry.csv`` up to date with the folder and return what is still to be filled in by hand.

    Checksum, size and header facts are read from the files; made, source and licence of known files stay as they are.
    """
    folder = folder or data_dir()
    known = {row.path: row for row in registry(folder)} if (folder / "registry.csv").exists() else {}
    blank = Row(**{field.name: 0 if field.name == "bytes" else "" for field in fields(Row)})  # type: ignore[arg-type]
    rows = []
    for file in _files(folder):
        path = _below(file, folder)
        rows.append(replace(known.get(path, blank), path=path, **_facts(file)))
    with (folder / "registry.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda row: row.path))
    return check(folder)


def _files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and not set(_ASIDE) & set(path.parts))
    return sorted(path for path in found if _below(path, folder) not in _UNREGISTERED)


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _facts(file: Path) -> dict[str, Any]:
    """Registry columns that the file itself states: checksum and size, and what a capture's header says."""
    content = file.read_bytes()
    facts: dict[str, Any] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    if file.suffix == ".jsonl":
        facts.update(_header_facts(content.split(b"\n", 1)[0]))
    return facts


def _header_facts(line: bytes) -> dict[str, str]:
    try:
        header = json.loads(line)
    except ValueError:
        return {}
    if not (isinstance(header, dict) and header.get("format") == "mcplab-trace"):
        return {}
    client = header.get("client") or {}
    stated: dict[str, Any] = {**header, "client": client.get("name"), "version": client.get("version")}
    return {name: said if isinstance(said := stated.get(name), str) else "" for name in _HEADER_COLUMNS}


def _recipes(folder: Path) -> dict[str, list[str]]:
    file = folder / "recipes" / "clients.toml"
    if not file.exists():
        return {}
    recipes = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: [release["version"] for release in recipe["releases"]] for name, recipe in recipes.items()}


def _twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mcplab.data", description="Bundled files and their registry.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="compare registry.csv with the folder")
    what.add_argument("--write", action="store_true", help="bring registry.csv up to date with the folder")
    arguments = parser.parse_args(argv)
    try:
        problems = write() if arguments.write else check()
    except MCPLabError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{len(registry())} files, all as registered")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
