"""The client that the suite starts: ``handshake``, then whatever the server offers is listed and used once.

``python -m conformance.client TRACE URL``. The suite tells the revision and the scenario by environment variables.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from mcplab.live.handshakes import handshake
from mcplab.model import Event, HandshakeError
from mcplab.rulebook.checks import mcp_param
from mcplab.spec import era

DECLARED = {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}
LISTS = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}


def made(schema: Any) -> Any:
    """A value that fits a simple schema: its default, its first choice, or something of its type."""
    if not isinstance(schema, dict):
        return "x"
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object" | None if isinstance(schema.get("properties"), dict):
            return {name: made(below) for name, below in schema["properties"].items()}
        case "object":
            return {}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return "x"


def usable(schema: Any) -> bool:
    """Are the ``x-mcp-header`` annotations of an input schema valid? A tool with others is as if it were not there."""
    marks = list(mcp_param._marks(schema))
    return not any(isinstance(find(marks), str) for find in mcp_param._FAULTS.values())


def accepted(params: Any) -> dict[str, Any]:
    """Accepts an elicitation, with the defaults of its form."""
    return {"action": "accept", "content": made((params or {}).get("requestedSchema", {}))}


class Talk:
    """What to ask next; it follows the recording, as the answers are there when the next step is due."""

    def __init__(self, modern: bool, context: dict[str, Any]) -> None:
        self.modern = modern
        self.context = context
        self._results: list[dict[str, Any]] = []

    def watch(self, event: Event) -> None:
        """Takes in each event as it is recorded."""
        if event.kind == "message" and event.dir == "s2c":
            message = json.loads(event.text)
            if isinstance(message, dict) and isinstance(message.get("result"), dict):
                self._results.append(message["result"])

    def _last(self, key: str) -> list[dict[str, Any]]:
        found = self._results[-1].get(key) if self._results else None
        return found if isinstance(found, list) else []

    def steps(self) -> Iterator[tuple[str, Any]]:
        """Lists what is declared and uses each item; a context of the suite says which calls it wants."""
        declared = next((one["capabilities"] for one in self._results if "capabilities" in one), {})
        for feature, method in LISTS.items():
            if feature == "tools" or feature in declared:
                yield method, None
                yield from getattr(self, f"_{feature}")(self._last(feature))

    def _tools(self, tools: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        if "toolCalls" in self.context:
            for call in self.context["toolCalls"]:
                yield "tools/call", {"name": call["name"], "arguments": call["arguments"]}
            return
        for tool in tools:
            schema = tool.get("inputSchema")
            if self.modern and not usable(schema):  # 2026-07-28 server/tools#x-mcp-header
                continue
            arguments = made(schema) if isinstance(schema, dict) and schema.get("properties") else {}
            if tool.get("name") == "json_schema_echo":
                arguments = {"schema": tools[0]["inputSchema"]}
            yield "tools/call", {"name": tool.get("name"), "arguments": arguments}

    def _prompts(self, prompts: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        for prompt in prompts:
            given = {one["name"]: "x" for one in prompt.get("arguments", [])}
            yield "prompts/get", {"name": prompt["name"], **({"arguments": given} if given else {})}

    def _resources(self, resources: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        for resource in resources:
            yield "resources/read", {"uri": resource["uri"]}


def main(path: str, url: str) -> int:
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    modern = era(version) == "modern"
    talk = Talk(modern, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")))
    try:
        done = handshake(
            url,
            mode="modern" if modern else version,
            declare=DECLARED,
            then=talk.steps(),
            answers={"elicitation/create": accepted},
            watcher=talk.watch,
            listen=not modern,
            timeout=20,
        )
    except HandshakeError as error:
        sys.stderr.write(f"{error}\n")
        if error.trace is not None:
            error.trace.save(path)
        return 1
    done.trace.save(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
