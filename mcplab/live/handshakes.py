"""``handshake``: be any client, declare anything, see what a server answers."""

from __future__ import annotations

import contextlib
import shlex
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from mcplab import __version__
from mcplab import negotiation as n
from mcplab.live.capture import Capture
from mcplab.live.http import HttpLink
from mcplab.live.link import Link
from mcplab.live.outcome import Handshake, trace_of
from mcplab.live.running import run
from mcplab.live.server.demo import Demo
from mcplab.live.session import Conversation
from mcplab.live.stdio import StdioLink, status
from mcplab.model import Event, HandshakeError, Record
from mcplab.redaction import MASKS
from mcplab.told import safe

Target: TypeAlias = str | Sequence[str] | Demo
Then: TypeAlias = Iterable[tuple[str, Any] | str | float]

_MOST: Final = 12  # lines of a server's stderr that an error shows
_WIDE: Final = 200
_LONG: Final = 4000  # bytes of a line that are looked at
_KEY: Final = 320  # lines that are looked at: a private key that begins above those shown is masked to its end
_TRANSPORTS = {"stdio": "stdio", "http": "streamable-http", "sse": "sse"}


def handshake(
    target: Target,
    *,
    mode: str = "auto",
    declare: Any = {},  # noqa: B006  # only ever read
    client_info: Any = None,
    then: Then = (),
    timeout: float = 30,
    answers: Mapping[str, Any] | None = None,
    listen: bool = False,
    watcher: Callable[[Event], None] | None = None,
) -> Handshake:
    """Connect to a server as a client that declares ``declare``, and keep all that was said.

    Works in a script and in a running notebook; from async code use ``handshake_async``.

    Args:
        target: an http(s) address, a command (list, or a string that is split as a shell would), or ``DEMO``.
        mode: ``auto`` asks ``server/discover`` first and falls back by the specification's rules; ``modern`` discovers
            and never falls back; ``legacy`` sends ``initialize`` with the newest legacy revision; an exact revision
            (or any other date) offers that one and takes no other.
        declare: the client's capabilities, any JSON value (None is null); ``JsonText`` goes out byte for byte;
            ``ABSENT`` leaves the member out.
        client_info: likewise, but None gives mcplab's own name and version.
        then: what to send after the handshake: (method, params) pairs; params None sends none, and a method alone
            will do. A method that begins with ``notifications/`` is a notification. A number is a pause in seconds.
        timeout: seconds for all of it, pauses and the shut-down not counted.
        answers: method -> result (or a function of the params) for what the server asks: ``roots/list``,
            ``sampling/createMessage``, ``elicitation/create``. What was declared has a canned answer without it.
        listen: after the handshake, open the stream on which the server may speak unasked (GET, in the modern era
            ``subscriptions/listen``; a legacy stdio connection has it anyway).
        watcher: called with every event as it is recorded.

    Raises:
        HandshakeError: no agreement, no answer in time, or a server that had to be killed; ``.trace`` holds what was
            recorded until then, ``.handshake`` what was agreed on and answered.
    """
    options: dict[str, Any] = {"mode": mode, "declare": declare, "client_info": client_info, "then": then}
    options |= {"timeout": timeout, "answers": answers, "listen": listen, "watcher": watcher}
    return run(lambda: handshake_async(target, **options))


