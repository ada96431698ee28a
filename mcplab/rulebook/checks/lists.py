"""The lists of a server as they were read: pages joined by their cursors. Of each list the latest two are kept."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent, once
from mcplab.rulebook.facts import Fact

MEMBER: Final = {
    "tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}  # fmt: skip
CHANGED: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}


class Listing:
    """One list, from its first page to its last.

    Attributes:
        items: the entries in their order.
        at: seq of its last page. first: seq of the request of its first page.
        fresh: the server has not said since then that it changed.
        path: the HTTP address that gave it, or None.
    """

    __slots__ = ("_by_name", "at", "first", "fresh", "items", "path")

    def __init__(self, items: list[Any], first: int, at: int, path: str | None = None) -> None:
        self.items = items
        self.first = first
        self.at = at
        self.path = path
        self.fresh = True
        self._by_name: dict[str, dict[str, Any]] | None = None

    def named(self, name: Any) -> dict[str, Any] | None:
        """The entry of that name."""
        if self._by_name is None:
            self._by_name = {
                item["name"]: item
                for item in self.items
                if isinstance(item, dict) and isinstance(item.get("name"), str)
            }
        return self._by_name.get(name) if isinstance(name, str) else None

    @property
    def names(self) -> list[Any]:
        return [item.get("name") if isinstance(item, dict) else None for item in self.items]


class Page(NamedTuple):
    """What one page did: the list that it completed, and the one that stood before. ``upto``: its items so far."""

    done: Listing | None
    before: Listing | None
    upto: list[Any] | None


class _Shelf:
    """The lists of one place (a session; in the modern era an instance)."""

    __slots__ = ("latest", "parts")

    def __init__(self) -> None:
        self.latest: dict[str, Listing] = {}
        self.parts: Recent[tuple[list[Any], int]] = Recent()


def _memory(m: Fact) -> dict[str, Any]:
    """Without sessions a list belongs to the server; else each session may have its own."""
    return m.session.instance.memory if m.era == "modern" else m.session.memory


def _shelf(m: Fact) -> _Shelf:
    memory = _memory(m)
    found = memory.get("lists")
    if found is None:
        found = memory["lists"] = _Shelf()
    return found


def latest(m: Fact, method: str) -> Listing | None:
    """The latest whole list; None where none was captured."""
    shelf = _memory(m).get("lists")
    return None if shelf is None else shelf.latest.get(method)


def _take(m: Fact) -> Page | None:
    shelf = _shelf(m)
    if m.kind == "notification":
        for method in CHANGED.get(m.method or "", ()):
            if method in shelf.latest:
                shelf.latest[method].fresh = False
        return None
    asked, method = m.request, m.method or ""
    items = m.result.get(MEMBER.get(method, ""))
    if asked is None or m.again or not isinstance(items, list):
        return None
    cursor = asked.params.get("cursor", ABSENT)
    if cursor is ABSENT or cursor is None:
        so_far, first = list(items), asked.seq
    else:
        part = shelf.parts.get((method, cursor)) if isinstance(cursor, str) else None
        if part is None:
            return Page(None, None, None)  # a page whose forerunner nobody saw
        so_far, first = part[0] + items, part[1]
    following = m.result.get("nextCursor", ABSENT)
    if isinstance(following, str):
        shelf.parts.put((method, following), (so_far, first))
        if len(shelf.parts) > 64:
            shelf.parts.clear()
        return Page(None, None, so_far)
    before = shelf.latest.get(method)
    done = shelf.latest[method] = Listing(so_far, first, m.seq, m.post.exchange.path if m.post is not None else None)
    return Page(done, before, so_far)


def page(m: Fact) -> Page | None:
    """Take a list result or a list_changed notification in; what it did. Every check that reads ``latest`` calls it."""
    if m.kind == "notification" or (m.kind == "result" and m.method in MEMBER):
        return once(m, "lists.page", _take, where=_memory(m))
    return None
