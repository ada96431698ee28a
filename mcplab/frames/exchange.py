"""HTTP exchanges and connections of a capture: what belongs together before any message is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import UNSET

from mcplab import channels
from mcplab.model import Event, Http

NO_HEADERS: Final[dict[str, str]] = {}
"""Stands for headers that the capture does not hold; those of a response that had none of those kept are another {}."""


class Exchange:
    """One HTTP request with its response, gathered from its events. Numbers are positions in the record's events."""

    __slots__ = (
        "answered", "channel", "client_messages", "conn", "ended", "endpoint", "first", "initializes", "key", "last",
        "listens", "method", "modern", "path", "peer", "request_headers", "response", "response_headers", "rows",
        "server_messages", "status",
    )  # fmt: skip

    def __init__(self, peer: str, key: str, first: int) -> None:
        self.peer = peer
        self.key = key
        self.first = first
        self.last = first
        self.response: int | None = None
        self.method: str | None = None
        self.path: str | None = None
        self.status: int | None = None
        self.request_headers: dict[str, str] = {}
        self.response_headers = NO_HEADERS
        self.client_messages = 0
        self.server_messages = 0
        self.rows: list[int] = []  # its messages
        self.answered = False
        self.ended: bool | None = None
        self.initializes = False
        self.listens = False
        self.modern = False  # a modern request was POSTed: its answer comes in this exchange or not at all
        self.endpoint: str | None = None
        self.channel = channels.UNKNOWN
        self.conn = peer

    def see(self, number: int, event: Event, http: Http) -> None:
        """Take in one more event of this exchange."""
        self.last = number
        if http.method is not UNSET and self.method is None:
            self.method = http.method.upper()
        if http.path is not UNSET and self.path is None:
            self.path = http.path
        if event.dir == "s2c" or http.status is not UNSET:
            if event.kind != "close":
                self.answered = True
                if self.response is None:
                    self.response = number
            if http.status is not UNSET and self.status is None:
                self.status = http.status
            if http.headers is not UNSET and not self.response_headers:
                self.response_headers = http.headers
        elif http.headers is not UNSET and not self.request_headers:
            self.request_headers = http.headers
        if event.kind == "close":
            self.ended = True
        if event.kind == "sse" and event.sse is not UNSET and event.sse.event == "endpoint":
            data = event.sse.data
            self.endpoint = data if isinstance(data, str) else None

    @property
    def content_type(self) -> str | None:
        """The response's ``Content-Type``."""
        return self.response_headers.get("content-type")

    @property
    def streams(self) -> bool:
        """Is the response an event stream?"""
        return channels.is_event_stream(self.content_type)

    @property
    def elsewhere(self) -> bool:
        """Is ``initialize`` answered on another stream? That is HTTP+SSE, whose endpoint event may not be captured."""
        return self.initializes and self.status == 202 and "mcp-session-id" not in self.response_headers

    def settle(self, *, legacy_sse: bool) -> None:
        """Decide the channel, when all events of the exchange were seen."""
        if legacy_sse and self.method in ("GET", "POST"):
            self.channel = channels.LEGACY_SSE
            return
        self.channel = channels.http_channel(
            self.method,
            self.content_type,
            answered=self.answered,
            listens=self.listens,
            resumes="last-event-id" in self.request_headers,
        )


def address(endpoint: str) -> str:
    """Path and query of an endpoint address, which may be a whole URL or a path (2024-11-05 basic/transports)."""
    parts = urlsplit(endpoint.strip())
    return parts.path + (f"?{parts.query}" if parts.query else "")


def assign(exchanges: Sequence[Exchange]) -> None:
    """Give each exchange its connection: all peers that share a session, from its initialize on; else the peer.

    A session whose initialize was not captured counts from its first use. A second session that starts on the same
    peer is a connection of its own, named ``c1.2``: legacy ids may repeat in it.
    """
    sessions: dict[str, str] = {}
    endpoints: dict[str, str] = {}
    starts: dict[str, int] = {}

    def new(peer: str) -> str:
        starts[peer] = starts.get(peer, 0) + 1
        return peer if starts[peer] == 1 else f"{peer}.{starts[peer]}"

    for exchange in exchanges:
        asked = exchange.request_headers.get("mcp-session-id")
        given = exchange.response_headers.get("mcp-session-id")
        if exchange.endpoint is not None:
            exchange.conn = endpoints[address(exchange.endpoint)] = new(exchange.peer)
        elif exchange.initializes and given is not None:
            exchange.conn = sessions[given] = new(exchange.peer)
        elif asked is not None:
            if asked not in sessions:
                sessions[asked] = new(exchange.peer)
            exchange.conn = sessions[asked]
        elif exchange.path is not None and address(exchange.path) in endpoints:
            exchange.conn = endpoints[address(exchange.path)]
            exchange.channel = channels.LEGACY_SSE
