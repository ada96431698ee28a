"""Streamable HTTP: what goes in a POST, what comes back, and which stream carries it (basic/transports)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcplab import channels
from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact, Post
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

CALLS = ("request", "notification")


def streamable(m: Fact) -> Post | None:
    """The exchange, where it belongs to Streamable HTTP: the old HTTP+SSE transport has rules of its own."""
    post = m.post
    return None if post is None or post.exchange.channel == channels.LEGACY_SSE else post


def media_type(headers: Mapping[str, str] | None, name: str = "content-type") -> str:
    """The media type of a header without its parameters, lower-case."""
    return (headers or {}).get(name, "").split(";", 1)[0].strip().lower()


def _accepts(value: str) -> set[str]:
    return {part.split(";", 1)[0].strip().lower() for part in value.split(",")}


def _is_post(post: Post) -> bool:
    return post.exchange.method == "POST"


# What the client sends ------------------------------------------------------------------------------------


def post_for_messages(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.exchange.method is None:
        return None
    return KEPT if _is_post(post) else broken(f"a message was sent by {post.exchange.method}")


def post_body_single(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post):
        return None
    if m.part is None:
        return KEPT if m.body != [] else broken("the body is an empty array")
    return broken("the body is an array") if m.part == 0 else None


def post_accept(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or not post.facts:
        return None
    if post.headers is None:
        return UNKNOWN
    listed = _accepts(post.headers.get("accept", ""))
    missing = [name for name in ("application/json", "text/event-stream") if name not in listed]
    if not missing:
        return KEPT
    if post.exchange.initializes and _either(post):
        return UNKNOWN
    wild = "; a wildcard lists no type" if any("*" in name for name in listed) else ""
    shown = repr(post.headers["accept"]) if "accept" in post.headers else "absent"
    return broken(f"Accept is {shown}: {' and '.join(missing)} not listed{wild}")


def _either(post: Post) -> bool:
    """May an initialize be one of HTTP+SSE, whose endpoint event was not captured?"""
    status = post.exchange.status
    told = status == 406 or media_type(post.answer_headers) == "application/json"  # HTTP+SSE refuses in plain text
    return status is None or (status >= 400 and not told)


def get_accept(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.exchange.method != "GET" or not _endpoint(post):
        return None
    if post.headers is None:
        return UNKNOWN
    if "text/event-stream" in _accepts(post.headers.get("accept", "")):
        return KEPT
    return broken(f"Accept is {post.headers.get('accept', 'absent')!r}: text/event-stream is not listed")


def _endpoint(post: Post) -> bool:
    """Is this the address that messages were POSTed to on this connection?"""
    known = post.session.path
    return known is not None and post.exchange.path == known


def post_body_jsonrpc(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post):
        return None
    if m.kind == "text":
        known = m.session.path
        if known is None or known != post.exchange.path:
            return None  # metadata and OAuth endpoints share the host
        return broken("the body is not a JSON-RPC message")
    return KEPT if m.kind != "invalid" else None


# How a POST is answered -----------------------------------------------------------------------------------


def _only_notified(post: Post) -> bool:
    kinds = {fact.kind for fact in post.facts}
    return bool(kinds) and kinds <= ({"notification"} if post.era == "modern" else {"notification", "result", "error"})


def request_answer_type(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or post.request is None:
        return None
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    if not 200 <= status < 300:
        return None
    if status == 202:
        return broken("a request was answered 202 Accepted", related=(post.seq,))
    if post.answer_headers is None:
        return UNKNOWN
    found = media_type(post.answer_headers)
    if found in ("application/json", "text/event-stream"):
        return KEPT
    return broken(f"Content-Type is {found or 'absent'}", related=(post.seq,))


def json_answer_single(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or post.request is None:
        return None
    if media_type(post.answer_headers) != "application/json":
        return None
    if m.part is not None:
        return broken("the JSON body is an array") if m.part == 0 else None
    return KEPT if m.kind in ("result", "error", "invalid") else broken(f"the JSON body is a {m.kind}")


def notification_202(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or not _only_notified(post):
        return None
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    if status == 202 or status >= 400:
        return KEPT
    if 300 <= status < 400:
        return None  # it goes to another address
    what = post.facts[0].method or post.facts[0].kind
    return broken(f"{what} was answered {status}", related=(post.seq,))


def notification_202_empty(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.exchange.status != 202:
        return None
    if m.event is not None and getattr(m.event, "kind", "") == "message":
        return broken("the 202 has a body", related=(post.seq,))
    http = getattr(m.event, "http", None)
    body = getattr(http, "body", None)
    raw = getattr(m.event, "raw", None)
    if body is True or (isinstance(raw, str) and raw != ""):
        return broken("the 202 has a body", related=(post.seq,))
    return KEPT


def get_answer(m: Fact) -> Outcome:
    """400, 401, 403 and 404 are answers to a session, to credentials or to an origin: those have their own rules."""
    post = streamable(m)
    if post is None or post.exchange.method != "GET" or not _endpoint(post):
        return None
    status = post.exchange.status
    if status is None or post.answer_headers is None:
        return UNKNOWN if status != 405 else KEPT
    if status == 405 or (200 <= status < 300 and post.exchange.streams):
        return KEPT
    if 200 <= status < 300:
        found = media_type(post.answer_headers)
        return broken(f"GET was answered {status} with {found or 'no Content-Type'}", related=(post.seq,))
    return None


# Which stream carries it ----------------------------------------------------------------------------------


def get_stream_no_response(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or post.exchange.method != "GET":
        return None
    if m.kind in CALLS:
        return KEPT
    if post.headers is None or post.exchange.content_type is None:
        return UNKNOWN
    if "last-event-id" in post.headers or not post.exchange.streams:  # a refusal with a JSON body is no stream
        return None
    return broken("a response on a GET stream that resumes nothing", related=(post.seq,))


def post_stream_related(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or not post.exchange.streams or post.request is None:
        return None
    if m.kind == "notification" and m.method == "notifications/progress":
        tokens = [fact.meta.get("progressToken", ABSENT) for fact in post.facts]
        token = m.params.get("progressToken", ABSENT)
        if any(type(own) is type(token) and own == token for own in tokens):
            return KEPT
        return broken(f"progress of another request on the stream of {post.request.method}", related=(post.seq,))
    if m.kind in ("result", "error") and m.request is not None and m.request.post is not None:
        if m.request.post is post:
            return KEPT
        return broken("the response to another request", related=(m.request.seq, post.seq))
    return None


def no_broadcast(m: Fact) -> Outcome:
    """The same answer on two streams; two equal notifications may be two events."""
    post = streamable(m)
    if post is None or m.kind not in ("result", "error") or m.method is None:
        return None
    if m.session.ordinary:
        return KEPT
    kept = m.session.memory.setdefault("http.answers", {})
    key = (m.method, m.id)
    text = bytes(m.raw)
    before = kept.get(key)
    if not m.again:
        if len(kept) >= 64:
            kept.pop(next(iter(kept)))
        kept[key] = (post.seq, hash(text), m.seq)
        return KEPT
    if before is None or before[0] == post.seq or "last-event-id" in (post.headers or {}):
        return None
    return (
        broken("the same response was sent on another stream", related=(before[2],))
        if before[1] == hash(text)
        else None
    )


def _ended_by(m: Fact) -> str | None:
    by = getattr(m.event, "by", None)
    return by if getattr(m.event, "kind", "") == "close" and isinstance(by, str) else None


def _unanswered(post: Post) -> list[Fact]:
    return [fact for fact in post.facts if fact.kind == "request" and fact.row in post.session.open]


def field(m: Fact, name: str) -> Any:
    """A field of a stream's event; ABSENT where it has none or the capture kept none."""
    value = getattr(getattr(m.event, "sse", None), name, None)
    return value if isinstance(value, (str, int)) and value != "" else ABSENT


