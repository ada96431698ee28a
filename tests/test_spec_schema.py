"""The data of mcplab.spec against what the published schemas state, for all five revisions.

``test_spec_facts.json`` holds those statements: ``python -m tests.test_spec_schema CHECKOUT`` writes it anew from
``schema/<revision>/schema.json`` of a checkout of github.com/modelcontextprotocol/modelcontextprotocol.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcplab import spec

FACTS_FILE = Path(__file__).with_name("test_spec_facts.json")
FACTS: dict[str, Any] = json.loads(FACTS_FILE.read_text(encoding="utf-8")) if FACTS_FILE.exists() else {}

# Reading a schema -------------------------------------------------------------------------------------------


def resolve(schema: Any, definitions: dict[str, Any]) -> Any:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    return schema


def members(schema: Any, definitions: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Capability path -> ``object``, ``boolean`` or ``map``, parents first."""
    for name, part in schema.get("properties", {}).items():
        path = (*above, name)
        if part.get("$ref", "").endswith("/JSONObject"):
            yield spec.join(path), "object"
            continue
        part = resolve(part, definitions)
        keys = part.get("additionalProperties")
        is_map = isinstance(keys, dict) and keys and not part.get("properties")
        yield spec.join(path), "map" if is_map and name in ("experimental", "extensions") else part["type"]
        yield from members(part, definitions, path)


def union(name: str, definitions: dict[str, Any]) -> list[str]:
    part = definitions.get(name, {})
    if "properties" in part:  # a union of one is written out
        return [name]
    return [entry["$ref"].rsplit("/", 1)[1] for entry in part.get("anyOf", [part] if "$ref" in part else [])]


def required(name: str, definitions: dict[str, Any]) -> list[str]:
    part = resolve(definitions[name], definitions)
    for piece in part.get("allOf", []):
        part = {**part, "required": [*part.get("required", []), *resolve(piece, definitions).get("required", [])]}
    return sorted(set(part.get("required", [])) - {"resultType"})


def facts(schema: dict[str, Any]) -> dict[str, Any]:
    """What one schema.json states about capabilities and methods."""
    definitions = schema.get("$defs") or schema["definitions"]
    out: dict[str, Any] = {
        party: dict(members(definitions[f"{party.title()}Capabilities"], definitions)) for party in ("client", "server")
    }
    out["methods"] = {}
    for kind, name, direction in (
        ("request", "ClientRequest", "c2s"),
        ("request", "ServerRequest", "s2c"),
        ("input-request", "InputRequest", "s2c"),
        ("notification", "ClientNotification", "c2s"),
        ("notification", "ServerNotification", "s2c"),
    ):
        for entry in sorted(union(name, definitions)):
            found = definitions[entry]
            fact: dict[str, Any] = {"type": entry}
            if kind != "notification":
                answer = entry.removesuffix("Request") + "Result"
                fact["result"] = required(answer, definitions) if answer in definitions else []
                params = resolve(found["properties"].get("params", {}), definitions)
                fact["paginated"] = "cursor" in params.get("properties", {})
            out["methods"][f"{direction} {kind} {found['properties']['method']['const']}"] = fact
    return out


# Tests --------------------------------------------------------------------------------------------------------

TYPES = {
    "object-marker": "object",
    "object-group": "object",
    "boolean-flag": "boolean",
    "map": "map",
}


@pytest.mark.parametrize("party", ["client", "server"])
@pytest.mark.parametrize("revision", spec.REVISIONS)
def test_capability_paths_and_types_are_the_schema_s(revision: str, party: str) -> None:
    ours = {
        entry.path: TYPES[entry.type]
        for entry in spec.capabilities(revision, party)
        if not entry.informal and not entry.path.endswith(".*") and not entry.path.startswith("extensions[")
    }
    assert ours == FACTS[revision][party]


@pytest.mark.parametrize("revision", spec.REVISIONS)
def test_methods_directions_and_results_are_the_schema_s(revision: str) -> None:
    ours: dict[str, Any] = {}
    for entry in spec.methods(revision):
        if not entry.extension:
            for direction in ("c2s", "s2c") if entry.direction == "both" else (entry.direction,):
                ours[f"{direction} {entry.kind} {entry.name}"] = entry
    theirs = FACTS[revision]["methods"]
    assert ours.keys() == theirs.keys()
    for name, fact in theirs.items():
        if "result" in fact:
            entry = ours[name]
            stated = [member for member in entry.result or () if not member.startswith("_meta[")]
            plain = [member for member in fact["result"] if member != "_meta"]
            assert sorted(stated) == plain, name
            assert entry.paginated is fact["paginated"], name


if __name__ == "__main__":
    root = Path(sys.argv[1])
    found = {name: facts(json.loads((root / f"schema/{name}/schema.json").read_text())) for name in spec.REVISIONS}
    FACTS_FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
