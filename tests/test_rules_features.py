# ruff: noqa: UP031 (braces of JSON in every script)
"""Utilities, features and tasks where their rules must not speak, or only when something else proves it."""

from __future__ import annotations

import msgspec
import pandas as pd
import pytest

from mcplab.frames.links import links
from mcplab.frames.wire import Wire
from mcplab.model import Record
from mcplab.rulebook import examples
from mcplab.rulebook.tables import findings

OLD, NEW = "2025-11-25", "2026-07-28"
CALL = '> {"id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"a"}}}\n'
DONE = '< {"id":1,"result":{"content":[]}}\n'
PROGRESS = '< {"method":"notifications/progress","params":{"progressToken":"a","progress":%s}}\n'
CANCEL_7 = '> {"method":"notifications/cancelled","params":{"requestId":7}}'
TOOLS = 'handshake server={"tools":{"listChanged":true}}\n'
TASKS = (
    'handshake client={} server={"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}\n'
    '> {"id":"l","method":"tools/list"}\n'
    '< {"id":"l","result":{"tools":[{"name":"t","inputSchema":{"type":"object"},'
    '"execution":{"taskSupport":"optional"}}]}}\n'
    '> {"id":1,"method":"tools/call","params":{"name":"t","task":{}}}\n'
    '< {"id":1,"result":{"task":{%s}}}\n'
)


def task(status: str) -> str:
    stamps = '"createdAt":"2025-11-25T10:00:00Z","lastUpdatedAt":"2025-11-25T10:00:00Z"'
    return f'"taskId":"k1","status":"{status}",{stamps},"ttl":1000'


def said(record: Record, rule: str, *, hints: bool = False) -> list[tuple[str, int | None]]:
    """(verdict, seq) of a rule over a capture, without the revisions that it did not apply to."""
    wire = Wire(record)
    found = findings(wire, links(wire, "t"), "t", rules=[rule], hints=hints)
    found = found[found["verdict"] != "unexercised"]
    return [
        (verdict, None if pd.isna(seq) else int(seq))
        for verdict, seq in zip(found["verdict"], found["seq"], strict=True)
    ]


def verdicts(script: str, rule: str, revision: str = OLD, *, hints: bool = False) -> list[str]:
    return [one for one, _ in said(examples.record(script, revision), rule, hints=hints)]


# Pings ------------------------------------------------------------------------------------------------------


def test_a_ping_that_never_came_back_is_broken_where_later_requests_were_answered() -> None:
    script = TOOLS + '> {"id":1,"method":"ping"}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\nclose\n'
    record = examples.record(script, OLD)
    assert said(record, "ping.answered") == [("broken", 4)]
    assert said(msgspec.structs.replace(record, events=record.events[:-1]), "ping.answered") == [("unknown", None)]
    nothing_after = TOOLS + '> {"id":1,"method":"ping"}\nclose\n'
    assert verdicts(nothing_after, "ping.answered") == ["unknown"]


def test_a_ping_whose_result_holds_something_is_a_hint() -> None:
    script = TOOLS + '> {"id":1,"method":"ping"}\n< {"id":1,"result":%s}\nclose\n'
    assert verdicts(script % '{"_meta":{}}', "ping.answered", hints=True) == ["kept"]
    assert verdicts(script % '{"ok":true}', "ping.answered", hints=True) == ["hint"]


def test_an_error_of_the_http_layer_is_no_answer_to_a_ping() -> None:
    script = (
        'http session=s\nhandshake server={}\n> {"id":1,"method":"ping"}\n'
        '< [status=404] {"id":1,"error":{"code":-32001,"message":"Session not found"}}\n'
    )
    assert verdicts(script, "ping.answered") == []


