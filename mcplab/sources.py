"""Which captures a notebook or a command works on: what its user names, by default the bundled ones."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from mcplab.data import traces_dir
from mcplab.jsontext import printable
from mcplab.model import TraceError
from mcplab.traces import Trace, Traces, read_traces

BUNDLED: Final = "bundled:"
"""Prefix of a source that names bundled captures: ``bundled:`` all, ``bundled:codex`` one client's, or one by name."""


def resolve(source: Any) -> Any:
    """A source as ``read_traces`` takes it: ``bundled:NAME`` becomes a path, anything else stays as it is.

    NAME is a folder or a capture below the bundled ones, without suffix; of a capture its last part is enough.

    Raises:
        TraceError: there is no such capture; the nearest names are given.
    """
    if not (isinstance(source, str) and source.startswith(BUNDLED)):
        return source
    name = source.removeprefix(BUNDLED).strip("/").removesuffix(".jsonl")
    root = traces_dir()
    if not name:
        return root
    known: dict[str, Path] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        known[folder.name] = folder
        for file in sorted(folder.glob("*.jsonl")):
            known[f"{folder.name}/{file.stem}"] = known[file.stem] = file
    found = known.get(name)
    if found is None:
        near = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.5))
        hint = f"near it: {near}" if near else f"{BUNDLED} alone names them all, as in mcplab read {BUNDLED}"
        raise TraceError(f"{source}: no bundled capture or client of that name; {hint}")
    return found


def load(traces: Any = None, *, progress: bool | None = None) -> Traces:
    """The captures that ``TRACES`` names; None: the bundled ones.

    Args:
        traces: None, one source or a list of them: a path, a glob, a folder, ``bundled:NAME``, a Trace or Traces.
        progress: a bar; None: when it takes longer than a second.

    Returns:
        The captures whose tables can be made. What cannot be read, or breaks a table, is in ``.failed`` (file, error).

    Raises:
        TraceError: not one of them can be read.
    """
    if isinstance(traces, Traces):
        return traces
    given = [BUNDLED] if traces is None else [traces] if isinstance(traces, (str, os.PathLike, Trace)) else list(traces)
    found, failed = _read(given, progress)
    good: list[Trace] = []
    for trace in found:
        try:
            _ = trace.messages, trace.connections, trace.declarations
        except Exception as error:  # one capture must not stop the others; it is listed with what went wrong
            failed.append((trace.name, f"{type(error).__name__}: {_line(error)}"))
        else:
            good.append(trace)
    if not good:
        name, error = failed[0] if failed else ("", "no file was named")
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise TraceError(f"nothing to read: {error if name in error else f'{name}: {error}'}{more}")
    return Traces(good, failed)


def _read(given: Sequence[Any], progress: bool | None) -> tuple[Iterable[Trace], list[tuple[str, str]]]:
    """The user's own sources together, so that names count from the folder they share; what names nothing is set aside.

    Bundled captures are read apart and named as in their own folder, whatever they are read together with.
    """
    failed: list[tuple[str, str]] = []
    own: list[Any] = []
    bundled: list[Path] = []
    for source in given:
        try:
            path = resolve(source)
            if path is not source:
                bundled += sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
                continue
            if isinstance(path, (str, os.PathLike)):
                _findable(path)
            own.append(path)
        except TraceError as error:
            failed.append((str(source), str(error)))
    read: list[Trace] = []
    for group in filter(None, (own, bundled)):
        part = read_traces(*group, progress=progress)
        failed += zip(part.failed["file"], part.failed["error"], strict=True)
        read += part if group is own else _as_bundled(part, bundled)
    return (read_traces(*read, progress=False) if read else []), failed


def _as_bundled(traces: Iterable[Trace], files: Sequence[Path]) -> list[Trace]:
    names = {file.stem: f"{file.parent.name}/{file.stem}" for file in files}
    return [trace.renamed(names.get(trace.name.rpartition("/")[2], trace.name)) for trace in traces]


def _findable(path: str | os.PathLike[str]) -> None:
    """Does a folder hold a file, and does a glob match one? (A missing file is the reader's to say.)"""
    folder = Path(path)
    try:
        if folder.is_dir() and not any(file.is_file() for file in folder.rglob("*")):
            raise TraceError(f"{path}: the folder holds no file, so there is no trace to read")
        if not folder.exists() and any(sign in str(path) for sign in "*?["):
            import glob

            if not glob.glob(str(path), recursive=True):
                raise TraceError(f"{path}: no file matches")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({(error.strerror or str(error)).lower()})") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def of_client(traces: Traces, names: Sequence[str]) -> Traces:
    """Only the captures of these clients, by the name in ``connections.client`` (or the name the client gives itself).

    Raises:
        TraceError: none of the captures is of such a client; those that are there are named.
    """
    links = traces.connections
    said = [printable(name) for name in names]
    hit = links["client"].isin(said) | links["client_info"].isin(said)
    wanted = set(links.loc[hit, "trace"])
    if not wanted:
        known = ", ".join(sorted(set(links["client"].dropna()))) or "none that is named"
        raise TraceError(f"no capture of client {' or '.join(map(repr, names))}; these captures have: {known}")
    return Traces([trace for trace in traces if trace.name in wanted])
