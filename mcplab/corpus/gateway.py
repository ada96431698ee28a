"""A made-up day of a gateway's traffic, whose shares of clients and versions are known. The same bytes every time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
_PREFIX: Final = "io.modelcontextprotocol"


@dataclass(frozen=True)
class Program:
    """One release of a client: its part of the traffic, the era that it speaks, and what it declares."""

    client: str
    version: str
    share: float
    era: str = "legacy"
    declares: dict[str, Any] = field(default_factory=dict)
    eager: bool = False  # calls a tool before the handshake is answered, which it should not


@dataclass(frozen=True)
class Drift:
    """From an hour on, one release declares something else: a flag was turned on a server's side of the client."""

    client: str
    version: str
    hour: int
    declares: dict[str, Any]


PROGRAMS: Final = (
    Program("alder", "1.4.0", 0.26, declares={"roots": {"listChanged": True}, "sampling": {}}),
    Program("alder", "1.5.0", 0.14, declares={"roots": {"listChanged": True}, "sampling": {"tools": {}}}),
    Program("birch", "0.9.2", 0.20, declares={}),
    Program("birch", "0.20.1", 0.08, declares={"elicitation": {"form": {}, "url": {}}}),
    Program("cedar", "3.0.0", 0.12, "modern", {"elicitation": {"form": {}}, "sampling": {"tools": {}}}),
    Program("cedar", "3.1.0", 0.09, "modern", {"elicitation": {"form": {}, "url": {}}}),
    Program("dogwood", "2.2.0", 0.07, declares={"roots": {}}, eager=True),
    Program("elm", "7.0.0-rc.1", 0.04, "modern", {}),
)
DRIFT: Final = Drift("alder", "1.5.0", 15, {"roots": {"listChanged": True}})


def day(
    folder: str | os.PathLike[str],
    sessions: int = 10_000,
    *,
    programs: Sequence[Program] = PROGRAMS,
    drift: Drift | None = DRIFT,
    each: int = 5_000,
    date: str = "2026-01-05",
    seed: int = 7,
) -> pd.DataFrame:
    """Write a day of sessions below a folder: files of ``each`` captures, one behind the other, six events a capture.

    Returns:
        What was made: a row a client and version, and a row more for the release that drifts from then on. Columns
        client, client_version, declares (JSON text), sessions.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    start = datetime.fromisoformat(date).replace(tzinfo=UTC)
    step = timedelta(days=1) / max(sessions, 1)
    chance = random.Random(seed)
    weights = [program.share for program in programs]
    made: dict[tuple[str, str, str], int] = {}
    for first in range(0, sessions, each):
        with (home / f"gateway-{first // each:04d}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for number in range(first, min(first + each, sessions)):
                program = chance.choices(programs, weights)[0]
                at = start + number * step
                declares = json.dumps(program.declares)
                if drift is not None and (drift.client, drift.version) == (program.client, program.version):
                    declares = json.dumps(drift.declares) if at.hour >= drift.hour else declares
                key = program.client, program.version, declares
                made[key] = made.get(key, 0) + 1
                file.write("".join(_session(program, declares, number, at, chance)))
    rows = [(*key, count) for key, count in sorted(made.items())]
    return pd.DataFrame(rows, columns=["client", "client_version", "declares", "sessions"])


def _session(program: Program, declares: str, number: int, at: datetime, chance: random.Random) -> Iterator[str]:
    yield (
        f'{{"kind":"header","format":"mcplab-trace","version":1,"captured_at":"{at:%Y-%m-%dT%H:%M:%SZ}",'
        f'"tool":"gateway 1","transport":"streamable-http","label":"gateway"}}\n'
    )
    session = f"{chance.getrandbits(128):032x}"
    talk = _modern if program.era == "modern" else _legacy
    moment = at
    for seq, (direction, exchange, text, headers, status) in enumerate(talk(program, declares, number, session)):
        moment += timedelta(microseconds=chance.randrange(400, 90_000))
        facts = (
            '"method":"POST","path":"/mcp",' if direction == "c2s" else f'"status":{status},'
        ) + f'"headers":{headers},"exchange":"x{exchange}"'
        what = f'"kind":"message","msg":{text}' if text else '"kind":"http"'
        yield (
            f'{{"seq":{seq},"ts":"{moment:%Y-%m-%dT%H:%M:%S.%fZ}","conn":"c1","dir":"{direction}",'
            f'{what},"http":{{{facts}}}}}\n'
        )


_Talk = Iterator[tuple[str, int, str, str, int]]
"""Direction, HTTP exchange, message, headers, status."""
_JSON: Final = '"content-type":"application/json"'
_ASKS: Final = f'"accept":"application/json, text/event-stream",{_JSON}'


def _legacy(program: Program, declares: str, number: int, session: str) -> _Talk:
    """A handshake and a call: messages, and the empty answer to the client's notification."""
    info = f'{{"name":"{program.client}","version":"{program.version}"}}'
    own = f'{{{_ASKS},"mcp-session-id":"{session}","mcp-protocol-version":"{LEGACY}"}}'
    hello = (
        f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}",'
        f'"capabilities":{declares},"clientInfo":{info}}}}}'
    )
    result = (
        f'{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}}}},'
        '"serverInfo":{"name":"upstream","version":"5.2"}}}'
    )
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{number}}}}}}}'
    told = f'{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{number}"}}]}}}}'
    early = f"{{{_ASKS}}}"
    begin, begun = ("c2s", 1, hello, early, 0), ("s2c", 1, result, f'{{{_JSON},"mcp-session-id":"{session}"}}', 200)
    done = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    if program.eager:
        yield from (begin, ("c2s", 2, call, early, 0), begun, ("s2c", 2, told, f"{{{_JSON}}}", 200))
        yield from (("c2s", 3, done, own, 0), ("s2c", 3, "", "{}", 202))
    else:
        yield from (begin, begun, ("c2s", 2, done, own, 0), ("s2c", 2, "", "{}", 202))
        yield from (("c2s", 3, call, own, 0), ("s2c", 3, told, f"{{{_JSON}}}", 200))


def _modern(program: Program, declares: str, number: int, session: str) -> _Talk:
    """A discovery, a list of tools and a call, each a request that declares anew, with its answer."""
    meta = (
        f'"_meta":{{"{_PREFIX}/protocolVersion":"{MODERN}","{_PREFIX}/clientCapabilities":{declares},'
        f'"{_PREFIX}/clientInfo":{{"name":"{program.client}","version":"{program.version}"}}}}'
    )
    about = f'"resultType":"complete","_meta":{{"{_PREFIX}/serverInfo":{{"name":"upstream","version":"5.2"}}}}'
    kept = '"ttlMs":0,"cacheScope":"private"'
    calls = (
        ("server/discover", "", f'"supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},{kept}'),
        ("tools/list", "", f'"tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}}],{kept}'),
        ("tools/call", f'"name":"echo","arguments":{{"text":"{session}"}},',
         f'"content":[{{"type":"text","text":"{session}"}}]'),
    )  # fmt: skip
    for ident, (method, params, result) in enumerate(calls):
        named = ',"mcp-name":"echo"' if method == "tools/call" else ""
        yield (
            "c2s", ident, f'{{"jsonrpc":"2.0","id":{ident},"method":"{method}","params":{{{params}{meta}}}}}',
            f'{{{_ASKS},"mcp-protocol-version":"{MODERN}","mcp-method":"{method}"{named}}}', 0,
        )  # fmt: skip
        yield "s2c", ident, f'{{"jsonrpc":"2.0","id":{ident},"result":{{{about},{result}}}}}', f"{{{_JSON}}}", 200