# Progress and cancellation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "rule", "wanted"),
    [
        # the request was cancelled: what was under way is no breach
        (TOOLS + CALL + '> {"method":"notifications/cancelled","params":{"requestId":1}}\n' + PROGRESS % 1,
         "progress.token-known", []),
        # one token on two requests: which one rises nobody can tell
        (TOOLS + CALL + CALL.replace('"id":1', '"id":2') + PROGRESS % 2 + PROGRESS % 1, "progress.increases", ["unknown"]),
        # a token is used again after the answer: its values begin anew
        (TOOLS + CALL + PROGRESS % 5 + DONE + CALL.replace('"id":1', '"id":2') + PROGRESS % 1, "progress.increases", []),
        # true is no number, and 1 no token "1"
        (TOOLS + CALL + PROGRESS % "true", "progress.shape", ["broken"]),
        (TOOLS + CALL.replace('"a"', "1.0") + DONE, "progress.token-type", ["kept"]),
        (TOOLS + CALL.replace('"a"', "null") + DONE, "progress.token-type", ["broken"]),
        # no clock: whether the answer was known nobody can tell
        (TOOLS + CALL + DONE + '> {"method":"notifications/cancelled","params":{"requestId":1}}\n',
         "cancellation.in-progress", ["unknown"]),
        (TOOLS + CALL + DONE + 'wait 0.2\n> {"method":"notifications/cancelled","params":{"requestId":1}}\n',
         "cancellation.in-progress", []),
        # ids of both parties may be equal: only one's own count
        ('handshake client={"roots":{}}\n< {"id":7,"method":"roots/list"}\n%s\n' % CANCEL_7,
         "cancellation.same-direction", ["broken"]),
    ],
)  # fmt: skip
def test_progress_and_cancellation(script: str, rule: str, wanted: list[str]) -> None:
    assert verdicts(script, rule) == wanted


def test_over_http_order_is_certain_within_one_stream_only() -> None:
    late = (
        "http session=s\n" + TOOLS + CALL + DONE.replace("< ", "< [content-type=text/event-stream] ")
        + "GET\n" + (PROGRESS % 1).replace("< ", "< [content-type=text/event-stream%s] ")
    )  # fmt: skip
    assert verdicts(late % "", "progress.stops") == ["unknown"]
    assert verdicts(late % "; on=x3", "progress.stops") == ["broken"]


def test_a_resumed_stream_may_bring_a_message_again() -> None:
    script = (
        "http session=s\n" + TOOLS + CALL + (PROGRESS % 1).replace("< ", "< [content-type=text/event-stream] ")
        + "GET [last-event-id=1]\n" + (PROGRESS % 1).replace("< ", "< [content-type=text/event-stream] ")
    )  # fmt: skip
    assert verdicts(script, "progress.increases") == []


def test_what_is_remembered_of_answered_requests_is_bounded() -> None:
    pairs = "".join(
        f'> {{"id":{n},"method":"tools/call","params":{{"name":"t"}}}}\n< {{"id":{n},"result":{{"content":[]}}}}\n'
        for n in range(1, 2100)
    )
    cancel = '> {"method":"notifications/cancelled","params":{"requestId":%s}}\n'
    assert verdicts(TOOLS + pairs + cancel % 2099, "cancellation.same-direction") == ["kept"]
    assert verdicts(TOOLS + pairs + cancel % 1, "cancellation.same-direction") == ["unknown"]


# Logging, pagination ------------------------------------------------------------------------------------------


def test_on_stdio_one_request_that_asked_for_messages_excuses_the_others() -> None:
    wanting = (
        '> {"id":2,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/logLevel":"info"}}}\n'
    )
    log = '< {"method":"notifications/message","params":{"level":"info","data":1}}\n'
    start = 'handshake server={"tools":{},"logging":{}}\n'
    assert verdicts(start + CALL + wanting + log, "logging.none-without-level", NEW) == ["unknown"]
    assert verdicts(start + CALL + log, "logging.none-without-level", NEW) == ["broken"]


def test_a_cursor_of_an_earlier_session_is_none_of_this_one() -> None:
    page = '> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[],"nextCursor":"c"}}\n'
    again = '> {"id":2,"method":"tools/list","params":{"cursor":"c"}}\n'
    hello = '{"protocolVersion":"$REVISION","capabilities":{},"clientInfo":{"name":"example-client","version":"1.0.0"}}'
    second = (
        'on c2\nopen\n> {"id":0,"method":"initialize","params":' + hello + "}\n"
        '< {"id":0,"result":{"protocolVersion":"$REVISION","capabilities":{"tools":{}},'
        '"serverInfo":{"name":"example-server","version":"1.0.0"}}}\n> {"method":"notifications/initialized"}\n'
    )
    assert verdicts(TOOLS + page + again, "pagination.cursor-from-server") == ["kept"]
    assert verdicts(TOOLS + page + second + again, "pagination.cursor-from-server") == ["broken"]


