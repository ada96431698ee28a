"""``make conformance``: run the suite, compare, write ``docs/conformance.md`` and ``build/conformance/agreement.csv``.

``--compare`` takes the results and recordings of the last run, ``--only TEXT`` the scenarios whose name has it (then
no page is written). Exit status: 0, or 1 where a difference is not explained, or 2 where the suite cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import pandas as pd

from conformance import page
from conformance.agreement import Book, Finding, Row, explained, rows
from conformance.fixture import fixture
from conformance.suite import Check, Scenario, Suite, SuiteError
from mcplab.rulebook import check
from mcplab.traces import Trace, read_trace

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "conformance"
BOOK = Path(__file__).with_name("agreement.toml")
COLUMNS = ["scenario", "check", "theirs", "rules", "ours", "agreement", "why", "detail"]


def run(suite: Suite, scenario: Scenario, trace: Path) -> list[Check]:
    """Run one scenario and save its recording: the server's or the client's own."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    if scenario.role == "client":
        return suite.client(scenario, trace, f"{ROOT}:{ROOT / 'tests'}")
    with fixture() as (url, recorded):
        checks = suite.server(scenario, url)
        recorded(scenario.slug).save(trace)
    return checks


def findings(trace: Trace) -> list[Finding]:
    """Ours over one recording, of both parties."""
    found = check(trace)
    return [
        Finding(row.rule, row.verdict, row.party, str(row.detail) if row.verdict == "broken" else "")
        for row in found[["rule", "verdict", "party", "detail"]].itertuples(index=False)
    ]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--compare", action="store_true", help="run nothing: the results of the last run")
    parser.add_argument("--only", default="", metavar="TEXT")
    given = parser.parse_args(words)
    book = Book.of(tomllib.loads(BOOK.read_text(encoding="utf-8")))
    suite = Suite(BUILD)
    told: list[Row] = []
    done: list[Scenario] = []
    try:
        suite.install()
        for scenario in suite.scenarios():
            if given.only not in scenario.slug:
                continue
            trace = BUILD / "traces" / f"{scenario.slug}.jsonl"
            checks = suite.saved(scenario) if given.compare else run(suite, scenario, trace)
            told += rows(scenario, checks, findings(read_trace(trace)), book)
            done.append(scenario)
            sys.stdout.write(f"{scenario.slug}: {len(checks)} checks\n")
    except SuiteError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    told, problems = explained(told, book)
    table = pd.DataFrame([astuple(row) for row in told], columns=COLUMNS)
    table["rules"] = [" ".join(rules) for rules in table["rules"]]
    table.to_csv(BUILD / "agreement.csv", index=False)
    if given.only:
        problems = [one for one in problems if not one.startswith("[")]
    else:
        text = page.text(done, told)
        (ROOT / "docs" / "conformance.md").write_text(text, encoding="utf-8")
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    counts = table["agreement"].value_counts().to_dict()
    sys.stdout.write(f"{len(done)} scenarios, {counts}; {len(problems)} problems\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
