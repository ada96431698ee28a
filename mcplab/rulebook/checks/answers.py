"""Which error answers what: unknown tools, prompts, resources, features that are not offered."""

from __future__ import annotations

import re
from typing import Any, Final

from mcplab.model import ABSENT, Sentinel
from mcplab.rulebook.checks import lists
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
_OTHER_FAULTS: Final = (METHOD_NOT_FOUND, -32700, -32600, -32020, -32021, -32022, -32042)
_MISSING: Final = re.compile(r"not found|no such resource|unknown resource|does not exist|doesn't exist", re.IGNORECASE)
_INTERNAL: Final = re.compile(r"internal (server )?error|traceback|unhandled exception", re.IGNORECASE)


def _refused_by_http(m: Fact) -> bool:
    """Refused before the message was looked at: no login, no such session."""
    return m.post is not None and m.post.exchange.status in (401, 403, 404, 429)


def _message(m: Fact) -> str:
    text = m.error.get("message")
    return text if isinstance(text, str) else ""


def resource_not_found(m: Fact) -> Outcome:
    """The cause is read from the error's text, or from the code that stood for it before."""
    if m.again or _refused_by_http(m) or m.code in _OTHER_FAULTS:
        return None
    if not _MISSING.search(_message(m)) and not (m.era == "modern" and m.code == -32002):
        return None
    wanted = INVALID_PARAMS if m.era == "modern" else -32002
    return KEPT if m.code == wanted else broken(f"a resource that is not there was answered with {m.code}")


def resource_not_empty(m: Fact) -> Outcome:
    if m.result.get("resultType", "complete") != "complete" or "contents" not in m.result:
        return None
    return broken("contents is empty: is the resource there?") if m.result["contents"] == [] else KEPT


def internal(m: Fact) -> Outcome:
    if m.code == -32603:
        return KEPT
    return broken(f"an internal error has the code {m.code}") if _INTERNAL.search(_message(m)) else None


# Names that are in no list ------------------------------------------------------------------------------------


def _listed(m: Fact, method: str) -> tuple[bool, dict[str, Any] | None]:
    """(is the list certain that the caller knew, its entry of the name asked for)."""
    listing = lists.latest(m, method)
    asked = m.request
    if listing is None or asked is None:
        return False, None
    return listing.fresh and listing.at < asked.seq, listing.named(asked.params.get("name"))


def _unknown(m: Fact, what: str) -> Outcome:
    if m.kind == "error":
        if m.code == INVALID_PARAMS:
            return KEPT
        if _refused_by_http(m) or (m.code != METHOD_NOT_FOUND and m.code in _OTHER_FAULTS):
            return None
        return broken(f"{what} was answered with {m.code}")
    if m.result.get("isError") is True:
        return broken(f"{what} was answered with a result that has isError")
    return broken(f"{what} was served: it may be a hidden one", confidence="low")


def _may_be_unknown(m: Fact) -> bool:
    """Without the list: could this be the answer to a name that is not in it?"""
    if m.kind == "error":
        return not _refused_by_http(m) and (m.code == METHOD_NOT_FOUND or m.code not in _OTHER_FAULTS)
    return m.result.get("isError") is True


def unknown_tool(m: Fact) -> Outcome:
    if m.method == "tools/list" or m.kind == "notification":
        lists.page(m)
        return None
    certain, entry = _listed(m, "tools/list")
    if m.again or m.request is None or entry is not None:
        return None
    if not certain:
        return UNKNOWN if _may_be_unknown(m) else None
    name = m.request.params.get("name")
    return _unknown(m, f"the tool {name!r}, which is not in the list,") if isinstance(name, str) else None


def unknown_prompt(m: Fact) -> Outcome:
    if m.method == "prompts/list" or m.kind == "notification":
        lists.page(m)
        return None
    certain, entry = _listed(m, "prompts/list")
    asked = m.request
    if m.again or asked is None:
        return None
    if not certain:
        return UNKNOWN if _may_be_unknown(m) else None
    name, given = asked.params.get("name"), asked.params.get("arguments", ABSENT)
    if not isinstance(name, str):
        return None
    if entry is None:
        return _unknown(m, f"the prompt {name!r}, which is not in the list,")
    arguments = entry.get("arguments")
    given = given if isinstance(given, dict) else {}
    missing = [
        one["name"]
        for one in (arguments if isinstance(arguments, list) else [])
        if isinstance(one, dict) and one.get("required") is True and isinstance(one.get("name"), str)
        and one["name"] not in given
    ]  # fmt: skip
    if not missing or m.result.get("resultType", "complete") != "complete":
        return None
    if m.kind == "result":
        return broken(f"the prompt {name!r} was served without its argument {missing[0]!r}")
    return _unknown(m, f"the prompt {name!r} without its argument {missing[0]!r}")


# Features that are not offered --------------------------------------------------------------------------------

_FEATURE: Final = {
    "tools/list": "tools", "tools/call": "tools", "prompts/list": "prompts", "prompts/get": "prompts",
    "resources/list": "resources", "resources/read": "resources", "resources/templates/list": "resources",
    "completion/complete": "completions",
}  # fmt: skip


def undeclared(m: Fact) -> Outcome:
    """Up to 2025-11-25 only the completion page says so; 2026-07-28 has it for every feature."""
    if m.era != "modern" and m.method != "completion/complete":
        return None
    feature = _FEATURE[m.method or ""]
    declared = m.server_capabilities
    if m.again or (_refused_by_http(m) and m.code != METHOD_NOT_FOUND):
        return None
    if isinstance(declared, Sentinel):
        return UNKNOWN if declared is not ABSENT else None
    if not isinstance(declared, dict) or feature in declared:
        return None
    if m.code == METHOD_NOT_FOUND:
        return KEPT
    if m.code in _OTHER_FAULTS:
        return None
    return broken(f"{feature} is not declared, {m.method} was answered with {m.code}")
