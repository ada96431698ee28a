"""Reading, making, saving."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcplab import JsonText, MCPLabError, Trace, TraceError, make_trace, read_trace, read_traces
from mcplab.model import COLUMNS
from mcplab.traces import trace_names

HEADER = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}


def lines(*texts, header=HEADER):
    return "\n".join([json.dumps(header), *texts]) + "\n"


def message(text, seq=0):
    return f'{{"kind":"message","seq":{seq},"ts":"2026-01-01T00:00:00.000000Z","conn":"c1","dir":"c2s","msg":{text}}}'


json_values = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers(-(10**40), 10**40)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=()))
        | st.lists(json_values, max_size=3)
        | st.dictionaries(st.text(max_size=5), json_values, max_size=3)
    )
)


@settings(max_examples=200)
@given(
    st.lists(
        json_values.map(json.dumps) | json_values.map(lambda v: json.dumps(v, ensure_ascii=True, indent=None)),
        min_size=1,
        max_size=4,
    )
)
def test_read_and_save_keep_every_message_byte_for_byte(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("save")
    texts = [
        *texts,
        '{"n":1.50,"big":123456789012345678901234567890,"e":"\\u00e9\\ud83d","d":1,"d":2, "sp" : [ 1 , 2 ]}',
    ]
    trace = read_trace(lines(*(message(text, n) for n, text in enumerate(texts))))
    assert trace.unparsed.empty
    assert [trace.raw(n) for n in range(len(texts))] == texts
    again = read_trace(trace.save(folder / "t.jsonl"))
    assert [again.raw(n) for n in range(len(texts))] == texts
    assert (folder / "t.jsonl").read_text() == lines(*(message(text, n) for n, text in enumerate(texts)))


def test_what_the_reader_does_not_know_is_kept(tmp_path):
    text = lines('{"kind":"message","seq":0,"conn":"c1","dir":"c2s","msg":{"id":1},"later":{"x":1.50}}',
                 '{"kind":"weather","seq":1,"conn":"c1","rain":true}', header={**HEADER, "extra": [1]})  # fmt: skip
    trace = read_trace(text)
    assert trace.events["kind"].tolist() == ["message", "weather"]
    assert trace.save(tmp_path / "t.jsonl").read_text() == text


def test_all_captures_load_whole_and_save_the_same(captures, tmp_path):
    for path in captures:
        trace = read_trace(path)
        marked = sum(json.loads(line)["kind"] == "unparsed" for line in path.read_text().strip().split("\n"))
        assert (trace.unparsed["where"] == "wire").sum() == marked
        assert len(trace.unparsed) == marked
        again = read_trace(trace.save(tmp_path / path.name))
        assert list(again) == list(trace)


def test_tables_have_their_columns(captures):
    for source in (captures[0], lines(message("{}"))):
        trace = read_trace(source)
        for table, columns in COLUMNS.items():
            if hasattr(trace, table):
                frame = getattr(trace, table)
                assert list(frame.columns) == list(columns)
                for name, dtype in columns.items():
                    got = str(frame[name].dtype)
                    assert got == {"time": "datetime64[us, UTC]", "float": "float64"}.get(dtype, dtype), (table, name)


def test_what_cannot_be_read_goes_to_unparsed_and_reading_goes_on():
    text = lines(message('{"jsonrpc":"2.0","id":1,"method":"ping"}'), "{broken", '"text"', '{"kind":"message","seq":2}',
                 '{"kind":"message","seq":"3","msg":{}}', message('{"jsonrpc":"2.0","id":2,"method":"ping"}', 4))  # fmt: skip
    trace = read_trace(text)
    assert trace.messages["id"].dropna().tolist() == ["1", "2"]
    assert trace.unparsed["where"].tolist() == ["file"] * 4
    assert trace.unparsed["line"].tolist() == [3, 4, 5, 6]
    assert trace.unparsed["reason"].notna().all()
    assert trace.unparsed["text"].iloc[0] == "{broken"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", "empty"), ("\n\n", "empty"), (b"hello world\n", "not a trace"), (b"\x89PNG\r\n\x1a\n\0\0", "not a trace"),
        ("no/such/file.jsonl", "no such file"), ([], "no events"), (42, "cannot read"),
        (lines(header={**HEADER, "version": 2}), "version 2"),
    ],
)  # fmt: skip
def test_each_failure_is_one_clear_line(source, words):
    with pytest.raises(TraceError, match=words) as caught:
        read_trace(source)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, MCPLabError)


def test_sources_of_every_kind(captures, tmp_path):
    path = captures[0]
    data = path.read_bytes()
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(data))
    expected = list(read_trace(path))
    for source in (str(path), data, data.decode(), io.BytesIO(data), io.StringIO(data.decode()), packed,
                   b"\xef\xbb\xbf" + data, data.decode().encode("utf-16")):  # fmt: skip
        assert list(read_trace(source)) == expected
    assert read_trace(packed).name == "packed"
    events = [json.loads(line) for line in data.decode().strip().split("\n")]
    assert read_trace(events).messages["method"].tolist() == read_trace(path).messages["method"].tolist()


def test_read_traces_collects_failures_and_loads_the_rest(captures, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "good.jsonl").write_bytes(captures[0].read_bytes())
    (tmp_path / "b.jsonl").write_bytes(captures[1].read_bytes())
    (tmp_path / "bad.jsonl").write_text("this is no trace\n")
    (tmp_path / "empty.log").write_text("")
    traces = read_traces(tmp_path)
    assert [trace.name for trace in traces] == ["a/good", "b"]
    assert traces.failed["file"].tolist() == ["bad.jsonl", "empty.log"]
    assert len(traces.messages) == len(traces[0].messages) + len(traces[1].messages)
    assert traces["a/good"] is traces[0]
    assert [trace.name for trace in read_traces(str(tmp_path / "**" / "*.jsonl"))] == ["a/good", "b"]
    empty = tmp_path / "nothing"
    empty.mkdir()
    with pytest.raises(TraceError, match="holds no file"):
        read_traces(empty)
    with pytest.raises(TraceError, match="no file matches"):
        read_traces(str(tmp_path / "*.har"))
    with pytest.raises(TraceError, match="no traces"):
        read_traces()


def test_a_pair_of_halves_is_one_capture(tmp_path):
    asked = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    told = '{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}\n'
    (tmp_path / "in.log").write_text(asked)
    (tmp_path / "out.log").write_text(told)
    trace = read_trace((tmp_path / "in.log", tmp_path / "out.log"))
    assert trace.exchanges[["sender", "outcome"]].to_numpy().tolist() == [["client", "result"]] * 2
    assert any("order" in note for note in trace.notes)


def test_event_dicts_may_hold_a_messages_own_text():
    event = {"kind": "message", "seq": 0, "conn": "c1", "dir": "c2s", "msg": JsonText('{"id": 1.50,"method":"ping"}')}
    assert read_trace([event]).raw(0) == '{"id": 1.50,"method":"ping"}'


def test_names_are_never_absolute_and_always_differ(captures):
    traces = read_traces(captures[0], captures[0], captures[-1])
    names = [trace.name for trace in traces]
    assert len(set(names)) == 3
    assert not any(name.startswith("/") for name in names)


def test_a_name_does_not_tell_where_a_folder_is():
    assert trace_names([Path("/a/b/mine.jsonl"), Path("/c/theirs.jsonl.gz"), "text"]) == ["mine", "theirs", None]
    assert trace_names([Path("/a/b/mine.jsonl"), Path("/a/c/theirs.jsonl")]) == ["b/mine", "c/theirs"]


def test_order_is_the_wires_never_the_clocks():
    first = message('{"jsonrpc":"2.0","id":1,"method":"ping"}').replace("00:00:00", "00:00:09")
    second = message('{"jsonrpc":"2.0","id":1,"result":{}}', 1).replace("c2s", "s2c")
    trace = read_trace(lines(first, second))
    assert trace.messages["seq"].tolist() == [0, 1]
    assert trace.messages["reply_to"].tolist()[1] == 0


def test_seq_that_is_missing_or_does_not_grow_is_numbered_by_line():
    trace = read_trace(lines(message("{}", 5), message("{}", 5)))
    assert [event.seq for event in trace] == [0, 1]
    assert any("numbered" in note for note in trace.notes)


def test_times_that_cannot_be_read_are_missing_and_said():
    trace = read_trace(lines(message("{}").replace("2026-01-01T00:00:00.000000Z", "yesterday")))
    assert trace.messages["ts"].isna().all()
    assert "is no time" in trace.unparsed["reason"].iloc[0]


def test_a_trace_by_hand():
    trace = make_trace([("client", '{"jsonrpc":"2.0","id":1.50,"method":"x"}'), ("server", "hello"), ("server", "42")])
    assert trace.raw(0) == '{"jsonrpc":"2.0","id":1.50,"method":"x"}'
    assert trace.messages["id"].tolist() == ["1.50"]
    assert trace.unparsed["text"].tolist() == ["hello", "42"]
    with pytest.raises(TraceError, match="sender"):
        make_trace([("proxy", {})])
    with pytest.raises(TraceError, match="seq 99"):
        trace.raw(99)


def test_make_trace_takes_events_among_the_messages() -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    trace = make_trace([{"kind": "open"}, ("client", ask), {"kind": "close", "by": "server"}])
    assert trace.events["kind"].tolist() == ["open", "message", "close"]
    assert trace.events["seq"].tolist() == [0, 1, 2]
    assert [event.by for event in trace][2] == "server"
    stream = {"status": 200, "headers": {"content-type": "text/event-stream"}}
    trace = make_trace(
        [
            ("client", ask),
            {"kind": "sse", "dir": "s2c", "http": stream, "sse": {"id": "1", "data": "", "retry": 5}},
            {"kind": "message", "dir": "s2c", "http": stream, "msg": {"jsonrpc": "2.0", "id": 1, "result": {}}},
            {"kind": "close", "by": "server", "http": {}},
            {"kind": "http", "dir": "c2s", "http": {"method": "GET", "path": "/mcp"}},
            {"kind": "http", "dir": "s2c", "http": {"status": 405}},
            ("client", ask),
        ],
        transport="http",
    )
    assert [event.http.exchange for event in trace] == ["x1", "x1", "x1", "x1", "x2", "x2", "x3"]
    assert trace.http["channel"].tolist() == ["POST (SSE)", "GET (SSE)", "POST"]
    assert trace.exchanges["outcome"].tolist() == ["result", "unanswered"]


@pytest.mark.parametrize(
    "wrong", [{}, {"jsonrpc": "2.0"}, {"kind": 1}, {"kind": "header"}, {"kind": "message", "seq": "a"}]
)
def test_make_trace_refuses_what_is_no_event(wrong: dict) -> None:
    with pytest.raises(TraceError, match=r"^message 0: "):
        make_trace([wrong])


def test_lone_surrogates_everywhere():
    text = lines(message('{"jsonrpc":"2.0","id":"\\ud800","method":"\\udfff","params":{"x":"\\ud83d"}}'),
                 '{"kind":"stderr","seq":1,"conn":"c1","dir":"s2c","raw":"\\ud800"}', '{"kind":"unparsed","seq":2,"conn":"\\ud800","dir":"s2c","raw":"\\ud800"}')  # fmt: skip
    trace = read_trace(text)
    for table in ("messages", "exchanges", "connections", "declarations", "channels", "http", "events", "unparsed"):
        assert isinstance(getattr(trace, table), pd.DataFrame)
    assert "\\ud800" in trace.messages["id"].iloc[0]


def test_a_failed_save_leaves_nothing(tmp_path, captures):
    trace = read_trace(captures[0])
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(TraceError, match="cannot be written"):
        trace.save(blocked / "below.jsonl")
    with pytest.raises(TraceError, match="no format"):
        trace.save(tmp_path / "x", format="nonsense")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_html_escapes_what_a_trace_says():
    info = {"name": "<script>alert(1)</script>", "version": "<b>"}
    trace = make_trace(
        [("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": info}})]
    )
    assert isinstance(trace, Trace)
    page = trace._repr_html_() + read_traces(trace)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "wrong",
    ["x", ("client",), ("client", {}, "2026-01-01T00:00:00Z"), {"kind": "message", "dir": "c2s"}, 5, ("nobody", {}),
     ("client", b"{}"), ("client", {"a": {1, 2}}), ("client", object())],
)  # fmt: skip
def test_a_trace_by_hand_names_the_message_that_is_none(wrong):
    with pytest.raises(TraceError, match=r"^message 1: [^\n]+$"):
        make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"}), wrong])


def test_what_fails_within_a_list_is_listed_too(captures, tmp_path):
    (tmp_path / "junk.txt").write_text("junk")
    traces = read_traces([captures[0], tmp_path / "junk.txt"], tmp_path / "nope.jsonl")
    assert len(traces) == 1
    assert [error.split(":", 1)[0].rsplit("/", 1)[-1] for error in traces.failed["error"]] == ["junk.txt", "nope.jsonl"]
    assert len(read_traces(traces, captures[1]).failed) == 2


def test_a_folder_that_cannot_be_opened_and_a_link_that_leads_nowhere_are_listed(captures, tmp_path, monkeypatch):
    (tmp_path / "shut").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.jsonl").write_bytes(captures[0].read_bytes())
    (tmp_path / "lost.jsonl").symlink_to(tmp_path / "nowhere")
    scan = os.scandir

    def guarded(folder):
        if Path(folder).name == "shut":  # root opens every folder, so that permissions would prove nothing
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", guarded)
    traces = read_traces(tmp_path)
    assert [trace.name for trace in traces] == ["open/a"]
    assert traces.failed["file"].tolist() == ["shut", "lost.jsonl"]
    assert read_traces(tmp_path / "shut").failed["error"].str.endswith("shut: permission denied").tolist() == [True]
