"""Which request an answer answers.

Legacy ids pair within connection and direction, with their JSON type (JSON-RPC 2.0, section 5; 2025-11-25 basic). A
modern request over HTTP pairs with the response of its own POST (2026-07-28 basic/transports/streamable-http), whatever
id the answer bears.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from typing import overload

from mcplab import jsontext

_LONG = 400
"""Digits of an integer beyond which a number with an exponent is not written out."""


@overload
def same(ident: str) -> str: ...
@overload
def same(ident: None) -> None: ...
def same(ident: str | None) -> str | None:
    """One text for all JSON texts of one id or token: ``"\\u00e9"`` is ``"é"`` and ``1.0`` is ``1``, never ``"1"``.

    Whoever answers parsed the id and wrote it anew; escapes and the spelling of a number need not survive that.
    """
    if ident is None or ident.isdigit():
        return ident
    if ident[:1] == '"':
        return ident if ident.isascii() and "\\" not in ident else jsontext.dumps(jsontext.loads(ident))
    if ident[:1] not in "-0123456789" or not ident.lstrip("-"):
        return ident
    number = Decimal(ident)
    if abs(number.adjusted()) > _LONG:
        return ident
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain == "-0" else plain


class Pairing:
    """Open requests of a capture. A request is any number that the caller gives it (its row)."""

    def __init__(self) -> None:
        self._open: dict[Hashable, list[tuple[int, Hashable]]] = {}  # key -> (row, its POST), oldest first
        self._closed: dict[Hashable, int] = {}  # key -> the row that was answered last
        self._posted: dict[Hashable, list[int]] = {}

    def request(self, row: int, key: Hashable, post: Hashable = None, *, own_post: bool = False) -> None:
        """A request was sent. ``key``: connection, sender and id text. ``post``: the HTTP exchange that carried it.

        ``own_post``: only that POST's response can answer it (the modern era over HTTP).
        """
        if own_post and post is not None:
            self._posted.setdefault(post, []).append(row)
        else:
            self._open.setdefault(key, []).append((row, post))

    def answer(self, key: Hashable, post: Hashable = None) -> tuple[int | None, bool]:
        """The request that an answer with this key answers, or None; and whether it was answered before."""
        if post is not None and (waiting := self._posted.get(post)):
            row = self._closed[(post,)] = waiting.pop(0)
            return row, False
        rows = self._open.get(key)
        if rows:
            # an id that is in use twice: the request of this very POST first, then the one that waited longest
            at = 0
            if post is not None and len(rows) > 1:
                at = next((n for n, (_, own) in enumerate(rows) if own == post), 0)
            row = rows.pop(at)[0]
            if not rows:
                del self._open[key]
            self._closed[key] = row
            return row, False
        row = self._closed.get(key)
        if row is None and post is not None:
            row = self._closed.get((post,))
        return row, row is not None
