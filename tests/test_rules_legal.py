"""Odd traffic that the specification allows: nothing of it is broken at MUST level, whole or cut."""

from __future__ import annotations

import pytest

from mcplab import Trace, check, make_trace, read_trace
from mcplab.model import Record
from mcplab.rulebook import examples

ES = "content-type=text/event-stream"
TOOLS = 'handshake server={"tools":{"listChanged":true}}\n'
SESSION = f"http session=abc\n{TOOLS}"
LIST = '> {"id":1,"method":"tools/list"}\n'
LISTED = '< {"id":1,"result":{"tools":[]}}\n'
INITIALIZE = (
    '{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"a","version":"1"}}}\n'
)
INITIALIZED = '{"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}\n'
AGAIN = f'> {INITIALIZE}< {INITIALIZED}> {{"method":"notifications/initialized"}}\n'
ROOTS = '{"method":"roots/list"}'
MODERN = 'handshake client={"roots":{},"elicitation":{}} server={"tools":{}}\n'


def call(number: int, more: str = "") -> str:
    return f'> {{"id":{number},"method":"tools/call","params":{{"name":"t"{more}}}}}\n'


def asks(number: int, key: str, state: str = "") -> str:
    state = f',"requestState":"{state}"' if state else ""
    inputs = f'{{"{key}":{ROOTS}}}'
    return f'< {{"id":{number},"result":{{"resultType":"input_required","inputRequests":{inputs}{state}}}}}\n'


def gives(number: int, key: str, state: str = "", more: str = "") -> str:
    state = f',"requestState":"{state}"' if state else ""
    return call(number, f'{more},"inputResponses":{{"{key}":{{"roots":[]}}}}{state}')


def done(number: int) -> str:
    return f'< {{"id":{number},"result":{{"content":[]}}}}\n'


TOOL = '{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["x"]}}'
DISCOVERED = '< {"id":"d","result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}\n'
NOT_FOUND = '<! {"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"m"}}\n'
DISCOVER = '> {"id":"d","method":"server/discover"}\n'
TAG = '"_meta":{"io.modelcontextprotocol/subscriptionId":1}'
LEGAL = {
    # a server that tears a subscription down sends both, in either order (2026-07-28 patterns/cancellation)
    "listen-torn-down": (
        ('handshake server={"tools":{"listChanged":true}}\n'
        '> {"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
        f'< {{"method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},{TAG}}}}}\n'
        f'< {{"id":1,"result":{{{TAG}}}}}\n'
        f'< {{"method":"notifications/cancelled","params":{{"requestId":1,{TAG}}}}}\nclose\n'),
        "2026-07-28",
    ),
    # the schema asks for a string
    "empty-method": (f'{TOOLS}> {{"id":2,"method":""}}\n< {{"id":2,"error":{{"code":-32601,"message":"m"}}}}\nclose\n', "2025-11-25"),
    # a server without a GET stream, or without DELETE, says 404 to it: its session goes on
    "get-404": (f"{SESSION}GET\nanswer 404\n{LIST}{LISTED}DELETE\nanswer 404\n", "2025-11-25"),
    # the same request once more after HTTP alone refused or redirected it
    **{
        f"retry-{status}": (f"{SESSION}{LIST}answer {status}\n{LIST}{LISTED}", "2025-11-25")
        for status in (307, 401, 403, 429, 503)
    },
    "redirected-notification": (f'{SESSION}> {{"method":"notifications/x"}}\nanswer 307\n', "2025-11-25"),
    # a keep-alive that is an event of its own
    "named-event": (
        f'{SESSION}{LIST}sse [{ES}] {{"event":"ping","data":"12:00"}}\n< [{ES}] {LISTED[2:]}end by="server"\n', "2025-11-25",
    ),
    # a legacy server's refusal of a modern probe may bear an id of its own
    "probe-refused": (
        f'http\n{DISCOVER}<! [status=400] {{"jsonrpc":"2.0","id":"server-error","error":{{"code":-32600,"message":"m"}}}}\n',
        "2026-07-28",
    ),
    # what could not be read is refused: neither the notification after it nor another request is answered
    "refused-unread": (f'{TOOLS}> {{"id":2}}\n< {{"id":2,"error":{{"code":-32600,"message":"m"}}}}\nclose\n', "2025-11-25"),
    "parse-error": (
        f'{TOOLS}> {{"id"\n> {{"method":"notifications/x"}}\n<! {{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"m"}}}}\n',
        "2025-11-25",
    ),
    # a client may shut down at any time
    "shut-down": (f'handshake client={{"roots":{{}}}}\n< {{"id":1,{ROOTS[1:]}\nclose by="client"\n', "2025-11-25"),
    "first-draft": (f"open\n{AGAIN.replace('2025-11-25', '2024-10-07')}close\n", "2024-11-05"),
    # a second session on one line has ids of its own
    "again": (f"{TOOLS}{LIST}{LISTED}close\nopen\n{AGAIN}{LIST}{LISTED}close\n", "2025-11-25"),
    "again-http": (f"http\n{TOOLS}{LIST}{LISTED}{AGAIN}{LIST}{LISTED}", "2025-11-25"),
    # two servers of one client
    "cursors": (
        f"on c1\n{TOOLS}on c2\n{TOOLS}"
        + "".join(f'on {one}\n{LIST}{LISTED[:-3]},"nextCursor":"1"}}}}\n' for one in ("c1", "c2"))
        + 'on c1\n> {"id":2,"method":"tools/list","params":{"cursor":"1"}}\n< {"id":2,"result":{"tools":[]}}\nclose\n',
        "2025-11-25",
    ),
    "two-modern": (
        (f"on c1\nopen\n{DISCOVER}{DISCOVERED}{LIST}{LISTED[:-4]}{TOOL}]}}}}\non c2\nopen\n{call(1)}{done(1)}"
        f"on c3\nopen\n{DISCOVER}{NOT_FOUND}close\non c2\nclose\non c1\nclose\n"),
        "2026-07-28",
    ),
    # rounds of the same tool side by side; one that is retried once more
    "rounds-by-key": (
        MODERN + call(1) + call(2) + asks(1, "k") + asks(2, "j") + gives(3, "k") + done(3) + gives(4, "j") + done(4) + "close\n",
        "2026-07-28",
    ),
    "rounds-by-arguments": (
        MODERN + call(1, ',"arguments":{"a":1}') + call(2, ',"arguments":{"a":2}') + asks(1, "k") + asks(2, "j", "s")
        + gives(3, "k", more=',"arguments":{"a":1}') + done(3) + gives(4, "j", "s", ',"arguments":{"a":2}') + done(4) + "close\n",
        "2026-07-28",
    ),
    "round-twice": (
        MODERN + call(1) + asks(1, "k", "A") + call(2) + asks(2, "k", "B") + gives(3, "k", "A")
        + '> {"method":"notifications/cancelled","params":{"requestId":3}}\n' + gives(4, "k", "A") + done(4) + "close\n",
        "2026-07-28",
    ),
}  # fmt: skip
SERIOUS = {
    "parse-error": {"stdio.client-stdin-clean"},
    "refused-unread": {"jsonrpc.message-shape", "jsonrpc.result-xor-error"},
}
"""What is broken there all the same, by the other party."""


