"""HTTP/1.1 as bytes: where heads, bodies and their pieces begin and end (RFC 9112). No input or output.

A relay forwards the bytes that it got; what is taken apart here is a copy. Heads are parsed by httptools (llhttp),
which is as strict as a server has to be. It does not tell at which byte a message ends, so that is found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, Literal

import httptools

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of a head, and of the trailers of a chunked body."""

_LINE_LIMIT: Final = 4096
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_DIGITS = re.compile(r"[0-9]{1,18}")

Piece = tuple[Literal["head", "body", "frame", "end"], bytes, bytes]
"""What it is, its bytes on the wire, and the bytes of the body in it. ``frame``: sizes and ends of chunks, trailers."""


class FramingError(Exception):
    """The bytes are no HTTP/1.1. ``status``: what a server answers to that."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@lru_cache(maxsize=512)
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


class Head:
    """A request's or response's start line and header fields, as Latin-1.

    ``fields``: names in lower case, the values of several fields of one name joined by commas; ``times``: how often
    the names stand there that stand there more than once.
    """

    __slots__ = ("fields", "method", "status", "target", "times", "upgrade", "version", "wire")

    def __init__(self, wire: bytes, request: bool) -> None:
        self.wire = wire
        self.target = ""
        self.method = ""
        self.status = 0
        self.fields: dict[str, str] = {}
        self.times: dict[str, int] = {}
        parser = httptools.HttpRequestParser(self) if request else httptools.HttpResponseParser(self)
        try:
            parser.feed_data(wire)
        except httptools.HttpParserUpgrade:
            pass  # whether that is allowed is for others to decide
        except httptools.HttpParserError as error:
            raise FramingError(400, f"no HTTP/1.1: {error}") from None
        self.version = parser.get_http_version()
        if self.version not in ("1.0", "1.1"):
            raise FramingError(505, f"HTTP/{self.version} is not HTTP/1.1")
        if isinstance(parser, httptools.HttpRequestParser):
            self.method = parser.get_method().decode("latin-1")
        else:
            self.status = parser.get_status_code()
        self.upgrade = self.get("upgrade") if parser.should_upgrade() or self.status == 101 else None

    def on_url(self, url: bytes) -> None:
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        low, text = _lower(name), value.decode("latin-1").strip(" \t")  # white space round a value is none of it
        if low in self.fields:
            self.times[low] = self.times.get(low, 1) + 1
            text = f"{self.fields[low]}, {text}"
        self.fields[low] = text

    def get(self, name: str) -> str | None:
        """The value of a field (its name in lower case); None where there is none."""
        return self.fields.get(name)

    @property
    def essence(self) -> str:
        """The media type, in lower case, without parameters; ``""`` where none is given."""
        return (self.get("content-type") or "").partition(";")[0].strip().lower()

    @property
    def interim(self) -> bool:
        """Is another response still to come (100 Continue, 103 Early Hints)?"""
        return 100 <= self.status < 200 and self.status != 101


class Framing:
    """Feed it the bytes of one direction of a connection; it yields their pieces, and ``head`` is the latest head.

    ``bodiless`` (of responses): does the response whose head was read answer a HEAD request?
    """

    def __init__(self, side: Literal["request", "response"], bodiless: Callable[[], bool] = lambda: False) -> None:
        self.head: Head | None = None
        self.mode = "head"  # head, length, size, chunk, break, trailer, close, end
        self._request = side == "request"
        self._bodiless = bodiless
        self._data = b""
        self._at = 0
        self._looked = 0  # how far the end of a head was looked for
        self._left = 0  # bytes of the body or chunk that are still to come
        self._steps: dict[str, Callable[[], Piece | None]] = {
            "head": self._head,
            "length": self._counted,
            "size": self._size,
            "chunk": self._counted,
            "break": self._break,
            "trailer": self._trailer,
            "close": self._rest,
            "end": self._end,
        }

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that are complete now. Raises ``FramingError``; what was not understood is then in ``held``."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0
        while (self._at < len(self._data) or self.mode == "end") and (piece := self._steps[self.mode]()) is not None:
            yield piece

    @property
    def held(self) -> bytes:
        """The bytes that no piece holds yet."""
        return self._data[self._at :]

    @property
    def idle(self) -> bool:
        """Between two messages, and nothing of the next one is there?"""
        return self.mode == "head" and not self.held

    @property
    def until_close(self) -> bool:
        """Is the end of the connection the end of this body?"""
        return self.mode == "close"

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def _head(self) -> Piece | None:
        while self._data.startswith(b"\r\n", self._at):
            self._at += 2  # empty lines before a message mean nothing (RFC 9112, 2.2)
            self._looked = 0
        end = self._data.find(b"\r\n\r\n", self._at + max(0, self._looked - 3))
        size = (len(self._data) if end < 0 else end + 4) - self._at
        if size > HEAD_LIMIT:
            raise FramingError(431, f"a head of more than {HEAD_LIMIT} bytes")
        if end < 0:
            start = self._data[self._at : self._at + 5]
            if start not in (b"", b"\r") and not (start[:1].isalpha() if self._request else b"HTTP/".startswith(start)):
                raise FramingError(400, "no HTTP/1.1")  # its end would be waited for in vain
            self._looked = size
            return None
        self._looked = 0
        wire = self._data[self._at : end + 4]
        head = self.head
        if head is None or head.wire != wire:  # many a head on a connection is like the one before
            head = self.head = Head(wire, self._request)
        self._at = end + 4
        self._begin(head)
        return "head", head.wire, b""

    def _begin(self, head: Head) -> None:
        """How the body that follows is measured (RFC 9112, 6.3)."""
        if not self._request and (head.status < 200 or head.status in (204, 304) or self._bodiless()):
            self.mode = "end"
            return
        coding = head.get("transfer-encoding")
        length = head.get("content-length")
        if coding is not None:
            if coding.rpartition(",")[2].strip().lower() == "chunked":
                self.mode, self._left = "size", 0
            elif self._request:
                raise FramingError(400, "a transfer coding without an end")
            else:
                self.mode = "close"
        elif length is not None:
            if _DIGITS.fullmatch(length) is None:
                raise FramingError(400, "a Content-Length that is no number")
            self._left = int(length)
            self.mode = "length" if self._left else "end"
        else:
            self.mode = "end" if self._request else "close"

    def _counted(self) -> Piece | None:
        taken = self._take(self._left)
        self._left -= len(taken)
        if not self._left:
            self.mode = "break" if self.mode == "chunk" else "end"
        return ("body", taken, taken) if taken else None

    def _size(self) -> Piece | None:
        end = self._data.find(b"\r\n", self._at, self._at + _LINE_LIMIT)
        if end < 0:
            if len(self._data) - self._at >= _LINE_LIMIT:
                raise FramingError(400, "a chunk size without an end")
            return None
        found = _SIZE.fullmatch(self._data, self._at, end)
        if found is None:
            raise FramingError(400, "a chunk size that is no number")
        self._left = int(found[1], 16)
        self.mode = "chunk" if self._left else "trailer"
        self._left = self._left or HEAD_LIMIT
        return "frame", self._take(end + 2 - self._at), b""

    def _break(self) -> Piece | None:
        if len(self._data) - self._at < 2:
            return None
        if not self._data.startswith(b"\r\n", self._at):
            raise FramingError(400, "a chunk that is longer than its size says")
        self.mode = "size"
        return "frame", self._take(2), b""

    def _trailer(self) -> Piece | None:
        end = self._data.find(b"\r\n", self._at)
        if (len(self._data) if end < 0 else end) - self._at > self._left:
            raise FramingError(431, f"trailers of more than {HEAD_LIMIT} bytes")
        if end < 0:
            return None
        if end == self._at:
            self.mode = "end"
        line = self._take(end + 2 - self._at)
        self._left -= len(line)
        return "frame", line, b""

    def _rest(self) -> Piece | None:
        taken = self._take(len(self._data))
        return ("body", taken, taken) if taken else None

    def _end(self) -> Piece:
        self.mode = "head"
        return "end", b"", b""
