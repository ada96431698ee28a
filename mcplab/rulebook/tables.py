"""The tables ``findings`` and ``rules``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pandas as pd

from mcplab.frames.links import Link
from mcplab.frames.sparse import Sparse
from mcplab.frames.table import build, empty
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, SpecError
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import Rule, catalogue, find
from mcplab.rulebook.engine import Board, Found, Run
from mcplab.rulebook.plan import Plan
from mcplab.rulebook.stretches import Swift
from mcplab.spec import REVISIONS, is_revision


@cache
def plan_of(names: tuple[str, ...] | None) -> Plan:
    """The plan of the rules named; None: of all."""
    return Plan(catalogue().values() if names is None else [find(name) for name in names])


@cache
def certain() -> Plan:
    """The plan of the rules that give more than hints, in some revision at least."""
    return Plan(rule for rule in catalogue().values() if set(rule.confidence.values()) != {"low"})


def wanted(names: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """Rule ids that a caller asked for; a topic (``gate``) or its first words (``gate.tools``) name all below it.

    Raises:
        SpecError: nothing is so named.
    """
    if names is None:
        return None
    found: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        below = [rule for rule in catalogue() if rule == name or rule.startswith(f"{name}.")]
        found.extend(below or [find(name).id])
    return tuple(dict.fromkeys(found))


def findings(
    wire: Wire | Sparse,
    links: dict[str, Link],
    name: str,
    *,
    rules: Iterable[str] | str | None = None,
    revision: str | None = None,
    hints: bool = False,
) -> pd.DataFrame:
    """One verdict for each rule, instance and revision of a capture (design, section 2).

    ``broken`` and ``hint`` have a row a message, the others one row with ``n``, how often the rule applied. Rules that
    never give more than hints are looked at with ``hints``, or where they are named.
    """
    if revision is not None and not is_revision(revision):
        raise SpecError(f"no revision {revision!r}: the published ones are {', '.join(REVISIONS)}")
    plan = plan_of(wanted(rules)) if hints or rules is not None else certain()
    run = Run(wire, links, plan, revision) if isinstance(wire, Wire) else Swift(wire, links, plan, revision)
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["findings"]}
    for instance in dict.fromkeys(link.instance for link in links.values()):
        add(columns, run, instance, name, hints=hints)
    return build("findings", columns)


def add(columns: dict[str, list[Any]], run: Run, instance: str, name: str, *, hints: bool = False) -> None:
    """Append the findings of one instance of a capture to columns that may hold those of others."""
    boards = {key[1]: board for key, board in run.boards.items() if key[0] == instance}
    breaches = {revision: _by_rule(board) for revision, board in boards.items()}
    for number, rule in enumerate(run.plan.rules):
        for said in [*REVISIONS, None]:
            board = boards.get(said)
            if board is not None and (said is None or said in rule.revisions):
                _rows(columns, rule, number, board, breaches[said].get(number, []), said, instance, name, hints)


def _by_rule(board: Board) -> dict[int, list[Found]]:
    found: dict[int, list[Found]] = {}
    for one in board.broken:
        found.setdefault(one.rule, []).append(one)
    return found


def _rows(
    columns: dict[str, list[Any]], rule: Rule, number: int, board: Board, found: list[Found], revision: str | None,
    instance: str, name: str, hints: bool,
) -> None:  # fmt: skip
    at = revision if revision is not None else rule.revisions[-1]
    fixed = {
        "rule": rule.id, "level": rule.level[at], "trace": name, "instance": instance, "revision": revision,
        "title": rule.title, "section": rule.section[at],
    }  # fmt: skip
    serious = 0
    for _, said, seq, part, sender, conn in sorted(found, key=lambda one: one.seq):
        confidence = said.confidence or rule.confidence[at]
        hint = confidence == "low"
        serious += not hint
        if hint and not hints:
            continue
        party = said.party or (rule.party if rule.party != "either" else sender or "either")
        _add(
            columns, fixed, confidence=confidence, party=party, verdict="hint" if hint else "broken",
            conn=conn, seq=seq, part=part, anchor=said.anchor,
            related=", ".join(str(seq) for seq in said.related) or None, n=1, detail=said.detail,
        )  # fmt: skip
    if serious:
        return
    kept, unknown = board.kept[number], board.unknown[number]
    if revision is None and not unknown:
        return  # nobody can say that the rule was not called on in a revision that nobody knows
    verdict = "unknown" if unknown else "kept" if kept else "unexercised"
    _add(
        columns, fixed, confidence=rule.confidence[at], party=rule.party, verdict=verdict, conn=None, seq=None,
        part=None, anchor=None, related=None, n=kept + unknown, detail="",
    )  # fmt: skip


def _add(columns: dict[str, list[Any]], fixed: dict[str, Any], **more: Any) -> None:
    row = {**fixed, **more}
    for key, values in columns.items():
        values.append(row[key])


def many(traces: Iterable[Any], **options: Any) -> pd.DataFrame:
    """``findings`` of each trace, one below the other."""
    parts = [one(trace, **options) for trace in traces]
    return pd.concat(parts, ignore_index=True) if parts else empty("findings")


def one(trace: Any, **options: Any) -> pd.DataFrame:
    """``findings`` of one trace."""
    tables = trace.tables
    sparse = tables.sparse
    if sparse is not None:
        return findings(sparse, sparse.walked.links, trace.name, **options)
    return findings(tables.wire, tables.links, trace.name, **options)


def rules() -> pd.DataFrame:
    """The catalogue: a row a rule.

    Columns: id, title, level (its word; where it changes, by revision), confidence, party, revisions, section (with
    the revision from which it stands where it moved), needs, checked (bool), kept and broken (example traces as text
    that ``read_trace`` takes; missing where a rule has none), also.
    """
    rows = []
    for rule in catalogue().values():
        newest = rule.revisions[-1]
        rows.append(
            {
                "id": rule.id,
                "title": rule.title,
                "level": _spread(rule.level),
                "confidence": _spread(rule.confidence),
                "party": rule.party,
                "revisions": ", ".join(rule.revisions),
                "section": _spread(rule.section),
                "needs": ", ".join(rule.needs),
                "checked": bool(rule.check),
                "kept": examples.text(rule, "kept", newest),
                "broken": examples.text(rule, "broken", newest),
                "also": ", ".join(dict.fromkeys(name for names in rule.also.values() for name in names)),
            }
        )
    frame = pd.DataFrame(rows)
    return frame.astype({column: "str" for column in frame.columns if column != "checked"})


def _spread(words: Any) -> str:
    """One word where it is the same in every revision; else each with the first revision it stands for."""
    parts: list[tuple[str, str]] = []
    for revision, word in words.items():
        if not parts or parts[-1][1] != word:
            parts.append((revision, word))
    return parts[0][1] if len(parts) == 1 else "; ".join(f"{revision}: {word}" for revision, word in parts)
