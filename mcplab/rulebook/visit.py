"""The engine's pass with somebody else's eyes: every message with what was in force when it came."""

from __future__ import annotations

from collections.abc import Callable

from mcplab.frames.links import Link
from mcplab.frames.wire import Wire
from mcplab.rulebook.engine import Run
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import Outcome
from mcplab.rulebook.plan import Entries, Plan


class _Looking(Plan):
    """A plan that has one check for everything."""

    def __init__(self, look: Callable[[Fact], Outcome]) -> None:
        super().__init__([])
        self.rules = []
        self._look = look

    def checks(self, revision: str, sender: str, kind: str, name: str | None) -> Entries:
        return Entries(iter(()), [], (), kind, False).with_rest(((0, self._look),))


def visit(wire: Wire, links: dict[str, Link], look: Callable[[Fact], object], revision: str | None = None) -> None:
    """Call ``look`` for every message whose revision is known, in wire order."""

    def check(m: Fact) -> Outcome:
        if m.row >= 0:
            look(m)
        return None

    Run(wire, links, _Looking(check), revision)
