"""Every reader against its sample, and the registry that chooses them."""

from __future__ import annotations

import gzip
import json
from datetime import datetime

import pytest

from mcplab import formats
from mcplab.formats import source
from mcplab.model import Http, Record, TraceError
from tests.formats.talk import FORMS, HERE, TALK, Form

by_file = pytest.mark.parametrize("form", FORMS, ids=[form.file for form in FORMS])


def read(data: bytes | str, **options: str) -> Record:
    """Read bytes as a user's file would be."""
    return formats.read(source.load(data), **options)


def messages(record: Record) -> list[str]:
    return [event.text for event in record.events if event.kind == "message"]


@by_file
def test_sample_is_what_the_conversation_makes(form: Form) -> None:
    assert (HERE / form.file).read_bytes() == form.data()


@by_file
def test_sample_gives_the_conversation(form: Form) -> None:
    record = formats.read(source.load(HERE / form.file))
    assert record.format == form.format
    assert record.header.get("transport") == form.transport
    held = [TALK[number] for number in form.numbers]
    assert [json.loads(text) for text in messages(record)] == [m.body for m in held]
    if form.own:
        assert messages(record) == [m.text for m in held]
    found = [event for event in record.events if event.kind == "message"]
    assert [event.dir for event in found] == [m.dir for m in held]
    if form.times:
        assert [datetime.fromisoformat(str(event.ts)) for event in found] == [m.time for m in held]
    assert [event.seq for event in record.events] == list(range(len(record.events)))
    assert not record.unread
    assert len(record.linenos) == len(record.events)


@by_file
def test_lines_are_where_the_messages_are(form: Form) -> None:
    record = formats.read(source.load(HERE / form.file))
    lines = form.data().decode().split("\n")
    for event, number in zip(record.events, record.linenos, strict=True):
        if event.kind == "message":
            mark = f"mark-{[m.body for m in TALK].index(json.loads(event.text)):02d}"
            assert any(mark in line for line in lines[number - 1 : number + 30]), (mark, number)


@by_file
def test_sample_reads_the_same_gzipped_and_named(form: Form) -> None:
    plain = read(form.data())
    assert messages(read(gzip.compress(form.data()))) == messages(plain)
    assert messages(read(form.data(), format=form.format)) == messages(plain)


@by_file
def test_sample_reads_the_same_with_other_line_ends_and_marks(form: Form) -> None:
    plain = read(form.data())
    crlf = form.data().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    want = [json.loads(text) for text in messages(plain)]
    assert [json.loads(text) for text in messages(read(crlf))] == want
    text = form.data().decode()
    for encoded in (
        b"\xef\xbb\xbf" + form.data(),
        text.encode("utf-16"),
        b"\xfe\xff" + text.encode("utf-16-be"),
        text.encode("utf-16-le"),
    ):
        assert [json.loads(text) for text in messages(read(encoded))] == want


@by_file
def test_what_a_source_cannot_tell_is_said(form: Form) -> None:
    record = read(form.data())
    said = " ".join(record.notes)
    if not form.times and "x1" not in said and form.format not in ("har", "inspector-network"):
        assert "no times" in said
    if form.transport is None and form.format != "event-stream":
        assert "transport" in said


def test_every_format_has_a_sample_or_a_test_of_its_own() -> None:
    lifecycle = {"claude-code", "fast-agent", "mcp-remote", "cursor"}
    assert {form.format for form in FORMS} | lifecycle == set(formats.names())


def test_names_are_unique_and_find_their_module() -> None:
    assert len(set(formats.names())) == len(formats.names())
    assert all(name == formats.find(name).NAME for name in formats.names())
    with pytest.raises(TraceError, match="known formats: mcplab, "):
        formats.find("nonsense")


@pytest.mark.parametrize("data", [b"", b"   \n\n", b"\x00\x00\x00"])
def test_empty_source_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(TraceError, match="empty, so there is no trace to read"):
        read(data)


@pytest.mark.parametrize(
    "data", [b"hello world\n", b'{"a": 1}\n', b"42\n", b"[]", b"\x89PNG\r\n\x1a\n\x00\x01", b"a,b\n1,2\n"]
)
def test_unknown_source_names_the_formats(data: bytes) -> None:
    with pytest.raises(TraceError, match=r"not a trace that mcplab knows .*known formats"):
        read(data)


def test_secrets_of_http_sources_are_not_kept() -> None:
    record = formats.read(source.load(HERE / "session.har"))
    assert "s3cret" not in repr(record.events)
    first = record.events[0].http
    assert isinstance(first, Http)
    assert first.headers == {"content-type": "application/json", "mcp-protocol-version": "2025-06-18"}
    assert "entries that are not MCP" in " ".join(record.notes)


def test_http_sources_hold_exchanges_and_stream_events() -> None:
    for file in ("session.har", "curl-Nv.txt", "inspector-network.json"):
        record = formats.read(source.load(HERE / file))
        facts = [event.http for event in record.events if isinstance(event.http, Http)]
        assert {http.exchange for http in facts} == {"x1", "x2", "x3", "x4", "x5"}
        streamed = [event for event in record.events if event.sse]
        assert [event.sse.event for event in streamed] == ["message", "message"]  # type: ignore[union-attr]
        assert [(event.kind, event.http.status) for event in record.events if event.kind == "http"] == [("http", 202)]  # type: ignore[union-attr]


