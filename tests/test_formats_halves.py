"""Two files of one capture, and several logs as one."""

from __future__ import annotations

import pytest

from mcplab import formats
from mcplab.formats import halves, source
from mcplab.formats.source import Source
from mcplab.model import TraceError
from tests.formats.talk import HERE, TALK


def half(direction: str) -> Source:
    text = "\n".join(m.text for m in TALK if m.dir == direction) + "\n"
    return Source(f"{direction}.log", text.encode(), direction)


def test_halves_give_the_conversation_in_an_order_that_ids_allow() -> None:
    record = halves.read(half("c2s"), half("s2c"))
    assert [event.text for event in record.events] == [m.text for m in TALK]
    assert [event.dir for event in record.events] == [m.dir for m in TALK]
    assert record.header["transport"] == "stdio"
    assert "ids alone" in record.notes[0]
    assert set(record.files) == {"c2s.log", "s2c.log"}
    assert len(record.files) == len(record.linenos) == len(record.events)


def test_both_parties_may_use_the_same_id() -> None:
    client = ['{"jsonrpc":"2.0","id":0,"method":"initialize"}', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
              '{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}']  # fmt: skip
    server = ['{"jsonrpc":"2.0","id":0,"result":{}}', '{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
              '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', "not json"]  # fmt: skip
    record = halves.read(
        Source("in", "\n".join(client).encode(), "in"), Source("out", "\n".join(server).encode(), "out")
    )
    assert [event.text or event.raw for event in record.events] == [
        client[0],
        server[0],
        client[1],
        server[1],
        client[2],
        server[2],
        server[3],
    ]
    assert record.events[-1].kind == "unparsed"
    assert record.events[-1].dir == "s2c"


def test_halves_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(TraceError, match="give the client's half first"):
        halves.read(half("s2c"), half("c2s"))


def test_one_half_may_be_empty_and_waits_that_never_end_do_not_hang() -> None:
    record = halves.read(half("c2s"), Source("empty.log", b"", "empty"))
    assert len(record.events) == sum(m.dir == "c2s" for m in TALK)
    assert "empty.log is empty" in record.notes
    a = b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"method":"x","params":{}}'
    b = b'{"jsonrpc":"2.0","id":2,"result":{}}\n{"jsonrpc":"2.0","id":1,"method":"y","params":{}}'
    assert len(halves.read(Source("a", a, "a"), Source("b", b, "b")).events) == 4


def test_logs_of_one_capture_are_put_together_by_time() -> None:
    one = formats.read(source.load(HERE / "mcp-server-weather.log"))
    other = formats.read(source.load(HERE / "vscode.log"))
    merged = halves.merge([one, other], "both")
    timed = [str(event.ts) for event in merged.events]
    assert len(merged.events) == len(one.events) + len(other.events)
    assert "2 files as one capture" in merged.notes[0]
    assert len(merged.files) == len(timed)
    twice = halves.merge([other, other])
    assert {event.conn for event in twice.events} == {"vscode:c1"}
