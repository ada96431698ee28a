"""What became of what clients declared: kept, never used, refused, broken; and what they cannot declare apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final

import pandas as pd

from mcplab import comparison, spec
from mcplab.frames.table import build
from mcplab.gating import rule_paths
from mcplab.model import COLUMNS
from mcplab.spec import ROOT, parent, path_key, path_order
from mcplab.tiers import used
from mcplab.varying import Run, runs, shown
from mcplab.versions import label_key

KINDS: Final = (
    "kept", "declared, never used", "used undeclared", "refused", "unanswered", "broke a rule", "never apart",
)  # fmt: skip

Row = dict[str, Any]


def promises(traces: Any) -> pd.DataFrame:
    """What became of each capability that a client declared, release by release, with the messages.

    ``kept``: it was used and that came to something. ``declared, never used``: where the client has to act (``by``), it
    never did, as one that declares ``roots.listChanged`` and never sends the notification; else nobody asked for it.
    ``used undeclared``: ``other`` says whether it was answered, refused or neither. ``refused`` and ``unanswered``: of
    what was declared. ``broke a rule``: a rule of that capability that binds the client is broken (``check``).
    ``never apart``: two paths below one parent, or a path and its parent, and no captured message declares one without
    the other; ``configurations`` says in how many different settings. (``elicitation: {}`` declares form without url.)

    Returns:
        The columns of ``promises`` (docs/columns.md), by client, release and path.
    """
    found = runs(traces)
    by_instance = {run.instance: (client, run) for client, all_runs in found.items() for run in all_runs}
    out = [*_uses(used(traces), by_instance), *_breaches(traces.findings, by_instance)]
    for client, all_runs in found.items():
        for version in dict.fromkeys(run.version for run in all_runs):
            out += _together(client, version, [run for run in all_runs if run.version == version])
    out.sort(key=_order)
    return build("promises", {name: [row.get(name) for row in out] for name in COLUMNS["promises"]})


def _order(row: Row) -> tuple[Any, ...]:
    release = label_key(row["client"]), label_key(row["client_version"] or "")
    rest = KINDS.index(row["kind"]), row.get("other") or "", row.get("rule") or ""
    return *release, path_key(row["path"], "client"), *rest


@cache
def acts(path: str) -> str:
    """Who sends what a client's capability is for: ``client`` or ``server``."""
    directions = {
        gate.direction for revision in spec.REVISIONS for gate in spec.gates(revision, "client").get(path, ())
    }
    return "client" if directions == {"c2s"} else "server"


def _uses(table: Any, by_instance: dict[str, tuple[str, Run]]) -> Iterator[Row]:
    groups: dict[tuple[Any, ...], list[tuple[Run, Row]]] = {}
    of: dict[tuple[Any, ...], set[str]] = {}
    for row in table[table["party"] == "client"].to_dict("records"):
        if row["instance"] not in by_instance:
            continue
        client, run = by_instance[row["instance"]]
        met = "answered" if row["worked"] else "refused" if row["refused"] >= row["n"] else "unanswered"
        if row["n"] == 0:
            kind, other = "declared, never used", None
        elif row["declares"] == "no":
            kind, other = "used undeclared", met
        else:
            kind, other = {"answered": "kept"}.get(met, met), None
        place = (client, run.version, row["path"])
        of.setdefault(place, set()).add(run.instance)
        groups.setdefault((*place, kind, other), []).append((run, row))
    for (client, version, path, kind, other), rows in groups.items():
        proof = [
            (row["trace"], int(row["seq"])) if row["n"] else run.evidence(path if path in run.paths else parent(path))
            for run, row in rows
        ]
        yield {
            "client": client, "client_version": version, "path": path, "kind": kind, "by": acts(path), "other": other,
            "instances": len(rows), "of": len(of[client, version, path]),
            "configurations": _configurations([run for run, _ in rows]),
            "n": sum(int(row["worked"] if kind == "kept" else row["n"]) for _, row in rows), "evidence": shown(proof),
        }  # fmt: skip


def _configurations(found: Sequence[Run]) -> int:
    return len({frozenset(run.settings.items()) for run in found if run.setup is not None})


def _breaches(findings: Any, by_instance: dict[str, tuple[str, Run]]) -> Iterator[Row]:
    broken = findings[(findings["verdict"] == "broken") & (findings["party"] != "server")]
    groups: dict[tuple[Any, ...], list[tuple[Run, tuple[str, int]]]] = {}
    for row in broken.to_dict("records"):
        path = _path_of(row["rule"])
        if path is not None and row["instance"] in by_instance:
            client, run = by_instance[row["instance"]]
            groups.setdefault((client, run.version, path, row["rule"]), []).append(
                (run, (row["trace"], int(row["seq"])))
            )
    for (client, version, path, rule), rows in groups.items():
        yield {
            "client": client, "client_version": version, "path": path, "kind": "broke a rule", "by": "client",
            "rule": rule, "instances": len({run.instance for run, _ in rows}),
            "of": sum(run.version == version for owner, run in by_instance.values() if owner == client),
            "configurations": _configurations([run for run, _ in rows]), "n": len(rows),
            "evidence": shown([proof for _, proof in rows]),
        }  # fmt: skip


def _path_of(rule: str) -> str | None:
    """The client's capability that a rule is about: that of its gate, or its topic's."""
    path = rule_paths().get(rule, rule.partition(".")[0])
    return path if path in path_order("client") and path != ROOT else None


def _together(client: str, version: str | None, found: list[Run]) -> Iterator[Row]:
    """Pairs of paths that every declaring message has both of, or none."""
    known = path_order("client")
    paths = sorted(
        {p for run in found for p in run.paths if p in known and p != ROOT}, key=lambda p: path_key(p, "client")
    )
    families: dict[str, list[str]] = {}
    for path in paths:
        if parent(path) != ROOT:
            families.setdefault(parent(path), []).append(path)
    for above, below in families.items():
        pairs = [*((path, above) for path in below), *combinations(below, 2)]
        for path, other in pairs:
            having: list[Run] = []
            messages = 0
            for run in found:
                states = [
                    (comparison.declares(one.states, path, one.revision),
                     other in one.states if other == above else comparison.declares(one.states, other, one.revision))
                    for one in run.said
                ]  # fmt: skip
                if (True, False) in states or (False, True) in states:
                    break
                if (True, True) in states:
                    having.append(run)
                    messages += states.count((True, True))
            else:
                if having:
                    yield {
                        "client": client, "client_version": version, "path": path, "kind": "never apart",
                        "by": "client", "other": other, "instances": len(having), "of": len(found),
                        "configurations": _configurations(having), "n": messages,
                        "evidence": shown([run.evidence(path) for run in having]),
                    }  # fmt: skip
