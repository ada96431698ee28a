"""What a server asks of a client, and what the client answers, in both eras.

Up to 2025-11-25 they are requests of the server and their answers; from 2026-07-28 entries of ``inputRequests`` in a
result and of ``inputResponses`` in the request that continues it (basic/patterns/mrtr).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Broken, Outcome, broken
from mcplab.rulebook.plan import Check
from mcplab.rulebook.rounds import origin, retries, target, waiting

NOTHING: Mapping[str, Any] = {}


class Asked(NamedTuple):
    """One thing that a server asks for. ``where``: `` in 'key'`` for an entry of ``inputRequests``."""

    method: str
    params: Mapping[str, Any]
    where: str


class Given(NamedTuple):
    """What a client gave for it. ``params``: of what was asked; None where that was not seen for certain."""

    params: Mapping[str, Any] | None
    value: Any
    where: str
    at: int


def _params(entry: Any) -> Mapping[str, Any]:
    params = entry.get("params") if isinstance(entry, dict) else None
    return params if isinstance(params, dict) else NOTHING


def asked_in(m: Fact, method: str) -> Iterator[Asked]:
    """What this message asks for by that method."""
    if m.kind == "request":
        if m.era != "modern":  # else mrtr.server-no-requests
            yield Asked(method, m.params, "")
        return
    entries = m.result.get("inputRequests")
    for key, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict) and entry.get("method") == method:
            yield Asked(method, _params(entry), f" in {key!r}")


def given_in(m: Fact, method: str) -> Iterator[Given]:
    """What this message gives for what was asked by that method."""
    if m.kind == "result":
        asked = m.request
        if asked is None or m.again or m.era == "modern" or asked.method != method:
            return
        if isinstance(asked.params.get("task"), dict) and isinstance(m.result.get("task"), dict):
            return  # a task was made of it
        yield Given(asked.params, m.result, "", asked.seq)
        return
    given = m.params.get("inputResponses")
    if not isinstance(given, dict) or not retries(m):
        return
    before = origin(m)
    if before is None:
        return
    # two rounds of one tool can only be told apart by their state, or where none can be missing
    state = m.params.get("requestState", ABSENT)
    certain = isinstance(state, str) and before.state == state
    if not certain and m.session.opened:
        certain = sum(one.target == target(m) for one in waiting(m)) == 1
    for key, value in given.items():
        entry = before.asked.get(key)
        if isinstance(entry, dict) and entry.get("method") == method:
            yield Given(_params(entry) if certain else None, value, f" in {key!r}", before.seq)


def _joined(said: list[Outcome]) -> Outcome:
    """The first breach; else unknown, kept or nothing."""
    for one in said:
        if isinstance(one, Broken):
            return one
    return UNKNOWN if UNKNOWN in said else KEPT if KEPT in said else None


def asking(method: str) -> Callable[[Callable[[Fact, Asked], Outcome]], Check]:
    """A check of what a server asks for by that method, whatever carries it."""

    def wrap(judge: Callable[[Fact, Asked], Outcome]) -> Check:
        def check(m: Fact) -> Outcome:
            return _joined([judge(m, one) for one in asked_in(m, method)])

        return check

    return wrap


def giving(method: str) -> Callable[[Callable[[Fact, Given], Outcome]], Check]:
    """A check of what a client gives for what was asked by that method."""

    def wrap(judge: Callable[[Fact, Given], Outcome]) -> Check:
        def check(m: Fact) -> Outcome:
            return _joined([judge(m, one) for one in given_in(m, method)])

        return check

    return wrap


def verdict(wrong: list[str], where: str, *, confidence: str | None = None, related: tuple[int, ...] = ()) -> Outcome:
    """KEPT where nothing is wrong."""
    if not wrong:
        return KEPT
    return broken("; ".join(wrong[:3]) + where, confidence=confidence, related=related)
