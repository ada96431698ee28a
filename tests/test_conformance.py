"""The conformance suite beside our findings: reading its results, comparing, the fixture. The run itself: make conformance."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from conformance import page
from conformance.agreement import AGREES, DIFFERS, OURS_ONLY, THEIRS_ONLY, Book, Finding, Row, explained, rows
from conformance.client import Talk, made, usable
from conformance.fixture import fixture
from conformance.suite import Check, Scenario, SuiteError, checks_of, scenarios_in

from mcplab import check, handshake, read_trace, rules
from mcplab.spec import REVISIONS

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "conformance.md"
META = "io.modelcontextprotocol/"
SERVER = Scenario("server", "2026-07-28", "ping", True)

LISTING = """Required for 2025-11-25 (3 scenarios, frozen; run at the 2025-11-25 wire):

Server scenarios (test against a server):
  - server-initialize
  - ping

Client scenarios (test against a client):
  - auth/metadata-default

Run and reported, but never scored:
  extension (1):
    - tasks-lifecycle [server]
  pending (1):
    - auth/dpop [client]
"""


def test_the_list_of_scenarios():
    found = scenarios_in(LISTING, "2025-11-25")
    assert [(one.role, one.name, one.scored) for one in found] == [
        ("server", "server-initialize", True),
        ("server", "ping", True),
        ("client", "auth/metadata-default", True),
        ("server", "tasks-lifecycle", False),
        ("client", "auth/dpop", False),
    ]
    assert found[2].slug == "2025-11-25/client-auth-metadata-default"


def test_reading_checks():
    text = json.dumps(
        [
            {"id": "incoming-request", "status": "INFO"},
            {"id": "a", "status": "SUCCESS", "errorMessage": None},
            {"id": "b", "status": "WARNING", "errorMessage": "two\n lines"},
        ]
    )
    assert checks_of(text) == [Check("a", "SUCCESS", ""), Check("b", "WARNING", "two lines")]
    with pytest.raises(SuiteError, match="no array"):
        checks_of("{}")


BOOK = Book.of(
    {
        "reasons": {"named": "a tool of its own"},
        "checks": {"one": ["r.1"], "two": ["r.1", "r.2"], "own": "named"},
        "difference": [],
    }
)
PLAIN = [Finding("r.1", "kept", "server")]


@pytest.mark.parametrize(
    ("checks", "findings", "expected"),
    [
        ([("one", "SUCCESS")], PLAIN, [("one", "passed", "kept", AGREES)]),
        ([("one", "FAILURE")], PLAIN, [("one", "failed", "kept", DIFFERS)]),
        ([("one", "SUCCESS"), ("one", "WARNING")], PLAIN, [("one", "failed", "kept", DIFFERS)]),
        ([("one", "SKIPPED")], PLAIN, [("one", "skipped", "kept", AGREES)]),
        ([("one", "SUCCESS")], [], [("one", "passed", "unexercised", THEIRS_ONLY)]),
        ([("one", "SUCCESS")], [Finding("r.1", "unknown", "server")], [("one", "passed", "unknown", THEIRS_ONLY)]),
        ([("one", "FAILURE")], [Finding("r.1", "broken", "server")], [("one", "failed", "broken", AGREES)]),
        (  # one rule of two is broken: so is what they ask together
            [("two", "SUCCESS")],
            [*PLAIN, Finding("r.2", "broken", "server")],
            [("two", "passed", "broken", DIFFERS)],
        ),
        (  # broken, and no check of the scenario asks it
            [("one", "SUCCESS")],
            [*PLAIN, Finding("r.9", "broken", "client", "words")],
            [("one", "passed", "kept", AGREES), ("", "", "broken", OURS_ONLY)],
        ),
        ([("own", "SUCCESS")], [], [("own", "passed", "", THEIRS_ONLY)]),
    ],
)
def test_what_is_compared(checks, findings, expected):
    found = list(rows(SERVER, [Check(name, status, "") for name, status in checks], findings, BOOK))
    assert [(row.check, row.theirs, row.ours, row.agreement) for row in found] == expected


def test_whose_breach_it_is_is_said():
    found = list(rows(SERVER, [], [Finding("r.9", "broken", "client", "words")], BOOK))
    assert found[0].detail == "the suite's client: words"


def test_every_difference_needs_an_explanation_and_every_explanation_a_difference():
    data = {"scenario": "*/server-*", "on": "one", "theirs": "failed", "ours": "kept", "why": "because"}
    other = {**data, "on": "r.*", "theirs": "", "ours": "broken"}
    book = Book.of(
        {"reasons": {"named": "own"}, "checks": {"one": ["r.1"], "own": "named"}, "difference": [data, other]}
    )
    differs = list(rows(SERVER, [Check("one", "FAILURE", ""), Check("own", "SUCCESS", "")], PLAIN, book))
    told, problems = explained(differs, book)
    assert [row.why for row in told] == ["because", "own"]
    assert problems == ["[[difference]] */server-*: r.*: explains nothing (theirs '')"]

    agrees = list(rows(SERVER, [Check("one", "SUCCESS", "")], [*PLAIN, Finding("r.9", "broken", "server", "x")], book))
    told, problems = explained(agrees, book)
    assert [row.why for row in told] == ["", "because"]
    assert problems == [
        "[[difference]] */server-*: one: explains nothing (theirs 'failed')",
        "[checks] own: the suite has no such check",
    ]

    unknown = list(rows(SERVER, [Check("new", "SUCCESS", "")], [], book))
    _, problems = explained(unknown, book)
    assert problems[0] == "2026-07-28/server-ping: the check new is not in [checks]"
    assert "new: the suite says passed, we say nothing, and no [[difference]] explains it" in problems[1]

    failed = list(rows(SERVER, [Check("own", "FAILURE", "")], [], book))
    _, problems = explained(failed, book)  # a reason for having no rule is none for a failure
    assert "own: the suite says failed" in problems[0]


def test_the_book_names_rules_that_are_there():
    data = tomllib.loads((HERE / "conformance" / "agreement.toml").read_text(encoding="utf-8"))
    book = Book.of(data)
    known = set(rules().id)
    for name, said in book.checks.items():
        assert not isinstance(said, tuple) or (said and set(said) <= known), name
    assert {said for said in data["checks"].values() if isinstance(said, str)} == set(data["reasons"])
    assert all(one.why for one in book.explanations)


def test_the_page_is_of_this_book():
    """It is made by a run; what the book says of differences must be in it."""
    text = PAGE.read_text(encoding="utf-8")
    book = Book.of(tomllib.loads((HERE / "conformance" / "agreement.toml").read_text(encoding="utf-8")))
    for one in book.explanations:
        assert one.why in text, one
    for name in book.checks:
        assert f"| `{name}` |" in text


def test_the_page():
    told = [
        Row(SERVER.slug, "one", "passed", ("r.1",), "kept", AGREES),
        Row(SERVER.slug, "two", "failed", ("r.1",), "kept", DIFFERS, "because"),
    ]
    text = page.text([SERVER], told)
    assert "| 2026-07-28 | server | 1 | 1 | 1 | 1 | 0 | 1 | 1 | 0 | 0 |" in text
    assert "**differs** (suite: failed, ours: kept): because\n\n`two` (2026-07-28/server-ping)\n" in text
    assert "| `one` | passed | `r.1` | kept | agrees |" in text


# What the suite's traffic taught: no breach, though it looks like one ---------------------------------------


def _post(exchange: str, message: dict, status: int, answer: dict | None, **headers: str) -> list[dict]:
    """A POST with its response on one peer; the refusal of a host has no JSON-RPC in it."""
    sent = {"method": "POST", "path": "/mcp", "exchange": exchange, "headers": headers}
    kind = "application/json" if answer else "text/plain"
    got = {"status": status, "exchange": exchange, "headers": {"content-type": kind}}
    body = {"kind": "message", "msg": answer} if answer else {"kind": "http", "raw": "no"}
    return [
        {"kind": "message", "dir": "c2s", "conn": "c1", "msg": {"jsonrpc": "2.0", **message}, "http": sent},
        {**body, "dir": "s2c", "conn": "c1", "http": got},
    ]


def _broken(events: list[dict]) -> set[str]:
    findings = check(read_trace([{"seq": number, **event} for number, event in enumerate(events)]))
    return set(findings[findings.verdict == "broken"].rule)


INFO = {"name": "c", "version": "1"}
OLD = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO},
}
SAID = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}


def test_an_initialize_that_was_turned_away_used_up_no_id():
    answer = {"jsonrpc": "2.0", "id": 1, "result": SAID}
    assert "jsonrpc.request-id-reuse" not in _broken([*_post("x1", OLD, 403, None), *_post("x2", OLD, 200, answer)])
    twice = [*_post("x1", OLD, 200, answer), *_post("x2", {**OLD, "method": "ping", "params": {}}, 403, None)]
    assert "jsonrpc.request-id-reuse" in _broken(twice)


def test_a_post_that_has_its_response_is_in_flight_no_more():
    meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}, f"{META}clientInfo": INFO}
    ask = {"id": 1, "method": "tools/list", "params": {"_meta": meta}}
    (first, refused), (second, done) = (
        _post("x1", ask, 403, None),
        _post("x2", ask, 200, {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}}),
    )
    assert "jsonrpc.request-id-in-flight-unique" not in _broken([first, refused, second, done])
    assert "jsonrpc.request-id-in-flight-unique" in _broken([first, second, refused, done])


@pytest.mark.parametrize(("kind", "breach"), [("application/json", False), ("text/event-stream", True)])
def test_a_get_that_is_refused_in_json_is_no_stream(kind, breach):
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    asked = {"method": "GET", "path": "/mcp", "exchange": "x2", "headers": {"accept": "text/event-stream"}}
    told = {"status": 400, "exchange": "x2", "headers": {"content-type": kind}}
    events = [
        *_post("x1", OLD, 200, {"jsonrpc": "2.0", "id": 1, "result": SAID}),
        {"kind": "http", "dir": "c2s", "conn": "c1", "http": asked},
        {"kind": "message", "dir": "s2c", "conn": "c1", "msg": error, "http": told},
    ]
    assert ("http.get-stream-no-response" in _broken(events)) is breach


# The fixture and the client --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [REVISIONS[-2], "modern"])
def test_the_fixture_is_a_correct_server_and_its_recording_tells_so(mode):
    asked = ["test_image_content", "test_tool_with_progress", "test_elicitation", "test_error_handling"]
    with fixture() as (url, recorded):
        done = handshake(
            url,
            mode=mode,
            declare={"elicitation": {}},
            then=[("tools/list", None), *(("tools/call", {"name": name, "arguments": {}}) for name in asked)],
        )
        trace = recorded("fixture")
    assert [answer.outcome for answer in done.results] == ["result"] * 5
    theirs, ours = done.trace.messages, trace.messages
    assert sorted(theirs.message) == sorted(ours.message)
    assert list(theirs.status.dropna()) == list(ours.status.dropna())
    for one in (trace, done.trace):
        findings = check(one)
        assert not len(findings[findings.verdict == "broken"])


def test_several_questions_at_once():
    def all_of_them(params: dict) -> dict:
        return {"action": "accept", "content": {"name": "x"}}

    with fixture() as (url, _):
        done = handshake(
            url,
            mode="modern",
            declare={"elicitation": {}, "sampling": {}, "roots": {}},
            answers={"elicitation/create": all_of_them},
            then=[("tools/call", {"name": "test_input_required_result_multiple_inputs"})],
        )
    assert done.results[0].rounds == 2
    assert len(done.asked) == 3


def test_the_client_uses_what_is_listed():
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"enum": ["q"]}, "c": {"default": [1]}}}
    assert made(schema) == {"a": 1, "b": "q", "c": [1]}
    header = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "My Region"}}}
    assert usable(schema)
    assert not usable(header)
    talk = Talk(modern=True, context={})
    talk._results.append({"capabilities": {"prompts": {}}})
    steps = talk.steps()
    assert next(steps) == ("tools/list", None)
    talk._results.append({"tools": [{"name": "bad", "inputSchema": header}, {"name": "good", "inputSchema": schema}]})
    assert next(steps) == ("tools/call", {"name": "good", "arguments": made(schema)})
    talk._results.append({"content": []})
    assert next(steps) == ("prompts/list", None)
