"""Example scripts of the catalogue, made into captures (docs/rules.md has the language).

A script stands for every revision of its rule: the handshake, the ``_meta`` of modern requests, ``resultType`` and the
headers of HTTP are put in as the revision asks for them, unless a line says otherwise.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Raw

from mcplab import jsontext
from mcplab.model import FORMAT_NAME, FORMAT_VERSION, Event, Record, SpecError
from mcplab.rulebook.catalogue import Rule, find
from mcplab.spec import META_CAPABILITIES, META_CLIENT_INFO, META_VERSION, REVISIONS, era, method

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CLIENT: Final = {"name": "example-client", "version": "1.0.0"}
_SERVER: Final = {"name": "example-server", "version": "1.0.0"}
_OPTIONS: Final = re.compile(r'\[([^"{\]]+)\]\s+')  # and no batch
_ACCEPT: Final = "application/json, text/event-stream"


class Script:
    """One script read for one revision. ``events`` are the capture's."""

    def __init__(self, text: str, revision: str) -> None:
        self.revision = revision
        self.modern = era(revision) == "modern"
        self.events: list[dict[str, Any]] = []
        self.http = False
        self.conn = "c1"
        self.client: Any = {}
        self.exchanges = 0
        self.session: str | None = None
        self.transport = "streamable-http"
        self.stream = ""  # the exchange of the GET stream, where the transport is HTTP+SSE
        self.negotiated = False
        self.asked: dict[str, str] = {}
        # no clock but where the script waits: most rules must not need one
        self.clock = 0.0 if re.search(r"^\s*wait ", text, re.MULTILINE) else None
        for number, line in enumerate(text.strip().splitlines(), 1):
            try:
                self._line(line.strip())
            except (ValueError, KeyError, IndexError) as error:
                raise SpecError(f"line {number} of an example, {line.strip()!r}: {error}") from None

    def _line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if not line or line.startswith("#"):
            return
        if word in (">", "<", ">!", "<!"):
            self._message(word, rest)
        elif word in (">b", "<b"):
            side = {">": "c2s", "<": "s2c"}[word[0]]
            coded = base64.b64encode(rest.encode("latin-1")).decode()
            self._event({"kind": "unparsed", "dir": side, "raw_b64": coded, "reason": "no UTF-8"})
        elif word == "http":
            self.http = True
            said = dict(_words(rest))
            self.session = said.get("session")
            self.transport = said.get("transport", self.transport)
        elif word == "on":
            self.conn = rest
        elif word == "open":
            self._event({"kind": "open"})
        elif word == "close":
            self._event({"kind": "close", **dict(_pairs(rest))})
        elif word == "handshake":
            self._handshake(dict(_pairs(rest)))
        elif word == "client":
            self.client = jsontext.loads(rest)
        elif word in ("GET", "DELETE", "HEAD", "PUT"):
            headers, _ = self._headers(rest, {"accept": "text/event-stream"} if word == "GET" else {})
            self._exchange(word, headers, None)
        elif word == "answer":
            self._answer(rest)
        elif word == "sse":
            found = _OPTIONS.match(rest)
            options = {"content-type": "text/event-stream"} | (dict(_words(found[1])) if found else {})
            fields = jsontext.loads(rest[found.end() :] if found else rest)
            self._event({"kind": "sse", "dir": "s2c", **self._of(options), "sse": fields})
        elif word == "end":
            own = rest.startswith("x") and rest.partition(" ")[0]
            pairs = dict(_pairs(rest.removeprefix(own or "").strip()))
            self._event({"kind": "close", "http": {"exchange": own or f"x{self.exchanges}"}, **pairs})
        elif word == "wait":
            self.clock = (self.clock or 0.0) + float(rest)
        elif word == "stderr":
            self._event({"kind": "stderr", "dir": "s2c", "raw": rest})
        else:
            raise ValueError("no such word; docs/rules.md lists them")

    def _event(self, event: dict[str, Any]) -> None:
        stamp = {} if self.clock is None else {"ts": f"{_START + timedelta(seconds=self.clock):%Y-%m-%dT%H:%M:%S.%fZ}"}
        self.events.append({"seq": len(self.events), **stamp, "conn": self.conn, **event})

    # messages -------------------------------------------------------------------------------------

    def _message(self, mark: str, rest: str) -> None:
        client = mark[0] == ">"
        options: dict[str, str] = {}
        if found := _OPTIONS.match(rest):
            options = dict(_words(found[1]))
            rest = rest[found.end() :]
        rest = rest.replace("$REVISION", self.revision).replace("$OTHER", _other(self.revision))
        why = jsontext.check(rest)
        if why or jsontext.kind(rest) not in ("object", "array"):
            event: dict[str, Any] = {"kind": "unparsed", "dir": "c2s" if client else "s2c", "raw": rest}
            self._event(event | self._carried(client, None, options))
            return
        value = jsontext.loads(rest)
        text = rest
        if mark == ">!" and isinstance(value, dict) and isinstance(value.get("method"), str) and "id" in value:
            self.asked[jsontext.dumps(value["id"])] = value["method"]
        if not mark.endswith("!") and isinstance(value, dict):
            value = self._filled(value, client)
            text = jsontext.dumps(value)
        event = {"kind": "message", "dir": "c2s" if client else "s2c", "msg": Raw(text.encode())}
        self._event(event | self._carried(client, value, options))

    def _filled(self, value: dict[str, Any], client: bool) -> dict[str, Any]:
        """The message with what its revision asks for, where that is not there."""
        value = {"jsonrpc": "2.0", **value}
        if not self.modern:
            return value
        name = value.get("method")
        if client and isinstance(name, str) and "id" in value and name != "initialize":
            self.asked[jsontext.dumps(value["id"])] = name
            params = value.get("params", {})
            if isinstance(params, dict):
                meta = params.get("_meta", {})
                if isinstance(meta, dict):
                    own = {META_VERSION: self.revision, META_CLIENT_INFO: _CLIENT, META_CAPABILITIES: self.client}
                    value["params"] = {**params, "_meta": {**own, **meta}}
        elif not client and isinstance(value.get("result"), dict):
            result = value["result"]
            entry = method(self.revision, self.asked.get(jsontext.dumps(value.get("id")), ""), "c2s")
            kind = result.get("resultType", "complete")
            hints = {"ttlMs": 0, "cacheScope": "private"} if entry and entry.cacheable and kind == "complete" else {}
            value["result"] = {"resultType": kind, **hints, **result}
        return value

    def _handshake(self, said: dict[str, Any]) -> None:
        """Open, initialize, result, initialized; in a modern revision open and, where a server is named, discovery."""
        if not self.http:
            self._event({"kind": "open"})
        elif self.transport == "sse" and not self.stream:
            self._line("GET")
            self._line('sse {"event":"endpoint","data":"/messages?id=1"}')
        self.client = said.get("client", self.client)
        server = said.get("server")
        if self.modern:
            if server is not None:
                self._message(">", '{"id":"d","method":"server/discover"}')
                result = {"supportedVersions": [self.revision], "capabilities": server}
                self._message("<", jsontext.dumps({"id": "d", "result": result}))
            return
        version = said.get("version", self.revision)
        params = {"protocolVersion": version, "capabilities": self.client, "clientInfo": _CLIENT}
        self._message(">", jsontext.dumps({"id": 0, "method": "initialize", "params": params}))
        if self.transport == "sse":
            self._answer("202")
        result = {"protocolVersion": self.revision, "capabilities": server or {}, "serverInfo": _SERVER}
        options = f"[mcp-session-id={self.session}] " if self.session else ""
        self._message("<", options + jsontext.dumps({"id": 0, "result": result}))
        self.negotiated = True
        self._message(">", '{"method":"notifications/initialized"}')
        if self.http:
            self._answer("202")

    # HTTP -----------------------------------------------------------------------------------------

    def _carried(self, client: bool, value: Any, options: dict[str, str]) -> dict[str, Any]:
        if not self.http:
            return {}
        if not client:
            return self._of(options)
        own = {"accept": _ACCEPT, "content-type": "application/json"}
        if self.modern:
            own["mcp-protocol-version"] = self.revision
        if self.modern and isinstance(value, dict) and isinstance(value.get("method"), str) and "id" in value:
            entry = method(self.revision, value["method"], "c2s")
            own["mcp-method"] = value["method"]
            params = value.get("params")
            name = entry.mcp_name.removeprefix("params.") if entry and entry.mcp_name else ""
            if name and isinstance(params, dict) and isinstance(params.get(name), str):
                own["mcp-name"] = params[name]
        headers, verb = self._headers(options, own)
        self.exchanges += 1
        path = headers.pop("path", "/messages?id=1" if self.transport == "sse" else "/mcp")
        return {"http": {"method": verb, "path": path, "headers": headers, "exchange": f"x{self.exchanges}"}}

    def _headers(self, rest: str | dict[str, str], own: dict[str, str]) -> tuple[dict[str, str], str]:
        """Headers with what the script sets (``name=value``) or leaves out (``-name``), and the HTTP method."""
        options = dict(_words(rest.strip("[]"))) if isinstance(rest, str) else dict(rest)
        headers = dict(own)
        if not self.modern and self.negotiated:
            if self.revision >= "2025-06-18":
                headers["mcp-protocol-version"] = self.revision
            if self.session:
                headers["mcp-session-id"] = self.session
        verb = options.pop("method", "POST")
        for name, value in options.items():
            if name.startswith("-"):
                headers.pop(name[1:], None)
            else:
                headers[name] = value
        return headers, verb

    def _of(self, options: dict[str, str] | None = None) -> dict[str, Any]:
        """The HTTP facts of something the server sends: on the latest exchange, or that of ``on=``; ``sse.id=`` and so
        on are fields of the event that carries it."""
        options = dict(options or {})
        exchange = options.pop("on", self.stream or f"x{self.exchanges}")
        status = int(options.pop("status", "200"))
        kind = "text/event-stream" if exchange == self.stream else "application/json"
        fields = {name[4:]: options.pop(name) for name in list(options) if name.startswith("sse.")}
        http = {"status": status, "headers": {"content-type": kind} | options, "exchange": exchange}
        return {"http": http} | ({"sse": fields} if fields else {})

    def _exchange(self, verb: str, headers: dict[str, str], body: Any) -> None:
        self.exchanges += 1
        if self.transport == "sse" and verb == "GET" and not self.stream:
            self.stream = f"x{self.exchanges}"
        path = headers.pop("path", "/sse" if self.transport == "sse" else "/mcp")
        http = {"method": verb, "path": path, "headers": headers, "exchange": f"x{self.exchanges}", "body": False}
        self._event({"kind": "http", "dir": "c2s", "http": http})

    def _answer(self, rest: str) -> None:
        """``answer 202 [name=value]``: a response without a message; ``answer 200 [..] text``: with a body."""
        status, _, rest = rest.partition(" ")
        options: dict[str, str] = {}
        if rest.startswith("["):
            inside, _, rest = rest[1:].partition("]")
            options = dict(_words(inside))
        exchange = options.pop("on", f"x{self.exchanges}")
        http: dict[str, Any] = {"status": int(status), "headers": options, "exchange": exchange}
        body = rest.strip()
        event: dict[str, Any] = {"kind": "http", "dir": "s2c", "http": {**http, "body": bool(body)}}
        self._event(event | ({"raw": body} if body else {}))


