"""``observe``: a client by recipe in a private folder, nothing of it left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mcplab import exercised, observe
from mcplab.live import observing, recipes
from mcplab.live.observing import ObserveError
from mcplab.model import UsageError

ROOT = Path(__file__).parents[1]

CLIENT = """
import json, os, subprocess, sys, time
sys.path.insert(0, {root!r})
from mcplab import handshake

where = os.environ["MCPLAB_URL"] or [os.environ["MCPLAB_COMMAND"]]
seen = dict(os.environ), os.getcwd(), os.listdir(os.environ["HOME"]), open(os.environ["HOME"] + "/settings.json").read()
json.dump(seen, open({report!r}, "w"))
for _ in range(int(os.environ["TIMES"])):
    handshake(where, mode=os.environ["MODE"], declare=json.loads(os.environ["DECLARE"]), then=[("tools/list", None), 1.0])
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A recipe whose client is our own handshake, and what its process saw of its surroundings."""
    monkeypatch.setenv("API_TOKEN", "a secret of the user's")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "stand-in"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def write(script: str = CLIENT, *, more: str = "", ends: bool = True) -> Path:
        text = script.format(root=str(ROOT), report=str(tmp_path / "report.json"))
        file = tmp_path / "stand-in.toml"
        file.write_text(f"""
client = "stand-in"
about = "Our own handshake"
installer = "path"
program = "stand-in"
command = ["{{{{bin}}}}/stand-in", "{{{{scripts}}}}/client.py"]
ends = {str(ends).lower()}
seconds = 60

[entry]
stdio = "{{{{command}}}}"
http = "{{{{url}}}}"

[[files]]
path = "{{{{scripts}}}}/client.py"
text = '''{text}'''

[[files]]
path = "{{{{home}}}}/settings.json"
text = '{{{{entry}}}} {{{{word}}}}'

[text]
word = "plain"

[env]
MODE = "auto"
DECLARE = "{{}}"
TIMES = "1"

[configs.default]
[configs.roots]
env = {{ DECLARE = '{{"roots": {{}}}}', MODE = "legacy" }}
text = {{ word = "with roots" }}
[configs.twice]
env = {{ TIMES = "2" }}
{more}
""")
        return file

    return write


def report(tmp_path: Path) -> tuple[dict[str, str], str, list[str], str]:
    return tuple(json.loads((tmp_path / "report.json").read_text()))  # type: ignore[return-value]


# One run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(("config", "path"), [(None, "$"), ("roots", "roots")])
def test_a_client_is_seen_as_it_is_configured(transport, config, path, made, tmp_path):
    trace = observe(made(), config=config, transport=transport)
    python = ".".join(map(str, sys.version_info[:3]))  # what the program says to --version
    assert trace.header["client"] == {"name": "stand-in", "version": python}
    assert trace.name == f"stand-in-{python}-{transport}-dual-{config or 'default'}"
    assert trace.header["label"] == (config or "default")
    assert trace.header["server_mode"] == "dual"
    assert trace.header["config"]["ended"] == "by itself"
    said = trace.declarations[trace.declarations["party"] == "client"]
    assert set(said["path"]) == {"$", path}
    assert set(said["config"]) == {config or "default"}
    (row,) = trace.connections[["era", "client_info"]].drop_duplicates().to_numpy().tolist()
    assert row == ["legacy" if config else "modern", "mcplab"]
    *_, settings = report(tmp_path)
    assert settings.endswith(" with roots" if config else " plain")


def test_home_and_environment_are_private_and_gone_afterwards(made, tmp_path):
    observe(made())
    environment, work, home, _ = report(tmp_path)
    assert "API_TOKEN" not in environment
    assert environment["HOME"] != os.environ.get("HOME")
    assert environment["HTTPS_PROXY"] == observing.CLOSED
    assert environment["DO_NOT_TRACK"] == "1"
    assert home == ["settings.json"]
    private = Path(environment["HOME"]).parent
    assert Path(work).parent == private
    assert not private.exists()


@pytest.mark.skipif(not observing.isolates(), reason="no unprivileged unshare here")
def test_over_stdio_a_client_reaches_this_machine_alone(made, tmp_path):
    script = CLIENT + """
