"""The pages of docs/ and the README say what the code says, and their commands work."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from mcplab import DEMO, caption, compare, export, formats, handshake, plots, rules, stories
from mcplab.cli import app, run
from mcplab.model import COLUMNS, Event, Http, Sse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.fixture(scope="module")
def make_docs(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("make_docs")


@pytest.mark.parametrize("page", ["columns.md", "rule-catalogue.md", "trace-format.md"])
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


def test_the_catalogue_lists_every_rule_once():
    listed = re.findall(r"^\| `([a-z-]+\.[^`]+)` \|", (DOCS / "rule-catalogue.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(rules()["id"])


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


FINDING = {"diff": "bundled:", "check": "bundled:"}  # these commands find something: status 1


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with the log that the README asks, and what its handshake records."""
    folder = tmp_path_factory.mktemp("desk")
    head = "2026-03-02T09:15:00.{:03}Z [notes] [info] Message from {}: {}"
    messages = [
        ("client", {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
        ("server", {"id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}}),
        ("client", {"method": "notifications/initialized"}),
    ]
    lines = [head.format(n, who, json.dumps({"jsonrpc": "2.0", **told})) for n, (who, told) in enumerate(messages)]
    (folder / "mcp-server-notes.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = handshake(DEMO, mode="2026-07-28", then=[("tools/list", None), ("resources/list", None)]).trace
    made.save(folder / "mine.jsonl")
    return folder


def test_the_readme_shows_commands():
    assert len(COMMANDS) >= 20
    for user in ("You wrote a server", "You wrote a client", "You maintain an SDK", "You write about it"):
        section = README.partition(f"### {user}\n")[2].partition("\n### ")[0]
        assert 3 <= len(re.findall(r"^mcplab ", section, re.MULTILINE)) <= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_readme_work(command, desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    arguments = shlex.split(command)[1:]
    file = desk / arguments[arguments.index("-o") + 1] if "-o" in arguments else None
    if file is not None:
        file.unlink(missing_ok=True)
    elif not (desk / "client.jsonl").exists():  # what a client's run against the probe would have left
        shutil.copy(desk / "mine.jsonl", desk / "client.jsonl")
    finds = arguments[1].startswith(FINDING.get(arguments[0], "nothing"))
    assert run(arguments) == int(finds)
    shown = capsys.readouterr()
    if file is not None and arguments[0] != "probe":  # which writes once a client comes
        assert file.stat().st_size > 0
    else:
        assert shown.out.strip()
        assert shown.err == ""


def test_the_readme_installs_this_version():
    assert set(re.findall(r"mcplab-([0-9.]+)-py3", README)) == {version("mcplab")}


def test_the_readme_answers_why_resources_are_never_asked_for(desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    command = next(c for c in COMMANDS if c.startswith("mcplab explain mcp-server-notes.log"))
    assert run(shlex.split(command)[1:]) == 0
    told = capsys.readouterr().out
    assert "resources/list: never sent" in told
    assert "gate: closed: server: resources is absent" in told


PICTURES = dict(re.findall(r"!\[([^\]]+)\]\((docs/images/[^)]+)\)", README))


def test_the_pictures_of_the_readme_are_what_is_drawn_today(tmp_path):
    pinned = re.search(r"^matplotlib==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if pinned and pinned[1] != version("matplotlib"):
        pytest.skip(f"matplotlib {version('matplotlib')} draws other bytes than the pinned {pinned[1]}")
    assert sorted(PICTURES.values()) == sorted(f"docs/images/{file.name}" for file in (DOCS / "images").iterdir())
    traces = stories.load(None, progress=False)
    frame = compare(traces, by=["client", "client_version"])
    ax = plots.declarations(frame, title=stories.headline(frame), caption=caption(traces))
    export(ax, tmp_path / "declarations.svg")
    stories.chart(stories.pick(traces, "legacy"), tmp_path / "timeline-legacy")
    for alt, file in PICTURES.items():
        drawn = (tmp_path / Path(file).name).read_bytes()
        assert (ROOT / file).read_bytes() == drawn, "run make pictures"
        assert len(drawn) < 200_000
        assert len(alt) > 60
        for number in re.findall(r"(?<![\w.-])\d+(?![\w.-])", " ".join(alt.split())):
            assert number.encode() in drawn, f"{alt}: {number}"


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
