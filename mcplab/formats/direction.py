"""Who sent a message, where the source does not say: by rules that follow from the protocol, else nobody knows.

Rules, in this order (method senders: schema pages of revisions 2024-11-05 to 2026-07-28):

1. a method that only one party may send tells its sender, as do the client's ``_meta`` of 2026-07-28;
2. an answer goes the other way than the request of the same id (with its JSON type) that waits for one; where requests
   of both parties wait, the member that the result must have decides, and a result with the member of another method
   answers none of them;
3. a result with ``protocolVersion``, ``capabilities`` and ``serverInfo`` is that of an ``initialize``, and one with
   ``supportedVersions`` and ``capabilities`` that of a ``server/discover``, though their request is not in the source;
4. ``notifications/cancelled`` goes with the request that it names, ``notifications/progress`` against the request that
   carries its token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from mcplab import jsontext
from mcplab.formats.head import Head

NOTE = (
    "the source does not say who sent a message: inferred from methods that only one party may send, and from ids for "
    "answers; the others have no direction"
)

CLIENT = frozenset(
    "initialize server/discover subscriptions/listen tools/list tools/call resources/list resources/templates/list "
    "resources/read resources/subscribe resources/unsubscribe prompts/list prompts/get completion/complete "
    "logging/setLevel notifications/initialized notifications/roots/list_changed".split()
)
SERVER = frozenset(
    "sampling/createMessage roots/list elicitation/create notifications/message notifications/tools/list_changed "
    "notifications/resources/list_changed notifications/resources/updated notifications/prompts/list_changed "
    "notifications/elicitation/complete notifications/subscriptions/acknowledged".split()
)
_MEMBER = {
    "initialize": "protocolVersion", "server/discover": "supportedVersions", "tools/list": "tools",
    "tools/call": "content", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
    "resources/read": "contents", "prompts/list": "prompts", "prompts/get": "messages",
    "completion/complete": "completion", "sampling/createMessage": "role", "roots/list": "roots",
    "elicitation/create": "action",
}  # fmt: skip
_ALONE = ({"protocolVersion", "capabilities", "serverInfo"}, {"supportedVersions", "capabilities"})
_MEMBERS = set(_MEMBER.values())
_OTHER = {"c2s": "s2c", "s2c": "c2s"}
_LOOKS_LIKE_ANSWER = re.compile(
    r'\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*("(?:[^"\\]++|\\.)*+"|-?\d+)\s*,\s*"(?:result|error)"'
)

Dir = str | UnsetType


class Directions:
    """The requests that wait for an answer on one connection."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, str]] = {"c2s": {}, "s2c": {}}  # direction -> id -> method
        self._tokens: dict[str, str] = {}
        self.used: dict[str, set[str]] = {"c2s": set(), "s2c": set()}

    def of(self, heads: Sequence[Head]) -> Dir:
        """The direction of a message or batch, which must be told in order; UNSET where no rule speaks."""
        found = {direction for head in heads if (direction := self._one(head)) is not UNSET}
        known = found.pop() if len(found) == 1 else UNSET
        self.note(heads, known)
        return known

    def note(self, heads: Sequence[Head], direction: Dir) -> None:
        """Take in a message whose direction is known (or UNSET: then it settles nothing)."""
        if not isinstance(direction, str):
            return
        for head in heads:
            key = head.key
            if head.method is UNSET:
                if key is not None:
                    self._waiting[_OTHER[direction]].pop(key, None)
            elif key is not None:
                self._waiting[direction][key] = head.name or ""
                self.used[direction].add(key)
                token = _inner(head, "_meta", "progressToken")
                if token is not None:
                    self._tokens[token] = direction

    def waits(self, head: Head) -> bool:
        """Is this an answer that the client waits for?"""
        return head.method is UNSET and head.key in self._waiting["c2s"]

    def answer(self, text: str) -> Dir:
        """The direction of text that is no JSON but begins as an answer to a request that waits."""
        found = _LOOKS_LIKE_ANSWER.match(text)
        if found is None:
            return UNSET
        sides = [side for side in ("c2s", "s2c") if found[1] in self._waiting[side]]
        return _OTHER[sides[0]] if len(sides) == 1 else UNSET

    def _one(self, head: Head) -> Dir:
        method = head.name
        if method is None:
            return self._of_answer(head) if head.method is UNSET else UNSET
        if method in CLIENT:
            return "c2s"
        if method in SERVER:
            return "s2c"
        if head.id is not UNSET and _inner(head, "_meta", "io.modelcontextprotocol/clientCapabilities") is not None:
            return "c2s"
        if method == "notifications/cancelled":
            named = _inner(head, "requestId")
            sides = [side for side in ("c2s", "s2c") if named is not None and named in self._waiting[side]]
            return sides[0] if len(sides) == 1 else UNSET
        if method == "notifications/progress":
            token = _inner(head, "progressToken")
            return _OTHER[self._tokens[token]] if token is not None and token in self._tokens else UNSET
        return UNSET

    def _of_answer(self, head: Head) -> Dir:
        key = head.key
        sides = [side for side in ("c2s", "s2c") if key is not None and key in self._waiting[side]]
        if len(sides) == 2 and key is not None and head.result is not UNSET:
            names = {name for name, _ in jsontext.members(bytes(head.result).decode("utf-8", "surrogateescape"))}
            sides = [side for side in sides if _MEMBER.get(self._waiting[side][key]) in names]
        elif len(sides) == 1 and key is not None and head.result is not UNSET:
            names = {name for name, _ in jsontext.members(bytes(head.result).decode("utf-8", "surrogateescape"))}
            own = _MEMBER.get(self._waiting[sides[0]][key])
            if own is not None and own not in names and names & _MEMBERS:
                return UNSET  # the answer to another method, whose request is not in the source
        elif not sides and head.result is not UNSET:
            names = {name for name, _ in jsontext.members(bytes(head.result).decode("utf-8", "surrogateescape"))}
            if any(names >= own for own in _ALONE):
                return "s2c"
        return _OTHER[sides[0]] if len(sides) == 1 else UNSET


def _inner(head: Head, *path: str) -> str | None:
    if head.params is UNSET:
        return None
    return jsontext.get(bytes(head.params).decode("utf-8", "surrogateescape"), *path)[0]
