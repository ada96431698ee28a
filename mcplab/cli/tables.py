"""Commands that print a table: read, compare, diff, reach, timeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcplab.cli.options import (
    SETTINGS,
    Bundled,
    Claims,
    Clients,
    Output,
    Party,
    Shown,
    Sources,
    capture,
    captures,
    claimed,
    left_out,
)  # fmt: skip
from mcplab.cli.output import Format, matrix, note, save, say, show
from mcplab.model import FormatError, MCPLabError, TraceError

if TYPE_CHECKING:
    import pandas as pd

TABLES: Final = ("connections", "messages", "exchanges", "declarations", "channels", "http", "events", "unparsed")
BRIEF: Final[dict[str, tuple[str, ...]]] = {
    "connections": ("trace", "conn", "client", "client_version", "transport", "label", "discovery", "calls"),
    "messages": ("trace", "seq", "ts", "sender", "kind", "method", "id", "channel", "status", "latency"),
    "exchanges": ("trace", "seq", "sender", "method", "id", "outcome", "waited", "error_code", "channel"),
    "declarations": ("trace", "seq", "party", "place", "revision", "path", "state", "value"),
    "channels": ("trace", "channel", "state", "why", "request", "response", "notification", "ping", "error"),
    "http": ("trace", "conn", "http_exchange", "method", "path", "status", "content_type", "channel"),
    "events": ("trace", "seq", "ts", "kind", "sender", "channel", "activity", "size"),
    "unparsed": ("trace", "where", "file", "line", "reason", "text"),
}
"""Columns of the short form, for text and md."""


def register(app: typer.Typer) -> None:
    for command in (read, compare, diff, reach, timeline):
        app.command(context_settings=SETTINGS)(command)


def read(
    traces: Sources = None,
    table: Annotated[
        str, typer.Option("--table", "-t", metavar="NAME", help=f"One of {', '.join(TABLES)}.")
    ] = "connections",
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Columns to show, or 'all' (docs/columns.md lists them)."),
    ] = None,
    client: Clients = None,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """What is in these traces: a row a connection, or another table.

    Text and md show the most useful columns; csv, json and files have all of them.
    """
    if table not in TABLES:
        raise typer.BadParameter(f"no table {table!r}; there are {', '.join(TABLES)}")
    found = captures(traces, client)
    frame = getattr(found, table)
    chosen = _columns(columns, frame, table)
    wanted = frame if columns is None else frame[chosen]
    if output is not None:
        save(wanted, output)
    else:
        show(wanted, kind, columns=chosen)
    if "calls" in chosen and frame["instance"].duplicated().any():
        note("calls and discovery are the instance's: of all its connections together (-t exchanges tells them apart)")
    return left_out(traces, found)


def _columns(given: str | None, frame: pd.DataFrame, table: str) -> list[str]:
    if given is None or given == "all":
        return list(frame.columns if given else BRIEF[table])
    wanted = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in frame.columns]
    if unknown or not wanted:
        raise typer.BadParameter(
            f"no column {', '.join(unknown) or 'is named'}; {table} has {', '.join(frame.columns)}"
        )
    return wanted


def _drawn(output: Path) -> bool:
    """Is this file a chart's?"""
    from mcplab.exports import FIGURE_FORMATS, TABLE_FORMATS

    kind = output.suffix[1:].lower()
    if kind.isalpha() and kind not in (*FIGURE_FORMATS, *TABLE_FORMATS):
        charts, tables = ", ".join(FIGURE_FORMATS), ", ".join(TABLE_FORMATS)
        raise FormatError(f"cannot export to {output.name!r}: the chart is written as {charts}, the table as {tables}")
    return kind in FIGURE_FORMATS


def compare(
    traces: Sources = None,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="A,B", help="A column is a client, client_version, config, transport, era, instance, trace."
        ),
    ] = "client,client_version",
    party: Party = "client",
    tier: Annotated[
        str,
        typer.Option(
            "--tier", metavar="NAME", help="Whose word: observed (messages), exercised, read, listed; or all of them."
        ),
    ] = "observed",
    claims: Claims = None,
    client: Clients = None,
    bundled: Bundled = False,
    long: Annotated[bool, typer.Option("--long", help="A row a cell, with counts and evidence.")] = False,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """Who declares which capability.

    Each cell is a state: absent, null, empty ({}), object, true, false, value; varies where more than one was seen;
    unknown where no declaration was captured. Tiers other than observed say yes, no, varies or unknown. With
    -o chart.svg (pdf, png) it is drawn, with its source below it.
    """
    import mcplab.comparison as comparison
    import mcplab.tiers as tiers

    found = captures(traces, client, bundled=bundled)
    keys = [key.strip() for key in by.split(",") if key.strip()]
    _known(keys, comparison.BY, "--by")
    _known([party], comparison.PLACES, "--party")
    _known([tier], (*tiers.TIERS, "all"), "--tier")
    by_keys = keys if len(keys) > 1 else keys[0]
    frame = tiers.compare(found, by=by_keys, party=party, tier=tier, long=long, claims=claimed(claims))
    if output is not None and _drawn(output) and not long:
        from mcplab import plots, provenance, stories

        title = stories.headline(frame) if tier == "observed" else None
        save(plots.declarations(frame, title=title, caption=provenance.caption(found)), output)
    elif output is not None:
        save(frame, output)
    elif kind is Format.text and not long:
        say(matrix(frame))
    else:
        show(frame, kind)
    return left_out(traces, found)


