"""Writers: what each form cannot hold is listed, and nothing else is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcplab import Trace, formats, read_trace
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
        ("initialize", 30000.0), ("tools/list", 30000.0), ("tools/call (error)", 50000.0), ("tools/call", 50000.0),
    ]  # fmt: skip
    marks = [row["name"] for row in document["traceEvents"] if row["ph"] == "i"]
    assert marks == ["notifications/initialized", "notifications/message"]
    assert bars[0]["args"]["request"] == TALK[0].text


def test_chrome_trace_without_a_clock_counts_events() -> None:
    record = formats.read(source.load(HERE / "lines.ndjson"))
    rows = json.loads(b"".join(formats.write(record, "chrome-trace")))["traceEvents"]
    assert [row["ts"] for row in rows if row["ph"] == "X"] == [0.0, 3000.0, 5000.0, 7000.0]


def test_bars_of_one_row_never_overlap_and_what_has_no_answer_has_no_end() -> None:
    def at(second: int, way: str, **message: object) -> Event:
        stamp = f"2026-01-01T00:00:{second:02d}.000000Z"
        raw = msgspec.Raw(json.dumps({"jsonrpc": "2.0", **message}).encode())
        return Event(kind="message", seq=second, ts=stamp, conn="c1", dir=way, msg=raw)

    record = Record({}, [
        at(0, "c2s", id=1, method="slow"), at(1, "c2s", id=2, method="quick"), at(2, "c2s", id=3, method="lost"),
        at(3, "s2c", id=2, result={}), at(4, "c2s", id=4, method="next"), at(5, "s2c", id=1, error={"code": -1, "message": ""}),
        at(6, "s2c", id=4, result={}), at(7, "c2s", id=5, method="last"), at(8, "s2c", id=5, result={}),
    ])  # fmt: skip
    rows = json.loads(b"".join(formats.write(record, "chrome-trace")))["traceEvents"]
    bars = [row for row in rows if row["ph"] in ("X", "B")]
    assert {row["name"]: row["tid"] for row in bars} == {
        "slow (error)": 1, "quick": 2, "lost (unanswered)": 3, "next": 2, "last": 1,
    }  # fmt: skip
    assert [row["name"] for row in bars if "dur" not in row] == ["lost (unanswered)"]
    assert [row["name"] for row in bars if row["args"].get("outcome") == "error"] == ["slow (error)"]
    names = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    assert names == {1: "c1", 2: "c1 (2)", 3: "c1 (3)"}


def chrome(trace: Trace, path: Path) -> list[dict[str, Any]]:
    rows = json.loads(trace.save(path / "out.json", format="chrome-trace").read_text())["traceEvents"]
    return [row for row in rows if row["ph"] in ("X", "B")]


def test_an_answer_that_came_on_another_peer_ends_its_bar_all_the_same(tmp_path: Path) -> None:
    def over(exchange: int, conn: str, way: str, **message: object) -> dict[str, Any]:
        post = {"method": "POST", "path": "/mcp", "headers": {"mcp-session-id": "s"}, "exchange": f"x{exchange}"}
        back = {
            "status": 200,
            "headers": {"content-type": "text/event-stream", "mcp-session-id": "s"},
            "exchange": f"x{exchange}",
        }
        return {
            "kind": "message",
            "conn": conn,
            "dir": way,
            "http": post if way == "c2s" else back,
            "msg": {"jsonrpc": "2.0", **message},
        }

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
    events = [
        over(0, "c1", "c2s", id=0, method="initialize", params={**hello, "clientInfo": {"name": "c", "version": "1"}}),
        over(0, "c1", "s2c", id=0, result={**hello, "serverInfo": {"name": "s", "version": "1"}}),
        over(1, "c1", "c2s", id=1, method="tools/call", params={"name": "ask"}),
        over(1, "c1", "s2c", id="q", method="roots/list"),
        over(2, "c2", "c2s", id="q", result={"roots": []}),
        over(1, "c1", "s2c", id=1, result={}),
        over(3, "c2", "c2s", id=9, method="tools/list"),
    ]
    stamped = [{**event, "seq": n, "ts": f"2026-01-01T00:00:{n:02d}.000000Z"} for n, event in enumerate(events)]
    bars = chrome(read_trace(stamped), tmp_path)
    assert {row["name"]: row.get("dur") for row in bars} == {
        "initialize": 1e6, "tools/call": 3e6, "roots/list": 1e6, "tools/list (unanswered)": None,
    }  # fmt: skip


def test_no_capture_has_fewer_or_more_unanswered_bars_than_its_table(captures: list[Path], tmp_path: Path) -> None:
    for path in captures[::12]:
        trace = read_trace(path)
        told = trace.exchanges["outcome"].isin(["unanswered", "cancelled"]).sum()
        assert sum("dur" not in row for row in chrome(trace, tmp_path)) == told, path.name


def test_an_id_that_is_used_again_before_its_answer_leaves_an_unanswered_bar() -> None:
    raw = msgspec.Raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    record = Record({}, [Event(kind="message", seq=n, conn="c1", dir="c2s", msg=raw) for n in range(3)])
    rows = json.loads(b"".join(formats.write(record, "chrome-trace")))["traceEvents"]
    assert [row["name"] for row in rows if row["ph"] == "B"] == ["ping (unanswered)"] * 3


def test_unknown_writer_names_the_known_ones() -> None:
    with pytest.raises(TraceError, match="mcplab, mcpsnoop, chrome-trace"):
        formats.write(Record({}, []), "har")
