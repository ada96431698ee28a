"""Who declared what, told from captures: a sentence is there only when the data say it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pandas as pd

from mcplab.capabilities import unflatten
from mcplab.comparison import diff, speaking
from mcplab.jsontext import printable
from mcplab.told import Code, Name, Picture, Told, count, series
from mcplab.traces import Trace, Traces
from mcplab.varying import NAMELESS, configuration
from mcplab.versions import label_key

HALVES = {
    "initialize": "what a client says first in the legacy era",
    "initialize_result": "what the server answers",
    "request_meta": "what a modern client puts into every request",
    "discover_result": "how a modern server answers server/discover",
}


def overview(traces: Traces) -> Told:
    """What these captures are: how many, of whom, when, and what could not be read."""
    links = traces.connections
    whos = links[["client", "client_version"]].drop_duplicates()
    days = links["first"].dropna().dt.strftime("%Y-%m-%d")
    when = "no clock" if days.empty else days.min() if days.min() == days.max() else f"{days.min()} to {days.max()}"
    eras = links["era"].value_counts()
    spoken = ", ".join(f"{n} {word}" for word, n in eras.items())
    first = (
        f"{count(len(traces), 'capture')} of {count(links['client'].nunique(dropna=False), 'client')} in "
        f"{count(len(whos), 'release')} ({when}); {count(len(links), 'connection')} by era: {spoken}."
    )
    failed = f"{count(len(traces.failed), 'file')} could not be read:" if len(traces.failed) else None
    return Told(first, failed, traces.failed if failed else None)


# One declaration -----------------------------------------------------------------------------------


def example(traces: Any, place: str) -> tuple[str, int] | None:
    """(trace, seq) of the declaring message that says most at a place, the first of equals; None: there is none."""
    rows = traces.declarations
    rows = rows[rows["place"] == place]
    if rows.empty:
        return None
    sizes = rows.groupby(["trace", "seq"], sort=False).size()
    trace, seq = sizes.index[int(sizes.to_numpy().argmax())]
    return str(trace), int(seq)


def quote(traces: Traces, place: str) -> Told:
    """That message, word for word, with its capability paths."""
    found = example(traces, place)
    if found is None:
        return Told(("No message here is ", Name(place), f" ({HALVES[place]})."))
    trace, seq = found
    rows = traces.declarations
    rows = rows[(rows["trace"] == trace) & (rows["seq"] == seq) & (rows["place"] == place)]
    head = (Name(place), f": {HALVES[place]}. Event {seq} of ", Name(trace), ":")
    return Told(head, Code(pretty(traces[trace].raw(seq))), rows[["path", "state", "value"]])


def pretty(text: str) -> str:
    """JSON text over several lines; numbers and escapes stay as they are written."""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


# Comparison ----------------------------------------------------------------------------------------


def headline(frame: pd.DataFrame) -> str:
    """The finding of a comparison, for a chart's title: of three capabilities or fewer, who declares which."""
    if frame.shape[1] == 0:
        return "No declaration was captured"
    root = frame.loc["$"]
    known = int((root != "unknown").to_numpy().sum())
    noun = "column" if frame.columns.nlevels == 1 else "release"
    whole = frame.loc[[path for path in frame.index if path != "$" and "." not in path]]
    said = {path: int(row.isin(["empty", "object", "true", "value"]).sum()) for path, row in whole.iterrows()}
    named = {path: n for path, n in said.items() if n} if len(said) <= 3 else {}
    if nothing := int((root == "empty").to_numpy().sum()):
        named["nothing"] = nothing
    parts = [f"{n} {'declares' if n == 1 else 'declare'} {path}" for path, n in named.items()]
    if parts:
        parts[0] = parts[0].replace(" ", f" of {count(known, noun)} ", 1)
    if varied := int((frame == "varies").any().sum()):
        among = known if parts else count(known, noun)
        parts.append(f"{varied} of {among} {'varies' if varied == 1 else 'vary'} from run to run")
    return ", ".join(parts) or f"What {count(known, noun)} {'declares' if known == 1 else 'declare'}"


def most_varied(frame: pd.DataFrame) -> Any | None:
    """Of the columns in which something varies, the one that stands for most instances; None where nothing varies.

    Captures in which the client gave no name are of nobody knows how many clients: their column is none.
    """
    named = [who for who in frame.columns if (who[0] if isinstance(who, tuple) else who) != NAMELESS]
    varied = [who for who in named if (frame[who] == "varies").any()]
    instances = frame.attrs.get("instances", {})
    return max(varied, key=lambda who: instances.get(who, 0), default=None)


def _only(traces: Traces, who: Any) -> Traces:
    """The captures of one client, or of one (client, version)."""
    client, version = who if isinstance(who, tuple) else (who, None)
    links = traces.connections
    hit = links["client"].astype(object).where(links["client"].notna(), "unknown") == client
    if version is not None:
        hit &= links["client_version"].astype(object).where(links["client_version"].notna(), "unknown") == version
    wanted = set(links.loc[hit, "trace"])
    return Traces([trace for trace in traces if trace.name in wanted])


