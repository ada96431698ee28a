"""VS Code's output channel "MCP: NAME" (and its window log): ``[editor -> server]`` and ``[server -> editor]``.

The frames are written by ``McpServerRequestHandler`` (microsoft/vscode, src/vs/workbench/contrib/mcp/common), at debug
or at a level that a setting chooses; builds of spring 2025 wrote ``[Client Says]`` and ``[Server Says]``.
"""

from __future__ import annotations

import re

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import clock, text
from mcplab.formats.build import NO_HTTP, NO_TRANSPORT, Builder
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "vscode"
TITLE = "VS Code MCP output"

_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"
_SAYS = r"\[(?:editor -> server|server -> editor|Client Says|Server Says)\]"
_HEAD = re.compile(rf"[>\s]*(?:({_TIME})\s+\[(\w+)\] |(?={_SAYS})|(?=Connection state: )|(?=.{{0,60}}{_SAYS} ?[\[{{]))")
_FRAME = re.compile(r"\[(editor -> server|server -> editor|Client Says|Server Says)\] ?")
_STATE = re.compile(r"Connection state: (\w+)\s*(.*)", re.DOTALL)
_CODE = re.compile(r"exited with code (-?\d+)")
_FAILED = re.compile(r"Failed to parse message: ")
_STDERR = re.compile(r"\[server stderr\] ?")
_SIGN = re.compile(
    rf"{_SAYS} ?[\[{{]|^.{{0,40}}Connection state: (?:Starting|Running|Stopped|Error)"
    r"|^.{0,40}Failed to parse message: \"|^.{0,40}\[server stderr\] ",
    re.MULTILINE,
)


def sniff(data: bytes) -> bool:
    """Does it hold lines of this log?"""
    return _SIGN.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the output. Times are local: ``tz`` places them. A connection lasts from Running to Stopped or Error."""
    builder = Builder(source, NAME)
    local = clock.zone(tz)
    builder.header["clock"] = "utc" if local is not None else "naive"
    state = _State(builder)
    found = text.lines(source.data)
    timed = naive = False
    for number, block in text.blocks(found, _HEAD):
        head = _HEAD.match(block[0])
        if head is None:
            state.loose(number, block)
            continue
        timed = timed or head[1] is not None
        naive = naive or clock.is_naive(head[1])
        ts = clock.utc(head[1], local)
        state.entry(number, "\n".join([block[0][head.end() :], *block[1:]]), ts)
    if not timed:
        builder.note("no times: pasted without them")
        del builder.header["clock"]
    elif not naive:
        builder.header["clock"] = "utc"
    elif local is None:
        builder.note(clock.NAIVE)
    if state.stdio:
        builder.header["transport"] = "stdio"
    else:
        builder.note(NO_TRANSPORT)
    builder.note(NO_HTTP)
    if state.other:
        builder.note(f"{state.other} log lines of the editor itself carry no traffic and are left out")
    if not builder.messages:
        builder.note(
            "messages are logged only at a more detailed level: set the server's log level to Trace and run it again"
        )
    return builder.record()


class _State:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.stdio = False
        self.number = 1
        self.open = False
        self.label = ""
        self.other = 0
        self.directions: dict[str, str] = {}

    @property
    def conn(self) -> str:
        return f"c{self.number}"

    def entry(self, number: int, rest: str, ts: object) -> None:
        at = {"conn": self.conn, "ts": ts}
        words = rest.rstrip("\n")
        frame = _FRAME.match(words) or (_FRAME.search(words[:100]) if ts is UNSET else None)
        if frame is not None:
            found = text.json_in(words, frame.end())
            if isinstance(found, str):
                self.builder.lost(number, words, found)
                self.builder.rescue(words, number, conn=self.conn, ts=ts)
                return
            direction = "c2s" if frame[1] in ("editor -> server", "Client Says") else "s2c"
            self.builder.message(found[0], number, dir=direction, **at)  # type: ignore[arg-type]
            left = words[found[1] :]
            if left.strip(" \n`"):
                self.loose(number + words.count("\n", 0, found[1]), left.split("\n"))
        elif (stderr := _STDERR.match(words)) is not None:
            self.stdio = True
            self.builder.add("stderr", number, dir="s2c", raw=words[stderr.end() :], **at)
        elif (failed := _FAILED.match(words)) is not None:
            self.stdio = True
            self._failed(number, words[failed.end() :], words, at)
        elif (state := _STATE.match(words)) is not None:
            self._state(number, state[1], words, ts)
            self._bare(number, state[2], words, ts)  # the end of its line may be damaged: the next is in its words
        elif not self._bare(number, words, words, ts):
            started = re.match(r"Starting server (.+)", words)
            if started is not None and not started[1].startswith("from "):
                self.label = started[1].strip()
            self.other += 1

    def _bare(self, number: int, text: str, words: str, ts: object) -> bool:
        """Take a message from a text that does not say whose it is. Was there one?"""
        if '"jsonrpc"' not in text or not self.builder.rescue(text, number, conn=self.conn, ts=ts):
            return False
        self.builder.lost(number, words, "damaged: a message, but not the words that go before one")
        return True

    def _failed(self, number: int, quoted: str, words: str, at: dict[str, object]) -> None:
        try:
            value, _ = jsontext.value(quoted)
        except ValueError:
            value = quoted
        line = value if isinstance(value, str) else quoted
        raw = jsontext.printable(line[:-1] if line.endswith("\n") else line)
        self.builder.add("unparsed", number, dir="s2c", raw=raw, reason=words.split(":")[0], **at)

    def _state(self, number: int, state: str, words: str, ts: object) -> None:
        if state == "Running" and not self.open:
            self.open = True
            self.builder.add("open", number, conn=self.conn, ts=ts, label=self.label or UNSET)
        elif state in ("Stopped", "Error") and (self.open or state == "Error"):
            code = _CODE.search(words)
            if code is not None:
                self.stdio = True
            self.builder.add("close", number, conn=self.conn, ts=ts, reason=words,
                             unexpected=True if state == "Error" else UNSET,
                             exit_code=int(code[1]) if code is not None and len(code[1]) < 12 else UNSET)  # fmt: skip
            self.open = False
            self.number += 1

    def loose(self, number: int, block: list[str]) -> None:
        """Lines that no entry begins: messages may still stand in them where their beginning was damaged."""
        for offset, line in enumerate(block):
            frame = _FRAME.search(line)
            arrow = re.search(r"(editor|server) -> (server|editor)", line)
            brace = line.find("{")
            if frame is not None:
                self.entry(number + offset, line[frame.start() :], UNSET)
            elif arrow is not None and brace > arrow.end():
                self.entry(number + offset, f"[{arrow[0]}] {line[brace:]}", UNSET)
            elif '"jsonrpc"' in line and self.builder.rescue(line, number + offset, conn=self.conn):
                self.builder.lost(number + offset, line, "damaged: a message, but not the words that go before one")
            elif line.strip():
                self.other += 1
