"""JSON-RPC as each revision takes it: ids, shapes, answers, notifications, batches (basic/index, basic/messages)."""

from __future__ import annotations

import json
from typing import Any, Final

from mcplab import channels, spec
from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import Recent
from mcplab.rulebook.facts import Fact, Ids
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

NOTIFICATION: Final = "notifications/"
_DIRECTION: Final = {"client": "c2s", "server": "s2c"}


def version_member(m: Fact) -> Outcome:
    if not isinstance(m.body, dict):
        return None
    if m.body.get("jsonrpc") == "2.0":
        return KEPT
    found = m.body.get("jsonrpc", ABSENT)
    return broken("jsonrpc is absent" if found is ABSENT else f"jsonrpc is {_short(found)}")


def message_shape(m: Fact) -> Outcome:
    body = m.body
    if not isinstance(body, dict):
        return broken("a JSON value that is not an object") if body is not None and body != [] else None
    if "method" in body:
        return broken("method together with result or error") if "result" in body or "error" in body else KEPT
    if "result" not in body and "error" not in body:
        return broken("none of method, result and error")
    return KEPT


def method_string(m: Fact) -> Outcome:
    if not isinstance(m.body, dict) or "method" not in m.body:
        return None
    name = m.body["method"]
    if not isinstance(name, str):
        return broken(f"method is {_short(name)}")
    return KEPT if name else broken("method is empty", confidence="low")  # the schema asks for a string, no more


def reserved_prefix(m: Fact) -> Outcome:
    return broken(f"{m.method} begins with rpc.") if (m.method or "").startswith("rpc.") else KEPT


def request_id_type(m: Fact) -> Outcome:
    ident = m.body.get("id") if isinstance(m.body, dict) else None
    if ident is None:
        return None
    if isinstance(ident, (str, int)) and not isinstance(ident, bool):
        return KEPT
    if isinstance(ident, float) and ident.is_integer():
        return KEPT  # 1.0: some encoders write whole numbers so
    return broken(f"id is {_short(ident)}")


def request_id_null(m: Fact) -> Outcome:
    if (m.method or "").startswith(NOTIFICATION) or not isinstance(m.body, dict):
        return None
    return broken("id is null") if m.body.get("id", ABSENT) is None else KEPT


def request_id_reuse(m: Fact) -> Outcome:
    """A request that a server sends again on a resumed stream is a redelivery, not a second use."""
    if not isinstance(m.body, dict) or (m.method or "").startswith(NOTIFICATION):
        return None
    ident = m.body.get("id")
    if not isinstance(ident, (str, int)) or isinstance(ident, bool):
        return None
    if m.post is not None and "last-event-id" in (m.post.headers or {}):
        return None
    if m.session.ordinary:
        return KEPT if m.session.began or m.method == "initialize" else UNKNOWN
    used = m.session.memory.get("jsonrpc.ids")
    if used is None:
        used = m.session.memory["jsonrpc.ids"] = {"client": Ids(), "server": Ids()}
    if m.method == "initialize" and m.sender == "client" and m.session.phase in ("", "answered"):
        if m.session.phase == "answered" or not m.session.opened:
            used["client"], used["server"] = Ids(), Ids()  # a new session on the same line
    elif m.method == "initialize" and m.sender == "client" and (m.session.phase == "refused" or _turned_away(m)):
        used["client"] = Ids()  # the first attempt made no session
    if used[m.sender or "client"].add(ident) and not _turned_away(m):
        return broken(f"id {_short(ident)} was used before by the {m.sender} in this session")
    return KEPT if m.session.began or m.method == "initialize" else UNKNOWN


def _over(other: Fact, m: Fact) -> bool:
    """Had the POST of the other got a response, before ``m``, in which no answer can come any more?"""
    if other.post is None or m.post is None or other.post.exchange.response is None:
        return False
    return other.post.exchange.response < m.post.exchange.first and not other.post.exchange.streams


def _turned_away(m: Fact) -> bool:
    """Was the same request refused or redirected before by an HTTP status alone? Then it was never taken."""
    own = _ident(m)
    before = [
        other
        for other in m.session.open.values()
        if other.method == m.method and (m.method == "initialize" or _ident(other) == own)
    ]
    return any(_over(other, m) and (other.post.exchange.status or 0) >= 300 for other in before if other.post)


def in_flight_unique(m: Fact) -> Outcome:
    if not isinstance(m.body, dict):
        return None
    ident = m.body.get("id")
    for other in m.session.open.values():
        if (
            other.sender == m.sender
            and other.era == "modern"
            and isinstance(other.body, dict)
            and type(other.body.get("id")) is type(ident)
            and other.body.get("id") == ident
            and other.cancelled is None
            and (m.post is None or other.post is None or other.post.exchange.ended is None)
            and not _over(other, m)
        ):
            return broken(f"id {_short(ident)} belongs to a request without an answer", related=(other.seq,))
    return KEPT if m.session.opened or m.session.transport != "stdio" else UNKNOWN