def note_fields(m: Fact) -> None:
    """Keep the latest id and retry of a stream with its exchange."""
    for name in ("id", "retry"):
        value = field(m, name)
        if value is not ABSENT and m.post is not None:
            m.post.memory[f"http.{name}"] = value


def sse_response_delivered(m: Fact) -> Outcome:
    """From 2025-11-25 a connection may be closed once an event had an id: the client takes the stream up again."""
    post = streamable(m)
    if m.kind == "sse":
        note_fields(m)
        return None
    if post is None or not _is_post(post) or not post.exchange.streams or post.request is None:
        return None
    if post.request.method == "subscriptions/listen":
        return None
    waiting = [fact for fact in _unanswered(post) if fact.cancelled is None]
    if not waiting:
        return KEPT
    if getattr(m.event, "kind", "") != "close" or _ended_by(m) is None:
        return UNKNOWN
    if _ended_by(m) == "client":
        return None
    if m.revision == "2025-11-25" and "http.id" in post.memory:
        return UNKNOWN
    return broken(f"the stream ended without the response to {waiting[0].method}", related=(post.seq,), absence=True)


def sse_closed_after_response(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None or not _is_post(post) or not post.exchange.streams or post.request is None:
        return None
    if m.kind in ("result", "error"):
        return KEPT if not m.again else None
    if m.kind in CALLS and not _unanswered(post):
        return broken(f"{m.method} after the response on its stream", related=(post.seq,))
    return None


def x_accel(m: Fact) -> Outcome:
    """A capture that keeps no header besides the type cannot show what is missing."""
    post = streamable(m)
    if post is None or not post.exchange.streams:
        return None
    headers = post.answer_headers
    if headers is None or set(headers) <= {"content-type", "mcp-session-id"}:
        return UNKNOWN
    return (
        KEPT
        if headers.get("x-accel-buffering", "").strip().lower() == "no"
        else broken("X-Accel-Buffering: no is missing")
    )


def modern_no_legacy_mechanisms(m: Fact) -> Outcome:
    post = streamable(m)
    if post is None:
        return None
    if post.headers is None:
        return UNKNOWN
    found = [name for name in ("mcp-session-id", "last-event-id") if name in post.headers]
    if post.exchange.method in ("GET", "DELETE"):
        found.append(f"the method {post.exchange.method}")
    return broken(f"a modern request with {', '.join(found)}") if found else KEPT


def sse_data(m: Fact) -> Outcome:
    """An event with a name of its own is none of those that carry messages (keep-alives do that): only hinted at."""
    post = streamable(m)
    if post is None or not post.exchange.streams or m.sender != "server":
        return None
    if m.kind in ("text", "sse"):
        data = m.text if m.kind == "text" else field(m, "data")
        if not isinstance(data, str) or not data.strip():
            return None
        weak = None if field(m, "event") in (ABSENT, "message") else "low"
        return broken("an SSE event whose data is not a JSON-RPC message", confidence=weak)
    return KEPT
