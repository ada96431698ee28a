"""Gates at a message boundary, down to nested flags."""

from __future__ import annotations

import pytest

from mcplab import ABSENT, UNKNOWN, SpecError, gate
from mcplab.gating import rule_paths, standing
from mcplab.model import Sentinel, UsageError
from mcplab.rulebook.catalogue import catalogue
from mcplab.spec import REVISIONS, capability, methods

REQUEST = {"jsonrpc": "2.0", "id": 1}
SAMPLE = {**REQUEST, "method": "sampling/createMessage"}
ASK = {**REQUEST, "method": "elicitation/create"}


def call(method: str, **params: object) -> dict:
    return {**REQUEST, "method": method, "params": params}


@pytest.mark.parametrize(
    ("declared", "allowed"),
    [({}, False), ({"tools": {}}, True), ({"tools": {"listChanged": False}}, True), ({"tools": None}, False),
     ({"tools": True}, False), (ABSENT, False), (UNKNOWN, None), (None, False)],
)  # fmt: skip
def test_a_feature_is_declared_by_an_object_alone(declared, allowed) -> None:
    said = gate("2025-11-25", server=declared).allows(call("tools/list"), "client")
    assert (said.allowed, said.path) == (allowed, "tools")
    assert said.rule == "gate.tools-request"


@pytest.mark.parametrize(
    ("flag", "allowed"), [(True, True), (False, False), ("true", False), (1, False), (None, False)]
)
def test_a_flag_is_declared_by_true_alone(flag, allowed) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert gate("2025-06-18", server={"tools": {"listChanged": flag}}).allows(notice, "server").allowed is allowed


def test_the_parent_says_nothing_for_the_flag() -> None:
    subscribe = call("resources/subscribe", uri="file:///a")
    assert gate("2025-11-25", server={"resources": {}}).allows(subscribe, "client").allowed is False
    assert gate("2025-11-25", server={"resources": {"listChanged": True}}).allows(subscribe, "client").allowed is False
    assert gate("2025-11-25", server={"resources": {"subscribe": True}}).allows(subscribe, "client").allowed is True


@pytest.mark.parametrize(
    ("declared", "mode", "allowed"),
    [({}, None, True), ({}, "form", True), ({}, "url", False), ({"url": {}}, None, False), ({"url": {}}, "url", True),
     ({"form": {}}, "url", False), ({"form": {}, "url": {}}, "form", True)],
)  # fmt: skip
def test_empty_elicitation_means_form(declared, mode, allowed) -> None:
    params = {} if mode is None else {"mode": mode}
    said = gate("2025-11-25", client={"elicitation": declared}).allows({**ASK, "params": params}, "server")
    assert said.allowed is allowed


def test_elicitation_before_modes_needs_any_object() -> None:
    assert gate("2025-06-18", client={"elicitation": {"url": {}}}).allows({**ASK, "params": {}}, "server").allowed


@pytest.mark.parametrize(
    ("declared", "params", "allowed"),
    [({}, {}, True), ({}, {"tools": []}, False), ({}, {"tools": None}, True), ({}, {"toolChoice": {}}, False),
     ({"tools": {}}, {"tools": []}, True), ({}, {"includeContext": "none"}, True),
     ({}, {"includeContext": "allServers"}, False), ({"context": {}}, {"includeContext": "allServers"}, True)],
)  # fmt: skip
def test_nested_sampling(declared, params, allowed) -> None:
    said = gate("2025-11-25", client={"sampling": declared}).allows({**SAMPLE, "params": params}, "server")
    assert said.allowed is allowed


def test_tasks_are_nested_by_method() -> None:
    message = call("tools/call", name="a", task={})
    open_ = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    assert gate("2025-11-25", server=open_).allows(message, "client").allowed is True
    said = gate("2025-11-25", server={"tools": {}, "tasks": {"requests": {"tools": {}}}}).allows(message, "client")
    assert (said.allowed, said.path, said.level) == (False, "tasks.requests.tools.call", "MUST NOT")


def test_level_follows_the_revision() -> None:
    """And is the catalogue's, for every gated message: check and the gate name one level of one rule."""
    known = catalogue()
    seen = set()
    for revision in REVISIONS:
        for one in methods(revision):
            message = {key: value for key, value in call(one.name).items() if key != "id" or one.kind == "request"}
            sender = "client" if one.direction == "c2s" else "server"
            said = gate(revision, client={}, server={}).allows(message, sender)
            if said.rule in known and said.path is not None:
                assert said.level == known[said.rule].level[revision], (revision, one.name)
                seen.add((said.rule, revision, said.level))
    assert {("gate.tools-request", revision, level) for revision, level in (
        ("2024-11-05", "SHOULD NOT"), ("2025-06-18", "MUST NOT"), ("2026-07-28", "SHOULD NOT"),
    )} <= seen  # fmt: skip


def test_modern_input_requests_need_the_very_request() -> None:
    result = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "inputRequests": {"k": ASK}}}
    assert gate("2026-07-28", client={"elicitation": {}}).allows(result, "server", answers="tools/call").allowed is True
    said = gate("2026-07-28", client={}).allows(result, "server", answers="tools/call")
    assert (said.allowed, said.rule) == (False, "mrtr.input-request-declared")


def test_what_a_revision_lacks() -> None:
    assert gate("2025-03-26", client={"elicitation": {}}).allows(ASK, "server").rule == "jsonrpc.method-known"
    assert (
        gate("2026-07-28", client={"roots": {}}).allows(call("roots/list"), "server").rule == "mrtr.server-no-requests"
    )
    assert gate("2025-11-25").allows(call("tools/list"), "server").rule == "jsonrpc.method-direction"
    assert gate("2025-11-25").allows(call("com.example/x"), "client").allowed is None


def test_text_batches_and_misuse() -> None:
    both = '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]'
    assert gate("2025-03-26", server={}).allows(both, "client").path == "tools"
    with pytest.raises(SpecError, match="no revision"):
        gate("2025-01-01")
    with pytest.raises(UsageError, match="sender='me' is neither"):
        gate("2025-11-25").allows(call("ping"), "me")
    for text in ("{", "NaN", b"\xff", "[" * 100_000):
        with pytest.raises(UsageError, match="the message is no JSON"):
            gate("2025-11-25").allows(text, "client")
    with pytest.raises(UsageError, match="client=DYNAMIC: a declaration is"):
        gate("2025-11-25", client=Sentinel("DYNAMIC"))


@pytest.mark.parametrize(
    ("message", "why"),
    [("7", "7 is no JSON-RPC message"), ([], "an empty batch"), ([None], "null is no JSON-RPC message")],
)
def test_what_is_no_message_is_not_judged(message, why) -> None:
    said = gate("2025-11-25", server={}).allows(message, "client")
    assert said.allowed is None
    assert said.reason == why


def test_malformed_is_told_apart_from_absent() -> None:
    assert standing("2025-11-25", "server", "tools", {"tools": []}).malformed
    assert not standing("2025-11-25", "server", "tools", {}).malformed
    assert standing("2025-11-25", "server", "resources.subscribe", {"resources": 1}).malformed


def test_every_rule_gates_by_a_path_that_the_protocol_has() -> None:
    paths = rule_paths()
    assert paths["gate.tools-request"] == "tools"
    for path in paths.values():
        assert any(capability(revision, party, path) for revision in REVISIONS for party in ("client", "server")), path
