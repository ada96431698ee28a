"""The rule book: what the specification asks of both parties, checked on a capture in one pass (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex

import pandas as pd

from mcplab.model import ArgumentError, TraceError
from mcplab.rulebook import explained, used
from mcplab.rulebook.explained import Explanation
from mcplab.rulebook.tables import findings, many, plan_of, rules

__all__ = ["Explanation", "check", "exercised", "explain", "findings", "rules", "what_if"]


def check(
    trace: Any, *, rules: Iterable[str] | str | None = None, revision: str | None = None, hints: bool = False
) -> pd.DataFrame:
    """Findings of a trace, or of several: one verdict for each rule, instance and revision.

    Args:
        trace: a ``Trace``, or ``Traces``.
        rules: ids; ``gate`` or ``gate.tools`` stand for all ids below; default: every rule that is checked.
        revision: judge every message by this revision instead of the one in force.
        hints: also rows of rules with low confidence (verdict ``hint``).

    Returns:
        The columns of ``findings`` (docs/columns.md). ``broken``: a row a message, or what proves that it never came
        (``anchor`` is ``absence``); ``kept``, ``unexercised`` and ``unknown``: one row, ``n`` says how often the rule
        applied. ``unknown``: the capture does not hold what decides it. ``revision`` is missing where no one can tell.

    Raises:
        SpecError: no such rule, or no such revision.
        TraceError: ``trace`` is none.
    """
    options = {"rules": rules, "revision": revision, "hints": hints}
    return many(_each(trace), **options)


def _each(trace: Any) -> list[Any]:
    """The traces of ``trace``, a ``Trace`` or several."""
    several = isinstance(trace, Iterable) and not isinstance(trace, (str, bytes)) and not hasattr(trace, "record")
    found = list(trace) if several else [trace]
    for one in found:
        if not hasattr(one, "record"):
            raise TraceError(f"a {type(one).__name__} is no trace; read_trace and read_traces make some of files")
    return found


def explain(trace: Any, seq: int | str) -> Explanation:
    """One message in five lines: what it is, the declaration in force, its gate, its answer, and its rules.

    Args:
        trace: a ``Trace``.
        seq: the message's; or a method, as ``resources/list``: three lines say whether it was sent, and whether what
            was declared by the end allowed it, for each group of connections of which the same holds.

    Raises:
        TraceError: no message of the trace has this seq, or of a method: the trace holds no message.
        SpecError: no revision has such a method.
        ArgumentError: ``seq`` is neither.
    """
    if not hasattr(trace, "record"):
        raise TraceError(f"a {type(trace).__name__} is no trace; of several give one, such as traces[0]")
    tables = trace.tables
    if isinstance(seq, bool) or not isinstance(seq, (str, SupportsIndex)):
        raise ArgumentError(f"seq={seq!r}: it is the seq of a message, or a method such as 'resources/list'")
    if isinstance(seq, str):
        return explained.explain_method(tables.wire, tables.links, trace.name, seq, plan_of(None))
    return explained.explain(tables.wire, tables.links, trace.name, seq.__index__(), plan_of(None))


def exercised(trace: Any) -> pd.DataFrame:
    """What traffic did with what was declared: a row a capability path of each party and instance, and one for pings.

    Columns: trace, instance, party (who declares it), path, status (``declared and used``, ``declared and unused``,
    ``used undeclared``, ``refused``: every use was answered with an error, ``used, declaration not seen``; of a ping
    ``used, needs no declaration``), declared (missing where nobody saw the declaration, and of a ping), n (messages
    that needed it), refused, why (codes and messages of the errors), seqs (the first twenty), worked (uses that got a
    result; of notifications all), outcome (``declared and works`` and so on; of a ping, whose row is of the party that
    has to answer, ``works``, ``refused``, ``ignored`` or ``unanswered``). Paths that gate no traffic have no row.
    """
    parts = [used.exercised(one.tables.wire, one.tables.links, one.name) for one in _each(trace)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(used.EXERCISED))


def what_if(trace: Any, drop: Iterable[str] | str) -> pd.DataFrame:
    """Messages that would have been out of contract, had neither party declared the paths in ``drop``.

    Columns: trace, instance, conn, seq, part, sender, kind, method, path (what would have been missing), rule, level,
    reason. Messages that broke the contract anyway, or whose declaration nobody saw, are not listed.

    Raises:
        SpecError: ``drop`` names what is no path.
        ArgumentError: ``drop`` holds no texts.
    """
    paths: list[Any] = [drop] if isinstance(drop, str) else list(drop) if isinstance(drop, Iterable) else [drop]
    if not all(isinstance(path, str) for path in paths):
        raise ArgumentError(f"drop={drop!r}: capability paths such as ['resources.subscribe']")
    parts = [used.what_if(one.tables.wire, one.tables.links, one.name, paths) for one in _each(trace)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(used.WHAT_IF))
