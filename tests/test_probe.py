"""The probe: what a client does with it is in its trace; the challenge and what ``exercised`` says of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sdk import callbacks

from mcplab import ABSENT, exercised, handshake, read_trace, spec
from mcplab.live import standing
from mcplab.live.merging import merged
from mcplab.live.probe import Probe
from mcplab.live.server import challenge
from mcplab.live.server.__main__ import config_of, parser
from mcplab.model import SpecError, TraceError, UsageError

ROOT = Path(__file__).parents[1]
ALL = {"roots": {}, "sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}, "url": {}}}
CALLS = [("tools/call", {"name": "echo"})] * 8  # a modern client that is asked for too much gives its call up

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::mcp.MCPDeprecationWarning")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def outcomes(trace: Any) -> dict[str, str]:
    table = exercised(trace)
    table = table[(table["party"] == "client") & table["outcome"].notna()]
    return dict(zip(table["path"], table["outcome"], strict=True))


def connected(probe: Probe, **options: Any) -> Any:
    """Our own client, started with nothing but what the configuration says."""
    (entry,) = probe.configuration["mcpServers"].values()
    target = entry["url"] if "url" in entry else [entry["command"], *entry["args"]]
    return handshake(target, **options)


# What it records -----------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_trace_holds_what_the_client_saw(transport, mode, tmp_path):
    with Probe(tmp_path / "mine.jsonl", transport=transport) as probe:
        shake = connected(probe, mode=mode, declare={"roots": {}}, then=[("tools/list", None)])
    trace = read_trace(probe.path)
    assert list(trace.messages["message"]) == list(shake.trace.messages["message"])
    assert trace.header["server_mode"] == "dual"
    assert trace.header["config"]["recorder"] == "probe"
    assert os.stat(probe.path).st_mode & 0o777 == 0o600
    if mode == "legacy":  # nobody is asked for anything without --challenge
        assert shake.asked == ()


def test_a_file_s_name_is_no_pattern(tmp_path):
    (tmp_path / "a1.jsonl").touch()
    with Probe(tmp_path / "a[1]**.jsonl", transport="stdio") as probe:
        connected(probe)
    assert [path.name for path in probe.paths] == ["a[1]**.jsonl"]


def test_each_start_by_a_client_leaves_a_file_and_the_trace_holds_them_apart(tmp_path):
    (tmp_path / "mine-2.jsonl").write_text("somebody else's\n")
    probe = Probe(tmp_path / "mine.jsonl", transport="stdio", serves="legacy")
    assert probe.path == tmp_path / "mine.jsonl"
    with pytest.raises(TraceError, match="no client came"):
        probe.trace()
    first, second = connected(probe), connected(probe, declare={"roots": {}})
    assert [path.name for path in probe.paths] == ["mine.jsonl", "mine-3.jsonl"]
    trace = probe.trace(label="twice")
    assert trace.header["label"] == "twice"
    assert list(trace.connections["conn"]) == ["c1", "c2"]
    sent = trace.messages.groupby("conn")["message"].apply(list)
    assert sent["c1"] == list(first.trace.messages["message"])
    assert sent["c2"] == list(second.trace.messages["message"])
    assert list(trace.events["seq"]) == list(range(len(trace)))


def test_merging_goes_by_the_clock_and_never_against_the_order_of_a_trace():
    def made(*clock: int) -> Any:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        events = [{"kind": "message", "seq": n, "mono": at, "conn": "c1", "dir": "c2s", "msg": ping | {"id": at}}
                  for n, at in enumerate(clock)]  # fmt: skip
        return read_trace([{"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}, *events])

    both = merged([made(10, 30, 25, 40), made(20, 26)])
    assert list(both.messages["id"]) == ["10", "20", "26", "30", "25", "40"]
    assert list(both.messages["conn"]) == ["c1", "c2", "c2", "c1", "c1", "c1"]


def test_secrets_are_masked(tmp_path):
    call = ("tools/call", {"name": "echo", "arguments": {"password": "hunter2", "note": "private"}})
    with Probe(tmp_path / "mine.jsonl", redact=["note"]) as probe:
        connected(probe, mode="legacy", then=[call])
    text = probe.path.read_text()
    assert "hunter2" not in text
    assert "private" not in text
    assert "password" in text


def test_what_a_probe_declares_and_speaks(tmp_path):
    with Probe(tmp_path / "a.jsonl", capabilities={"tools": {}}, versions=["2025-06-18"]) as probe:
        shake = connected(probe)
    assert (shake.server, shake.label) == ({"tools": {}}, "2025-06-18 (legacy)")
    with pytest.raises(SpecError, match="serves 'both' is none"):
        Probe(tmp_path / "b.jsonl", serves="both")
    with pytest.raises(UsageError, match="speaks stdio or http"):
        Probe(tmp_path / "b.jsonl", transport="sse")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not started"):
        _ = Probe(tmp_path / "b.jsonl").configuration


# Challenge -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", list(spec.REVISIONS))
def test_the_questions_cover_every_path_that_a_server_may_ask_for(revision):
    kinds = ("request", "input-request")
    may = {
        path for path, gates in spec.gates(revision, "client").items()
        if any(gate.direction == "s2c" and gate.kind in kinds for gate in gates)
    }  # fmt: skip
    asked = {want.needs for want in challenge.questions(revision)} - {""}
    # asked with what stands below it, or (tasks/get, tasks/cancel) once there is a task
    implied = {path for path in may if any(one.startswith(f"{path}.") for one in asked)} | {"tasks.cancel"}
    assert asked <= may
    assert may - implied <= asked
    legacy = spec.era(revision) == "legacy"
    assert ("ping" in {want.method for want in challenge.questions(revision)}) is legacy


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("listen", [True, False])
def test_a_legacy_client_is_asked_for_everything(transport, listen, tmp_path):
    with Probe(tmp_path / "mine.jsonl", transport=transport, challenge=True) as probe:
        shake = connected(probe, mode="legacy", declare=ALL, listen=listen, then=[("tools/list", None), 1.0])
    due = [want.method for want in challenge.questions("2025-11-25")]
    assert [one["method"] for one in shake.asked][: len(due)] == due  # each once, tasks/get and tasks/cancel after it
    said = outcomes(probe.trace())
    for path in ("roots", "sampling", "sampling.tools", "sampling.context", "elicitation.form", "elicitation.url"):
        assert said[path] == "declared and works"
    assert said["ping"] == "works"
    assert said["tasks.list"] == "undeclared and refused"
    assert said["tasks"] == "undeclared and refused"


def test_what_is_declared_and_fails_is_told_from_what_is_refused_as_it_should_be(tmp_path):
    with Probe(tmp_path / "mine.jsonl", transport="stdio", challenge=True) as probe:
        connected(probe, mode="legacy", declare={"tasks": {"list": {}}}, then=[("tools/list", None), 1.0])
    said = outcomes(probe.trace())
    assert said["tasks.list"] == "declared and fails"  # our client has no tasks
    assert said["roots"] == "undeclared and refused"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_modern_client_is_asked_in_rounds_what_it_declared_first(transport, tmp_path):
    with Probe(tmp_path / "mine.jsonl", transport=transport, challenge=True) as probe:
        shake = connected(probe, declare={"elicitation": {}}, then=CALLS)
    assert shake.asked[0]["method"] == "elicitation/create"
    said = outcomes(probe.trace())
    assert said["elicitation.form"] == "declared and works"
    assert said["roots"] == "undeclared and unanswered"
    assert shake.results[-1].result["resultType"] == "complete"  # all was asked: now the tool runs


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("given", [(), ("roots",), ("sampling", "elicitation")])
def test_the_official_sdk_client_is_challenged(mode, given, tmp_path):
    import anyio
    import mcp

    parameter = {"roots": "list_roots_callback", "sampling": "sampling_callback",
                 "elicitation": "elicitation_callback"}  # fmt: skip
    chosen = {parameter[one]: callbacks()[parameter[one]] for one in given}

    async def talk(url: str) -> None:
        async with mcp.Client(url, mode=mode, **chosen) as client:
            for _ in CALLS:
                with contextlib.suppress(mcp.MCPError):  # it gives a call up where it cannot give what is asked
                    assert (await client.call_tool("echo", {"text": "hi"})).content

    with Probe(tmp_path / "mine.jsonl", challenge=True) as probe:
        anyio.run(talk, probe.url)
    said = outcomes(probe.trace())
    for path in ("roots", "sampling", "elicitation"):
        works = said[path].endswith("works")
        assert works is (path in given), (path, said)
        assert said[path].startswith("declared") is (path in given)


# The command ---------------------------------------------------------------------------------------


def test_the_command_prints_what_a_client_needs(tmp_path):
    words = [sys.executable, "-m", "mcplab", "probe", "-o", str(tmp_path / "mine.jsonl"), "--serves", "legacy",
             "--server-capabilities", '{"tools": {}}', "--challenge", "--redact", "note"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    (entry,) = json.loads(done.stdout)["mcpServers"].values()
    assert not list(tmp_path.iterdir())
    shake = handshake([entry["command"], *entry["args"]])
    assert (shake.era, shake.server) == ("legacy", {"tools": {}})
    header = read_trace(tmp_path / "mine.jsonl").header
    assert header["config"]["challenge"] is True
    assert header["server_mode"] == "legacy"


def test_what_a_client_starts_needs_no_command_line(tmp_path):
    """The command that ``configuration`` names is understood without loading the program that parses all of them."""
    options = {"capabilities": {"tools": {}}, "versions": ["2025-06-18"], "instructions": ABSENT, "session_id": ""}
    probe = Probe(
        tmp_path / "m.jsonl", transport="stdio", redact=["note"], keep_secrets=True, challenge=True, **options
    )
    given = standing.plain_words(probe.command[4:])
    assert given is not None
    assert config_of(parser().parse_args(given.pop("server"))) == probe.config
    assert given == {"output": tmp_path / "m.jsonl", "redact": ["note"], "keep_secrets": True}
    for words in ([], ["--http", "-o", "a"], ["--stdio"], ["--stdio", "-o"], ["--stdio", "-o", "a", "--help"]):
        assert standing.plain_words(words) is None


def test_the_command_serves_http_until_it_is_interrupted(tmp_path):
    words = [sys.executable, "-m", "mcplab", "probe", "--http", "-o", str(tmp_path / "mine.jsonl")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, *entry = iter(process.stdout.readline, "}\n")
        try:
            shake = handshake(url.strip())
        finally:
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert json.loads("".join([*entry, "}"]))["mcpServers"]["mcplab-probe"]["url"] == url.strip()
    assert "events in" in told
    assert process.returncode == 0
    assert list(read_trace(tmp_path / "mine.jsonl").messages["message"]) == list(shake.trace.messages["message"])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--stdio", "--http"], "not both"),
        (["--server-capabilities", "{no"], "--server-capabilities"),
        (["--serves", "both"], "serves"),
        (["--versions", "2026-07-28", "--serves", "legacy"], "no version left"),
    ],
)
def test_wrong_use_is_one_line(more, told, tmp_path):
    words = [sys.executable, "-m", "mcplab", "probe", "-o", str(tmp_path / "m.jsonl"), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
