"""Which era and which revision: a client's side of version negotiation as a pure state machine.

Events go in, commands come out; nothing here reads, writes or waits. ``Negotiation.feed`` returns the next state and
the commands for whoever owns the connection.

The rules are those of the 2026-07-28 revision, basic/versioning (the compatibility matrix), basic/transports/stdio and
basic/transports/streamable-http (backward compatibility), and basic/lifecycle of the legacy revisions:

- a discover result, or an error that only a modern server sends, makes the server modern: never fall back then;
- anything else, silence and a process that dies of the probe included, makes it legacy: ``initialize``;
- the fallback hangs on no single error code: a recognised error needs its code *and* the data its schema asks for;
- a POST of ``initialize`` refused with 400, 404 or 405 leads on to the HTTP+SSE transport of 2024-11-05.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from mcplab.model import ABSENT, HandshakeError
from mcplab.spec import LATEST_LEGACY, REVISIONS, era, is_revision

Transport = Literal["stdio", "http", "sse"]

PARSE_ERROR: Final = -32700
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

MODERN: Final = tuple(name for name in REVISIONS if era(name) == "modern")
LEGACY: Final = tuple(name for name in REVISIONS if era(name) == "legacy")

_TO_SSE: Final = (400, 404, 405)  # streamable-http#http+sse-transport-2024-11-05
_CLOSED_DOOR: Final = {401: "it wants authorization", 403: "it forbids this client", 407: "a proxy wants authorization"}
_MEMBERS: Final = ("tools", "resources", "prompts", "logging", "completions", "experimental", "extensions", "tasks")

# Events ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """The connection stands: a process runs, a URL is known, or the ``endpoint`` event of HTTP+SSE came."""

    transport: Transport


@dataclass(frozen=True)
class Result:
    """The pending request got a result."""

    value: Any


@dataclass(frozen=True)
class Refused:
    """The pending request got a JSON-RPC error. ``status`` is the HTTP status that carried it."""

    code: Any
    message: str = ""
    data: Any = ABSENT
    status: int | None = None


@dataclass(frozen=True)
class Rejected:
    """An HTTP status of 4xx or 5xx (or one that makes no sense) whose body is no JSON-RPC error."""

    status: int
    detail: str = ""


@dataclass(frozen=True)
class Silent:
    """No answer came within the time that was allowed."""

    seconds: float


@dataclass(frozen=True)
class Ended:
    """The server went away, or ended its answer without answering."""

    detail: str


@dataclass(frozen=True)
class Late:
    """A result for ``server/discover`` after its time was up."""

    value: Any


@dataclass(frozen=True)
class Unreachable:
    """Nothing could be started, or nobody listens there."""

    detail: str


Event: TypeAlias = Opened | Result | Refused | Rejected | Silent | Ended | Late | Unreachable

# Commands --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """Send ``method`` in ``version``. A ``probe`` must not use up all the time: the fallback needs some."""

    method: str
    version: str
    probe: bool = False


@dataclass(frozen=True)
class Notify:
    method: str


@dataclass(frozen=True)
class Restart:
    """End this server process and start a new one: then feed ``Opened``."""


@dataclass(frozen=True)
class Switch:
    """Open ``transport`` to the same address instead: then feed ``Opened``, or why it did not open."""

    transport: Transport


@dataclass(frozen=True)
class Accept:
    """Agreed. ``result`` is the discover or initialize result.

    ``flaw`` says what is wrong with its shape, or is ``""``: the handshake failed, yet what the server does next can be
    looked at.
    """

    era: Literal["legacy", "modern"]
    revision: str
    result: dict[str, Any]
    flaw: str = ""


@dataclass(frozen=True)
class Fail:
    """No agreement: what happened, and what to try next."""

    what: str
    advice: str


Command: TypeAlias = Request | Notify | Restart | Switch | Accept | Fail

# State -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One step for people: what was asked, what came, what follows from it."""

    asked: str
    came: str
    so: str


