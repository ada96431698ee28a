"""Tools: their definitions, their results (server/tools)."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mcplab.model import ABSENT, Sentinel
from mcplab.rulebook.checks import lists
from mcplab.rulebook.checks.schema import CANNOT_TELL, conforms, same
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _tools(m: Fact) -> list[Any]:
    found = m.result.get("tools")
    return found if isinstance(found, list) else []


def _label(tool: Any, number: int) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return repr(name) if isinstance(name, str) else f"number {number}"


def input_schema(m: Fact) -> Outcome:
    wrong = []
    for number, tool in enumerate(_tools(m)):
        schema = tool.get("inputSchema", ABSENT) if isinstance(tool, dict) else ABSENT
        if schema is ABSENT:
            wrong.append(f"tool {_label(tool, number)} has no inputSchema")
        elif not isinstance(schema, dict):
            wrong.append(f"inputSchema of {_label(tool, number)} is not an object")
        elif schema.get("type") != "object":
            wrong.append(f'inputSchema of {_label(tool, number)} is not of type "object"')
    if wrong:
        return broken("; ".join(wrong[:3]))
    return KEPT if _tools(m) else None


def name_format(m: Fact) -> Outcome:
    names = [tool["name"] for tool in _tools(m) if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        return broken(f"name {', '.join(repr(name)[:60] for name in wrong[:3])}")
    return KEPT if names else None


def name_unique(m: Fact) -> Outcome:
    """Over the pages of one list, as far as they were seen: two on one page suffice."""
    page = lists.page(m)
    items = page.upto if page is not None and page.upto is not None else _tools(m)
    names = [tool["name"] for tool in items if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    here = {tool["name"] for tool in _tools(m) if isinstance(tool, dict) and isinstance(tool.get("name"), str)}
    twice = sorted(name for name in here if names.count(name) > 1) if len(set(names)) < len(names) else []
    if twice:
        return broken(f"more than one tool is called {', '.join(map(repr, twice[:3]))}")
    if page is None or page.done is None:
        return UNKNOWN if page is not None and page.upto is None else None
    return KEPT


def order_stable(m: Fact) -> Outcome:
    page = lists.page(m)
    if page is None or page.done is None or page.before is None or len(page.done.items) < 2:
        return None
    names, before = page.done.names, page.before.names
    if names == before:
        return KEPT
    if sorted(map(str, names)) != sorted(map(str, before)):
        return None
    return broken("the same tools came in another order", related=(page.before.at,))


# Results ----------------------------------------------------------------------------------------------------


def _final(m: Fact) -> bool:
    """Is it what the call was for, and no request for input, no task and no failure of the tool?"""
    return (
        not m.again
        and m.result.get("resultType", "complete") == "complete"
        and m.result.get("isError", False) is False
        and not isinstance(m.result.get("task"), dict)
    )


def output_schema(m: Fact) -> Outcome:
    if m.method == "tools/list" or m.kind == "notification":
        lists.page(m)
        return None
    if not _final(m):
        return None
    value = m.result.get("structuredContent", ABSENT)
    early = m.era != "modern"
    if early and value is not ABSENT and not isinstance(value, dict):
        return broken("structuredContent is not an object")
    listing = lists.latest(m, "tools/list")
    if listing is None or m.request is None:
        return UNKNOWN
    tool = listing.named(m.request.params.get("name"))
    if tool is None or not listing.fresh or listing.at > m.request.seq:
        return UNKNOWN  # the list that the caller knew may be another
    schema = tool.get("outputSchema", ABSENT)
    if not isinstance(schema, dict):
        return None
    if value is ABSENT:
        return broken("the tool has an outputSchema, its result no structuredContent", related=(listing.at,))
    said = conforms(schema, value)
    if said is None:
        return KEPT
    if said is CANNOT_TELL:
        return UNKNOWN
    return broken(f"structuredContent does not fit the outputSchema: {said}", related=(listing.at,))


def structured_text(m: Fact) -> Outcome:
    value = m.result.get("structuredContent", ABSENT)
    if value is ABSENT or not _final(m):
        return None
    content = m.result.get("content")
    begins = "{" if isinstance(value, dict) else "[" if isinstance(value, list) else ""
    for block in content if isinstance(content, list) else []:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        if isinstance(text, str) and text.lstrip().startswith(begins):
            try:
                if same(json.loads(text), value):
                    return KEPT
            except (ValueError, RecursionError):
                continue
    return broken("no text block holds the structured content as JSON")


def embedded_resource_capability(m: Fact) -> Outcome:
    content = m.result.get("content")
    blocks = content if isinstance(content, list) else []
    if not any(isinstance(block, dict) and block.get("type") == "resource" for block in blocks):
        return None
    declared = m.server_capabilities
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, dict):
        return None
    return KEPT if "resources" in declared else broken("a resource is embedded, and resources is not declared")
