"""Two-letter tokens: what each party declared, as transport displays abbreviate it.

Everything comes from messages, save what only the client's configuration knows (whether it passes the server's
instructions on, how it asks and samples, whether it gives another name): that is shown where the header's ``config``
says so, in the words of fast-agent's settings, and left out elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from mcplab.told import safe

SKILLS: Final = 'extensions["io.modelcontextprotocol/skills"]'
"""SEP-2640, a draft."""
APPS: Final = 'extensions["io.modelcontextprotocol/ui"]'
"""MCP Apps (SEP-1865)."""

_SERVER: Final = (
    ("To", "tools", "tools.listChanged"),
    ("Pr", "prompts", "prompts.listChanged"),
    ("Re", "resources", "resources.listChanged"),
    ("Rs", "resources.subscribe", ""),
    ("Lo", "logging", ""),
    ("Co", "completions", ""),
    ("Ex", "experimental", ""),
)
_CLIENT: Final = (
    ("Ro", "roots", "roots.listChanged"),
    ("El", "elicitation", ""),
    ("Sa", "sampling", ""),
)
MEANS: Final = {
    "To": "tools", "Pr": "prompts", "Re": "resources", "Rs": "resource subscriptions", "Lo": "logging",
    "Co": "completions", "Ex": "experimental", "In": "server instructions", "Sk": "skills (SEP-2640)",
    "Ui": "MCP Apps or OpenAI Apps SDK", "Ro": "roots", "El": "elicitation", "Sa": "sampling",
    "Sp": "client gives another name",
}  # fmt: skip


class Token(NamedTuple):
    """``state``: a word of ``look.STATES``. ``marked``: with list changes. ``detail``: a few words more."""

    name: str
    party: str
    state: str
    marked: bool = False
    detail: str = ""

    @property
    def words(self) -> str:
        """``tools: object, announces list changes``."""
        more = ", announces list changes" if self.marked else ""
        return f"{MEANS[self.name]}: {self.state}{more}{f' ({self.detail})' if self.detail else ''}"


def settings(config: Any) -> dict[str, Any]:
    """The client's settings that a header's ``config`` quotes; the server's own entry goes before the general ones."""
    found = dict(config) if isinstance(config, Mapping) else {}
    entry = found.get("server_entry")
    return {**found, **entry} if isinstance(entry, Mapping) else found


def tokens(trace: Any, instance: str, instructions: str | None) -> list[Token]:
    """The tokens of one instance, the server's first."""
    rows = trace.declarations[["instance", "party", "path", "state"]]  # few columns: rows of many are slow to pick
    rows = rows[rows["instance"] == instance]
    server, client = (_Declared(rows[rows["party"] == party]) for party in ("server", "client"))
    config = settings(trace.header.get("config") if hasattr(trace, "header") else None)
    found = [
        Token(name, "server", server.state(path), server.state(change) == "true" if change else False)
        for name, path, change in _SERVER
    ]
    given = "value" if instructions is not None else "absent" if server.known else "unknown"
    found.append(Token("In", "server", given, detail=_passed_on(config) if given == "value" else ""))
    found.append(Token("Sk", "server", server.state(SKILLS)))
    found.append(_apps(trace, instance, server.state(APPS)))
    modes = {"El": _mode(config, "elicitation"), "Sa": _mode(config, "sampling")}
    for name, path, change in _CLIENT:
        parts = [*client.members(path)] if name != "Ro" else []
        parts += [f"mode {modes[name]}"] if modes.get(name) else []
        marked = client.state(change) == "true" if change else False
        found.append(Token(name, "client", client.state(path), marked, ", ".join(parts)))
    if "implementation" in config:
        found.append(Token("Sp", "client", "absent" if config["implementation"] is None else "true"))
    return found


class _Declared:
    """All declarations of one party: path -> state, ``varies`` where messages differ."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.known = int((rows["path"] == "$").sum())
        self._states: dict[str, dict[str, int]] = {}
        for (path, state), n in rows.groupby(["path", "state"], sort=False, observed=True).size().items():  # type: ignore
            self._states.setdefault(path, {})[state] = int(n)

    def state(self, path: str) -> str:
        if not self.known:
            return "unknown"
        counts = dict(self._states.get(path, {}))
        missing = self.known - sum(counts.values())
        if missing:
            counts["absent"] = counts.get("absent", 0) + missing
        return next(iter(counts)) if len(counts) == 1 else "varies"

    def members(self, path: str) -> list[str]:
        """Names of the members declared right below a path, other than false and null ones."""
        below = [name for name in self._states if name.startswith(f"{path}.")]
        return [
            safe(name[len(path) + 1 :])[:40]
            for name in below
            if "." not in name[len(path) + 1 :] and not {"false", "null"} & set(self._states[name])
        ]


def _passed_on(config: Mapping[str, Any]) -> str:
    """Does the client pass the server's instructions on? Only where its configuration says."""
    told = config.get("include_instructions")
    return {True: "passed on", False: "not passed on"}.get(told, "") if isinstance(told, bool) else ""


def _mode(config: Mapping[str, Any], feature: str) -> str:
    setting = config.get(feature)
    mode = setting.get("mode") if isinstance(setting, Mapping) else config.get(f"{feature}_mode")
    return safe(mode)[:40] if isinstance(mode, str) else ""


# Ui ------------------------------------------------------------------------------------------------


def _apps(trace: Any, instance: str, declared: str) -> Token:
    """Declared as an extension, else seen on a tool or resource that the server listed."""
    kinds = list(dict.fromkeys(_seen(trace, instance)))
    if declared in ("absent", "unknown") and kinds:
        return Token("Ui", "server", "true", detail=f"not declared, seen: {', '.join(kinds)}")
    return Token("Ui", "server", declared, detail=f"seen: {', '.join(kinds)}" if kinds else "")


def _seen(trace: Any, instance: str) -> Iterator[str]:
    rows = trace.messages[["instance", "kind", "method", "message"]]
    listed = rows["method"].isin(["tools/list", "resources/list", "resources/templates/list"])
    rows = rows[listed & (rows["kind"] == "response") & (rows["instance"] == instance)]
    for text in rows["message"]:
        if not any(hint in text for hint in ("openai/", "ui/resourceUri", '"ui"', "skybridge", "mcp-app")):
            continue
        try:
            result = json.loads(text)["result"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        for item in _items(result):
            meta = item.get("_meta")
            meta = meta if isinstance(meta, dict) else {}
            mime = item.get("mimeType")
            ui = meta.get("ui")
            if (
                "ui/resourceUri" in meta
                or (isinstance(ui, dict) and "resourceUri" in ui)
                or mime == "text/html;profile=mcp-app"
            ):
                yield "MCP Apps"
            if "openai/outputTemplate" in meta or mime == "text/html+skybridge":
                yield "OpenAI Apps SDK"


def _items(result: Any) -> Iterator[dict[str, Any]]:
    for name in ("tools", "resources", "resourceTemplates"):
        items = result.get(name) if isinstance(result, dict) else None
        if isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))
