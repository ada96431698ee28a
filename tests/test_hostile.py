"""Nothing that a peer wrote is active in any output: terminal, spreadsheet, page, notebook, SVG, LaTeX, Markdown, XML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import hostile
import pandas as pd
import pytest
from hostile import TEXTS

import mcplab
from mcplab import cli, export, plots, read_trace, read_traces, render
from mcplab.cli.tables import TABLES
from mcplab.feed import observed_json
from mcplab.told import Picture

FORMATS = ("text", "csv", "json", "md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    hostile.write(made)
    return made


@pytest.fixture(scope="module")
def traces(folder: Path) -> Any:
    found = read_traces(folder / "http.jsonl", folder / "modern.jsonl", progress=False)
    assert not len(found.failed)
    return found


def one(folder: Path, era: str) -> Any:
    return read_trace(folder / f"{era}.jsonl")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What a command prints, which nothing but the wish to know about wrong use may end."""
    capsys.readouterr()
    assert cli.run([str(word) for word in words]) in (0, 1, 3), capsys.readouterr().err
    said = capsys.readouterr()
    assert hostile.terminal(said.err) == []
    return said.out


def judged(text: str, kind: str) -> list[str]:
    """What is active in a command's output."""
    if kind == "json":
        json.loads(text)
    look = {"csv": hostile.cells, "md": hostile.marked, "junit": hostile.xml}.get(kind, hostile.terminal)
    return look(text)


# The command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("table", TABLES)
def test_read(folder, capsys, table, kind):
    for more in ((), ("--columns", "all")):
        assert judged(run(capsys, "read", folder, "-t", table, "-f", kind, *more), kind) == []


QUESTIONS = (
    ("compare", "{}"), ("compare", "{}", "--by", "client,config"), ("compare", "{}", "--party", "server"),
    ("compare", "{}", "--tier", "all"), ("compare", "{}", "--long"), ("compare", "{}", "--by", "instance", "--tier", "exercised"),
    ("reach", "roots", "-t", "{}"), ("variance", "{}"), ("promises", "{}"), ("contradictions", "{}"),
    ("diff", "{}/stdio.jsonl", "{}/modern.jsonl"), ("timeline", "{}/http.jsonl"), ("timeline", "{}/stdio.jsonl", "--axis", "seq"),
)  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_questions(folder, capsys, words, kind):
    assert judged(run(capsys, *(word.format(folder) for word in words), "-f", kind), kind) == []


@pytest.mark.parametrize("kind", ["text", "csv", "json", "md", "junit"])
def test_check(folder, capsys, kind):
    assert judged(run(capsys, "check", folder, "--hints", "--level", "SHOULD", "-f", kind), kind) == []


def test_explain(folder, capsys):
    for era in hostile.ERAS:
        trace = one(folder, era)
        for seq in trace.messages["seq"].iloc[::40]:
            said = mcplab.explain(trace, seq)
            assert hostile.terminal(str(said)) + hostile.page(said._repr_html_()) == []
    assert hostile.terminal(run(capsys, "explain", folder / "stdio.jsonl", seq)) == []


@pytest.mark.parametrize("name", [*hostile.FEW, *hostile.LONG])
def test_one_text_alone(tmp_path, capsys, name):
    file = hostile.alone(tmp_path, name)
    for words in (("show",), ("show", "--short"), ("read",), ("read", "-t", "messages"), ("compare",), ("check",)):
        shown = run(capsys, words[0], file, *words[1:])
        assert hostile.terminal(shown) == []
        assert len(shown) < 60 * file.stat().st_size / 10 + 20_000, "one long cell makes every line long"


# Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_exported_tables(tmp_path, table):
    trace = read_trace(hostile.every(tmp_path))
    assert_inert(export(getattr(trace, table), tmp_path / table, formats=["csv", "md", "tex", "html", "parquet"]))


