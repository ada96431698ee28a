"""Progress tokens and notifications (basic/utilities/progress; 2026-07-28 basic/patterns/progress)."""

from __future__ import annotations

from typing import Any

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent, once, redelivered
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.past import key, memory


def _whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def token_of(m: Fact | None) -> Any:
    """The progress token that a request asks with; ABSENT where it has none."""
    return ABSENT if m is None else m.meta.get("progressToken", ABSENT)


def token_type(m: Fact) -> Outcome:
    token = token_of(m)
    if token is ABSENT:
        return None
    if isinstance(token, str) or _whole(token):
        return KEPT
    return broken(f"progressToken is {token!r}" if token is not None else "progressToken is null")


def shape(m: Fact) -> Outcome:
    params, wrong = m.params, []
    token = params.get("progressToken", ABSENT)
    if not isinstance(token, str) and not _whole(token):
        wrong.append("progressToken is absent" if token is ABSENT else "progressToken is neither string nor integer")
    for name in ("progress", "total"):
        value = params.get(name, ABSENT)
        if value is ABSENT:
            if name == "progress":
                wrong.append("progress is absent")
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            wrong.append(f"{name} is not a number")
    if (m.revision or "") >= "2025-03-26" and not isinstance(params.get("message", ""), str):
        wrong.append("message is not a string")
    return broken("; ".join(wrong)) if wrong else KEPT


# Who holds a token ------------------------------------------------------------------------------------------


class Holder:
    """Who holds the token of a progress notification, from what was seen before it."""

    __slots__ = ("active", "bound", "done", "other", "whole")

    def __init__(self, m: Fact) -> None:
        token = m.params.get("progressToken", ABSENT)
        wanted = key(m.receiver, token)
        asking = _asking(m)
        # the requests without an answer that gave it, as far as they were seen
        self.active = [asked for asked in asking if wanted is not None and key(m.receiver, token_of(asked)) == wanted]
        # with another JSON type: shown to the reader
        self.other = [] if self.active else [asked for asked in asking if str(token_of(asked)) == str(token)]
        held = memory(m)
        self.done = held.by_token.get(wanted) if wanted is not None else None
        self.whole = held.whole
        # the request whose own stream brings it: that stream is seen from its beginning where the request is
        self.bound = m.post.request if m.post is not None and m.sender == "server" else None


def _asking(m: Fact) -> list[Fact]:
    """Requests of the other party without an answer. In the modern era over HTTP on any connection of the client."""
    sessions = m.session.instance.sessions.values() if m.era == "modern" and m.post is not None else (m.session,)
    return [
        asked
        for session in sessions
        for asked in session.open.values()
        if asked.sender == m.receiver and asked.era == m.era and "progressToken" in asked.meta
    ]


def _settled(m: Fact, holder: Holder) -> bool:
    """Is every request that may hold the token known? In the stream of the very request that gave it, and where
    nothing of the connection is missing."""
    if holder.bound is not None and key("", token_of(holder.bound)) == key("", m.params.get("progressToken")):
        return True
    return m.session.whole


# Rules ------------------------------------------------------------------------------------------------------


def token_unique(m: Fact) -> Outcome:
    token = key(m.sender, token_of(m))
    if token is None:
        return None
    for other in m.session.open.values():
        if other.sender != m.sender or other.cancelled is not None or key(m.sender, token_of(other)) != token:
            continue
        if other.post is not None and other.post.exchange.ended is not None:
            continue  # its stream ended without an answer: nothing waits for it
        return broken(f"progressToken {token[2]!r} belongs to a request without an answer", related=(other.seq,))
    return KEPT if m.session.whole else UNKNOWN


def token_known(m: Fact) -> Outcome:
    if redelivered(m) or key("", m.params.get("progressToken", ABSENT)) is None:
        return None
    holder = once(m, "progress.holder", Holder, where=m.session.memory)
    if any(asked.cancelled is None for asked in holder.active):
        return KEPT
    if holder.active or holder.done is not None:
        return None  # cancelled, or answered: progress.stops
    token = m.params.get("progressToken")
    like = f"; {token_of(holder.other[0])!r} was given" if holder.other else ""
    if m.era == "modern" and holder.bound is not None:
        return broken(f"{token!r} is not the token of the request whose stream this is{like}")
    if m.session.whole and holder.whole:
        return broken(f"no request of the {m.receiver} gave the token {token!r}{like}")
    return UNKNOWN


def increases(m: Fact) -> Outcome:
    token, value = key("", m.params.get("progressToken", ABSENT)), m.params.get("progress")
    if token is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if redelivered(m):
        return None
    holder = once(m, "progress.holder", Holder, where=m.session.memory)
    if len(holder.active) > 1:
        return UNKNOWN
    of = holder.active[0].row if holder.active else holder.done.asked.row if holder.done is not None else None
    seen: Recent[tuple[Any, float, int]] = m.session.memory.setdefault(f"progress.values {m.sender}", Recent())
    before = seen.get(token)
    seen.put(token, (of, value, m.seq))
    if before is None or before[0] != of:
        return None
    if of is None or not _settled(m, holder):
        return UNKNOWN
    if value <= before[1]:
        return broken(f"progress is {value} after {before[1]}", related=(before[2],))
    return KEPT


def stops(m: Fact) -> Outcome:
    """Order is certain within one stream only: over HTTP, in the answer's own exchange."""
    if redelivered(m):
        return None
    holder = once(m, "progress.holder", Holder, where=m.session.memory)
    if holder.active:
        return KEPT
    done = holder.done
    if done is None or (done.made_task and m.era != "modern"):
        return None
    if done.post is not m.post or not _settled(m, holder):
        return UNKNOWN
    return broken("its request was answered before", related=(done.at,))
