"""Ordinary exchanges of a big plain trace, judged in one go.

Between two events that change what is known of a connection all ordinary exchanges (a request, and its answer next to
it) that look alike have one outcome: one of each kind is judged as ever, the others are counted. A check that depends
on what a message holds is still called for each. Whatever is not ordinary goes the usual way, and so does every message
for which some rule does not say what it reads (docs/rules.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mcplab.frames.links import Link
from mcplab.frames.sparse import Sparse
from mcplab.rulebook.board import Board, Many
from mcplab.rulebook.engine import MEMO, SPELLED, Run, body_of
from mcplab.rulebook.facts import Fact, Session
from mcplab.rulebook.judging import legacy_revision
from mcplab.rulebook.openings import Openings
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Broken, Outcome
from mcplab.rulebook.pairs import Pairs
from mcplab.rulebook.plan import Entries, Entry, Group, Plan


class Kind(NamedTuple):
    """Exchanges that have one outcome: rules kept and unknown once each, and checks that look at each message.

    ``said``: what these said of messages (``Swift._spoken``), by the number of their text, where they do not look at
    the request too.
    """

    kept: tuple[int, ...]
    unknown: tuple[int, ...]
    requests: tuple[Entry, ...]
    answers: tuple[Entry, ...]
    asking: bool  # one of these checks looks at the request of an answer
    said: dict[int, int]


class Swift(Run):
    """The pass over a walk on numbers, stretch by stretch where it can."""

    def __init__(self, wire: Sparse, links: dict[str, Link], plan: Plan, revision: str | None = None) -> None:
        self._wire = wire
        self._kinds: dict[Any, Kind | None] = {}
        self._known: dict[Any, tuple[Any, int, Any]] = {}
        self._spoken: dict[tuple[tuple[int, Outcome], ...], int] = {}  # outcomes -> their number
        self._pairs = Pairs(wire, plan)
        # a revision that was given stands for both eras: then each message is looked at
        self._flags = self._pairs.flags if revision is None else bytearray(len(wire.events))
        self._openings = Openings(wire, self._pairs) if revision is None else None
        super().__init__(wire, links, plan, revision)  # type: ignore[arg-type]

    def _walk(self) -> None:
        names = list(self._wire.walked.posts.conns)
        self.ordinary = frozenset(names[code] for code in np.flatnonzero(self._pairs.ordinary).tolist())
        super()._walk()

    def _todo(self) -> Iterable[int]:
        flags = self._flags  # change on the way
        return (number for number in super()._todo() if flags[number] != 2)

    def _settle(self) -> None:
        super()._settle()
        columns, posts = self._wire.walked.columns, self._wire.walked.posts
        seqs, names = np.frombuffer(columns.seq, "int64"), np.array([*posts.conns, ""], dtype=object)
        spoken = list(self._spoken)
        for board in self.boards.values():
            for (number, sender), parts in board.alike.items():
                events = np.concatenate(parts)
                for rule, each in spoken[number]:
                    if each is KEPT:
                        board.kept[rule] += len(events)
                    elif each is UNKNOWN:
                        board.unknown[rule] += len(events)
                    elif isinstance(each, Broken):
                        board.many.append(Many(rule, each, sender, seqs[events], names[posts.conn[events]]))
            board.alike.clear()

    def _event(self, number: int) -> None:
        flag = self._flags[number]
        if flag == 1:
            self._stretch(number)
        elif flag == 0:
            openings = self._openings
            if openings is None or not openings.starts[number] or not openings.take(self, number):
                super()._event(number)
            else:
                self._flags[number + 1] = self._flags[number + 2] = 2

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        """As ever, but a text that comes again is not looked at again by checks that keep nothing of it."""
        row = fact.row
        text = self._pairs.texts[row] if row >= 0 else -1
        if fact.revision is None or (row >= 0 and not self._pairs.repeated[text]):
            return super()._judge(fact, kind, sender, method)
        entries = self.plan.checks(fact.revision, sender, kind, method)
        key = self.keys.key(entries.reads, fact)
        if key is None or (row < 0 and entries.needing):
            return super()._judge(fact, kind, sender, method)
        board = self.board(fact.session.instance.name, fact.revision)
        fixed: tuple[Group, ...] = entries.groups
        for group in fixed:
            if group.changing and self.keys.key(group.changing, fact) is None:
                self._each(fact, board, group.entries)
                fixed = tuple(each for each in fixed if each is not group)
        known = self._known.get((entries.number, len(fixed), text, key))
        if known is None or known[0] != fixed:
            if len(self._known) >= MEMO:
                self._known.clear()
            self._known[entries.number, len(fixed), text, key] = self._learnt(fact, board, entries, fixed)
        else:
            board.bulks[known[1]] = board.bulks.get(known[1], 0) + 1
            self._each(fact, board, known[2])
        if entries.rest:
            self._each(fact, board, entries.rest)
        self._across(fact, entries)
        return None

    def _learnt(self, fact: Fact, board: Board, entries: Entries, fixed: tuple[Group, ...]) -> tuple[Any, int, Any]:
        """What these groups say, noted: (groups, their counts, checks to be called each time)."""
        raw = b"" if fact.raw is None else bytes(fact.raw)
        hidden = entries.raw and (not raw or SPELLED.search(raw) is not None)
        pure = [entry for group in fixed for entry in group.entries]
        each: list[Entry] = []
        for needing in entries.needing:
            if hidden or needing.search(raw) is not None:
                (pure if needing.pure else each).extend(needing.entries)
        self._each(fact, board, tuple(each))
        kept: list[int] = []
        unknown: list[int] = []
        for rule, check in pure:
            said = check(fact)
            if said is KEPT:
                kept.append(rule)
            elif said is UNKNOWN:
                unknown.append(rule)
            elif said is not None:
                each.append((rule, check))
                self._note(board, rule, said, fact)
        bulk = self.plan.bulk(tuple(kept), tuple(unknown))
        board.bulks[bulk] = board.bulks.get(bulk, 0) + 1
        return fixed, bulk, tuple(each)

    def _stretch(self, number: int) -> None:
        """At the first exchange of a stretch: count all of it, or leave its events to be looked at one by one."""
        session = self.session(number)
        pairs = self._pairs
        groups = pairs.groups(number)
        done = self._settled(session, groups)
        flags = np.frombuffer(self._flags, "u1")
        for asked, answers in groups:
            flags[pairs.at[asked]] = flags[pairs.at[answers]] = 2 if done else 0
        if not done:
            super()._event(number)

    def _settled(self, session: Session, groups: list[tuple[np.ndarray, np.ndarray]]) -> bool:
        http = self._wire.walked.posts.http
        if session.phase != "answered" or session.initialized is None or (http and session.path is None):
            return False
        if "sessions.over" in session.memory or "sessions.dead" in session.instance.memory:
            return False
        state = self.keys.state(session, "legacy")
        found: list[tuple[Kind, np.ndarray, np.ndarray]] = []
        for asked, answers in groups:
            key = self._key(session, state, int(asked[0]), int(answers[0]))
            if key not in self._kinds:
                self._kinds[key] = self._look(session, int(asked[0]), int(answers[0]))
            kind = self._kinds[key]
            if kind is None:
                return False
            found.append((kind, asked, answers))
        seq, at = self._wire.walked.columns.seq, self._pairs.at
        for kind, asked, answers in found:
            self._count(session, kind, asked, answers)
        last, back = max(int(a[-1]) for a, _ in groups), max(int(b[-1]) for _, b in groups)
        session.last["client"] = "request", seq[at[last]]
        session.last["server"] = "result", seq[at[back]]
        session.answered["server"] = max(last, session.answered.get("server", -1))
        session.events += 2 * sum(len(asked) for asked, _ in groups)
        return True

    def _key(self, session: Session, state: int, asked: int, answer: int) -> Any:
        wire, pairs = self._wire, self._pairs
        columns = wire.walked.columns
        lists = "lists" in session.memory
        alike = int(pairs.alike[asked])
        if not wire.walked.posts.http:
            return state, lists, alike
        one, two = columns.fact[pairs.at[asked]], columns.fact[pairs.at[answer]]
        facts, ident = columns.facts, session.session_id
        mine, theirs = facts[one], facts[two]
        return (
            state, lists, alike, mine[0], mine[1], mine[2], theirs[0], theirs[1], theirs[2],
            self.keys.headers(wire.headers(one), ident), self.keys.headers(wire.headers(two), ident),
        )  # fmt: skip

    def _look(self, session: Session, asked: int, answer: int) -> Kind | None:
        """Judge one exchange. None where a check may keep something of it, or may depend on more than is known."""
        wire = self._wire
        at = self._pairs.at
        place = int(wire.walked.posts.event[at[asked]]) if wire.walked.posts.http else -1
        post = None
        if place >= 0:
            post = self.post(wire.exchange(place), session, wire.walked.columns.seq[at[asked]])
            if post.exchange.streams or post.exchange.method != "POST":
                return None
        seen = _Seen(self)
        request = self.fact(asked, session, post, None)
        if request.era != "legacy" or request.revision != legacy_revision(session.negotiated, session.offered):
            return None
        if post is not None:
            self.carry(post, request)
        seen.look(request, "client", request.kind, request.method)
        if post is not None:
            seen.look(self.other("http-request", "client", session, post, int(at[asked])), "", "http-request", None)
        result = self.fact(answer, session, post, request)
        if post is not None:
            self.carry(post, result)
        seen.look(result, "server", result.kind, result.method)
        if post is not None:
            seen.look(self.other("http-response", "server", session, post, int(at[answer])), "", "http-response", None)
        return seen.kind()

    def _count(self, session: Session, kind: Kind, asked: np.ndarray, answers: np.ndarray) -> None:
        revision = legacy_revision(session.negotiated, session.offered)
        board = self.board(session.instance.name, revision)
        times = len(asked)
        for rule in kind.kept:
            board.kept[rule] += times
        for rule in kind.unknown:
            board.unknown[rule] += times
        if kind.requests:
            self._each_of(session, kind, board, asked, asked, kind.requests)
        if kind.answers:
            self._each_of(session, kind, board, asked, answers, kind.answers)

    def _each_of(
        self, session: Session, kind: Kind, board: Board, asked: np.ndarray, rows: np.ndarray, checks: tuple[Entry, ...]
    ) -> None:
        """Call checks for each message. One whose text was met before has the same outcome."""
        said, at = kind.said, self._pairs.at
        sender = "client" if rows is asked else "server"
        texts = self._pairs.numbers[rows].tolist()
        if not kind.asking:
            met = list(map(said.get, texts))
            if met[0] is not None and met.count(met[0]) == len(met):
                board.alike.setdefault((met[0], sender), []).append(at[rows])
                return
        request = fact = None
        alike: dict[int, list[int]] = {}
        for one, row, text in zip(asked.tolist(), rows.tolist(), texts, strict=True):
            number = None if kind.asking else said.get(text)
            if number is None:
                if fact is None or request is None:
                    request, fact = self._examples(session, one, row)
                self._set(request, one, kind.asking)
                if request.post is not None:
                    request.post.seq = request.seq
                self._set(fact, row, True)
                outcomes = self._outcomes(fact, checks)
                broken = [each for _, each in outcomes if isinstance(each, Broken)]
                own = any(each.related or each.seq is not None or each.once for each in broken)
                if own or (len(self._spoken) >= MEMO and outcomes not in self._spoken):
                    for rule, each in outcomes:
                        self._note(board, rule, each, fact)
                    continue
                number = self._spoken.setdefault(outcomes, len(self._spoken))
                if not kind.asking:
                    if len(said) >= MEMO:
                        said.clear()
                    said[text] = number
            alike.setdefault(number, []).append(row)
        for number, found in alike.items():
            board.alike.setdefault((number, sender), []).append(at[found])

    @staticmethod
    def _outcomes(fact: Fact, checks: tuple[Entry, ...]) -> tuple[tuple[int, Outcome], ...]:
        found: list[tuple[int, Outcome]] = []
        for rule, check in checks:
            said = check(fact)
            found += [(rule, each) for each in (said if isinstance(said, list) else (said,)) if each is not None]
        return tuple(found)

    def _examples(self, session: Session, asked: int, row: int) -> tuple[Fact, Fact]:
        """A request, and itself or its answer, to be filled with one message after the other."""
        wire, post = self._wire, None
        if wire.walked.posts.http:
            at = self._pairs.at[asked]
            post = self.post(wire.exchange(int(wire.walked.posts.event[at])), session, wire.walked.columns.seq[at])
        request = self.fact(asked, session, post, None)
        return request, request if asked == row else self.fact(row, session, post, request)

    def _set(self, fact: Fact, row: int, whole: bool) -> None:
        """Let a fact be about another message of its kind; ``whole``: with what it holds."""
        wire = self._wire
        fact.row = row
        fact.seq = wire.walked.columns.seq[self._pairs.at[row]]
        if whole:
            fact.id = wire.id[row]
            fact.raw = raw = wire.texts[row]
            fact.hold(body_of(raw))


class _Seen:
    """What the checks say of one exchange, and which of them have to look at each."""

    def __init__(self, run: Swift) -> None:
        self._run = run
        self._kept: list[int] = []
        self._unknown: list[int] = []
        self._each: dict[str, list[Entry]] = {"request": [], "result": []}
        self._asking = False
        self._pure = True

    def look(self, fact: Fact, sender: str, kind: str, method: str | None) -> None:
        """Take an event in."""
        run = self._run
        entries = run.plan.checks(fact.revision or "", sender, kind, method)
        self._pure = self._pure and not entries.rest and not entries.across
        raw = b"" if fact.raw is None else bytes(fact.raw)
        hidden = entries.raw and (not raw or SPELLED.search(raw) is not None)
        for group in entries.groups:
            if "lists" in group.reads and "lists" in fact.session.memory and not (method or "").endswith("/list"):
                self._asking = True
                self._look_at_each(group.entries, kind)
                continue
            if run.keys.key(group.reads, fact) is None:
                self._pure = False
                return
            alike, each = group.parted(group.mask(raw, hidden))
            self._look_at_each(each, kind)
            for entry in alike:
                self._judge(entry[0], entry[1](fact))
        for needing in entries.needing:
            if hidden or needing.search(raw) is not None:
                self._pure = self._pure and needing.pure
                self._look_at_each(needing.entries, kind)

    def _judge(self, rule: int, said: Outcome) -> None:
        if said is KEPT:
            self._kept.append(rule)
        elif said is UNKNOWN:
            self._unknown.append(rule)
        elif said is not None:
            self._pure = False  # a breach names its message, and may name others

    def _look_at_each(self, entries: Iterable[Entry], kind: str) -> None:
        if kind in self._each:
            self._each[kind].extend(entries)
        elif tuple(entries):
            self._pure = False

    def kind(self) -> Kind | None:
        if not self._pure:
            return None
        each = self._each
        return Kind(
            tuple(self._kept), tuple(self._unknown), tuple(each["request"]), tuple(each["result"]), self._asking, {}
        )
