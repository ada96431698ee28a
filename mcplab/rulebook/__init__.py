"""The rule book: what the specification asks of both parties, checked on a capture in one pass (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mcplab.rulebook.tables import findings, many, rules

__all__ = ["check", "findings", "rules"]


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
    """
    options = {"rules": rules, "revision": revision, "hints": hints}
    return many([trace] if hasattr(trace, "record") else trace, **options)