def _known(given: list[str], known: Any, option: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise typer.BadParameter(f"{option}: {', '.join(unknown) or 'nothing'} is none of {', '.join(known)}")


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A trace, or a capability object as JSON text.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same, to compare with.")],
    party: Annotated[
        str | None, typer.Option("--party", metavar="client|server", help="Whose declarations; default: both.")
    ] = None,
    kind: Shown = Format.text,
) -> int:
    """What two traces declare differently. Exit status 1 when they differ, 2 when one cannot be read.

    A or B may be a JSON object in place of a file: '{"roots":{}}'.
    """
    import mcplab.comparison as comparison
    from mcplab.model import JsonText

    if party is not None:
        _known([party], comparison.PLACES, "--party")
    try:
        sides = [JsonText(each) if each.lstrip()[:1] == "{" else capture(each) for each in (a, b)]
        if party is None and any(isinstance(side, JsonText) for side in sides):
            party = "client"  # a bare object does not say whose it is
        frame = comparison.diff(*sides, party=party)
    except MCPLabError as error:
        raise typer.BadParameter(str(error)) from None
    if len(frame) or kind is not Format.text:
        show(frame, kind)
    return int(len(frame) > 0)


def reach(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Client capabilities, as elicitation.url.")],
    traces: Annotated[
        list[str] | None,
        typer.Option("--traces", "-t", metavar="TRACES", help="As for read; may be repeated.", show_default=False),
    ] = None,
    client: Clients = None,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """Whom do I lose if my server needs these client capabilities?

    yes: every captured instance declares it; no: none does; varies: some do; unknown: no declaration was captured.
    Exit status 1 for a path that looks misspelt, whose rows answer nothing.
    """
    import mcplab.comparison as comparison

    found = captures(traces, client)
    frame = comparison.reach(paths, found)
    likely = {path: known for path in paths if (known := _like(path, frame))}
    for path, known in likely.items():
        note(f"mcplab: {path}: no revision defines it, and no capture declares it; did you mean {known}?")
    if output is not None:
        save(frame, output)
    else:
        show(frame, kind)
    return left_out(traces, found) or int(bool(likely))


def _like(path: str, frame: pd.DataFrame) -> str:
    """What may be meant by a path that nobody defines and nobody declares, if something is near it."""
    import difflib

    from mcplab.spec import REVISIONS, capabilities, capability

    if any(capability(revision, "client", path) for revision in REVISIONS) or set(frame[path]) - {"no", "unknown"}:
        return ""
    names = dict.fromkeys(one.path for revision in REVISIONS for one in capabilities(revision, "client"))
    return ", ".join(difflib.get_close_matches(path, names, n=3))


def timeline(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="One capture: a file, or bundled:NAME.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="How many segments.")] = 60,
    step_seconds: Annotated[
        float | None,
        typer.Option(
            "--step-seconds", metavar="S", help="Length of a segment.  [default: so that all fits]", show_default=False
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--end", metavar="TIME", help="The time that the last segment holds; default: the last event."),
    ] = None,
    instance: Annotated[str | None, typer.Option("--instance", metavar="NAME", help="Only this one.")] = None,
    axis: Annotated[
        str, typer.Option("--axis", metavar="time|seq", help="seq: a segment an event, for a trace without a clock.")
    ] = "time",
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """What happened on which channel, segment by segment.

    A segment shows the strongest of what fell into it: error, request, response, notification or ping.
    With -o chart.svg (pdf, png) it is drawn, under lanes with every message; with --end, and with --axis seq in spite
    of a clock, the segments alone.
    """
    import mcplab.bins as bins
    import mcplab.strips as strips

    if step_seconds is not None and not step_seconds > 0:
        raise typer.BadParameter(f"--step-seconds: {step_seconds} is not longer than nothing")
    _known([axis], ("time", "seq"), "--axis")
    one = capture(trace)
    if axis == "time" and not strips.has_clock(one):
        raise TraceError(f"{trace}: no event has a time stamp; --axis seq shows it event by event")
    seconds = step_seconds if step_seconds is not None else strips.step_for(one, steps)
    frame = bins.timeline(one, steps=steps, step_seconds=seconds, end=end, instance=instance, axis=axis)
    if output is not None and _drawn(output):
        from mcplab import plots, provenance

        source = provenance.caption(one)
        if end is not None or (axis == "seq" and strips.has_clock(one)):
            chart = plots.timeline(frame, caption=source)  # the strip that was asked for, which no chart of lanes has
        else:
            tables = {name: getattr(one, name) for name in ("messages", "http", "events", "exchanges")}
            if instance is not None:
                tables = {name: table[table["instance"] == instance] for name, table in tables.items()}
            chart = plots.timeline(tables.pop("messages"), **tables, steps=steps, step_seconds=seconds, caption=source)
        save(chart, output)
    elif output is not None:
        save(frame, output)
    elif kind is Format.text:
        say(strips.strip(frame, seconds if axis == "time" else None) + "\n")
    else:
        show(frame, kind)
    return 0
