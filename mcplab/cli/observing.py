"""Commands that see what clients do: ``probe``, to point any client at, and ``observe``, which runs a known one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcplab.cli.options import SETTINGS, Shown
from mcplab.cli.output import Format, note, say, show, wrote
from mcplab.cli.recording import KeepSecrets, Redact

if TYPE_CHECKING:
    import pandas as pd


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (probe, observe):
        app.command(context_settings=SETTINGS)(command)


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
    With --http it runs until it is interrupted; clients of one name are then one instance, so give each a probe of its
    own. What a challenge found: mcplab.exercised(read_trace(FILE)).
    """
    from mcplab.live.probe import Probe
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
        from mcplab.live.server.demo import arguments
        from mcplab.live.standing import stand

        return stand(arguments(config), output, redact=redact or (), keep_secrets=keep_secrets)
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


def observe(
    client: Annotated[
        str | None, typer.Argument(metavar="CLIENT", help="One of --list, or a recipe's path.", show_default=False)
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="NAME", help="One of its configurations; --list CLIENT names them.")
    ] = None,
    serves: Serves = "dual",
    transport: Annotated[str, typer.Option(metavar="stdio|http", help="How the client reaches the probe.")] = "stdio",
    challenge: Annotated[
        bool, typer.Option("--challenge", help="Ask the client for all that a server may ask, declared or not.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the trace there.", show_default=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="The clients, or one client's configurations.")] = False,
    install: Annotated[bool, typer.Option("--install", help="Install the client into the cache, and stop.")] = False,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where clients are installed; default: the user's cache.")
    ] = None,
    python: Annotated[str, typer.Option(metavar="PATH", help="With --install: the Python to use.")] = "",
    seconds: Annotated[
        float | None, typer.Option(min=1, help="The longest it may run; default: the recipe's.", show_default=False)
    ] = None,
    kind: Shown = Format.text,
) -> int:
    """Run a known real client once against the probe, and show what it declared.

    It runs without a model and without credentials, in a private folder that is removed afterwards; no process of it
    stays. Exit status 1: it is not installed, or never came.
    """
    from mcplab.live import installing, recipes

    place = installing.cache_folder(cache)
    if listing:
        show(_clients(place) if client is None else _configurations(client), kind)
        return 0
    if client is None:
        raise typer.BadParameter("which client? --list names them")
    if install:
        installing.install(recipes.recipe(client), place, say=note, python=python)
        return 0
    from mcplab.live.observing import observe as run
    from mcplab.live.running import ending
    from mcplab.rulebook import exercised

    with ending():
        trace = run(
            client, config=config, serves=serves, transport=transport, challenge=challenge, cache=cache, seconds=seconds
        )
    ran = trace.header["client"]
    note(f"{ran['name']} {ran.get('version', '(version unknown)')}, {trace.header['label']}, {transport}")
    if output is not None:
        wrote([trace.save(output, mode=0o600)])
    if challenge:
        used = exercised(trace)
        show(used[used["party"] == "client"], kind, columns=["path", "outcome", "n", "worked", "refused", "why"])
        return 0
    said = trace.declarations
    said = said[(said["party"] == "client") & ~said.duplicated(["conn", "place", "path", "state"])]
    show(said, kind, columns=["server", "revision", "place", "path", "state", "value"])
    return 0


def _clients(cache: Path) -> pd.DataFrame:
    import pandas as pd

    from mcplab.live import installing, recipes

    found = [recipes.recipe(name) for name in recipes.names()]
    rows = [
        (one.client, one.version or None, one.installer, " ".join(one.transports), len(one.configs) or 1,
         installing.is_installed(one, cache), str(one.last_run) if one.last_run else "not run yet", one.about)
        for one in found
    ]  # fmt: skip
    names = ["client", "version", "installer", "transports", "configs", "installed", "last_run", "about"]
    return pd.DataFrame(rows, columns=names)


def _configurations(client: str) -> pd.DataFrame:
    import pandas as pd

    from mcplab.live import recipes

    made = recipes.recipe(client)
    known = made.configs or {"default": recipes.Configuration()}
    rows = [(made.client, name, one.about or None) for name, one in known.items()]
    return pd.DataFrame(rows, columns=["client", "config", "about"])
