"""The gate around sessions of the official SDK: what may not be sent never reaches the wire, whoever sends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest
from mcp import types
from mcp.shared.message import SessionMessage

import mcplab
from mcplab import GateError, check, gate, guarded, handshake, make_trace
from mcplab.live.guard import Guard
from mcplab.live.server.demo import serving
from mcplab.model import UNKNOWN, UsageError

ROOT = Path(__file__).parents[1]
SIDES = {"c2s": "client", "s2c": "server"}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::mcp.MCPDeprecationWarning")


def at_the_demo(
    transport: str, capabilities: str, log: Path, use: Callable[[Any], Any], **options: Any
) -> tuple[Any, Any]:
    """Let ``use`` have a guard around the demo server; the guard, and the trace that the server itself wrote."""
    if transport == "stdio":
        words = ["-m", "mcplab.live.server", "--capabilities", capabilities, "--log", str(log)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        guard = guarded(mcp.StdioServerParameters(command=sys.executable, args=words, env=env), **options)
        anyio.run(use, guard)
    else:
        with serving(capabilities=json.loads(capabilities), log=log) as server:
            guard = guarded(server.url, **options)
            anyio.run(use, guard)
    lines = [line.partition(" ") for line in log.read_text(encoding="utf-8").splitlines()]
    return guard, make_trace([(SIDES[side], text) for side, _, text in lines])


def methods(trace: Any, sender: str) -> set[str]:
    messages = trace.messages
    return set(messages[(messages.sender == sender) & messages.kind.isin(["request", "notification"])].method)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_undeclared_requests_never_reach_the_wire(transport, mode, tmp_path):
    caught: list[str] = []

    async def retry(client: Any) -> None:
        for _ in range(3):
            try:
                await client.read_resource("demo://greeting")
            except GateError as error:
                caught.append(f"retry: {error}")

    async def use(guard: Guard) -> None:
        async with mcp.Client(guard, mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert (await client.call_tool("echo", {"text": "hello"})).model_dump()["content"][0]["text"] == "hello"
            with pytest.raises(GateError, match=r"prompts/list was not sent: server: prompts is absent") as error:
                await client.list_prompts()
            assert error.value.refused.verdict.path == "prompts"
            async with anyio.create_task_group() as background:
                background.start_soon(retry, client)
            with pytest.raises(GateError):
                await client.session.send_roots_list_changed()
            assert (await client.list_tools()).tools  # the session lives on

    guard, trace = at_the_demo(transport, '{"tools": {}}', tmp_path / "log", use)
    sent = methods(trace, "client")
    assert {"tools/call", "tools/list"} < sent
    assert not {name for name in sent if name.startswith(("prompts", "resources", "notifications/roots"))}
    assert [one.method for one in guard.refused] == ["prompts/list", *3 * ["resources/read"], GOES]
    assert len(caught) == 3
    assert sum(guard.sent.values()) == sum(trace.messages.sender == "client")
    findings = check(trace)
    assert not len(findings[findings.rule.str.startswith("gate.") & (findings.verdict == "broken")])


GOES = "notifications/roots/list_changed"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_without_the_guard_they_do(mode, tmp_path):
    async def use(guard: Guard) -> None:
        async with mcp.Client(guard.transport, mode=mode) as client:
            with pytest.raises(mcp.MCPError):
                await client.list_prompts()

    _, trace = at_the_demo("http", '{"tools": {}}', tmp_path / "log", use)
    assert "prompts/list" in methods(trace, "client")
    findings = check(trace)
    assert len(findings[findings.rule.str.startswith("gate.") & (findings.verdict == "broken")])


def test_notifications_are_dropped_on_demand(tmp_path):
    async def use(guard: Guard) -> None:
        async with mcp.Client(guard, mode="legacy") as client:
            await client.session.send_roots_list_changed()

    guard, trace = at_the_demo("http", "{}", tmp_path / "log", use, notifications="drop")
    assert GOES not in methods(trace, "client")
    assert [(one.kind, one.verdict.path) for one in guard.refused] == [("notification", "roots.listChanged")]


@pytest.mark.parametrize("strict", [False, True])
def test_what_nobody_can_judge(strict, tmp_path):
    """A client that adopts 2026-07-28 without asking knows nothing of the server."""

    async def use(guard: Guard) -> None:
        async with mcp.Client(guard, mode="2026-07-28") as client:
            if strict:
                with pytest.raises(GateError, match="the server's declaration was not seen"):
                    await client.list_tools()
            else:
                await client.list_tools()

    guard, trace = at_the_demo("http", '{"tools": {}}', tmp_path / "log", use, strict=strict)
    assert ("tools/list" in methods(trace, "client")) is not strict
    assert guard.unjudged["tools/list"] == (not strict)


def test_a_given_gate_comes_first(tmp_path):
    """The halves that are given count, the others come from the traffic."""

    async def use(guard: Guard) -> None:
        async with mcp.Client(guard, mode="legacy") as client:
            with pytest.raises(mcp.MCPError):  # it goes out, and the demo server has none
                await client.list_prompts()
            with pytest.raises(GateError):
                await client.session.send_roots_list_changed()

    door = gate("2025-11-25", client=UNKNOWN, server={"prompts": {}})
    guard, trace = at_the_demo("http", "{}", tmp_path / "log", use, gate=door)
    assert [one.method for one in guard.refused] == [GOES]
    assert "prompts/list" in methods(trace, "client")


# The server's side --------------------------------------------------------------------------------------------

SERVER = """
import contextlib, sys
import anyio, mcp.types as types, uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcplab import guarded

