"""``mcplab handshake`` and ``mcplab demo`` as plain functions; the command line registers them with ``register``.

Nothing heavy loads with this module: the wire comes inside the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from mcplab import jsontext
from mcplab.model import ABSENT, HandshakeError, JsonText, MCPLabError
from mcplab.told import safe

if TYPE_CHECKING:
    from mcplab.live.outcome import Handshake


class HandshakeCommand(TyperCommand):
    """Takes ``--request METHOD JSON`` as well, which no option parser has: zero or one word after the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, requests_of(args))


def register(app: typer.Typer, **settings: Any) -> None:
    """Add both commands to an application."""
    app.command("handshake", cls=HandshakeCommand, **settings)(handshake_command)
    app.command("demo", **settings)(demo_command)


def handshake_command(
    target: Annotated[list[str], typer.Argument(help="An http(s) address, DEMO, or a command with its arguments.")],
    mode: Annotated[str, typer.Option(help="auto, modern, legacy, or an exact revision.")] = "auto",
    declare: Annotated[str, typer.Option(metavar="JSON", help="Capabilities, sent as they are; ABSENT: none.")] = "{}",
    client_info: Annotated[str | None, typer.Option(metavar="JSON", help="clientInfo, sent as it is.")] = None,
    request: Annotated[
        list[str] | None, typer.Option(metavar="METHOD [JSON]", help="Send this afterwards, params after a space.")
    ] = None,
    answers: Annotated[str, typer.Option(metavar="JSON", help="Method -> result for what the server asks.")] = "{}",
    pings: Annotated[int, typer.Option(min=0, help="Send so many pings at the end.")] = 0,
    every: Annotated[float, typer.Option(min=0, help="Seconds between two pings.")] = 1.0,
    listen: Annotated[bool, typer.Option(help="Open the stream on which the server may speak unasked.")] = False,
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds for all of it; pauses do not count.")] = 30,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Save the trace there, credentials masked, of a failure too.")
    ] = None,
) -> None:
    """Connect to a server as a client, and show what both said.

    A command with options of its own is one word in quotes, or stands behind ``--``.
    """
    from msgspec import UNSET

    from mcplab.live.capture import Capture
    from mcplab.live.handshakes import handshake
    from mcplab.live.outcome import trace_of
    from mcplab.live.running import ending
    from mcplab.live.server.demo import DEMO

    try:
        then: list[Any] = [_request(words) for words in request or ()]
        given = jsontext.loads(answers)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if not isinstance(given, dict):
        raise typer.BadParameter("--answers must be a JSON object: method -> result")
    for number in range(pings):
        then += [every, ("ping", None)] if number else [("ping", None)]
    from mcplab.negotiation import Negotiation

    try:
        Negotiation(mode)
    except HandshakeError as error:
        raise typer.BadParameter(str(error)) from None
    where: Any = DEMO if target == ["DEMO"] else target[0] if len(target) == 1 else list(target)
    seen = Capture()

    def keep(trace: Any) -> None:
        if output is not None and trace is not None:
            trace.redacted().save(output, mode=0o600)
            typer.echo(safe(f"wrote {output}"), err=True)

    def show(done: Handshake) -> None:
        for line in summary(done):
            typer.echo(line)

    info = None if client_info is None else ABSENT if client_info == "ABSENT" else JsonText(client_info)
    try:
        with ending():
            done = handshake(
                where,
                mode=mode,
                declare=ABSENT if declare == "ABSENT" else JsonText(declare),
                client_info=info,
                then=then,
                timeout=timeout,
                answers=given,
                listen=listen,
                watcher=seen.events.append,
            )
    except (KeyboardInterrupt, SystemExit):
        if seen.events:
            kind = "streamable-http" if any(event.http is not UNSET for event in seen.events) else "stdio"
            keep(trace_of(seen.record(kind, label="handshake")))
        raise
    except HandshakeError as error:
        if error.handshake is not None:
            show(error.handshake)
        try:
            keep(error.trace)
        except (MCPLabError, OSError) as failed:
            error.add_note(str(failed))
        if output is None and len(error.trace or ()) > 1:  # of a connection that was refused there is one event
            error.add_note("-o FILE keeps the trace")
        raise
    show(done)
    keep(done.trace)


