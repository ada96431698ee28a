"""Arguments and options that several commands share: the same name means the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcplab.cli.output import Format, note

if TYPE_CHECKING:
    import pandas as pd

    from mcplab.traces import Traces

SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings that every command is registered with."""

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TRACES",
        help="Files, folders or globs; bundled:NAME for bundled captures (bundled:codex). Default: all bundled ones.",
        show_default=False,
    ),
]
Clients = Annotated[
    list[str] | None,
    typer.Option("--client", metavar="NAME", help="Only this client's captures; may be repeated.", show_default=False),
]
Shown = Annotated[Format, typer.Option("--format", "-f", help="How the table is printed.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write it to this file instead; the suffix says as what.",
        show_default=False,
    ),
]  # fmt: skip
Party = Annotated[str, typer.Option("--party", metavar="client|server", help="Whose declarations.")]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claims", metavar="FILE", show_default=False,
        help="What is claimed: as for mcplab claims; may be repeated. Default: the bundled claims.",
    ),
]  # fmt: skip
Bundled = Annotated[bool, typer.Option("--with-bundled", help="The bundled captures too, beside those that are named.")]


def claimed(given: list[str] | None) -> pd.DataFrame | None:
    """The claims that the command line names; None: it names none. What was left aside is noted on stderr."""
    if not given:
        return None
    import pandas as pd

    from mcplab.published import claims

    found = [claims(None if name == "bundled:" else name) for name in given]
    for frame in found:
        for file, error in frame.attrs["failed"]:
            note(f"mcplab: left out {error if file in error else f'{file}: {error}'}")
    return pd.concat(found, ignore_index=True)


def captures(given: list[str] | None, clients: list[str] | None = None, *, bundled: bool = False) -> Traces:
    """The captures that the command line names; what could not be read is noted on stderr."""
    from mcplab.sources import BUNDLED, load, of_client

    traces = load([*given, BUNDLED] if given and bundled else given or None)
    failed = traces.failed
    if len(failed):
        file, error = failed.iloc[0]
        first = error if file in error else f"{file}: {error}"
        more = f"; and {len(failed) - 1} more" if len(failed) > 1 else ""
        note(f"mcplab: left out {len(failed)} of {len(failed) + len(traces)}: {first}{more}")
    return of_client(traces, clients) if clients else traces


def capture(given: str) -> Any:
    """The one capture that the command line names."""
    traces = captures([given])
    if len(traces) != 1:
        raise typer.BadParameter(f"{given}: {len(traces)} captures, and this command takes one; name its file")
    return traces[0]


def left_out(given: list[str] | None, traces: Traces) -> int:
    """Exit status: 1 when a file that the command line names itself could not be read (a folder may hold others)."""
    from mcplab.sources import BUNDLED

    failed = {name.rpartition("/")[2] for name in traces.failed["file"]} | set(traces.failed["file"])
    named = [name for name in given or [] if not (name.startswith(BUNDLED) or Path(name).is_dir())]
    return int(any(name in failed or Path(name).name in failed for name in named))
