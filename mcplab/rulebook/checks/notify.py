"""Changes that are announced: lists, and resources that were subscribed to."""

from __future__ import annotations

from typing import Any, Final

from mcplab.model import ABSENT, Sentinel
from mcplab.rulebook.checks import lists
from mcplab.rulebook.checks.recall import Recent, redelivered
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

_FLAG: Final = {
    "tools/list": "toolsListChanged",
    "prompts/list": "promptsListChanged",
    "resources/list": "resourcesListChanged",
}
_FEATURE: Final = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
_OF: Final = {
    "notifications/tools/list_changed": "tools/list", "notifications/prompts/list_changed": "prompts/list",
    "notifications/resources/list_changed": "resources/list",
}  # fmt: skip


def list_changed_sent(m: Fact) -> Outcome:
    """Two whole lists that differ. The notification may still be under way when the second one is read, so what never
    came is judged at the close; over HTTP it may have gone by a stream that was not captured."""
    changed: dict[str, tuple[int, int]] = m.session.memory.setdefault("notify.changed", {})
    told: dict[str, int] = m.session.memory.setdefault("notify.told", {})
    if m.kind == "notification":
        lists.page(m)
        told[_OF[m.method or ""]] = m.seq
        return KEPT if changed.pop(_OF[m.method or ""], None) is not None else None
    if m.kind == "result":
        page = lists.page(m)
        if page is None or page.done is None or page.before is None or _sorted(page.done) == _sorted(page.before):
            return None
        method = m.method or ""
        due = _due(m, method, page.before.first)
        if due is None:
            return None
        if told.get(method, -1) > page.before.first:
            return KEPT
        if not due or m.post is not None:
            return UNKNOWN
        changed[method] = (page.before.at, m.seq)
        return None
    found = list(changed.items())
    changed.clear()
    if m.kind == "end":
        return [UNKNOWN for _ in found]
    return [
        broken(
            f"{method} differs from the list before, no list_changed came",
            at=(at, None),
            related=(before,),
            absence=True,
        )
        for method, (before, at) in found
    ]


def _sorted(listing: lists.Listing) -> list[str]:
    return sorted(map(repr, listing.items))


def _due(m: Fact, method: str, since: int) -> bool | None:
    """Must the server announce it: None no, False perhaps. From 2026-07-28 a client must have asked for it."""
    declared = m.server_capabilities
    if isinstance(declared, Sentinel):
        return False if declared is not ABSENT else None
    feature = declared.get(_FEATURE[method]) if isinstance(declared, dict) else None
    if not isinstance(feature, dict) or feature.get("listChanged") is not True:
        return None
    if m.era != "modern":
        return m.session.began
    for asked in m.session.open.values():
        wanted = asked.params.get("notifications") if asked.method == "subscriptions/listen" else None
        if (
            isinstance(wanted, dict)
            and wanted.get(_FLAG[method]) is True
            and asked.seq < since
            and asked.cancelled is None
        ):
            return True
    return None


# Subscriptions of the legacy revisions --------------------------------------------------------------------------


def updated_unsubscribed(m: Fact) -> Outcome:
    """A sub-resource may be named; only a longer URI can be told to be one. An unsubscribe may cross an update."""
    held: Recent[int] = m.session.memory.setdefault("notify.subscribed", Recent())
    if m.kind != "notification":
        asked: Any = m.request
        uri = asked.params.get("uri") if asked is not None else None
        if isinstance(uri, str) and m.method == "resources/subscribe":
            held.put(uri, m.seq)
        return None
    uri = m.params.get("uri")
    if redelivered(m) or not isinstance(uri, str):
        return None
    if m.session.declared(m.revision or "", "server", "resources.subscribe").declared is False:
        return None  # gate.resources-updated says so
    pending = [
        asked.params.get("uri")
        for asked in m.session.open.values()
        if asked.method in ("resources/subscribe", "resources/unsubscribe")
    ]
    if any(uri.startswith(one) for one, _ in held.items()):
        return KEPT
    if any(isinstance(one, str) and uri.startswith(one) for one in pending):
        return None
    if not m.session.whole or not held.whole:
        return UNKNOWN
    return broken(f"{uri!r} was never subscribed to")
