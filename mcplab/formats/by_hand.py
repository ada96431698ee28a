"""Captures written in Python: messages with their senders, and events among them (``mcplab.make_trace``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mcplab import jsontext
from mcplab.formats import native
from mcplab.model import FORMAT_NAME, FORMAT_VERSION, Event, JsonText, Record, TraceError


def record(messages: Iterable[tuple[str, Any] | Mapping[str, Any]], transport: str) -> Record:
    """The capture of ``make_trace``, which documents what may be given.

    Raises:
        TraceError: one of them is neither a message nor an event, or the transport is not known.
    """
    if transport not in ("stdio", "http"):
        raise TraceError(f"transport={transport!r}: make_trace knows stdio and http")
    exchange = 0
    records: list[Event] = []
    for seq, pair in enumerate(messages):
        if isinstance(pair, Mapping):
            event = _event(pair, exchange, seq)
            exchange += event.http is not UNSET and event.http.exchange == f"x{exchange + 1}"
            records.append(event)
            continue
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TraceError(f"message {seq}: not a pair of sender and message; read_trace takes event dicts")
        sender, message = pair
        if sender not in ("client", "server"):
            raise TraceError(f"message {seq}: sender {sender!r} is neither 'client' nor 'server'")
        try:
            text = str(message) if isinstance(message, (str, JsonText)) else jsontext.dumps(message)
        except (TypeError, ValueError) as error:
            raise TraceError(f"message {seq}: no JSON value ({error}); give text for what is sent as it is") from None
        made: dict[str, Any] = {"seq": seq, "conn": "c1", "dir": "c2s" if sender == "client" else "s2c"}
        if transport == "http":
            exchange += sender == "client"
            made["http"] = _http(sender, max(exchange, 1))
        why = jsontext.check(text) if isinstance(message, str) else ""
        if why or jsontext.kind(text) not in ("object", "array"):
            made |= {"kind": "unparsed", "raw": text, "reason": why or "a JSON value, but no message"}
        else:
            made |= {"kind": "message", "msg": Raw(text.encode("utf-8", "surrogatepass"))}
        records.append(msgspec.convert(made, Event))
    header = {
        "kind": "header", "format": FORMAT_NAME, "version": FORMAT_VERSION, "tool": "mcplab make_trace",
        "transport": "stdio" if transport == "stdio" else "streamable-http",
    }  # fmt: skip
    return Record(header, records, name="made", notes=("made by hand: no clock",))


def _event(item: Mapping[str, Any], exchange: int, seq: int) -> Event:
    """One event by hand; ``exchange``: number of the latest one."""
    if "kind" not in item:
        raise TraceError(f"message {seq}: an object without a kind is no event; a message is a pair with its sender")
    fields = dict(item)
    http: Any = item.get("http")
    if isinstance(http, Mapping) and "exchange" not in http:
        begins = item.get("dir") == "c2s" and "method" in http
        fields["http"] = http = {**http, "exchange": f"x{max(exchange + begins, 1)}"}
    if isinstance(http, Mapping) and isinstance(http.get("headers"), Mapping):
        fields["http"] = {**http, "headers": {str(name).lower(): said for name, said in http["headers"].items()}}
    try:
        found = native.from_dicts([fields]).events
    except TraceError as error:
        raise TraceError(f"message {seq}: no event ({str(error).removeprefix('<list>, line 1: ')})") from None
    if len(found) != 1:
        raise TraceError(f"message {seq}: no event, but a header")
    return msgspec.structs.replace(found[0], seq=seq)


def _http(sender: str, exchange: int) -> dict[str, Any]:
    if sender == "client":
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return {"method": "POST", "path": "/mcp", "headers": headers, "exchange": f"x{exchange}"}
    return {"status": 200, "headers": {"content-type": "application/json"}, "exchange": f"x{exchange}"}
