"""The demo server over Streamable HTTP of all revisions: a Starlette application."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mcplab.live.server.behaviour import Behaviour
from mcplab.live.server.config import Config
from mcplab.live.server.drive import Questions, Wire, drive
from mcplab.live.server.faults import Faulty
from mcplab.live.server.steps import Emit, Listen, Peer
from mcplab.live.texts import mirrored
from mcplab.model import ABSENT
from mcplab.spec import META_VERSION, era

_LOCAL = ("127.0.0.1", "localhost", "::1")
_SSE = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Stream:
    """An event stream that is kept, so that a client that lost it can come back for the rest."""

    def __init__(self, name: str, ids: bool) -> None:
        self.chunks: list[bytes] = []
        self._name = name
        self._ids = ids
        self._over = False
        self._cuts = 0
        self._news = asyncio.Event()

    def put(self, text: bytes, *, retry: int | None = None) -> None:
        lines = [f"id: {self._name}.{len(self.chunks)}".encode()] if self._ids else []
        if retry is not None:
            lines.append(f"retry: {retry}".encode())
        lines += [b"event: message", b"data: " + text] if text else [b"data: "]
        self.chunks.append(b"\n".join(lines) + b"\n\n")
        self._news.set()

    def end(self) -> None:
        self._over = True
        self._news.set()

    def cut(self) -> None:
        """Let go of whoever reads now."""
        self._cuts += 1
        self._news.set()

    def read(self, start: int = 0) -> AsyncIterator[bytes]:
        """What there is from a chunk on, and what comes, until the end or the next cut from now."""
        return self._read(start, self._cuts)

    async def _read(self, at: int, cuts: int) -> AsyncIterator[bytes]:
        while True:
            while at < len(self.chunks):
                at += 1
                yield self.chunks[at - 1]
            if self._over or self._cuts != cuts:
                return
            self._news.clear()
            await self._news.wait()


@dataclass
class Session:
    """A legacy session: its peer, its streams and what runs in it."""

    peer: Peer = field(default_factory=Peer)
    questions: Questions = field(default_factory=Questions)
    streams: dict[str, Stream] = field(default_factory=dict)
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)


class Refused(Exception):  # noqa: N818  # an answer, not a fault of ours
    def __init__(self, status: int, code: int | None, message: str, data: Any = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.data, self.headers = status, code, data, headers


class HttpServer:
    """The application; ``over`` ends every stream."""

    def __init__(self, config: Config, wire: Wire) -> None:
        self.config = config
        self.behaviour = Behaviour(config)
        self.wire = wire
        self.fault = Faulty(config.fault)
        self.sessions: dict[str, Session] = {}
        self.over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._names = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        body = await request.body()
        ident: Any = ABSENT
        try:
            self._admit(request)
            if request.method == "POST":
                if body:
                    self.wire.note("c2s", body)
                message = self._parsed(request, body)
                ident = message.get("id", ABSENT) if isinstance(message, dict) else ABSENT
                return await self._post(request, message)
            self._faulty("", ABSENT)
            if request.method == "GET":
                return self._get(request)
            if request.method == "DELETE":
                return self._delete(request)
            raise Refused(405, None, "", allow="POST" if not self.config.legacy else "GET, POST, DELETE")
        except Refused as refused:
            if refused.code is None:
                return Response(str(refused), refused.status, headers=refused.headers, media_type="text/plain")
            error = {"code": refused.code, "message": str(refused)}
            error |= {} if refused.data is None else {"data": refused.data}
            known = isinstance(ident, (str, int)) and not isinstance(ident, bool)
            shown = {"id": ident} if known else ({"id": None} if self.config.legacy else {})
            return self._json({"jsonrpc": "2.0", **shown, "error": error}, "", refused.status, refused.headers)

    # What is let in ------------------------------------------------------------------------------

    def _admit(self, request: Request) -> None:
        """Against DNS rebinding: only this machine's names, and no page of another origin."""
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname
        if host not in _LOCAL:
            raise Refused(403, None, "Host is not this machine")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).hostname not in _LOCAL:
            raise Refused(403, None, "Origin is not allowed")

    def _parsed(self, request: Request, body: bytes) -> Any:
        essence = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if essence != "application/json":
            raise Refused(415, None, "Content-Type must be application/json")
        accept = request.headers.get("accept", "")
        if "*/*" not in accept and not ("application/json" in accept and "text/event-stream" in accept):
            raise Refused(406, None, "Accept must list application/json and text/event-stream")
        try:
            return json.loads(body)
        except RecursionError:
            raise Refused(400, -32700, "Parse error: nested too deeply") from None
        except ValueError as error:
            self._faulty("", ABSENT)
            raise Refused(400, -32700, f"Parse error: {error}") from None

    def _faulty(self, method: str, ident: Any) -> str:
        action = self.fault.incoming(method)
        if action == "status":
            if self.fault.name == "page":
                raise Refused(200, None, "<html><body>It works!</body></html>", **{"content-type": "text/html"})
            raise Refused(self.fault.number, None, f"status {self.fault.number} on purpose")
        if action == "error" and ident is not ABSENT:
            raise Refused(200, -32603, "Internal error, on purpose")
        return action

    # POST ----------------------------------------------------------------------------------------

    async def _post(self, request: Request, message: Any) -> Response:
        method = message.get("method", "") if isinstance(message, dict) else ""
        ident = message.get("id", ABSENT) if isinstance(message, dict) else ABSENT
        if self._faulty(str(method), ident) == "silent":
            await self._until_gone(request)
        version = request.headers.get("mcp-protocol-version", "")
        if self.behaviour.is_modern(message, version):
            return await self._modern(request, message)
        session, fresh = self._session(request, message, version)
        if isinstance(message, list):
            if session.peer.revision != "2025-03-26" or not message:  # basic/index#batching, of that revision alone
                raise Refused(400, -32600, "Invalid Request: a batch")
            messages = [one for one in message if isinstance(one, dict)]
        elif isinstance(message, dict):
            messages = [message]
        else:
            raise Refused(400, -32600, "Invalid Request: no object")
        requests = [one for one in messages if "method" in one and "id" in one]
        for one in messages:
            if "method" not in one and ("result" in one or "error" in one):
                session.questions.answered(one)
            elif "id" not in one and "method" in one:
                self._notified(session, one)
            elif "method" not in one:
                raise Refused(400, -32600, "Invalid Request: no method")
        if not requests:
            return Response(status_code=202)
        if len(requests) > 1 and any(one["method"] == "initialize" for one in requests):
            raise Refused(400, -32600, "Invalid Request: initialize in a batch")
        stream = self._stream(session)
        headers = {"mcp-session-id": fresh} if fresh else {}
        return await self._answer(stream, session, requests, headers, isinstance(message, list))

    async def _modern(self, request: Request, message: Any) -> Response:
        if not isinstance(message, dict) or "method" not in message:
            raise Refused(400, -32600, "Invalid Request: one request or notification a POST")
        if "id" not in message:
            self.behaviour.notification(message, Peer(), modern=True)
            return Response(status_code=202)
        self._mirrors(request, message)
        session = Session()
        response = await self._answer(Stream("", ids=False), session, [message], {}, False, modern=True)
        return response

    def _mirrors(self, request: Request, message: dict[str, Any]) -> None:
        """Headers must say what the body says (2026-07-28 streamable-http#server-validation)."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        due: dict[str, Any] = {
            "mcp-protocol-version": meta.get(META_VERSION, ABSENT) if isinstance(meta, dict) else ABSENT,
            "mcp-method": message["method"],
        }
        named = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(str(message["method"]))
        if named is not None:
            due["mcp-name"] = params.get(named, ABSENT)
        if message["method"] == "tools/call":
            schema = self.behaviour.features.mirrored(params.get("name"))
            due |= dict(mirrored(schema, params.get("arguments")))
        names = f"; this server speaks {', '.join(self.config.supported)}"
        data = {"supported": self.config.supported} if message["method"] == "initialize" else None
        for name, value in due.items():
            found = request.headers.get(name)
            if found is None:
                words = f"Header mismatch: {name} is missing{names if data else ''}"
                raise Refused(400, -32020, words, data)
            if isinstance(value, str) and _decoded(found.strip(" \t")) != value:  # RFC 9110 5.5: not part of the value
                raise Refused(400, -32020, f"Header mismatch: {name} {found!r} is not what the body says", data)

    def _session(self, request: Request, message: Any, version: str) -> tuple[Session, str]:
        """The session of a request, and its id where it begins here."""
        opening = isinstance(message, dict) and message.get("method") == "initialize"
        if version and version not in self.config.legacy and not opening:
            raise Refused(400, -32000, f"Bad Request: unsupported MCP-Protocol-Version {version}")
        if self.config.session_id == "":
            known = version or ("2025-03-26" if "2025-03-26" in self.config.legacy else self.config.legacy[-1])
            peer = Peer() if opening else Peer(revision=known, initialized=True)
            return Session(peer), ""
        if opening:
            ident = self.config.session_id or uuid.uuid4().hex
            self._forget(ident)
            self.sessions[ident] = Session()
            return self.sessions[ident], ident
        ident = request.headers.get("mcp-session-id")
        if ident is None:
            raise Refused(400, -32000, "Bad Request: no Mcp-Session-Id")
        if ident not in self.sessions:
            raise Refused(404, -32001, "Session not found")
        return self.sessions[ident], ""

    def _notified(self, session: Session, message: dict[str, Any]) -> None:
        cancelled = self.behaviour.notification(message, session.peer, modern=False)
        task = None if cancelled is ABSENT else session.running.get(json.dumps(cancelled))
        if task is not None:
            task.cancel()
        self._challenge(session)

    def _challenge(self, session: Session) -> None:
        """Ask on the stream that the client has opened for the server to speak on."""
        outlet = session.peer.outlet
        steps = self.behaviour.challenge(session.peer) if outlet is not None else None
        if steps is None or outlet is None:
            return

        async def never(_: Listen) -> None: ...

        task = asyncio.ensure_future(drive(steps, lambda emit: outlet(emit.message), session.questions, never))
        self._tasks.add(task)
        session.running["challenge"] = task
        task.add_done_callback(lambda done: (self._tasks.discard(done), session.running.pop("challenge", None)))

    def _stream(self, session: Session) -> Stream:
        self._names += 1
        name = f"s{self._names}"
        stream = session.streams[name] = Stream(name, ids=True)
        return stream

    async def _answer(
        self,
        stream: Stream,
        session: Session,
        requests: list[dict[str, Any]],
        headers: dict[str, str],
        batch: bool,
        *,
        modern: bool = False,
    ) -> Response:
        """A JSON response when the first thing said is the answer, else an event stream."""
        first: asyncio.Future[Emit | None] = asyncio.get_running_loop().create_future()
        method = str(requests[0]["method"])

        def begin() -> None:
            if not first.done():
                first.set_result(None)
                if session.peer.revision >= "2025-11-25" and not modern:
                    stream.put(b"", retry=20)  # primes the client for resumption: basic/transports of 2025-11-25

        def emit(step: Emit) -> None:
            if step.final and not first.done() and not batch and self.fault.name not in ("cut-stream", "noise"):
                first.set_result(step)
                return
            begin()
            if step.final and self.fault.name == "cut-stream":
                return
            self._put(stream, step.message, method)

        async def hold(listen: Listen) -> None:
            listen.send = lambda message: self._put(stream, message, method)
            await self.over.wait()

        async def all_of_them() -> None:
            try:
                for one in requests:
                    steps = self.behaviour.request(one, session.peer, modern=modern)
                    await drive(steps, emit, session.questions, hold, stream.cut)
            finally:
                begin()
                stream.end()

        chunks = stream.read()
        task = asyncio.ensure_future(all_of_them())
        self._tasks.add(task)
        key = json.dumps(requests[0]["id"])
        session.running[key] = task
        task.add_done_callback(lambda done: (self._tasks.discard(done), session.running.pop(key, None)))
        try:
            step = await first
        except asyncio.CancelledError:
            task.cancel()
            raise
        if isinstance(step, Emit):
            refused = "error" in step.message and method == "initialize"
            if refused and headers:
                self._forget(headers.pop("mcp-session-id", ""))
            return self._json(step.message, method, step.status, headers)
        gone = task.cancel if modern else None  # a modern client that closes the stream cancels; a legacy one does not
        return StreamingResponse(_guarded(chunks, gone), headers={**_SSE, **headers}, media_type="text/event-stream")

    def _put(self, stream: Stream, message: dict[str, Any], method: str) -> None:
        for text in self.fault.outgoing(message, method):
            self.wire.note("s2c", text)
            stream.put(text)

    def _json(self, message: dict[str, Any], method: str, status: int, headers: dict[str, str]) -> Response:
        text = self.fault.outgoing(message, method)[-1]
        self.wire.note("s2c", text)
        return Response(text, status, headers=headers, media_type="application/json")

    # GET and DELETE ------------------------------------------------------------------------------

    def _get(self, request: Request) -> Response:
        version = request.headers.get("mcp-protocol-version", "")
        streamless = not self.config.legacy or self.config.get == "405" or self.config.session_id == ""
        if streamless or era(version) == "modern":
            raise Refused(405, None, "", allow="POST" if not self.config.legacy else "POST, DELETE")
        if "text/event-stream" not in request.headers.get("accept", ""):
            raise Refused(406, None, "Accept must list text/event-stream")
        session, _ = self._session(request, None, version)
        last = request.headers.get("last-event-id")
        if last is not None:
            name, _, at = last.rpartition(".")
            stream = session.streams.get(name)
            if stream is None or not at.isdigit():
                raise Refused(404, None, "no such event")
            chunks = stream.read(int(at) + 1)
        else:
            stream = self._stream(session)
            session.peer.outlet = lambda message: self._put(stream, message, "")
            chunks = self._open_ended(stream)
            self._challenge(session)
        return StreamingResponse(chunks, headers=_SSE, media_type="text/event-stream")

    async def _open_ended(self, stream: Stream) -> AsyncIterator[bytes]:
        ending = asyncio.ensure_future(self.over.wait())
        ending.add_done_callback(lambda _: stream.end())
        try:
            async for chunk in stream.read():
                yield chunk
        finally:
            ending.cancel()

    def _delete(self, request: Request) -> Response:
        if not self.config.legacy or self.config.session_id == "":
            raise Refused(405, None, "", allow="POST" if not self.config.legacy else "GET, POST")
        session, _ = self._session(request, None, request.headers.get("mcp-protocol-version", ""))
        self._forget(next(ident for ident, known in self.sessions.items() if known is session))
        return Response(status_code=200)

    def _forget(self, ident: str) -> None:
        session = self.sessions.pop(ident, None)
        if session is None:
            return
        if session.peer in self.behaviour.peers:
            self.behaviour.peers.remove(session.peer)
        for task in list(session.running.values()):
            task.cancel()
        for stream in session.streams.values():
            stream.end()

    async def _until_gone(self, request: Request) -> None:
        ending = asyncio.ensure_future(self.over.wait())
        leaving = asyncio.ensure_future(request.receive())
        await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        leaving.cancel()
        raise Refused(503, None, "gone")


async def _guarded(chunks: AsyncIterator[bytes], gone: Callable[[], Any] | None) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    except (asyncio.CancelledError, GeneratorExit):
        if gone is not None:
            gone()
        raise


def _decoded(value: str) -> str:
    if value.startswith("=?base64?") and value.endswith("?="):
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            return base64.b64decode(value[9:-2], validate=True).decode()
    return value
