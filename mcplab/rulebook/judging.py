"""Which published revision stands for the version that a peer named."""

from __future__ import annotations

from typing import Final

from mcplab import spec
from mcplab.spec import LATEST_LEGACY, REVISIONS

LEGACY: Final = tuple(name for name in REVISIONS if spec.era(name) == "legacy")
MODERN: Final = tuple(name for name in REVISIONS if spec.era(name) == "modern")


def legacy_revision(version: str | None, offered: str | None = None) -> str:
    """The published legacy revision that a session is judged by: its own, else the newest one before it.

    ``offered`` stands for an answered version that is none.
    """
    if version in LEGACY:
        return str(version)
    if version is None or spec.era(version) == "unknown":
        return LATEST_LEGACY if offered is None else legacy_revision(offered)
    earlier = [name for name in LEGACY if name <= version]
    return earlier[-1] if earlier else LEGACY[0]


def modern_revision(version: str | None) -> str:
    """The published modern revision that a request is judged by: its own, else the newest one before it."""
    earlier = [name for name in MODERN if version is not None and name <= version]
    return earlier[-1] if earlier else MODERN[0]
