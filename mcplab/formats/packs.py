"""Files that hold several captures of version 1, one behind the other: each from its header line on.

A gateway that appends a capture whenever a session ends writes such a file, and so does ``cat``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec
from msgspec import UNSET

from mcplab.model import FORMAT_NAME, Opt

_MARK = f'"{FORMAT_NAME}"'.encode()


class _Head(msgspec.Struct, gc=False):
    kind: str | Opt = UNSET
    format: str | Opt = UNSET


_heads = msgspec.json.Decoder(_Head)


def headers(data: bytes) -> list[int]:
    """Where header lines begin."""
    found: list[int] = []
    at = data.find(_MARK)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if b'"header"' in data[start:end]:
            try:
                head = _heads.decode(data[start:end])
            except (msgspec.DecodeError, RecursionError):
                head = _Head()
            if head.kind == "header" and head.format == FORMAT_NAME:
                found.append(start)
        at = data.find(_MARK, end)
    return found


def several(data: bytes) -> bool:
    """Does a header line stand anywhere but at the beginning?"""
    return any(data[:start].strip() for start in headers(data)[-1:])


def captures(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The captures of a file that comes in pieces of any size; in memory there is one capture and one piece."""
    kept: list[bytes] = []  # of the capture that is not over yet
    rest = b""
    for piece in pieces:
        data = rest + piece if rest else piece
        end = data.rfind(b"\n") + 1
        data, rest = data[:end], data[end:]
        starts = headers(data)
        if not starts:
            kept.append(data)
            continue
        kept.append(data[: starts[0]])
        yield from _held(kept)
        for start, stop in pairwise(starts):
            yield data[start:stop]
        kept = [data[starts[-1] :]]
    if headers(rest):  # a header that is the last line, without its line break
        yield from _held(kept)
        kept = []
    yield from _held([*kept, rest])


def _held(kept: list[bytes]) -> Iterator[bytes]:
    data = b"".join(kept)
    if data.strip():
        yield data
