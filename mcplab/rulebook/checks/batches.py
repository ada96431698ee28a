"""What a line or body is made of: a batch is processed (2025-03-26), messages are UTF-8 (basic/transports)."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import UNSET

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

_REFUSED: Final = (-32600, -32700)
_CODINGS: Final = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1")


def _refused(m: Fact) -> list[Fact]:
    """The requests of the batch that an error without an id answers: those of its POST, else the last line's."""
    if m.post is not None:
        return [fact for fact in m.post.facts if fact.kind == "request" and fact.part is not None]
    last = m.session.last.get(m.receiver)
    return [
        fact
        for fact in m.session.open.values()
        if last is not None and fact.seq == last[1] and fact.part is not None and fact.sender == m.receiver
    ]


def _whole(batch: list[Any]) -> bool:
    """Is every member a message that a batch may hold?"""
    return all(
        isinstance(one, dict)
        and one.get("jsonrpc") == "2.0"
        and one.get("method") != "initialize"
        and (isinstance(one.get("method"), str) or "result" in one or "error" in one)
        for one in batch
    )


def accepted(m: Fact) -> Outcome:
    """An error for one member only comes inside an array, or has an id; one for the whole batch has none."""
    if m.request is not None:
        return KEPT if m.request.part is not None and not m.again else None
    if m.kind != "error" or m.part is not None or m.code not in _REFUSED or m.body.get("id") is not None:
        return None
    asked = _refused(m)
    if not asked or m.session.phase != "answered":
        return None
    raw = getattr(asked[0].event, "msg", UNSET)
    batch = msgspec.json.decode(raw) if isinstance(raw, msgspec.Raw) else None
    if not isinstance(batch, list) or not _whole(batch):
        return None
    if any(fact.row not in m.session.open for fact in asked) or sum("method" in one for one in batch) < len(asked):
        return UNKNOWN
    return broken(f"a batch of {len(batch)} was refused as a whole with {m.code}", related=(asked[0].seq,))


def utf8(m: Fact) -> Outcome:
    """Only bytes that read as a message in another coding are one: a stray line of a log is none."""
    if m.kind not in ("text", "http-request", "http-response"):
        return KEPT
    coded = getattr(m.event, "raw_b64", UNSET)
    if not isinstance(coded, str):
        return None
    try:
        data = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        return None
    for coding in _CODINGS:
        try:
            value = msgspec.json.decode(data.decode(coding).strip().lstrip("\ufeff"))
        except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("jsonrpc", ABSENT) == "2.0":
            return broken(f"a message in {coding}") if coding != "utf-8" else None
    return None
