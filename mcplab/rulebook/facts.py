"""What a check may know when it looks at a message: the message itself, its connection, its instance.

All facts are those *before* the message: a check that looks at ``notifications/initialized`` sees a session that is
not initialized yet. Facts grow with the open requests of a capture, not with its events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import gating, jsontext
from mcplab.frames.exchange import NO_HEADERS, Exchange
from mcplab.model import ABSENT, UNKNOWN
from mcplab.spec import META_CAPABILITIES, META_SUBSCRIPTION_ID

LISTEN: Final = "subscriptions/listen"

Json = Any
NOTHING: Final[Mapping[str, Json]] = {}


class Ids:
    """The request ids that a party has used. Whole numbers in a row are kept as one range: a counter costs nothing."""

    __slots__ = ("_high", "_low", "_others")

    def __init__(self) -> None:
        self._low = 0
        self._high = -1  # empty range
        self._others: set[Any] = set()

    def add(self, ident: Json) -> bool:
        """Note an id; True where it was there already. ``1`` and ``"1"`` are two ids, ``1`` and ``true`` too."""
        if type(ident) is int:
            if self._low <= ident <= self._high:
                return True
            if self._high < self._low and not self._others:
                self._low = self._high = ident
                return False
            if ident == self._high + 1:
                self._high = ident
                while self._high + 1 in self._others:
                    self._high += 1
                    self._others.discard(self._high)
                return False
            key: Any = ident
        else:
            key = (type(ident).__name__, ident if isinstance(ident, (str, float, bool)) else repr(ident))
        if key in self._others:
            return True
        self._others.add(key)
        return False


class Session:
    """One connection, as far as it was seen.

    Attributes:
        opened: nothing of the connection can have come before the first event that the capture holds of it: its
            ``open`` was captured (stdio).
        began: its ``initialize`` was captured, so declarations, version and ids of the handshake are known.
        offered, negotiated: version strings of the latest initialize and of its result.
        phase: ``""`` (no initialize seen), ``asked``, ``answered``, ``refused``.
        initialize: seq of the latest initialize request.
        initialized: seq of ``notifications/initialized``, or None.
        client, server: the declarations of the handshake: a JSON value, ABSENT, or UNKNOWN.
        open: request row -> Fact, of requests without an answer, both directions.
        last: sender -> (kind, seq) of the latest that came from it, ``text`` for what was no message.
        answered: sender -> row of the latest request that it has answered: on stdio it has read all before that one.
        memory: for checks: a place for what they must keep, keyed by name.
        ordinary: known beforehand: neither party uses an id twice, no request is answered twice, and nothing is
            cancelled or reports progress. So nobody will ask for what was answered.
    """

    def __init__(self, name: str, instance: Instance, transport: str | None) -> None:
        self.ordinary = False
        self.name = name
        self.instance = instance
        self.transport = transport
        self.opened = False
        self.began = False
        self.closed = False
        self.events = 0
        self.offered: str | None = None
        self.negotiated: str | None = None
        self.phase = ""
        self.initialize: int | None = None
        self.initialized: int | None = None
        self.client: Json = UNKNOWN
        self.server: Json = UNKNOWN
        self.session_id: str | None = None
        self.path: str | None = None  # where messages are POSTed: the MCP endpoint
        self.spoke_modern = False
        self.modern_version: str | None = None
        self.first_offer: str | None = None
        self.first_modern: str | None = None
        self.open: dict[int, Fact] = {}
        self.last: dict[str | None, tuple[str, int]] = {}
        self.answered: dict[str | None, int] = {}
        self.listens: dict[str, Listen] = {}  # JSON text of the request's id -> the subscription
        self.memory: dict[str, Any] = {}
        self.state = -1  # number of what was agreed on and declared (keys.py); -1: to be found out
        self.modern_state = -1
        self._standings: dict[tuple[str, str, str], gating.Standing] = {}

    @property
    def whole(self) -> bool:
        """Is everything of this connection, from its beginning to now, in the capture?"""
        return self.opened or (self.began and self.transport != "stdio" and self.session_id is not None)

    def declared(self, revision: str, party: str, path: str) -> gating.Standing:
        """How the handshake's declaration of ``party`` stands to ``path``."""
        key = (revision, party, path)
        found = self._standings.get(key)
        if found is None:
            value = self.client if party == "client" else self.server
            found = self._standings[key] = gating.standing(revision, party, path, value)
        return found

    def forget(self) -> None:
        """The state changed: what was derived from it no longer stands."""
        self.state = self.modern_state = -1
        self._standings.clear()


