"""Damaged and cut files of every format: no crash, no hang, and every message that is still whole is read."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcplab import formats
from mcplab.formats import source
from mcplab.model import Record, TraceError
from tests.formats.talk import FORMS, TALK, Form

by_file = pytest.mark.parametrize("form", FORMS, ids=[form.file for form in FORMS])
VERSION = FORMS[0].data().index(b'"version":') + len(b'"version":')
SLOW = 2.0  # seconds for a file of a few kilobytes: far more than it takes, far less than a hang


def spans(form: Form) -> list[tuple[int, int, int]]:
    """Where each message stands in the file: (begin, end, number)."""
    found, pos = [], 0
    for text, number in form.make():
        size = len(text.encode())
        if number is not None:
            found.append((pos, pos + size, number))
        pos += size
    return found


def read(data: bytes) -> Record | None:
    try:
        return formats.read(source.load(data))
    except TraceError as error:
        one_line(error)
        return None


def one_line(error: TraceError) -> None:
    assert "\n" not in str(error)


def hold(record: Record | None, whole: list[int]) -> None:
    """Every message in ``whole`` is in the record, once."""
    got = []
    for event in record.events if record is not None else ():
        if event.kind == "message":
            got.append(json.loads(event.text))
    for number in whole:
        assert got.count(TALK[number].body) == 1, f"message {number}: {got.count(TALK[number].body)} times"
    if record is not None:
        seqs = [event.seq for event in record.events]
        assert seqs == sorted(set(seqs))
        assert len(record.linenos) == len(record.events)


@by_file
def test_twenty_damages_and_twenty_cuts(form: Form) -> None:
    data, where = form.data(), spans(form)
    rng = random.Random(form.file)
    for _ in range(20):
        at = rng.randrange(len(data))
        if form.file == "mcplab.jsonl" and at == VERSION:
            continue
        broken = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        hold(read(broken), [number for begin, end, number in where if not begin <= at < end])
    for _ in range(20):
        at = rng.randrange(len(data))
        hold(read(data[:at]), [number for _, end, number in where if end <= at])


def test_a_line_that_ran_into_the_next_leaves_its_message() -> None:
    form = next(form for form in FORMS if form.file == "vscode.log")
    content = form.data()
    at = content.index(b"\n", content.index(b"Connection state: Running"))
    hold(read(content[:at] + b"\0" + content[at + 1 :]), [number for begin, _, number in spans(form) if begin > at])


@by_file
@settings(max_examples=60, deadline=SLOW * 1000)
@given(data=st.data())
def test_any_damage_leaves_the_others_whole(form: Form, data: st.DataObject) -> None:
    content, where = form.data(), spans(form)
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255))
    assume(form.file != "mcplab.jsonl" or at != VERSION)  # another version is refused, and should be
    hold(
        read(content[:at] + bytes([byte]) + content[at + 1 :]),
        [number for begin, end, number in where if not begin <= at < end],
    )


@by_file
@settings(max_examples=40, deadline=SLOW * 1000)
@given(data=st.data())
def test_pieces_in_any_order_never_crash(form: Form, data: st.DataObject) -> None:
    content = form.data()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), min_size=1, max_size=6)))
    pieces = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    read(b"".join(data.draw(st.permutations(pieces))))


@settings(max_examples=200, deadline=SLOW * 1000)
@given(st.binary(max_size=400), st.sampled_from([module.NAME for module in formats.FORMATS]))
def test_any_bytes_in_any_format_give_a_record_or_one_clear_error(data: bytes, name: str) -> None:
    try:
        record = formats.read(source.load(data), format=name)
    except TraceError as error:
        one_line(error)
    else:
        assert record.format == name


words = st.sampled_from(
    [
        '{"jsonrpc":"2.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"result":{}}', '{"', '"}', "[", "]", "{", "}", "\n", "\r\n",
        '"message":', '"direction":"request"', "data: ", "event: message\n", "HTTP/1.1 200 OK\n", "> POST /mcp HTTP/1.1\n", "< ", "* ",
        "2026-02-03T14:00:00.010Z [x] [info] Message from client: ", "2026-02-03 14:00:00.010 [trace] [editor -> server] ",
        "Content-Length: 40\r\n\r\n", "read: ", "write: ", "$ curl -i -d '", "'", "\\", "[1] [Local→Remote] ", "\x00", "\ufeff",
        "Sending client message: root=JSONRPCRequest(", "id=1, ", '{"kind":"message","seq":0,"conn":"c1","msg":', ',"_meta":{"dir":"send"}}',
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=SLOW * 1000)
@given(st.lists(words, max_size=40))
def test_words_of_all_formats_in_any_order_never_crash(parts: list[str]) -> None:
    read("".join(parts).encode())
