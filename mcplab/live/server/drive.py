"""Carrying the behaviour's steps out, on whatever transport: shared by the stdio and the HTTP face."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

from mcplab.live.server.steps import Ask, Drop, Emit, Hold, Listen, Pause, Steps


class Wire:
    """What the server read and wrote, as texts, in its own order; in a file as well when ``path`` is given."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.texts: list[tuple[str, str]] = []
        self._file: TextIO | None = None if path is None else Path(path).open("a", encoding="utf-8", newline="\n")  # noqa: SIM115

    def note(self, direction: str, text: bytes) -> None:
        """``direction``: ``c2s`` or ``s2c``."""
        decoded = text.decode("utf-8", "surrogateescape")
        self.texts.append((direction, decoded))
        if self._file is not None:
            self._file.write(f"{direction} {decoded.encode('utf-8', 'backslashreplace').decode()}\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Questions:
    """Requests to the client that wait for their answer, by id."""

    def __init__(self) -> None:
        self._open: dict[Any, asyncio.Future[Any]] = {}

    async def answer(self, ident: Any, patience: float | None = None) -> Any:
        """The client's answer; None where none came within ``patience`` seconds."""
        future = asyncio.get_running_loop().create_future()
        self._open[ident] = future
        try:
            return await asyncio.wait_for(future, patience)
        except TimeoutError:
            return None
        finally:
            del self._open[ident]

    def answered(self, message: dict[str, Any]) -> None:
        ident = message.get("id")
        future = self._open.get(ident) if isinstance(ident, str) else None
        if future is not None and not future.done():
            future.set_result(message)


async def drive(
    steps: Steps,
    emit: Callable[[Emit], None],
    questions: Questions,
    hold: Callable[[Listen], Awaitable[None]],
    drop: Callable[[], None] = lambda: None,
) -> None:
    """Run ``steps`` to their end. ``hold`` returns when the server itself ends the subscription."""
    reply: Any = None
    try:
        while True:
            try:
                step = steps.send(reply)
            except StopIteration:
                return
            reply = None
            match step:
                case Emit():
                    emit(step)
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Ask(message, patience):
                    emit(Emit(message))
                    reply = await questions.answer(message["id"], patience)
                case Hold(listen):
                    await hold(listen)
                case Drop():
                    drop()
    finally:
        steps.close()
