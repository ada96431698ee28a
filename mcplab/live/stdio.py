"""A server process and its three pipes, read by ourselves: every byte reaches the trace as it was written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence

from mcplab.live.capture import Recording, parts, raw
from mcplab.live.link import Down, Happening, Incoming, Junk, Outgoing, StartError

GRACE = 2.0
"""Seconds that a server gets after its stdin was closed, and again after SIGTERM (basic/lifecycle#stdio)."""

LONGEST = 128 << 20
"""Bytes of one line that are read: a server that never ends its line must not fill the memory."""

_CHUNK = 65536
_KILLED = "SIGKILL after SIGTERM"
_ORPHANS = "it ended, processes that it had started did not: signalled"


class StdioLink:
    """A server as a child process in a process group of its own. Made by ``StdioLink.start``."""

    def __init__(self, capture: Recording, process: asyncio.subprocess.Process) -> None:
        self.inbox: asyncio.Queue[Happening] = asyncio.Queue()
        self.session: str | None = "local"
        self._capture = capture
        self._process = process
        self.conn = capture.conn()
        self._capture.add("open", self.conn)
        self._closing = False
        self._readers = [asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def start(cls, capture: Recording, command: Sequence[str], env: Mapping[str, str] | None = None) -> StdioLink:
        """Start ``command``. Its session is its own, so that an interrupt of ours does not end it behind our back.

        Raises:
            StartError: there is no such program, or it may not be run.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env=None if env is None else {**os.environ, **env},
            )
        except (OSError, ValueError) as error:
            raise StartError(f"{command[0]}: {getattr(error, 'strerror', None) or error}") from error
        return cls(capture, process)

    async def send(self, out: Outgoing) -> int | None:
        pipe = self._process.stdin
        assert pipe is not None
        for line in out.text.split(b"\n"):  # a line break inside makes two messages of one: so the server reads it
            self._capture.text(self.conn, "c2s", line)
        with contextlib.suppress(ConnectionError):  # a dead process is reported by its stdout's end
            pipe.write(out.text + b"\n")
            await pipe.drain()
        return None

    async def _read_stdout(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            async for line in _lines(stream):
                self._line(line)
        except _TooLong:
            self.inbox.put_nowait(Down(f"the server wrote {LONGEST >> 20} MB without a line break: not read on"))
            return
        if self._closing:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 1.0)
        code = self._process.returncode
        ended = "closed its stdout" if code is None else f"ended with {status(code)}"
        self.inbox.put_nowait(Down(f"the server process {ended}"))

    def _line(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        found = parts(line)
        self._capture.text(self.conn, "s2c", line, known=bool(found))
        for text, message in found:
            self.inbox.put_nowait(Incoming(text, message))
        if not found:
            self.inbox.put_nowait(Junk(line))

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with contextlib.suppress(_TooLong):
            async for line in _lines(stream):
                self._capture.add("stderr", self.conn, dir="s2c", **raw(line))

    async def close(self) -> str:
        """stdin closed, 2 s, SIGTERM, 2 s, SIGKILL, to the whole process group. ``""`` unless it had to be killed."""
        by_itself = self._process.returncode is not None
        self._closing = True
        reason = ""
        try:
            reason = await self._shut_down()
        except BaseException:
            self._signal(signal.SIGKILL)
            raise
        finally:
            for reader in self._readers:
                reader.cancel()
            await asyncio.gather(*self._readers, return_exceptions=True)
            self._process._transport.close()  # type: ignore[attr-defined]  # frees pipes that a grandchild keeps open
            code = self._process.returncode
            self._capture.add(
                "close",
                self.conn,
                by="server" if by_itself else "client",
                exit_code=code,
                **({"reason": reason} if reason else {}),
                **({"unexpected": True} if by_itself else {}),
            )
        ignored = "the server ignored the end of its input and SIGTERM, and had to be killed"
        return ignored if reason == _KILLED else ""

    async def _shut_down(self) -> str:
        pipe = self._process.stdin
        if pipe is not None:
            pipe.close()
        if await self._gone(GRACE):
            return ""
        alive = self._process.returncode is None
        self._signal(signal.SIGTERM)
        if await self._gone(GRACE):
            return "SIGTERM after its input was closed" if alive else _ORPHANS
        alive = self._process.returncode is None
        self._signal(signal.SIGKILL)
        await self._gone(GRACE)
        return _KILLED if alive else _ORPHANS

    async def _gone(self, seconds: float) -> bool:
        """Wait until the process, its group and what they wrote are through."""
        end = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        if self._process.returncode is None:
            return False
        while self._group_lives():
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(0.02)
        await asyncio.wait(self._readers, timeout=max(end - time.monotonic(), 0.2))
        return True

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class _TooLong(Exception):  # noqa: N818  # a limit, not a fault of ours
    pass


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    held: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        first, *more = chunk.split(b"\n")
        held.append(first)
        for line in more:
            yield b"".join(held)
            held, size = [line], 0
        size += len(chunk)
        if size > LONGEST:
            raise _TooLong
    if rest := b"".join(held):
        yield rest


def status(code: int) -> str:
    """``exit status 1``, ``SIGTERM``."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
