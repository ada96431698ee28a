"""The command that shows a capture as transport displays do: show."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from mcplab.cli.options import capture
from mcplab.cli.output import say, width


def register(app: typer.Typer) -> None:
    app.command()(show)


def show(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="One capture: a file, or bundled:NAME.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="How many segments.")] = 60,
    step_seconds: Annotated[float, typer.Option("--step-seconds", metavar="S", help="Length of a segment.")] = 1.0,
    end: Annotated[
        str | None, typer.Option("--end", metavar="TIME|now", help="End; default: the last event.", show_default=False)
    ] = None,
    instance: Annotated[
        str | None, typer.Option("--instance", metavar="NAME", help="Only this one.", show_default=False)
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Three lines an instance.")] = False,
) -> int:
    """Who spoke to whom, in which protocol, and what each channel carried.

    Era and transport are two facts: any era may be spoken over any transport. Only what passed the recorder is here:
    MCP traffic that a model provider runs on its own side never passes it.

    Colours where the output is a terminal and NO_COLOR is not set. Where there are fewer columns than segments,
    neighbours are merged and a line says so.
    """
    from mcplab.render import text

    if not step_seconds > 0:
        raise typer.BadParameter(f"--step-seconds: {step_seconds} is not longer than nothing")
    shown = text(
        capture(trace),
        steps=steps,
        step_seconds=step_seconds,
        end=end,
        instance=instance,
        width=width(),
        colour=coloured(sys.stdout.isatty()),
        short=short,
    )
    say(shown)
    return 0


def coloured(terminal: bool) -> bool:
    """Colours only on a terminal that has them, unless NO_COLOR is set to anything (no-color.org)."""
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"
