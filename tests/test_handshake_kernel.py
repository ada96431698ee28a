"""Handshakes in a real kernel: many in a row, with errors, time-outs and an interrupted cell; it stays healthy."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
jupyter_client = pytest.importorskip("jupyter_client")


class Kernel:
    """One ipykernel; ``run`` returns what a cell printed and the name of the error that it ended with, if any."""

    def __init__(self) -> None:
        self.manager = jupyter_client.KernelManager()
        self.manager._launch_args = {}
        self.manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
        self.manager.start_kernel(env=env, cwd=str(ROOT))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, *, interrupt_at: str | None = None, timeout: float = 60) -> tuple[str, str]:
        return self.result(self.client.execute(code), interrupt_at=interrupt_at, timeout=timeout)

    def result(self, ident: str, *, interrupt_at: str | None = None, timeout: float = 60) -> tuple[str, str]:
        printed, error, end = "", "", time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") != ident:
                continue
            content: dict[str, Any] = message["content"]
            match message["msg_type"]:
                case "stream":
                    printed += content["text"]
                    if interrupt_at is not None and interrupt_at in printed:
                        interrupt_at = None
                        self.manager.interrupt_kernel()
                case "error":
                    error = content["ename"]
                    printed += content["evalue"]
                case "status" if content["execution_state"] == "idle":
                    return printed, error
        raise AssertionError(f"the cell did not end: {printed}")

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    running = Kernel()
    running.run(
        "import asyncio, gc, os, psutil, time\n"
        "from mcplab.live.handshakes import handshake, handshake_async\n"
        "from mcplab.live.server.demo import DEMO\n"
        "from mcplab.model import HandshakeError\n"
        "def health():\n"
        "    gc.collect()\n"
        "    children = [c.pid for c in psutil.Process().children(recursive=True) if c.status() != 'zombie']\n"
        "    tasks = [t for t in asyncio.all_tasks() if 'live' in repr(t.get_coro()) or 'andshake' in repr(t)]\n"
        "    print('children', children, 'tasks', tasks)\n"
    )
    yield running
    running.close()


HEALTHY = "children [] tasks []\n"

CALLS = [
    ("handshake(DEMO)", "2026-07-28 (modern)"),
    ("handshake(DEMO(transport='http'))", "2026-07-28 (modern)"),
    ("handshake(DEMO, mode='legacy', then=['ping'])", "2025-11-25 (forced legacy)"),
    ("handshake(DEMO(fault='silent'), timeout=0.6)", "HandshakeError"),
    ("handshake(DEMO(transport='http', fault='silent'), timeout=0.6)", "HandshakeError"),
    ("handshake(DEMO(fault='exit'), timeout=5)", "HandshakeError"),
    ("handshake(['no-such-program'])", "HandshakeError"),
    ("handshake(DEMO(serves='legacy'), mode='modern')", "HandshakeError"),
    ("handshake(DEMO(transport='http', serves='legacy'))", "2025-11-25 (legacy)"),
    ("handshake(DEMO, mode='nonsense')", "HandshakeError"),
    (
        "handshake(DEMO, then=[('tools/call', {'name': 'slow', 'arguments': {'seconds': 9}})], timeout=1)",
        "HandshakeError",
    ),
    ("handshake(DEMO, declare={'roots': {1}})", "HandshakeError"),
    ("handshake(DEMO(transport='sse'))", "2025-11-25 (legacy)"),
]


def _labelled(call: str) -> str:
    return f"try:\n    print({call}.label)\nexcept HandshakeError as error:\n    print('HandshakeError')\n"


def test_twenty_calls_with_errors_and_interrupts_between(kernel):
    printed, error = kernel.run("import sys; print('nest_asyncio2' in sys.modules)")
    assert (printed, error) == ("False\n", "")  # not before the first call
    for number, (call, expected) in enumerate([*CALLS, *CALLS[:7]]):
        printed, error = kernel.run(_labelled(call))
        assert (printed, error) == (f"{expected}\n", ""), call
        if number in (4, 12):
            before = time.monotonic()
            code = "print('started', flush=True)\nhandshake(DEMO(fault='silent'), timeout=60)"
            printed, error = kernel.run(code, interrupt_at="started")
            assert error == "KeyboardInterrupt", printed
            assert time.monotonic() - before < 60
            assert kernel.run("health()") == (HEALTHY, "")
    assert kernel.run("health()") == (HEALTHY, "")


def test_cells_that_wait_their_turn_are_run(kernel):
    """Run All of JupyterLab sends all cells at once: the kernel has the next ones while a handshake runs."""
    calls = ["handshake(DEMO)", "handshake(DEMO(transport='http'))", "handshake(DEMO, mode='legacy')"]
    sent = [kernel.client.execute(_labelled(call)) for call in calls]
    labels = ["2026-07-28 (modern)\n", "2026-07-28 (modern)\n", "2025-11-25 (forced legacy)\n"]
    assert [kernel.result(ident) for ident in sent] == [(label, "") for label in labels]
    assert kernel.run("health()") == (HEALTHY, "")


def test_an_interrupted_cell_leaves_no_server(kernel):
    code = (
        "import threading, signal\n"
        "def when_it_runs():\n"
        "    while not psutil.Process().children():\n"
        "        time.sleep(0.02)\n"
        "    print('server', flush=True)\n"
        "threading.Thread(target=when_it_runs).start()\n"
        "handshake(DEMO(fault='ignore-sigterm'), mode='modern', then=[('tools/call', "
        "{'name': 'slow', 'arguments': {'seconds': 60}})], timeout=60)\n"
    )
    _, error = kernel.run(code, interrupt_at="server")
    assert error == "KeyboardInterrupt"
    assert kernel.run("health()") == (HEALTHY, "")
    assert kernel.run(_labelled("handshake(DEMO)")) == ("2026-07-28 (modern)\n", "")


def test_top_level_await_gather_and_tasks_work_afterwards(kernel):
    kernel.run(_labelled("handshake(DEMO)"))
    assert kernel.run("await asyncio.sleep(0.01); print('awaited')") == ("awaited\n", "")
    assert kernel.run("print((await handshake_async(DEMO)).label)") == ("2026-07-28 (modern)\n", "")
    code = "print([h.era for h in await asyncio.gather(handshake_async(DEMO), handshake_async(DEMO, mode='legacy'))])"
    assert kernel.run(code) == ("['modern', 'legacy']\n", "")
    code = (
        "done = []\n"
        "async def background():\n"
        "    await asyncio.sleep(0.05); done.append(1)\n"
        "task = asyncio.create_task(background())\n"
        "handshake(DEMO(transport='http'))\n"
        "await task\n"
        "print(done)"
    )
    assert kernel.run(code) == ("[1]\n", "")
    assert kernel.run("health()") == (HEALTHY, "")


def test_it_shows_itself(kernel):
    assert kernel.run("print('mcplab-display' in handshake(DEMO)._repr_html_())") == ("True\n", "")
