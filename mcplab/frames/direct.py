"""The table ``messages`` of a big plain trace, straight from its columns.

The same walk as ``wire.Wire`` makes, on small numbers in place of objects, for captures in which nothing is odd: each
message is one object with a direction, and on HTTP each belongs to an exchange. For anything else the answer is None
and the walk over the events has to do it. tests/test_direct.py holds both against each other.
"""

from __future__ import annotations

import gc
import io
from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from msgspec import UNSET, Raw, Struct, field

from mcplab import channels, envelope
from mcplab.envelope import Opt, Result, Text
from mcplab.formats.columns import MANY, Codes, Columns, known, numbered
from mcplab.frames.links import Link, client_of, instances
from mcplab.frames.posts import Posts
from mcplab.frames.table import blocks, build, coded, combined, constant, pick, stamps, times
from mcplab.frames.wire import State, asked, begun, in_force, orphan
from mcplab.model import NO_TIME, TRANSPORTS, Record
from mcplab.pairing import Pairing

KINDS = ("request", "notification", "response", "error", "invalid")
REQUEST, NOTIFICATION, RESPONSE, ERROR, INVALID = range(5)
INITIALIZE, PING = 1, 2  # codes of methods


class _Inside(Struct, gc=False):
    """What the walk asks of ``params``."""

    meta: Text = field(default=UNSET, name="_meta")
    version: Text = field(default=UNSET, name="protocolVersion")
    client: Text = field(default=UNSET, name="clientInfo")


class _Shell(Struct, gc=False):
    """As ``envelope.Envelope``, with ``params`` looked into."""

    method: str | Opt = UNSET
    id: Text = UNSET
    params: _Inside | Opt = UNSET
    result: Text = UNSET
    error: Text = UNSET


class _Object(Struct, gc=False):
    """Any object."""


class _Plain(_Shell, gc=False, forbid_unknown_fields=True, kw_only=True):
    """A message with the members that the protocol knows and nothing else."""

    jsonrpc: Literal["2.0"]
    result: _Object | Opt = UNSET  # type: ignore[assignment]


_shells = msgspec.json.Decoder(_Shell)
_plain = msgspec.json.Decoder(_Plain)


class Shells:
    """The outsides of all messages: a place a message. ``plain``: has it all members that it needs and no other?
    ``params``: are there any?"""

    def __init__(self, columns: Columns) -> None:
        self.methods = Codes({UNSET: 0, "initialize": INITIALIZE, "ping": PING})
        self.ids = Codes({b"": 0})
        method, ident = array("i"), array("i")
        names, waiting = io.BytesIO(), 0  # ids, a line each, not yet numbers
        self.inside: dict[int, _Inside] = {}
        result, error = bytearray(), bytearray()
        blocks, number = list(map(memoryview, columns.blocks)), 0
        plain, given = bytearray(), bytearray()
        for block, start, end, count in columns.pieces:
            try:
                made: list[Any] = _plain.decode_lines(blocks[block][start:end])
                plain += b"\1" * count
            except msgspec.DecodeError:
                made = _shells.decode_lines(blocks[block][start:end])
                plain += bytes(count)
            if len(made) != count:
                raise msgspec.DecodeError("not one object a message")
            method.extend(array("i", list(map(self.methods.__getitem__, [shell.method for shell in made]))))
            names.write(b"\n".join([b"" if (raw := shell.id) is UNSET else raw for shell in made]))
            names.write(b"\n")
            waiting += count
            if waiting >= MANY or number + count == len(columns.at):
                words, where = numbered(names.getvalue())
                if len(where) != waiting:
                    raise msgspec.DecodeError("a line break in an id")
                ident.frombytes(known(words, where, self.ids))
                names, waiting = io.BytesIO(), 0
            result += bytes([shell.result is not UNSET for shell in made])
            errors = [shell.error for shell in made]
            error += bytes(count) if errors.count(UNSET) == count else bytes([each is not UNSET for each in errors])
            held = [shell.params for shell in made]
            given += bytes([params is not UNSET for params in held])
            for at, params in enumerate(held, number):
                if params is not UNSET and not (params.meta is params.version is params.client is UNSET):
                    self.inside[at] = params
            number += count
        self.plain, self.params = np.frombuffer(plain, "u1"), np.frombuffer(given, "u1")
        self.method, self.id = np.frombuffer(method, "int32"), np.frombuffer(ident, "int32")
        called, named = self.method != 0, self.id != 0
        answers = np.frombuffer(result, "u1") + 2 * np.frombuffer(error, "u1")
        answered = np.array([INVALID, RESPONSE, ERROR, INVALID], "u1")[answers]
        asks = np.where(answers == 0, np.where(named, REQUEST, NOTIFICATION), INVALID)
        self.kind: np.ndarray = np.where(called, asks, answered).astype("u1")


