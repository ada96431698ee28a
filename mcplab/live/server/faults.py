"""Ways to misbehave, one at a time. Each is something that a real server has been seen to do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from mcplab.model import SpecError

FAULTS: Final[dict[str, tuple[str, str]]] = {
    # name: (transports, what it does)
    "silent": ("stdio http", "takes everything and answers nothing"),
    "exit": ("stdio http", "ends at once with status 3; over HTTP every connection is closed unanswered"),
    "exit-on-request": ("stdio", "ends with status 3 at the first message"),
    "exit-on-discover": ("stdio", "ends with status 3 at server/discover, serves everything else"),
    "exit-after-initialize": ("stdio", "ends with status 3 once it has answered initialize or server/discover"),
    "junk": ("stdio http", "writes lines that are no JSON where answers are due; over HTTP bytes that are no HTTP"),
    "noise": ("stdio http", "writes a line (an event) that is no JSON before each answer, and answers"),
    "page": ("http", "answers everything with 200 and a web page"),
    "error": ("stdio http", "answers every request with a JSON-RPC error"),
    "http-NNN": ("http", "answers everything with that status and no JSON-RPC"),
    "discover-NNN": ("stdio http", "answers server/discover with the JSON-RPC error -NNN, without data"),
    "silent-discover": ("stdio http", "never answers server/discover, serves everything else"),
    "odd-discover": ("stdio http", "answers server/discover with {}"),
    "wrong-version": ("stdio http", "speaks only versions that nobody knows"),
    "no-version": ("stdio http", "leaves its version out"),
    "bad-capabilities": ("stdio http", "declares an array as its capabilities"),
    "no-capabilities": ("stdio http", "leaves its capabilities out"),
    "wrong-id": ("stdio http", "answers with an id that nothing asked for"),
    "string-id": ("stdio http", "answers with the id as a string"),
    "batch": ("stdio http", "wraps every answer in an array"),
    "hang-after-initialize": ("stdio http", "answers initialize or server/discover, then nothing any more"),
    "ignore-sigterm": ("stdio", "serves, but neither the end of its input nor SIGTERM ends it"),
    "cut-stream": ("http", "begins an event stream and closes it without the answer"),
}
"""Fault -> the transports that it can be had on, and what it does. NNN stands for a number."""

_OPENING: Final = ("initialize", "server/discover")
_JUNK: Final = b"Server listening... (this line is no JSON)"


@dataclass
class Faulty:
    """The fault of one server while it runs; ``Faulty("")`` is none."""

    name: str = ""
    number: int = 0
    opened: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        found = re.fullmatch(r"(http|discover)--?([0-9]+)", self.name)
        if found:
            self.name, self.number = f"{found[1]}-NNN", int(found[2])
        if self.name and self.name not in FAULTS:
            raise SpecError(f"no fault {self.name!r}: there are {', '.join(FAULTS)}")

    def incoming(self, method: str) -> str:
        """What to do with a message: ``""`` (serve it), ``silent``, ``exit``, ``error`` or ``status``."""
        match self.name:
            case "silent":
                return "silent"
            case "exit" | "exit-on-request":
                return "exit"
            case "exit-on-discover" if method == "server/discover":
                return "exit"
            case "silent-discover" if method == "server/discover":
                return "silent"
            case "hang-after-initialize" if self.opened:
                return "silent"
            case "exit-after-initialize" if self.opened:
                return "exit"
            case "http-NNN" | "page":
                return "status"
            case "error":
                return "error"
        return ""

    def outgoing(self, message: dict[str, Any], method: str) -> list[bytes]:
        """The texts to write for a message that answers ``method`` (or belongs to it)."""
        answer = "method" not in message
        if answer and method in _OPENING:
            message = self._opening(message, method)
            self.opened = True
        if answer and self.name == "wrong-id":
            message = {**message, "id": 1000}
        if answer and self.name == "string-id":
            message = {**message, "id": str(message.get("id"))}
        text = write(message)
        match self.name:
            case "junk":
                return [_JUNK]
            case "noise":
                return [_JUNK, text]
            case "batch" if answer:
                return [b"[" + text + b"]"]
        return [text]

    def _opening(self, message: dict[str, Any], method: str) -> dict[str, Any]:
        if method == "server/discover" and self.name == "discover-NNN":
            error = {"code": -self.number, "message": "refused on purpose"}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        if "result" not in message:
            return message
        result = dict(message["result"])
        version = "protocolVersion" if method == "initialize" else "supportedVersions"
        match self.name:
            case "odd-discover" if method == "server/discover":
                result = {}
            case "wrong-version":
                result[version] = "1999-01-01" if method == "initialize" else ["2999-01-01"]
            case "no-version":
                result.pop(version)
            case "bad-capabilities":
                result["capabilities"] = ["tools"]
            case "no-capabilities":
                result.pop("capabilities")
        return {**message, "result": result}


def write(message: Any) -> bytes:
    """A message's text as this server writes it."""
    return json.dumps(message, separators=(",", ":")).encode()


def table() -> str:
    """All faults as a text table."""
    width = max(map(len, FAULTS))
    return "\n".join(f"{name:<{width}}  {where:<10}  {what}" for name, (where, what) in FAULTS.items())