def objects(traces: Traces, who: Any) -> pd.DataFrame:
    """The different capability objects that one client sends.

    Args:
        who: a client, or (client, version), as a column of ``compare``.

    Returns:
        Columns: declares (the object as JSON text; empty where the member was missing), instances, transports, example
        (trace#seq). The commonest first.
    """
    found: dict[str, dict[str, Any]] = {}
    rows = speaking(_only(traces, who), "client")
    for (trace, seq, _), part in rows.assign(part=rows["part"].fillna(-1)).groupby(
        ["trace", "seq", "part"], sort=False
    ):
        leaves = [(path, value) for path, value in zip(part["path"], part["value"], strict=True) if not pd.isna(value)]
        text = printable(json.dumps(unflatten(leaves), ensure_ascii=False)) if leaves else ""
        one = found.setdefault(text, {"instances": set(), "transports": set(), "example": f"{trace}#{seq}"})
        one["instances"].add(part["instance"].iloc[0])
        one["transports"].add(part["transport"].iloc[0])
    out = [
        (text, len(one["instances"]), ", ".join(sorted(map(str, one["transports"]))), one["example"])
        for text, one in sorted(found.items(), key=lambda item: (-len(item[1]["instances"]), item[0]))
    ]
    return pd.DataFrame(out, columns=["declares", "instances", "transports", "example"])


def spread(frame: pd.DataFrame, traces: Traces) -> Told:
    """The best captured of the columns that vary, and everything that client was seen to send."""
    who = most_varied(frame)
    if who is None:
        return Told("No column varies: every client here declared the same each time it was captured.")
    sent = objects(traces, who)
    label = " ".join(who) if isinstance(who, tuple) else who
    paths = list(frame.index[frame[who] == "varies"])
    return Told(
        (Name(label), f" was run {frame.attrs['instances'][who]} times and sent ",
         f"{count(len(sent), 'different object')}; they differ in ", *series(paths), "."),
        sent,
    )  # fmt: skip


def proof(frame: pd.DataFrame, traces: Traces) -> Told:
    """From one cell of a comparison to the message behind it; the cell is the last one that declares something."""
    for who in reversed(list(frame.columns)):
        for path in reversed(list(frame.index)):
            state = frame.loc[path, who]
            if path != "$" and state not in ("absent", "varies", "unknown"):
                trace, seq = frame.attrs["evidence"][path, who][0]
                label = Name(" ".join(who) if isinstance(who, tuple) else who)
                head = (Name(path), " of ", label, f" is {state}. The first message behind it, event {seq} of ")
                return Told((*head, Name(trace), ":"), Code(pretty(traces[trace].raw(seq))))
    return Told("No cell here says that something is declared.")


def accounted(varied: pd.DataFrame) -> Told:
    """``variance`` in words: with what how many paths of which client vary."""
    if varied.empty:
        return Told("Nothing varies here: there are no two runs of one client that declare differently.")
    lines: list[Any] = []
    for factor, rows in varied.groupby("factor"):
        paths = rows.groupby("client", sort=False)["path"].nunique()
        said = f"with {FACTORS.get(str(factor), str(factor))}: {count(int(paths.sum()), 'path')} of "
        lines.append((said, *series([str(name) for name in paths.index], most=40)))
    return Told("Two runs that differed in one thing alone declared differently", lines)


FACTORS = {
    "version": "the release", "sub-command": "how it was started", "configuration": "a setting",
    "server": "the server", "request": "the request, within one connection", "connection": "the connection, in one run",
    "unknown": "nothing that was recorded",
}  # fmt: skip


def drift_chart(frame: pd.DataFrame, varied: pd.DataFrame, path: str, caption: str | None = None) -> Picture | Told:
    """Draw ``plots.drift``, write it to ``path``, show it; a sentence where no client has two releases."""
    from mcplab.exports import export
    from mcplab.plots import drift

    clients = frame.columns.get_level_values("client")
    if not clients.duplicated().any():
        return Told("Of no client here there are captures of two releases, so there is no drift to draw.")
    alone = varied[varied["factor"] == "version"]
    several = sorted({str(client) for client in clients[clients.duplicated()]})
    some = alone["client"].nunique()
    title = f"{some} of {count(len(several), 'client')} declared differently in another release with all else equal"
    ax = drift(frame, variance=varied, title=title, caption=caption)
    export(ax, path)
    return Picture(ax)


KEPT = {
    "kept": "declared and, when it was used, it worked", "declared, never used": "declared, and in no run used",
    "used undeclared": "used although it was not declared", "refused": "declared, and refused when it was used",
    "unanswered": "declared, and not answered when it was used", "broke a rule": "a rule of it was broken",
    "never apart": "never declared one without the other",
}  # fmt: skip


