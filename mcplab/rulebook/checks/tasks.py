"""Tasks of 2025-11-25: how they are made, what is said of them (basic/utilities/tasks)."""

from __future__ import annotations

import re
from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.rulebook.checks import lists
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.taskbook import STATUSES, Task, book, stated, target

RELATED: Final = "io.modelcontextprotocol/related-task"
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)?")
_PATH: Final = {
    "tools/call": "tasks.requests.tools.call",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
    "elicitation/create": "tasks.requests.elicitation.create",
}


def related(meta: Any) -> Any:
    """The task id of the related-task metadata; ABSENT where there is none."""
    value = meta.get(RELATED) if isinstance(meta, dict) else None
    return value.get("taskId", ABSENT) if isinstance(value, dict) else ABSENT


def _augmented(m: Fact | None) -> bool:
    return m is not None and isinstance(m.params.get("task"), dict)


def _declared(m: Fact, party: str, path: str) -> bool | None:
    return m.session.declared(m.revision or "", party, path).declared


def support(m: Fact, asked: Fact) -> str | None:
    """``execution.taskSupport`` of the tool that a call names, as the list said that stood before it; None: unknown."""
    listing = lists.latest(m, "tools/list")
    if listing is None or not listing.fresh or listing.at > asked.seq:
        return None
    tool = listing.named(asked.params.get("name"))
    if tool is None:
        return None
    execution = tool.get("execution")
    value = execution.get("taskSupport", "forbidden") if isinstance(execution, dict) else "forbidden"
    return value if isinstance(value, str) else None


def _refused_by_http(m: Fact) -> bool:
    return m.post is not None and m.post.exchange.status in (401, 403, 404, 429)


# Making tasks -------------------------------------------------------------------------------------------------


def create_result(m: Fact) -> Outcome:
    if m.kind == "notification" or m.method == "tools/list":
        lists.page(m)
        return None
    asked = m.request
    if asked is None or m.again or not _augmented(asked):
        return None
    declared = _declared(m, m.sender or "", _PATH[asked.method or ""])
    if declared is False:
        return None  # tasks.undeclared-ignored
    if asked.method == "tools/call":
        supported = support(m, asked)
        if supported == "forbidden":
            return None  # tasks.forbidden-refused
        if supported is None:
            return UNKNOWN
    if isinstance(m.result.get("task"), dict):
        return KEPT
    if declared is None:
        return UNKNOWN
    return broken("a request that asked for a task was answered without one", related=(asked.seq,))


def undeclared_ignored(m: Fact) -> Outcome:
    """An error may have another cause than the task that was asked for: only a task that is made is judged."""
    asked = m.request
    if asked is None or m.again or not _augmented(asked):
        return None
    path = _PATH[asked.method or ""]
    declared = _declared(m, m.sender or "", path)
    if declared is not False:
        return UNKNOWN if declared is None else None
    if isinstance(m.result.get("task"), dict):
        return broken(f"a task was made although {path} is not declared", related=(asked.seq,))
    return KEPT


