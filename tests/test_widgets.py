"""Panels: what they show, what a click shows, and that a watch leaves nothing behind."""

from __future__ import annotations

import asyncio
import html
import json
import threading
import time

import numpy as np
import pytest

import mcplab
from mcplab import TraceError, make_trace, read_trace
from mcplab.live.recorder import Recorder
from mcplab.widgets import panel, watch
from mcplab.widgets.browser import LONGEST, PAGE
from mcplab.widgets.view import WITHOUT

HEADER = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}


def ask(number, method="tools/list"):
    return {"jsonrpc": "2.0", "id": number, "method": method}


def lines(count, start=0):
    for n in range(start, start + count):
        way, message = ("s2c", {"jsonrpc": "2.0", "id": n - 1, "result": {}}) if n % 2 else ("c2s", ask(n))
        stamp = f"2026-01-01T00:{n // 60 % 60:02d}:{n % 60:02d}.000000Z"
        yield {"kind": "message", "seq": n, "ts": stamp, "conn": "c1", "dir": way, "msg": message}


def two():
    """Two instances on two channels' worth of traffic."""
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
    }
    events = []
    for conn, name in (("a", "one"), ("b", "two")):
        said = {**hello, "params": {**hello["params"], "clientInfo": {"name": name, "version": "1"}}}
        events.append({"kind": "message", "conn": conn, "dir": "c2s", "msg": said})
        events += [{"kind": "message", "conn": conn, "dir": "c2s", "msg": ask(n, name)} for n in range(3)]
        events.append({"kind": "stderr", "conn": conn, "dir": "s2c", "raw": "noise"})
    return read_trace([HEADER, *({**event, "seq": n} for n, event in enumerate(events))])


# The panel ---------------------------------------------------------------------------------------------


def test_a_panel_shows_the_display_and_a_click_the_message(captures):
    trace = read_trace(captures[0])
    shown = panel(trace)
    assert "mcp calls:" in shown.display_html.value
    assert "click an event" in shown.raw_html.value
    rows = shown.view.frame
    for at, row in rows.iterrows():
        if row["kind"] in ("request", "response"):
            shown.events.value = at
            assert html.escape(trace.raw(row["seq"])[:300]) in shown.raw_html.value
            assert f"event {row['seq']} on" in shown.raw_html.value
            break
    assert len(rows) == len(trace.messages) + int((trace.events["kind"] != "message").sum())


def test_instance_channels_and_methods_narrow_the_list():
    trace = two()
    shown = panel(trace)
    names = [value for _, value in shown.instance.options]
    assert len(names) == 2
    assert len(shown.events.options) == 5
    shown.instance.value = names[1]
    assert {value for _, value in shown.methods.options} == {"initialize", "two", WITHOUT}
    shown.methods.value = ("two",)
    assert [label.split()[-4:] for label, _ in shown.events.options] == [
        ["request", "two", "id", str(n)] for n in range(3)
    ]
    assert "the counts are of the whole instance" in shown.display_html.value
    shown.methods.value = (WITHOUT,)
    assert len(shown.events.options) == 1
    shown.events.value = shown.events.options[0][1]
    assert "noise" in shown.raw_html.value
    shown.methods.value = ()
    shown.channels.value = ("STDIO",)
    assert len(shown.events.options) == 5
    shown.instance.value = names[0]
    assert shown.channels.value == ("STDIO",)  # a choice stays where it is still one


def test_steps_and_their_length_are_those_of_the_strip():
    shown = panel(read_trace([HEADER, *lines(30)]))
    assert "60 segments of 1 s" in shown.display_html.value
    shown.steps.value, shown.seconds.value = 4, 10.0
    assert "4 segments of 10 s" in shown.display_html.value
    assert shown.display_html.value.count('class="a-request"') >= 3


