"""``handshake`` against the demo server: the compatibility matrix, declarations byte for byte, trace against wire."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcplab.live.handshakes import handshake, handshake_async
from mcplab.live.server.demo import DEMO, serving
from mcplab.model import ABSENT, HandshakeError, JsonText

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
TRANSPORTS = ("stdio", "http")


@contextlib.contextmanager
def demo(transport: str, tmp_path: Path, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A target, and a function that gives what the server saw as [(direction, text)]."""
    if transport == "stdio":
        log = tmp_path / "wire.log"

        def seen() -> list[tuple[str, str]]:
            lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
            return [(line[:3], line[4:]) for line in lines]

        yield DEMO(log=log, **options), seen
    else:
        with serving(**options, old_sse=transport == "sse") as served:
            yield served.url, lambda: served.wire.texts


def messages(shake: Any) -> list[tuple[str, str]]:
    """The JSON-RPC messages and what was to be one, of a trace or of an error's trace, as [(direction, text)]."""
    record = shake.record
    return [
        (event.dir, event.text or event.raw)
        for event in record.events
        if event.kind == "message" or (event.kind == "unparsed" and event.raw is not None)
    ]


def same_wire(transport: str, shake: Any, seen: list[tuple[str, str]]) -> None:
    recorded = messages(shake)
    for direction in ("c2s", "s2c"):
        assert [t for d, t in recorded if d == direction] == [t for d, t in seen if d == direction]
    if transport == "stdio" and not any(json.loads(t).get("method") for d, t in seen if d == "s2c"):
        assert recorded == seen  # one pipe each way and nothing unasked: the whole order is the same


# The compatibility matrix --------------------------------------------------------------------------------

MATRIX = [
    ("modern", "modern", "2026-07-28 (forced modern)"),
    ("modern", "legacy", None),
    ("auto", "modern", "2026-07-28 (modern)"),
    ("auto", "legacy", "2025-11-25 (legacy)"),
    ("legacy", "modern", None),
    ("legacy", "dual", "2025-11-25 (forced legacy)"),
    ("legacy", "legacy", "2025-11-25 (forced legacy)"),
    ("auto", "dual", "2026-07-28 (modern)"),
    ("modern", "dual", "2026-07-28 (forced modern)"),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("client", "server", "label"), MATRIX)
def test_compatibility_matrix(transport, client, server, label, tmp_path):
    with demo(transport, tmp_path, serves=server) as (target, seen):
        if label is None:
            with pytest.raises(HandshakeError) as caught:
                handshake(target, mode=client, timeout=20)
            same_wire(transport, caught.value.trace, seen())
            if client == "legacy":  # the only diagnostic that a legacy client can show (versioning, SHOULD)
                assert "2026-07-28" in str(caught.value)
            return
        shake = handshake(target, mode=client, then=[("tools/list", None)], timeout=20)
        same_wire(transport, shake, seen())
    assert shake.label == label
    assert [answer.outcome for answer in shake.results] == ["result"]
    assert shake.server["tools"] == {"listChanged": True}
    assert shake.server_info["name"] == "mcplab-demo"
    expected = {"modern": "modern", "legacy": "legacy-fallback" if client == "auto" else "none"}[shake.era]
    assert shake.discovery == expected
    connection = shake.trace.connections.iloc[-1]
    assert (connection["label"], connection["era"], connection["discovery"]) == (label, shake.era, shake.discovery)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("revision", [*LEGACY, "2026-07-28"])
def test_exact_revisions(transport, revision, tmp_path):
    with demo(transport, tmp_path) as (target, seen):
        shake = handshake(target, mode=revision, then=[("tools/call", {"name": "echo", "arguments": {"text": "x"}})])
        same_wire(transport, shake, seen())
    assert shake.revision == revision
    assert shake.results[0].result["content"][0]["text"] == "x"
    if transport == "http":
        versions = [
            e.http.headers.get("mcp-protocol-version")
            for e in shake.record.events
            if e.kind == "message" and e.dir == "c2s"
        ]
        sent_with = {"2024-11-05": None, "2025-03-26": None}.get(revision, revision)
        assert versions[-1] == sent_with


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("revision", ["1999-01-01", "2099-01-01"])
def test_a_version_that_nobody_knows_is_offered_as_it_is(transport, revision, tmp_path):
    with demo(transport, tmp_path) as (target, seen), pytest.raises(HandshakeError, match=revision) as caught:
        handshake(target, mode=revision)
    assert revision in seen()[0][1]
    assert len(caught.value.trace) > 2


