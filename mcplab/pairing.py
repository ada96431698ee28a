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
        # key -> (row, its POST) of the one open request, a list of these, oldest first, where an id is in use twice,
        # or the row that was answered last
        self._known: dict[Hashable, tuple[int, Hashable] | list[tuple[int, Hashable]] | int] = {}
        self._posted: dict[Hashable, list[int]] = {}
        self._closed: dict[Hashable, int] = {}  # POST -> the row that was answered last

    def request(self, row: int, key: Hashable, post: Hashable = None, *, own_post: bool = False) -> None:
        """A request was sent. ``key``: connection, sender and id text. ``post``: the HTTP exchange that carried it.

        ``own_post``: only that POST's response can answer it (the modern era over HTTP).
        """
        if own_post and post is not None:
            self._posted.setdefault(post, []).append(row)
            return
        known = self._known.get(key)
        if isinstance(known, tuple):
            self._known[key] = [known, (row, post)]
        elif isinstance(known, list):
            known.append((row, post))
        else:
            self._known[key] = (row, post)

    def answer(self, key: Hashable, post: Hashable = None) -> tuple[int | None, bool]:
        """The request that an answer with this key answers, or None; and whether it was answered before."""
        if post is not None and (waiting := self._posted.get(post)):
            row = self._closed[post] = waiting.pop(0)
            return row, False
        known = self._known.get(key)
        if isinstance(known, tuple):
            row = self._known[key] = known[0]
            return row, False
        if isinstance(known, list):
            # the request of this very POST first, then the one that waited longest
            at = next((n for n, (_, own) in enumerate(known) if own == post), 0) if post is not None else 0
            row = known.pop(at)[0]
            if len(known) == 1:
                self._known[key] = known[0]
            return row, False
        row = self._closed.get(post) if known is None and post is not None else known
        return row, row is not None
