"""The tap in a client's configuration: put before a server's command, and taken out again, every other byte kept."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mcplab import jsontext
from mcplab.model import MCPLabError

BACKUP: Final = ".mcplab-backup"
"""What the name of the copy ends with that is made before the first tap goes in."""

_HOMES: Final = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp",), ("context_servers",))
"""Where clients keep their servers: most; VS Code (mcp.json, settings.json); opencode; Zed."""
_ADDRESS: Final = ("url", "httpUrl", "serverUrl")
_SKIP: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|//[^\r\n]*|/\*.*?\*/|\ufeff|,(?=[\s\0]*[}\]])', re.DOTALL)


class Wrapped(NamedTuple):
    """What was done: ``servers`` by name, ``changed``: the file is another one now; the backup, if there is one."""

    servers: list[str]
    changed: bool
    backup: Path


class _Entry(NamedTuple):
    """One server's entry: where its object and its members' values begin."""

    name: str
    start: int
    members: dict[str, int]


def tap_command(output: str | os.PathLike[str], options: Sequence[str] = ()) -> list[str]:
    """What goes before a server's command: this Python and this mcplab, wherever the client is started."""
    return [sys.executable, "-P", "-m", "mcplab", "tap", "-o", os.path.abspath(output), *options, "--"]


def wrap(config: Path, server: str, output: Path, options: Sequence[str] = ()) -> Wrapped:
    """Put the tap before the command of ``server``; where it is there already its options are brought up to date.

    Comments and trailing commas are fine, and stay. A backup is made unless a tap is in the file already.

    Raises:
        MCPLabError: the file or the server is not there, the file is no JSON, or the server is no command.
    """
    path, before = _read(config)
    plain = _plain(before, config)
    entries = _entries(plain)
    named = _named(entries, server, config)
    text = before
    if _tapped(plain, named) is not None:
        text = _without(text, plain, named)
        plain = _plain(text, config)
        named = _named(_entries(plain), server, config)
    text = _with(text, plain, named, tap_command(output, options), config)
    backup = path.with_name(path.name + BACKUP)
    if text != before:
        if all(_tapped(_plain(before, config), one) is None for one in entries):
            try:
                shutil.copyfile(path, backup)
                shutil.copystat(path, backup)
            except OSError as error:
                raise _unwritable(backup, error) from None
        _write(path, text)
    return Wrapped([server], text != before, backup)


def unwrap(config: Path, server: str | None = None) -> Wrapped:
    """Take the tap out again, of one server or of all; what is left is what stood there before it went in.

    Raises:
        MCPLabError: the file or the server is not there, or the file is no JSON.
    """
    path, before = _read(config)
    plain = _plain(before, config)
    entries = _entries(plain)
    if server is not None:
        entries = [_named(entries, server, config)]
    text, done = before, []
    for entry in sorted(entries, key=lambda one: one.start, reverse=True):
        if _tapped(plain, entry) is not None:
            text = _without(text, plain, entry)
            done.insert(0, entry.name)
    if text != before:
        _write(path, text)
    return Wrapped(done, text != before, path.with_name(path.name + BACKUP))


# Reading -------------------------------------------------------------------------------------------


def _read(config: Path) -> tuple[Path, str]:
    path = config.resolve()
    try:
        return path, path.read_bytes().decode()
    except UnicodeDecodeError:
        raise MCPLabError(f"{config}: no UTF-8, so it is left alone") from None
    except OSError as error:
        raise MCPLabError(f"{config}: {(error.strerror or str(error)).lower()}") from None


def _plain(text: str, config: Path) -> str:
    """The text as JSON of the same length: comments, trailing commas and a byte order mark are spaces."""
    plain = _SKIP.sub(lambda hit: hit[0] if hit[1] else " " * len(hit[0]), text)
    plain = _SKIP.sub(lambda hit: hit[0] if hit[1] else " " * len(hit[0]), plain)  # a comma before a comment
    if why := jsontext.check(plain):
        raise MCPLabError(
            f"{config}: no JSON ({why}), so it is left alone; put this before the server's command by hand: "
            f"{shlex.join(tap_command('trace.jsonl'))}"
        )
    return plain


