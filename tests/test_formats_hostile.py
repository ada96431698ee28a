"""What no honest tool writes: nesting, bombs, endless lines, odd files. Each ends in a record or one clear error."""

from __future__ import annotations

import gzip
import io
import json
import os
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from mcplab import formats
from mcplab.formats import source
from mcplab.model import Record, TraceError

PING = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
HEAD = b'{"kind":"header","format":"mcplab-trace","version":1,"transport":"stdio"}\n'


def event(seq: int, message: bytes = PING) -> bytes:
    return b'{"kind":"message","seq":%d,"conn":"c1","dir":"c2s","msg":%s}\n' % (seq, message)


def read(data: bytes) -> Record:
    return formats.read(source.load(data))


@pytest.mark.parametrize("deep", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_deep_nesting_is_named_and_reading_goes_on(deep: bytes) -> None:
    message = b'{"jsonrpc":"2.0","id":2,"result":' + deep + b"}"
    own = read(HEAD + event(0) + event(1, message) + event(2))
    assert [e.seq for e in own.events] == [0, 2]
    assert (own.unread[0].line, own.unread[0].reason) == (3, "nested too deeply to be read")
    plain = read(PING + b"\n" + message + b"\n" + PING.replace(b":1,", b":3,") + b"\n")
    assert [e.kind for e in plain.events] == ["message", "unparsed", "message"]
    assert "nested too deeply" in str(plain.events[1].reason)
    log = b"2026-01-05T10:00:00.1Z [x] [info] Message from %s: %s\n"
    claude = read(log % (b"client", PING) + log % (b"server", message) + log % (b"client", PING))
    assert len([e for e in claude.events if e.kind == "message"]) == 2
    assert claude.unread[0].line == 2


def test_a_line_of_a_hundred_megabytes() -> None:
    big = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * (100 << 20) + b'"}]}}'
    began = time.process_time()
    record = read(HEAD + event(0) + event(1, big) + event(2))
    assert [len(e.text) for e in record.events] == [len(PING), len(big), len(PING)]
    assert time.process_time() - began < 20


def test_gzip_bomb_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_UNPACKED", 8 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    bomb = b"".join(packer.compress(block) for _ in range(64)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match="unpack to more than"):
            source.load(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20
    assert len(source.load(gzip.compress(bytes(4 << 20))).data) == 4 << 20  # packed well, but small


def test_gzip_of_several_members_cut_and_damaged() -> None:
    lines = b"".join(event(n) for n in range(2000))
    packed = gzip.compress(HEAD) + gzip.compress(lines)
    assert len(read(packed).events) == 2000
    cut = read(packed[:-40])
    assert 0 < len(cut.events) <= 2000
    assert "cut off" in " ".join(cut.notes)
    with pytest.raises(TraceError, match="gzip data"):
        read(b"\x1f\x8b\x08\x00garbage")


def test_fifo_folder_loop_and_missing_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    with pytest.raises(TraceError, match="a folder, not a file"):
        source.load(folder)
    fifo = tmp_path / "fifo.jsonl"
    os.mkfifo(fifo)
    with pytest.raises(TraceError, match="not a regular file"):
        source.load(fifo)
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.symlink_to(b)
    b.symlink_to(a)
    with pytest.raises(TraceError, match=r"(?i)symbolic links|symlink"):
        source.load(a)
    with pytest.raises(TraceError, match="no such file"):
        source.load(tmp_path / "nothing.jsonl")
    with pytest.raises(TraceError, match="null"):
        source.load("a\0b.jsonl")


def test_nul_bytes_before_and_between_lines() -> None:
    record = read(b"\0" * 64 + PING + b"\n" + b"\0" * 64 + b"\n" + PING.replace(b":1,", b":2,"))
    assert len([e for e in record.events if e.kind == "message"]) == 2
    own = read(HEAD + event(0) + b"\0" * 100 + b"\n" + event(1))
    assert len(own.events) == 2
    assert own.unread[0].reason == "nothing but NUL bytes"


def test_lone_surrogates_duplicate_keys_and_big_numbers_keep_their_text() -> None:
    odd = b'{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call","params":{"a":"\\ud83d","n":1.50,"b":123456789012345678901234567890}}'
    for data in (HEAD + event(0, odd), PING + b"\n" + odd):
        record = read(data)
        assert bytes(record.events[-1].msg) == odd  # type: ignore[arg-type]


def test_ids_of_every_json_type() -> None:
    kinds = ["1", '"1"', "1.0", "null", "true", "[1]", "{}", '""', "-0", "1e400"]
    lines = [f'{{"jsonrpc":"2.0","id":{kind},"method":"tools/list"}}' for kind in kinds]
    record = read("\n".join(lines).encode())
    assert [e.text for e in record.events] == lines
    assert all(e.kind == "message" for e in record.events)


def test_latin_1_is_read_with_a_word_about_it() -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"café €"}}'
    record = read(text.encode("cp1252"))
    assert record.events[0].text == text
    assert "Windows-1252" in " ".join(record.notes)