def assert_inert(files: list[Path]) -> None:
    for file in files:
        data = file.read_bytes()
        if file.suffix == ".svg":
            assert hostile.picture(data) == []
        elif file.suffix == ".pdf":
            assert not re.findall(rb"/(URI|JS|JavaScript|Launch|OpenAction|AA|SubmitForm|EmbeddedFile)\b", data)
        elif file.suffix in (".csv", ".md", ".tex", ".html"):
            look = {".csv": hostile.cells, ".md": hostile.marked, ".tex": hostile.latex, ".html": hostile.page}
            text = data.decode()
            assert look[file.suffix](text if file.suffix == ".csv" else re.sub("[\t\r]", " ", text)) == [], file


GREAT: Final = (
    "caption large fontsize selectfont linewidth extracolsep fill toprule midrule addlinespace bottomrule multicolumn"
)


def test_comparisons_as_files_and_for_a_paper(traces, tmp_path):
    frame = mcplab.compare(traces, by=["client", "client_version"])
    assert_inert(export(frame, tmp_path / "c", formats=["csv", "md", "tex", "html"]))
    table = mcplab.publish(frame.iloc[:60], title=TEXTS["script"], caption=TEXTS["tex"] + TEXTS["ansi"])
    page, tex = (file.read_text() for file in export(table, tmp_path / "p"))
    assert hostile.page(page, typeset=False) + hostile.latex(tex, GREAT) == []


@pytest.fixture(scope="module")
def charts(traces: Any) -> dict[str, Any]:
    http = next(trace for trace in traces if trace.name == "http")
    found = mcplab.check(traces)
    frame = mcplab.compare(traces, by=["client", "client_version"])
    released = frame.iloc[:, :8].copy()
    released.attrs = {}
    releases = [(TEXTS[name], f"{n} {TEXTS[name]}") for name in ("script", "math", "bidi", "empty") for n in (1, 2)]
    released.columns = pd.MultiIndex.from_tuples(releases, names=frame.columns.names)
    return {
        "declarations": lambda: plots.declarations(frame),
        "drift": lambda: plots.drift(released),
        "findings": lambda: plots.findings(found, connections=traces.connections),
        "latency": lambda: plots.latency(traces.exchanges),
        "negotiation": lambda: plots.negotiation(http.messages, events=http.events),
        "sequence": lambda: plots.sequence(http.messages, events=http.events),
        "timeline": lambda: plots.timeline(http.messages, http=http.http, events=http.events, exchanges=http.exchanges),
        "strip": lambda: plots.timeline(mcplab.timeline(http, steps=20)),
        "versions": lambda: plots.versions(traces.connections),
    }


@pytest.mark.parametrize(
    "name", "declarations drift findings latency negotiation sequence timeline strip versions".split()
)
def test_charts(charts, tmp_path, name):
    chart = charts[name]()
    assert hostile.terminal(plots.alt_text(chart)) == []
    assert_inert(export(chart, tmp_path / name, formats=["svg", "pdf", "png", "html"]))
    assert hostile.terminal(Picture(chart)._repr_mimebundle_()[1]["image/png"]["alt"]) == []


def test_diagrams_displays_and_writeups(traces):
    for trace in traces:
        assert hostile.diagram(render.mermaid(trace.messages, trace.events, limit=400)) == []
        assert hostile.terminal(render.text(trace)) == []
        assert hostile.terminal(render.text(trace, colour=True), colour=True) == []
        assert hostile.page(trace._repr_html_()) == []
        assert hostile.terminal(repr(trace)) == []
    assert hostile.terminal(repr(traces)) + hostile.page(traces._repr_html_()) == []
    assert hostile.terminal(mcplab.caption(traces)) + hostile.terminal(mcplab.methods(traces)) == []


def test_tables_in_a_notebook_are_not_typeset(traces):
    for table in TABLES:
        found = hostile.page(getattr(traces, table).head(40)._repr_html_())
        assert [one for one in found if one.startswith(("typeset", "<", "on", "href", "src", "style"))] == []


# Records for machines ---------------------------------------------------------------------------------------------


def test_observed(traces):
    text = observed_json(traces)
    json.loads(text)
    assert hostile.terminal(text, forged=False) == []
