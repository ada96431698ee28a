"""Files to captures, one after the other, in bounded memory: packs are streamed, a gateway's log is taken apart."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import UNSET

from mcplab import formats, jsontext
from mcplab.formats import native, packs
from mcplab.formats.source import MAX_BYTES, MAX_RATIO, MAX_UNPACKED, Source, load, stem
from mcplab.model import Opt, Record, TraceError

PIECE = 4 << 20  # bytes read at once
SPOOL = 24 << 20  # bytes of a gateway's log whose connections are sorted out in memory at once


class ChangedError(Exception):
    """The file is another one now than when reading began."""


class Snapshot:
    """A file as it is when it is first looked at: what is appended later does not count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            info = path.stat()
        except OSError as error:
            raise TraceError(f"{path.name}: {(error.strerror or str(error)).lower()}") from None
        self.size = info.st_size
        self.mtime = info.st_mtime_ns

    def digest(self) -> str:
        """SHA-256 of the content, as hex."""
        found = hashlib.sha256()
        with self.open() as file:
            while piece := file.read(PIECE):
                found.update(piece)
        return found.hexdigest()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content up to the size that it had."""
        try:
            with self.path.open("rb") as file:
                yield io.BufferedReader(_Limited(file, self.size), PIECE)
        except OSError as error:
            raise TraceError(f"{self.path.name}: {(error.strerror or str(error)).lower()}") from None

    def settled(self, digest: str) -> None:
        """Raise ``ChangedError`` when what was read may not be what was digested."""
        now = os.stat(self.path)
        if (now.st_size, now.st_mtime_ns) != (self.size, self.mtime) and self.digest() != digest:
            raise ChangedError(str(self.path))


class _Limited(io.RawIOBase):
    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def records(snapshot: Snapshot, *, split: bool, spool: Path) -> Iterator[tuple[str, Record | TraceError]]:
    """The captures of a file, each with what is added to the file's name (``""``, ``:2``, ``@c7``), or why it is none.

    Args:
        split: each connection of a file that holds one capture is a capture of its own (a gateway's log).
        spool: a folder for what does not fit into memory meanwhile.

    Raises:
        TraceError: the file is no trace.
    """
    name = stem(snapshot.path.name)
    with snapshot.open() as file:
        pieces = _pieces(file, snapshot)
        first = next(pieces, b"")
        plain = native.sniff(first) and not first.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    if plain and _is_pack(snapshot):
        with snapshot.open() as file:
            for number, data in enumerate(packs.captures(_pieces(file, snapshot)), 1):
                yield f":{number}", _read(Source(snapshot.path.name, data, name))
        return
    if not (plain and split):
        if snapshot.size > MAX_BYTES:
            raise TraceError(
                f"{snapshot.path.name}: {snapshot.size} bytes are more than the {MAX_BYTES} of one capture"
            )
        with snapshot.open() as file:
            source = load(_Named(file, snapshot.path.name))
        yield "", formats.read(source)
        return
    for conn, data in _connections(snapshot, spool):
        yield f"@{jsontext.printable(conn)}", _read(Source(snapshot.path.name, data, name))


class _Named:
    """An open file with the name that errors show."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.read = lambda most: file.read()
        self.name = name


def _read(source: Source) -> Record | TraceError:
    try:
        return native.read(source)
    except TraceError as error:
        return error


def _pieces(file: IO[bytes], snapshot: Snapshot) -> Iterator[bytes]:
    """The file piece by piece; gzip data is unpacked on the way, unless it is a bomb."""
    start = file.peek(2)[:2] if isinstance(file, io.BufferedReader) else b""
    if start != b"\x1f\x8b":
        while piece := file.read(PIECE):
            yield piece
        return
    unpacked, limit = 0, max(MAX_UNPACKED, MAX_RATIO * snapshot.size)
    with gzip.open(file) as plain:
        try:
            while piece := plain.read(PIECE):
                unpacked += len(piece)
                if unpacked > limit:
                    raise TraceError(f"{snapshot.path.name}: {snapshot.size} bytes of gzip unpack to more than {limit}")
                yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return  # damaged or cut: what came before counts, as for any trace


def _is_pack(snapshot: Snapshot) -> bool:
    """Does a header line stand anywhere but at the beginning?"""
    before = False
    rest = b""
    with snapshot.open() as file:
        for piece in _pieces(file, snapshot):
            data = rest + piece
            if (before and packs.headers(data)) or packs.several(data):
                return True
            rest = data[data.rfind(b"\n") + 1 :]
            before = before or bool(data[: len(data) - len(rest)].strip())
    return False


# A gateway's log: connections mixed in one capture -------------------------------------------------


class _Http(msgspec.Struct, gc=False):
    headers: dict[str, str] | Opt = UNSET


class _Where(msgspec.Struct, gc=False):
    kind: str | Opt = UNSET
    conn: str | Opt = UNSET
    http: _Http | Opt = UNSET


_wheres = msgspec.json.Decoder(_Where)


class _Groups:
    """Peers that share a session id belong together; a group is named by its first peer."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._sessions: dict[str, str] = {}

    def see(self, where: _Where) -> None:
        conn = where.conn if where.conn is not UNSET else "unknown"
        self._parent.setdefault(conn, conn)
        if where.http is not UNSET and where.http.headers is not UNSET:
            session = where.http.headers.get("mcp-session-id")
            if session is not None:
                first = self._sessions.setdefault(session, conn)
                if first != conn and (root := self.root(first)) != (other := self.root(conn)):
                    self._parent[other] = root

    def root(self, conn: str) -> str:
        while (parent := self._parent[conn]) != conn:
            self._parent[conn] = self._parent.get(parent, parent)
            conn = parent
        return conn


def _connections(snapshot: Snapshot, spool: Path) -> Iterator[tuple[str, bytes]]:
    """Each connection's lines, under the file's header. Two passes: who belongs together, then sorting by files."""
    groups = _Groups()
    head = b""
    for line, where in _lines(snapshot):
        if where.kind == "header":
            head = line
        else:
            groups.see(where)
    count = 1 + snapshot.size // SPOOL
    waiting: list[list[bytes]] = [[] for _ in range(count)]
    held = 0
    spool.mkdir(parents=True, exist_ok=True)
    for line, where in _lines(snapshot):
        if where.kind == "header":
            continue
        root = groups.root(where.conn if where.conn is not UNSET else "unknown")
        waiting[zlib.crc32(root.encode("utf-8", "surrogatepass")) % count].append(line)
        held += len(line)
        if held > SPOOL and count > 1:
            _flush(waiting, spool)
            held = 0
    if count > 1:
        _flush(waiting, spool)
    for number in range(count):
        file = spool / str(number)
        found: dict[str, list[bytes]] = {}
        if count > 1:
            data = file.read_bytes() if file.exists() else b""
            waiting[number] = [line + b"\n" for line in data.split(b"\n") if line]
        for line in waiting[number]:
            conn = _where(line).conn
            found.setdefault(groups.root(conn if conn is not UNSET else "unknown"), [head]).append(line)
        waiting[number] = []
        file.unlink(missing_ok=True)
        for root, mine in found.items():
            yield root, b"".join(mine)


def _flush(waiting: list[list[bytes]], spool: Path) -> None:
    for number, lines in enumerate(waiting):
        if lines:
            with (spool / str(number)).open("ab") as file:
                file.writelines(lines)
            lines.clear()


def _lines(snapshot: Snapshot) -> Iterator[tuple[bytes, _Where]]:
    rest = b""
    with snapshot.open() as file:
        for piece in _pieces(file, snapshot):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line.strip():
                    yield line + b"\n", _where(line)
    if rest.strip():
        yield rest + b"\n", _where(rest)


def _where(line: bytes) -> _Where:
    """A damaged line has no connection that could be told: those stay together."""
    try:
        return _wheres.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _Where()
