"""What every transport of ours offers: texts go out, things that happened come in through one queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True)
class Incoming:
    """A JSON-RPC message from the server. ``exchange``: of the HTTP exchange that it came in."""

    text: str
    message: dict[str, Any]
    exchange: int | None = None


@dataclass(frozen=True)
class Junk:
    """Text where a message was due."""

    text: bytes


@dataclass(frozen=True)
class Finished:
    """An HTTP exchange is over. ``detail``: what went wrong, or what its body said when that was no JSON-RPC."""

    exchange: int
    status: int | None
    detail: str = ""
    reached: bool = True


@dataclass(frozen=True)
class Down:
    """The server's process ended, or its stream did: nothing more will come."""

    detail: str


Happening: TypeAlias = Incoming | Junk | Finished | Down


@dataclass(frozen=True)
class Outgoing:
    """A text to send, and what a transport with headers needs to know of it."""

    text: bytes
    kind: str  # request, notification, response
    method: str = ""
    version: str = ""
    modern: bool = False
    name: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Link(Protocol):
    """One transport, opened already by whoever made it."""

    inbox: asyncio.Queue[Happening]
    session: str | None

    async def send(self, out: Outgoing) -> int | None:
        """Send a text; over HTTP the number of its exchange. Returns once it is written or under way."""
        ...

    async def close(self) -> str:
        """End the connection, within the time that the specification's shut-down takes; ``""``, or what went wrong."""
        ...


class StartError(Exception):
    """The connection could not be opened."""
