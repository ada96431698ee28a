"""The commands that judge: check, rules and explain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcplab.cli.options import Sources
from mcplab.cli.output import note, say
from mcplab.model import SpecError, TraceError


class Report(StrEnum):
    """How findings are printed."""

    text = "text"
    json = "json"
    csv = "csv"
    md = "md"
    junit = "junit"


class Level(StrEnum):
    """Which breaches fail."""

    MUST = "MUST"
    SHOULD = "SHOULD"


class Party(StrEnum):
    """Whose breaches count."""

    client = "client"
    server = "server"


def register(app: typer.Typer) -> None:
    for command in (check, rules, explain):
        app.command()(command)


@contextmanager
def _asked() -> Iterator[None]:
    """An unknown rule or revision is wrong use, not a failure."""
    try:
        yield
    except SpecError as error:
        raise typer.BadParameter(str(error)) from None


def check(
    traces: Sources = None,
    format: Annotated[Report, typer.Option("--format", "-f", help="How findings are printed.")] = Report.text,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="ID", help="Only this rule or topic; may be repeated.", show_default=False),
    ] = None,
    level: Annotated[Level, typer.Option("--level", help="SHOULD: those fail too.")] = Level.MUST,
    party: Annotated[
        Party | None, typer.Option("--party", help="What this one broke only; else either.", show_default=False)
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="R", help="Judge by this revision.", show_default=False),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="FILE", help="Findings that are known, as --format json writes them, do not fail.",
            show_default=False,
        ),
    ] = None,
    hints: Annotated[bool, typer.Option("--hints", help="Rules of low confidence too; they never fail.")] = False,
) -> int:  # fmt: skip
    """Did they keep to the specification?

    Exit status: 0 nothing is broken, 1 a MUST is (--level SHOULD: or a SHOULD), 2 wrong use, 3 something could not be
    read.
    """
    from mcplab.rulebook_commands import check_text
    from mcplab.sources import BUNDLED, resolve

    try:
        with _asked():
            named = [str(resolve(source)) for source in traces or [BUNDLED]]
            text, status, unread = check_text(
                named, format=format, rule=rule, level=level, party=party, revision=revision, baseline=baseline,
                hints=hints,
            )  # fmt: skip
    except TraceError as error:
        note(f"mcplab: {error}")
        return 3
    for line in unread:
        note(f"mcplab: left out {line}")
    say(text.rstrip("\n") + "\n")
    return status


def rules(
    name: Annotated[
        str | None, typer.Argument(metavar="ID", help="One rule, with its examples.", show_default=False)
    ] = None,
) -> int:
    """The rules that are checked, or one of them with a kept and a broken example."""
    from mcplab.rulebook_commands import rules_text

    with _asked():
        say(rules_text(name) + "\n")
    return 0


def explain(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="One capture: a file, or bundled:NAME.")],
    what: Annotated[
        str,
        typer.Argument(
            metavar="SEQ|METHOD",
            help="Which message: its seq, as mcplab read --table messages shows it. Or a method, as resources/list.",
        ),
    ],
) -> int:
    """Why was this message rejected, or this method never called: what was declared, the gate, the rules."""
    from mcplab.cli.options import capture
    from mcplab.rulebook import explain as judge

    with _asked():
        say(f"{judge(capture(trace), int(what) if what.isdecimal() else what)}\n")
    return 0
