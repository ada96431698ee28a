"""The official SDK against ours, both ways: its client and the demo server, its server and our handshake."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from sdk import callbacks

from mcplab.live.handshakes import handshake
from mcplab.live.proxy import Proxy
from mcplab.live.server.demo import serving
from mcplab.model import HandshakeError
from mcplab.traces import read_trace

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::mcp.MCPDeprecationWarning")


def _sdk() -> Any:
    import mcp
    from mcp import types

    return mcp, types


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("mode", "serves"),
    [("auto", "dual"), ("auto", "legacy"), ("auto", "modern"), ("legacy", "dual"), ("2026-07-28", "modern")],
)
def test_its_client_and_the_demo_server(transport, mode, serves):
    mcp, _ = _sdk()

    async def talk(target: Any) -> None:
        progress: list[float] = []

        async def told(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        async with mcp.Client(target, mode=mode, **callbacks()) as client:
            assert client.protocol_version == ("2025-11-25" if "legacy" in (mode, serves) else "2026-07-28")
            assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
            echoed = await client.call_tool("echo", {"text": "hello"})
            assert echoed.content[0].text == "hello"
            await client.call_tool("progress", {"steps": 3, "delay": 0.01}, progress_callback=told)
            asked = (await client.call_tool("ask-all", {})).content[0].text
            assert "file:///sdk" in asked
            assert "sampled" in asked
            assert "sdk-user" in asked
            assert (await client.read_resource("demo://greeting")).contents[0].text.startswith("hello")
            assert (await client.get_prompt("greet", {"who": "you"})).messages
            failed = await client.call_tool("fail", {})
            assert failed.is_error
        assert progress == [1, 2, 3]

    if transport == "stdio":
        parameters = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "mcplab.live.server", "--serves", serves],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        anyio.run(talk, mcp.stdio_client(parameters))
    else:
        with serving(serves=serves) as server:
            anyio.run(talk, server.url)


SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("sdk")
@server.tool()
def add(a: int, b: int) -> int:
    return a + b
if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))
"""


@pytest.fixture(scope="module", params=["stdio", "streamable-http", "sse"])
def sdk_server(request: Any) -> Iterator[tuple[str, Any]]:
    if request.param == "stdio":
        yield request.param, [sys.executable, "-c", SERVER, "stdio"]
        return
    with socket.socket() as free:  # the SDK's runner takes a number only, and tells nobody which one it got
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, request.param, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield request.param, f"http://127.0.0.1:{port}/{'sse' if request.param == 'sse' else 'mcp'}"
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("mode", ["auto", "modern", "legacy", "2025-03-26"])
def test_its_server_and_our_handshake(sdk_server, mode):
    transport, target = sdk_server
    call = ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    if transport == "sse" and mode == "modern":
        with pytest.raises(HandshakeError, match="405"):
            handshake(target, mode=mode)
        return
    shake = handshake(target, mode=mode, then=[("tools/list", None), call], timeout=60)
    expected = {"auto": "2026-07-28 (modern)", "modern": "2026-07-28 (forced modern)"}.get(
        mode, f"{'2025-11-25' if mode == 'legacy' else mode} (forced legacy)"
    )
    assert shake.label == ("2025-11-25 (legacy)" if (transport, mode) == ("sse", "auto") else expected)
    assert [answer.outcome for answer in shake.results] == ["result", "result"]
    assert shake.server_info["name"] == "sdk"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_its_server_through_the_proxy(sdk_server, mode, tmp_path):
    transport, target = sdk_server
    if transport == "stdio":
        pytest.skip("the proxy is for HTTP")
    then = [("tools/list", None), ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}), ("x/y", {})]
    direct = handshake(target, mode=mode, then=then, timeout=60)
    with Proxy(target, tmp_path / "t.jsonl") as proxy:
        passed = handshake(proxy.url, mode=mode, then=then, timeout=60)
    assert passed.label == direct.label
    talks = [
        [(event.dir, event.text) for event in trace if event.kind == "message"]
        for trace in (direct.trace, passed.trace, read_trace(tmp_path / "t.jsonl"))
    ]
    assert talks[0] == talks[1] == talks[2]
