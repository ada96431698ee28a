"""server/discover (2026-07-28 server/discover)."""

from __future__ import annotations

from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_VERSION


def implemented(m: Fact) -> Outcome:
    """-32601 is what a legacy server says to a probe: a breach only of a server that is known to be modern, by what it
    said before or by the end (2026-07-28 basic/versioning: the era is a property of the server, not of a request)."""
    refused = m.place if m.kind == "error" and m.code == -32601 else m.session.memory.pop("discover refused", None)
    if refused is None or m.kind == "result":
        return KEPT if m.kind == "result" else None
    if m.session.instance.modern:
        return broken("-32601 from a server that speaks this revision", at=refused)
    if m.kind != "error":
        return None
    m.session.memory["discover refused"] = refused
    return UNKNOWN


def result_shape(m: Fact) -> Outcome:
    if m.result.get("resultType", "complete") != "complete":
        return None
    wrong = []
    versions = m.result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(name, str) for name in versions):
        wrong.append(
            f"supportedVersions is {'not an array of strings' if 'supportedVersions' in m.result else 'absent'}"
        )
    if not isinstance(m.result.get("capabilities"), dict):
        wrong.append(f"capabilities is {'not an object' if 'capabilities' in m.result else 'absent'}")
    if not isinstance(m.result.get("instructions", ""), str):
        wrong.append("instructions is not a string")
    return broken("; ".join(wrong)) if wrong else KEPT


def lists_own_version(m: Fact) -> Outcome:
    versions = m.result.get("supportedVersions")
    asked = m.request.meta.get(META_VERSION) if m.request is not None else None
    if not isinstance(versions, list) or not isinstance(asked, str):
        return None
    return KEPT if asked in versions else broken(f"asked and answered at {asked}, which is not in supportedVersions")


def client_uses_listed(m: Fact) -> Outcome:
    supported = m.session.instance.supported
    version = m.meta.get(META_VERSION)
    if supported is None or not isinstance(version, str) or m.method == "server/discover":
        return None
    return KEPT if version in supported else broken(f"{version} is not in the server's supportedVersions")