def test_null_cursors_are_a_breach_where_the_page_says_string_and_a_hint_where_it_says_non_null() -> None:
    script = TOOLS + '> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[],"nextCursor":null}}\n'
    assert verdicts(script, "pagination.cursor-type", OLD) == ["broken"]
    assert verdicts(script, "pagination.cursor-type", NEW, hints=True) == ["hint"]


# Lists --------------------------------------------------------------------------------------------------------

SCHEMA = '{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["%s"]}}'
LIST = '> {"id":%d,"method":"tools/list"}\n< {"id":%d,"result":{"tools":[%s]}}\n'
STRUCTURED = '{"content":[],"structuredContent":{"a":1}}'


def test_a_result_is_held_against_the_list_that_its_caller_knew() -> None:
    ask = '> {"id":2,"method":"tools/call","params":{"name":"t"}}\n'
    answer = '< {"id":2,"result":' + STRUCTURED + "}\n"
    old, new = LIST % (1, 1, SCHEMA % "a"), LIST % (3, 3, SCHEMA % "b")
    assert verdicts(TOOLS + old + ask + answer, "tools.output-schema") == ["kept"]
    assert verdicts(TOOLS + new + ask + answer, "tools.output-schema") == ["broken"]
    assert verdicts(TOOLS + old + ask + new + answer, "tools.output-schema") == ["unknown"]
    changed = '< {"method":"notifications/tools/list_changed"}\n'
    assert verdicts(TOOLS + old + changed + ask + answer, "tools.output-schema") == ["unknown"]
    failed = answer.replace('"content":[]', '"content":[],"isError":true')
    assert verdicts(TOOLS + new + ask + failed, "tools.output-schema") == []


def test_an_announcement_after_the_second_list_is_in_time() -> None:
    lists = LIST % (1, 1, '{"name":"a","inputSchema":{"type":"object"}}') + LIST % (2, 2, "")
    told = '< {"method":"notifications/tools/list_changed"}\n'
    assert verdicts(TOOLS + lists + told + "close", "notify.list-changed-sent") == ["kept"]
    assert verdicts(TOOLS + lists + "close", "notify.list-changed-sent") == ["broken"]
    assert verdicts(TOOLS + lists, "notify.list-changed-sent") == ["unknown"]


def test_pages_are_one_list() -> None:
    a, b = ('{"name":"%s","inputSchema":{"type":"object"}}' % name for name in "ab")
    first = '> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[%s],"nextCursor":"c"}}\n'
    second = '> {"id":2,"method":"tools/list","params":{"cursor":"c"}}\n< {"id":2,"result":{"tools":[%s]}}\n'
    assert verdicts(TOOLS + first % a + second % b, "tools.name-unique") == ["kept"]
    assert verdicts(TOOLS + first % a + second % a, "tools.name-unique") == ["broken"]


# What a server asks of a client -------------------------------------------------------------------------------

FORM = '{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"%s"}},"required":["n"]}}'
ASKED = '< {"id":%d,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":%s}}%s}}\n'
RETRY = '> {"id":9,"method":"tools/call","params":{"name":"t","inputResponses":{"k":{"action":"accept","content":{"n":1}}}%s}}\n'


def test_an_input_response_is_held_against_the_request_that_it_answers() -> None:
    start = 'client {"elicitation":{}}\nhandshake server={"tools":{}}\n'
    calls = '> {"id":1,"method":"tools/call","params":{"name":"t"}}\n> {"id":2,"method":"tools/call","params":{"name":"t"}}\n'
    one, two = FORM % "number", FORM % "string"
    named = start + calls + ASKED % (1, one, ',"requestState":"s1"') + ASKED % (2, two, ',"requestState":"s2"')
    assert verdicts(named + RETRY % ',"requestState":"s1"', "elicitation.content-matches", NEW) == ["kept"]
    assert verdicts(named + RETRY % ',"requestState":"s2"', "elicitation.content-matches", NEW) == ["broken"]
    bare = start + calls + ASKED % (1, one, "") + ASKED % (2, two, "")
    assert verdicts(bare + RETRY % "", "elicitation.content-matches", NEW) == ["unknown"]


def test_an_undeclared_mode_may_be_refused_as_an_unknown_method_where_nothing_is_declared() -> None:
    ask = '< {"id":1,"method":"elicitation/create","params":' + FORM % "string" + "}\n"
    refusal = '> {"id":1,"error":{"code":-32601,"message":"no"}}\n'
    assert verdicts("handshake client={}\n" + ask + refusal, "elicitation.undeclared-mode-refused") == ["kept"]
    url_only = 'handshake client={"elicitation":{"url":{}}}\n'
    assert verdicts(url_only + ask + refusal, "elicitation.undeclared-mode-refused") == ["broken"]


