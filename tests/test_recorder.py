"""The recorder: one write an event, a file of its own, both clocks, secrets masked, and no harm from a bad disk."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mcplab import read_trace
from mcplab.live import recorder as module
from mcplab.live.recorder import RESERVE, Recorder
from mcplab.model import Http, Sse, UsageError

HEADER = {"transport": "streamable-http", "config": {"env": {"API_KEY": "s3cret"}}, "label": "x"}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_what_is_in_the_file(tmp_path):
    with Recorder(tmp_path / "t.jsonl", header=HEADER) as recorder:
        recorder.add("open", recorder.conn())
        recorder.text("c1", "c2s", b' {"id":12345678901234567890,"method":"x","params":{"v":1.50,"token":"s3cret"}}\r')
        recorder.text("c1", "s2c", b"\xff junk")
        headers = [("Authorization", "Bearer s3cret"), ("X-Other", "gone"), ("Accept", "a"), ("Accept", "b")]
        facts = {"method": "POST", "path": "/m?key=s3cret", "headers": headers, "exchange": recorder.exchange()}
        recorder.add(kind="http", conn="c1", dir="c2s", http=facts)
        recorder.add("sse", "c1", dir="s2c", http=Http(exchange="x1"), sse=Sse(comment="hi"), raw=": hi")
        recorder.add("message", "c1", dir="s2c", msg='{"id":1,"result":{"l":"\ud800"}}')
        recorder.add("close", "c1", by="client")
    assert recorder.count == 7
    assert recorder.failed is None
    assert stat.S_IMODE(recorder.path.stat().st_mode) == 0o600
    trace = read_trace(recorder.path)
    assert not trace.record.unread
    assert [event.kind for event in trace] == ["open", "message", "unparsed", "http", "sse", "message", "close"]
    assert [event.seq for event in trace] == list(range(7))
    assert trace.raw(1) == '{"id":12345678901234567890,"method":"x","params":{"v":1.50,"token":"***"}}'
    assert all(isinstance(event.mono, int) and str(event.ts).endswith("Z") for event in trace)
    facts = trace.record.events[3].http
    assert isinstance(facts, Http)
    assert (facts.path, facts.headers) == ("/m?key=***", {"authorization": "Bearer ***", "accept": "a, b"})
    assert b"s3cret" not in recorder.path.read_bytes()
    assert trace.header["label"] == "x"
    assert trace.header["redacted"] == [
        "config.env.API_KEY", "msg.params.token", "http.path", "http.headers.authorization",
    ]  # fmt: skip


def test_secrets_kept_and_more_masked(tmp_path):
    with Recorder(tmp_path / "t.jsonl", header=HEADER, keep_secrets=True, redact=["note"]) as recorder:
        recorder.text("c1", "c2s", b'{"id":1,"method":"x","params":{"note":"n","token":"t"}}')
    assert read_trace(recorder.path).raw(0) == '{"id":1,"method":"x","params":{"note":"***","token":"t"}}'
    assert read_trace(recorder.path).header["config"]["env"]["API_KEY"] == "s3cret"
    with pytest.raises(UsageError):
        Recorder(tmp_path / "u.jsonl", header={}, redact=["/(/"])
    assert not (tmp_path / "u.jsonl").exists()


def test_each_event_is_one_write_that_is_done_when_add_returns(tmp_path, monkeypatch):
    writes: list[int] = []
    real = os.writev

    def counted(fd, parts):
        writes.append(sum(map(len, parts)))
        return real(fd, parts)

    monkeypatch.setattr(module.os, "writev", counted)
    recorder = Recorder(tmp_path / "t.jsonl", header=HEADER)
    for number in range(1, 50):
        recorder.text("c1", "c2s", PING)
        assert len(writes) == number + 1
        assert recorder.path.stat().st_size == sum(writes)
        assert recorder.path.read_bytes().endswith(b"}\n")
    recorder.close()
    recorder.close()
    recorder.text("c1", "c2s", PING)
    assert (recorder.count, recorder.lost) == (49, 1)


def test_many_threads(tmp_path):
    with Recorder(tmp_path / "t.jsonl", header={}) as recorder:

        def work(name: str) -> None:
            for number in range(200):
                recorder.text(name, "c2s", b'{"id":%d,"method":"x","params":{"token":"%d"}}' % (number, number))

        threads = [threading.Thread(target=work, args=(recorder.conn(),)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = read_trace(recorder.path)
    assert [event.seq for event in trace] == list(range(1000))
    assert not trace.record.unread
    for _, events in itertools.groupby(sorted(trace, key=lambda event: str(event.conn)), lambda event: event.conn):
        assert [event.text.split(",")[0] for event in events] == [f'{{"id":{number}' for number in range(200)]


def test_what_stands_there_already_is_left_alone(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("mine")
    (tmp_path / "t-2.jsonl").symlink_to(tmp_path / "elsewhere")
    empty = tmp_path / "e.jsonl"
    empty.touch(0o644)
    with Recorder(path, header={}) as one, Recorder(path, header={}) as two, Recorder(empty, header={}) as three:
        pass
    assert path.read_text() == "mine"
    assert [one.path.name, two.path.name, three.path.name] == ["t-3.jsonl", "t-4.jsonl", "e.jsonl"]
    assert not (tmp_path / "elsewhere").exists()
    assert stat.S_IMODE(empty.stat().st_mode) == 0o600


def test_recorders_that_begin_at_the_same_moment_have_a_file_each(tmp_path):
    """A new file is empty for a moment, and one that is there may be: neither is for two."""
    for given in (False, True):
        path = tmp_path / f"{given}.jsonl"
        if given:
            path.touch()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recorder, "_write", lambda self, line: None)  # nothing of it is written yet
            first = Recorder(path, header={"transport": "stdio"})
            second = Recorder(path, header={"transport": "stdio"})
        with first, second:
            assert (first.path, second.path) == (path, tmp_path / f"{given}-2.jsonl")


def test_the_header_is_kept_up_to_date_wherever_the_process_goes(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Recorder("t.jsonl", header={"transport": "stdio"}) as recorder:
        monkeypatch.chdir(tmp_path / "elsewhere")
        recorder.text("c1", "c2s", b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"token":"abc"}}')
    assert read_trace(tmp_path / "t.jsonl").header["redacted"] == ["msg.params.token"]


def test_more_places_than_the_header_has_room_for(tmp_path):
    with Recorder(tmp_path / "t.jsonl", header=HEADER) as recorder:
        for number in range(100):
            recorder.text("c1", "c2s", b'{"id":1,"method":"x","params":{"place number %d":{"token":"t"}}}' % number)
    first, second = recorder.path.read_bytes().splitlines()[:2]
    assert len(first) > RESERVE
    assert second.startswith(b'{"kind":"message","seq":0,')
    told = read_trace(recorder.path).header["redacted"]
    assert told[-1] == "and more"
    assert 10 < len(told) < 101


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_stops_the_recording_and_nothing_else(tmp_path, monkeypatch, error):
    told: list[str] = []
    recorder = Recorder(tmp_path / "t.jsonl", header={}, warn=told.append)
    for _ in range(3):
        recorder.text("c1", "c2s", PING)
    real = os.writev

    def full(fd, parts):  # some of it fits
        real(fd, [b"".join(parts)[:20]])
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(module.os, "writev", full)
    for _ in range(3):
        recorder.text("c1", "c2s", PING)
    recorder.close()
    why = os.strerror(error).lower()
    assert told == [f"{recorder.path}: recording stopped ({why}, after 3 events); the traffic goes on"]
    assert recorder.failed == f"{why}, after 3 events"
    assert (recorder.count, recorder.lost) == (3, 3)
    trace = read_trace(recorder.path)
    assert (len(trace), len(trace.record.unread)) == (3, 0)
    assert trace.header["stopped"] == recorder.failed
    assert f"the recorder had to stop before the end: {recorder.failed}" in trace.notes


def test_a_limit_of_the_system(tmp_path):
    """A real one, in a process of its own: a file may not grow beyond 5,000 bytes."""
    script = (
        "import resource, sys\n"
        "from mcplab.live.recorder import Recorder\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (5000, {resource.RLIM_INFINITY}))\n"
        "recorder = Recorder(sys.argv[1], header={})\n"
        f"for _ in range(99): recorder.text('c1', 'c2s', {PING!r})\n"
        "print(recorder.count, recorder.lost)"
    )
    path = tmp_path / "t.jsonl"
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")
    }  # it writes a file too
    env["PYTHONPATH"] = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, env=env, check=True
    )
    count, lost = map(int, done.stdout.split())
    assert count + lost == 99
    assert done.stderr.count("\n") == 1
    assert "file too large" in done.stderr
    assert 0 < path.stat().st_size <= 5000
    trace = read_trace(path)
    assert len(trace) == count > 10
    assert "file too large" in trace.header["stopped"]
    assert not trace.record.unread


@pytest.mark.parametrize("path", ["/dev/full", "no/such/folder.jsonl"])
def test_nothing_can_be_written_at_all(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    with Recorder(path, header={}, warn=told.append) as recorder:
        recorder.text("c1", "c2s", PING)
    assert len(told) == 1
    assert recorder.failed is not None
    assert recorder.lost == 1


def test_an_event_that_cannot_be_written_stops_the_recording_too(tmp_path):
    told: list[str] = []
    with Recorder(tmp_path / "t.jsonl", header={}, warn=told.append) as recorder:
        recorder.text("c1", "c2s", PING)
        recorder.add("message", "c1", no_such_member=1)
        recorder.text("c1", "c2s", PING)
    assert len(told) == 1
    assert len(read_trace(recorder.path)) == 1


def test_the_file_is_taken_away_meanwhile(tmp_path):
    """Its descriptor still takes the events; nothing is put where it was."""
    with Recorder(tmp_path / "t.jsonl", header={}) as recorder:
        recorder.path.rename(tmp_path / "u.jsonl")
        recorder.path.write_text("other")
        recorder.text("c1", "c2s", b'{"id":1,"method":"x","params":{"token":"t"}}')
    assert (tmp_path / "t.jsonl").read_text() == "other"
    assert len(read_trace(tmp_path / "u.jsonl")) == 1
    assert recorder.failed is None