@dataclass(frozen=True)
class Negotiation:
    """State of one negotiation. ``mode``: ``auto``, ``modern``, ``legacy`` or one exact revision.

    A date that no revision has is allowed as an exact revision (to see what a server does with it): one before
    2026-07-28 is offered by ``initialize``, a later one by ``server/discover``.
    """

    mode: str = "auto"
    transport: Transport = "stdio"
    phase: Literal["new", "discover", "initialize", "switching", "done"] = "new"
    asked: str = ""
    tried: tuple[str, ...] = ()
    late: Any = ABSENT
    fell_back: str = ""
    ill_discovered: bool = False
    refused: str = ""
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "modern", "legacy") and era(self.mode) == "unknown":
            raise HandshakeError(
                f"mode {self.mode!r} is none: use auto, modern, legacy or a revision such as {REVISIONS[-1]}"
            )

    @property
    def exact(self) -> bool:
        return self.mode not in ("auto", "modern", "legacy")

    @property
    def modern(self) -> bool:
        """Does this client open with a modern request?"""
        return self.mode in ("auto", "modern") or era(self.mode) == "modern"

    @property
    def discovery(self) -> Literal["modern", "legacy-fallback", "failed", "none"]:
        """How ``server/discover`` went, in the words of the ``connections`` table."""
        if not self.modern:
            return "none"
        if self.phase == "done" and self.steps and self.steps[-1].so.startswith("agreed"):
            return "legacy-fallback" if self.fell_back else "modern"
        return "failed"

    def feed(self, event: Event) -> tuple[Negotiation, tuple[Command, ...]]:
        """The state after ``event``, and what to do now. After ``Accept`` or ``Fail`` nothing more is said."""
        if self.phase == "done":
            return self, ()
        if isinstance(event, Late):
            return (replace(self, late=event.value), ()) if self.mode == "auto" else (self, ())
        if isinstance(event, Unreachable) and self.phase != "switching":
            return self._fail(event, event.detail, "check the address or the command, and whether the server runs")
        if isinstance(event, Opened):
            return self._opened(event)
        return {"discover": self._discover, "initialize": self._initialize, "switching": self._switching}.get(
            self.phase, self._too_early
        )(event)

    # Opening -------------------------------------------------------------------------------------

    def _opened(self, event: Opened) -> tuple[Negotiation, tuple[Command, ...]]:
        state = replace(self, transport=event.transport)
        if self.phase == "initialize":  # a new process for the handshake that the first one died before
            return state, (Request("initialize", self.asked),)
        if self.phase == "switching":
            state = replace(state._note(event, "initialize over HTTP+SSE"), phase="initialize")
            return state, (Request("initialize", self.asked),)
        if self.modern:
            version = self.mode if self.exact else MODERN[-1]
            return state._ask("server/discover", version)
        return state._ask("initialize", self.mode if self.exact else LATEST_LEGACY)

    def _ask(self, method: str, version: str) -> tuple[Negotiation, tuple[Command, ...]]:
        discover = method == "server/discover"
        state = replace(
            self,
            phase="discover" if discover else "initialize",
            asked=version,
            tried=(*self.tried, version),
        )
        return state, (Request(method, version, probe=discover and self.mode == "auto"),)

    # server/discover -----------------------------------------------------------------------------

    def _discover(self, event: Event) -> tuple[Negotiation, tuple[Command, ...]]:
        if isinstance(event, Result):
            supported = discover_versions(event.value)
            if supported is not None:
                return self._discovered(event, event.value, supported)
            wrong = undiscovered(event.value)
            if self.mode != "auto" and isinstance(event.value, dict):
                # Whoever asked for it may speak this revision without any discovery (2026-07-28, server/discover).
                return self._accept(event, "modern", self.asked, event.value, wrong)
            ill = isinstance(event.value, dict)  # with such a result a modern mode goes on
            return replace(self, ill_discovered=ill)._not_modern(event, wrong)
        if isinstance(event, Refused) and recognised(event):
            if event.code == UNSUPPORTED_VERSION:
                return self._unsupported(event, event.data["supported"])
            if event.code == MISSING_CAPABILITY:
                needs = ", ".join(event.data["requiredCapabilities"])
                return self._fail(event, f"the server answers only clients that declare {needs}", f"declare {needs}")
            return self._fail(
                event,
                f"a modern server found the request's headers wrong: {event.message or 'HeaderMismatch'}",
                "look at the request in the trace; something between the two may change headers",
            )
        if isinstance(event, Rejected) and event.status in _CLOSED_DOOR:
            return self._fail(
                event, f"HTTP {event.status}: {_CLOSED_DOOR[event.status]}", "mcplab sends no credentials"
            )
        return self._not_modern(event, "")

    def _discovered(
        self, event: Event, result: dict[str, Any], supported: list[str]
    ) -> tuple[Negotiation, tuple[Command, ...]]:
        version = self._mutual(supported)
        if version is not None:
            return self._accept(event, "modern", version, result)
        return self._unsupported(event, supported)

    def _unsupported(self, event: Event, supported: list[str]) -> tuple[Negotiation, tuple[Command, ...]]:
        """The server named its versions and the one asked for is not among them: never a guess, one of those."""
        version = self._mutual(supported)
        if version is not None and version not in self.tried:
            return self._note(event, f"again with {version}")._ask("server/discover", version)
        spoken = [name for name in LEGACY if name in supported]
        if self.mode == "auto" and version is None and spoken:
            state = self._note(event, f"the server names legacy versions only: initialize with {spoken[-1]}")
            return replace(state, fell_back=words(event))._ask("initialize", spoken[-1])
        if self.asked in supported:
            what = f"the server refuses {self.asked} as unsupported and lists it as supported"
            return self._fail(event, what, "it contradicts itself: only the server can mend that")
        return self._fail(
            event,
            f"no common version: asked for {self.asked}, the server speaks {', '.join(supported) or 'none'}",
            self._others(supported),
        )

    def _others(self, supported: list[str]) -> str:
        """What to try with a server that names these versions."""
        left = [name for name in supported if name not in self.tried]
        known = [name for name in REVISIONS if name in left]
        named = known or sorted(name for name in left if era(name) != "unknown")
        if named:
            return f"try mode {named[-1]}{'' if known else ', which mcplab does not know'}"
        if left:
            return "mcplab knows none of its versions"
        return "it contradicts itself: only the server can mend that" if supported else "only the server can mend that"

    def _mutual(self, supported: list[str]) -> str | None:
        mine = (self.mode,) if self.exact else MODERN
        return next((name for name in reversed(mine) if name in supported), None)

    def _not_modern(self, event: Event, why: str) -> tuple[Negotiation, tuple[Command, ...]]:
        came = why or words(event)
        if self.mode != "auto":
            return self._fail(event, f"server/discover: {came}", self._advice(event))
        state = replace(self._note(event, "a legacy server: initialize"), fell_back=came)
        state, commands = state._ask("initialize", LATEST_LEGACY)
        if isinstance(event, Ended) and self.transport == "stdio":
            return state, (Restart(),)
        return state, commands

    def _advice(self, event: Event) -> str:
        """What to try after ``event``: the other era where something answered, else the trace or more time."""
        stdio = self.transport == "stdio"
        if isinstance(event, Silent):
            return "is it an MCP server? a slow one needs a longer timeout"
        if isinstance(event, Rejected) and event.status in _CLOSED_DOOR:
            return f"{_CLOSED_DOOR[event.status]}; mcplab sends no credentials"
        if isinstance(event, Refused) and isinstance(event.data, dict) and _names(event.data.get("supported")):
            names = event.data["supported"]
            return f"the server names {', '.join(names) or 'no version'}: {self._others(names)}"
        if isinstance(event, Refused) and event.code == PARSE_ERROR:
            return "the server could not read the request as JSON: look in the trace at what was sent"
        if self.ill_discovered:
            return "try mode modern: it goes on with that result"
        if isinstance(event, Ended) or self.mode == "auto":
            return "look at the trace for what the server sent" + (", and at its stderr" if stdio else "")
        return f"is the server {'legacy' if self.modern else 'modern'}? try mode auto"

    # initialize ----------------------------------------------------------------------------------

    def _initialize(self, event: Event) -> tuple[Negotiation, tuple[Command, ...]]:
        if isinstance(event, Result):
            return self._initialized(event)
        late = discover_versions(self.late)
        if late is not None and self._mutual(late) is not None:
            return replace(self, fell_back="")._discovered(event, self.late, late)
        if isinstance(event, Refused) and recognised(event) and event.code == UNSUPPORTED_VERSION:
            version = next((name for name in reversed(MODERN) if name in event.data["supported"]), None)
            if self.mode == "auto" and version is not None and self.tried.count(version) < 2:
                state = replace(self._note(event, "a modern server after all: discover again"), fell_back="")
                return state._ask("server/discover", version)
        if isinstance(event, Refused) and not self.exact and isinstance(event.data, dict):
            names = event.data.get("supported", [])  # basic/lifecycle#error-handling has such an error as its example
            spoken = [name for name in LEGACY if name in names and name not in self.tried] if _names(names) else []
            if spoken:
                return self._note(event, f"again with {spoken[-1]}")._ask("initialize", spoken[-1])
        if self._may_be_old(event):
            state = self._note(event, "perhaps the HTTP+SSE transport of 2024-11-05: GET")
            return replace(state, phase="switching", refused=words(event)), (Switch("sse"),)
        before = f"server/discover: {self.fell_back}; then " if self.fell_back else ""
        return self._fail(event, f"{before}initialize: {words(event)}", self._advice(event))

    def _may_be_old(self, event: Event) -> bool:
        if self.transport != "http":
            return False
        if isinstance(event, Rejected):
            return event.status in _TO_SSE
        return isinstance(event, Refused) and event.status in _TO_SSE and not recognised(event)

    def _initialized(self, event: Result) -> tuple[Negotiation, tuple[Command, ...]]:
        result = event.value
        version = result.get("protocolVersion", ABSENT) if isinstance(result, dict) else ABSENT
        if not isinstance(version, str):
            what = "has no protocolVersion" if version is ABSENT else f"has {_kind(version)} as its protocolVersion"
            what = what if isinstance(result, dict) else f"is {_kind(result)}, not an object"
            return self._fail(event, f"the initialize result {what}", "report it to the server")
        if self.exact and version != self.asked:
            other = f"try mode {version} or legacy" if version in LEGACY else "try mode auto"
            return self._fail(event, f"offered {self.asked}, the server answered {version}", other)
        if not is_revision(version) or era(version) != "legacy":
            return self._fail(
                event,
                f"the server answered initialize with version {version!r}, which is no legacy revision",
                f"mcplab speaks {', '.join(LEGACY)} after initialize",
            )
        return self._accept(event, "legacy", version, result)

    def _accept(
        self, event: Event, found: Literal["legacy", "modern"], version: str, result: dict[str, Any], wrong: str = ""
    ) -> tuple[Negotiation, tuple[Command, ...]]:
        wrong = "; ".join(filter(None, (wrong, misshapen(result.get("capabilities", ABSENT)))))
        so = f"agreed on {version}{', though ' if wrong else ''}{wrong}"
        state = replace(self._note(event, so), phase="done", asked=version)
        first = (Notify("notifications/initialized"),) if found == "legacy" else ()
        return state, (*first, Accept(found, version, result, wrong))

    # HTTP+SSE, and the ends ----------------------------------------------------------------------

    def _switching(self, event: Event) -> tuple[Negotiation, tuple[Command, ...]]:
        before = f"server/discover: {self.fell_back}; then " if self.fell_back else ""
        what = f"{before}initialize: {self.refused}; then GET for HTTP+SSE: {words(event)}"
        return self._fail(event, what, "is this the address of an MCP endpoint?")

    def _too_early(self, event: Event) -> tuple[Negotiation, tuple[Command, ...]]:
        return self._fail(event, f"before anything was asked: {words(event)}", "check the command or the address")

    def _fail(self, event: Event, what: str, advice: str) -> tuple[Negotiation, tuple[Command, ...]]:
        return replace(self._note(event, "failed"), phase="done"), (Fail(what, advice),)

    def _note(self, event: Event, so: str) -> Negotiation:
        asked = {"discover": "server/discover", "initialize": "initialize", "switching": "GET"}.get(self.phase, "open")
        if asked != "open" and asked != "GET" and self.asked:
            asked = f"{asked} ({self.asked})"
        return replace(self, steps=(*self.steps, Step(asked, words(event), so)))


