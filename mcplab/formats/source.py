"""Where a trace comes from: a path, an open file, bytes or text, as named bytes in memory."""

from __future__ import annotations

import os
import re
import stat
import zlib
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from mcplab.model import TraceError

MAX_BYTES = 4 << 30
"""The largest source that is read, also after decompression: a bound for hostile files."""
MAX_UNPACKED = 256 << 20
MAX_RATIO = 200
"""Gzip data that unpacks to more than ``MAX_UNPACKED`` bytes and ``MAX_RATIO`` times its size is refused as a bomb."""

_SUFFIXES = {".jsonl", ".json", ".log", ".txt", ".gz", ".har", ".ndjson", ".trace"}


class Source(Struct, frozen=True):
    """Named bytes. ``file`` is shown in messages and tables (never an absolute path); ``name`` names the trace.

    ``notes`` says what had to be done to read the bytes (another encoding, damaged gzip data).
    """

    file: str
    data: bytes
    name: str
    notes: tuple[str, ...] = ()


def stem(file: str) -> str:
    """The file name without its suffixes: ``a/b.jsonl.gz`` -> ``b``."""
    path = Path(file)
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return path.name or file


def is_text(source: str) -> bool:
    """Is this string a trace's text, and not a path?"""
    return "\n" in source or source.lstrip()[:1] in ("{", "[")


def load(source: Any) -> Source:
    """Read a path, file object, bytes or text into memory; gzip and byte order marks are taken off.

    Raises ``TraceError`` in one line where there is nothing to read, or too much.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _source("<bytes>", bytes(source))
    if isinstance(source, str) and is_text(source):
        return _source("<text>", source.encode("utf-8", "surrogatepass"))
    if isinstance(source, str) and not source.strip():
        raise TraceError("<text>: empty, so there is no trace to read")
    if isinstance(source, (str, os.PathLike)):
        return _source(*_read_path(Path(source)))
    if hasattr(source, "read"):
        return _source(str(getattr(source, "name", "<file>")), _read_file(source))
    raise TraceError(
        f"cannot read a trace from {type(source).__name__}; give a path, a file, bytes, text or event dicts"
    )


def _source(file: str, data: bytes) -> Source:
    name = Path(file).name
    notes: list[str] = []
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(name, data, notes)
    return Source(name, _decoded(data, notes), stem(name).strip("<>"), tuple(notes))


def _read_path(path: Path) -> tuple[str, bytes]:
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise TraceError(f"{path.name}: a folder, not a file; read_traces reads folders")
        if not stat.S_ISREG(info.st_mode):
            raise TraceError(f"{path.name}: not a regular file, so it is not read")
        if info.st_size > MAX_BYTES:
            raise TraceError(f"{path.name}: {info.st_size} bytes are more than the {MAX_BYTES} that are read at once")
        return str(path), path.read_bytes()
    except FileNotFoundError:
        bundled = str(path).startswith("bundled:")
        what = f"read it by mcplab.load({str(path)!r})" if bundled else "name a folder, a glob or bundled:NAME"
        raise TraceError(f"{path}: no such file; check the path, or {what}") from None
    except OSError as error:
        raise TraceError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # a NUL in the name
        raise TraceError(f"{str(path)!r}: {error}") from None


def _read_file(file: IO[Any]) -> bytes:
    data = file.read(MAX_BYTES + 1)
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    if len(data) > MAX_BYTES:
        raise TraceError(f"{getattr(file, 'name', '<file>')}: more than {MAX_BYTES} bytes")
    return data


def _decoded(data: bytes, notes: list[str]) -> bytes:
    """Bytes as UTF-8 without a byte order mark; UTF-16 and UTF-32 where a mark, or every other byte, says so."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:]
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return _wide(data, "utf-32", 4, notes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _wide(data, "utf-16", 2, notes)
    start = data[:256]
    if len(start) >= 16 and b"\x00" in start:
        if start[1::2].count(0) > len(start) * 0.4 and start[0::2].count(0) == 0:
            return _wide(data, "utf-16-le", 2, notes)
        if start[0::2].count(0) > len(start) * 0.4 and start[1::2].count(0) == 0:
            return _wide(data, "utf-16-be", 2, notes)
    return data


def _wide(data: bytes, encoding: str, width: int, notes: list[str]) -> bytes:
    notes.append(f"the file is {encoding[:6].upper()}: read as such")
    if len(data) % width:
        data = data[: -(len(data) % width)]
        notes.append("the file ends inside a character")
    try:
        return data.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        notes.append("characters that could not be decoded read as U+FFFD")
        return data.decode(encoding, "replace").encode("utf-8", "replace")


_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_CP1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)}


def as_utf8(source: Source) -> Source:
    """The source as UTF-8 where it is none: Windows-1252 (of which Latin-1 is a part), unless other characters in it
    are good UTF-8; then a few bytes are damaged and stay as they are."""
    if source.data.isascii():
        return source
    try:
        source.data.decode("utf-8", "surrogatepass")
        return source
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        if _MULTIBYTE.search(source.data):
            note = f"from line {line} on, bytes that are no UTF-8: they read as U+FFFD"
            return Source(source.file, source.data, source.name, (*source.notes, note))
    text = source.data.decode("latin-1").translate(_CP1252)
    note = f"no UTF-8 (first at line {line}): read as Windows-1252"
    return Source(source.file, text.encode(), source.name, (*source.notes, note))


def _gunzip(file: str, data: bytes, notes: list[str]) -> bytes:
    """Unpack piece by piece, so that a bomb costs no more than the limit; damaged data gives what came before."""
    limit = min(MAX_BYTES, max(MAX_UNPACKED, MAX_RATIO * len(data)))
    pieces: list[bytes] = []
    size = 0
    unpacker = zlib.decompressobj(wbits=31)
    rest = data
    while rest:
        try:
            piece = unpacker.decompress(rest, 1 << 20)
        except zlib.error as error:
            if not size:
                raise TraceError(f"{file}: gzip data is damaged ({error})") from None
            notes.append(f"gzip data is damaged after {size} bytes ({error}): what came before was read")
            return b"".join(pieces)
        size += len(piece)
        if size > limit:
            raise TraceError(f"{file}: {len(data)} bytes of gzip unpack to more than {limit}, so it is not read")
        pieces.append(piece)
        rest = unpacker.unconsumed_tail
        if unpacker.eof:
            rest = unpacker.unused_data.lstrip(b"\x00")
            if rest[:2] != b"\x1f\x8b":
                return b"".join(pieces)
            unpacker = zlib.decompressobj(wbits=31)
    if not size:
        raise TraceError(f"{file}: gzip data ends before it begins")
    if not unpacker.eof:
        notes.append(f"gzip data is cut off after {size} bytes: what came before was read")
    return b"".join(pieces)