def test_a_few_damaged_bytes_do_not_change_the_encoding() -> None:
    good = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"café"}}\n'.encode()
    record = read(good + good.replace(b"caf", b"ca\xff").replace(b":1,", b":2,"))
    assert record.events[0].text == good.decode().strip()
    assert "\ufffd" in record.events[1].text


def test_clock_backwards_and_missing_keep_the_order_of_the_lines() -> None:
    log = b"2026-01-05T10:00:0%d.000Z [x] [info] Message from client: %s\n"
    record = read(log % (5, PING) + log % (1, PING.replace(b":1,", b":2,")))
    assert [e.text for e in record.events if e.kind == "message"] == [
        PING.decode(),
        PING.replace(b":1,", b":2,").decode(),
    ]
    assert str(record.events[1].ts) > str(record.events[2].ts)


def test_endless_open_brackets_cost_no_more_than_their_length() -> None:
    for data in (b'{"jsonrpc":' * 20_000, b'[{"id":1,' * 20_000, b'{"a":[' * 20_000 + b"\n" + PING):
        began = time.process_time()
        try:
            read(PING + b"\n" + data)
        except TraceError:
            pass
        assert time.process_time() - began < 10


def test_open_file_and_text_are_sources_too(tmp_path: Path) -> None:
    file = tmp_path / "x.ndjson"
    file.write_bytes(PING + b"\n")
    with file.open("rb") as handle:
        assert len(formats.read(source.load(handle)).events) == 1
    assert len(formats.read(source.load(io.StringIO(PING.decode()))).events) == 1
    assert formats.read(source.load(str(file))).name == "x"
    with pytest.raises(TraceError, match="cannot read a trace from int"):
        source.load(7)


def test_har_of_other_traffic_says_so() -> None:
    entry = {"startedDateTime": "2026-01-05T10:00:00Z", "time": 1, "request": {"method": "GET", "url": "http://x/", "headers": []},
             "response": {"status": 200, "headers": [], "content": {}}}  # fmt: skip
    with pytest.raises(TraceError, match="none of them MCP"):
        read(
            json.dumps(
                {"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": [entry]}}
            ).encode()
        )


HEADS = [
    "", "2026-01-05T10:00:00.1Z [x] [info] ", "2026-01-05T10:00:00.1Z [x] [info] Message from client: ",
    "2026-01-05 10:00:00.100 [info] [editor -> server] ", "read: ", "$ curl -i -d '", '{"log":{"creator":{"name":"x"},"entries":[',
    '[{"direction":"request","timestamp":"","message":', '{"session_id":"s","direction":"c2s","raw":', "Content-Length: 5\r\n\r\n",
    "Sending client message: root=JSONRPCRequest(", "[1] [Local→Remote] x\n[1] ", "data: ", '{"interactions":[{"type":"notification","request":',
    '2026-01-05T10:00:00.1Z [DEBUG] MCP server "x": ', '{"level":"INFO","timestamp":"2026","namespace":"x","message":"',
]  # fmt: skip
REPEATED = [" ", "\n", '"', "{", '{"id":', PING.decode(), '{\\"jsonrpc\\":', "\\", "'", "Unexpected token JSON ", "{ metadata: ", "[[", "data: {\n",
            "root=JSONRPC", '{\n "a":\n', "HTTP/1.1 200 OK\n", "Content-Length: 1\n"]  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_repetition_of_anything_is_read_in_time(head: str) -> None:
    for part in REPEATED:
        data = (head + part * (30_000 // len(part))).encode()
        began = time.process_time()
        try:
            read(data)
        except TraceError:
            pass
        assert time.process_time() - began < 5, (head, part)
