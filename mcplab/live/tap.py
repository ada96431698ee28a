"""The tap: stands in a stdio server's place, starts it, and records what passes between it and its client.

A thread for each of the three streams: they wait for each other's readers only, as without the tap.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcplab.live.capture import Recording
from mcplab.live.recorder import Recorder, warn_on_stderr
from mcplab.live.relay import Lines, Relay

QUIET: Final = 3.0
"""Seconds that a server may be silent after the end of its input before it gets SIGTERM (basic/lifecycle#stdio)."""
PATIENCE: Final = 30.0
"""Seconds after the end of its input until it gets SIGTERM all the same."""
KILL_AFTER: Final = 2.0
"""Seconds from SIGTERM to SIGKILL."""

_PASSED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_SET_PDEATHSIG: Final = 1


def tap(
    command: Sequence[str],
    output: Path,
    *,
    redact: Sequence[str] = (),
    keep_secrets: bool = False,
    header: Mapping[str, Any] = {},
) -> int:
    """Record a server into a trace at ``output`` (``Recorder`` says where exactly); the status to exit with.

    ``header``: members of the trace's header besides the usual ones, or in their place.

    Raises:
        UsageError: a word of ``redact`` cannot be used.
    """
    facts = {"transport": "stdio", "config": {"command": list(command), "recorder": "tap"}, **header}
    with Recorder(output, header=facts, keep_secrets=keep_secrets, redact=redact) as recorder:
        if recorder.path != output:
            warn_on_stderr(f"{output} exists, so this trace is {recorder.path}")
        return Tap(command, recorder).run()


def plain_words(words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of ``tap`` from a command line as ``mcplab wrap`` writes it; None where it is any other.

    A client waits for its server: what parses every command line takes longer to load than all of the tap.
    """
    given: dict[str, Any] = {"redact": []}
    left = list(words)
    while left and left[0] != "--":
        word = left.pop(0)
        if word == "--keep-secrets":
            given["keep_secrets"] = True
        elif word in ("-o", "--redact") and left:
            value = left.pop(0)
            if word == "-o":
                given["output"] = Path(value)
            else:
                given["redact"].append(value)
        else:
            return None
    given["command"] = left[1:]
    return given if given["command"] and "output" in given else None


class Tap:
    """A command, tapped. ``run`` is the life of the process that it makes.

    The server has a process group of its own, so that a signal reaches it once, through the tap, whether it was sent to
    the tap or to the tap's group. If the tap is killed the system kills the server with it (Linux), and its input ends.
    """

    def __init__(
        self, command: Sequence[str], recording: Recording, *, stdin: int = 0, stdout: int = 1, stderr: int = 2
    ) -> None:
        self._command = list(command)
        self._recording = recording
        self._ours = (stdin, stdout, stderr)
        self._gone = threading.Event()
        self._reason = ""
        self._by = "server"

    def run(self) -> int:
        """Start the server and relay until it is gone. Its exit status; 128 + n where signal n ended it.

        127 where there is no such program and 126 where it cannot be run, as a shell has it; both are told on stderr.
        """
        conn = self._recording.conn()
        self._recording.add("open", conn)
        try:
            process = self._start()
        except (OSError, ValueError) as error:
            why = f"{self._command[0]}: {getattr(error, 'strerror', None) or error}"
            self._recording.add("close", conn, by="server", reason=f"not started: {why}", unexpected=True)
            with contextlib.suppress(OSError):
                os.write(self._ours[2], f"mcplab: {why}; check the server's command, behind --\n".encode())
            return 127 if isinstance(error, FileNotFoundError) else 126
        before = self._pass_signals_to(process)
        try:
            self._relay(process, conn)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        code = process.returncode
        facts: dict[str, Any] = {"reason": self._reason} if self._reason else {}
        if self._by == "server":
            facts["unexpected"] = True
        self._recording.add("close", conn, by=self._by, exit_code=code, **facts)
        return code if code >= 0 else 128 - code

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            preexec_fn=_dying_with(os.getpid()),
        )

    def _relay(self, process: subprocess.Popen[bytes], conn: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        stdin, stdout, stderr = self._ours
        asked = Relay(stdin, process.stdin.fileno(), Lines(self._recording, conn, "c2s"))
        told = Relay(process.stdout.fileno(), stdout, Lines(self._recording, conn, "s2c"))
        noise = Relay(process.stderr.fileno(), stderr, Lines(self._recording, conn, "s2c", "stderr"))

        def client() -> None:
            asked.run()
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            if asked.ended == "end":
                self._by = "client"
                self._shut_down(process, told, noise)
            else:
                _close(stdin, os.O_RDONLY)  # the server reads no more: its client finds out as without us

        def server(relay: Relay, pipe: Any, ours: int) -> None:
            relay.run()
            if relay.ended == "closed":
                if ours == stdout and not self._gone.is_set():
                    self._by, self._reason = "client", "it reads no more"
                with contextlib.suppress(OSError):
                    pipe.close()
            if ours == stdout:
                _close(ours, os.O_WRONLY)

        threading.Thread(target=client, daemon=True).start()
        rest = [
            threading.Thread(target=server, args=(told, process.stdout, stdout), daemon=True),
            threading.Thread(target=server, args=(noise, process.stderr, stderr), daemon=True),
        ]
        for thread in rest:
            thread.start()
        process.wait()
        self._gone.set()
        self._drain(process, rest, (told, noise))

    # the end -------------------------------------------------------------------------------------

    def _shut_down(self, process: subprocess.Popen[bytes], *relays: Relay) -> None:
        """The client has closed our input, and we the server's: wait, SIGTERM, SIGKILL."""
        begun = time.monotonic()
        while not self._gone.wait(0.05):
            now = time.monotonic()
            quiet = now - max(begun, *(relay.heard for relay in relays))
            busy = any(relay.busy for relay in relays)
            if now - begun > PATIENCE or (quiet > QUIET and not busy):
                break
        else:
            return
        self._reason = "SIGTERM after its input was closed"
        _signal(process.pid, signal.SIGTERM)
        if not self._gone.wait(KILL_AFTER):
            self._reason = "SIGKILL after SIGTERM"
            _signal(process.pid, signal.SIGKILL)

    def _drain(
        self, process: subprocess.Popen[bytes], threads: list[threading.Thread], relays: Sequence[Relay]
    ) -> None:
        """The server is gone: pass on what it wrote. Processes that it left behind are ended when they are silent."""
        ended = time.monotonic()
        steps = [signal.SIGTERM, signal.SIGKILL]
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.02)
            quiet = time.monotonic() - max(ended, *(relay.heard for relay in relays))
            if quiet > KILL_AFTER and not any(relay.busy for relay in relays):
                if not steps:
                    return
                _signal(process.pid, steps.pop(0))
                ended = time.monotonic()

    def _pass_signals_to(self, process: subprocess.Popen[bytes]) -> dict[int, Any]:
        """Signals that we get are the server's, but for those that we were started to ignore, as is the server."""

        def passed(number: int, _: object) -> None:
            if process.returncode is None:
                self._by = "client"
                self._reason = f"{signal.Signals(number).name} passed on"
                _signal(process.pid, number)

        before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return before
        for name in _PASSED:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, passed)
        return before


def _signal(group: int, number: int) -> bool:
    """Signal a process group; whether there was anybody left in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _close(fd: int, flags: int) -> None:
    """Close a descriptor, and leave its number to nobody else: another file there would get what is meant for it."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, flags)
        os.dup2(null, fd)
        os.close(null)


def _dying_with(parent: int) -> Callable[[], None] | None:
    """What the server's process does first: asks the system to be killed when ``parent`` dies. Linux only."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    kill = int(signal.SIGKILL)

    def ask() -> None:
        prctl(_SET_PDEATHSIG, kill)
        if os.getppid() != parent:
            os._exit(1)

    return ask
