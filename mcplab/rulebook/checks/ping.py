"""Pings of either party (basic/utilities/ping; 2026-07-28 has none)."""

from __future__ import annotations

from collections import deque
from typing import Final

from mcplab.rulebook.checks.recall import stamp
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Broken, Outcome, broken

PROMPT_SECONDS: Final = 5.0
FLOOD: Final = 60
"""The page gives no numbers. Ours: an answer within five seconds, at most sixty pings in any minute."""


def answered(m: Fact) -> Outcome:
    """An answer tells at once. What never came is proven by the close of a stdio connection whose peer read on."""
    session = m.session
    if m.kind == "close":
        late: list[str | Broken] = []
        for row, asked in session.open.items():
            if asked.method != "ping" or asked.cancelled is not None:
                continue
            if session.transport == "stdio" and session.answered.get(asked.receiver, -1) > row:
                detail = f"the ping was never answered, later requests of the {asked.sender} were"
                late.append(broken(detail, at=asked.place, related=(m.seq,), absence=True, party=asked.receiver))
            else:
                late.append(UNKNOWN)
        return late
    if m.kind == "end":
        return [UNKNOWN for asked in session.open.values() if asked.method == "ping" and not session.closed]
    if m.again:
        return None
    if m.kind == "result":
        more = [name for name in m.result if name != "_meta"]
        return broken(f"the result holds {', '.join(more)}"[:200], confidence="low") if more else KEPT
    if m.post is not None and m.post.exchange.status is not None and m.post.exchange.status >= 400:
        return None  # HTTP refused the request before the ping was one: a session that is gone, a missing header
    early = session.initialized is None
    detail = f"the ping was answered with the error {m.code}"
    return broken(detail + (" before the handshake was over" if early else ""), confidence="medium" if early else None)


def prompt(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.again:
        return None
    sent, came = stamp(asked), stamp(m)
    if sent is None or came is None:
        return UNKNOWN
    if came - sent > PROMPT_SECONDS:
        return broken(f"answered after {came - sent:.1f} s", related=(asked.seq,))
    return KEPT


def no_flood(m: Fact) -> Outcome:
    at = stamp(m)
    if at is None:
        return UNKNOWN
    latest = m.session.memory.setdefault(f"ping.latest {m.sender}", deque(maxlen=FLOOD + 1))
    latest.append(at)
    if len(latest) > FLOOD and 0 <= at - latest[0] < 60:
        latest.clear()
        return broken(f"more than {FLOOD} pings within a minute")
    return KEPT
