"""What a demo server is told to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mcplab.model import ABSENT, SpecError
from mcplab.spec import REVISIONS, era

Serves = Literal["legacy", "modern", "dual"]


@dataclass(frozen=True)
class Config:
    """Options of a demo server.

    Attributes:
        serves: the eras that it speaks.
        versions: the revisions that it speaks; those of other eras than ``serves`` are left out. Empty: all.
        capabilities: what it declares, any JSON value; ``ABSENT``: everything that it has. Methods of a feature that
            is not declared are unknown methods.
        session_id: of every legacy HTTP session; None: a fresh one each; "": no sessions.
        get: what a legacy GET gets: a stream, or 405.
        challenge: ask the client for everything a server may ask for, declared or not (``challenge``); ask tools ask
            also for what it has not declared.
        fault: name of a fault (``faults.FAULTS``), or "".
        old_sse: over HTTP, the HTTP+SSE transport of 2024-11-05 in place of Streamable HTTP.
        instructions: sent with the declaration; ``ABSENT`` leaves the member out.
    """

    serves: Serves = "dual"
    versions: tuple[str, ...] = ()
    capabilities: Any = ABSENT
    session_id: str | None = None
    get: Literal["sse", "405"] = "sse"
    challenge: bool = False
    fault: str = ""
    old_sse: bool = False
    instructions: Any = "Tools that answer at once, slowly, with progress, with an error, or with a question."
    name: str = "mcplab-demo"

    def __post_init__(self) -> None:
        if self.serves not in ("legacy", "modern", "dual"):
            raise SpecError(f"serves {self.serves!r} is none: use legacy, modern or dual")
        if not (self.legacy or self.modern):
            raise SpecError(f"no version left: none of {', '.join(self.versions)} is {self.serves}")

    def _speaks(self, wanted: str) -> tuple[str, ...]:
        if self.serves not in (wanted, "dual"):
            return ()
        return tuple(sorted(name for name in self.versions or REVISIONS if era(name) == wanted))

    @property
    def legacy(self) -> tuple[str, ...]:
        """Legacy revisions, oldest first."""
        return self._speaks("legacy")

    @property
    def modern(self) -> tuple[str, ...]:
        """Modern revisions, oldest first."""
        return self._speaks("modern")

    @property
    def supported(self) -> list[str]:
        """All of them, newest first."""
        return [*reversed(self.modern), *reversed(self.legacy)]