def test_http_sse_is_the_last_fallback_of_auto(tmp_path):
    with demo("sse", tmp_path) as (target, seen):
        shake = handshake(target, then=[("tools/call", {"name": "progress", "_meta": {"progressToken": 7}})])
        same_wire("sse", shake, seen())
    assert shake.label == "2025-11-25 (legacy)"
    assert shake.record.header["transport"] == "sse"
    assert [step.so for step in shake.steps[:3]] == [
        "a legacy server: initialize",
        "perhaps the HTTP+SSE transport of 2024-11-05: GET",
        "initialize over HTTP+SSE",
    ]
    assert len(shake.results[0].notifications) == 3
    assert set(shake.trace.messages["channel"]) <= {"POST", "POST (JSON)", "SSE (legacy transport)"}


# Declarations ---------------------------------------------------------------------------------------------

DEEP = '{"x":' + "[" * 400 + "]" * 400 + "}"
TOO_DEEP = '{"x":' + "[" * 20_000 + "]" * 20_000 + "}"
ODD = {
    "big": '{"experimental":{"n":{"v":123456789012345678901234567890}}}',
    "exponent": '{"experimental":{"n":{"v":1.50,"w":1E400,"z":-0}}}',
    "duplicates": '{"roots":{},"roots":{"listChanged":true},"roots":null}',
    "spaces": '{ "roots" : {\t"listChanged" :true } }',
    "escapes": '{"\\u0072oots":{"\\/":"\\ud83d\\ude00"}}',
    "lone surrogate": '{"experimental":{"\\ud83d":{}}}',
    "not ascii": '{"experimental":{"größe 世界 😀":{}}}',
    "null": "null",
    "true": "true",
    "zero": "0",
    "string": '"roots"',
    "array": '["roots",{"sampling":{}}]',
    "empty array": "[]",
    "empty": "{}",
    "members null": '{"roots":null,"sampling":null}',
    "members wrong": '{"roots":true,"sampling":1,"elicitation":"form","tasks":[]}',
    "flags wrong": '{"roots":{"listChanged":"true"}}',
    "unknown": '{"telepathy":{"range":12},"":{}}',
    "extension": '{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}',
    "deep": DEEP,
    "too deep": TOO_DEEP,
    "cut off": '{"roots":{',
    "not JSON": "{roots: NaN}",
    "nul": '{"experimental":{"a\\u0000b":{}}}',
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", ODD)
def test_a_declaration_is_on_the_wire_byte_for_byte(transport, name, tmp_path):
    declared = ODD[name]
    with demo(transport, tmp_path, serves="dual") as (target, seen):
        for mode, member in (("legacy", "capabilities"), ("modern", "io.modelcontextprotocol/clientCapabilities")):
            before = len(seen())
            try:
                shake = handshake(target, mode=mode, declare=JsonText(declared), timeout=20)
            except HandshakeError as error:
                shake = error.trace
            wire = seen()[before:]
            assert f'"{member}":{declared}' in wire[0][1]
            same_wire(transport, shake, wire)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (None, '"capabilities":null'),
        (ABSENT, '"clientInfo"'),
        ([], '"capabilities":[]'),
        ({"roots": JsonText("1.50"), "sampling": ABSENT, "x": "\ud83d"}, '"capabilities":{"roots": 1.50}'),
    ],
)
def test_python_values_too(transport, declared, text, tmp_path):
    with demo(transport, tmp_path, serves="legacy") as (target, seen):
        with contextlib.suppress(HandshakeError):
            handshake(target, mode="legacy", declare=declared, timeout=20)
        first = seen()[0][1]
    if declared is ABSENT:
        assert "capabilities" not in first
    elif isinstance(declared, dict):
        assert '"capabilities":{"roots":1.50,"x":"\\ud83d"}' in first
    else:
        assert text in first


def test_client_info_likewise(tmp_path):
    with demo("http", tmp_path) as (target, seen):
        shake = handshake(target, client_info=JsonText('{"name":"n","version":"1", "n":1.0}'))
        assert '"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1", "n":1.0}' in seen()[0][1]
        handshake(target, client_info=ABSENT)
        assert "clientInfo" not in seen()[-2][1]
    assert shake.record.header["client"]["name"] == "mcplab"


def test_a_declaration_that_cannot_be_written_is_refused():
    nest: Any = []
    for _ in range(100_000):
        nest = [nest]
    with pytest.raises(HandshakeError, match="JsonText"):
        handshake(DEMO, declare=nest)
    with pytest.raises(HandshakeError, match="JSON value"):
        handshake(DEMO, declare={"roots": {1, 2}})


