"""One HTTP exchange as it passes a relay, told to a recorder: what is said here is on disk before it is forwarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import UNSET, Raw

from mcplab import jsontext
from mcplab.live.capture import is_message, raw
from mcplab.live.coding import NEEDS, Decoder, decoder
from mcplab.live.framing import Head
from mcplab.live.sse import SseEvent, SseParser
from mcplab.model import Http

KEEP: Final = 256 << 20
"""Bytes of one body, or of one event of a stream, that are kept; what is longer is relayed all the same."""

_NO_MESSAGE_DUE: Final = ("application/x-www-form-urlencoded", "multipart/form-data", "text/html")


def speaks(text: bytes) -> bool:
    """Is this JSON-RPC? As ``is_message`` has it, but ``{"error": "invalid_token"}`` is OAuth's way to refuse."""
    return is_message(text) and not (b'"jsonrpc"' not in text and _refusal(text))


def _refusal(text: bytes) -> bool:
    try:
        found = jsontext.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("error"), str) and not {"method", "result"} & found.keys()


class _Body:
    """The recorded copy of a body, decoded as far as can be."""

    def __init__(self, head: Head, warn: Callable[[str], None], encoded: bool) -> None:
        self.text = bytearray()
        self.size = 0
        self.note = ""  # why the copy is not what was meant
        codings = head.get("content-encoding")
        self._decoder: Decoder | None = None
        self._blind = False  # what comes cannot be read, and may not be kept
        if codings is not None:
            self._decoder = decoder(codings)
            if self._decoder is None:
                need = NEEDS.get(codings.strip().lower())
                cure = f"; `pip install {need}` beside mcplab decodes it" if need else ""
                self._blind = not encoded
                kept = "kept as it is" if encoded else "not kept, for what cannot be read cannot be masked"
                self.note = f"{codings} body, {kept}"
                warn(f"bodies in {codings} are relayed but cannot be read here{cure}")

    def pieces(self, data: bytes) -> list[bytes]:
        """What these bytes stand for."""
        if self._blind:
            return []
        if self._decoder is None:
            return [data]
        try:
            return list(self._decoder.feed(data))
        except ValueError as error:
            self.note, self._blind = f"the body cannot be decoded: {error}", True
            return []

    def keep(self, data: bytes) -> None:
        for piece in self.pieces(data):
            self.size += len(piece)
            if self.size <= KEEP:
                self.text += piece
            else:
                self.text.clear()
                self.note = f"more than {KEEP >> 20} MB: not kept"


class Exchange:
    """One request with its response. ``add(kind, **fields)`` writes an event of its connection to the trace.

    ``encoded``: keep a body in a coding that cannot be decoded here, with whatever secrets are in it.
    """

    def __init__(
        self, add: Callable[..., Any], name: str, head: Head, warn: Callable[[str], None], encoded: bool
    ) -> None:
        self.name = name
        self.head = head
        self.status: int | None = None
        self._add = add
        self._warn = warn
        self._asked = False  # is the request in the trace?
        self._encoded = encoded
        self._sent = _Body(head, warn, encoded)
        self._answer: _Answer | None = None
        self.request_over = False
        self.over = False

    # The request -----------------------------------------------------------------------------------

    def _facts(self, **more: Any) -> Http:
        return Http(
            method=self.head.method, path=self.head.target, headers=self.head.fields, exchange=self.name, **more
        )

    def request_body(self, data: bytes) -> None:
        self._sent.keep(data)

    def request_end(self, *, cut: bool = False) -> None:
        """All of the request is here, or (``cut``) no more of it will come."""
        if self.request_over:
            return
        self.request_over = True
        facts = Http(exchange=self.name) if self._asked else self._facts()
        text, note = bytes(self._sent.text), self._sent.note
        reason = {"reason": note} if note else {}
        if not text and not note:
            if not self._asked:
                self._add("http", dir="c2s", http=self._facts(**({} if cut else {"body": False})))
        elif not cut and speaks(text):
            self._add("message", dir="c2s", http=facts, msg=Raw(text.strip(b" \t\r\n")))
        elif self.head.method == "POST" and self.head.essence not in _NO_MESSAGE_DUE and not note:
            self._add("unparsed", dir="c2s", http=facts, **raw(text))
        else:
            self._add("http", dir="c2s", http=facts, **(raw(text) if text else {}), **reason)
        self._asked = True
        self._sent.text = bytearray()

    # The response ----------------------------------------------------------------------------------

    def answered(self, head: Head) -> None:
        """The head of the final response is here."""
        if not self._asked:  # an answer before the request was complete
            self._add("http", dir="c2s", http=self._facts())
            self._asked = True
        self.status = head.status
        self._answer = _Answer(self._add, self.name, head, self._warn, self._encoded)

    def body(self, data: bytes, *, open_ended: bool = False) -> None:
        """A piece of the response's body; ``open_ended``: only the connection's end will end it."""
        assert self._answer is not None
        self._answer.body(data, open_ended)

    def end(self) -> None:
        """The response is complete."""
        if self._answer is not None and not self.over:
            self._answer.end({"by": "server", "reason": "stream ended"}, False)
        self._answer, self.over = None, True

    def cut(self, reason: str, *, by: str | None = None) -> None:
        """The connection ended before the response did."""
        if self.over:
            return
        self.over = True
        self.request_end(cut=True)
        marks: dict[str, Any] = {"reason": reason}
        if by is not None:
            marks["by"] = by
        if by == "server":
            marks["unexpected"] = True
        if self._answer is None:
            self._add("close", http=Http(exchange=self.name), **marks)
        else:
            self._answer.end(marks, True)
            self._answer = None

    def refused(self, head: Head, text: bytes, reason: str) -> None:
        """The relay itself answers, not the server behind it."""
        self.request_end(cut=True)
        self._add("http", dir="s2c", http=response_facts(self.name, head), **raw(text))
        self._add("close", http=Http(exchange=self.name), reason=reason)
        self.status, self.over = head.status, True


