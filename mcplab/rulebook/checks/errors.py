"""Error codes of the modern revision, and the HTTP status each travels with (2026-07-28 basic/index#error-codes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcplab import gating, spec
from mcplab.model import ABSENT
from mcplab.rulebook.checks import version_header
from mcplab.rulebook.checks.mcp_headers import faults
from mcplab.rulebook.checks.request_meta import missing
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

STANDARD: Final = (-32700, -32600, -32601, -32602, -32603)
DEFINED: Final = (-32020, -32021, -32022)
RETIRED: Final = (-32002, -32042)
MISSING_CAPABILITY: Final = -32021
METHOD_NOT_FOUND: Final = -32601


def _code(m: Fact) -> int | None:
    return m.code if isinstance(m.code, int) and not isinstance(m.code, bool) else None


def _modern_server(m: Fact) -> bool:
    return m.session.instance.modern or m.code in DEFINED


def reserved_range(m: Fact) -> Outcome:
    code = _code(m)
    if code is None or not -32099 <= code <= -32020 or code in RETIRED:
        return None
    if code in DEFINED:
        return KEPT
    return broken(f"{code} is reserved and not defined") if _modern_server(m) else UNKNOWN


def retired(m: Fact) -> Outcome:
    code = _code(m)
    if code is None or code not in RETIRED:
        return KEPT if code is not None else None
    return broken(f"{code} is retired") if _modern_server(m) else UNKNOWN


def legacy_subrange(m: Fact) -> Outcome:
    code = _code(m)
    if code is None or code == -32002:
        return None
    if not -32019 <= code <= -32000:
        return KEPT
    return broken(f"{code} lies in the range left to older implementations") if _modern_server(m) else UNKNOWN


def outside_reserved(m: Fact) -> Outcome:
    code = _code(m)
    if code is None or code in STANDARD or -32099 <= code <= -32000:
        return None
    if -32768 <= code <= -32000:
        return broken(f"{code} is JSON-RPC's") if _modern_server(m) else UNKNOWN
    return KEPT


def missing_capability_data(m: Fact) -> Outcome:
    if m.code != MISSING_CAPABILITY:
        return None
    data = m.error.get("data")
    needs = data.get("requiredCapabilities", ABSENT) if isinstance(data, Mapping) else ABSENT
    if isinstance(needs, Mapping) and needs:
        return KEPT
    return broken(
        "-32021 without requiredCapabilities" if needs is ABSENT else "requiredCapabilities is no filled object"
    )


def _paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[str]:
    """The innermost paths of a capability object."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _paths(inner, (*above, key))
        else:
            yield spec.join((*above, key))


def missing_capability_real(m: Fact) -> Outcome:
    data = m.error.get("data")
    needs = data.get("requiredCapabilities") if isinstance(data, Mapping) else None
    if m.code != MISSING_CAPABILITY or m.request is None or not isinstance(needs, Mapping) or not needs:
        return None
    declared = m.client_capabilities
    if any(gating.standing(m.revision or "", "client", path, declared).declared is not True for path in _paths(needs)):
        return KEPT
    return broken("everything that it asks for was declared by the request", related=(m.request.seq,))


def missing_capability_400(m: Fact) -> Outcome:
    if m.code != MISSING_CAPABILITY or m.post is None:
        return None
    status = m.post.exchange.status
    if status is None:
        return UNKNOWN
    weak = "low" if m.post.exchange.streams else None  # an open stream has sent its status already
    return KEPT if status == 400 else broken(f"-32021 came with status {status}", confidence=weak)


def method_not_found_404(m: Fact) -> Outcome:
    """A legacy server owes nothing of it, and a request with other faults may be refused for those."""
    asked = m.request
    if m.code != METHOD_NOT_FOUND or m.post is None or asked is None:
        return None
    status = m.post.exchange.status
    wrong = faults(asked)
    if status is None or wrong is None or not m.session.instance.modern:
        return UNKNOWN
    if wrong or missing(asked) or version_header.differs(asked):
        return None
    weak = "low" if m.post.exchange.streams else None
    if status == 404:
        return KEPT
    return broken(f"-32601 came with status {status}", related=(asked.seq,), confidence=weak)
