"""One direction of a stdio connection: bytes passed on as they are, each line recorded before its last byte goes on.

Which bytes wait: whoever reads lines has a message when the line break is there, so a line's beginning goes on at once
and its last piece after it was recorded. A message without a line break is complete with its last ``}`` or ``]``, so
that one byte is held back while nothing follows it: for ``IDLE`` seconds, then what is there is recorded, if it is a
message, and the byte goes on.

What is held in memory: the unfinished line. One that begins as JSON may become ``LONGEST`` bytes long, any other
``LONGEST_JUNK``; after that it is recorded in pieces, as ``unparsed``, and still passed on whole.
"""

from __future__ import annotations

import os
import select
import time
from typing import Any, Final

from mcplab.live.capture import Direction, Recording, is_message, raw

LONGEST: Final = 128 << 20
LONGEST_JUNK: Final = 1 << 20
IDLE: Final = 0.02

_CHUNK: Final = 1 << 16
_PIECES: Final = "no line break for too long: recorded in pieces"
_ENDS: Final = (ord("}"), ord("]"))


class Lines:
    """Lines as they come, into a recording. ``kind`` is ``message`` (JSON-RPC, or ``unparsed``) or ``stderr``."""

    def __init__(self, recording: Recording, conn: str, direction: Direction, kind: str = "message") -> None:
        self._recording = recording
        self._conn = conn
        self._direction: Direction = direction
        self._kind = kind
        self._held: list[bytes] = []
        self._size = 0
        self._told = ""  # of this line something was recorded already: why
        self._limit = LONGEST_JUNK

    def take(self, chunk: bytes) -> None:
        """Record the lines that ``chunk`` completes; hold what follows them."""
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._held.append(line)
            self._end()
        if rest:
            if not self._size:
                head = rest.lstrip()[:1]
                self._limit = LONGEST if self._kind == "message" and head in (b"{", b"[", b"") else LONGEST_JUNK
            self._held.append(rest)
            self._size += len(rest)
            if self._size > self._limit:
                self._piece()

    @property
    def may_be_whole(self) -> bool:
        """Could what is held be a message that its reader takes without a line break?"""
        return bool(self._held) and self._kind == "message" and not self._told and self._held[-1][-1] in _ENDS

    def idle(self) -> None:
        """Nothing follows: record what is held if it is a message as it stands."""
        text = b"".join(self._held)
        if is_message(text):
            self._recording.text(self._conn, self._direction, text, known=True)
            self._forget("message")

    def close(self) -> None:
        """The stream is at its end: what is held was its last line, unless that is recorded already."""
        if self._held:
            self._end()

    def _end(self) -> None:
        text = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        told = self._told
        self._forget()
        if told and not text.strip():
            return
        if self._kind == "stderr":
            self._add("stderr", text.removesuffix(b"\r"))
        elif told == _PIECES:
            self._add("unparsed", text.removesuffix(b"\r"), reason=_PIECES)
        else:
            self._recording.text(self._conn, self._direction, text.removesuffix(b"\r"))

    def _piece(self) -> None:
        text = b"".join(self._held)
        self._forget(_PIECES)
        self._add("stderr" if self._kind == "stderr" else "unparsed", text, reason=_PIECES)

    def _forget(self, told: str = "") -> None:
        self._held, self._size, self._told = [], 0, told

    def _add(self, kind: str, text: bytes, **fields: Any) -> None:
        self._recording.add(kind, self._conn, dir=self._direction, **raw(text), **fields)


class Relay:
    """Bytes from one descriptor to another, until the one ends or the other is closed.

    ``ended`` says which: ``""`` while it runs, ``end`` (of what is read) or ``closed`` (nobody reads what is written).
    """

    def __init__(self, source: int, target: int, lines: Lines) -> None:
        self.ended = ""
        self.heard = time.monotonic()
        self.busy = False  # with something else than waiting for more
        self._source = source
        self._target = target
        self._lines = lines

    def run(self) -> None:
        """Relay. Returns at the end of either side; closes neither."""
        lines, back = self._lines, b""
        while True:
            self.busy = False
            idle = bool(back) and not _readable(self._source, IDLE)
            chunk = b"" if idle else _read(self._source)
            self.busy = True
            if idle:
                lines.idle()
                out, back = back, b""
            else:
                if not chunk:
                    break
                self.heard = time.monotonic()
                lines.take(chunk)
                out = back + chunk
                back = out[-1:] if lines.may_be_whole else b""
            if not self._write(out[: len(out) - len(back)]):
                lines.close()
                self.ended = "closed"
                return
        lines.close()
        self.ended = "end" if self._write(back) else "closed"

    def _write(self, data: bytes) -> bool:
        try:
            at = 0
            while at < len(data):
                try:
                    at += os.write(self._target, memoryview(data)[at:] if at else data)
                except BlockingIOError:  # whoever made this descriptor does not want to wait; we do
                    select.select([], [self._target], [])
        except (OSError, ValueError):
            return False
        return True


def _readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            select.select([fd], [], [])
        except OSError:  # closed, or a terminal that is gone
            return b""
