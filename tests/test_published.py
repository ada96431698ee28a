"""What documents and published tables say of clients: notes, claims files, tables; hostile ones told in a line."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab import ClaimsError, claims
from mcplab.model import COLUMNS
from mcplab.published.frontmatter import split_note
from mcplab.published.note import MAX_TABLES, place_of, read_note
from mcplab.published.words import answer, capability_of, declared

NOTE = """---
id: sample-note
title: "What: sample clients declare"
kind: idiosyncrasy
summary: >
  Two lines
  of summary.
capabilities:
  - roots
  - roots.listChanged
  - sampling
clients:
  - sample-agent
specVersions: [2025-11-25, 2026-07-28]
sources:
  - url: https://example.org/agent
    title: src/a.py, where it is built
    commit: 0123abcd   # short
    path: src/a.py:3-9,12
    date: 2026-08-25
  - url: https://example.org/sdk
    path: sdk/session.py
status: current
lastVerified: 2026-08-25
related:
canonical: https://example.org/research/sample-note
---

# Sample, see [[other-note]] and [[third-note|its title]] and [[other-note]]

| Callback | Present when |
|---|---|
| `a` | always |

```
| Client | Declares |
|---|---|
| not a table | it is code |
```

| Client | Declares |
|:--|---|
| [Codex CLI](/clients/codex.md) | elicitation |
| Quiet | nothing |
| Coy | less than it implements |
| sample-agent | sampling and roots by default; elicitation per server; all three configurable per server |
| Odd | whatever suits it; roots |
| Short |
"""


def rows_of(frame: pd.DataFrame, name: str) -> dict[str, dict[str, object]]:
    part = frame[frame["name"] == name]
    return {row.pop("path"): row for row in part.astype(object).where(part.notna(), None).to_dict("records")}


@pytest.fixture
def note(tmp_path):
    path = tmp_path / "sample.md"
    path.write_text(NOTE, encoding="utf-8")
    return path


# Notes -----------------------------------------------------------------------------------------------------


def test_front_matter_stays_text_and_what_is_missing_stays_missing():
    read = read_note(NOTE, "sample.md")
    about = read.about
    assert about["title"] == "What: sample clients declare"
    assert about["summary"] == "Two lines of summary."
    assert about["specVersions"] == ["2025-11-25", "2026-07-28"]
    assert about["related"] is None
    assert "last-updated" not in about
    assert about["sources"][0] == {
        "url": "https://example.org/agent", "title": "src/a.py, where it is built", "commit": "0123abcd",
        "path": "src/a.py:3-9,12", "date": "2026-08-25",
    }  # fmt: skip
    assert "commit" not in about["sources"][1]
    assert read.links == ("other-note", "third-note")
    assert [table.columns for table in read.tables] == [("Callback", "Present when"), ("Client", "Declares")]
    assert read.tables[1].rows[-1] == ("Short", None)


def test_a_note_makes_statements_with_their_citations(note):
    frame = claims(note)
    assert list(frame.columns) == list(COLUMNS["statements"])
    assert {name: str(frame[name].dtype) for name in frame} == {
        name: {"int64": "int64"}.get(kind, kind) for name, kind in COLUMNS["statements"].items()
    }
    codex = rows_of(frame, "Codex CLI")
    line = next(n for n, text in enumerate(NOTE.split("\n"), 1) if "Codex CLI" in text)
    assert codex["$"]["client"] == "codex"  # the bundled claims say so
    assert codex["$"]["only"] is True
    assert codex["elicitation"]["declares"] == "yes"
    assert codex["elicitation"]["commit"] is None  # the sources are about sample-agent
    assert codex["elicitation"]["evidence"] == f"https://example.org/research/sample-note (sample.md:{line})"
    assert rows_of(frame, "Quiet")["$"] | {"evidence": ""} == rows_of(frame, "Quiet")["$"] | {
        "state": "empty", "declares": "no", "only": True, "evidence": "",
    }  # fmt: skip
    coy = rows_of(frame, "Coy")
    assert set(coy) == {"$"}
    assert (coy["$"]["declares"], coy["$"]["implements"], coy["$"]["only"]) == ("unknown", "more", None)
    agent = rows_of(frame, "sample-agent")
    assert {path: (row["declares"], row["when"], row["settings"]) for path, row in agent.items() if path != "$"} == {
        "sampling": ("yes", "by default", "server_entry"), "roots": ("yes", "by default", "server_entry"),
        "elicitation": ("varies", "per server", "server_entry"), "roots.listChanged": ("unknown", None, None),
    }  # fmt: skip
    assert (agent["roots"]["commit"], agent["roots"]["file"], agent["roots"]["lines"]) == (
        "0123abcd", "src/a.py; sdk/session.py", "3-9,12",
    )  # fmt: skip
    assert agent["roots"]["revision"] == "2025-11-25, 2026-07-28"
    assert agent["roots"]["date"] == "2026-08-25"
    odd = rows_of(frame, "Odd")
    assert odd["$"]["text"] == "whatever suits it; roots"
    assert odd["$"]["only"] is None  # one clause was not understood
    line = NOTE.split("\n").index("| Callback | Present when |") + 1
    assert frame.attrs["skipped"] == ((f"sample.md:{line}", "a table of Callback, Present when"),)
    assert frame.attrs["notes"][0].about["id"] == "sample-note"


def test_names_say_whom_a_source_means(note):
    frame = claims(note, names={"Quiet": "hush"})
    assert set(frame.loc[frame["name"] == "Quiet", "client"]) == {"hush"}


def test_a_folder_of_notes_lists_what_is_none(tmp_path, note):
    (tmp_path / "readme.md").write_text("# no front matter", encoding="utf-8")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "two.md").write_text(NOTE.replace("sample-note", "two"), encoding="utf-8")
    frame = claims(tmp_path)
    assert [one.file for one in frame.attrs["notes"]] == ["two.md", "sample.md"]
    assert frame.attrs["failed"] == (
        ("readme.md", "readme.md: no research note: its first line is not '---', which opens the front matter"),
    )
    note.unlink()
    (tmp_path / "more" / "two.md").unlink()
    with pytest.raises(ClaimsError, match="no research note"):
        claims(tmp_path)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("id: &a x", "line 2: YAML that"),
        ("id: !!python/object x", "line 2: YAML that"),
        ("id: a\nid: b", "line 3: id is given twice"),
        ("\tid: a", "line 2: indented with a tab"),
        ("  id: a", "line 2: indented under nothing"),
        ("just text", "line 2: not a line of the form"),
        ('id: "never ends', "line 2: quoted text that does not end"),
        ("id: [a, b", "line 2: a list in brackets"),
        ("sources:\n  - url: a\n    deep:\n      deeper: b", "line 5: indented deeper"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(head, said):
    with pytest.raises(ClaimsError, match=said):
        split_note(f"---\n{head}\n---\n", "n.md")


def test_limits_hold(tmp_path):
    with pytest.raises(ClaimsError, match="no closing '---' in its first 2000 lines"):
        split_note("---\n" + "a: b\n" * 3000 + "---\n", "n.md")
    table = "| Client | Declares |\n|---|---|\n| a | nothing |\n\n"
    read = read_note("---\nid: x\n---\n" + table * (MAX_TABLES + 50), "n.md")
    assert len(read.tables) == MAX_TABLES
    assert len(read.cut) == 50
    big = tmp_path / "big.md"
    big.write_bytes(b"---\nid: x\n---\n" + b"x" * 17_000_000)
    with pytest.raises(ClaimsError, match="larger than 16 MB"):
        claims(big)
    (tmp_path / "latin.md").write_bytes(b"---\nid: \xff\n---\n")
    with pytest.raises(ClaimsError, match="no UTF-8 text"):
        claims(tmp_path / "latin.md")
    with pytest.raises(ClaimsError, match="cannot be read"):
        claims(tmp_path / "nowhere.md")


@given(st.text(alphabet=st.sampled_from("abc:-|[]\"'#&>{} \n`;,"), max_size=300))
def test_any_text_is_read_or_refused(text):
    for body in (f"---\n{text}\n---\n{text}", f"---\nid: x\n---\n| Client | Declares |\n|---|---|\n| a | {text} |"):
        with suppress(ClaimsError):  # any other error fails
            read_note(body, "n.md")
    assert declared(text)[0]["path"] == "$"


@pytest.mark.parametrize(
    ("text", "path"),
    [("Roots", "roots"), ("elicitation.url", "elicitation.url"), ('extensions["a/b"]', 'extensions["a/b"]'),
     ("nothing", None), ("roots of evil", None), ("", None), ("tools", None)],
)  # fmt: skip
def test_a_capability_is_named_or_it_is_not(text, path):
    assert capability_of(text) == path


def test_partial_blank_and_other_words_are_unknown():
    assert [answer(word) for word in ("yes", "✅", "No", "❌", "partial", "", None, "◐", "?")] == [
        "yes", "yes", "no", "no", *["unknown"] * 5,
    ]  # fmt: skip


def test_lines_are_told_from_paths():
    assert place_of("src/a.py:93-102,123") == ("src/a.py", "93-102,123")
    assert place_of("src/a.py") == ("src/a.py", None)
    assert place_of("C:/x.py") == ("C:/x.py", None)
    assert place_of(None) == (None, None)


# Bundled claims and tables ---------------------------------------------------------------------------------


def test_the_five_clients_are_data_with_citations():
    frame = claims()
    assert frame.attrs["failed"] == ()
    read = frame[frame["tier"] == "read"]
    whole = read[(read["path"] == "$") & (read["place"] == "claims")].set_index("client")
    assert whole.index.tolist() == ["goose", "codex", "opencode", "cline", "fast-agent"]
    assert whole["only"].fillna(False).tolist() == [False, True, True, True, True]
    assert whole.loc["goose", "implements"] == "more"
    assert whole.loc["cline", "state"] == "empty"
    detail = read[(read["client"] == "fast-agent") & (read["path"] == "roots.listChanged")].iloc[0]
    assert detail["implements"] == "no"
    cited = read[(read["client"] == "fast-agent") & (read["place"] == "details")]
    assert (
        cited["evidence"].str.contains("client_callback_runtime.py:93-102,123-164|_factory.py:97-146|session.py").all()
    )
    goose = read[(read["client"] == "goose") & (read["place"] == "readings")].set_index("path")
    assert (goose.loc["sampling", "declares"], goose.loc["sampling", "implements"]) == ("yes", "yes")
    assert (goose.loc["elicitation.url", "declares"], goose.loc["elicitation.url", "implements"]) == ("no", "yes")
    assert goose["commit"].eq("1bb8433").all()


def test_the_bundled_table_says_its_release_and_day():
    listed = claims()[lambda frame: frame["tier"] == "listed"]
    assert listed["source"].unique().tolist() == ["https://github.com/apify/mcp-client-capabilities (release 0.0.14)"]
    assert listed["date"].unique().tolist() == ["2026-02-02"]
    assert listed["name"].nunique() == 42


def test_mcp_client_capabilities(tmp_path):
    table = {
        "agent-x": {"title": "X", "protocolVersion": "2025-06-18", "tools": {"listChanged": True}, "elicitation": {}},
        "agent-y": {"title": "Y", "protocolVersion": "2025-11-25", "elicitation": {"form": {}, "url": {}}, "url": "u"},
        "agent-z": {"title": "Z", "roots": {"listChanged": False}},
    }
    path = tmp_path / "mcp-clients.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    frame = claims(path)
    assert set(frame["tier"]) == {"listed"}
    x, y, z = (rows_of(frame, name) for name in table)
    assert (x["elicitation"]["declares"], x["roots"]["declares"]) == ("yes", "no")
    assert "tasks" not in x  # its revision does not know them
    assert "elicitation.url" not in x
    assert (x["tools"]["party"], x["tools"]["implements"], x["tools"]["declares"]) == ("server", "yes", None)
    assert (x["tools.listChanged"]["implements"], x["prompts"]["implements"]) == ("yes", "no")
    assert (y["elicitation.url"]["declares"], y["tasks"]["declares"]) == ("yes", "no")
    assert (z["roots"]["declares"], z["roots.listChanged"]["declares"]) == ("yes", "no")
    assert "sampling" not in z  # it does not say which revision it is about
    assert frame["client_info"].tolist() == frame["name"].tolist()


def test_matrix_json(tmp_path):
    cells = {
        "roots.list": {"status": "yes", "source": "https://example.org/a", "last_verified": "2026-07-01",
                       "version_tested": "1.2"},
        "sampling.createMessage": {"status": "partial"}, "elicitation.create": {"status": ""},
        "elicitation.url": {"status": "no"}, "sampling.tools": None, "tools.call": {"status": "yes"},
        "transport.stdio": {"status": "yes"},
    }  # fmt: skip
    bundle = {
        "spec_version": "2025-11-25", "generated_at": "2026-10-01T00:00:00.000Z", "features": [],
        "clients": [{"id": "x", "title": "X", "clientInfo_name": "x-client"}, "odd"], "matrix": {"x": cells, "y": None},
    }  # fmt: skip
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps(bundle), encoding="utf-8")
    frame = claims(path)
    x = rows_of(frame, "x")
    assert {path: row["declares"] for path, row in x.items() if row["party"] == "client"} == {
        "roots": "yes", "sampling": "unknown", "elicitation": "unknown", "elicitation.url": "no",
        "sampling.tools": "unknown",
    }  # fmt: skip
    assert (x["tools"]["party"], x["tools"]["implements"]) == ("server", "yes")
    assert (x["roots"]["client_version"], x["roots"]["date"], x["roots"]["client_info"]) == (
        "1.2", "2026-07-01", "x-client",
    )  # fmt: skip
    assert "https://example.org/a" in x["roots"]["evidence"]
    assert x["sampling"]["date"] == "2026-10-01"
    assert frame.attrs["skipped"] == (("matrix.json", "feature transport.stdio, which is no capability"),)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[1]", "neither mcp-clients.json"),
        ("a.json", "{", "no JSON"),
        ("a.json", '{"x": 1}', "neither mcp-clients.json"),
        ("a.json", '{"matrix": {"x": {"roots.list": 1e999}}}', ""),
        ("a.json", "[" * 100_000, "no JSON"),
        ("a.toml", "a = ", "no TOML"),
        ("a.toml", "a = 1", "no \\[note\\]"),
        ("a.toml", "[note]\n[[claims]]\nclient = 1", "is a list of tables, each with a product"),
        ("a.toml", "[note]\n[[claims]]\nproduct = 'x'\npaths = 5", "another form than expected"),
    ],
)
def test_files_of_another_form_are_told_in_a_line(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    if not said:
        assert claims(path)["declares"].tolist() == ["unknown"]
        return
    with pytest.raises(ClaimsError, match=said) as error:
        claims(path)
    assert "\n" not in str(error.value)


def test_the_installed_package_is_read_where_it_is(tmp_path, monkeypatch):
    with pytest.raises(ClaimsError, match="only installed:mcp-client-capabilities is known"):
        claims("installed:other")
    package = tmp_path / "mcp_client_capabilities"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('never imported')", encoding="utf-8")
    (package / "mcp-clients.json").write_text('{"a": {"title": "A", "roots": {}}}', encoding="utf-8")
    info = tmp_path / "mcp_client_capabilities-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp-client-capabilities\nVersion: 9.8\n")
    monkeypatch.syspath_prepend(tmp_path)
    frame = claims("installed:mcp-client-capabilities")
    assert frame["source"].iloc[0].endswith("mcp-client-capabilities 9.8")
    assert "mcp_client_capabilities" not in sys.modules
