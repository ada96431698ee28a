"""What a check says about one message."""

from __future__ import annotations

from typing import Final, NamedTuple

KEPT: Final = "kept"
"""The rule applies to this message and the message keeps it."""

UNKNOWN: Final = "unknown"
"""The rule applies, and the capture does not hold what decides it."""


class Broken(NamedTuple):
    """The rule applies to this message and the message breaks it.

    ``seq`` and ``part`` are given where the breach is anchored at another event than the one that was being looked
    at. ``anchor`` is ``absence`` for what never came. ``confidence`` and ``party`` override what the rule says. Of
    breaches of one rule in one connection with the same ``once`` only the first counts.
    """

    detail: str
    seq: int | None = None
    part: int | None = None
    related: tuple[int, ...] = ()
    anchor: str = "message"
    confidence: str | None = None
    party: str | None = None
    once: str = ""


Outcome = str | Broken | list[str | Broken] | None
"""What a check returns: None (the rule does not apply here), KEPT, UNKNOWN, a Broken, or a list of those."""


def broken(
    detail: str,
    *,
    at: tuple[int, int | None] | None = None,
    related: tuple[int, ...] = (),
    absence: bool = False,
    confidence: str | None = None,
    party: str | None = None,
    once: str = "",
) -> Broken:
    """A breach.

    ``at``: (seq, part) of the event to show, where it is not the one being looked at. ``party``: who broke it, for
    rules of either party where it is not the sender of that event. ``once``: what is told once in a connection.
    """
    seq, part = at if at is not None else (None, None)
    return Broken(detail, seq, part, related, "absence" if absence else "message", confidence, party, once)
