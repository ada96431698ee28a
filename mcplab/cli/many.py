"""The commands of many traces: corpus build, sql, compare and status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcplab.cli.options import SETTINGS, Output, Party, Shown
from mcplab.cli.output import Format, matrix, note, safe, save, say, show

if TYPE_CHECKING:
    from mcplab.corpus import Corpus

group = typer.Typer(
    name="corpus",
    help="Many traces: their tables as Parquet, made once and asked often (docs/scale.md).",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)

Home = Annotated[Path, typer.Argument(metavar="CORPUS", help="The folder of a corpus.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group)


@group.command()
def build(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCES...", help="Files, folders, globs or bundled:NAME.")],
    out: Annotated[Path, typer.Option("--output", "-o", metavar="CORPUS", help="The folder that it is built in.")],
    messages: Annotated[bool, typer.Option("--messages", help="Keep the messages with their text too.")] = False,
    unchecked: Annotated[bool, typer.Option("--no-check", help="Judge no rules.")] = False,
    split: Annotated[
        bool, typer.Option("--split", help="A file is a gateway's log: each connection in it is a capture of its own.")
    ] = False,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster; 'local' makes one here.")
    ] = None,
) -> int:
    """Make or bring up to date a corpus of exactly these sources.

    What has not changed is not read again; what was killed goes on where it stopped. Exit status 1: some files could
    not be read; they are listed on stderr.
    """
    from mcplab import corpus

    made = corpus.build(sources, out, messages=messages, check=not unchecked, split=split, scheduler=scheduler)
    did = made.built
    say(f"{safe(out)}: {len(made)} instances of {did['files']} files; {did['new']} of {did['parts']} parts are new\n")
    for file, error in made.failed.head(20).itertuples(index=False):
        note(f"mcplab: left out {error if file in error else f'{file}: {error}'}")
    if (more := len(made.failed) - 20) > 0:
        note(f"mcplab: and {more} more; mcplab corpus status --failed lists them")
    return int(len(made.failed) > 0)


def _opened(
    home: Path, client: list[str] | None, version: list[str] | None, since: str | None, until: str | None
) -> Corpus:
    from mcplab import corpus

    found = corpus.open(home)
    facts = {name: given for name, given in (("client", client), ("version", version)) if given}
    return found.select(since=since, until=until, **facts) if facts or since or until else found


Clients = Annotated[list[str] | None, typer.Option("--client", metavar="NAME", help="Only this client's instances.")]
Versions = Annotated[list[str] | None, typer.Option("--version", metavar="V", help="Only this release's instances.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Instances that began then or later.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Instances that began before then.")]


@group.command()
def sql(
    home: Home,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="DuckDB's SQL over the tables of docs/columns.md.")],
    client: Clients = None,
    version: Versions = None,
    since: Since = None,
    until: Until = None,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """What a query says of a corpus.

    Tables: instances, connections, declarations, exchanges, findings, and messages where they were kept.
    """
    frame = _opened(home, client, version, since, until).sql(query)
    if output is not None:
        save(frame, output)
    else:
        show(frame, kind)
    return 0


@group.command()
def compare(
    home: Home,
    by: Annotated[
        str, typer.Option("--by", metavar="A,B", help="As of mcplab compare: what a column stands for.")
    ] = "client,client_version",
    party: Party = "client",
    client: Clients = None,
    version: Versions = None,
    since: Since = None,
    until: Until = None,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """Who declares which capability, of all instances or of some."""
    keys = [key.strip() for key in by.split(",") if key.strip()]
    found = _opened(home, client, version, since, until)
    frame = found.compare(by=keys[0] if len(keys) == 1 else keys, party=party)
    if output is not None:
        save(frame, output)
    elif kind is Format.text:
        say(matrix(frame))
    else:
        show(frame, kind)
    return 0


@group.command()
def status(
    home: Home,
    failed: Annotated[bool, typer.Option("--failed", help="List what could not be read.")] = False,
    kind: Shown = Format.text,
) -> int:
    """What a corpus holds: files, parts, failures, rows, bytes."""
    import pandas as pd

    from mcplab import corpus

    found = corpus.open(home)
    show(found.failed if failed else pd.DataFrame([found.status()]), kind)
    return 0
