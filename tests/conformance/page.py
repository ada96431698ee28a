"""``docs/conformance.md`` from the rows of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from conformance.agreement import AGREES, DIFFERS, OURS_ONLY, THEIRS_ONLY, Row
from conformance.suite import REVISIONS, ROLES, SUITE, VERSION, Scenario

_HEAD = f"""# Conformance suite

Made by `make conformance` from a run of `{SUITE}@{VERSION}`; do not edit.

The suite of the MCP project judges a live server or client. It runs here against the demo server (with the tools,
prompts and resources that the suite asks for by name) and against a client built on `handshake`. Every scenario is
recorded, and `check` judges the recording, which knows less than the suite does: only what was on the wire. Both
verdicts stand side by side. Which rules ask what a check of the suite asks, and why the two differ where they do, is
in `tests/conformance/agreement.toml`; a difference without an explanation fails the target.

- **agrees**: both say it was kept, both say it was broken, or the suite skipped it and we found nothing broken.
- **differs**: one says kept, the other broken.
- **only theirs**: no rule of ours asks it, or the recording cannot tell.
- **only ours**: a rule that was broken, by either party, and that no check of the scenario asks.

A scenario is required by a revision, or run without being scored (extensions, and what came later).

"""


def text(scenarios: Sequence[Scenario], rows: Sequence[Row]) -> str:
    """The page."""
    parts = [_HEAD, "## Figures\n\n", _figures(scenarios, rows), "\n## Differences\n\n"]
    parts.append("Each with its explanation, and where: the scenario, or in how many.\n\n")
    parts += _differences(rows)
    parts += ["\n## Checks\n\nEach check of the suite, over all scenarios that make it.\n\n", _checks(rows)]
    return "".join(parts)


def _figures(scenarios: Sequence[Scenario], rows: Sequence[Row]) -> str:
    body = []
    for revision in REVISIONS:
        for role in ROLES:
            ran = [one for one in scenarios if (one.revision, one.role) == (revision, role)]
            slugs = {one.slug for one in ran}
            own = [row for row in rows if row.scenario in slugs]
            theirs = Counter(row.theirs for row in own)
            said = Counter(row.agreement for row in own)
            figures = [sum(one.scored for one in ran), theirs["passed"], theirs["failed"], theirs["skipped"]]
            figures += [said[word] for word in (AGREES, DIFFERS, THEIRS_ONLY, OURS_ONLY)]
            body.append([revision, role, str(len(slugs)), *map(str, figures)])
    names = [
        "revision",
        "tested",
        "scenarios",
        "required",
        "passed",
        "failed",
        "skipped",
        AGREES,
        DIFFERS,
        THEIRS_ONLY,
        OURS_ONLY,
    ]
    return _table(names, body)


def _differences(rows: Sequence[Row]) -> Iterable[str]:
    """Rows that do not agree, those with the same explanation together."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        if row.agreement != AGREES:
            key = (row.agreement, row.why, row.theirs, row.ours)
            groups.setdefault(key, []).append(f"{row.check or row.rules[0]} {row.scenario}")
    for (agreement, why, theirs, ours), own in sorted(groups.items()):
        names: dict[str, list[str]] = {}
        for one in own:
            name, _, where = one.partition(" ")
            names.setdefault(name, []).append(where)
        sides = ", ".join(word for word in (theirs and f"suite: {theirs}", ours and f"ours: {ours}") if word)
        listed = [f"`{name}` ({where[0] if len(where) == 1 else len(where)})" for name, where in sorted(names.items())]
        yield f"**{agreement}** ({sides}): {why}\n\n{', '.join(listed)}\n\n"


def _checks(rows: Sequence[Row]) -> str:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.check:
            groups.setdefault(row.check, []).append(row)
    body = []
    for name, own in sorted(groups.items()):
        rules = "<br>".join(f"`{rule}`" for rule in own[0].rules) or "none"
        theirs, ours = (Counter(getattr(row, side) for row in own) for side in ("theirs", "ours"))
        agreement = Counter(row.agreement for row in own)
        body.append([f"`{name}`", _counted(theirs), rules, _counted(ours), _counted(agreement)])
    return _table(["check", "suite", "rules", "ours", ""], body)


def _counted(counts: Counter[str]) -> str:
    words = [word if number == 1 else f"{word} {number}" for word, number in sorted(counts.items()) if word]
    return ", ".join(words)


def _table(names: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (names, ["---"] * len(names), *body)]
    return "\n".join(lines) + "\n"