class Walk:
    """Connection by connection: which request an answer answers, era and version of each message."""

    def __init__(self, columns: Columns, shells: Shells, client: np.ndarray, conn: np.ndarray, posts: Posts) -> None:
        self.shells = shells
        self.posts = posts
        self.said = Codes()  # (era, version) -> code
        self.saying = np.empty(0, dtype="int32")
        self.reply = np.empty(0, dtype="int64")  # the row that is answered, or -1
        self.clients: dict[int, Raw] = {}  # connection -> clientInfo
        self.disputed = False
        self._states = Codes({(False, False, None, False): 0})
        self._known: list[tuple[Any, ...]] = list(self._states)
        self._text = Texts(columns)
        self._names = list(shells.methods)
        self._run(client, conn)

    def _load(self, code: int) -> State:
        state = State()
        state.legacy, state.modern, state.selected, state.served = self._known[code]
        return state

    def _keep(self, state: State) -> int:
        code = self._states[state.legacy, state.modern, state.selected, state.served]
        if code == len(self._known):
            self._known.append((state.legacy, state.modern, state.selected, state.served))
        return code

    def _run(self, client: np.ndarray, conn: np.ndarray) -> None:
        """Pair by sorting where no id is in use twice and no answer has to come in its own POST; else one by one."""
        shells = self.shells
        asks = shells.kind <= NOTIFICATION
        keys = (conn * 2 + (client == asks)) * len(shells.ids) + shells.id  # connection, who asked, id
        special = asks & (shells.method == INITIALIZE)
        special[list(shells.inside)] = True
        reply = None if (special & (shells.method != INITIALIZE)).any() else _pairs(shells.kind, keys)
        if reply is not None and self._follow(client, conn, special, reply, None):
            return
        self.said.clear()
        self.clients.clear()
        self._follow(client, conn, special, np.full(len(keys), -1), keys)

    def _follow(
        self, client: np.ndarray, conn: np.ndarray, special: np.ndarray, reply: np.ndarray, keys: np.ndarray | None
    ) -> bool:
        """Era and version of each message. With ``keys`` messages are paired on the way, else ``reply`` tells.

        False where that will not do: a request has to be answered in its own POST.
        """
        shells, said = self.shells, self.said
        at, header, methods, inside = self.posts.at, [*self.posts.header, None], shells.method, shells.inside
        states = [0] * (int(conn.max()) + 1)
        modern = [False] * len(header)  # the last place stands for messages without an exchange
        pending: dict[int, list[int]] = {}
        heads = Codes()
        head_of = np.array([heads[each] for each in header])
        plain = (methods * 2 + client) * len(heads) + head_of[at]  # what an ordinary request says of its era
        begins = special & (methods == INITIALIZE)
        saying = array("i", bytes(4 * len(methods)))
        memo: list[dict[int, tuple[int, int, bool]]] = []  # state and whether the POST is modern -> what is said
        todo = np.arange(len(methods))
        if keys is None:  # an ordinary answer says what its request says
            todo = np.flatnonzero((reply < 0) | begins[reply])
        pairing = Pairing()
        for number, kind, own, odd, home, post, same, key in zip(
            _slim(todo), shells.kind[todo].tobytes(), client[todo].tobytes(), special[todo].tobytes(),
            *map(_slim, (conn[todo], at[todo], plain[todo], todo if keys is None else keys)), strict=True,
        ):  # fmt: skip
            if kind <= NOTIFICATION:
                state = states[home]
                place = state * 2 + modern[post]
                if odd:
                    found = self._asked(
                        state, int(methods[number]), own, header[post], modern[post], inside.get(number)
                    )
                    if own and kind == REQUEST:
                        self._opens(number, home, found[2], pending)
                else:
                    while place >= len(memo):
                        memo.append({})
                    found = memo[place].get(same)
                    if found is None:
                        found = self._asked(state, int(methods[number]), own, header[post], modern[post], None)
                        memo[place][same] = found
                saying[number], states[home], new = found
                if kind == REQUEST:
                    alone = new and own and post >= 0
                    if keys is not None:
                        pairing.request(number, key, post if post >= 0 else None, own_post=bool(alone))
                    elif alone:
                        return False
                    if alone:
                        modern[post] = True
                continue
            if kind == INVALID:
                saying[number] = said[in_force(self._load(states[home]))]
                continue
            if keys is None:
                row = int(reply[number])
            else:
                row = pairing.answer(key, None if own or post < 0 else post)[0]
                row = -1 if row is None else row
                reply[number] = row
            if row < 0:
                if kind == RESPONSE and not own and (pending.get(home) or orphan(self._result(number)) is not None):
                    self.disputed = True
                    break
                saying[number] = self._alone(number, kind, self._load(states[home]), header[post], modern[post])
                continue
            saying[number] = saying[row]
            if begins[row]:
                if row in pending.get(home, ()):
                    pending[home].remove(row)
                if kind == RESPONSE:
                    now = self._load(states[home])
                    now.selected = envelope.word(self._result(number).version)
                    states[home] = self._keep(now)
                    saying[number] = said["legacy", now.selected]
        self.saying, self.reply = np.frombuffer(saying, "int32"), reply
        if keys is None:
            rest = np.flatnonzero((reply >= 0) & ~begins[reply])
            self.saying[rest] = self.saying[reply[rest]]
        return True

    def _opens(self, number: int, home: int, modern: bool, pending: dict[int, list[int]]) -> None:
        """A request of the client's that may name it: an initialize, or one of the modern era."""
        params = self.shells.inside.get(number)
        begins = self.shells.method[number] == INITIALIZE
        if begins:
            pending.setdefault(home, []).append(number)
        if params is None or home in self.clients or not (begins or modern):
            return
        raw = params.client if begins else UNSET
        if not begins and params.meta is not UNSET:
            raw = envelope.decode(params.meta, envelope.Meta).client
        if raw is not UNSET:
            self.clients[home] = raw

    def _asked(
        self, state: int, method: int, own: int, header: str | None, modern: bool, params: _Inside | None
    ) -> tuple[int, int, bool]:
        now = self._load(state)
        if method == INITIALIZE:
            found = begun(now, params.version if params is not None else UNSET)
        else:
            name = self._names[method]
            meta = None
            if params is not None and params.meta is not UNSET:
                meta = envelope.decode(params.meta, envelope.Meta)
            found = asked(name, "client" if own else "server", meta, now, header, modern)
        return self.said[found], self._keep(now), found[0] == "modern"

    def _alone(self, number: int, kind: int, state: State, header: str | None, modern: bool) -> int:
        """An answer to nothing that was seen."""
        if modern or (kind == RESPONSE and self._result(number).kind is not UNSET):
            return self.said["modern", header]
        return self.said[in_force(state)]

    def _result(self, number: int) -> Result:
        return envelope.decode(envelope.decode(self._text[number], envelope.Envelope).result, Result)