class _Answer:
    """A response: an event stream event by event, any other body when it is complete."""

    def __init__(
        self, add: Callable[..., Any], name: str, head: Head, warn: Callable[[str], None], encoded: bool
    ) -> None:
        self._add = add
        self._warn = warn
        self._head = head
        self._name = name
        self._held = _Body(head, warn, encoded)
        self._facts = response_facts(name, head)
        self._short = Http(status=head.status, exchange=name)
        self._said = False  # is the body's message in the trace?
        self._waiting = 0  # bytes of an event whose end is not there yet
        self._parser = SseParser() if head.essence == "text/event-stream" and not self._held.note else None
        self._streams = self._parser is not None
        if (far := elsewhere(head.get("location") or "")) is not None:
            warn(f"the server redirects to {far}: a client that follows goes round this proxy")
        if self._streams:
            self._add("http", dir="s2c", http=self._facts)

    def body(self, data: bytes, open_ended: bool) -> None:
        if self._parser is None:
            self._held.keep(data)
            if open_ended and data.rstrip()[-1:] in b"}]":  # nothing but the end of the connection is still to come
                self._message()
            return
        for piece in self._held.pieces(data):
            self._waiting += len(piece)
            for event in self._parser.feed(piece):
                self._waiting = 0
                self._event(event)
        if self._waiting > KEEP:
            self._parser, self._waiting = None, 0
            self._held.note = f"an event of more than {KEEP >> 20} MB: this stream is not recorded from there"

    def _event(self, event: SseEvent) -> None:
        if event.is_message:
            assert event.data is not None
            kind, text = ("message", event.data.strip(b" \t\r\n")) if speaks(event.data) else ("unparsed", event.data)
            body = {"msg": Raw(text)} if kind == "message" else raw(text)
            self._add(kind, dir="s2c", http=self._short, sse=event.facts(False), **body)
            return
        self._add("sse", dir="s2c", http=self._short, sse=event.facts(True), **raw(event.raw))
        if event.event == "endpoint" and (far := elsewhere((event.data or b"").decode("latin-1"))) is not None:
            self._warn(
                f"the server tells clients to post to {far}: an absolute address, which leads round this proxy "
                "(bytes are not changed); let the server send a path"
            )

    def _message(self) -> bool:
        """Write the body down if it is a message, once."""
        text = bytes(self._held.text)
        if self._said or not text or self._held.note or not speaks(text):
            return self._said and not text.strip()
        self._said = True
        self._add("message", dir="s2c", http=self._facts, msg=Raw(text.strip(b" \t\r\n")))
        self._held.text.clear()
        return True

    def end(self, marks: dict[str, Any], cut: bool) -> None:
        if self._streams:
            if self._parser is not None and (rest := self._parser.rest()):
                self._add("unparsed", dir="s2c", http=Http(exchange=self._name), **raw(rest))
            if self._held.note:
                marks = {**marks, "reason": f"{marks['reason']}; {self._held.note}"}
            self._add("close", http=Http(exchange=self._name), **marks)
            return
        if not self._message():
            text, note = bytes(self._held.text), self._held.note
            facts = Http(exchange=self._name) if self._said else self._facts
            body = raw(text) if text else {}
            if not text and not note and not cut:
                facts = msgspec.structs.replace(facts, body=False)
            self._add("http", dir="s2c", http=facts, **body, **({"reason": note} if note else {}))
        if cut:
            self._add("close", http=Http(exchange=self._name), **marks)


def elsewhere(reference: str) -> str | None:
    """The address, without its query, if this reference has a host of its own; None where it is a path."""
    try:
        parts = urlsplit(reference.strip())
    except ValueError:
        return None
    return urlunsplit(parts._replace(query="", fragment="")) if parts.netloc else None


def response_facts(name: str | None, head: Head) -> Http:
    """A response's facts; ``name``: of the exchange, where it is the answer to anything."""
    return Http(status=head.status, headers=head.fields, exchange=UNSET if name is None else name)
