"""The outside of a JSON-RPC message, decoded without touching what is inside.

Members are kept as raw text; a message is only looked into where a table needs a fact from it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcplab import jsontext

Opt = UnsetType
Text = Raw | Opt


class Envelope(Struct, gc=False):
    """A JSON-RPC message; ``method`` is UNSET where there is none."""

    method: str | Opt = UNSET
    id: Text = UNSET
    params: Text = UNSET
    result: Text = UNSET
    error: Text = UNSET

    @property
    def kind(self) -> str:
        """request, notification, response, error, or invalid where the members make no JSON-RPC message."""
        answers = (self.result is not UNSET) + (self.error is not UNSET)
        if answers > 1:
            return "invalid"
        if self.method is not UNSET:
            if answers:
                return "invalid"
            return "notification" if self.id is UNSET else "request"
        if answers == 0:
            return "invalid"
        return "error" if self.result is UNSET else "response"


class Misnamed(Envelope, gc=False):
    """A message whose ``method`` is no string."""

    @property
    def kind(self) -> str:
        return "invalid"


class Meta(Struct, gc=False):
    """What ``_meta`` of a request, a notification or a result says about the protocol."""

    version: Text = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    capabilities: Text = field(default=UNSET, name="io.modelcontextprotocol/clientCapabilities")
    client: Text = field(default=UNSET, name="io.modelcontextprotocol/clientInfo")
    server: Text = field(default=UNSET, name="io.modelcontextprotocol/serverInfo")
    subscription: Text = field(default=UNSET, name="io.modelcontextprotocol/subscriptionId")
    progress: Text = field(default=UNSET, name="progressToken")


class Params(Struct, gc=False):
    """The members of ``params`` that tables ask for. A ``_meta`` that is no object reads as one without members."""

    meta: Meta | Opt = field(default=UNSET, name="_meta")
    version: Text = field(default=UNSET, name="protocolVersion")
    client: Text = field(default=UNSET, name="clientInfo")
    name: Text = UNSET
    uri: Text = UNSET
    request: Text = field(default=UNSET, name="requestId")
    progress: Text = field(default=UNSET, name="progressToken")
    state: Text = field(default=UNSET, name="requestState")
    responses: Text = field(default=UNSET, name="inputResponses")


class Result(Struct, gc=False):
    """The members of ``result`` that tables ask for."""

    meta: Text = field(default=UNSET, name="_meta")
    version: Text = field(default=UNSET, name="protocolVersion")
    capabilities: Text = UNSET
    server: Text = field(default=UNSET, name="serverInfo")
    instructions: Text = UNSET
    supported: Text = field(default=UNSET, name="supportedVersions")
    kind: Text = field(default=UNSET, name="resultType")
    state: Text = field(default=UNSET, name="requestState")


class Implementation(Struct, gc=False):
    """``clientInfo`` or ``serverInfo``."""

    name: Text = UNSET
    version: Text = UNSET


class Failure(Struct, gc=False):
    """A JSON-RPC ``error`` object."""

    code: Text = UNSET
    message: Text = UNSET
    data: Text = UNSET


S = TypeVar("S", bound=Struct)
_decoders: dict[type, msgspec.json.Decoder] = {
    kind: msgspec.json.Decoder(kind) for kind in (Envelope, Meta, Params, Result, Implementation, Failure)
}


def decode(raw: bytes | Text, shape: type[S]) -> S:
    """The members of an object as ``shape``; an empty ``shape`` where the text is no object, or UNSET."""
    if isinstance(raw, UnsetType):
        return shape()
    try:
        return _decoders[shape].decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _slowly(bytes(raw).decode("utf-8", "surrogateescape"), shape)


def _slowly(text: str, shape: type[S]) -> S:
    """For what msgspec refuses: lone surrogates, deep nesting, a method that is no string, text that is no object."""
    try:
        pairs = jsontext.members(text)
    except ValueError:
        pairs = []
    names = {
        encoded: name for name, encoded in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True)
    }
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in names:
            found[names[key]] = Raw(value.encode("utf-8", "surrogateescape"))
    if shape is Envelope and "method" in found:
        method = string(found.pop("method"))
        if method is None:
            return Misnamed(**found)  # type: ignore[return-value]
        found["method"] = method
    if shape is Params and "meta" in found:
        found["meta"] = decode(found["meta"], Meta)
    return shape(**found)


_strings: dict[bytes, str | None] = {}


def word(raw: object) -> str | None:
    """As ``string``, for values that come again and again: versions, names."""
    if not isinstance(raw, Raw):
        return None
    key = bytes(raw)
    if key in _strings:
        return _strings[key]
    if len(_strings) > 1000:
        _strings.clear()
    found = _strings[key] = string(raw)
    return found


def string(raw: object) -> str | None:
    """The Python string of a raw JSON string; None for UNSET and for any other JSON value."""
    if not isinstance(raw, Raw):
        return None
    try:
        value = msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        text = bytes(raw).decode("utf-8", "surrogateescape")
        if jsontext.kind(text) != "string":
            return None
        value = jsontext.loads(text)
    return jsontext.printable(value)


def text(raw: object) -> str | None:
    """A raw value's text as it stands on the wire; None for UNSET."""
    return bytes(raw).decode("utf-8", "replace") if isinstance(raw, Raw) else None


def integer(raw: object) -> int | None:
    """The integer of a raw JSON number; None for anything else, fractions too."""
    found = text(raw)
    try:
        return int(found) if found is not None else None
    except ValueError:
        return None
