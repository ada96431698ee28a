"""``python -m mcplab``: the same as the ``mcplab`` program, and quick to stand before a server."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a plain ``tap`` without loading what the other commands need."""
    if sys.argv[1:2] == ["tap"]:
        from mcplab.live.tap import plain_words, tap
        from mcplab.model import UsageError

        if (given := plain_words(sys.argv[2:])) is not None:
            try:
                sys.exit(tap(**given))
            except UsageError as error:
                print(f"mcplab: tap: {error}", file=sys.stderr)  # noqa: T201
                sys.exit(2)
    from mcplab.cli import main as program

    program()


if __name__ == "__main__":
    main()
