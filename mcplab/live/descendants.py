"""A client with whatever it starts, daemons too, and the end of all of it. Run as a program, it stands in between.

On Linux that program adopts every process below it whose parent has ended (``PR_SET_CHILD_SUBREAPER``): no double fork,
session, folder or environment of its own takes one away, and nothing is left when the program has no child left. Where
we die, in whatever way, the system tells it to end, and it removes our folder too. Elsewhere there is the process group
of the client only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

_STUBBORN: Final = 2.0
"""Seconds from SIGTERM to SIGKILL."""
_LONGEST: Final = 10.0
"""Seconds in which those are killed that are left: another user's may not be."""


def start(
    words: Sequence[str], *, patience: float, folder: Path, cwd: Path, env: Mapping[str, str], stdout: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a command under that program, whose exit status is the command's; stderr goes to ``stdout`` too.

    ``patience``: seconds in which what the command has started may end by itself once the command has. ``folder``: is
    removed in the end if we are gone by then.
    """
    program = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(patience), str(folder), *words]
    return subprocess.Popen(
        program, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes], *, patience: float) -> None:
    """End what ``start`` has started; nothing of it is left when this returns."""
    process.terminate()
    try:
        process.wait(patience + _STUBBORN + 2 * _LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kept(words: list[str], patience: float, parent: int) -> int:
    """Run a command and stay until nothing is left of it, which is seen to when it ends or we are told to."""
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: told.append(number))
    if sys.platform == "linux":
        import ctypes

        system = ctypes.CDLL(None)
        system.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        system.prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            return 1
    child = os.fork()
    if not child:
        _become(words)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # the command's input is the command's
    status: int | None = None
    begun: float | None = None  # when the end began
    asked = False
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status if status is not None and status >= 0 else 128 - (status or 0)
        if pid:
            status = os.waitstatus_to_exitcode(code) if pid == child else status
            continue
        now = time.monotonic()
        if begun is None and (told or status is not None):
            begun = now
            _signal([-child] if status is None else [], signal.SIGTERM)
        elif begun is not None and now > begun + patience:
            late = now - begun - patience
            if late > _STUBBORN + _LONGEST:
                return 1
            if late > _STUBBORN or not asked:
                _signal([-child, *_below(os.getpid())], signal.SIGKILL if asked else signal.SIGTERM)
                asked = True
        time.sleep(0.05)


def _become(words: list[str]) -> None:
    os.setsid()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # an interpreter ignores it, and so would the command
    try:
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _below(root: int) -> list[int]:
    """All descendants of a process (Linux; elsewhere none)."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = [root]
    for one in found:
        found += [pid for pid, parent in parents.items() if parent == one]
    return found[1:]


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


if __name__ == "__main__":
    code = _kept(sys.argv[4:], float(sys.argv[2]), int(sys.argv[1]))
    if os.getppid() != int(sys.argv[1]):
        shutil.rmtree(sys.argv[3], ignore_errors=True)
    sys.exit(code)
