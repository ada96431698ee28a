"""The tasks extension of 2026-07-28, ``io.modelcontextprotocol/tasks`` (seps/2663-tasks-extension)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import gating, jsontext
from mcplab.model import ABSENT
from mcplab.rulebook.checks.mcp_headers import NAME, NOT_DECODED, decoded
from mcplab.rulebook.checks.recall import stamp
from mcplab.rulebook.checks.task_polls import PATIENCE
from mcplab.rulebook.facts import LISTEN, Fact, listen_of
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.taskbook import STATUSES, Task, book, stated, target

EXTENSION: Final = "io.modelcontextprotocol/tasks"
PATH: Final = f'extensions["{EXTENSION}"]'
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
MISSING_CAPABILITY: Final = -32021
_EARLIER_FAULTS: Final = (-32700, -32600, -32020, -32022)
_METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")


def _declared(m: Fact, party: str) -> bool | None:
    declared = m.client_capabilities if party == "client" else m.server_capabilities
    return gating.standing(m.revision or "", party, PATH, declared).declared


def _looks(m: Fact) -> bool:
    """Has the result the members of a task?"""
    return "taskId" in m.result and "status" in m.result


def _makes(m: Fact) -> bool:
    return m.result.get("resultType") == "task" or (m.method == "tools/call" and _looks(m))


def _refused_by_http(m: Fact) -> bool:
    return m.post is not None and m.post.exchange.status in (401, 403, 429)


# Making tasks -------------------------------------------------------------------------------------------------


def create_declared(m: Fact) -> Outcome:
    if not _makes(m) or m.request is None:
        return None
    declared = _declared(m, "client")
    if declared is None:
        return UNKNOWN
    return KEPT if declared else broken(f"the request does not declare {EXTENSION}", related=(m.request.seq,))


def result_type(m: Fact) -> Outcome:
    kind = m.result.get("resultType", ABSENT)
    if m.method in _METHODS:
        return broken(f"{m.method} was answered with resultType task") if kind == "task" else None
    if kind == "task":
        return KEPT if isinstance(m.result.get("taskId"), str) else broken("resultType task, and no taskId")
    if m.method == "tools/call" and _looks(m):
        return broken("a task whose resultType is " + ("absent" if kind is ABSENT else repr(kind)))
    return None


def supported_methods(m: Fact) -> Outcome:
    if m.result.get("resultType") != "task" or m.method in _METHODS or m.method is None:
        return None
    return KEPT if m.method == "tools/call" else broken(f"{m.method} was answered with a task")


# Task objects -------------------------------------------------------------------------------------------------


def fields(m: Fact) -> Outcome:
    if m.kind == "result" and m.result.get("resultType") == "task" and isinstance(m.result.get("task"), dict):
        return broken("the task lies under task, not in the result")
    said: Outcome = None
    for one in stated(m):
        wrong = [name for name in ("taskId", "createdAt", "lastUpdatedAt") if not isinstance(one.get(name), str)]
        if one.get("status") not in STATUSES:
            wrong.append("status")
        life = one.get("ttlMs", ABSENT)
        if life is not None and (isinstance(life, bool) or not isinstance(life, (int, float))):
            wrong.append("ttlMs")
        if wrong:
            return broken(f"missing or of the wrong type: {', '.join(wrong)}")
        old = [name for name in ("ttl", "pollInterval") if name in one]
        if old:
            return broken(f"the names of 2025-11-25: {', '.join(old)}")
        said = KEPT
    return said


_PAYLOAD: Final = {"completed": "result", "failed": "error", "input_required": "inputRequests"}


def status_payload(m: Fact) -> Outcome:
    """The seed that makes a task carries none."""
    said: Outcome = None
    for one in stated(m) if m.method != "tools/call" else ():
        status = one.get("status")
        name = _PAYLOAD.get(status) if isinstance(status, str) else None
        if name is None:
            continue
        if not isinstance(one.get(name), dict):
            return broken(f"{status}, and no {name}")
        said = KEPT
    return said


def failed_only_jsonrpc(m: Fact) -> Outcome:
    said: Outcome = None
    for one in stated(m):
        if one.get("status") != "failed":
            continue
        result, error = one.get("result"), one.get("error")
        if isinstance(result, dict) and result.get("isError") is True:
            return broken("failed for a tool's own error")
        if isinstance(error, dict):
            code = error.get("code")
            if isinstance(code, bool) or not isinstance(code, int) or not isinstance(error.get("message"), str):
                return broken("failed, and its error is none of JSON-RPC")
            said = KEPT
    return said


def _newer(m: Fact, than: int) -> bool:
    """Was this asked for after that was seen? What was under way together may come in any order."""
    return m.post is None if m.kind == "notification" else m.request is not None and m.request.seq > than


def terminal_final(m: Fact) -> Outcome:
    said: Outcome = None
    for one in stated(m):
        task = book(m, "server").get(one.get("taskId"))
        if task is None or task.ended is None:
            continue
        if task.status == one.get("status"):
            said = said or KEPT
        elif _newer(m, task.ended):
            return broken(f"{one.get('status')} after {task.status}", related=(task.ended,))
        else:
            said = UNKNOWN
    return said


def input_key_unique(m: Fact) -> Outcome:
    """Answers are taken in later than they are acknowledged: a key is used again only if it was away in between."""
    said: Outcome = None
    for one in stated(m):
        task, asked = book(m, "server").get(one.get("taskId")), one.get("inputRequests")
        if task is None or not isinstance(asked, dict):
            continue
        for name, entry in asked.items():
            before = task.asked.get(name)
            if before is None:
                continue
            if name not in task.gone and before == jsontext.dumps(entry):
                said = said or KEPT
            elif not _newer(m, task.told):
                said = UNKNOWN
            elif name in task.gone:
                return broken(f"{name!r} was answered, away, and is asked for again", related=(task.told,))
            else:
                return broken(f"{name!r} stands for another request now", related=(task.told,))
    return said


# Polls and their answers ----------------------------------------------------------------------------------------


def durable(m: Fact) -> Outcome:
    """The first poll of a task that was just made."""
    asked, task = m.request, target(m)
    if asked is None or m.again or task is None or task.created is None or asked.seq < task.created:
        return None
    if task.got is not None or task.stopped or task.noticed is not None:
        return None
    if m.kind == "result":
        return KEPT
    if m.code != INVALID_PARAMS:
        return None
    if task.life is not None:
        made, now = stamp(task.made) if task.made is not None else None, stamp(m)
        if not isinstance(task.life, (int, float)) or made is None or now is None:
            return UNKNOWN
        if (now - made) * 1000 >= task.life:
            return None
    return broken(f"the task {task.ident!r} was made, and is not found", related=(task.created,))


def ack(m: Fact) -> Outcome:
    if m.again or _declared(m, "client") is False:
        return None  # tasks-ext.methods-need-declaration
    kind = m.result.get("resultType", ABSENT)
    more = [name for name in m.result if name not in ("resultType", "_meta")]
    if more:
        return broken(f"members {', '.join(more[:5])}")
    if kind is ABSENT:
        return None  # result-type.present
    return KEPT if kind == "complete" else broken(f"resultType is {kind!r}")


def unknown_id(m: Fact) -> Outcome:
    """A client may have kept the id from an earlier run: a result, or a fault of the server, says nothing."""
    asked = m.request
    if asked is None or m.again or _declared(m, "client") is not True or _refused_by_http(m):
        return None
    held = book(m, "server")
    if held.get(asked.params.get("taskId")) is not None or m.kind != "error":
        return None
    if m.code in (METHOD_NOT_FOUND, MISSING_CAPABILITY, *_EARLIER_FAULTS):
        return None
    if not m.session.opened or not held.whole:
        return UNKNOWN
    return KEPT if m.code == INVALID_PARAMS else broken(f"answered with {m.code}", related=(asked.seq,))


def methods_need_declaration(m: Fact) -> Outcome:
    """Of a server that knows the extension: any other may say that it has no such method. An id of a task that was
    made in a session of 2025-11-25 is served on."""
    if m.kind == "notification":
        listen = listen_of(m)
        honoured = m.params.get("notifications")
        if listen is None or not isinstance(honoured, dict) or "taskIds" not in honoured:
            return None
        asked = listen.request
        declared = gating.standing(m.revision or "", "client", PATH, asked.client_capabilities).declared
        return broken("taskIds were accepted without the declaration") if declared is False else None
    asked = m.request
    if asked is None or m.again or _declared(m, "client") is not False or _refused_by_http(m) or _legacy(m, asked):
        return None
    if m.method == LISTEN and "taskIds" not in _filter(asked):
        return None
    if m.kind == "result":
        return broken("served without the declaration", related=(asked.seq,)) if m.method != LISTEN else None
    if m.code == MISSING_CAPABILITY:
        return KEPT
    if m.code in _EARLIER_FAULTS:
        return None
    if _declared(m, "server") is not True:
        return None if m.code == METHOD_NOT_FOUND else UNKNOWN
    return broken(f"answered with {m.code}", related=(asked.seq,))


def _filter(asked: Fact) -> Mapping[str, Any]:
    wanted = asked.params.get("notifications")
    return wanted if isinstance(wanted, dict) else {}


def _legacy(m: Fact, asked: Fact) -> bool:
    """Was the task made in a legacy session of this instance?"""
    ident = asked.params.get("taskId")
    for session in m.session.instance.sessions.values():
        held = session.memory.get("tasks server")
        if held is not None and held.get(ident) is not None:
            return True
    return False


def mcp_name(m: Fact) -> Outcome:
    source = m.params.get("taskId")
    if m.post is None or m.part is not None or not isinstance(source, str):
        return None
    headers = m.post.headers
    if headers is None:
        return UNKNOWN
    if NAME not in headers:
        return broken("no Mcp-Name")
    found = decoded(headers[NAME])
    if found == source:
        return KEPT
    return broken("Mcp-Name cannot be decoded" if found is NOT_DECODED else f"Mcp-Name is {found!r}, taskId {source!r}")


def legacy_capability(m: Fact) -> Outcome:
    declared = m.result.get("capabilities")
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    if not isinstance(extensions, dict) or EXTENSION not in extensions or not isinstance(declared, dict):
        return None
    return broken("tasks beside the extension") if "tasks" in declared else KEPT


def removed_methods(m: Fact) -> Outcome:
    asked = m.request
    if asked is None or m.again or _refused_by_http(m):
        return None
    if m.kind == "result":
        return broken(f"{m.method} was served", related=(asked.seq,)) if "resultType" in m.result else UNKNOWN
    if m.code == METHOD_NOT_FOUND:
        return KEPT
    if m.code in (MISSING_CAPABILITY, *_EARLIER_FAULTS):
        return None
    known = m.session.instance.modern
    return broken(f"{m.method} was answered with {m.code}", related=(asked.seq,)) if known else UNKNOWN


# Notifications --------------------------------------------------------------------------------------------------


def no_progress_on_stream(m: Fact) -> Outcome:
    listen = listen_of(m)
    if listen is None or "taskIds" not in listen.asked:
        return None
    if m.method == "notifications/tasks":
        return KEPT
    return broken(f"{m.method} on a stream for tasks", related=(listen.request.seq,))


def status_subscribed(m: Fact) -> Outcome:
    listen = listen_of(m)
    if listen is None:
        asked = m.post.request if m.post is not None else None
        if (m.post is not None and asked is None) or (m.post is None and not m.session.opened):
            return UNKNOWN
        return broken("the status of a task, on no subscription")
    if listen.acknowledged is None:
        return UNKNOWN
    honoured = listen.acknowledged.get("taskIds")
    if isinstance(honoured, list) and m.params.get("taskId") in honoured:
        return KEPT
    return broken(f"{m.params.get('taskId')!r} was not acknowledged", related=(listen.request.seq,))


def poll_interval(m: Fact) -> Outcome:
    task = target(m)
    if task is None or task.polled_fact is None or task.interval is None or _nudged(task):
        return None
    before, now = stamp(task.polled_fact), stamp(m)
    if before is None or now is None:
        return UNKNOWN
    if (now - before) * 1000 >= task.interval * PATIENCE:
        return KEPT
    detail = f"polled after {now - before:.2f} s, the interval is {task.interval / 1000:g} s"
    return broken(detail, related=(task.polled_fact.seq,))


def _nudged(task: Task) -> bool:
    """Had the client a reason to poll at once: a notification, an answer that it gave?"""
    polled = task.polled if task.polled is not None else -1
    return (task.noticed is not None and task.noticed > polled) or task.updated > polled
