"""Event streams of HTTP: ids and replays, waits before a reconnect, and the two-address transport of 2024-11-05.

``sse`` facts are the events of a stream that have more than a message: an id, a name, a retry. A capture without such
fields calls none of these checks.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mcplab import channels, jsontext, spec
from mcplab.frames.exchange import address
from mcplab.model import ABSENT
from mcplab.rulebook.checks.http import field, note_fields, streamable
from mcplab.rulebook.checks.recall import Recent, once, stamp
from mcplab.rulebook.facts import LISTEN, Fact, Post
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.rounds import own_params

LAST: Final = "last-event-id"
_TOLERANCE: Final = 50
"""Milliseconds that a clock may be wrong by."""


def _closed_by(m: Fact) -> str | None:
    """Which side ended the stream; None where its end was not captured, ``""`` where nobody knows."""
    if getattr(m.event, "kind", "") != "close":
        return None
    by = getattr(m.event, "by", None)
    return by if isinstance(by, str) else ""


# Ids ----------------------------------------------------------------------------------------------------------


class Before(NamedTuple):
    """The id was on another event: of another stream that was resumed, or simply used again."""

    replayed: bool
    seq: int


def _remember(m: Fact) -> Before | str | None:
    """Take the id of an event in."""
    post, ident = streamable(m), field(m, "id")
    if post is None or ident is ABSENT or m.sender == "client":
        return None
    ids: Recent[tuple[int, int]] | None = m.session.memory.get("streams.ids")
    if ids is None:
        ids = m.session.memory["streams.ids"] = Recent()
    stream, resumed = post.seq, None if post.headers is None else post.headers.get(LAST)
    if resumed is not None:
        known = ids.get(resumed)
        stream = known[0] if known is not None else -1  # the stream that is resumed, where it was seen
    latest = post.memory.get("streams.id")
    post.memory["streams.id"] = ident
    before = ids.get(ident)
    if before is None:
        ids.put(ident, (stream, m.seq))
        return KEPT if post.headers is not None else UNKNOWN
    if post.headers is None:
        return UNKNOWN  # the request may have resumed a stream
    if resumed is None:
        return None if latest == ident else Before(False, before[1])  # an id stands until the next one comes
    if stream == -1:
        return UNKNOWN
    return KEPT if before[0] == stream else Before(True, before[1])


def _taken(m: Fact) -> Before | str | None:
    return once(m, "streams.taken", _remember, where=m.session.memory)


def event_id_unique(m: Fact) -> Outcome:
    said = _taken(m)
    if isinstance(said, Before):
        if said.replayed:
            return None
        return broken(f"the event id {field(m, 'id')!r:.60} was on another event of the session", related=(said.seq,))
    return None if _resumes(m) else said


def _resumes(m: Fact) -> bool:
    return m.post is not None and LAST in (m.post.headers or {})


def no_cross_replay(m: Fact) -> Outcome:
    said = _taken(m)
    if not _resumes(m):
        return None
    if isinstance(said, Before):
        return broken(f"event {field(m, 'id')!r:.60} had been sent on another stream", related=(said.seq,))
    return said


# Closing and coming back --------------------------------------------------------------------------------------


def _pending(post: Post) -> bool:
    return any(fact.kind == "request" and fact.row in post.session.open for fact in post.facts)


def retry_before_close(m: Fact) -> Outcome:
    """Only a stream that gave its events ids can be taken up again."""
    post = streamable(m)
    if post is None:
        return None
    if m.kind == "sse":
        note_fields(m)
        return None
    by = _closed_by(m)
    if post.exchange.method != "POST" or "http.id" not in post.memory or not _pending(post):
        return None
    if by != "server":
        return None if by == "client" else UNKNOWN
    if "http.retry" in post.memory:
        return KEPT
    return broken("the connection of an unfinished stream was closed, and no retry was sent", related=(post.seq,))


def respects_retry(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None:
        return None
    waits: Recent[tuple[float | None, int, int]] | None = m.session.memory.get("streams.waits")
    if m.kind == "sse":
        note_fields(m)
        return None
    if m.kind == "http-end":
        ident, retry = post.memory.get("http.id"), post.memory.get("http.retry")
        if ident is not None and str(retry).isdecimal() and _closed_by(m) == "server":
            if waits is None:
                waits = m.session.memory["streams.waits"] = Recent()
            waits.put(ident, (stamp(m), int(str(retry)[:9]), m.seq))
        return None
    if waits is None or post.exchange.method != "GET" or post.headers is None:
        return None
    closed = waits.pop(post.headers.get(LAST))
    if closed is None:
        return None
    now = stamp(m)
    if now is None or closed[0] is None:
        return UNKNOWN
    waited = (now - closed[0]) * 1000
    if waited + _TOLERANCE >= closed[1]:
        return KEPT
    return broken(f"back after {waited:.0f} ms, retry said {closed[1]}", related=(closed[2],))


def get_unrelated(m: Fact) -> Outcome:
    """Progress names the request that it belongs to; a task's progress may come on any stream."""
    post = streamable(m)
    if post is None or post.exchange.method != "GET" or not post.exchange.streams:
        return None
    if m.method != "notifications/progress":
        return KEPT
    if post.headers is None:
        return UNKNOWN
    token = m.params.get("progressToken", ABSENT)
    if LAST in post.headers or token is ABSENT:
        return None
    for asked in m.session.open.values():
        own = asked.meta.get("progressToken", ABSENT)
        if asked.sender == "client" and type(own) is type(token) and own == token and "task" not in asked.params:
            return broken(f"progress of a running {asked.method} on a GET stream", related=(asked.seq, post.seq))
    return None