async def handshake_async(
    target: Target,
    *,
    mode: str = "auto",
    declare: Any = {},  # noqa: B006  # only ever read
    client_info: Any = None,
    then: Then = (),
    timeout: float = 30,
    answers: Mapping[str, Any] | None = None,
    listen: bool = False,
    watcher: Callable[[Event], None] | None = None,
) -> Handshake:
    """``handshake`` for code that runs in an asyncio loop already: same arguments, same result, same errors."""
    n.Negotiation(mode)  # a wrong mode fails before anything is started
    info = {"name": "mcplab", "version": __version__} if client_info is None else client_info
    capture = Capture(watcher)
    with contextlib.ExitStack() as stack:
        where, env = stack.enter_context(target.running()) if isinstance(target, Demo) else (target, None)
        transport, connect = _connector(where, capture, env)
        talk = Conversation(connect, transport, declare, info, dict(answers or {}), timeout)
        results = []
        failure: HandshakeError | None = None
        steps = list(then)
        left = [step for step in steps if not isinstance(step, (int, float))]
        try:
            await talk.negotiate(mode)
            if listen:
                opened = await talk.listen()
                results += [] if opened is None else [opened]
            for step in steps:
                if isinstance(step, (int, float)):
                    await talk.pause(step)
                else:
                    method, params = (step, None) if isinstance(step, str) else step
                    del left[0]
                    results.append(await talk.then(method, params))
            talk.judge()
        except HandshakeError as error:
            failure = error
        finally:
            await talk.close()
        record = capture.record(
            _TRANSPORTS[talk.transport],
            client={"name": "mcplab", "version": __version__},
            mode="auto" if mode == "auto" else "forced",
            label="handshake",
        )
        if failure is None and talk.closing:
            advice = "the handshake was complete and is in the trace; SIGKILL leaves a server no time to tidy up"
            failure = HandshakeError(f"{talk.closing}; {advice}")
    done = None
    if (agreed := talk.agreed) is not None:
        done = Handshake(
            record=record,
            mode="auto" if mode == "auto" else "forced",
            era=agreed.era,
            revision=agreed.revision,
            steps=talk.state.steps,
            discovery=talk.state.discovery,
            client=declare,
            client_info=info,
            result=agreed.result,
            session=talk.session,
            results=tuple(results),
            asked=tuple(talk.asked),
            notifications=tuple(talk.notifications),
        )
    if failure is not None:
        failure.trace, failure.handshake = trace_of(record), done
        if left:
            names = [safe(step if isinstance(step, str) else str(step[0])) for step in left]
            failure.add_note(f"not sent: {', '.join(names[:8])}{f' and {len(names) - 8} more' if names[8:] else ''}")
        for line in _last_words(record):
            failure.add_note(line)
        raise failure
    assert done is not None
    return done


def _last_words(record: Record) -> list[str]:
    """How a stdio server ended, and the end of its stderr: of the last process that wrote there, else the last one."""
    said = [event for event in record.events if event.kind == "stderr"]
    ends = [event for event in record.events if event.kind == "close" and event.exit_code is not UNSET]
    if not ends:
        return []
    end = next((event for event in ends if said and event.conn == said[-1].conn), ends[-1])
    texts = [
        event.raw.encode() if isinstance(event.raw, str) else b64decode(event.raw_b64 or "")
        for event in said
        if event.conn == end.conn
    ]
    shown = MASKS.message(b"\n".join(text[:_LONG] for text in texts[-_KEY:])).decode("utf-8", "replace").split("\n")
    lines = [f"  {safe(line)[:_WIDE]}" for line in shown if line.strip()][-_MOST:]
    how = f"ended with {status(end.exit_code)}" if isinstance(end.exit_code, int) else "is still there"
    signalled = f" ({end.reason})" if isinstance(end.reason, str) else ""
    why = "by itself" if end.by == "server" else f"when mcplab had closed its input{signalled}"
    return [f"the server process {how}, {why}; its stderr {'ends:' if lines else 'is empty'}", *lines]


def _connector(
    target: str | Sequence[str], capture: Capture, env: Mapping[str, str] | None
) -> tuple[n.Transport, Callable[[], Awaitable[Link]]]:
    if isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        url = target

        async def over_http() -> Link:
            return HttpLink(capture, url)

        return "http", over_http
    try:
        command = shlex.split(target) if isinstance(target, str) else [str(word) for word in target]
    except ValueError as error:
        raise HandshakeError(f"the command {target!r} cannot be split: {error}; give its words one by one") from None
    if not command:
        raise HandshakeError("no target: give an http(s) address, a command or DEMO")

    async def over_stdio() -> Link:
        return await StdioLink.start(capture, command, env)

    return "stdio", over_stdio
