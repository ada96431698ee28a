"""HTTP exchanges of a plain trace as columns: the rules of ``exchange.Exchange`` and ``exchange.assign`` on numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Struct, field

from mcplab import channels
from mcplab.formats.columns import Codes, Columns
from mcplab.frames.table import combined


class _Head(Struct, gc=False):
    """The headers that tables ask for."""

    session: str | None = field(default=None, name="mcp-session-id")
    version: str | None = field(default=None, name="mcp-protocol-version")
    last_event: str | None = field(default=None, name="last-event-id")
    type: str | None = field(default=None, name="content-type")
    host: str | None = None


_heads = msgspec.json.Decoder(_Head)


class Posts:
    """Exchanges, a place each in wire order, and whose each event is.

    ``at``: a message's exchange or -1; ``event``: an event's. ``initializes``: does an exchange begin with one?
    ``method``: its number in ``verbs``, ``channel``: in ``channels``. ``conn``: an event's connection, a number in
    ``conns``. ``header``: the ``MCP-Protocol-Version`` of an exchange's request. ``elsewhere``: was an initialize
    answered 202, as HTTP+SSE does?
    """

    def __init__(
        self, columns: Columns, at: np.ndarray, sent: np.ndarray, initialize: np.ndarray, listen: np.ndarray
    ) -> None:
        facts: list[Any] = list(columns.facts)
        self.http = len(facts) > 1
        self.conns = Codes()
        self.endpoints: dict[int, str] = {}  # connection -> host and path of its first exchange
        self._read(facts)
        peer = np.frombuffer(columns.peer, "int32")
        peers = [self.conns[name] for name in columns.peers]
        self.at = np.full(len(at), -1)
        self.event = np.full(0, -1)
        self.conn = np.array(peers)[peer]
        self.header: list[str | None] = []
        if self.http:
            self._gather(columns, at, peer)
            self._posted(at, sent, initialize, listen)
            self._assign(columns, peer)
            del self._first, self._fact
        del self._heads, self._paths  # nobody needs them any more, and the table needs room

    def _read(self, facts: list[Any]) -> None:
        """What each set of facts says: a place a set."""
        self._heads = [
            _heads.decode(fact[3]) if fact is not None and fact[3] is not UNSET else _Head() for fact in facts
        ]
        self.verbs: list[str | None] = [None]
        verbs = Codes({UNSET: 0})
        statuses = Codes({UNSET: 0})
        blank: Any = (UNSET, UNSET, UNSET, UNSET)
        plain = [blank if fact is None else fact for fact in facts]
        self._verb = np.array([verbs[fact[0]] for fact in plain])
        self.verbs += [verb.upper() for verb in list(verbs)[1:]]
        self._paths = [None if fact[1] is UNSET else fact[1] for fact in plain]
        self.status_code = np.array([statuses[fact[2]] for fact in plain])
        self.statuses: list[int | None] = [None, *list(statuses)[1:]]
        types: Codes = Codes({None: 0})
        self.type_code = np.array([types[head.type] for head in self._heads])
        self.types: list[str | None] = list(types)
        self._path = np.array([path is not None for path in self._paths])
        self._headed = np.array([fact[3] is not UNSET and b'"' in fact[3] for fact in plain])

    def _gather(self, columns: Columns, at: np.ndarray, peer: np.ndarray) -> None:
        """Events to exchanges, and the first of an exchange's events that say something."""
        key = np.frombuffer(columns.exchange, "int32")
        inside = np.flatnonzero(key)
        pairs = peer[inside].astype("int64") * len(columns.exchanges) + key[inside]
        _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype="int64")
        rank[np.argsort(first)] = np.arange(len(first))
        self.event = np.full(len(peer), -1)
        self.event[inside] = rank[place]
        self._count = len(first)
        self.at = self.event[at]
        fact = np.frombuffer(columns.fact, "int32")
        self._fact = fact
        self._first = self._earliest(self.event >= 0)
        said = self._earliest((self.event >= 0) & (self._verb[fact] != 0))
        self.method = np.where(said >= 0, self._verb[fact[said]], 0)
        back = (np.frombuffer(columns.dir, "u1") == ord("s")) | (self.status_code[fact] != 0)
        closes = np.zeros(len(peer), dtype=bool)
        closes[np.frombuffer(columns.closes, "int32")] = True
        self._answered = self._earliest(back & ~closes & (self.event >= 0)) >= 0
        headed = self._headed[fact] & (self.event >= 0)
        response, request = self._earliest(headed & back), self._earliest(headed & ~back)
        self._response = np.where(response >= 0, fact[response], 0)
        self._request = np.where(request >= 0, fact[request], 0)
        path = self._earliest(self._path[fact] & (self.event >= 0))
        self.place = np.where(path >= 0, fact[path], 0)

    def _earliest(self, which: np.ndarray) -> np.ndarray:
        """The first of these events in each exchange, or -1."""
        events = np.flatnonzero(which)[::-1]
        found = np.full(self._count, -1)
        found[self.event[events]] = events  # of several the last one written stays: the earliest
        return found

    def _posted(self, at: np.ndarray, sent: np.ndarray, initialize: np.ndarray, listen: np.ndarray) -> None:
        """What the first message that a client posts says the exchange is for."""
        rows = np.flatnonzero(sent & (self.at >= 0))[::-1]
        row = np.full(self._count, -1)
        row[self.at[rows]] = rows
        self.initializes = np.where(row >= 0, initialize[row], False)
        accepted = (self.status_code[self._fact] == self.statuses.index(202)) if 202 in self.statuses else []
        self.elsewhere = bool(self.initializes[self.event[np.flatnonzero(accepted)]].any())
        listens = np.where(row >= 0, listen[row], False)
        resumes = np.array([head.last_event is not None for head in self._heads])[self._request]
        ways, self.channel = combined(self.method, self.type_code[self._response], self._answered, listens, resumes)
        self.channels = [
            channels.http_channel(
                self.verbs[verb], self.types[kind], answered=bool(done), listens=bool(lists), resumes=bool(again)
            )
            for verb, kind, done, lists, again in ways
        ]

    def _assign(self, columns: Columns, peer: np.ndarray) -> None:
        """As ``exchange.assign``: sessions are connections; an event without an exchange is its peer's next one's."""
        heads, names = self._heads, list(columns.peers)
        codes: Codes = Codes({None: 0})
        session = np.array([codes[head.session] for head in heads])
        version = [head.version for head in heads]
        starts: dict[int, int] = {}
        conns = self.conns

        def new(at: int) -> int:
            starts[at] = starts.get(at, 0) + 1
            return conns[names[at] if starts[at] == 1 else f"{names[at]}.{starts[at]}"]

        owners = peer[self._first]
        asked, given = session[self._request], session[self._response]
        begins = self.initializes & (given != 0)
        named = np.where(begins, given, asked)  # the session that an exchange names, if any
        homes = np.array([conns[name] for name in names])[owners]
        # a session's connection is the one that began with it, else the first exchange that named it; where it began
        # only once, before it was named, that holds for all of its exchanges
        _, first, of = np.unique(named, return_index=True, return_inverse=True)
        opens = np.zeros(len(named), dtype=bool)
        opens[first] = True
        opens = (opens | begins) & (named != 0)
        if (begins & ~np.isin(np.arange(len(named)), first)).any():
            homes = np.array(self._homes(named, begins, owners, homes, new))
        else:
            made = np.zeros(len(first), dtype="int64")
            for number in np.flatnonzero(opens).tolist():
                made[of[number]] = new(int(owners[number]))
            homes = np.where(named != 0, made[of], homes)
        for home, number in zip(*(each.tolist() for each in np.unique(homes, return_index=True)), strict=True):
            path = self._paths[self.place[number]] or ""
            self.endpoints[home] = (heads[self._request[number]].host or "") + path.split("?", 1)[0]
        self.header = [version[each] for each in self._request.tolist()]
        inside = self.event >= 0
        self.conn = np.where(inside, homes[self.event], self.conn)
        others = np.flatnonzero(~inside)
        if not len(others):
            return
        mine: dict[int, list[int]] = {}
        for number, owner in enumerate(owners.tolist()):
            mine.setdefault(owner, []).append(number)
        for event in others.tolist():
            exchanges = mine.get(int(peer[event]))
            if exchanges:
                later = int(np.searchsorted(self._first[exchanges], event, side="right"))
                self.conn[event] = homes[exchanges[min(later, len(exchanges) - 1)]]

    @staticmethod
    def _homes(
        named: np.ndarray, begins: np.ndarray, owners: np.ndarray, homes: np.ndarray, new: Callable[[int], int]
    ) -> list[int]:
        """The connection of each exchange, one after the other."""
        sessions: dict[int, int] = {}
        found = homes.tolist()
        for number, (name, begun, owner) in enumerate(
            zip(named.tolist(), begins.tolist(), owners.tolist(), strict=True)
        ):
            if name and (begun or name not in sessions):
                sessions[name] = new(owner)
            if name:
                found[number] = sessions[name]
        return found
