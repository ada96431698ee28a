"""A line of mcplab's own trace file, version 1: what readers take apart and recorders write (docs/trace-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from mcplab import jsontext
from mcplab.model import FORMAT_NAME, FORMAT_VERSION, Event


def encode(event: Event) -> bytes:
    """One event as a line of version 1, its message spliced in as it is.

    A line break between a message's tokens becomes a space: JSON Lines has no other way to hold it.
    """
    if event.msg is not UNSET and (b"\n" in bytes(event.msg) or b"\r" in bytes(event.msg)):
        flat = bytes(event.msg).replace(b"\r", b" ").replace(b"\n", b" ")
        event = msgspec.structs.replace(event, msg=msgspec.Raw(flat))
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:  # a lone surrogate: json escapes it, msgspec will not
        fields = msgspec.to_builtins(msgspec.structs.replace(event, msg=UNSET))
        text = jsontext.dumps(fields)
        if event.msg is not UNSET:
            text = text[:-1] + ',"msg":' + event.text + "}"
        return text.encode()


def head_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header with the three members that every header starts with."""
    head = {"kind": "header", "format": FORMAT_NAME, "version": FORMAT_VERSION}
    return {**head, **{key: value for key, value in header.items() if key not in head}}
