"""mcplab show: what it prints, when it is coloured, and its wrong uses."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mcplab.cli import app, run
from mcplab.cli.display import coloured

ROOT = Path(__file__).parents[1]
HEADER = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}
TRACE = str(Path(__file__).with_name("fast_agent") / "mini405-auto.jsonl")


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["show", TRACE, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_show_prints_the_display():
    out = shown("--steps", "20")
    assert "protocol  2025-11-25 (legacy)\n" in out
    assert "session   sess-405\n" in out
    assert "20 segments of 1 s" in out
    assert "\x1b" not in out
    assert shown("--short").count("\n") == 3
    assert "20 segments of 0.5 s" in shown("--steps", "20", "--step-seconds", "0.5")


def test_the_page_on_the_display_quotes_it_as_it_is():
    page = (ROOT / "docs" / "display.md").read_text(encoding="utf-8")
    command, quoted = re.findall(r"`mcplab (show [^`]+)`, without colour:\n\n```\n(.*?)```", page, re.DOTALL)[0]
    _, path, *more = command.split()
    result = CliRunner().invoke(app, ["show", str(ROOT / path), *more])
    assert result.stdout == quoted


def test_the_end_can_be_a_moment_or_now():
    assert "the last from 2026-11-30 09:36:57.000 UTC; not shown: 6 later" in shown("--end", "2026-11-30T09:36:57Z")
    assert re.search(r"\(6.84 s, last \S+ \S+ ago\)", shown("--end", "now"))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--end", "yesterday or so"], 2, "is no time"),
        (["--instance", "x"], 1, "no instance 'x'"),
        (["--steps", "0"], 2, "--steps"),
        (["--step-seconds", "0"], 2, "not longer than nothing"),
    ],
)
def test_wrong_use_is_one_line(arguments, status, words, capsys):
    assert run(["show", TRACE, *arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(True)
    assert not coloured(False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(True)
    monkeypatch.setenv("NO_COLOR", "")
    assert coloured(True)
    monkeypatch.setenv("TERM", "dumb")
    assert not coloured(True)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_on_a_real_terminal(no_color):
    """A pseudo-terminal of 70 columns: steps merge, colours follow NO_COLOR."""
    master, slave = pty.openpty()
    env = os.environ | {
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "70",
        "TERM": "xterm",
        "NO_COLOR": no_color,
        "PYTHONIOENCODING": "utf-8",
    }
    with subprocess.Popen([sys.executable, "-m", "mcplab", "show", TRACE], stdout=slave, env=env) as process:
        os.close(slave)
        pieces = []
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other side has closed
                break
            if not piece:
                break
            pieces.append(piece)
        assert process.wait(60) == 0
    os.close(master)
    out = b"".join(pieces).decode()
    assert ("\x1b[" in out) is not bool(no_color)
    plain = re.sub("\x1b\\[[0-9;]*m", "", out)
    assert "steps merged into each" in plain
    assert all(len(line) <= 70 for line in plain.splitlines() if not line.startswith("mcp calls"))
    assert ("●" if not no_color else "✖") in plain


def drawn(path: Path, tmp_path: Path, *arguments: str) -> set[str]:
    """The texts of the chart that ``timeline`` writes."""
    out = tmp_path / "chart.svg"
    result = CliRunner().invoke(app, ["timeline", str(path), "-o", str(out), *arguments])
    assert result.exit_code == 0, result.output
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", out.read_text(encoding="utf-8")))


def test_a_chart_of_one_instance_or_up_to_a_moment_shows_no_more(tmp_path):
    both = tmp_path / "both.jsonl"
    rows = []
    for n, (conn, name) in enumerate((("c1", "one"), ("c2", "two"))):
        who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": who}
        rows.append({"kind": "message", "seq": n, "conn": conn, "dir": "c2s", "msg": hello})
    both.write_text("\n".join(map(json.dumps, [HEADER, *rows])), encoding="utf-8")
    assert {"both@c1", "both@c2"} <= drawn(both, tmp_path, "--axis", "seq")
    assert not {"both@c1", "both@c2"} & drawn(both, tmp_path, "--axis", "seq", "--instance", "both@c2")
    whole = drawn(Path(TRACE), tmp_path)
    assert {"tools/call", "DELETE"} <= whole
    until = drawn(Path(TRACE), tmp_path, "--end", "2026-11-30T09:36:57Z", "--steps", "20", "--step-seconds", "1")
    assert "tools/call" not in until
    assert any("one symbol per 1 s" in text for text in until)
