"""Shapes of params and results: against bundled traffic, against the SDK's types, and by single faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import methods as sdk
from pydantic import ValidationError

from mcplab import read_traces
from mcplab.model import ABSENT
from mcplab.spec import REVISIONS, method
from mcplab.spec.shapes import params_problems, result_problems

TEXT = {"type": "text", "text": "x"}
INIT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


@pytest.mark.parametrize("revision", [name for name in REVISIONS if name < "2026"])
def test_initialize_in_every_legacy_revision(revision: str) -> None:
    assert params_problems(revision, "initialize", INIT) == []
    assert params_problems(revision, "initialize", ABSENT) == ["params is absent"]
    assert params_problems(revision, "initialize", {**INIT, "capabilities": None}) == [
        "params.capabilities is not an object"
    ]
    wrong = {**INIT, "capabilities": {"roots": {"listChanged": "true"}}}
    assert params_problems(revision, "initialize", wrong) == [
        "params.capabilities.roots.listChanged is not of type boolean"
    ]
    assert "params.clientInfo.version is absent" in (
        params_problems(revision, "initialize", {**INIT, "clientInfo": {"name": "a"}}) or []
    )


def test_members_types_lists_and_constants() -> None:
    assert result_problems("2025-06-18", "tools/call", {"content": [TEXT]}) == []
    assert result_problems("2025-06-18", "tools/call", {"content": TEXT}) == ["result.content is not an array"]
    assert result_problems("2025-06-18", "tools/call", {"content": [{"type": "text"}]}) == [
        "result.content[0].text is absent"
    ]
    assert params_problems("2025-06-18", "logging/setLevel", {"level": "warn"}) != []
    assert params_problems("2024-11-05", "elicitation/create", {}) is None
    assert result_problems("2026-07-28", "tools/list", {"tools": []}) == [
        "result.cacheScope is absent", "result.resultType is absent", "result.ttlMs is absent",
    ]  # fmt: skip


@pytest.mark.parametrize("revision", REVISIONS)
def test_required_result_members_are_those_of_the_method_files(revision: str) -> None:
    """Two readings of one schema: an empty result lacks exactly what methods_*.toml lists (besides resultType)."""
    for direction in ("c2s", "s2c"):
        for name in ("tools/list", "tools/call", "prompts/get", "resources/read", "completion/complete", "roots/list"):
            entry = method(revision, name, direction)
            if entry is None or entry.result is None:
                continue
            lacks = result_problems(revision, name, {}) or []
            found = {text.removeprefix("result.").removesuffix(" is absent") for text in lacks} - {"resultType"}
            assert found == set(entry.result), (revision, name)


def test_bundled_traffic_fits(captures: list[Path]) -> None:
    """Real messages: what the shapes find wrong with them is nothing."""
    wrong: list[tuple[Any, ...]] = []
    for trace in read_traces(*captures[::7], progress=False):
        wire = trace.tables.wire
        for number, row in enumerate(wire.rows):
            version, name = wire.version[number], wire.method[number]
            if version not in REVISIONS or name is None:
                continue
            body = json.loads(bytes(row.raw))
            if wire.kind[number] in ("request", "notification"):
                said = params_problems(version, name, body.get("params", ABSENT))
            elif wire.kind[number] == "response" and body["result"].get("resultType", "complete") == "complete":
                said = result_problems(version, name, body["result"])
            else:
                continue
            wrong += [(trace.name, name, one) for one in said or ()]
    assert wrong == []


# Against the SDK's types: 2025-11-25 and 2026-07-28, one changed member at a time ---------------------------------

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PARAMS = {
    **INIT, "name": "n", "uri": "file:///a", "level": "info", "ref": {"type": "ref/prompt", "name": "p"},
    "argument": {"name": "a", "value": ""}, "notifications": {}, "arguments": {},
}  # fmt: skip
RESULT = {
    "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    "tools": [{"name": "t", "inputSchema": {"type": "object"}}], "prompts": [{"name": "p"}],
    "resources": [{"name": "r", "uri": "file:///a"}], "resourceTemplates": [{"name": "r", "uriTemplate": "file:///{a}"}],
    "contents": [{"uri": "file:///a", "text": "x"}], "messages": [{"role": "user", "content": TEXT}], "content": [TEXT],
    "completion": {"values": ["a"]}, "protocolVersion": "v", "capabilities": {},
    "serverInfo": {"name": "a", "version": "1"}, "supportedVersions": ["v"],
    "_meta": {"io.modelcontextprotocol/subscriptionId": 1},
}  # fmt: skip
WRONG = (None, 1, "x", True, [], {}, [1], [{}], ["x"], {"listChanged": "true"}, -1)


def changed(whole: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """(member, its value or ABSENT, the whole with that change)."""
    yield "", ABSENT, whole
    for name in whole:
        yield name, ABSENT, {key: value for key, value in whole.items() if key != name}
        for value in WRONG:
            yield name, value, {**whole, name: value}


def laxer(revision: str, name: str, member: str, value: Any, *, result: bool) -> str:
    """Why the SDK takes what the schema does not; "" where there is no reason."""
    if value is None and member in ("_meta", "arguments"):
        return "an optional member may be null"
    if value is True and member == "ttlMs":
        return "true is a number"
    if result and revision == "2026-07-28" and name in sdk.INPUT_REQUIRED_METHODS:
        return "what is no complete result is taken for one that asks for input"
    return ""


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("side", ["params", "result"])
def test_the_sdk_says_the_same(revision: str, side: str) -> None:
    """It looks at the least value of a number too, which shapes leave out."""
    result = side == "result"
    surface = sdk.SERVER_RESULTS if result else sdk.CLIENT_REQUESTS
    whole = dict(RESULT if result else PARAMS)
    if revision == "2026-07-28" and not result:
        whole["_meta"] = META
    compared = 0
    for name in (name for name, version in surface if version == revision):
        for member, value, message in changed(whole):
            mine = (result_problems if result else params_problems)(revision, name, message)
            assert mine is not None
            try:
                (sdk.validate_server_result if result else sdk.validate_client_request)(name, revision, message)
                accepted = True
            except ValidationError:
                accepted = False
            compared += 1
            if accepted and mine:
                assert laxer(revision, name, member, value, result=result), (name, member, value, mine)
            elif not accepted and not mine:
                assert (member, value) == ("ttlMs", -1), (name, member, value)
    assert compared > 1000


@pytest.mark.parametrize(
    "capabilities", [{"roots": {"listChanged": "true"}}, {"roots": {"listChanged": 1}}, {"roots": None}]
)
def test_where_the_sdk_is_laxer_on_capabilities(capabilities: Any) -> None:
    sdk.validate_client_request("initialize", "2025-11-25", {**INIT, "capabilities": capabilities})
    assert params_problems("2025-11-25", "initialize", {**INIT, "capabilities": capabilities})