def _pairs(kind: np.ndarray, keys: np.ndarray) -> np.ndarray | None:
    """The request of each answer, or -1: the latest one with its key. None where two with one key wait at once."""
    rows = np.flatnonzero((kind != NOTIFICATION) & (kind != INVALID))
    rows = rows[np.argsort(keys[rows], kind="stable")]
    same = np.zeros(len(rows), dtype=bool)
    same[1:] = keys[rows[1:]] == keys[rows[:-1]]
    ask = kind[rows] == REQUEST
    if (same[1:] & ask[1:] & ask[:-1]).any():
        return None
    places = np.arange(len(rows))
    latest = np.maximum.accumulate(np.where(ask, places, -1))
    answers = ~ask & (latest >= np.maximum.accumulate(np.where(same, 0, places)))
    reply = np.full(len(kind), -1)
    reply[rows[answers]] = rows[latest[answers]]
    return reply


def _slim(numbers: np.ndarray) -> array[int]:
    """To go through once: unlike a list, this makes an object of a number only for a moment."""
    return array("q", numbers.astype("int64").tobytes())


class Texts:
    """A message's text by its number."""

    def __init__(self, columns: Columns) -> None:
        self._blocks = columns.blocks
        self._ends = _slim(np.cumsum(np.frombuffer(columns.sizes, "int64")))
        self._sizes = columns.sizes
        self._starts = [0, *accumulate(map(len, columns.blocks))]

    def __getitem__(self, number: int) -> bytes:
        end = self._ends[number]
        start = end - self._sizes[number]
        block = bisect_right(self._starts, start) - 1
        base = self._starts[block]
        return self._blocks[block][start - base : end - base]


