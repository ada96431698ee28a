"""Ping of the legacy revisions (basic/utilities/ping#behavior-requirements)."""

from __future__ import annotations

from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken


def answered(m: Fact) -> Outcome:
    """Before the initialize result the duty is disputed: the client may ping then, no sentence says what the server owes."""
    if m.again:
        return None
    if m.kind == "error":
        status = m.post.exchange.status if m.post is not None else None
        if status is not None and status >= 400:
            return None  # refused before it was a ping: session, version, authorization
        early = m.session.phase != "answered"
        asked = m.request.seq if m.request is not None else m.seq
        return broken("answered with an error", related=(asked,), confidence="medium" if early else None)
    more = [name for name in m.result if name != "_meta"]
    if more:
        return broken(f"the result has {', '.join(map(repr, more))}", confidence="low")
    return KEPT
