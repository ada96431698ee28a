"""Completions (server/utilities/completion)."""

from __future__ import annotations

from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken


def max_values(m: Fact) -> Outcome:
    completion = m.result.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list):
        return broken("completion.values is not an array")
    if len(values) > 100:
        return broken(f"{len(values)} values")
    return KEPT if all(isinstance(value, str) for value in values) else broken("a value that is not a string")
