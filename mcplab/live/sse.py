"""Server-sent events: bytes in, events out, whatever the pieces they arrive in (the WHATWG's event stream format)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import UNSET

from mcplab.model import Sse

_LINE_END = re.compile(rb"\r\n?|\n")
_NUMBER = re.compile(r"[0-9]{1,15}")
_MARK = b"\xef\xbb\xbf"  # a byte order mark may begin a stream and means nothing


@dataclass
class SseEvent:
    """One block of a stream. ``data`` is None where it has no data line: a comment, an id or a retry alone."""

    raw: bytes
    data: bytes | None = None
    event: str | None = None
    id: str | None = None
    retry: str | None = None
    comment: str | None = None

    @property
    def is_message(self) -> bool:
        """Would a message be due here? An empty ``data`` primes a client for resumption."""
        return bool(self.data) and self.event in (None, "", "message")

    def facts(self, with_data: bool) -> Sse:
        """Its fields as a trace keeps them; ``data`` only where it is no message."""
        retry = int(self.retry) if self.retry is not None and _NUMBER.fullmatch(self.retry) else self.retry
        return Sse(
            id=UNSET if self.id is None else self.id,
            event=UNSET if self.event is None else self.event,
            retry=UNSET if retry is None else retry,
            comment=UNSET if self.comment is None else self.comment,
            data=self.data.decode("utf-8", "replace") if with_data and self.data is not None else UNSET,
        )


@dataclass
class SseParser:
    """Feed it bytes; it yields each event when its blank line is there."""

    _parts: list[bytes] = field(default_factory=list)  # of a line whose end is not there yet
    _lines: list[bytes] = field(default_factory=list)
    _begun: bool = False
    _skip_newline: bool = False

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        if self._skip_newline and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_newline = False
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._parts.append(chunk[start : end.start()])
            line, start = b"".join(self._parts), end.end()
            self._parts.clear()
            if not self._begun:
                self._begun, line = True, line.removeprefix(_MARK)
            if line:
                self._lines.append(line)
            elif self._lines:
                yield self._event()
        if start < len(chunk):
            self._parts.append(chunk[start:])
        else:
            self._skip_newline = self._skip_newline or chunk.endswith(b"\r")  # the \n of a \r\n may still come

    def rest(self) -> bytes:
        """What is left of an event that the stream's end cut off."""
        return b"\n".join([*self._lines, b"".join(self._parts)]) if self._lines or self._parts else b""

    def _event(self) -> SseEvent:
        event = SseEvent(b"\n".join(self._lines))
        data: list[bytes] = []
        for line in self._lines:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            word = value.decode("utf-8", "replace")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event.event = word
            elif name == b"id":
                event.id = word
            elif name == b"retry":
                event.retry = word
            elif name == b"":
                event.comment = word if event.comment is None else f"{event.comment}\n{word}"
        self._lines.clear()
        event.data = b"\n".join(data) if data else None
        return event
