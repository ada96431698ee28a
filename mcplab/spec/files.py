"""The package's own TOML files: read once, when first asked for."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """The content of ``mcplab/spec/<name>``. The dict is shared: callers must not change it."""
    return tomllib.loads(files("mcplab.spec").joinpath(name).read_text(encoding="utf-8"))
