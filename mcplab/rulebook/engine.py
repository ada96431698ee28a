"""One pass over a capture: each event goes to the checks that look at such events, and every outcome is counted.

The era and the revision of a message are decided from the message and from what came before it. A message whose
revision the capture does not tell is still looked at, by the newest revision of its era, but whatever a check says of
it becomes ``unknown``.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from mcplab import channels, envelope, jsontext, spec
from mcplab.frames.exchange import Exchange
from mcplab.frames.links import Link
from mcplab.frames.wire import SENDER, Wire, event_text
from mcplab.model import Sse
from mcplab.progress import over
from mcplab.rulebook.board import Board, Found
from mcplab.rulebook.facts import Fact, Instance, Post, Session
from mcplab.rulebook.judging import LEGACY, MODERN, legacy_revision, modern_revision
from mcplab.rulebook.keys import Keyring
from mcplab.rulebook.learner import Learner
from mcplab.rulebook.outcome import KEPT, Broken, Outcome
from mcplab.rulebook.outcome import UNKNOWN as CANNOT_TELL
from mcplab.rulebook.plan import Entries, Entry, Group, Plan
from mcplab.spec import LATEST_LEGACY

SPELLED: Final = re.compile(rb"\\u00[2-7]")
"""An escape that spells an ASCII character, so that a text may be there and not be found."""

_KIND: Final = {"response": "result"}
_decode = msgspec.json.Decoder().decode


MEMO: Final = 20_000
"""Keys whose outcomes are kept."""

SHOWN: Final = 5_000
"""Events from which on a pass may take over a second, and shows how far it is."""

SERVERS: Final = 100
"""Servers at a time that a stdio process may be the successor of."""


class Run:
    """The pass over one walk. ``boards``: (instance, revision) -> what was said."""

    def __init__(
        self, wire: Wire, links: dict[str, Link], plan: Plan, revision: str | None = None, *, grouped: bool = True
    ) -> None:
        self.grouped = grouped
        self.keys = Keyring()
        self._memo: dict[Any, int] = {}
        self.wire = wire
        self.links = links
        self.plan = plan
        self.given = revision
        self.given_era = spec.era(revision) if revision is not None else ""
        self.boards: dict[tuple[str, str | None], Board] = {}
        self.sessions: dict[str, Session] = {}
        self.instances: dict[int, Instance] = {}
        self._runs = runs(links, wire.transport)
        self.ordinary: frozenset[str] = frozenset()
        self._posts: dict[int, Post] = {}
        self._learner = Learner(wire)
        self._first_versions()
        collecting = gc.isenabled()
        gc.disable()  # nothing here makes cycles that last, and a collection looks at the whole capture each time
        try:
            self._walk()
        finally:
            if collecting:
                gc.enable()

    def _first_versions(self) -> None:
        """What each connection will offer first: lines that come before it are judged by it."""
        wire = self.wire
        self._offers: dict[str, str | None] = {}
        self._moderns: dict[str, str | None] = {}
        for number in wire.openings():
            conn = wire.conns[wire.rows[number].event]
            first = self._offers if wire.method[number] == "initialize" else self._moderns
            first.setdefault(conn, wire.version[number])

    # the walk ---------------------------------------------------------------------------------------

    def _walk(self) -> None:
        for number in self._todo():
            self._event(number)
        for session in self.sessions.values():
            self._other("end", None, session, None, len(self.wire.events) - 1)
        self._settle()

    def _todo(self) -> Iterable[int]:
        """The events to be looked at."""
        return over(range(len(self.wire.events)), "judging", "event", least=SHOWN)

    def _event(self, number: int) -> None:
        wire = self.wire
        event = wire.events[number]
        session = self.session(number)
        exchange = wire.exchange_of[number]
        post = self._post(exchange, session, number) if exchange is not None else None
        kind = event.kind
        if kind == "open" and exchange is None and session.events == 0:
            session.opened = wire.transport == "stdio"
            session.forget()
        session.events += 1
        begin, end = wire.first_row[number], wire.first_row[number + 1]
        for row in range(begin, end):
            self._message(row, session, post)
        sender = SENDER.get(event.dir) if event.dir is not UNSET else None
        if begin < end:
            if event.sse is not UNSET and _framed(event.sse):
                self._other("sse", sender, session, post, number)
        elif kind == "unparsed":
            self._other("text", sender, session, post, number, text=event_text(event))
            session.last[sender] = "text", event.seq
        elif kind == "open" and exchange is None:
            self._other("open", None, session, None, number)
        elif kind == "close" and exchange is None:
            self._other("close", None, session, None, number)
            session.closed = True
        elif kind == "sse":
            self._other("sse", sender, session, post, number, text=event_text(event))
        if exchange is not None and post is not None:
            if number == exchange.first and exchange.method is not None and event.dir != "s2c":
                self._other("http-request", "client", session, post, number)
                if exchange.method != "POST":
                    self._other("http-get", "client", session, post, number)
            if number == exchange.response:
                self._other("http-response", "server", session, post, number)
            if number == exchange.last:
                if exchange.streams:
                    self._other("http-end", None, session, post, number)
                del self._posts[id(exchange)]
                if not any(sent.row in session.open for sent in post.facts):
                    post.facts.clear()  # or messages and exchange would keep each other alive

    def session(self, number: int) -> Session:
        """The connection of an event."""
        conn = self.wire.conns[number]
        session = self.sessions.get(conn)
        if session is None:
            run = self._runs[conn]
            instance = self.instances.get(run)
            if instance is None:
                instance = self.instances[run] = Instance(self.links[conn].instance)
            session = self.sessions[conn] = Session(conn, instance, self.wire.transport)
            session.first_offer = self._offers.get(conn)
            session.ordinary = conn in self.ordinary
            session.first_modern = self._moderns.get(conn)
            instance.sessions[conn] = session
        return session

    def _post(self, exchange: Exchange, session: Session, number: int) -> Post:
        post = self._posts.get(id(exchange))
        if post is None:
            post = self._posts[id(exchange)] = self.post(exchange, session, self.wire.events[number].seq)
        return post

    def post(self, exchange: Exchange, session: Session, seq: int) -> Post:
        """An exchange of which nothing was looked at."""
        post = Post(exchange, session, seq)
        version = exchange.request_headers.get("mcp-protocol-version")
        if version is not None and spec.era(version) == "modern":
            post.era, post.revision = "modern", modern_revision(version)
        else:
            post.era, post.revision = self._in_force(session)
        return post

    # messages ---------------------------------------------------------------------------------------

    def _message(self, number: int, session: Session, post: Post | None) -> None:
        asked = self.wire.reply_to[number]
        request = None if asked is None else session.open.get(asked)
        fact = self.fact(number, session, post, request)
        if post is not None:
            self.carry(post, fact)
        self._judge(fact, fact.kind, fact.sender or "", fact.method)
        self._learner.learn(fact, number, session)
        if request is not None and not fact.again and asked is not None:
            session.open.pop(asked, None)

    def fact(self, number: int, session: Session, post: Post | None, request: Fact | None) -> Fact:
        """A message, with what decides its era and revision. ``request``: the one that it answers."""
        wire = self.wire
        row = wire.rows[number]
        kind = wire.kind[number]
        kind = _KIND.get(kind, kind)
        sender = wire.sender[number]
        method = wire.method[number]
        asked = wire.reply_to[number]
        if self.given is not None:
            era, revision = self.given_era, self.given
        elif kind == "request" or kind == "notification":
            era, revision = self._asked(number, sender, method, session, post)
        else:
            era, revision = self._answered(number, request, session, post)
        event = wire.events[row.event]
        return Fact(
            kind, sender, method, event.seq, row.part, session, era, revision, body_of(row.raw),
            ident=wire.id[number], request=request, post=post, event=event, raw=row.raw, row=number,
            again=asked is not None and wire.answer.get(asked) != number,
        )  # fmt: skip

    @staticmethod
    def carry(post: Post, fact: Fact) -> None:
        """Note a message on the exchange that carries it."""
        session = post.session
        if fact.sender == "server":
            post.answers += 1
            return
        if not post.facts:
            post.era, post.revision = fact.era, fact.revision
            if session.path is None and post.exchange.method == "POST":
                session.path = post.exchange.path
                session.forget()
        post.facts.append(fact)
        post.kinds += f"{fact.kind} {fact.method == 'initialize'} "

    def _asked(
        self, number: int, sender: str | None, method: str | None, session: Session, post: Post | None
    ) -> tuple[str, str | None]:
        wire = self.wire
        if method == "initialize" and sender != "server":
            return "legacy", legacy_revision(wire.version[number])
        meta = wire.meta.get(number)
        era = wire.era[number]
        if sender != "server":
            if meta is not None and meta.version is not UNSET:
                version = envelope.string(meta.version)
                if version in LEGACY and (session.phase in ("asked", "answered") or not session.opened):
                    return self._in_force(session)  # a legacy session whose client repeats its version
                return "modern", modern_revision(version)
            if meta is not None and meta.capabilities is not UNSET:
                return "modern", modern_revision(wire.version[number] or session.modern_version)
        elif post is not None and post.era == "modern":
            return "modern", post.revision
        own = (meta is not None and meta.subscription is not UNSET) or (post is not None and post.era == "modern")
        if own or (era == "modern" and session.opened and session.phase in ("", "refused")):
            return "modern", modern_revision(wire.version[number] or session.modern_version)
        alone = session.first_offer and not session.first_modern
        if method == "ping" and not session.opened and session.phase == "" and alone:
            # all legacy revisions have one text about pings, and let them come before the handshake
            return "legacy", legacy_revision(session.first_offer)
        return self._in_force(session)

    def _answered(
        self, number: int, request: Fact | None, session: Session, post: Post | None
    ) -> tuple[str, str | None]:
        wire = self.wire
        if request is not None:
            if request.method == "initialize" and wire.kind[number] == "response":
                version = wire.version[number]
                return "legacy", legacy_revision(version, session.offered)
            return request.era, request.revision
        if post is not None and post.era == "modern":
            return post.era, post.revision
        return self._in_force(session)

    def _in_force(self, session: Session) -> tuple[str, str | None]:
        """Era and revision of what does not say it itself, from what the connection said before."""
        if session.phase == "answered":
            return "legacy", legacy_revision(session.negotiated, session.offered)
        if session.phase == "asked":
            return "legacy", legacy_revision(session.offered)
        if not session.opened:
            return "unknown", None
        if session.phase == "refused":
            return ("unknown", None) if session.spoke_modern else ("legacy", legacy_revision(session.offered))
        if session.spoke_modern:
            return ("unknown", None) if session.first_offer else ("modern", modern_revision(session.modern_version))
        if session.first_modern and not session.first_offer:
            return "modern", modern_revision(session.first_modern)
        if session.first_offer and not session.first_modern:
            return "legacy", legacy_revision(session.first_offer)
        return "unknown", None

    # judging ----------------------------------------------------------------------------------------

    def _other(
        self, kind: str, sender: str | None, session: Session, post: Post | None, number: int, text: str = ""
    ) -> None:
        """An event that is no message."""
        fact = self.other(kind, sender, session, post, number, text)
        self._judge(fact, kind, sender if kind == "text" and sender else "", None)

    def other(
        self, kind: str, sender: str | None, session: Session, post: Post | None, number: int, text: str = ""
    ) -> Fact:
        """What checks see of an event that is no message."""
        if self.given is not None:
            era, revision = self.given_era, self.given
        elif post is not None:
            era, revision = post.era, post.revision
            if revision is None and kind != "text" and post.exchange.channel == channels.LEGACY_SSE:
                era, revision = "legacy", LEGACY[0]  # the one revision that has this transport
        else:
            era, revision = self._in_force(session)
            if revision is None and kind in ("close", "end") and session.spoke_modern:
                era, revision = "modern", modern_revision(session.modern_version)
        event = self.wire.events[number]
        return Fact(kind, sender, None, event.seq, None, session, era, revision, post=post, event=event, text=text)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        revision = fact.revision
        if revision is not None:
            entries = self.plan.checks(revision, sender, kind, method)
            board = self.board(fact.session.instance.name, revision)
            raw, hidden = b"", False
            if entries.raw:
                raw = b"" if fact.raw is None else bytes(fact.raw)
                hidden = not raw or not self.grouped or (b"\\u00" in raw and SPELLED.search(raw) is not None)
            for group in entries.groups:
                self._alike(fact, board, group, raw, hidden)
            self._each(fact, board, entries.rest)
            for needing in entries.needing:
                if hidden or needing.search(raw) is not None:
                    self._each(fact, board, needing.entries)
            self._across(fact, entries)
            return
        for newest, era in ((LATEST_LEGACY, "legacy"), (MODERN[-1], "modern")):
            if fact.era in (era, "unknown"):
                fact.revision = newest
                board = self.board(fact.session.instance.name, None)
                for rule, check in self.plan.checks(newest, sender, kind, method).every:
                    said = check(fact)
                    if said is not None and said != []:
                        board.unknown[rule] += 1
        fact.revision = None

    def _across(self, fact: Fact, entries: Entries) -> None:
        """Rules of the other era that are about this message too."""
        if entries.across and self.given is None:
            for rule, check in entries.across:
                said = check(fact)
                if said is not None:
                    modern = modern_revision(fact.session.modern_version)
                    self._note(self.board(fact.session.instance.name, modern), rule, said, fact)

    def _each(self, fact: Fact, board: Board, entries: tuple[Entry, ...]) -> None:
        kept = board.kept
        for rule, check in entries:
            said = check(fact)
            if said is None:
                continue
            if said is KEPT:
                kept[rule] += 1
            else:
                self._note(board, rule, said, fact)

    def _alike(self, fact: Fact, board: Board, group: Group, raw: bytes, hidden: bool) -> None:
        """Checks whose outcome follows from a key: counted in one go where that key was met before."""
        key = self.keys.key(group.reads, fact) if self.grouped else None
        if key is None:
            self._each(fact, board, group.entries)
            return
        mask = group.mask(raw, hidden) if group.unless else 0
        alike, each = group.parted(mask)
        if each:
            self._each(fact, board, each)
        bulk = self._memo.get((group.number, mask, key))
        if bulk is not None:
            board.bulks[bulk] = board.bulks.get(bulk, 0) + 1
            return
        said = [(rule, check(fact)) for rule, check in alike]
        for rule, one in said:
            self._note(board, rule, one, fact)
        if all(one is None or one is KEPT or one is CANNOT_TELL for _, one in said):
            if len(self._memo) > MEMO:
                self._memo.clear()
            self._memo[group.number, mask, key] = self.plan.bulk(
                tuple(rule for rule, one in said if one is KEPT),
                tuple(rule for rule, one in said if one is CANNOT_TELL),
            )

    def _settle(self) -> None:
        """What was counted in one go goes to each rule."""
        for board in self.boards.values():
            for number, times in board.bulks.items():
                kept, unknown = self.plan.bulks[number]
                for rule in kept:
                    board.kept[rule] += times
                for rule in unknown:
                    board.unknown[rule] += times
            board.bulks.clear()

    def board(self, instance: str, revision: str | None) -> Board:
        """What was said of an instance in a revision."""
        key = (instance, revision)
        board = self.boards.get(key)
        if board is None:
            board = self.boards[key] = Board(len(self.plan.rules))
        return board

    @staticmethod
    def told(rule: int, said: Broken, session: Session) -> bool:
        """Was it told before in this connection?"""
        before: set[tuple[int, str]] = session.memory.setdefault("told", set())
        known = (rule, said.once) in before
        before.add((rule, said.once))
        return known

    def _note(self, board: Board, rule: int, said: Outcome, fact: Fact) -> None:
        if isinstance(said, list):
            for one in said:
                self._note(board, rule, one, fact)
        elif isinstance(said, Broken):
            if said.once and self.told(rule, said, fact.session):
                return
            seq, part = fact.place if said.seq is None else (said.seq, said.part)
            board.broken.append(Found(rule, said, seq, part, fact.sender, fact.session.name))
        elif said == KEPT:
            board.kept[rule] += 1
        elif said == CANNOT_TELL:
            board.unknown[rule] += 1


def runs(links: dict[str, Link], transport: str | None) -> dict[str, int]:
    """Connection -> number of the server that it is a run of, so that nothing known of one server is held against
    another one of the same client: they have one instance and endpoint, and a stdio process follows one that closed."""
    found: dict[str, int] = {}
    known: dict[tuple[str, str | None], list[list[int | None]]] = {}  # run, its close
    for link in sorted(links.values(), key=lambda one: one.first):
        alike = known.setdefault((link.instance, link.endpoint), [])
        closed = link.closed[-1] if link.closed else None
        for one in alike:
            if transport != "stdio" or (one[1] is not None and one[1] < link.first):
                found[link.name] = one[0] or 0
                one[1] = closed
                break
        else:
            found[link.name] = len(found)
            if len(alike) < SERVERS:
                alike.append([found[link.name], closed])
    return found


def _framed(sse: Sse) -> bool:
    """Has the event of a stream more than the message that it carries?"""
    return sse.id is not UNSET or sse.retry is not UNSET or sse.event not in (UNSET, None, "", "message")


def body_of(raw: Any) -> Any:
    """The JSON value of a message's text."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _slowly(raw)


def _slowly(raw: Any) -> Any:
    """A body that msgspec refuses: lone surrogates, deep nesting. None where it is no JSON at all."""
    try:
        return jsontext.loads(bytes(raw).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
