"""Which files make up a corpus, and which of them go into one part."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcplab import __version__
from mcplab.model import TraceError
from mcplab.sources import resolve
from mcplab.traces import file_of, found_files, trace_names

PART: Final = 32 << 20
"""Bytes of files that make up a part, about."""

LAYOUT: Final = 2
"""Goes up whenever a part of the same files would hold something else."""


class Options(NamedTuple):
    """What of each capture a corpus keeps."""

    messages: bool = False
    check: bool = True
    split: bool = False


class File(NamedTuple):
    """One file: where it is, its trace's name, and what stands for it in the list of failures."""

    path: str
    name: str
    shown: str


def files(sources: Iterable[Any]) -> tuple[list[File], list[tuple[str, str]]]:
    """The files that sources name, each once, in the order and under the names of ``read_traces``; what cannot be read.

    Raises:
        TraceError: a folder or glob has no file, or nothing was named.
    """
    failed: list[tuple[str, str]] = []
    found: dict[str, Path] = {}
    for source in map(resolve, sources):
        if not isinstance(source, (str, os.PathLike)):
            raise TraceError(f"a corpus is built of files, folders and globs, not of {type(source).__name__}")
        for path in found_files(source, failed):
            found.setdefault(os.path.abspath(path), path)
    if not found and not failed:
        raise TraceError("no traces: name a file, a folder or a glob")
    paths = list(found.values())
    seen: dict[str, int] = {}
    made: list[File] = []
    for path, name in zip(paths, trace_names(paths), strict=True):
        assert name is not None
        n = seen[name] = seen.get(name, 0) + 1
        made.append(File(os.path.abspath(path), name if n == 1 else f"{name}-{n}", file_of(path, name)))
    return made, failed


def parts(found: Sequence[File]) -> list[tuple[list[File], int]]:
    """Files in groups of about ``PART`` bytes (files, bytes). Where a group ends depends on the files around that place
    alone: a file that comes or goes changes its own group and perhaps the next, not all that follow.
    """
    made: list[tuple[list[File], int]] = []
    group: list[File] = []
    held = 0
    for file in found:
        try:
            size = os.stat(file.path).st_size
        except OSError:
            size = 0
        if group and (size >= PART or held + size > 4 * PART):
            made.append((group, held))
            group, held = [], 0
        group.append(file)
        held += size
        number = int.from_bytes(hashlib.sha256(file.name.encode("utf-8", "replace")).digest()[:8], "big")
        if number % PART < max(size, PART // 20_000):  # the bigger the file, the likelier it is the last of a group
            made.append((group, held))
            group, held = [], 0
    if group:
        made.append((group, held))
    return made


def identity(contents: Iterable[tuple[str, str]], options: Options) -> str:
    """The name of a part, from what it is made of: the names and digests of its files, the options, the program."""
    told = hashlib.sha256(f"{LAYOUT} {__version__} {tuple(options)}".encode())
    for name, digest in contents:
        told.update(f"\0{len(name)} {name} {digest}".encode("utf-8", "replace"))
    return told.hexdigest()[:24]
