"""What curl printed: ``curl -i``, ``-v`` and ``-N -v``, one or many commands after another, with or without the prompt.

``>`` and ``<`` lines are the headers that were sent and received, ``*`` lines are curl's own words (curl's manual,
option ``-v``). The request body is only in the command line (``-d``, ``--data``, ``--data-raw``, ``--json``). Requests
and responses as HTTP has them on the wire (a line, headers, an empty line, a body) may stand in their place.
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

from mcplab.formats import http, text
from mcplab.formats.build import Builder
from mcplab.formats.http import Exchange
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "curl"
TITLE = "curl -i / -v transcript"

_COMMAND = re.compile(r"(?:[^\n]{0,80}?[$#%>»❯]\s+|\+\s+)?(?:[A-Za-z]:\S*[\\/])?curl(?:\.exe)?\s")
_STATUS = re.compile(r"(?:< ?)?HTTP/[\d.]+ (\d{3})(?:\s|$)")
_REQUEST = re.compile(r"> ([A-Z]+) (\S+) HTTP/[\d.]+")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s?(.*)")
_PLAIN = re.compile(r"(POST|GET|DELETE) (/\S*|https?://\S+)(?: HTTP/[\d.]+)?[ \t\r]*$", re.MULTILINE)
_SIGN = re.compile(
    rf"^(?:< ?)?HTTP/[\d.]+ \d{{3}}|^> (?:POST|GET|DELETE) \S+ HTTP/|^{_PLAIN.pattern}\n[\w-]+: ", re.MULTILINE
)
_INFO = re.compile(r"\* (?=[A-Z(\[a-z]|$)|\} \[\d+ bytes|\{ \[\d+ bytes|[{}] \[data not shown\]")
_METER = re.compile(r"\s*(?:%\s+Total|Dload|\d+\s+\d+\s+\d+\s+\d+\s+\d+\s+\d+)")
_LINES = 500  # a command may go on over so many lines
_DATA = {"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json"}
_VALUED = {"-X", "--request", "-H", "--header", "-u", "--user", "-o", "--output", "-m", "--max-time", "-A",
           "--user-agent", "--url", "-b", "--cookie", "-w", "--write-out", "-e", "--referer", "--connect-timeout",
           "-x", "--proxy", "--cacert", "-E", "--cert", "--key", "-c", "--cookie-jar", "--retry"}  # fmt: skip


def sniff(data: bytes) -> bool:
    """Is there a status line or a request line as curl prints it?"""
    return _SIGN.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the transcript; each command, or each request line, is one exchange of one client."""
    builder = Builder(source, NAME, transport="streamable-http")
    exchanges: list[Exchange] = []
    blocks: list[tuple[str, int]] = []
    for number, block in _cut(text.lines(source.data)):
        exchanges.extend(_Transcript(number, block, builder).exchanges())
        blocks.append(("\n".join(block), number))
    builder.note("no times: curl prints none")
    builder.note("the transcript goes command by command: the order of exchanges that overlapped is not in it")
    if len(exchanges) > 1:
        builder.note("every command makes its own TCP connection; they are taken as one client")
    if any(exchange.request_body is None and exchange.method == "POST" for exchange in exchanges):
        builder.note("a POST whose command is not in the transcript has no request body")
    if any(not exchange.method for exchange in exchanges):
        builder.note("a response whose command is not in the transcript has no method, path and request")
    http.add(builder, exchanges, by_time=False)
    known = {event.text for event in builder.events}
    for whole, number in blocks:
        if '"jsonrpc"' in whole and builder.rescue(whole, number, known=known):
            builder.lost(number, whole, "damaged: a message where curl prints none")
    return builder.record()


def _cut(found: list[str]) -> list[tuple[int, list[str]]]:
    """One piece a command; without commands one a request or response head."""
    starts = [n for n, line in enumerate(found) if _COMMAND.match(line) or _plain(found, n)]
    if not starts or starts[0] != 0:
        starts.insert(0, 0)
    return [(start + 1, found[start:end]) for start, end in zip(starts, [*starts[1:], len(found)], strict=True)]


