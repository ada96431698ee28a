"""Requests that were answered: by id, and by the progress token that they gave. Of each party the latest ones.

The engine feeds it after the checks have looked at an answer.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact

_LIMIT: Final = 2000


class Past:
    """A request with its answer.

    Attributes:
        asked: the request. at: seq of its answer. ts: the answer's time as text, or None.
        post: the HTTP exchange that brought the answer. made_task: the answer has made a task of it.
    """

    __slots__ = ("asked", "at", "made_task", "post", "ts")

    def __init__(self, asked: Fact, m: Fact) -> None:
        self.asked = asked
        self.at = m.seq
        self.post = m.post
        stamp = m.event.ts if m.event is not None else UNSET
        self.ts = stamp if isinstance(stamp, str) else None
        if m.era == "modern":
            self.made_task = m.result.get("resultType") == "task"
        else:
            self.made_task = "task" in asked.params and isinstance(m.result.get("task"), dict)


class Memory:
    """The answered requests of one session. ``whole`` is False once one had to be forgotten."""

    __slots__ = ("by_id", "by_token", "whole")

    def __init__(self) -> None:
        self.by_id: dict[Any, Past] = {}
        self.by_token: dict[Any, Past] = {}
        self.whole = True

    def put(self, table: dict[Any, Past], key: Any, past: Past) -> None:
        table.pop(key, None)
        table[key] = past
        if len(table) > _LIMIT:
            del table[next(iter(table))]
            self.whole = False


def key(asker: str | None, value: Any) -> Any:
    """A key that keeps the JSON type: ``1`` is not ``"1"`` and not ``true``. None for what is no string or number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return asker, isinstance(value, str), value


def memory(m: Fact) -> Memory:
    """What was answered in the session of a message."""
    found = m.session.memory.get("past")
    if found is None:
        found = m.session.memory["past"] = Memory()
    return found


def learn(m: Fact) -> None:
    """Take an answer in."""
    asked = m.request
    if m.session.ordinary or asked is None or m.again or not isinstance(asked.body, dict):
        return
    ident = key(asked.sender, asked.body.get("id"))
    token = key(asked.sender, asked.meta.get("progressToken", ABSENT))
    if ident is None and token is None:
        return
    past, held = Past(asked, m), memory(m)
    if ident is not None:
        held.put(held.by_id, ident, past)
    if token is not None:
        held.put(held.by_token, token, past)
