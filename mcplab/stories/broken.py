"""What was broken in captures, told from their findings: a client is named only beside the messages that show it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mcplab import spec
from mcplab.stories.rulings import exchange_of
from mcplab.told import Name, Picture, Told, count, series
from mcplab.traces import Traces

WHO = ["trace", "instance", "client", "client_version"]


def breaches(traces: Traces) -> pd.DataFrame:
    """The broken rules of some captures.

    Columns: rule, level, party (who broke it), client, client_version (of the capture, whoever broke the rule),
    revision, instances, messages, example (trace#seq of the first), title, address (of the section).
    """
    found = traces.findings
    rows = found[found["verdict"] == "broken"].merge(_who(traces), on=["trace", "instance"], how="left")
    keys = ["rule", "level", "party", "client", "client_version", "revision", "title", "section"]
    out: list[list[Any]] = []
    for key, group in rows.groupby(keys, sort=True, dropna=False):
        rule, level, party, client, version, revision, title, section = key
        url = spec.spec_url(revision, section) if spec.is_revision(revision) else ""
        runs = group[["trace", "instance"]].drop_duplicates()
        example = f"{group['trace'].iloc[0]}#{group['seq'].iloc[0]}"
        out.append([rule, level, party, client, version, revision, len(runs), len(group), example, title, url])
    return pd.DataFrame(out, columns=[*keys[:6], "instances", "messages", "example", "title", "address"])


def _label(*names: Any) -> str:
    return " ".join(str(name) for name in names if not pd.isna(name)) or "a client without a name"


def _who(traces: Traces) -> pd.DataFrame:
    return traces.connections[WHO].drop_duplicates(["trace", "instance"])


def breach_headline(traces: Traces) -> str:
    """The finding, for a chart's title: how many runs broke a rule, and which party did."""
    found = traces.findings
    runs = found[["trace", "instance"]].drop_duplicates()
    rows = found[(found["verdict"] == "broken") & found["level"].str.startswith("MUST")]
    if rows.empty:
        return f"No MUST is broken in {count(len(runs), 'instance')}"
    broke = rows[["trace", "instance", "party"]].drop_duplicates()["party"].value_counts()
    parts = [f"the {party} in {n}" for party, n in broke.items()]
    rules = rows["rule"].nunique()
    return f"{count(rules, 'MUST')} broken: by {', by '.join(parts)} of {count(len(runs), 'instance')}"


def breach_chart(traces: Traces, path: str) -> Picture | Told:
    """Draw findings by rule and client, write it to ``path`` (svg, png), show it; a sentence where none is broken."""
    found = traces.findings
    if not (found["verdict"] == "broken").any():
        kept = found[found["verdict"] == "kept"]
        words = f"{count(kept['rule'].nunique(), 'rule')} were kept, and none was broken, so there is no chart."
        return Told(f"In these captures {words}")
    from mcplab.exports import export
    from mcplab.plots import findings

    ax = findings(found, connections=traces.connections, title=breach_headline(traces))
    export(ax, path, formats=["svg", "png"])
    return Picture(ax)


def behind(traces: Traces, rule: str | None = None) -> Told:
    """The messages behind one finding: of ``rule``, else of the rule that the most instances break.

    With what came before it (the declaration in force or the request), its text as it was sent, and what it breaks.
    """
    found = traces.findings
    rows = found[(found["verdict"] == "broken") & found["seq"].notna()]
    if rule is not None:
        rows = rows[rows["rule"] == rule]
    if rows.empty:
        about: tuple[str, ...] = ("Nothing here breaks ", Name(rule), ".") if rule else ("Nothing here breaks a rule.",)
        return Told(about)
    if rule is None:
        runs = rows[["rule", "trace", "instance"]].drop_duplicates()
        rule = str(runs["rule"].value_counts(sort=True).sort_index(kind="stable").idxmax())
        rows = rows[rows["rule"] == rule]
    one = rows.iloc[0]
    trace, seq = traces[str(one["trace"])], int(one["seq"])
    links = trace.connections
    links = links[links["instance"] == one["instance"]]
    who = (
        " ".join(str(part) for part in links.iloc[0][["client", "client_version"]].dropna())
        or "a client without a name"
    )
    head = (Name(rule), f" ({one['level']}), broken by the {one['party']} in a capture of ", Name(who), ". Event ",
            Name(f"{trace.name}#{seq}"), f": {one['detail']}.")  # fmt: skip
    columns = ["seq", "sender", "kind", "method", "version", "status"]
    before = trace.messages[trace.messages["instance"] == one["instance"]]
    before = before[before["seq"] <= seq][columns].tail(6)
    address = spec.spec_url(one["revision"], one["section"]) if spec.is_revision(one["revision"]) else ""
    return Told(
        head, exchange_of(trace, seq, rows), "The way to it:", before,
        f"What it is held against: {one['title']}. {address}",
    )  # fmt: skip


def broken_by_client(traces: Traces) -> Told:
    """Each client release that broke a rule itself: which, in how many of its instances, a message that shows it."""
    found = traces.findings.merge(_who(traces), on=["trace", "instance"], how="left")
    blocks: list[Any] = []
    for who, seen in found.groupby(["client", "client_version"], dropna=False, sort=True):
        rows = seen[(seen["verdict"] == "broken") & (seen["party"] == "client")]
        if rows.empty:
            continue
        runs, whole = (len(each.drop_duplicates(["trace", "instance"])) for each in (rows, seen))
        firsts = rows.drop_duplicates("rule")
        places = [f"{one.trace}#{one.seq}" for one in firsts.itertuples()]
        blocks.append(
            (Name(_label(*who)), f": {runs} of {count(whole, 'instance')}; ", *series(sorted(firsts["rule"])),
             "; for example ", *series(places), ":")
        )  # fmt: skip
        blocks += [exchange_of(traces[str(one.trace)], int(str(one.seq)), rows) for one in firsts.itertuples()]
    if not blocks:
        return Told("No client here was seen to break a rule.")
    return Told("What clients themselves broke, in the release and with the settings that were captured:", *blocks)
