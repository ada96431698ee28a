"""The demo server on standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from typing import Any

from mcplab.live.server.behaviour import Behaviour
from mcplab.live.server.config import Config
from mcplab.live.server.drive import Questions, Wire, drive
from mcplab.live.server.faults import Faulty, write
from mcplab.live.server.steps import Emit, Listen, Peer, Steps
from mcplab.model import ABSENT


class StdioServer:
    """One process, one peer; requests run side by side and their answers leave as they are ready."""

    def __init__(self, config: Config, wire: Wire) -> None:
        self.behaviour = Behaviour(config)
        self.wire = wire
        self.fault = Faulty(config.fault)
        self.peer = Peer(outlet=lambda message: self._say(message, ""))
        self.questions = Questions()
        self.running: dict[str, asyncio.Task[None]] = {}
        self.over = asyncio.Event()

    async def serve(self) -> int:
        """Serve until the input ends. Returns the exit status."""
        if self.fault.name == "exit":
            return 3
        loop = asyncio.get_running_loop()
        if self.fault.name == "ignore-sigterm":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            loop.add_signal_handler(signal.SIGTERM, self.over.set)
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        threading.Thread(target=_read, args=(loop, lines), daemon=True).start()
        while not self.over.is_set():
            getting = asyncio.ensure_future(lines.get())
            ending = asyncio.ensure_future(self.over.wait())
            await asyncio.wait({getting, ending}, return_when=asyncio.FIRST_COMPLETED)
            line = getting.result() if getting.done() else None
            getting.cancel()
            ending.cancel()
            if line is None:
                break
            if not self._line(line):
                return 3
        if self.fault.name == "ignore-sigterm":
            await asyncio.Event().wait()
        self.over.set()
        if self.running:
            await asyncio.wait(self.running.values(), timeout=0.2)
        return 0

    def _line(self, line: bytes) -> bool:
        """Take one line in; False: the process is to end."""
        if not line.strip():
            return True
        self.wire.note("c2s", line)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            return self._parse_error(error)
        method = message.get("method", "") if isinstance(message, dict) else ""
        match self.fault.incoming(str(method)):
            case "silent":
                return True
            case "exit":
                return False
            case "error" if isinstance(message, dict) and "id" in message:
                error = {"code": -32603, "message": "Internal error, on purpose"}
                self._say({"jsonrpc": "2.0", "id": message["id"], "error": error}, str(method))
                return True
        if isinstance(message, list):
            self._batch(message)
        elif isinstance(message, dict):
            self._single(message, lambda emit: self._say(emit.message, str(method)))
        else:
            self._invalid("Invalid Request: no object")
        return True

    def _parse_error(self, error: BaseException) -> bool:
        action = self.fault.incoming("")
        if action == "":
            words = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            shown: dict[str, Any] = {"id": None} if self.behaviour.config.legacy else {}
            failure = {"code": -32700, "message": f"Parse error: {words}"}
            self._say({"jsonrpc": "2.0", **shown, "error": failure}, "")
        return action != "exit"

    def _invalid(self, words: str) -> None:
        shown: dict[str, Any] = {"id": None} if self.behaviour.config.legacy else {}
        self._say({"jsonrpc": "2.0", **shown, "error": {"code": -32600, "message": words}}, "")

    def _single(self, message: dict[str, Any], emit: Any) -> asyncio.Task[None] | None:
        modern = self.behaviour.is_modern(message)
        if "method" not in message:
            if "result" in message or "error" in message:
                self.questions.answered(message)
            else:
                self._invalid("Invalid Request: no method")
            return None
        if "id" not in message:
            cancelled = self.behaviour.notification(message, self.peer, modern=modern)
            if cancelled is not ABSENT and (task := self.running.get(_key(cancelled))) is not None:
                task.cancel()
            if (asking := self.behaviour.challenge(self.peer)) is not None:
                self._run("challenge", asking, lambda emit: self._say(emit.message, ""))
            return None
        steps = self.behaviour.request(message, self.peer, modern=modern)
        return self._run(_key(message["id"]), steps, emit)

    def _run(self, key: str, steps: Steps, emit: Any) -> asyncio.Task[None]:
        task = asyncio.ensure_future(drive(steps, emit, self.questions, self._hold))
        self.running[key] = task
        task.add_done_callback(lambda done: self.running.pop(key, None) if self.running.get(key) is done else None)
        return task

    def _batch(self, messages: list[Any]) -> None:
        """A batch is of 2025-03-26 alone (basic/index#batching); its answers leave together."""
        if self.peer.revision != "2025-03-26" or not messages:
            self._invalid("Invalid Request: a batch")
            return
        answers: list[dict[str, Any]] = []

        def collect(emit: Emit) -> None:
            if emit.final:
                answers.append(emit.message)
            else:
                self._say(emit.message, "")

        tasks = [task for one in messages if isinstance(one, dict) and (task := self._single(one, collect))]

        async def finish() -> None:
            await asyncio.gather(*tasks, return_exceptions=True)
            if answers:
                self._put(write(answers))

        if tasks:
            task = asyncio.ensure_future(finish())
            self.running[f"batch {id(task)}"] = task

    async def _hold(self, listen: Listen) -> None:
        listen.send = lambda message: self._say(message, "")
        await self.over.wait()

    def _say(self, message: dict[str, Any], method: str) -> None:
        for text in self.fault.outgoing(message, method):
            self._put(text)

    def _put(self, text: bytes) -> None:
        self.wire.note("s2c", text)
        rest = text + b"\n"
        while rest:
            try:
                rest = rest[os.write(1, rest) :]
            except BrokenPipeError:  # nobody reads any more: the end of the input will follow
                return


def _key(ident: Any) -> str:
    """Ids keep their JSON type: 1 is not "1"."""
    return json.dumps(ident)


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
    held: list[bytes] = []
    while chunk := os.read(0, 65536):
        first, *more = chunk.split(b"\n")
        held.append(first)
        for line in more:
            loop.call_soon_threadsafe(lines.put_nowait, b"".join(held))
            held = [line]
    if any(held):
        loop.call_soon_threadsafe(lines.put_nowait, b"".join(held))
    loop.call_soon_threadsafe(lines.put_nowait, None)


def main(config: Config, wire: Wire) -> int:
    """Serve this process's standard input and output."""

    async def serve() -> int:
        return await StdioServer(config, wire).serve()

    try:
        return asyncio.run(serve())
    except KeyboardInterrupt:
        return 130
