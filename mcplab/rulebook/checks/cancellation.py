"""notifications/cancelled (basic/utilities/cancellation; 2026-07-28 basic/patterns/cancellation, transports/stdio)."""

from __future__ import annotations

from typing import Final

from mcplab.model import ABSENT
from mcplab.rulebook.checks.recall import redelivered, seconds, stamp, subscribed
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.past import Past, key, memory

RACE_SECONDS: Final = 1.0
"""What comes within this time after its counterpart may have crossed it on the way. Ours; the pages give none."""

LISTEN: Final = "subscriptions/listen"


def request_id(m: Fact) -> Outcome:
    """2025-11-25 makes the field optional and still asks for it: nothing else could be cancelled so."""
    ident = m.params.get("requestId", ABSENT)
    if not isinstance(m.params.get("reason", ""), str):
        return broken("reason is not a string")
    if key("", ident) is not None and (not isinstance(ident, float) or ident.is_integer()):
        return KEPT
    if ident is ABSENT:
        return broken("requestId is absent", confidence="low" if m.revision == "2025-11-25" else None)
    return broken("requestId is neither string nor integer")


# Which request is meant -------------------------------------------------------------------------------------


def _meant(m: Fact) -> tuple[Fact | None, Past | None] | None:
    """The open request that a cancellation names, or the answered one; None where it names nothing."""
    asker = "client" if m.era == "modern" else m.sender
    ident = key(asker, m.params.get("requestId", ABSENT))
    if ident is None:
        return None
    for open_ in m.session.open.values():
        if open_.sender == asker and isinstance(open_.body, dict) and key(asker, open_.body.get("id")) == ident:
            return open_, None
    return None, memory(m).by_id.get(ident)


def _nowhere(m: Fact) -> bool:
    """Is it certain that nobody sent a request with that id?"""
    return m.session.whole and memory(m).whole


# Rules ------------------------------------------------------------------------------------------------------


def same_direction(m: Fact) -> Outcome:
    found = _meant(m)
    if found is None or (m.era == "modern" and m.sender == "server"):
        return None
    if found[0] is not None or found[1] is not None:
        return KEPT
    ident = m.params.get("requestId")
    if not _nowhere(m):
        return UNKNOWN
    return broken(f"the {m.sender} sent no request with id {ident!r}")


def in_progress(m: Fact) -> Outcome:
    found = _meant(m)
    if found is None or (m.era == "modern" and m.sender == "server"):
        return None
    open_, past = found
    if open_ is not None:
        return KEPT
    if past is None:
        return None
    now, then = stamp(m), seconds(past.ts)
    if now is None or then is None:
        return UNKNOWN
    if now - then <= RACE_SECONDS:
        return None
    return broken(f"the request was answered {now - then:.1f} s before", related=(past.at,))


def _method(found: tuple[Fact | None, Past | None] | None) -> str | None:
    """The method of the request that is meant; None where it was not seen."""
    if found is None:
        return None
    open_, past = found
    return open_.method if open_ is not None else past.asked.method if past is not None else None


def not_initialize(m: Fact) -> Outcome:
    method = _method(_meant(m))
    if method is None:
        return None
    return broken("the id is that of initialize") if method == "initialize" else KEPT


def not_for_tasks(m: Fact) -> Outcome:
    open_, past = _meant(m) or (None, None)
    if open_ is not None:
        if isinstance(open_.params.get("task"), dict):
            # no task id is known yet: there is nothing else that would stop it
            return broken("the request asks for a task, whose id is not known yet", confidence="low")
        return KEPT
    if past is None:
        return None
    return broken("the request has become a task", related=(past.at,)) if past.made_task else KEPT


def not_for_extension_tasks(m: Fact) -> Outcome:
    """Before the result that makes the task the request is an ordinary one."""
    open_, past = _meant(m) or (None, None)
    if past is None:
        return KEPT if open_ is not None else None
    return broken("the request has become a task", related=(past.at,)) if past.made_task else KEPT


def _cancelled(m: Fact) -> dict[int, float | None]:
    return m.session.memory.setdefault("cancellation.stamps", {})