def kept(found: pd.DataFrame) -> Told:
    """``promises`` in words: what became of how many declared paths, and whose."""
    if found.empty:
        return Told("No client here declared anything, and nothing was asked of any.")
    lines: list[Any] = []
    for kind, words in KEPT.items():
        rows = found[found["kind"] == kind]
        if len(rows):
            releases = rows[["client", "client_version"]].fillna("unknown").drop_duplicates()
            said = f"{words}: {count(rows['path'].nunique(), 'path')}, {count(len(releases), 'release')}, as "
            row = rows.iloc[0]
            pair = (" and ", Name(row["other"])) if kind == "never apart" else ()
            lines.append((said, Name(row["path"]), *pair, " of ", Name(" ".join(releases.iloc[0])),
                          f" ({str(row['evidence']).split(' ')[0]})"))  # fmt: skip
    return Told("Of each release and path, over all its runs:", lines)


ANSWERS = {
    "yes": ("declares it in every run", "declare it in every run"),
    "varies": ("declares it in some runs and not in others", "declare it in some runs and not in others"),
    "no": ("is lost, for no run declared it", "are lost, for no run declared it"),
    "unknown": ("is not known, for no declaration was captured", "are not known, for no declaration was captured"),
}


def losses(frame: pd.DataFrame) -> Told:
    """``reach`` in words: whom a server keeps and whom it loses, a path at a time."""
    blocks: list[Any] = []
    for path in frame.columns:
        lines: list[Any] = []
        for answer, words in ANSWERS.items():
            whos = [" ".join(who) for who in frame.index[frame[path] == answer]]
            if whos:
                said = f"{len(whos)} of {count(len(frame), 'release')} {words[len(whos) > 1]}: "
                lines.append((said, *series(whos, most=40)))
        blocks += [("A server that needs ", Name(path), ":"), lines]
    return Told(*blocks)


# Versions and eras ---------------------------------------------------------------------------------


def offers(traces: Traces) -> pd.DataFrame:
    """Who offers and gets which revision, and how: a row for each difference.

    Columns: client, client_version, offered, selected, era, discovery, connections.
    """
    names = ["client", "client_version", "offered", "selected", "era", "discovery"]
    links = traces.connections[names].astype(object).where(lambda frame: frame.notna(), "")
    found = links.groupby(names, sort=False).size().rename("connections").reset_index()
    order = sorted(found.index, key=lambda at: [label_key(str(found.at[at, name])) for name in names])
    return found.loc[order].reset_index(drop=True)


def era_headline(traces: Traces) -> str:
    """The finding of the versions chart: how many releases were seen in the modern era, and how many fell back."""
    links = traces.connections
    whos = links[["client", "client_version"]].apply(tuple, axis=1)
    spoke = set(whos[links["era"].isin(["modern", "both"])])
    fell = set(whos[links["discovery"] == "legacy-fallback"])
    said = f"{len(spoke)} of {count(whos.nunique(), 'release')} spoke the modern era"
    return f"{said}, {len(fell)} fell back where it was refused" if fell else said


def fallbacks(traces: Traces) -> pd.DataFrame:
    """Who asked for the modern era and did not get it, and why.

    Columns: client, client_version, outcome (``fell back`` or ``gave up``), why (the server's refusal), instances,
    example (trace).
    """
    links = traces.connections
    links = links[links["discovery"].isin(["legacy-fallback", "failed"])]
    words = {"legacy-fallback": "fell back", "failed": "gave up"}
    table = pd.DataFrame({
        "client": links["client"].fillna("unknown"), "client_version": links["client_version"].fillna("unknown"),
        "outcome": links["discovery"].map(words), "why": links["discovery_detail"].fillna("not seen"),
        "trace": links["trace"], "instance": links["instance"],
    })  # fmt: skip
    found = table.groupby(["client", "client_version", "outcome"], sort=True).agg(
        why=("why", lambda reasons: "; ".join(dict.fromkeys(reasons))),
        instances=("instance", "nunique"),
        example=("trace", "first"),
    )
    return found.reset_index()


def side_by_side(traces: Traces, one: str, other: str) -> Told:
    """Pairs of captures, told apart by the end of their names, of the same client and transport: what differs.

    Says so where these captures have no such pair.
    """
    links = traces.connections.drop_duplicates("trace").set_index("trace")
    ends: dict[tuple[Any, ...], dict[str, Trace]] = {}
    for trace in traces:
        for end in (one, other):
            if trace.name.endswith(end) and trace.name in links.index:
                row = links.loc[trace.name]
                ends.setdefault((row["client"], row["client_version"], row["transport"]), {})[end] = trace
    blocks: list[Any] = []
    for (client, version, transport), pair in ends.items():
        if len(pair) == 2:
            a, b = pair[one], pair[other]
            found = diff(a, b, party="client").rename(columns={"a": one, "b": other})[[one, other]]
            head = (Name(f"{client} {version}"), f" over {transport}: {count(len(found), 'path')} differ between ",
                    Name(a.name), " and ", Name(b.name), ".")  # fmt: skip
            blocks += [head, [*map(_configured, (a, b))], found]
    if not blocks:
        return Told(("These captures hold no pair whose names end in ", Name(one), " and ", Name(other), "."))
    return Told(*blocks)


def _configured(trace: Trace) -> tuple[str, ...]:
    return (Name(trace.name), " was configured with ", Name(json.dumps(configuration(trace), ensure_ascii=False)))
