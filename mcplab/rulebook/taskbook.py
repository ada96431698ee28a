"""Tasks as a capture tells of them: of 2025-11-25 (basic/utilities/tasks), and of the extension (SEP-2663).

The engine feeds it after the checks have looked at a message, so a check sees what was known before that message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcplab import jsontext
from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact

TERMINAL: Final = ("completed", "failed", "cancelled")
STATUSES: Final = ("working", "input_required", *TERMINAL)
_LIMIT: Final = 2000
"""Tasks that are remembered of one party, and keys of one task."""


class Task:
    """What was seen of one task.

    Attributes:
        created: seq of the result that made it; None where it was made before the capture, or is another's.
        made: that result's message. life: its ``ttl`` in milliseconds, None for ever, ABSENT where none was said.
        stopped: a ``tasks/cancel`` named it. updated: seq of the latest ``tasks/update``.
        method, token: of the request that it was made for.
        since: its ``createdAt``.
        status, told: the latest status, and seq of the message that told it.
        ended: seq of the first message that told a terminal status.
        interval: the latest polling interval in milliseconds.
        polled: seq of the latest ``tasks/get``. got: seq of its latest result.
        fetched: seq of the latest ``tasks/result`` request.
        delivered: (seq, part) of the result of ``tasks/result``. failed: whether that had ``isError``.
        noticed: seq of its latest notification.
        waits: seq of the poll that told ``input_required`` since which nothing else was told.
        asked: key -> text of the input request that it stood for. answered, gone: keys that were answered; and that a
            later poll did not show any more.
    """

    __slots__ = (
        "answered", "asked", "created", "delivered", "ended", "failed", "fetched", "gone", "got", "ident",
        "interval", "life", "made", "method", "noticed", "polled", "polled_fact", "polls", "since", "status",
        "stopped", "token", "told", "updated", "waits",
    )  # fmt: skip

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.created: int | None = None
        self.made: Fact | None = None
        self.life: Any = ABSENT
        self.stopped = False
        self.updated = -1
        self.method: str | None = None
        self.token: Any = None
        self.since: Any = None
        self.status: Any = None
        self.told = -1
        self.ended: int | None = None
        self.interval: float | None = None
        self.polled: int | None = None
        self.polled_fact: Fact | None = None
        self.polls = 0  # since it waits for input
        self.got: int | None = None
        self.fetched: int | None = None
        self.delivered: tuple[int, int | None] | None = None
        self.failed = False
        self.noticed: int | None = None
        self.waits: int | None = None
        self.asked: dict[str, str] = {}
        self.answered: set[str] = set()
        self.gone: set[str] = set()


class Book:
    """The tasks that one party holds. ``whole`` is False once one had to be forgotten."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.whole = True

    def get(self, ident: Any) -> Task | None:
        return self.tasks.get(ident) if isinstance(ident, str) else None

    def put(self, task: Task) -> Task:
        self.tasks[task.ident] = task
        if len(self.tasks) > _LIMIT:
            del self.tasks[next(iter(self.tasks))]
            self.whole = False
        return task


def book(m: Fact, holder: str) -> Book:
    """The tasks of a party: of this session; from 2026-07-28, which has none, of this instance."""
    memory = m.session.instance.memory if m.era == "modern" else m.session.memory
    name = f"tasks {holder}"
    found = memory.get(name)
    if found is None:
        found = memory[name] = Book()
    return found


def target(m: Fact) -> Task | None:
    """The task that a ``tasks/*`` request names, or whose answer this is; None where nothing was seen of it."""
    asked = m if m.kind == "request" else m.request
    if asked is None:
        return None
    return book(m, asked.receiver).get(asked.params.get("taskId"))


def creates(m: Fact) -> Mapping[str, Any] | None:
    """The task object of a result that makes a task: ``result.task``, in the extension the result itself."""
    if m.kind != "result" or m.request is None:
        return None
    result = m.result
    if m.era == "modern":
        return result if result.get("resultType") == "task" else None
    made = result.get("task")
    return made if isinstance(made, dict) and isinstance(m.request.params.get("task"), dict) else None


def stated(m: Fact) -> Iterator[Mapping[str, Any]]:
    """The task objects that a message states."""
    method = m.method or ""
    if m.kind == "notification":
        if method in ("notifications/tasks/status", "notifications/tasks"):
            yield m.params
        return
    if m.kind != "result" or m.again:
        return
    if method == "tasks/get" or (method == "tasks/cancel" and m.era != "modern"):
        yield m.result
    elif method == "tasks/list":
        listed = m.result.get("tasks")
        yield from (one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict))
    else:
        made = creates(m)
        if made is not None:
            yield made


def learn(m: Fact) -> None:
    """Take a message in."""
    method = m.method or ""
    if m.kind == "request":
        _asked(m, method)
        return
    if m.kind == "result" and (m.again or (not method.startswith("tasks/") and creates(m) is None)):
        return
    tasks = book(m, m.sender or "server")
    for one in stated(m):
        ident = one.get("taskId")
        if isinstance(ident, str):
            task = tasks.get(ident) or tasks.put(Task(ident))
            if creates(m) is one and m.request is not None:
                task.created, task.made = m.seq, m
                task.life = one.get("ttlMs" if m.era == "modern" else "ttl", ABSENT)
                task.method = m.request.method
                task.token = m.request.meta.get("progressToken")
            _tell(task, one, m, method)
    if method == "tasks/result" and m.kind == "result":
        task = target(m)
        if task is not None:
            task.delivered = m.place
            task.failed = m.result.get("isError") is True


def _asked(m: Fact, method: str) -> None:
    task = target(m)
    if task is None:
        return
    if method == "tasks/get":
        task.polled, task.polled_fact = m.seq, m
        task.polls += task.waits is not None
    elif method == "tasks/result":
        task.fetched = m.seq
    elif method == "tasks/cancel":
        task.stopped = True
    elif method == "tasks/update":
        task.updated = m.seq
        given = m.params.get("inputResponses")
        if isinstance(given, dict) and len(task.answered) < _LIMIT:
            task.answered.update(given)


def _tell(task: Task, one: Mapping[str, Any], m: Fact, method: str) -> None:
    """Take one statement about a task in."""
    task.since = one.get("createdAt", task.since)
    task.status, task.told = one.get("status"), m.seq
    interval = one.get("pollIntervalMs" if m.era == "modern" else "pollInterval")
    if isinstance(interval, (int, float)) and not isinstance(interval, bool):
        task.interval = interval
    if task.status in TERMINAL and task.ended is None:
        task.ended = m.seq
    if m.kind == "notification":
        task.noticed = m.seq
    elif method == "tasks/get":
        task.got = m.seq
    if task.status != "input_required":
        task.waits, task.polls = None, 0
    elif task.waits is None:
        task.waits = m.seq
    if m.era == "modern" and (method == "tasks/get" or m.kind == "notification"):
        asked = one.get("inputRequests")
        shown = asked if isinstance(asked, dict) else {}
        task.gone.update(key for key in task.answered if key in task.asked and key not in shown)
        if len(task.asked) < _LIMIT:
            for key, entry in shown.items():
                task.asked.setdefault(key, jsontext.dumps(entry))
