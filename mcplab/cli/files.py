"""Commands that write files: report, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import SETTINGS, Sources
from mcplab.cli.output import note, wrote


def register(app: typer.Typer) -> None:
    for command in (report, convert):
        app.command(context_settings=SETTINGS)(command)


def report(
    traces: Sources = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to.")] = Path("build/report"),
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="S", min=1, help="Longest time for one cell of a notebook, in seconds.")
    ] = 300,
) -> int:
    """Run the notebooks on these traces: charts, tables, a page.

    A trace that cannot be read does not stop the others: the page lists it with its error. Needs mcplab[lab].
    """
    from mcplab.live.running import ending
    from mcplab.report import build

    with ending():
        done = build(traces or None, output, timeout=timeout)
    note(f"{done.index}: {done.summary}")
    return 0 if done.complete else 1


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A trace or log in any format that mcplab reads.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format to write.")] = "mcplab",
    read_as: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Format to read; default: recognised.", show_default=False),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz", metavar="ZONE", help="Time zone of a log that names none, as Europe/Berlin.", show_default=False
        ),
    ] = None,
) -> int:
    """Write a trace in another format.

    chrome-trace opens in Perfetto, mermaid is the ladder of its first messages as Mermaid text; neither is read back.
    The text of every message stays as it is, byte for byte. What the source cannot tell is noted on stderr.
    """  # fmt: skip
    from mcplab.formats import WRITERS
    from mcplab.model import ArgumentError
    from mcplab.sources import resolve
    from mcplab.traces import read_trace

    if to not in (*WRITERS, "mermaid"):
        raise ArgumentError(f"no format {to!r} to write; formats that can be written: {', '.join(WRITERS)}, mermaid")
    trace = read_trace(resolve(source), format=read_as, tz=tz)
    if to == "mermaid":
        from mcplab.render import mermaid

        target.write_text(mermaid(trace.messages, trace.events), encoding="utf-8")
        wrote([target])
    else:
        wrote([trace.save(target, format=to)])
    for text in trace.notes:
        note(f"note: {text}")
    return 0
