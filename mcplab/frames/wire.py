"""One walk over a record: every message with its connection, its request, its era and its channel.

The tables are made from the lists that this walk leaves; nothing here knows pandas.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET, Raw, Struct

from mcplab import channels, envelope, jsontext, spec
from mcplab.envelope import Envelope, Meta, Params, Result
from mcplab.frames.exchange import Exchange, assign
from mcplab.model import TRANSPORTS, Event, Record
from mcplab.pairing import Pairing, same

SENDER = {"c2s": "client", "s2c": "server"}
OTHER: dict[str | None, str] = {"client": "server", "server": "client"}

TELLING_PARAMS = (b"_meta", b"requestId", b"inputResponses", b"requestState", b"\\u")
TELLING_RESULTS = (b"input_required", b"\\u")

TELLING_RESULTS_AT_FIRST = (*TELLING_RESULTS, b"serverInfo")

BATCH_OR_SPACE = b"[ \t\r\n"

KEEPALIVES = ("ping", "keepalive", "keep-alive", "heartbeat")
"""SSE event names that servers use for keep-alives without a message."""


class State:
    """What a connection has said about its version so far."""

    __slots__ = ("legacy", "modern", "selected", "served")

    def __init__(self) -> None:
        self.legacy = False  # an initialize was sent
        self.modern = False  # a modern request was sent
        self.selected: str | None = None
        self.served = False  # a result said who the server is


class Row(Struct, gc=False):
    """One message: the position of its event in the record, its part of a batch, its text."""

    event: int
    part: int | None
    raw: Raw

    @property
    def body(self) -> Envelope:
        """The message's members, decoded when asked for."""
        return envelope.decode(self.raw, Envelope)


