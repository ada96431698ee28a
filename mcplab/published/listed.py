"""Published tables of client support: mcp-client-capabilities (apify) and matrix.json (canimcp.dev)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcplab import jsontext
from mcplab.capabilities import flatten
from mcplab.jsontext import printable
from mcplab.published.words import answer
from mcplab.spec import ROOT, capability, is_revision, path_order

USED: Final = ("tools", "resources", "prompts", "completions", "logging")
"""Members that speak of what a server declares: whether the client makes use of it."""

DECLARED: Final = ("roots", "sampling", "elicitation", "tasks")
"""Members that speak of what the client declares, and that are not there where it does not."""

SOURCE_CAPABILITIES: Final = "https://github.com/apify/mcp-client-capabilities"
SOURCE_MATRIX: Final = "https://canimcp.dev/data/matrix.json"

FEATURES: Final[dict[str, tuple[str, str]]] = {
    "roots.list": ("client", "roots"), "roots.listChanged": ("client", "roots.listChanged"),
    "sampling.createMessage": ("client", "sampling"), "sampling.tools": ("client", "sampling.tools"),
    "elicitation.create": ("client", "elicitation"), "elicitation.url": ("client", "elicitation.url"),
    "tasks.list": ("client", "tasks.list"), "tasks.cancel": ("client", "tasks.cancel"),
    "tasks.sampling": ("client", "tasks.requests.sampling.createMessage"),
    "tasks.elicitation": ("client", "tasks.requests.elicitation.create"),
    "tools.list": ("server", "tools"), "tools.call": ("server", "tools"),
    "tools.listChanged": ("server", "tools.listChanged"),
    "resources.list": ("server", "resources"), "resources.read": ("server", "resources"),
    "resources.templates": ("server", "resources"), "resources.subscribe": ("server", "resources.subscribe"),
    "resources.listChanged": ("server", "resources.listChanged"),
    "prompts.list": ("server", "prompts"), "prompts.get": ("server", "prompts"),
    "prompts.listChanged": ("server", "prompts.listChanged"), "completions.argument": ("server", "completions"),
    "logging.setLevel": ("server", "logging"), "logging.message": ("server", "logging"),
}  # fmt: skip
"""Features of matrix.json that stand for a capability; others (transports, authorization) are none."""


def is_matrix(data: Any) -> bool:
    """Is it matrix.json: clients, and a cell for each client and feature?"""
    return isinstance(data, Mapping) and isinstance(data.get("matrix"), Mapping)


def is_capabilities(data: Any) -> bool:
    """Is it mcp-clients.json: a record with title or protocolVersion for each clientInfo.name?"""
    return (
        isinstance(data, Mapping)
        and bool(data)
        and all(isinstance(one, Mapping) for one in data.values())
        and any("protocolVersion" in one or "title" in one for one in data.values())
    )


def capabilities_rows(data: Mapping[str, Any], file: str, *, source: str, date: str | None) -> Iterator[dict[str, Any]]:
    """A record a client, keyed by ``clientInfo.name``; what is not there is not supported, by the package's own words.

    A member that the record's own revision does not know yet is ``unknown`` where it is not listed.
    """
    for name, record in data.items():
        revision = record.get("protocolVersion")
        revision = revision if isinstance(revision, str) else None
        base = {
            "tier": "listed", "name": printable(name), "client_info": printable(name), "revision": revision,
            "place": name, "source": source, "date": date, "evidence": f"{source} ({file}: {jsontext.dumps(name)})",
            "file": file,
        }  # fmt: skip
        declared = {key: record[key] for key in record if key in path_order("client")}
        leaves = {leaf.path: leaf for leaf in flatten(jsontext.dumps(declared))}
        for path in _known(revision, leaves):
            leaf = leaves.get(path)
            says = "yes" if leaf is not None and leaf.state in ("empty", "object", "true", "value") else "no"
            yield {
                **base, "party": "client", "path": path, "declares": says, "implements": says,
                "state": "absent" if leaf is None else leaf.state, "value": None if leaf is None else leaf.value,
            }  # fmt: skip
        for top in USED:
            value = record.get(top)
            yield {**base, "party": "server", "path": top, "implements": "yes" if isinstance(value, Mapping) else "no"}
            for key, flag in value.items() if isinstance(value, Mapping) else ():
                if isinstance(flag, bool):
                    yield {**base, "party": "server", "path": f"{top}.{key}", "implements": "yes" if flag else "no"}


def _known(revision: str | None, leaves: Mapping[str, Any]) -> list[str]:
    """What a record speaks of: the members listed, and of ``DECLARED`` those that its revision knows."""
    known = revision is not None and is_revision(revision)
    tops = [top for top in DECLARED if known and capability(str(revision), "client", top) is not None]
    return list(dict.fromkeys([*tops, *(path for path in leaves if path != ROOT)]))


def matrix_rows(
    data: Mapping[str, Any], file: str, skipped: list[tuple[str, str]], *, date: str | None
) -> Iterator[dict[str, Any]]:
    """A cell a client and feature; ``partial``, ``unknown`` and blank ones are ``unknown``."""
    clients = {one.get("id"): one for one in _mappings(data.get("clients"))}
    revision = data.get("spec_version")
    made = data.get("generated_at")
    day = made[:10] if isinstance(made, str) else date
    others: set[str] = set()
    for ident, cells in data["matrix"].items():
        about = clients.get(ident, {})
        info = about.get("clientInfo_name")
        base = {
            "tier": "listed", "name": printable(str(ident)), "client_info": info if isinstance(info, str) else None,
            "revision": revision if isinstance(revision, str) else None,
        }  # fmt: skip
        for feature, cell in cells.items() if isinstance(cells, Mapping) else ():
            found = FEATURES.get(feature)
            if found is None:
                others.add(str(feature))
                continue
            party, path = found
            about_cell = cell if isinstance(cell, Mapping) else {"status": cell}
            status = about_cell.get("status")
            says = answer(str(status) if isinstance(status, (str, bool)) else None)
            tested, verified, origin = (about_cell.get(key) for key in ("version_tested", "last_verified", "source"))
            row = {
                **base, "party": party, "path": path, "implements": says, "place": f"{ident}/{feature}",
                "client_version": tested if isinstance(tested, str) else None, "source": SOURCE_MATRIX,
                "date": verified if isinstance(verified, str) else day,
                "evidence": f"{SOURCE_MATRIX} ({file}: {ident}/{feature})"
                + (f"; {origin}" if isinstance(origin, str) else ""),
                "file": file, "text": note if isinstance(note := about_cell.get("notes"), str) else None,
            }  # fmt: skip
            yield row | {"declares": says} if party == "client" else row
    skipped += [(file, f"feature {name}, which is no capability") for name in sorted(others)]


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
