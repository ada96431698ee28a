"""The tables ``findings`` and ``rules``."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from mcplab.formats import native
from mcplab.frames.links import Link
from mcplab.frames.links import links as links_of
from mcplab.frames.sparse import Sparse
from mcplab.frames.table import build, empty
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, Record, SpecError, Unread
from mcplab.progress import over
from mcplab.rulebook import examples
from mcplab.rulebook.board import Board, Found, Many
from mcplab.rulebook.catalogue import Rule, catalogue, find
from mcplab.rulebook.engine import Run
from mcplab.rulebook.plan import Plan
from mcplab.rulebook.stretches import Swift
from mcplab.spec import REVISIONS, is_revision

PARTS = 100
"""Parts of a damaged trace that are judged alone; a breach in a later one is unknown."""


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
    asked = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in asked):
        raise SpecError(f"rules={names!r}: ids or their first words, such as ['gate', 'ping.answered']")
    found: list[str] = []
    for name in asked:
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
    if isinstance(wire, Wire):
        doubt(run, wire.record, revision)
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["findings"]}
    for instance in dict.fromkeys(link.instance for link in links.values()):
        add(columns, run, instance, name, hints=hints)
    return build("findings", columns)


def lost(record: Record) -> list[Unread]:
    """Lines of a file that gave no event: a line may be read and still have a fault."""
    read = set(record.linenos) if record.unread else ()
    return [one for one in record.unread if one.line not in read]


def _holes(record: Record) -> list[int]:
    """Where lines of a trace file could not be read: positions in its events, between two of them."""
    if not len(record.linenos) or record.format != native.NAME:
        return []
    lines = list(record.linenos)
    found = {bisect(lines, one.line) for one in lost(record)}
    return sorted(found - {0, len(lines)})


def doubt(run: Run, record: Record, revision: str | None = None) -> None:
    """What lines of a file that could not be read said may be just what a breach is missing: where there are such, it
    counts only where a part of the capture without a hole shows it alone, and is unknown elsewhere."""
    holes = _holes(record)
    if not holes:
        return
    sure: set[tuple[int, str | None, int, int | None]] = set()
    for begin, end in list(pairwise([0, *holes, len(record.events)]))[:PARTS]:
        part = Wire(Record(record.header, record.events[begin:end], name=record.name))
        alone = Run(part, links_of(part, record.name), run.plan, revision)
        for (_, said), board in alone.boards.items():
            sure.update((one.rule, said, one.seq, one.part) for one in board.broken)
    for (_, said), board in run.boards.items():
        for one in board.broken:
            board.unknown[one.rule] += (one.rule, said, one.seq, one.part) not in sure
        board.broken = [one for one in board.broken if (one.rule, said, one.seq, one.part) in sure]


def add(columns: dict[str, list[Any]], run: Run, instance: str, name: str, *, hints: bool = False) -> None:
    """Append the findings of one instance of a capture to columns that may hold those of others."""
    boards = [(said, board) for said in (*REVISIONS, None) if (board := run.boards.get((instance, said))) is not None]
    breaches = [_by_rule(board) for _, board in boards]
    keys = COLUMNS["findings"]
    rows: list[tuple[Any, ...]] = []
    places = [(number, place) for place, (said, _) in enumerate(boards) for number in run.plan.numbers(said)]
    for number, place in sorted(places) if len(boards) > 1 else places:
        rule, found, (said, board) = run.plan.rules[number], breaches[place], boards[place]
        if number in found:
            _append(columns, keys, rows)
            if _broken(columns, rule, found[number], said, instance, name, hints):
                continue
        kept, unknown = board.kept[number], board.unknown[number]
        if said is None and not unknown:
            continue  # nobody can say that the rule was not called on in a revision that nobody knows
        at = rule.revisions[-1] if said is None else said
        rows.append(
            (
                rule.id, rule.level[at], rule.confidence[at], rule.party,
                "unknown" if unknown else "kept" if kept else "unexercised", name, instance, None, None, None, None,
                None, kept + unknown, said, rule.title, "", rule.section[at],
            )
        )  # fmt: skip
    _append(columns, keys, rows)


def _append(columns: dict[str, list[Any]], keys: Iterable[str], rows: list[tuple[Any, ...]]) -> None:
    """Append rows, and empty their list."""
    for key, values in zip(keys, zip(*rows, strict=True), strict=False):
        columns[key] += values
    rows.clear()


def _by_rule(board: Board) -> dict[int, list[Found | Many]]:
    found: dict[int, list[Found | Many]] = {}
    for one in (*board.broken, *board.many):
        found.setdefault(one.rule, []).append(one)
    return found


def _broken(
    columns: dict[str, list[Any]], rule: Rule, found: list[Found | Many], revision: str | None, instance: str,
    name: str, hints: bool,
) -> bool:  # fmt: skip
    """A row a breach; True where one of them is more than a hint."""
    at = revision if revision is not None else rule.revisions[-1]
    words = [one.said.confidence or rule.confidence[at] for one in found]
    serious = any(word != "low" for word in words)
    if not hints and "low" in words:
        found = [one for one, word in zip(found, words, strict=True) if word != "low"]
        words = [word for word in words if word != "low"]
    if not found:
        return serious
    sizes = [len(one.seqs) if isinstance(one, Many) else 1 for one in found]
    seqs = np.concatenate([one.seqs if isinstance(one, Many) else (one.seq,) for one in found])
    order = np.argsort(seqs, kind="stable")
    which = np.repeat(np.arange(len(found)), sizes)[order]

    def spread(values: list[Any]) -> list[Any]:
        return _objects(values)[which].tolist()

    same = {
        "rule": rule.id, "level": rule.level[at], "trace": name, "instance": instance, "revision": revision,
        "title": rule.title, "section": rule.section[at], "n": 1,
    }  # fmt: skip
    for key, value in same.items():
        columns[key] += [value] * len(order)
    party = rule.party
    conns = [one.conns if isinstance(one, Many) else _objects([one.conn]) for one in found]
    columns["confidence"] += spread(words)
    columns["party"] += spread([o.said.party or (party if party != "either" else o.sender or party) for o in found])
    columns["verdict"] += spread(["hint" if word == "low" else "broken" for word in words])
    columns["conn"] += np.concatenate(conns)[order].tolist()
    columns["seq"] += seqs[order].tolist()
    columns["part"] += spread([None if isinstance(one, Many) else one.part for one in found])
    columns["anchor"] += spread([one.said.anchor for one in found])
    columns["related"] += spread([", ".join(map(str, one.said.related)) or None for one in found])
    columns["detail"] += spread([one.said.detail for one in found])
    return serious


def _objects(values: list[Any]) -> np.ndarray:
    """As they are, in an array."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def many(traces: Iterable[Any], **options: Any) -> pd.DataFrame:
    """``findings`` of each trace, one below the other."""
    parts = [one(trace, **options) for trace in over(list(traces), "judging traces", "trace")]
    return pd.concat(parts, ignore_index=True) if parts else empty("findings")


def one(trace: Any, **options: Any) -> pd.DataFrame:
    """``findings`` of one trace."""
    tables = trace.tables
    sparse = None if tables.record.unread else tables.sparse
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
