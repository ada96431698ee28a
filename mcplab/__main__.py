"""``python -m mcplab``: the same as the ``mcplab`` program, and quick to stand before a server."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a plain ``tap`` or ``probe`` without loading what the other commands need."""
    name = "".join(sys.argv[1:2])
    if name in ("tap", "probe"):
        from mcplab.live import standing, tap
        from mcplab.model import UsageError

        plain, run = (tap.plain_words, tap.tap) if name == "tap" else (standing.plain_words, standing.stand)
        if (given := plain(sys.argv[2:])) is not None:
            try:
                sys.exit(run(**given))
            except UsageError as error:
                print(f"mcplab: {name}: {error}", file=sys.stderr)  # noqa: T201
                sys.exit(2)
    from mcplab.cli import main as program

    program()


if __name__ == "__main__":
    main()
