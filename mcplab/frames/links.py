"""What each connection said about itself, and which connections are one instance (design, section 2)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from mcplab import envelope, jsontext
from mcplab.channels import LEGACY_SSE
from mcplab.envelope import Implementation
from mcplab.frames.wire import Wire

LONGEST_NAME: Final = 1_000


class Link:
    """One connection's facts, gathered in wire order. Numbers are rows of the walk or positions of events."""

    def __init__(self, name: str, first: int) -> None:
        self.name = name
        self.instance = ""
        self.peers: list[str] = []
        self.first = first
        self.last = first
        self.messages = 0
        self.offers: list[str] = []
        self.agreed: list[tuple[str, str | None]] = []  # (era, version), each once, in wire order
        self.initialized = False
        self.initializes = 0
        self.client: Mapping[str, Any] | None = None  # the header's, or the open event's
        self.config: str | None = None
        self.mode = "unknown"
        self.info: str | None = None  # the text of clientInfo
        self.info_name: str | None = None
        self.info_version: str | None = None
        self.server: str | None = None
        self.server_version: str | None = None
        self.instructions: str | None = None
        self.session: str | None = None
        self.endpoint: str | None = None
        self.transport: str | None = None
        self.closed: list[int] = []

    @property
    def era(self) -> str:
        """legacy, modern, both, or unknown: a refused probe counts for nothing."""
        eras = {era for era, _ in self.agreed}
        if len(eras) == 2:
            return "both"
        return eras.pop() if eras else "unknown"

    @property
    def selected(self) -> str | None:
        """The revision agreed on; both, in wire order, where both eras were spoken."""
        versions = [version for _, version in self.agreed if version is not None]
        return ", ".join(dict.fromkeys(versions)) or None

    @property
    def label(self) -> str:
        """``2026-07-28 (modern)``, ``2025-11-25 (forced legacy)``, ``none (offered 2025-11-25)``, ``unknown``."""
        if not self.agreed:
            return f"none (offered {', '.join(self.offers)})" if self.offers else "unknown"
        forced = "forced " if self.mode == "forced" else ""
        return ", ".join(f"{version or 'unknown'} ({forced}{era})" for era, version in self.agreed)

    @property
    def complete(self) -> bool | None:
        """initialize, its result and initialized all seen; None where no legacy handshake was due or seen."""
        if not self.initializes:
            return None
        return self.initialized and any(era == "legacy" for era, _ in self.agreed)

    def agree(self, era: str, version: str | None) -> None:
        """Note an agreement once."""
        if (era, version) not in self.agreed:
            self.agreed.append((era, version))

    def hear(self, client: Any) -> None:
        """Take in a ``clientInfo`` as raw text; the first one stays."""
        if client is UNSET or self.info is not None:
            return
        self.info = envelope.text(client)
        said = envelope.decode(client, Implementation)
        self.info_name = shown(envelope.string(said.name))
        self.info_version = shown(envelope.string(said.version))

    def offer(self, version: str | None) -> None:
        """Note an offered version once."""
        if version is not None and version not in self.offers:
            self.offers.append(version)


def links(wire: Wire, name: str) -> dict[str, Link]:
    """Connection name -> facts, in wire order, instances decided. ``name``: the trace's, where it is shown."""
    found: dict[str, Link] = {}
    record = wire.record
    header = record.header
    mode = _mode(header)
    for number, event in enumerate(record.events):
        conn = wire.conns[number]
        link = found.get(conn)
        if link is None:
            link = found[conn] = Link(conn, number)
            link.client = client_of(header)
            label = header.get("label")
            link.config = shown(label) if isinstance(label, str) and label else record.name
            link.mode = mode
            link.transport = wire.transport
        link.last = number
        peer = wire.peers[number]
        if peer not in link.peers:
            link.peers.append(peer)
        if event.kind == "open":
            if event.client is not UNSET:
                link.client = event.client
            if event.label is not UNSET:
                link.config = shown(event.label)
            if event.mode is not UNSET and event.mode in ("auto", "forced"):
                link.mode = event.mode
        elif event.kind == "close" and wire.exchange_of[number] is None:
            link.closed.append(number)
    for exchange in wire.exchanges:
        link = found[exchange.conn]
        if link.endpoint is None:
            host = exchange.request_headers.get("host", "")
            link.endpoint = host + (exchange.path or "").split("?", 1)[0]
        if exchange.channel == LEGACY_SSE:  # a proxy's header cannot know which of the two it will be
            link.transport = "sse"
        if exchange.initializes and link.session is None:
            link.session = exchange.response_headers.get("mcp-session-id")
    _hear(wire, found)
    if wire.transport == "stdio":
        for link in found.values():
            link.session = "local"
    instances(found, name)
    return found


