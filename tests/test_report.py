"""The report: notebooks run on the traces that were named, and a page that shows what came out and does no harm."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from mcplab.live.running import ending
from mcplab.model import MCPLabError
from mcplab.report import build
from mcplab.report.execute import execute, find, parametrized
from mcplab.traces import make_trace

ROOT = Path(__file__).parents[1]
EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'

SMALL = """
from mcplab import compare, export, plots, stories
traces = stories.load(TRACES)
frame = compare(traces, by=["client", "client_version"])
ax = plots.declarations(frame, title=stories.headline(frame))
files = export(ax, f"{OUT}/charts/matrix", formats=["svg", "png"])
files += export(frame, f"{OUT}/tables/matrix")
stories.Told(stories.overview(traces).blocks[0], frame)
"""


def notebook(folder: Path, name: str, *cells: str) -> Path:
    made = nbformat.v4.new_notebook()
    made.cells = [
        nbformat.v4.new_markdown_cell(f"# Lesson {name}"),
        nbformat.v4.new_code_cell('TRACES = None\nOUT = "build"', metadata={"tags": ["parameters"]}),
        *map(nbformat.v4.new_code_cell, cells),
    ]
    folder.mkdir(exist_ok=True)
    nbformat.write(made, folder / f"{name}.ipynb")
    return folder


def trace(file: Path, name: str = "mystery-client", capabilities: object = None) -> str:
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": name, "version": "1.0"},
             "capabilities": {"roots": {}} if capabilities is None else capabilities}  # fmt: skip
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    return str(make_trace([("client", message)]).save(file))


class Page(HTMLParser):
    """What a page has: tags, texts, attributes; fails on anything that could run or fetch."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert not {"script", "iframe", "object", "embed", "link", "base", "form", "svg"} & set(self.tags)
        assert not [one for one in self.attributes if one[1].startswith("on")]
        for tag, key, value in self.attributes:
            if key == "src":
                assert value.startswith("data:image/"), value[:80]
            if key == "href":
                assert re.match(r"(\.\./)?[\w./%-]+$|https://modelcontextprotocol\.io/|#", value), (tag, value)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on two good traces and two bad ones, by a small notebook."""
    folder = tmp_path_factory.mktemp("report")
    lessons = notebook(folder / "lessons", "01-small", SMALL)
    notebook(lessons, "02-other", "1 / 0  # takes no traces")
    (lessons / "02-other.ipynb").write_text(
        (lessons / "02-other.ipynb").read_text().replace("TRACES", "NOTHING"), encoding="utf-8"
    )
    (folder / "bad.jsonl").write_text(f"hello {EVIL}")
    (folder / "empty").mkdir()
    here = Path.cwd()
    os.chdir(folder)
    try:
        good = [trace(folder / "one.jsonl"), trace(folder / "two.jsonl", EVIL, {"experimental": {EVIL: {}}})]
        names = [os.path.relpath(name) for name in good]
        return folder, build([*names, "bad.jsonl", "empty", "missing.jsonl"], Path("out"), notebooks=lessons)
    finally:
        os.chdir(here)


def test_what_a_report_leaves(report):
    folder, done = report
    assert done.complete
    assert done.index == Path("out/index.html")
    found = sorted(
        file.relative_to(folder / "out").as_posix() for file in (folder / "out").rglob("*") if file.is_file()
    )
    assert found == [
        "charts/matrix.png", "charts/matrix.svg", "index.html", "manifest.json", "notebooks/01-small.html",
        "notebooks/01-small.ipynb", "observed.json", "tables/matrix.csv", "tables/matrix.md",
    ]  # fmt: skip
    assert json.loads((folder / "out" / "manifest.json").read_text()) == [n for n in found if n != "manifest.json"]
    assert "2 captures, 1 notebook, 4 charts and tables, 3 files could not be read" in done.summary


def test_the_notebook_ran_on_these_traces(report):
    folder, _ = report
    ran = nbformat.read(folder / "out/notebooks/01-small.ipynb", as_version=4)
    assert ran.cells[2].source.startswith("TRACES = ['../one.jsonl', '../two.jsonl', '../bad.jsonl'")
    assert ran.cells[2].metadata.tags == ["injected-parameters"]
    assert "2 captures of 2 clients" in ran.cells[3].outputs[0]["data"]["text/html"]


def test_the_index_lists_what_could_not_be_read(report):
    folder, _ = report
    page = Page((folder / "out/index.html").read_text(encoding="utf-8"))
    text = " ".join(page.texts)
    assert "3 files could not be read" in text
    assert "not a trace that mcplab knows" in text
    assert "empty: the folder holds no file" in text
    assert "missing.jsonl: no such file" in text
    assert "2 captures of 2 clients in 2 releases" in text


def test_the_pages_allow_nothing_and_escape_everything(report):
    folder, _ = report
    for name in ("index.html", "notebooks/01-small.html"):
        text = (folder / "out" / name).read_text(encoding="utf-8")
        page = Page(text)
        assert EVIL not in text
        assert html.escape(EVIL)[:20] in text
        assert any(EVIL[:15] in part for part in page.texts)
        policy = next(v for tag, k, v in page.attributes if tag == "meta" and k == "content" and "default-src" in v)
        assert policy.startswith("default-src 'none'; img-src data:; style-src ")
        assert "script-src" not in policy
        assert "unsafe-eval" not in policy


def test_the_styles_of_the_index_are_the_ones_that_its_policy_names(report):
    folder, _ = report
    text = (folder / "out/index.html").read_text(encoding="utf-8")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src {html.escape(repr('sha256-' + digest))};" in text
    assert "style=" not in text.replace(style[0], "")


def test_charts_are_part_of_the_page_and_described(report):
    folder, _ = report
    page = Page((folder / "out/index.html").read_text(encoding="utf-8"))
    pictures = [value for tag, key, value in page.attributes if tag == "img" and key == "src"]
    words = [value for tag, key, value in page.attributes if tag == "img" and key == "alt"]
    assert len(pictures) == len(words) == 1
    assert base64.b64decode(pictures[0].partition(",")[2]) == (folder / "out/charts/matrix.svg").read_bytes()
    assert "capability path" in words[0]
    links = [value for _, key, value in page.attributes if key == "href"]
    for file in ("charts/matrix.svg", "charts/matrix.png", "tables/matrix.csv", "tables/matrix.md"):
        assert file in links
    for link in links:
        assert (folder / "out" / link).exists(), link


def test_nothing_names_this_machine(report):
    folder, _ = report
    for file in (folder / "out").rglob("*"):
        if file.suffix in (".html", ".svg", ".csv", ".md", ".json", ".ipynb"):
            text = file.read_text(encoding="utf-8")
            assert str(folder) not in text, file
            assert str(ROOT) not in text, file


def test_the_next_report_removes_what_the_last_one_left_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    one = notebook(
        tmp_path / "one",
        "01-one",
        "from pathlib import Path\nPath('charts').mkdir()\nPath('charts/old.svg').write_text('<svg/>')",
    )
    build([trace(tmp_path / "mine.jsonl")], out, notebooks=one)
    assert (out / "charts/old.svg").exists()
    (out / "mine.txt").write_text("keep")
    (tmp_path / "outside.txt").write_text("keep")
    names = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps([*names, "../outside.txt", "/etc/hostname", 7]))
    two = notebook(tmp_path / "two", "01-two", "1")
    build([trace(tmp_path / "mine.jsonl")], out, notebooks=two)
    assert not (out / "charts").exists()
    assert not (out / "notebooks/01-one.html").exists()
    assert (out / "notebooks/01-two.html").exists()
    assert (out / "mine.txt").read_text() == (tmp_path / "outside.txt").read_text() == "keep"


def test_a_notebook_that_fails_stops_no_other(tmp_path):
    lessons = notebook(tmp_path / "lessons", "01-bad", f"raise ValueError({EVIL!r})", "print('never')")
    notebook(lessons, "02-good", "print(TRACES)")
    done = build([trace(tmp_path / "mine.jsonl")], tmp_path / "out", notebooks=lessons)
    assert not done.complete
    assert [lesson.name for lesson in done.failed] == ["01-bad"]
    assert "failed: 01-bad (ValueError: " in done.summary
    text = " ".join(Page((tmp_path / "out/index.html").read_text(encoding="utf-8")).texts)
    assert "stopped: ValueError:" in text
    assert (tmp_path / "out/notebooks/02-good.html").exists()
    assert "mine.jsonl" in (tmp_path / "out/notebooks/02-good.html").read_text(encoding="utf-8")


def test_a_cell_that_takes_too_long_is_stopped(tmp_path):
    lessons = notebook(tmp_path / "lessons", "01-slow", "import threading\nthreading.Event().wait()")
    done = build([trace(tmp_path / "mine.jsonl")], tmp_path / "out", notebooks=lessons, timeout=2)
    assert done.failed[0].error == "a cell took longer than 2 s"


def test_a_kernel_that_dies_is_said(tmp_path):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import os\nos._exit(1)")])
    assert execute(made, tmp_path) == "the kernel died"


@pytest.mark.skipif(os.name != "posix", reason="a signal to the parent")
@pytest.mark.parametrize(("name", "raised"), [("SIGINT", KeyboardInterrupt), ("SIGTERM", SystemExit)])
def test_a_signal_ends_the_report_and_not_one_notebook(name, raised, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    cell = f"import os, signal, threading\nos.kill(os.getppid(), signal.{name})\nthreading.Event().wait()"
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    try:
        with pytest.raises(raised), ending():
            execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)]), tmp_path)
        assert not list((tmp_path / "scratch").iterdir())
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("deep", ["d", "d" * 120])
def test_a_temporary_folder_of_any_length_will_do(deep, tmp_path, monkeypatch):
    """Where its path is too long for an address of a socket, the kernel is spoken to over loopback."""
    (tmp_path / deep).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / deep))
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("6 * 7")])
    assert execute(made, tmp_path) == ""
    assert made.cells[0].outputs[0].data["text/plain"] == "42"
    assert not list((tmp_path / deep).iterdir())


def test_nothing_to_read_or_to_run(tmp_path):
    with pytest.raises(MCPLabError, match="nothing to read"):
        build(["missing.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "none").mkdir()
    with pytest.raises(MCPLabError, match="no notebook here takes TRACES"):
        find(tmp_path / "none")
    (tmp_path / "none" / "x.ipynb").write_text("{")
    with pytest.raises(MCPLabError, match=r"x\.ipynb: no notebook that can be read"):
        find(tmp_path / "none")


def test_parameters_are_set_after_the_cell_that_holds_them(tmp_path):
    lesson = find(notebook(tmp_path / "lessons", "01-a", "1"))[0]
    ready = parametrized(lesson.notebook, {"TRACES": ["a'b"], "OUT": "."})
    assert [cell.source for cell in ready.cells[1:3]] == [
        'TRACES = None\nOUT = "build"',
        "TRACES = [\"a'b\"]\nOUT = '.'",
    ]
    assert len(lesson.notebook.cells) == 3  # the one on disk stays as it is


def test_the_command(tmp_path):
    """The real notebooks, from another folder, on few captures and a file that is no trace."""
    (tmp_path / "bad.jsonl").write_text("hello")
    command = [sys.executable, "-m", "mcplab", "report", "bundled:opencode", "bad.jsonl", "-o", "site"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "02-declarations" in done.stderr  # the bar
    assert done.stderr.splitlines()[-1].startswith("site/index.html: 9 captures, ")
    assert "1 file could not be read" in done.stderr
    page = Page((tmp_path / "site/index.html").read_text(encoding="utf-8"))
    text = " ".join(page.texts)
    assert "9 captures of 1 client in 2 releases" in text
    for client in ("typescript-sdk", "smolagents", "gemini-cli"):  # mcp-remote is among the formats that are named
        assert client not in text
    assert "Method The input is 9 captures of 1 client in 2 releases" in " ".join(text.split())
    records = json.loads((tmp_path / "site/observed.json").read_text(encoding="utf-8"))["instances"]
    assert [one["client"]["product"] for one in records] == ["opencode"] * 9
    assert "observed.json" in [value for _, key, value in page.attributes if key == "href"]
    for file in ("charts/drift.pdf", "charts/tiers.svg", "charts/claims.svg", "tables/contradictions.tex",
                 "tables/variance.parquet", "tables/promises.html", "tables/cells.csv",
                 "tables/declarations-paper.tex"):  # fmt: skip
        assert (tmp_path / "site" / file).stat().st_size > 50
    for file in ("charts/declarations.svg", "charts/versions.png", "charts/timeline-legacy.svg", "tables/reach.csv"):
        assert (tmp_path / "site" / file).stat().st_size > 50
