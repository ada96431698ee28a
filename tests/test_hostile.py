"""Nothing that a peer wrote is active in any output: terminal, spreadsheet, page, notebook, SVG, LaTeX, Markdown, XML."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import hostile
import pandas as pd
import pytest
from hostile import TEXTS

import mcplab
from mcplab import cli, export, plots, read_trace, read_traces, render, stories
from mcplab.cli.tables import TABLES
from mcplab.feed import observed_json
from mcplab.formats import WRITERS
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


@pytest.fixture(autouse=True)
def no_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine shows some, and they hold no text of a trace."""
    monkeypatch.setattr("mcplab.progress.DELAY", 3600)


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
    comment, _, tex = tex.partition("\n")
    assert comment.startswith("% needs booktabs"), "ours, and the only one"
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


TOLD: Final = (
    "overview", "crossed", "silent", "discoveries", "waits", "broken_by_client", "breaches", "behind", "fallbacks",
    "offers", "era_headline",
)  # fmt: skip


def test_what_notebooks_tell(traces, tmp_path):
    frame = mcplab.compare(traces)
    told = [getattr(stories, name)(traces) for name in TOLD]
    told += [
        stories.quote(traces, kind) for kind in ("initialize", "initialize_result", "request_meta", "discover_result")
    ]
    told += [
        stories.proof(frame, traces),
        stories.spread(frame, traces),
        stories.headline(frame),
        stories.losses(mcplab.reach("roots", traces)),
    ]
    told += [stories.accounted(mcplab.variance(traces)), stories.kept(mcplab.promises(traces))]
    told += [one(trace) for trace in traces for one in (stories.strip, lambda trace: stories.about(trace, "legacy"))]
    for block in told:
        shown = block if isinstance(block, stories.Told) else stories.Told(block)
        assert hostile.terminal(repr(shown)) + hostile.page(shown._repr_html_()) == []


# Other files, commands and names of files -------------------------------------------------------------------------


@pytest.mark.parametrize("era", hostile.ERAS)
def test_converted_and_redacted_files(folder, tmp_path, capsys, era):
    for kind in (*WRITERS, "mermaid"):
        run(capsys, "convert", folder / f"{era}.jsonl", tmp_path / kind, "--to", kind)
    run(capsys, "redact", folder / f"{era}.jsonl", "-o", tmp_path / "redacted", "--redact", "tokens")
    for file in tmp_path.iterdir():
        text = file.read_text()
        assert hostile.terminal(text, forged=False) == [], file
        for whole in {"mermaid": [], "chrome-trace": [text]}.get(file.name, text.splitlines()):
            json.loads(whole)


def test_a_corpus_and_its_questions(folder, tmp_path, capsys):
    pytest.importorskip("duckdb")
    corpus = tmp_path / "corpus"
    run(
        capsys,
        "corpus",
        "build",
        folder / "stdio.jsonl",
        hostile.alone(tmp_path / "alone", "bidi"),
        "-o",
        corpus,
        "--messages",
    )
    for table, kind in (("instances", "text"), ("declarations", "md"), ("findings", "json"), ("messages", "csv")):
        assert judged(run(capsys, "corpus", "sql", corpus, f"select * from {table} limit 200", "-f", kind), kind) == []
    assert judged(run(capsys, "corpus", "compare", corpus, "-f", "csv"), "csv") == []
    assert "user" in run(capsys, "corpus", "compare", corpus, "--client", TEXTS["bidi"])
    for text in (TEXTS["ansi"], TEXTS["lines"], "\udcff"):
        run(capsys, "corpus", "compare", corpus, "--client", text)
        wrong(capsys, "corpus", "compare", corpus, "--since", text)
        wrong(capsys, "corpus", "sql", corpus, text)


def test_lone_surrogates_do_not_stop_a_corpus(tmp_path, capsys):
    """What Arrow cannot hold: once the whole build failed of it."""
    pytest.importorskip("duckdb")
    hostile.alone(tmp_path / "in", "surrogate")
    run(capsys, "corpus", "build", tmp_path / "in", "-o", tmp_path / "corpus")
    said = run(capsys, "corpus", "sql", tmp_path / "corpus", "select client, count(*) from findings group by all")
    assert r"\ud83d lone \udc00" in said


def wrong(capsys: pytest.CaptureFixture[str], *words: object) -> None:
    """Wrong use: one line on stderr, which no text of it forges."""
    capsys.readouterr()
    assert cli.run([str(word) for word in words]) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("mcplab: ")
    assert hostile.terminal(said.err) == []


@pytest.mark.parametrize("name", [*(name for name in hostile.FEW if name != "empty"), "osc", "option", "long"])
def test_wrong_use_is_one_line(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    file, text = hostile.alone(tmp_path, "markdown"), TEXTS[name]
    for words in (
        (text,), ("read", file, "--" + text), ("read", file, "-t", text), ("read", file, "-f", text), ("compare", file, "--by", text),
        ("check", file, "--level", text), ("explain", file, "--", text), ("rules", "--", "no " + text), ("timeline", file, "--axis", text),
        ("convert", file, "x", "--to", text), ("convert", file, "x", "--from", text), ("read", "--", "bundled:x" + text),
        ("diff", "--", file, "no" + text), ("show", "--", "no" + text), ("redact", file, "--redact", f"/({text}/"),
    ):  # fmt: skip
        wrong(capsys, *words)


def test_names_of_files(tmp_path, capsys, monkeypatch, captures):
    """A name comes with the file: from a stranger's archive, say. Beside them one that cannot be read, and one that is gone."""
    good = captures[0].read_bytes()
    some = "ansi lines formula script markdown tex mermaid bidi zero path option dots".split()
    names = {os.fsencode(hostile.file_name(TEXTS[name])) for name in some} | {b"\xff.jsonl", b"--help.jsonl"}
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for name in names:
        Path(os.fsdecode(name)).write_bytes(good)
    Path("broken\x1b[31m\nforged line\u202e").write_text("nonsense")
    for kind in FORMATS:
        assert judged(run(capsys, "compare", ".", "--by", "trace", "-f", kind), kind) == []
        assert judged(run(capsys, "check", ".", "-f", kind), kind) == []
    for name in map(os.fsdecode, names):
        assert hostile.terminal(run(capsys, "show", "--", name)) == []
        run(capsys, "redact", "--", name)
        wrong(capsys, "show", "--", name + "gone")
    assert {file.name for file in tmp_path.iterdir()} == {"in"}


# Records for machines ---------------------------------------------------------------------------------------------


def test_observed(traces):
    text = observed_json(traces)
    json.loads(text)
    assert hostile.terminal(text, forged=False) == []
