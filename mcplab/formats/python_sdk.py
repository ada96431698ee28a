"""Debug lines of the Python SDK, in whatever format its user chose for logging.

``Sending client message: root=JSONRPCRequest(method='initialize', ...)`` (1.x) or ``jsonrpc='2.0' id=1 method=...``,
``SSE message: ...``, ``Received server message: ...`` are Python reprs (modelcontextprotocol/python-sdk,
client/streamable_http.py, client/sse.py). A server over SSE logs each message it receives three times (server/sse.py):
``Received JSON: b'{...}'`` (1.2: a dict) holds the message's own bytes, the other two say it again as reprs.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from msgspec import UNSET

from mcplab.formats import clock, text
from mcplab.formats.build import NO_HTTP, Builder
from mcplab.formats.head import look
from mcplab.formats.plain import Conns
from mcplab.formats.source import Source
from mcplab.model import Record

NAME = "python-sdk"
TITLE = "Python SDK debug log"

_LINE = re.compile(
    r"(Sending client message|SSE message|Received server message|Received JSON|Received message from server"
    r"|Validated client message|Sending (?:session )?message to writer|Sending message via SSE"
    r"|Parsed JSON response|JSON response): ?(?:SessionMessage\(message=)?(?:JSONRPCMessage\()?"
    r"(?=root=|jsonrpc=|JSONRPC|method=|b['\"]|\{)"
)
_LOOSE = re.compile(r"(?=root=JSONRPC|JSONRPC(?:Request|Response|Notification|Error)\(|jsonrpc='2\.0' )()")
_POSTED = (
    "Received JSON",
    "Validated client message",
    "Sending message to writer",
    "Sending session message to writer",
)
_SENT = {"Sending client message", *_POSTED}
_SESSION = re.compile(r"Parsed session ID: (\S+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
_LIMIT = 1 << 20
_FIELD = re.compile(r"[\s,]*(\w+)=")
_NAMES = ("jsonrpc", "id", "method", "params", "result", "error")


def sniff(data: bytes) -> bool:
    """Are there the SDK's words before a message?"""
    return _LINE.search(text.start(data)) is not None


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the messages that the client logged (or an SSE server received). Reprs are turned back into JSON."""
    builder = Builder(source, NAME, infer=True)
    conns = Conns(builder)
    sessions: dict[str, int] = {}
    local = clock.zone(tz)
    rebuilt = naive = False
    taken = next((words for words in _POSTED if f"{words}: ".encode() in source.data), None)
    for number, line in enumerate(text.lines(source.data), 1):
        clean = text.ANSI.sub("", line)
        pos = 0
        if (posted := _SESSION.search(clean)) is not None:
            conns.number = sessions.setdefault(posted[1], len(sessions) + 1)
        while (found := _LINE.search(clean, pos) or _LOOSE.search(clean, pos)) is not None:
            stamps = _TIME.findall(clean[pos : found.start()])
            ts = clock.utc(stamps[-1], local) if stamps else UNSET
            naive = naive or (bool(stamps) and clock.is_naive(stamps[-1]))
            told = UNSET if found.re is _LOOSE else "c2s" if found[1] in _SENT else "s2c"
            pos = max(found.end(), pos + 1)
            try:
                message, own, used = _message(clean[found.end() :])
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
                builder.lost(number, line, f"a repr that cannot be read: {str(error)[:200]}")
                following = _LINE.search(clean, pos)
                pos = following.start() if following is not None else len(clean)
                continue
            pos = found.end() + max(used, 1)
            if found[1] in _POSTED and found[1] != taken:
                continue  # the message that was logged as it came, again
            rebuilt = rebuilt or not own
            looked = look(message.encode("utf-8", "surrogateescape") if isinstance(message, str) else message)
            heads = looked if isinstance(looked, list) else None
            conn = conns.of(heads) if heads and not sessions else conns.current
            if len(sessions) > 1 and told == "s2c" and heads:
                names = [f"c{each}" for each in sessions.values()]
                conn = next((name for name in names if builder.directions(name).waits(heads[0])), conn)
                builder.note(
                    "no mark of a server's message's session: an answer goes to the first that waits for its id"
                )
            builder.message(message, number, conn=conn, dir=told, ts=ts, heads=heads)
    if rebuilt:
        builder.note(
            "messages are rebuilt from Python reprs: key order and numbers as the SDK had them, a member that is None "
            "is left out"
        )
    if naive:
        builder.header["clock"] = "naive" if local is None else "utc"
        if local is None:
            builder.note(clock.NAIVE)
    if re.search(rb"streamable_http|StreamableHTTP", source.data):
        builder.header["transport"] = "streamable-http"
    elif re.search(rb"mcp[./](?:client|server)[./]sse", source.data):
        builder.header["transport"] = "sse"
    builder.note(
        "only what this side logged is here: answers that came as JSON, not as an event stream, are not logged by "
        "every version"
    )
    builder.note(NO_HTTP)
    return builder.record()


def _message(body: str) -> tuple[str | bytes, bool, int]:
    """The message's text, whether it is its own, and where it ends."""
    if body[:1] == "{":
        found = text.json_in(body)
        if not isinstance(found, str):
            return found[0], True, found[1]
        literal = _literal(body, 0)
        return _text(_value(literal)), False, len(literal)
    if body[:1] == "b":
        literal = _literal(body, 0)
        value = _value(literal)
        if isinstance(value, bytes):
            return value, True, len(literal)
    lead = re.match(r"(?:root=)?(?:\w+\()?", body)
    pos = lead.end() if lead is not None else 0
    fields: dict[str, Any] = {}
    while (name := _FIELD.match(body, pos)) is not None:
        source = _literal(body, name.end())
        pos = name.end() + len(source)
        value = _value(source)
        if name[1] in _NAMES and value is not None:
            fields[name[1]] = value
    if "jsonrpc" not in fields:
        raise ValueError("no jsonrpc in it")
    return _text(fields), False, pos


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _literal(body: str, start: int) -> str:
    """The text of the Python literal or call that begins at ``start``."""
    depth = 0
    pos = start
    if len(body) - start > _LIMIT:
        body = body[: start + _LIMIT]
    string = re.compile(r"b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
    while pos < len(body):
        mark = body[pos]
        if mark in "'\"" or (mark == "b" and body[pos + 1 : pos + 2] in ("'", '"')):
            found = string.match(body, pos)
            if found is None:
                raise ValueError("a string that does not end")
            pos = found.end()
            continue
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and mark in " ,":
            break
        pos += 1
    if depth:
        raise ValueError("brackets that do not close")
    return body[start:pos]


def _value(source: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _plain(ast.parse(source.strip(), mode="eval").body)


def _plain(node: ast.expr) -> Any:
    """A literal; a call such as ``ErrorData(code=1, message='x')`` is the object of its members that are not None."""
    if isinstance(node, ast.Call):
        members = {word.arg: _plain(word.value) for word in node.keywords if word.arg is not None}
        return {name: value for name, value in members.items() if value is not None}
    if isinstance(node, ast.Dict):
        return {
            str(_plain(key)): _plain(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_plain(item) for item in node.elts]
    return ast.literal_eval(node)
