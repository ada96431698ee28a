"""The demo server: what it answers in each revision, message by message and status by status."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from mcplab.live.server.behaviour import Behaviour
from mcplab.live.server.config import Config
from mcplab.live.server.faults import Faulty
from mcplab.live.server.steps import Ask, Emit, Hold, Peer
from mcplab.model import ABSENT, SpecError

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(server: Behaviour, method: str, params: Any = ABSENT, peer: Peer | None = None, ident: Any = 1) -> list[Any]:
    """All steps of one request; asks are answered with an empty result."""
    modern = peer is None
    if modern:
        params = {"_meta": META, **({} if params is ABSENT else params)}
    message = {"jsonrpc": "2.0", "id": ident, "method": method, **({} if params is ABSENT else {"params": params})}
    steps, found, reply = server.request(message, peer or Peer(), modern=modern), [], None
    with contextlib.suppress(StopIteration):
        while True:
            step = steps.send(reply)
            found.append(step)
            reply = {"result": {"answer": len(found)}} if isinstance(step, Ask) else None
    return found


def answer(steps: list[Any]) -> dict[str, Any]:
    finals = [step.message for step in steps if isinstance(step, Emit) and step.final]
    assert len(finals) == 1
    return finals[0].get("result", finals[0].get("error"))


def opened(server: Behaviour, revision: str = "2025-11-25", capabilities: Any = None) -> Peer:
    peer = Peer()
    asked = {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    answer(call(server, "initialize", asked, peer))
    server.notification({"jsonrpc": "2.0", "method": "notifications/initialized"}, peer, modern=False)
    return peer


# Behaviour ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [*LEGACY, "1999-01-01", "2026-07-28"])
def test_initialize_answers_the_same_version_or_its_latest(asked):
    server = Behaviour(Config(versions=LEGACY[:3]))
    peer = opened(server, asked)
    assert peer.revision == (asked if asked in LEGACY[:3] else "2025-06-18")


@pytest.mark.parametrize(
    "params",
    [
        ABSENT,
        {"capabilities": {}, "clientInfo": {}},
        {"protocolVersion": "2025-11-25", "clientInfo": {}},
        {"protocolVersion": "2025-11-25", "capabilities": None, "clientInfo": {}},
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": "me"},
    ],
)
def test_initialize_that_is_malformed(params):
    assert answer(call(Behaviour(Config()), "initialize", params, Peer()))["code"] == -32602


def test_legacy_before_and_twice():
    server = Behaviour(Config())
    assert answer(call(server, "ping", peer=Peer())) == {}
    assert answer(call(server, "tools/list", peer=Peer()))["code"] == -32600
    peer = opened(server)
    again = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    assert answer(call(server, "initialize", again, peer))["code"] == -32600


@pytest.mark.parametrize("revision", [*LEGACY, "2026-07-28"])
def test_every_list_and_get(revision):
    server = Behaviour(Config())
    peer = None if revision == "2026-07-28" else opened(server, revision)
    wanted = {
        "tools/list": ({}, "tools"),
        "prompts/list": ({}, "prompts"),
        "prompts/get": ({"name": "greet", "arguments": {"who": "you"}}, "messages"),
        "resources/list": ({}, "resources"),
        "resources/templates/list": ({}, "resourceTemplates"),
        "resources/read": ({"uri": "demo://numbers/7"}, "contents"),
    }
    for method, (params, member) in wanted.items():
        result = answer(call(server, method, params, peer))
        assert result[member], method
        assert ("resultType" in result) == (peer is None)
        assert ("ttlMs" in result) == (peer is None and method != "prompts/get")
    completion = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "wor"}}
    found = answer(call(server, "completion/complete", completion, peer))
    if revision == "2024-11-05":  # completions is no capability yet
        assert found["code"] == -32601
    else:
        assert found["completion"]["values"] == ["world", "worm"]
    missing = answer(call(server, "resources/read", {"uri": "demo://none"}, peer))
    assert missing["code"] == (-32602 if peer is None else -32002)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such", {}, -32601),
        ("ping", {}, -32601),
        ("logging/setLevel", {"level": "info"}, -32601),
        ("resources/subscribe", {"uri": "demo://greeting"}, -32601),
        ("tools/call", {"name": "none"}, -32602),
        ("tools/call", {"name": "echo", "arguments": []}, -32602),
        ("tools/list", {"cursor": "x"}, -32602),
        ("prompts/get", {"name": "greet"}, -32602),
        ("subscriptions/listen", {}, -32602),
        ("tools/call", {"name": "ask-roots", "requestState": "forged.tag"}, -32602),
        ("tools/list", {"_meta": {}}, -32602),
        ("tools/list", {"_meta": {**META, "io.modelcontextprotocol/clientCapabilities": None}}, -32602),
        ("tools/list", {"_meta": {**META, "io.modelcontextprotocol/logLevel": "loud"}}, -32602),
        ("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}, -32022),
    ],
)
def test_modern_refusals(method, params, code):
    error = answer(call(Behaviour(Config()), method, params))
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"supported": ["2026-07-28", *reversed(LEGACY)], "requested": "2030-01-01"}


@pytest.mark.parametrize("ident", [None, True, [1], ABSENT])
def test_ids_that_are_none(ident):
    message = {"jsonrpc": "2.0", "method": "ping", "id": ident}
    if ident is ABSENT:
        message.pop("id")
    (step,) = Behaviour(Config()).request(message, Peer(), modern=False)
    assert step.message["error"]["code"] == -32600


def test_only_what_is_declared_is_there():
    server = Behaviour(Config(capabilities={"tools": {}}))
    peer = opened(server)
    assert "tools" in answer(call(server, "tools/list", {}, peer))
    assert answer(call(server, "prompts/list", {}, peer))["code"] == -32601
    assert answer(call(server, "logging/setLevel", {"level": "info"}, peer))["code"] == -32601
    told: list[Any] = []
    peer.outlet = told.append
    call(server, "tools/call", {"name": "change-tools"}, peer)
    assert told == []


def test_progress_only_with_a_token_and_growing():
    server = Behaviour(Config())
    peer = opened(server)
    silent = call(server, "tools/call", {"name": "progress", "arguments": {"delay": 0}}, peer)
    assert [s for s in silent if isinstance(s, Emit) and not s.final] == []
    told = call(
        server, "tools/call", {"name": "progress", "arguments": {"delay": 0}, "_meta": {"progressToken": "p"}}, peer
    )
    params = [s.message["params"] for s in told if isinstance(s, Emit) and not s.final]
    assert [p["progress"] for p in params] == [1, 2, 3]
    assert {p["progressToken"] for p in params} == {"p"}
    old = opened(server, "2024-11-05")
    told = call(
        server, "tools/call", {"name": "progress", "arguments": {"delay": 0}, "_meta": {"progressToken": 1}}, old
    )
    assert all("message" not in s.message["params"] for s in told if isinstance(s, Emit) and not s.final)


def test_log_levels():
    server = Behaviour(Config())
    peer = opened(server)
    answer(call(server, "logging/setLevel", {"level": "error"}, peer))
    logged = [
        s.message["params"]["level"]
        for s in call(server, "tools/call", {"name": "log"}, peer)
        if isinstance(s, Emit) and not s.final
    ]
    assert logged == ["error", "critical", "alert", "emergency"]
    assert [s for s in call(server, "tools/call", {"name": "log"}) if isinstance(s, Emit) and not s.final] == []
    meta = {**META, "io.modelcontextprotocol/logLevel": "alert"}
    logged = [
        s for s in call(server, "tools/call", {"name": "log", "_meta": meta}) if isinstance(s, Emit) and not s.final
    ]
    assert len(logged) == 2


@pytest.mark.parametrize(
    ("capabilities", "revision", "asks"),
    [
        ({"elicitation": {}}, "2025-06-18", True),
        ({"elicitation": {}}, "2025-11-25", True),  # {} means form
        ({"elicitation": {"url": {}}}, "2025-11-25", False),
        ({"elicitation": {"form": {}}}, "2025-11-25", True),
        ({"elicitation": {}}, "2025-03-26", False),  # not in that revision
        ({}, "2025-11-25", False),
    ],
)
def test_elicitation_is_asked_only_where_it_was_declared(capabilities, revision, asks):
    server = Behaviour(Config())
    peer = opened(server, revision, capabilities)
    steps = call(server, "tools/call", {"name": "ask-elicitation"}, peer)
    asked = [step for step in steps if isinstance(step, Ask)]
    assert bool(asked) is asks
    if asks:
        assert ("mode" in asked[0].message["params"]) == (revision == "2025-11-25")
    else:
        assert answer(steps)["isError"] is True


def test_rounds_keep_nothing_in_the_server_and_trust_no_state():
    capable = {**META, "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "sampling": {}, "elicitation": {}}}
    first = {"name": "ask-all", "_meta": capable}
    server = Behaviour(Config())
    one = answer(call(server, "tools/call", first))
    assert one["resultType"] == "input_required"
    assert list(one["inputRequests"]) == ["roots"]
    assert "ttlMs" not in one
    two = answer(
        call(
            server,
            "tools/call",
            {**first, "inputResponses": {"roots": {"roots": []}}, "requestState": one["requestState"]},
            ident=2,
        )
    )
    assert list(two["inputRequests"]) == ["sampling"]
    for responses in ([], {"roots": 7}):
        assert answer(call(server, "tools/call", {**first, "inputResponses": responses}))["code"] == -32602
    other = {**first, "name": "ask-roots", "requestState": one["requestState"]}
    assert answer(call(server, "tools/call", other))["code"] == -32602  # bound to its request
    assert (
        answer(call(Behaviour(Config()), "tools/call", {**first, "requestState": one["requestState"]}))["code"]
        == -32602
    )


def test_subscriptions():
    server = Behaviour(Config())
    wants = {"toolsListChanged": True, "promptsListChanged": "yes", "resourceSubscriptions": ["demo://greeting", 7]}
    message = {
        "jsonrpc": "2.0",
        "id": "s",
        "method": "subscriptions/listen",
        "params": {"_meta": META, "notifications": wants},
    }
    steps = server.request(message, Peer(), modern=True)
    told = [next(steps).message]
    hold = next(steps)
    assert isinstance(hold, Hold)
    hold.listen.send = told.append
    for tool in ("change-tools", "change-prompts", "touch-resource"):
        call(server, "tools/call", {"name": tool})
    told += [step.message for step in steps]
    assert [note.get("method", "result") for note in told] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        "notifications/cancelled",
        "result",
    ]
    assert told[0]["params"]["notifications"] == {
        "toolsListChanged": True,
        "resourceSubscriptions": ["demo://greeting"],
    }
    for note in told:
        meta = (note.get("params") or note.get("result"))["_meta"]
        assert meta["io.modelcontextprotocol/subscriptionId"] == "s"
    assert server.listens == []


def test_legacy_changes_and_updates():
    server = Behaviour(Config())
    peer, told = opened(server), []
    peer.outlet = told.append
    call(server, "tools/call", {"name": "touch-resource"}, peer)
    assert answer(call(server, "resources/subscribe", {"uri": "demo://greeting"}, peer)) == {}
    call(server, "tools/call", {"name": "touch-resource"}, peer)
    call(server, "tools/call", {"name": "change-tools"}, peer)
    assert [note["method"] for note in told] == ["notifications/resources/updated", "notifications/tools/list_changed"]
    assert "extra" in [tool["name"] for tool in answer(call(server, "tools/list", {}, peer))["tools"]]


def test_configurations_that_are_none():
    with pytest.raises(SpecError, match="legacy, modern or dual"):
        Config(serves="both")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="no version left"):
        Config(serves="modern", versions=("2025-11-25",))
    with pytest.raises(SpecError, match="no fault"):
        Faulty("laziness")
