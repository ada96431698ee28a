"""What the suite says of a scenario beside what ``check`` says of its recording. No input or output, no clock.

``agreement.toml`` tells which of our rules ask what a check of the suite asks, or why none does, and explains each
difference. A check that is not in it, a difference without an explanation and an explanation of nothing are problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from conformance.suite import Check, Scenario

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
THEIRS: Final = {"SUCCESS": PASSED, "FAILURE": FAILED, "WARNING": FAILED, "SKIPPED": SKIPPED}
WORST: Final = (FAILED, PASSED, SKIPPED)  # of one check that a scenario makes more than once
OURS: Final = ("broken", "kept", "unknown", "unexercised")  # likewise of several rules

AGREES, DIFFERS, THEIRS_ONLY, OURS_ONLY = "agrees", "differs", "only theirs", "only ours"


@dataclass(frozen=True)
class Finding:
    """One of ours: a rule's verdict over a recording. ``party``: whom it binds."""

    rule: str
    verdict: str
    party: str
    detail: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the table. ``check`` is empty where only we say something, ``rules`` where none of ours asks it."""

    scenario: str
    check: str
    theirs: str
    rules: tuple[str, ...]
    ours: str
    agreement: str
    why: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Explanation:
    """``scenario`` and ``on`` (a check's id, or a rule's) may hold ``*``."""

    scenario: str
    on: str
    theirs: str
    ours: str
    why: str

    def fits(self, row: Row) -> bool:
        """Does it speak of this row?"""
        name = row.check or row.rules[0]
        said = fnmatchcase(row.scenario, self.scenario) and fnmatchcase(name, self.on)
        return said and (self.theirs, self.ours) == (row.theirs, row.ours)


@dataclass(frozen=True)
class Book:
    """What ``agreement.toml`` says. ``checks``: the rules of a check, or the reason that there is none."""

    checks: Mapping[str, tuple[str, ...] | str]
    explanations: Sequence[Explanation]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Book:
        """From the decoded file.

        Raises:
            KeyError: a check gives a reason that is not in the table of reasons.
        """
        reasons = data["reasons"]
        checks = {
            name: reasons[said] if isinstance(said, str) else tuple(said) for name, said in data["checks"].items()
        }
        return cls(checks, [Explanation(**one) for one in data["difference"]])


def rows(scenario: Scenario, checks: Iterable[Check], findings: Sequence[Finding], book: Book) -> Iterator[Row]:
    """The lines of one scenario, differences still without explanation."""
    verdicts: dict[str, set[str]] = {}
    for found in findings:
        verdicts.setdefault(found.rule, set()).add(found.verdict)
    theirs: dict[str, set[str]] = {}
    for one in checks:
        theirs.setdefault(one.id, set()).add(THEIRS[one.status])
    spoken: set[str] = set()
    for name, said in theirs.items():
        status = next(word for word in WORST if word in said)
        asked = book.checks.get(name, ())
        rules = asked if isinstance(asked, tuple) else ()
        seen = {verdict for rule in rules for verdict in verdicts.get(rule, ())}
        ours = next((word for word in OURS if word in seen), "unexercised" if rules else "")
        agreement = _compared(status, ours)
        if ours == "broken":
            spoken |= {rule for rule in rules if "broken" in verdicts.get(rule, ())}
        why = asked if isinstance(asked, str) and status != FAILED else ""
        yield Row(scenario.slug, name, status, rules, ours, agreement, why)
    for rule in sorted(verdicts):
        if "broken" in verdicts[rule] and rule not in spoken:
            one = next(found for found in findings if found.rule == rule and found.verdict == "broken")
            party = "" if one.party == scenario.role else f"the suite's {one.party}: "
            yield Row(scenario.slug, "", "", (rule,), "broken", OURS_ONLY, "", f"{party}{one.detail}")


def _compared(theirs: str, ours: str) -> str:
    if theirs == SKIPPED:
        return DIFFERS if ours == "broken" else AGREES
    if ours in ("", "unknown", "unexercised"):
        return THEIRS_ONLY
    return AGREES if (theirs == PASSED) == (ours == "kept") else DIFFERS


def explained(found: Iterable[Row], book: Book) -> tuple[list[Row], list[str]]:
    """The rows with the explanations of their differences, and what is wrong with the book."""
    told: list[Row] = []
    problems: list[str] = []
    used: set[int] = set()
    for row in found:
        if row.check and row.check not in book.checks:
            problems.append(f"{row.scenario}: the check {row.check} is not in [checks]")
        if row.agreement == AGREES or row.why:
            told.append(row)
            continue
        fitting = [number for number, one in enumerate(book.explanations) if one.fits(row)]
        used.update(fitting)
        if fitting:
            row = Row(**{**row.__dict__, "why": book.explanations[fitting[0]].why})
        else:
            name = row.check or row.rules[0]
            problems.append(
                f"{row.scenario}: {name}: the suite says {row.theirs or 'nothing'}, we say {row.ours or 'nothing'}, "
                f"and no [[difference]] explains it{f' ({row.detail})' if row.detail else ''}"
            )
        told.append(row)
    for number, one in enumerate(book.explanations):
        if number not in used:
            problems.append(f"[[difference]] {one.scenario}: {one.on}: explains nothing (theirs {one.theirs!r})")
    names = {row.check for row in told}
    problems += [f"[checks] {name}: the suite has no such check" for name in book.checks if name not in names]
    return told, problems
