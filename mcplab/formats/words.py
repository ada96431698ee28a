"""The words that tools use for directions, and how a tool's own side is told from the traffic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from mcplab.formats.direction import Dir

_ABSOLUTE = {
    "c2s": "c2s", "client->server": "c2s", "client→server": "c2s", "client-to-server": "c2s", "clienttoserver": "c2s",
    "client-server": "c2s", "client": "c2s", "fromclient": "c2s", "from-client": "c2s", "toserver": "c2s",
    "to-server": "c2s", "editor->server": "c2s", "local→remote": "c2s", "local->remote": "c2s",
    "s2c": "s2c", "server->client": "s2c", "server→client": "s2c", "server-to-client": "s2c", "servertoclient": "s2c",
    "server-client": "s2c", "server": "s2c", "fromserver": "s2c", "from-server": "s2c", "toclient": "s2c",
    "to-client": "s2c", "server->editor": "s2c", "remote→local": "s2c", "remote->local": "s2c",
}  # fmt: skip
_PARTY = "client|server|editor|host|local|remote|c|s"
_CLIENTS = re.compile("client|editor|host|local|c")
_BACK = ("<-", "<--", "<=", "←")
_PARTIES = re.compile(f"({_PARTY})(-+>|=+>|→|⇒|to|-to-|<--?|<=|←)({_PARTY})")
_SENT = set("send sent sending out outgoing outbound tx write written writing -> --> → >>> >> >".split())
_RECEIVED = set("receive received receiving recv in incoming inbound rx read reading <- <-- ← <<< << <".split())
_OTHER = {"c2s": "s2c", "s2c": "c2s"}

SIDE = "the source says sent and received, not by whom: told from messages that only one party may send whose log it is"
NO_SIDE = "the source says sent and received, but nothing in it tells whose log it is: no direction"


def direction(word: Any) -> str | None:
    """``c2s`` or ``s2c`` for a word that names both parties, ``sent`` or ``received`` for one that names none."""
    if not isinstance(word, str):
        return None
    plain = word.strip().lower().replace(" ", "").replace("_", "-")
    if plain in _ABSOLUTE:
        return _ABSOLUTE[plain]
    both = _PARTIES.fullmatch(plain)
    if both is not None and (_CLIENTS.fullmatch(both[1]) is None) != (_CLIENTS.fullmatch(both[3]) is None):
        return "c2s" if (_CLIENTS.fullmatch(both[1]) is not None) == (both[2] not in _BACK) else "s2c"
    return "sent" if plain in _SENT else "received" if plain in _RECEIVED else None


_WORD = re.compile(
    r"(?i)\b(received|receiving|receive|recv|sent|sending|send|incoming|outgoing|inbound|outbound"
    r"|(?:client|server|editor|host|c|s) ?(?:-+>|=+>|→|⇒|to|<--?|<=|←) ?(?:client|server|editor|host|c|s)"
    r"|(?:from|to) (?:client|server)|read|write)\b"
    r"|(-->|<--|>>>|<<<|->|<-|→|←|>>|<<)"
)


def said(text: str) -> str | None:
    """The last direction word in the text before a message (of a long text, in its last 200 characters)."""
    last = None
    for each in _WORD.finditer(text[-200:]):
        last = direction(each[1] or each[2]) or last
    return last


def side(votes: Iterable[tuple[str, Dir]]) -> str | None:
    """What ``sent`` means, from pairs of (sent or received, the direction that the message itself tells)."""
    count = 0
    for word, told in votes:
        if told is not UNSET and word in ("sent", "received"):
            count += 1 if (word == "sent") == (told == "c2s") else -1
    return None if count == 0 else "c2s" if count > 0 else "s2c"


def resolve(word: str | None, sent: str | None) -> Dir:
    """A direction from a word and what ``sent`` means."""
    if word in ("c2s", "s2c"):
        return word
    if word is None or sent is None:
        return UNSET
    return sent if word == "sent" else _OTHER[sent]
