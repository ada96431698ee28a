"""The tables ``findings`` and ``rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Final

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

_SEQ: Final = attrgetter("seq")


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
    boards = [(said, board) for said in (*REVISIONS, None) if (board := run.boards.get((instance, said))) is not None]
    breaches = [_by_rule(board) for _, board in boards]
    take = [columns[key].append for key in COLUMNS["findings"]]
    for number, rule in enumerate(run.plan.rules):
        for (said, board), found in zip(boards, breaches, strict=True):
            if said is None or said in rule.revisions:
                serious = False
                if number in found:
                    serious = _broken(columns, rule, found[number], said, instance, name, hints)
                if not serious:
                    _other(take, rule, board.kept[number], board.unknown[number], said, instance, name)


def _by_rule(board: Board) -> dict[int, list[Found]]:
    found: dict[int, list[Found]] = {}
    for one in board.broken:
        found.setdefault(one.rule, []).append(one)
    return found


def _broken(
    columns: dict[str, list[Any]], rule: Rule, found: list[Found], revision: str | None, instance: str, name: str,
    hints: bool,
) -> bool:  # fmt: skip
    """A row a breach; True where one of them is more than a hint."""
    at = revision if revision is not None else rule.revisions[-1]
    party = rule.party
    found = sorted(found, key=_SEQ)
    words = [each.said.confidence or rule.confidence[at] for each in found]
    serious = any(word != "low" for word in words)
    if not hints and "low" in words:
        found = [each for each, word in zip(found, words, strict=True) if word != "low"]
        words = [word for word in words if word != "low"]
    same = {
        "rule": rule.id, "level": rule.level[at], "trace": name, "instance": instance, "revision": revision,
        "title": rule.title, "section": rule.section[at], "n": 1,
    }  # fmt: skip
    for key, value in same.items():
        columns[key] += [value] * len(found)
    columns["confidence"] += words
    columns["party"] += [each.said.party or (party if party != "either" else each.sender or party) for each in found]
    columns["verdict"] += ["hint" if word == "low" else "broken" for word in words]
    columns["conn"] += [each.conn for each in found]
    columns["seq"] += [each.seq for each in found]
    columns["part"] += [each.part for each in found]
    columns["anchor"] += [each.said.anchor for each in found]
    columns["related"] += [", ".join(map(str, each.said.related)) or None for each in found]
    columns["detail"] += [each.said.detail for each in found]
    return serious


def _other(
    take: list[Callable[[Any], None]], rule: Rule, kept: int, unknown: int, revision: str | None, instance: str,
    name: str,
) -> None:  # fmt: skip
    """The row of a rule that was not broken. ``take`` appends to each column, in their order."""
    if revision is None and not unknown:
        return  # nobody can say that the rule was not called on in a revision that nobody knows
    at = revision if revision is not None else rule.revisions[-1]
    verdict = "unknown" if unknown else "kept" if kept else "unexercised"
    row = (
        rule.id, rule.level[at], rule.confidence[at], rule.party, verdict, name, instance, None, None, None, None, None,
        kept + unknown, revision, rule.title, "", rule.section[at],
    )  # fmt: skip
    for append, value in zip(take, row, strict=True):
        append(value)


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