def _entries(plain: str) -> list[_Entry]:
    """Every server of the file. Of duplicate keys the last counts."""
    roots = [jsontext.skip(plain, 0)]
    projects = _at(plain, roots[0], ("projects",))  # Claude Code keeps servers of each project
    if projects is not None:
        roots += dict(jsontext.places(plain, projects)).values()
    found: list[_Entry] = []
    for root in roots:
        for home in _HOMES:
            where = _at(plain, root, home)
            if where is None:
                continue
            for name, start in dict(jsontext.places(plain, where)).items():
                members = dict(jsontext.places(plain, start))
                if {"command", "args", *_ADDRESS} & members.keys():
                    found.append(_Entry(name, start, members))
    return found


def _at(plain: str, start: int, keys: Sequence[str]) -> int | None:
    for key in keys:
        found = dict(jsontext.places(plain, start)).get(key)
        if found is None:
            return None
        start = found
    return start


def _named(entries: Sequence[_Entry], server: str, config: Path) -> _Entry:
    found = [entry for entry in entries if entry.name == server]
    if len(found) == 1:
        return found[0]
    if found:
        raise MCPLabError(f"{config}: {len(found)} servers are named {server}; give them names of their own first")
    known = ", ".join(dict.fromkeys(entry.name for entry in entries)) or "none"
    raise MCPLabError(f"{config}: no server {server}; there are: {known}")


def _tapped(plain: str, entry: _Entry) -> int | None:
    """In which element of the arguments the server's own command stands, where there is a tap before it."""
    words = _words(plain, entry)
    for at in range(1, len(words) - 2):
        if words[at - 1 : at + 2] == ["-m", "mcplab", "tap"] and "--" in words[at:]:
            return words.index("--", at) + 1
    return None


def _array(plain: str, entry: _Entry) -> int | None:
    """Where the list begins that the tap's words stand in: the arguments, or a command that is a list itself."""
    command = entry.members.get("command")
    if command is not None and plain[command] == "[":
        return command
    args = entry.members.get("args")
    return args if args is not None and plain[args] == "[" else None


def _words(plain: str, entry: _Entry) -> list[object]:
    start = _array(plain, entry)
    return [] if start is None else [jsontext.loads(plain[a:b]) for a, b in jsontext.spans(plain, start)]


# Writing -------------------------------------------------------------------------------------------


def _with(text: str, plain: str, entry: _Entry, tap: Sequence[str], config: Path) -> str:
    command = entry.members.get("command")
    if command is None or plain[command] not in '"[':
        address = next((plain[entry.members[key] :] for key in _ADDRESS if key in entry.members), '"URL"')
        url = jsontext.value(address)[0]
        raise MCPLabError(
            f"{config}: {entry.name} has an address and no command, and a tap stands before a command only; "
            f"start mcplab proxy --upstream {url} -o {entry.name}.jsonl and put the address that it prints there"
        )
    array = _array(plain, entry)
    if array is None and "args" in entry.members:
        raise MCPLabError(f"{config}: the args of {entry.name} are no list, so it is left alone")
    if array is not None and array == command:
        inside = ", ".join(map(_word, tap)) + ("," if jsontext.spans(plain, array) else " ")
        return text[: array + 1] + inside + text[array + 1 :]
    end = jsontext.value_end(plain, command)
    own = text[command:end]
    inside = ", ".join([*map(_word, tap[1:]), own])
    if array is None:
        return f'{text[:command]}{_word(tap[0])}, "args": [{inside}]{text[end:]}'
    inside += "," if jsontext.spans(plain, array) else " "
    edits = [(command, end, _word(tap[0])), (array + 1, array + 1, inside)]
    return _edited(text, edits)


def _without(text: str, plain: str, entry: _Entry) -> str:
    array = _array(plain, entry)
    at = _tapped(plain, entry)
    assert array is not None
    assert at is not None
    spans = jsontext.spans(plain, array)
    command = entry.members["command"]
    if array == command:
        end = plain.index(",", spans[at - 1][1]) + 1 if at < len(spans) else spans[at - 1][1] + 1
        return text[: array + 1] + text[end:]
    own = text[slice(*spans[at])] if at < len(spans) else '""'
    over = jsontext.value_end(plain, command)
    last = spans[min(at, len(spans) - 1)][1]
    if text[over : array + 1] == ', "args": [' and text[last] == "]":  # they were not there before
        return text[:command] + own + text[last + 1 :]
    last += text[last] in ", "
    return _edited(text, [(command, over, own), (array + 1, last, "")])


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _word(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    """In one step, so that the client never reads half of it; the file's mode stays."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
            shutil.copymode(path, name)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> MCPLabError:
    return MCPLabError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()}), so nothing was changed")
