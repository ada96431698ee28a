"""Flattening: what a declaration's text says, path by path, and back again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab.capabilities import as_text, flatten, state_of, unflatten
from mcplab.model import ABSENT, STATES, UNKNOWN, JsonText

keys = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(
    ["$", "", "a.b", '"', "[", "listChanged"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | keys
values = st.deferred(lambda: scalars | st.lists(values, max_size=3) | st.dictionaries(keys, values, max_size=4))


def leaves(text):
    return [(leaf.path, leaf.value) for leaf in flatten(text) if leaf.value is not None]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (None, "absent"), ("null", "null"), ("{}", "empty"), (" { } ", "empty"), ('{"a":1}', "object"),
        ("true", "true"), ("false", "false"), ("[]", "value"), ("0", "value"), ('""', "value"), ('"false"', "value"),
    ],
)  # fmt: skip
def test_each_state_is_told_from_the_others(text, state):
    assert state_of(text) == state
    (root,) = [leaf for leaf in flatten(text) if leaf.path == "$"]
    assert root.state == state


def test_all_states_are_reached():
    text = '{"n":null,"e":{},"o":{"x":1},"t":true,"f":false,"v":[]}'
    assert {leaf.state for leaf in flatten(text)} | {flatten(None)[0].state} == set(STATES)


def test_rows_of_a_declaration():
    rows = flatten('{"sampling":{"tools":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}')
    assert [(row.path, row.state, row.value) for row in rows] == [
        ("$", "object", None),
        ("sampling", "object", None),
        ("sampling.tools", "empty", "{}"),
        ("extensions", "object", None),
        ('extensions["io.modelcontextprotocol/ui"]', "object", None),
        ('extensions["io.modelcontextprotocol/ui"].mimeTypes', "value", '["a"]'),
    ]


def test_values_keep_their_text():
    big = "123456789012345678901234567890"
    rows = {row.path: row.value for row in flatten(f'{{"a": 1.50 , "b": {big}, "c": [1, 2.0], "d": "\\u00e9"}}')}
    assert rows == {"$": None, "a": "1.50", "b": big, "c": "[1, 2.0]", "d": '"\\u00e9"'}


def test_of_duplicate_keys_the_last_counts_and_says_so():
    rows = flatten('{"roots":{"listChanged":true},"tools":{},"roots":{}}')
    assert [(row.path, row.state, row.duplicate) for row in rows] == [
        ("$", "object", False),
        ("roots", "empty", True),
        ("tools", "empty", False),
    ]


@given(st.dictionaries(keys, values, max_size=5))
def test_unflatten_is_the_inverse_from_leaf_rows_alone(value):
    text = json.dumps(value)
    # JSON text has one spelling for a surrogate pair, Python strings have two: compare what the text says
    assert unflatten(leaves(text)) == json.loads(text)


@given(values)
def test_unflatten_any_value(value):
    text = json.dumps(value)
    assert unflatten(leaves(text)) == json.loads(text)


def test_absent_is_no_value():
    assert unflatten(leaves(None)) is ABSENT
    assert unflatten({"$": "null"}) is None
    assert unflatten({"$": "{}"}) == {}


def test_deep_nesting_does_not_exhaust_the_stack():
    deep = '{"a":' * 3000 + "{}" + "}" * 3000
    rows = flatten(deep)
    assert len(rows) == 3001
    assert rows[-1].state == "empty"


def test_declarations_given_as_values():
    assert as_text({}) == "{}"
    assert as_text(None) == "null"
    assert as_text(ABSENT) is None
    assert as_text(JsonText('{"a": 1.50}')) == '{"a": 1.50}'
    with pytest.raises(TypeError, match="UNKNOWN"):
        as_text(UNKNOWN)


def test_sentinels_have_no_truth_value():
    with pytest.raises(TypeError, match="compare with"):
        bool(ABSENT)
