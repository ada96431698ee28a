"""Content codings: the bytes of a compressed body as they come, decoded for the recorded copy.

``gzip`` and ``deflate`` come with Python. ``br`` needs the package ``brotli`` (or ``brotlicffi``), ``zstd`` Python 3.14
or the package ``zstandard``; where it is missing, the copy stays encoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, Protocol

_STEP: Final = 1 << 20  # bytes that one step may decode to: a small body can stand for a huge one

NEEDS: Final = {"br": "brotli", "zstd": "zstandard"}
"""Coding -> the package that decodes it, of those that Python does not know by itself."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes stand for, piece by piece. Raises ``ValueError`` where they are damaged."""
        ...


class _Zlib:
    def __init__(self, coding: str) -> None:
        self._deflate = coding == "deflate"
        self._inner: Any = None

    def _start(self, data: bytes) -> Any:
        if not self._deflate:
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        # "deflate" means zlib's format (RFC 9110, 8.4.1.2), and some servers send the bare one
        wrapped = data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)
        return zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)

    def feed(self, data: bytes) -> Iterator[bytes]:
        out = b""
        while data or len(out) == _STEP:  # a full piece: more may wait inside
            if self._inner is None:
                self._inner = self._start(data)
            try:
                out = self._inner.decompress(data, _STEP)
            except zlib.error as error:
                raise ValueError(str(error)) from None
            if out:
                yield out
            if self._inner.eof:  # a gzip body may have several members
                data, self._inner, out = self._inner.unused_data, None, b""
            else:
                data = self._inner.unconsumed_tail


class _Other:
    """A decoder of another package: a method that takes bytes and returns bytes."""

    def __init__(self, method: Callable[[bytes], bytes]) -> None:
        self._method = method

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            out = self._method(data)
        except Exception as error:  # each package has its own
            raise ValueError(str(error)) from None
        if out:
            yield out


class _Chain:
    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._through(data, 0)

    def _through(self, data: bytes, step: int) -> Iterator[bytes]:
        if step == len(self._decoders):
            yield data
            return
        for piece in self._decoders[step].feed(data):
            yield from self._through(piece, step + 1)


def decoder(codings: str) -> Decoder | None:
    """A decoder for the value of a ``Content-Encoding`` header; None where nobody here knows one of its codings."""
    found: list[Decoder] = []
    for coding in reversed([one.strip().lower() for one in codings.split(",") if one.strip()]):
        if coding == "identity":
            continue
        made = _decoder(coding)
        if made is None:
            return None
        found.append(made)
    return _Chain(found)


def _decoder(coding: str) -> Decoder | None:
    coding = coding.removeprefix("x-")
    if coding in ("gzip", "deflate"):
        return _Zlib(coding)
    ways: dict[str, list[tuple[str, Callable[[Any], Callable[[bytes], bytes]]]]] = {
        "br": [
            ("brotli", lambda module: module.Decompressor().process),
            ("brotlicffi", lambda module: module.Decompressor().process),
        ],
        "zstd": [
            ("compression.zstd", lambda module: module.ZstdDecompressor().decompress),
            ("zstandard", lambda module: module.ZstdDecompressor().decompressobj().decompress),
        ],
    }
    for name, method in ways.get(coding, ()):
        try:
            return _Other(method(import_module(name)))
        except (ImportError, AttributeError):
            continue
    return None