@pytest.mark.parametrize(
    ("schema", "revision", "wanted"),
    [
        ('{"type":"array","items":{"type":"string","enum":["a"]}}', "2025-06-18", ["broken"]),
        ('{"type":"array","items":{"type":"string","enum":["a"]}}', OLD, ["kept"]),
        ('{"type":"array","items":{"type":"string"}}', OLD, ["broken"]),
        ('{"type":"string","oneOf":[{"const":"a","title":"A"}]}', OLD, ["kept"]),
        ('{"anyOf":[{"type":"string"},{"type":"null"}]}', OLD, ["broken"]),
        ('{"type":"string","format":"uuid"}', OLD, ["broken"]),
        ('{"type":"integer","minimum":0}', "2025-06-18", ["kept"]),
    ],
)
def test_form_schemas_are_those_of_the_revision(schema: str, revision: str, wanted: list[str]) -> None:
    form = '{"message":"?","requestedSchema":{"type":"object","properties":{"n":%s}}}' % schema
    script = 'handshake client={"elicitation":{}}\n< {"id":1,"method":"elicitation/create","params":' + form + "}\n"
    assert verdicts(script, "elicitation.form-schema", revision) == wanted


def test_changed_roots_are_judged_at_the_close() -> None:
    lists = "".join(
        f'< {{"id":{n},"method":"roots/list"}}\n> {{"id":{n},"result":{{"roots":[{{"uri":"file:///{n}"}}]}}}}\n'
        for n in (1, 2)
    )
    told = '> {"method":"notifications/roots/list_changed"}\n'
    start = 'handshake client={"roots":{"listChanged":true}}\n'
    assert verdicts(start + lists + told + "close", "roots.list-changed-sent") == ["kept"]
    assert verdicts(start + lists + "close", "roots.list-changed-sent") == ["broken"]
    assert verdicts(start + lists, "roots.list-changed-sent") == ["unknown"]
    assert verdicts('handshake client={"roots":{}}\n' + lists + "close", "roots.list-changed-sent") == []


# _meta --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("com.example/x", "kept"), ("x", "kept"), ("com.example/", "kept"), ("", "kept"), ("a-b.c/d_e.f", "kept"),
        ("_x", "broken"), ("a b", "broken"), ("1x.y/z", "broken"), ("a-/z", "broken"), ("a/b/c", "broken"),
        ("x_", "broken"), ("é", "broken"),
    ],
)  # fmt: skip
def test_names_of_meta_keys(key: str, wanted: str) -> None:
    script = TOOLS + '> {"id":1,"method":"tools/call","params":{"name":"t","_meta":{"%s":1}}}\n' % key
    assert verdicts(script, "meta.key-format") == [wanted]


def test_free_json_may_hold_a_meta_of_its_own() -> None:
    script = TOOLS + '> {"id":1,"method":"tools/call","params":{"name":"t","arguments":{"_meta":{"_x":null}}}}\n'
    assert verdicts(script, "meta.key-format") == []
    listed = '> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[{"name":"t","_meta":null}]}}\n'
    assert verdicts(TOOLS + listed, "meta.object") == ["broken"]


@pytest.mark.parametrize(
    ("member", "wanted"),
    [
        ('"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"', "kept"),
        ('"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"', "broken"),
        ('"traceparent":"00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01"', "broken"),
        ('"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more"', "broken"),
        ('"traceparent":"cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more"', "kept"),
        ('"tracestate":"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"', "kept"), ('"tracestate":"nothing"', "broken"),
        ('"baggage":"userId=alice,server=DF%2028;p=1"', "kept"), ('"baggage":7', "broken"),
    ],
)  # fmt: skip
def test_trace_context(member: str, wanted: str) -> None:
    script = TOOLS + '> {"id":1,"method":"tools/call","params":{"name":"t","_meta":{%s}}}\n' % member
    assert verdicts(script, "meta.trace-context-format", NEW) == [wanted]


# Tasks --------------------------------------------------------------------------------------------------------


