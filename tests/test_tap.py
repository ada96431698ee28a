"""The tap: bytes, order, signals, ends; whoever is killed, what was delivered is in the trace, once."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcplab import read_trace
from mcplab.live import relay
from mcplab.live.capture import Capture, is_message
from mcplab.live.recorder import Recorder
from mcplab.live.relay import Lines, Relay
from mcplab.live.tap import plain_words

ROOT = Path(__file__).parents[1]
PARTIES = Path(__file__).parent / "parties.py"
STREAMS = int(os.environ.get("MCPLAB_TAP_STREAMS", "300"))
KILLS = int(os.environ.get("MCPLAB_TAP_KILLS", "4"))
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def tapped(trace: Path, *command: str) -> list[str]:
    return [sys.executable, "-P", "-m", "mcplab", "tap", "-o", str(trace), "--", *command]


def python(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(["import os, signal, sys, time", *lines])]


def run(trace: Path, *command: str, given: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(tapped(trace, *command), input=given, capture_output=True, env=ENV, timeout=60, **more)


def start(trace: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        tapped(trace, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )


def texts(trace: Path, direction: str, kind: str = "message") -> list[bytes]:
    return [bytes(e.msg) for e in read_trace(trace) if e.kind == kind and e.dir == direction]  # type: ignore[arg-type]


def gone(pid: int, seconds: float = 30) -> bool:
    """Has this process ended, or does it soon? One that nobody has waited for counts as ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


# Bytes -----------------------------------------------------------------------------------------------


def some_line(rng: random.Random) -> bytes:
    """A message, junk or nothing; no line begins with a whole message that goes on."""
    what = rng.randrange(6)
    if what < 3:
        value: Any = {
            "jsonrpc": "2.0",
            "id": rng.randrange(10**20),
            "method": "é\ud83d" * (what == 2) + "m/" * rng.randrange(9),
        }
        value["params"] = {"x": ["y" * rng.randrange(300)] * rng.randrange(4), "f": 1.5}
        text = json.dumps(
            [value, value] if rng.random() < 0.1 else value, indent=None, separators=(rng.choice([",", " , "]), ":")
        )
        return text.encode()
    if what == 3:
        return bytes(byte for byte in rng.randbytes(rng.randrange(400)) if byte not in b"{[\n")
    return rng.choice(
        [b"", b"plain words", b'{"jsonrpc": broken', b"[1, 2]", b"{}", b'"text"', PING[:-1], b"\xff\xfe\x00"]
    )


def some_stream(rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(5000))
    ends = [b"\n", b"\r\n"] if rng.random() < 0.3 else [b"\n"]
    stream = b"".join(some_line(rng) + rng.choice(ends) for _ in range(rng.randrange(12)))
    return stream + (some_line(rng) if rng.random() < 0.5 else b"")


def through(stream: bytes, lines: Lines, rng: random.Random) -> bytes:
    """The stream after it went through a relay, in pieces of any size."""
    (source, ours), sink = os.pipe(), os.pipe()
    relayed = Relay(source, sink[1], lines)

    def write() -> None:
        at = 0
        while at < len(stream):
            at += os.write(ours, stream[at : at + rng.choice([1, 7, 100, 4096, 1 << 16])])
        os.close(ours)

    def relay_all() -> None:
        relayed.run()
        os.close(sink[1])

    threads = [threading.Thread(target=write), threading.Thread(target=relay_all)]
    for thread in threads:
        thread.start()
    out = b""
    while chunk := os.read(sink[0], 1 << 16):
        out += chunk
    for thread in threads:
        thread.join()
    os.close(source)
    os.close(sink[0])
    return out


