"""The registry against the folder of bundled data, and the claims file's fields."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mcplab import data
from mcplab.model import MCPLabError

TRACE = "traces/codex/codex-0.129.0-http-legacy-exec.jsonl"


def test_registry_and_folder_agree():
    assert data.check() == []


def test_every_capture_is_registered_with_its_provenance(captures):
    rows = {row.path: row for row in data.registry()}
    assert len(captures) == 284
    for file in captures:
        row = rows[file.relative_to(data.data_dir()).as_posix()]
        assert (row.client, row.made) == (file.parent.name, f"recipe:{file.parent.name}")
        assert file.name.startswith(f"{row.client}-{row.version}-")
        assert row.captured_at.startswith("20")
        assert row.tool
        assert "licence" in row.licence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small copy of data/ that agrees with its registry: one client's captures, the recipes."""
    source, copy = data.data_dir(), tmp_path / "data"
    shutil.copytree(source / "traces" / "codex", copy / "traces" / "codex")
    shutil.copytree(source / "recipes", copy / "recipes")
    lines = (source / "registry.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.startswith(("path,", "traces/codex/", "recipes/"))]
    (copy / "registry.csv").write_text("".join(kept), encoding="utf-8")
    assert data.check(copy) == []
    return copy


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _same_size_other_bytes(folder: Path) -> None:
    _edit(folder / TRACE, '"conn": "c1"', '"conn": "c9"')


def _header_names_another_version(folder: Path) -> None:
    _edit(folder / TRACE, '"version": "0.129.0"}, "config"', '"version": "0.129.1"}, "config"')


def _registry_names_another_mode(folder: Path) -> None:
    _edit(folder / "registry.csv", "0.129.0,streamable-http,legacy", "0.129.0,streamable-http,modern")


def _row_twice(folder: Path) -> None:
    row = next(row for row in (folder / "registry.csv").read_text(encoding="utf-8").splitlines() if TRACE in row)
    _edit(folder / "registry.csv", row, f"{row}\n{row}")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda folder: (folder / TRACE).unlink(), f"{TRACE}: in the registry, not in the folder"),
    "extra": (lambda folder: (folder / "traces/new.log").write_text("x"), "traces/new.log: in the folder, not in"),
    "changed": (_same_size_other_bytes, f"{TRACE}: sha256 is"),
    "header": (_header_names_another_version, f"{TRACE}: version is '0.129.1', the registry says '0.129.0'"),
    "registry": (_registry_names_another_mode, "server_mode is 'legacy', the registry says 'modern'"),
    "twice": (_row_twice, f"registry.csv: {TRACE} stands there twice"),
    "no licence": (
        lambda folder: _edit(folder / "registry.csv", "recording MIT; texts by the client: licence undetermined", ""),
        ": no licence given",
    ),
    "no recipe": (
        lambda folder: _edit(folder / "recipes/clients.toml", '"0.129.0"', '"0.128.0"'),
        ": no recipe 'codex'",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_disagreement_is_named(folder, name):
    change, message = CHANGES[name]
    change(folder)
    assert any(message in problem for problem in data.check(folder)), data.check(folder)


def test_a_registry_that_is_no_registry_is_one_clear_error(folder):
    (folder / "registry.csv").write_text("path,size\nx,1\n", encoding="utf-8")
    with pytest.raises(MCPLabError, match="the columns are"):
        data.registry(folder)
    (folder / "registry.csv").unlink()
    with pytest.raises(MCPLabError, match="cannot be read"):
        data.check(folder)


def test_write_adds_a_row_and_says_what_is_left_to_fill_in(folder):
    new = folder / "traces" / "codex" / "codex-0.129.0-http-legacy-more.jsonl"
    shutil.copyfile(folder / TRACE, new)
    before = {row.path: row for row in data.registry(folder)}
    problems = data.write(folder)
    after = {row.path: row for row in data.registry(folder)}
    path = new.relative_to(folder).as_posix()
    assert after.keys() - before.keys() == {path}
    assert (after[path].version, after[path].transport, after[path].made) == ("0.129.0", "streamable-http", "")
    assert {name: row for name, row in after.items() if name in before} == before
    assert problems == [f"{path}: no {name} given" for name in ("made", "source", "licence")]


def test_a_file_without_our_header_states_no_header_facts(tmp_path):
    for content in (b"", b"[1]\n", b'{"kind": "open"}\n', b"not json", b'{"format": "mcplab-trace", "client": null}'):
        file = tmp_path / "x.jsonl"
        file.write_bytes(content)
        facts = data._facts(file)
        assert facts.get("client", "") == ""
        assert facts["bytes"] == len(content)


def test_the_command_line_checks():
    done = subprocess.run(
        [sys.executable, "-m", "mcplab.data", "--check"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "all as registered" in done.stdout


def test_the_command_line_fails_on_a_disagreement(folder, monkeypatch, capsys):
    monkeypatch.setattr(data, "data_dir", lambda: folder)
    (folder / TRACE).unlink()
    assert data.main(["--check"]) == 1
    assert TRACE in capsys.readouterr().err


def test_folders_of_an_installed_wheel_come_first_and_missing_ones_are_an_error(tmp_path, monkeypatch):
    package = tmp_path / "mcplab"
    package.mkdir()
    monkeypatch.setattr(data, "_PACKAGE", package)
    with pytest.raises(MCPLabError, match="reinstall mcplab"):
        data.traces_dir()
    (tmp_path / "notebooks").mkdir()
    assert data.notebooks_dir() == tmp_path / "notebooks"
    (package / "_share" / "notebooks").mkdir(parents=True)
    assert data.notebooks_dir() == package / "_share" / "notebooks"


# The old samples and the claims --------------------------------------------------------------------


def test_the_version_1_sample_holds_every_kind_of_event():
    lines = [json.loads(line) for line in (data.data_dir() / "old" / "v1.jsonl").read_text("utf-8").splitlines()]
    assert (lines[0]["format"], lines[0]["version"]) == ("mcplab-trace", 1)
    assert {line["kind"] for line in lines[1:]} == {"message", "http", "sse", "open", "close", "stderr", "unparsed"}
    assert [line["seq"] for line in lines[1:]] == list(range(len(lines) - 1))


@pytest.mark.parametrize("file", sorted(data.claims_dir().glob("*.toml")), ids=lambda file: file.stem)
def test_a_claims_file_says_who_says_what_and_where(file):
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    note = content["note"]
    for name in ("id", "title", "canonical", "licence"):
        assert note[name].strip(), name
    assert isinstance(note["last_verified"], datetime.date)
    assert note["canonical"].startswith("https://")
    for source in content["sources"]:
        assert source["title"].strip()
        assert source["url"].startswith("https://")
        assert isinstance(source["date"], datetime.date)
    known = {source["id"] for source in content["sources"]}
    assert content["claims"]
    for row in [*content["claims"], *content.get("details", [])]:
        assert row["product"].strip()
        assert set(row.get("sources", [])) <= known
    for claim in content["claims"]:
        assert claim["client"].strip()
        assert claim["declares"].strip()
        assert claim["tier"] in ("read", "listed", "observed", "exercised")


def test_the_note_compares_five_clients():
    content = tomllib.loads((data.claims_dir() / "five-clients.toml").read_text(encoding="utf-8"))
    claims = {claim["client"]: claim for claim in content["claims"]}
    assert list(claims) == ["goose", "Codex CLI", "opencode", "Cline", "fast-agent"]
    assert {client: claim.get("paths") for client, claim in claims.items()} == {
        "goose": None,  # the note names no path
        "Codex CLI": ["elicitation"],
        "opencode": ["roots"],
        "Cline": [],
        "fast-agent": ["sampling", "elicitation"],
    }
    assert claims["goose"]["implements"]
    captured = {row.client for row in data.registry() if row.path.startswith("traces/")}
    assert {claim["product"] for claim in claims.values()} - captured == {"goose"}
