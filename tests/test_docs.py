"""The pages of docs/ and the README say what the code says, and their commands work."""

from __future__ import annotations

import importlib.util
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from mcplab import formats, make_trace
from mcplab.cli import app, run
from mcplab.model import COLUMNS, Event, Http, Sse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.fixture(scope="module")
def make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["columns.md", "trace-format.md"])
def test_generated_pages_are_up_to_date(page, make_docs):
    assert (DOCS / page).read_text(encoding="utf-8") == make_docs.PAGES[page](), "run python scripts/make_docs.py"


def test_the_page_of_commands_is_up_to_date(make_docs):
    pinned = re.search(r"^typer==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if pinned and pinned[1] != version("typer"):
        pytest.skip(f"typer {version('typer')} lays help out differently from the pinned {pinned[1]}")
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == make_docs.cli_page(), "run python scripts/make_docs.py"


def test_a_column_without_a_meaning_is_found(make_docs, monkeypatch):
    monkeypatch.setitem(make_docs.COLUMNS, "messages", {**COLUMNS["messages"], "brand_new": "str"})
    with pytest.raises(KeyError, match="brand_new"):
        make_docs.columns_page()


def test_no_meaning_is_of_a_column_that_is_gone(make_docs):
    assert set(make_docs.TABLES) == set(make_docs.MEANINGS) == set(COLUMNS)
    for table, meanings in make_docs.MEANINGS.items():
        assert set(meanings) <= set(COLUMNS[table]), table
    assert set(make_docs.COMMON) <= {name for columns in COLUMNS.values() for name in columns}
    assert {dtype for columns in COLUMNS.values() for dtype in columns.values()} <= set(make_docs.DTYPES)


def test_every_command_has_its_section():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for info in app.registered_commands:
        assert info.callback is not None
        assert f"## mcplab {info.name or info.callback.__name__}\n" in text


def test_the_trace_format_names_every_key_and_format():
    text = (DOCS / "trace-format.md").read_text(encoding="utf-8")
    for struct in (Event, Http, Sse):
        for field in msgspec.structs.fields(struct):
            assert f"`{field.encode_name}`" in text, f"{struct.__name__}.{field.encode_name}"
    for name in formats.names():
        assert f"| `{name}` |" in text


def test_the_shortest_file_of_the_page_loads():
    from mcplab.traces import read_trace

    block = re.search(r"```json\n(.*?)```", (DOCS / "trace-format.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block
    trace = read_trace(block[1])
    assert len(trace) == 1
    assert trace.unparsed.empty
    assert list(trace.declarations["path"]) == ["$", "roots"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


COMMANDS = re.findall(r"^mcplab .*$", README, re.MULTILINE)


def test_the_readme_shows_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_readme_work(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(command)[1:]
    if "mine.jsonl" in arguments and "-o" not in arguments:  # what the command above it has recorded
        make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize"})]).save(tmp_path / "mine.jsonl")
    assert run(arguments) == (1 if arguments[0] in ("diff", "check") else 0)
    shown = capsys.readouterr()
    if "-o" in arguments:
        assert (tmp_path / arguments[arguments.index("-o") + 1]).stat().st_size > 0
    else:
        assert len(shown.out.splitlines()) > 1
        assert shown.err == ""


def test_the_python_of_the_readme_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block
    names: dict[str, object] = {}
    exec(compile(block[1], "README.md", "exec"), names)
    assert (tmp_path / "codex.svg").exists()
    assert len(names["traces"]) == 33  # type: ignore[arg-type]


def test_the_readme_counts_the_captures(captures):
    clients = {path.parent.name for path in captures}
    assert f"{len(captures)} captures of {len(clients)} real clients" in README


def test_the_readme_lists_every_notebook():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        assert f"(notebooks/{path.name})" in README
