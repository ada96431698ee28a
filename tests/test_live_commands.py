"""``mcplab handshake`` and ``mcplab demo`` as commands of an application."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mcplab.cli import run
from mcplab.live.commands import register, requests_of
from mcplab.live.server.demo import serving
from mcplab.traces import read_trace

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    made = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    register(made)
    return made


def test_the_two_examples_of_the_timeline(app, tmp_path):
    """A forced legacy session with pings, and a modern one: what was asked for is what is in the trace."""
    with serving(session_id="docs-legacy-session") as server:
        words = ["handshake", server.url, "--mode", "legacy", "--pings", "3", "--every", "0.05"]
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "legacy.jsonl")])
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines()[:2] == [
            "protocol  2025-11-25 (forced legacy)",
            "session   docs-legacy-session",
        ]
        assert done.stderr == f"wrote {tmp_path / 'legacy.jsonl'}\n"
        words = ["handshake", server.url, "--request", "tools/list", "--request", "tools/call", '{"name": "echo"}']
        words += ["--request", 'tools/call {"name": "progress"}']
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "modern.jsonl")])
        assert done.exit_code == 0, done.output
    legacy, modern = (read_trace(tmp_path / f"{name}.jsonl").connections.iloc[0] for name in ("legacy", "modern"))
    assert (legacy["session"], legacy["health"], legacy["label"]) == (
        "docs-legacy-session",
        "ok",
        "2025-11-25 (forced legacy)",
    )
    assert (modern["calls"], modern["label"]) == ("discover:1, list_tools:1, tool:2", "2026-07-28 (modern)")


def test_declarations_and_answers(app):
    with serving() as server:
        words = ["handshake", server.url, "--declare", '{"roots":{"x":1.50}}', "--client-info", "ABSENT"]
        words += ["--answers", '{"roots/list": {"roots": []}}', "--request", 'tools/call {"name":"ask-roots"}']
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert '{"roots":{"x":1.50}}' in server.wire.texts[0][1]
        assert "clientInfo" not in server.wire.texts[0][1]
    assert "then      tools/call: result" in done.output


def test_a_failure_is_saved_too(app, tmp_path):
    with serving(fault="http-503") as server:
        done = CliRunner().invoke(app, ["handshake", server.url, "-o", str(tmp_path / "t.jsonl")])
    assert done.exit_code == 1
    assert "HTTP 503" in str(done.exception)
    assert (done.stdout, done.stderr) == ("", f"wrote {tmp_path / 't.jsonl'}\n")
    assert 503 in set(read_trace(tmp_path / "t.jsonl").http["status"])


def test_what_a_server_wrote_before_it_died_stands_below_the_error(tmp_path, capsys):
    crash = "import sys; sys.exit('API_KEY=s3cr3t\\n\\n' + 'x' * 900 + '\\nno \\x1b[2Jconfig')"
    words = ["handshake", "--mode", "modern", "--", sys.executable, "-c", crash]
    for more, last in (([], ["-o FILE keeps the trace"]), (["-o", str(tmp_path / "t.jsonl")], [])):
        assert run([words[0], *more, *words[1:]]) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        told = shown.err.removeprefix(f"wrote {tmp_path / 't.jsonl'}\n").splitlines()
        assert told[0].startswith(
            "mcplab: server/discover: the server process ended with exit status 1; look at the trace"
        )
        assert told[1:] == [
            "the server process ended with exit status 1, by itself; its stderr ends:",
            "  API_KEY=***",
            f"  {'x' * 200}",
            r"  no \x1b[2Jconfig",
            *last,
        ]


def test_only_the_end_of_a_long_stderr_is_shown_and_no_key_of_it(capsys):
    key = ["-----BEGIN PRIVATE KEY-----", *["c2VjcmV0"] * 60, "-----END PRIVATE KEY-----"]
    code = f"import sys; print(*{[*map(str, range(40)), *key, *map(str, range(5))]!r}, sep='\\n', file=sys.stderr)"
    assert run(["handshake", "--mode", "legacy", "--", sys.executable, "-c", code]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[2:-1] == [f"  {line}" for line in (*range(34, 40), "***", *range(5))]


def test_what_was_agreed_on_is_shown_though_a_later_request_failed(capsys):
    code = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": []}
    if asked["method"] in ("server/discover", "tools/list"):
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
    words = ["handshake", "--timeout", "1", "--request", "tools/list", "--request", "x/y"]
    assert run([*words, "--", sys.executable, "-c", code]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("protocol  2026-07-28 (modern)\n")
    assert shown.out.splitlines()[-1].startswith("then      tools/list: result {")
    assert shown.err.startswith("mcplab: x/y: no answer within ")
    assert shown.err.splitlines()[1:] == [
        "the server process ended with exit status 0, when mcplab had closed its input; its stderr is empty",
        "-o FILE keeps the trace",
    ]


def test_nothing_is_kept_of_a_connection_that_was_refused(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
        assert run(["handshake", url]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"mcplab: Connection refused at {url}; check the address or the command, and whether the server runs"
    ]


@pytest.mark.parametrize("words", [["--answers", "[]"], ["--answers", "{"], ["--request", "a {"]])
def test_wrong_use(app, words):
    assert CliRunner().invoke(app, ["handshake", "DEMO", *words]).exit_code == 2


def test_what_a_server_says_does_a_terminal_no_harm(app):
    with serving(name="\x1b[2Jx\u202e", instructions="\x07") as server:
        done = CliRunner().invoke(app, ["handshake", server.url])
    assert not {"\x1b", "\u202e", "\x07"} & set(done.output)


def test_requests_of():
    assert requests_of(["x", "--request", "a", "{}", "--request", "b", "--", "--request", "c", "{}"]) == [
        "x",
        "--request",
        "a {}",
        "--request",
        "b",
        "--",
        "--request",
        "c",
        "{}",
    ]


def test_demo_lists_its_faults_and_serves_stdio(app):
    done = CliRunner().invoke(app, ["demo", "--fault", "list"])
    assert "hang-after-initialize" in done.output
    assert CliRunner().invoke(app, ["demo", "--stdio", "--http", "0"]).exit_code == 2
    code = "import typer; from mcplab.live.commands import register; app = typer.Typer(); register(app); app()"
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked})
    served = subprocess.run(
        [sys.executable, "-c", code, "demo", "--stdio", "--serves", "legacy"],
        input=message,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=30,
        check=True,
    )
    assert json.loads(served.stdout)["result"]["protocolVersion"] == "2025-11-25"


def test_nothing_heavy_loads_with_the_commands():
    code = "import sys, mcplab.live.commands; print([m for m in ('httpx2', 'asyncio', 'pandas') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_what_it_saves_is_masked_and_for_nobody_else(app, tmp_path):
    file = tmp_path / "t.jsonl"
    with serving() as server:
        words = [
            "handshake",
            server.url,
            "--request",
            'tools/call {"name": "echo", "arguments": {"api_key": "s3cr3t-1"}}',
        ]
        assert CliRunner().invoke(app, [*words, "-o", str(file)]).exit_code == 0
    assert "s3cr3t-1" not in file.read_text(encoding="utf-8")
    assert read_trace(file).header["redacted"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_recorded_until_a_signal_is_saved(tmp_path, number):
    asked, file = tmp_path / "asked", tmp_path / "t.jsonl"
    server = f"import sys, pathlib\nfor line in sys.stdin: pathlib.Path({str(asked)!r}).touch()"
    words = [sys.executable, "-m", "mcplab", "handshake", "--mode", "legacy", "-o", str(file), "--", sys.executable]
    with subprocess.Popen([*words, "-c", server], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        while not asked.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert read_trace(file).messages["method"].tolist() == ["initialize"]


def test_a_trace_that_cannot_be_written_hides_no_failure(tmp_path, capsys):
    (tmp_path / "t.jsonl").mkdir()
    words = ["handshake", "-o", str(tmp_path / "t.jsonl"), "--", sys.executable, "-c", "raise SystemExit(3)"]
    assert run(words) == 1
    told = capsys.readouterr().err
    assert "exit status 3" in told
    assert str(tmp_path / "t.jsonl") in told


@pytest.mark.parametrize("wrong", ["--pings=-3", "--timeout=-1", "--every=-1"])
def test_less_than_nothing_is_wrong_use(wrong, capsys):
    assert run(["handshake", "DEMO", wrong]) == 2
    assert wrong.partition("=")[0] in capsys.readouterr().err
