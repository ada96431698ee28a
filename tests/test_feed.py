"""observed.json: what was sent is there character for character, one record an instance, as docs/observed.md has it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcplab import load, observed
from mcplab.feed import observed_json
from mcplab.provenance import digest
from mcplab.traces import Traces, make_trace, read_traces
from tests.test_cli import initialize

PAGE = Path(__file__).resolve().parents[1] / "docs" / "observed.md"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    """The one that the page shows."""
    found = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made = json.loads(found[0])
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.fixture(scope="module")
def bundled() -> Traces:
    return load(None)


@pytest.fixture(scope="module")
def feed(bundled) -> dict[str, Any]:
    return json.loads(observed_json(bundled))


def test_all_bundled_captures_follow_the_schema(feed, schema, bundled) -> None:
    schema.validate(feed)
    assert len(feed["instances"]) == bundled.connections["instance"].nunique()
    assert {one["client"]["product"] for one in feed["instances"]} == set(bundled.connections["client"])


def test_one_name_is_many_records(feed) -> None:
    """``mcp 0.1.0`` is what six products call themselves."""
    products = {
        one["client"]["product"] for one in feed["instances"]
        if any(json.loads(text) == {"name": "mcp", "version": "0.1.0"} for text in one["client"]["info"])
    }  # fmt: skip
    assert len(products) == 6


def test_every_declaration_is_in_the_messages_that_it_names(feed, bundled) -> None:
    by_name = {trace.name.rpartition("/")[2]: trace for trace in bundled}
    seen = 0
    for one in feed["instances"]:
        for stated in one["declarations"]:
            for cited in stated["messages"]:
                name, _, seq = cited.rpartition("#")
                assert by_name[name].name == one["trace"]
                assert stated["text"] in by_name[name].raw(int(seq))
                seen += 1
    assert seen == (bundled.declarations["path"] == "$").sum()


EXACT = '{"b":1.50,"a":{"x":12345678901234567890123,"x":1e400},"s":"\\u00e9\\ud800"}'


def exact(capabilities: str | None) -> Traces:
    member = "" if capabilities is None else f',"capabilities":{capabilities}'
    text = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"'
        f'{member},"clientInfo":{{"version":"1","name":"x"}}}}}}'
    )
    return Traces([make_trace([("client", text)])])


@pytest.mark.parametrize(
    ("given", "state"),
    [(EXACT, "object"), ("{}", "empty"), ("null", "null"), ("false", "false"), ("[ 1 ]", "value"), (None, "absent")],
)
def test_texts_are_exact_and_five_facts_stay_apart(given, state, schema) -> None:
    made = json.loads(observed_json(exact(given)))
    schema.validate(made)
    (one,) = made["instances"]
    (stated,) = one["declarations"]
    assert (stated["state"], stated.get("text")) == (state, given)
    assert ("text" in stated) == (given is not None)
    assert one["client"]["info"] == ['{"version":"1","name":"x"}']
    assert one["captured_at"] is None


def test_the_schema_refuses_what_is_not_so(feed, schema) -> None:
    for spoil in (
        lambda one: one.pop("sha256"),
        lambda one: one["declarations"][0].pop("text"),
        lambda one: one["declarations"][0].update(messages=[]),
        lambda one: one["declarations"][0].update(state="absent"),
        lambda one: one["client"].update(version=1),
    ):
        bad = copy.deepcopy(feed)
        bad["instances"] = bad["instances"][:1]
        spoil(bad["instances"][0])
        with pytest.raises(jsonschema.ValidationError):
            schema.validate(bad)


def test_no_declaration_and_equal_names(tmp_path, schema) -> None:
    ping = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})])
    assert [one["declarations"] for one in observed(Traces([ping]))["instances"]] == [[]]
    for folder in ("a", "b"):
        make_trace(initialize({"roots": {}}, folder)).save(tmp_path / folder / "same.jsonl")
    made = observed(read_traces(tmp_path))
    schema.validate(made)
    cited = [one["declarations"][0]["messages"][0] for one in made["instances"]]
    assert cited == ["a/same#1", "b/same#1"] or [text.rpartition("#")[0] for text in cited] == ["a/same", "b/same"]


def test_hashes_follow_the_content_and_nothing_else(tmp_path, feed) -> None:
    trace = make_trace(initialize({"roots": {}}, "a"))
    other = make_trace(initialize({"roots": None}, "a"))
    assert digest(trace) == digest(trace.renamed("elsewhere"))
    assert digest(trace) != digest(other)
    again = read_traces(trace.save(tmp_path / "t.jsonl"))
    assert digest(again[0]) == digest(trace)
    both = [observed(Traces(order))["input_sha256"] for order in ([trace, other], [other, trace])]
    assert both[0] == both[1] != observed(Traces([trace]))["input_sha256"]
    assert observed_json(load(None))[:300] == json.dumps(feed, indent=1)[:300]