WORDS = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say a word."))
PARAMS = types.CreateMessageRequestParams(messages=[WORDS], max_tokens=16)
REQUEST = types.CreateMessageRequest(method="sampling/createMessage", params=PARAMS)

async def tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

async def call(ctx, params):
    if ctx.session.protocol_version >= "2026-07-28":
        if params.input_responses is None:
            return types.InputRequiredResult(input_requests={"word": REQUEST}, request_state="s")
        text = "answered"
    else:
        try:
            await ctx.session.create_message(messages=[WORDS], max_tokens=16, related_request_id=ctx.request_id)
            text = "answered"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

server = Server("guarded", on_list_tools=tools, on_call_tool=call)

async def serve(transport):
    async with guarded(transport, sender="server") as (read, write):
        await server.run(read, write, server.create_initialization_options())

async def over_http():
    transport = StreamableHTTPServerTransport(mcp_session_id="one")
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await transport.handle_request(scope, receive, send)
    web = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", port=0))
    async with anyio.create_task_group() as group:
        group.start_soon(serve, transport.connect())
        group.start_soon(web.serve)
        while not web.started:
            await anyio.sleep(0.01)
        print(f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}/mcp", flush=True)

anyio.run(over_http) if sys.argv[1] == "http" else anyio.run(serve, stdio_server())
"""


WHERE = [("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy")]
"""The SDK's server has streams there; modern requests over HTTP it serves without."""


@pytest.fixture
def server(request: Any) -> Iterator[Any]:
    command = [sys.executable, "-W", "ignore", "-c", SERVER, request.param]
    if request.param == "stdio":
        yield command
        return
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("declare", [{}, {"sampling": {}}])
@pytest.mark.parametrize(("server", "mode"), WHERE, indirect=["server"])
def test_a_server_asks_only_who_declared_it(server, mode, declare, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = handshake(server, mode=mode, declare=declare, then=[("tools/call", {"name": "ask"})], timeout=60)
    answer = done.results[0]
    text = done.trace.messages.message.str.cat(sep="\n")
    if declare:
        assert answer.result["content"][0]["text"] == "answered"
        assert [one["method"] for one in done.asked] == ["sampling/createMessage"]
        return
    assert done.asked == ()
    assert '"method":"sampling/createMessage"' not in text.replace(" ", "")
    if mode == "legacy":
        assert answer.result["content"][0]["text"].startswith("GateError: sampling/createMessage was not sent")
    else:
        assert answer.error["code"] == -32603
        assert "the result of tools/call was not sent: client: sampling is absent" in answer.error["message"]


# The guard alone, on memory streams --------------------------------------------------------------------------


@asynccontextmanager
async def between(sender: Any, **options: Any) -> AsyncIterator[tuple[Guard, Any, Any, Any]]:
    """A guard, a way in that its session has read, a way out, and the wire: what was let out."""
    incoming, read = anyio.create_memory_object_stream[Any](10)
    write, wire = anyio.create_memory_object_stream[Any](10)
    guard = guarded((read, write), sender=sender, **options)
    async with incoming, wire, guard as (ear, mouth), ear, mouth:

        async def come(message: dict[str, Any]) -> None:
            await incoming.send(_message(message))
            await ear.receive()

        yield guard, come, lambda message: mouth.send(_message(message)), wire


def _message(message: dict[str, Any]) -> SessionMessage:
    return SessionMessage(types.jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message}))


