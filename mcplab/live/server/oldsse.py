"""The demo server over the HTTP+SSE transport of 2024-11-05: GET opens the stream, POSTs go to its ``endpoint``."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mcplab.live.server.drive import drive
from mcplab.live.server.http import HttpServer, Refused, Session, Stream
from mcplab.live.server.steps import Emit, Listen


class SseServer(HttpServer):
    """Legacy only, whatever ``serves`` says: the transport is older than everything else."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (await self._route(Request(scope, receive)))(scope, receive, send)

    async def _route(self, request: Request) -> Response:
        try:
            self._admit(request)
            action = self._faulty("", "")
            if action == "silent" or (action == "" and self.fault.name == "silent"):
                await self._until_gone(request)
            if request.url.path == "/sse" and request.method == "GET":
                return self._open()
            if request.url.path == "/messages" and request.method == "POST":
                return await self._message(request)
            if body := await request.body():  # refused, but seen
                self.wire.note("c2s", body)
            raise Refused(405, None, "", allow="GET" if request.url.path == "/sse" else "POST")
        except Refused as refused:
            return Response(str(refused), refused.status, headers=refused.headers, media_type="text/plain")

    def _open(self) -> Response:
        ident = uuid.uuid4().hex
        session = self.sessions[ident] = Session()
        stream = session.streams["out"] = Stream("out", ids=False)
        stream.chunks.append(f"event: endpoint\ndata: /messages?session_id={ident}\n\n".encode())
        session.peer.outlet = lambda message: self._put(stream, message, "")

        async def chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in self._open_ended(stream):
                    yield chunk
            finally:
                self._forget(ident)

        return StreamingResponse(chunks(), media_type="text/event-stream")

    async def _message(self, request: Request) -> Response:
        session = self.sessions.get(request.query_params.get("session_id", ""))
        if session is None:
            raise Refused(404, None, "no such session")
        body = await request.body()
        self.wire.note("c2s", body)
        try:
            message: Any = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused(400, None, f"Parse error: {error}") from None
        if not isinstance(message, dict):
            raise Refused(400, None, "no object")
        if "method" not in message:
            session.questions.answered(message)
        elif "id" not in message:
            self._notified(session, message)
        elif self.fault.incoming(str(message["method"])) != "silent":
            self._run(session, message)
        return Response("Accepted", 202, media_type="text/plain")

    def _run(self, session: Session, message: dict[str, Any]) -> None:
        stream = session.streams["out"]

        def emit(step: Emit) -> None:
            self._put(stream, step.message, str(message["method"]))

        async def hold(listen: Listen) -> None:
            await self.over.wait()

        steps = self.behaviour.request(message, session.peer, modern=False)
        task = asyncio.ensure_future(drive(steps, emit, session.questions, hold))
        key = json.dumps(message["id"])
        session.running[key] = task
        task.add_done_callback(lambda _: session.running.pop(key, None))
