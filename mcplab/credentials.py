"""What a credential looks like: names of members, headers and query members that carry one, and well-known shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_NAMES: Final = frozenset(
    (
        "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "apikey",
        "authorization", "authtoken", "credential", "credentials", "cookie", "cookies", "jwt", "bearer", "assertion",
        "proxyauthorization", "secretkeybase", "sshpass",
        "codeverifier", "devicecode", "privatekey", "secretkey", "accesskey", "accesskeyid", "connectionstring",
    )
)  # fmt: skip
_LAST: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "credentials",
    "cookie",
    "assertion",
)
_KEYS: Final = frozenset(
    (
        "api", "private", "secret", "access", "signing", "encryption", "auth", "account", "master", "openai",
        "anthropic", "stripe", "service", "subscription", "license", "webhook", "role", "app", "application",
    )
)  # fmt: skip
_NO_SECRET: Final = frozenset(
    (
        "progresstoken", "pagetoken", "nextpagetoken", "previouspagetoken", "prevpagetoken", "nexttoken", "synctoken",
        "continuationtoken", "cancellationtoken", "resumptiontoken", "stoptoken", "eostoken", "bostoken", "padtoken",
        "unktoken", "tokentoken",
    )
)  # fmt: skip
_QUERY: Final = frozenset(("key", "code", "sig", "signature", "auth", "pass"))
_HEADER: Final = ("key", "token", "secret", "password", "passwd", "credential", "signature", "auth", "cookie")
_NO_HEADER: Final = frozenset(("www-authenticate", "proxy-authenticate", "sec-websocket-key"))

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
SHAPES: Final = re.compile(
    r"(?<![\w-])(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,40}[-_]){0,6}[A-Za-z0-9]{16,}[A-Za-z0-9_-]*"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=\bBearer )[\w.~+/=-]{8,}",
    re.DOTALL,
)
BEARER: Final = re.compile(
    r"\bauthorization(?:\\?[\"'])?\s{0,9}:\s{0,9}(?:\\?[\"'])?(?:bearer|basic|digest|token)\s{1,9}([^\s\"'\\,;<>{}$\[]+)",
    re.IGNORECASE,
)
COLOUR: Final = re.compile(  # one set of first characters, so that the rest of a text is passed over fast
    r"[\x1b\x9b[](?:(?<=\x1b)\[[0-?]{0,40}[@-~]|(?<=\x1b)[()][0-9A-Za-z]|(?<=\x9b)[0-?]{0,40}[@-~]|(?<=\[)[0-9;]{1,40}m)"
)
"""Colours and cursor moves of a terminal (ECMA-48), those of a log that dropped the escape itself too."""
KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES: Final = 300
"""No private key is longer: one that never ends was only spoken of."""
CURL_USER: Final = re.compile(r"[A-Za-z]{0,8}[uU]|(?:proxy-)?user")
"""Curl's options that have ``user:password``."""
_CURL_USER: Final = re.compile(
    r"(?<![^\s\"'])(?:-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user(?![\w-]))[=\s]*(?:\\?([\"'])(.+?)\\?\1|([^\s\"'\\]+))"
)


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys stand; the text may end in one."""
    at = 0
    while (begin := KEY_BEGINS.search(text, at)) is not None:
        end = KEY_ENDS.search(text, begin.end())
        at = end.end() if end is not None else len(text)
        yield begin.start(), at


class OpenKeys:
    """Private keys that come line by line: ``left`` lines at most in each stream that is in one."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}

    def continues(self, stream: str, text: str) -> bool:
        """Is the next text of a stream, at its beginning, inside a key?"""
        left = self.left.pop(stream, 0)
        begun, ended = (max((hit.end() for hit in each.finditer(text)), default=0) for each in (KEY_BEGINS, KEY_ENDS))
        if begun > ended:
            self.left[stream] = _KEY_LINES
        elif left > 1 and not ended:
            self.left[stream] = left - 1
        return left > 0


def curl_users(text: str) -> Iterator[tuple[int, int]]:
    """Where ``user:password`` stands in a command line of curl's."""
    for hit in _CURL_USER.finditer(text):
        if ":" in hit[hit.lastindex or 0]:
            yield hit.span(hit.lastindex or 0)


def normal(name: str) -> str:
    """A name without case, ``_``, ``-`` and ``.``: ``API_KEY`` and ``apiKey`` are the same."""
    return name.lower().replace("_", "").replace("-", "").replace(".", "")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Is this a well-known name of a credential?"""
    whole = normal(name)
    if whole in _NO_SECRET:
        return False
    if whole in _NAMES:
        return True
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()  # password2
    if not words:
        return False
    if words[-1] in _LAST or (words[-1] in ("pass", "pwd", "pat") and len(words) > 1):
        return True
    if words[-1] == "id" and words[-3:-1] == ["access", "key"]:
        return True
    if words[-1] == "key":
        return len(words) > 1 and words[-2] in _KEYS
    return whole.endswith(
        ("password", "passwd", "apikey", "accesstoken", "refreshtoken", "idtoken", "clientsecret", "authtoken")
    )


@lru_cache(maxsize=4096)
def is_secret_header(name: str) -> bool:
    """Does a header of this name carry a credential?"""
    low = name.lower()
    return low not in _NO_HEADER and any(word in low for word in _HEADER)


@lru_cache(maxsize=4096)
def is_secret_member(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return is_secret(name) or (normal(name) not in _NO_SECRET and any(word in _QUERY for word in words[-1:]))