def _note(m: Fact) -> None:
    """When an open request was cancelled, for as long as it stays open."""
    found = _meant(m)
    if found is not None and found[0] is not None and m.sender == found[0].sender:
        stamps = _cancelled(m)
        stamps.setdefault(found[0].row, stamp(m))
        if len(stamps) > 100:
            for row in [row for row in stamps if row not in m.session.open]:
                del stamps[row]


def _silent(m: Fact) -> Outcome:
    """Cancelled requests without an answer when nothing more can come, or when the capture ends before that."""
    if m.kind == "end" and m.session.closed:
        return None
    verdict = KEPT if m.kind == "close" else UNKNOWN
    return [verdict for asked in m.session.open.values() if asked.cancelled is not None]


def no_response_after(m: Fact) -> Outcome:
    """A response soon after may have crossed the notification."""
    if m.kind == "notification":
        _note(m)
        return None
    if m.kind in ("close", "end"):
        return _silent(m)
    asked = m.request
    if asked is None or asked.cancelled is None or m.again:
        return None
    return _later(m, asked, "the request was answered")


def _later(m: Fact, asked: Fact, what: str) -> Outcome:
    then, now = _cancelled(m).get(asked.row), stamp(m)
    if then is None or now is None:
        return UNKNOWN
    if now - then <= RACE_SECONDS:
        return None
    return broken(f"{what} {now - then:.1f} s after it was cancelled", related=(asked.cancelled or asked.seq,))


def no_further_messages(m: Fact) -> Outcome:
    """On stdio, where a cancelled request has no stream of its own that could be closed."""
    if m.post is not None:
        return None
    if m.sender == "client":
        _note(m)
        return None
    if m.kind in ("close", "end"):
        return _silent(m)
    if m.kind != "notification":
        asked = m.request
        if asked is None or asked.cancelled is None or m.again:
            return None
        return _later(m, asked, "the request was answered")
    if not _cancelled(m):
        return None
    token, tag = key("", m.params.get("progressToken", ABSENT)), key("", subscribed(m))
    for asked in m.session.open.values():
        if asked.cancelled is None or asked.sender != "client" or not isinstance(asked.body, dict):
            continue
        own = (
            token is not None
            and m.method == "notifications/progress"
            and key("", asked.meta.get("progressToken")) == token
        )
        tagged = tag is not None and asked.method == LISTEN and key("", asked.body.get("id")) == tag
        if own or tagged:
            return _later(m, asked, f"{m.method} came for the request")
    return None


def server_scope(m: Fact) -> Outcome:
    """The id is one of the client's: of its own stream over HTTP, of the connection on stdio."""
    found = _meant(m)
    if m.kind != "notification" or found is None or redelivered(m):
        return None
    ident = m.params.get("requestId")
    if m.post is not None:
        asked = m.post.request
        if asked is None:
            return UNKNOWN
        own = isinstance(asked.body, dict) and key("", asked.body.get("id")) == key("", ident)
        if asked.method == LISTEN and own:
            return KEPT
        return broken(f"{ident!r} is not the {LISTEN} request whose stream this is", related=(asked.seq,))
    method = _method(found)
    if method is None:
        return broken(f"the client sent no request with id {ident!r}") if _nowhere(m) else UNKNOWN
    return KEPT if method == LISTEN else broken(f"{ident!r} is the id of {method}")


def teardown_notice(m: Fact) -> Outcome:
    """The pages disagree on what a server sends: the result of the listen, or the notification. Neither is a fault."""
    if m.kind == "notification":
        found = _meant(m)
        if m.sender == "server" and found is not None and found[0] is not None and found[0].method == LISTEN:
            m.session.memory.setdefault("cancellation.torn", set()).add(found[0].row)
            return KEPT
        return None
    if m.kind == "result":
        return KEPT
    if m.post is not None or m.event is None or m.event.by != "server":
        return None
    torn = m.session.memory.get("cancellation.torn", set())
    return [
        broken("the server closed without ending the subscription", at=asked.place, related=(m.seq,), absence=True)
        for row, asked in m.session.open.items()
        if asked.method == LISTEN and row not in torn and asked.cancelled is None
    ]


def http_none(m: Fact) -> Outcome:
    if m.post is None:
        return KEPT
    return broken("over HTTP closing the stream cancels; the notification has no effect")
