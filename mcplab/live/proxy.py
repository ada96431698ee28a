"""A recording proxy between any client and any server that speak MCP over HTTP.

Streamable HTTP of both eras and the HTTP+SSE transport of 2024-11-05. The proxy's address has the path (and query) of
the server's, so every path that a server names (``endpoint``, ``Location: /mcp/``, OAuth's well-known addresses) leads
through the proxy as well; absolute addresses lead round it, and a warning says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mcplab.live.admission import Admission
from mcplab.live.http_relay import ClientSide, Hub, Upstream
from mcplab.live.recorder import Recorder, warn_on_stderr
from mcplab.live.running import fresh
from mcplab.model import MCPLabError, UsageError


class Proxy:
    """Runs while its block does: ``async with Proxy(...) as proxy`` in the running loop, ``with Proxy(...) as proxy``
    in a thread of its own (a script, a notebook's cell). ``start()`` and ``stop()`` do the same over several cells.

    ``url`` is what to give the client, ``recorder`` what writes the trace (``watch(proxy.recorder)``).
    """

    def __init__(
        self,
        upstream: str,
        path: str | os.PathLike[str],
        *,
        listen: str = "127.0.0.1:0",
        keep_secrets: bool = False,
        redact: Sequence[str] = (),
        allow_host: Sequence[str] = (),
        allow_origin: Sequence[str] = (),
        cafile: str | os.PathLike[str] | None = None,
        header: Mapping[str, Any] | None = None,
        warn: Callable[[str], None] = warn_on_stderr,
    ) -> None:
        """
        Args:
            upstream: the server's http or https address.
            path: the trace (``Recorder`` says what happens to a file that is there already).
            listen: ``ADDRESS:PORT``; port 0 takes a free one.
            keep_secrets, redact: what is masked in the trace (``mcplab.redaction``).
            allow_host, allow_origin: who may come besides this machine's own (``Admission``).
            cafile: certificates to trust besides the system's.
            header: members of the trace's header besides the usual ones (``client``, ``label``, ``mode``).
            warn: gets lines that a user should see.

        Raises:
            UsageError: an address that is none, or a file of certificates that cannot be used.
        """
        self._target = _address(upstream)
        self._to = _upstream(upstream, cafile)
        self._listen = _listen(listen)
        self._admission = Admission((*allow_host, self._listen[0]), allow_origin)
        self._path = path
        self._masks = {"keep_secrets": keep_secrets, "redact": redact}
        self._header = header or {}
        self._warn = warn
        self._server: asyncio.Server | None = None
        self._hub: Hub | None = None
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None
        self.url = ""
        self.recorder: Recorder | None = None

    async def __aenter__(self) -> Proxy:
        loop = asyncio.get_running_loop()
        host, port = self._listen
        try:
            server = await loop.create_server(self._client, host, port, backlog=128, start_serving=False)
        except OSError as error:
            why = error.strerror or str(error)
            raise MCPLabError(f"{host}, port {port}: {why}; --listen 127.0.0.1:0 takes a free port") from error
        bound = server.sockets[0].getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        user, at, _ = self._target.netloc.rpartition("@")
        self.url = urlunsplit(self._target._replace(scheme="http", netloc=f"{user}{at}{name}:{bound[1]}", fragment=""))
        config = {"upstream": urlunsplit(self._target), "proxy": self.url}
        header = {"transport": "streamable-http", "config": config, **self._header}
        self.recorder = Recorder(self._path, header=header, warn=self._warn, **self._masks)
        self._hub = Hub(self.recorder, self._to, self._admission, self._warn)
        self._server = server
        await server.start_serving()
        return self

    def _client(self) -> ClientSide:
        assert self._hub is not None
        return ClientSide(self._hub)

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._hub is not None
        assert self.recorder is not None
        self._server.close()
        await self._hub.stop("the proxy was stopped")
        await self._server.wait_closed()
        self.recorder.close()

    async def serve(self, ready: Callable[[], object]) -> None:
        """Run until SIGINT or SIGTERM, in the main thread of a process; ``ready`` is called when clients may come."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.set)
        async with self:
            ready()
            await stopping.wait()

    # In a thread -----------------------------------------------------------------------------------

    def start(self) -> Proxy:
        """Run in a thread of its own until ``stop``; returns when clients may come.

        Raises ``MCPLabError`` where the address cannot be had.
        """
        if self._thread is not None:
            raise UsageError("this proxy runs already")
        started = threading.Event()
        failure: list[BaseException] = []

        async def main() -> None:
            stopping = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(stopping.set)
            async with self:
                started.set()
                await stopping.wait()

        def body() -> None:
            try:
                fresh(main)
            except BaseException as error:
                failure.append(error)
            finally:
                started.set()

        self._thread = threading.Thread(target=body, name="mcplab-proxy", daemon=True)
        self._thread.start()
        started.wait()
        if failure:
            self._thread.join()
            self._thread = None
            raise failure[0]
        return self

    def stop(self) -> None:
        """End every connection and the thread; the trace is whole. May be called again."""
        if self._thread is None or self._stop is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop has ended by itself
            self._stop()
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Proxy:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _address(url: str) -> Any:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts._replace(path=parts.path or "/")
    except ValueError:
        pass
    raise UsageError(f"{url!r} is no http or https address; --upstream wants one such as http://127.0.0.1:8000/mcp")


def _upstream(url: str, cafile: str | os.PathLike[str] | None) -> Upstream:
    parts = _address(url)
    tls = None
    if parts.scheme == "https":
        tls = ssl.create_default_context()
        tls.set_alpn_protocols(["http/1.1"])
        if cafile is not None:
            try:
                tls.load_verify_locations(Path(cafile))
            except (OSError, ssl.SSLError) as error:
                raise UsageError(f"{cafile}: no certificates to trust ({error.strerror or error})") from error
    authority = parts.netloc.rpartition("@")[2]
    return Upstream(parts.hostname, parts.port or (443 if tls else 80), authority, tls)


def _listen(word: str) -> tuple[str, int]:
    host, _, port = word.rpartition(":")
    if port.isascii() and port.isdigit() and int(port) < 65536:
        return host.strip("[]") or "127.0.0.1", int(port)
    raise UsageError(f"{word!r} is no address to listen on; 127.0.0.1:0 is one (port 0: a free one)")