def test_a_click_on_a_segment_lists_what_fell_into_it_and_shows_what_it_stands_for():
    trace = read_trace([HEADER, *lines(30)])
    shown = panel(trace)
    shown.steps.value, shown.seconds.value = 4, 10.0
    assert "onclick=" in shown.display_html.value
    kept = shown._repr_mimebundle_()["text/html"]
    assert "mcplab-picks" in kept
    assert "onclick" not in kept
    assert ".mcplab-pick input" in html.unescape(shown.display_html.value)
    row = [one.channel for one in shown.view.facts(shown.instance.value).channels].index("STDIO")
    shown.clicked.value = f"{row}:2"  # what the click writes
    assert [label.split()[0] for label, _ in shown.events.options] == [str(n) for n in range(10, 20)]
    assert "events 1 to 10 of 10 in the segment from 00:00:10.000 UTC on STDIO" in shown.listed.value
    assert html.escape(trace.raw(18)) in shown.raw_html.value  # the last request: a request is more than an answer
    assert shown.display_html.value.count(" picked") == 1
    assert "60 segments" not in shown.display_html.value
    assert shown.unpick.layout.display == ""
    shown.clicked.value = f"{row}:3"
    assert html.escape(trace.raw(28)) in shown.raw_html.value
    shown.clicked.value = f"{row}:3"  # the same again
    assert len(shown.events.options) == 10
    shown.clicked.value = f"{row}:0"  # nothing happened then
    assert (len(shown.events.options), shown.events.value) == (0, None)
    shown.unpick.click()
    assert (len(shown.events.options), shown.unpick.layout.display) == (30, "none")
    assert " picked" not in shown.display_html.value


def test_a_pick_ends_with_another_choice_and_wrong_ones_do_nothing():
    shown = panel(read_trace([HEADER, *lines(30)]))
    for wrong in ("", "x", "0:", ":1", "0:60", "99:1", "-1:2", "<b>:1"):
        if wrong in ("0:60",):
            with pytest.raises(TraceError, match="no segment 60"):
                shown.pick("STDIO", 60)
            continue
        shown.clicked.value = wrong
        assert len(shown.events.options) == 30, wrong
    shown.pick("STDIO", 59)
    assert len(shown.events.options) == 1
    shown.seconds.value = 2.0
    assert len(shown.events.options) == 30
    with pytest.raises(TraceError, match="on a channel 'POST'"):
        shown.pick("POST", 0)


def test_a_segment_without_a_clock_is_an_event_and_a_big_one_has_pages():
    shown = panel(make_trace([("client", ask(1)), ("server", {"jsonrpc": "2.0", "id": 1, "result": {}})]))
    shown.pick("STDIO", 1)
    assert "in the segment from seq 1 on STDIO" in shown.listed.value
    assert "result" in shown.raw_html.value
    busy = panel(read_trace([HEADER, *lines(PAGE + 50)]))
    busy.seconds.value = 1000.0
    busy.pick("STDIO", 59)
    assert (busy.page.max, busy.page.value) == (2, 2)
    assert len(busy.events.options) == 50
    assert busy.events.value == PAGE + 48


def test_traces_can_be_changed_and_many_events_come_in_pages():
    long = read_trace([HEADER, *lines(PAGE + 5)])
    shown = panel([make_trace([("client", ask(1))]), long])
    assert len(shown.trace.options) == 2
    shown.trace.value = 1
    assert shown.page.max == 2
    assert len(shown.events.options) == PAGE
    shown.page.value = 2
    assert len(shown.events.options) == 5
    assert f"events {PAGE + 1} to {PAGE + 5} of {PAGE + 5}" in shown.listed.value
    shown.trace.value = 0
    assert (shown.page.max, len(shown.events.options)) == (1, 1)


def test_a_message_is_shown_as_it_was_sent_or_indented_and_does_no_harm():
    text = '{"jsonrpc":"2.0","id":1.50,"method":"<script>\\u001b[31m","params":{"b":1,"a":12345678901234567890}}'
    shown = panel(make_trace([("client", text), ("server", "x" * (LONGEST + 10) + "\x1b[31m<b>")]))
    shown.events.value = 0
    assert html.escape(text) in shown.raw_html.value
    shown.indented.value = True
    assert "&quot;id&quot;: 1.50" in shown.raw_html.value
    assert "12345678901234567890" in shown.raw_html.value
    shown.events.value = 1
    assert "… 18 more characters" in shown.raw_html.value
    for part in (shown.raw_html.value, shown.display_html.value):
        assert "<script" not in part
    for part in (shown.raw_html.value, shown.display_html.value, *(label for label, _ in shown.events.options)):
        assert "\x1b" not in part  # labels are set as text, not as HTML


def test_nothing_to_show_is_told():
    with pytest.raises(TraceError, match="no capture"):
        panel([])
    assert "nothing was captured yet" in panel(read_trace([HEADER])).display_html.value
    assert mcplab.panel is panel
    assert mcplab.watch is watch


# Watching ----------------------------------------------------------------------------------------------