class Wire:
    """The outcome of the walk, as parallel lists: a place a message in ``rows`` and what belongs to it."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.transport: str | None = TRANSPORTS.get(str(record.header.get("transport")))
        self.http = False  # does any event have transport facts?
        self.exchanges: list[Exchange] = []
        # a place an event
        self.peers: list[str] = []
        self.conns: list[str] = []
        self.exchange_of: list[Exchange | None] = []
        self.channel_of: list[str | None] = []
        self.activity_of: list[str] = []  # of events without a message; "none" for those with one
        # a place a message
        self.rows: list[Row] = []
        self.first_row: list[int] = []  # of each event, and one more: where its messages begin
        self.kind: list[str] = []
        self.sender: list[str | None] = []
        self.method: list[str | None] = []
        self.id: list[str | None] = []
        self.era: list[str] = []
        self.version: list[str | None] = []
        self.activity: list[str] = []
        self.reply_to: list[int | None] = []  # the row that this one answers
        self.answer: dict[int, int] = {}  # request row -> its first answer's row
        self.disputed: dict[int, int] = {}  # initialize row -> a result with a wrong id that was meant for it
        self.orphans: dict[int, str] = {}  # results that declare, without their request: row -> place of declaration
        self.params: dict[int, Params] = {}  # of requests and notifications that were looked into
        self.meta: dict[int, Meta] = {}
        self.results: dict[int, Result] = {}
        collecting = gc.isenabled()
        gc.disable()  # a walk makes many small objects and no garbage: looking for some would take half the time
        try:
            self._gather()
            self._place()
            self._walk()
        finally:
            if collecting:
                gc.enable()

    # first: messages and exchanges ------------------------------------------------------------------

    def _gather(self) -> None:
        found: dict[tuple[str, str], Exchange] = {}
        rows, peers, exchange_of = self.rows, self.peers, self.exchange_of
        for number, event in enumerate(self.record.events):
            peer = event.conn if event.conn is not UNSET else "unknown"
            peers.append(peer)
            exchange = None
            http = event.http
            if http is not UNSET:
                self.http = True
                if http.exchange is not UNSET:
                    exchange = found.get((peer, http.exchange))
                    if exchange is None:
                        exchange = found[peer, http.exchange] = Exchange(peer, http.exchange, number)
                        self.exchanges.append(exchange)
                    exchange.see(number, event, http)
            exchange_of.append(exchange)
            self.first_row.append(len(rows))
            raw = event.msg
            if raw is UNSET:
                continue
            before = len(rows)
            if memoryview(raw)[0] in BATCH_OR_SPACE and (parts := jsontext.elements(event.text)):
                for part, text in enumerate(parts):
                    rows.append(Row(number, part, Raw(text.encode("utf-8", "surrogateescape"))))
            else:
                rows.append(Row(number, None, raw))
            if exchange is not None:
                self._carry(exchange, event, range(before, len(rows)))
        self.first_row.append(len(rows))
        if self.transport is None and self.http:
            self.transport = "http"

    @property
    def events(self) -> Sequence[Event]:
        """The events of the record."""
        return self.record.events

    def openings(self) -> Iterator[int]:
        """Rows of requests of the client that begin something: each initialize, and all of the modern era."""
        for number, kind in enumerate(self.kind):
            begins = self.method[number] == "initialize" or self.era[number] == "modern"
            if begins and kind == "request" and self.sender[number] != "server":
                yield number

    def _carry(self, exchange: Exchange, event: Event, numbers: range) -> None:
        """Note messages on their exchange; the first one a client posts says what the exchange is for."""
        exchange.rows.extend(numbers)
        if event.dir == "s2c":
            exchange.server_messages += len(numbers)
            return
        if exchange.client_messages == 0:
            raw = bytes(self.rows[numbers[0]].raw)
            if b"initialize" in raw or b"subscriptions" in raw or b"\\u" in raw:
                body = envelope.decode(raw, Envelope)
                if body.kind == "request":
                    exchange.initializes = body.method == "initialize"
                    exchange.listens = body.method == "subscriptions/listen"
        exchange.client_messages += len(numbers)

    def _place(self) -> None:
        assign(self.exchanges)
        streams = {one.conn for one in self.exchanges if one.endpoint is not None or one.elsewhere}
        for exchange in self.exchanges:
            exchange.settle(legacy_sse=self.transport == "sse" or exchange.conn in streams)
        homes: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            homes.setdefault(exchange.peer, []).append(exchange)
        stdio = self.transport == "stdio"
        if stdio and not self.http:
            self.conns = self.peers
            self.channel_of = [channels.STDIO] * len(self.peers)
            self.activity_of = ["error" if event.kind == "unparsed" else "none" for event in self.record.events]
            return
        conns, channel_of, activity_of = self.conns, self.channel_of, self.activity_of
        for number, event in enumerate(self.record.events):
            exchange = self.exchange_of[number]
            http = event.http
            method = None
            if exchange is not None:
                conns.append(exchange.conn)
                channel: str | None = exchange.channel
                method = exchange.method
            else:
                peer = self.peers[number]
                conns.append(peer if not homes else _home(homes.get(peer), number) or peer)
                channel = channels.STDIO if stdio else None
                if channel is None and http is not UNSET and http.method is not UNSET:
                    method = http.method
                    channel = channels.http_channel(method, None, answered=False)
                elif channel is None and (event.msg is not UNSET or event.kind in ("unparsed", "http", "sse")):
                    channel = channels.UNKNOWN
            channel_of.append(channel)
            if event.msg is not UNSET:
                activity_of.append("none")
                continue
            # a keep-alive is a comment, or an event of the server's that carries nothing (2025-11-25 basic/transports)
            sse = event.sse
            keepalive = sse is not UNSET and (isinstance(sse.comment, str) or sse.event in KEEPALIVES)
            status = http.status if http is not UNSET and http.status is not UNSET else None
            activity_of.append(
                channels.event_activity(event.kind, status=status, http_method=method, keepalive=keepalive)
            )

    # then: what each message is ----------------------------------------------------------------------

    def _walk(self) -> None:
        pairing = Pairing()
        states: dict[str, State] = {}
        pending: dict[str, list[int]] = {}  # connection -> initialize rows without an answer
        events, conns, exchange_of = self.record.events, self.conns, self.exchange_of
        decode, activity_of = envelope.decode, channels.message_activity
        add_kind, add_sender, add_method, add_id = map(_appender, (self.kind, self.sender, self.method, self.id))
        add_era, add_version = _appender(self.era), _appender(self.version)
        add_reply, add_activity = _appender(self.reply_to), _appender(self.activity)
        for number, row in enumerate(self.rows):
            event = events[row.event]
            body = decode(row.raw, Envelope)
            kind = body.kind
            conn = conns[row.event]
            exchange = exchange_of[row.event]
            sender = SENDER.get(event.dir) if event.dir is not UNSET else None
            state = states.get(conn)
            if state is None:
                state = states[conn] = State()
            ident = None if body.id is UNSET else str(body.id, "utf-8", "replace")
            method = None if body.method is UNSET else body.method
            replies: int | None = None
            if kind == "response" or kind == "error":
                post = exchange if sender == "server" else None
                replies, again = pairing.answer((conn, OTHER.get(sender), same(ident)), post)
                if replies is not None:
                    method = self.method[replies]
                    if not again:
                        self.answer[replies] = number
                        if method == "initialize" and replies in pending.get(conn, ()):
                            pending[conn].remove(replies)
                era, version = self._answered(number, body, kind, replies, state, exchange)
                if replies is None and kind == "response" and sender == "server":
                    if pending.get(conn):
                        self._dispute(number, pending[conn], state)
                    elif (place := orphan(self.results.get(number))) is not None and state.selected is None:
                        self.orphans[number] = place
                        if place == "initialize_result":
                            era, version = "legacy", envelope.word(self.results[number].version)
                            state.selected = version
            elif kind == "invalid":
                era, version = in_force(state)
            else:
                era, version = self._asked(number, body, method or "", sender, state, exchange)
                if method is not None and not method.isascii():
                    method = jsontext.printable(method)
                if kind == "request":
                    # a party that nobody could tell still pairs with an answer nobody could tell
                    own = False
                    if era == "modern" and exchange is not None and sender != "server":
                        exchange.modern = True
                        own = sender == "client"
                    pairing.request(number, (conn, sender, same(ident)), exchange, own_post=own)
                    if method == "initialize" and sender != "server":
                        pending.setdefault(conn, []).append(number)
            status = None
            if event.http is not UNSET and event.http.status is not UNSET:
                status = event.http.status
            verb = exchange.method if exchange is not None else None
            add_kind(kind)
            add_sender(sender)
            add_method(method)
            add_id(ident)
            add_era(era)
            add_version(version)
            add_reply(replies)
            add_activity(activity_of(kind, method == "ping", status, verb))

    def _asked(
        self, number: int, body: Envelope, method: str, sender: str | None, state: State, exchange: Exchange | None
    ) -> tuple[str, str | None]:
        """Era and version of a request or notification: from what it says itself, else from what is in force."""
        params = meta = None
        # a look inside only where a key that counts may be
        if body.params is not UNSET and (method == "initialize" or _telling(body.params, TELLING_PARAMS)):
            params = self.params[number] = envelope.decode(body.params, Params)
            if params.meta is not UNSET:
                meta = self.meta[number] = params.meta
        if method == "initialize":
            return begun(state, params.version if params is not None else UNSET)
        modern = exchange is not None and exchange.modern
        return asked(method, sender, meta, state, _header(exchange), modern)

    def _answered(
        self, number: int, body: Envelope, kind: str, replies: int | None, state: State, exchange: Exchange | None
    ) -> tuple[str, str | None]:
        """Era and version of an answer: those of its request, else what its result and its stream say."""
        method = self.method[replies] if replies is not None else None
        if kind == "response" and (
            replies is None
            or method == "initialize"
            or method == "server/discover"
            or _telling(body.result, TELLING_RESULTS if state.served else TELLING_RESULTS_AT_FIRST)
        ):
            result = self.results[number] = envelope.decode(body.result, Result)
            state.served = state.served or result.meta is not UNSET
            if method == "initialize":
                state.selected = envelope.word(result.version)
                return "legacy", state.selected
        if replies is not None:
            return self.era[replies], self.version[replies]
        result = self.results.get(number)
        if result is not None and result.kind is not UNSET:
            return "modern", _header(exchange)
        if exchange is not None and exchange.modern:
            return "modern", _header(exchange)
        return in_force(state)

    def _dispute(self, number: int, waiting: list[int], state: State) -> None:
        """An initialize result under another id than its request's: shown as what it looks like, and disputed."""
        result = self.results.get(number)
        if result is not None and result.version is not UNSET and waiting[0] not in self.disputed:
            self.disputed[waiting[0]] = number
            state.selected = envelope.word(result.version)


