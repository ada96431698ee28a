"""Every rule's examples, in every revision of the rule: the kept one breaks nothing, the broken one just that rule."""

from __future__ import annotations

import pytest

from mcplab.frames.links import links
from mcplab.frames.wire import Wire
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import Rule, catalogue
from mcplab.rulebook.tables import findings

CHECKED = [rule for rule in catalogue().values() if rule.check]


def _run(rule: Rule, which: str, revision: str):
    record = examples.of(rule, which, revision)
    if record is None:
        assert rule.confidence[revision] == "low", f"{rule.id}: no {which} example for {revision}"
        pytest.skip("a rule of low confidence needs no example")
    wire = Wire(record)
    given = revision if rule.given and which == "broken" else None
    return findings(wire, links(wire, "example"), "example", revision=given)


@pytest.mark.parametrize("rule", CHECKED, ids=[rule.id for rule in CHECKED])
def test_kept_example_is_kept_and_breaks_nothing(rule: Rule) -> None:
    for revision in rule.revisions:
        found = _run(rule, "kept", revision)
        broken = found[found["verdict"] == "broken"]
        other = broken[~broken["rule"].isin(rule.kept_also[revision])]
        assert other[["rule", "seq", "detail"]].values.tolist() == [], revision
        assert set(rule.kept_also[revision]) <= set(broken["rule"]), revision
        mine = found[(found["rule"] == rule.id) & (found["revision"] == revision)]
        assert mine["verdict"].tolist() == ["kept"], revision


@pytest.mark.parametrize("rule", CHECKED, ids=[rule.id for rule in CHECKED])
def test_broken_example_breaks_that_rule_and_no_other(rule: Rule) -> None:
    for revision in rule.revisions:
        found = _run(rule, "broken", revision)
        broken = found[found["verdict"] == "broken"]
        wanted = {rule.id, *rule.also[revision]}
        assert set(broken["rule"]) == wanted, (revision, broken[["rule", "seq", "detail"]].values.tolist())
        mine = broken[broken["rule"] == rule.id]
        assert set(mine["revision"]) == {revision}
        assert set(mine["level"]) == {rule.level[revision]}
