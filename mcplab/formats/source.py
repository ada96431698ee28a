"""Where a trace comes from: a path, an open file, bytes or text, as named bytes in memory."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from mcplab.model import TraceError

MAX_BYTES = 4 << 30
"""The largest source that is read, also after decompression: a bound for hostile files."""

_SUFFIXES = {".jsonl", ".json", ".log", ".txt", ".gz", ".har", ".ndjson", ".trace"}


class Source(Struct, frozen=True):
    """Named bytes. ``file`` is shown in messages and tables (never an absolute path); ``name`` names the trace."""

    file: str
    data: bytes
    name: str


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
    if isinstance(source, (str, os.PathLike)):
        return _source(*_read_path(Path(source)))
    if hasattr(source, "read"):
        return _source(str(getattr(source, "name", "<file>")), _read_file(source))
    raise TraceError(f"cannot read a trace from {type(source).__name__}; give a path, a file, bytes, text or event dicts")


def _source(file: str, data: bytes) -> Source:
    name = Path(file).name
    return Source(name, _decoded(name, data), stem(name).strip("<>"))


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
        raise TraceError(f"{path}: no such file") from None
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


def _decoded(file: str, data: bytes) -> bytes:
    """Bytes as UTF-8 without a byte order mark; other encodings only where a mark names them."""
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(file, data)
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "surrogatepass").encode("utf-8", "surrogatepass")
    return data


def _gunzip(file: str, data: bytes) -> bytes:
    import io

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            out = unpacked.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{file}: gzip data is damaged ({error})") from None
    if len(out) > MAX_BYTES:
        raise TraceError(f"{file}: unpacks to more than {MAX_BYTES} bytes, so it is not read")
    return out
