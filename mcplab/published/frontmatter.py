"""The head of a research note: a strict, small part of YAML, read line by line; every scalar stays the text it is.

Understood: ``key: text``, quoted text, ``[a, b]``, ``|`` and ``>``, lists of text and of flat mappings, flat mappings.
Anything else (anchors, tags, deeper nesting, tabs) is refused with its line: half understood would be wrong.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mcplab.model import ClaimsError

Value = Any
"""Text, None (no value given), a list of text or mappings, or a mapping of text."""

MAX_LINES: Final = 2000
_KEY: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_ .-]{0,80}?):(?: +(.*))?$")
_REFUSED: Final = ("&", "*", "!", "{", "%", "@", "`")


def split_note(text: str, file: str) -> tuple[dict[str, Value], str, int]:
    """The front matter of a note, its body, and the body's first line number.

    Raises:
        ClaimsError: there is no front matter, it has no end, or a line of it is none that is understood.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise ClaimsError(f"{file}: no research note: its first line is not '---', which opens the front matter")
    end = next((n for n, line in enumerate(lines[1 : MAX_LINES + 2], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise ClaimsError(f"{file}: the front matter has no closing '---' in its first {MAX_LINES} lines")
    return _Reader(lines[1:end], file).whole(), "\n".join(lines[end + 1 :]), end + 2


class _Reader:
    def __init__(self, lines: list[str], file: str) -> None:
        self.lines = [line.rstrip() for line in lines]
        self.file = file
        self.at = 0

    def wrong(self, why: str) -> ClaimsError:
        return ClaimsError(f"{self.file}, line {self.at + 2}: {why}: {self.lines[self.at].strip()[:60]!r}")

    def whole(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while (depth := self._depth()) is not None:
            if depth:
                raise self.wrong("indented under nothing")
            self._member(found, self.lines[self.at], 0)
        return found

    def _depth(self) -> int | None:
        """How far the next line that says something is indented; None at the end."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and not line.lstrip().startswith("#"):
                if "\t" in line[: len(line) - len(line.lstrip())]:
                    raise self.wrong("indented with a tab")
                return len(line) - len(line.lstrip(" "))
            self.at += 1
        return None

    def _member(self, into: dict[str, Value], text: str, depth: int) -> None:
        """One ``key: ...`` and all below it; the line is consumed."""
        match = _KEY.match(text.strip())
        if match is None:
            raise self.wrong("not a line of the form 'key: text'")
        key, rest = match[1], (match[2] or "").strip()
        if key in into:
            raise self.wrong(f"{key} is given twice")
        if rest[:1] in ("|", ">") and len(rest) <= 2:
            self.at += 1
            into[key] = self._block(depth, "\n" if rest[0] == "|" else " ")
        elif rest and not rest.startswith("#"):
            into[key] = self._value(rest)
            self.at += 1
        else:
            self.at += 1
            into[key] = self._below(depth)

    def _block(self, depth: int, glue: str) -> str:
        taken: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line and len(line) - len(line.lstrip(" ")) <= depth:
                break
            taken.append(line.strip())
            self.at += 1
        return glue.join(taken).strip()

    def _below(self, depth: int) -> Value:
        """What stands below a key without text: a list, a flat mapping, or nothing (None)."""
        under = self._depth()
        if under is None or under < depth or (under == depth and not self._item(under)):
            return None
        if self._item(under):
            return self._list(under)
        found: dict[str, Value] = {}
        while self._depth() == under and not self._item(under):
            self._flat(found, self.lines[self.at])
        return found

    def _item(self, depth: int) -> bool:
        return self.lines[self.at][depth : depth + 2] in ("- ", "-")

    def _list(self, depth: int) -> list[Value]:
        found: list[Value] = []
        while self._depth() == depth and self._item(depth):
            text = self.lines[self.at][depth + 1 :].strip()
            if _KEY.match(text) is None or text[:1] in "\"'":
                found.append(self._value(text))
                self.at += 1
                continue
            one: dict[str, Value] = {}
            inner = len(self.lines[self.at]) - len(self.lines[self.at][depth + 1 :].lstrip())
            self._flat(one, text)
            while self._depth() == inner:
                self._flat(one, self.lines[self.at])
            found.append(one)
        if (self._depth() or 0) > depth:
            raise self.wrong("indented deeper than a note's front matter goes")
        return found

    def _flat(self, into: dict[str, Value], text: str) -> None:
        before = self.at
        self._member(into, text, 10**6)  # nothing may stand below it
        if self.at == before:
            raise self.wrong("not understood")

    def _value(self, text: str) -> Value:
        if text[:1] == "[":
            if not text.endswith("]"):
                raise self.wrong("a list in brackets that does not end on its line")
            return [self._scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
        return self._scalar(text)

    def _scalar(self, text: str) -> str | None:
        if text[:1] in ("'", '"'):
            quote = text[0]
            end = text.find(quote, 1)
            while quote == "'" and end > 0 and text[end + 1 : end + 2] == "'":
                end = text.find(quote, end + 2)
            while quote == '"' and end > 0 and _escaped(text, end):
                end = text.find(quote, end + 1)
            if end < 1 or text[end + 1 :].split("#")[0].strip():
                raise self.wrong("quoted text that does not end")
            inner = text[1:end]
            return inner.replace("''", "'") if quote == "'" else re.sub(r"\\(.)", r"\1", inner)
        if text[:1] in _REFUSED:
            raise self.wrong("YAML that a note's front matter does not need")
        plain = re.split(r"\s#", text, maxsplit=1)[0].strip()
        return None if plain in ("", "~", "null") else plain


def _escaped(text: str, at: int) -> bool:
    return (at - len(text[:at].rstrip("\\"))) % 2 == 1
