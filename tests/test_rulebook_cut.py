"""A capture that starts late or ends early never accuses: for every k, over cases, captures and all examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcplab import read_trace
from mcplab.formats import read
from mcplab.formats.source import load
from mcplab.frames.links import links
from mcplab.frames.wire import Wire
from mcplab.model import Record
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import catalogue
from mcplab.rulebook.engine import Run
from mcplab.rulebook.tables import plan_of

CASES = sorted((Path(__file__).parents[2] / "shared" / "cases").glob("*/trace.jsonl"))
RULES = [rule for rule in catalogue().values() if rule.check and rule.kept]


def judged(record: Record, events) -> tuple[set, set]:
    """(broken, kept) as (rule, revision, seq, part) and (rule, revision)."""
    wire = Wire(Record(record.header, events, name="x"))
    run = Run(wire, links(wire, "x"), plan_of(None))
    broken, kept = set(), set()
    for (_, revision), board in run.boards.items():
        broken |= {(run.plan.rules[one.rule].id, revision, one.seq, one.part) for one in board.broken}
        for number, rule in enumerate(run.plan.rules):
            if board.kept[number] and not board.unknown[number]:
                kept.add((rule.id, revision))
    return broken, kept


def no_new_accusation(record: Record) -> None:
    events = list(record.events)
    whole, _ = judged(record, events)
    for k in range(1, len(events)):
        assert judged(record, events[k:])[0] <= whole, f"first {k} cut"
        assert judged(record, events[:-k])[0] <= whole, f"last {k} cut"


@pytest.mark.parametrize("path", CASES, ids=[path.parent.name for path in CASES])
def test_cases(path: Path) -> None:
    no_new_accusation(read(load(path), format=None, tz=None))


def test_captures(captures: list[Path]) -> None:
    for path in captures[::5][:57]:
        no_new_accusation(read(load(path), format=None, tz=None))


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_examples(rule) -> None:
    for revision in {rule.revisions[0], rule.revisions[-1]}:
        for which in ("kept", "broken"):
            record = examples.of(rule, which, revision)
            if record is not None:
                no_new_accusation(record)


LEGACY_GROUND = [rule for rule in RULES if "negotiation" in rule.needs and rule.revisions[0] < "2026"]


@pytest.mark.parametrize("rule", LEGACY_GROUND, ids=[rule.id for rule in LEGACY_GROUND])
def test_kept_loses_its_ground_with_the_handshake(rule) -> None:
    for revision in (name for name in rule.revisions if name < "2026"):
        record = examples.of(rule, "kept", revision)
        assert record is not None
        events = list(record.events)
        answered = max(n for n, event in enumerate(events) if '"serverInfo"' in event.text)
        for k in range(answered + 1, len(events)):
            assert (rule.id, revision) not in judged(record, events[k:])[1], k


def test_captures_lose_their_ground_with_the_handshake(captures: list[Path]) -> None:
    """Also where every exchange repeats a version in its header: what was agreed on is not there."""
    ground = {rule.id for rule in LEGACY_GROUND}
    seen = 0
    for path in (path for path in captures[::2] if "-http-" in path.name):
        record = read(load(path), format=None, tz=None)
        events = list(record.events)
        answered = [
            n for n, event in enumerate(events) if '"serverInfo"' in event.text and '"protocolVersion"' in event.text
        ]
        if answered:
            kept = judged(record, events[answered[-1] + 1 :])[1]
            assert not [one for one in kept if one[0] in ground and one[1] is not None and one[1] < "2026"], path.name
            seen += 1
    assert seen > 20


def test_a_line_that_cannot_be_read_accuses_nobody(captures: list[Path]) -> None:
    def broken(lines: list[str]) -> set[tuple]:
        table = read_trace("\n".join(lines).encode()).findings
        table = table[table["verdict"] == "broken"]
        return set(zip(table["rule"], table["seq"], strict=True))

    before = set()
    for path in captures[::9]:
        lines = path.read_text(encoding="utf-8").splitlines()
        whole = broken(lines)
        for k in range(1, len(lines)):
            half = lines[k][: len(lines[k]) // 2]
            found = broken([*lines[:k], half, *lines[k + 1 :]])
            assert found <= whole, (path.name, k)
            before |= {one for one in found if k < one[1]}
    assert before  # what a part shows alone still counts
