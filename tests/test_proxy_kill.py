"""Proxy, client or server killed in the middle of a busy session: what was delivered is in the trace, nothing twice.

The suite kills each a few times; ``python tests/test_proxy_kill.py 20 SEED`` as often as one likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from msgspec import UNSET

from mcplab.traces import read_trace

ROOT = Path(__file__).parents[1]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


async def client(url: str, log: Path, workers: int = 4) -> None:
    """Calls tools without an end; writes down what has arrived, at once."""
    numbers = itertools.count()
    with log.open("a", encoding="utf-8") as out:

        def got(text: str) -> None:
            out.write(f"{text}\n")
            out.flush()

        async def work(session: httpx2.AsyncClient) -> None:
            while True:
                ident = f"r{next(numbers)}"
                name = random.choice(["echo", "progress"])
                given = {"text": f"ü {ident}"} if name == "echo" else {"steps": 3, "delay": 0.002}
                params = {"name": name, "arguments": given, "_meta": {**META, "progressToken": ident}}
                call = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
                headers = {
                    "content-type": "application/json", "accept": "application/json, text/event-stream",
                    "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name,
                }  # fmt: skip
                async with session.stream("POST", url, content=json.dumps(call), headers=headers) as answer:
                    if answer.headers["content-type"].startswith("text/event-stream"):
                        async for line in answer.aiter_lines():
                            if line.startswith("data: "):
                                got(line[6:])
                    else:
                        got((await answer.aread()).decode())

        async with httpx2.AsyncClient(trust_env=False, timeout=10) as session:
            with contextlib.suppress(httpx2.HTTPError):
                async with asyncio.TaskGroup() as group:
                    for _ in range(workers):
                        group.create_task(work(session))


@contextlib.contextmanager
def program(*words: str, prints: bool = True) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A child and the first line that it prints; killed in the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as child:
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline().strip() if prints else ""
        finally:
            child.kill()


def lines(path: Path) -> list[str]:
    """Whole lines of a log that may have been cut off."""
    return path.read_text("utf-8", "replace").split("\n")[:-1] if path.exists() else []


def kill(whom: str, seed: int, folder: Path) -> int:
    """One session with one death. The number of messages that were delivered."""
    r = random.Random(seed)
    trace, received, served = folder / "trace.jsonl", folder / "client.log", folder / "server.log"
    demo = ["-m", "mcplab.live.server", "--http", "0", "--serves", "modern", "--log", str(served)]
    with contextlib.ExitStack() as stack:
        server, upstream = stack.enter_context(program(*demo))
        proxy, url = stack.enter_context(
            program("-m", "mcplab", "proxy", "--upstream", upstream, "-o", str(trace), "--keep-secrets")
        )
        caller, _ = stack.enter_context(program(__file__, "--client", url, str(received), prints=False))
        enough = r.randrange(5, 150)
        end = time.monotonic() + 60
        while len(lines(received)) < enough:
            assert time.monotonic() < end, "no traffic"
            time.sleep(0.002)
        time.sleep(r.random() * 0.02)
        {"proxy": proxy, "client": caller, "server": server}[whom].kill()
        caller.wait(30)  # a client whose connections break ends by itself
        if whom != "proxy":
            proxy.send_signal(signal.SIGTERM)
            assert proxy.wait(30) == 0
    check(trace, lines(received), lines(served), closed=whom != "proxy")
    return len(lines(received))


def check(path: Path, received: list[str], served: list[str], *, closed: bool) -> None:
    """Every delivered message once."""
    trace = read_trace(path)
    cut = [line.line for line in trace.record.unread]
    whole = path.read_bytes().count(b"\n")
    assert cut in ([], [] if closed else [whole + 1])  # a write that a kill interrupts: nobody got that message
    texts = {"c2s": Counter[str](), "s2c": Counter[str]()}
    for event in trace.record.events:
        if event.kind == "message":
            texts[str(event.dir)][event.text] += 1
    for direction, count in texts.items():
        assert not count or max(count.values()) == 1, direction
    assert received
    assert set(received) <= set(texts["s2c"])
    heard = [line[4:] for line in served if line.startswith("c2s ")]
    assert heard
    assert set(heard) <= set(texts["c2s"])
    if closed:  # whoever was left alive has said how everything ended
        kinds = Counter(event.kind for event in trace.record.events if event.http is UNSET)
        assert kinds["open"] == kinds["close"]


@pytest.mark.parametrize("whom", ["proxy", "client", "server"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_death(whom, seed, tmp_path):
    assert kill(whom, seed, tmp_path) >= 5


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        asyncio.run(client(sys.argv[2], Path(sys.argv[3])))
    else:
        for seed, whom in itertools.product(range(int(sys.argv[1])), ("proxy", "client", "server")):
            with tempfile.TemporaryDirectory() as scratch:
                print(whom, seed, kill(whom, seed + 1000 * int(sys.argv[2]), Path(scratch)), flush=True)  # noqa: T201
