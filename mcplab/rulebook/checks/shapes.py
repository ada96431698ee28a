"""Params and results against the shapes of their revision (mcplab/spec/shapes.py)."""

from __future__ import annotations

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken
from mcplab.spec.shapes import params_problems, result_problems

_SHOWN = 3


def params(m: Fact) -> Outcome:
    if not isinstance(m.body, dict):
        return None
    return _said(params_problems(m.revision or "", m.method or "", m.body.get("params", ABSENT)))


def result(m: Fact) -> Outcome:
    """A task, a request for input and what an extension made of it have shapes of their own."""
    if not isinstance(m.body, dict) or m.result.get("resultType", "complete") != "complete" or "task" in m.result:
        return None
    if m.era == "modern" and not m.session.instance.modern:
        return None
    return _said(result_problems(m.revision or "", m.method or "", m.body.get("result", ABSENT)))


def _said(wrong: list[str] | None) -> Outcome:
    if wrong is None:
        return None
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return broken("; ".join(wrong[:_SHOWN]) + more) if wrong else KEPT