def orphan(result: Result | None) -> str | None:
    """Where a result declares whose request is not in the capture: told from the members that no other result has."""
    if result is None or result.capabilities is UNSET:
        return None
    if result.version is not UNSET and result.server is not UNSET:
        return "initialize_result"
    return "discover_result" if result.supported is not UNSET else None


def begun(state: State, offered: Any) -> tuple[str, str | None]:
    """Era and version of an ``initialize``."""
    state.legacy = True
    return "legacy", envelope.word(offered)


_said: dict[bytes, tuple[str, str | None]] = {}  # text of a protocolVersion in _meta -> era, version


def asked(
    method: str, sender: str | None, meta: Meta | None, state: State, header: str | None, modern: bool
) -> tuple[str, str | None]:
    """Era and version of any other request or notification: what it says itself, else what is in force.

    ``header``: the ``MCP-Protocol-Version`` of its HTTP exchange; ``modern``: a modern request was posted there.
    """
    if meta is not None and sender != "server":
        if meta.version is not UNSET:
            said = _said.get(key := bytes(meta.version))
            if said is None:
                version = envelope.string(meta.version)
                era = spec.era(version) if version is not None else "modern"
                if len(_said) > 1000:
                    _said.clear()
                # an era nobody knows yet is no legacy one: those are all published
                said = _said[key] = ("modern" if era == "unknown" else era, version)
            if said[0] == "modern":
                state.modern = True
            return said
        if meta.capabilities is not UNSET:
            state.modern = True
            return "modern", header
    if meta is not None and meta.subscription is not UNSET:
        return "modern", header
    eras = spec.eras_of(method, "c2s" if sender != "server" else "s2c")
    if eras == {"modern"}:
        state.modern = state.modern or sender != "server"
        return "modern", header
    if eras == {"legacy"}:
        return "legacy", state.selected or header
    if header is not None:
        era = spec.era(header)
        if era == "modern":
            state.modern = state.modern or sender != "server"
            return "modern", header
        if era == "legacy":
            return "legacy", state.selected or header
    return ("modern", header) if modern else in_force(state)


