"""Commands that hold statements against each other: claims, contradictions, variance, promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcplab.cli.options import SETTINGS, Bundled, Claims, Clients, Output, Shown, Sources, captures, claimed, left_out
from mcplab.cli.output import Format, save, show

if TYPE_CHECKING:
    import pandas as pd

BRIEF: Final[dict[str, tuple[str, ...]]] = {
    "statements": ("tier", "client", "client_version", "path", "declares", "implements", "when", "date", "evidence"),
    "contradictions": ("client", "path", "what", "tier", "claimed", "claimed_date",
                       "found", "found_version", "reason", "source"),
    "variance": ("client", "path", "factor", "name", "a", "b", "state_a", "state_b", "contexts", "given"),
    "promises": ("client", "client_version", "path", "kind", "by", "other", "instances", "of", "configurations", "n"),
}  # fmt: skip
"""Columns of the short form, for text and md."""


def register(app: typer.Typer) -> None:
    for command in (claims, contradictions, variance, promises):
        app.command(context_settings=SETTINGS)(command)


def _give(frame: pd.DataFrame, table: str, kind: Format, output: Path | None) -> None:
    if output is not None:
        save(frame, output)
    else:
        show(frame, kind, columns=BRIEF[table])


def claims(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLAIMS", show_default=False,
            help="Research notes, claims files, mcp-clients.json, matrix.json, or folders of them; bundled: for the "
            "bundled ones, installed:mcp-client-capabilities for that package's. Default: the bundled ones.",
        ),
    ] = None,
    client: Clients = None,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:  # fmt: skip
    """What documents and published tables say of clients, with where they say it."""
    from mcplab.published import claims as read

    found = claimed(paths)
    frame = read() if found is None else found
    if client:
        frame = frame[frame["client"].isin(client) | frame["name"].isin(client)]
    _give(frame, "statements", kind, output)
    return 0


def contradictions(
    traces: Sources = None,
    claims: Claims = None,
    client: Clients = None,
    bundled: Bundled = False,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """Where documents and captures disagree, and why, as far as it can be told.

    changed since: captures of older releases agree; differs by release: of others, and not only of older ones; differs
    by configuration: other captures of the same release do; wrong: none does, in the release that it is about; unknown:
    it cannot be told. Of the clients of TRACES, where some are named. -f csv or json show the evidence.
    """
    import mcplab.disputes as disputes

    found = captures(traces, client, bundled=bundled)
    frame = disputes.contradictions(found, claimed(claims))
    if client or traces:  # claims of other clients are none of it
        links = found.connections
        frame = frame[
            frame["client"].isin({*(client or ()), *links["client"].dropna(), *links["client_info"].dropna()})
        ]
    _give(frame, "contradictions", kind, output)
    return left_out(traces, found)


def variance(
    traces: Sources = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="NAME", help="Only this client's.", show_default=False)
    ] = None,
    bundled: Bundled = False,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """What a client's declaration varies with: its release, transport, server, how it was started, a setting.

    A row says: two runs that differed in this alone declared differently. -f csv or json show the evidence.
    """
    import mcplab.varying as varying

    found = captures(traces, None, bundled=bundled)
    _give(varying.variance(found, client), "variance", kind, output)
    return left_out(traces, found)


def promises(
    traces: Sources = None,
    client: Clients = None,
    bundled: Bundled = False,
    kind: Shown = Format.text,
    output: Output = None,
) -> int:
    """What became of what clients declared: kept, never used, refused, broken, or never declared apart."""
    import mcplab.keeping as keeping

    found = captures(traces, client, bundled=bundled)
    _give(keeping.promises(found), "promises", kind, output)
    return left_out(traces, found)
