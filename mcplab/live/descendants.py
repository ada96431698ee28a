"""Ending whatever a process has started, daemons with a session of their own too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")


def marked(mark: Path) -> list[int]:
    """Processes that have the path of a private folder in their environment, or work in it (Linux; elsewhere none).

    A child has both from its parent, whoever becomes its parent later.
    """
    wanted = os.fsencode(mark)
    found = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            place = os.fsencode(os.readlink(entry / "cwd"))
            if place == wanted or place.startswith(wanted + b"/") or wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def end(process: subprocess.Popen[bytes], mark: Path, *, patience: float) -> None:
    """End a process that leads a session of its own, and everything marked; nothing of it is left when this returns.

    ``patience``: seconds in which what it has started may end by itself.
    """
    if process.poll() is None:
        _signal([-process.pid], signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
    _gone(mark, patience)
    for number, wait in ((signal.SIGTERM, 2.0), *[(signal.SIGKILL, 1.0)] * 5):
        left = marked(mark)
        if process.poll() is not None and not left:
            break
        _signal([-process.pid, *left], number)
        _gone(mark, wait)
    _signal([-process.pid], signal.SIGKILL)
    process.wait()


def _gone(mark: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.05)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
