"""The texts of the messages that we send: what the caller gave goes in byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcplab.model import ABSENT, HandshakeError, JsonText
from mcplab.redaction import MASKS
from mcplab.spec import META_CAPABILITIES, META_CLIENT_INFO, META_VERSION
from mcplab.told import safe


def dump(value: Any) -> str:
    """JSON text of ``value``: a ``JsonText`` inside stands as it is, a member that is ``ABSENT`` is left out.

    Raises:
        HandshakeError: the value is none of JSON's, or nested too deeply to be written (give a ``JsonText`` then).
    """
    try:
        return _dump(value)
    except RecursionError:
        raise HandshakeError("the value is nested too deeply to be written: give it as JsonText") from None
    except TypeError as error:
        raise HandshakeError(f"{error}: give a JSON value, JsonText or ABSENT") from None


def _dump(value: Any) -> str:
    if isinstance(value, JsonText):
        return str(value)
    if isinstance(value, Mapping):
        members = (f"{_plain(str(key))}:{_dump(item)}" for key, item in value.items() if item is not ABSENT)
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_dump(item) for item in value) + "]"
    return _plain(value)


def _plain(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8, only an escape
        return json.dumps(value)
    return text


def message(**members: Any) -> bytes:
    """A JSON-RPC message; members that are ``ABSENT`` are left out."""
    return encode(dump({"jsonrpc": "2.0", **members}))


def encode(text: str) -> bytes:
    """UTF-8; what has none (a lone surrogate in a ``JsonText``) in the form that keeps it."""
    return text.encode("utf-8", "surrogatepass")


def said(text: bytes, limit: int) -> str:
    """What a server said, as an error may quote it: masked, in one line that does a terminal no harm, cut."""
    shown = safe(MASKS.message(text[: 20 * limit]).decode("utf-8", "replace"))
    return shown if len(shown) <= limit else f"{shown[:limit]}…"


def initialize_params(version: str, declare: Any, client_info: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": declare, "clientInfo": client_info}


def modern_params(params: Any, version: str, declare: Any, client_info: Any) -> Any:
    """``params`` with the ``_meta`` that every modern request carries (2026-07-28 basic/index#meta).

    A caller's own ``_meta`` members stand beside ours and win over them; params that are no object stay alone.
    """
    if params is None or params is ABSENT:
        params = {}
    if not isinstance(params, Mapping):
        return params
    ours = {META_VERSION: version, META_CLIENT_INFO: client_info, META_CAPABILITIES: declare}
    given = params.get("_meta", {})
    meta = {**ours, **given} if isinstance(given, Mapping) else given
    return {**params, "_meta": meta}


def mirrored(schema: Any, arguments: Any) -> tuple[tuple[str, str], ...]:
    """Headers that a tool's ``x-mcp-header`` annotations ask for: (name, value), values not yet encoded.

    Only properties that are reached by ``properties`` alone count (2026-07-28 streamable-http#schema-extension).
    """
    found: list[tuple[str, str]] = []
    todo = [(schema, arguments)]
    while todo:
        node, values = todo.pop()
        properties = node.get("properties") if isinstance(node, dict) else None
        if not isinstance(properties, dict) or not isinstance(values, Mapping):
            continue
        for name, child in properties.items():
            value = values.get(name)
            header = child.get("x-mcp-header") if isinstance(child, dict) else None
            if isinstance(header, str) and isinstance(value, (str, int)):
                shown = str(value).lower() if isinstance(value, bool) else str(value)
                found.append((f"mcp-param-{header.lower()}", shown))
            todo.append((child, value))
    return tuple(found)