def test_local_times_are_placed_by_tz_or_named_as_local() -> None:
    naive = formats.read(source.load(HERE / "vscode.log"))
    assert naive.header["clock"] == "naive"
    assert "tz=" in " ".join(naive.notes)
    placed = formats.read(source.load(HERE / "vscode.log"), tz="+01:00")
    assert placed.header["clock"] == "utc"
    assert str(placed.events[1].ts).startswith("2026-02-03T13:00:00.0100")
    assert formats.read(source.load(HERE / "vscode.log"), tz="Europe/Berlin").events[1].ts == placed.events[1].ts
    with pytest.raises(TraceError, match="is no time zone"):
        formats.read(source.load(HERE / "vscode.log"), tz="Mars/Olympus")


def test_newest_first_is_turned_round() -> None:
    record = formats.read(source.load(HERE / "mcpjam.json"))
    assert "newest first" in " ".join(record.notes)
    rows = json.loads((HERE / "inspector-protocol.json").read_text())
    turned = read(json.dumps(rows[::-1], indent=2))
    assert [json.loads(text) for text in messages(turned)] == [m.body for m in TALK]


def test_cli_result_of_mcpjam_holds_its_log() -> None:
    rows = [
        {
            "serverId": "w",
            "serverName": "w",
            "direction": "send" if m.dir == "c2s" else "receive",
            "timestamp": m.iso,
            "message": m.body,
        }
        for m in TALK
    ]
    record = read(json.dumps({"ok": True, "result": [], "_rpcLogs": rows}))
    assert record.format == "mcpjam"
    assert [event.dir for event in record.events] == [m.dir for m in TALK]


def test_mcporter_addition_is_taken_out_of_the_message() -> None:
    record = formats.read(source.load(HERE / "mcporter.ndjson"))
    assert messages(record)[2] == TALK[2].text  # its own _meta, inside params, stays
    assert [event.kind for event in record.events].count("open") == 1


def test_direction_words_of_the_other_side() -> None:
    flipped = (
        (HERE / "go-sdk.txt")
        .read_text()
        .replace("read: ", "x: ")
        .replace("write: ", "read: ")
        .replace("x: ", "write: ")
    )
    assert [event.dir for event in read(flipped).events] == [m.dir for m in TALK]


def test_nothing_tells_the_direction_then_there_is_none() -> None:
    record = read('{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert [event.dir for event in record.events] == [formats.direction.UNSET] * 2  # type: ignore[attr-defined]


def test_ids_of_both_parties_may_be_equal() -> None:
    lines = [
        '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
        '{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    ]
    assert [event.dir for event in read("\n".join(lines)).events] == ["c2s", "s2c", "c2s", "s2c"]


def test_number_and_string_ids_are_not_the_same() -> None:
    lines = ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', '{"jsonrpc":"2.0","id":"1","result":{"tools":[]}}']
    assert [event.dir for event in read("\n".join(lines)).events][1] is formats.direction.UNSET  # type: ignore[attr-defined]


def test_handshake_with_a_used_id_begins_a_connection() -> None:
    hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n{"jsonrpc":"2.0","id":0,"result":{}}\n'
    record = read(hello * 3)
    assert [event.conn for event in record.events] == ["c1", "c1", "c2", "c2", "c3", "c3"]
    assert any("begins the next" in note for note in record.notes)


def test_one_line_arrays_are_batches_and_a_whole_array_is_a_list() -> None:
    batch = '[{"jsonrpc":"2.0","id":2,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/initialized"}]'
    lines = read('{"jsonrpc":"2.0","id":1,"method":"ping"}\n' + batch + "\n")
    assert [event.text[0] for event in lines.events] == ["{", "["]
    assert lines.events[1].dir == "c2s"
    assert [event.text[0] for event in read(batch).events] == ["{", "{"]


def test_json_values_that_are_no_messages_stay_as_wire_text() -> None:
    record = read('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n42\nnull\n"hi"\n[]\n{"level":"info"}\nplain words\n')
    assert [event.kind for event in record.events] == ["message"] + ["unparsed"] * 6
    assert [event.raw for event in record.events[1:]] == ["42", "null", '"hi"', "[]", '{"level":"info"}', "plain words"]
    assert all(event.reason for event in record.events[1:])


def test_not_a_number_is_not_json_but_its_direction_is_known() -> None:
    record = read('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n{"jsonrpc":"2.0","id":1,"result":{"mean":NaN}}\n')
    assert (record.events[1].kind, record.events[1].dir) == ("unparsed", "s2c")
    assert "NaN is not JSON" in str(record.events[1].reason)


def test_log_objects_of_unknown_tools_are_opened() -> None:
    rows = [
        {
            "time": m.time.timestamp() * 1000,
            "direction": "outgoing" if m.dir == "c2s" else "incoming",
            "payload": m.text,
        }
        for m in TALK
    ]
    record = read("\n".join(map(json.dumps, rows)))
    assert messages(record) == [m.text for m in TALK]
    assert [event.dir for event in record.events] == [m.dir for m in TALK]
    assert datetime.fromisoformat(str(record.events[0].ts)) == TALK[0].time
