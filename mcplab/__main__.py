"""``python -m mcplab``: the same as the ``mcplab`` program."""

from __future__ import annotations

from mcplab.cli import main

if __name__ == "__main__":
    main()
