"""Which channel carried an event, and what a timeline shows of it. Pure rules, no tables.

Channels follow the observed HTTP method and ``Content-Type`` (2025-11-25 basic/transports, 2026-07-28
basic/transports/streamable-http), never what was configured.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mcplab.model import PRIORITY

STDIO = "STDIO"
POST_JSON = "POST (JSON)"
POST_SSE = "POST (SSE)"
POST = "POST"
GET = "GET (SSE)"
LISTEN = "LISTEN (SSE)"
RESUMPTION = "RESUMPTION"
DELETE = "DELETE"
LEGACY_SSE = "SSE (legacy transport)"
UNKNOWN = "unknown"


class Marks(NamedTuple):
    """Every event that a timeline can show, in the wire's order: parallel lists, one place a message or event."""

    seq: list[int]
    ts: Any  # numpy int64: microseconds since 1970, model.NO_TIME where there is no clock
    instance: list[str]
    channel: list[str]
    activity: list[str]


def is_event_stream(content_type: str | None) -> bool:
    """Does this ``Content-Type`` announce an event stream? Parameters such as a charset do not matter."""
    return content_type is not None and content_type.split(";", 1)[0].strip().lower() == "text/event-stream"


def http_channel(
    method: str | None, content_type: str | None, *, answered: bool, listens: bool = False, resumes: bool = False
) -> str:
    """The channel of an HTTP exchange, and so of all that its request and response carried.

    ``answered``: a response was seen. ``listens``: the body is a ``subscriptions/listen``. ``resumes``: the request
    has ``Last-Event-ID``. A method other than POST, GET and DELETE is no channel of the protocol: ``unknown``.
    """
    if listens:
        return LISTEN
    if method == "POST":
        if not answered:
            return POST
        return POST_SSE if is_event_stream(content_type) else POST_JSON
    if method == "GET":
        return RESUMPTION if resumes else GET
    return DELETE if method == "DELETE" else UNKNOWN


def refused(status: int | None) -> bool:
    """Is this HTTP status a refusal (4xx, 5xx)?"""
    return status is not None and 400 <= status <= 599


def message_activity(kind: str, ping: bool, status: int | None, http_method: str | None) -> str:
    """What a message shows on the timeline. ``ping``: it is a ping or the answer to one."""
    if status is not None and refused(status):
        return "disabled" if status == 405 and http_method == "GET" else "error"
    if kind == "error" or kind == "invalid":
        return "error"
    return "ping" if ping else kind


def event_activity(kind: str, *, status: int | None, http_method: str | None, keepalive: bool) -> str:
    """What an event without a message shows on the timeline."""
    if refused(status):
        return "disabled" if status == 405 and http_method == "GET" else "error"
    if kind == "unparsed":
        return "error"
    return "ping" if kind == "sse" and keepalive else "none"


def stronger(shown: str, later: str) -> str:
    """Which of two activities one segment shows; on a tie the later one."""
    return later if PRIORITY[later] >= PRIORITY[shown] else shown
