"""What must be declared before it is used: gates of mcplab/spec, at the message that passes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from mcplab import gating
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.plan import Check
from mcplab.spec import Condition


@cache
def _when(revision: str, direction: str, kind: str, name: str, path: str) -> tuple[tuple[str, Condition | None], ...]:
    """(party, condition) of each gate of that traffic by that path."""
    found = gating.needs(revision, direction, kind, name)
    return tuple((need.party, need.when) for need in found if need.path == path)


def needs(path: str, methods: Sequence[str]) -> Check:
    """A request, notification, error or result that needs ``path``, as mcplab/spec says whose declaration counts."""
    base = path.partition(".")[0]

    def check(m: Fact) -> Outcome:
        said: Outcome = None
        direction = "c2s" if m.sender == "client" else "s2c"
        for party, when in _when(m.revision or "", direction, m.kind, m.method or "", path):
            if when is not None and not when.holds(m.body):
                continue
            if base != path and _base_missing(m, direction, party):
                continue  # the whole feature is missing: its own gate says so
            one = _judge(m, party, path, m.method or "")
            if one not in (None, KEPT):
                return one
            said = one or said
        return said

    def _base_missing(m: Fact, direction: str, party: str) -> bool:
        gated = _when(m.revision or "", direction, m.kind, m.method or "", base)
        return bool(gated) and m.session.declared(m.revision or "", party, base).declared is False

    return check


def _judge(m: Fact, party: str, path: str, what: str) -> Outcome:
    if m.era == "modern":
        declared = m.client_capabilities if party == "client" else m.server_capabilities
        stands = gating.standing(m.revision or "", party, path, declared)
    else:
        stands = m.session.declared(m.revision or "", party, path)
    if stands.declared is None:
        return UNKNOWN
    if stands.declared:
        return KEPT
    if stands.malformed:
        return None  # a fault of its own, reported where it was declared
    where = m.session.initialize if m.era != "modern" else None
    related = (where,) if where is not None else ()
    return broken(f"{what} needs {path} of the {party}: {stands.reason}", related=related)


def input_needs(path: str, methods: Sequence[str]) -> Check:
    """An entry of ``inputRequests`` that needs ``path`` of the very request that it answers (2026-07-28)."""
    base = path.partition(".")[0]

    def check(m: Fact) -> Outcome:
        asked: Any = m.result.get("inputRequests")
        if not isinstance(asked, dict) or m.request is None:
            return None
        said: Outcome = None
        declared = m.client_capabilities
        for key, entry in asked.items():
            name = entry.get("method") if isinstance(entry, dict) else None
            if name not in methods:
                continue
            if base != path and gating.standing(m.revision or "", "client", base, declared).declared is False:
                continue  # the whole feature is missing: mrtr.input-request-declared says so
            for party, when in _when(m.revision or "", "s2c", "input-request", name, path):
                if when is None or when.holds(entry):
                    one = _judge(m, party, path, f"input request {key!r} ({name})")
                    if one not in (None, KEPT):
                        return one
                    said = one or said
        return said

    return check


def either(path: str, methods: Sequence[str]) -> Check:
    """The gate of a request in the legacy era, and of an input request in the modern one."""
    legacy, modern = needs(path, methods), input_needs(path, methods)

    def check(m: Fact) -> Outcome:
        return modern(m) if m.era == "modern" else legacy(m)

    return check
