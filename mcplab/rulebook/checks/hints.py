"""Guesses: what often shows a misunderstanding and may as well be right. They give hints only (docs/rules.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcplab import jsontext
from mcplab.rulebook.checks.capabilities import declared_in
from mcplab.rulebook.checks.http import streamable
from mcplab.rulebook.checks.sessions import HEADER as SESSION
from mcplab.rulebook.checks.version_header import HEADER as VERSION
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_VERSION, capability, join, method_names, path_order

_OF: Final = {
    "client": ("roots", "sampling", "elicitation"),
    "server": ("tools", "prompts", "resources", "logging", "completions"),
}
_TASKS: Final = {"client": {"sampling": ("createMessage",), "elicitation": ("create",)}, "server": {"tools": ("call",)}}
_OFFICIAL: Final = ("ui", "tasks", "oauth-client-credentials", "enterprise-managed-authorization")
_RESERVED: Final = re.compile(r"[^./]+\.(?:modelcontextprotocol|mcp)[./]")
_FLAGS: Final = {
    "toolsListChanged": ("tools", "listChanged"), "promptsListChanged": ("prompts", "listChanged"),
    "resourcesListChanged": ("resources", "listChanged"), "resourceSubscriptions": ("resources", "subscribe"),
}  # fmt: skip
_SESSION_TALK: Final = re.compile(r"initiali[sz]|session", re.IGNORECASE)
_BEFORE_METHODS: Final = (-32022, -32020, -32602, -32021)


def wrong_party(m: Fact) -> Outcome:
    party, declared = declared_in(m)
    if not isinstance(declared, Mapping):
        return None
    other = "server" if party == "client" else "client"
    found = [name for name in _OF[other] if name in declared]
    return broken(f"the {party} declares {', '.join(found)}, which only a {other} has") if found else KEPT


def _paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(value, Mapping) and len(above) < 4:
        for key, below in value.items():
            if (*above, key)[0] not in ("experimental", "extensions"):
                yield join((*above, key))
                yield from _paths(below, (*above, key))


def not_in_revision(m: Fact) -> Outcome:
    """A client declares before it knows the version: of a legacy one the superset is no sign of anything."""
    party, declared = declared_in(m)
    if not isinstance(declared, Mapping) or m.revision is None or (party == "client" and m.era != "modern"):
        return None
    known = path_order(party)
    found = [path for path in _paths(declared) if path in known and capability(m.revision, party, path) is None]
    return broken(f"{', '.join(found)}: {m.revision} has no such thing") if found else KEPT


def tasks_structure(m: Fact) -> Outcome:
    party, declared = declared_in(m)
    tasks = declared.get("tasks") if isinstance(declared, Mapping) else None
    asked = tasks.get("requests") if isinstance(tasks, Mapping) else None
    if not isinstance(asked, Mapping):
        return None
    wrong = [key for key in asked if key not in _TASKS[party]]
    for key, names in _TASKS[party].items():
        inner = asked.get(key)
        wrong += [f"{key}.{name}" for name in inner if name not in names] if isinstance(inner, Mapping) else []
    return broken(f"not among those that may be tasks: {', '.join(wrong)}") if wrong else KEPT


def reserved_vendor(m: Fact) -> Outcome:
    declared = declared_in(m)[1]
    named = declared.get("extensions") if isinstance(declared, Mapping) else None
    if not isinstance(named, Mapping) or not named:
        return None
    wrong = [key for key in named if _RESERVED.match(key) and key.rpartition("/")[2] not in _OFFICIAL]
    return broken(f"no official extension: {', '.join(map(repr, wrong))}") if wrong else KEPT


def filter_undeclared(m: Fact) -> Outcome:
    wanted, declared = m.params.get("notifications"), m.server_capabilities
    if not isinstance(wanted, Mapping) or not isinstance(declared, Mapping):
        return None
    lacks = []
    for name, (path, flag) in _FLAGS.items():
        group = declared.get(path)
        if wanted.get(name, False) not in (False, []) and not (isinstance(group, Mapping) and group.get(flag) is True):
            lacks.append(name)
    return broken(f"the server does not offer {', '.join(lacks)}") if lacks else KEPT


def graceful_end(m: Fact) -> Outcome:
    """The end of a subscription's stream that the server closed, and no answer to its request."""
    if m.post is None or m.post.request is None or getattr(m.event, "kind", "") != "close":
        return None
    listen = m.session.listens.get(str(m.post.request.id)) if m.post.request.method == "subscriptions/listen" else None
    if listen is None or getattr(m.event, "by", None) != "server":
        return None
    return KEPT if listen.ended is not None else broken("the server closed the stream without an answer", absence=True)


def unknown_method(m: Fact) -> Outcome:
    if m.again or m.method is None or m.method in method_names() or m.code in _BEFORE_METHODS:
        return None
    return KEPT if m.code == -32601 else broken(f"the unknown method {m.method} was answered {m.code}")


def era_mixed(m: Fact) -> Outcome:
    asked = m.request
    version = asked.meta.get(META_VERSION) if asked is not None else None
    if version not in (m.session.instance.supported or ()) or m.code in (-32022, -32020, -32021):
        return None
    said = jsontext.dumps(m.error.get("message", ""))
    return broken(f"a modern request was refused: {said:.80}") if _SESSION_TALK.search(said) else None


def id_strength(m: Fact) -> Outcome:
    given = (m.post.answer_headers or {}).get(SESSION) if m.post is not None else None
    if given is None:
        return None
    return broken("the session id is short or a number") if len(given) < 16 or given.isdecimal() else KEPT


def absent_tolerated(m: Fact) -> Outcome:
    post = streamable(m)
    session = m.session
    if post is None or post.headers is None or VERSION in post.headers or session.phase != "answered":
        return None
    if post.era == "modern" or session.session_id is not None or post.exchange.initializes or post.request is None:
        return None
    status = post.exchange.status
    if status is None:
        return UNKNOWN
    return broken("400 to a request without MCP-Protocol-Version") if status == 400 else KEPT


def origin_refused(m: Fact) -> Outcome:
    """Which origins are let in is the server's configuration; one of another host than its own is doubtful."""
    post = streamable(m)
    headers = post.headers if post is not None else None
    if post is None or headers is None or "origin" not in headers or "host" not in headers:
        return None
    origin, status = headers["origin"], post.exchange.status
    try:
        same = urlsplit(origin).hostname == urlsplit(f"//{headers['host']}").hostname
    except ValueError:
        same = False  # no address at all
    if same or status is None:
        return None
    return KEPT if status == 403 else broken(f"Origin {origin!r:.80} was answered {status}")
