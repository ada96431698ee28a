"""Events into a version 1 trace file as they happen, each in one write, secrets masked, whatever befalls the disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from mcplab import jsontext
from mcplab.lines import encode, head_of
from mcplab.live.capture import Recording, clocks, kept
from mcplab.model import Event, Http
from mcplab.redaction import Masks

RESERVE: Final = 1024
"""Bytes of spaces in the header line: room for what is known later only (``redacted``, ``stopped``)."""


def warn_on_stderr(text: str) -> None:
    """One line on stderr, or none where that is gone too."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"mcplab: {text}\n")
        sys.stderr.flush()


class Recorder(Recording):
    """A version 1 trace file that is being written. May be used from several threads; a context manager.

    Each event is one write of one whole line, made before ``add`` returns: a process killed at any moment leaves every
    event there that ``add`` has returned from. The file has mode 0600. Where something stands in its place already, the
    next free of ``name-2.jsonl``, ``name-3.jsonl``, ... is taken (``path``), so a client that starts its servers again
    overwrites nothing; an empty file is filled. The header's ``redacted`` lists the places where something was masked.

    What goes wrong with the file goes no further: one warning, ``failed`` says why, the header's ``stopped`` says so
    to readers, and later events are counted (``lost``) but not written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        header: Mapping[str, Any],
        keep_secrets: bool = False,
        redact: Sequence[str] = (),
        warn: Callable[[str], None] = warn_on_stderr,
    ) -> None:
        """
        Args:
            path: the file.
            header: members of the trace's header besides those that ``head`` gives; ``transport`` must be there.
            keep_secrets: do not mask what is masked by default.
            redact: what to mask besides (``mcplab.redaction``).
            warn: gets the one line that says why recording stopped.

        Raises:
            UsageError: a word of ``redact`` cannot be used. An unusable file raises nothing.
        """
        super().__init__()
        self._masks = Masks(redact, keep_secrets=keep_secrets)
        self.keeps_secrets = keep_secrets
        self._warn = warn
        self._lock = threading.Lock()
        self._header = {**self.head(str(header.get("transport", "stdio"))), **header}
        self._room = 0
        self._told = 0
        self._size = 0
        self._fd = -1
        self.path = Path(path)
        self.failed: str | None = None
        self.count = 0
        self.lost = 0
        try:
            self.path, self._fd = _opened(self.path)
            self._place = self.path.absolute()  # wherever the process goes meanwhile
            self._write(self._head())
        except OSError as error:
            self._fail(error)

    def add(self, kind: str, conn: str = "c1", **fields: Any) -> Event:
        """Write an event; ``fields`` are members of ``model.Event`` without number and clocks.

        ``http`` may be an ``Http`` or a mapping; of its headers (a mapping, or pairs) those are written that a trace
        keeps. ``msg`` may be ``msgspec.Raw``, bytes or text: it must be JSON (``text`` takes whatever came).
        Never raises.
        """
        event = Event(kind, conn=conn)
        with self._lock:
            try:
                event = Event(kind, seq=self.count, **clocks(), conn=conn, **_facts(fields))
                if self._fd >= 0:
                    self._write(self._masks.line(encode(event)))
                    self.count += 1
                    if len(self._masks.places) != self._told:
                        self._rewrite()
                else:
                    self.lost += 1
            except Exception as error:  # whatever it is, the traffic goes on
                self.lost += 1
                self._fail(error)
        return event

    def close(self) -> None:
        """No more events. May be called again."""
        with self._lock:
            self._shut()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _shut(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    # the file ------------------------------------------------------------------------------------

    def _write(self, line: bytes) -> None:
        """All of a line, or nothing of it."""
        try:
            done = os.writev(self._fd, (line, b"\n"))
            while done <= len(line):  # a disk that is nearly full, or more than 2 GB
                done += os.writev(self._fd, (memoryview(line)[done:], b"\n"))
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += done

    def _head(self) -> bytes:
        """The header's line, at its full width from the first time on."""
        head = head_of(self._header)
        places = list(self._masks.places)
        while True:
            if places:
                head["redacted"] = places
            if self.failed is not None:
                head["stopped"] = self.failed
            line = self._masks.line(jsontext.dumps(head).encode())
            if not self._room:
                self._room = len(line) + RESERVE
            if len(line) < self._room or not places:
                break
            places = [*places[:-2], "and more"] if len(places) > 1 else []
            head.pop("redacted")
        self._told = len(self._masks.places)
        return line[:-1] + b" " * (self._room - len(line)) + b"}"

    def _rewrite(self) -> None:
        """The header again, in its place: it is as long as before. The file's own descriptor can only append."""
        line = self._head()
        if len(line) != self._room:
            return
        with contextlib.suppress(OSError):
            fd = os.open(self._place, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.path.sameopenfile(fd, self._fd):
                    os.pwrite(fd, line, 0)
            finally:
                os.close(fd)

    def _fail(self, error: Exception) -> None:
        if self.failed is not None:
            return
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.failed = f"{why.lower()}, after {self.count} events"
        if self._fd >= 0 and self._size:
            with contextlib.suppress(Exception):
                self._rewrite()
        self._shut()
        with contextlib.suppress(Exception):
            self._warn(f"{self.path}: recording stopped ({self.failed}); the traffic goes on")


def _opened(path: Path) -> tuple[Path, int]:
    """A file of our own at this path, or beside it where something is there already."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    number = 1
    name = path
    while True:
        fd = -1
        try:
            fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            facts = os.stat(name) if name.exists() else os.lstat(name)  # a link to nowhere is somebody's too
            if stat.S_ISCHR(facts.st_mode) or stat.S_ISFIFO(facts.st_mode):
                return name, os.open(name, flags | os.O_NONBLOCK)
            if stat.S_ISREG(facts.st_mode) and facts.st_size == 0:
                fd = os.open(name, flags)
        if fd >= 0:
            if _empty(fd):
                os.fchmod(fd, 0o600)
                return name, fd
            os.close(fd)
        number += 1
        name = path.with_name(f"{path.stem}-{number}{path.suffix}")


def _empty(fd: int) -> bool:
    """Is there nothing in it, and no other recorder about to begin? A client may start two servers at a time."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return os.fstat(fd).st_size == 0


def _facts(fields: dict[str, Any]) -> dict[str, Any]:
    http = fields.get("http", UNSET)
    if http is not UNSET and http is not None:
        given = msgspec.structs.asdict(http) if isinstance(http, Http) else dict(http)
        if (headers := given.get("headers", UNSET)) is not UNSET:
            pairs: Iterable[tuple[str, str]] = headers.items() if isinstance(headers, (dict, Mapping)) else headers
            given["headers"] = kept(pairs, secrets=True)
        fields["http"] = Http(**given)
    message = fields.get("msg", UNSET)
    if isinstance(message, str):
        message = message.encode("utf-8", "surrogatepass")
    if isinstance(message, (bytes, bytearray)):
        fields["msg"] = msgspec.Raw(bytes(message))
    return fields