def params_object(m: Fact) -> Outcome:
    if not isinstance(m.body, dict) or "params" not in m.body:
        return None
    params = m.body["params"]
    return KEPT if isinstance(params, dict) else broken(f"params is {_short(params)}")


def result_xor_error(m: Fact) -> Outcome:
    body = m.body
    if not isinstance(body, dict) or "method" in body or "id" not in body:
        return None
    both = "result" in body and "error" in body
    neither = "result" not in body and "error" not in body
    if both:
        return broken("both result and error")
    return broken("neither result nor error") if neither else KEPT


def result_object(m: Fact) -> Outcome:
    result = m.body.get("result", ABSENT) if isinstance(m.body, dict) else ABSENT
    if result is ABSENT:
        return None
    return KEPT if isinstance(result, dict) else broken(f"result is {_short(result)}")


def error_shape(m: Fact) -> Outcome:
    error = m.body.get("error") if isinstance(m.body, dict) else None
    if not isinstance(error, dict):
        return broken(f"error is {_short(error)}")
    missing = [name for name in ("code", "message") if name not in error]
    if missing:
        return broken(f"error without {' and '.join(missing)}")
    return KEPT if isinstance(error["message"], str) else broken("error.message is not a string")


def error_code_integer(m: Fact) -> Outcome:
    code = m.code
    if code is ABSENT:
        return None
    whole = isinstance(code, int) and not isinstance(code, bool)
    return KEPT if whole or (isinstance(code, float) and code.is_integer()) else broken(f"code is {_short(code)}")


# Answers ----------------------------------------------------------------------------------------------------


def _ident(m: Fact) -> Any:
    return m.body.get("id", ABSENT) if isinstance(m.body, dict) else ABSENT


def _refused(m: Fact) -> bool:
    """Is it what an HTTP refusal carries?"""
    return m.post is not None and (m.post.exchange.status or 0) >= 400


def response_id_matches(m: Fact) -> Outcome:
    """Over HTTP an answer may come on a resumed stream, so it is matched within the session."""
    ident = _ident(m)
    if ident is ABSENT or ident is None:
        return None
    if m.kind == "invalid":
        unread: Recent[int] = m.session.memory.setdefault("jsonrpc.unread", Recent())
        unread.put((m.receiver, type(ident), str(ident)), m.seq)
        return None
    if m.request is not None or m.row < 0:
        asked = m.request
        if asked is not None and _ident(asked) != ident:
            if _refused(m) and not m.session.instance.modern:
                return None  # a legacy server turns a modern probe away
            # a modern request pairs with what its own POST brings, whatever id that bears
            return broken(f"id {_short(ident)} answers a request with id {_short(_ident(asked))}", related=(asked.seq,))
        return KEPT
    if m.again:
        return None
    if _refused(m):
        return None  # what the refusal carries is free before the message was taken
    if m.kind == "error" and (m.sender, type(ident), str(ident)) in m.session.memory.get("jsonrpc.unread", ()):
        return None  # it refuses what was no request
    posted = _alone_in(m)
    if posted is not None:
        return broken(
            f"id {_short(ident)} in the JSON body that answers a request with id {_short(_ident(posted))}",
            related=(posted.seq,),
        )
    return broken(f"no request with id {_short(ident)} was sent to the {m.sender}") if m.session.whole else UNKNOWN


def _alone_in(m: Fact) -> Fact | None:
    """The one message of a POST whose JSON body is this result: it answers nothing else (Streamable HTTP)."""
    post = m.post
    if post is None or m.kind != "result" or m.part is not None or len(post.facts) != 1:
        return None
    json_body = post.exchange.channel == channels.POST_JSON and post.exchange.content_type is not None
    return post.request if json_body else None


def response_once(m: Fact) -> Outcome:
    if m.method is None:
        return None
    if not m.again:
        return KEPT
    if m.post is not None and "last-event-id" in (m.post.headers or {}):
        return None  # redelivered on a resumed stream
    return broken(f"{m.method} with id {m.id} was answered before")


def request_answered(m: Fact) -> Outcome:
    """Broken only where the server that was asked itself ended the connection; else it may still have been at work."""
    session = m.session
    if m.kind in ("result", "error"):
        return KEPT if m.method is not None and not m.again else None
    if m.kind == "end" and session.closed:
        return None
    by = getattr(m.event, "by", None) if m.kind == "close" else None
    said: list[Any] = []
    for asked in session.open.values():
        if asked.cancelled is not None or asked.method == "subscriptions/listen" or _not_due(asked):
            continue
        if by == asked.receiver == "server":  # a client may shut down at any time
            detail = f"the {by} ended the connection and never answered {asked.method} (id {asked.id})"
            said.append(broken(detail, related=(asked.seq,), absence=True, party=by))
        else:
            said.append(UNKNOWN)
    return said


def _not_due(asked: Fact) -> bool:
    return (asked.method or "").startswith(NOTIFICATION)