@pytest.mark.parametrize(("elicitation", "code"), [({"url": {}}, -32042), ({}, -32603)])
def test_an_answer_that_may_not_be_sent_is_an_error_to_who_waits(elicitation, code):
    """2025-11-25: the error -32042 needs elicitation.url."""

    async def play() -> None:
        door = gate("2025-11-25", client={"elicitation": elicitation})
        async with between("server", gate=door) as (guard, come, go, wire):
            await come({"id": 1, "method": "tools/call", "params": {"name": "x"}})
            await go({"id": 1, "error": {"code": -32042, "message": "url", "data": {"elicitations": []}}})
            sent = wire.receive_nowait().message
            assert (sent.id, sent.error.code) == (1, code)
            assert guard.sent == {"error": 1}
            assert len(guard.refused) == (code == -32603)

    anyio.run(play)


@pytest.mark.parametrize(("declared", "passes"), [({"tools": {}}, True), ({"tools": None}, False), ({}, False)])
def test_declarations_are_learned_as_they_are_on_the_wire(declared, passes):
    """``{}`` declares, null and absence do not; ids keep their JSON type."""

    async def play() -> None:
        async with between("client") as (guard, come, go, _):
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            await go({"id": 1, "method": "initialize", "params": params})
            await come({"id": "1", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}})
            await come({"id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": declared}})
            if passes:
                await go({"id": 2, "method": "tools/list"})
            else:
                with pytest.raises(GateError, match=r"tools is (null|absent)"):
                    await go({"id": 2, "method": "tools/list"})
            assert guard.unjudged == {}

    anyio.run(play)


def test_only_streams_can_be_guarded():
    from mcp.server.mcpserver import MCPServer

    with pytest.raises(UsageError, match="MCPServer has no streams"):
        guarded(MCPServer("in process"))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"sender": "me"}, "sender='me' is neither of client, server"), ({"gate": "2025-11-25"}, "is no gate: mcplab"),
     ({"notifications": "drops"}, "notifications='drops' is neither of raise, drop")],
)  # fmt: skip
def test_an_option_that_is_none_is_said_at_once(options, said):
    with pytest.raises(UsageError, match=said):
        guarded("http://127.0.0.1:9/mcp", **options)


def test_the_facade_has_it():
    assert mcplab.guarded is guarded
    assert issubclass(mcplab.GateError, mcplab.MCPLabError)


def test_of_a_new_connection_nothing_is_known():
    listing = SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))

    async def use() -> None:
        out, _wire = anyio.create_memory_object_stream[Any](1)
        _peer, into = anyio.create_memory_object_stream[Any](1)
        guard = guarded((into, out), strict=True)
        opening = [("client", {"id": 0, "method": "initialize", "params": {"capabilities": {}}}),
                   ("server", {"id": 0, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}})]  # fmt: skip
        for _ in range(2):
            async with guard as (_, write):
                with pytest.raises(GateError, match="no revision is agreed on yet"):
                    await write.send(listing)
                other = write.clone()
                with pytest.raises(GateError, match="goes round the gate"):
                    other.send_nowait(listing)
                other.close()
                for sender, message in opening:
                    guard.heard(message, sender)
                assert guard.gate({"id": 1, "method": "tools/list"}) is not None
        assert guard.sent["tools/list"] == 0
        for stream in (out, _wire, _peer, into):
            stream.close()

    anyio.run(use)
