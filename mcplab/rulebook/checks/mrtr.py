"""Multi round-trip requests (2026-07-28 basic/patterns/mrtr)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import gating
from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.rounds import Round, asks, origin, own_params, retries, waiting
from mcplab.spec import META_CAPABILITIES

SUPPORTED: Final = ("tools/call", "prompts/get", "resources/read")
KINDS: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def server_no_requests(m: Fact) -> Outcome:
    if m.kind != "request":
        return KEPT
    return broken(f"the server sent the request {m.method}")


def client_no_responses(m: Fact) -> Outcome:
    return KEPT if m.kind == "request" else broken("the client sent a response")


def supported_methods(m: Fact) -> Outcome:
    if m.method is None or not asks(m):
        return None
    return KEPT if m.method in SUPPORTED else broken(f"{m.method} was answered input_required")


def has_content(m: Fact) -> Outcome:
    if not asks(m):
        return None
    return KEPT if "inputRequests" in m.result or "requestState" in m.result else broken("neither of both members")


def input_request_kind(m: Fact) -> Outcome:
    asked = m.result.get("inputRequests", ABSENT)
    if not asks(m) or asked is ABSENT:
        return None
    if not isinstance(asked, Mapping):
        return broken("inputRequests is not an object")
    wrong = [key for key, entry in asked.items() if not isinstance(entry, Mapping) or entry.get("method") not in KINDS]
    return broken(f"no input request: {', '.join(map(repr, wrong))}") if wrong else KEPT


def input_request_declared(m: Fact) -> Outcome:
    """The whole feature; nested flags have their gates (gate.elicitation-url and others)."""
    asked = m.result.get("inputRequests")
    if not asks(m) or not isinstance(asked, Mapping):
        return None
    said: Outcome = None
    for key, entry in asked.items():
        path = KINDS.get(entry.get("method", "")) if isinstance(entry, Mapping) else None
        if path is None:
            continue
        stands = gating.standing(m.revision or "", "client", path, m.client_capabilities)
        if stands.declared is None:
            said = said or UNKNOWN
        elif stands.declared:
            said = said or KEPT
        elif not stands.malformed:
            related = (m.request.seq,) if m.request is not None else ()
            return broken(f"input request {key!r} needs {path}: {stands.reason} in the request", related=related)
    return said


def request_state_type(m: Fact) -> Outcome:
    holder = m.params if m.kind == "request" else m.result
    state = holder.get("requestState", ABSENT)
    if state is ABSENT:
        return None
    return KEPT if isinstance(state, str) else broken("requestState is not a string", party=m.sender)


# Retries --------------------------------------------------------------------------------------------------


def _ground(m: Fact, before: Round) -> bool:
    """May a mismatch be judged? Where a round may be missing from the capture, only if all else fits this one."""
    return m.session.opened or (m.post is not None and before.params == own_params(m))


def retry_new_id(m: Fact) -> Outcome:
    if not retries(m):
        return None
    before = origin(m)
    if before is None:
        return UNKNOWN
    ident = m.body.get("id", ABSENT)
    if type(ident) is type(before.ident) and ident == before.ident:
        if not _ground(m, before):
            return UNKNOWN
        return broken("the retry has the id of the request that it continues", related=(before.seq,))
    return KEPT


def state_echoed(m: Fact) -> Outcome:
    if not retries(m):
        return None
    before = origin(m)
    if before is None:
        return UNKNOWN
    if before.state is ABSENT:
        return None
    state = m.params.get("requestState", ABSENT)
    if type(state) is type(before.state) and state == before.state:
        return KEPT
    if not _ground(m, before):
        return UNKNOWN
    how = "is missing" if state is ABSENT else "was changed"
    return broken(f"requestState {how}", related=(before.seq,))


def state_not_invented(m: Fact) -> Outcome:
    if "requestState" not in m.params:
        return None
    before = origin(m)
    if before is None:
        return UNKNOWN
    if before.state is not ABSENT:
        return KEPT if before.state == m.params["requestState"] else None
    return broken("requestState, though the result had none", related=(before.seq,)) if _ground(m, before) else UNKNOWN


def state_only_for_retry(m: Fact) -> Outcome:
    """Other arguments than those of the original request are a doubtful case: medium."""
    if not retries(m):
        return None
    before = origin(m)
    if before is not None:
        if before.params == own_params(m):
            return KEPT
        return broken(
            "the retry has other parameters than the original request", related=(before.seq,), confidence="low"
        )
    state = m.params.get("requestState")
    if isinstance(state, str):
        elsewhere = next((one for one in reversed(waiting(m)) if one.state == state), None)
        if elsewhere is not None:
            return broken(
                f"the requestState of a {elsewhere.target[0]} is used for another request", related=(elsewhere.seq,)
            )
    return UNKNOWN


def responses_given(m: Fact) -> Outcome:
    """Servers ask again for what is missing, so a part of it is a hint; nothing at all is none of the inputs."""
    if not retries(m):
        return None
    before = origin(m)
    if before is None:
        return UNKNOWN
    if not before.asked:
        return None
    given = m.params.get("inputResponses")
    given = given if isinstance(given, Mapping) else {}
    lacks = [key for key in before.asked if key not in given]
    if not lacks:
        return KEPT
    if not _ground(m, before):
        return UNKNOWN
    weak = "low" if len(lacks) < len(before.asked) else None
    return broken(f"no input for {', '.join(map(repr, lacks))}", related=(before.seq,), confidence=weak)


def response_keys_known(m: Fact) -> Outcome:
    given = m.params.get("inputResponses")
    before = origin(m) if isinstance(given, Mapping) else None
    if before is None or not isinstance(given, Mapping):
        return None
    more = [key for key in given if key not in before.asked]
    return broken(f"nobody asked for {', '.join(map(repr, more))}", related=(before.seq,)) if more else KEPT


def response_shape(m: Fact) -> Outcome:
    if "inputResponses" not in m.params:
        return None
    given = m.params["inputResponses"]
    if not isinstance(given, Mapping):
        return broken("inputResponses is not an object")
    before = origin(m)
    if before is None:
        return UNKNOWN
    if not _ground(m, before):
        return UNKNOWN
    wrong = []
    for key, value in given.items():
        entry = before.asked.get(key)
        name = entry.get("method") if isinstance(entry, Mapping) else None
        if name in KINDS and not _fits(name, value):
            wrong.append(f"{key!r} is no result of {name}")
    return broken("; ".join(wrong), related=(before.seq,)) if wrong else KEPT


def _fits(name: str, value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    if name == "elicitation/create":
        return value.get("action") in ("accept", "decline", "cancel")
    if name == "roots/list":
        return isinstance(value.get("roots"), list)
    return value.get("role") in ("user", "assistant") and "content" in value and isinstance(value.get("model"), str)


def missing_input_asked_again(m: Fact) -> Outcome:
    """Of a retry that is as it should be but for inputs left out: -32602 is then about those."""
    lacking: Recent[int] | None = m.session.instance.memory.get("mrtr.lacking")
    if m.kind == "request":
        before, given = origin(m), m.params.get("inputResponses", {})
        whole = before is not None and before.params == own_params(m) and isinstance(given, Mapping)
        if before is None or not whole or before.state != m.params.get("requestState", ABSENT):
            return None
        if any(key not in given for key in before.asked) and not any(key not in before.asked for key in given):
            if lacking is None:
                lacking = m.session.instance.memory["mrtr.lacking"] = Recent()
            lacking.put(m.row, before.seq)
        return None
    before = lacking.pop(m.request.row) if lacking and m.request is not None and not m.again else None
    if before is None:
        return None
    if m.kind == "result":
        return KEPT
    if m.code != -32602:
        return UNKNOWN
    return broken("a retry without all inputs was answered -32602", related=(before,))


def malformed_input_error(m: Fact) -> Outcome:
    """What a server does not need it may leave alone, but inputResponses that are no object are none at all."""
    asked = m.request
    if asked is None or m.again or isinstance(asked.params.get("inputResponses", {}), Mapping):
        return None
    if m.kind == "error":
        return KEPT
    return broken("inputResponses is not an object, and the retry got a result", related=(asked.seq,))


def declared_again(m: Fact) -> Outcome:
    """The retry answers an input request, so the client supports it; its original request had declared it."""
    memory = m.session.instance.memory
    declared: Recent[Any] | None = memory.get("mrtr.declared")
    if m.kind == "result":
        if asks(m) and m.request is not None and not m.again:
            if declared is None:
                declared = memory["mrtr.declared"] = Recent()
            declared.put(m.seq, m.request.meta.get(META_CAPABILITIES, ABSENT))
        return None
    given, own = m.params.get("inputResponses"), m.meta.get(META_CAPABILITIES)
    if not isinstance(given, Mapping) or not isinstance(own, Mapping):
        return None
    before = origin(m)
    said = declared.get(before.seq) if before is not None and declared is not None else None
    if before is None or said is None:
        return UNKNOWN
    asked = [entry.get("method") for key in given if isinstance(entry := before.asked.get(key), Mapping)]
    kinds = {KINDS[name] for name in asked if isinstance(name, str) and name in KINDS}
    kinds = {kind for kind in kinds if isinstance(said, Mapping) and kind in said}
    lacks = sorted(kind for kind in kinds if kind not in own)
    if lacks:
        return broken(f"the retry answers for {', '.join(lacks)} and does not declare it", related=(before.seq,))
    return KEPT if kinds else None
