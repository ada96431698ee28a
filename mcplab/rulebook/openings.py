"""Handshakes that are word for word like one that was judged before.

A busy gateway opens thousands of connections with the same texts: ``initialize``, its result, ``initialized``, one
right after the other. The first of its kind is judged as ever, and what it led to stands for all others, in instances
of which the same is known. A handshake of which some check has kept anything, or whose breach names another message or
the session, stands for itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mcplab.frames.direct import INITIALIZE, NOTIFICATION, REQUEST, RESPONSE
from mcplab.frames.sparse import Sparse
from mcplab.model import UNKNOWN
from mcplab.rulebook.board import Board, Found
from mcplab.rulebook.engine import MEMO, Run
from mcplab.rulebook.facts import Session
from mcplab.rulebook.pairs import Pairs
from mcplab.spec import REVISIONS

LENGTH = 3  # events of a handshake
_FEW = 4  # things kept of an instance that are worth a comparison
_MARKS = (
    "opened", "began", "closed", "offered", "negotiated", "phase", "client", "server", "path", "spoke_modern",
    "modern_version", "state", "modern_state", "events",
)  # fmt: skip
"""What of a session is the same after each of these handshakes."""


class Led(NamedTuple):
    """What a handshake led to: the session's marks; by revision what is counted in one go (``Plan.bulks``) and breaches
    (the event among the three, what was found there)."""

    marks: tuple[Any, ...]
    counts: tuple[tuple[str | None, int, tuple[tuple[int, Found], ...]], ...]


class Openings:
    """The handshakes of a capture. ``starts``: of each event, whether one begins with it."""

    def __init__(self, wire: Sparse, pairs: Pairs) -> None:
        self._wire = wire
        self._pairs = pairs
        self._led: dict[Any, Led | None] = {}
        self.starts = self._find()

    def _find(self) -> bytes:
        walked = self._wire.walked
        shells, posts = walked.shells, walked.posts
        events, count = len(self._wire.events), len(walked.at)
        starts = np.zeros(events, dtype=bool)
        if count < LENGTH:
            return starts.tobytes()
        conn, first = np.unique(posts.conn, return_index=True)
        begins = np.zeros(events, dtype=bool)
        begins[first[np.bincount(posts.conn)[conn] >= LENGTH]] = True
        texts = np.frombuffer(self._pairs.texts, "int64")
        fine = np.frombuffer(self._pairs.repeated, "u1")[texts] != 0
        framed = np.zeros(events, dtype=bool)
        framed[np.frombuffer(walked.columns.framed, "int32")] = True
        fine &= (shells.plain != 0) & ~framed[walked.at]
        one, two, three = (slice(n, count - LENGTH + 1 + n) for n in range(LENGTH))
        at, reply, kind = np.asarray(walked.at), walked.walk.reply, shells.kind
        found = begins[at[one]] & (at[two] == at[one] + 1) & (at[three] == at[one] + 2)
        found &= (posts.conn[at[one]] == posts.conn[at[two]]) & (posts.conn[at[one]] == posts.conn[at[three]])
        found &= fine[one] & fine[two] & fine[three] & walked.sent[one] & ~walked.sent[two] & walked.sent[three]
        found &= (kind[one] == REQUEST) & (shells.method[one] == INITIALIZE)
        found &= (kind[two] == RESPONSE) & (reply[two] == np.arange(count - LENGTH + 1))
        done = shells.methods.get("notifications/initialized", -1)
        found &= (kind[three] == NOTIFICATION) & (shells.method[three] == done)
        if posts.http:
            place, lengths = posts.event, self._wire.lengths()
            a, b, c = place[at[one]], place[at[two]], place[at[three]]
            found &= (a >= 0) & (a == b) & (c >= 0) & (lengths[a] == 2) & (lengths[c] == 1)
        starts[at[one][found]] = True
        return starts.tobytes()

    def take(self, run: Run, number: int) -> bool:
        """Judge the handshake that begins here, all of it; False where it has to be looked at event by event."""
        session = run.session(number)
        instance = session.instance
        fresh = not instance.modern and instance.discovered is UNKNOWN and not session.events
        if not fresh or session.first_modern is not None or len(instance.memory) > _FEW:
            return False
        memory = repr(instance.memory)
        if " object at 0x" in memory:
            return False  # whether it is the same cannot be told
        key = self._key(run, session, number, memory)
        if key not in self._led:
            if len(self._led) >= MEMO:
                self._led.clear()
            self._led[key] = self._watch(run, session, number)
            return True
        led = self._led[key]
        if led is None:
            return False
        wire = self._wire
        for name, value in zip(_MARKS, led.marks, strict=True):
            setattr(session, name, value)
        seqs, row = wire.walked.columns.seq, wire.first_row[number]
        session.initialize, session.initialized = seqs[number], seqs[number + 2]
        if wire.walked.posts.http:
            session.session_id = self._session_id(number)
        session.last = {"client": ("notification", seqs[number + 2]), "server": ("result", seqs[number + 1])}
        session.answered = {"server": row}
        for revision, bulk, breaches in led.counts:
            board = run.board(instance.name, revision)
            board.bulks[bulk] = board.bulks.get(bulk, 0) + 1
            for event, found in breaches:
                board.broken.append(found._replace(seq=seqs[number + event], conn=session.name))
        return True

    def _session_id(self, number: int) -> str | None:
        return self._wire.headers(self._wire.walked.columns.fact[number + 1]).get("mcp-session-id")

    def _key(self, run: Run, session: Session, number: int, memory: str) -> Any:
        """Texts, and what counts of the HTTP exchanges."""
        wire = self._wire
        row = wire.first_row[number]
        key: list[Any] = [*self._pairs.texts[row : row + LENGTH], session.ordinary, memory]
        if wire.walked.posts.http:
            own, columns = self._session_id(number), wire.walked.columns
            key.append(own is None)
            for event in range(number, number + LENGTH):
                fact = columns.fact[event]
                key += [(columns.facts[fact] or ())[:3], run.keys.headers(wire.headers(fact), own)]
        return tuple(key)

    def _watch(self, run: Run, session: Session, number: int) -> Led | None:
        """Look at it event by event, and at what that led to."""
        name, memory = session.instance.name, repr(session.instance.memory)
        before = {said: (_counted(board), len(board.broken)) for said, board in _boards(run, name)}
        for event in range(number, number + LENGTH):
            Run._event(run, event)
        kept = session.memory or session.open or session.listens or session.instance.modern
        if kept or memory != repr(session.instance.memory):
            return None
        if session.initialized is None or session.phase != "answered":
            return None
        seqs = self._wire.walked.columns.seq[number : number + LENGTH]
        own = session.session_id
        counts = []
        for said, board in _boards(run, name):
            old, told = before.get(said, ({}, 0))
            breaches = board.broken[told:]
            if any(each.said.related or each.said.once or each.seq not in seqs for each in breaches):
                return None
            if own is not None and any(own in each.said.detail for each in breaches):
                return None
            more: dict[str, list[int]] = {"kept": [], "unknown": []}
            for (what, number), times in _counted(board).items():
                times -= old.get((what, number), 0)
                kept, unknown = run.plan.bulks[number] if what == "bulks" else ((number,), ())
                more["unknown" if what == "unknown" else "kept"].extend(kept * times)
                more["unknown"].extend(unknown * times)
            bulk = run.plan.bulk(tuple(more["kept"]), tuple(more["unknown"]))
            counts.append((said, bulk, tuple((seqs.index(each.seq), each) for each in breaches)))
        return Led(tuple(getattr(session, mark) for mark in _MARKS), tuple(counts))


def _boards(run: Run, name: str) -> list[tuple[str | None, Board]]:
    """Of an instance, by revision. A capture may hold thousands of instances."""
    found = [(said, run.boards.get((name, said))) for said in (*REVISIONS, None)]
    return [(said, board) for said, board in found if board is not None]


def _counted(board: Board) -> dict[tuple[str, int], int]:
    """All counts of a board."""
    found = {("kept", rule): times for rule, times in enumerate(board.kept) if times}
    found |= {("unknown", rule): times for rule, times in enumerate(board.unknown) if times}
    return found | {("bulks", bulk): times for bulk, times in board.bulks.items()}
