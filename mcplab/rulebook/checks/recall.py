"""What checks keep of a capture, within bounds: a capture of any length needs no more memory than a short one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from msgspec import UNSET

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.spec import META_SUBSCRIPTION_ID

V = TypeVar("V")
S = TypeVar("S")

LIMIT: Final = 5_000
"""So many entries a memory keeps; of an older one the capture can no longer tell."""


class Recent(Generic[V]):
    """The latest entries by key. ``whole`` is False once one had to go: then "not in it" proves nothing."""

    __slots__ = ("_entries", "whole")

    def __init__(self) -> None:
        self._entries: dict[Any, V] = {}
        self.whole = True

    def put(self, key: Any, value: V) -> None:
        """Keep an entry; the oldest one goes when there are too many."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > LIMIT:
            del self._entries[next(iter(self._entries))]
            self.whole = False

    def get(self, key: Any) -> V | None:
        return self._entries.get(key)

    def pop(self, key: Any) -> V | None:
        return self._entries.pop(key, None)

    def __contains__(self, key: Any) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> Iterator[V]:
        return iter(self._entries.values())

    def items(self) -> Iterator[tuple[Any, V]]:
        return iter(self._entries.items())

    def clear(self) -> None:
        self._entries.clear()
        self.whole = True


def once(m: Fact, name: str, make: Callable[[Fact], S], *, where: dict[str, Any]) -> S:
    """``make(m)`` on the first call for a message, and what it gave on the next ones.

    Several rules look at one message and share what they remember; whichever comes first takes it in.
    """
    held = where.get(name)
    if held is not None and held[0] is m:
        return held[1]
    made = make(m)
    where[name] = (m, made)
    return made


def stamp(m: Fact) -> float | None:
    """Seconds of the event's clock; None where the capture has none. Good for a span, never for order."""
    return seconds(m.event.ts if m.event is not None else UNSET)


def seconds(text: Any) -> float | None:
    """A timestamp as seconds; None where it is none."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def redelivered(m: Fact) -> bool:
    """Does it come on a stream that the client resumed? Then it may have come before."""
    return m.post is not None and "last-event-id" in (m.post.headers or {})


def subscribed(m: Fact) -> Any:
    """The subscription that a notification is tagged with (2026-07-28); ABSENT where it has no tag."""
    return m.meta.get(META_SUBSCRIPTION_ID, ABSENT)
