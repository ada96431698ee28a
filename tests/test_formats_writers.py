"""Writers: what each form cannot hold is listed, and nothing else is lost."""

from __future__ import annotations

import json

import msgspec
import pytest

from mcplab import formats
from mcplab.formats import mcpsnoop, source
from mcplab.model import Event, Http, Record, TraceError
from tests.formats.talk import FORMS, HERE, TALK

KEPT = ("kind", "ts", "conn", "dir", "raw")


def test_mcpsnoop_keeps_messages_directions_times_and_connections() -> None:
    for form in FORMS:
        record = formats.read(source.load(HERE / form.file))
        again = formats.read(source.load(b"".join(formats.write(record, "mcpsnoop"))))
        assert again.format == "mcpsnoop"
        held = [event for event in record.events if event.kind in ("message", "stderr", "unparsed")]
        assert len(again.events) == len(held), form.file
        for before, after in zip(held, again.events, strict=True):
            for name in KEPT:
                assert getattr(after, name) == getattr(before, name), (form.file, name)
            assert " ".join(after.text.split()) == " ".join(before.text.split())
            if isinstance(before.http, Http):
                assert after.http.status == before.http.status  # type: ignore[union-attr]


def test_mcpsnoop_names_what_it_leaves_out() -> None:
    record = Record(
        {}, [Event(kind="message", seq=0, msg=msgspec.Raw(b'{"jsonrpc":"2.0"}')), Event(kind="open", seq=1, conn="c")]
    )
    assert list(formats.write(record, "mcpsnoop")) == []
    assert any("direction is not known" in line for line in mcpsnoop.LOST)
    assert formats.lost("mcpsnoop") == mcpsnoop.LOST
    assert formats.lost("mcplab") == ()


def test_chrome_trace_has_a_bar_for_each_answered_request() -> None:
    record = formats.read(source.load(HERE / "mcplab.jsonl"))
    document = json.loads(b"".join(formats.write(record, "chrome-trace")))
    bars = [row for row in document["traceEvents"] if row["ph"] == "X"]
    assert [(row["name"], row["dur"]) for row in bars] == [
        ("initialize", 30000.0), ("tools/list", 30000.0), ("tools/call", 50000.0), ("tools/call", 50000.0),
    ]  # fmt: skip
    marks = [row["name"] for row in document["traceEvents"] if row["ph"] == "i"]
    assert marks == ["notifications/initialized", "notifications/message"]
    assert bars[0]["args"]["request"] == TALK[0].text


def test_chrome_trace_without_a_clock_counts_events() -> None:
    record = formats.read(source.load(HERE / "lines.ndjson"))
    rows = json.loads(b"".join(formats.write(record, "chrome-trace")))["traceEvents"]
    assert [row["ts"] for row in rows if row["ph"] == "X"] == [0.0, 3000.0, 5000.0, 7000.0]


def test_unknown_writer_names_the_known_ones() -> None:
    with pytest.raises(TraceError, match="mcplab, mcpsnoop, chrome-trace"):
        formats.write(Record({}, []), "har")
