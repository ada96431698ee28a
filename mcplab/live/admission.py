"""Which requests a local HTTP endpoint lets in: a web page must not reach it through a name of its own.

Servers must check ``Origin`` (2024-11-05 basic/transports#security-warning and every revision since); ``Host`` tells a
page that made its own name point at this machine (DNS rebinding), which sends no foreign ``Origin`` at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mcplab.live.framing import Head

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BEYOND: Final = re.compile(r"[^\w.:%\[\]-]")
"""What no host and port is written with: what follows it would pass for a path."""


class Refusal(NamedTuple):
    status: int
    text: str


class Admission:
    """``hosts``: names that may stand in ``Host`` besides those of this machine; ``origins``: whole origins
    (``https://example.com``, ``null``) besides those of this machine. ``*`` lets all in."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().strip("[]") for host in (*LOOPBACK, *hosts))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def refusal(self, head: Head) -> Refusal | None:
        """Why this request is not let in, or None."""
        host, origin = head.get("host"), head.get("origin")
        if host is None or "host" in head.times:
            return Refusal(400, "a request needs one Host header")
        if "*" not in self._hosts and _name(host) not in self._hosts:
            return Refusal(403, f"Host {host!r} is not allowed here (mcplab proxy --allow-host NAME lets it in)")
        if origin is not None:
            scheme, _, authority = origin.partition("//")
            local = _SCHEME.fullmatch(scheme) is not None and _name(authority) in LOOPBACK
            fine = local or "*" in self._origins or origin.lower() in self._origins
            if not fine:
                return Refusal(403, f"Origin {origin!r} is not allowed here (mcplab proxy --allow-origin lets it in)")
        return self._beyond(head)

    def _beyond(self, head: Head) -> Refusal | None:
        """What is HTTP but cannot be relayed."""
        if head.method == "CONNECT" or not (head.target.startswith("/") or head.target == "*"):
            return Refusal(400, "this is no forward proxy: give the client the address that mcplab proxy prints")
        if head.upgrade is None:
            return None
        words = {word.strip().lower() for word in head.upgrade.split(",")} - {"", "h2c"}
        if words:  # h2c is an offer that servers leave aside; Java's client makes it on every first request
            return Refusal(501, f"only HTTP/1.1 is relayed: no upgrade to {', '.join(sorted(words))}")
        return None


@lru_cache(maxsize=256)
def _name(authority: str) -> str | None:
    if _BEYOND.search(authority):
        return None
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:
        return None
