"""The schema judge of the checks against the reference implementation: it never contradicts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcplab.rulebook.checks.schema import CANNOT_TELL, conforms, same

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]


def _members(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    small = st.integers(0, 2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(_TYPES) | st.lists(st.sampled_from(_TYPES), min_size=1, max_size=2, unique=True),
            "enum": st.lists(_VALUES, min_size=1, max_size=2),
            "const": _VALUES,
            "minimum": small, "maximum": small, "exclusiveMinimum": small, "exclusiveMaximum": small,
            "multipleOf": st.sampled_from([1, 2]), "minLength": small, "maxLength": small,
            "minItems": small, "maxItems": small, "uniqueItems": st.booleans(),
            "minProperties": small, "maxProperties": small,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "additionalProperties": inner, "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2), "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2), "not": inner,
            "if": inner, "then": inner, "else": inner,
            "pattern": st.just("a"), "$ref": st.just("#/$defs/d"),
            "dependentRequired": st.just({"a": ["b"]}),
        },
    )  # fmt: skip


_SCHEMAS = st.recursive(st.booleans() | st.just({}), _members, max_leaves=5)


@given(_SCHEMAS, _SCHEMAS, _VALUES)
def test_it_says_what_the_reference_says_or_nothing(schema: Any, shared: Any, value: Any) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"d": {"type": "string"} if isinstance(shared, bool) else shared}}
        if "$ref" in str(shared):
            schema["$defs"] = {"d": {"type": "string"}}
    said = conforms(schema, value)
    if said is not CANNOT_TELL:
        assert (said is None) is Draft202012Validator(schema).is_valid(value), said


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "object", "required": ["a"]}, {}, "the value has no a"),
        ({"properties": {"a": {"type": "number"}}}, {"a": True}, "a is not of type number"),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": ["x", 1]}, "a[1] is not of type string"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "null"}}}, 1, "the value is not of type null"),
        ({"$ref": "https://example.com/x"}, 1, CANNOT_TELL),
        ({"$ref": "https://example.com/x", "type": "string"}, 1, "the value is not of type string"),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"b": 1}, CANNOT_TELL),
        ({"$ref": "#"}, 1, CANNOT_TELL),
        (None, 1, CANNOT_TELL),
        ({"format": "email", "type": "string"}, "no mail", None),
    ],
)
def test_what_it_says(schema: object, value: object, said: str | None) -> None:
    assert conforms(schema, value) == said


def test_beside_a_reference_an_old_dialect_ignores_the_rest() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"x": {}}, "$ref": "#/definitions/x"}
    assert conforms({**old, "type": "string"}, 1) is None


def test_equality_keeps_booleans_apart() -> None:
    assert same({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not same(True, 1)
    assert not same([0], [False])
