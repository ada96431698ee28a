"""Mcp-Param headers: what the list of tools owes, and what a capture cannot tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcplab import Trace, check
from mcplab.rulebook import examples
from mcplab.rulebook.checks.mcp_param import _FAULTS, _marks

REVISION = "2026-07-28"
TEXT = {"type": "string", "x-mcp-header": "Region"}
WHOLE = {"type": "integer", "x-mcp-header": "Limit"}
FLAG = {"type": "boolean", "x-mcp-header": "Dry"}
NESTED = {"type": "object", "properties": {"region": TEXT}}


def listed(**properties: Any) -> str:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": properties}}
    return (
        'http\nhandshake server={"tools":{"listChanged":true}}\n> {"id":1,"method":"tools/list"}\n'
        f'< {{"id":1,"result":{{"tools":[{json.dumps(tool)}]}}}}\n'
    )


def call(headers: str, arguments: Any, name: str = "t") -> str:
    params = {"name": name, "arguments": arguments}
    return f'> [{headers}] {{"id":2,"method":"tools/call","params":{json.dumps(params)}}}\n'


SERVED = '< {"id":2,"result":{"content":[]}}\n'
REFUSED = '< [status=400] {"id":2,"error":{"code":-32020,"message":"no"}}\n'


def verdicts(script: str) -> dict[str, str]:
    table = check(Trace(examples.record(script, REVISION)), rules=["mcp-param", "mcp-headers"])
    table = table[table["verdict"] != "unexercised"]
    return dict(zip(table["rule"], table["verdict"], strict=True))


@pytest.mark.parametrize(
    ("properties", "headers", "arguments", "said"),
    [
        ({"a": TEXT}, "mcp-param-region=eu", {"a": "eu"}, "kept"),
        ({"a": TEXT}, "x=1", {"a": "eu"}, "broken"),
        ({"a": TEXT}, "mcp-param-region=EU", {"a": "eu"}, "broken"),
        ({"a": TEXT}, "mcp-param-region==?base64?ZXU=?=", {"a": "eu"}, "kept"),
        ({"a": TEXT}, "mcp-param-region==?base64?Z?=", {"a": "eu"}, "broken"),
        ({"a": TEXT}, "mcp-param-region=", {"a": ""}, "kept"),
        ({"a": WHOLE}, "mcp-param-limit=42.0", {"a": 42}, "kept"),
        ({"a": WHOLE}, "mcp-param-limit=42", {"a": 42.0}, "kept"),
        ({"a": WHOLE}, "mcp-param-limit=43", {"a": 42}, "broken"),
        ({"a": FLAG}, "mcp-param-dry=false", {"a": False}, "kept"),
        ({"a": FLAG}, "mcp-param-dry=0", {"a": False}, "broken"),
        ({"a": NESTED}, "mcp-param-region=eu", {"a": {"region": "eu"}}, "kept"),
        ({"a": NESTED}, "x=1", {"a": {"region": "eu"}}, "broken"),
        ({"a": NESTED}, "x=1", {"a": 1}, None),
        ({"a": TEXT}, "x=1", {"a": None}, None),
        ({"a": TEXT}, "x=1", {}, None),
        ({"a": {"type": "string"}}, "x=1", {"a": "eu"}, None),
        ({"a": {"type": "string", "default": {"x-mcp-header": "A"}}}, "x=1", {"a": "eu"}, None),
        ({"x-mcp-header": {"type": "string"}}, "x=1", {"x-mcp-header": "eu"}, None),
    ],
)
def test_what_a_call_owes(properties: dict, headers: str, arguments: Any, said: str | None) -> None:
    assert verdicts(listed(**properties) + call(headers, arguments) + SERVED).get("mcp-param.mirrored") == said


def test_without_a_list_nothing_is_known() -> None:
    missing = call("x=1", {"a": "eu"}) + SERVED
    for before in (
        'http\nhandshake server={"tools":{}}\n',
        listed(a=TEXT).replace('"name": "t"', '"name": "other"'),
        listed(a=TEXT).replace('"tools":[{', '"nextCursor":"c","tools":[{'),  # the list goes on
    ):
        said = verdicts(before + missing)
        for rule in ("mirrored", "omitted-when-absent", "integer-range", "invalid-tool-not-called", "server-validates"):
            assert said[f"mcp-param.{rule}"] == "unknown", (before, rule)


def test_a_list_that_changed_is_no_ground() -> None:
    listening = (
        '> {"id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
        '< [content-type=text/event-stream] {"method":"notifications/subscriptions/acknowledged","params":'
        '{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"notifications":{"toolsListChanged":true}}}\n'
        '< [content-type=text/event-stream] {"method":"notifications/tools/list_changed",'
        '"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9}}}\n'
    )
    said = verdicts(listed(a=TEXT) + listening + call("x=1", {"a": "eu"}) + SERVED)
    assert said["mcp-param.mirrored"] == said["mcp-param.server-validates"] == "unknown"


def test_over_stdio_nothing_is_owed() -> None:
    script = (listed(a=TEXT) + call("x=1", {"a": "eu"}) + SERVED).removeprefix("http\n").replace("[x=1] ", "")
    assert set(verdicts(script)) == {
        "mcp-param.annotation-name", "mcp-param.annotation-unique", "mcp-param.annotation-type",
        "mcp-param.annotation-reachable",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "arguments", "rule", "said"),
    [
        ("mcp-param-region=eu", {"a": "eu"}, "mcp-headers.false-mismatch", "broken"),
        ("mcp-param-region=us", {"a": "eu"}, "mcp-headers.false-mismatch", "kept"),
        ("mcp-param-region=eu", {}, "mcp-headers.false-mismatch", "kept"),
        ("mcp-param-region=é", {"a": "é"}, "mcp-headers.false-mismatch", "kept"),
        ("mcp-param-region=eu; -mcp-name", {"a": "eu"}, "mcp-headers.false-mismatch", "kept"),
        ("x=1", {}, "mcp-headers.false-mismatch", None),
        ("x=1", {}, "mcp-param.server-not-expect-null", "broken"),
        ("x=1", {"a": ["eu"]}, "mcp-headers.false-mismatch", "unknown"),
    ],
)
def test_why_a_call_was_refused(headers: str, arguments: Any, rule: str, said: str | None) -> None:
    assert verdicts(listed(a=TEXT) + call(headers, arguments) + REFUSED).get(rule) == said


def test_a_bare_value_is_unsafe_whatever_was_listed() -> None:
    script = 'http\nhandshake server={"tools":{}}\n' + call("mcp-param-region=é", {"a": "é"}) + SERVED
    assert verdicts(script)["mcp-headers.unsafe-encoded"] == "broken"


@pytest.mark.parametrize(
    ("schema", "faults"),
    [
        ({"properties": {"a": TEXT}}, ()),
        ({"properties": {"a": NESTED}}, ()),
        ({"properties": {"a": {**TEXT, "x-mcp-header": ""}}}, ("name",)),
        ({"properties": {"a": {**TEXT, "x-mcp-header": "a\r\nb"}}}, ("name",)),
        ({"properties": {"a": {**TEXT, "x-mcp-header": None}}}, ("name",)),
        ({"properties": {"a": {**TEXT, "x-mcp-header": ["Region"]}}}, ("name",)),
        ({"properties": {"a": TEXT, "b": NESTED}}, ("unique",)),
        ({"properties": {"a": {"x-mcp-header": "A"}}}, ("type",)),
        ({"properties": {"a": {"type": "object", "x-mcp-header": "A"}}}, ("type",)),
        ({"properties": {"a": {"type": ["string", "number"], "x-mcp-header": "A"}}}, ("type",)),
        ({"properties": {"a": {"type": [{}], "x-mcp-header": "A"}}}, ("type",)),
        ({"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}}, ("type?",)),
        ({"properties": {"a": {"$ref": "#/$defs/a", "x-mcp-header": "A"}}}, ("type?",)),
        ({"x-mcp-header": "A", "type": "string"}, ("reachable",)),
        ({"$defs": {"a": TEXT}, "properties": {"a": {"$ref": "#/$defs/a"}}}, ("reachable",)),
        ({"allOf": [{"properties": {"a": TEXT}}]}, ("reachable",)),
        ({"properties": {"a": {"items": [TEXT]}}}, ("reachable",)),
        ({"patternProperties": {"a": TEXT}}, ("reachable",)),
        ({"then": {"properties": {"a": TEXT}}}, ("reachable",)),
        ({"properties": {"a": {"type": "string", "examples": [TEXT], "enum": [TEXT], "const": TEXT}}}, ()),
        (None, ()), ([TEXT], ("reachable",)), ({"properties": [TEXT]}, ()),
    ],
)  # fmt: skip
def test_constraints_on_annotations(schema: Any, faults: tuple[str, ...]) -> None:
    marks = list(_marks(schema))
    said = {name: find(marks) for name, find in _FAULTS.items()}
    found = [name if isinstance(one, str) else f"{name}?" for name, one in said.items() if one is not None]
    assert found == list(faults)
