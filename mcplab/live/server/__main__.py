"""``python -m mcplab.live.server``: the demo server as a process of its own."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from typing import Any, NoReturn

from mcplab.live.server import faults
from mcplab.live.server.config import Config
from mcplab.live.server.drive import Wire
from mcplab.model import ABSENT, MCPLabError, UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parser() -> argparse.ArgumentParser:
    options = _Parser(
        prog="python -m mcplab.live.server",
        description="A demo MCP server: correct in every revision, or with one fault.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"faults:\n{faults.table()}",
    )
    where = options.add_mutually_exclusive_group()
    where.add_argument("--stdio", action="store_true", help="serve standard input and output (the default)")
    where.add_argument("--http", type=int, metavar="PORT", help="serve 127.0.0.1:PORT (0: any) and print the URL")
    options.add_argument("--sse", action="store_true", help="over HTTP, the HTTP+SSE transport of 2024-11-05")
    options.add_argument("--serves", choices=("legacy", "modern", "dual"), default="dual")
    options.add_argument("--versions", default="", help="revisions, separated by commas")
    options.add_argument("--capabilities", metavar="JSON", help="what to declare")
    options.add_argument("--instructions", metavar="JSON", help='a JSON string; "" sends none')
    options.add_argument("--session-id", help='of every legacy session; "" for none')
    options.add_argument("--get", choices=("sse", "405"), default="sse", help="what a legacy GET gets")
    options.add_argument("--challenge", action="store_true", help="ask the client for what it has not declared, too")
    options.add_argument("--fault", default="", help="misbehave: see below")
    options.add_argument("--name", default=Config.name)
    options.add_argument("--log", metavar="FILE", help="write what is read and written there")
    return options


def config_of(given: argparse.Namespace) -> Config:
    """The configuration that arguments ask for; ValueError where JSON is not JSON."""
    instructions: Any = Config.instructions
    if given.instructions is not None:
        instructions = json.loads(given.instructions) if given.instructions else ABSENT
    return Config(
        serves=given.serves,
        versions=tuple(version.strip() for version in given.versions.split(",") if version.strip()),
        capabilities=ABSENT if given.capabilities is None else json.loads(given.capabilities),
        session_id=given.session_id,
        get=given.get,
        challenge=given.challenge,
        fault=given.fault,
        old_sse=given.sse,
        instructions=instructions,
        name=given.name,
    )


def main(words: list[str] | None = None) -> int:
    options = parser()
    given = options.parse_args(words)
    try:
        config = config_of(given)
        faults.Faulty(config.fault)
    except (ValueError, MCPLabError) as error:
        raise UsageError(str(error)) from None
    if given.http is None and not given.sse:
        from mcplab.live.server import stdio

        return stdio.main(config, Wire(given.log))
    from mcplab.live.server.demo import serving

    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    try:
        with serving(config, port=given.http or 0, log=given.log) as served:
            sys.stdout.write(f"{served.url}\n")
            sys.stdout.flush()
            over.wait()
    except MCPLabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as wrong:
        sys.stderr.write(f"python -m mcplab.live.server: {wrong} (--help explains)\n")
        sys.exit(2)
