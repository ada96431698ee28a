"""subscriptions/listen and what comes on its stream (2026-07-28 basic/patterns/subscriptions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcplab import gating
from mcplab.model import ABSENT
from mcplab.rulebook.facts import LISTEN, Fact, listen_of
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_SUBSCRIPTION_ID

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
CHANGES: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    UPDATED: "resourceSubscriptions",
}
_FLAGS: Final = {
    "toolsListChanged": "tools.listChanged", "promptsListChanged": "prompts.listChanged",
    "resourcesListChanged": "resources.listChanged", "resourceSubscriptions": "resources.subscribe",
}  # fmt: skip
SCOPED: Final = ("notifications/progress", "notifications/message")


def tag(m: Fact) -> Any:
    """The subscription id of a notification; ABSENT where it has none."""
    return m.meta.get(META_SUBSCRIPTION_ID, ABSENT)


def _on_listen_stream(m: Fact) -> bool:
    return m.post is not None and m.post.request is not None and m.post.request.method == LISTEN


def filter_shape(m: Fact) -> Outcome:
    wanted = m.params.get("notifications", ABSENT)
    if not isinstance(wanted, Mapping):
        return broken("no filter" if wanted is ABSENT else "the filter is not an object")
    wrong = [name for name in _FLAGS if name.endswith("Changed") and not isinstance(wanted.get(name, False), bool)]
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        wrong.append("resourceSubscriptions")
    return broken(f"of the wrong type: {', '.join(wrong)}") if wrong else KEPT


def ack_first(m: Fact) -> Outcome:
    """Ordered per subscription, not per channel; what is told once is not told again for each later message."""
    listen = listen_of(m)
    if listen is None or listen.acknowledged is not None or listen.early:
        return None
    if m.method == ACKNOWLEDGED:
        return KEPT
    return broken(f"{m.method} before the acknowledgment", related=(listen.request.seq,))


def ack_sent(m: Fact) -> Outcome:
    if m.kind == "notification":
        return KEPT if listen_of(m) is not None else None
    if m.kind == "error":
        return KEPT if m.request is not None else None
    if m.kind == "result":
        listen = m.session.listens.get(str(m.request.id)) if m.request is not None else None
        if listen is None or listen.acknowledged is not None:
            return None
        return broken("answered, and never acknowledged", related=(listen.request.seq,))
    return [UNKNOWN for listen in m.session.listens.values() if listen.acknowledged is None and listen.ended is None]


def ack_subset(m: Fact) -> Outcome:
    listen = listen_of(m)
    honoured = m.params.get("notifications", ABSENT)
    if not isinstance(honoured, Mapping):
        return broken("the acknowledgment has no filter")
    if listen is None:
        return UNKNOWN
    more = []
    for name, value in honoured.items():
        asked = listen.asked.get(name)
        if name == "resourceSubscriptions" or isinstance(value, list):
            known = asked if isinstance(asked, list) else []
            more += [f"{name} {uri!r}" for uri in value if uri not in known] if isinstance(value, list) else []
        elif value is True and asked is not True:
            more.append(name)
    return broken(f"not asked for: {', '.join(more)}", related=(listen.request.seq,)) if more else KEPT


def ack_supported_only(m: Fact) -> Outcome:
    honoured = m.params.get("notifications")
    if not isinstance(honoured, Mapping):
        return None
    said: Outcome = None
    for name, path in _FLAGS.items():
        value = honoured.get(name)
        if value is not True and not (isinstance(value, list) and value):
            continue
        stands = gating.standing(m.revision or "", "server", path, m.session.instance.discovered)
        if stands.declared is None:
            said = said or UNKNOWN
        elif not stands.declared and not stands.malformed:
            return broken(f"{name} is acknowledged, and {stands.reason}")
        else:
            said = said or KEPT
    return said


def tagged(m: Fact) -> Outcome:
    """Present, not true: 0 and "" are tags. Log and progress messages do not belong there at all."""
    if m.method in SCOPED:
        return None
    if m.post is not None and not _on_listen_stream(m):
        return None
    if m.post is None and m.method != ACKNOWLEDGED and m.method not in CHANGES:
        return None
    return KEPT if tag(m) is not ABSENT else broken(f"{m.method} carries no subscriptionId")


def tag_value(m: Fact) -> Outcome:
    value = tag(m)
    if value is ABSENT:
        return None
    if _on_listen_stream(m) and m.post is not None and m.post.request is not None:
        own = m.post.request.body.get("id", ABSENT)
        if type(own) is type(value) and own == value:
            return KEPT
        return broken(f"the tag is {value!r}, the stream's listen has id {own!r}", related=(m.post.request.seq,))
    if m.post is not None:
        return None
    if listen_of(m) is not None:
        return KEPT
    return broken(f"no subscriptions/listen has the id {value!r}") if m.session.opened else UNKNOWN


def only_requested(m: Fact) -> Outcome:
    """Resources below a subscribed one are allowed; that single URIs count follows from the filter's table: medium."""
    member = CHANGES.get(m.method or "")
    listen = listen_of(m)
    if member is None or listen is None:
        return None
    asked = listen.asked.get(member)
    related = (listen.request.seq,)
    if m.method != UPDATED:
        return KEPT if asked is True else broken(f"{member} was not asked for", related=related)
    if not isinstance(asked, list) or not asked:
        return broken("no resourceSubscriptions were asked for", related=related)
    uri = m.params.get("uri")
    if isinstance(uri, str) and any(isinstance(one, str) and uri.startswith(one) for one in asked):
        return KEPT
    return broken(f"{uri!r} was not asked for", related=related, confidence="medium")


def no_unsolicited_change(m: Fact) -> Outcome:
    if m.post is not None:
        if _on_listen_stream(m):
            return KEPT
        if m.post.request is None:
            return UNKNOWN
        return broken(f"{m.method} on the stream of {m.post.request.method}", related=(m.post.request.seq,))
    if any(listen.ended is None for listen in m.session.listens.values()):
        return KEPT
    if m.session.listens:
        return None  # after the end of a subscription: subscriptions.silent-after-end
    return broken(f"{m.method}, and no subscription is open") if m.session.opened else UNKNOWN


def no_request_scoped(m: Fact) -> Outcome:
    if _on_listen_stream(m):
        return broken(f"{m.method} on a listen stream", related=(m.post.seq,) if m.post is not None else ())
    if tag(m) is not ABSENT:
        return broken(f"{m.method} carries a subscriptionId")
    return KEPT


def silent_after_end(m: Fact) -> Outcome:
    """After a cancellation by the client both may have been on their way: a hint.

    A server that ends a subscription sends the result and notifications/cancelled; the page gives them no order.
    """
    listen = listen_of(m)
    if listen is None or m.post is not None or m.method == "notifications/cancelled":
        return None
    if listen.ended is None:
        return KEPT
    weak = "low" if listen.ended_by == "client" else None
    return broken(f"{m.method} after the end of its subscription", related=(listen.ended,), confidence=weak)


def result_tagged(m: Fact) -> Outcome:
    meta = m.result.get("_meta")
    value = meta.get(META_SUBSCRIPTION_ID, ABSENT) if isinstance(meta, Mapping) else ABSENT
    own = m.body.get("id", ABSENT) if isinstance(m.body, dict) else ABSENT
    if value is ABSENT:
        return broken("the result carries no subscriptionId")
    if type(value) is type(own) and value == own:
        return KEPT
    return broken(f"subscriptionId {value!r} on the result with id {own!r}")
