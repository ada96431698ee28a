"""``mcplab proxy``: record what a client and a server say over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import SETTINGS
from mcplab.cli.output import note, say
from mcplab.cli.recording import KeepSecrets, Redact


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings=SETTINGS)(proxy)


def proxy(
    upstream: Annotated[str, typer.Option(metavar="URL", help="The server's http or https address.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace; an existing one is kept.")],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where clients come to; port 0 takes a free one.")
    ] = "127.0.0.1:0",
    redact: Redact = None,
    keep_secrets: KeepSecrets = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Serve this Host too; * serves any. May be repeated.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Serve pages of this origin too; * serves any.")
    ] = None,
    cafile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates (PEM) to trust besides the system's.")
    ] = None,
) -> int:
    """Record a server over HTTP: prints the address to give the client, and runs until it is interrupted.

    Streamable HTTP of both eras and HTTP+SSE. All bytes go on as they came, but for the Host header.
    """
    from mcplab.live.proxy import Proxy
    from mcplab.live.recorder import warn_on_stderr
    from mcplab.live.running import fresh

    relay = Proxy(
        upstream,
        output,
        listen=listen,
        redact=redact or (),
        keep_secrets=keep_secrets,
        allow_host=allow_host or (),
        allow_origin=allow_origin or (),
        cafile=cafile,
        warn=warn_on_stderr,
    )

    def ready() -> None:
        say(f"{relay.url}\n")
        sys.stdout.flush()

    fresh(lambda: relay.serve(ready))
    assert relay.recorder is not None
    note(f"{relay.recorder.count} events in {relay.recorder.path}")
    return 0 if relay.recorder.failed is None else 1