import socket
with open("/proc/net/dev") as devices:
    json.dump([line.split(":")[0].strip() for line in devices if ":" in line], open({report!r} + ".net", "w"))
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
"""  # fmt: skip
    trace = observe(made(script))
    assert trace.header["config"]["network"] == "loopback only"
    assert json.loads((tmp_path / "report.json.net").read_text()) == ["lo"]


def test_a_client_that_starts_its_server_twice_is_one_trace(made):
    trace = observe(made(), config="twice")
    assert list(trace.connections["conn"]) == ["c1", "c2"]
    assert trace.connections["instance"].nunique() == 1
    assert trace.events["ts"].is_monotonic_increasing


def test_two_servers_are_two_instances(made):
    script = CLIENT.replace('where = os.environ["MCPLAB_URL"] or [os.environ["MCPLAB_COMMAND"]]\n', "") + ""
    script = script.replace("handshake(where,", "[handshake([one], declare={{name: {{}}}}) for name, one in "
                            'zip(("roots", "sampling"), os.environ["BOTH"].split())]; handshake([one],')  # fmt: skip
    script = script.replace("for _ in", "one = os.environ['MCPLAB_COMMAND']\nfor _ in")
    more = "[configs.both]\nenv = { BOTH = '{{command}} {{command_b}}' }\ntext = { word = '{{entry_b}}' }\n"
    trace = observe(made(script, more=more), config="both")
    said = trace.declarations[(trace.declarations["party"] == "client") & (trace.declarations["path"] != "$")]
    assert said.groupby("server")["path"].agg(set).to_dict() == {
        "mcplab-probe": {"roots"},
        "mcplab-probe-b": {"sampling"},
    }
    assert trace.connections.groupby("server")["instance"].nunique().to_dict() == {
        "mcplab-probe": 1,
        "mcplab-probe-b": 1,
    }
    assert trace.connections["instance"].nunique() == 2


def test_a_challenge_goes_along(made):
    used = exercised(observe(made(), config="roots", challenge=True)).set_index(["party", "path"])
    assert used.loc[("client", "roots"), "outcome"] == "declared and works"
    assert used.loc[("client", "sampling"), "outcome"] == "undeclared and refused"


# Its end -------------------------------------------------------------------------------------------


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are adopted on Linux alone")

ESCAPES = """
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
def escaped():
    reader, writer = os.pipe()
    if os.fork() == 0:  # twice, with a session, folder and environment of its own
        os.setsid()
        if (pid := os.fork()) != 0:
            os.write(writer, str(pid).encode())
            os._exit(0)
        os.chdir("/")
        for fd in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        os.execve(sys.executable, [sys.executable, "-I", "-c", code], {{}})
    os.wait()
    return int(os.read(reader, 20))
pids = [escaped(), subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=-3, stdout=-3).pid]
json.dump(pids, open({report!r} + ".pids", "w"))
"""


def running(pid: int) -> bool:
    """Is it there, other than as what a parent has not looked at?"""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def within(folder: Path) -> list[str]:
    """Processes that have a folder in their environment, or work in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = os.readlink(entry / "cwd").startswith(f"{folder}/")
            if entry.name != str(os.getpid()) and (place or bytes(folder) in (entry / "environ").read_bytes()):
                found.append(entry.name)
    return found


@LINUX
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_what_it_starts_is_ended_daemons_too(transport, made, tmp_path):
    """One of them keeps nothing that it got from its parents, and does not end when it is asked to."""
    observe(made(CLIENT + ESCAPES), transport=transport)
    pids = json.loads((tmp_path / "report.json.pids").read_text())
    assert len(pids) == 2
    assert not any(map(running, pids))
    assert within(tmp_path) == []
    assert not list(tmp_path.glob("mcplab-observe-*"))


