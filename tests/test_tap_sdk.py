"""The official SDK's client and server with the tap between them and without: the same messages, ids and order."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcplab import read_trace

ROOT = Path(__file__).parents[1]
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::mcp.MCPDeprecationWarning")

SERVER = """
from mcp.server.mcpserver import Context, MCPServer
server = MCPServer("sdk")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@server.tool()
async def steps(n: int, ctx: Context) -> str:
    for step in range(n):
        await ctx.report_progress(step, n)
    return "é" * 70000

server.run("stdio")
"""


def witnessed(folder: Path) -> list[str]:
    """The server's command, with what it reads and writes copied into files by the system's own means."""
    folder.mkdir()
    pipes = 'in=$1 out=$2; shift 2; tee "$in" | "$@" | tee "$out"'
    return ["sh", "-c", pipes, "sh", str(folder / "in"), str(folder / "out"), sys.executable, "-c", SERVER]


async def talk(command: list[str], mode: str) -> None:
    import mcp

    parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], env=ENV)
    async with mcp.Client(mcp.stdio_client(parameters), mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "steps"]
        for number in range(5):
            await client.call_tool("add", {"a": number, "b": 2})

        async def told(done: float, total: float | None, message: str | None) -> None:
            pass

        await client.call_tool("steps", {"n": 3}, progress_callback=told)
        assert (await client.call_tool("no-such-tool", {})).is_error


@pytest.mark.skipif(shutil.which("tee") is None, reason="needs tee")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_same_with_and_without(tmp_path, mode):
    trace = tmp_path / "t.jsonl"
    tap: list[Any] = [sys.executable, "-P", "-m", "mcplab", "tap", "-o", str(trace), "--keep-secrets", "--"]
    bare = witnessed(tmp_path / "bare")
    anyio.run(talk, bare, mode)
    anyio.run(talk, [*tap, *witnessed(tmp_path / "tapped")], mode)
    for name, direction in (("in", "c2s"), ("out", "s2c")):
        without = (tmp_path / "bare" / name).read_bytes()
        tapped = (tmp_path / "tapped" / name).read_bytes()
        assert tapped == without
        recorded = [
            event.text.encode() for event in read_trace(trace) if event.kind == "message" and event.dir == direction
        ]
        assert recorded == tapped.splitlines()
    assert set(read_trace(trace).messages["era"]) == {"legacy" if mode == "legacy" else "modern"}
