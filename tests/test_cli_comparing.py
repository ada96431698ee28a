"""The commands that hold statements against each other, as one calls them."""

from __future__ import annotations

import csv
import io
import json

import pytest

from mcplab.cli import run
from mcplab.comparison import compare
from mcplab.told import Told
from mcplab.traces import make_trace, read_trace
from tests.test_cli import initialize, invoke
from tests.test_published import NOTE


def test_a_capture_of_an_unknown_client_beside_the_bundled_ones(tmp_path):
    mine = tmp_path / "mine.jsonl"
    make_trace(initialize({"sampling": {}}, "never-heard-of-it")).save(mine)
    alone = list(csv.reader(io.StringIO(invoke("compare", str(mine), "--by", "client", "-f", "csv"))))
    assert alone[0] == ["path", "never-heard-of-it"]
    both = list(csv.reader(io.StringIO(invoke("compare", str(mine), "--with-bundled", "--by", "client", "-f", "csv"))))
    assert {"never-heard-of-it", "codex", "fast-agent"} < set(both[0])
    assert [row[both[0].index("never-heard-of-it")] for row in both if row[0] == "sampling"] == ["empty"]
    assert len(both[0]) == 22  # the path, 20 bundled clients and mine


def test_a_client_called_as_the_first_column_is(tmp_path, capsys):
    mine = tmp_path / "path.jsonl"
    make_trace(initialize({"sampling": {}}, "path")).save(mine)
    for by in ("client", "trace"):
        assert invoke("compare", str(mine), "--by", by, "-f", "csv").startswith("path,path\n")
        assert run(["compare", str(mine), "--by", by, "-f", "json"]) == 1
        assert "two columns are called 'path'; use csv, or another --by" in capsys.readouterr().err
    assert repr(Told(compare(read_trace(mine), by="client"))).startswith("path")


def test_compare_by_tier(tmp_path):
    text = invoke("compare", "bundled:codex", "--tier", "read", "--by", "client", "-f", "json")
    rows = {row["path"]: row for row in json.loads(text)}
    assert (rows["elicitation"]["codex"], rows["roots"]["codex"], rows["sampling"]["goose"]) == ("yes", "no", "yes")
    assert "codex exercised" in invoke("compare", "bundled:codex", "--tier", "all", "--by", "client")
    assert run(["compare", "bundled:codex", "--tier", "told"]) == 2
    chart = tmp_path / "chart.svg"
    assert run(["compare", "bundled:codex", "--tier", "read", "-o", str(chart)]) == 0
    assert "yes, it says" in chart.read_text(encoding="utf-8")