def _other(revision: str) -> str:
    """Another revision of the same era."""
    return next((name for name in REVISIONS if name != revision and era(name) == era(revision)), revision)


def _words(text: str) -> Iterator[tuple[str, str]]:
    """``name=value`` and ``-name``, set apart by ``;``."""
    for word in filter(None, (part.strip() for part in text.split(";"))):
        name, _, value = word.partition("=")
        yield name.strip(), value.strip()


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    """``client={...} server={...}``."""
    at = 0
    while at < len(text):
        name, _, _ = text[at:].partition("=")
        value, end = jsontext.value(text, at + len(name) + 1)
        yield name.strip(), value
        at = end + 1


def record(script: str, revision: str, name: str = "example") -> Record:
    """The capture that a script describes in a revision.

    Raises:
        SpecError: the script has a line that cannot be read.
    """
    made = Script(script, revision)
    header = {
        "kind": "header", "format": FORMAT_NAME, "version": FORMAT_VERSION, "tool": "mcplab example",
        "transport": made.transport if made.http else "stdio",
    }  # fmt: skip
    events = [msgspec.convert(event, Event) for event in made.events]
    return Record(header, events, name=name, notes=("an example of the rule catalogue: no clock",))


def of(rule: Rule | str, which: str, revision: str) -> Record | None:
    """A rule's ``kept`` or ``broken`` example in one revision; None where it has none.

    Raises:
        SpecError: no such rule.
    """
    known = find(rule) if isinstance(rule, str) else rule
    script = known.example(which, revision)
    return None if script is None else record(script, revision, f"{known.id}-{which}")


def text(rule: Rule, which: str, revision: str) -> str | None:
    """The same as the text of a trace file."""
    made = of(rule, which, revision)
    if made is None:
        return None
    lines = [jsontext.dumps(dict(made.header))]
    lines += [msgspec.json.encode(event).decode() for event in made.events]
    return "\n".join(lines) + "\n"
