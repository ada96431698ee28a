"""The findings on hand-made cases beside the checkout (shared/cases), where they are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcplab import read_trace

CASES = sorted((Path(__file__).parents[2] / "shared" / "cases").glob("*/EXPECTED.md"))
pytestmark = pytest.mark.skipif(not CASES, reason="no shared/cases beside the checkout")


def _word(level: str) -> str:
    return level.split()[0]


@pytest.mark.parametrize("path", CASES, ids=[path.parent.name for path in CASES])
def test_exactly_the_expected_findings(path: Path) -> None:
    block = re.search(r"```json\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    expected = json.loads(block[1])
    trace = read_trace(path.with_name("trace.jsonl"))
    exchange = {}
    for event in trace:
        http = getattr(event, "http", None)
        exchange[event.seq] = getattr(http, "exchange", None) if http else None
    table = trace.findings
    broken = table[table["verdict"] == "broken"]
    got = [(int(r.seq), r.party, _word(r.level), r.revision, r.rule) for r in broken.itertuples()]

    def same_place(seq: int, wanted: int) -> bool:
        return seq == wanted or (isinstance(exchange[wanted], str) and exchange[seq] == exchange[wanted])

    explained: set[int] = set()
    for one in expected["violations"]:
        wanted = (one["party"], one["severity"], one["revision"])
        hits = {n for n, g in enumerate(got) if g[1:4] == wanted and same_place(g[0], one["seq"])}
        assert hits, f"not found: {one['rule_topic']} at seq {one['seq']}"
        explained |= hits
    for one in expected["also_acceptable"]:
        explained |= {
            n
            for n, g in enumerate(got)
            if ("seq" in one and g[0] == one["seq"]) or ("exchange" in one and exchange[g[0]] == one["exchange"])
        }
    assert [g for n, g in enumerate(got) if n not in explained] == []
