"""How an instance found its era, what it called, and how a connection's health stood. Pure judgements over a walk."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import UNSET

from mcplab import channels, envelope
from mcplab.envelope import Failure
from mcplab.frames.links import Link
from mcplab.frames.wire import Wire
from mcplab.model import NO_TIME

CALL_NAMES = {"tools/list": "list_tools", "tools/call": "tool", "server/discover": "discover"}


def calls(wire: Wire, rows: Sequence[int]) -> str:
    """The client's requests by name with their number, without pings: ``discover:1, list_tools:1, tool:2``.

    ``initialize`` and ``discover`` count when they got a result, any other request when it was sent.
    """
    counted: Counter[str] = Counter()
    for number in rows:
        method = wire.method[number]
        if wire.kind[number] != "request" or wire.sender[number] == "server" or method is None or method == "ping":
            continue
        if method in ("initialize", "server/discover") and not _succeeded(wire, number):
            continue
        counted[CALL_NAMES.get(method, method)] += 1
    return ", ".join(f"{name}:{n}" for name, n in sorted(counted.items()))


def _succeeded(wire: Wire, request: int) -> bool:
    answer = wire.answer.get(request)
    return answer is not None and wire.kind[answer] == "response"


def discovery(wire: Wire, rows: Sequence[int]) -> tuple[str, str | None]:
    """How an instance found its era, and why: (discovery, discovery_detail).

    ``none``: no server/discover was sent. ``modern``: one got a result and no initialize did. ``legacy-fallback``:
    none got a result, an initialize did afterwards. ``probe``: one got a result but the session is legacy, or no
    answer was captured and no initialize succeeded. ``failed``: refused, and no initialize succeeded.
    """
    asked = [
        n
        for n in rows
        if wire.kind[n] == "request" and wire.method[n] == "server/discover" and wire.sender[n] != "server"
    ]
    if not asked:
        return "none", None
    fell = [
        n for n in rows
        if wire.kind[n] == "request" and wire.method[n] == "initialize" and n > asked[0]
        and (_succeeded(wire, n) or n in wire.disputed)
    ]  # fmt: skip
    found = [n for n in asked if _succeeded(wire, n)]
    if found:
        versions = supported(wire, wire.answer[found[-1]])
        return ("probe" if fell else "modern"), versions
    why = "; ".join(dict.fromkeys(refusal(wire, n) for n in asked))
    if fell:
        return "legacy-fallback", why
    unanswered = all(refusal(wire, n) == "no answer" for n in asked)
    return ("probe" if unanswered else "failed"), why


def supported(wire: Wire, answer: int) -> str | None:
    """``supportedVersions`` of a discover result, as text: ``supported 2026-07-28``."""
    result = wire.results.get(answer)
    if result is None or result.supported is UNSET:
        return None
    text = envelope.text(result.supported) or ""
    return "supported " + ", ".join(part.strip(' "') for part in text.strip("[] ").split(","))


def refusal(wire: Wire, request: int) -> str:
    """Why a request got no result: ``HTTP 404``, ``error -32601 Method not found (HTTP 400)``, ``no answer``."""
    event = wire.rows[request].event
    exchange = wire.exchange_of[event]
    status = exchange.status if exchange is not None else None
    http = f"HTTP {status}" if status is not None and channels.refused(status) else ""
    answer = wire.answer.get(request)
    if answer is None or wire.kind[answer] != "error":
        return http or "no answer"
    failure = envelope.decode(wire.rows[answer].body.error, Failure)
    code = envelope.text(failure.code)
    message = envelope.string(failure.message)
    words = " ".join(part for part in ("error", code, message) if part)
    return f"{words} ({http})" if http else words


class Pulse(NamedTuple):
    """How a legacy connection stood by the client's pings.

    ``health``: ``pending``, ``ok``, ``missed``, ``failed``, ``stale``, ``error``, ``offline``. ``interval``: seconds
    between pings, the header's or the median gap. ``missed``: pings in a row without an answer, up to the last.
    ``limit``: how many make ``failed``. ``answered``: when the last answer to a ping came, in microseconds since 1970.
    """

    health: str | None
    interval: float | None = None
    missed: int | None = None
    limit: int | None = None
    answered: int | None = None


def pulse(wire: Wire, link: Link, rows: Sequence[int], ts: Any, ping: Any) -> Pulse:
    """The state of a legacy connection by the client's pings, judged at its last event before the close.

    ``ping``: the header's member. All None without pings.
    """
    pings = [n for n in rows if wire.kind[n] == "request" and wire.method[n] == "ping" and wire.sender[n] == "client"]
    if not pings or "modern" in (link.era,):
        return Pulse(None)
    at = [ts[wire.rows[n].event] for n in pings]
    closes = set(link.closed)
    before = [
        ts[n] for n in range(link.first, link.last + 1)
        if n not in closes and wire.conns[n] == link.name and ts[n] != NO_TIME
    ]  # fmt: skip
    now = before[-1] if before else NO_TIME
    interval = _interval(ping, [t for t in at if t != NO_TIME])
    limit = ping.get("max_missed", 3) if isinstance(ping, Mapping) else 3
    limit = limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else 3
    misses = next((n for n, asked in enumerate(reversed(pings)) if asked in wire.answer), len(pings))
    silent = misses > 0
    # the last ping may still be answered: it is no miss yet
    waits = interval is None or now == NO_TIME or at[-1] == NO_TIME or (now - at[-1]) / 1e6 < interval
    misses -= silent and waits
    answers = [ts[wire.rows[wire.answer[n]].event] for n in pings if n in wire.answer]
    known = [int(t) for t in answers if t != NO_TIME]
    if _dropped(wire, link):
        health = "offline"
    elif _last_refused(wire, link):
        health = "error"
    elif silent:
        health = "pending" if misses == 0 else "failed" if misses >= limit else "missed"
    elif interval is not None and now != NO_TIME and at[-1] != NO_TIME and (now - at[-1]) / 1e6 > 3 * interval:
        health = "stale"
    else:
        health = "ok"
    return Pulse(health, interval, misses, limit, known[-1] if known else None)


def _interval(ping: Any, clocked: list[int]) -> float | None:
    """Seconds between pings: the header's, else the median gap; None where neither can be told."""
    said = ping.get("interval") if isinstance(ping, Mapping) else None
    if isinstance(said, (int, float)) and not isinstance(said, bool) and said > 0:
        return float(said)
    gaps = [(b - a) / 1e6 for a, b in pairwise(clocked)]
    return statistics.median(gaps) if gaps else None


def _dropped(wire: Wire, link: Link) -> bool:
    """Did the connection end without the client closing it? A close that does not say who is no proof."""
    if not link.closed:
        return False
    close = wire.record.events[link.closed[-1]]
    if close.by is not UNSET and close.by == "client":
        return False
    if close.reason is not UNSET and isinstance(close.reason, str) and "stdin closed" in close.reason:
        return False
    ended = close.exit_code is not UNSET and close.exit_code not in (0, None)
    return (
        (close.unexpected is not UNSET and close.unexpected)
        or (close.by is not UNSET and close.by == "server")
        or ended
    )


def _last_refused(wire: Wire, link: Link) -> bool:
    """Was its last exchange refused? A GET or DELETE that the server does not offer (405) is no sign of ill health."""
    mine = [exchange for exchange in wire.exchanges if exchange.conn == link.name and exchange.status is not None]
    asked = [x for x in mine if not (x.status == 405 and x.method in ("GET", "DELETE"))]
    return bool(asked) and channels.refused(asked[-1].status)