def test_random_streams_come_out_identical_and_are_in_the_trace(tmp_path):
    rng = random.Random(20260728)
    streams = [some_stream(rng) for _ in range(STREAMS)]
    with Recorder(tmp_path / "t.jsonl", header={"transport": "stdio"}, keep_secrets=True) as recorder:
        for number, stream in enumerate(streams):
            assert through(stream, Lines(recorder, f"c{number}", "s2c"), rng) == stream, number
    found = collections.defaultdict(list)
    trace = read_trace(tmp_path / "t.jsonl")
    for event in trace:
        if event.kind == "message":
            found[event.conn].append(bytes(event.msg))  # type: ignore[arg-type]
    assert not trace.record.unread
    for number, stream in enumerate(streams):
        wanted = [line.strip(b" \t\r\n") for line in stream.split(b"\n") if is_message(line.strip(b" \t\r\n"))]
        assert found[f"c{number}"] == wanted, stream


def test_all_three_streams_of_a_server(tmp_path):
    rng = random.Random(1)
    given = b"".join(some_stream(rng) for _ in range(200)) + b"no end: \xff"
    echo = python(
        "while data := sys.stdin.buffer.read1(65536):", "    os.write(2, data[::2])", "    sys.stdout.buffer.write(data)",
        "sys.stdout.flush()", "sys.exit(3)",
    )  # fmt: skip
    done = run(tmp_path / "t.jsonl", *echo, given=given)
    assert done.returncode == 3
    assert done.stdout == given
    assert len(done.stderr) >= len(given) // 2
    trace = read_trace(tmp_path / "t.jsonl")
    assert texts(tmp_path / "t.jsonl", "c2s") == texts(tmp_path / "t.jsonl", "s2c")
    last = trace.record.events[-1]
    assert (last.kind, last.exit_code, last.by) == ("close", 3, "client")
    assert trace.header["config"]["command"] == echo


def test_a_private_key_on_stderr_is_masked_from_its_first_line_to_its_last(tmp_path):
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "Qk1+/w==", "-----END PRIVATE KEY-----"]
    text = "\n".join(["before", *key, "after", ""])
    trace = tmp_path / "t.jsonl"
    done = run(trace, *python(f"import sys; sys.stderr.write({text!r})"))
    assert done.stderr.decode() == text  # on its way nothing is changed
    assert [event.raw for event in read_trace(trace) if event.kind == "stderr"] == ["before", *["***"] * 4, "after"]
    assert read_trace(trace).header["redacted"] == ["config.command", "raw"]  # the command has it too


def test_a_big_message_and_one_without_an_end(tmp_path):
    """In pieces, both ways at once, and the last without a line break: still whole, and once in the trace."""
    big = b'{"jsonrpc":"2.0","id":1,"method":"big","params":{"t":"' + b"0123456789" * 600_000 + b'"}}'
    done = run(tmp_path / "t.jsonl", "cat", given=big + b"\r\n" + PING)
    assert done.stdout == big + b"\r\n" + PING
    assert texts(tmp_path / "t.jsonl", "c2s") == texts(tmp_path / "t.jsonl", "s2c") == [big, PING]


def test_a_message_without_a_line_break_is_recorded_before_its_last_byte_goes_on():
    """As with Content-Length framing: nothing follows, and its reader waits for nothing."""
    capture = Capture()
    source, sink = os.pipe(), os.pipe()
    thread = threading.Thread(target=Relay(source[0], sink[1], Lines(capture, "c1", "c2s")).run)
    thread.start()
    for text in (PING, PING):
        head = b"Content-Length: 40\r\n\r\n"
        os.write(source[1], head + text)
        got = b""
        while len(got) < len(head + text):
            got += os.read(sink[0], 100)
            if got == head + text:
                assert [bytes(e.msg) for e in capture.events if e.kind == "message"][-1] == text  # type: ignore[arg-type]
    os.close(source[1])
    thread.join()
    assert [e.kind for e in capture.events] == ["unparsed", "unparsed", "message"] * 2
    for fd in (source[0], *sink):
        os.close(fd)


