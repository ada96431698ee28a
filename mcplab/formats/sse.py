"""A Server-Sent Events body taken apart (WHATWG HTML, section 9.2.6), with what each event said word for word."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType


class Part(msgspec.Struct, frozen=True):
    """One event (or comment block) of a stream. ``line`` counts from 0 within the body; ``whole`` is False for an
    event that no empty line ended: the body stops there."""

    raw: str
    line: int
    whole: bool = True
    id: str | UnsetType = UNSET
    event: str | UnsetType = UNSET
    retry: int | str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    data: str | UnsetType = UNSET


def split(body: str) -> Iterator[Part]:
    """The events of ``body`` in order. Lines end with CRLF, LF or CR; a byte order mark at the start is taken off."""
    lines = body.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    block: list[str] = []
    start = 0
    for number, line in enumerate(lines):
        if line:
            if not block:
                start = number
            block.append(line)
        elif block:
            yield _part(block, start, True)
            block = []
    if block:
        yield _part(block, start, False)


def _part(block: list[str], line: int, whole: bool) -> Part:
    fields: dict[str, list[str]] = {}
    for text in block:
        name, _, value = text.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    retry = fields["retry"][-1] if "retry" in fields else UNSET
    return Part(
        raw="\n".join(block) + ("\n\n" if whole else ""),
        line=line,
        whole=whole,
        id=fields["id"][-1] if "id" in fields else UNSET,
        event=fields["event"][-1] if "event" in fields else UNSET,
        retry=int(retry)
        if isinstance(retry, str) and retry.isascii() and retry.isdigit() and len(retry) < 18
        else retry,
        comment="\n".join(fields[""]) if "" in fields else UNSET,
        data="\n".join(fields["data"]) if "data" in fields else UNSET,
    )


def looks_like(body: str) -> bool:
    """Does a body without a content type begin as an event stream?"""
    first = body.lstrip("\ufeff\r\n").split("\n", 1)[0]
    return first.partition(":")[0] in ("event", "data", "id", "retry", "") and ":" in first
