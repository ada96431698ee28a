"""A big trace of invented traffic: many connections of 2025-06-18 over HTTP, a few odd texts. Always the same bytes.

python benchmarks/generate.py FILE [--events 400000]
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

START = datetime(2026, 1, 5, 10, 0, 0, tzinfo=UTC)
PADDING = "the quick brown fox jumps over the lazy dog and writes it down \\u00e9\\ud83d\\ude00 "


class Writer:
    """Writes events with growing seq and time."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.seq = 0

    def event(self, conn: str, direction: str, message: str, http: str = "") -> None:
        """One message event."""
        stamp = (START + timedelta(microseconds=self.seq * 1237)).strftime("%Y-%m-%dT%H:%M:%S.%f")
        self.file.write(
            f'{{"kind":"message","seq":{self.seq},"ts":"{stamp}Z","conn":"{conn}","dir":"{direction}","msg":{message}{http}}}\n'
        )
        self.seq += 1


def connection(out: Writer, number: int) -> None:
    """One legacy connection over HTTP: a handshake and twenty calls."""
    conn, session = f"c{number}", f"{number:032x}"
    exchange = 0

    def facts(answer: bool) -> str:
        if answer:
            return (
                f',"http":{{"status":200,"headers":{{"content-type":"application/json","mcp-session-id":"{session}"}},'
                f'"exchange":"x{exchange}"}}'
            )
        return (
            f',"http":{{"method":"POST","path":"/mcp","headers":{{"accept":"application/json, text/event-stream",'
            f'"content-type":"application/json","mcp-session-id":"{session}","mcp-protocol-version":"2025-06-18"}},"exchange":"x{exchange}"}}'
        )

    client = json.dumps({"name": f"client-{number % 37}", "version": f"1.{number % 11}.0"})
    out.event(
        conn,
        "c2s",
        '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":'
        f'{{"roots":{{"listChanged":{"true" if number % 2 else "false"}}},"sampling":{{}}}},"clientInfo":{client}}}}}',
        facts(False),
    )
    out.event(
        conn,
        "s2c",
        '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},'
        '"resources":{}},"serverInfo":{"name":"demo","version":"0.3.0"}}}',
        facts(True),
    )
    exchange += 1
    out.event(conn, "c2s", '{"jsonrpc":"2.0","method":"notifications/initialized"}', facts(False))
    for call in range(1, 21):
        exchange += 1
        text = PADDING * (1 + (number + call) % 4)
        out.event(
            conn,
            "c2s",
            f'{{"jsonrpc":"2.0","id":{call},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}","n":1.50}}}}}}',
            facts(False),
        )
        out.event(
            conn,
            "s2c",
            f'{{"jsonrpc":"2.0","id":{call},"result":{{"content":[{{"type":"text","text":"{text}"}}],"structuredContent":'
            f'{{"big":9007199254740993{call:02d}}}}}}}',
            facts(True),
        )


def generate(path: Path, events: int) -> int:
    """Write at least ``events`` events; how many bytes it came to."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            '{"kind":"header","format":"mcplab-trace","version":1,"captured_at":"2026-01-05T10:00:00Z",'
            '"tool":"generate 1",'
            '"transport":"streamable-http"}\n'
        )
        out = Writer(file)
        number = 0
        while out.seq < events:
            number += 1
            connection(out, number)
    return path.stat().st_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=400_000)
    given = parser.parse_args()
    print(f"{given.file}: {generate(given.file, given.events):,} bytes")
