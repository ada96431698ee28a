"""Progress bars in a terminal or a notebook for what takes over a second: they come after one, go when it is over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

DELAY = 1.0  # seconds before a bar is shown
T = TypeVar("T")


def over(items: Sequence[T], doing: str, unit: str, wanted: bool | None = None, *, least: int = 2) -> Iterable[T]:
    """The items, with a bar where that takes over a second.

    ``wanted``: True: from the start, and it stays; False: never; None: where there are ``least`` items or more.
    """
    if wanted is False or (wanted is None and (_off() or len(items) < least)):
        return items
    from tqdm.auto import tqdm

    return tqdm(items, desc=doing, unit=unit, **_ways(wanted))


@contextmanager
def bytewise(
    total: int, doing: str, wanted: bool | None = None, *, least: int = 1 << 25
) -> Iterator[Callable[[int], object]]:
    """A function to be called with the number of bytes that are done, and a bar; ``wanted`` as above."""
    if wanted is False or not total or (wanted is None and (_off() or total < least)):
        yield lambda _: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=doing, unit="B", unit_scale=True, **_ways(wanted)) as bar:
        yield bar.update


def _ways(wanted: bool | None) -> dict[str, Any]:
    """``disable=None``: a bar in a terminal or a notebook, none in a file or a pipe."""
    return {"delay": 0, "leave": True} if wanted else {"delay": DELAY, "leave": False, "disable": None}


def _off() -> bool:
    """tqdm's own switch, which its bars in notebooks do not look at."""
    return bool(os.environ.get("TQDM_DISABLE"))
