"""HTTP/1.1 taken apart: pieces hold every byte, in whatever portions they arrive, and what is no HTTP is said to be."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab.live.framing import HEAD_LIMIT, Framing, FramingError, Head

REQUESTS = (
    b"\r\nPOST /mcp?x=1 HTTP/1.1\r\nHost: a\r\nX: \xff\r\nx:2\r\nContent-Length: 5\r\n\r\nhello"
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"
    b'3;a="b"\r\nabc\r\n00A  \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n'
    b"DELETE / HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)
RESPONSES = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nHTTP/1.1 304\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end\r\n\r\n"
)


def taken(framing: Framing, portions: list[bytes]) -> tuple[list[tuple[str, bytes]], bytes]:
    """The pieces, bodies joined over portions; and all bytes on the wire."""
    found: list[tuple[str, bytes]] = []
    wire = b""
    for portion in portions:
        for kind, raw, body in framing.feed(portion):
            wire += raw
            if kind == "body" and found and found[-1][0] == "body":
                found[-1] = ("body", found[-1][1] + body)
            elif kind != "frame":
                found.append((kind, framing.head.target.encode() if kind == "head" and framing.head else body))
    return found, wire


@given(st.lists(st.integers(0, len(REQUESTS)), max_size=12))
def test_requests_in_any_portions(cuts):
    edges = [0, *sorted(cuts), len(REQUESTS)]
    framing = Framing("request")
    found, wire = taken(framing, [REQUESTS[a:b] for a, b in itertools.pairwise(edges)])
    assert found == [
        ("head", b"/mcp?x=1"), ("body", b"hello"), ("end", b""), ("head", b"/"), ("end", b""),
        ("head", b"/"), ("body", b"abc0123456789"), ("end", b""), ("head", b"/"), ("end", b""),
    ]  # fmt: skip
    assert wire == REQUESTS[2:]  # an empty line before a request means nothing
    assert framing.idle


@given(st.lists(st.integers(0, len(RESPONSES)), max_size=12))
def test_responses_in_any_portions(cuts):
    edges = [0, *sorted(cuts), len(RESPONSES)]
    framing = Framing("response")
    found, wire = taken(framing, [RESPONSES[a:b] for a, b in itertools.pairwise(edges)])
    assert [kind for kind, _ in found] == [
        "head", "end", "head", "body", "end", "head", "end", "head", "end", "head", "body", "end", "head", "body",
    ]  # fmt: skip
    assert [body for kind, body in found if kind == "body"] == [b"{}", b"ok", b"until the end\r\n\r\n"]
    assert wire == RESPONSES
    assert framing.until_close
    assert not framing.idle


def test_empty_lines_between_requests():
    framing = Framing("request")
    found, wire = taken(framing, [b"\r", b"\n", b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\r\n"])
    assert [kind for kind, _ in found] == ["head", "end"]
    assert wire == b"GET / HTTP/1.1\r\n\r\n"
    assert framing.idle


def test_answers_to_head_have_no_body():
    framing = Framing("response", lambda: True)
    found, _ = taken(framing, [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" * 2])
    assert [kind for kind, _ in found] == ["head", "end", "head", "end"]


def test_heads():
    head = Head(REQUESTS[2:].partition(b"hello")[0], request=True)
    assert (head.method, head.target, head.version) == ("POST", "/mcp?x=1", "1.1")
    assert head.fields == {"host": "a", "x": "\xff, 2", "content-length": "5"}
    assert head.times == {"x": 2}
    assert head.get("nothing") is None
    spaced = Framing("request")
    assert [kind for kind, _ in taken(spaced, [b"POST / HTTP/1.1\r\nContent-Length:\t 2 \t\r\n\r\nab"])[0]][-1] == "end"
    answer = Head(
        b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Type: Text/HTML; a=b\r\n\r\n", request=False
    )
    assert (answer.status, answer.upgrade, answer.essence, answer.interim) == (101, "h2c", "text/html", False)


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"\x16\x03\x01", 400),
        (b"\r\r\n", 400),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\r\n folded: yes\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5000, 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * HEAD_LIMIT, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * HEAD_LIMIT, 431),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_no_requests(wire, status, size):
    if size == 1 and len(wire) > 10_000:
        size = 1000
    framing = Framing("request")
    with pytest.raises(FramingError) as caught:
        taken(framing, [wire[at : at + size] for at in range(0, len(wire), size)])
    assert caught.value.status == status


@pytest.mark.parametrize("wire", [b"SSH-2.0", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
def test_no_responses(wire):
    with pytest.raises(FramingError):
        taken(Framing("response"), [wire])


@given(st.binary(max_size=300))
def test_anything_else_is_refused_or_waits(data):
    for side in ("request", "response"):
        framing = Framing(side)
        try:
            _, wire = taken(framing, [data[at : at + 3] for at in range(0, len(data), 3)])
        except FramingError:
            continue
        assert (wire + framing.held).endswith(data.lstrip(b"\r\n"))
