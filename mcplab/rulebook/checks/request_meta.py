"""What every modern request and result says of itself: ``_meta`` and ``resultType`` (2026-07-28 basic/index)."""

from __future__ import annotations

from typing import Any, Final

from mcplab import spec
from mcplab.model import ABSENT
from mcplab.rulebook.checks.lifecycle import implementation
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_SERVER_INFO, META_VERSION

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
INVALID_PARAMS: Final = -32602
_OTHER_REFUSALS: Final = (-32700, -32600, -32601, -32020, -32021, -32022)


def missing(m: Fact) -> list[str]:
    """What a modern request lacks of what its ``_meta`` must hold."""
    lacks = []
    if not isinstance(m.meta.get(META_VERSION), str):
        lacks.append("protocolVersion")
    if not isinstance(m.meta.get(META_CAPABILITIES), dict):
        lacks.append("clientCapabilities")
    return lacks


def shows_modern(m: Fact) -> bool:
    """Is the server that answers known to speak a modern revision, from before or by this very answer?"""
    return m.session.instance.modern or "resultType" in m.result or m.code in (-32020, -32021, -32022)


def protocol_version(m: Fact) -> Outcome:
    value = m.meta.get(META_VERSION, ABSENT)
    if isinstance(value, str):
        return KEPT
    return broken("_meta names no protocolVersion" if value is ABSENT else "_meta's protocolVersion is not a string")


def client_capabilities(m: Fact) -> Outcome:
    value = m.meta.get(META_CAPABILITIES, ABSENT)
    if isinstance(value, dict):
        return KEPT
    return broken(
        "_meta has no clientCapabilities" if value is ABSENT else "_meta's clientCapabilities is not an object"
    )


def client_info(m: Fact) -> Outcome:
    """A SHOULD that a client may be configured to leave out."""
    return KEPT if META_CLIENT_INFO in m.meta else broken("_meta has no clientInfo")


def client_info_shape(m: Fact) -> Outcome:
    return _implementation(m.meta.get(META_CLIENT_INFO, ABSENT), "clientInfo")


def _implementation(value: Any, name: str) -> Outcome:
    if value is ABSENT:
        return None
    wrong = implementation(value, name)
    return broken("; ".join(wrong)) if wrong else KEPT


def log_level_valid(m: Fact) -> Outcome:
    value = m.meta.get(META_LOG_LEVEL, ABSENT)
    if value is ABSENT:
        return None
    return KEPT if value in LEVELS else broken(f"logLevel is {value!r}")


def rejects_missing(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.again or not (lacks := missing(asked)):
        return None
    if not shows_modern(m):
        return UNKNOWN
    if m.kind == "result":
        return broken(f"a request without {' and '.join(lacks)} was served", related=(asked.seq,))
    if m.code == INVALID_PARAMS:
        return KEPT
    if m.code in _OTHER_REFUSALS:
        return UNKNOWN  # another fault may have been found first
    return broken(f"a request without {' and '.join(lacks)} was answered {m.code}", related=(asked.seq,))


def rejects_missing_400(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.post is None or m.code != INVALID_PARAMS or not missing(asked):
        return None
    status = m.post.exchange.status
    if status is None or not shows_modern(m):
        return UNKNOWN
    return KEPT if status == 400 else broken(f"refused with status {status}", related=(asked.seq,))


def client_info_not_required(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.again or missing(asked) or META_CLIENT_INFO in asked.meta:
        return None
    if m.kind == "result":
        return KEPT
    text = m.error.get("message")
    if m.code == INVALID_PARAMS and isinstance(text, str) and "clientinfo" in text.lower():
        return broken("refused for a missing clientInfo, which is no duty", related=(asked.seq,))
    return None


def _result_meta(m: Fact) -> dict[str, Any]:
    found = m.result.get("_meta")
    return found if isinstance(found, dict) else {}


def server_info(m: Fact) -> Outcome:
    if m.request is None or not shows_modern(m):
        return None
    return KEPT if META_SERVER_INFO in _result_meta(m) else broken("_meta of the result has no serverInfo")


def server_info_shape(m: Fact) -> Outcome:
    return _implementation(_result_meta(m).get(META_SERVER_INFO, ABSENT), "serverInfo")


# resultType -----------------------------------------------------------------------------------------------


def result_type_present(m: Fact) -> Outcome:
    """A legacy server may answer a modern request; only a modern one owes the member."""
    if m.request is None or m.request.era != "modern" or not isinstance(m.body.get("result"), dict):
        return None
    value = m.result.get("resultType", ABSENT)
    if isinstance(value, str):
        return KEPT
    if not (m.session.instance.modern or m.method == "server/discover"):
        return UNKNOWN
    return broken("resultType is absent" if value is ABSENT else "resultType is not a string")


def result_type_known(m: Fact) -> Outcome:
    value = m.result.get("resultType", ABSENT)
    if not isinstance(value, str):
        return None
    if value in ("complete", "input_required"):
        return KEPT
    if value == "task":
        return None  # the tasks extension has rules of its own
    declared = m.client_capabilities
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    if isinstance(extensions, dict) and extensions:
        return UNKNOWN  # an extension that the client declared may define it
    return broken(f"resultType {value!r} is none of the core, and the request declared no extension")


_OWN_RULES: Final = ("ttlMs", "cacheScope", "supportedVersions", "capabilities")


def result_type_fits(m: Fact) -> Outcome:
    kind = m.result.get("resultType", ABSENT)
    entry = spec.method(m.revision or "", m.method or "", "c2s")
    if entry is None or entry.result is None or entry.extension:
        return None
    due = [name for name in entry.result if name not in _OWN_RULES and not name.startswith("_meta")]
    if kind == "complete":
        lacks = [name for name in due if name not in m.result]
        if lacks:
            return broken(f"complete, and {' and '.join(lacks)} is missing")
        return broken("complete, with inputRequests") if "inputRequests" in m.result else KEPT
    if kind == "input_required":
        there = [name for name in due if name in m.result]
        return broken(f"input_required, with {' and '.join(there)}") if there else KEPT
    return None
