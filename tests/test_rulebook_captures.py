"""No false alarm: what the bundled captures break is exactly what docs/findings-on-bundled-captures.md argues for."""

from __future__ import annotations

from pathlib import Path

from mcplab import data, read_traces
from mcplab.rulebook.catalogue import catalogue

DOC = Path(__file__).parents[1] / "docs" / "findings-on-bundled-captures.md"


def test_every_must_is_argued_and_found_again() -> None:
    table = read_traces(data.traces_dir(), progress=False).findings
    broken = table[(table["verdict"] == "broken") & table["level"].str.startswith("MUST")]
    found = {(r.trace, str(r.seq), r.party, r.revision, r.rule) for r in broken.itertuples()}
    lines = DOC.read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("| ")]
    listed = set(rows) - {("trace", "seq", "party", "revision", "rule")}
    assert found - listed == set(), "not in the document"
    assert listed - found == set(), "not found again"
    argued = {line.split("**")[1] for line in lines if line.startswith("- **")}
    assert {rule for *_, rule in listed} <= argued


def test_what_is_listed_as_not_checked_is_not_checked() -> None:
    text = (DOC.parent / "rules-not-checked.md").read_text(encoding="utf-8")
    table = text.partition("## Rules of the checklist without a check")[2].partition("## ")[0]
    listed = {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")} - {"rule"}
    checked = {rule.id for rule in catalogue().values() if rule.check}
    assert listed
    assert listed & checked == set()