def test_lines_without_an_end_are_recorded_in_pieces(monkeypatch):
    monkeypatch.setattr(relay, "LONGEST_JUNK", 1000)
    monkeypatch.setattr(relay, "LONGEST", 3000)
    capture = Capture()
    lines = Lines(capture, "c1", "s2c")
    for _ in range(25):
        lines.take(b"j" * 100)
    lines.take(b"end\n")
    lines.take(b'{"jsonrpc":"2.0","x":"' + b"y" * 2000)
    lines.take(b'"}\n')
    for _ in range(40):
        lines.take(b"[" * 100)
    lines.close()
    kinds = [(e.kind, len(e.raw or "") if e.kind == "unparsed" else 0) for e in capture.events]  # type: ignore[arg-type]
    assert kinds == [
        ("unparsed", 1100),
        ("unparsed", 1100),
        ("unparsed", 303),
        ("message", 0),
        ("unparsed", 3100),
        ("unparsed", 900),
    ]
    assert all("pieces" in str(e.reason) for e in capture.events if e.kind == "unparsed")


# Ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_signals_reach_the_server_once(tmp_path, number):
    server = python(
        "seen = []",
        f"signal.signal({int(number)}, lambda n, f: (seen.append(n), os.write(1, b'caught\\n')))",
        "os.write(1, b'ready\\n')",
        "while sys.stdin.buffer.readline(): pass",
        "sys.exit(40 + len(seen))",
    )
    process = start(tmp_path / "t.jsonl", *server)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == b"caught\n"
    process.communicate(timeout=30)
    assert process.returncode == 41


def test_a_server_that_a_signal_ended(tmp_path):
    process = start(tmp_path / "t.jsonl", *python("os.write(1, b'ready\\n')", "sys.stdin.read()"))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    last = read_trace(tmp_path / "t.jsonl").record.events[-1]
    assert (last.exit_code, last.by, last.reason) == (-signal.SIGTERM, "client", "SIGTERM passed on")


def test_a_server_that_ends_by_itself_ends_the_tap(tmp_path):
    process = start(tmp_path / "t.jsonl", *python("print('bye')", "sys.exit(9)"))
    assert process.stdout is not None
    assert process.stdout.read() == b"bye\n"
    assert process.wait(30) == 9  # though its input is open still
    process.communicate()
    last = read_trace(tmp_path / "t.jsonl").record.events[-1]
    assert (last.exit_code, last.by, last.unexpected) == (9, "server", True)


def test_a_server_that_ignores_the_end_of_its_input_and_sigterm(tmp_path):
    server = python(
        "signal.signal(signal.SIGTERM, lambda *a: os.write(1, b'no\\n'))", "print(os.getpid(), flush=True)",
        "while True: time.sleep(1)",
    )  # fmt: skip
    done = run(tmp_path / "t.jsonl", *server)
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stdout.endswith(b"no\n")
    assert gone(int(done.stdout.split()[0]))
    assert read_trace(tmp_path / "t.jsonl").record.events[-1].reason == "SIGKILL after SIGTERM"


def test_a_slow_answer_after_the_end_of_the_input_still_comes(tmp_path):
    server = python("sys.stdin.read()", "for n in range(9):", "    time.sleep(0.5)", "    print(n, flush=True)")
    done = run(tmp_path / "t.jsonl", *server)
    assert (done.returncode, done.stdout) == (0, b"".join(b"%d\n" % n for n in range(9)))


def test_a_client_that_reads_no_more(tmp_path):
    """The server's writes fail as they would without the tap, and so it ends."""
    server = python("signal.signal(signal.SIGPIPE, signal.SIG_DFL)", "while True: os.write(1, b'x' * 999 + b'\\n')")
    process = start(tmp_path / "t.jsonl", *server)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) == 128 + signal.SIGPIPE
    close = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[-1])
    assert (close["kind"], close["by"], close["reason"]) == ("close", "client", "it reads no more")
    process.stdin.close()  # type: ignore[union-attr]
    process.stderr.close()  # type: ignore[union-attr]


def write_until_it_breaks(fd: int) -> None:
    for _ in range(1000):
        os.write(fd, PING * 100 + b"\n")


