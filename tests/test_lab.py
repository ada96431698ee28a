"""The notebooks in the user's own folder: what is written, what is left alone, how JupyterLab is started."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcplab import lab
from mcplab.cli import run
from mcplab.data import notebooks_dir
from mcplab.model import MCPLabError

NAMES = sorted(path.name for path in notebooks_dir().glob("*.ipynb"))


def test_a_new_folder_gets_every_notebook_byte_for_byte(tmp_path):
    placed = lab.place(tmp_path / "a" / "b")
    assert placed.written == NAMES
    assert (placed.replaced, placed.same, placed.kept) == ([], [], [])
    for name in NAMES:
        assert (tmp_path / "a" / "b" / name).read_bytes() == (notebooks_dir() / name).read_bytes()
    assert lab.place(tmp_path / "a" / "b").same == NAMES


def test_a_changed_file_is_never_written_over(tmp_path):
    lab.place(tmp_path)
    changed, gone = NAMES[0], NAMES[1]
    (tmp_path / changed).write_text("mine")
    (tmp_path / gone).unlink()
    placed = lab.place(tmp_path)
    assert (tmp_path / changed).read_text() == "mine"
    assert (placed.kept, placed.written) == ([changed], [gone])
    assert changed in placed.summary
    assert lab.place(tmp_path).kept == [changed]  # nor the next time


def test_an_older_untouched_one_is_brought_up_to_date(tmp_path, monkeypatch):
    old = tmp_path / "bundle"
    old.mkdir()
    (old / NAMES[0]).write_text("an older version")
    with monkeypatch.context() as patch:
        patch.setattr(lab, "notebooks_dir", lambda: old)
        lab.place(tmp_path / "mine")
    placed = lab.place(tmp_path / "mine")
    assert placed.replaced == [NAMES[0]]
    assert (tmp_path / "mine" / NAMES[0]).read_bytes() == (notebooks_dir() / NAMES[0]).read_bytes()


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"x": 1}'])
def test_a_damaged_memory_makes_nothing_ours(tmp_path, manifest):
    lab.place(tmp_path)
    (tmp_path / lab.MANIFEST).write_text(manifest)
    (tmp_path / NAMES[0]).write_text("mine")
    assert lab.place(tmp_path).kept == [NAMES[0]]


def test_nothing_is_written_through_a_link_or_over_a_folder(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / NAMES[0]).symlink_to(elsewhere)
    (mine / NAMES[1]).mkdir()
    assert lab.place(mine).kept == NAMES[:2]
    assert elsewhere.read_text() == "untouched"


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(MCPLabError, match="name a folder"):
        lab.place(tmp_path / "file" / "below")
    assert run(["lab", "--no-open", str(tmp_path / "file")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_places_them_and_says_so(tmp_path, capsys):
    assert run(["lab", "--no-open", str(tmp_path / "here")]) == 0
    assert f"{len(NAMES)} written" in capsys.readouterr().err
    assert set(json.loads((tmp_path / "here" / lab.MANIFEST).read_text())) == set(NAMES)


def test_jupyterlab_is_started_on_loopback_in_place_of_this_process(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(os, "execve", lambda *given: started.append(given))
    assert run(["lab", str(tmp_path / "x"), "--", "--no-browser"]) == 0
    ((program, words, environment),) = started
    assert program == sys.executable
    assert words[1:] == ["-m", "jupyterlab", str(tmp_path / "x"), *lab.OPTIONS, "--no-browser"]
    assert "--ServerApp.ip=127.0.0.1" in words
    assert environment["JUPYTER_PREFER_ENV_PATH"] == "1"
    first = environment["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0]
    defaults = json.loads((Path(first) / "labconfig" / "default_setting_overrides.json").read_text())
    assert defaults["@jupyterlab/apputils-extension:notification"] == {"checkForUpdates": False, "fetchNews": "false"}


def test_without_jupyterlab_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MCPLabError, match=r"mcplab\[lab\]"):
        lab.command(tmp_path)
