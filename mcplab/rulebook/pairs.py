"""Ordinary exchanges of a big plain trace: a request of the client's, and its answer next to it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mcplab import pairing
from mcplab.frames.direct import REQUEST, RESPONSE
from mcplab.frames.sparse import Sparse
from mcplab.rulebook.engine import MEMO, SPELLED
from mcplab.rulebook.judging import legacy_revision
from mcplab.rulebook.plan import Plan

LOOKED_FOR: Final = ("_meta", '"capabilities"', '"task"')
"""Texts of which the engine itself takes note: with one of them a message is not ordinary."""

LOOKING_BACK: Final = ("notifications/cancelled", "notifications/progress")
SPECIAL: Final = ("initialize", "server/discover", "subscriptions/listen", "logging/setLevel")
_SAMPLE: Final = 2000
_OFTEN: Final = 0.05
_ROUNDS: Final = 20
_SHORT: Final = 2000


class Pairs:
    """Ordinary exchanges: a request of the client's and its answer.

    ``flags``: of each event, 1 where it belongs to one. ``at``: a message's event. ``alike``: a number for exchanges
    whose messages have the same members and hold the same of the texts that rules look for. ``texts``: of each message
    a number for its text (``numbers``: the same for numpy); ``repeated``: of each of these, whether several have it.
    ``ordinary``: of each connection, whether nothing in it looks back (``Session.ordinary``).
    """

    def __init__(self, wire: Sparse, plan: Plan) -> None:
        self._wire = wire
        walked = wire.walked
        self.at = np.asarray(walked.at)
        self.ordinary = self._ordinary()
        asked, answer, texts = self._ordinary_pairs(plan)
        flags = np.zeros(len(wire.events), dtype="u1")
        asked, answer = self._stretched(asked, answer, flags)
        self.flags = bytearray(flags.tobytes())
        self._grouped(asked, answer, texts)
        self.texts = _numbers(wire, np.flatnonzero(flags[self.at] == 0))
        self.numbers = np.frombuffer(self.texts, "int64")
        self.repeated = (np.bincount(self.numbers) > 1).tobytes()

    def _ordinary(self) -> np.ndarray:
        wire, walked = self._wire, self._wire.walked
        shells, reply = walked.shells, walked.walk.reply
        count = len(walked.posts.conns)
        odd = np.zeros(count, dtype=bool)
        answers = np.flatnonzero(reply >= 0)
        odd[walked.conn[answers[wire.first_answer[reply[answers]] != answers]]] = True
        back = np.isin(shells.method, [code for name in LOOKING_BACK if (code := shells.methods.get(name, -1)) > 0])
        odd[walked.conn[back]] = True
        asked = np.flatnonzero(shells.kind == REQUEST)
        known: dict[Any, int] = {}
        norm = [known.setdefault(pairing.same(str(text, "utf-8", "replace")), len(known)) for text in shells.ids]
        keys = (walked.conn[asked] * 2 + walked.sent[asked]) * len(known) + np.array(norm)[shells.id[asked]]
        order = np.argsort(keys, kind="stable")
        twice = keys[order][1:] == keys[order][:-1]
        odd[walked.conn[asked[order[1:][twice]]]] = True
        return ~odd

    def _ordinary_pairs(self, plan: Plan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        wire, walked = self._wire, self._wire.walked
        shells, posts, at = walked.shells, walked.posts, self.at
        asked = np.flatnonzero((shells.kind == REQUEST) & walked.sent & (wire.first_answer >= 0))
        answer = wire.first_answer[asked]
        legacy = np.array([era == "legacy" for era, _ in walked.walk.said])[walked.walk.saying]
        # an id that is a string or a whole number
        whole = np.array([bool(re.fullmatch(rb'".*"|-?\d+', text, re.DOTALL)) for text in shells.ids])[shells.id]
        names = list(shells.methods)
        special = np.array([not isinstance(n, str) or n in SPECIAL or n.startswith("tasks/") for n in names])
        framed = np.zeros(len(wire.events), dtype=bool)
        framed[np.frombuffer(walked.columns.framed, "int32")] = True
        fine = (shells.plain != 0) & legacy & whole & ~framed[at]
        good = fine[asked] & fine[answer] & (shells.kind[answer] == RESPONSE) & (answer > asked)
        good &= (shells.id[asked] == shells.id[answer]) & ~special[shells.method[asked]]
        good &= self.ordinary[walked.conn[asked]]
        if posts.http:
            place = posts.event[at[asked]]
            good &= (place >= 0) & (place == posts.event[at[answer]]) & (wire.lengths()[place] == 2)
        asked, answer = asked[good], answer[good]
        texts, odd = _texts(wire, plan)
        good = ~odd[asked] & ~odd[answer]
        asked, answer = asked[good], answer[good]
        code = np.zeros(len(asked), dtype="int64")
        for values in (shells.method[asked], walked.walk.saying[asked], texts[asked], texts[answer]):
            code = _with(code, values)
        first = np.unique(code, return_index=True)[1].tolist()
        fine = np.array([self._countable(plan, int(asked[each]), int(answer[each])) for each in first], dtype=bool)
        good = fine[code] if len(first) else np.zeros(0, dtype=bool)
        return asked[good], answer[good], texts

    def _countable(self, plan: Plan, asked: int, answer: int) -> bool:
        """Do all rules that look at such an exchange say what they read?"""
        wire = self._wire
        revision, method = legacy_revision(wire.version[asked]), wire.method[asked]
        for row, sender, kind in ((asked, "client", "request"), (answer, "server", "result")):
            entries = plan.checks(revision, sender, kind, method)
            text = wire.texts[row]
            impure = (each for each in entries.needing if not each.pure)
            if entries.rest or entries.across or any(each.search(text) is not None for each in impure):
                return False
        return True

    def _stretched(self, asked: np.ndarray, answer: np.ndarray, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Stretches between other events of a connection; an exchange that is no part of one is not ordinary."""
        at, conn = self.at, self._wire.walked.posts.conn
        order = np.argsort(conn, kind="stable")
        begins = np.zeros(len(order), dtype=bool)
        begins[1:] = conn[order][1:] != conn[order][:-1]
        self._stretch = np.zeros(len(order), dtype="int64")
        for turn in range(_ROUNDS):
            flags[:] = 0
            flags[at[asked]] = flags[at[answer]] = 1
            self._stretch[order] = np.cumsum(begins | (flags[order] == 0))
            inside = self._stretch[at[asked]] == self._stretch[at[answer]]
            if inside.all():
                break
            if turn == _ROUNDS - 1:
                inside &= False
                flags[:] = 0
            asked, answer = asked[inside], answer[inside]
        return asked, answer

    def _grouped(self, asked: np.ndarray, answer: np.ndarray, texts: np.ndarray) -> None:
        """Exchanges sorted by stretch and by what they have in common."""
        walked = self._wire.walked
        shells, at = walked.shells, self.at
        string = np.array([text[:1] == b'"' for text in shells.ids])[shells.id]
        code = np.zeros(len(asked), dtype="int64")
        for values in (shells.method[asked], shells.params[asked], string[asked], texts[asked], texts[answer]):
            code = _with(code, values)
        self.alike = np.zeros(len(self._wire.rows), dtype="int32")
        self.alike[asked] = code
        if walked.posts.http:
            fact = np.frombuffer(walked.columns.fact, "int32")
            code = _with(_with(code, fact[at[asked]]), fact[at[answer]])
        stretch = self._stretch[at[asked]]
        order = np.lexsort((code, stretch))
        self._asked, self._answer = asked[order], answer[order]
        code, stretch = code[order], stretch[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (code[1:] != code[:-1]) | (stretch[1:] != stretch[:-1])
        starts = np.flatnonzero(new)
        self._bounds = [*starts.tolist(), len(order)]
        own = stretch[starts]
        first = np.ones(len(own), dtype=bool)
        first[1:] = own[1:] != own[:-1]
        places = np.flatnonzero(first)
        self._places = dict(zip(own[places].tolist(), places.tolist(), strict=True))
        self._own = own

    def groups(self, event: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """(requests, answers) that have all in common, of the stretch to which an event belongs."""
        stretch = int(self._stretch[event])
        place = self._places[stretch]
        found = []
        while place < len(self._own) and self._own[place] == stretch:
            part = slice(self._bounds[place], self._bounds[place + 1])
            found.append((self._asked[part], self._answer[part]))
            place += 1
        return found


def _with(code: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A number for each combination of two numbers."""
    values = values.astype("int64")
    return np.unique(code * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1]


def _texts(wire: Sparse, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Of each message a number for which of the rules' texts it holds; and whether it holds what makes it odd."""
    count = len(wire.rows)
    words = sorted({text for rule in plan.rules for texts in (*rule.contains.values(), *rule.unless.values())
                    for text in texts} - set(LOOKED_FOR))  # fmt: skip
    step = max(1, count // _SAMPLE)
    sample = [wire.texts[row] for row in range(0, count, step)]
    often = [word for word in words if sum(word.encode() in text for text in sample) > _OFTEN * len(sample)]
    rare = [word for word in words if word not in often]
    found = np.zeros(count, dtype="int64")
    for word in often:
        found = found * 2 + _holding(wire, word.encode())
    odd = np.zeros(count, dtype=bool)
    held = np.zeros(count, dtype="int64")
    known: dict[tuple[bool, ...], int] = {}
    looked_for, sought = ([word.encode() for word in each] for each in (LOOKED_FOR, rare))
    pattern = "|".join([*map(re.escape, (*LOOKED_FOR, *rare)), SPELLED.pattern.decode()])
    met: dict[bytes, tuple[bool, int]] = {}  # handshakes come again word for word
    for row in np.flatnonzero(_matches(wire, pattern)).tolist():
        text = wire.texts[row]
        seen = met.get(text)
        if seen is None:
            own = any(word in text for word in looked_for) or SPELLED.search(text) is not None
            seen = own, known.setdefault(tuple(word in text for word in sought), len(known) + 1)
            if len(text) <= _SHORT and len(met) < MEMO:
                met[text] = seen
        odd[row], held[row] = seen
    return _with(found, held), odd


def _holding(wire: Sparse, word: bytes) -> np.ndarray:
    """Which messages hold a text: quicker than a pattern where many do."""
    columns = wire.walked.columns
    ends, start, places = np.cumsum(np.asarray(columns.sizes, dtype="int64")), 0, array("q")
    for block in columns.blocks:
        at = block.find(word)
        while at >= 0:
            places.append(start + at)
            at = block.find(word, at + len(word))
        start += len(block)
    rows = np.searchsorted(ends, np.frombuffer(places, "int64"), side="right")
    found = np.zeros(len(ends), dtype=bool)
    # a text that lies across two messages is in neither
    found[rows[np.frombuffer(places, "int64") + len(word) <= ends[rows]]] = True
    return found


def _numbers(wire: Sparse, others: np.ndarray) -> array[int]:
    """Numbers of the messages' texts: equal numbers, equal texts. Equal texts far apart may have two.

    ``others``: messages that are in no ordinary exchange. They are looked at one by one: equal ones share one.
    """
    found = array("q")
    top = 0
    for texts in _arrays(wire):
        coded = texts.dictionary_encode()
        found.frombytes((coded.indices.to_numpy().astype("int64") + top).tobytes())
        top += len(coded.dictionary)
    known: dict[bytes, int] = {}
    for row in others.tolist():
        text = wire.texts[row]
        if len(text) <= _SHORT and (len(known) < MEMO or text in known):
            found[row] = known.setdefault(text, found[row])
    return found


def _matches(wire: Sparse, pattern: str) -> np.ndarray:
    """Which messages match a pattern."""
    parts: list[np.ndarray] = []
    for texts in _arrays(wire):
        parts.append(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False))
    return np.concatenate(parts)


def _arrays(wire: Sparse) -> Iterator[pa.Array]:
    """The messages' texts, a block at a time, without a copy."""
    columns = wire.walked.columns
    lengths, start = np.asarray(columns.sizes, dtype="int64"), 0
    counts = [0] * len(columns.blocks)
    for block, _, _, count in columns.pieces:
        counts[block] += count
    for data, count in zip(columns.blocks, counts, strict=True):
        ends = np.zeros(count + 1, dtype="int64")
        np.cumsum(lengths[start : start + count], out=ends[1:])
        start += count
        yield pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