def error_id_present(m: Fact) -> Outcome:
    """Provable over HTTP, where the request stands in the same exchange."""
    ident = _ident(m)
    if ident is not ABSENT and ident is not None:
        return KEPT
    if m.post is None:
        return None
    asked = m.post.request
    if asked is None or len(m.post.facts) != 1:
        return None
    status = m.post.exchange.status
    weak = status is not None and status >= 400
    detail = f"the request had id {asked.id}, its error has {'none' if ident is ABSENT else 'null'}"
    return broken(detail, related=(asked.seq,), confidence="low" if weak else None)


def response_id_member(m: Fact) -> Outcome:
    """A body without an id on an HTTP refusal is allowed; null answers what could not be read."""
    ident = _ident(m)
    if ident is not ABSENT and ident is not None:
        return KEPT
    if m.kind == "error" and (m.revision or "") >= "2025-11-25":
        return None
    status = m.post.exchange.status if m.post is not None else None
    weak = (
        (status is not None and status >= 400)
        or (m.kind == "error" and m.code in (-32700, -32600))
        or m.session.last.get(m.receiver, ("", 0))[0] == "text"
    )
    detail = "id is absent" if ident is ABSENT else "id is null"
    return broken(detail, confidence="low" if weak else None)


# Notifications ------------------------------------------------------------------------------------------------


def notification_no_id(m: Fact) -> Outcome:
    if not (m.method or "").startswith(NOTIFICATION) or not isinstance(m.body, dict):
        return None
    return broken(f"{m.method} has an id") if "id" in m.body else KEPT


def notification_no_response(m: Fact) -> Outcome:
    """Over HTTP the exchange tells what was answered; on stdio an answer without id right after a notification."""
    post = m.post
    if m.kind == "notification":
        return KEPT if post is None else None
    if post is None:
        kind, seq = m.session.last.get(m.receiver, ("", 0))
        if kind != "notification" or m.request is not None or _ident(m) not in (ABSENT, None):
            return None
        if m.code == -32700:
            return None  # what could not be read was no notification
        return broken("an answer without an id right after a notification", related=(seq,))
    sent = post.facts
    if m.sender != "server" or not sent or any(fact.kind != "notification" for fact in sent):
        return None
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    if not 200 <= status < 300 or m.request is not None:
        return None  # an error body on a refusal is allowed
    if m.kind == "http-response":
        return KEPT if post.answers == 0 else None
    return broken(f"{sent[0].method} was answered", related=(sent[0].seq,))


# Methods ------------------------------------------------------------------------------------------------------


def method_known(m: Fact) -> Outcome:
    """Methods of no revision are an extension's or a vendor's; those of another revision are out of place."""
    name, direction = m.method or "", _DIRECTION.get(m.sender or "", "")
    if m.era == "modern" and m.sender == "server" and m.kind == "request":
        return None  # mrtr.server-no-requests
    if name in ("initialize", "server/discover") or not spec.eras_of(name):
        return None
    entry = spec.method(m.revision or "", name)
    if entry is not None and entry.kind != "input-request":
        return KEPT
    return broken(f"{m.revision} has no {name}") if direction else None


def method_direction(m: Fact) -> Outcome:
    name = m.method or ""
    if m.era == "modern" and m.sender == "server" and m.kind == "request":
        return None
    entry = spec.method(m.revision or "", name)
    if entry is None or entry.kind == "input-request" or m.sender is None:
        return None
    if spec.method(m.revision or "", name, _DIRECTION[m.sender]) is not None:
        return KEPT
    return broken(f"{name} goes from {m.receiver} to {m.sender}")


def method_kind(m: Fact) -> Outcome:
    name = m.method or ""
    entry = spec.method(m.revision or "", name, _DIRECTION.get(m.sender or ""))
    if entry is None or entry.kind == "input-request" or name.startswith(NOTIFICATION):
        return None
    if m.kind == entry.kind:
        return KEPT
    return broken(f"{name} is a {entry.kind} and was sent as a {m.kind}")


# Batches ------------------------------------------------------------------------------------------------------


def batch_not_used(m: Fact) -> Outcome:
    if m.post is not None and m.sender == "client":
        return None  # http.post-body-single says so
    if m.part is None:
        return KEPT if m.body != [] else broken("an empty array")
    return broken("an array of messages") if m.part == 0 else None


def batch_not_empty(m: Fact) -> Outcome:
    if m.part is not None:
        return KEPT if m.part == 0 else None
    return broken("an empty array") if m.body == [] else None


def batch_no_initialize(m: Fact) -> Outcome:
    return broken("initialize inside an array") if m.part is not None else KEPT


def batch_homogeneous(m: Fact) -> Outcome:
    post = m.post
    if post is None or not post.facts or post.facts[0].part is None:
        return None
    kinds = {"answer" if fact.kind in ("result", "error") else "call" for fact in post.facts}
    return KEPT if len(kinds) == 1 else broken("requests or notifications beside answers in one POST")


def _short(value: Any) -> str:

    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."
