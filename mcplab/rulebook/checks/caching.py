"""Caching hints of 2026-07-28 (server/utilities/caching)."""

from __future__ import annotations

from typing import Any, Final

from mcplab import jsontext
from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent, stamp
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken

POLLS: Final = 3
NEAR: Final = 0.02
"""So many requests in a row, each so near to the time that the answer before it gave, look like a timer. Ours."""


def _complete(m: Fact) -> bool:
    """A complete result of a server that is known to be modern: a legacy one owes no hints."""
    kind = m.result.get("resultType", ABSENT)
    if kind is ABSENT:
        return m.session.instance.modern or m.method == "server/discover"
    return kind == "complete"


def ttl_present(m: Fact) -> Outcome:
    if not _complete(m):
        return None
    return KEPT if "ttlMs" in m.result else broken("ttlMs is absent")


def scope_present(m: Fact) -> Outcome:
    if not _complete(m):
        return None
    return KEPT if "cacheScope" in m.result else broken("cacheScope is absent")


def ttl_value(m: Fact) -> Outcome:
    """The page says integer, the schema number: a fraction is only hinted at. ``ttlMs`` of a task is another thing."""
    value = m.result.get("ttlMs", ABSENT)
    if value is ABSENT:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return broken("ttlMs is not a number")
    if value < 0:
        return broken(f"ttlMs is {value}")
    if value % 1:
        return broken(f"ttlMs is {value}", confidence="low")
    return KEPT


def scope_value(m: Fact) -> Outcome:
    value = m.result.get("cacheScope", ABSENT)
    if value is ABSENT:
        return None
    return KEPT if value in ("public", "private") else broken(f"cacheScope is {value!r}")


def scope_same_on_pages(m: Fact) -> Outcome:
    """Pages are linked by the cursor: the scope of the page that gave it."""
    given: Recent[tuple[object, int]] = m.session.instance.memory.setdefault("caching.pages", Recent())
    scope = m.result.get("cacheScope", ABSENT)
    asked = m.request
    cursor = asked.params.get("cursor") if asked is not None else None
    before = given.get((m.method, cursor)) if isinstance(cursor, str) else None
    following = m.result.get("nextCursor")
    if isinstance(following, str):
        given.put((m.method, following), (scope, m.seq))
    if before is None or scope is ABSENT or before[0] is ABSENT:
        return None
    if scope == before[0]:
        return KEPT
    return broken(f"cacheScope is {scope!r}, that of the page before {before[0]!r}", related=(before[1],))


def none_on_input_required(m: Fact) -> Outcome:
    if m.result.get("resultType") != "input_required":
        return None
    found = [name for name in ("ttlMs", "cacheScope") if name in m.result]
    return broken(f"{' and '.join(found)} on an interim result") if found else KEPT


def no_ttl_polling(m: Fact) -> Outcome:
    """The same list asked for again and again just when its time is over, by the clock of the capture."""
    seen: Recent[list[Any]] = m.session.memory.setdefault("caching.polls", Recent())  # answered at, ttlMs, polls
    if m.kind == "result":
        asked, life = m.request, m.result.get("ttlMs")
        held = seen.get(_question(asked)) if asked is not None else None
        if held is not None:
            held[:2] = [stamp(m), life if isinstance(life, (int, float)) and not isinstance(life, bool) else None]
        return None
    question, now = _question(m), stamp(m)
    held = seen.get(question)
    if held is None:
        seen.put(question, [None, None, 0])
        return None
    at, life, polls = held
    near = now is not None and at is not None and bool(life) and abs((now - at) * 1000 - life) <= life * NEAR
    held[2] = polls + 1 if near else 0
    if held[2] >= POLLS:
        held[2] = 0
        return broken(f"{m.method} was sent {POLLS} times in a row when its ttlMs was over")
    return KEPT


def _question(m: Fact) -> str:
    """What a request asks for: the method, and the parameters that make an answer another one."""
    return jsontext.dumps([m.method, m.params.get("cursor"), m.params.get("uri")])
