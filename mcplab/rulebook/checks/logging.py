"""Log messages and their level (server/utilities/logging; from 2026-07-28 asked for by each request)."""

from __future__ import annotations

from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import stamp, subscribed
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_LOG_LEVEL

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RACE_SECONDS: Final = 1.0
"""On another stream than the answer to setLevel a message may have been under way for so long. Ours."""

_OTHER_FAULTS: Final = (-32601, -32020, -32021, -32022)
LISTEN: Final = "subscriptions/listen"


def _rank(level: Any) -> int | None:
    return LEVELS.index(level) if isinstance(level, str) and level in LEVELS else None


def message_shape(m: Fact) -> Outcome:
    level = m.params.get("level", ABSENT)
    if _rank(level) is None:
        return broken("level is absent" if level is ABSENT else f"level is {level!r}")
    return KEPT if "data" in m.params else broken("data is absent")


def set_level_valid(m: Fact) -> Outcome:
    level = m.params.get("level", ABSENT)
    if _rank(level) is None:
        return broken("level is absent" if level is ABSENT else f"level is {level!r}")
    return KEPT


def set_level_error(m: Fact) -> Outcome:
    """A request whose level is none of the eight. What was refused for another fault says nothing of it."""
    asked = m.request
    if asked is None or m.again:
        return None
    if asked.method == "logging/setLevel":
        level = asked.params.get("level", ABSENT)
    else:
        level = asked.meta.get(META_LOG_LEVEL, ABSENT)
        if level is ABSENT:
            return None
    if _rank(level) is not None:
        return None
    if m.kind == "result":
        return broken(f"the level {level!r} was accepted", related=(asked.seq,))
    status = m.post.exchange.status if m.post is not None else None
    if m.code in _OTHER_FAULTS or status in (401, 403, 404):
        return None
    if m.code == -32602:
        return KEPT
    weak = "low" if m.code == -32603 else None  # listed beside it, for faults of the configuration
    return broken(f"the level {level!r} was refused with {m.code}", related=(asked.seq,), confidence=weak)


def set_level_result(m: Fact) -> Outcome:
    extra = [name for name in m.result if name != "_meta"]
    return broken(f"members {', '.join(extra)}") if extra else KEPT


def threshold(m: Fact) -> Outcome:
    if m.era == "modern":
        return _threshold_of_requests(m)
    memory = m.session.memory
    if m.kind == "result":
        asked = m.request
        rank = _rank(asked.params.get("level")) if asked is not None and not m.again else None
        memory["logging.level"] = None if rank is None else (rank, m.seq, m.post, stamp(m))
        return None
    rank, set_ = _rank(m.params.get("level")), memory.get("logging.level")
    if rank is None or set_ is None:
        return None
    least, seq, post, then = set_
    if any(asked.method == "logging/setLevel" for asked in m.session.open.values()):
        return UNKNOWN  # the level is being changed
    if rank >= least:
        return KEPT
    if m.post is not None and m.post is not post:
        now = stamp(m)
        if now is None or then is None or now - then <= RACE_SECONDS:
            return UNKNOWN
    return broken(f"{LEVELS[rank]} although the level is {LEVELS[least]}", related=(seq,))


def _asking(m: Fact) -> list[Fact]:
    """The open requests that a log message may belong to. Over HTTP it is the one whose stream brings it."""
    if m.post is not None:
        asked = m.post.request
        return [] if asked is None else [asked]
    return [asked for asked in m.session.open.values() if asked.sender == "client" and asked.method != LISTEN]


def _threshold_of_requests(m: Fact) -> Outcome:
    if m.kind != "notification":
        return None
    rank = _rank(m.params.get("level"))
    levels = [_rank(asked.meta.get(META_LOG_LEVEL)) for asked in _asking(m)]
    known = [level for level in levels if level is not None]
    if rank is None or not known:
        return None
    if m.post is None and not m.session.opened:
        return UNKNOWN
    if rank >= max(known):
        return KEPT
    if rank < min(known):
        return broken(f"{LEVELS[rank]} although no request asks for less than {LEVELS[min(known)]}")
    return UNKNOWN


def none_without_level(m: Fact) -> Outcome:
    """On stdio a message names no request: one open request that asks for messages may be the one."""
    asking = _asking(m)
    wanted = [asked for asked in asking if META_LOG_LEVEL in asked.meta]
    if m.post is not None:
        if not asking:
            return UNKNOWN
        return KEPT if wanted else broken(f"{asking[0].method} did not ask for messages", related=(asking[0].seq,))
    if wanted:
        return KEPT if len(wanted) == len(asking) and m.session.opened else UNKNOWN
    if not m.session.opened:
        return UNKNOWN
    return broken("no open request asks for messages", related=tuple(asked.seq for asked in asking[:3]))


def right_stream(m: Fact) -> Outcome:
    """On stdio there is one stream: only the tag of a subscription tells there."""
    if subscribed(m) is not ABSENT:
        return broken("it is tagged with a subscription")
    if m.post is None:
        return KEPT
    asked = m.post.request
    if asked is None:
        return UNKNOWN
    if asked.method == LISTEN:
        return broken(f"it came on the stream of {LISTEN}", related=(asked.seq,))
    if asked.row not in m.session.open:
        return broken("it came after the answer of its stream", related=(asked.seq,))
    return KEPT
