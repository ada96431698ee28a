"""Revisions of the protocol, their eras, the ``_meta`` keys, and the public address of a section."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Any, Final, Literal, cast

from mcplab.model import SpecError
from mcplab.spec.files import load

Era = Literal["legacy", "modern", "unknown"]

_DATA: Final = load("revisions.toml")
_KNOWN: Final[dict[str, dict[str, Any]]] = {entry["id"]: entry for entry in _DATA["revision"]}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

REVISIONS: Final[tuple[str, ...]] = tuple(_KNOWN)
"""The published revisions, oldest first."""

LATEST_LEGACY: Final[str] = [name for name, entry in _KNOWN.items() if entry["era"] == "legacy"][-1]
"""The newest revision that opens with ``initialize``."""

# Members of `_meta` that the protocol reserves: schema/2026-07-28/schema.ts, RequestMetaObject, ResultMetaObject,
# NotificationMetaObject.
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"


def is_revision(text: object) -> bool:
    """Whether ``text`` is the name of a published revision. Anything that is no string is none."""
    return isinstance(text, str) and text in _KNOWN


def era(revision: object) -> Era:
    """Era of a version string as a peer may send it: ``legacy``, ``modern`` or ``unknown``.

    Published revisions and the names of past drafts are looked up. Any other calendar date ``YYYY-MM-DD`` counts as
    legacy before 2026-07-28 and as modern from that day on. Everything else, values that are no string too, is
    ``unknown``.
    """
    return _era(revision) if isinstance(revision, str) else "unknown"


@lru_cache(maxsize=4096)
def _era(revision: str) -> Era:
    known = _KNOWN.get(revision)
    if known is not None:
        return cast(Era, known["era"])
    draft = _DATA["drafts"].get(revision)
    if draft is not None:
        return cast(Era, draft)
    if _DATE.fullmatch(revision) is None:
        return "unknown"
    try:
        date.fromisoformat(revision)
    except ValueError:  # the 45th day of a 13th month
        return "unknown"
    return "legacy" if revision < _DATA["modern_from"] else "modern"


def revision_data(revision: str) -> dict[str, Any]:
    """The entry of one published revision in ``revisions.toml``.

    Raises:
        SpecError: no published revision has that name.
    """
    try:
        return _KNOWN[revision]
    except (KeyError, TypeError):
        raise SpecError(f"no revision {revision!r}: the published ones are {', '.join(REVISIONS)}") from None


def word_at(words: Any, revision: str) -> Any:
    """A word that stands for all revisions, or out of a table, whose keys say from which revision on each stands.

    Raises:
        SpecError: the table begins later.
    """
    if not isinstance(words, dict):
        return words
    since = [key for key in words if key <= revision]
    if not since:
        raise SpecError(f"no word for {revision} in {words!r}: name it from the rule's first revision on")
    return words[max(since)]


def capability_level(revision: str) -> str:
    """How strongly a revision binds both parties to what they negotiated: ``SHOULD``, ``MUST``, or ``""``.

    2026-07-28 has no such general sentence; what it asks stands with each feature. Source: basic/lifecycle#operation.
    """
    return revision_data(revision)["capability_level"]


def spec_url(revision: str, page: str, anchor: str = "") -> str:
    """Public address of a section of the specification.

    Args:
        revision: a published revision.
        page: page below the revision, with or without its anchor (``basic/lifecycle#initialization``); ``schema.ts``
            with the name of a type as anchor; or ``seps/<name>`` for an enhancement proposal.
        anchor: the anchor, where ``page`` does not hold it.

    Raises:
        SpecError: no such revision, or the revision has no such page.
    """
    entry = revision_data(revision)
    page, _, inner = page.partition("#")
    anchor = anchor or inner
    tail = f"#{anchor}" if anchor else ""
    if page.startswith("seps/"):
        return f"{_DATA['site']}/{page}{tail}"
    if page in ("schema", "schema.ts"):
        if "schema" in entry["pages"]:
            return f"{_DATA['site']}/specification/{revision}/schema{tail.lower()}"
        return f"{_DATA['source']}/schema/{revision}/schema.ts"
    full = page if page in entry["pages"] else f"{page}/index".lstrip("/")
    if full not in entry["pages"]:
        raise SpecError(f"revision {revision} has no page {page!r}: see `pages` in mcplab/spec/revisions.toml")
    short = full.removesuffix("index").rstrip("/")
    return f"{_DATA['site']}/specification/{revision}" + (f"/{short}" if short else "") + tail
