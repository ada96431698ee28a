"""Sampling: what a server asks a model for, and what the client brings back (client/sampling)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import gating
from mcplab.model import ABSENT
from mcplab.rulebook.checks.inputs import Asked, Given, asking, giving, verdict
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.rounds import origin

METHOD: Final = "sampling/createMessage"
_ROLES: Final = ("user", "assistant")
_INVALID_PARAMS: Final = -32602
_REJECTED: Final = -1


def _content_fits(m: Fact, message: Mapping[str, Any]) -> str | None:
    """What is wrong with a message's content; arrays came with 2025-11-25."""
    content = message.get("content", ABSENT)
    if content is ABSENT:
        return "content is absent"
    if isinstance(content, dict):
        return None
    if isinstance(content, list):
        return None if (m.revision or "") >= "2025-11-25" else "content is an array"
    return "content is no content block"


@asking(METHOD)
def message_shape(m: Fact, one: Asked) -> Outcome:
    messages, wrong = one.params.get("messages", ABSENT), []
    if not isinstance(messages, list):
        wrong.append("messages is absent" if messages is ABSENT else "messages is not an array")
    for number, message in enumerate(messages if isinstance(messages, list) else []):
        if not isinstance(message, dict):
            wrong.append(f"message {number} is not an object")
            continue
        if message.get("role") not in _ROLES:
            wrong.append(f"role of message {number} is {message.get('role')!r}")
        why = _content_fits(m, message)
        if why is not None:
            wrong.append(f"message {number}: {why}")
    limit = one.params.get("maxTokens", ABSENT)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        wrong.append("maxTokens is absent" if limit is ABSENT else "maxTokens is not a number")
    return verdict(wrong, one.where)


@giving(METHOD)
def result_shape(m: Fact, one: Given) -> Outcome:
    value, wrong = one.value, []
    if not isinstance(value, dict):
        return None  # jsonrpc.result-object, mrtr.response-shape
    role_and_model = value.get("role") in _ROLES and isinstance(value.get("model"), str)
    if m.era == "modern" and not (role_and_model and "content" in value):
        return None  # mrtr.response-shape
    if value.get("role") not in _ROLES:
        wrong.append(f"role is {value.get('role')!r}" if "role" in value else "role is absent")
    if not isinstance(value.get("model"), str):
        wrong.append("model is not a string" if "model" in value else "model is absent")
    why = _content_fits(m, value)
    if why is not None:
        wrong.append(why)
    return verdict(wrong, one.where)


# Tool use ---------------------------------------------------------------------------------------------------


def _blocks(message: Any) -> list[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]


def _messages(params: Mapping[str, Any]) -> list[tuple[Any, list[Mapping[str, Any]]]]:
    messages = params.get("messages")
    return [
        (message.get("role") if isinstance(message, dict) else None, _blocks(message))
        for message in (messages if isinstance(messages, list) else [])
    ]


def _ids(blocks: list[Mapping[str, Any]], kind: str, name: str) -> list[Any]:
    return [block.get(name) for block in blocks if block.get("type") == kind]


def _mixed(params: Mapping[str, Any]) -> list[str] | None:
    """What is wrong with messages that hold tool results; None where none does."""
    wrong, seen = [], False
    for number, (role, blocks) in enumerate(_messages(params)):
        kinds = [block.get("type") for block in blocks]
        if "tool_result" not in kinds:
            continue
        seen = True
        if any(kind != "tool_result" for kind in kinds):
            wrong.append(f"message {number} has other content beside its tool results")
        elif role != "user":
            wrong.append(f"message {number} has tool results and the role {role!r}")
    return wrong if seen else None


def _unbalanced(params: Mapping[str, Any]) -> list[str] | None:
    """What is wrong with messages that hold tool uses; None where none does."""
    wrong, seen = [], False
    messages = _messages(params)
    for number, (role, blocks) in enumerate(messages):
        uses = _ids(blocks, "tool_use", "id")
        if role != "assistant" or not uses:
            continue
        seen = True
        answer_role, answers = messages[number + 1] if number + 1 < len(messages) else (None, [])
        if answer_role != "user" or not any(block.get("type") == "tool_result" for block in answers):
            wrong.append(f"no tool results follow the tool uses of message {number}")
            continue
        given = _ids(answers, "tool_result", "toolUseId")
        wrong += [f"no result for tool use {use!r}" for use in uses if use not in given]
    return wrong if seen else None


