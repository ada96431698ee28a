"""Requests and their answers."""

from __future__ import annotations

import pytest

from mcplab import make_trace
from mcplab.pairing import same


def pairs(trace):
    rows = trace.messages
    return [
        (int(s), None if r is rows["reply_to"].dtype.na_value else int(r))
        for s, r in zip(rows["seq"], rows["reply_to"], strict=True)
    ]


def test_ids_pair_with_their_type():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "a"}),
        ("client", {"jsonrpc": "2.0", "id": "1", "method": "b"}),
        ("server", {"jsonrpc": "2.0", "id": "1", "result": {}}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    ])  # fmt: skip
    assert pairs(trace) == [(0, None), (1, None), (2, 1), (3, 0)]
    assert trace.messages["method"].tolist() == ["a", "b", "b", "a"]


def test_both_directions_count_ids_for_themselves():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("server", {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
        ("client", {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}),
    ])  # fmt: skip
    assert pairs(trace) == [(0, None), (1, None), (2, 0), (3, 1)]


def test_an_id_in_use_twice_goes_to_the_one_that_waited_longest():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 7, "method": "a"}),
        ("client", {"jsonrpc": "2.0", "id": 7, "method": "b"}),
        ("server", {"jsonrpc": "2.0", "id": 7, "result": {}}),
    ])  # fmt: skip
    assert pairs(trace)[-1] == (2, 0)
    assert trace.exchanges["outcome"].tolist() == ["result", "unanswered"]


def test_over_http_the_answer_in_a_post_is_that_posts():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 7, "method": "a"}),
        ("client", {"jsonrpc": "2.0", "id": 7, "method": "b"}),
        ("server", {"jsonrpc": "2.0", "id": 7, "result": {}}),
    ], transport="http")  # fmt: skip
    assert pairs(trace)[-1] == (2, 1)


def test_a_modern_answer_over_http_pairs_whatever_its_id():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}),
        ("server", {"jsonrpc": "2.0", "id": "other", "result": {"resultType": "complete", "tools": []}}),
    ], transport="http")  # fmt: skip
    assert pairs(trace)[-1] == (1, 0)
    assert trace.connections["era"].tolist() == ["modern"]


def test_a_legacy_answer_with_another_id_pairs_with_nothing():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("server", {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}),
    ], transport="http")  # fmt: skip
    assert pairs(trace)[-1] == (1, None)
    assert trace.exchanges["outcome"].tolist() == ["unanswered"]


def test_a_second_answer_is_linked_but_the_first_one_counts():
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
        ("server", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "late"}}),
    ])  # fmt: skip
    assert pairs(trace) == [(0, None), (1, 0), (2, 0)]
    assert trace.exchanges["outcome"].tolist() == ["result"]


def test_batches_pair_by_part():
    trace = make_trace([
        ("client", [{"jsonrpc": "2.0", "id": 1, "method": "a"}, {"jsonrpc": "2.0", "id": 2, "method": "b"}]),
        ("server", [{"jsonrpc": "2.0", "id": 2, "result": {}}, {"jsonrpc": "2.0", "id": 1, "result": {}}]),
    ])  # fmt: skip
    rows = trace.messages
    assert rows["part"].tolist() == [0, 1, 0, 1]
    assert rows["reply_part"].tolist()[2:] == [1, 0]
    assert trace.exchanges["reply_part"].tolist() == [1, 0]


def test_cancelled_and_input_required_are_outcomes_of_their_own():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    ask = {"name": "ask", "arguments": {}, "_meta": meta}
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": "s"}}),
        ("client", {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                    "params": {**ask, "requestState": "s", "inputResponses": {}}}),
        ("server", {"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "content": []}}),
        ("client", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ask}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "_meta": meta}}),
    ])  # fmt: skip
    rows = trace.exchanges
    assert rows["outcome"].tolist() == ["input_required", "result", "cancelled"]
    assert rows["group"].tolist()[:2] == [0, 0]
    assert rows["group"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [('"é"', '"\\u00e9"'), ('"\\u0041/"', '"A\\/"'), ("1.0", "1"), ("1e2", "100"), ("-0", "0"), ("1.50", "1.5")],
)
def test_an_id_that_was_parsed_and_written_anew_still_pairs(asked, answered):
    trace = make_trace([
        ("client", f'{{"jsonrpc":"2.0","id":{asked},"method":"a","params":{{"_meta":{{"progressToken":{asked}}}}}}}'),
        ("server", f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{answered}}}}}'),
        ("server", f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}'),
    ])  # fmt: skip
    assert trace.exchanges["outcome"].tolist() == ["result"]
    assert trace.exchanges["notifications"].tolist() == [1]
    assert trace.messages["id"].dropna().tolist() == [asked, answered]


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", '"1"'), ("1", "true"), ("null", '"null"'), ("1e999", "1e998"), ('"a"', '"A"'), ("9007199254740993", "9007199254740992.0")],
)  # fmt: skip
def test_ids_that_differ_never_pair(one, other):
    assert same(one) != same(other)
    assert same(one) == same(same(one))
