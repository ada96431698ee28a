"""``mcplab probe``: a server to point a client at that records it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import SETTINGS
from mcplab.cli.output import note, say
from mcplab.cli.recording import KeepSecrets, Redact


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(context_settings=SETTINGS)(probe)


Serves = Annotated[str, typer.Option(metavar="modern|legacy|dual", help="The eras that the probe speaks.")]


def probe(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace; an existing one is kept.")],
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve standard input and output: for a client.")] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, and print what to give the client.")] = False,
    serves: Serves = "dual",
    server_capabilities: Annotated[
        str | None, typer.Option(metavar="JSON", help="What to declare; default: all that it has.", show_default=False)
    ] = None,
    versions: Annotated[
        str, typer.Option(metavar="REVISIONS", help="Separated by commas; default: all.", show_default=False)
    ] = "",
    challenge: Annotated[
        bool, typer.Option("--challenge", help="Ask the client for all that a server may ask, declared or not.")
    ] = False,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Over HTTP: where clients come to; port 0 takes a free one.")
    ] = "127.0.0.1:0",
    instructions: Annotated[str | None, typer.Option(metavar="JSON", hidden=True)] = None,
    session_id: Annotated[str | None, typer.Option(hidden=True)] = None,
    get: Annotated[str, typer.Option(hidden=True)] = "sse",
    name: Annotated[str, typer.Option(metavar="NAME", help="What the server calls itself.")] = "mcplab-probe",
    redact: Redact = None,
    keep_secrets: KeepSecrets = False,
) -> int:
    """A server to point a client at: it records what the client declares and does.

    With neither --stdio nor --http it prints the entry for the client's configuration, by which the client starts it.
    With --http it runs until it is interrupted. What a challenge found: mcplab.exercised(read_trace(FILE)).
    """
    from mcplab.live.probe import Probe, tapped
    from mcplab.live.server.__main__ import config_of, parser

    if stdio and http:
        raise typer.BadParameter("--stdio, for a client to start, or --http: not both")
    words = ["--serves", serves, "--versions", versions, "--get", get, "--name", name]
    given = (("--capabilities", server_capabilities), ("--instructions", instructions), ("--session-id", session_id))
    for option, value in given:
        words += [] if value is None else [option, value]
    try:
        config = config_of(parser().parse_args([*words, *(["--challenge"] if challenge else [])]))
    except ValueError as error:
        raise typer.BadParameter(f"--server-capabilities: {error}") from error
    if stdio:
        return tapped(config, output, redact=redact or (), keep_secrets=keep_secrets)
    made = Probe(
        output,
        transport="http" if http else "stdio",
        listen=listen,
        config=config,
        redact=redact or (),
        keep_secrets=keep_secrets,
    )
    if not http:
        say(json.dumps(made.configuration, indent=2) + "\n")
        return 0
    made.serve(lambda: (say(f"{made.url}\n{json.dumps(made.configuration, indent=2)}\n"), sys.stdout.flush()))
    note(f"{made.recorder.count} events in {made.path}")
    return 0 if made.recorder.failed is None else 1