def broken(record: Record) -> set[tuple[str, int]]:
    table = check(Trace(record))
    table = table[(table["verdict"] == "broken") & table["level"].str.startswith("MUST")]
    return set(zip(table["rule"], table["seq"].astype(int), strict=True))


@pytest.mark.parametrize("name", LEGAL)
def test_nothing_is_broken(name: str) -> None:
    whole = examples.record(*LEGAL[name])
    found = broken(whole)
    assert {rule for rule, _ in found} == SERIOUS.get(name, set())
    for k in range(1, len(whole.events)):
        for events in (whole.events[k:], whole.events[:-k]):
            assert broken(Record(whole.header, list(events), name="cut")) <= found, k


@pytest.mark.parametrize("accept", ["-accept", "accept=application/json, text/event-stream"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_http_sse_without_its_endpoint_event_is_not_streamable_http(revision: str, accept: str, tmp_path) -> None:
    """HTTP+SSE as later revisions are spoken over it too: an initialize that is answered 202 tells it."""
    lines = [INITIALIZE.replace("2025-11-25", revision), '{"method":"notifications/initialized"}\n', LIST[2:]]
    answers = {0: INITIALIZED.replace("2025-11-25", revision), 2: LISTED[2:]}
    script = 'http transport=sse\nGET\nsse {"event":"endpoint","data":"/messages?id=1"}\n'
    for number, line in enumerate(lines):
        script += f"> [{accept}] {line}answer 202\n" + (f"< {answers[number]}" if number in answers else "")
    whole = examples.record(script, revision)
    header = {**whole.header, "transport": "streamable-http"}  # a proxy cannot know which of the two it will be
    for k in range(len(whole.events) - 1):
        for events in (whole.events[k:], whole.events[: len(whole.events) - k]):
            assert broken(Record(header, list(events), name="cut")) == set(), k
    late = Trace(Record(header, list(whole.events[2:]), name="late"))
    read = read_trace(late.save(tmp_path / "late.jsonl"))
    for table in (read.messages, late.messages):
        assert set(table["channel"][table["sender"] == "client"]) == {"SSE (legacy transport)"}


def test_the_breach_beside_it_is_found() -> None:
    """The same with one thing changed."""
    said = {
        "sessions.terminated-404": f"{SESSION}{LIST}answer 404\n{LIST}{LISTED}",
        "jsonrpc.request-id-reuse": f"{SESSION}{LIST}{LISTED}{LIST}{LISTED}",
        "http.notification-202": f'{SESSION}> {{"method":"notifications/x"}}\nanswer 204\n',
        "jsonrpc.response-id-matches": f'{TOOLS}> {{"id":2}}\n< {{"id":3,"error":{{"code":-32600,"message":"m"}}}}\nclose\n',
        # over HTTP too, where nobody can know every request: a JSON body answers what was POSTed
        "jsonrpc.response-id-matches ": f"{SESSION}{LIST}{LISTED.replace('1', '2')}",
        "pagination.cursor-from-server": f'{TOOLS}> {{"id":2,"method":"tools/list","params":{{"cursor":"1"}}}}\n',
    }
    for rule, script in said.items():
        assert rule.strip() in {found for found, _ in broken(examples.record(script, "2025-11-25"))}, rule
    script = MODERN + call(1) + call(2) + asks(1, "k") + asks(2, "j") + call(3, ',"inputResponses":{}') + "close\n"
    assert "mrtr.responses-given" in {found for found, _ in broken(examples.record(script, "2026-07-28"))}


def test_headers_by_hand_may_have_capitals() -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    http = {"method": "POST", "path": "/mcp", "headers": headers}
    trace = make_trace([{"kind": "message", "dir": "c2s", "msg": message, "http": http}], transport="http")
    table = check(trace, rules="http.post-accept", revision="2025-11-25")
    assert table["verdict"].tolist() == ["kept"]
