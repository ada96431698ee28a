"""Shapes of what is declared, and whether what is declared is served."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from mcplab.model import ABSENT, Sentinel
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_CAPABILITIES, capabilities, method, split

_OBJECTS: Final = ("object-marker", "object-group", "map")
METHOD_NOT_FOUND: Final = -32601


def declared_in(m: Fact) -> tuple[str, Any]:
    """(party, capabilities) that this message declares; ABSENT where it declares none."""
    if m.kind == "request":
        if m.era == "modern":
            return "client", m.meta.get(META_CAPABILITIES, ABSENT)
        return "client", m.params.get("capabilities", ABSENT)
    return "server", m.result.get("capabilities", ABSENT)


@cache
def _paths(revision: str, party: str, nested: bool, types: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Keys of the paths of those types: at the top, or below it. What SEP-2133 only shows is no member of the type."""
    return tuple(
        keys
        for entry in capabilities(revision, party)
        if entry.type in types and not entry.path.endswith(".*") and not entry.informal
        and (len(keys := tuple(split(entry.path))) > 1) is nested
        and keys[0] not in ("experimental", "extensions")
    )  # fmt: skip


def _values(declared: Any, paths: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, Any]]:
    """(path, value) of those paths that are there, below objects only."""
    for keys in paths:
        value = declared
        for key in keys:
            value = value.get(key, ABSENT) if isinstance(value, Mapping) else ABSENT
            if value is ABSENT:
                break
        else:
            yield ".".join(keys), value


def _misshapen(m: Fact, *, nested: bool, types: tuple[str, ...], wanted: type, word: str) -> Outcome:
    party, declared = declared_in(m)
    if not isinstance(declared, Mapping):
        return None
    found = list(_values(declared, _paths(m.revision or "", party, nested, types)))
    wrong = [path for path, value in found if not isinstance(value, wanted)]
    if wrong:
        return broken(f"no {word}: {', '.join(wrong)}")
    return KEPT if found else None


def marker_object(m: Fact) -> Outcome:
    return _misshapen(m, nested=False, types=_OBJECTS, wanted=Mapping, word="object")


def nested_marker(m: Fact) -> Outcome:
    """2025-11-25 calls the leaves of tasks boolean in its prose and shows ``{}``: a boolean there is no breach."""
    party, declared = declared_in(m)
    if not isinstance(declared, Mapping):
        return None
    found = list(_values(declared, _paths(m.revision or "", party, True, _OBJECTS)))
    wrong = [
        path
        for path, value in found
        if not isinstance(value, Mapping) and not (path.startswith("tasks.") and isinstance(value, bool))
    ]
    if wrong:
        return broken(f"not an object: {', '.join(wrong)}")
    return KEPT if found else None


def flag_boolean(m: Fact) -> Outcome:
    return _misshapen(m, nested=True, types=("boolean-flag",), wanted=bool, word="boolean")


def experimental(m: Fact) -> Outcome:
    return _map_of_objects(declared_in(m)[1], "experimental")


def extensions(m: Fact) -> Outcome:
    return _map_of_objects(declared_in(m)[1], "extensions")


def _map_of_objects(declared: Any, name: str) -> Outcome:
    value = declared.get(name, ABSENT) if isinstance(declared, Mapping) else ABSENT
    if isinstance(value, Sentinel):
        return None
    if not isinstance(value, Mapping):
        return broken(f"{name} is not an object")
    wrong = [key for key, inner in value.items() if not isinstance(inner, Mapping)]
    return broken(f"not an object below {name}: {', '.join(map(repr, wrong))}") if wrong else KEPT


_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/(?:{_NAME})?")


def extension_identifier(m: Fact) -> Outcome:
    declared = declared_in(m)[1]
    value = declared.get("extensions") if isinstance(declared, Mapping) else None
    if not isinstance(value, Mapping) or not value:
        return None
    wrong = [key for key in value if not _IDENTIFIER.fullmatch(key)]
    return broken(f"no prefix, or no valid name: {', '.join(map(repr, wrong))}") if wrong else KEPT


def elicitation_mode(m: Fact) -> Outcome:
    declared = declared_in(m)[1]
    value = declared.get("elicitation", ABSENT) if isinstance(declared, Mapping) else ABSENT
    if not isinstance(value, Mapping):
        return None
    if value and not any(isinstance(value.get(mode), Mapping) for mode in ("form", "url")):
        return broken("elicitation has members, and neither form nor url is an object")
    return KEPT


# Declared and served --------------------------------------------------------------------------------------

_FEATURE: Final = {
    "tools/list": "tools", "tools/call": "tools", "prompts/list": "prompts", "prompts/get": "prompts",
    "resources/list": "resources", "resources/read": "resources", "resources/templates/list": "resources",
    "completion/complete": "completions", "logging/setLevel": "logging", "resources/subscribe": "resources",
}  # fmt: skip
_DUTY: Final = ("tools/list", "prompts/list", "resources/list")


def _gated(m: Fact) -> str | None:
    """The capability that the answered request belongs to, where this revision has it."""
    name = m.method or ""
    entry = method(m.revision or "", name, "c2s")
    return _FEATURE.get(name) if entry is not None and entry.gate is not None else None


def undeclared_served(m: Fact) -> Outcome:
    feature = _gated(m)
    if feature is None or m.method == "logging/setLevel":
        return None
    declared = m.server_capabilities
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, Mapping):
        return None
    if feature in declared:
        return KEPT
    return broken(f"{m.method} is served, and the server did not declare {feature}", once=feature)


def declared_served(m: Fact) -> Outcome:
    feature = _gated(m)
    if feature is None or m.again:
        return None
    declared = m.server_capabilities
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, Mapping) or not isinstance(declared.get(feature), Mapping):
        return None
    if m.method == "resources/subscribe":
        return None  # its own flag decides
    if m.kind == "result":
        return KEPT
    if m.code != METHOD_NOT_FOUND:
        return None
    weak = m.method not in _DUTY
    return broken(f"{feature} is declared, {m.method} answered -32601", confidence="low" if weak else None)


_CLIENT_FEATURE: Final = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}


def client_declared_served(m: Fact) -> Outcome:
    feature = _CLIENT_FEATURE[m.method or ""]
    declared = m.session.client
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, Mapping) or not isinstance(declared.get(feature), Mapping):
        return None
    if m.kind == "error" and m.code == METHOD_NOT_FOUND:
        return broken(f"{feature} is declared, {m.method} answered -32601")
    return KEPT