def _appender(values: list[Any]) -> Any:
    return values.append


def _home(exchanges: list[Exchange] | None, number: int) -> str | None:
    """Whose an event without an exchange (open, close) is on an HTTP peer: its next exchange's, else its last one's."""
    if not exchanges:
        return None
    return next((exchange.conn for exchange in exchanges if exchange.first > number), exchanges[-1].conn)


def _header(exchange: Exchange | None) -> str | None:
    return exchange.request_headers.get("mcp-protocol-version") if exchange is not None else None


def in_force(state: State) -> tuple[str, str | None]:
    """Era and version of a message that says nothing of them."""
    if state.legacy and not state.modern:
        return "legacy", state.selected
    if state.modern and not state.legacy:
        return "modern", None
    return ("legacy", state.selected) if state.selected is not None else ("unknown", None)


def _telling(raw: Any, keys: tuple[bytes, ...]) -> bool:
    """May this text hold one of these keys? An escape may hide one."""
    text = bytes(raw)
    for key in keys:  # noqa: SIM110 (any() would make a generator for each message)
        if key in text:
            return True
    return False


def event_text(event: Event) -> str:
    """What an event without a message holds, as text."""
    if event.raw is not UNSET:
        return jsontext.printable(event.raw)
    if event.raw_b64 is not UNSET:
        return event.raw_b64
    if event.sse is not UNSET and isinstance(event.sse.data, str):
        return jsontext.printable(event.sse.data)
    return ""