# Requests afterwards, and what the server asks --------------------------------------------------------------

ANSWERS = {
    "roots/list": {"roots": [{"uri": "file:///demo", "name": "demo"}]},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "word"}, "model": "m"},
    "elicitation/create": lambda params: {"action": "accept", "content": {"name": params["message"]}},
}
DECLARED = {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}


@pytest.mark.parametrize("transport", [*TRANSPORTS, "sse"])
@pytest.mark.parametrize("mode", ["auto", "legacy", "2025-06-18"])
def test_the_server_asks_and_gets_canned_answers(transport, mode, tmp_path):
    with demo(transport, tmp_path) as (target, seen):
        shake = handshake(
            target, mode=mode, declare=DECLARED, answers=ANSWERS, then=[("tools/call", {"name": "ask-all"})]
        )
        same_wire(transport, shake, seen())
    (answer,) = shake.results
    text = answer.result["content"][0]["text"]
    for word in ("file:///demo", "word", "What is your name?"):
        assert word in text
    assert [asked["method"] for asked in shake.asked] == ["roots/list", "sampling/createMessage", "elicitation/create"]
    assert answer.rounds == (4 if shake.era == "modern" else 1)
    if shake.era == "modern":  # four independent requests: ids differ, the state is echoed
        calls = [json.loads(text) for direction, text in messages(shake) if direction == "c2s" and "tools/call" in text]
        assert len({call["id"] for call in calls}) == 4
        assert "requestState" not in calls[0]["params"]
        assert all("requestState" in call["params"] for call in calls[1:])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_was_not_declared_is_not_asked(mode, tmp_path):
    with demo("http", tmp_path) as (target, _):
        shake = handshake(target, mode=mode, then=[("tools/call", {"name": "ask-roots"})])
    assert shake.asked == ()
    (answer,) = shake.results
    if shake.era == "modern":
        assert answer.error["code"] == -32021
        assert answer.error["data"] == {"requiredCapabilities": {"roots": {}}}
        assert answer.status == 400
    else:
        assert answer.result["isError"] is True


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_that_asks_without_declaration_is_refused(mode, tmp_path):
    with demo("http", tmp_path, challenge=True) as (target, seen):
        shake = handshake(target, mode=mode, then=[("tools/call", {"name": "ask-roots"})])
    asked = [one["method"] for one in shake.asked]
    assert "roots/list" in asked
    if shake.era == "legacy":
        assert asked[0] == "ping"  # the first of everything that a server may ask
        assert any('"code":-32601' in text.replace(" ", "") for direction, text in seen() if direction == "c2s")
    else:
        assert shake.results[0].result["resultType"] == "input_required"


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_listening(transport, mode, tmp_path):
    with demo(transport, tmp_path) as (target, _):
        shake = handshake(target, mode=mode, listen=True, then=[("tools/call", {"name": "change-tools"}), 0.3])
    methods = [note["method"] for note in shake.notifications]
    assert "notifications/tools/list_changed" in methods
    if shake.era == "modern":
        assert methods[0] == "notifications/subscriptions/acknowledged"
        assert shake.results[0].outcome == "listening"


def test_errors_statuses_and_notifications_are_answers(tmp_path):
    with demo("http", tmp_path) as (target, _):
        shake = handshake(
            target,
            then=[
                ("no/such", {}),
                ("tools/call", {"name": "broken"}),
                ("tools/call", {"name": "fail"}),
                ("notifications/cancelled", {"requestId": 99}),
                "ping",
            ],
        )
    outcomes = [(answer.method, answer.outcome, answer.status) for answer in shake.results]
    assert outcomes == [
        ("no/such", "error", 404),
        ("tools/call", "error", 200),
        ("tools/call", "result", None),
        ("notifications/cancelled", "sent", None),
        ("ping", "error", 404),  # removed in 2026-07-28
    ]


def test_a_dropped_stream_is_resumed(tmp_path):
    with demo("http", tmp_path) as (target, _):
        shake = handshake(target, mode="legacy", then=[("tools/call", {"name": "drop"})])
    assert shake.results[0].result["content"][0]["text"] == "resumed"
    assert "RESUMPTION" in set(shake.trace.messages["channel"])


