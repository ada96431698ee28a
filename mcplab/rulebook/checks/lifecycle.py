"""The handshake of the legacy revisions: who speaks first, and what waits for what (basic/lifecycle#initialization)."""

from __future__ import annotations

from msgspec import UNSET

from mcplab.model import ABSENT, Event
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken


def initialize_first(m: Fact) -> Outcome:
    """A ping may come before: the page allows it until the result; a modern probe belongs to the other era."""
    session = m.session
    if session.phase or session.initialized is not None:
        return None
    if m.method == "initialize":
        return KEPT
    if m.method == "ping" or "first" in session.memory:
        return None
    session.memory["first"] = True
    if not session.opened:
        return UNKNOWN
    return broken(f"the client's first message is {m.method}, before any initialize")


def client_waits(m: Fact) -> Outcome:
    session = m.session
    if m.method in ("initialize", "ping"):
        return None
    if session.phase == "asked":
        return broken(f"{m.method} was sent while initialize had no answer", related=(session.initialize or 0,))
    return KEPT if session.phase == "answered" else UNKNOWN


def initialized_sent(m: Fact) -> Outcome:
    """Judged when notifications/initialized comes, or when the connection ends without it."""
    session, memory = m.session, m.session.memory
    if session.phase != "answered" or session.initialized is not None:
        return None
    if m.kind == "request":
        if m.method not in ("ping", "initialize"):
            memory.setdefault("went on", (session.initialize, m.place))
        return None
    if m.kind == "notification":
        return KEPT
    if memory.get("gone without initialized") == session.initialize:
        return None
    if m.kind == "close":
        memory["gone without initialized"] = session.initialize
        went_on = memory.get("went on")
        if went_on is None or went_on[0] != session.initialize:
            return None  # the session ended before the client asked for anything: it may have refused the version
        if session.open and _fell(m.event):
            return UNKNOWN  # the server was gone before it answered: the client may have been about to
        detail = "the client went on after the initialize result, and the connection ended without initialized"
        return broken(detail, at=went_on[1], related=(m.seq,), absence=True)
    return UNKNOWN


def _fell(event: Event | None) -> bool:
    """Did the server end the connection, as far as its close tells?"""
    if event is None:
        return False
    return event.by == "server" or event.unexpected is True or event.exit_code not in (UNSET, None, 0)


def initialized_after_result(m: Fact) -> Outcome:
    session = m.session
    if session.phase == "answered":
        return KEPT
    if session.phase == "asked":
        return broken("initialize has no answer yet", related=(session.initialize or 0,))
    if session.phase == "refused":
        return broken("the server refused initialize", related=(session.initialize or 0,))
    return broken("there was no initialize before it") if session.opened else UNKNOWN


def once(m: Fact) -> Outcome:
    if m.session.phase != "answered":
        return None
    return KEPT if m.session.initialized is None else broken("the second in one session")


def initialize_once(m: Fact) -> Outcome:
    if m.post is not None and (m.post.headers or {}).get("mcp-session-id") is None:
        return KEPT  # over HTTP each initialize without a session id begins a session
    if m.session.phase == "answered":
        return broken("this connection was initialized before", related=(m.session.initialize or 0,))
    return KEPT


def server_silent(m: Fact) -> Outcome:
    session = m.session
    if session.phase or m.method in ("ping", "notifications/message"):
        return KEPT if session.phase and session.began else None
    return broken(f"{m.method} came before any initialize") if session.opened else UNKNOWN


def server_waits(m: Fact) -> Outcome:
    session = m.session
    if m.method == "ping" or not session.phase:
        return None if session.phase else UNKNOWN
    if session.initialized is not None:
        return KEPT
    return broken(f"{m.method} came before notifications/initialized", related=(session.initialize or 0,))


def initialize_params(m: Fact) -> Outcome:
    params = m.params
    wrong = []
    if "capabilities" not in params:
        wrong.append("capabilities is absent")
    elif not isinstance(params["capabilities"], dict):
        wrong.append("capabilities is not an object")
    wrong += implementation(params.get("clientInfo", ABSENT), "clientInfo")
    return broken("; ".join(wrong)) if wrong else KEPT


def initialize_result(m: Fact) -> Outcome:
    result = m.result
    wrong = []
    if "capabilities" not in result:
        wrong.append("capabilities is absent")
    elif not isinstance(result["capabilities"], dict):
        wrong.append("capabilities is not an object")
    wrong += implementation(result.get("serverInfo", ABSENT), "serverInfo")
    if not isinstance(result.get("instructions", ""), str):
        wrong.append("instructions is not a string")
    return broken("; ".join(wrong)) if wrong else KEPT


def implementation(value: object, name: str) -> list[str]:
    """What is wrong with a clientInfo or serverInfo: it needs a string name and a string version."""
    if value is ABSENT:
        return [f"{name} is absent"]
    if not isinstance(value, dict):
        return [f"{name} is not an object"]
    return [f"{name}.{key} is not a string" for key in ("name", "version") if not isinstance(value.get(key), str)]
