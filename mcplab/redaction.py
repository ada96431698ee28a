"""Secrets out of recorded text: what is masked, where, and nothing else changed.

A mask puts ``***`` in place of the inside of a string value, or of a part of it; keys, numbers, spacing, escapes and
every other byte stay. Masked unless ``keep_secrets``:

- headers that carry a credential (``authorization``, ``proxy-authorization``, ``cookie``, ``set-cookie``, names that
  speak of a key, token, secret or password); of ``Bearer x`` and the like the scheme stays;
- in addresses, the user before ``@`` and query members named as credentials (``?access_token=``);
- members of JSON objects with a well-known name, in any spelling (``client_secret``, ``clientSecret``,
  ``OPENAI_API_KEY``): a string, or the strings of a list. An object below such a name is left alone, because it is
  mostly a schema that only describes a password. ``progressToken``, page tokens and cursors are none;
- ``{"name": "API_KEY", "value": ...}`` (in either order), ``--token x``, and JSON inside a string, by the same names;
- in any string a line ``API_KEY=x``, and one of a header (``X-Api-Key: x``), ``Authorization: Bearer x`` also inside a
  line; where the line of the trace speaks of curl, ``-u user:password``, as two arguments too;
- in text that is no JSON (stderr, unparsed, bodies) and in the header's ``config``, which holds a command line:
  ``name: value``, ``name=value`` and ``--name value`` with such a name; a private key from BEGIN to END, also
  over the lines of stderr or unparsed text (300 at most: one that has no end was only spoken of).

A terminal's colours between the words hide no name.

More, with ``redact=``, a list of words:

- ``KEY``: a member, header, query member or variable of that name (case, ``_`` and ``-`` do not count), with every
  string below it at any depth;
- ``/regex/`` or ``/regex/i``: every match inside a string value or text;
- a path from the message's root: dotted with at least one dot or bracket (``params.arguments.note``,
  ``result.content.text``; lists are passed through), or a JSON pointer (``/params/arguments/note``,
  ``/result/content/0/text``). ``*`` stands for any one step. Every string at and below it;
- ``tokens``: strings that look like a well-known credential (``sk-...``, ``ghp_...``, AWS and Google keys, JWTs,
  private keys, ``Bearer ...``), wherever they stand.

``jsonrpc``, ``method`` and ``id`` of a message are never masked.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mcplab import credentials, jsontext
from mcplab.credentials import BEARER, COLOUR, CURL_USER, KEY_ENDS, SHAPES, OpenKeys, curl_users, normal, private_keys
from mcplab.model import UsageError

MASK: Final = "***"

Span = tuple[int, int, str]
"""Where a secret begins and ends in a text, and the name of the place."""

_HINT: Final = re.compile(
    rb"pass|pwd|secret|key|auth|cookie|sig|cred|jwt|bearer|assertion|verifier|device|connection|code=|pat[\"=:\\]|\\u00|curl"
    rb"|%[4-7][0-9a-f]"
)
_BEGINS: Final = re.compile(rb"[ \t]*(?:(?:set-)?cookie|x-[\w-]{0,60}(?:key|token|secret))[ \t]*:")
_MARKS: Final = (b"\\", b"=", b"@", b"curl")
_LONG: Final = 200  # bytes: no name of a member is longer

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],]', re.DOTALL)
_CHAR: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_USER: Final = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,40})://([^/?#\s\"'<>\\]+)@")
_MEMBER: Final = re.compile(r"(?:[?&#;]|\A(?=\S*&))([^=&#;\s\"'<>?]{1,200})=([^&#\s\"'<>;]+)")
_NAMED: Final = re.compile(r"(?<![\w.-])([\w.-]{1,200})(?:\\?[\"'])?\s*[:=]\s*")
_GIVEN: Final = re.compile(
    r"\\\"([^\"\\]+)|\"((?:[^\"\\]|\\.)+)|'((?:[^'\\]|\\.)+)|((?:(?:Bearer|Basic|Digest|Token)\s+)?[^\s\"'\\&;,<>]++"
    r"(?:[&;,][^\s\"'\\&;,<>=:]++(?![=:]))*)",  # next pair, or still the value; *+ errs before 3.11.5
    re.IGNORECASE,
)
_OVER: Final = re.compile(r"\"|\r?\n(?![ \t])|\r(?!\n)")  # a header may go on in a line that begins with a space
_LINE: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?:-{0,2}([A-Za-z][\w.-]{0,200})=|(?i:(?:proxy-)?authorization|(?:set-)?cookie|"
    r"x-[\w-]{0,60}(?:key|token|secret))[ \t]*:[ \t]*)(\S[^\r\n]*)",
    re.MULTILINE,
)
_OPTION: Final = re.compile(r"(?<!\S)--?([A-Za-z][\w.-]{0,200})\s+(?!-)")
_FLAG: Final = re.compile(r"--?([A-Za-z][\w.-]*)")
_STEP: Final = re.compile(r'(?:^|\.)(\*|[A-Za-z0-9_$-]+)|\[("[^"\\]*+(?:\\.[^"\\]*+)*+")\]')
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Digest|Token|Negotiate|DPoP|AWS4-HMAC-SHA256)\s+", re.IGNORECASE)
_FACTS: Final = frozenset(
    ("kind", "format", "version", "seq", "ts", "mono", "conn", "dir", "by", "tool", "captured_at", "transport", "clock")
)
_PROSE: Final = frozenset(("raw", "reason", "data", "comment", "path", "stopped"))
_OPEN: Final = re.compile(r"[{\[]")
_TRIES: Final = 50  # brackets of a text that are looked at as the beginning of JSON
_PLACES: Final = 1000  # more are not listed
_DEEPEST: Final = 8  # JSON in a string in JSON in a string


class _Path(NamedTuple):
    steps: tuple[str, ...]
    through: bool  # lists are passed through: a dotted path


class _Frame:
    """An object or list that the scanner is in."""

    __slots__ = ("all", "at", "key", "listed", "named", "unnamed", "value_next")

    def __init__(self, listed: bool, everything: bool) -> None:
        self.listed = listed
        self.all = everything  # every string below is masked
        self.key = ""
        self.at = 0
        self.value_next = listed
        self.named = ""  # what a sibling `name` said; in a list, the string before
        self.unnamed: Span | None = None  # a `value` whose `name` may still come


class Masks:
    """What to mask, and (``places``) where something was masked until now, in order, each once.

    Raises:
        UsageError: a word of ``redact`` is an empty one, no regular expression, or no path.
    """

    def __init__(self, redact: Sequence[str] = (), *, keep_secrets: bool = False) -> None:
        self.defaults = not keep_secrets
        self.places: dict[str, None] = {}
        self._keys: set[str] = set()
        self._patterns: list[re.Pattern[str]] = []
        self._paths: list[_Path] = []
        self._open = OpenKeys()
        self._inside = False  # of a private key: the event at hand begins there
        self._curl = False
        for word in redact:
            self._more(word)

    def _more(self, word: str) -> None:
        if not word.strip():
            raise UsageError("redact: an empty word; give a key, a /regex/, a path, or tokens")
        if word == "tokens":
            self._patterns.append(SHAPES)
        elif (pattern := re.fullmatch(r"/(.+)/(i?)", word, re.DOTALL)) is not None:
            try:
                self._patterns.append(re.compile(pattern[1], re.IGNORECASE if pattern[2] else 0))
            except re.error as error:
                raise UsageError(f"redact: {word!r} is no regular expression: {error}") from None
        elif word.startswith("/"):
            steps = [step.replace("~1", "/").replace("~0", "~") for step in word[1:].split("/")]
            self._paths.append(_Path(tuple(steps), through=False))
        elif "." in word or "[" in word:
            steps = [hit[0] or _decoded(hit[1], 1, len(hit[1]) - 1) for hit in _STEP.findall(word)]
            if _STEP.sub("", word) or word.startswith("."):
                raise UsageError(f'redact: {word!r} is no path: write params.note, and params["a.b"] for odd keys')
            self._paths.append(_Path(tuple(steps), through=True))
        else:
            self._keys.add(normal(word))

    # texts ---------------------------------------------------------------------------------------

    def line(self, data: bytes) -> bytes:
        """A line of a version 1 trace (header or event), known to be JSON, with its secrets masked.

        Lines are to come in order: a private key may go on from one event to the next.
        """
        self._inside = self._continues(data)
        return self._masked(data, b'"raw' not in data, lambda text: self._spans(text, event=True))

    def _continues(self, data: bytes) -> bool:
        """Does an event's text go on with a private key that an earlier event of its stream began?"""
        if not self.defaults or not (self._open.left or b"PRIVATE KEY" in data):
            return False
        text = data.decode("utf-8", "surrogateescape")
        kind, conn, way, raw = (jsontext.get(text, name)[0] or "" for name in ("kind", "conn", "dir", "raw"))
        if kind not in ('"stderr"', '"unparsed"'):
            return False
        return self._open.continues(kind + conn + way, _decoded(raw, 1, len(raw) - 1) if raw[:1] == '"' else "")

    def message(self, data: bytes) -> bytes:
        """The text of a JSON value, or other text, with its secrets masked; other bytes as they are."""
        return self._masked(data, False, lambda text: self._text(text, "", 0, prose=True))

    def address(self, path: str) -> str:
        """The target of a request with its query members masked."""
        return _cut(path, self._parts(path, "", prose=False))

    def _masked(self, data: bytes, no_prose: bool, find: Callable[[str], Iterable[Span]]) -> bytes:
        if not self._worth(data, no_prose):
            return data
        text = data.decode("utf-8", "surrogateescape")
        self._curl = self.defaults and "curl" in text
        spans = list(find(text))
        if not spans:
            return data
        for _, _, place in spans:
            if len(self.places) < _PLACES:
                self.places.setdefault(place[:200] or "text")
        return _cut(text, spans).encode("utf-8", "surrogateescape")

    def _worth(self, data: bytes, no_prose: bool) -> bool:
        """May there be anything to mask? Most messages are answered here, without a walk through them."""
        if self._patterns or self._paths or self._keys or self._inside:
            return True
        if not self.defaults:
            return False
        low = data.lower()
        if no_prose and len(data) > 2000:
            # long strings matter only where they hold JSON, a pair, an address, or begin as a header does
            if b"authorization" in low:
                return True
            pieces = low.split(b'"')
            low = b'"'.join(p for p in pieces if len(p) < _LONG or _BEGINS.match(p) or any(m in p for m in _MARKS))
        return (
            _HINT.search(low) is not None
            or b'"raw_b64' in low
            or low.count(b"token") > low.count(b"progresstoken")
            or (b"@" in low and (b"//" in low or b"\\/" in low))
        )

    def _text(self, text: str, place: str, depth: int, *, prose: bool) -> list[Span]:
        """Secrets in text that may be JSON."""
        if text.lstrip(" \t\r\n\ufeff")[:1] in ("{", "[") and depth < _DEEPEST and is_json(text.lstrip("\ufeff")):
            return self._spans(text, place=place, depth=depth)
        return self._parts(text, place, prose=prose, depth=depth)

    def _parts(self, text: str, place: str, *, prose: bool, depth: int = 0, coloured: bool = True) -> list[Span]:
        """Secrets inside text that is no JSON: addresses, patterns; in prose also names with their values."""
        found: list[tuple[int, int]] = []
        inside: list[Span] = []
        if self.defaults and "://" in text:
            found += [hit.span(2) for hit in _USER.finditer(text) if ":" in hit[2] or hit[1][:3].lower() != "ssh"]
        if "=" in text:
            found += [hit.span(2) for hit in _MEMBER.finditer(text) if self._member(hit[1])]
        if prose or ("{" in text and '":' in text and depth < _DEEPEST):
            inside = self._embedded(text, place, depth)
        if prose:
            found += self._pairs(text)
        else:
            found += self._lines(text)
            found += [hit.span(1) for hit in BEARER.finditer(text)] if self.defaults and ":" in text else []
        if prose and self.defaults and "PRIVATE KEY" in text:
            found += private_keys(text)
        if self._curl:
            found += curl_users(text)
        for pattern in self._patterns:
            found += [hit.span() for hit in pattern.finditer(text)]
        for fill in ("", " ") if coloured and COLOUR.search(text) else ():  # a colour hides no name and ends no value
            ends, ahead = [0], [0]  # where in the plain text a colour was, and how far the text is ahead from there on
            for hit in COLOUR.finditer(text):
                ahead.append(ahead[-1] + len(hit[0]) - len(fill))
                ends.append(hit.end() - ahead[-1])
            plain = self._parts(COLOUR.sub(fill, text), place, prose=prose, depth=depth, coloured=False)
            found += [
                (a + ahead[bisect_right(ends, a) - 1], b + ahead[bisect_right(ends, b - 1) - 1]) for a, b, _ in plain
            ]
        outside = [
            (start, end, place)
            for start, end in _joined(found)
            if text[start:end] != MASK and not any(a < end and start < b for a, b, _ in inside)
        ]
        return inside + outside

    def _lines(self, text: str) -> Iterable[tuple[int, int]]:
        """The values of lines that are ``NAME=value`` or a header with a credential."""
        if "=" not in text and ":" not in text:
            return
        for hit in _LINE.finditer(text):
            if self._secret(hit[1]) if hit[1] else self.defaults:
                scheme = None if hit[1] else _SCHEME.match(text, *hit.span(2))
                yield (scheme.end() if scheme else hit.start(2)), hit.end(2)

    def _pairs(self, text: str) -> list[tuple[int, int]]:
        """The values of ``name: value``, ``name=value`` and ``--name value``."""
        found: list[tuple[int, int]] = []
        over = 0
        for hit in sorted((*_NAMED.finditer(text), *_OPTION.finditer(text)), key=lambda one: one.end()):
            if hit.end() < over or not self._secret(hit[1]):
                continue
            value = _GIVEN.match(text, hit.end())
            if value is None:
                continue
            start, over = value.span(value.lastindex or 0)
            if normal(hit[1]) in ("cookie", "setcookie", "authorization", "proxyauthorization"):
                end = _OVER.search(text, start)
                over = end.start() if end else len(text)
            scheme = _SCHEME.match(text, start, over)
            found.append((scheme.end() if scheme else start, over))
        return found

    def _embedded(self, text: str, place: str, depth: int) -> list[Span]:
        """Secrets in JSON with other words around it, as a line of a log has it."""
        found: list[Span] = []
        at = tries = 0
        while (start := _OPEN.search(text, at)) is not None and tries < _TRIES:
            try:
                _, end = jsontext.value(text, start.start())
            except ValueError:
                at, tries = start.end(), tries + 1
                continue
            found += (
                (start.start() + a, start.start() + b, where)
                for a, b, where in self._spans(text[start.start() : end], place=place, depth=max(depth, 1))
            )
            at = end
        return found

    def _secret(self, name: str) -> bool:
        return (self.defaults and credentials.is_secret(name)) or normal(name) in self._keys

    def _member(self, name: str) -> bool:
        name = unquote(name)
        return (self.defaults and credentials.is_secret_member(name)) or normal(name) in self._keys

    # JSON ----------------------------------------------------------------------------------------

    def _spans(self, text: str, *, place: str = "", depth: int = 0, event: bool = False) -> list[Span]:
        """Secrets in JSON text; ``event``: it is a line of a trace, whose members have meanings of their own."""
        out: list[Span] = []
        stack: list[_Frame] = []
        for token in _TOKEN.finditer(text):
            mark = text[token.start()]
            if mark == '"':
                frame = stack[-1] if stack else None
                if frame is not None and not frame.value_next:
                    frame.key = _decoded(text, token.start() + 1, token.end() - 1)
                    frame.value_next = True
                    continue
                out += self._value(text, token.start() + 1, token.end() - 1, stack, place, depth, event)
            elif mark in "{[":
                stack.append(_Frame(mark == "[", bool(stack) and self._below(stack, event)))
            elif mark == ",":
                if stack:
                    stack[-1].at += 1
                    stack[-1].value_next = stack[-1].listed
            elif stack:
                stack.pop()
        return out

    def _below(self, stack: list[_Frame], event: bool) -> bool:
        """Is everything masked in the object or list that begins here?"""
        top = stack[-1]
        if top.all:
            return True
        if not self._keys and not self._paths:
            return False
        steps = _steps(stack)
        if event:
            if steps[0] != "msg":
                return not top.listed and normal(top.key) in self._keys and steps[0] not in _FACTS
            steps = steps[1:]
        return bool(steps) and ((not top.listed and normal(top.key) in self._keys) or self._on_path(steps))

    def _on_path(self, steps: list[str | int]) -> bool:
        if steps and isinstance(steps[0], int) and len(steps) > 1:
            steps = steps[1:]  # a batch: paths begin at each message
        names = [step for step in steps if isinstance(step, str)]
        for path in self._paths:
            given = names if path.through else [str(step) for step in steps]
            if len(given) == len(path.steps) and all(
                want in ("*", have) for want, have in zip(path.steps, given, strict=True)
            ):
                return True
        return False

    def _value(
        self, text: str, start: int, end: int, stack: list[_Frame], place: str, depth: int, event: bool
    ) -> list[Span]:
        """Secrets in the string whose inside is ``text[start:end]``."""
        top = stack[-1] if stack else None
        name = None if top is None else self._name(top, stack)
        option = top.named if top is not None and top.listed else ""
        if top is not None and top.listed:
            flag = _FLAG.fullmatch(text, start, end)
            top.named = flag[1] if flag else ""
        elif top is not None and top.key in ("name", "key"):
            top.named = _decoded(text, start, end)
            if top.unnamed is not None and self._secret(top.named):
                late, top.unnamed = top.unnamed, None
                return [late]
        if start == end or text[start:end] == MASK:
            return []
        steps = _steps(stack)
        first = steps[0] if event and steps else None
        inner = steps[1:] if first == "msg" else steps
        if first in _FACTS or first == "redacted":
            return []
        if not event or first == "msg":
            names = inner[1:] if inner and isinstance(inner[0], int) else inner
            if len(names) == 1 and names[0] in ("jsonrpc", "method", "id") and depth == 0:
                return []
        label = _label(place, steps)
        if event and first == "http":
            if len(steps) == 3 and steps[1] == "headers":
                return self._header(text, start, end, str(steps[2]), label)
            if steps[-1] in ("method", "exchange"):
                return []
        if top is not None:
            known = name is not None and self.defaults and credentials.is_secret(name)
            asked = name is not None and normal(name) in self._keys
            curl = self._curl and CURL_USER.fullmatch(option) is not None and ":" in text[start:end]
            if top.all or known or asked or curl or (bool(self._paths) and self._on_path(inner)):
                return [(start, end, label)]
        value = text[start:end]
        if first == "raw_b64":
            return [(start, end, label)] if self._inside else self._binary(text, start, end, label)
        prose = event and first != "msg" and bool(steps) and (first == "config" or steps[-1] in _PROSE)
        plain = "\\" not in value
        whole = value if plain else _decoded(text, start, end)
        spans = self._text(whole, label, depth + 1, prose=prose)
        if first == "config" and (lines := [(a, b, label) for a, b in self._lines(whole)]):  # arguments have spaces
            spans = lines + [one for one in spans if all(one[1] <= a or b <= one[0] for a, b, _ in lines)]
        if first == "raw" and self._inside:
            over = KEY_ENDS.search(whole)
            until = over.end() if over is not None else len(whole)
            spans = [(0, until, label), *((max(a, until), b, where) for a, b, where in spans if b > until)]
        if not spans:
            if top is not None and top.key == "value" and not top.named:
                top.unnamed = (start, end, label)
            return []
        if plain:
            return [(start + a, start + b, where) for a, b, where in spans]
        offsets = [start + one.start() for one in _CHAR.finditer(value)] + [end]
        return [(offsets[a], offsets[b], where) for a, b, where in spans]

    @staticmethod
    def _name(top: _Frame, stack: list[_Frame]) -> str | None:
        """The name that a string goes by: its key, its list's key, what `name` or the argument before it says."""
        if not top.listed:
            return top.named if top.key == "value" and top.named else top.key
        if top.named:
            return top.named
        return stack[-2].key if len(stack) > 1 and not stack[-2].listed else None

    def _header(self, text: str, start: int, end: int, name: str, label: str) -> list[Span]:
        argument = name.removeprefix("mcp-param-")  # an argument's copy goes with it
        asked = not self._keys.isdisjoint((normal(name), normal(argument))) or self._given(name)
        if asked or (self.defaults and (credentials.is_secret_header(name) or credentials.is_secret(argument))):
            scheme = _SCHEME.match(text, start, end)
            start = scheme.end() if scheme else start
            return [] if text[start:end] == MASK else [(start, end, label)]
        return [(start + a, start + b, at) for a, b, at in self._parts(text[start:end], label, prose=True)]

    def _given(self, header: str) -> bool:
        """Does a header have a copy of an argument that there is a path to?"""
        found = [path.steps[2:] for path in self._paths if path.steps[:2] == ("params", "arguments")]
        name = normal(header.removeprefix("mcp-param-")) if header.startswith("mcp-param-") else None
        return name is not None and any(not rest or rest[-1] == "*" or normal(rest[-1]) == name for rest in found)

    def _binary(self, text: str, start: int, end: int, label: str) -> list[Span]:
        """Bytes that are no UTF-8 may hold secrets all the same: then all of them go."""
        try:
            inside = base64.b64decode(text[start:end]).decode("latin-1")
        except ValueError:
            return []
        return [(start, end, label)] if self._parts(inside, label, prose=True) else []


MASKS: Final = Masks()
"""What is masked unless asked otherwise. (For text only: its ``places`` are everybody's.)"""


def _steps(stack: list[_Frame]) -> list[Any]:
    """Keys and positions on the way, outermost first; of hostile depths the first ones."""
    return [frame.at if frame.listed else frame.key for frame in stack[:24]]


def _label(place: str, steps: Iterable[str | int]) -> str:
    """``msg.params.arguments.password``: list positions are left out, for a place is named once."""
    for step in steps:
        if isinstance(step, str):
            plain = _PLAIN.fullmatch(step) is not None
            place += (f".{step}" if place else step) if plain else f"[{jsontext.dumps(step)}]"
    return place or "$"


def _decoded(text: str, start: int, end: int) -> str:
    inside = text[start:end]
    return inside if "\\" not in inside else str(json.loads(f'"{inside}"', strict=False))


def is_json(text: str) -> bool:
    """Is it a JSON value, however deep?"""
    return jsontext.check(text) in ("", "nested too deeply")


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that overlap as one; empty ones are none."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _cut(text: str, spans: Iterable[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, _ in sorted(spans):
        pieces += (text[at:start], MASK)
        at = end
    return "".join([*pieces, text[at:]])
