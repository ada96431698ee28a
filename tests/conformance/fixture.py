"""The demo server with the tools, prompts and resources that the conformance suite asks for by name.

How it speaks the protocol is the demo server's: only what is offered is added here (and several questions at once,
which no tool of the demo server asks). Everything that passes is recorded as a trace with its HTTP facts.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from starlette.types import Message, Receive, Scope, Send

from mcplab.live.capture import Capture
from mcplab.live.exchanges import Exchange
from mcplab.live.framing import Head
from mcplab.live.server.behaviour import Behaviour
from mcplab.live.server.config import Config
from mcplab.live.server.demo import serving
from mcplab.live.server.drive import Wire
from mcplab.live.server.features import Features
from mcplab.live.server.http import HttpServer
from mcplab.live.server.steps import Drop, Log, Pause, Progress, Step, Tool, Want
from mcplab.traces import Trace


def _png() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixel + chunk(b"IEND", b"")).decode()


def _wav() -> str:
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + form + b"data" + struct.pack("<I", 1) + b"\x80\0"
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


IMAGE: Final = {"type": "image", "data": _png(), "mimeType": "image/png"}
AUDIO: Final = {"type": "audio", "data": _wav(), "mimeType": "audio/wav"}
NONE: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _resource(uri: str, text: str, kind: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def _form(message: str, properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def _sample(words: str, tokens: int = 100) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": _text(words)}], "maxTokens": tokens}


def _elicit(key: str, params: dict[str, Any]) -> Want:
    return Want(key, "elicitation/create", params, "elicitation")


NAME: Final = {"name": {"type": "string"}}
USER_NAME: Final = _elicit("user_name", _form("What is your name?", NAME, ["name"]))
CAPITAL: Final = Want(
    "capital_question", "sampling/createMessage", _sample("What is the capital of France?"), "sampling"
)
GREETING: Final = Want("greeting", "sampling/createMessage", _sample("Generate a greeting", 50), "sampling")
ROOTS: Final = Want("client_roots", "roots/list", {}, "roots")
CONFIRM: Final = _elicit("confirm", _form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"]))
STEP_1: Final = _elicit("step1", _form("Step 1: What is your name?", NAME, ["name"]))
STEP_2: Final = _elicit(
    "step2", _form("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ["color"])
)
CONTEXT: Final = _elicit("user_context", _form("What context should the prompt use?", {"context": {"type": "string"}}))
SEVERAL: Final = {"test_input_required_result_multiple_inputs": (USER_NAME, GREETING, ROOTS)}
ASKING_PROMPT: Final = "test_input_required_result_prompt"

DEFAULTS: Final = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


ENUMS: Final = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": _titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")),
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": _titled(("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice"))
        },
    },
}
RICH: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

CONTENTS: Final[dict[str, list[dict[str, Any]]]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "This is an embedded resource content.", "text/plain")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        IMAGE,
        _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "json_schema_2020_12_tool": [_text("taken in")],
}
ASKING: Final[dict[str, tuple[Want, ...]]] = {
    "test_elicitation_sep1034_defaults": (_elicit("defaults", _form("Please fill in", DEFAULTS)),),
    "test_elicitation_sep1330_enums": (_elicit("enums", _form("Please choose", ENUMS)),),
    "test_missing_capability": (CAPITAL,),
    "test_input_required_result_elicitation": (USER_NAME,),
    "test_input_required_result_sampling": (CAPITAL,),
    "test_input_required_result_list_roots": (ROOTS,),
    "test_input_required_result_request_state": (CONFIRM,),
    "test_input_required_result_multi_round": (STEP_1, STEP_2),
    "test_input_required_result_tampered_state": (CONFIRM,),
    **SEVERAL,
}
"""Tools that ask, one question after the other (those of ``SEVERAL`` at once), and say what they were told."""


def _answer(*content: dict[str, Any], error: bool = False) -> dict[str, Any]:
    return {"content": list(content), "isError": error}


class SuiteFeatures(Features):
    """What the suite wants beside what the demo server has. ``declared``, ``stated``: of the call that comes next."""

    def __init__(self) -> None:
        super().__init__()
        self.declared: dict[str, Any] = {}
        self.stated = False
        name = {"type": "object", "properties": {"message": {"type": "string"}, "prompt": {"type": "string"}}}
        for tool in [*CONTENTS, *ASKING]:
            schema = RICH if tool == "json_schema_2020_12_tool" else NONE
            self._tools[tool] = (self._asks(tool) if tool in ASKING else self._says(tool), f"Suite: {tool}", schema)
        for tool, run in {
            "test_tool_with_logging": self._logs,
            "test_logging_tool": self._logs,
            "test_tool_with_progress": self._progresses,
            "test_error_handling": self._fails,
            "test_sampling": self._samples,
            "test_elicitation": self._elicits,
            "test_streaming_elicitation": self._streams,
            "test_reconnection": self._drops,
            "test_input_required_result_capabilities": self._asks_who_can,
            "test_trigger_tool_change": self._changes("tools"),
            "test_trigger_prompt_change": self._changes("prompts"),
        }.items():
            self._tools[tool] = (run, f"Suite: {tool}", name)

    def call(self, name: Any, arguments: dict[str, Any]) -> Tool:
        return self._prompts() if name == ASKING_PROMPT else super().call(name, arguments)

    def _says(self, tool: str) -> Any:
        def say(arguments: dict[str, Any]) -> Tool:
            yield from ()
            return _answer(*CONTENTS[tool])

        return say

    def _asks(self, tool: str) -> Any:
        def ask(arguments: dict[str, Any]) -> Tool:
            told = []
            for want in ASKING[tool]:
                told.append((yield want))
            state = "state-ok: " if self.stated else ""
            return _answer(_text(f"{state}{json.dumps(told)}"))

        return ask

    def _asks_who_can(self, arguments: dict[str, Any]) -> Tool:
        told = []
        for want in (USER_NAME, CAPITAL):
            if want.needs in self.declared:
                told.append((yield want))
        return _answer(_text(json.dumps(told)))

    def _logs(self, arguments: dict[str, Any]) -> Tool:
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            yield Log("info", words)
            yield Pause(0.05)
        return _answer(_text("logged"))

    def _progresses(self, arguments: dict[str, Any]) -> Tool:
        for done in (0, 50, 100):
            yield Progress(done, 100, f"{done} of 100")
            yield Pause(0.05)
        return _answer(_text("done"))

    def _fails(self, arguments: dict[str, Any]) -> Tool:
        yield from ()
        return _answer(_text("This tool intentionally returns an error for testing"), error=True)

    def _samples(self, arguments: dict[str, Any]) -> Tool:
        told = yield Want("prompt", "sampling/createMessage", _sample(str(arguments.get("prompt"))), "sampling")
        return _answer(_text(f"LLM response: {json.dumps(told)}"))

    def _elicits(self, arguments: dict[str, Any]) -> Tool:
        asked = {name: {"type": "string", "description": f"User's {name}"} for name in ("username", "email")}
        told = yield _elicit("user", _form(str(arguments.get("message")), asked, ["username", "email"]))
        return _answer(_text(f"User response: {json.dumps(told)}"))

    def _streams(self, arguments: dict[str, Any]) -> Tool:
        yield Progress(1, 2, "before the question")
        told = yield USER_NAME
        return _answer(_text(json.dumps(told)))

    def _drops(self, arguments: dict[str, Any]) -> Tool:
        yield Pause(0.05)
        yield Drop()
        yield Pause(0.05)
        return _answer(_text("Reconnection test completed"))

    def _prompts(self) -> Tool:
        told = yield CONTEXT
        return {"messages": [{"role": "user", "content": _text(json.dumps(told))}]}

    def prompts(self) -> list[dict[str, Any]]:
        def args(*names: str) -> list[dict[str, Any]]:
            return [{"name": name, "description": name, "required": True} for name in names]

        added = {
            "test_simple_prompt": [],
            "test_prompt_with_arguments": args("arg1", "arg2"),
            "test_prompt_with_embedded_resource": args("resourceUri"),
            "test_prompt_with_image": [],
            ASKING_PROMPT: [],
        }
        ours = [{"name": name, "description": f"Suite: {name}", "arguments": words} for name, words in added.items()]
        return [*super().prompts(), *ours]

    def prompt(self, name: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "test_simple_prompt":
                said = [_text("This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                words = f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
                said = [_text(words)]
            case "test_prompt_with_embedded_resource":
                uri = str(arguments.get("resourceUri"))
                said = [
                    _resource(uri, "Embedded resource content for testing.", "text/plain"),
                    _text("Please process it."),
                ]
            case "test_prompt_with_image":
                said = [IMAGE, _text("Please analyze the image above.")]
            case _:
                return super().prompt(name, arguments)
        return {"messages": [{"role": "user", "content": content} for content in said]}

    def resources(self) -> list[dict[str, Any]]:
        kinds = {"static-text": "text/plain", "static-binary": "image/png", "watched-resource": "text/plain"}
        ours = [
            {"uri": f"test://{name}", "name": name, "description": f"Suite: {name}", "mimeType": kind}
            for name, kind in kinds.items()
        ]
        return [*super().resources(), *ours]

    def read(self, uri: Any) -> dict[str, Any] | None:
        match uri:
            case "test://static-text":
                found = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
            case "test://static-binary":
                found = {"mimeType": "image/png", "blob": IMAGE["data"]}
            case "test://watched-resource":
                found = {"mimeType": "text/plain", "text": "watched"}
            case "test://template/123/data":
                text = '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'
                found = {"mimeType": "application/json", "text": text}
            case _:
                return super().read(uri)
        return {"contents": [{"uri": uri, **found}]}


class SuiteBehaviour(Behaviour):
    """The demo server's behaviour over ``SuiteFeatures``."""

    features: SuiteFeatures

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.features = SuiteFeatures()

    def _modern(self, message: dict[str, Any]) -> Iterator[Step]:
        params = message.get("params")
        asking = isinstance(params, dict) and params.get("name") == ASKING_PROMPT
        return super()._modern({**message, "method": "tools/call"} if asking else message)

    def _tool(
        self, params: Any, meta: Any, revision: str, declared: dict[str, Any], log_level: str | None, rounds: Any
    ) -> Iterator[Step]:
        self.features.declared, self.features.stated = declared, rounds is not None and "requestState" in rounds
        return super()._tool(params, meta, revision, declared, log_level, rounds)

    def _input_required(self, params: dict[str, Any], given: dict[str, Any], want: Want) -> dict[str, Any]:
        result = super()._input_required(params, given, want)
        for more in SEVERAL.get(params["name"], ()):
            if more.key not in given:
                request = {"method": more.method, **({"params": more.params} if more.params else {})}
                result["inputRequests"].setdefault(more.key, request)
        return result


