"""Sessions of the legacy Streamable HTTP transport (basic/transports#session-management)."""

from __future__ import annotations

import re
from typing import Final

from mcplab import spec
from mcplab.rulebook.checks.http import streamable
from mcplab.rulebook.facts import Fact, Post
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

HEADER: Final = "mcp-session-id"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


def visible_ascii(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None:
        return None
    if post.answer_headers is None:
        return UNKNOWN if post.exchange.initializes else None
    given = post.answer_headers.get(HEADER)
    if given is None:
        return None
    return KEPT if _VISIBLE.fullmatch(given) else broken(f"the session id is {given!r}")


def assigned_on_initialize(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.answer_headers is None:
        return None
    given = post.answer_headers.get(HEADER)
    if given is None:
        return None
    if post.exchange.initializes:
        return KEPT
    if post.headers is None:
        return UNKNOWN
    if post.headers.get(HEADER) == given:
        return None
    return broken("a session id on a response that is not that of initialize", related=(post.seq,))


def _initializes(post: Post) -> bool:
    return any(fact.method == "initialize" for fact in post.facts)


def client_sends_id(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or m.session.session_id is None or _initializes(post) or post.era == "modern":
        return None
    if post.headers is None:
        return UNKNOWN
    if post.exchange.path != (m.session.path or post.exchange.path):
        return None
    return KEPT if HEADER in post.headers else broken("no Mcp-Session-Id, though initialize gave one")


def missing_id_400(m: Fact) -> Outcome:
    """At the address that serves the session 404 can have no other cause; credentials, an overload or a GET can."""
    post = streamable(m)
    if post is None or m.session.session_id is None or _initializes(post) or post.headers is None:
        return None
    status = post.exchange.status
    if HEADER in post.headers or status is None or status < 400:
        return None
    if status == 400:
        return KEPT
    if status != 404 or post.exchange.method != "POST" or post.exchange.path != m.session.path:
        return UNKNOWN
    return broken(f"the missing session id was answered {status}", related=(post.seq,))


def terminated_404(m: Fact) -> Outcome:
    """A session is over after a 2xx to DELETE, or a 404 for its id to a POST: to GET and DELETE a server that has
    neither says 404 too. What was on its way then is exempt."""
    post = streamable(m)
    if post is None or post.headers is None or HEADER not in post.headers:
        return None
    used = post.headers[HEADER]
    status = post.exchange.status
    if status is None:
        return None
    over = m.session.memory.get("sessions.over", {}).get(used)
    if over is None:
        deleted = post.exchange.method == "DELETE" and 200 <= status < 300
        if deleted or (status == 404 and post.exchange.method == "POST"):
            m.session.memory.setdefault("sessions.over", {})[used] = (m.seq, deleted)
        return None
    if post.seq < over[0]:
        return None
    if status == 404:
        return KEPT
    return broken(f"the session was over, and a request with its id was answered {status}", related=(over[0], post.seq))


def reinitializes(m: Fact) -> Outcome:
    """After a 404 to a request with a session id, the same id again is what the text rules out."""
    post = streamable(m)
    if post is None or post.exchange.method != "POST":
        return None
    dead = m.session.instance.memory.get("sessions.dead", {})
    if m.kind == "http-response":
        if (
            post.exchange.status == 404
            and post.headers is not None
            and HEADER in post.headers
            and not _initializes(post)
        ):
            m.session.instance.memory.setdefault("sessions.dead", {}).setdefault(post.headers[HEADER], m.seq)
        return None
    if not dead:
        return None
    if post.headers is None:
        return UNKNOWN
    used = post.headers.get(HEADER)
    if _initializes(post):
        return KEPT if used is None else None
    if used in dead:
        return broken("a session id that was answered 404 is used again", related=(dead[used],))
    return None


def initialize_without_id(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _initializes(post):
        return None
    if post.headers is None:
        return UNKNOWN
    return broken("initialize carries Mcp-Session-Id") if HEADER in post.headers else KEPT


def modern_none(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.request is None:
        return None
    supported = m.session.instance.supported
    if supported is not None and any(spec.era(version) != "modern" for version in supported):
        return None  # it is asked of a server that supports only this revision
    if post.answer_headers is None or supported is None or not m.session.instance.modern:
        return UNKNOWN
    return broken("a session id on the answer to a modern request") if HEADER in post.answer_headers else KEPT
