"""``observe``: a known real client, run once against the probe in a private folder without credentials."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from mcplab.live import descendants
from mcplab.live.installing import bin_of, cache_folder, version_of
from mcplab.live.merging import merged
from mcplab.live.probe import Probe
from mcplab.live.recipes import Configuration, Recipe, filled, recipe, texts
from mcplab.model import MCPLabError, UsageError
from mcplab.told import safe
from mcplab.traces import Trace, read_trace

CLOSED: Final = "http://127.0.0.1:9"
"""An address at which nothing listens (port 9, discard): models, proxies and reports end there."""
LINGER: Final = 2.0
"""Seconds for a client that is connected and does not end by itself, so that what it says next is seen too."""
CHALLENGED: Final = 12.0
"""The same for one that is challenged: it has questions to answer."""
VERSION: Final = 10.0
"""Seconds for a program to say its version."""
PATIENCE: Final = 4.0
"""Seconds for servers and helpers to end by themselves once the client has."""

_QUIET: Final = {
    "CI": "1", "NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8", "USER": "user", "LOGNAME": "user",
    "SHELL": "/bin/sh", "DO_NOT_TRACK": "1", "OTEL_SDK_DISABLED": "true", "NO_UPDATE_NOTIFIER": "1",
    "ANONYMIZED_TELEMETRY": "false", "DISABLE_TELEMETRY": "1", "PYTHONDONTWRITEBYTECODE": "1",
    "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), CLOSED),
}  # fmt: skip


class ObserveError(MCPLabError):
    """A client was started and never came to the probe."""


def observe(
    client: str | Path,
    *,
    config: str | None = None,
    serves: str = "dual",
    transport: str = "stdio",
    challenge: bool = False,
    cache: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
) -> Trace:
    """Run a known real client once against the probe, and keep what it said.

    It runs in a private folder (HOME too) that is removed afterwards, with a clean environment: no credentials, usage
    reports off, everything but this machine out of reach where the system can do that (``unshare``, over stdio), else
    through a proxy that is not there. Every process that it started is gone when this returns, daemons too (Linux;
    elsewhere its process group). On Linux they end as well, and the folder goes, if this process is killed.

    Args:
        client: a name (``mcplab observe --list``), or the path of a recipe.
        config: one of the recipe's configurations; default: ``default``, or the first.
        serves: what the probe speaks: ``legacy``, ``modern`` or ``dual``.
        transport: ``stdio`` or ``http``.
        challenge: ask the client for all that a server may ask, declared or not.
        cache: the folder of installed clients; default: the user's cache.
        seconds: the longest it may run; default: the recipe's.

    Returns:
        The capture: its header names client, version (the recipe's, else that of the installed package, or what a
        program on the PATH says to ``--version``; missing where it says none), configuration and how it was run. A
        client that starts its server more than once, or two servers, is one trace with a connection for each.

    Raises:
        InstallError: the client is not installed; the line says how to.
        ObserveError: it never came to the probe.
        UsageError: no such client, configuration, transport or ``serves``.
    """
    made = recipe(client)
    name, chosen = made.configuration(config)
    own = texts(made, chosen, transport)
    if serves not in ("legacy", "modern", "dual"):
        raise UsageError(f"serves={serves!r}: a probe speaks legacy, modern or dual")
    place = cache_folder(cache)
    where = [] if cache is None else ["--cache", os.fspath(cache)]
    programs = bin_of(made, place, shlex.join(["mcplab", "observe", "--install", str(client), *where]))
    with _private() as folder:
        run = _Run(made, chosen, own, folder, programs, transport, serves, challenge)
        run.go(made.seconds if seconds is None else seconds)
        version = version_of(made, place) or run.version()
        who = {"name": made.client, **({"version": version} if version else {})}
        traces = [
            _of_server(trace, who, probe.config.name) if len(run.probes) > 1 else trace
            for probe in run.probes
            for trace in map(read_trace, probe.paths)
        ]
        if not any(len(trace.messages) for trace in traces):
            raise ObserveError(f"{made.client} ({name}, {transport}) never came to the probe; {run.told()}")
        header: dict[str, Any] = {
            "client": who,
            "label": name,
            "server_mode": serves,
            "config": {**traces[0].header["config"], **run.facts},
        }
        words = filter(None, (made.client, version, transport, serves, name))
        return merged(traces, name="-".join(words), **header)


def _of_server(trace: Trace, client: dict[str, Any], server: str) -> Trace:
    """The trace with each connection marked by its server, so that one client with two of them is two instances."""
    marked = {**client, "server": server}
    events = [msgspec.structs.replace(one, client=marked) if one.kind == "open" else one for one in trace]
    return Trace(msgspec.structs.replace(trace.record, events=tuple(events), lines=()), trace.name)


@contextlib.contextmanager
def _private() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mcplab-observe-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """One run of one client in its private folder."""

    def __init__(
        self, made: Recipe, chosen: Configuration, own: dict[str, str], folder: Path, programs: Path, transport: str,
        serves: str, challenge: bool,
    ) -> None:  # fmt: skip
        self._made, self._chosen, self._folder, self._programs = made, chosen, folder, programs
        self._connected = chosen.connected or made.connected
        self._output = folder / "output.txt"
        self._challenge = challenge
        self._isolated = transport == "stdio" and isolates()
        self.facts: dict[str, Any] = {"network": "loopback only" if self._isolated else "proxies that are not there"}
        for name in ("home", "work", "tmp", "traces", "scripts"):
            (folder / name).mkdir()
        if made.installer == "npm":  # a script finds its modules beside itself
            (folder / "scripts" / "node_modules").symlink_to(programs.parent)
        options: dict[str, Any] = {"transport": transport, "serves": serves, "challenge": challenge}
        second = any("{{entry_b}}" in text for text in [*own.values(), *(file.text for file in made.files)])
        self.probes = [
            Probe(folder / "traces" / f"{letter}.jsonl", name=f"mcplab-probe{letter}", **options)
            for letter in (["", "-b"] if second else [""])
        ]
        self._own = own

    def go(self, seconds: float) -> None:
        with contextlib.ExitStack() as stack:
            for probe in self.probes:
                stack.enter_context(probe)
            values = self._values()
            env = self._environment(values)
            for file in self._made.files:
                path = Path(filled(file.path, values))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(filled(file.text, values), encoding="utf-8")
            self.facts["command"] = list(self._chosen.command or self._made.command)
            words = [filled(word, values) for word in self._chosen.command or self._made.command]
            words[0] = shutil.which(words[0], path=env["PATH"]) or words[0]
            self._client(words, env, filled(self._chosen.stdin, values).encode(), seconds)

    def _values(self) -> dict[str, str]:
        places = {name: str(self._folder / name) for name in ("home", "work", "scripts")}
        values = {**places, "bin": str(self._programs), "closed": CLOSED, "command": "", "url": "", **self._own}
        for probe, mark in zip(self.probes, ("", "_b"), strict=False):
            values[f"url{mark}"] = probe.url
            if probe.transport == "stdio":
                values[f"command{mark}"] = str(self._script(probe, f"server{mark}.sh"))
        return values

    def _script(self, probe: Probe, name: str) -> Path:
        """The probe as a program without arguments, whatever environment the client gives it."""
        paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        line = f"HOME={shlex.quote(str(self._folder / 'home'))} PYTHONPATH={shlex.quote(paths)}"
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{line} exec {shlex.join(probe.command)}\n", encoding="utf-8")
        path.chmod(0o700)
        return path

    def _environment(self, values: dict[str, str]) -> dict[str, str]:
        node = shutil.which("node")
        path = [str(self._programs), *([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
        home = str(self._folder / "home")
        given = {**self._made.env, **self._chosen.env}
        return {
            **_QUIET, "HOME": home, "TMPDIR": str(self._folder / "tmp"), "PATH": os.pathsep.join(path),
            "MCPLAB_TRANSPORT": values["transport"], "MCPLAB_COMMAND": values["command"], "MCPLAB_URL": values["url"],
            **{name: filled(text, values) for name, text in given.items()},
        }  # fmt: skip

    def _start(self, words: list[str], env: dict[str, str], output: Path, patience: float) -> subprocess.Popen[bytes]:
        shut = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"] if self._isolated else []
        work = self._folder / "work"
        with output.open("wb") as file:
            return descendants.start(
                [*shut, *words], patience=patience, folder=self._folder, cwd=work, env=env, stdout=file
            )

    def version(self) -> str:
        """What a program from the PATH says of its version, once the client has run; "" where it says none."""
        if self._made.installer != "path":
            return ""
        output = self._folder / "version.txt"
        words = [str(self._programs / self._made.program), "--version"]
        process = self._start(words, self._environment(self._values()), output, 0)
        try:
            process.communicate(timeout=VERSION)
        except subprocess.TimeoutExpired:
            pass
        finally:
            descendants.end(process, patience=0)
        lines = output.read_text(encoding="utf-8", errors="replace").strip().split("\n")
        found = re.search(r"\d+\.\d+[\w.+-]*", lines[0])
        return found[0] if found else ""

    def _client(self, words: list[str], env: dict[str, str], stdin: bytes, seconds: float) -> None:
        process = self._start(words, env, self._output, PATIENCE)
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(stdin)
                process.stdin.flush()
            if not stdin:
                process.stdin.close()
            ended = self._wait(process, seconds)
            self.facts |= {"ended": ended, "exit_code": process.poll()}
        finally:
            descendants.end(process, patience=PATIENCE)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> str:
        """Until the client ends, is connected and would not end, or has had its time. Which of them it was."""
        until = time.monotonic() + seconds
        stays = not self._made.ends or bool(self._chosen.stdin)
        enough: float | None = None
        while process.poll() is None:
            now = time.monotonic()
            if now > until:
                return f"after {seconds:g} s"
            if stays and enough is None and self._asked():
                enough = now + (CHALLENGED if self._challenge else LINGER)
            if enough is not None and now > enough:
                return "once connected"
            time.sleep(0.1)
        return "by itself"

    def _asked(self) -> bool:
        """Has every server been asked for what shows that the client is connected?"""
        wanted = f'"{self._connected}"'.encode()
        return all(any(wanted in path.read_bytes() for path in probe.paths) for probe in self.probes)

    def told(self) -> str:
        """Why it did not come, in the client's own last words."""
        lines = self._output.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        how = f"it ended {self.facts.get('ended')}, status {self.facts.get('exit_code')}"
        return f"{how}; its last words: {safe(last)[:300]}" if last else f"{how} and said nothing"


@cache
def isolates() -> bool:
    """Can this user start a process that has the loopback interface alone, without privileges?"""
    if not (sys.platform == "linux" and shutil.which("unshare") and shutil.which("ip")):
        return False
    tried = ["unshare", "-rn", "sh", "-c", "ip link set lo up"]
    return subprocess.run(tried, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0
