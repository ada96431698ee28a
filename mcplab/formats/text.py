"""What the readers of text logs share: lines, entries of several lines, JSON at the end of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcplab import jsontext

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def decode(data: bytes) -> str:
    """Text whose undecodable bytes survive as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def start(data: bytes, size: int = 1 << 20) -> str:
    """The beginning of a source, to sniff at."""
    return data[:size].decode("utf-8", "replace")


def is_document(head: str) -> bool:
    """Does the text begin as a JSON document, its first character or none of it damaged?"""
    return re.match(r"(?:.\s*)?[\[{\"]", head.lstrip(" \t\r\n\ufeff")) is not None


def lines(data: bytes) -> list[str]:
    """The lines without their ends; only LF and CRLF end one."""
    found = [line[:-1] if line.endswith("\r") else line for line in decode(data).split("\n")]
    if found and not found[-1]:
        found.pop()
    return found


def blocks(found: list[str], head: re.Pattern[str]) -> Iterator[tuple[int, list[str]]]:
    """Entries of a log: a line that ``head`` matches, and the lines after it up to the next such line (numbers from 1).

    Lines before the first entry come as one block of their own.
    """
    block: list[str] = []
    first = 1
    for number, line in enumerate(found, 1):
        if head.match(line) and block:
            yield first, block
            block, first = [], number
        block.append(line)
    if block:
        yield first, block


def json_in(text: str, begin: int = 0) -> tuple[str, int] | str:
    """The text of the JSON object or array that begins at or after ``begin``, only blanks before it, and where it ends.

    Line breaks that a paste put inside a string are taken out. A string says why there is none.
    """
    while begin < len(text) and text[begin] in " \t\r\n":
        begin += 1
    if text[begin : begin + 1] not in ("{", "["):
        return "no JSON where a message belongs"
    try:
        end = jsontext.value(text, begin)[1]
        return text[begin:end], end
    except ValueError as error:
        first = str(error)
    if "\n" in text[begin:]:
        joined = re.sub(r"\r?\n", "", text[begin:])
        try:
            end = jsontext.value(joined)[1]
            return joined[:end], len(text)
        except ValueError:
            pass
    return first