@asking(METHOD)
def tool_results_alone(m: Fact, one: Asked) -> Outcome:
    wrong = _mixed(one.params)
    return None if wrong is None else verdict(wrong, one.where)


@asking(METHOD)
def tool_use_balanced(m: Fact, one: Asked) -> Outcome:
    wrong = _unbalanced(one.params)
    return None if wrong is None else verdict(wrong, one.where)


@asking(METHOD)
def tool_result_known(m: Fact, one: Asked) -> Outcome:
    """The messages of a request stand for themselves: nothing from another request counts."""
    known: list[Any] = []
    wrong, seen = [], False
    for _, blocks in _messages(one.params):
        for ident in _ids(blocks, "tool_result", "toolUseId"):
            seen = True
            if ident not in known:
                wrong.append(f"no tool use {ident!r} came before")
        known += _ids(blocks, "tool_use", "id")
    return verdict(wrong, one.where) if seen else None


@giving(METHOD)
def tool_choice_honoured(m: Fact, one: Given) -> Outcome:
    choice = one.params.get("toolChoice") if one.params is not None else None
    mode = choice.get("mode") if isinstance(choice, dict) else None
    uses = [block for block in _blocks(one.value) if block.get("type") == "tool_use"]
    if mode == "none":
        return broken(f"a tool use although toolChoice is none{one.where}") if uses else KEPT
    if mode == "required":
        stopped = one.value.get("stopReason") if isinstance(one.value, dict) else None
        return broken(f"no tool use although one is required{one.where}") if not uses and stopped == "endTurn" else KEPT
    return None


def undeclared_tools_refused(m: Fact) -> Outcome:
    """From 2026-07-28 a client refuses by not answering the entry."""
    if m.kind == "error":
        asked = m.request
        if asked is None or m.again or not _with_tools(asked.params):
            return None
        return KEPT if _tools_declared(m) is False else None
    said = _giving_undeclared(m)
    return _left_out(m) if said is None and m.kind == "request" else said


def _left_out(m: Fact) -> Outcome:
    """A retry that leaves out what asked for tools, although it gives other inputs."""
    before, given = origin(m), m.params.get("inputResponses")
    if before is None or not isinstance(given, dict) or _tools_declared(m) is not False:
        return None
    for key, entry in before.asked.items():
        params = entry.get("params") if isinstance(entry, dict) and entry.get("method") == METHOD else None
        if key not in given and isinstance(params, dict) and _with_tools(params):
            return KEPT
    return None


@giving(METHOD)
def _giving_undeclared(m: Fact, one: Given) -> Outcome:
    if one.params is None:
        return UNKNOWN
    if not _with_tools(one.params):
        return None
    declared = _tools_declared(m)
    if declared is None:
        return UNKNOWN
    return None if declared else broken(f"tools were accepted without sampling.tools{one.where}", related=(one.at,))


def _with_tools(params: Mapping[str, Any]) -> bool:
    return any(params.get(name) is not None for name in ("tools", "toolChoice"))


def _tools_declared(m: Fact) -> bool | None:
    if m.era == "modern":
        return gating.standing(m.revision or "", "client", "sampling.tools", m.client_capabilities).declared
    return m.session.declared(m.revision or "", "client", "sampling.tools").declared


def invalid_tool_history_error(m: Fact) -> Outcome:
    """The user may reject a request before anybody looks at it."""
    asked = m.request
    if asked is None or m.again or not (_mixed(asked.params) or _unbalanced(asked.params)):
        return None
    if m.kind == "result":
        return broken("a request whose tool results do not fit was served", related=(asked.seq,))
    if m.code == _INVALID_PARAMS:
        return KEPT
    if m.code in (_REJECTED, -32601):
        return None
    return broken(f"a request whose tool results do not fit was refused with {m.code}", related=(asked.seq,))


@asking(METHOD)
def context_deprecated(m: Fact, one: Asked) -> Outcome:
    wanted = one.params.get("includeContext", ABSENT)
    return verdict([f"includeContext is {wanted}"] if wanted in ("thisServer", "allServers") else [], one.where)
