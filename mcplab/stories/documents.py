"""What documents say beside what the wire shows, told so that each sentence follows from the rows it is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from mcplab.citing import proofs
from mcplab.published import claims
from mcplab.stories.declared import pretty
from mcplab.tiers import joined
from mcplab.told import Code, Name, Told, count, series
from mcplab.traces import Traces
from mcplab.varying import configuration

REASONS = {
    "wrong": "wrong, as far as can be told",
    "changed since": "true of older releases: it changed since",
    "differs by release": "true of other releases, and not only of older ones",
    "differs by configuration": "true of other configurations",
    "unknown": "not so here, and why cannot be told",
}


def gathered(paths: str | Sequence[str] | None) -> pd.DataFrame:
    """The claims that ``CLAIMS`` names, one below the other; None: the bundled ones."""
    named = [None] if paths is None else [paths] if isinstance(paths, str) else list(paths)
    return pd.concat([claims(path) for path in named], ignore_index=True)


def sources(told: pd.DataFrame) -> pd.DataFrame:
    """A row a document: tier, source, date, how many statements on how many clients."""
    groups = told.groupby(["tier", "source", "date"], dropna=False, sort=True)
    return groups.agg(statements=("path", "size"), clients=("name", "nunique")).reset_index()


def disagreement(found: pd.DataFrame) -> Told:
    """How many claims something speaks against, and what can be told of why."""
    if found.empty:
        return Told("Nothing here speaks against any of these claims.")
    counts = found["reason"].value_counts()
    lines = [f"{counts[reason]}: {words}" for reason, words in REASONS.items() if reason in counts]
    return Told(f"Something speaks against {count(len(found), 'claim')}:", lines)


def disproof(found: pd.DataFrame, traces: Traces) -> Told:
    """For each claim that is wrong: what it says, what speaks against it, and a message for each configuration."""
    blocks: list[Any] = []
    for row in found[found["reason"] == "wrong"].itertuples():
        release = "" if pd.isna(row.found_version) else f" {row.found_version}"
        dated = "" if pd.isna(row.claimed_date) else f" ({row.claimed_date})"
        blocks += [
            ("Of ", Name(f"{row.client}{release}"), f" {row.source}{dated} says that ", Name(row.path),
             f" is {row.claimed}. " if row.what == "settings" else f": {row.what} {row.claimed}. ",
             f"Seen here: {row.found}."),
            f"Why this is called wrong: {row.why}.",
        ]  # fmt: skip
        shown: list[str] = []
        for name, seq in proofs(str(row.evidence)):
            trace = next((one for one in traces if one.name == name), None)
            settings = "" if trace is None else json.dumps(configuration(trace), ensure_ascii=False)
            if trace is not None and settings not in shown:
                shown.append(settings)
                head = ("Configured with ", Name(settings), ", event ", str(seq), " of ", Name(name), ":")
                blocks += [head, Code(pretty(trace.raw(seq)))]
    return Told(*blocks) if blocks else Told("No claim here can be called wrong.")


def uncaptured(told: pd.DataFrame, traces: Traces) -> Told:
    """Clients whose source somebody read and nobody captured here: what they declare and implement, by the document."""
    told = joined(told, traces)
    captured = set(traces.connections["client"].dropna())
    known = {*captured, *traces.connections["client_info"].dropna()}
    silent = sorted(captured - set(told["client"].dropna()))
    unheard: list[Any] = [("No document here speaks of ", *series(silent), ".")] if silent else []
    rows = told[(told["tier"] == "read") & ~told["client"].isin(known) & ~told["name"].isin(known)]
    rows = rows[rows["declares"].isin(["yes", "no", "varies"]) | rows["implements"].isin(["yes", "no", "varies"])]
    if rows.empty:
        return Told("Each client whose source was read here was captured, too.", *unheard)
    names = list(dict.fromkeys(rows["name"]))
    less = rows[(rows["declares"] == "no") & (rows["implements"] == "yes")]
    said: list[Any] = [
        ("Of ", *series(names), " no capture is here, so nothing below was held against the wire.")
    ]  # fmt: skip
    said += [
        ("By the document, ", Name(row.name), " implements ", Name(row.path), " and does not declare it.")
        for row in less[["name", "path"]].itertuples(index=False)
    ]
    return Told(*said, *unheard, rows[["name", "path", "declares", "implements", "when", "evidence"]])
