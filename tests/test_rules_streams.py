"""Event streams: what their fields prove, and what a capture without them leaves open."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcplab import Trace, check, make_trace
from mcplab.rulebook import examples

ES = "content-type=text/event-stream"
SESSION = 'http session=s1\nhandshake server={"tools":{"listChanged":true}}\n'


def call(number: int, meta: str = "") -> str:
    return f'> {{"id":{number},"method":"tools/call","params":{{"name":"t"{meta}}}}}\n'


def verdict(script: str, rule: str, revision: str = "2025-11-25") -> str | None:
    table = check(Trace(examples.record(script, revision)), rules=rule)
    said = set(table.loc[table["revision"].fillna(revision) == revision, "verdict"]) - {"unexercised"}
    assert len(said) < 2
    return said.pop() if said else None


STREAM = SESSION + call(1)
OPENED = STREAM + f'sse [{ES}] {{"id":"a","data":"","retry":500}}\n'
RESUMED = "GET [last-event-id=a]\n"
ANSWER = '{"id":1,"result":{"content":[]}}\n'


@pytest.mark.parametrize(
    ("script", "rule", "said"),
    [
        # an id that the parser repeats is no second use of it; one that comes back later is
        (STREAM + f"< [{ES}; sse.id=a] {ANSWER}" + f'< [{ES}; sse.id=a] {{"method":"notifications/x"}}', "http.event-id-unique", "kept"),
        (STREAM + f'sse [{ES}] {{"id":"a"}}\nsse [{ES}] {{"id":"b"}}\n< [{ES}; sse.id=a] {ANSWER}', "http.event-id-unique", "broken"),
        (STREAM + f"< [{ES}] {ANSWER}", "http.event-id-unique", None),
        (OPENED + f"end\n{RESUMED}< [{ES}; sse.id=a] {ANSWER}", "http.event-id-unique", "kept"),
        # whose stream is resumed nobody saw
        (STREAM + f'< [{ES}; sse.id=b] {ANSWER}{RESUMED}< [{ES}; sse.id=b] {ANSWER}', "http.no-cross-stream-replay", "unknown"),
        # without a clock, without the side that closed, closed by the client
        (OPENED + f'end by="server"\n{RESUMED}< [{ES}] {ANSWER}', "http.client-respects-retry", "unknown"),
        (OPENED + f'end by="client"\nwait 0.1\n{RESUMED}< [{ES}] {ANSWER}', "http.client-respects-retry", None),
        (OPENED + f'end by="server"\nwait 0.46\n{RESUMED}< [{ES}] {ANSWER}', "http.client-respects-retry", "kept"),
        (STREAM + f'answer 200 [{ES}]\nend by="server"', "http.sse-retry-before-close", None),
        (STREAM + f'sse [{ES}] {{"id":"a","data":""}}\nend', "http.sse-retry-before-close", "unknown"),
        (STREAM + f'sse [{ES}] {{"id":"a","data":""}}\nend by="server"', "http.sse-response-delivered", "unknown"),
        # progress of a task may come on any stream
        (SESSION + f"GET\nanswer 200 [{ES}]\n" + call(1, ',"task":{},"_meta":{"progressToken":"p"}')
         + f'< [{ES}; on=x3] {{"method":"notifications/progress","params":{{"progressToken":"p","progress":1}}}}',
         "http.get-stream-unrelated", None),
    ],
)  # fmt: skip
def test_legacy_streams(script: str, rule: str, said: str | None) -> None:
    assert verdict(script, rule) == said


MODERN = 'http\nhandshake server={"tools":{}}\n'
LOST = MODERN + call(1) + f"answer 200 [{ES}]\n"
AGAIN = call(1) + f"< {ANSWER}"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (LOST + 'end by="server"\n' + AGAIN, "broken"),
        (LOST + "end\n" + AGAIN, "unknown"),
        (LOST + 'end by="client"\n' + AGAIN, None),
        (LOST + 'end by="server"\n' + call(2), "kept"),
        (LOST + 'end by="server"\n' + AGAIN.replace('"name":"t"', '"name":"u"'), None),
        (LOST + AGAIN, None),
    ],
)
def test_a_request_lost_with_its_stream(script: str, said: str | None) -> None:
    assert verdict(script, "http.reissue-with-new-id", "2026-07-28") == said


SSE = 'http transport=sse\nhandshake server={"tools":{}}\n'
LIST = '{"id":1,"method":"tools/list"}\n'


@pytest.mark.parametrize(
    ("script", "rule", "said"),
    [
        (SSE, "sse.endpoint-event-first", "kept"),
        ("http transport=sse\nGET\nanswer 200 [content-type=text/event-stream]\n", "sse.endpoint-event-first", "unknown"),
        ("http transport=sse\nGET\nanswer 404\nend by=\"server\"", "sse.endpoint-event-first", None),
        ('http transport=sse\nGET\n< {"method":"notifications/x"}\nsse {"event":"endpoint","data":"/m"}', "sse.endpoint-event-first", "broken"),
        ('http transport=sse\nGET\n< {"method":"notifications/x"}\n', "sse.endpoint-event-first", "broken"),
        (SSE + f"> [path=/messages] {LIST}", "sse.post-to-endpoint", "unknown"),  # the capture may leave queries out
        (SSE + f"> [path=/messages?id=2] {LIST}", "sse.post-to-endpoint", "broken"),
        (SSE + f"> {LIST}", "sse.post-to-endpoint", "kept"),
        (SSE + '< [sse.event=note] {"method":"notifications/x"}', "sse.server-messages-on-stream", "broken"),
        (SSE + f"> {LIST}< [on=x4; status=500] " + '{"id":1,"error":{"code":1,"message":""}}', "sse.server-messages-on-stream", "kept"),
    ],
)  # fmt: skip
def test_the_transport_with_two_addresses(script: str, rule: str, said: str | None) -> None:
    assert verdict(script, rule, "2024-11-05") == said


def test_over_the_newer_transport_none_of_these_rules_applies() -> None:
    script = 'http session=s\nhandshake server={"tools":{}}\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[]}}'
    table = check(Trace(examples.record(script, "2024-11-05")), rules="sse")
    assert set(table["verdict"]) == {"unexercised"}


def test_an_example_by_hand_is_judged_like_one_of_the_catalogue() -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    first = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "b", "version": "1"},
    }
    said = [
        {"kind": "open"},
        ("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": first}),
        ("server", {"jsonrpc": "2.0", "id": 0, "result": result}),
        ("client", ask),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
    ]
    rule = "lifecycle.initialized-sent"
    assert set(check(make_trace(said), rules=rule)["verdict"]) == {"unknown"}
    assert set(check(make_trace([*said, {"kind": "close"}]), rules=rule)["verdict"]) == {"broken"}


def test_a_body_in_another_coding_is_no_utf8_however_many_alike_came_before() -> None:
    def posts(coding: str, number: int) -> list[Any]:
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"tools": [], "x": "é"}}, ensure_ascii=False)
        body = {"raw_b64": base64.b64encode(answer.encode(coding)).decode()}
        http = {"status": 200, "headers": {"content-type": "application/json"}}
        return [
            ("client", {"jsonrpc": "2.0", "id": number, "method": "tools/list"}),
            {"kind": "http", "dir": "s2c", "http": http, **body},
        ]

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    begin = [
        ("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        ("server", {"jsonrpc": "2.0", "id": 0, "result": result}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
    alike = [each for n in range(1, 40) for each in posts("utf-8", n)]
    for coding, said in (("utf-8", None), ("utf-16", "utf-16"), ("latin-1", "cp1252")):
        trace = make_trace([*begin, *alike, *posts(coding, 40)], transport="http")
        found = check(trace, rules="jsonrpc.utf8")
        broken = found[found["verdict"] == "broken"]
        assert broken["detail"].tolist() == ([] if said is None else [f"a message in {said}"])
        assert broken["seq"].tolist() == ([] if said is None else [trace.events["seq"].max()])
