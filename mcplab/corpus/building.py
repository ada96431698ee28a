"""Building a corpus: what is there already stays, what is new is made here or on a cluster, what is gone goes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from mcplab import __version__
from mcplab.corpus.cluster import on_cluster
from mcplab.corpus.part import whole, write_part
from mcplab.corpus.plan import LAYOUT, File, Options, files, identity, parts
from mcplab.corpus.store import MANIFEST, Corpus, manifest, opened
from mcplab.model import MCPLabError, TraceError
from mcplab.progress import bytewise

Task = tuple[list[File], int]
"""The files of a part, and their bytes."""

_FILES: Final = pa.schema(
    [("name", pa.large_string()), ("shown", pa.large_string()), ("part", pa.large_string()), ("size", pa.int64()),
     ("mtime_ns", pa.int64()), ("sha256", pa.large_string())]
)  # fmt: skip


def build(
    sources: Any,
    out: str | os.PathLike[str],
    *,
    messages: bool = False,
    check: bool = True,
    split: bool = False,
    scheduler: Any = None,
    progress: bool | None = None,
) -> Corpus:
    """Make, or bring up to date, the corpus of these sources in the folder ``out``.

    The corpus is that of exactly these sources. A file of the same size and time of change as before is taken as the
    same and not read again; any other is read, and its part made anew if its content (SHA-256) is another one. A build
    that was ended at any moment goes on where it stopped, and ends with the same bytes as one that was not.

    Args:
        sources: a file, folder, glob or ``bundled:NAME``, or a list of them. A file may hold many captures, each from
            its header on.
        out: the folder of the corpus.
        messages: keep the messages with their text too.
        check: judge all rules (table ``findings``).
        split: a file that holds one capture is a gateway's log: each of its connections (peers that share a session id
            are one) becomes a capture of its own, named ``file@connection``.
        scheduler: None: here. ``local``: a Dask cluster on this machine. Else the address of a Dask scheduler, or a
            client of one; its workers must see the same files under the same names.
        progress: a bar; None: where it takes longer than a second.

    Returns:
        The opened corpus; ``.built`` says what was done, ``.failed`` lists what could not be read.

    Raises:
        TraceError: a folder or glob has no file, or none of the files is there and the corpus has been built before.
        MCPLabError: another build is at work there, the folder holds what no build made, the scheduler went away, or
            Dask is missing.
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    found, unread = files(given)
    options = Options(messages, check, split)
    home = Path(out)
    if (home / MANIFEST).exists() and not any(os.path.exists(file.path) for file in found):
        # a mistyped path, a mount that is gone: not a day without traffic
        raise TraceError(
            f"{home}: none of the sources is there, so the corpus stays as it is; name them, or another folder"
        )
    home.mkdir(parents=True, exist_ok=True)
    _not_of_others(home)
    with _locked(home):
        shutil.rmtree(home / "tmp", ignore_errors=True)
        known = _Known(home)
        tasks = parts(found)
        said: dict[int, dict[str, Any]] = {}
        todo: list[tuple[int, Task]] = []
        for number, task in enumerate(tasks):
            same = known.part(task[0], options)
            if same is None:
                todo.append((number, task))
            else:
                said[number] = same
        work = _here if scheduler is None else on_cluster(scheduler)
        with bytewise(sum(size for _, (_, size) in todo), "building", progress, least=1) as advance:
            for number, one in work(write_part, os.path.abspath(home), todo, options):
                said[number] = one
                advance(tasks[number][1])
        ordered = [said[number] for number in range(len(tasks))]
        _finish(home, found, tasks, ordered, unread, options)
    corpus = opened(home)
    corpus.built = {
        "parts": len(ordered), "new": sum(one["new"] for one in ordered), "files": len(found),
        "read": sum(len(task) for _, (task, _) in todo),
    }  # fmt: skip
    return corpus


