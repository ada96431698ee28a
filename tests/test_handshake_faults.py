"""Every fault, on both transports, in every mode: one clear error with the trace so far, in time, nothing left behind."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
import uuid

import psutil
import pytest

from mcplab.live.handshakes import handshake
from mcplab.live.server.demo import DEMO
from mcplab.live.server.faults import FAULTS
from mcplab.live.stdio import GRACE
from mcplab.model import HandshakeError

TIMEOUT = 1.5
SLACK = 20.0  # starting Python twice on a very busy machine; what hangs would take the time of the whole test
MODES = ("auto", "modern", "legacy", "2025-11-25")
HARMLESS = {"noise", "batch"}  # the trace shows them; the handshake goes on
ONLY_DISCOVER = {"exit-on-discover", "silent-discover", "odd-discover", "discover-NNN"}
NUMBERS = {
    "http-NNN": ("http-400", "http-404", "http-403", "http-503"),
    "discover-NNN": ("discover-32022", "discover-1"),
}

CASES = [
    (transport, name, mode)
    for fault, (transports, _) in FAULTS.items()
    for transport in transports.split()
    for name in NUMBERS.get(fault, (fault,))
    for mode in MODES
]


def _fails(fault: str, mode: str) -> bool:
    if fault in HARMLESS:
        return False
    if fault in ONLY_DISCOVER or fault.startswith("discover-"):
        return mode == "modern"
    return True


@pytest.fixture(autouse=True)
def nothing_left():
    """No child process, no thread, no listening socket stays behind."""
    me = psutil.Process()
    before = set(threading.enumerate())
    yield
    assert [child.cmdline() for child in me.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE] == []
    # asyncio's own thread that waited for the child tells the loop first and ends a moment later: it must end, not be gone
    new = [t for t in threading.enumerate() if t not in before and t.name not in {"asyncio_0", "pyarrow-io"}]
    for thread in new:
        thread.join(timeout=5)
    assert [thread.name for thread in new if thread.is_alive()] == []
    assert [c for c in me.net_connections("tcp") if c.status == psutil.CONN_LISTEN] == []


@pytest.mark.parametrize(("transport", "fault", "mode"), CASES)
def test_fault(transport, fault, mode):
    started = time.monotonic()
    target = DEMO(transport=transport, fault=fault)
    if not _fails(fault, mode):
        shake = handshake(target, mode=mode, then=[("tools/list", None)], timeout=20)
        assert shake.results[0].outcome == "result"
        return
    with pytest.raises(HandshakeError) as caught:
        handshake(target, mode=mode, then=[("tools/list", None)], timeout=TIMEOUT)
    took = time.monotonic() - started
    words = str(caught.value)
    assert "\n" not in words
    assert "; " in words  # what happened; what to try
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, Exception)
    trace = caught.value.trace
    assert len(trace) >= 2
    assert trace.record.events[-1].kind == "close"
    assert took < TIMEOUT + 2 * GRACE + SLACK


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_is_not_there(mode):
    with pytest.raises(HandshakeError, match="no-such-server"):
        handshake(["no-such-server"], mode=mode, timeout=TIMEOUT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    with pytest.raises(HandshakeError) as caught:
        handshake(f"{url}?api_key=s3cr3t", mode=mode, timeout=TIMEOUT)
    assert str(caught.value).startswith(f"Connection refused at {url}?api_key=***; ")


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("string-id", 'an answer with id "0", where one with id 0 was due'),
        ("wrong-id", "an answer with id 1000, where one with id 0 was due"),
    ],
)
def test_what_came_in_the_answer_s_place_is_named(transport, fault, seen):
    with pytest.raises(HandshakeError) as caught:
        handshake(DEMO(transport=transport, fault=fault), mode="modern", timeout=TIMEOUT)
    assert seen in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ('{"jsonrpc":"2.0","result":{}}', "an answer with no id, where"),
        ('{"jsonrpc":"2.0","id":null,"result":{}}', "an answer with id null, where"),
        (f'{{"jsonrpc":"2.0","id":{"[" * 900}{"]" * 900},"result":{{}}}}', "an answer with id (nested), where"),
        ("password=s3cr3t \x1b[2J", "text that is no JSON-RPC: 'password=*** \\x1b[2J'"),
    ],
)
def test_what_came_is_quoted_without_harm(answer, seen):
    code = f"import sys; print({answer!r}, flush=True); sys.stdin.read()"
    with pytest.raises(HandshakeError) as caught:
        handshake([sys.executable, "-c", code], mode="modern", timeout=TIMEOUT)
    assert f"(also seen: {seen}" in str(caught.value)


def test_a_handshake_that_was_complete_is_told_from_one_that_was_not():
    with pytest.raises(HandshakeError, match="the handshake itself was complete") as caught:
        handshake(DEMO(fault="hang-after-initialize"), then=["tools/list"], timeout=TIMEOUT)
    assert caught.value.trace.connections["era"].tolist() == ["modern"]
    cancelled = [e.text for e in caught.value.trace.record.events if "notifications/cancelled" in e.text]
    assert len(cancelled) == 1  # stdio: a request that is given up is cancelled


def test_killed_after_sigterm_and_the_trace_says_so():
    with pytest.raises(HandshakeError, match="had to be killed") as caught:
        handshake(DEMO(fault="ignore-sigterm"), timeout=20)
    last = caught.value.trace.record.events[-1]
    assert (last.kind, last.exit_code, last.by) == ("close", -signal.SIGKILL, "client")
    how = "the server process ended with SIGKILL, when mcplab had closed its input (SIGKILL after SIGTERM); "
    assert caught.value.__notes__ == [f"{how}its stderr is empty"]
    assert caught.value.handshake.label == "2026-07-28 (modern)"


def test_children_of_the_server_go_too():
    mark = uuid.uuid4().hex  # the grandchild is no child of ours: known by its command line
    code = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # {mark}"])
sys.stdin.read()
"""
    with pytest.raises(HandshakeError):
        handshake([sys.executable, "-c", code], timeout=1)
    live = [p for p in psutil.process_iter(["cmdline", "status"]) if p.info["status"] != psutil.STATUS_ZOMBIE]
    assert [p.pid for p in live if mark in " ".join(p.info["cmdline"] or [])] == []


