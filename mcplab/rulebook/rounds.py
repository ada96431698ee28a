"""Rounds of multi-round-trip requests: which retry continues which result (2026-07-28 basic/patterns/mrtr)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import jsontext
from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact

_INPUT: Final = ("inputResponses", "requestState")
_LIMIT: Final = 1000
"""Rounds that are remembered: those that never get a retry must not fill the memory."""


def asks(m: Fact) -> bool:
    """Is it a result that asks for input?"""
    return m.result.get("resultType") == "input_required"


def retries(m: Fact) -> bool:
    """Is it a request that continues a round?"""
    return any(name in m.params for name in _INPUT)


class Round:
    """An ``input_required`` result that waits for its retry."""

    __slots__ = ("asked", "ident", "params", "seq", "state", "target")

    def __init__(self, m: Fact, request: Fact) -> None:
        self.seq = m.seq
        self.ident = request.body.get("id", ABSENT)
        self.target = target(request)
        self.params = own_params(request)
        self.state: Any = m.result.get("requestState", ABSENT)
        asked = m.result.get("inputRequests")
        self.asked: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}


def target(m: Fact) -> tuple[Any, ...]:
    """What a request asks for: its method, and the tool, prompt or resource."""
    return m.method, jsontext.dumps(m.params.get("name")), jsontext.dumps(m.params.get("uri"))


def own_params(m: Fact) -> str:
    """The parameters that a retry repeats, as text."""
    return jsontext.dumps({key: m.params[key] for key in sorted(m.params) if key not in (*_INPUT, "_meta")})


def waiting(m: Fact) -> list[Round]:
    """Rounds of this instance without a retry, oldest first."""
    return m.session.instance.memory.setdefault("mrtr.rounds", [])


def _retried(m: Fact) -> list[Round]:
    """Rounds that had a retry, of which the answer may have been lost."""
    return m.session.instance.memory.setdefault("mrtr.retried", [])


def origin(m: Fact) -> Round | None:
    """The round that a retry continues: of its target that with its state, with its other parameters, that asked for
    what it gives, the latest. One that was retried before counts where its state tells it."""
    if not retries(m):
        return None
    wanted, state = target(m), m.params.get("requestState", ABSENT)
    rounds = [one for one in waiting(m) if one.target == wanted]
    if isinstance(state, str) and not any(one.state == state for one in rounds):
        again = [one for one in _retried(m) if one.target == wanted and one.state == state]
        if again:
            return again[-1]
    if len(rounds) < 2:
        return rounds[0] if rounds else None
    own, given = own_params(m), m.params.get("inputResponses")
    keys = given.keys() if isinstance(given, Mapping) else ()

    def fits(one: Round) -> tuple[bool, bool, bool, int]:
        alike = type(one.state) is type(state) and one.state == state
        return alike, one.params == own, all(key in one.asked for key in keys), one.seq

    return max(rounds, key=fits)


def learn(m: Fact) -> None:
    """Open a round with its result, end it with its retry."""
    if m.kind == "result":
        if asks(m) and m.request is not None and not m.again:
            rounds = waiting(m)
            rounds.append(Round(m, m.request))
            del rounds[:-_LIMIT]
    else:
        before = origin(m)
        if before is not None and before in waiting(m):
            waiting(m).remove(before)
            retried = _retried(m)
            retried.append(before)
            del retried[:-_LIMIT]
