"""Tasks of 2025-11-25: polling, lists, and the metadata that ties messages to a task (basic/utilities/tasks)."""

from __future__ import annotations

from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import stamp
from mcplab.rulebook.checks.tasks import related
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Broken, Outcome, broken
from mcplab.rulebook.past import key
from mcplab.rulebook.taskbook import TERMINAL, Task, book, target

_NEEDED: Final = ("elicitation/create", "sampling/createMessage")
PATIENCE: Final = 0.9
"""A poll may come a tenth of the interval early: clocks differ. Ours."""


def related_redundant(m: Fact) -> Outcome:
    """tasks/result: not in the request, but in the result."""
    if m.kind == "result":
        if m.again or m.method == "tasks/result":
            return None
        meta = m.result.get("_meta")
    else:
        meta = m.params.get("_meta")
    return KEPT if related(meta) is ABSENT else broken("related-task beside the task id")


def related_on_messages(m: Fact) -> Outcome:
    """A request is the task's for certain where the other party waits for nothing but that task's result."""
    if m.kind == "result":
        asked = m.request
        wanted = related(asked.params.get("_meta")) if asked is not None else ABSENT
        if m.again or wanted is ABSENT:
            return None
        found = related(m.result.get("_meta"))
        if found == wanted:
            return KEPT
        return broken(f"the answer to a request of the task {wanted!r} names {_named(found)}")
    found = related(m.params.get("_meta"))
    waiting = [asked for asked in m.session.open.values() if asked.sender == m.receiver]
    if len(waiting) != 1 or waiting[0].method != "tasks/result":
        return KEPT if found is not ABSENT else None
    task = target(waiting[0])
    if task is None or task.status in TERMINAL or not m.session.opened:
        return UNKNOWN if found is ABSENT else KEPT
    if found is ABSENT and task.status != "input_required":
        return UNKNOWN
    if found == task.ident:
        return KEPT
    return broken(f"{m.method} for the task {task.ident!r} names {_named(found)}", related=(waiting[0].seq,))


def _named(found: Any) -> str:
    return "no task" if found is ABSENT else f"the task {found!r}"


def progress_token(m: Fact) -> Outcome:
    ident = related(m.params.get("_meta"))
    task = book(m, m.sender or "").get(ident)
    if task is None or task.created is None:
        return None if ident is ABSENT else UNKNOWN
    token = m.params.get("progressToken", ABSENT)
    if key("", token) == key("", task.token):
        return KEPT
    return broken(f"the token is {token!r}, that of the task's request {task.token!r}", related=(task.created,))


# Polling ------------------------------------------------------------------------------------------------------


def poll_interval(m: Fact) -> Outcome:
    """Between two polls; one right after a notification has its reason."""
    task = target(m)
    if task is None or task.polled_fact is None or task.interval is None:
        return None
    if task.noticed is not None and task.noticed > task.polled_fact.seq:
        return None
    before, now = stamp(task.polled_fact), stamp(m)
    if before is None or now is None:
        return UNKNOWN
    if (now - before) * 1000 >= task.interval * PATIENCE:
        return KEPT
    detail = f"polled after {now - before:.2f} s, the interval is {task.interval / 1000:g} s"
    return broken(detail, related=(task.polled_fact.seq,))


def _tasks(m: Fact) -> list[tuple[str, Task]]:
    """(who polls, task) of the session."""
    return [
        ("server" if holder == "client" else "client", task)
        for holder in ("client", "server")
        for task in book(m, holder).tasks.values()
    ]


def _pending(m: Fact, task: Task) -> bool:
    return any(
        asked.method == "tasks/result" and asked.params.get("taskId") == task.ident for asked in m.session.open.values()
    )


def poll_to_terminal(m: Fact) -> Outcome:
    return [
        broken(
            "the task was left while it was working", at=(task.told, None), related=(m.seq,), absence=True, party=who
        )
        for who, task in _tasks(m)
        if task.status == "working" and task.created is not None and not _pending(m, task)
    ]


def input_required_fetch(m: Fact) -> Outcome:
    """Proven where the requestor saw the status, polled again, and never asked for the result until the close."""
    if m.kind == "request":
        task = target(m)
        return KEPT if task is not None and task.waits is not None else None
    said: list[Broken | str] = []
    for who, task in _tasks(m):
        if task.waits is None or (task.fetched is not None and task.fetched > task.waits) or _pending(m, task):
            continue
        if m.kind == "end":
            if not m.session.closed:
                said.append(UNKNOWN)
        elif task.polls > 0:
            detail = f"the task {task.ident!r} waits for input, it was polled on and its result never asked for"
            said.append(broken(detail, at=(task.waits, None), related=(m.seq,), absence=True, party=who))
    return said


def list_complete(m: Fact) -> Outcome:
    """A task that a poll found before a whole list without it, and that one found after it."""
    memory: dict[str, Any] = m.session.memory.setdefault(f"tasks.list {m.sender}", {"pages": {}, "lacks": {}})
    asked = m.request
    if asked is None or m.again:
        return None
    if m.method == "tasks/get":
        ident = asked.params.get("taskId")
        at = memory["lacks"].pop(ident, None) if isinstance(ident, str) else None
        if at is None or asked.seq < at[0]:
            return None
        return broken(f"the list lacks {ident!r}, which tasks/get finds", at=at, related=(m.seq,))
    listed = m.result.get("tasks")
    if not isinstance(listed, list):
        return None
    here = {one.get("taskId") for one in listed if isinstance(one, dict) and isinstance(one.get("taskId"), str)}
    cursor, following = asked.params.get("cursor", ABSENT), m.result.get("nextCursor", ABSENT)
    so_far, since = (set(), asked.seq) if cursor is ABSENT else memory["pages"].pop(str(cursor), (None, 0))
    if so_far is None:
        return UNKNOWN
    so_far = so_far | here
    if following is not ABSENT:
        memory["pages"] = {str(following): (so_far, since)}
        return None
    found = [task for task in book(m, m.sender or "").tasks.values() if task.got is not None and task.got < since]
    memory["lacks"] = {task.ident: m.place for task in found if task.ident not in so_far}
    return KEPT if found and not memory["lacks"] else None
