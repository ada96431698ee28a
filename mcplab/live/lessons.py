"""What the handshake notebook runs: the compatibility matrix, odd declarations, and the SDK's rule about callbacks."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pandas as pd

from mcplab import jsontext
from mcplab.live.handshakes import handshake
from mcplab.live.outcome import Handshake
from mcplab.live.running import run
from mcplab.live.server.demo import DEMO, Demo, serving
from mcplab.live.texts import dump
from mcplab.model import ABSENT, HandshakeError, JsonText

MATRIX: Final = (
    # client, server, mode of ours, what the demo server serves, outcome in the specification
    ("Modern", "Modern", "modern", "modern", "works"),
    ("Modern", "Legacy", "modern", "legacy", "fails"),
    ("Dual-era", "Modern", "auto", "modern", "works"),
    ("Dual-era", "Legacy", "auto", "legacy", "works"),
    ("Legacy", "Modern", "legacy", "modern", "fails"),
    ("Legacy", "Dual-era", "legacy", "dual", "works"),
    ("Legacy", "Legacy", "legacy", "legacy", "works"),
)
"""The rows of 2026-07-28 basic/versioning#compatibility-matrix."""

_MEANING: Final = {
    "server/discover": "asks which versions the server speaks and what it can do (modern)",
    "initialize": "offers a version and declares the client's capabilities (legacy)",
    "notifications/initialized": "the client has taken the result in: the session begins",
    "notifications/progress": "how far a request has come",
    "notifications/cancelled": "whoever asked no longer waits",
    "ping": "is the other side still there?",
    "tools/list": "which tools are there?",
    "tools/call": "runs a tool",
    "roots/list": "the server asks which folders the client works in",
    "sampling/createMessage": "the server asks the client's model for a message",
    "elicitation/create": "the server asks the person at the client",
}


def matrix(transports: Iterable[Any] = ("stdio", "http"), *, timeout: float = 20) -> pd.DataFrame:
    """The seven rows of the compatibility matrix, run against the demo server.

    Columns: client, server, specification (``works``/``fails``), transport, outcome (likewise, of our run), label (of
    the agreement, or missing), said (what the handshake says of it).
    """
    rows = []
    for (client, server, mode, serves, expected), transport in itertools.product(MATRIX, transports):
        done, said = attempt(DEMO(transport=transport, serves=serves), mode=mode, timeout=timeout)
        label = done.label if done is not None else None
        rows.append((client, server, expected, transport, "works" if done else "fails", label, said))
    names = ["client", "server", "specification", "transport", "outcome", "label", "said"]
    return pd.DataFrame(rows, columns=names)


def attempt(target: Any, **options: Any) -> tuple[Handshake | None, str]:
    """A handshake and how it went, in words; None for one that failed."""
    try:
        done = handshake(target, **options)
    except HandshakeError as error:
        return None, str(error)
    return done, "; ".join(f"{step.asked}: {step.came}" for step in done.steps)


def declaring(
    declarations: Mapping[str, Any], targets: Mapping[str, Any], *, mode: str = "auto", timeout: float = 20
) -> pd.DataFrame:
    """What servers do with declarations.

    Args:
        declarations: name -> what to declare (any JSON value, ``JsonText``, ``ABSENT``).
        targets: name -> target of ``handshake``.

    Returns:
        Index ``declared``; a column a target: the label that was agreed on, or what was refused.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in targets}
    for server, target in targets.items():
        with _standing(target) as where:
            for name, declared in declarations.items():
                done, said = attempt(where, mode=mode, declare=declared, timeout=timeout)
                found[server][name] = done.label if done is not None else f"refused: {said}"
    index = pd.Index(list(declarations), name="declared")
    return pd.DataFrame(
        {server: [cells[name] for name in declarations] for server, cells in found.items()}, index=index
    )


@contextlib.contextmanager
def _standing(target: Any) -> Iterator[Any]:
    """A demo server over HTTP is started once for many handshakes; every other target is as it is."""
    if isinstance(target, Demo) and target.transport != "stdio":
        with target.running() as (url, _):
            yield url
    else:
        yield target


def told(shake: Handshake | Any, *, width: int = 300) -> pd.DataFrame:
    """The messages of a handshake (or trace) beside their meaning.

    Columns: sender, meaning, message (its text, cut after ``width`` characters). Index: seq.
    """
    messages = (shake.trace if isinstance(shake, Handshake) else shake).messages.set_index("seq")
    meaning = [_meaning(kind, method) for kind, method in zip(messages["kind"], messages["method"], strict=True)]
    text = [one if len(one) <= width else f"{one[:width]}..." for one in messages["message"]]
    return pd.DataFrame({"sender": messages["sender"], "meaning": meaning, "message": text}, index=messages.index)


def _meaning(kind: str, method: Any) -> str:
    known = isinstance(method, str)
    if kind in ("response", "error"):
        answers = f" to {method}" if known else ""
        return f"{'a refusal' if kind == 'error' else 'the answer'}{answers}"
    return _MEANING.get(method, method) if known else "no JSON-RPC that can be read"


def callbacks(mode: str = "legacy") -> pd.DataFrame:
    """What the installed Python SDK declares with each of the eight combinations of its three callbacks.

    Each row is a real connection of the SDK's ``Client`` to the demo server; ``declared`` is the text that the server
    read. Columns: sampling, elicitation, roots (bool), declared.
    """
    rows = []
    with serving() as server:
        for sampling, elicitation, roots in itertools.product((False, True), repeat=3):
            given = {"sampling_callback": sampling, "elicitation_callback": elicitation, "list_roots_callback": roots}
            before = len(server.wire.texts)
            run(_connected(server.url, mode, [name for name, wanted in given.items() if wanted]))
            first = next(text for direction, text in server.wire.texts[before:] if direction == "c2s")
            rows.append((sampling, elicitation, roots, _declaration(first)))
    return pd.DataFrame(rows, columns=["sampling", "elicitation", "roots", "declared"])


def _connected(url: str, mode: str, names: list[str]) -> Callable[[], Any]:
    async def never_asked(*_: Any) -> Any:
        raise AssertionError("a connection without a tool call asks for nothing")

    async def connect() -> None:
        from mcp import Client

        async with Client(url, mode=mode, **dict.fromkeys(names, never_asked)):  # type: ignore[arg-type]
            pass

    return connect


def _declaration(text: str) -> str:
    plain, _ = jsontext.get(text, "params", "capabilities")
    stamped, _ = jsontext.get(text, "params", "_meta", "io.modelcontextprotocol/clientCapabilities")
    return plain or stamped or "(none)"


def variants() -> dict[str, Any]:
    """Declarations worth trying: as specified, empty, missing, null, of wrong types, with unknown keys."""
    return {
        '{"roots": {}}': {"roots": {}},
        "{}": {},
        "(no member)": ABSENT,
        "null": None,
        "true": True,
        '["roots"]': ["roots"],
        '{"roots": null}': {"roots": None},
        '{"roots": {"listChanged": "true"}}': {"roots": {"listChanged": "true"}},
        '{"telepathy": {}}': {"telepathy": {}},
        "twice the same key": JsonText('{"roots": {}, "roots": {"listChanged": true}}'),
        "not JSON": JsonText("{roots: yes}"),
    }


def shown(value: Any) -> str:
    """A declaration as the text that was sent; ``ABSENT`` by its name."""
    return "ABSENT" if value is ABSENT else dump(value)
