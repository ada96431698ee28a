"""Version 1: what is read is what was written, faulty lines are named, dicts are a source too."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcplab import formats
from mcplab.formats import native, source
from mcplab.model import Event, Http, JsonText, Record, Sse, TraceError

HEAD = '{"kind":"header","format":"mcplab-trace","version":1,"transport":"stdio","later":[1,2]}'
BIG = '{"jsonrpc":"2.0","id":1,"result":{"n":1.50,"big":123456789012345678901,"a":1,"a":2,"s":"\\u00e9\\ud83d"}}'


def read(*lines: str) -> Record:
    return formats.read(source.load("\n".join(lines) + "\n"))


def test_lines_are_written_as_they_were() -> None:
    lines = [
        HEAD,
        '{"kind":"open","seq":0,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1","unknown":{"x":1.50}}',
        '{"kind":"message","seq":1,"ts":"2026-01-05T10:00:00.1Z","conn":"c1","dir":"c2s","msg":' + BIG + "}",
        '{"kind":"later-word","seq":2,"conn":"c1"}',
        '{ "seq":3 , "kind":"stderr","conn":"c1","dir":"s2c","raw":"x\\ud83d"}',
    ]
    assert b"".join(native.write(read(*lines))).decode() == "\n".join(lines) + "\n"


def test_marks_of_streams_become_open_and_close() -> None:
    record = read(
        HEAD,
        '{"kind":"sse","seq":0,"conn":"c1","dir":"s2c","raw":"stream opened","http":{"exchange":"x1"}}',
        '{"kind":"sse","seq":1,"conn":"c1","dir":"s2c","raw":"stream closed by client","http":{"exchange":"x1"}}',
        '{"kind":"sse","seq":2,"conn":"c1","dir":"s2c","raw":":\\n\\n","sse":{"comment":""},"http":{"exchange":"x1"}}',
    )
    assert [event.kind for event in record.events] == ["open", "close", "sse"]
    again = formats.read(source.load(b"".join(native.write(record))))
    assert list(again.events) == list(record.events)


def test_every_faulty_line_is_named_and_what_is_usable_kept() -> None:
    message = '"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}'
    record = read(
        HEAD,
        f'{{"kind":"message","seq":0,"ts":"2026-01-05T10:00:00.000000Z","conn":"c1","dir":"c2s",{message}}}',
        "",
        "words",
        f'{{"kind":"message","seq":1,"conn":"c1","dir":"sideways",{message}}}',
        f'{{"kind":"message","seq":"2","conn":"c1","dir":"s2c",{message}}}',
        '{"kind":"novelty","seq":3,"conn":"c1"}',
        f'{{"kind":"message","seq":3,"ts":"tomorrow","conn":"c1","dir":"c2s",{message}}}',
        '{"kind":"message","seq":5,"conn":"c1","dir":"c2s"}',
        '{"kind":"message","seq":6,"conn":"c1","dir":"s2c","msg":{"jsonrpc":"2.0","id":2,"res',
    )
    assert {each.line for each in record.unread} == set(range(3, 11))
    assert [event.kind for event in record.events] == ["message", "message", "message", "novelty", "message"]
    assert [event.seq for event in record.events] == [0, 1, 2, 3, 4]
    assert record.linenos.tolist() == [2, 5, 6, 7, 8]  # type: ignore[attr-defined]
    assert record.events[1].dir is msgspec.UNSET
    assert record.events[4].ts is msgspec.UNSET


def test_versions_that_are_not_known_are_refused() -> None:
    for version in ("2", "0", '"1"', "true", "null"):
        with pytest.raises(TraceError, match="trace format version"):
            read('{"kind":"header","format":"mcplab-trace","version":' + version + "}")


def test_header_alone_and_no_header() -> None:
    assert list(read(HEAD).events) == []
    record = read('{"kind":"open","seq":0,"conn":"c1"}')
    assert "no header" in record.notes[0]


def test_chunks_and_single_lines_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [HEAD]
    for n in range(500):
        facts = f'"http":{{"method":"{"PUT" if n == 77 else "POST"}","path":"/mcp","headers":{{"a":"{n % 3}"}},"exchange":"x{n}"}}'
        lines.append(
            f'{{"kind":"message","seq":{n},"ts":"2026-01-05T10:00:00.{n:06d}Z","conn":"c{n % 7}","dir":"c2s","msg":{{"n":{n}}},{facts}}}'
        )
    lines[300] = lines[300].replace('"dir":"c2s"', '"dir":"c2s","dir":"s2c"')
    whole = read(*lines)
    monkeypatch.setattr(native, "_CHUNK", 10)
    single = read(*lines)
    assert [native.encode(e) for e in whole.events] == [native.encode(e) for e in single.events]
    assert list(whole.lines) == list(single.lines) == [line.encode() for line in lines[1:]]
    first, other = whole.events[0].http, whole.events[498].http
    assert isinstance(first, Http)
    assert isinstance(other, Http)
    assert first.headers is other.headers


def test_from_dicts_takes_events_and_bare_messages() -> None:
    record = native.from_dicts([json.loads(HEAD), {"kind": "message", "seq": 4, "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "ping"}},
                                {"kind": "message", "seq": 5, "dir": "s2c", "msg": JsonText(BIG)}])  # fmt: skip
    assert record.header["later"] == [1, 2]
    assert [event.seq for event in record.events] == [4, 5]
    assert record.events[1].text == BIG
    bare = native.from_dicts(
        [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]
    )
    assert [event.dir for event in bare.events] == ["c2s", "s2c"]
    for wrong in ([], [1], [{"kind": "message", "msg": float("nan")}], [{"kind": "message", "msg": {1, 2}}]):
        with pytest.raises(TraceError):
            native.from_dicts(wrong)  # type: ignore[arg-type]


texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
optional = st.just(msgspec.UNSET)
events = st.builds(
    Event,
    kind=st.just("message"),
    ts=optional | st.datetimes().map(lambda moment: f"{moment.year:04d}" + moment.strftime("-%m-%dT%H:%M:%S.%fZ")),
    conn=optional | texts,
    dir=optional | st.sampled_from(["c2s", "s2c"]),
    msg=json_values.map(lambda value: msgspec.Raw(json.dumps(value).encode())),
    http=optional | st.builds(Http, method=optional | st.sampled_from(["POST", "PATCH"]), status=optional | st.integers(100, 599),
                              headers=optional | st.dictionaries(texts, texts, max_size=3), exchange=optional | texts),
    sse=optional | st.builds(Sse, id=optional | texts, event=optional | texts, retry=optional | st.integers(0, 99)),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=8))
def test_read_gives_back_what_was_written(made: list[Event]) -> None:
    made = [msgspec.structs.replace(event, seq=n) for n, event in enumerate(made)]
    record = Record({"transport": "stdio"}, made)
    again = formats.read(source.load(b"".join(native.write(record))))
    assert [native.encode(e) for e in again.events] == [native.encode(e) for e in made]
    assert dict(again.header)["transport"] == "stdio"
    assert not again.unread
    assert b"".join(native.write(again)) == b"".join(native.write(record))


def test_the_lines_of_a_big_file_are_cut_where_they_end() -> None:
    head = '{"kind":"header","format":"mcplab-trace","version":1}'
    lines = [
        f'{{"kind":"message","seq":{n},"conn":"c","dir":"c2s","msg":{{"jsonrpc":"2.0","method":"{"é" * (n % 90)}"}}}}'
        for n in range(9000)
    ]
    data = "\n".join([head, *lines]).encode()
    assert len(data) > native.BIG
    for text in (data, data.replace(b"\n", b"\r\n")):
        assert list(formats.read(source.load(text)).lines) == [line.encode() for line in lines]
