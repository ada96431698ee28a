"""JSON text taken apart without being re-written: members and elements keep the bytes they had on the wire.

``json.loads`` cannot serve where a declaration is quoted as evidence: it merges duplicate keys, turns ``1.50`` into
``1.5`` and big integers into floats elsewhere. These scanners only find where a value begins and ends; they expect
text that is known to be JSON (``check``) and never recurse, so nesting cannot exhaust the stack.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
# possessive (++, *+): else the engine remembers each character to come back to, a hundred bytes for every one
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(r"[^ \t\r\n,\]}]+")
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)

_WORD = {"{": "object", "[": "array", '"': "string", "t": "true", "f": "false", "n": "null"}


def kind(text: str) -> str:
    """``object``, ``array``, ``string``, ``true``, ``false``, ``null`` or ``number``, from the first character."""
    return _WORD.get(text.lstrip(" \t\r\n")[:1], "number")


def value_end(text: str, start: int) -> int:
    """Where the value that begins at ``start`` ends."""
    first = text[start]
    if first == '"':
        found = _STRING.match(text, start)
    elif first in "{[":
        depth = 0
        for token in _STRUCTURE.finditer(text, start):
            mark = token.group()
            if mark in ("{", "["):
                depth += 1
            elif mark in ("}", "]"):
                depth -= 1
                if depth == 0:
                    return token.end()
        raise ValueError(f"value not closed at character {start}")
    else:
        found = _SCALAR.match(text, start)
    if found is None:
        raise ValueError(f"no JSON value at character {start}")
    return found.end()


def skip(text: str, pos: int) -> int:
    """Where the next character that is no white space stands."""
    found = _SPACE.match(text, pos)
    return pos if found is None else found.end()


def members(text: str) -> list[tuple[str, str]]:
    """The (key, value text) pairs of an object's text, in order, duplicate keys included; [] for any other value."""
    pos = skip(text, 0)
    if text[pos : pos + 1] != "{":
        return []
    pairs: list[tuple[str, str]] = []
    pos = skip(text, pos + 1)
    while text[pos : pos + 1] != "}":
        key, pos = scanstring(text, pos + 1, False)
        pos = skip(text, skip(text, pos) + 1)  # the colon
        end = value_end(text, pos)
        pairs.append((key, text[pos:end]))
        pos = skip(text, end)
        if text[pos : pos + 1] == ",":
            pos = skip(text, pos + 1)
        elif text[pos : pos + 1] != "}":
            raise ValueError(f"no comma or closing brace at character {pos}")
    return pairs


def places(text: str, start: int = 0) -> list[tuple[str, int]]:
    """The (key, where its value begins) pairs of the object that begins at ``start``; [] for any other value."""
    pos = skip(text, start)
    if text[pos : pos + 1] != "{":
        return []
    found: list[tuple[str, int]] = []
    pos = skip(text, pos + 1)
    while text[pos : pos + 1] != "}":
        key, pos = scanstring(text, pos + 1, False)
        pos = skip(text, skip(text, pos) + 1)
        found.append((key, pos))
        pos = skip(text, value_end(text, pos))
        if text[pos : pos + 1] == ",":
            pos = skip(text, pos + 1)
        elif text[pos : pos + 1] != "}":
            raise ValueError(f"no comma or closing brace at character {pos}")
    return found


def elements(text: str) -> list[str]:
    """The texts of an array's elements, in order; [] for any other value."""
    return [text[start:end] for start, end in spans(text)]


def get(text: str, *path: str) -> tuple[str | None, bool]:
    """The text at ``path`` (None where a member is missing) and whether a key on the way was given twice.

    Of duplicate keys the last counts, as ``json.loads`` and JavaScript have it.
    """
    duplicate = False
    found: str | None = text
    for step in path:
        if found is None:
            return None, duplicate
        values = [value for key, value in members(found) if key == step]
        duplicate = duplicate or len(values) > 1
        found = values[-1] if values else None
    return found, duplicate


def without(text: str, key: str) -> str:
    """The object's text with every member ``key`` taken out and nothing else changed; other text as it is."""
    pos = skip(text, 0)
    if text[pos : pos + 1] != "{":
        return text
    kept: list[str] = []
    found = False
    start = pos + 1
    pos = skip(text, start)
    while text[pos : pos + 1] != "}":
        name, pos = scanstring(text, pos + 1, False)
        end = value_end(text, skip(text, skip(text, pos) + 1))
        if name == key:
            found = True
        else:
            kept.append(text[start:end])
        pos = skip(text, end)
        if text[pos : pos + 1] == ",":
            start = pos + 1
            pos = skip(text, start)
        elif text[pos : pos + 1] != "}":
            raise ValueError(f"no comma or closing brace at character {pos}")
        else:
            start = pos
    if not found:
        return text
    head = text[: text.index("{") + 1]
    return head + ",".join(kept) + text[pos:]


def spans(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Where each element of the array that begins at ``start`` begins and ends; [] for any other value."""
    pos = skip(text, start)
    if text[pos : pos + 1] != "[":
        return []
    found: list[tuple[int, int]] = []
    pos = skip(text, pos + 1)
    while text[pos : pos + 1] != "]":
        end = value_end(text, pos)
        found.append((pos, end))
        pos = skip(text, end)
        if text[pos : pos + 1] == ",":
            pos = skip(text, pos + 1)
        elif text[pos : pos + 1] != "]":
            raise ValueError(f"no comma or closing bracket at character {pos}")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def loads(text: str | bytes) -> Any:
    """``json.loads`` without the three words that JSON does not have (NaN, Infinity, -Infinity): ValueError."""
    return json.loads(text, parse_constant=_no_constant)


def check(text: str) -> str:
    """``""`` when the text is JSON, else why not."""
    try:
        loads(text)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error)
    return ""


_decoder = json.JSONDecoder(parse_constant=_no_constant)


def value(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at ``start`` and where it ends, whatever follows it.

    Stops at the first fault (ValueError, also for NaN, Infinity and nesting beyond Python's limit), so damaged text
    costs no more than the distance to the damage.
    """
    try:
        return _decoder.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def unfinished(text: str) -> bool:
    """Is it the beginning of a JSON object or array, good as far as it goes?"""
    body = text.strip(" \t\r\n")
    if body[:1] not in ("{", "["):
        return False
    try:
        loads(body)
    except json.JSONDecodeError as error:
        return error.pos >= len(body) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        pass
    return False


def dumps(value: Any) -> str:
    """Compact JSON, ASCII only, so that any string (a lone surrogate too) can be written as UTF-8."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def printable(text: str) -> str:
    """The same text where it can be stored as UTF-8; lone surrogates become their escapes (``\\ud83d``)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
