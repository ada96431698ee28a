"""A server to point a client at that records what the client does: the demo server behind the tap or the proxy."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from mcplab.live.running import fresh
from mcplab.live.server.config import Config
from mcplab.live.server.demo import arguments, serving
from mcplab.live.standing import header
from mcplab.model import UsageError

if TYPE_CHECKING:
    from mcplab.live.proxy import Proxy
    from mcplab.live.recorder import Recorder
    from mcplab.traces import Trace

NAME: Final = "mcplab-probe"
"""What the probe is called in a client's configuration."""


class Probe:
    """A probe to point a client at: ``with Probe("mine.jsonl") as probe``; ``start`` and ``stop`` span cells.

    Over HTTP it serves while it runs. Over stdio the client starts it, so there is nothing to start and to stop: each
    start by the client leaves a file (``paths``).

    It is for one run of one client: over HTTP all that come with equal ``clientInfo`` are one instance of its trace.

    ``configuration`` is the entry for a client's JSON configuration, ``url`` or ``command`` the same for one that wants
    those; ``path`` is the trace, so ``watch(probe)`` shows it growing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        transport: Literal["stdio", "http"] = "http",
        listen: str = "127.0.0.1:0",
        config: Config | None = None,
        redact: Sequence[str] = (),
        keep_secrets: bool = False,
        **options: Any,
    ) -> None:
        """
        Args:
            path: the trace; where that exists already, the next free of ``name-2.jsonl``, ``name-3.jsonl``, ...
            listen: over HTTP, where clients come to; port 0 takes a free one.
            redact, keep_secrets: what is masked in the trace (``mcplab.redaction``).
            config: what the server is; or, for short:
            options: of the server: ``serves``, ``versions``, ``capabilities``, ``challenge`` and the others of
                ``server.config.Config``.

        Raises:
            UsageError: no such transport.
            SpecError: no revision is left to serve.
        """
        if transport not in ("stdio", "http"):
            raise UsageError(f"transport={transport!r}: a probe speaks stdio or http")
        options["versions"] = tuple(options.get("versions", ()))
        options.setdefault("name", NAME)
        self.config = config or Config(**options)
        self.transport = transport
        self.url: str = ""
        self._listen = listen
        self._masks: dict[str, Any] = {"redact": tuple(redact), "keep_secrets": keep_secrets}
        self._path = Path(path).absolute()
        self._before = set(_family(self._path))
        self._proxy: Proxy | None = None
        self._running = contextlib.ExitStack()

    @property
    def command(self) -> list[str]:
        """What a client runs to have this probe on its stdio."""
        words = [sys.executable, "-m", "mcplab", "probe", "--stdio", "-o", str(self._path)]
        for pattern in self._masks["redact"]:
            words += ["--redact", pattern]
        return words + ["--keep-secrets"] * self._masks["keep_secrets"] + options_of(self.config)

    @property
    def configuration(self) -> dict[str, Any]:
        """The entry for a client's ``mcpServers``; over HTTP once it runs.

        ``env`` stands there where this process has a ``PYTHONPATH``: many clients pass none on.
        """
        if self.transport == "http":
            return {"mcpServers": {self.config.name: {"type": "http", "url": self._proxied().url}}}
        command, *words = self.command
        path = os.environ.get("PYTHONPATH")
        env = {"env": {"PYTHONPATH": path}} if path else {}
        return {"mcpServers": {self.config.name: {"command": command, "args": words, **env}}}

    @property
    def recorder(self) -> Recorder:
        """What writes the trace, over HTTP; over stdio it lives in the process that the client starts."""
        recorder = self._proxied().recorder
        assert recorder is not None
        return recorder

    @property
    def path(self) -> Path:
        """The trace; over stdio that of the first start, which is not there before."""
        if self._proxy is not None and self._proxy.recorder is not None:
            return self._proxy.recorder.path
        return next(iter(self.paths), self._next())

    @property
    def paths(self) -> list[Path]:
        """The files that this probe has left so far: over stdio one for each start."""
        if self._proxy is not None:
            return [self.path]
        return [path for path in _family(self._path) if path not in self._before]

    def trace(self, **header: Any) -> Trace:
        """What was recorded so far, of all starts; ``header`` joins its header.

        Raises:
            TraceError: no client came.
        """
        from mcplab.live.merging import merged  # pandas: a client waits for its server, which needs none
        from mcplab.traces import read_trace

        return merged([read_trace(path) for path in self.paths], **header)

    def _next(self) -> Path:
        number, path = 1, self._path
        while path in self._before:
            number += 1
            path = self._path.with_name(f"{self._path.stem}-{number}{self._path.suffix}")
        return path

    def _proxied(self) -> Proxy:
        if self._proxy is None or self._proxy.recorder is None:
            words = "is started by its client" if self.transport == "stdio" else "is not started: .start(), or with"
            raise UsageError(f"this probe {words}")
        return self._proxy

    def start(self) -> Probe:
        """Serve over HTTP until ``stop``; over stdio nothing.

        Raises:
            MCPLabError: the address cannot be had.
        """
        if self.transport == "http" and self._proxy is None:
            with contextlib.ExitStack() as running:
                self._proxy = running.enter_context(self._behind(running.enter_context(serving(self.config)).url))
                self.url = str(self._proxy.url)
                self._running = running.pop_all()
        return self

    def serve(self, ready: Callable[[], object]) -> None:
        """Serve over HTTP until SIGINT or SIGTERM, in the main thread of a process; ``ready``: clients may come."""

        def listening() -> None:
            self.url = str(self._proxied().url)
            ready()

        with serving(self.config) as served:
            self._proxy = proxy = self._behind(served.url)
            fresh(lambda: proxy.serve(listening))

    def _behind(self, url: str) -> Proxy:
        from mcplab.live.proxy import Proxy

        return Proxy(url, self._path, listen=self._listen, header=header(arguments(self.config)), **self._masks)

    def stop(self) -> None:
        """End the service; the trace is whole. May be called again."""
        self._running.close()

    def __enter__(self) -> Probe:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def options_of(config: Config) -> list[str]:
    """A probe's configuration as options of ``mcplab probe``."""
    words = arguments(config)
    return ["--server-capabilities" if word == "--capabilities" else word for word in words]


def _family(path: Path) -> list[Path]:
    """The files that a recorder told to write to ``path`` has made, in the order of their numbers."""
    found = {}
    for one in path.parent.glob(f"{escape(path.stem)}*{escape(path.suffix)}") if path.parent.is_dir() else ():
        rest = one.name.removeprefix(path.stem).removesuffix(path.suffix)
        if not rest or (rest[0] == "-" and rest[1:].isascii() and rest[1:].isdigit()):
            found[int(rest[1:] or 1)] = one
    return [found[number] for number in sorted(found)]