def test_a_mirrored_parameter_becomes_a_header(tmp_path):
    with demo("http", tmp_path) as (target, _):
        call = ("tools/call", {"name": "region", "arguments": {"region": " über\n"}})
        shake = handshake(target, then=[call, ("tools/list", None), call])
    assert [answer.outcome for answer in shake.results] == ["error", "result", "result"]
    assert shake.results[0].error["code"] == -32020  # the schema was not known yet
    sent = [event.http.headers for event in shake.record.events if event.kind == "message" and event.dir == "c2s"]
    assert sent[-1]["mcp-param-region"] == "=?base64?IMO8YmVyCg==?="


# The record ----------------------------------------------------------------------------------------------


def test_the_record_is_a_capture_like_any_other(tmp_path):
    from mcplab.traces import read_trace

    with demo("http", tmp_path, session_id="fixed-session") as (target, _):
        shake = handshake(
            target, mode="legacy", then=["ping", ("tools/call", {"name": "progress", "_meta": {"progressToken": 1}})]
        )
    assert shake.session == "fixed-session"
    head = shake.record.header
    assert (head["transport"], head["mode"], head["client"]["name"]) == ("streamable-http", "forced", "mcplab")
    events = shake.record.events
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(event.ts and event.mono for event in events)
    assert [event.mono for event in events] == sorted(event.mono for event in events)
    assert {event.conn for event in events if event.kind == "open"} == {
        event.conn for event in events if event.kind == "close" and not event.http
    }
    shake.trace.save(tmp_path / "t.jsonl")
    again = read_trace(tmp_path / "t.jsonl")
    names = ["trace", "instance"]
    assert again.messages.drop(columns=names).equals(shake.trace.messages.drop(columns=names))
    assert again.connections["session"].dropna().tolist() == ["fixed-session"]
    assert again.connections["label"].tolist() == ["2025-11-25 (forced legacy)"]
    assert list(again.messages["channel"]).count("POST (SSE)") == 5
    assert "DELETE" in set(again.http["method"])


def test_secrets_stay_out_of_the_record(tmp_path):
    with demo("http", tmp_path) as (target, _):
        shake = handshake(f"{target}?api_key=hunter2&x=1")
    assert "hunter2" not in repr(shake.record)
    assert shake.record.events[1].http.path == "/mcp?api_key=***&x=1"


def test_html_escapes_everything(tmp_path):
    evil = "<script>alert('x')</script>"
    with demo("http", tmp_path, instructions=evil, name=evil) as (target, _):
        shake = handshake(target, client_info={"name": evil}, declare={evil: {}}, then=[("tools/call", {"name": evil})])
    shown = shake._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


# Running ---------------------------------------------------------------------------------------------------


def test_async_code_uses_the_async_form():
    async def both() -> list[str]:
        shakes = await asyncio.gather(handshake_async(DEMO), handshake_async(DEMO, mode="legacy"))
        assert len(asyncio.all_tasks()) == 1
        return [shake.label for shake in shakes]

    assert asyncio.run(both()) == ["2026-07-28 (modern)", "2025-11-25 (forced legacy)"]


def test_a_loop_that_cannot_be_entered_again_gets_a_thread():
    from mcplab.live import running

    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert running._in_thread(answer) == 42

    async def fails() -> int:
        raise ValueError("as it was")

    with pytest.raises(ValueError, match="as it was"):
        running._in_thread(fails)


def test_cancellation_ends_the_server(tmp_path):
    import psutil

    async def cancelled() -> None:
        task = asyncio.create_task(handshake_async(DEMO(fault="silent"), timeout=30))
        me = psutil.Process()
        while not (children := me.children()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [child.pid for child in children if child.is_running() and child.status() != "zombie"] == []
        assert len(asyncio.all_tasks()) == 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(cancelled())


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (["no-such-program-anywhere"], "no-such-program-anywhere"),
        ("/", "Permission denied"),
        ("", "no target"),
        ("'open", "cannot be split"),
        ("http://", "no http or https address"),
    ],
)
def test_targets_that_are_none(target, words):
    with pytest.raises(HandshakeError, match=words):
        handshake(target, timeout=5)


def test_nobody_listens_there():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HandshakeError, match="refused") as caught:
        handshake(f"http://127.0.0.1:{port}/mcp", timeout=5)
    assert [event.kind for event in caught.value.trace] == ["close"]


def test_importing_loads_nothing_heavy():
    import subprocess

    code = "import sys, mcplab.live.handshakes; print([m for m in ('pandas', 'matplotlib', 'IPython', 'mcp', 'starlette', 'uvicorn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
