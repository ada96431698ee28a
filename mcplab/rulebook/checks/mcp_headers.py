"""Headers that mirror the body (2026-07-28 basic/transports/streamable-http#request-metadata)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from mcplab.rulebook.checks import version_header
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
SOURCE: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
MISMATCH: Final = -32020
_SENTINEL: Final = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")
_LIKE: Final = re.compile(r"=\?[^?]*\?.*", re.DOTALL)
_SAFE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")
NOT_DECODED: Final = object()


def decoded(value: str) -> object:
    """What a mirrored value stands for: decoded where it has the sentinel form, NOT_DECODED where that fails."""
    value = value.strip(" \t")
    found = _SENTINEL.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return NOT_DECODED


def _headers(m: Fact) -> dict[str, str] | None:
    if m.post is None or m.post.headers is None or m.part is not None:
        return None  # an array in the body: http.post-body-single
    return dict(m.post.headers)


def _source(m: Fact) -> str | None:
    """The body's value that Mcp-Name repeats; None where it has none."""
    key = SOURCE.get(m.method or "")
    value = m.params.get(key) if key is not None else None
    return value if isinstance(value, str) else None


def method_present(m: Fact) -> Outcome:
    if m.post is None or m.part is not None:
        return None
    headers = _headers(m)
    if headers is None:
        return UNKNOWN
    return KEPT if METHOD in headers else broken("no Mcp-Method")


def method_matches(m: Fact) -> Outcome:
    headers = _headers(m)
    if headers is None or METHOD not in headers:
        return None
    said = headers[METHOD].strip(" \t")
    return KEPT if said == m.method else broken(f"Mcp-Method is {said!r}, the body's method {m.method!r}")


def name_present(m: Fact) -> Outcome:
    if m.post is None or m.part is not None or _source(m) is None:
        return None
    headers = _headers(m)
    if headers is None:
        return UNKNOWN
    return KEPT if NAME in headers else broken("no Mcp-Name")


def name_matches(m: Fact) -> Outcome:
    headers, source = _headers(m), _source(m)
    if headers is None or source is None or NAME not in headers:
        return None
    found = decoded(headers[NAME])
    if found is NOT_DECODED:
        return None  # mcp-headers.sentinel-exact
    if found == source:
        return KEPT
    if found == source.strip(" \t") or not _SAFE.fullmatch(source):
        return None  # sent bare: mcp-headers.unsafe-encoded
    if str(found).startswith("=?") and _LIKE.fullmatch(str(found)):
        return None  # a sentinel that is none: mcp-headers.sentinel-exact
    return broken(f"Mcp-Name is {found!r}, the body says {source!r}")


def unsafe_encoded(m: Fact) -> Outcome:
    headers, source = _headers(m), _source(m)
    if headers is None:
        return None
    for name, value in headers.items():
        if name.startswith("mcp-param-") and not _SAFE.fullmatch(value.strip(" \t")):
            return broken(f"{name} was sent bare, as {value!r:.60}")
    if source is None or NAME not in headers or _SAFE.fullmatch(source):
        return None
    sent = headers[NAME].strip(" \t")
    return KEPT if _SENTINEL.fullmatch(sent) else broken(f"{source!r} was sent bare, as {sent!r}")


def sentinel_exact(m: Fact) -> Outcome:
    headers, source = _headers(m), _source(m)
    if headers is None or NAME not in headers:
        return None
    sent = headers[NAME].strip(" \t")
    if not _LIKE.fullmatch(sent) or sent == source:
        return None
    if _SENTINEL.fullmatch(sent) is None:
        return broken(f"{sent!r} is no =?base64?...?=")
    return broken(f"{sent!r} does not decode") if decoded(sent) is NOT_DECODED else KEPT


def sentinel_literal(m: Fact) -> Outcome:
    headers, source = _headers(m), _source(m)
    if headers is None or source is None or NAME not in headers:
        return None
    if not (source.startswith("=?base64?") and source.endswith("?=")):
        return None
    return broken(f"{source!r} was sent as it is") if headers[NAME].strip(" \t") == source else KEPT


def faults(m: Fact) -> list[str] | None:
    """What is wrong with the standard headers of a modern request; None where the capture holds no headers."""
    headers = _headers(m)
    if headers is None:
        return None
    wrong = []
    if version_header.HEADER not in headers:
        wrong.append("MCP-Protocol-Version is missing")
    if METHOD not in headers:
        wrong.append("Mcp-Method is missing")
    elif headers[METHOD].strip(" \t") != m.method:
        wrong.append("Mcp-Method does not match")
    source = _source(m)
    if source is not None:
        if NAME not in headers:
            wrong.append("Mcp-Name is missing")
        elif decoded(headers[NAME]) not in (source, source.strip(" \t")):
            wrong.append("Mcp-Name does not match")
    return wrong


def mismatch_refused(m: Fact) -> Outcome:
    """A request without any modern header may be taken for a legacy one; with several faults others may be named."""
    asked = m.request
    if asked is None or m.post is None or m.again:
        return None
    wrong = faults(asked)
    if wrong is None:
        return UNKNOWN
    if not wrong:
        return None
    status = m.post.exchange.status
    if not m.session.instance.modern and m.code != MISMATCH and "resultType" not in m.result:
        return UNKNOWN
    if m.kind == "error" and m.code == MISMATCH:
        return KEPT  # its status: mcp-headers.mismatch-status
    if m.kind == "error" and (status is None or status >= 400) and m.code in (-32022, -32602, -32601, -32021):
        return UNKNOWN
    shown = "served" if m.kind == "result" else f"answered {m.code} with status {status}"
    return broken(f"{'; '.join(wrong)}, and the request was {shown}", related=(asked.seq,))


def false_mismatch(m: Fact) -> Outcome:
    """Of all but tools/call, whose Mcp-Param headers may be the cause (mcp_param.py)."""
    asked = m.request
    if asked is None or m.code != MISMATCH:
        return None
    wrong = faults(asked)
    if wrong is None:
        return UNKNOWN
    if wrong or version_header.differs(asked):
        return KEPT
    return broken("-32020, though MCP-Protocol-Version, Mcp-Method and Mcp-Name match the body", related=(asked.seq,))


def mismatch_status(m: Fact) -> Outcome:
    if m.post is None or m.code != MISMATCH:
        return None
    status = m.post.exchange.status
    if status is None:
        return UNKNOWN
    return KEPT if status == 400 else broken(f"-32020 came with status {status}")
