"""mcplab.spec methods and gates: against the SDK's own maps, and fact by fact against the text."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from mcp_types import methods as sdk

from mcplab import spec
from mcplab.model import SpecError

TASKS = 'extensions["io.modelcontextprotocol/tasks"]'

# Against the SDK ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", spec.REVISIONS)
@pytest.mark.parametrize(
    ("table", "kind", "direction"),
    [
        (sdk.CLIENT_REQUESTS, "request", "c2s"),
        (sdk.SERVER_REQUESTS, "request", "s2c"),
        (sdk.CLIENT_NOTIFICATIONS, "notification", "c2s"),
        (sdk.SERVER_NOTIFICATIONS, "notification", "s2c"),
    ],
)
def test_methods_are_the_sdk_s(revision: str, table: Any, kind: str, direction: str) -> None:
    theirs = {name for name, version in table if version == revision}
    ours = {m.name for m in spec.methods(revision) if m.kind == kind and m.sent(direction)}
    assert {name for name in ours - theirs if "tasks" not in name} == set()  # the SDK leaves tasks out on purpose
    assert theirs <= ours


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(("table", "direction"), [(sdk.SERVER_RESULTS, "c2s"), (sdk.CLIENT_RESULTS, "s2c")])
def test_result_members_are_those_that_the_sdk_requires(revision: str, table: Any, direction: str) -> None:
    for (name, version), model in table.items():
        if version == revision:
            complete = [part for part in get_args(model) or (model,) if part.__name__ != "InputRequiredResult"]
            fields = complete[0].model_fields
            needed = {field.alias or key for key, field in fields.items() if field.is_required()} - {
                "resultType",
                "_meta",
            }
            found = spec.method(revision, name, direction)
            assert found is not None
            assert found.result is not None
            assert {member for member in found.result if not member.startswith("_meta[")} == needed, name


def test_multi_round_trip_and_cacheable_methods_are_the_sdk_s() -> None:
    modern = spec.methods("2026-07-28")
    assert {m.name for m in modern if m.mrtr} == sdk.INPUT_REQUIRED_METHODS
    assert {m.name for m in modern if m.cacheable} == sdk.CACHEABLE_METHODS
    assert not any(m.mrtr or m.cacheable for revision in spec.REVISIONS[:4] for m in spec.methods(revision))


# Integrity ------------------------------------------------------------------------------------------------------------

KINDS = {"request", "notification", "input-request"}
PHASES = {
    "first", "any", "any-after-initialize-request", "after-initialize-result", "any-after-request",
    "while-request-active", "operation", "after-subscribe", "after-url-elicitation", "after-task-created",
    "first-on-subscription", "while-subscription-open", "inside-input-required",
}  # fmt: skip


@pytest.mark.parametrize("revision", spec.REVISIONS)
def test_every_entry_is_well_formed(revision: str) -> None:
    seen = set()
    for m in spec.methods(revision):
        assert m.kind in KINDS
        assert m.phase in PHASES
        assert m.direction in ("c2s", "s2c", "both")
        assert m.revision == revision
        assert m.era == spec.era(revision)
        for direction in ("c2s", "s2c"):
            if m.sent(direction):
                assert (m.name, direction) not in seen
                seen.add((m.name, direction))
                assert spec.method(revision, m.name, direction) is m
        assert (m.kind == "notification") is m.name.startswith("notifications/")
        assert (m.result is None) is (m.kind == "notification" or m.result_of != "")
        assert bool(m.gate) is bool(m.gate_side) is bool(m.gate_section)
        assert m.tagged is (m.stream == "listen")
        for section in (m.section, m.gate_section, *(part.gate_section for part in m.variants)):
            assert not section or spec.spec_url(revision, section).startswith("https://")


@pytest.mark.parametrize("revision", spec.REVISIONS)
def test_every_gate_is_a_known_path_of_its_party(revision: str) -> None:
    for party in ("client", "server"):
        assert spec.gates(revision, party).keys() <= {c.path for c in spec.capabilities(revision, party)}
    gated = {g.method for p in ("client", "server") for found in spec.gates(revision, p).values() for g in found}
    assert {m.name for m in spec.methods(revision) if m.gate} <= gated


# Lookups --------------------------------------------------------------------------------------------------------------


def test_eras() -> None:
    legacy, modern = frozenset({"legacy"}), frozenset({"modern"})
    assert spec.eras_of("initialize", "c2s") == legacy
    assert spec.eras_of("server/discover", "c2s") == spec.eras_of("subscriptions/listen") == modern
    assert spec.eras_of("tools/list", "c2s") == legacy | modern
    assert spec.eras_of("ping", "s2c") == legacy
    assert spec.eras_of("notifications/progress", "s2c") == legacy | modern
    assert spec.eras_of("notifications/progress", "c2s") == legacy
    assert spec.eras_of("sampling/createMessage", "s2c") == legacy  # an input request is no message
    assert spec.eras_of("tasks/get", "c2s") == legacy | modern
    assert spec.eras_of("tasks/get", "s2c") == legacy
    assert spec.eras_of("tools/list", "s2c") == spec.eras_of("no/such") == frozenset()


def test_method_lookup() -> None:
    assert spec.method("2025-03-26", "elicitation/create") is None
    assert spec.method("2025-11-25", "tools/list", "s2c") is None
    client, server = (spec.method("2026-07-28", "notifications/cancelled", way) for way in ("c2s", "s2c"))
    assert client is not None
    assert client.phase == "while-request-active"
    assert server is not None
    assert server.phase == "while-subscription-open"
    assert spec.method("2026-07-28", "notifications/cancelled") is client
    names = spec.method_names()
    assert len(names) == len(set(names))
    assert names[0] == "initialize"
    assert "tasks/update" in names
    with pytest.raises(SpecError, match="no revision 'draft'"):
        spec.method("draft", "ping")


def test_what_2026_07_28_removed() -> None:
    before, after = ({m.name for m in spec.methods(name)} for name in ("2025-11-25", "2026-07-28"))
    assert before - after == {
        "initialize", "notifications/initialized", "ping", "logging/setLevel", "resources/subscribe",
        "resources/unsubscribe", "notifications/roots/list_changed", "notifications/elicitation/complete",
        "notifications/tasks/status", "tasks/result", "tasks/list",
    }  # fmt: skip


# Gates, fact by fact --------------------------------------------------------------------------------------------------


def gated(revision: str, party: str, path: str) -> set[tuple[str, str, str]]:
    found = spec.capability(revision, party, path)
    assert found is not None
    return {(gate.method, gate.direction, gate.strength) for gate in found.gates}


def test_strength_follows_the_revision_unless_a_feature_says_more() -> None:
    levels = {
        "2024-11-05": "SHOULD",
        "2025-03-26": "SHOULD",
        "2025-06-18": "MUST",
        "2025-11-25": "MUST",
        "2026-07-28": "",
    }
    for revision, level in levels.items():
        assert gated(revision, "server", "tools") == {("tools/list", "c2s", level), ("tools/call", "c2s", level)}
        assert gated(revision, "server", "tools.listChanged") == {("notifications/tools/list_changed", "s2c", level)}
        assert ("notifications/message", "s2c", "MUST") in gated(revision, "server", "logging")
        assert gated(revision, "client", "roots") == {("roots/list", "s2c", level or "MUST")}


def test_subscribe_changed_its_meaning() -> None:
    methods = {"resources/subscribe", "resources/unsubscribe", "notifications/resources/updated"}
    assert {name for name, _, _ in gated("2025-11-25", "server", "resources.subscribe")} == methods
    assert {name for name, _, _ in gated("2026-07-28", "server", "resources.subscribe")} == {
        "notifications/resources/updated"
    }


def test_completion_has_no_gate_before_its_capability() -> None:
    first = spec.method("2024-11-05", "completion/complete")
    assert first is not None
    assert first.gate is None
    assert first.strength == ""
    assert gated("2025-03-26", "server", "completions") == {("completion/complete", "c2s", "SHOULD")}


def test_task_gates_lie_with_the_receiver_and_status_with_the_sender() -> None:
    for party, ask, tell in (("client", "s2c", "c2s"), ("server", "c2s", "s2c")):
        assert gated("2025-11-25", party, "tasks") == {
            ("tasks/get", ask, "MUST"),
            ("tasks/result", ask, "MUST"),
            ("notifications/tasks/status", tell, "MUST"),
        }
        assert gated("2025-11-25", party, "tasks.cancel") == {("tasks/cancel", ask, "MUST")}
    assert gated("2025-11-25", "server", "tasks.requests.tools.call") == {("tools/call", "c2s", "MUST")}
    assert gated("2025-11-25", "client", "tasks.requests.elicitation.create") == {
        ("elicitation/create", "s2c", "SHOULD")
    }


def test_the_tasks_extension_is_declared_by_both() -> None:
    requests = {("tasks/get", "c2s", "MUST"), ("tasks/update", "c2s", "MUST"), ("tasks/cancel", "c2s", "MUST")}
    both = {*requests, ("notifications/tasks", "s2c", "MUST")}
    assert gated("2026-07-28", "server", TASKS) == both
    assert gated("2026-07-28", "client", TASKS) == {
        *both,
        ("tools/call", "s2c", "MUST"),
        ("subscriptions/listen", "c2s", "MUST"),
    }


def holding(revision: str, name: str, message: Any) -> set[str]:
    found = spec.method(revision, name)
    assert found is not None
    return {part.gate for part in found.variants if part.when.holds(message)}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, set()),
        ({"tools": []}, {"sampling.tools"}),
        ({"toolChoice": {"mode": "auto"}}, {"sampling.tools"}),
        ({"tools": None, "toolChoice": None}, set()),
        ({"includeContext": "none"}, set()),
        ({"includeContext": "thisServer"}, {"sampling.context"}),
        ({"includeContext": "allServers", "tools": [{}]}, {"sampling.context", "sampling.tools"}),
    ],
)
def test_what_a_sampling_request_needs(revision: str, params: Any, wanted: set[str]) -> None:
    assert holding(revision, "sampling/createMessage", {"params": params}) == wanted


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, {"elicitation.form"}),
        ({"mode": "form"}, {"elicitation.form"}),
        ({"mode": "url"}, {"elicitation.url"}),
        ({"mode": None}, set()),
        ({"mode": "modal"}, set()),
        ({"mode": ["url"]}, set()),
    ],
)
def test_what_an_elicitation_needs(revision: str, params: Any, wanted: set[str]) -> None:
    assert holding(revision, "elicitation/create", {"params": params}) == wanted


def test_no_modes_in_2025_06_18_and_no_variants_before_2025_11_25() -> None:
    for revision in spec.REVISIONS[:3]:
        assert not any(m.variants for m in spec.methods(revision))


def test_conditions_look_at_whatever_they_get() -> None:
    for message in (None, [], "x", 1, {}, {"params": None}, {"params": []}, {"params": "task"}):
        assert holding("2025-11-25", "tools/call", message) == set()
    assert holding("2025-11-25", "tools/call", {"params": {"task": {}}}) == {"tasks.requests.tools.call"}


def test_answers_that_need_a_capability() -> None:
    url = spec.capability("2025-11-25", "client", "elicitation.url")
    assert url is not None
    error = next(gate for gate in url.gates if gate.kind == "error")
    assert error.when is not None
    assert error.when.holds({"error": {"code": -32042}})
    assert not error.when.holds({"error": {"code": "-32042"}})
    task = next(gate for gate in spec.gates("2026-07-28", "client")[TASKS] if gate.kind == "result")
    assert task.when is not None
    assert task.when.holds({"result": {"resultType": "task"}})
    assert str(task.when) == "result.resultType is task"


def test_log_messages_also_need_the_request_s_log_level() -> None:
    found = spec.method("2026-07-28", "notifications/message")
    assert found is not None
    assert spec.META_LOG_LEVEL in found.also_needs
