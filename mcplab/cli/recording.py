"""Commands that record other people's clients and servers: tap, wrap, unwrap; and redact, for what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import SETTINGS
from mcplab.cli.output import note

Redact = Annotated[
    list[str] | None,
    typer.Option(
        "--redact",
        metavar="KEY|/REGEX/|PATH|tokens",
        help="Mask more than credentials by name: a KEY of a member, header or variable; every match of a /regex/; "
        "a path (params.arguments.note or /params/arguments/note, * for any step); tokens: what looks like one. "
        "May be repeated.",
        show_default=False,
    ),
]
KeepSecrets = Annotated[
    bool, typer.Option("--keep-secrets", help="Do not mask credentials (headers, addresses, well-known names).")
]


def register(app: typer.Typer) -> None:
    app.command(context_settings={**SETTINGS, "ignore_unknown_options": True, "allow_interspersed_args": False})(tap)
    for command in (wrap, unwrap, redact):
        app.command(context_settings=SETTINGS)(command)


def tap(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The server, as its client starts it.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace; an existing one is kept.")],
    redact: Redact = None,
    keep_secrets: KeepSecrets = False,
) -> int:
    """Stand between a client and a stdio server, and record.

    Put it before the server's command in the client's configuration (mcplab wrap does). Bytes pass untouched, signals
    and the exit status too. Where FILE exists the trace goes to FILE-2, FILE-3, ...
    """
    from mcplab.live.tap import tap as stand

    words = command[1:] if command[:1] == ["--"] else command
    return stand(words, output, redact=redact or (), keep_secrets=keep_secrets)


Config = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="A client's configuration: mcpServers, servers, mcp or context_servers."),
]


def wrap(
    config: Config,
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The server's name in it.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The trace; default: SERVER.jsonl here.", show_default=False
        ),
    ] = None,
    more: Redact = None,
    keep_secrets: KeepSecrets = False,
) -> int:
    """Put the tap before a stdio server in a client's configuration.

    JSON, with comments or without; every other byte stays. A copy is kept beside it (.mcplab-backup). Done again, it
    changes what the trace is called. Then restart the client.
    """
    from mcplab.live.wrapping import wrap as put
    from mcplab.model import MCPLabError
    from mcplab.redaction import Masks

    Masks(more or ())  # a word that cannot be used is told here, not to a client that waits for its server
    options = [word for one in more or () for word in ("--redact", one)] + ["--keep-secrets"] * keep_secrets
    trace = (output or Path(f"{server.replace('/', '-')}.jsonl")).absolute()
    if not trace.parent.is_dir():
        raise MCPLabError(f"{trace.parent}: no such folder; make it first, or give another -o")
    done = put(config, server, trace, options)
    if done.changed:
        note(f"{config}: {server} is tapped, into {trace}; restart the client. The old one is {done.backup.name}")
    else:
        note(f"{config}: {server} is tapped already, into {trace}")
    return 0


def unwrap(
    config: Config,
    server: Annotated[str | None, typer.Argument(metavar="[SERVER]", help="Default: all.", show_default=False)] = None,
) -> int:
    """Take the tap out of a client's configuration again: its bytes are what they were."""
    from mcplab.live.wrapping import unwrap as take

    done = take(config, server)
    note(f"{config}: {', '.join(done.servers)} as before" if done.changed else f"{config}: no tap in it")
    return 0


def redact(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A trace or log in any format that mcplab reads.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Default: FILE-redacted beside it.", show_default=False),
    ] = None,
    more: Redact = None,
    keep_secrets: KeepSecrets = False,
) -> int:
    """Write a trace or log with its secrets masked.

    mcplab's own traces and logs of JSON lines keep every other byte; another format becomes a trace of mcplab's own.
    """
    from mcplab.redacting import redact_file

    done = redact_file(source, output, redact=more or (), keep_secrets=keep_secrets)
    for place in done.places:
        note(f"masked: {place}")
    note(f"wrote {done.path}" + ("" if done.places else " (there was nothing to mask)"))
    return 0
