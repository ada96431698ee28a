"""What the server's behaviour asks of whoever carries its messages: no input or output happens in the behaviour."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Emit:
    """Send a message that belongs to the request. ``final``: its answer. ``status``: of an HTTP response that starts
    with it."""

    message: dict[str, Any]
    final: bool = False
    status: int = 200


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Ask:
    """Send a request to the client and come back with its answer (legacy only); None after ``patience`` seconds."""

    message: dict[str, Any]
    patience: float | None = None


@dataclass(frozen=True)
class Drop:
    """Close the response stream without ending it: the client has to come back for the rest (legacy HTTP only)."""


@dataclass
class Listen:
    """An open subscription (2026-07-28 basic/patterns/subscriptions). ``send`` is set by whoever carries it."""

    ident: Any
    wants: dict[str, Any]
    send: Callable[[dict[str, Any]], None] | None = None


@dataclass(frozen=True)
class Hold:
    """Keep the answer open for the subscription until the client or the server ends it."""

    listen: Listen


Step: TypeAlias = Emit | Pause | Ask | Drop | Hold
Steps: TypeAlias = Generator[Step, Any, None]

# What a tool asks for: the behaviour turns it into steps of the era ---------------------------------------


@dataclass(frozen=True)
class Progress:
    progress: float
    total: float
    message: str


@dataclass(frozen=True)
class Log:
    level: str
    data: Any


@dataclass(frozen=True)
class Want:
    """Input from the client. ``needs``: the capability that must be declared for it."""

    key: str
    method: str
    params: dict[str, Any]
    needs: str


@dataclass(frozen=True)
class Changed:
    """A list changed (``tools``, ``prompts``, ``resources``), or the resource at ``uri`` did."""

    what: str
    uri: str = ""


ToolStep: TypeAlias = Progress | Log | Pause | Want | Changed | Drop
Tool: TypeAlias = Generator[ToolStep, Any, dict[str, Any]]


class Refusal(Exception):  # noqa: N818  # an answer, not a fault of ours
    """A JSON-RPC error; ``status`` is the HTTP status that carries it."""

    def __init__(self, code: int, message: str, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.status = status


@dataclass
class Peer:
    """What the server knows of one legacy connection or session. ``outlet`` takes messages that nobody asked for."""

    revision: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    initialized: bool = False
    challenged: bool = False
    log_level: str = "debug"
    subscribed: set[str] = field(default_factory=set)
    outlet: Callable[[dict[str, Any]], None] | None = None
