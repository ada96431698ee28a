"""The demo server over HTTP, status by status, and as a program of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from mcplab.live.server import __main__ as command
from mcplab.live.server.config import Config
from mcplab.live.server.demo import DEMO, arguments, serving
from mcplab.live.server.faults import FAULTS, table
from mcplab.model import ABSENT, MCPLabError, UsageError

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

BOTH = "application/json, text/event-stream"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": META}}
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}


@pytest.fixture(scope="module", params=["dual", "legacy", "modern"])
def served(request) -> Iterator[tuple[str, str]]:
    with serving(serves=request.param) as server:
        yield request.param, server.url


def post(url: str, message: Any, **headers: str) -> httpx2.Response:
    names = {"accept": BOTH, "content-type": "application/json"}
    names |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = message if isinstance(message, (bytes, str)) else json.dumps(message)
    return httpx2.post(url, content=content, headers={k: v for k, v in names.items() if v}, timeout=10, trust_env=False)


def test_modern_headers_must_say_what_the_body_says(served):
    serves, url = served
    if serves == "legacy":
        assert post(url, LIST, **MODERN).status_code == 400
        return
    assert post(url, LIST, **MODERN).json()["result"]["tools"]
    wrong = [
        {**MODERN, "mcp-method": "tools/call"},
        {"mcp-protocol-version": "2026-07-28"},
        {"mcp-method": "tools/list"},
        {**MODERN, "mcp-protocol-version": "2025-11-25"},
    ]
    for headers in wrong:
        response = post(url, LIST, **headers)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32020), headers
        assert response.json()["id"] == 2
    called = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo", "_meta": META}}
    method = {**MODERN, "mcp-method": "tools/call"}
    assert post(url, called, **method).json()["error"]["code"] == -32020
    assert post(url, called, **method, **{"mcp-name": "=?base64?ZWNobw==?="}).json()["result"]["isError"] is False
    padded = HTTPConnection(urlsplit(url).netloc, timeout=10)  # httpx2 sends no such header
    names = {**method, "accept": BOTH, "content-type": "application/json", "mcp-name": "  echo  "}
    padded.request("POST", "/mcp", json.dumps(called), names)
    assert padded.getresponse().status == 200  # RFC 9110 5.5: spaces around a value are not part of it
    padded.close()
    assert post(url, called, **method, **{"mcp-name": "fail"}).json()["error"]["code"] == -32020


def test_modern_statuses(served):
    serves, url = served
    if serves == "legacy":
        return
    unknown = {**LIST, "method": "no/such"}
    assert post(url, unknown, **{**MODERN, "mcp-method": "no/such"}).status_code == 404
    bare = {**LIST, "params": {}}
    refused = post(url, bare, **MODERN)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32602)
    newer = {**LIST, "params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}}
    refused = post(url, newer, **{**MODERN, "mcp-protocol-version": "2030-01-01"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32022)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": META}}
    accepted = post(url, note, **{**MODERN, "mcp-method": "notifications/cancelled"})
    assert (accepted.status_code, accepted.content) == (202, b"")


def test_a_modern_only_server_and_old_traffic():
    with serving(serves="modern") as server:
        refused = post(server.url, INITIALIZE)
        assert refused.status_code == 400
        assert "2026-07-28" in refused.json()["error"]["message"]
        assert httpx2.get(server.url, headers={"accept": "text/event-stream"}, trust_env=False).status_code == 405
        assert httpx2.delete(server.url, trust_env=False).status_code == 405
        ignored = post(server.url, LIST, **MODERN, **{"mcp-session-id": "old", "last-event-id": "1"})
        assert ignored.status_code == 200
        assert "mcp-session-id" not in ignored.headers


def test_security_and_transport_refusals(served):
    _, url = served
    assert post(url, INITIALIZE, origin="https://evil.example").status_code == 403
    assert post(url, INITIALIZE, host="evil.example").status_code == 403
    assert post(url, INITIALIZE, accept="application/json").status_code == 406
    assert post(url, INITIALIZE, content_type="text/plain").status_code == 415
    assert httpx2.put(url, trust_env=False).status_code == 405
    broken = post(url, b'{"jsonrpc"')
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)
    assert post(url, b'"text"').status_code == 400


def test_sessions():
    with serving(serves="legacy", session_id="docs-legacy-session") as server:
        opening = post(server.url, INITIALIZE)
        assert opening.headers["mcp-session-id"] == "docs-legacy-session"
        assert opening.headers["content-type"] == "application/json"
        ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
        session = {"mcp-session-id": "docs-legacy-session"}
        assert post(server.url, ping).status_code == 400
        assert post(server.url, ping, mcp_session_id="other").status_code == 404
        assert post(server.url, ping, **session).json() == {"jsonrpc": "2.0", "id": 5, "result": {}}
        assert post(server.url, ping, **session, mcp_protocol_version="1999-01-01").status_code == 400
        assert httpx2.delete(server.url, headers=session, trust_env=False).status_code == 200
        assert post(server.url, ping, **session).status_code == 404


def test_no_sessions_and_no_stream():
    with serving(serves="legacy", session_id="", get="405") as server:
        assert "mcp-session-id" not in post(server.url, INITIALIZE).headers
        listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert post(server.url, listed).json()["result"]["tools"]
        refused = httpx2.get(server.url, headers={"accept": "text/event-stream"}, trust_env=False)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST, DELETE")


BATCH = [
    {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
]


@pytest.mark.parametrize("revision", LEGACY)
def test_batches_over_http(revision):
    with serving(serves="legacy", session_id="s") as server:
        post(server.url, {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": revision}})
        response = post(server.url, BATCH, mcp_session_id="s")
        if revision != "2025-03-26":
            assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)
            return
        data = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        assert sorted(json.loads(one)["id"] for one in data) == [2, 3]
        assert post(server.url, BATCH[1:2], mcp_session_id="s").status_code == 202


@pytest.mark.parametrize("revision", LEGACY)
def test_batches_on_stdio(revision):
    opening = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": revision}}
    lines = [json.dumps(opening), json.dumps(BATCH), "[]", "not json", "7"]
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mcplab.live.server"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        cwd=root,
        timeout=30,
        check=True,
    )
    out = [json.loads(line) for line in done.stdout.splitlines()]
    batches = [one for one in out if isinstance(one, list)]
    errors = [one["error"]["code"] for one in out if isinstance(one, dict) and "error" in one]
    if revision == "2025-03-26":
        assert [sorted(one["id"] for one in batch) for batch in batches] == [[2, 3]]
        assert sorted(errors) == [-32700, -32600, -32600]
    else:
        assert batches == []
        assert sorted(errors) == [-32700, -32600, -32600, -32600]


def test_a_legacy_stream_outlives_its_reader_and_a_modern_one_does_not():
    async def slow(url: str, headers: dict[str, str], meta: dict[str, Any]) -> None:
        message = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {
                "name": "progress",
                "arguments": {"steps": 3, "delay": 0.1},
                "_meta": {"progressToken": 1, **meta},
            },
        }
        names = {"accept": BOTH, "content-type": "application/json", **headers}
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=10) as client,
            client.stream("POST", url, content=json.dumps(message), headers=names) as response,
        ):
            async for _ in response.aiter_lines():
                break

    with serving(serves="dual", session_id="s") as server:
        post(server.url, INITIALIZE)
        asyncio.run(slow(server.url, {"mcp-session-id": "s"}, {}))
        headers = {"accept": "text/event-stream", "mcp-session-id": "s", "last-event-id": "s2.0"}
        with httpx2.stream("GET", server.url, headers=headers, trust_env=False, timeout=10) as response:
            lines = [line for line in response.iter_lines() if line.startswith("data: ")]
        assert json.loads(lines[-1][6:])["result"]["isError"] is False
        before = len(server.wire.texts)
        modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "progress"}
        asyncio.run(slow(server.url, modern, META))
        asyncio.run(asyncio.sleep(0.6))
        sent = [text for direction, text in server.wire.texts[before:] if direction == "s2c"]
        assert not any('"result"' in text for text in sent)


# As a program ---------------------------------------------------------------------------------------------


def test_arguments_come_back_as_they_went():
    config = Config(
        serves="legacy", versions=("2025-03-26",), capabilities={"tools": None}, session_id="", get="405",
        challenge=True, fault="http-418", old_sse=True, instructions=ABSENT, name="n",
    )  # fmt: skip
    for one in (config, Config()):
        assert command.config_of(command.parser().parse_args(arguments(one))) == one
    assert DEMO(serves="modern", versions=["2026-07-28"]).config == Config(serves="modern", versions=("2026-07-28",))


def test_help_names_every_fault(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in FAULTS)
    assert len(table().splitlines()) == len(FAULTS)
    with pytest.raises(UsageError, match="no fault 'laziness'"):
        command.main(["--fault", "laziness"])


def test_wrong_use_of_the_program_is_one_line_and_2():
    words = [sys.executable, "-m", "mcplab.live.server", "--serves", "nobody"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nobody" in done.stderr


def test_http_as_a_process_prints_its_address_and_ends_on_sigterm():
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "mcplab.live.server", "--http", "0"], stdout=subprocess.PIPE, text=True, cwd=root
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert post(url, INITIALIZE).json()["result"]["protocolVersion"] == "2025-11-25"
        process.terminate()
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken():
    with serving() as one, pytest.raises(MCPLabError, match="port"), serving(port=int(one.url.split(":")[2][:-4])):
        pass
