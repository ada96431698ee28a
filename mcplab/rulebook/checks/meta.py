"""``_meta``: its shape, the names of its keys, trace context (basic/index#meta; the grammar from 2025-06-18 on)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.rulebook.checks.content import blocks, contents
from mcplab.rulebook.checks.lists import MEMBER
from mcplab.rulebook.checks.recall import once
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:{_NAME})?")
_TRACEPARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_STATE: Final = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}")
_BAGGAGE: Final = re.compile(
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=\s*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*\s*(?:;.*)?"
)
_TRACE: Final = ("traceparent", "tracestate", "baggage")

_CORE: Final = {
    "2025-11-25": {"related-task", "model-immediate-response"},
    "2026-07-28": {
        "protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "subscriptionId", "serverInfo",
    },
}  # fmt: skip
_RESERVED: Final = ("modelcontextprotocol", "mcp")
_DOMAINS: Final = ("com", "org", "io", "dev", "net", "ai")


_Metas = list[tuple[str, Any]]


def _metas(m: Fact) -> _Metas:
    """Those of a message: looked for once, and shared by the rules."""
    return once(m, "meta.found", _look, where=m.session.memory)


def _look(m: Fact) -> _Metas:
    return list(_found(m))


def _found(m: Fact) -> Iterator[tuple[str, Any]]:
    """(where, value) of every ``_meta`` that the schema has a place for; free JSON may hold what it likes."""
    if "_meta" in m.params:
        yield "params._meta", m.params["_meta"]
    result = m.result
    if not result:
        return
    if "_meta" in result:
        yield "result._meta", result["_meta"]
    member = MEMBER.get(m.method or "")
    if member is not None:
        entries = result.get(member)
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict) and "_meta" in entry:
                yield f"{member}[{number}]._meta", entry["_meta"]
    elif m.method in ("tools/call", "prompts/get", "resources/read"):
        for where, one in (*blocks(m), *contents(m)):
            if "_meta" in one:
                yield f"{where}._meta", one["_meta"]


def is_object(m: Fact) -> Outcome:
    seen = False
    for where, value in _metas(m):
        seen = True
        if not isinstance(value, dict):
            return broken(f"{where} is {'null' if value is None else 'not an object'}")
    return KEPT if seen else None


@lru_cache(maxsize=4096)
def _well_formed(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def key_format(m: Fact) -> Outcome:
    seen = False
    for where, value in _metas(m):
        for key in value if isinstance(value, dict) else ():
            seen = True
            if not _well_formed(key):
                return broken(f"{where} has the key {key[:80]!r}")
    return KEPT if seen else None


def _prefixed(m: Fact) -> Iterator[tuple[str, list[str], str]]:
    """(where, labels, name) of the keys with a prefix."""
    for where, value in _metas(m):
        for key in value if isinstance(value, dict) else ():
            prefix, slash, name = key.partition("/")
            if slash:
                yield where, prefix.split("."), name


def reserved_prefix(m: Fact) -> Outcome:
    """2025-06-18 reserves by the last label but one, later revisions by the second. Official extensions add keys."""
    seen = False
    for where, labels, name in _prefixed(m):
        at = -2 if m.revision == "2025-06-18" else 1
        if len(labels) < 2 or labels[at] not in _RESERVED:
            continue
        seen = True
        core = labels == ["io", "modelcontextprotocol"] and name in _CORE.get(m.revision or "", ())
        if not core:
            return broken(f"{where} has the key {'.'.join(labels)}/{name}")
    return KEPT if seen else None


def prefix_reverse_dns(m: Fact) -> Outcome:
    seen = False
    for where, labels, _ in _prefixed(m):
        seen = True
        if len(labels) > 1 and labels[-1] in _DOMAINS and labels[0] not in _DOMAINS:
            return broken(f"{where} has the prefix {'.'.join(labels)}")
    return KEPT if seen else None


def trace_context(m: Fact) -> Outcome:
    """A traceparent of a later version may go on after its flags."""
    seen = False
    for where, value in _metas(m):
        for name in _TRACE if isinstance(value, dict) else ():
            text = value.get(name, ABSENT)
            if text is ABSENT:
                continue
            seen = True
            if not isinstance(text, str) or not _fits(name, text):
                return broken(f"{where}.{name} is {text!r:.80}")
    return KEPT if seen else None


def _fits(name: str, text: str) -> bool:
    if name == "traceparent":
        found = _TRACEPARENT.fullmatch(text)
        return found is not None and (found[1] != "00" or found[2] is None)
    members = [part.strip(" \t") for part in text.split(",")]
    wanted = _STATE if name == "tracestate" else _BAGGAGE
    return all(wanted.fullmatch(part) for part in members if part or name == "baggage")