# Facts about answers -----------------------------------------------------------------------------------


def discover_versions(result: Any) -> list[str] | None:
    """``supportedVersions`` of a discover result, or None where the value is no such result (server/discover)."""
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return None
    supported = result.get("supportedVersions")
    return supported if _names(supported) else None


def undiscovered(result: Any) -> str:
    """What keeps ``result``, an answer to ``server/discover``, from being a discover result."""
    if not isinstance(result, dict):
        return f"its result is {_kind(result)}, not an object"
    if result.get("resultType", "complete") != "complete":
        return "the discover result has a resultType other than complete"
    if "supportedVersions" not in result:
        return "the discover result has no supportedVersions"
    return "the discover result's supportedVersions is no array of strings"


def recognised(error: Refused) -> bool:
    """Is this an error that only a modern server sends? The code alone does not tell: its data must fit as well.

    Source: schema/2026-07-28, UnsupportedProtocolVersionError, MissingRequiredClientCapabilityError,
    HeaderMismatchError (which has no data of its own, but only HTTP has headers).
    """
    data = error.data if isinstance(error.data, dict) else {}
    if error.code == UNSUPPORTED_VERSION:
        return _names(data.get("supported"))
    if error.code == MISSING_CAPABILITY:
        return isinstance(data.get("requiredCapabilities"), dict)
    return error.code == HEADER_MISMATCH and error.status == 400


def misshapen(capabilities: Any) -> str:
    """What is wrong with the outer shape of a server's capabilities, or ``""``. Flags inside are not looked at."""
    if capabilities is ABSENT:
        return "the server's result has no capabilities"
    if not isinstance(capabilities, dict):
        return f"the server's capabilities are {_kind(capabilities)}, not an object"
    for name in _MEMBERS:
        if name in capabilities and not isinstance(capabilities[name], dict):
            return f"the server's capability {name!r} is {_kind(capabilities[name])}, not an object"
    return ""


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return {list: "an array", str: "a string", dict: "an object"}.get(type(value), "a number")


def words(event: Event) -> str:
    """An event in a few words."""
    match event:
        case Opened(transport):
            return f"{transport} open"
        case Result():
            return "a result"
        case Refused(code, message, _, status):
            carried = f"HTTP {status}, " if status is not None and status >= 400 else ""
            return f"{carried}error {code}" + (f" ({message})" if message else "")
        case Rejected(status, detail):
            return f"HTTP {status}" + (f" ({detail})" if detail else "")
        case Silent(seconds):
            return f"no answer within {seconds:.3g} s"
        case Ended(detail) | Unreachable(detail):
            return detail
        case Late():
            return "a late discover result"