def requests_of(words: Sequence[str]) -> list[str]:
    """``--request METHOD JSON`` as two words, joined to the one word that ``handshake_command`` takes."""
    joined: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        joined.append(word)
        if word == "--":
            return joined + left
        if word == "--request" and left:
            method = left.pop(0)
            joined.append(f"{method} {left.pop(0)}" if left and left[0][:1] in ("{", "[") else method)
    return joined


def _request(words: str) -> tuple[str, Any]:
    method, _, text = words.strip().partition(" ")
    if text.strip() and (why := jsontext.check(text)):
        raise ValueError(f'--request {method}: its params are no JSON ({why}); write them as {{"cursor": "x"}}')
    return method, jsontext.loads(text) if text.strip() else None


def summary(done: Handshake) -> list[str]:
    """A handshake in a few lines of text that do a terminal no harm."""
    lines = [f"protocol  {done.label}"]
    if done.session is not None:
        lines.append(f"session   {done.session}")
    facts = {"server": done.server_info, "declares": done.server, "client": done.client_info, "declared": done.client}
    lines += [f"{name:<9} {_one_line(value)}" for name, value in facts.items()]
    lines += [f"step      {step.asked}: {step.came}; {step.so}" for step in done.steps]
    for answer in done.results:
        value = answer.result if answer.outcome == "result" else answer.error
        shown = f"HTTP {answer.status}" if answer.outcome == "rejected" else _one_line(value)
        lines.append(f"then      {answer.method}: {answer.outcome} {'' if value is ABSENT else shown}".rstrip())
    return [safe(line) for line in lines]


def _one_line(value: Any, limit: int = 300) -> str:
    from mcplab.live.texts import dump

    text = "ABSENT" if value is ABSENT else dump(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def demo_command(
    stdio: Annotated[bool, typer.Option(help="Serve standard input and output.")] = False,
    http: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65535, help="Serve 127.0.0.1:PORT; 0 takes a free one.")
    ] = None,
    sse: Annotated[bool, typer.Option(help="Over HTTP: the HTTP+SSE transport of 2024-11-05.")] = False,
    serves: Annotated[str, typer.Option(help="legacy, modern or dual.")] = "dual",
    versions: Annotated[str, typer.Option(help="Revisions, separated by commas; default: all.")] = "",
    capabilities: Annotated[str | None, typer.Option(metavar="JSON", help="What to declare.")] = None,
    session_id: Annotated[str | None, typer.Option(help='Of every legacy session; "" for none.')] = None,
    get: Annotated[str, typer.Option(help="What a legacy GET gets: sse or 405.")] = "sse",
    challenge: Annotated[bool, typer.Option(help="Ask also for what the client has not declared.")] = False,
    fault: Annotated[str, typer.Option(help="Misbehave; --fault list shows the ways.")] = "",
    log: Annotated[Path | None, typer.Option(help="Write what is read and written there.")] = None,
) -> int:
    """A demo server: correct in every revision, or with one fault. Without --stdio and --http it takes a free port."""
    from mcplab.live.server import __main__ as program

    if fault == "list":
        typer.echo(program.faults.table())
        return 0
    if stdio and (http is not None or sse):
        raise typer.BadParameter("--stdio, or --http PORT and --sse: not both")
    words = ["--serves", serves, "--versions", versions, "--get", get, "--fault", fault]
    for name, value in (("--capabilities", capabilities), ("--session-id", session_id), ("--log", log)):
        words += [] if value is None else [name, str(value)]
    words += ["--challenge"] if challenge else []
    words += ["--sse"] if sse else []
    words += ["--stdio"] if stdio else ["--http", str(http or 0)]
    return program.main(words)
