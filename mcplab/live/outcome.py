"""What a handshake came to: ``Handshake``, with its trace, and how it shows itself in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mcplab.live.session import Answer
from mcplab.live.texts import dump
from mcplab.model import ABSENT, HandshakeError, Record
from mcplab.negotiation import Step
from mcplab.spec import META_SERVER_INFO


def trace_of(record: Record) -> Any:
    """The ``Trace`` of a record. Tables, and pandas with them, load here and not with a handshake."""
    from mcplab.traces import Trace

    return Trace(record)


@dataclass(frozen=True)
class Handshake:
    """One finished handshake.

    Attributes:
        record: the capture as it was recorded; ``trace`` is the same with tables.
        mode: ``auto`` or ``forced``. ``era``: ``legacy`` or ``modern``. ``revision``: what was agreed on.
        steps: the negotiation step by step: what was asked, what came, what followed from it.
        discovery: ``modern``, ``legacy-fallback`` or ``none`` (nothing was discovered).
        client: what was declared, as it was given (``ABSENT`` and ``JsonText`` too). ``client_info`` likewise.
        result: the discover or initialize result.
        session: ``local`` on stdio, the session id of a legacy HTTP connection, else None.
        results: an ``Answer`` for each request of ``then``.
        asked: what the server asked for. ``notifications``: what it told unasked.
    """

    record: Record = field(repr=False)
    mode: str
    era: str
    revision: str
    steps: tuple[Step, ...]
    discovery: str
    client: Any
    client_info: Any
    result: dict[str, Any] = field(repr=False)
    session: str | None
    results: tuple[Answer, ...] = ()
    asked: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    notifications: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @cached_property
    def trace(self) -> Any:
        """The recorded traffic as a ``Trace``."""
        return trace_of(self.record)

    @property
    def label(self) -> str:
        """``2026-07-28 (modern)``, ``2025-11-25 (forced legacy)``."""
        return f"{self.revision} ({'forced ' if self.mode == 'forced' else ''}{self.era})"

    @property
    def server(self) -> Any:
        """The server's capabilities, or ``ABSENT``."""
        return self.result.get("capabilities", ABSENT)

    @property
    def server_info(self) -> Any:
        """The server's name and version as it gave them, or ``ABSENT``."""
        if self.era == "legacy":
            return self.result.get("serverInfo", ABSENT)
        meta = self.result.get("_meta")
        return meta.get(META_SERVER_INFO, ABSENT) if isinstance(meta, dict) else ABSENT

    @property
    def instructions(self) -> Any:
        """The server's instructions, or ``ABSENT``."""
        return self.result.get("instructions", ABSENT)

    def compare(self, *others: Any, by: str = "client", **options: Any) -> Any:
        """This client's declaration beside those of other traces: ``compare`` with them.

        Args:
            others: traces, paths, globs, ``bundled:NAME`` (or a list of these); none: the bundled captures.
            by, options: see ``compare``.
        """
        from mcplab import comparison, sources
        from mcplab.traces import Traces

        beside = sources.load(others[0] if len(others) == 1 else list(others) or None)
        return comparison.compare(Traces([self.trace, *beside]), by=by, **options)

    def _repr_html_(self) -> str:
        import pandas as pd

        from mcplab import render
        from mcplab.told import framed, table_html

        facts = {
            "protocol": self.label,
            "server": self.server_info,
            "session": self.session if self.era == "legacy" else ABSENT,
            "server declares": self.server,
            "client": self.client_info,
            "client declares": self.client,
            "instructions": self.instructions,
        }
        told = [
            (name, value if isinstance(value, str) else _shown(value))
            for name, value in facts.items()
            if value is not ABSENT and value is not None
        ]
        tables = [pd.DataFrame(told, columns=["handshake", ""])]
        tables.append(pd.DataFrame([(s.asked, s.came, s.so) for s in self.steps], columns=["asked", "came", "so"]))
        if self.results:
            answers = [(answer.method, answer.outcome, _outcome(answer)) for answer in self.results]
            tables.append(pd.DataFrame(answers, columns=["then", "outcome", "answer"]))
        return framed("".join(map(table_html, tables))) + render.html(self.trace)


def _shown(value: Any, limit: int = 400) -> str:
    if value is ABSENT:
        return "ABSENT"
    try:
        text = dump(value)
    except HandshakeError:
        text = "(nested too deeply to be shown)"
    return text if len(text) <= limit else f"{text[:limit]}…"


def _outcome(answer: Answer) -> str:
    if answer.outcome == "result":
        return _shown(answer.result, 160)
    if answer.outcome == "error":
        return _shown(answer.error, 160)
    return f"HTTP {answer.status}" if answer.outcome == "rejected" else ""
