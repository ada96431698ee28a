"""The MCP-Protocol-Version header (basic/transports#protocol-version-header, basic/transports/streamable-http)."""

from __future__ import annotations

from typing import Final

from mcplab.rulebook.checks.http import streamable
from mcplab.rulebook.checks.versions import FIRST_DRAFT
from mcplab.rulebook.facts import Fact, Post
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_VERSION, REVISIONS, era

HEADER: Final = "mcp-protocol-version"
MISMATCH: Final = -32020
UNSUPPORTED: Final = -32022


def _after_initialize(m: Fact) -> Post | None:
    """The exchange, where it is a later one of a session whose initialize result was seen."""
    post = streamable(m)
    if post is None or m.session.phase != "answered" or post.era == "modern":
        return None
    return None if any(fact.method == "initialize" for fact in post.facts) else post


def legacy_present(m: Fact) -> Outcome:
    post = _after_initialize(m)
    if post is None:
        return UNKNOWN if m.session.phase == "" and streamable(m) is not None and not _initializes(m) else None
    if post.exchange.path != (m.session.path or post.exchange.path):
        return None
    if post.headers is None:
        return UNKNOWN
    return KEPT if HEADER in post.headers else broken("no MCP-Protocol-Version after initialize")


def _initializes(m: Fact) -> bool:
    return m.post is not None and any(fact.method == "initialize" for fact in m.post.facts)


def legacy_negotiated(m: Fact) -> Outcome:
    post = _after_initialize(m)
    if post is None or post.headers is None or HEADER not in post.headers:
        return None
    said = post.headers[HEADER].strip()
    agreed = m.session.negotiated
    return KEPT if said == agreed else broken(f"the header says {said}, negotiated was {agreed}")


def legacy_invalid_400(m: Fact) -> Outcome:
    """What was never published is invalid; only the name of a later revision may be new to mcplab and good."""
    post = streamable(m)
    if post is None or post.headers is None or HEADER not in post.headers:
        return None
    said = post.headers[HEADER].strip()
    if said in (*REVISIONS, FIRST_DRAFT) or said.startswith("DRAFT") or era(said) == "modern":
        return None
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    return KEPT if status == 400 else broken(f"{said!r} was answered {status}", related=(post.seq,))


# Modern ---------------------------------------------------------------------------------------------------


def modern_present(m: Fact) -> Outcome:
    if streamable(m) is None or m.post is None or m.part is not None:
        return None
    if m.post.headers is None:
        return UNKNOWN
    return KEPT if HEADER in m.post.headers else broken("no MCP-Protocol-Version")


def differs(m: Fact) -> str | None:
    """How header and ``_meta`` of a modern request disagree; None where they do not, or one is missing."""
    headers = m.post.headers if m.post is not None else None
    body = m.meta.get(META_VERSION)
    if headers is None or HEADER not in headers or not isinstance(body, str):
        return None
    said = headers[HEADER].strip()
    return None if said == body else f"the header says {said}, _meta says {body}"


def modern_matches(m: Fact) -> Outcome:
    if streamable(m) is None or m.post is None or META_VERSION not in m.meta:
        return None
    if m.post.headers is None:
        return UNKNOWN
    if HEADER not in m.post.headers:
        return None
    wrong = differs(m)
    return broken(wrong) if wrong else KEPT


def mismatch_refused(m: Fact) -> Outcome:
    """-32022 may win where the version is not supported either."""
    asked = m.request
    if asked is None or streamable(m) is None or m.post is None:
        return None
    wrong = differs(asked)
    if wrong is None:
        return None
    status = m.post.exchange.status
    if m.kind == "error" and m.code == UNSUPPORTED:
        return KEPT
    if m.kind == "result":
        return broken(f"{wrong}, and the request was served", related=(asked.seq,))
    if m.code == MISMATCH and status in (400, None):
        return KEPT
    return broken(f"{wrong}, and the answer is {m.code} with status {status}", related=(asked.seq,))
