"""``mcplab check`` and ``rules``: plain functions that a command line registers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from mcplab import rulebook
from mcplab.exports import as_text
from mcplab.model import SpecError, UsageError
from mcplab.rulebook.catalogue import find
from mcplab.rulebook.tables import lost
from mcplab.told import safe
from mcplab.traces import Traces, read_traces

FORMATS: Final = ("text", "json", "csv", "md", "junit")
LEVELS: Final = ("MUST", "SHOULD")
_KEY: Final = ("trace", "rule", "seq", "part", "revision")


def check_text(
    traces: list[str], *, format: str = "text", rule: list[str] | None = None, level: str = "MUST",
    party: str | None = None, revision: str | None = None, baseline: Path | None = None, hints: bool = False,
) -> tuple[str, int, list[str]]:  # fmt: skip
    """The findings of some files as text, the exit status, and a line for each file that was not read, or not wholly.

    The status: 0 nothing is broken, 1 a rule of that level is, 3 a file could not be read, or of its
    messages none.

    Args:
        traces: paths, globs or folders.
        format: text, json, csv, md or junit.
        rule: ids or topics; default: all.
        level: MUST, or SHOULD for both.
        party: only what the client, or the server, did; default: both.
        revision: judge by this revision.
        baseline: a JSON file of findings that are known (as written with format json): they do not fail.
        hints: findings of low confidence too; they never fail.

    Raises:
        SpecError: no such format, level, rule or revision.
    """
    for name, value, known in (("format", format, FORMATS), ("level", level, LEVELS)):
        if value not in known:
            raise SpecError(f"{name} {value!r}: it is one of {', '.join(known)}")
    read = read_traces(*traces, progress=False)
    found = rulebook.check(read, rules=rule, revision=revision, hints=hints)
    found = found if party is None else found[found["party"].isin([party, "either"])]
    shown = found[found["verdict"].isin(["broken", "hint"])]
    if level == "MUST":
        shown = shown[shown["level"].str.startswith("MUST")]
    shown = shown.sort_values(["trace", "seq", "rule"], kind="stable")
    known = _known(baseline)
    fresh = shown[pd.Series([key not in known for key in _keys(shown)], index=shown.index, dtype="bool")]
    status = 3 if len(read.failed) else int((fresh["verdict"] == "broken").any())
    unread = [error if file in error else f"{file}: {error}" for file, error in read.failed.itertuples(index=False)]
    for one in read:
        if lines := lost(one.record):
            status = status if one.record.events else 3
            more = ", ..." * (len(lines) > 1)
            unread.append(f"what could not be read of {one.name}: line {lines[0].line}{more}: {lines[0].reason}")
    return _FORMATTED[format](found, shown, fresh, read), status, unread


def rules_text(name: str | None = None) -> str:
    """The catalogue as lines, or one rule with its example.

    Raises:
        SpecError: no such rule.
    """
    if name is None:
        table = rulebook.rules()
        checked = table[table["checked"]]
        lines = [f"{row.id}  {row.level}  {row.party}: {row.title}" for row in checked.itertuples()]
        return "\n".join([*lines, f"{len(checked)} rules"])
    found = find(name)
    table = rulebook.rules().set_index("id").loc[found.id]
    lines = [f"{found.id}: {found.title}"]
    lines += [f"{key}: {table[key]}" for key in ("level", "confidence", "party", "revisions", "section", "needs")]
    for which in ("kept", "broken"):
        script = found.example(which, found.revisions[-1])
        if script is not None:
            lines += [f"{which} ({found.revisions[-1]}):", *(f"  {line}" for line in script.strip().splitlines())]
    return "\n".join(lines)


def _keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    clean = frame[list(_KEY)].astype(object)
    clean = clean.where(clean.notna(), None)  # type: ignore[arg-type]
    return [tuple(row) for row in clean.itertuples(index=False)]


def _known(baseline: Path | None) -> set[tuple[Any, ...]]:
    if baseline is None:
        return set()
    try:
        rows = json.loads(baseline.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{baseline}: no baseline ({error}); write one with mcplab check --format json") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{baseline}: no baseline (no list of findings); write one with mcplab check --format json")
    return {
        tuple(row.get(key) for key in _KEY)
        for row in rows
        if not any(type(row.get(key)) in (list, dict) for key in _KEY)
    }


def _text(found: pd.DataFrame, shown: pd.DataFrame, fresh: pd.DataFrame, read: Traces) -> str:
    lines = []
    for row in shown.itertuples():
        mark = "" if row.Index in fresh.index else " (known)"
        lines.append(f"{row.trace}#{row.seq} {row.level} {row.rule} [{row.party}] {row.detail}{mark}")
    counts = found["verdict"].value_counts()
    broken = int((shown["verdict"] == "broken").sum())
    words = ("kept", "unknown", "unexercised", *(["hint"] if "hint" in counts else []))
    others = [f"{counts.get(word, 0)} {word}" for word in words]
    lines.append(f"{len(read)} trace{'s' * (len(read) != 1)}: {', '.join([f'{broken} broken', *others])}")
    if counts.get("broken", 0) > broken:
        lines[-1] += f"; not shown: {counts['broken'] - broken} broken SHOULD (--level SHOULD)"
    if found.empty and not any(trace.messages["sender"].notna().any() for trace in read):
        lines[-1] += "; nothing can be judged: no message whose sender is known"
    return "\n".join(map(safe, lines))


def _json(found: pd.DataFrame, shown: pd.DataFrame, fresh: pd.DataFrame, read: Traces) -> str:
    clean = shown.astype(object).where(shown.notna(), None)  # type: ignore[arg-type]
    return json.dumps(clean.to_dict("records"), indent=1, default=int).replace("\x7f", "\\u007f")


def _csv(found: pd.DataFrame, shown: pd.DataFrame, fresh: pd.DataFrame, read: Traces) -> str:
    return as_text(shown.reset_index(drop=True), "csv")


def _md(found: pd.DataFrame, shown: pd.DataFrame, fresh: pd.DataFrame, read: Traces) -> str:
    head = ["trace", "seq", "level", "rule", "party", "revision", "detail"]
    return as_text(shown[head].reset_index(drop=True), "md")


def _junit(found: pd.DataFrame, shown: pd.DataFrame, fresh: pd.DataFrame, read: Traces) -> str:
    """One test case for each trace and rule that applied; a breach that is not known fails it."""
    new = set(fresh.index[fresh["verdict"] == "broken"])
    applied = found[found["verdict"].isin(["kept", "broken"])]
    cases = []
    failures = 0
    for (trace, rule), group in applied.groupby(["trace", "rule"], sort=True):
        wrong = [row for row in group.itertuples() if row.Index in new]
        failures += bool(wrong)
        told = [(f"seq {row.seq}", escape(safe(row.detail))) for row in wrong]
        inside = "".join(f"<failure message={quoteattr(seq)}>{detail}</failure>" for seq, detail in told)
        cases.append(f"<testcase classname={quoteattr(safe(trace))} name={quoteattr(str(rule))}>{inside}</testcase>")
    head = f'<testsuite name="mcplab check" tests="{len(cases)}" failures="{failures}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


_FORMATTED: Final = {"text": _text, "json": _json, "csv": _csv, "md": _md, "junit": _junit}
