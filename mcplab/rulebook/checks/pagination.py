"""Cursors (server/utilities/pagination)."""

from __future__ import annotations

from typing import Any

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent, once
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken


def cursor_type(m: Fact) -> Outcome:
    """2026-07-28 speaks of "a non-null value": null may stand for absent there, so it is only hinted at."""
    name, holder = ("cursor", m.params) if m.kind == "request" else ("nextCursor", m.result)
    value = holder.get(name, ABSENT)
    if value is ABSENT:
        return None
    if isinstance(value, str):
        return KEPT
    weak = value is None and m.era == "modern"
    shown = "null" if value is None else "not a string"
    return broken(f"{name} is {shown}", confidence="low" if weak else None)


class Origin:
    """Where a cursor came from: the session, and the seq of the page."""

    __slots__ = ("at", "session")

    def __init__(self, m: Fact) -> None:
        self.session = m.session.name
        self.at = m.seq


def _take(m: Fact) -> Any:
    """Of a list result: its cursor is taken in. Of a request with a cursor: (origin or None, is the memory whole)."""
    seen: Recent[Origin] = m.session.instance.memory.setdefault("pagination.cursors", Recent())
    if m.kind == "result":
        cursor = m.result.get("nextCursor")
        if isinstance(cursor, str):
            origin = Origin(m)
            seen.put((m.method, cursor), origin)
            if m.era != "modern":
                seen.put((m.method, cursor, m.session.name), origin)  # two servers may give the same
        return None
    cursor = m.params.get("cursor", ABSENT)
    if not isinstance(cursor, str):
        return None
    return seen.get((m.method, cursor, m.session.name)) or seen.get((m.method, cursor)), seen.whole


def cursor_from_server(m: Fact) -> Outcome:
    """Up to 2025-11-25 a cursor must not outlive its session; 2026-07-28 has no sessions and dropped that."""
    found = once(m, "pagination.cursor", _take, where=m.session.instance.memory)
    if found is None:
        return None
    origin, whole = found
    if origin is not None and (m.era == "modern" or origin.session == m.session.name):
        return KEPT
    if not m.session.whole or not whole:
        return UNKNOWN
    if origin is not None:
        return broken("the cursor is that of another session", related=(origin.at,))
    return broken("no page of this list gave that cursor", confidence="low" if m.era == "modern" else None)


def invalid_cursor(m: Fact) -> Outcome:
    """The visible stand-in for an invalid cursor is one that no page gave."""
    found = once(m, "pagination.cursor", _take, where=m.session.instance.memory)
    odd = m.session.memory.setdefault("pagination.odd", {})
    if m.kind == "request":
        if found is not None and found[0] is None:
            odd[m.row] = m.session.whole and found[1]
            if len(odd) > 100:
                for row in [row for row in odd if row not in m.session.open and row != m.row]:
                    del odd[row]
        return None
    asked = m.request
    certain = odd.pop(asked.row, None) if asked is not None else None
    if asked is None or certain is None:
        return None
    if m.kind == "error" and m.code == -32602:
        return KEPT
    if not certain:
        return UNKNOWN
    if m.kind == "result":
        return broken("a cursor that no page gave was served", related=(asked.seq,), confidence="low")
    return broken(f"a cursor that no page gave was refused with {m.code}", related=(asked.seq,))


def empty_followed(m: Fact) -> Outcome:
    """Where the client begins the list anew although its last page ended with the cursor ``""``."""
    left = m.session.memory.setdefault("pagination.empty", {})
    if m.kind == "result":
        if m.result.get("nextCursor") == "":
            left[m.method] = m.seq
        else:
            left.pop(m.method, None)
        return None
    at = left.pop(m.method, None)
    if at is None:
        return None
    if m.params.get("cursor", ABSENT) == "":
        return KEPT
    return broken('the page before ended with the cursor "", which was not followed', related=(at,))