def messages(columns: Columns, record: Record, name: str) -> pd.DataFrame | None:
    """The table; None where the capture is none of those that this module understands."""
    collecting = gc.isenabled()
    gc.disable()  # as for the walk: many small objects, no garbage
    try:
        return _messages(columns, record, name)
    finally:
        if collecting:
            gc.enable()


class Walked(NamedTuple):
    """The walk over a capture, on numbers.

    ``at``: a message's event. ``sent``: is it the client's? ``conn``: its connection, a number in ``posts.conns``.
    ``links``: connection -> what decides its instance, in wire order.
    """

    columns: Columns
    shells: Shells
    walk: Walk
    posts: Posts
    at: np.ndarray
    sent: np.ndarray
    conn: np.ndarray
    transport: str | None
    links: dict[str, Link]


def _messages(columns: Columns, record: Record, name: str) -> pd.DataFrame | None:
    found = walked(columns, record, name)
    return None if found is None else _table(found, name)


def walked(columns: Columns, record: Record, name: str) -> Walked | None:
    """The walk; None where the capture is none of those that this module understands."""
    transport = TRANSPORTS.get(str(record.header.get("transport")))
    at = np.frombuffer(columns.at, "int32")
    letters = np.frombuffer(columns.dir, "u1")[at]
    odd = columns.endpoint or transport == "sse" or UNSET in columns.peers or (letters == ord("-")).any()
    if odd or not len(at):
        return None
    try:
        shells = Shells(columns)
    except (msgspec.DecodeError, RecursionError):
        return None
    sent = letters == ord("c")
    initialize = (shells.kind == REQUEST) & (shells.method == INITIALIZE)
    listen = (shells.kind == REQUEST) & (shells.method == shells.methods.get("subscriptions/listen", -1))
    posts = Posts(columns, at, sent, initialize, listen)
    if posts.http and (posts.elsewhere or (posts.at < 0).any()):
        return None
    conn = posts.conn[at]
    walk = Walk(columns, shells, sent, conn, posts)
    if walk.disputed:
        return None
    links = _links(record, columns, posts, walk.clients, name)
    return Walked(columns, shells, walk, posts, at, sent, conn, transport, links)