def not_unsolicited(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.again or _augmented(asked):
        return None
    made = m.result.get("task")
    if isinstance(made, dict) and "taskId" in made and "status" in made:
        return broken(f"{asked.method} did not ask for a task", related=(asked.seq,))
    return KEPT


def not_by_extension(m: Fact) -> Outcome:
    """The extension's shape: the task lies flat in the result, and resultType says so."""
    asked = m.request
    if asked is None or m.again or _augmented(asked):
        return None
    result = m.result
    if result.get("resultType") == "task" or ("taskId" in result and "status" in result):
        return broken("a task of the extension in a session of 2025-11-25", related=(asked.seq,))
    return KEPT


def id_string(m: Fact) -> Outcome:
    said: Outcome = None
    for one in stated(m):
        ident = one.get("taskId", ABSENT)
        if not isinstance(ident, str):
            return broken("taskId is absent" if ident is ABSENT else "taskId is not a string")
        said = KEPT
    return said


def id_unique(m: Fact) -> Outcome:
    asked = m.request
    made = m.result.get("task")
    if asked is None or m.again or not _augmented(asked) or not isinstance(made, dict):
        return None
    known = book(m, m.sender or "")
    task = known.get(made.get("taskId"))
    if task is not None and task.created is not None:
        return broken(f"the task id {task.ident!r} was given before", related=(task.created,))
    return KEPT if m.session.whole and known.whole else UNKNOWN


def initial_status(m: Fact) -> Outcome:
    made = m.result.get("task")
    if m.again or not _augmented(m.request) or not isinstance(made, dict):
        return None
    status = made.get("status")
    return KEPT if status == "working" else broken(f"a new task is {status!r}")


# What is said of a task -----------------------------------------------------------------------------------------


def _later(m: Fact, task: Task) -> bool:
    """Is what this message tells certain to be newer than the end of the task? An answer that was on its way is not."""
    if m.kind == "notification":
        return m.post is None
    return m.request is not None and task.ended is not None and m.request.seq > task.ended


def transitions(m: Fact) -> Outcome:
    said: Outcome = None
    for one in stated(m):
        status = one.get("status", ABSENT)
        if status not in STATUSES:
            return broken("status is absent" if status is ABSENT else f"status is {status!r}")
        task = book(m, m.sender or "").get(one.get("taskId"))
        if task is None or task.ended is None or task.status == status:
            said = said or (KEPT if task is not None else None)
        elif _later(m, task):
            return broken(f"{status} after {task.status}", related=(task.ended,))
        else:
            said = UNKNOWN
    return said


def timestamps(m: Fact) -> Outcome:
    said: Outcome = None
    for one in stated(m):
        for name in ("createdAt", "lastUpdatedAt"):
            moment = one.get(name, ABSENT)
            if moment is ABSENT:
                return broken(f"{name} is absent")
            if not isinstance(moment, str) or not _MOMENT.fullmatch(moment):
                return broken(f"{name} is no ISO 8601 timestamp: {moment!r:.60}")
        task = book(m, m.sender or "").get(one.get("taskId"))
        if task is not None and isinstance(task.since, str) and task.since != one["createdAt"]:
            return broken(f"createdAt was {task.since}, is {one['createdAt']}", related=(task.told,))
        said = KEPT
    return said


def ttl_present(m: Fact) -> Outcome:
    value = m.result.get("ttl", ABSENT)
    if value is ABSENT:
        return broken("ttl is absent")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return KEPT
    return broken("ttl is neither a number nor null")


def failed_message(m: Fact) -> Outcome:
    if m.result.get("status") != "failed":
        return None
    return KEPT if isinstance(m.result.get("statusMessage"), str) else broken("failed, and no statusMessage")


def get_no_stream(m: Fact) -> Outcome:
    if m.post is None:
        return None
    if m.post.exchange.content_type is None:
        return UNKNOWN
    return broken("tasks/get was answered by an event stream") if m.post.exchange.streams else KEPT


# Results ----------------------------------------------------------------------------------------------------


def result_blocks(m: Fact) -> Outcome:
    """A result of tasks/result is wrong if the task turns out to go on: a status that was asked for after it."""
    if m.method == "tasks/result":
        task = target(m)
        if task is None or m.again:
            return None
        return KEPT if task.ended is not None else None
    for one in stated(m):
        task = book(m, m.sender or "").get(one.get("taskId"))
        if task is None or task.delivered is None or one.get("status") not in ("working", "input_required"):
            continue
        if m.kind == "notification" or m.request is None or m.request.seq < task.delivered[0]:
            continue
        at, task.delivered = task.delivered, None
        return broken(f"its result was given, and it is {one['status']} later", at=at, related=(m.seq,))
    return None


_REQUIRED: Final = {
    "tools/call": ("content",),
    "sampling/createMessage": ("role", "content", "model"),
    "elicitation/create": ("action",),
}


def result_is_final(m: Fact) -> Outcome:
    result = m.result
    if m.again or m.request is None:
        return None
    if isinstance(result.get("taskId"), str) and result.get("status") in STATUSES:
        return broken("a task object in place of the result")
    task = target(m)
    if task is None or task.method is None:
        return UNKNOWN
    missing = [name for name in _REQUIRED.get(task.method, ()) if name not in result]
    return broken(f"no result of {task.method}: no {', '.join(missing)}") if missing else KEPT


def result_related_task(m: Fact) -> Outcome:
    if m.again or m.request is None:
        return None
    wanted = m.request.params.get("taskId")
    found = related(m.result.get("_meta"))
    if found is ABSENT:
        return broken("no related-task in the result's _meta")
    return KEPT if found == wanted else broken(f"related-task is {found!r}, asked for was {wanted!r}")


def failed_for_tool_error(m: Fact) -> Outcome:
    task = target(m)
    if m.again or m.result.get("isError") is not True or task is None or task.ended is None:
        return None
    if task.status == "failed":
        return KEPT
    return (
        broken("the tool failed, the task is completed", related=(task.ended,)) if task.status == "completed" else None
    )


# Refusals -----------------------------------------------------------------------------------------------------


def unknown_id_error(m: Fact) -> Outcome:
    """A result shows that the receiver knows the task, from before perhaps: only another error is judged."""
    asked = m.request
    if asked is None or m.again or m.kind != "error" or _refused_by_http(m):
        return None
    known = book(m, m.sender or "")
    if known.get(asked.params.get("taskId")) is not None:
        return None
    if m.code == INVALID_PARAMS:
        return KEPT if m.session.whole and known.whole else UNKNOWN
    if _declared(m, m.sender or "", "tasks") is not True or (
        m.method == "tasks/cancel" and _declared(m, m.sender or "", "tasks.cancel") is not True
    ):
        return None
    if not m.session.whole or not known.whole:
        return UNKNOWN
    return broken(f"a task that was never made was answered with {m.code}", related=(asked.seq,))


def cancel_terminal_error(m: Fact) -> Outcome:
    asked, task = m.request, target(m)
    if asked is None or m.again or task is None or task.ended is None or asked.seq < task.ended or _refused_by_http(m):
        return None
    if m.kind == "error":
        if m.code == INVALID_PARAMS:
            return KEPT
        return broken(f"the task had ended, its cancellation was answered with {m.code}", related=(task.ended,))
    return broken("the task had ended, its cancellation was accepted", related=(task.ended,))


def cancel_status(m: Fact) -> Outcome:
    """The cancellation of a task that had ended is tasks.cancel-terminal-error's matter."""
    if m.again:
        return None
    task, asked = target(m), m.request
    if task is not None and task.ended is not None and asked is not None and asked.seq > task.ended:
        return None
    status = m.result.get("status", ABSENT)
    if status == "cancelled":
        return KEPT
    return broken("no status in the answer" if status is ABSENT else f"the status in the answer is {status!r}")


def required_refused(m: Fact) -> Outcome:
    return _refused(m, "required", augmented=False)


def forbidden_refused(m: Fact) -> Outcome:
    return _refused(m, "forbidden", augmented=True)


def _refused(m: Fact, wanted: str, *, augmented: bool) -> Outcome:
    """A call that does not fit what the list says of the tool is answered with -32601."""
    if m.kind == "notification" or m.method == "tools/list":
        lists.page(m)
        return None
    asked = m.request
    if asked is None or m.again or _augmented(asked) is not augmented or _refused_by_http(m):
        return None
    declared = _declared(m, "server", _PATH["tools/call"])
    supported = support(m, asked) if declared is not False else ABSENT
    if supported is None:
        return UNKNOWN if m.kind == "error" and m.code == METHOD_NOT_FOUND else None
    if supported != wanted:
        return None
    if declared is None:
        return UNKNOWN
    if m.kind == "error" and m.code == METHOD_NOT_FOUND:
        return KEPT
    how = "was served" if m.kind == "result" else f"was refused with {m.code}"
    return broken(f"a call {'' if augmented else 'not '}as a task {how}", related=(asked.seq,))


def support_forbidden(m: Fact) -> Outcome:
    if m.kind != "request":
        lists.page(m)
        return None
    declared = _declared(m, "server", _PATH["tools/call"])
    if not _augmented(m) or declared is False:
        return None  # gate.task-tools-call
    said = support(m, m)
    if said is None or declared is None:
        return UNKNOWN
    return broken(f"taskSupport of {m.params.get('name')!r} is {said}") if said == "forbidden" else KEPT


def support_required(m: Fact) -> Outcome:
    if m.kind != "request":
        lists.page(m)
        return None
    declared = _declared(m, "server", _PATH["tools/call"])
    supported = support(m, m) if declared is not False else ABSENT
    if supported is None:
        return UNKNOWN if declared else None
    if supported != "required":
        return None
    if declared is None:
        return UNKNOWN
    return KEPT if _augmented(m) else broken(f"taskSupport of {m.params.get('name')!r} is required")