def reissued(m: Fact) -> Outcome:
    """A request whose stream broke, and the same once more. A stream that the client closed is one that it gave up."""
    post = streamable(m)
    if post is None:
        return None
    lost: Recent[tuple[Any, int, bool]] | None = m.session.instance.memory.get("streams.lost")
    if m.kind == "http-end":
        by, asked = _closed_by(m), post.request
        if by in (None, "client") or asked is None or asked.method == LISTEN or not _pending(post):
            return None
        if lost is None:
            lost = m.session.instance.memory["streams.lost"] = Recent()
        lost.put((asked.method, own_params(asked)), (asked.body.get("id"), asked.seq, by == "server"))
        return None
    before = lost.pop((m.method, own_params(m))) if lost else None
    if before is None:
        return None
    ident, seq, certain = before
    own = m.body.get("id")
    if type(own) is not type(ident) or own != ident:
        return KEPT
    if not certain:
        return UNKNOWN
    return broken(f"{m.method} was lost with its stream and sent again under the same id", related=(seq,))


def modern_no_get_delete(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.exchange.method not in ("GET", "DELETE"):
        return None
    path, supported, status = m.session.path, m.session.instance.supported, post.exchange.status
    if path is None or post.exchange.path != path or status in (401, 403):
        return None
    if supported is None or status is None:
        return UNKNOWN
    if any(spec.era(version) != "modern" for version in supported):
        return None
    return KEPT if status == 405 else broken(f"{post.exchange.method} was answered {status}", related=(post.seq,))


# HTTP+SSE (2024-11-05) ----------------------------------------------------------------------------------------


def _old(m: Fact) -> Post | None:
    post = m.post
    return post if post is not None and post.exchange.channel == channels.LEGACY_SSE else None


def endpoint_first(m: Fact) -> Outcome:
    """The address comes before any message; a stream that ends without one needs the captured request and close."""
    post = _old(m)
    if post is None or post.exchange.method != "GET":
        return None
    if m.kind == "sse":
        if field(m, "event") != "endpoint":
            return None
        return broken(f"{post.answers} messages came before it", related=(post.seq,)) if post.answers else KEPT
    if post.exchange.endpoint is not None or not post.exchange.streams:
        return None
    if post.answers:
        return broken("messages came, and no endpoint event", at=(post.seq, None))
    if _closed_by(m) != "server":
        return UNKNOWN
    return broken("the stream ended without an endpoint event", absence=True, related=(post.seq,))


def _announced(m: Fact) -> dict[str, int]:
    return m.session.instance.memory.setdefault("streams.endpoints", {})


def post_to_endpoint(m: Fact) -> Outcome:
    """Messages sent before the address is known are those that ask which transport this is."""
    post = _old(m)
    if post is None:
        return None
    known = _announced(m)
    if m.kind == "sse":
        data = field(m, "data")
        if field(m, "event") == "endpoint" and isinstance(data, str) and len(known) < 1000:
            known[address(data)] = m.seq
        return None
    path = post.exchange.path
    if not known or path is None:
        return UNKNOWN
    if post.exchange.method == "POST" and address(path) in known:
        return KEPT
    if post.exchange.method == "POST" and "?" not in path and any(one.partition("?")[0] == path for one in known):
        return UNKNOWN  # the capture may leave queries out
    return broken(
        f"{post.exchange.method} {jsontext.printable(path):.60}, the announced address is another",
        related=(max(known.values()),),
    )


def on_the_stream(m: Fact) -> Outcome:
    post = _old(m)
    if post is None:
        return None
    if m.kind == "sse":
        name = field(m, "event")
        if name in (ABSENT, "message", "endpoint") or getattr(m.event, "kind", "") != "message":
            return None
        return broken(f"a message in an SSE event called {name!r:.60}")
    if post.exchange.method == "GET":
        return KEPT
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    return broken("a message in the response to a POST") if 200 <= status < 300 else None