def _links(record: Record, columns: Columns, posts: Posts, clients: dict[int, Raw], name: str) -> dict[str, Link]:
    """Connections with their instances decided, in wire order."""
    header = client_of(record.header)
    names = list(posts.conns)
    codes, first = np.unique(posts.conn, return_index=True)
    links: dict[str, Link] = {}
    for code, number in sorted(zip(codes.tolist(), first.tolist(), strict=True), key=lambda pair: pair[1]):
        link = links[names[code]] = Link(names[code], number)
        link.client = header
        link.endpoint = posts.endpoints.get(code)
        link.hear(clients.get(code, UNSET))
    for number, client in columns.opens:
        if client is not UNSET:
            links[names[posts.conn[number]]].client = client
    for number in () if posts.http else columns.closes:
        links[names[posts.conn[number]]].closed.append(number)
    instances(links, name)
    return links


def _table(found: Walked, name: str) -> pd.DataFrame:
    columns, shells, walk, posts, at, sent, conn, transport, links = found
    count = len(at)
    names = list(posts.conns)
    said = list(walk.said)
    saying = walk.saying
    reply = walk.reply
    answers = reply >= 0
    seq = np.frombuffer(columns.seq, "int64")[at]
    moments = stamps(columns.stamps)[at]
    latency = np.full(count, np.nan)
    pairs = answers & (moments != NO_TIME) & (moments[reply] != NO_TIME)
    latency[pairs] = (moments[pairs] - moments[reply[pairs]]) / 1e6
    methods = [None, *list(shells.methods)[1:]]
    method = np.where(answers, shells.method[reply], shells.method)  # an answer has that of its request
    fact = np.frombuffer(columns.fact, "int32")[at]
    exchange = posts.at
    if posts.http:
        channel = coded(posts.channel[exchange], posts.channels)
        key = coded(np.frombuffer(columns.exchange, "int32")[at], [None, *list(columns.exchanges)[1:]])
        verb = posts.method[exchange]
    else:
        channel = constant(channels.STDIO if transport == "stdio" else channels.UNKNOWN, count)
        key, verb = constant(None, count), np.zeros(count, dtype=int)
    status = posts.statuses
    shown, activity = combined(shells.kind, method == PING, posts.status_code[fact], verb)
    words = [
        channels.message_activity(KINDS[kind], bool(ping), status[code], posts.verbs[way])
        for kind, ping, code, way in shown
    ]
    conns = coded(conn, names)
    peer, peers = np.frombuffer(columns.peer, "int32")[at], list(columns.peers)
    return build(
        "messages",
        {
            "trace": constant(name, count),
            "instance": coded(conn, [links[each].instance if each in links else None for each in names]),
            "conn": conns,
            "peer": conns if names == peers and (conn == peer).all() else coded(peer, peers),
            "seq": seq,
            "part": pick(np.full(count, 0), [None]),
            "ts": times(moments),
            "sender": coded(sent.astype(int), ["server", "client"]),
            "kind": coded(shells.kind, KINDS),
            "method": coded(method, methods),
            "id": coded(shells.id, [None, *(str(each, "utf-8", "replace") for each in list(shells.ids)[1:])]),
            "reply_to": pd.arrays.IntegerArray(np.where(answers, seq[reply], 0), ~answers),
            "reply_part": pick(np.full(count, 0), [None]),
            "latency": latency,
            "era": coded(saying, [era for era, _ in said]),
            "version": coded(saying, [version for _, version in said]),
            "channel": channel,
            "activity": coded(activity, words),
            "http_exchange": key,
            "http_method": coded(verb, posts.verbs),
            "status": pick(posts.status_code[fact], status),
            "content_type": coded(posts.type_code[fact], posts.types),
            "size": np.array(columns.sizes, dtype="int64"),
            "message": blocks(columns.blocks, columns.sizes, columns.pieces),
        },
    )