def test_a_poll_that_was_under_way_when_the_task_ended_may_show_the_old_status() -> None:
    polls = '> {"id":2,"method":"tasks/get","params":{"taskId":"k1"}}\n> {"id":3,"method":"tasks/get","params":{"taskId":"k1"}}\n'
    done = '< {"id":2,"result":{%s}}\n' % task("completed")
    stale = '< {"id":3,"result":{%s}}\n' % task("working")
    assert verdicts(TASKS % task("working") + polls + done + stale, "tasks.transitions") == ["unknown"]
    later = polls.splitlines()
    script = TASKS % task("working") + later[0] + "\n" + done + later[1] + "\n" + stale
    assert verdicts(script, "tasks.transitions") == ["broken"]


def test_ids_of_tasks_that_both_parties_hold_are_two_spaces() -> None:
    ask = '< {"id":5,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"task":{}}}\n'
    made = '> {"id":5,"result":{"task":{%s}}}\n' % task("working")
    assert verdicts(TASKS % task("working") + ask + made, "tasks.id-unique") == ["kept"]


def test_a_session_that_begins_before_the_capture_may_know_other_tasks() -> None:
    script = TASKS % task("working") + (
        '> {"id":8,"method":"tasks/get","params":{"taskId":"zz"}}\n< {"id":8,"error":{"code":-32603,"message":"no"}}\n'
    )
    record = examples.record(script, OLD)
    assert said(record, "tasks.unknown-id-error") == [("broken", 9)]
    late = msgspec.structs.replace(record, events=record.events[1:])
    assert said(late, "tasks.unknown-id-error") == [("unknown", None)]


def test_a_task_whose_life_is_over_need_not_be_found() -> None:
    made = (
        'client {"extensions":{"io.modelcontextprotocol/tasks":{}}}\n'
        'handshake server={"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}\n'
        '> {"id":1,"method":"tools/call","params":{"name":"t"}}\n'
        '< {"id":1,"result":{"resultType":"task","taskId":"k1","status":"working","createdAt":"2026-08-01T10:00:00Z",'
        '"lastUpdatedAt":"2026-08-01T10:00:00Z","ttlMs":2000}}\n'
    )
    poll = (
        '> {"id":2,"method":"tasks/get","params":{"taskId":"k1"}}\n< {"id":2,"error":{"code":-32602,"message":"?"}}\n'
    )
    assert verdicts(made + "wait 1\n" + poll, "tasks-ext.durable", NEW) == ["broken"]
    assert verdicts(made + "wait 3\n" + poll, "tasks-ext.durable", NEW) == []
    assert verdicts(made + poll, "tasks-ext.durable", NEW) == ["unknown"]


def test_a_server_that_turns_out_to_be_modern_had_to_know_discover() -> None:
    refused = '> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}\n'
    asked = '> {"id":2,"method":"tools/list"}\n'
    modern = '< {"id":2,"result":{"resultType":"complete","tools":[],"ttlMs":1,"cacheScope":"public"}}\n'
    for rest, verdict in (modern + "close", ("broken", 2)), (modern, ("broken", 2)), ("close", ("unknown", None)):
        record = examples.record("open\n" + refused + asked + rest, NEW)
        assert said(record, "discover.implemented") == [verdict]


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1900-01-01", "broken"), ("latest", "broken"), ("2024-10-07", None), ("2025-03-26", None), ("2031-01-01", None)],
)
def test_a_version_header_that_was_never_published_is_invalid(version: str, verdict: str | None) -> None:
    call = f'> [mcp-protocol-version={version}] {{"id":1,"method":"tools/list"}}\n< {{"id":1,"result":{{"tools":[]}}}}'
    record = examples.record('http\nhandshake server={"tools":{}}\n' + call, OLD)
    assert [each for each, _ in said(record, "version-header.legacy-invalid-400")] == [verdict] * (verdict is not None)


@pytest.mark.parametrize(("headers", "verdict"), [({}, "broken"), (None, "unknown")])
def test_headers_that_were_not_there_are_not_headers_that_nobody_kept(
    headers: dict[str, str] | None, verdict: str
) -> None:
    record = examples.record(
        'http\nhandshake server={"tools":{}}\n> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}', OLD
    )
    last = record.events[-1]
    facts = msgspec.structs.replace(last.http, headers=msgspec.UNSET if headers is None else headers)
    events = [*record.events[:-1], msgspec.structs.replace(last, http=facts)]
    found = said(msgspec.structs.replace(record, events=events), "http.request-answer-content-type")
    assert [each for each, _ in found] == [verdict]