def test_a_server_that_reads_no_more_while_the_client_writes(tmp_path):
    process = start(tmp_path / "t.jsonl", *python("os.close(0)", "print('closed', flush=True)", "time.sleep(60)"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(BrokenPipeError):
        write_until_it_breaks(process.stdin.fileno())
    process.send_signal(signal.SIGTERM)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(30) == 128 + signal.SIGTERM
    process.stderr.close()  # type: ignore[union-attr]


def test_a_process_that_the_server_left_behind_does_not_hold_the_tap(tmp_path):
    left = "import time; time.sleep(600)"
    server = python("import subprocess", f"print(subprocess.Popen([sys.executable, '-c', {left!r}]).pid, flush=True)")
    done = run(tmp_path / "t.jsonl", *server)
    assert done.returncode == 0
    assert gone(int(done.stdout))


@pytest.mark.parametrize(("command", "status"), [("no-such-program", 127), ("/", 126)])
def test_no_such_server(tmp_path, command, status):
    done = run(tmp_path / "t.jsonl", command)
    assert done.returncode == status
    assert done.stderr.startswith(f"mcplab: {command}: ".encode())
    assert "not started" in str(read_trace(tmp_path / "t.jsonl").record.events[-1].reason)


def test_a_trace_that_cannot_be_written_does_not_stop_the_traffic(tmp_path):
    done = run(tmp_path / "no" / "folder.jsonl", "cat", given=PING + b"\n")
    assert (done.returncode, done.stdout) == (0, PING + b"\n")
    assert done.stderr.count(b"\n") == 1
    assert b"recording stopped (no such file or directory" in done.stderr


def test_a_second_run_leaves_the_first_trace_alone(tmp_path):
    run(tmp_path / "t.jsonl", "cat", given=PING + b"\n")
    done = run(tmp_path / "t.jsonl", "cat", given=b"other\n")
    assert b"t-2.jsonl" in done.stderr
    assert texts(tmp_path / "t.jsonl", "c2s") == [PING]
    assert texts(tmp_path / "t-2.jsonl", "c2s", "message") == []


def test_the_short_way_to_its_arguments():
    assert plain_words(["-o", "f", "--redact", "a", "--redact", "b", "--keep-secrets", "--", "x", "--", "-o"]) == {
        "output": Path("f"), "redact": ["a", "b"], "keep_secrets": True, "command": ["x", "--", "-o"],
    }  # fmt: skip
    for words in (
        ["-o", "f", "x"],
        ["-o", "f", "--"],
        ["--", "x"],
        ["--help"],
        ["-o"],
        ["-o", "f", "--what", "--", "x"],
    ):
        assert plain_words(words) is None


# Killed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", range(KILLS))
@pytest.mark.parametrize("who", ["tap", "client", "server"])
def test_whoever_is_killed_what_was_delivered_is_in_the_trace_once(tmp_path, who, moment):
    rng = random.Random(f"{who} {moment}")
    trace, logs = tmp_path / "t.jsonl", {"c2s": tmp_path / "server", "s2c": tmp_path / "client"}
    server = [sys.executable, str(PARTIES), "server", str(logs["c2s"])]
    client = subprocess.Popen(
        [sys.executable, str(PARTIES), "client", str(logs["s2c"]), *tapped(trace, *server)],
        env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wanted = rng.randrange(1, 400)
    end = time.monotonic() + 60
    while time.monotonic() < end and client.poll() is None:
        if logs["s2c"].exists() and logs["s2c"].read_bytes().count(b"\n") >= wanted:
            break
        time.sleep(0.001)
    ours, tap = map(int, Path(f"{logs['s2c']}.pid").read_text().split())
    theirs = int(Path(f"{logs['c2s']}.pid").read_text())
    time.sleep(rng.random() / 100)
    os.kill({"tap": tap, "client": ours, "server": theirs}[who], signal.SIGKILL)
    client.wait(60)
    assert gone(tap)
    assert gone(theirs)
    for direction, log in logs.items():
        delivered = log.read_bytes().split(b"\n")[:-1]
        recorded = texts(trace, direction)
        assert delivered, direction
        assert recorded[: len(delivered)] == delivered, direction  # all of it, in order, none twice
        assert len(set(recorded)) == len(recorded)
    whole = trace.read_bytes().count(b"\n")
    cut = [line.line for line in read_trace(trace).record.unread]
    assert cut in ([], [whole + 1] if who == "tap" else [])  # a write that a kill interrupts: nobody got that message
