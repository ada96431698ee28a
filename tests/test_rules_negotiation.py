"""The table of what the specification says of negotiation: its rules are there, and no gate is missing."""

from __future__ import annotations

import re
from pathlib import Path

from mcplab.rulebook.catalogue import catalogue

TEXT = (Path(__file__).parents[1] / "docs" / "rules-of-negotiation.md").read_text(encoding="utf-8")
TOPICS = {rule.partition(".")[0] for rule in catalogue()}
NAMED = {name for name in re.findall(r"`([a-z-]+\.[a-z-]+[a-z])`", TEXT) if name.partition(".")[0] in TOPICS}
UMBRELLA = "lifecycle.only-negotiated-capabilities"
PATHS = {"tasks.requests", "sampling.tools", "sampling.context", "resources.subscribe"}


def test_every_rule_of_the_table_has_a_check() -> None:
    named = NAMED - PATHS
    assert len(named) > 60
    missing = sorted(name for name in named - {UMBRELLA} if name not in catalogue() or not catalogue()[name].check)
    assert missing == []


def test_no_gate_of_the_revision_is_missing() -> None:
    gates = {rule.id for rule in catalogue().values() if rule.id.startswith("gate.") and "2025-11-25" in rule.revisions}
    assert gates - NAMED == set()


def test_every_statement_names_a_rule_or_says_why_not() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| statement")]
    assert len(rows) > 35
    for row in rows:
        rules = row.split("|")[2]
        named = {name for name in re.findall(r"`([a-z-]+\.[a-z-]+)`", rules) if name in catalogue()}
        assert named or rules.strip().startswith(("no rule", "the same")), row
