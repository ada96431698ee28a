"""A corpus says what its traces say, cell for cell."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pandas.testing import assert_frame_equal

from mcplab import corpus, stories
from mcplab.cli import run
from mcplab.comparison import compare, reach
from mcplab.corpus import part, plan, reading
from mcplab.corpus.store import Corpus
from mcplab.data import notebooks_dir, traces_dir
from mcplab.formats import packs
from mcplab.model import ArgumentError, TraceError
from mcplab.report.execute import execute, parametrized
from mcplab.traces import Traces, make_trace, read_traces
from mcplab.varying import variance

ROOT = Path(__file__).parent.parent
TABLES = ("connections", "declarations", "exchanges", "messages", "findings")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(plan, "PART", 40_000)


@pytest.fixture(scope="module")
def a_day(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    corpus.day(folder, 240, each=20)
    return folder


@pytest.fixture(scope="module")
def bundled() -> Traces:
    return read_traces(traces_dir())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Corpus:
    return corpus.build(traces_dir(), tmp_path_factory.mktemp("bundled") / "corpus", messages=True)


# The same as the traces ----------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_the_bundled_captures(table, made, bundled):
    assert_frame_equal(getattr(made, table), getattr(bundled, table))


@pytest.mark.parametrize("party", ["client", "server"])
@pytest.mark.parametrize(
    "by", ["client", ["client", "client_version"], ["transport", "era"], "config", "instance", "trace"], ids=str
)
def test_compare(by, party, made, bundled):
    pytest.importorskip("duckdb")
    ours, theirs = made.compare(by=by, party=party), compare(bundled, by=by, party=party)
    assert_frame_equal(ours, theirs)
    for name in ("counts", "instances", "era", "party", "tier"):
        assert ours.attrs[name] == theirs.attrs[name]
    for key, proof in list(ours.attrs["evidence"].items())[:200]:
        assert set(proof) <= set(theirs.attrs["evidence"][key])


def test_compare_of_a_selection(made, bundled):
    pytest.importorskip("duckdb")
    some = stories.of_client(bundled, ["codex"])
    chosen = made.select(client="codex")
    assert_frame_equal(chosen.compare(by="client_version"), compare(some, by="client_version"))
    assert_frame_equal(chosen.findings, some.findings)
    assert len(chosen) == len(some)
    one = chosen.select(version="0.129.0")
    assert set(one.connections["client_version"]) == {"0.129.0"}
    assert one.sql("select distinct client_version v from connections")["v"].tolist() == ["0.129.0"]
    assert one.compare().columns.tolist() == ["codex"]


def test_reach_and_versions(made, bundled):
    pytest.importorskip("duckdb")
    paths = ["elicitation.url", "elicitation.form", "sampling.tools", "roots"]
    assert_frame_equal(made.reach(paths), reach(paths, bundled))
    assert_frame_equal(made.versions(), stories.offers(bundled))


def test_variance(made, bundled):
    assert_frame_equal(made.variance(), variance(bundled))
    assert_frame_equal(made.variance("fast-agent"), variance(bundled, "fast-agent"))


def test_counts_of_findings(made, bundled):
    pytest.importorskip("duckdb")
    who = bundled.connections.drop_duplicates("instance")[["instance", "client", "client_version"]]
    rows = bundled.findings.merge(who, on="instance")
    keys = ["client", "client_version", "rule", "verdict"]
    wanted = rows.groupby(keys).agg(findings=("rule", "size"), instances=("instance", "nunique")).reset_index()
    found = made.counts().sort_values(keys).reset_index(drop=True)
    assert_frame_equal(found, wanted.sort_values(keys).reset_index(drop=True))
    with pytest.raises(ArgumentError, match="by='mood'"):
        made.counts("mood")


def test_instances(made, bundled):
    rows = made.instances.set_index("instance")
    links = bundled.connections
    assert list(rows.index) == list(dict.fromkeys(links["instance"]))
    assert (rows["connections"] == links.groupby("instance", sort=False).size()).all()
    assert (rows["messages"] == links.groupby("instance", sort=False)["messages"].sum()).all()
    broken = bundled.findings.query("verdict == 'broken'").groupby("instance").size()
    assert rows["broken"].astype(int).to_dict() == broken.reindex(rows.index).fillna(0).astype(int).to_dict()


def test_instances_of_one_kind_declare_the_same(made, bundled):
    each = compare(bundled, by="instance")
    for _, rows in made.instances.groupby("kind"):
        columns = [tuple(each[name]) for name in rows["instance"]]
        assert len(set(columns)) == 1


def test_the_notebook_finds_what_was_planted(tmp_path):
    pytest.importorskip("duckdb")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(notebooks_dir() / "07-many-traces.ipynb", as_version=4)
    made = parametrized(notebook, {"SESSIONS": 400, "OUT": "."})
    assert execute(made, tmp_path, timeout=60) == ""
    said = {cell.id: str(cell.get("outputs", "")) for cell in made.cells}
    assert "The numbers are those that the day was made with." in said["who-code"]
    assert "dogwood" in said["rules-code"]
    assert re.search(r"alder 1\.5\.0, from 15:\d\d on:", said["drift-diff"])
    assert "sampling.tools" in said["drift-diff"]
    assert "'read': 0" in said["again-code"] or "'new': 0" in said["again-code"]
    assert (tmp_path / "charts" / "gateway-hours.svg").exists()


# Selection and SQL ---------------------------------------------------------------------------------


def test_a_day_has_the_shares_that_it_was_made_with(tmp_path):
    pytest.importorskip("duckdb")
    told = corpus.day(tmp_path / "day", 400, each=150)
    found = corpus.build(tmp_path / "day", tmp_path / "corpus", check=False)
    assert len(found) == told["sessions"].sum() == 400
    counted = found.sql("select client, client_version, count(*) as n from instances group by all order by all")
    wanted = told.groupby(["client", "client_version"])["sessions"].sum()
    assert counted.set_index(["client", "client_version"])["n"].to_dict() == wanted.to_dict()
    before, after = (
        found.select(version="1.5.0", **when) for when in ({"until": "2026-01-05T15:00"}, {"since": "2026-01-05T15:00"})
    )
    assert before.compare().loc["sampling.tools"].tolist() == ["empty"]
    assert "sampling.tools" not in after.compare().index
    assert len(before) + len(after) == wanted["alder", "1.5.0"]
    with pytest.raises(TraceError, match="built without findings; build it with check=True"):
        _ = found.findings


def test_only_the_eager_break_a_rule(a_day, tmp_path):
    pytest.importorskip("duckdb")
    found = corpus.build(a_day, tmp_path / "c")
    broken = found.counts().query("verdict == 'broken'")
    assert broken[["client", "rule"]].to_numpy().tolist() == [["dogwood", "lifecycle.client-waits-for-result"]]
    n = found.sql("select count(*) n from instances where client = 'dogwood'")["n"][0]
    assert broken["instances"].tolist() == [n]


def test_wrong_questions(made, tmp_path):
    pytest.importorskip("duckdb")
    with pytest.raises(ArgumentError, match="the query failed: Catalog Error: Table with name nothing"):
        made.sql("select * from nothing")
    with pytest.raises(ArgumentError, match="no column 'colour'"):
        made.select(colour="red")
    with pytest.raises(ArgumentError, match="'teatime' is no time"):
        made.select(since="teatime")
    with pytest.raises(ArgumentError, match="no table 'nothing'"):
        made.table("nothing")
    with pytest.raises(TraceError, match="holds no finished corpus"):
        corpus.open(tmp_path)
    (tmp_path / "corpus.json").write_text("[]")
    with pytest.raises(TraceError, match="not the manifest of a corpus"):
        corpus.open(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{}/other.txt')", "select * from glob('{}/*')", "copy (select 1) to '{}/new.csv'",
        "attach '{}/new.db'", "install httpfs", "set enable_external_access = true", "select * from os",
    ],
)  # fmt: skip
def test_sql_reaches_no_other_file_and_nothing_of_python(query, made, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "other.txt").write_text("private")
    with pytest.raises(ArgumentError, match=r"Permission Error|configuration has been locked|does not exist"):
        made.sql(query.format(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]
    assert len(made.select(client="codex").sql("select * from connections")) > 0


def test_sql_goes_on_in_temporary_files_and_where_a_folder_has_a_quote(made, tmp_path):
    pytest.importorskip("duckdb")
    home = shutil.copytree(made.home, tmp_path / "it's")
    found = corpus.open(home, memory="60MB", threads=1)
    wide = (
        "select max(n) m from (select row_number() over (order by hash(i)) n, repeat('x', 60) from range(1000000) t(i))"
    )
    assert found.sql(wide)["m"].tolist() == [1_000_000]
    assert found.sql("select count(*) n from instances")["n"].tolist() == [len(made)]


def test_sql_has_times_in_utc_and_missing_words(made):
    pytest.importorskip("duckdb")
    rows = made.sql("select first, server from instances where first is not null order by first limit 1")
    assert rows["first"][0] == made.instances["first"].min()
    assert str(rows["first"].dtype).endswith("UTC]")


def test_an_empty_selection_and_an_empty_corpus(made, tmp_path):
    pytest.importorskip("duckdb")
    nobody = made.select(client="nobody")
    assert len(nobody) == len(nobody.connections) == len(nobody.findings) == 0
    assert nobody.compare().shape[1] == 0
    (tmp_path / "junk.txt").write_text("no trace at all")
    nothing = corpus.build(tmp_path / "junk.txt", tmp_path / "c")
    assert len(nothing) == 0
    assert nothing.failed["file"].tolist() == ["junk.txt"]
    assert nothing.sql("select * from declarations").empty
    assert nothing.compare().shape[1] == 0


def test_temporary_files_go_with_the_corpus(a_day, tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = corpus.build(a_day, tmp_path / "c", check=False)
    found.sql("select 1")
    assert len(list(tmp_path.glob("mcplab-corpus-*"))) == 1
    del found
    assert not list(tmp_path.glob("mcplab-corpus-*"))


def test_commands(a_day, tmp_path, capsys):
    pytest.importorskip("duckdb")
    home = str(tmp_path / "c")
    assert run(["corpus", "build", str(a_day), "-o", home]) == 0
    assert "240 instances of 12 files" in capsys.readouterr().out
    assert run(["corpus", "sql", home, "select count(*) as n from instances", "--client", "birch", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": len(corpus.open(home).select(client="birch"))}]
    assert run(["corpus", "compare", home, "--by", "client", "--version", "1.5.0"]) == 0
    assert "alder" in capsys.readouterr().out
    assert run(["corpus", "status", home, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["instances"] == 240
    (tmp_path / "junk.txt").write_text("nothing")
    assert run(["corpus", "build", str(tmp_path / "junk.txt"), "bundled:opencode", "-o", home, "--no-check"]) == 1
    assert "mcplab: left out" in (said := capsys.readouterr().err)
    assert "junk.txt" in said
    assert run(["corpus", "status", home, "--failed"]) == 0
    assert "junk" in capsys.readouterr().out
    assert run(["corpus", "sql", home, "no query"]) == 2
    assert run(["corpus", "status", str(tmp_path / "nowhere")]) == 1


# Files ---------------------------------------------------------------------------------------------


def test_files_of_many_captures(a_day, tmp_path):
    traces = read_traces(a_day)
    assert len(traces) == 240
    assert traces[20].name == "gateway-0001:1"
    found = corpus.build(a_day, tmp_path / "c", messages=True)
    for table in TABLES:
        assert_frame_equal(getattr(found, table), getattr(traces, table))


def test_a_pack_in_pieces_of_any_size():
    head = b'{"kind":"header","format":"mcplab-trace","version":1}\n'
    event = b'{"kind":"message","seq":0,"conn":"c","msg":{"format":"mcplab-trace","kind":"header"}}\n'
    last = b'{"format":"mcplab-trace", "kind":"header"}'
    data = head + event * 3 + head + event + head * 2 + event + last
    whole = list(packs.captures([data]))
    assert [each.count(b"\n") for each in whole] == [4, 2, 1, 2, 0]
    for size in range(1, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(packs.captures(pieces)) == whole
    assert packs.several(data)
    assert not packs.several(b"\n" + head + event)
    assert packs.several(event + head)


def test_compressed_packs(a_day, tmp_path):
    source = next(iter(sorted(a_day.iterdir())))
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / f"{source.name}.gz").write_bytes(gzip.compress(source.read_bytes(), mtime=0))
    found = corpus.build(tmp_path / "day", tmp_path / "c")
    plain = corpus.build(source, tmp_path / "d")
    assert_frame_equal(found.connections, plain.connections)


def test_a_log_of_a_gateway_is_taken_apart(tmp_path, monkeypatch):
    """Connections that run at the same time, in one capture; two peers share a session."""
    monkeypatch.setattr(reading, "SPOOL", 2_000)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "same", "version": "1"}}
    lines = ['{"kind":"header","format":"mcplab-trace","version":1,"transport":"streamable-http"}']
    wanted: dict[str, list[str]] = {}

    def say(conn: str, direction: str, message: Any, facts: dict[str, Any], owner: str | None = None) -> None:
        event = {
            "kind": "message",
            "seq": len(lines) - 1,
            "conn": conn,
            "dir": direction,
            "http": facts,
            "msg": message,
        }
        lines.append(json.dumps(event))
        wanted.setdefault(owner or conn, [lines[0]]).append(lines[-1])

    conns = [f"peer-{n}" for n in range(30)]
    for conn in conns:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        say(conn, "c2s", ask, {"method": "POST", "path": "/mcp", "headers": {}, "exchange": "x1"})
    for conn in conns:
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}
        say(conn, "s2c", answer, {"status": 200, "headers": {"mcp-session-id": f"s-{conn}"}, "exchange": "x1"})
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    own = {"method": "POST", "path": "/mcp", "headers": {"mcp-session-id": "s-peer-7"}, "exchange": "x1"}
    say("late", "c2s", ping, own, owner="peer-7")
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines) + "\n")
    assert set(read_traces(file).connections["instance"]) == {"log"}
    found = corpus.build(file, tmp_path / "c", split=True, messages=True)
    assert set(found.instances["instance"]) == {f"log@{conn}" for conn in conns}
    for conn, text in wanted.items():
        alone = read_traces("\n".join(text) + "\n")
        mine = found.select(instance=f"log@{conn}")
        for table in TABLES:
            skip = ["trace", "instance", "config", "evidence"]
            theirs = getattr(alone, table).drop(columns=skip, errors="ignore")
            assert_frame_equal(getattr(mine, table).drop(columns=skip, errors="ignore"), theirs)


def test_what_cannot_be_read_is_listed_as_read_traces_lists_it(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    good = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})])
    good.save(folder / "good.jsonl")
    (folder / "empty.jsonl").write_text("")
    (folder / "junk.log").write_text("nothing to see")
    (folder / "later.jsonl").write_text('{"kind":"header","format":"mcplab-trace","version":99}\n')
    (folder / "nowhere.jsonl").symlink_to("gone")
    text = (folder / "good.jsonl").read_text()
    (folder / "pack.jsonl").write_text(text + '{"kind":"header","format":"mcplab-trace","version":99}\n' + text)
    traces, found = read_traces(folder), corpus.build(folder, tmp_path / "c")
    assert sorted(found.failed["file"]) == sorted(traces.failed["file"])
    assert sorted(found.instances["trace"]) == sorted(trace.name for trace in traces)
    (tmp_path / "none").mkdir()
    with pytest.raises(TraceError, match="the folder holds no file"):
        corpus.build(tmp_path / "none", tmp_path / "d")
    with pytest.raises(TraceError, match="not of Traces"):
        corpus.build([traces], tmp_path / "d")


def test_a_capture_that_breaks_a_table_stops_no_other(a_day, tmp_path, monkeypatch):
    whole = part.declared.add

    def add(columns: Any, wire: Any, name: str, found: Any) -> None:
        whole(columns, wire, name, found)
        if name.endswith(":7"):
            raise RuntimeError("as if\nit were broken")

    monkeypatch.setattr(part.declared, "add", add)
    found = corpus.build(a_day, tmp_path / "c")
    assert len(found) == 240 - 12
    assert set(found.failed["error"]) == {"RuntimeError: as if it were broken"}
    monkeypatch.undo()
    kept = corpus.build(a_day, tmp_path / "whole").select(instance=list(found.instances["instance"]))
    for table in ("connections", "declarations", "exchanges", "findings"):
        assert_frame_equal(getattr(found, table), getattr(kept, table))


def test_a_line_that_cannot_be_read_accuses_nobody_here_either(tmp_path):
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    opening = stories.hello({}, {"tools": {}})
    trace = make_trace([{"kind": "open"}, *opening, ("client", asked), {"kind": "close"}])
    trace.save(tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "notifications/initialized" in line)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "a.jsonl").write_text("".join([*lines[:at], lines[at][:60] + "\n", *lines[at + 1 :]]))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "a.jsonl").write_text("".join([*lines[:at], *lines[at + 1 :]]))
    for folder, broken in (("half", False), ("none", True)):
        found = corpus.build(tmp_path / folder, tmp_path / f"{folder}-corpus").findings
        assert_frame_equal(found, read_traces(tmp_path / folder).findings)
        assert ("broken" in set(found["verdict"])) == broken
