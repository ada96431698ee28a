"""What the outcome of a whole group of checks follows from, as a key: equal keys, equal outcomes.

A rule that says ``reads = "envelope"`` is judged once for each different outside of a message, ``"session"`` once for
each state of a connection, ``"meta"`` once for each different ``_meta`` of modern requests, ``"headers"`` once for each
different exchange of headers within a state. Most messages of a capture are alike in these, so most rules cost them
nothing. ``tests/test_rulebook_groups.py`` runs every example
with and without the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from mcplab.rulebook.facts import Fact

_EXACT: Final = (int, str, type(None), bool, list, dict)


def envelope(m: Fact) -> Hashable:
    """The members of the message and their types, the value of ``jsonrpc``, its place in a batch; None: not alike."""
    body = m.body
    if type(body) is not dict:
        return None
    version = body.get("jsonrpc")
    ident = body.get("id")
    if type(version) is not str or type(ident) not in _EXACT:
        return None
    error = body.get("error")
    if error is not None:
        if type(error) is not dict or type(error.get("code")) not in _EXACT:
            return None
        error = (type(error.get("code")), type(error.get("message")), "code" in error, "message" in error)
    return (
        tuple(body), version, type(ident), type(body.get("params")), type(body.get("result")), error, m.part,
        m.post is None, m.post is not None and m.post.exchange.method, m.post is not None and m.post.exchange.channel,
    )  # fmt: skip


def session(m: Fact) -> Hashable:
    """The state of a legacy connection; a modern message is judged by what its own request declares."""
    return m.session.stamp if m.era != "modern" else None


def meta(m: Fact) -> Hashable:
    """What a modern request says of itself, besides the token that differs each time."""
    if m.era != "modern" or m.kind != "request":
        return None
    own = m.meta
    if "progressToken" in own:
        own = {key: value for key, value in own.items() if key != "progressToken"}
    return repr(own)


def headers(m: Fact) -> Hashable:
    """The exchange: headers, method and status, what was POSTed; and the state of the connection."""
    post = m.post
    if post is None or m.kind in ("text", "sse"):
        return None
    exchange = post.exchange
    return (
        m.session.stamp, id(exchange.request_headers), id(exchange.response_headers), exchange.status, exchange.method,
        exchange.channel, exchange.path, post.kinds, post.era, m.part,
    )  # fmt: skip


KEYS: Final[dict[str, Callable[[Fact], Hashable]]] = {
    "envelope": envelope,
    "session": session,
    "meta": meta,
    "headers": headers,
}
