"""What the demo server offers: tools, resources, prompts. A tool is a generator that does no input or output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcplab.live.server.steps import Changed, Drop, Log, Pause, Progress, Refusal, Tool, Want

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
RESOURCE: Final = "demo://greeting"
TEMPLATE: Final = "demo://numbers/{n}"


def _text(words: str, error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": error}


def _number(arguments: dict[str, Any], name: str, default: float, most: float) -> float:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise Refusal(-32602, f"{name} must be a number from 0 to {most:g}")
    return value


def echo(arguments: dict[str, Any]) -> Tool:
    """Returns its text at once."""
    yield from ()
    return _text(str(arguments.get("text", "")))


def progress(arguments: dict[str, Any]) -> Tool:
    """Reports progress, then answers."""
    steps = int(_number(arguments, "steps", 3, 1000))
    delay = _number(arguments, "delay", 0.01, 60)
    for done in range(1, steps + 1):
        yield Pause(delay)
        yield Progress(done, steps, f"step {done} of {steps}")
    return _text(f"{steps} steps done")


def slow(arguments: dict[str, Any]) -> Tool:
    """Answers after some seconds."""
    seconds = _number(arguments, "seconds", 1, 3600)
    yield Pause(seconds)
    return _text(f"{seconds:g} s later")


def fail(arguments: dict[str, Any]) -> Tool:
    """Fails, and says so in its result."""
    yield from ()
    return _text("this tool always fails", error=True)


def broken(arguments: dict[str, Any]) -> Tool:
    """Answers with a JSON-RPC error."""
    yield from ()
    raise Refusal(-32603, "Internal error: this tool is broken on purpose")


def log(arguments: dict[str, Any]) -> Tool:
    """Sends one log message of every level."""
    for level in LEVELS:
        yield Log(level, f"a message of level {level}")
    return _text("logged")


def drop(arguments: dict[str, Any]) -> Tool:
    """Closes its stream in between: the answer is there for who resumes (legacy Streamable HTTP)."""
    yield Log("info", "the stream closes now")
    yield Drop()
    yield Pause(0.05)
    return _text("resumed")


def region(arguments: dict[str, Any]) -> Tool:
    """Its parameter is mirrored into a header."""
    yield from ()
    return _text(f"region {arguments.get('region')}")


_ROOTS = Want("roots", "roots/list", {}, "roots")
_SAMPLING = Want(
    "sampling",
    "sampling/createMessage",
    {"messages": [{"role": "user", "content": {"type": "text", "text": "Say a word."}}], "maxTokens": 16},
    "sampling",
)
_ELICITATION = Want(
    "elicitation",
    "elicitation/create",
    {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
    "elicitation",
)


def _asks(*wants: Want) -> Callable[[dict[str, Any]], Tool]:
    def ask(arguments: dict[str, Any]) -> Tool:
        lines = []
        for want in wants:
            answer = yield want
            lines.append(f"{want.method}: {answer}")
        return _text("\n".join(lines))

    return ask


class Features:
    """The lists as they stand; the ``change-...`` tools alter them."""

    def __init__(self) -> None:
        self.extra = {"tools": False, "prompts": False, "resources": False}
        self.greeting = 1
        text = {"type": "object", "properties": {"text": {"type": "string"}}}
        none: dict[str, Any] = {"type": "object", "properties": {}}
        steps = {"type": "object", "properties": {"steps": {"type": "integer"}, "delay": {"type": "number"}}}
        seconds = {"type": "object", "properties": {"seconds": {"type": "number"}}}
        header = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        self._tools: dict[str, tuple[Callable[[dict[str, Any]], Tool], str, dict[str, Any]]] = {
            "echo": (echo, "Returns its text at once", text),
            "progress": (progress, "Reports progress, then answers", steps),
            "slow": (slow, "Answers after some seconds", seconds),
            "fail": (fail, "Fails, and says so in its result", none),
            "broken": (broken, "Answers with a JSON-RPC error", none),
            "log": (log, "Sends a log message of every level", none),
            "drop": (drop, "Closes its stream in between; resume for the answer", none),
            "region": (region, "Its parameter is mirrored into a header", header),
            "ask-roots": (_asks(_ROOTS), "Asks the client for its roots", none),
            "ask-sampling": (_asks(_SAMPLING), "Asks the client for a completion", none),
            "ask-elicitation": (_asks(_ELICITATION), "Asks the user for a name", none),
            "ask-all": (_asks(_ROOTS, _SAMPLING, _ELICITATION), "Asks for all three, one after the other", none),
            "change-tools": (self._changes("tools"), "Adds or removes a tool", none),
            "change-prompts": (self._changes("prompts"), "Adds or removes a prompt", none),
            "change-resources": (self._changes("resources"), "Adds or removes a resource", none),
            "touch-resource": (self._touch, "Changes the greeting", none),
        }

    def _changes(self, what: str) -> Callable[[dict[str, Any]], Tool]:
        def change(arguments: dict[str, Any]) -> Tool:
            self.extra[what] = not self.extra[what]
            yield Changed(what)
            return _text(f"{what} changed")

        return change

    def _touch(self, arguments: dict[str, Any]) -> Tool:
        self.greeting += 1
        yield Changed("resource", RESOURCE)
        return _text("the greeting changed")

    def call(self, name: Any, arguments: dict[str, Any]) -> Tool:
        if name == "extra" and self.extra["tools"]:
            return echo({"text": "extra"})
        if not isinstance(name, str) or name not in self._tools:
            raise Refusal(-32602, f"Unknown tool: {name}")
        return self._tools[name][0](arguments)

    def mirrored(self, name: Any) -> dict[str, Any] | None:
        """A tool's input schema, for the headers that its parameters are mirrored into."""
        found = self._tools.get(name) if isinstance(name, str) else None
        return found[2] if found else None

    def tools(self, revision: str) -> list[dict[str, Any]]:
        listed = [
            {"name": name, "description": words, "inputSchema": schema}
            for name, (_, words, schema) in self._tools.items()
        ]
        if self.extra["tools"]:
            listed.append({"name": "extra", "description": "Comes and goes", "inputSchema": {"type": "object"}})
        if revision >= "2025-06-18":  # the first revision in which a tool has a title
            listed[0]["title"] = "Echo"
        return listed

    def prompts(self) -> list[dict[str, Any]]:
        greet = {
            "name": "greet",
            "description": "A greeting",
            "arguments": [{"name": "who", "description": "Whom to greet", "required": True}],
        }
        return [greet, {"name": "extra", "description": "Comes and goes"}] if self.extra["prompts"] else [greet]

    def prompt(self, name: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        if name not in [prompt["name"] for prompt in self.prompts()]:
            raise Refusal(-32602, f"Unknown prompt: {name}")
        if name == "greet" and not isinstance(arguments.get("who"), str):
            raise Refusal(-32602, "Missing argument: who")
        words = f"Greet {arguments['who']}." if name == "greet" else "Come and go."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}

    def resources(self) -> list[dict[str, Any]]:
        listed = [{"uri": RESOURCE, "name": "greeting", "mimeType": "text/plain"}]
        return [*listed, {"uri": "demo://extra", "name": "extra"}] if self.extra["resources"] else listed

    def read(self, uri: Any) -> dict[str, Any] | None:
        if uri == RESOURCE:
            words = f"hello, number {self.greeting}"
        elif uri == "demo://extra" and self.extra["resources"]:
            words = "extra"
        elif isinstance(uri, str) and uri.startswith("demo://numbers/") and uri.rpartition("/")[2].isdigit():
            words = uri.rpartition("/")[2]
        else:
            return None
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": words}]}
