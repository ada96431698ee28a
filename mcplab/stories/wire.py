"""What went over the wire, told from captures: a sentence is there only when the data say it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mcplab.bins import timeline
from mcplab.strips import has_clock, step_for
from mcplab.strips import strip as strip_text
from mcplab.told import Code, Name, Picture, Told, series
from mcplab.traces import Trace, Traces


def pick(traces: Traces, era: str) -> Trace | None:
    """The capture of an era that shows most: a clock, then most channels, kinds of activity and messages; None: none.

    Of equals the first. A capture counts for an era when one of its connections spoke it.
    """
    links = traces.connections
    names = set(links.loc[links["era"] == era, "trace"])
    best: Trace | None = None
    most: tuple[int, ...] = ()
    for trace in traces:
        if trace.name in names:
            messages = trace.messages
            shows = (
                int(has_clock(trace)), messages["channel"].nunique(), messages["activity"].nunique(),
                int((messages["kind"] == "notification").sum()), len(messages),
            )  # fmt: skip
            if best is None or shows > most:
                best, most = trace, shows
    return best


def about(trace: Trace | None, era: str) -> Told:
    """Which capture was picked, and how its connections came about."""
    if trace is None:
        return Told(("No capture here has a connection that spoke ", Name(era), ", so there is nothing to draw."))
    links = trace.connections
    columns = ["conn", "client", "client_version", "transport", "label", "discovery", "discovery_detail", "calls"]
    return Told(("The ", Name(era), " example: ", Name(trace.name)), links[columns])


def chart(trace: Trace | None, path: str, *, steps: int = 60) -> Picture | Told:
    """Draw a capture's timeline, write it to ``path`` (svg, png), show it; a sentence where there is none."""
    if trace is None:
        return Told("There is no such capture here, so there is no chart.")
    from mcplab.exports import export
    from mcplab.plots import timeline

    ax = timeline(
        trace.messages, http=trace.http, events=trace.events, exchanges=trace.exchanges, title=title(trace),
        steps=steps, step_seconds=step_for(trace, steps),
    )  # fmt: skip
    export(ax, path, formats=["svg", "png"])
    return Picture(ax)


def title(trace: Trace) -> str:
    """A capture in a line: who, over what, and in which revisions; its name where nobody says who it is."""
    links = trace.connections
    named = links[["client", "client_version"]].dropna(how="all").drop_duplicates()
    who = " and ".join(" ".join(map(str, row.dropna())) for _, row in named.iterrows()) or trace.name
    over = " and ".join(links["transport"].dropna().unique())
    return f"{who}{f' over {over}' if over else ''}: {', '.join(links['label'].dropna().unique())}"


def strip(trace: Trace | None, *, steps: int = 60) -> Told:
    """A capture's timeline as text, with the shortest step that holds it all; event by event where it has no clock."""
    if trace is None:
        return Told("There is no such capture here, so there is no strip.")
    if not has_clock(trace):
        return Told(Code(strip_text(timeline(trace, steps=steps, axis="seq"))))
    seconds = step_for(trace, steps)
    return Told(Code(strip_text(timeline(trace, steps=steps, step_seconds=seconds), seconds)))


def opening(traces: Traces, discovery: str, n: int = 8) -> Told:
    """The first ``n`` messages of the first instance that found its era this way, one over HTTP before others."""
    links = traces.connections
    links = links[links["discovery"] == discovery]
    links = links.assign(http=links["transport"] == "http").sort_values("http", ascending=False, kind="stable")
    if links.empty:
        return Told(("No connection here is ", Name(discovery), "."))
    row = links.iloc[0]
    messages = traces[row["trace"]].messages
    messages = messages[messages["instance"] == row["instance"]]
    columns = ["seq", "sender", "kind", "method", "version", "status", "channel"]
    why = "." if pd.isna(row["discovery_detail"]) else f": {row['discovery_detail']}."
    return Told((Name(row["trace"]), " is a case of ", Name(discovery), why), messages[columns].head(n))


def waits(traces: Traces) -> pd.DataFrame:
    """Time to the answer, by who asked and method.

    Columns: asked by, method, requests, answered, median ms, longest ms.
    """
    asked = traces.exchanges
    found = asked.groupby(["sender", "method"]).agg(
        requests=("seq", "size"),
        answered=("latency", "count"),
        median=("latency", "median"),
        longest=("latency", "max"),
    )
    found[["median", "longest"]] *= 1000
    found = found.rename(columns={"median": "median ms", "longest": "longest ms"}).round(3)
    return found.rename_axis(["asked by", "method"]).reset_index()


def eras_by_transport(traces: Traces) -> pd.DataFrame:
    """Connections counted by transport (index) and era (columns)."""
    links = traces.connections
    return pd.crosstab(links["transport"].fillna("unknown"), links["era"])


def crossed(traces: Traces) -> Told:
    """Is era bound to transport in these captures? The count, and the answer."""
    table = eras_by_transport(traces)
    blocks: list[Any] = []
    for era in [era for era in ("legacy", "modern") if era in table.columns]:
        over = list(table.index[table[era] > 0])
        if over:
            blocks.append((Name(era), " was spoken over ", *series(over), "."))
    return Told(table, blocks or None)


DISCOVERY = {
    "modern": "server/discover got a result, and the client stayed modern",
    "legacy-fallback": "server/discover got no result, and an initialize afterwards did",
    "failed": "server/discover was refused, and no initialize succeeded",
    "probe": "server/discover got a result but the session is legacy, or no answer was captured",
    "none": "the client sent no server/discover",
}


def discoveries(traces: Traces) -> pd.DataFrame:
    """How connections found their era. Columns: discovery, means, connections, clients."""
    links = traces.connections
    out = [
        (word, DISCOVERY.get(str(word), ""), len(rows), ", ".join(sorted(set(rows["client"].dropna().astype(str)))))
        for word, rows in links.groupby("discovery", sort=False)
    ]
    return pd.DataFrame(sorted(out, key=lambda row: -row[2]), columns=["discovery", "means", "connections", "clients"])


def silent(traces: Traces) -> Told:
    """Channels that were not open, and why: absence that the tables explain."""
    rows = traces.channels
    rows = rows[rows["state"].isin(["disabled", "unavailable"])]
    found = rows.assign(why=rows["why"].fillna("not said")).groupby(["channel", "state", "why"]).size()
    return Told(found.rename("instances").reset_index())
