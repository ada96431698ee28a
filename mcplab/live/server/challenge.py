"""The challenge: everything that a server may ask of a client, each once, whether the client declared it or not.

Legacy: requests, on whatever the peer listens to. Modern: ``input_required`` rounds, one question a round, what is
declared first, for a client that refuses one gives its whole request up; its next request gets the next question.
2026-07-28 has no ping, and its tasks are an extension in which the client asks.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Final

from mcplab.gating import standing
from mcplab.live.server.steps import Ask, Emit, Steps, Want
from mcplab.spec import capability, era

PATIENCE: Final = 3.0
"""Seconds for an answer before the next question is asked (a late answer still counts)."""
AFTER: Final = 0.5
"""The same once a question has gone without an answer."""

_SAY: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say a word."}}],
    "maxTokens": 16,
}
_FORM: Final[dict[str, Any]] = {
    "mode": "form",
    "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
_URL: Final[dict[str, Any]] = {
    "mode": "url",
    "message": "A page to look at; nothing waits there.",
    "url": "http://127.0.0.1:9/mcplab-challenge",
    "elicitationId": "mcplab-challenge",
}
_TOOL: Final[dict[str, Any]] = {"name": "word", "description": "Gives a word", "inputSchema": {"type": "object"}}
_TASK: Final[dict[str, Any]] = {"task": {"ttl": 60000}}

QUESTIONS: Final = (
    Want("ping", "ping", {}, ""),
    Want("roots", "roots/list", {}, "roots"),
    Want("sampling", "sampling/createMessage", _SAY, "sampling"),
    Want("sampling-tools", "sampling/createMessage", {**_SAY, "tools": [_TOOL]}, "sampling.tools"),
    Want("sampling-context", "sampling/createMessage", {**_SAY, "includeContext": "thisServer"}, "sampling.context"),
    Want("elicitation", "elicitation/create", _FORM, "elicitation.form"),
    Want("elicitation-url", "elicitation/create", _URL, "elicitation.url"),
    Want("tasks-list", "tasks/list", {}, "tasks.list"),
    Want("sampling-task", "sampling/createMessage", {**_SAY, **_TASK}, "tasks.requests.sampling.createMessage"),
    Want("elicitation-task", "elicitation/create", {**_FORM, **_TASK}, "tasks.requests.elicitation.create"),
)
"""In the order in which they are asked; ``needs``: the capability that it is about."""


def questions(revision: str) -> list[Want]:
    """What a server may ask in a revision; ``needs`` is the path as that revision has it."""
    found = []
    for want in QUESTIONS:
        path = "elicitation" if want.key == "elicitation" and revision < "2025-11-25" else want.needs  # no modes yet
        there = capability(revision, "client", path) is not None if path else era(revision) == "legacy"
        if there:
            found.append(Want(want.key, want.method, fitting(want.params, revision), path))
    return found


def fitting(params: dict[str, Any], revision: str) -> dict[str, Any]:
    """Parameters without the members that a revision does not have."""
    gone = {"mode"} if revision < "2025-11-25" else {"elicitationId"} if era(revision) == "modern" else set()
    return {name: value for name, value in params.items() if name not in gone}


def asked(revision: str, declared: Any, names: Iterator[str]) -> Steps:
    """Ask a legacy peer; ``names`` gives each question its id."""
    patience = PATIENCE
    tasks: list[str] = []

    def ask(method: str, params: dict[str, Any]) -> Steps:
        nonlocal patience
        message = {"jsonrpc": "2.0", "id": next(names), "method": method}
        answer = yield Ask({**message, "params": params} if params else message, patience)
        patience = AFTER if answer is None else patience
        return answer.get("result") if isinstance(answer, dict) else None

    for want in questions(revision):
        result = yield from ask(want.method, want.params)
        task = result.get("task") if isinstance(result, dict) else None
        if want.key == "elicitation-url" and isinstance(result, dict) and result.get("action") == "accept":
            over = {"elicitationId": _URL["elicitationId"]}
            yield Emit({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": over})
        if isinstance(task, dict) and isinstance(task.get("taskId"), str):
            tasks.append(task["taskId"])
    if capability(revision, "client", "tasks") is not None:
        none_made = not tasks and not (isinstance(declared, dict) and isinstance(declared.get("tasks"), dict))
        for name in tasks or (["mcplab-no-task"] if none_made else []):
            yield from ask("tasks/get", {"taskId": name})
            yield from ask("tasks/cancel", {"taskId": name})


def next_question(revision: str, declared: Any, before: Container[str]) -> Want | None:
    """The next input request for a modern client that was asked ``before``; None: that was all."""
    left = [want for want in questions(revision) if want.key not in before]
    undeclared = {want.key for want in left if not standing(revision, "client", want.needs, declared).declared}
    return min(left, key=lambda want: want.key in undeclared, default=None)