@LINUX
def test_what_it_did_not_start_is_left_alone(made, tmp_path):
    """A child of ours, and one whose parent has ended, both with the look of a client's: begun before, and meanwhile."""
    words = ["sh", "-c", "sleep 600 & echo $!; exec sleep 600"]
    env = {**os.environ, "HOME": str(tmp_path)}
    ours = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, start_new_session=True)
    orphan = subprocess.run(
        ["sh", "-c", "setsid sleep 600 >/dev/null & echo $!"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, check=True
    )
    assert ours.stdout is not None
    pids = [ours.pid, int(ours.stdout.readline()), int(orphan.stdout)]
    try:
        observe(made(CLIENT + ESCAPES))
        assert all(map(running, pids))
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        ours.communicate()


def test_one_that_does_not_end_is_ended_once_it_is_connected(made):
    trace = observe(made(CLIENT + "time.sleep(600)\n", ends=False))
    assert trace.header["config"]["ended"] == "once connected"
    assert "tools/list" in set(trace.messages["method"])


def test_one_that_has_come_and_stays_too_long_is_kept(made):
    trace = observe(made(CLIENT + "time.sleep(600)\n"), seconds=8)
    assert trace.header["config"]["ended"] == "after 8 s"
    assert len(trace.messages)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import sys; sys.exit('no such model')", "status 1; its last words: no such model"),
        ("pass", "status 0 and said nothing"),
        ("import time; print('waiting', flush=True); time.sleep(600)", "ended after 2 s, status None; its last words"),
    ],
)
def test_one_that_never_comes_is_an_error(script, told, made, tmp_path):
    with pytest.raises(ObserveError, match="never came to the probe") as caught:
        observe(made(script), seconds=2 if "sleep" in script else 30)
    assert told in str(caught.value)
    assert within(tmp_path) == []
    assert not list(tmp_path.glob("mcplab-observe-*"))


def test_wrong_use(made):
    with pytest.raises(UsageError, match="no recipe for 'nobody'"):
        observe("nobody")
    with pytest.raises(UsageError, match="no configuration 'x': use default, roots, twice"):
        observe(made(), config="x")
    with pytest.raises(UsageError, match="not run over sse"):
        observe(made(), transport="sse")
    with pytest.raises(UsageError, match="speaks legacy, modern or dual"):
        observe(made(), serves="all")


# The command ---------------------------------------------------------------------------------------


def command(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "mcplab", "observe", *words], capture_output=True, text=True, check=False, env=env
    )


def test_the_command(made, tmp_path):
    listed = command("--list", "--format", "json", "--cache", str(tmp_path))
    rows = json.loads(listed.stdout)
    assert {row["client"] for row in rows} == set(recipes.names())
    assert not any(row["installed"] for row in rows if row["installer"] != "path")
    assert "two-servers" in command("--list", "fast-agent").stdout
    done = command(str(made()), "--config", "roots", "-o", str(tmp_path / "seen.jsonl"))
    assert (done.returncode, "roots" in done.stdout) == (0, True), done.stderr
    assert re.search(r"^stand-in 3\.\d+\.\d+, roots, stdio$", done.stderr, re.MULTILINE)
    assert (tmp_path / "seen.jsonl").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_whoever_ends_the_command_ends_what_it_started(name, made, tmp_path):
    words = [sys.executable, "-m", "mcplab", "observe", str(made(CLIENT + "time.sleep(600)\n"))]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60
    while not (tmp_path / "report.json").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.glob("mcplab-observe-*"))
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert not list(tmp_path.glob("mcplab-observe-*"))
    assert within(tmp_path) == []


@LINUX
def test_nothing_stays_even_if_the_command_is_killed(made, tmp_path):
    words = [sys.executable, "-m", "mcplab", "observe", str(made(CLIENT + ESCAPES + "time.sleep(600)\n"))]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL)
    noted = tmp_path / "report.json.pids"
    until = time.monotonic() + 60
    while not (noted.exists() and noted.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while (any(map(running, json.loads(noted.read_text()))) or within(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(running, json.loads(noted.read_text())))
    assert within(tmp_path) == []
    while list(tmp_path.glob("mcplab-observe-*")) and time.monotonic() < until:
        time.sleep(0.1)
    assert not list(tmp_path.glob("mcplab-observe-*"))


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ((), 2, "which client"),
        (("nobody",), 2, "no recipe for 'nobody'"),
        (("fastmcp", "--cache", "/nowhere"), 1, "mcplab observe --install fastmcp"),
        (("goose", "--install", "--cache", "/nowhere"), 1, "goose"),
    ],
)
def test_what_goes_wrong_is_one_line(words, status, told):
    done = command(*words)
    assert done.returncode == status
    assert told in done.stderr
    assert "Traceback" not in done.stderr