def _plain(found: list[str], at: int) -> re.Match[str] | None:
    """A request line without curl's sign: a header follows it."""
    line = _PLAIN.match(found[at])
    return line if line is not None and at + 1 < len(found) and _HEADER.match(found[at + 1]) else None


class _Head(Struct):
    line: int
    method: str = ""
    path: str = ""
    headers: list[tuple[str, str]] = []


class _Transcript:
    """One command with what it printed."""

    def __init__(self, number: int, block: list[str], builder: Builder) -> None:
        self.builder = builder
        self.number = number
        self.method, self.url = "", ""
        self.data: str | None = None
        self.headers: list[tuple[str, str]] = []
        self.redirected = False  # then the same body is sent again
        used = 0
        if block and _COMMAND.match(block[0]):
            used = self._command(block)
        elif block and (line := _plain(block, 0)) is not None:
            used = self._request(line, block)
        self.block = block[used:]
        self.at = number + used

    def _command(self, block: list[str]) -> int:
        """Read the command line, which may go on over several lines; how many lines it took."""
        command = ""
        for used, line in enumerate(block[:_LINES], 1):
            ends = line.rstrip()
            goes_on = ends.endswith(("\\", "^"))
            command += ends[:-1] + " " if goes_on else line
            if not goes_on and (command.count("'") % 2 == 0 or '"' in command):
                words = _words(command)
                if words is not None:
                    self._options(words)
                    return used
            if used > 1 and _STATUS.match(line):
                break
            if not goes_on:
                command += "\n"
        words = _words(block[0].rstrip("\\^ ")) or []
        self._options(words)
        self.builder.lost(self.number, block[0], "a curl command that does not end")
        return 1

    def _request(self, line: re.Match[str], block: list[str]) -> int:
        """Read a request as it is on the wire, until a response begins; how many lines it took."""
        self.method, self.url = line[1], line[2]
        used = 1
        while used < len(block) and (header := _HEADER.match(block[used])) is not None:
            self.headers.append((header[1], header[2]))
            used += 1
        ends = next((n for n in range(used, len(block)) if _STATUS.match(block[n])), len(block))
        body = "\n".join(block[used:ends]).strip()
        self.data = body[: max(body.rfind("}"), body.rfind("]")) + 1] or body or None  # words may follow it
        return ends

    def _options(self, words: list[str]) -> None:
        words = words[next((n for n, word in enumerate(words) if re.search(r"curl(?:\.exe)?$", word)), 0) + 1 :]
        pieces: list[str] = []
        position = 0
        while position < len(words):
            word = words[position]
            name, given, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if name in _DATA or name in _VALUED:
                if not given:
                    position += 1
                    value = words[position] if position < len(words) else ""
            elif re.match(r"-[a-zA-Z]*[dHX]", word) and not word.startswith("--"):
                letter = re.search(r"[dHX]", word)
                name, value = "-" + letter[0], word[letter.end() :]  # type: ignore[index]
                if not value:
                    position += 1
                    value = words[position] if position < len(words) else ""
            self._option(name, value, word, pieces)
            position += 1
        if pieces:
            self.data = "&".join(pieces)
        if not self.method:
            self.method = "POST" if self.data is not None else "GET"

    def _option(self, name: str, value: str, word: str, pieces: list[str]) -> None:
        if name in _DATA:
            if value.startswith("@") and name != "--data-raw":
                self.builder.note("a request body was read from a file by curl and is not in the transcript")
            else:
                pieces.append(value)
            if name == "--json":
                self.headers += [("content-type", "application/json"), ("accept", "application/json")]
        elif name in ("-X", "--request"):
            self.method = value.upper()
        elif name in ("-H", "--header"):
            key, colon, rest = value.partition(":")
            if colon:
                self.headers.append((key, rest))
        elif name == "--url":
            self.url = value
        elif name in ("-I", "--head"):
            self.method = "HEAD"
        elif not word.startswith("-") and name == word and not self.url:
            self.url = word

    def exchanges(self) -> list[Exchange]:
        """The exchanges of this command: one for each head that was sent or received (a redirect makes two)."""
        made: list[Exchange] = []
        current: Exchange | None = None
        body: list[str] = []
        sent: _Head | None = None
        state = "body"
        interim = False

        def finish() -> None:
            nonlocal current, body
            if current is not None:
                if not interim:
                    current.response_body = _body(body, current)
                made.append(current)
            current, body = None, []

        for offset, line in enumerate(self.block):
            at = self.at + offset
            request, status = _REQUEST.match(line), _STATUS.match(line)
            if request is not None:
                finish()
                sent, state = _Head(at, request[1], request[2], []), "sent"
            elif status is not None and (
                line.startswith("<") or state != "body" or not body or current is None or not any(body)
            ):
                interim = status[1].startswith("1")
                if current is not None:
                    finish()
                current = self._exchange(sent, at)
                self.redirected = status[1].startswith("3")
                current.status, state = int(status[1]), "interim" if interim else "head"
                if interim:
                    current = None
            elif line.startswith("> ") or line == ">":
                header = _HEADER.match(line[2:])
                if sent is not None and header is not None:
                    sent.headers.append((header[1], header[2]))
            elif line.startswith("< ") or line == "<":
                header = _HEADER.match(line[2:])
                if current is not None and header is not None and state == "head":
                    current.response_headers = [*current.response_headers, (header[1], header[2])]
                elif line == "<":
                    state = "body"
            elif state == "head" and not line.strip() and current is not None:
                state = "body"
            elif (
                state == "head"
                and current is not None
                and (header := _HEADER.match(line)) is not None
                and not _INFO.match(line)
            ):
                current.response_headers = [*current.response_headers, (header[1], header[2])]
            elif state == "head" and not line.startswith(("{", "[", "*", "<")):
                continue  # a header that is damaged
            elif _INFO.match(line) or (_METER.match(line) and "{" not in line):
                if current is not None and re.match(
                    r"\* (?:Connection #?\d+ .*left intact|Closing connection|transfer closed|shutting down)", line
                ):
                    current.closed = True
                elif (
                    re.match(r"\* .*(?:[Ff]ailed to connect|Could not resolve|timed out|Empty reply)", line)
                    and current is None
                ):
                    current = self._exchange(sent, at)
                    current.broken = line[2:]
            elif current is not None:
                state = "body"
                if not body and line:
                    current.response_line = at
                if body or line:
                    body.append(line)
        if current is None and (sent is not None or self.data is not None) and not made:
            current = self._exchange(sent, self.number)
        finish()
        return made

    def _exchange(self, sent: _Head | None, at: int) -> Exchange:
        method = sent.method if sent is not None else self.method
        data, self.data = self.data, self.data if self.redirected else None
        self.redirected = False
        return Exchange(
            method=method or "",
            url=sent.path if sent is not None and sent.path else self.url,
            line=self.number,
            request_headers=sent.headers if sent is not None and sent.headers else self.headers,
            request_body=data if method not in ("GET", "DELETE", "HEAD") else None,
            response_line=at,
        )


def _words(command: str) -> list[str] | None:
    try:
        return shlex.split(command)
    except ValueError:
        return None


def _body(found: list[str], exchange: Exchange) -> str | None:
    kind = http.headers(exchange.response_headers).get("content-type", "")
    if "event-stream" in kind:
        return "\n".join(found) + "\n"
    body = "\n".join(found).strip("\n")
    stars = body.find("* Connection #")
    if stars > 0 and body[stars - 1] in "}]":  # no line break at the end of the body: curl's words follow on
        body = body[:stars]
        exchange.closed = True
    return body
