"""The demo server's behaviour: messages in, steps out, in every revision. No input or output, no clock.

Sources: basic/lifecycle and the feature pages of each legacy revision; 2026-07-28 basic/index (``_meta``, error
codes), basic/versioning, basic/patterns/mrtr, basic/patterns/subscriptions, server/discover, server/utilities/caching.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from typing import Any, Final

from mcplab import __version__
from mcplab.live.server import challenge
from mcplab.live.server.config import Config
from mcplab.live.server.features import LEVELS, TEMPLATE, Features
from mcplab.live.server.steps import (
    Ask,
    Changed,
    Drop,
    Emit,
    Hold,
    Listen,
    Log,
    Peer,
    Progress,
    Refusal,
    Step,
    Steps,
    Want,
)
from mcplab.model import ABSENT
from mcplab.spec import (
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    era,
)

_FEATURE: Final = {
    "tools/list": "tools", "tools/call": "tools", "prompts/list": "prompts", "prompts/get": "prompts",
    "resources/list": "resources", "resources/templates/list": "resources", "resources/read": "resources",
    "resources/subscribe": "resources", "resources/unsubscribe": "resources", "completion/complete": "completions",
    "logging/setLevel": "logging",
}  # fmt: skip
_LEGACY_ONLY: Final = ("resources/subscribe", "resources/unsubscribe", "logging/setLevel")
_CACHED: Final = (
    "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
)  # fmt: skip
_INPUT: Final = ("tools/call", "prompts/get", "resources/read")


class Behaviour:
    """One server. Legacy peers are told of changes through their outlets, modern ones through their subscriptions."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.features = Features()
        self.peers: list[Peer] = []
        self.listens: list[Listen] = []
        self._asked = 0
        self._challenged: dict[str, set[str]] = {}  # a modern client by what it says of itself -> keys of questions
        self._key = secrets.token_bytes(16)

    # What it says of itself ----------------------------------------------------------------------

    @property
    def info(self) -> dict[str, Any]:
        return {"name": self.config.name, "version": __version__}

    def capabilities(self, revision: str) -> Any:
        """What it declares in a revision."""
        if self.config.capabilities is not ABSENT:
            return self.config.capabilities
        changes = {"listChanged": True}
        declared: dict[str, Any] = {
            "tools": changes,
            "prompts": changes,
            "resources": {"subscribe": True, **changes},
            "logging": {},
        }
        if revision >= "2025-03-26":  # the first revision that has it
            declared["completions"] = {}
        return declared

    def _declares(self, revision: str, feature: str, flag: str = "") -> bool:
        declared = self.capabilities(revision)
        found = declared.get(feature) if isinstance(declared, dict) else None
        return isinstance(found, dict) and (not flag or found.get(flag) is True)

    # A message comes in --------------------------------------------------------------------------

    def is_modern(self, message: Any, header: str = "") -> bool:
        """Which era does this message open with? (2026-07-28 basic/versioning#compatibility-matrix, below the table)"""
        if not self.config.legacy or not self.config.modern:
            return not self.config.legacy
        if not isinstance(message, dict) or message.get("method") == "initialize":
            return False
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        stamped = isinstance(meta, dict) and META_VERSION in meta
        return stamped or era(header) == "modern" or message.get("method") == "server/discover"

    def request(self, message: dict[str, Any], peer: Peer, *, modern: bool) -> Steps:
        """Steps that answer one request. ``peer``: of the legacy connection; a modern request needs none."""
        ident = message.get("id")
        try:
            if not isinstance(ident, (str, int, float)) or isinstance(ident, bool):
                raise Refusal(-32600, "Invalid Request: id must be a string or an integer", status=400)
            if not isinstance(message.get("method"), str) or message.get("jsonrpc") != "2.0":
                raise Refusal(-32600, "Invalid Request: no JSON-RPC 2.0 request", status=400)
            yield from self._modern(message) if modern else self._legacy(message, peer)
        except Refusal as refusal:
            shown = {} if ident is None and modern else {"id": ident if isinstance(ident, (str, int)) else None}
            yield Emit({"jsonrpc": "2.0", **shown, "error": refusal.error}, final=True, status=refusal.status)

    def notification(self, message: dict[str, Any], peer: Peer, *, modern: bool) -> Any:
        """Takes in a notification; the id of the request that it cancels, or ``ABSENT``."""
        params = message.get("params")
        if message.get("method") == "notifications/initialized" and not modern:
            peer.initialized = True
        elif message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            return params.get("requestId", ABSENT)
        return ABSENT

    def challenge(self, peer: Peer) -> Steps | None:
        """Questions for a legacy peer that is ready for them and was not asked yet, where this server challenges."""
        if not self.config.challenge or peer.challenged or not peer.initialized:
            return None
        peer.challenged = True
        return challenge.asked(peer.revision, peer.capabilities, self._names())

    def _names(self) -> Iterator[str]:
        while True:
            self._asked += 1
            yield f"ask-{self._asked}"

    # Modern --------------------------------------------------------------------------------------

    def _modern(self, message: dict[str, Any]) -> Steps:
        method, params = message["method"], message.get("params", {})
        supported = self.config.supported
        names = f"; this server speaks {', '.join(supported)}" if method == "initialize" else ""
        data = {"supported": supported} if names else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict):
            raise Refusal(-32602, f"Invalid params: _meta is missing{names}", data, 400)
        version = meta.get(META_VERSION)
        if not isinstance(version, str):
            raise Refusal(-32602, f"Invalid params: _meta has no {META_VERSION}{names}", data, 400)
        if version not in self.config.modern:
            found = {"supported": supported, "requested": version}
            raise Refusal(-32022, "Unsupported protocol version", found, 400)
        declared = meta.get(META_CAPABILITIES, ABSENT)
        if not isinstance(declared, dict):
            raise Refusal(-32602, f"Invalid params: {META_CAPABILITIES} must be an object", status=400)
        level = meta.get(META_LOG_LEVEL, ABSENT)
        if level is not ABSENT and level not in LEVELS:
            raise Refusal(-32602, f"Invalid params: {META_LOG_LEVEL} {level!r} is no level")
        ident = message["id"]
        want = self._next_question(method, meta, version, declared)
        if method == "subscriptions/listen":
            yield from self._listen(ident, params, version)
            return
        if want is not None:
            result: dict[str, Any] = self._input_required(params, self._given(params), want)
        elif method == "server/discover":
            result = {
                "supportedVersions": supported,
                "capabilities": self.capabilities(version),
                **self._instructions(),
            }
        elif method == "tools/call":
            told = level if isinstance(level, str) and self._declares(version, "logging") else None
            result = yield from self._tool(params, meta, version, declared, told, params)
        elif method in _LEGACY_ONLY:
            raise Refusal(-32601, f"Method not found: {method}", status=404)
        else:
            result = self._read(method, params, version)
        if method in _CACHED and result.get("resultType", "complete") == "complete":
            result |= {"ttlMs": 0, "cacheScope": "private"}
        whole = {"resultType": "complete", **result, "_meta": {META_SERVER_INFO: self.info}}
        yield Emit({"jsonrpc": "2.0", "id": ident, "result": whole}, final=True)

    def _next_question(self, method: str, meta: dict[str, Any], version: str, declared: Any) -> Want | None:
        if not self.config.challenge or method not in _INPUT:
            return None
        asked = self._challenged.setdefault(json.dumps(meta.get(META_CLIENT_INFO)), set())
        want = challenge.next_question(version, declared, asked)
        asked.update({want.key} if want is not None else ())
        return want

    def _listen(self, ident: Any, params: dict[str, Any], version: str) -> Steps:
        asked = params.get("notifications", ABSENT)
        if not isinstance(asked, dict):
            raise Refusal(-32602, "Invalid params: notifications must be an object", status=400)
        wants: dict[str, Any] = {}
        for name in ("tools", "prompts", "resources"):
            if asked.get(f"{name}ListChanged") is True and self._declares(version, name, "listChanged"):
                wants[f"{name}ListChanged"] = True
        uris = asked.get("resourceSubscriptions")
        if isinstance(uris, list) and self._declares(version, "resources", "subscribe"):
            wants["resourceSubscriptions"] = [uri for uri in uris if isinstance(uri, str)]
        listen = Listen(ident, wants)
        tag = {"_meta": {META_SUBSCRIPTION_ID: ident}}
        yield Emit(_note("notifications/subscriptions/acknowledged", {**tag, "notifications": wants}))
        self.listens.append(listen)
        try:
            yield Hold(listen)
        finally:
            self.listens.remove(listen)
        # The server ends it: basic/patterns/cancellation asks for the notice, subscriptions#graceful-closure for both.
        yield Emit(_note("notifications/cancelled", {**tag, "requestId": ident, "reason": "the server shuts down"}))
        result = {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: ident, META_SERVER_INFO: self.info}}
        yield Emit({"jsonrpc": "2.0", "id": ident, "result": result}, final=True)

    # Legacy --------------------------------------------------------------------------------------

    def _legacy(self, message: dict[str, Any], peer: Peer) -> Steps:
        method, params, ident = message["method"], message.get("params", {}), message["id"]
        if method not in ("ping", "initialize"):  # who listens to no stream of its own is asked on this one
            yield from self.challenge(peer) or ()
        if method == "ping":
            result: dict[str, Any] = {}
        elif method == "initialize":
            result = self._initialize(params, peer)
        elif not peer.revision:
            raise Refusal(-32600, f"{method} before initialize: this connection has not been initialized", status=400)
        elif not isinstance(params, dict):
            raise Refusal(-32602, "Invalid params: not an object")
        elif method == "tools/call":
            declares = self._declares(peer.revision, "logging")
            meta = params.get("_meta")
            result = yield from self._tool(
                params,
                meta if isinstance(meta, dict) else {},
                peer.revision,
                peer.capabilities,
                peer.log_level if declares else None,
                None,
            )
        elif method == "logging/setLevel" and self._declares(peer.revision, "logging"):
            if params.get("level") not in LEVELS:
                raise Refusal(-32602, f"Invalid params: {params.get('level')!r} is no level")
            peer.log_level, result = params["level"], {}
        elif method in ("resources/subscribe", "resources/unsubscribe") and self._declares(
            peer.revision, "resources", "subscribe"
        ):
            if self.features.read(params.get("uri")) is None:
                raise Refusal(-32002, "Resource not found", {"uri": params.get("uri")})
            change = peer.subscribed.add if method == "resources/subscribe" else peer.subscribed.discard
            change(params["uri"])
            result = {}
        else:
            result = self._read(method, params, peer.revision)
        yield Emit({"jsonrpc": "2.0", "id": ident, "result": result}, final=True)

    def _initialize(self, params: Any, peer: Peer) -> dict[str, Any]:
        if peer.revision:
            raise Refusal(-32600, "Invalid Request: initialized already", status=400)
        params = params if isinstance(params, dict) else {}
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Refusal(-32602, "Invalid params: protocolVersion must be a string")
        for name in ("capabilities", "clientInfo"):
            if not isinstance(params.get(name), dict):
                raise Refusal(-32602, f"Invalid params: {name} must be an object")
        peer.revision = asked if asked in self.config.legacy else self.config.legacy[-1]
        peer.capabilities = params["capabilities"]
        self.peers.append(peer)
        return {
            "protocolVersion": peer.revision,
            "capabilities": self.capabilities(peer.revision),
            "serverInfo": self.info,
            **self._instructions(),
        }

    def _instructions(self) -> dict[str, Any]:
        return {} if self.config.instructions is ABSENT else {"instructions": self.config.instructions}

    # Both eras -----------------------------------------------------------------------------------

    def _read(self, method: str, params: dict[str, Any], revision: str) -> dict[str, Any]:
        modern = era(revision) == "modern"
        feature = _FEATURE.get(method)
        if feature is None or not self._declares(revision, feature):
            raise Refusal(-32601, f"Method not found: {method}", status=404 if modern else 200)
        if params.get("cursor") is not None:
            raise Refusal(-32602, "Invalid params: unknown cursor")
        match method:
            case "tools/list":
                return {"tools": self.features.tools(revision)}
            case "prompts/list":
                return {"prompts": self.features.prompts()}
            case "prompts/get":
                given = params.get("arguments")
                return self.features.prompt(params.get("name"), given if isinstance(given, dict) else {})
            case "resources/list":
                return {"resources": self.features.resources()}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "numbers"}]}
            case "resources/read":
                found = self.features.read(params.get("uri"))
                if found is None:
                    raise Refusal(-32602 if modern else -32002, "Resource not found", {"uri": params.get("uri")})
                return found
            case "completion/complete":
                argument = params.get("argument")
                begun = argument.get("value") if isinstance(argument, dict) else None
                if not isinstance(begun, str) or not isinstance(params.get("ref"), dict):
                    raise Refusal(-32602, "Invalid params: ref and argument are needed")
                values = [word for word in ("world", "worm", "you") if word.startswith(begun)]
                return {"completion": {"values": values, "total": len(values), "hasMore": False}}
        raise Refusal(-32601, f"Method not found: {method}", status=404 if modern else 200)

    def _tool(
        self,
        params: dict[str, Any],
        meta: dict[str, Any],
        revision: str,
        declared: dict[str, Any],
        log_level: str | None,
        rounds: dict[str, Any] | None,
    ) -> Iterator[Step]:
        """Run a tool. ``rounds``: the params of a modern request, whose input comes round by round; None: legacy."""
        if not self._declares(revision, "tools"):
            raise Refusal(-32601, "Method not found: tools/call", status=200 if rounds is None else 404)
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refusal(-32602, "Invalid params: arguments must be an object")
        given = {} if rounds is None else self._given(rounds)
        tool = self.features.call(params.get("name"), arguments)
        token = meta.get("progressToken", ABSENT)
        reply: Any = None
        while True:
            try:
                step = tool.send(reply)
            except StopIteration as end:
                return end.value
            reply = None
            if isinstance(step, Progress):
                if isinstance(token, (str, int)) and not isinstance(token, bool):
                    told = {"progressToken": token, "progress": step.progress, "total": step.total}
                    words = {"message": step.message} if revision >= "2025-03-26" else {}
                    yield Emit(_note("notifications/progress", {**told, **words}))
            elif isinstance(step, Log):
                if log_level is not None and LEVELS.index(step.level) >= LEVELS.index(log_level):
                    said = {"level": step.level, "logger": self.config.name, "data": step.data}
                    yield Emit(_note("notifications/message", said))
            elif isinstance(step, Changed):
                self._broadcast(step)
            elif isinstance(step, Want):
                if rounds is not None and step.key in given:
                    reply = given[step.key]
                    continue
                refused = self._undeclared(step, declared, revision)
                if refused and rounds is None:
                    return {"content": [{"type": "text", "text": refused}], "isError": True}
                if refused:
                    needs = {"requiredCapabilities": {step.needs: {}}}
                    raise Refusal(-32021, refused, needs, 400)
                if rounds is not None:
                    return self._input_required(rounds, given, step)
                reply = yield from self._ask(step, revision)
            elif not (isinstance(step, Drop) and rounds is not None):
                yield step

    def _undeclared(self, want: Want, declared: dict[str, Any], revision: str) -> str:
        if self.config.challenge:
            return ""
        if want.needs == "elicitation" and revision < "2025-06-18":
            return f"{want.method} is not in {revision}"
        offered = declared.get(want.needs)
        form = want.needs != "elicitation" or (isinstance(offered, dict) and (not offered or "form" in offered))
        return "" if isinstance(offered, dict) and form else f"the client has not declared {want.needs}"

    def _ask(self, want: Want, revision: str) -> Iterator[Step]:
        params = challenge.fitting(want.params, revision)
        message = {"jsonrpc": "2.0", "id": next(self._names()), "method": want.method}
        answer = yield Ask({**message, "params": params} if params else message)
        if not isinstance(answer, dict) or "error" in answer:
            return {"error": answer.get("error") if isinstance(answer, dict) else None}
        return answer.get("result")

    # Rounds of a modern request: what was given so far travels in a signed requestState, the server keeps nothing ---

    def _given(self, params: dict[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        state = params.get("requestState", ABSENT)
        if state is not ABSENT:
            body, _, tag = state.partition(".") if isinstance(state, str) else ("", "", "")
            if not hmac.compare_digest(tag.encode("utf-8", "replace"), self._signature(body, params).encode()):
                raise Refusal(-32602, "Invalid params: requestState is not one of this server's for this request")
            given = json.loads(base64.urlsafe_b64decode(body))
        responses = params.get("inputResponses", {})
        if not isinstance(responses, dict):
            raise Refusal(-32602, "Invalid params: inputResponses must be an object")
        for key, response in responses.items():
            if not isinstance(response, dict):
                raise Refusal(-32602, f"Invalid params: the response for {key!r} must be an object")
        return {**given, **responses}

    def _input_required(self, params: dict[str, Any], given: dict[str, Any], want: Want) -> dict[str, Any]:
        body = base64.urlsafe_b64encode(json.dumps(given).encode()).decode()
        request: dict[str, Any] = {"method": want.method, **({"params": want.params} if want.params else {})}
        return {
            "resultType": "input_required",
            "inputRequests": {want.key: request},
            "requestState": f"{body}.{self._signature(body, params)}",
        }

    def _signature(self, body: str, params: dict[str, Any]) -> str:
        bound = json.dumps([body, params.get("name"), params.get("arguments")], sort_keys=True)
        return hmac.new(self._key, bound.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _broadcast(self, change: Changed) -> None:
        updated = change.what == "resource"
        method = "notifications/resources/updated" if updated else f"notifications/{change.what}/list_changed"
        params: dict[str, Any] = {"uri": change.uri} if updated else {}
        for peer in self.peers:
            due = (
                change.uri in peer.subscribed
                if updated
                else peer.initialized and self._declares(peer.revision, change.what, "listChanged")
            )
            if due and peer.outlet is not None:
                peer.outlet(_note(method, params))
        for listen in list(self.listens):
            wanted = listen.wants.get("resourceSubscriptions", []) if updated else listen.wants
            due = change.uri in wanted if updated else f"{change.what}ListChanged" in wanted
            if due and listen.send is not None:
                listen.send(_note(method, {"_meta": {META_SUBSCRIPTION_ID: listen.ident}, **params}))


def _note(method: str, params: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": params} if params else message
