"""Starting demo servers: ``DEMO`` as a target of ``handshake``, and ``serving`` for one of one's own over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from mcplab.live.running import fresh
from mcplab.live.server.config import Config
from mcplab.live.server.drive import Wire
from mcplab.model import ABSENT, MCPLabError

_RAW = ("exit", "junk")  # faults below HTTP: a plain socket does them


@dataclass(frozen=True)
class Served:
    """A demo server that runs in this process: its address, and what it read and wrote, as (direction, text)."""

    url: str
    wire: Wire = field(repr=False)
    app: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Demo:
    """A demo server to be: ``DEMO`` is the plain one, ``DEMO(serves="legacy", transport="http")`` another.

    ``transport``: ``stdio`` (a child process), ``http`` or ``sse`` (a thread of this process). ``log``: a file that
    gets what the server read and wrote. Everything else: see ``Config``.
    """

    transport: Literal["stdio", "http", "sse"] = "stdio"
    config: Config = field(default_factory=Config)
    log: str | None = None

    def __call__(
        self,
        *,
        transport: Literal["stdio", "http", "sse"] | None = None,
        log: str | Path | None = None,
        **options: Any,
    ) -> Demo:
        """The same with other options."""
        if "versions" in options:
            options["versions"] = tuple(options["versions"])
        return Demo(transport or self.transport, replace(self.config, **options), self.log if log is None else str(log))

    @contextlib.contextmanager
    def running(self) -> Iterator[tuple[str | list[str], dict[str, str]]]:
        """The target to connect to, and environment variables for it. A server in this process ends with the block."""
        if self.transport == "stdio":
            command = [sys.executable, "-m", "mcplab.live.server", "--stdio", *arguments(self.config, self.log)]
            paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
            yield command, {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
            return
        with serving(replace(self.config, old_sse=self.transport == "sse"), log=self.log) as served:
            yield served.url, {}


DEMO = Demo()
"""The demo server as a target: dual-era, on stdio; call it for another one."""


def arguments(config: Config, log: str | None = None) -> list[str]:
    """A configuration as arguments of ``python -m mcplab.live.server``."""
    from mcplab.jsontext import dumps

    plain = Config()
    words = ["--serves", config.serves]
    if config.versions:
        words += ["--versions", ",".join(config.versions)]
    if config.capabilities is not ABSENT:
        words += ["--capabilities", dumps(config.capabilities)]
    if config.instructions is ABSENT or config.instructions != plain.instructions:
        words += ["--instructions", "" if config.instructions is ABSENT else dumps(config.instructions)]
    if config.session_id is not None:
        words += ["--session-id", config.session_id]
    words += ["--get", config.get, "--name", config.name]
    words += ["--challenge"] if config.challenge else []
    words += ["--fault", config.fault] if config.fault else []
    words += ["--sse"] if config.old_sse else []
    return words + (["--log", log] if log else [])


@contextlib.contextmanager
def serving(
    config: Config | None = None,
    *,
    port: int = 0,
    log: str | Path | None = None,
    make: Callable[[Config, Wire], Any] | None = None,
    **options: Any,
) -> Iterator[Served]:
    """A demo server over HTTP on 127.0.0.1, in a thread of this process, until the block ends.

    Args:
        config: what it is; ``options`` are ``Config``'s, for short.
        port: 0 takes a free one.
        log: a file that gets what it read and wrote.
        make: gives another ASGI application than the demo server's own; its event ``over`` ends every stream.

    Raises:
        MCPLabError: the port is taken, or the server did not start.
    """
    config = replace(config or Config(), **options)
    wire = Wire(log)
    # named as TCP, or asyncio leaves Nagle on: with delayed acknowledgements each answer would take 40 ms
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise MCPLabError(f"port {port} of 127.0.0.1: {error.strerror}; port 0 takes a free one") from error
    listener.listen(128)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if config.old_sse else 'mcp'}"
    runner = _Runner(config, wire, listener, make)
    thread = threading.Thread(target=runner.run, name="mcplab-demo", daemon=True)
    thread.start()
    runner.started.wait(30)
    try:
        if runner.failure is not None:
            raise MCPLabError(f"the demo server did not start: {runner.failure}") from runner.failure
        yield Served(url, wire, runner.app)
    finally:
        runner.stop()
        thread.join(10)
        listener.close()
        wire.close()


class _Runner:
    """The thread's side: a loop with uvicorn, or a bare socket for faults below HTTP."""

    def __init__(
        self, config: Config, wire: Wire, listener: socket.socket, make: Callable[[Config, Wire], Any] | None
    ) -> None:
        self.config, self.wire, self.listener, self.make = config, wire, listener, make
        self.app: Any = None
        self.started = threading.Event()
        self.failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def run(self) -> None:
        try:
            fresh(self._serve)
        except BaseException as error:
            self.failure = error
        finally:
            self.started.set()

    def stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self.config.fault in _RAW:
            await self._serve_raw()
            return
        import uvicorn

        if self.config.old_sse:
            from mcplab.live.server.oldsse import SseServer as App
        else:
            from mcplab.live.server.http import HttpServer as App
        self.app = (self.make or App)(self.config, self.wire)
        server = uvicorn.Server(
            uvicorn.Config(self.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, ws="none")
        )
        serving = asyncio.ensure_future(server.serve(sockets=[self.listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        self.started.set()
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
        self.app.over.set()
        server.should_exit = True
        await serving

    async def _serve_raw(self) -> None:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                if self.config.fault == "junk":
                    await reader.read(65536)
                    writer.write(b"Server listening... (this is no HTTP)\r\n\r\n")
                    await writer.drain()
                writer.close()
                await writer.wait_closed()

        server = await asyncio.start_server(one, sock=self.listener)
        self.started.set()
        async with server:
            await self._stop.wait()
