"""``observe``: a client by recipe in a private folder, nothing of it left behind; and the recipes that come along."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcplab import exercised, observe, read_trace
from mcplab.live import installing, observing, recipes
from mcplab.live.installing import InstallError
from mcplab.live.observing import ObserveError
from mcplab.live.recipes import Recipe, RecipeError, filled, recipe, texts
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


# Installing ----------------------------------------------------------------------------------------


def test_what_is_not_installed_says_how_to(tmp_path, monkeypatch):
    with pytest.raises(
        InstallError, match=r"mcplab observe --install fastmcp --cache .* installs fastmcp==.* with pip"
    ):
        observe("fastmcp", cache=tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InstallError, match="goose is not installed; put goose on your PATH"):
        observe("goose", cache=tmp_path)


def test_the_hint_installs_that_recipe_into_that_cache(tmp_path):
    mine = tmp_path / "my client.toml"
    mine.write_text((recipes.FOLDER / "fastmcp.toml").read_text().replace('"fastmcp==', '"no-such-thing=='))
    for cache, words in ((None, []), (tmp_path / "c", ["--cache", str(tmp_path / "c")])):
        with pytest.raises(InstallError) as caught:
            observe(mine, cache=cache)
        hint = shlex.join(["mcplab", "observe", "--install", str(mine), *words])
        assert f"fastmcp is not installed; {hint} installs no-such-thing==" in str(caught.value)


def test_the_version_of_what_a_recipe_does_not_pin(tmp_path):
    one = Recipe(client="one", about="", installer="pip", command=[], entry={}, packages=["--pre", "A.thing[x]>=1"])
    folder = installing.place(one, tmp_path)
    assert installing.version_of(one, tmp_path) == ""
    about = folder / "lib" / "python3.11" / "site-packages" / "a_thing-1.2.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: a.thing\nVersion: 1.2\n")
    assert installing.version_of(one, tmp_path) == "1.2"
    other = msgspec.structs.replace(one, installer="npm", packages=["@a/thing@next"])
    package = folder / "node_modules" / "@a" / "thing" / "package.json"
    package.parent.mkdir(parents=True)
    for text, version in (("[]", ""), ("{", ""), ('{"version": "3.4.5"}', "3.4.5")):
        package.write_text(text)
        assert installing.version_of(other, tmp_path) == version
    assert installing.version_of(msgspec.structs.replace(other, version="1"), tmp_path) == "1"


def test_the_cache_is_the_user_s(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert installing.cache_folder() == tmp_path / "mcplab" / "clients"
    assert installing.cache_folder("here") == Path.cwd() / "here"


def test_installing_with_pip_and_its_failure(tmp_path):
    """What pip has with it already, so that no registry is asked."""
    said: list[str] = []
    good = Recipe(
        client="good", about="", installer="pip", command=[], entry={}, version="1", packages=["--no-index", "pip"]
    )
    left = tmp_path / "cache" / "good-1" / "bin" / "python"  # by another interpreter, whose installation failed
    left.parent.mkdir(parents=True)
    left.symlink_to("/nowhere")
    assert installing.install(good, tmp_path / "cache", say=said.append) == tmp_path / "cache" / "good-1"
    assert installing.bin_of(good, tmp_path / "cache", "") == tmp_path / "cache" / "good-1" / "bin"
    assert any("pip install" in line for line in said)
    installing.install(good, tmp_path / "cache", say=said.append)
    assert said[-1] == "good 1 is installed"
    other = msgspec.structs.replace(good, client="other")
    with pytest.raises(InstallError, match="other: false failed with status 1"):
        installing.install(other, tmp_path / "cache", say=said.append, python="false")
    assert not installing.is_installed(other, tmp_path / "cache")


# Recipes -------------------------------------------------------------------------------------------


def every() -> list[Any]:
    found = [recipe(name) for name in recipes.names()]
    return [
        pytest.param(one, name, transport, id=f"{one.client}-{name}-{transport}")
        for one in found for name in (one.configs or {"default": None}) for transport in one.transports
    ]  # fmt: skip


def test_there_is_a_recipe_for_every_client_that_has_captures():
    bundled = {path.name for path in (ROOT / "data" / "traces").iterdir() if path.is_dir()}
    assert bundled <= set(recipes.names())
    assert len(recipes.names()) >= 30


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_says_what_it_needs(name):
    one = recipe(name)
    assert one.client == name
    assert one.about
    assert one.transports
    if one.installer == "path":
        assert one.program
        assert not one.packages
    else:
        assert one.version
        assert any(package.endswith(one.version) for package in one.packages)  # the version is pinned


@pytest.mark.parametrize(("one", "name", "transport"), every())
def test_a_recipe_can_be_filled_in(one, name, transport):
    _, config = one.configuration(name)
    places = ("home", "work", "scripts", "bin", "command", "url", "command_b", "url_b")
    values = {**{word: f"/a-{word}" for word in places}, "closed": observing.CLOSED, **texts(one, config, transport)}
    words = [filled(word, values) for word in config.command or one.command]
    given = [filled(text, values) for text in {**one.env, **config.env}.values()]
    contents = {filled(file.path, values): filled(file.text, values) for file in one.files}
    assert not any("{{" in text for text in (*words, *given, *contents.values()))
    for path, text in contents.items():
        assert path.startswith(("/a-home/", "/a-work/", "/a-scripts/"))
        if path.endswith((".json", ".yaml")):
            json.loads(text)
        elif path.endswith(".toml"):
            tomllib.loads(text)
        elif path.endswith(".py"):
            compile(text, path, "exec")
    if transport == "http":
        assert any("/a-url" in text for text in (*words, *given, *contents.values())) or "MCPLAB_URL" in str(contents)


def test_a_file_that_is_no_recipe_says_so(tmp_path):
    file = tmp_path / "mine.toml"
    for text, told in (("client = ", "no recipe"), ('client = "a"\nodd = 1\n', "no recipe"), ("", "client")):
        file.write_text(text)
        with pytest.raises(RecipeError, match=told):
            recipe(file)
    with pytest.raises(RecipeError, match=r"mine\.toml: no recipe"):
        recipe(tmp_path / "gone" / "mine.toml")
    with pytest.raises(RecipeError, match="stands for nothing in this recipe"):
        filled("{{nothing}}", {})


# The check -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checking():
    spec = importlib.util.spec_from_file_location("observe_check", ROOT / "scripts" / "observe_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_checked_again_is_captured(checking):
    for word in checking.USUAL:
        todo = list(checking.runs(word, every=False))
        assert todo, word
        assert len({run.config for run in todo}) == len(todo)
        assert all(path.exists() for run in todo for path in run.captures)
        assert len(list(checking.runs(word, every=True))) >= len(todo)
    assert [path.stem[-1] for path in next(checking.runs("fast-agent:two-servers", every=False)).captures] == ["A", "B"]


def test_a_difference_is_named(checking):
    (run,) = checking.runs("fast-agent:roots", every=False)
    then = read_trace(run.captures[0])
    assert checking.differences(then, [then]) == []
    (plain,) = checking.runs("fast-agent:default", every=False)
    told = checking.differences(then, [read_trace(plain.captures[0])])
    assert told == ["new: roots object", "new: roots.listChanged true true"]


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