def test_what_a_server_wrote_before_it_died_is_kept():
    code = "import sys; sys.stderr.write('no config\\n'); sys.stdout.write('{\"half\": '); sys.exit(7)"
    with pytest.raises(HandshakeError, match="exit status 7") as caught:
        handshake([sys.executable, "-c", code], mode="legacy", timeout=20)
    kinds = {event.kind: event for event in caught.value.trace}
    assert kinds["stderr"].raw == "no config"
    assert kinds["unparsed"].raw == '{"half": '
    assert (kinds["close"].by, kinds["close"].exit_code) == ("server", 7)


def test_bytes_that_are_no_text_are_kept():
    code = "import os; os.write(1, b'\\xff\\xfe\\n'); import sys; sys.stdin.read()"
    with pytest.raises(HandshakeError) as caught:
        handshake([sys.executable, "-c", code], mode="legacy", timeout=1)
    assert [event.raw_b64 for event in caught.value.trace if event.kind == "unparsed"] == ["//4="]


def test_a_server_that_does_not_read_its_input():
    code = "import time; time.sleep(60)"
    with pytest.raises(HandshakeError, match="does not read its input"):
        handshake(
            [sys.executable, "-c", code],
            mode="legacy",
            declare={"experimental": {"x": {"y": "z" * 500_000}}},
            timeout=1,
        )


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("mcplab.live.stdio.LONGEST", 1 << 20)
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(HandshakeError, match="without a line break"):
        handshake([sys.executable, "-c", code], mode="legacy", timeout=20)


def test_a_server_that_talks_without_listening():
    code = 'while True: print(\'{"jsonrpc":"2.0","method":"notifications/message","params":{}}\')'
    started = time.monotonic()
    with pytest.raises(HandshakeError, match="no answer") as caught:
        handshake([sys.executable, "-c", code], mode="legacy", timeout=1)
    assert time.monotonic() - started < 1 + 2 * GRACE + SLACK
    assert len(caught.value.trace) > 100


FLAWED = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {"server/discover": {"resultType": "complete", "capabilities": {"tools": {}}}, "tools/list": {"tools": []}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": answers[asked["method"]]}), flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": 77, "method": "roots/list"}), flush=True)
"""


def test_an_ill_formed_discover_result_keeps_no_request_from_whoever_chose_the_revision():
    command = [sys.executable, "-c", FLAWED]
    with pytest.raises(HandshakeError) as caught:
        handshake(command, mode="2026-07-28", declare={"roots": {}}, then=["tools/list"], timeout=20)
    assert "the discover result has no supportedVersions (also seen: the server sent the request roots/list); " in (
        str(caught.value)
    )
    assert [(answer.method, answer.result) for answer in caught.value.handshake.results] == [
        ("tools/list", {"tools": []})
    ]
    assert not any(note.startswith("not sent") for note in caught.value.__notes__)
    sent = [event for event in caught.value.trace.record.events if event.dir == "c2s" and event.kind == "message"]
    assert len(sent) == 2  # a modern client sends no responses: roots/list stays without one

    with pytest.raises(HandshakeError, match="has no supportedVersions; then initialize") as caught:
        handshake(command, then=[1, "tools/list", ("tools/call", {})], timeout=20)
    assert "not sent: tools/list, tools/call" in caught.value.__notes__
