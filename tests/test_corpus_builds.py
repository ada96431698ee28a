"""A corpus is built anew only where something is new; ended at any moment, here or on a cluster, it ends the same."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcplab import corpus
from mcplab.corpus import part, plan
from mcplab.model import MCPLabError, TraceError

ROOT = Path(__file__).parent.parent


def tree(home: Path) -> dict[str, str]:
    """Every file below a folder with the digest of its bytes."""
    return {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def aged(folder: Path) -> Path:
    """As if its files had been there for a while."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(plan, "PART", 40_000)


@pytest.fixture(scope="module")
def a_day(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    corpus.day(folder, 240, each=20)
    return aged(folder)


# Again ---------------------------------------------------------------------------------------------


def test_sources_that_are_gone_do_not_empty_a_corpus(a_day, tmp_path):
    corpus.build(a_day, tmp_path / "c")
    before = tree(tmp_path / "c")
    with pytest.raises(TraceError, match="none of the sources is there, so the corpus stays as it is"):
        corpus.build(tmp_path / "gone.jsonl", tmp_path / "c")
    assert tree(tmp_path / "c") == before


def test_only_what_changed_is_read_again(a_day, tmp_path, monkeypatch):
    source = tmp_path / "day"
    shutil.copytree(a_day, source)
    first = corpus.build(source, tmp_path / "c")
    assert first.built["parts"] == first.built["new"] > 4
    again = corpus.build(source, tmp_path / "c")
    assert again.built == {**first.built, "new": 0, "read": 0}
    before = tree(tmp_path / "c")

    touched = source / "gateway-0003.jsonl"
    os.utime(touched, (1_700_000_500, 1_700_000_500))
    again = corpus.build(source, tmp_path / "c")
    assert again.built["new"] == 0  # another time, the same content
    assert 0 < again.built["read"] < 12

    corpus.day(tmp_path / "more", 20, each=20, seed=8)
    shutil.copy(tmp_path / "more" / "gateway-0000.jsonl", source / "gateway-0005a.jsonl")
    aged(source)
    grown = corpus.build(source, tmp_path / "c")
    assert 0 < grown.built["new"] <= 3
    assert tree(tmp_path / "c") == tree(corpus.build(source, tmp_path / "fresh").home)

    (source / "gateway-0005a.jsonl").unlink()
    back = corpus.build(source, tmp_path / "c")
    assert len(back) == 240
    assert tree(tmp_path / "c") == before

    other = corpus.build(source, tmp_path / "c", check=False)
    assert other.built["new"] == other.built["parts"]
    assert not (tmp_path / "c" / "tmp").exists()


def test_a_file_that_grows_while_it_is_read(a_day, tmp_path, monkeypatch):
    """What was there at first counts; a file that becomes another one is read again, and left out if it never rests."""
    source = tmp_path / "log.jsonl"
    text = (a_day / "gateway-0000.jsonl").read_bytes()
    source.write_bytes(text)
    whole, times = part.records, []

    def records(snapshot: Any, **how: Any) -> Any:
        times.append(1)
        with source.open("ab") as file:
            file.write(text)
        return whole(snapshot, **how)

    monkeypatch.setattr(part, "records", records)
    found = corpus.build(source, tmp_path / "c")
    assert (len(found), len(times)) == (20, 1)

    def others(snapshot: Any, **how: Any) -> Any:
        times.append(1)
        source.write_bytes(text.replace(b'"seq":0', b'"seq": 0', len(times)))
        return whole(snapshot, **how)

    monkeypatch.setattr(part, "records", others)
    found = corpus.build(source, tmp_path / "d")
    assert len(found) == 0
    assert found.failed.iloc[0].tolist() == ["log.jsonl", "changes while it is read: build again when it is at rest"]


def test_one_build_at_a_time(a_day, tmp_path):
    (tmp_path / "c").mkdir()
    with (tmp_path / "c" / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(MCPLabError, match="another build is at work there"):
            corpus.build(a_day, tmp_path / "c")


@pytest.mark.parametrize("name", ["tmp/mine", "parts/mine", "files-of-mine.parquet", "corpus.json"])
def test_nothing_that_no_build_made_is_taken_away(name, a_day, tmp_path):
    mine = tmp_path / "project" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(MCPLabError, match=r"no build made '.*' there, and one would replace it; name another folder"):
        corpus.build(a_day, tmp_path / "project")
    assert [path for path in (tmp_path / "project").rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("what", ["cut", "gone", "no part", "part.json", "list", "manifest", "keys", "version"])
def test_what_was_damaged_is_said_and_made_anew(what, a_day, tmp_path):
    home = tmp_path / "c"
    corpus.build(a_day, home, check=False)
    good = tree(home)
    folder = sorted((home / "parts").iterdir())[1]
    table = folder / "instances.parquet"
    manifest = home / "corpus.json"
    damage = {
        "cut": lambda: table.write_bytes(table.read_bytes()[:-9]),
        "gone": table.unlink,
        "no part": lambda: shutil.rmtree(folder),
        "part.json": lambda: (folder / "part.json").write_text("{"),
        "list": lambda: next(home.glob("files-*")).write_bytes(b"PAR1"),
        "manifest": lambda: manifest.write_text(manifest.read_text()[:40]),
        "keys": lambda: manifest.write_text(json.dumps({"format": "mcplab-corpus", "version": plan.LAYOUT})),
        "version": lambda: manifest.write_text(
            manifest.read_text().replace(f'"version": {plan.LAYOUT}', '"version": 0')
        ),
    }
    damage[what]()

    def asked() -> None:
        found = corpus.open(home)
        found.status()
        found.compare()

    if what != "part.json":  # only a build reads it
        with pytest.raises(TraceError, match=r"damaged|cannot be read|another version"):
            asked()
    assert len(corpus.build(a_day, home, check=False)) == 240
    assert tree(home) == good
    asked()


def test_groups_of_files_do_not_move_when_one_comes(monkeypatch):
    monkeypatch.setattr(plan, "PART", 1000)
    monkeypatch.setattr(plan.os, "stat", lambda path: os.stat_result((0, 0, 0, 0, 0, 0, 100, 0, 0, 0)))
    files = [plan.File(f"/{n}", f"t{n:04d}", f"t{n:04d}.jsonl") for n in range(400)]
    whole = plan.parts(files)
    assert [file for group, _ in whole for file in group] == files
    assert len(whole) > 20
    assert max(size for _, size in whole) <= 4000
    for gone in (0, 57, 200, 399):
        less = plan.parts(files[:gone] + files[gone + 1 :])
        old = {tuple(group) for group, _ in whole}
        assert sum(tuple(group) not in old for group, _ in less) <= 3


# Ended ---------------------------------------------------------------------------------------------

BUILD = """
import sys
from mcplab import corpus
from mcplab.corpus import plan
plan.PART = 40_000
corpus.build(sys.argv[1], sys.argv[2], progress=False)
"""


def start(source: Path, out: Path) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", BUILD, str(source), str(out)], env=env)


def test_killed_and_started_again_it_ends_with_the_same_bytes(a_day, tmp_path):
    """MCPLAB_KILLS=20 kills that often, at other moments each time."""
    wanted = tree(corpus.build(a_day, tmp_path / "whole").home)
    chance = random.Random(os.environ.get("MCPLAB_KILLS"))
    for number in range(int(os.environ.get("MCPLAB_KILLS", "2"))):
        out = tmp_path / f"c{number}"
        process = start(a_day, out)
        parts = chance.randrange(len(wanted) // 6)
        while process.poll() is None and sum(1 for _ in out.glob("parts/*")) < parts:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        corpus.build(a_day, out)
        assert tree(out) == wanted, f"killed after {parts} parts"


# A cluster -----------------------------------------------------------------------------------------

CLUSTER = """
import json, pathlib, signal, subprocess, sys, threading, time
from mcplab import corpus
from mcplab.corpus import plan

def main(what, source, out):
    plan.PART = 40_000
    if what == "local":
        return corpus.build(source, out, scheduler="local", progress=False).built
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
             "--scheduler-file", out + ".json", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    scheduler = subprocess.Popen(begin, **quiet)
    while not (pathlib.Path(out + ".json").exists() and pathlib.Path(out + ".json").stat().st_size):
        time.sleep(0.05)
    address = json.loads(pathlib.Path(out + ".json").read_text())["address"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard",
            "--nthreads", "1", "--host", "127.0.0.1"]
    workers = [subprocess.Popen(work, **quiet) for _ in range(2)]
    lost = {"worker": workers[0], "scheduler": scheduler}[what]
    def kill():
        while sum(1 for _ in pathlib.Path(out).glob("parts/*")) < 2:
            time.sleep(0.01)
        lost.kill()
    threading.Thread(target=kill, daemon=True).start()
    try:
        return corpus.build(source, out, scheduler=address, progress=False).built
    except corpus.building.MCPLabError as error:
        return str(error)
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()

if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
"""


@pytest.mark.parametrize("what", ["local", "worker", "scheduler"])
def test_on_a_cluster_and_what_may_be_lost_there(what, a_day, tmp_path):
    pytest.importorskip("distributed")
    script, out = tmp_path / "cluster.py", tmp_path / "c"
    script.write_text(CLUSTER)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), what, str(a_day), str(out)]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    if what == "scheduler":
        assert re.match(r"the scheduler was lost after \d+ of \d+ parts .*build again: what is done stays$", said)
        corpus.build(a_day, out)
    else:
        # the worker that was killed may have made a part and died before it said so: then it is found there, not new
        assert said["parts"] - (what == "worker") <= said["new"] <= said["parts"] > 4
    assert tree(out) == tree(corpus.build(a_day, tmp_path / "whole").home)
    names = corpus.open(out).instances["instance"]
    assert names.is_unique
    assert len(names) == 240


def test_no_scheduler_there(a_day, tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(MCPLabError, match="scheduler 'nonsense://x' cannot be reached"):
        corpus.build(a_day, tmp_path / "c", scheduler="nonsense://x")


# What is not needed --------------------------------------------------------------------------------


def test_neither_duckdb_nor_dask_is_needed_to_import_build_or_report():
    code = (
        "import sys\n"
        "sys.modules['duckdb'] = sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "import mcplab, mcplab.cli, mcplab.report, mcplab.stories, mcplab.plots\n"
        "from mcplab import corpus\n"
        "import tempfile, pathlib\n"
        "home = pathlib.Path(tempfile.mkdtemp())\n"
        "corpus.day(home / 'in', 3)\n"
        "made = corpus.build(home / 'in', home / 'out', progress=False)\n"
        "print(len(made.connections))\n"
        "for ask in (lambda: made.sql('select 1'), lambda: corpus.build(home / 'in', home / 'c', scheduler='local')):\n"
        "    try:\n"
        "        ask()\n"
        "    except mcplab.MCPLabError as error:\n"
        "        print(error)\n"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    lines = said.splitlines()
    assert lines[0] == "3"
    assert [line.partition(":")[0] for line in lines[1:]] == ["SQL needs DuckDB", "a scheduler needs Dask"]
    light = "import sys, mcplab; print([m for m in ('pandas', 'pyarrow', 'duckdb', 'dask') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", light], env=env, capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_sizes_stay_in_proportion(tmp_path):
    """Twice the sessions, twice the rows; the bytes of a session fall."""
    sizes = {}
    for count in (100, 400):
        corpus.day(tmp_path / f"day{count}", count)
        sizes[count] = corpus.build(tmp_path / f"day{count}", tmp_path / f"c{count}").status()
    assert sizes[400]["instances"] == 4 * sizes[100]["instances"]
    assert sizes[400]["bytes"] < 4 * sizes[100]["bytes"]
