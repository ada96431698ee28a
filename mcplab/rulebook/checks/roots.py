"""Roots of a client (client/roots)."""

from __future__ import annotations

from typing import Any

from mcplab.model import ABSENT, Sentinel
from mcplab.rulebook.checks.inputs import Given, giving, verdict
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken


def _roots(value: Any) -> Any:
    return value.get("roots", ABSENT) if isinstance(value, dict) else ABSENT


@giving("roots/list")
def uri_scheme(m: Fact, one: Given) -> Outcome:
    roots = _roots(one.value)
    uris = [root.get("uri") for root in (roots if isinstance(roots, list) else []) if isinstance(root, dict)]
    uris = [uri for uri in uris if isinstance(uri, str)]
    if not uris:
        return None
    return verdict([f"{uri[:60]!r} is no file URI" for uri in uris if not uri.lower().startswith("file://")], one.where)


@giving("roots/list")
def result_shape(m: Fact, one: Given) -> Outcome:
    """What is no list at all in an input response breaks mrtr.response-shape."""
    roots = _roots(one.value)
    if not isinstance(roots, list):
        if m.era == "modern":
            return None
        return broken("roots is absent" if roots is ABSENT else "roots is not an array")
    wrong = [
        f"root {number} has no uri"
        for number, root in enumerate(roots)
        if not isinstance(root, dict) or not isinstance(root.get("uri"), str)
    ]
    return verdict(wrong, one.where)


def unsupported_error(m: Fact) -> Outcome:
    declared = m.session.client
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, dict) or "roots" in declared or m.again:
        return None
    if m.kind == "result":
        return broken("roots were listed although they are not declared", confidence="low")
    return KEPT if m.code == -32601 else broken(f"roots are not declared, roots/list was answered with {m.code}")


def list_changed_sent(m: Fact) -> Outcome:
    """The notification may still be under way when the second list is read: what never came is judged at the close."""
    memory = m.session.memory
    if m.kind == "notification":
        memory["roots.told"] = m.seq
        return KEPT if memory.pop("roots.changed", None) is not None else None
    if m.kind in ("close", "end"):
        changed = memory.pop("roots.changed", None)
        if changed is None:
            return None
        if m.kind == "end" or m.post is not None or not m.session.began:
            return UNKNOWN
        detail = "the roots differ from those listed before, no list_changed came"
        return broken(detail, at=(changed[1], None), related=(changed[0],), absence=True, party="client")
    roots = _roots(m.result)
    if m.again or not isinstance(roots, list):
        return None
    uris = {root.get("uri") for root in roots if isinstance(root, dict) and isinstance(root.get("uri"), str)}
    before = memory.get("roots.listed")
    memory["roots.listed"] = (uris, m.seq)
    if before is None or before[0] == uris:
        return None
    declared = m.session.declared(m.revision or "", "client", "roots.listChanged").declared
    if declared is False:
        return None
    if memory.get("roots.told", -1) > before[1]:
        return KEPT
    if declared is None:
        return UNKNOWN
    memory["roots.changed"] = (before[1], m.seq)
    return None
