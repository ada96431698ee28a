"""What the outcome of many checks follows from, as a key: equal keys, equal outcomes.

A rule says what it reads: ``envelope`` (members of the message and their types), ``session`` (state of the connection),
``meta`` (what a request says of itself), ``headers`` (the HTTP exchange), ``answer`` (how an answer stands to its
request), ``history`` (that no id was used twice and nothing cancelled), ``handshake`` (that it is over), ``lists``
(that none was captured), ``task`` (that nothing asks for one), ``stdio`` (that no HTTP exchange carries it),
``message`` (all that the message holds: the check is called for each), or several of them. Most messages of a capture
are alike in all that, so most rules are judged once and then only counted.
``tests/test_rulebook_groups.py`` runs every example, case and capture with and without.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from mcplab.frames.exchange import NO_HEADERS
from mcplab.rulebook.facts import Fact, Post, Session
from mcplab.spec import META_LOG_LEVEL

CHANGING: Final = ("history", "handshake", "lists", "task", "stdio")
READS: Final = ("envelope", "session", "meta", "headers", "answer", *CHANGING, "message")
SESSION_HEADER: Final = "mcp-session-id"
_ENDS: Final = ("open", "close", "end", "http-end")
_EXACT: Final = (int, str, type(None), bool, list, dict)


class Keyring:
    """Numbers for states of connections and for sets of headers, so that keys stay small; one a pass."""

    def __init__(self) -> None:
        self._states: dict[Hashable, int] = {}
        self._sets: dict[Hashable, int] = {}
        self._headers: dict[tuple[int, bool], int] = {}

    def key(self, reads: tuple[str, ...], m: Fact) -> Hashable:
        """The key of a message for checks that read these facts; None where it is not like any other."""
        if m.kind in _ENDS:
            return None  # these look back on all that is still open
        parts: list[Hashable] = []
        for name in reads:
            if name == "envelope":
                part = envelope(m)
            elif name == "session":
                part = self.state(m.session, m.era)
            elif name == "meta":
                part = meta(m)
            elif name == "answer":
                part = answer(m)
            elif name == "history":
                part = () if m.session.ordinary else None
            elif name == "handshake":
                part = () if m.session.phase == "answered" and m.session.initialized is not None else None
            elif name == "lists":
                part = lists(m)
            elif name == "task":
                part = task(m)
            elif name == "stdio":
                part = () if m.post is None else None
            else:
                part = self.exchange(m.session, m.post, m.kind, m.part, m.event)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)

    def state(self, session: Session, era: str) -> int:
        """What the connection agreed on and declared, as a number."""
        modern = era == "modern"
        number = session.modern_state if modern else session.state
        if number < 0:
            instance = session.instance
            said: Hashable
            if modern:
                said = (
                    repr(instance.discovered), repr(instance.supported), instance.modern, session.opened, session.path,
                )  # fmt: skip
            else:
                said = (
                    session.phase, session.offered, session.negotiated, session.initialized is None, session.opened,
                    session.began, repr(session.client), repr(session.server), session.path, session.session_id is None,
                )  # fmt: skip
            number = self._states.setdefault((modern, said), len(self._states))
            if modern:
                session.modern_state = number
            else:
                session.state = number
        return number

    def exchange(self, session: Session, post: Post | None, kind: str, part: int | None, event: Any) -> Hashable:
        """Headers, method, status and what was POSTed. A refused session or a body of its own is like no other."""
        if post is None:
            return ()
        exchange = post.exchange
        status = exchange.status
        if kind in ("text", "sse") or status == 404 or exchange.method == "DELETE" or event.raw_b64:
            return None
        if "sessions.over" in session.memory or "sessions.dead" in session.instance.memory:
            return None
        if kind == "http-response" and status == 202:
            http = event.http
            if event.kind == "message" or event.raw or http.body is True:
                return None
        fixed = post.fixed
        if fixed is None or fixed[0] is not session.session_id:
            fixed = post.fixed = (
                session.session_id, self.headers(exchange.request_headers, session.session_id),
                self.headers(exchange.response_headers, session.session_id), status, exchange.method, exchange.channel,
                exchange.path, exchange.initializes,
            )  # fmt: skip
        return self.state(session, post.era), fixed[1:], post.kinds, post.era, post.answers == 0, part

    def headers(self, headers: Mapping[str, str], session_id: str | None) -> int:
        """A number for a set of headers; of a session id counts only whether it is the connection's."""
        known = session_id is not None
        number = self._headers.get((id(headers), known))
        if number is None:
            own = headers.get(SESSION_HEADER)
            seen = None if own is None else (own == session_id, own.isascii() and own.isprintable() and " " not in own)
            rest = (headers is NO_HEADERS, *sorted(item for item in headers.items() if item[0] != SESSION_HEADER))
            number = self._headers[id(headers), known] = self._sets.setdefault((rest, seen), len(self._sets))
        return number


def envelope(m: Fact) -> Hashable:
    """The members of the message and their types, ``jsonrpc`` and ``error.code`` themselves, its place in a batch."""
    body = m.body
    if type(body) is not dict:
        return None
    version = body.get("jsonrpc")
    ident = body.get("id")
    if type(version) is not str or type(ident) not in _EXACT:
        return None
    error = body.get("error")
    if error is not None:
        if type(error) is not dict or type(error.get("code")) not in (int, str, type(None)):
            return None
        error = (
            error.get("code"),
            type(error.get("code")),
            type(error.get("message")),
            "code" in error,
            "message" in error,
        )
    return (
        tuple(body), version, type(ident), type(body.get("params")), type(body.get("result")), error, m.part,
        m.post is None, m.post is not None and (m.post.exchange.method, m.post.exchange.channel),
    )  # fmt: skip


def lists(m: Fact) -> Hashable:
    """That no list of the server is known."""
    if m.method is None or m.method.endswith("/list"):
        return None
    memory = m.session.instance.memory if m.era == "modern" else m.session.memory
    return None if "lists" in memory else ()


def task(m: Fact) -> Hashable:
    """That neither this message nor its request asks for a task (2025-11-25), names one or lists tools."""
    asked = m.request if m.kind in ("result", "error") else m
    if asked is None or m.method is None or m.method.startswith("tasks/") or m.method.endswith("/list"):
        return None
    return None if "task" in asked.params else ()


def meta(m: Fact) -> Hashable:
    """What a request says of itself and declares, besides the token that differs each time."""
    if m.kind != "request":
        return repr(m.result.get("capabilities")) if "capabilities" in m.result else ()
    own = m.meta
    if "progressToken" in own:
        own = {key: value for key, value in own.items() if key != "progressToken"}
    said = repr(own) if own else ""
    return said, repr(m.params["capabilities"]) if "capabilities" in m.params else ""


def answer(m: Fact) -> Hashable:
    """How an answer stands to its request; for anything else only that it is none."""
    if m.kind not in ("result", "error"):
        return ()
    asked = m.request
    body = m.body
    if type(body) is not dict:
        return None
    ident = body.get("id")
    if asked is None or m.again or asked.cancelled is not None or type(asked.body) is not dict:
        return None
    own = asked.body.get("id")
    if type(own) is not type(ident) or own != ident or ident is None:
        return None
    if META_LOG_LEVEL in asked.meta or asked.method == "logging/setLevel":
        return None  # its level matters
    if "inputResponses" in asked.params or "requestState" in asked.params:
        return None  # what it answers matters
    return asked.post is m.post, asked.method, asked.era, asked.part is None
