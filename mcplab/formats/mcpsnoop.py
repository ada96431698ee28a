"""mcpsnoop session logs: one envelope a line (kerlenton/mcpsnoop, internal/proxy/frame.go).

Lossless for messages: ``raw`` holds their own bytes. Text that is no JSON stands in ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from mcplab import jsontext
from mcplab.formats import clock, text
from mcplab.formats.build import Builder
from mcplab.formats.source import Source
from mcplab.model import Event, Http, Record

NAME = "mcpsnoop"
TITLE = "mcpsnoop session JSONL"

LOST = (
    "messages and text whose direction is not known",
    "stdio open and close events, exit codes and monotonic times",
    "HTTP paths, exchanges and events without a message",
    "all headers but Mcp-Method, Mcp-Name, MCP-Protocol-Version and WWW-Authenticate's scheme",
    "SSE fields",
    "header members other than the label",
)
"""What a trace loses when it is written in this form."""


def sniff(data: bytes) -> bool:
    """Does the first line that holds anything look like an envelope?"""
    line = data[:65536].lstrip(b"\0 \t\r\n").split(b"\n", 1)[0][:4000]
    return line[:1] == b"{" and b'"session_id"' in line and b'"direction"' in line


def read(source: Source, *, tz: str | None = None) -> Record:
    """Read the envelopes in file order. A connection is a session, and on HTTP one client of it (``conn_id``)."""
    builder = Builder(source, NAME)
    seen: set[str] = set()
    for number, line in enumerate(source.data.split(b"\n"), 1):
        stripped = line.strip(b"\0 \t\r")
        if not stripped:
            continue
        whole = text.decode(stripped)
        try:
            envelope = jsontext.loads(whole)
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
            builder.lost(number, stripped, reason)
            session = re.search(r'"session_id"\s*:\s*"([^"\\]*)"', whole)
            builder.rescue(whole, number, conn=session[1] if session is not None else "c1")
            continue
        if not isinstance(envelope, dict) or "direction" not in envelope:
            builder.lost(number, stripped, "no mcpsnoop envelope")
            builder.rescue(whole, number)
            continue
        _take(builder, number, whole, envelope, seen)
    if "http" in seen:
        builder.note(
            "HTTP: only the Mcp- headers that mcpsnoop keeps, no paths, and nothing but the id links a request and its "
            "response"
        )
    if len(seen) == 1:
        builder.header["transport"] = "stdio" if "stdio" in seen else "streamable-http"
    return builder.record()


def _take(builder: Builder, number: int, whole: str, envelope: dict[str, Any], seen: set[str]) -> None:
    direction = envelope.get("direction")
    conn = str(envelope.get("session_id", "c1"))
    if envelope.get("conn_id"):
        conn += f"/{envelope['conn_id']}"
    at = {"conn": conn, "ts": clock.utc(envelope.get("ts"))}
    if envelope.get("server_label"):
        builder.header.setdefault("label", str(envelope["server_label"]))
    if direction == "meta" and '"jsonrpc"' not in whole:
        raw = envelope.get("raw")
        if isinstance(raw, dict) and isinstance(raw.get("command"), list):
            builder.header.setdefault("config", {})["command"] = [str(word) for word in raw["command"]]
        builder.add("open", number, **at)
        return
    if isinstance(envelope.get("transport"), str):
        seen.add(envelope["transport"])
    if direction == "stderr":
        builder.add("stderr", number, dir="s2c", raw=jsontext.printable(str(envelope.get("text", ""))), **at)
        return
    if direction not in ("c2s", "s2c"):
        builder.lost(number, whole, f"direction {direction!r} is none that mcpsnoop has")
        builder.rescue(whole, number, conn=conn, ts=at["ts"])
        return
    for flag, meaning in (
        ("truncated", "some frames were cut at mcpsnoop's size limit"),
        ("redacted", "some frames were rewritten by mcpsnoop's redaction"),
        ("batch", "mcpsnoop writes the elements of a batch as frames of their own: where one began and ended is lost"),
    ):  # fmt: skip
        if envelope.get(flag):
            builder.note(meaning)
    facts = _facts(envelope) if envelope.get("transport") == "http" else UNSET
    if "raw" in envelope:
        body, _ = jsontext.get(whole, "raw")
        builder.message(body or "null", number, dir=direction, http=facts, **at)
    elif "text" not in envelope:
        builder.lost(number, whole, "an envelope with neither raw nor text")
        builder.rescue(whole, number, conn=conn, ts=at["ts"])
    else:
        raw = jsontext.printable(str(envelope.get("text", "")))
        builder.add("unparsed", number, dir=direction, raw=raw, reason="no JSON, says mcpsnoop", http=facts, **at)


def _facts(envelope: dict[str, Any]) -> Http:
    headers: dict[str, str] = {}
    for key, name in (
        ("mcp_method", "mcp-method"), ("mcp_name", "mcp-name"), ("mcp_protocol_version", "mcp-protocol-version"),
    ):  # fmt: skip
        if isinstance(envelope.get(key), str):
            headers[name] = envelope[key]
    given = envelope.get("mcp_param_headers")
    for header in given if isinstance(given, list) else []:
        if isinstance(header, dict) and isinstance(header.get("name"), str):
            headers[header["name"].lower()] = str(header.get("value", ""))
    if isinstance(envelope.get("auth_challenge"), str):
        headers["www-authenticate"] = envelope["auth_challenge"].split(" ", 1)[0]
    status = envelope.get("status")
    return Http(
        method="POST" if envelope.get("direction") == "c2s" else UNSET,
        status=status if isinstance(status, int) and not isinstance(status, bool) and status else UNSET,
        headers=headers or UNSET,
    )


def write(record: Record) -> Iterator[bytes]:
    """The record as envelopes, each with its line break. ``LOST`` says what this form cannot hold."""
    label = str(record.header.get("label") or record.name)
    transport = "stdio" if record.header.get("transport", "stdio") == "stdio" else "http"
    sequence = 0
    for event in record.events:
        body = _envelope(event, label, transport)
        if body is None:
            continue
        sequence += 1
        fields = {
            "session_id": event.conn if event.conn is not UNSET else record.name,
            "server_label": label,
            "seq": sequence,
        }
        if isinstance(event.ts, str):
            fields["ts"] = event.ts
        head = jsontext.dumps({**fields, **body})
        if event.kind == "message":
            text_ = bytes(event.msg).replace(b"\r", b" ").replace(b"\n", b" ")  # type: ignore[arg-type]
            yield head[:-1].encode() + b',"raw":' + text_ + b"}\n"
        else:
            yield head.encode() + b"\n"


def _envelope(event: Event, label: str, transport: str) -> dict[str, Any] | None:
    if event.kind == "message" and isinstance(event.dir, str):
        body: dict[str, Any] = {"direction": event.dir, "transport": transport}
    elif event.kind == "unparsed" and isinstance(event.dir, str):
        body = {"direction": event.dir, "transport": transport, "text": event.raw if event.raw is not UNSET else ""}
    elif event.kind == "stderr":
        body = {"direction": "stderr", "transport": transport, "text": event.raw if event.raw is not UNSET else ""}
    else:
        return None
    if isinstance(event.http, Http):
        if isinstance(event.http.headers, dict):
            for name in ("mcp-method", "mcp-name", "mcp-protocol-version"):
                if name in event.http.headers:
                    body[name.replace("-", "_")] = event.http.headers[name]
            if event.http.status is not UNSET and "www-authenticate" in event.http.headers:
                body["auth_challenge"] = event.http.headers["www-authenticate"]
        if isinstance(event.http.status, int):
            body["status"] = event.http.status
    return body
