"""Write mcplab/spec/shapes.json from the published schemas: python scripts/shapes.py CHECKOUT

CHECKOUT is a git directory of github.com/modelcontextprotocol/modelcontextprotocol (bare or not). What is kept: of each
method the shape of its params and of its result, as far as JSON types, required members, constants and enumerations
go. Descriptions, formats and numeric limits are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "mcplab" / "spec" / "shapes.json"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def schema(checkout: str, revision: str) -> dict[str, Any]:
    """The definitions of one revision's schema.json, as committed."""
    text = subprocess.run(
        ["git", "-C", checkout, "show", f"HEAD:schema/{revision}/schema.json"], check=True, capture_output=True
    ).stdout
    whole = json.loads(text)
    return whole.get("$defs") or whole["definitions"]


def node(part: Any, used: set[str]) -> Any:
    """A schema as a shape: a word, a list (any of), or one of is, list, of, map."""
    if not isinstance(part, dict) or not part:
        return "any"
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        used.add(name)
        return f"@{name}"
    if "const" in part:
        return {"is": [part["const"]]}
    if "enum" in part:
        return {"is": part["enum"]}
    for word in ("anyOf", "oneOf"):
        if word in part:
            return [node(one, used) for one in part[word]]
    if "allOf" in part:
        return {"all": [node(one, used) for one in part["allOf"]]}
    kind = part.get("type")
    if isinstance(kind, list):
        return list(kind)
    if kind == "array":
        return {"list": node(part.get("items"), used)}
    if kind == "object" or "properties" in part:
        wanted = set(part.get("required", ()))
        known = part.get("properties", {})
        members = {name if name in wanted else f"{name}?": node(one, used) for name, one in known.items()}
        more = part.get("additionalProperties")
        if members:
            return {"of": members}
        return {"map": node(more, used)} if isinstance(more, dict) and more else "object"
    return kind or "any"


def shapes(definitions: dict[str, Any]) -> dict[str, Any]:
    """Of one revision: method -> params, method -> result, and the types that they name."""
    params: dict[str, Any] = {}
    results: dict[str, Any] = {}
    used: set[str] = set()
    for name, part in definitions.items():
        method = part.get("properties", {}).get("method", {}).get("const")
        if not isinstance(method, str) or not name.endswith(("Request", "Notification")):
            continue
        found = node(part["properties"].get("params"), used)
        params[method] = {"required": "params" in part.get("required", ()), "shape": found}
        if name.endswith("Request"):
            result = f"{name.removesuffix('Request')}Result"
            result = result if result in definitions else "EmptyResult" if "EmptyResult" in definitions else "Result"
            used.add(result)
            results[method] = f"@{result}"
    types: dict[str, Any] = {}
    while missing := used - set(types):
        for name in sorted(missing):
            types[name] = node(definitions[name], used)
    return {"params": dict(sorted(params.items())), "results": dict(sorted(results.items())),
            "types": dict(sorted(types.items()))}  # fmt: skip


def main(checkout: str) -> None:
    made = {revision: shapes(schema(checkout, revision)) for revision in REVISIONS}
    lines = ["{"]
    for revision, parts in made.items():
        lines.append(f'"{revision}": {{')
        for part, entries in parts.items():
            lines.append(f' "{part}": {{')
            body = [
                f"  {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in entries.items()
            ]
            lines += [",\n".join(body), " }" if part == "types" else " },"]
        lines.append("}" if revision == REVISIONS[-1] else "},")
    lines.append("}")
    text = "\n".join(lines) + "\n"
    json.loads(text)
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT.name}: {len(text):,} characters")


if __name__ == "__main__":
    main(sys.argv[1])