def _here(
    make: Callable[..., dict[str, Any]], home: str, todo: Sequence[tuple[int, Task]], options: Options
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, (task, _) in todo:
        yield number, make(home, task, options)


def _not_of_others(home: Path) -> None:
    """A build takes away what a corpus does not name: not in a folder where no build has been."""
    if (home / ".lock").exists():
        return
    try:
        ours = '"mcplab-corpus"' in (home / MANIFEST).read_text(encoding="utf-8")
    except (OSError, ValueError):
        ours = False
    names = [path.name for path in home.glob("files-*.parquet")]
    names += [name for name in (MANIFEST, "parts", "tmp") if os.path.lexists(home / name)]
    if names and not ours:
        raise MCPLabError(f"{home}: no build made {names[0]!r} there, and one would replace it; name another folder")


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One build at a time in a folder. The lock goes with the process, however it ends."""
    with (home / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MCPLabError(f"{home}: another build is at work there; wait for it, or name another folder") from None
        yield


class _Known:
    """What the last finished build says of files, to tell which need not be read."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._files: dict[str, tuple[int, int, str]] = {}
        try:
            said = manifest(home)
            if said is None:
                return
            self._made = (home / MANIFEST).stat().st_mtime_ns
            rows = pq.read_table(home / said["files"], schema=_FILES).to_pydict()
        except (TraceError, OSError, pa.ArrowException):  # damaged, or of another version: nothing is known
            return
        for name, size, mtime, digest in zip(rows["name"], rows["size"], rows["mtime_ns"], rows["sha256"], strict=True):
            # a file that changed just before the manifest was written may have changed again in the same instant
            if digest and mtime < self._made - 2_000_000_000:
                self._files[name] = size, mtime, digest

    def part(self, group: Sequence[File], options: Options) -> dict[str, Any] | None:
        """What is said of the part of these files, where it is there and none of them seems to be another."""
        seen: list[tuple[str, int, int, str]] = []
        for file in group:
            known = self._files.get(file.name)
            try:
                info = os.stat(file.path)
            except OSError:
                return None
            if known is None or known[:2] != (info.st_size, info.st_mtime_ns):
                return None
            seen.append((file.path, *known))
        name = identity([(file.name, one[3]) for file, one in zip(group, seen, strict=True)], options)
        said = whole(self._home / "parts" / name)
        return None if said is None else {**said, "seen": seen, "new": False}


def _finish(
    home: Path,
    found: Sequence[File],
    tasks: Sequence[Task],
    said: Sequence[dict[str, Any]],
    unread: Sequence[tuple[str, str]],
    options: Options,
) -> None:
    """Write the manifest: from then on the new corpus is there. Then take away what it does not name."""
    names = {file.path: file for file in found}
    rows: dict[str, list[Any]] = {field.name: [] for field in _FILES}
    failed = [tuple(map(str, one)) for one in unread]
    for one in said:
        for path, size, mtime, digest in one["seen"]:
            file = names[path]
            for column, value in zip(rows, (file.name, file.shown, one["part"], size, mtime, digest), strict=True):
                rows[column].append(value)
        failed += [tuple(pair) for pair in one["failed"]]
    buffer = BytesIO()
    pq.write_table(pa.table(rows, schema=_FILES), buffer, compression="zstd")
    listed = f"files-{sha256(buffer.getvalue()).hexdigest()[:24]}.parquet"
    _put(home / listed, buffer.getvalue())
    totals: dict[str, int] = {}
    for one in said:
        for table, count in one["rows"].items():
            totals[table] = totals.get(table, 0) + count
    text = json.dumps(
        {
            "format": "mcplab-corpus", "version": LAYOUT, "mcplab": __version__, "options": options._asdict(),
            "files": listed, "rows": totals, "failed": failed,
            "parts": [one["part"] for one in said],
        },
        indent=1,
    )  # fmt: skip
    _put(home / MANIFEST, text.encode() + b"\n")
    wanted = {one["part"] for one in said}
    for folder in (home / "parts").iterdir() if (home / "parts").is_dir() else ():
        if folder.name not in wanted:
            shutil.rmtree(folder, ignore_errors=True)
    for path in home.glob("files-*.parquet"):
        if path.name != listed:
            path.unlink()
    shutil.rmtree(home / "tmp", ignore_errors=True)


def _put(path: Path, data: bytes) -> None:
    """All of it, or what was there before."""
    part = path.with_name(path.name + ".new")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
