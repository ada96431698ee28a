"""Rules that name what they read are judged once for equal facts: that must never change an outcome."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from mcplab.formats import read
from mcplab.formats.source import load
from mcplab.frames.links import links
from mcplab.frames.wire import Wire
from mcplab.model import Record
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import catalogue
from mcplab.rulebook.engine import Run
from mcplab.rulebook.tables import plan_of

CHECKED = [rule for rule in catalogue().values() if rule.check]
CASES = Path(__file__).parents[2] / "shared" / "cases"


def outcomes(record: Record, *, grouped: bool) -> Counter:
    """Everything that the checks said: (instance, revision, rule, what, where) -> times."""
    wire = Wire(record)
    run = Run(wire, links(wire, "x"), plan_of(None), grouped=grouped)
    said: Counter = Counter()
    for (instance, revision), board in run.boards.items():
        for rule, times in enumerate(board.kept):
            said[instance, revision, run.plan.rules[rule].id, "kept"] += times
        for rule, times in enumerate(board.unknown):
            said[instance, revision, run.plan.rules[rule].id, "unknown"] += times
        for one in board.broken:
            said[instance, revision, run.plan.rules[one.rule].id, "broken", one.seq, one.part, one.said.detail] += 1
    return +said


def twice(record: Record) -> Record:
    """The same events again, later: what the first time was new is known the second time."""
    events = list(record.events)
    later = [msgspec.structs.replace(event, seq=event.seq + len(events)) for event in events]
    return Record(record.header, [*events, *later], name=record.name)


@pytest.mark.parametrize("rule", CHECKED, ids=[rule.id for rule in CHECKED])
def test_groups_change_nothing_on_examples(rule) -> None:
    for revision in rule.revisions:
        for which in ("kept", "broken"):
            record = examples.of(rule, which, revision)
            if record is not None:
                for one in (record, twice(record)):
                    assert outcomes(one, grouped=True) == outcomes(one, grouped=False), (which, revision)


def test_groups_change_nothing_on_captures(captures: list[Path]) -> None:
    for path in [*captures[::9], *sorted(CASES.glob("*/trace.jsonl"))]:
        record = read(load(path), format=None, tz=None)
        assert outcomes(record, grouped=True) == outcomes(record, grouped=False), path.name
