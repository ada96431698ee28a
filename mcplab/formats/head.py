"""What a text is, looked at from outside: a JSON-RPC message, a batch, or why it is neither."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcplab import jsontext


class Head(Struct, gc=False):
    """The members that tell messages apart; values stay text."""

    jsonrpc: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_message(self) -> bool:
        """JSON-RPC by its own word, or by its shape where ``jsonrpc`` is missing."""
        if self.jsonrpc is not UNSET:
            return True
        if self.method is not UNSET:
            return bytes(self.method)[:1] == b'"' and (self.id is not UNSET or self.params is not UNSET)
        return self.id is not UNSET and (self.result is not UNSET or self.error is not UNSET)

    @property
    def name(self) -> str | None:
        """The method, where it is a string."""
        return None if self.method is UNSET else as_string(self.method)

    @property
    def key(self) -> str | None:
        """The id with its JSON type, as text (``1`` is not ``"1"``); None without an id."""
        return None if self.id is UNSET else bytes(self.id).decode("utf-8", "replace").strip()


_decoder = msgspec.json.Decoder(Head)


def as_string(raw: Raw) -> str | None:
    """The string that this JSON text is, or None."""
    try:
        value = jsontext.loads(bytes(raw).decode("utf-8", "surrogateescape"))
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def look(text: bytes) -> list[Head] | str:
    """The heads of a message (one) or batch (one for each element), or the reason why ``text`` is neither."""
    first = text.lstrip(b" \t\r\n")[:1]
    if first == b"{":
        head = _object(text)
        if isinstance(head, str):
            return head
        return [head] if head.is_message else "a JSON object, but no JSON-RPC message"
    fault = _fault(text)
    if fault:
        return fault
    if first != b"[":
        return "a bare JSON value, no JSON-RPC message"
    parts = jsontext.elements(text.decode("utf-8", "surrogateescape"))
    if not parts:
        return "an empty array, no JSON-RPC batch"
    heads = [_object(part.encode("utf-8", "surrogateescape")) if part[:1] == "{" else "" for part in parts]
    if any(isinstance(head, str) or not head.is_message for head in heads):
        return "an array, but no JSON-RPC batch: not every element is a message"
    return [head for head in heads if isinstance(head, Head)]


def _fault(text: bytes) -> str:
    why = jsontext.check(text.decode("utf-8", "surrogateescape"))
    return why if why in ("", "nested too deeply") else f"no JSON: {why}"


def _object(text: bytes) -> Head | str:
    try:
        return _decoder.decode(text)
    except RecursionError:
        return "nested too deeply to be read"
    except msgspec.DecodeError:
        pass
    fault = _fault(text)  # what msgspec refuses and JSON allows: lone surrogates
    if fault:
        return fault
    head = Head()
    for key, value in jsontext.members(text.decode("utf-8", "surrogateescape")):
        if key in Head.__struct_fields__:
            setattr(head, key, Raw(value.encode("utf-8", "surrogateescape")))
    return head
