"""Content blocks of tool results and prompts, contents of resources (server/prompts, server/resources)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_LOOSE: Final = re.compile(r"[A-Za-z0-9+/_\s-]*={0,2}\s*")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_IRI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}|[^\x00-\xa0])*"
)


def blocks(m: Fact) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, block) of the content blocks of a tools/call or prompts/get result."""
    if m.method == "prompts/get":
        messages = m.result.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else []):
            content = message.get("content") if isinstance(message, dict) else None
            if isinstance(content, dict):
                yield f"messages[{number}].content", content
        return
    content = m.result.get("content")
    for number, block in enumerate(content if isinstance(content, list) else []):
        if isinstance(block, dict):
            yield f"content[{number}]", block


def contents(m: Fact) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, contents) of what is read or embedded."""
    if m.method == "resources/read":
        found = m.result.get("contents")
        for number, one in enumerate(found if isinstance(found, list) else []):
            if isinstance(one, dict):
                yield f"contents[{number}]", one
        return
    for where, block in blocks(m):
        if block.get("type") == "resource" and isinstance(block.get("resource"), dict):
            yield f"{where}.resource", block["resource"]


def _encoded(value: Any) -> str | None:
    """What is wrong with a Base64 text: None nothing, ``loose`` another alphabet, white space or padding."""
    if not isinstance(value, str):
        return "not a string"
    if len(value) % 4 == 0 and _BASE64.fullmatch(value):
        return None
    if not _LOOSE.fullmatch(value):
        return "no Base64"
    return "no Base64" if len(re.sub(r"[\s=]", "", value)) % 4 == 1 else "loose"


def base64(m: Fact) -> Outcome:
    """Line breaks, the alphabet for URLs and missing padding are only hinted at: the page names no variant."""
    said: list[tuple[str, str | None]] = []
    kinds = ("image", "audio") if (m.revision or "") >= "2025-03-26" else ("image",)
    for where, block in blocks(m):
        if block.get("type") not in kinds:
            continue
        said.append((f"{where}.data", "absent" if "data" not in block else _encoded(block["data"])))
        mime = block.get("mimeType", ABSENT)
        if not isinstance(mime, str) or "/" not in mime:
            said.append((f"{where}.mimeType", "absent" if mime is ABSENT else "no MIME type"))
    for where, one in contents(m):
        if "blob" in one:
            said.append((f"{where}.blob", _encoded(one["blob"])))
    wrong = [f"{where} is {why}" for where, why in said if why is not None and why != "loose"]
    if wrong:
        return broken("; ".join(wrong[:3]))
    loose = [where for where, why in said if why == "loose"]
    if loose:
        return broken(f"{loose[0]} is not Base64 of RFC 4648, section 4", confidence="low")
    return KEPT if said else None


def embedded_resource(m: Fact) -> Outcome:
    """The prompts page asks for the MIME type, the schema leaves it open: without it only a hint."""
    seen, weak = False, None
    for where, block in blocks(m):
        if block.get("type") != "resource":
            continue
        seen = True
        one = block.get("resource", ABSENT)
        if not isinstance(one, dict):
            return broken(f"{where}.resource is {'absent' if one is ABSENT else 'not an object'}")
        if not isinstance(one.get("uri"), str):
            return broken(f"{where}.resource has no uri")
        if not isinstance(one.get("text"), str) and not isinstance(one.get("blob"), str):
            return broken(f"{where}.resource has neither text nor blob")
        if not isinstance(one.get("mimeType"), str):
            weak = broken(f"{where}.resource has no mimeType", confidence="low")
    return weak if weak is not None else KEPT if seen else None


def uri_syntax(m: Fact) -> Outcome:
    """Characters beyond ASCII make an IRI, which is only hinted at."""
    found: list[Any] = []
    if m.method == "resources/list":
        listed = m.result.get("resources")
        found += [one.get("uri") for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)]
    found += [one.get("uri") for _, one in contents(m)]
    found += [block.get("uri") for _, block in blocks(m) if block.get("type") == "resource_link"]
    uris = [uri for uri in found if isinstance(uri, str)]
    wrong = [uri for uri in uris if not _URI.fullmatch(uri)]
    if not wrong:
        return KEPT if uris else None
    bad = [uri for uri in wrong if not _IRI.fullmatch(uri)]
    return broken(f"uri {(bad or wrong)[0][:80]!r}", confidence=None if bad else "low")