class Recorded:
    """The demo server over HTTP with ``SuiteBehaviour``, and a recording of all that passes; a peer is a TCP connection."""

    def __init__(self, config: Config, wire: Wire) -> None:
        self.capture = Capture()
        self._app = HttpServer(config, wire)
        self._app.behaviour = SuiteBehaviour(config)
        self.over = self._app.over
        self._peers: dict[Any, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        conn = self._peers.get(scope["client"])
        if conn is None:
            conn = self._peers[scope["client"]] = self.capture.conn()
            self.capture.add("open", conn)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        head = _head(b"%s %s HTTP/1.1" % (scope["method"].encode(), target), scope["headers"], request=True)
        exchange = Exchange(partial(self._add, conn), self.capture.exchange(), head, lambda _: None, encoded=True)

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not exchange.request_over:
                exchange.request_body(message.get("body", b""))
                if not message.get("more_body", False):
                    exchange.request_end()
            return message

        async def said(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.answered(
                    _head(b"HTTP/1.1 %d -" % message["status"], message.get("headers", []), request=False)
                )
            elif message["type"] == "http.response.body":
                if message.get("body"):
                    exchange.body(message["body"])
                if not message.get("more_body", False):
                    exchange.end()
            await send(message)

        try:
            await self._app(scope, heard, said)
        finally:
            exchange.cut("the client closed the stream", by="client")

    def _add(self, conn: str, kind: str, **fields: Any) -> None:
        self.capture.add(kind, conn, **fields)


def _head(start: bytes, headers: Any, *, request: bool) -> Head:
    lines = [start, *(name + b": " + value for name, value in headers), b"", b""]
    return Head(b"\r\n".join(lines), request)


@contextlib.contextmanager
def fixture(**options: Any) -> Iterator[tuple[str, Callable[[str], Trace]]]:
    """The server on a free port of this machine: its address, and what gives the trace so far, by a name."""
    with serving(name="mcplab-conformance", make=Recorded, **options) as served:
        yield served.url, lambda name: Trace(served.app.capture.record("streamable-http", label=name), name)
