"""What the pass keeps of a message: what later messages of its connection and instance are judged by."""

from __future__ import annotations

from typing import Final

from mcplab.frames.wire import Wire
from mcplab.model import ABSENT, UNKNOWN
from mcplab.rulebook import past, rounds, taskbook
from mcplab.rulebook.facts import Fact, Listen, Session, listen_of

MODERN_CODES: Final = (-32020, -32021, -32022)
"""Error codes that only a modern server sends (2026-07-28 basic/index#error-codes)."""


class Learner:
    """Takes messages in, each after the checks have looked at it."""

    def __init__(self, wire: Wire) -> None:
        self._versions = wire.version
        self._disputed = {answer: asked for asked, answer in wire.disputed.items()}
        # a source without transport facts that holds one party's messages alone may be one half of the traffic
        self._half = wire.transport != "stdio" and not wire.http and not {"client", "server"} <= set(wire.sender)

    def learn(self, fact: Fact, number: int, session: Session) -> None:
        """What later messages will be judged by."""
        kind, method = fact.kind, fact.method
        session.last[fact.sender] = kind, fact.seq
        if fact.request is not None:
            session.answered[fact.sender] = max(fact.request.row, session.answered.get(fact.sender, -1))
            past.learn(fact)
        if kind == "result" or (method is not None and method.startswith(("tasks/", "notifications/tasks"))):
            taskbook.learn(fact)
        if kind == "request":
            session.open[number] = fact
            if fact.sender == "server":
                return
            if method == "initialize":
                session.phase = "" if self._half else "asked"  # whether the other half had an answer, nobody can tell
                session.began = True
                session.offered = self._versions[number]
                session.negotiated = None
                session.initialize = fact.seq
                session.initialized = None
                session.client = fact.params.get("capabilities", ABSENT)
                session.server = UNKNOWN
                session.forget()
            elif fact.era == "modern":
                rounds.learn(fact)
                session.spoke_modern = True
                session.modern_version = self._versions[number] or session.modern_version
                if method == "subscriptions/listen":
                    if len(session.listens) >= 256:
                        session.listens.pop(next(iter(session.listens)))
                    session.listens[str(fact.id)] = Listen(fact)
        elif kind == "notification":
            if method == "notifications/initialized" and fact.sender != "server" and session.initialized is None:
                session.initialized = fact.seq
                session.forget()
            elif method == "notifications/cancelled":
                self._cancelled(fact, session)
            elif method == "notifications/subscriptions/acknowledged":
                listen = listen_of(fact)
                honoured = fact.params.get("notifications")
                if listen is not None and listen.acknowledged is None:
                    listen.acknowledged = honoured if isinstance(honoured, dict) else {}
            elif session.listens and fact.sender == "server":
                listen = listen_of(fact)
                if listen is not None and listen.acknowledged is None:
                    listen.early = True
        elif kind == "result":
            asked = fact.request
            self._end_listen(fact, session)
            if (asked is not None and asked.method == "initialize" and not fact.again) or number in self._disputed:
                session.phase = "answered"
                version = fact.result.get("protocolVersion")
                session.negotiated = version if isinstance(version, str) else session.offered
                session.server = fact.result.get("capabilities", ABSENT)
                if fact.post is not None:
                    session.session_id = (fact.post.answer_headers or {}).get("mcp-session-id")
                session.forget()
                return
            if asked is None or asked.era != "modern":
                return
            rounds.learn(fact)
            if not session.instance.modern and ("resultType" in fact.result or asked.method == "server/discover"):
                session.instance.modern = True
                session.instance.changed()
            if asked.method == "server/discover":
                supported = fact.result.get("supportedVersions")
                if isinstance(supported, list):
                    session.instance.discovered = fact.result.get("capabilities", ABSENT)
                    session.instance.supported = [name for name in supported if isinstance(name, str)]
                    session.instance.discovered_at = fact.seq
                    session.instance.changed()
        elif kind == "error" and fact.request is not None and not fact.again:
            self._end_listen(fact, session)
            if fact.request.method == "initialize":
                session.phase = "refused"
                session.forget()
            elif fact.request.era == "modern" and fact.code in MODERN_CODES:
                session.instance.modern = True
                session.instance.changed()

    def _end_listen(self, fact: Fact, session: Session) -> None:
        listen = session.listens.get(str(fact.request.id)) if fact.request is not None else None
        if listen is not None and listen.request is fact.request and listen.ended is None:
            listen.ended, listen.ended_by = fact.seq, "answer"

    def _cancelled(self, fact: Fact, session: Session) -> None:
        wanted = fact.params.get("requestId", ABSENT)
        for open_ in session.open.values():
            if open_.sender == fact.sender and isinstance(open_.body, dict):
                ident = open_.body.get("id")
                if type(ident) is type(wanted) and ident == wanted and open_.cancelled is None:
                    open_.cancelled = fact.seq
                    listen = session.listens.get(str(open_.id))
                    if listen is not None and listen.request is open_:
                        listen.ended, listen.ended_by = fact.seq, "client"