class Instance:
    """One run of one client against one server: what holds over its connections."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.modern = False  # the server answered something as only a modern server does
        self.discovered: Json = UNKNOWN  # capabilities of the latest discover result
        self.supported: list[str] | None = None  # versions that the server named, latest first
        self.discovered_at: int | None = None
        self.sessions: dict[str, Session] = {}
        self.memory: dict[str, Any] = {}

    def changed(self) -> None:
        """What is known of the server changed: connections have a new state."""
        for session in self.sessions.values():
            session.modern_state = -1


class Listen:
    """One ``subscriptions/listen`` request and what became of it (2026-07-28)."""

    __slots__ = ("acknowledged", "asked", "early", "ended", "ended_by", "request")

    def __init__(self, request: Fact) -> None:
        self.request = request
        wanted = request.params.get("notifications")
        self.asked: Mapping[str, Json] = wanted if isinstance(wanted, dict) else {}
        self.acknowledged: Mapping[str, Json] | None = None
        self.early = False  # something came on it before the acknowledgment
        self.ended: int | None = None  # seq
        self.ended_by = ""  # answer, client


class Post:
    """One HTTP exchange as checks see it. Kept until its last event."""

    __slots__ = ("answers", "era", "exchange", "facts", "fixed", "kinds", "memory", "revision", "seq", "session")

    def __init__(self, exchange: Exchange, session: Session, seq: int) -> None:
        self.exchange = exchange
        self.session = session
        self.seq = seq
        self.facts: list[Fact] = []  # what the client sent in it
        self.kinds = ""  # kinds of facts in a word, with initialize told apart
        self.answers = 0  # messages that the server sent in it
        self.fixed: tuple[Any, ...] | None = None  # what of its key does not change (keys.py), after the session's id
        self.era = "unknown"
        self.revision: str | None = None
        self.memory: dict[str, Any] = {}

    @property
    def request(self) -> Fact | None:
        """The first request in the body."""
        return next((fact for fact in self.facts if fact.kind == "request"), None)

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The request's headers, lower-case names; None where the capture holds none."""
        return self.exchange.request_headers or None

    @property
    def answer_headers(self) -> Mapping[str, str] | None:
        """The response's headers, also where none of those that a trace keeps was there; None: not in the capture."""
        return None if self.exchange.response_headers is NO_HEADERS else self.exchange.response_headers


class Fact:
    """One message, or one other event, as a check sees it.

    Attributes:
        kind: request, notification, result, error, invalid; text (no JSON-RPC), open, close, end; http-request,
            http-get, http-response, sse.
        sender: client or server; None where the capture does not say.
        method: of an answer the one that it answers; None where that is not known.
        body: the JSON value of the message. Absent members are absent from it.
        request: for an answer, the request that it answers.
        era, revision: what the message is judged by; revision None where the capture does not tell.
        post: the HTTP exchange that carries it.
        again: an answer to a request that had one.
        text: what the event holds where it is no message.
        params, meta, result, error: the members of ``params``, ``params._meta``, ``result`` and ``error``; empty where
            they are absent or no object.
    """

    __slots__ = (
        "again", "body", "cancelled", "era", "error", "event", "id", "kind", "meta", "method", "params", "part", "post",
        "raw", "request", "result", "revision", "row", "sender", "seq", "session", "text",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        sender: str | None,
        method: str | None,
        seq: int,
        part: int | None,
        session: Session,
        era: str,
        revision: str | None,
        body: Json = None,
        *,
        ident: str | None = None,
        request: Fact | None = None,
        post: Post | None = None,
        event: Any = None,
        raw: Any = None,
        row: int = -1,
        again: bool = False,
        text: str = "",
    ) -> None:
        self.kind = kind
        self.sender = sender
        self.method = method
        self.seq = seq
        self.part = part
        self.session = session
        self.era = era
        self.revision = revision
        self.id = ident
        self.request = request
        self.post = post
        self.event = event
        self.raw = raw
        self.row = row
        self.again = again
        self.text = text
        self.cancelled: int | None = None  # seq of the cancellation by its own sender
        self.hold(body)

    def hold(self, body: Json) -> None:
        """Set the JSON value, and the members that checks look at."""
        self.body = body
        self.params = self.meta = self.result = self.error = NOTHING
        if type(body) is dict:
            found = body.get("params")
            if type(found) is dict:
                self.params = found
                found = found.get("_meta")
                if type(found) is dict:
                    self.meta = found
            found = body.get("result")
            if type(found) is dict:
                self.result = found
            found = body.get("error")
            if type(found) is dict:
                self.error = found

    @property
    def place(self) -> tuple[int, int | None]:
        """(seq, part): where a finding about it is anchored."""
        return self.seq, self.part

    @property
    def receiver(self) -> str:
        """The other party."""
        return "client" if self.sender == "server" else "server"

    @property
    def client_capabilities(self) -> Json:
        """What the client declared for this message: in its request's ``_meta`` (modern), at initialize (legacy)."""
        if self.era != "modern":
            return self.session.client
        asked = self if self.kind == "request" and self.sender != "server" else self.request
        if asked is None:
            return UNKNOWN
        return asked.meta.get(META_CAPABILITIES, ABSENT)

    @property
    def server_capabilities(self) -> Json:
        """What the server declared: the latest discover result (modern), its initialize result (legacy)."""
        return self.session.instance.discovered if self.era == "modern" else self.session.server

    @property
    def code(self) -> Json:
        """The error's code, ABSENT where there is none."""
        return self.error.get("code", ABSENT)


def listen_of(m: Fact) -> Listen | None:
    """The subscription that a server's notification belongs to: that of its stream (HTTP), else of its tag."""
    session = m.session
    if m.post is not None:
        asked = m.post.request
        return None if asked is None else session.listens.get(str(asked.id)) if asked.method == LISTEN else None
    tag = m.meta.get(META_SUBSCRIPTION_ID, ABSENT)
    return None if tag is ABSENT else session.listens.get(jsontext.dumps(tag))
