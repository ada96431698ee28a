"""The command that opens the notebooks: lab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import SETTINGS
from mcplab.cli.output import note


def register(app: typer.Typer) -> None:
    app.command(context_settings=SETTINGS)(lab)


def lab(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the notebooks go.")] = Path("mcplab-notebooks"),
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGS", help="Handed to JupyterLab, as --no-browser.", show_default=False),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only put them there; do not start JupyterLab.")] = False,
) -> int:
    """Put the notebooks into a folder of yours and open JupyterLab on them.

    A notebook that was changed there is never written over. Needs mcplab[lab].
    """
    from mcplab.lab import place, start

    note(place(folder).summary)
    if not no_open:
        start(folder, arguments or ())
    return 0
