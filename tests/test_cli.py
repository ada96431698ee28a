"""The command line: what it prints, its exit status, one line for every error, and how little it loads."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mcplab import cli
from mcplab.cli import app, run
from mcplab.traces import make_trace, read_trace

ROOT = Path(__file__).parents[1]
NEEDS_LAB = pytest.mark.skipif(not importlib.util.find_spec("papermill"), reason="needs mcplab[lab]")
HEAVY = ("pandas", "matplotlib", "IPython", "mcp", "msgspec", "pyarrow", "numpy")
COMMANDS = ("read", "compare", "diff", "reach", "timeline", "report", "convert")
TWO_A = "bundled:fast-agent-0.10.48-stdio-legacy-two-servers-A"
TWO_B = "bundled:fast-agent-0.10.48-stdio-dual-two-servers-B"
ROOTS = "bundled:fast-agent-0.10.48-http-legacy-roots"


def initialize(capabilities: object, name: str = "mystery-client", version: str = "1.0") -> list[tuple[str, object]]:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": version},
    }
    answer = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    return [
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": answer}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def invoke(*arguments: str) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def process(*arguments: str, cwd: Path = ROOT, **how) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "mcplab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False, timeout=120, **how)


# Help and wrong use --------------------------------------------------------------------------------


def test_the_commands_are_these():
    assert set(COMMANDS) <= {info.callback.__name__ for info in app.registered_commands}  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command, capsys):
    assert run([*command.split(), "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"Usage: mcplab {command}".rstrip())
    assert shown.err == ""


def test_every_command_says_what_it_does():
    for info in app.registered_commands:
        assert info.callback is not None
        assert (info.callback.__doc__ or "").strip(), info.callback.__name__


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("mcplab 0.")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "name a command: "),
        ("nonsense", "No such command 'nonsense'"),
        ("read --nonsense", "No such option"),
        ("read --format xml", "'xml' is not one of"),
        ("read --table nonsense", "no table 'nonsense'; there are connections, messages"),
        ("read bundled:opencode --columns client,nonsense", "no column nonsense; connections has trace"),
        ("compare bundled:opencode --by nonsense", "--by: nonsense is none of client, client_version"),
        ("compare bundled:opencode --party nobody", "--party: nobody is none of client, server"),
        ("diff one", "Missing argument 'B'"),
        ("diff missing.jsonl {}", "no such file"),  # 1 says that they differ
        ("diff {x {}", "no JSON to compare"),
        ("diff a b --party nobody", "--party: nobody is none of client, server"),
        ("reach", "Missing argument 'PATH...'"),
        ("timeline", "Missing argument 'TRACE'"),
        ("timeline x --steps 0", "--steps"),
        ("timeline x --step-seconds 0", "--step-seconds: 0.0 is not longer than nothing"),
        ("timeline x --axis sideways", "--axis: sideways is none of time, seq"),
        ("convert one", "Missing argument 'OUT'"),
        ("reach a..b", "is no capability path"),
        ("handshake DEMO --request tools/list {", "--request tools/list: its params are no JSON"),
        ("timeline bundled:opencode", "9 captures, and this command takes one"),
        (f"timeline {ROOTS} --end whenever", "is no time"),
        (f"convert {ROOTS} out.jsonl --to nonsense", "no format 'nonsense'"),
        (f"compare {ROOTS} -o out.xyz", "cannot export to 'out.xyz'"),
        ("demo --http 99999", "65535"),
        ("demo --serves nobody", "nobody"),
        ("demo --fault nonsense", "nonsense"),
        ("handshake DEMO --mode nonsense", "nonsense"),
    ],
)
def test_wrong_use_is_one_line_and_2(line, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert says in shown.err
    assert shown.err.rstrip().endswith("--help explains)")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("read missing.jsonl", "missing.jsonl: no such file"),
        ("read bundled:opencod", "no bundled capture or client of that name; near it: opencode"),
        ("read nothing-*.jsonl", "no file matches"),
        ("read bundled:opencode --client nobody", "no capture of client 'nobody'; these captures have: opencode"),
        ("compare missing.jsonl", "no such file"),
        (f"timeline {ROOTS} --instance nobody", "no instance 'nobody'"),
        ("convert missing.jsonl out.jsonl", "no such file"),
        pytest.param("report missing.jsonl -o out", "no such file", marks=NEEDS_LAB),
    ],
)
def test_failure_is_one_line_and_1(line, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert says in shown.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    lines = [["convert", ROOTS, str(tmp_path / "file/out.jsonl")]]
    if importlib.util.find_spec("papermill"):
        lines.append(["report", ROOTS, "-o", str(tmp_path / "file")])
    for line in lines:
        assert run(line) == 1
        error = capsys.readouterr().err.splitlines()
        assert "cannot be written" in error[-1] or "not a directory" in error[-1] or "exists" in error[-1]


def test_a_bug_is_not_hidden(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("mcplab.cli.tables.captures", broken)
    with pytest.raises(ZeroDivisionError):
        run(["read"])


# As a process --------------------------------------------------------------------------------------


def test_exit_status_of_the_process(tmp_path):
    assert process("read", "bundled:opencode").returncode == 0
    wrong = process("read", "--nonsense")
    assert (wrong.returncode, wrong.stdout, len(wrong.stderr.splitlines())) == (2, "", 1)
    failed = process("read", "missing.jsonl", cwd=tmp_path)
    assert (failed.returncode, failed.stdout, len(failed.stderr.splitlines())) == (1, "", 1)
    assert "Traceback" not in wrong.stderr + failed.stderr


@pytest.mark.parametrize("lines", [0, 1])
def test_a_reader_that_goes_away_is_no_error(lines):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mcplab", "read", "--table", "messages", "--format", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for _ in range(lines):
            child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=60) == 0


def test_names_that_the_terminal_cannot_show():
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "mcplab", "compare", "bundled:opencode"]
    done = subprocess.run(command, capture_output=True, env=env, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0
    assert b"roots" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="a shell's way to close a stream")
def test_closed_streams():
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    for line, status in ((" read bundled:opencode >&-", 0), (" show nothing-here 2>&-", 1)):
        command = f"{sys.executable} -m mcplab{line}"
        done = subprocess.run(command, shell=True, capture_output=True, env=env, cwd=ROOT, check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


def test_the_start_is_cheap():
    """What ``--help`` costs is benchmarks/bench_start.py; here that it loads few modules, which no load changes."""
    code = "import sys\nfrom mcplab.cli import run\nrun(['--help'])\nprint(len(sys.modules), file=sys.stderr)"
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True, timeout=60)
    assert int(done.stderr) < 250  # pandas alone would be a thousand


@pytest.mark.parametrize(
    "line", ["import mcplab", "import mcplab.cli", "from mcplab.cli import run; run(['read', '-h'])"]
)
def test_nothing_heavy_is_loaded_at_the_start(line):
    code = f"{line}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True, timeout=60)
    loaded = done.stdout.splitlines()[-1]
    assert loaded == "[]" or (loaded == "['msgspec']" and "cli" in line)  # the errors stand in a module that uses it


# What they print -----------------------------------------------------------------------------------


def test_read_shows_a_row_a_connection():
    lines = invoke("read", "bundled:opencode").splitlines()
    assert lines[0].split() == ["trace", "conn", "client", "client_version", "transport", "label", "discovery", "calls"]
    assert len(lines) == 10
    assert "opencode/opencode-1.3.2-stdio-legacy-mcp-list" in lines[-1]
    assert "2025-11-25 (legacy)" in lines[-1]


def test_read_takes_bundled_captures_when_no_trace_is_named():
    rows = list(csv.DictReader(io.StringIO(invoke("read", "--client", "cline", "--format", "csv"))))
    assert {row["client"] for row in rows} == {"cline"}
    assert len({row["trace"] for row in rows}) == 7


def test_read_formats_say_the_same():
    table = ("read", ROOTS, "--table", "messages")
    from_json = json.loads(invoke(*table, "--format", "json"))
    from_csv = list(csv.DictReader(io.StringIO(invoke(*table, "--format", "csv"))))
    assert [row["method"] for row in from_json] == [row["method"] or None for row in from_csv]
    assert [row["seq"] for row in from_json] == [int(row["seq"]) for row in from_csv]
    assert from_json[0]["part"] is None
    assert from_json[0]["ts"].startswith("2026-11-30T")
    assert json.loads(from_json[0]["message"])["method"] == "server/discover"
    assert invoke(*table, "--format", "md").startswith("| trace | seq | ts | sender |")
    assert list(from_csv[0]) == list(read_trace(cli_path(ROOTS)).messages.columns)


def cli_path(name: str) -> Path:
    from mcplab.sources import resolve

    return resolve(name)


def test_read_shows_the_columns_that_are_asked_for():
    assert invoke("read", "bundled:opencode", "--columns", "client,server").splitlines()[1].split() == [
        "opencode",
        "capsrv",
    ]
    assert "instance" in invoke("read", ROOTS, "--columns", "all").splitlines()[0].split()


def test_a_file_that_cannot_be_read_is_noted_and_the_rest_shown(tmp_path, capsys):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("hello")
    assert run(["read", str(bad), ROOTS]) == 1  # it was named
    shown = capsys.readouterr()
    assert "http-legacy-roots" in shown.out
    assert shown.err.count("\n") == 1
    assert "left out 1 of 2: bad.jsonl: not a trace" in shown.err
    make_trace(initialize({})).save(tmp_path / "good.jsonl")
    assert run(["read", str(tmp_path)]) == 0  # a folder may hold other files
    assert "left out 1 of 2" in capsys.readouterr().err


def test_compare_as_words_and_as_symbols(monkeypatch):
    narrow = invoke("compare", "bundled:opencode")
    assert narrow.splitlines() == [
        "path   opencode 1.3.2  opencode 1.18.33",
        "$      ○ empty         ● object",
        "roots  · absent        ○ empty",
    ]
    wide = invoke("compare")
    assert "fast-agent 0.10.48" in wide
    assert wide.splitlines()[0].split() == ["a", "$"]
    assert "~ varies" in wide.splitlines()[-1]


def test_compare_by_another_key_and_the_other_party():
    rows = json.loads(invoke("compare", TWO_A, "--by", "trace", "--party", "server", "--long", "--format", "json"))
    assert {row["path"]: row["state"] for row in rows}["tools"] == "empty"
    assert rows[0]["evidence"].startswith("fast-agent/fast-agent-0.10.48-stdio-legacy-two-servers-A#")


def test_a_trace_of_ones_own_joins_the_bundled_ones(tmp_path):
    make_trace(initialize({"roots": {}})).save(tmp_path / "mine.jsonl")
    rows = json.loads(invoke("compare", str(tmp_path / "mine.jsonl"), "bundled:cline", "--format", "json"))
    assert rows[0] == {"path": "$", "cline 3.0.65": "empty", "mystery-client 1.0": "object"}


def test_diff_says_1_when_they_differ(capsys):
    assert run(["diff", TWO_A, TWO_B]) == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    assert [line.split()[:4] for line in shown.out.splitlines()[1:3]] == [
        ["client", "roots", "object", "absent"],
        ["client", "roots.listChanged", "true", "absent"],
    ]
    assert run(["diff", TWO_A, TWO_A]) == 0
    assert capsys.readouterr().out == ""
    assert run(["diff", "{}", '{"roots":null}', "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[-1]["b"] == "null"


def test_reach_asks_whether_a_path_that_nobody_knows_is_meant(capsys):
    for path, meant in (("elicitation.ur", "did you mean elicitation.url"), ("elicitation.url", ""), ("telepathy", "")):
        assert run(["reach", path, "-t", "bundled:cline"]) == int(bool(meant))
        assert capsys.readouterr().err.strip("\n").endswith(f"{meant}, elicitation, elicitation.form?" if meant else "")


def test_a_table_without_rows_says_so(tmp_path, capsys):
    file = str(make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]).save(tmp_path / "a.jsonl"))
    assert run(["read", file, "--table", "declarations"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["(no rows)"]


def test_reach():
    rows = {
        (row["client"], row["client_version"]): row
        for row in json.loads(invoke("reach", "elicitation.url", "sampling.tools", "--format", "json"))
    }
    assert rows["cline", "3.0.65"]["elicitation.url"] == "no"
    assert rows["fast-agent", "0.10.48"]["sampling.tools"] == "varies"
    assert len(json.loads(invoke("reach", "roots", "-t", "bundled:codex", "-t", "bundled:cline", "-f", "json"))) == 3


def test_timeline_is_a_line_a_channel():
    lines = invoke("timeline", ROOTS).splitlines()
    assert lines[0] == "fast-agent/fast-agent-0.10.48-http-legacy-roots" or lines[0] == ROOTS.removeprefix("bundled:")
    strip = lines[1].removeprefix("  POST (JSON)  ")
    assert len(strip) == 60
    assert strip.strip("·")[0] == "✖"  # the refused discovery comes first
    assert "60 segments of 0.02 s" in lines[-2]
    assert len(invoke("timeline", ROOTS, "--steps", "10", "--step-seconds", "0.5").splitlines()[1].split()[-1]) == 10


def test_timeline_of_a_trace_without_a_clock(tmp_path, capsys):
    file = str(make_trace(initialize({})).save(tmp_path / "mine.jsonl"))
    assert run(["timeline", file]) == 1
    assert "--axis seq" in capsys.readouterr().err
    assert "STDIO  ◆▼●" in invoke("timeline", file, "--axis", "seq")


def test_charts_and_tables_go_to_files(tmp_path):
    assert run(["compare", "bundled:opencode", "-o", str(tmp_path / "matrix.svg")]) == 0
    assert "<svg" in (tmp_path / "matrix.svg").read_text(encoding="utf-8")
    assert run(["timeline", ROOTS, "-o", str(tmp_path / "time.png")]) == 0
    for given in ((), ("--axis", "seq")):
        assert run(["timeline", ROOTS, *given, "-o", str(tmp_path / "time.svg")]) == 0
        assert "1 capture of 1 client in 1 release (2026-11-30); input SHA-256 " in (tmp_path / "time.svg").read_text()
    assert (tmp_path / "time.png").read_bytes().startswith(b"\x89PNG")
    assert run(["reach", "roots", "-t", "bundled:opencode", "-o", str(tmp_path / "reach.csv")]) == 0
    assert (
        tmp_path / "reach.csv"
    ).read_text() == "client,client_version,roots\nopencode,1.3.2,no\nopencode,1.18.33,yes\n"


def test_convert_keeps_every_message(tmp_path, capsys):
    assert run(["convert", ROOTS, str(tmp_path / "copy.jsonl")]) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'copy.jsonl'}\n"
    before, after = read_trace(cli_path(ROOTS)), read_trace(tmp_path / "copy.jsonl")
    assert [event.text for event in before] == [event.text for event in after]


def test_names_from_a_trace_do_no_harm(tmp_path, capsys):
    evil = "\x1b[31mred\x07\u202egnirts\nnew"
    trace = make_trace(initialize({"experimental": {f"x{evil}": {}}}, evil, "\x9b2J"))
    file = str(trace.save(tmp_path / "mine.jsonl"))
    shown = ""
    for line in (
        ["read", file], ["read", file, "-f", "csv"], ["read", file, "-f", "md"], ["read", file, "-f", "json"],
        ["read", file, "-t", "messages"], ["read", file, "-t", "declarations", "--columns", "all"],
        ["compare", file], ["compare", file, "-f", "md"], ["compare", file, "-f", "csv"], ["reach", "roots", "-t", file],
        ["timeline", file, "--axis", "seq"], ["read", file, "--client", "\x1b[0m"], ["read", "\x1b[2J.jsonl"],
        ["read", "--table", "\x1b[2J"],
    ):  # fmt: skip
        run(line)
        out = capsys.readouterr()
        shown += out.out + out.err
    assert "red" in shown
    for bad in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert bad not in shown
    assert r"\x1b[31mred" in shown


def test_a_new_group_of_commands_is_one_word(monkeypatch):
    assert [name for name in cli.MODULES if not (ROOT / "mcplab" / "cli" / f"{name}.py").exists()] == []


def test_check_and_its_exit_status(tmp_path):
    clean = process("check", "bundled:opencode")
    assert clean.returncode == 0
    assert "0 broken" in clean.stdout
    broken = process("check", "bundled:codex-0.171.0-stdio-legacy-asked-undeclared-roots")
    assert broken.returncode == 1
    assert "gate.roots-list" in broken.stdout
    known = tmp_path / "known.json"
    known.write_text(
        process("check", "--format", "json", "bundled:codex-0.171.0-stdio-legacy-asked-undeclared-roots").stdout
    )
    assert (
        process(
            "check", "--baseline", str(known), "bundled:codex-0.171.0-stdio-legacy-asked-undeclared-roots"
        ).returncode
        == 0
    )
    for arguments, status in (
        (["--rule", "nonsense"], 2),
        (["--level", "MAY"], 2),
        ([str(tmp_path / "none.jsonl")], 3),
    ):
        assert process("check", *arguments).returncode == status


def test_rules_and_explain():
    assert "gate.roots-list" in process("rules").stdout
    one = process("rules", "gate.roots-list").stdout
    assert "kept (" in one
    assert "broken (" in one
    assert process("rules", "nonsense").returncode == 2
    told = process("explain", "bundled:codex-0.171.0-stdio-legacy-asked-undeclared-roots", "4")
    assert told.returncode == 0
    assert "roots" in told.stdout
