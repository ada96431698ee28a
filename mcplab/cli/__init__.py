"""The command line: a thin face over the library, one command a function.

Exit status: 0 fine, 1 it failed (``diff``: they differ), 2 wrong use; what went wrong is one line on stderr.
Below it stand an error's notes (of a server that failed, the end of its own stderr).
A new command: a module in ``mcplab/cli/`` whose ``register(app)`` adds it, and its name in ``MODULES``. Modules here
import nothing heavy when they load: pandas, matplotlib and the SDK come inside functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from mcplab import __version__
from mcplab.cli.options import SETTINGS
from mcplab.cli.output import note, safe
from mcplab.model import MCPLabError, SpecError, UsageError

MODULES: Final = (
    "tables",
    "comparing",
    "display",
    "rulings",
    "live",
    "recording",
    "proxying",
    "observing",
    "files",
    "many",
    "lab",
)
"""Modules of this package that hold commands, in the order in which help lists them."""

app = typer.Typer(
    name="mcplab",
    help="What did this MCP client and this server tell each other they can do?",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mcplab {__version__}")
        raise typer.Exit()


@app.callback()
def _mcplab(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _name in MODULES:
    import_module(f"mcplab.cli.{_name}").register(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit status. Errors of the user are one line on stderr."""
    try:
        status = app(list(arguments), prog_name="mcplab", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except (UsageError, SpecError) as error:
        return _failed(f"{error} (mcplab --help explains)", 2)
    except MCPLabError as error:
        return _failed(str(error), 1, getattr(error, "__notes__", ()))
    except BrokenPipeError:
        return _quiet()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # typer makes 1 of it where it meets it first
            raise
        return _quiet()
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{(error.strerror or str(error)).lower()}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):  # what the parser of the command line raises
            return _failed(_usage(error), 2)
        raise


def main() -> None:
    """The ``mcplab`` program."""
    for name in ("stdout", "stderr"):
        if (
            getattr(sys, name) is None
        ):  # closed by who started us (``>&-``): as if into the bin, and no file gets its number
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    sys.exit(run(sys.argv[1:]))


def _failed(text: str, status: int, more: Iterable[str] = ()) -> int:
    for line in (f"mcplab: {text}", *more):
        note(line)
    return status


def _usage(error: Any) -> str:
    """``compare: No such option: --x (mcplab compare --help explains)``, in one line."""
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", None) or "mcplab"
    text = " ".join(str(error.format_message()).split()).rstrip(".")
    text = text.removeprefix("Invalid value: ").replace(": Value error, ", ": ")
    if text.startswith("Missing command"):
        text = f"name a command: {', '.join(sorted(context.command.commands))}" if context else text
    prefix = command.removeprefix("mcplab").strip()
    return f"{prefix + ': ' if prefix else ''}{safe(text)} ({command} --help explains)"


def _quiet() -> int:
    """The reader of our output has gone away (``mcplab read | head``): nothing to say, and nothing more to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
