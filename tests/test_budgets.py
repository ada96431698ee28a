"""Lines of code by layer: the design's budgets, most of which are missed, and a ceiling so that they are missed by less.

What counts is a line with code on it: blank lines, comments and docstrings explain and are free.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

import mcplab

ROOT = Path(mcplab.__file__).parent
GRACE = 1.2
BUDGETS = {
    "model": 250, "capabilities negotiation channels gating": 1_000, "traces": 250,
    "spec": 300, "formats": 30 * 120, "frames": 400, "rulebook": 2_150, "live": 1_800, "plots": 450, "render": 300,
    "exports": 150, "corpus": 300, "widgets": 250, "report": 200, "cli rulebook_commands": 350, "": 8_000,
}  # fmt: skip
"""Modules -> the design's lines, with its 120 for each of thirty formats; nothing: the whole package."""
MISSED = {
    "spec": 620, "formats": 4_550, "frames": 2_350, "rulebook": 8_700, "live": 6_150, "plots": 2_950, "render": 1_060,
    "exports": 247, "corpus": 1_360, "widgets": 500, "report": 390, "cli rulebook_commands": 1_275, "": 35_800,
}  # fmt: skip
"""Where the budget is missed: what was reached, so that it grows no further. Lower it with each line that goes."""


def lines(name: str) -> int:
    """Lines with code of some modules or packages."""
    paths = [ROOT / one for one in name.split()] or [ROOT]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")])]
    return sum(map(_code, files))


def _code(file: Path) -> int:
    text = file.read_text(encoding="utf-8")
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            used.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            used.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(used)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=f"missed: {MISSED[name]} lines")) if name in MISSED
    else name for name in BUDGETS
])  # fmt: skip
def test_the_design_s_budgets(name):
    assert lines(name) <= BUDGETS[name] * GRACE


@pytest.mark.parametrize("name", MISSED)
def test_what_misses_its_budget_grows_no_further(name):
    assert lines(name) <= MISSED[name]