def test_claims(tmp_path, capsys):
    note = tmp_path / "note.md"
    note.write_text(NOTE, encoding="utf-8")
    (tmp_path / "bad.md").write_text("x", encoding="utf-8")
    rows = json.loads(invoke("claims", str(note), "--client", "Quiet", "-f", "json"))
    assert [(row["path"], row["declares"], row["state"]) for row in rows] == [("$", "no", "empty")]
    assert "1bb8433" in invoke("claims", "--client", "goose")
    assert run(["claims", str(tmp_path)]) == 0
    assert "mcplab: left out bad.md: no research note" in capsys.readouterr().err
    assert run(["claims", str(tmp_path / "bad.md")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_contradictions_variance_and_promises(tmp_path):
    out = tmp_path / "out.csv"
    assert run(["contradictions", "bundled:fast-agent", "-o", str(out)]) == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert [(row["client"], row["path"], row["reason"]) for row in rows] == [("fast-agent", "sampling", "wrong")]
    rows = json.loads(invoke("contradictions", "bundled:fast-agent", "--client", "fast-agent", "-f", "json"))
    assert {row["client"] for row in rows} == {"fast-agent"}
    assert "features.auth_elicitation" in invoke("variance", "bundled:codex", "--client", "codex")
    assert run(["variance", "bundled:codex", "--client", "nobody"]) == 2
    text = invoke("promises", "bundled:chuk-mcp")
    assert "declared, never used" in text
    assert "unanswered" in text


def test_a_file_that_is_no_format_names_what_can_be_written(tmp_path, capsys):
    assert run(["compare", "bundled:cline", "-o", str(tmp_path / "x.docx")]) == 2
    assert "chart is written as svg, pdf, png, the table as csv, md, parquet, tex, html" in capsys.readouterr().err


def test_claims_of_ones_own_are_held_against_captures(tmp_path):
    note = tmp_path / "note.md"
    note.write_text("---\nid: n\n---\n| Client | Declares |\n|---|---|\n| cline | roots |\n", encoding="utf-8")
    rows = json.loads(invoke("contradictions", "bundled:cline", "--claims", str(note), "-f", "json"))
    assert [(row["client"], row["path"], row["claimed"], row["found"], row["reason"]) for row in rows] == [
        ("cline", "roots", "yes", "no", "unknown"),
    ]  # fmt: skip
    both = invoke("contradictions", "bundled:cline", "--claims", str(note), "--claims", "bundled:", "-f", "json")
    assert {row["against"] for row in json.loads(both) if row["client"] == "cline"} == {"observed", "read"}


def test_a_row_of_several_connections_says_whose_calls_it_counts(tmp_path, capsys):
    ask, answer = ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), {"jsonrpc": "2.0", "id": 1}
    line = "2026-03-02T09:15:00.012Z [info] [{}] Message from {}: {}\n"
    said = [ask, ("server", answer | {"result": {"tools": []}})]
    log = tmp_path / "mcp.log"
    log.write_text("".join(line.format(name, who, json.dumps(m)) for name in ("db", "wiki") for who, m in said))
    note = "calls and discovery are the instance's: of all its connections together (-t exchanges tells them apart)\n"
    assert run(["read", str(log)]) == 0
    assert capsys.readouterr().err == note
    log.write_text("".join(line.format("db", who, json.dumps(m)) for who, m in said))
    assert run(["read", str(log)]) == 0
    assert capsys.readouterr().err == ""


def test_where_nobody_knows_who_sent_what_nothing_is_judged_and_that_is_said(tmp_path, capsys):
    file = tmp_path / "a.jsonl"
    file.write_text('{"jsonrpc":"2.0","id":7,"result":{}}\n{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"x"}}\n')
    assert run(["check", str(file)]) == 0
    assert capsys.readouterr().out.endswith("; nothing can be judged: no message whose sender is known\n")
    assert run(["check", "bundled:cline", "--rule", "roots", "--party", "server"]) == 0
    assert "nothing can be judged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("output", "words"),
    [("-", "-o names a file; without it a table is printed"), ("a.pdf", "it is a folder; name a file, as ")],
)
def test_an_output_that_is_no_file(output, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pdf").mkdir()
    assert run(["compare", "bundled:cline", "-o", output]) == 2
    assert words in capsys.readouterr().err


def test_a_named_file_that_cannot_be_read_shows_in_the_status_of_an_export_too(tmp_path, capsys):
    (tmp_path / "diary.txt").write_text("hello\n")
    sources = ["bundled:cline", str(tmp_path / "diary.txt")]
    for command in (["read"], ["compare"]):
        assert run([*command, *sources, "-o", str(tmp_path / "t.csv")]) == 1
        assert "diary.txt" in capsys.readouterr().err
    assert (tmp_path / "t.csv").is_file()


def test_hints_are_counted_apart(tmp_path, capsys):
    listed = [
        ("client", {"jsonrpc": "2.0", "id": 5, "method": "resources/list"}),
        ("server", {"jsonrpc": "2.0", "id": 5, "result": {"resources": [{"uri": "a://b"}]}}),
    ]
    file = str(make_trace([*initialize({}), *listed]).save(tmp_path / "a.jsonl"))
    assert run(["check", file, "--rule", "schema", "--hints"]) == 0
    *_, hint, counts = capsys.readouterr().out.splitlines()
    assert hint.endswith("MUST schema.result [server] result.resources[0].name is absent")
    assert counts.startswith("1 trace: 0 broken, ")
    assert counts.endswith(" unexercised, 1 hint")