def until(true, seconds=20):
    """Wait for what another thread will bring about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        threading.Event().wait(0.01)


def test_a_growing_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "grow.jsonl"
    before = set(threading.enumerate())
    shown = watch(path, every=0.01)
    assert shown.panel is None
    assert "waiting" in shown._status.value
    text = "".join(json.dumps(line) + "\n" for line in [HEADER, *lines(7)])
    with path.open("w") as file:
        for at in range(0, len(text), 61):  # no piece ends with a line
            file.write(text[at : at + 61])
            file.flush()
            until(lambda: True)
    until(lambda: shown.panel is not None and len(shown.panel.view.trace) == 7)
    with path.open("a") as file:
        file.write("not json\n" + "".join(json.dumps(line) + "\n" for line in lines(3, 7)))
    until(lambda: len(shown.panel.view.trace) == 10)
    shown.stop()
    assert set(threading.enumerate()) == before
    assert not shown.running
    whole = read_trace(path)
    seen = shown.panel.view.trace
    assert [(event.seq, event.ts, event.text) for event in seen] == [
        (event.seq, event.ts, event.text) for event in whole
    ]
    assert seen.unparsed["line"].tolist() == whole.unparsed["line"].tolist() == [9]
    assert seen.header == whole.header
    assert "10 events" in shown._status.value
    shown.stop()  # a second time is no harm


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "again.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *lines(9)]))
    shown = watch(path, every=60)
    assert len(shown.panel.view.trace) == 9
    path.write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *lines(2)]))
    shown.tick()
    assert len(shown.panel.view.trace) == 2
    other = {**HEADER, "transport": "streamable-http"}
    path.write_text("".join(json.dumps(line) + "\n" for line in [other, *lines(12)]))  # longer than before
    shown.tick()
    assert len(shown.panel.view.trace) == 12
    assert shown.panel.view.trace.header == other
    shown.close()


def test_what_is_no_trace_ends_the_watch_with_a_word(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("hello\nworld\n")
    before = set(threading.enumerate())
    shown = watch(path, every=0.01)
    until(lambda: not shown.running)
    assert "no version 1 trace" in shown._status.value
    shown.close()
    assert set(threading.enumerate()) == before
    with pytest.raises(TraceError, match="a int cannot be watched"):
        watch(3)


def test_in_a_running_loop_there_is_no_thread_and_no_task_afterwards(tmp_path):
    path = tmp_path / "loop.jsonl"

    async def main():
        before = set(threading.enumerate())
        shown = watch(path, every=0.01)
        assert set(threading.enumerate()) == before
        path.write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *lines(4)]))
        for _ in range(2000):
            if shown.panel is not None:
                break
            await asyncio.sleep(0.01)
        assert len(shown.panel.view.trace) == 4
        assert len(asyncio.all_tasks()) == 2
        shown._button.click()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert shown.panel.end is None

    asyncio.run(main())


def test_a_recorder_of_this_process():
    from mcplab.live.capture import Capture

    capture = Capture()
    shown = watch(capture, every=60)
    capture.text("c1", "c2s", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    assert shown.tick()
    assert len(shown.panel.view.trace) == 1
    assert not shown.tick()
    shown.close()


def test_a_picked_segment_stays_while_the_capture_grows():
    short, long = (read_trace([HEADER, *lines(count)]) for count in (10, 20))
    shown = panel(short)
    shown.pick("STDIO", 59)
    before = shown.raw_html.value
    shown.replace(long)
    assert "1 to 1 of 1 in the segment from 00:00:09.000 UTC" in shown.listed.value
    assert shown.raw_html.value == before
    assert shown.display_html.value.count(" picked") == 1


def test_choices_stay_while_the_capture_grows(tmp_path):
    path = tmp_path / "stay.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *lines(6)]))
    shown = watch(path, every=60)
    shown.panel.methods.value = ("tools/list",)
    shown.panel.steps.value = 7
    chosen = shown.panel.events.options[2][1]
    shown.panel.events.value = chosen
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(4, 6))
    shown.tick()
    assert shown.panel.methods.value == ("tools/list",)
    assert shown.panel.steps.value == 7
    assert shown.panel.events.value == chosen
    assert len(shown.panel._at) == 10
    shown.close()
    assert isinstance(shown.panel._at, np.ndarray)


def test_a_recorder_is_watched_while_it_writes(tmp_path):
    with Recorder(tmp_path / "t.jsonl", header={"transport": "stdio"}) as recorder:
        shown = watch(recorder, every=60)
        recorder.text("c1", "c2s", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert shown.tick()
        assert shown.panel is not None
        assert len(shown.panel.view.trace) == 1
        recorder.text(
            "c1", "c2s", b'{"jsonrpc":"2.0","id":2,"method":"x","params":{"token":"t"}}'
        )  # the header changes
        assert shown.tick()
        assert len(shown.panel.view.trace) == 2
        assert shown.panel.view.trace.header["redacted"] == ["msg.params.token"]
        shown.close()