def client_of(header: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The header's client object."""
    client = header.get("client")
    return client if isinstance(client, Mapping) else None


def _mode(header: Mapping[str, Any]) -> str:
    """How the client was told to negotiate: the header's ``mode``, else fast-agent's own setting where ``config``
    quotes it (``protocol_mode``: auto, modern or legacy; alone, or in the entry of the server)."""
    mode = header.get("mode")
    if mode in ("auto", "forced"):
        return str(mode)
    config = header.get("config")
    entry = config.get("server_entry") if isinstance(config, Mapping) else None
    places = [place for place in (entry, config) if isinstance(place, Mapping)]
    setting = next((place["protocol_mode"] for place in places if "protocol_mode" in place), None)
    if setting == "auto":
        return "auto"
    return "forced" if setting in ("modern", "legacy") else "unknown"


def _hear(wire: Wire, found: dict[str, Link]) -> None:
    """Every message's part in the facts. A modern request like one that was heard before adds nothing new."""
    heard: set[tuple[str, str, str | None]] = set()
    for number, row in enumerate(wire.rows):
        conn = wire.conns[row.event]
        link = found[conn]
        link.messages += 1
        if wire.era[number] == "modern" and wire.method[number] != "server/discover":
            key = (conn, wire.kind[number], wire.version[number])
            if key in heard:
                continue
            if link.info is not None and link.server is not None:
                heard.add(key)
        _take(wire, number, link)


def _take(wire: Wire, number: int, link: Link) -> None:
    """What one message adds to its connection's facts."""
    kind, method, sender = wire.kind[number], wire.method[number], wire.sender[number]
    if kind == "request" and sender != "server":
        if method == "initialize":
            link.initializes += 1
            link.offer(wire.version[number])
            params = wire.params.get(number)
            link.hear(params.client if params is not None else UNSET)
        elif wire.era[number] == "modern":
            link.offer(wire.version[number])
            meta = wire.meta.get(number)
            link.hear(meta.client if meta is not None else UNSET)
        disputed = wire.disputed.get(number)
        if disputed is not None and _went_on(wire, number, disputed):
            _initialized(wire, disputed, link)
    elif method == "notifications/initialized" and kind == "notification":
        link.initialized = True
    elif kind == "response":
        asked = wire.reply_to[number]
        if asked is not None and wire.answer.get(asked) == number and wire.sender[asked] != "server":
            if method == "initialize":
                _initialized(wire, number, link)
            elif wire.era[number] == "modern":
                link.agree("modern", wire.version[asked])
        elif wire.orphans.get(number) == "initialize_result":
            _initialized(wire, number, link)
        result = wire.results.get(number)
        if result is not None and result.meta is not UNSET and (link.server is None or method == "server/discover"):
            meta = envelope.decode(result.meta, envelope.Meta)
            _server(link, meta.server)
        if result is not None and method == "server/discover" and result.instructions is not UNSET:
            link.instructions = envelope.string(result.instructions)


def _went_on(wire: Wire, asked: int, disputed: int) -> bool:
    """Did the client go on after a result that bore another id than its initialize?"""
    conn = wire.conns[wire.rows[asked].event]
    return any(
        wire.sender[later] == "client" and wire.conns[wire.rows[later].event] == conn
        for later in range(disputed + 1, len(wire.rows))
    )


def _initialized(wire: Wire, number: int, link: Link) -> None:
    result = wire.results.get(number)
    if result is None:
        return
    link.agree("legacy", envelope.string(result.version))
    _server(link, result.server)
    if result.instructions is not UNSET:
        link.instructions = envelope.string(result.instructions)


def _server(link: Link, raw: Any) -> None:
    if raw is UNSET:
        return
    said = envelope.decode(raw, Implementation)
    link.server = shown(envelope.string(said.name))
    link.server_version = shown(envelope.string(said.version))


def instances(found: dict[str, Link], stem: str) -> None:
    """One run of one client against one server: by the header's client, else by equal clientInfo and endpoint."""
    groups: dict[Any, list[Link]] = {}
    for link in found.values():
        if link.client is not None:
            key: Any = ("named", jsontext.dumps(dict(link.client)))
        else:
            key = ("wire", link.info_name, link.info_version, link.endpoint)
        groups.setdefault(key, []).append(link)
    for group in groups.values():
        name = jsontext.printable(stem if len(groups) == 1 else f"{stem}@{group[0].name}")
        for link in group:
            link.instance = name


def said(client: Mapping[str, Any] | None, member: str) -> str | None:
    """A string member of the header's client object."""
    value = client.get(member) if client is not None else None
    return shown(value) if isinstance(value, str) else None


def shown(name: str | None) -> str | None:
    """A name as tables write it, once for each row: of one beyond 1,000 characters the beginning and a hash."""
    if name is None or len(name) <= LONGEST_NAME:
        return None if name is None else jsontext.printable(name)
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{jsontext.printable(name[:LONGEST_NAME])}... ({len(name):,} characters, SHA-256 {mark})"
