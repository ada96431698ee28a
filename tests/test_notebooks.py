"""Each notebook runs in a fresh kernel, on whatever traces it is given; what it says of the bundled ones is so."""

from __future__ import annotations

import ast
import os
import re
import resource
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from mcplab import DEMO, contradictions, handshake, promises, stories, variance
from mcplab.comparison import compare, reach
from mcplab.data import notebooks_dir
from mcplab.report.execute import execute, find, parametrized
from mcplab.told import Told, safe
from mcplab.traces import Traces, make_trace, read_traces

LESSONS = {lesson.name: lesson for lesson in find(notebooks_dir())}
TELLING = [name for name in LESSONS if "stories.overview(" in str(LESSONS[name].notebook)]
"""Those that begin by saying which captures they are about; others only compare with them."""
EVERY = sorted(notebooks_dir().glob("*.ipynb"))
SECONDS = 60


def run(name: str, folder: Path, traces: list[str] | None) -> str:
    """Execute a notebook on these traces; everything that its cells put out, as text."""
    notebook = parametrized(LESSONS[name].notebook, {"TRACES": traces, "OUT": "."})
    start = _cpu_of_children()
    assert execute(notebook, folder, timeout=SECONDS) == ""
    measured = "COVERAGE_PROCESS_CONFIG" in os.environ  # make coverage, which makes a kernel slower
    assert _cpu_of_children() - start < SECONDS * (3 if measured else 1)
    return outputs(notebook)


def _cpu_of_children() -> float:
    """CPU seconds of the processes that have ended; the clock on the wall also counts what others do here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def outputs(notebook: Any) -> str:
    parts: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", output
            assert output.get("name") != "stderr", output
            data = output.get("data", {})
            parts.append(output.get("text") or data.get("text/html") or data.get("text/plain", ""))
    return "\n".join(parts)


# Each in a fresh kernel ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LESSONS)
def test_on_the_bundled_captures(name, tmp_path, captures):
    said = run(name, tmp_path, None)
    if name in TELLING:
        assert f"{len(captures)} captures of " in said
        assert list((tmp_path / "charts").glob("*.svg"))
        assert list((tmp_path / "tables").glob("*.csv"))


@pytest.mark.parametrize("name", LESSONS)
def test_on_ten_captures_only(name, tmp_path, captures):
    ten = captures[3:280:28][:10]
    said = run(name, tmp_path, [str(path) for path in ten])
    assert "10 captures of " in said or name not in TELLING
    clients = {path.parent.name for path in captures} - {path.parent.name for path in ten}
    assert clients
    for client in clients:  # what is said of a client that is not there comes from the document alone
        assert not re.search(rf"{re.escape(client)} \d", said), client


@pytest.mark.parametrize("name", LESSONS)
def test_on_one_capture_of_a_client_that_nobody_knows(name, tmp_path, captures):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}, "novel": {"deep": [1]}},
             "clientInfo": {"name": "mystery-client", "version": "0.0.1"}}  # fmt: skip
    made = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})])
    said = run(name, tmp_path, [str(made.save(tmp_path / "mystery.jsonl"))])
    if name in TELLING:
        assert "mystery-client" in said
        assert "1 capture of 1 client in 1 release" in said
    for client in {path.parent.name for path in captures}:
        assert not re.search(rf"{re.escape(client)} \d", said), client


@pytest.mark.parametrize("name", TELLING)
def test_on_a_capture_without_any_declaration(name, tmp_path):
    made = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"}), ("server", "no JSON at all")])
    said = run(name, tmp_path, [str(made.save(tmp_path / "bare.jsonl"))])
    assert "1 capture of 1 client" in said


def test_the_rules_lesson_tells_of_a_breach_by_a_client_that_nobody_knows(tmp_path, captures):
    hello = stories.hello({}, {})
    hello[0][1]["params"]["clientInfo"] = {"name": "mystery-client", "version": "0.0.1"}
    made = make_trace([*hello, ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})])
    said = run("04-rules", tmp_path, [str(made.save(tmp_path / "mystery.jsonl"))])
    assert "<code>mystery-client 0.0.1</code>: 1 of 1 instance; <code>gate.tools-request</code>" in said
    assert "in a capture of <code>mystery-client 0.0.1</code>" in said
    assert (tmp_path / "charts" / "findings.svg").exists()
    assert "gate.tools-request" in (tmp_path / "tables" / "findings.csv").read_text(encoding="utf-8")


# As they are stored --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_no_function_is_long(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source, type_comments=False)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    assert node.end_lineno - node.lineno < 10, node.name


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_it_begins_and_ends_as_a_lesson_does(path):
    prose = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    assert prose[0].startswith("# ")
    assert "you can" in prose[0]
    assert any(text.startswith(("## Try next", "## Your turn")) for text in prose[-2:])


def test_what_the_demo_servers_tools_are_given_is_what_they_take():
    listed = handshake(DEMO(), then=[("tools/list", None)]).results[0]
    takes = {tool["name"]: set(tool["inputSchema"].get("properties", {})) for tool in listed.result["tools"]}
    given = 0
    for path in EVERY:
        code = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
        for found in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Dict)):
            names = [key.value for key in found.keys if isinstance(key, ast.Constant)]
            if {"name", "arguments"} <= set(names):
                call = ast.literal_eval(ast.unparse(found))
                assert set(call["arguments"]) <= takes[call["name"]], f"{path.name}: {call}"
                given += 1
    assert given >= 2


@pytest.mark.parametrize("name", LESSONS)
def test_prose_says_nothing_of_a_captured_client(name, captures):
    """Prose stays when the traces are others, so no bundled client may be named in it (code in it may)."""
    clients = {path.parent.name for path in captures}
    for cell in LESSONS[name].notebook.cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"```.*?```|`[^`]*`", "", cell.source, flags=re.DOTALL)
            for client in (*clients, "goose", "Codex", "Cline"):
                assert client not in prose, cell.source
            assert not re.search(r"\b(?:284|324|31 releases)\b", prose)


# What they say of the bundled captures -------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(captures) -> Traces:
    return stories.load()


@pytest.fixture(scope="module")
def frame(traces):
    return compare(traces, by=["client", "client_version"])


@pytest.fixture(scope="module")
def varied(traces):
    return variance(traces)


@pytest.fixture(scope="module")
def found(traces):
    return contradictions(traces, stories.gathered(None))


def test_who_is_there(traces):
    assert repr(stories.overview(traces)).startswith("284 captures of 20 clients in 31 releases (2026-11-30); ")


def test_both_halves_in_both_eras_are_quoted(traces):
    for place in ("initialize", "initialize_result", "request_meta", "discover_result"):
        assert '"jsonrpc": "2.0"' in repr(stories.quote(traces, place))
        assert "$" in repr(stories.quote(traces, place))


def test_the_headline(frame):
    assert stories.headline(frame) == "10 of 31 releases declare nothing, 14 of 31 vary from run to run"
    one, other = ("x", "1"), ("x", "2")
    few = pd.DataFrame({one: ["empty", "absent", "absent"], other: ["object", "empty", "true"]},
                       index=["$", "roots", "roots.listChanged"])  # fmt: skip
    assert stories.headline(few) == "1 of 2 releases declares roots, 1 declares nothing"
    assert stories.headline(few[[other]]) == "1 of 1 release declares roots"
    varied = few.replace("object", "varies").replace("true", "varies")
    assert stories.headline(varied[[other]]) == "1 of 1 release declares roots, 1 of 1 varies from run to run"
    assert stories.headline(few[[other]].replace("empty", "varies")) == "1 of 1 release varies from run to run"
    assert stories.headline(few[[other]].replace("empty", "unknown")) == "What 1 release declares"
    assert set(frame.loc["$"]) == {"empty", "object", "varies"}


def test_whom_a_server_loses(traces):
    answer = reach(["elicitation.url", "sampling.tools"], traces)
    some = {path: {f"{c} {v}" for c, v in answer.index[answer[path] == "varies"]} for path in answer}
    assert some["sampling.tools"] == {"fast-agent 0.10.48", "fastmcp 2.14.7", "python-sdk 1.30.0", "python-sdk 2.3.0"}
    assert some["elicitation.url"] == some["sampling.tools"] | {
        "codex 0.171.0", "fastmcp 4.2.3", "typescript-sdk 1.32.2", "typescript-sdk 2.4.0",
    }  # fmt: skip
    assert not (answer == "yes").any().any()  # nobody always
    said = repr(stories.losses(answer))
    assert "23 of 31 releases are lost, for no run declared it: ai-sdk-mcp 1.0.102, " in said
    assert "4 of 31 releases declare it in some runs and not in others: fast-agent 0.10.48, " in said


def test_fast_agent_varies(frame, traces):
    assert stories.most_varied(frame) == ("fast-agent", "0.10.48")
    sent = stories.objects(traces, ("fast-agent", "0.10.48"))
    assert sent["declares"].iloc[0] == '{"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}'
    assert set(sent["declares"]) >= {"{}", '{"sampling": {"tools": {}}}'}
    assert len(sent) == 6
    assert sent["instances"].sum() == 48


def test_half_a_character_in_a_declaration_is_its_escape():
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"experimental": {"\ud83d": {}}},
        "clientInfo": {"name": "c", "version": "1"},
    }
    trace = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})])
    assert stories.objects(Traces([trace]), "c")["declares"].tolist() == ['{"experimental": {"\\ud83d": {}}}']


def test_what_it_varies_with(varied):
    said = repr(stories.accounted(varied))
    assert "- with a setting: 37 paths of ai-sdk-mcp, codex, fast-agent, " in said
    assert "- with how it was started: 6 paths of codex, gemini-cli and mcp-remote" in said
    assert "- with the release: 16 paths of codex, mastra-mcp, mcp-inspector-cli, opencode and python-sdk" in said
    assert "- with transport: 4 paths of codex" in said


def test_every_message_behind_a_difference_shows_it(varied, traces):
    for row in varied.itertuples():
        for proofs, state in ((row.evidence_a, row.state_a), (row.evidence_b, row.state_b)):
            name, _, seq = proofs.split(" ")[0].rpartition("#")
            rows = traces[name].declarations
            here = rows[(rows["seq"] == int(seq)) & (rows["party"] == "client") & (rows["path"] == row.path)]["state"]
            assert state == "varies" or list(here) == ([] if state == "absent" else [state]), row


def test_fast_agent_by_its_settings(varied):
    """Sampling is switched for the whole process, and on again, but never off, for one server."""
    own = varied[(varied["client"] == "fast-agent") & (varied["factor"] == "configuration")]
    rows = {
        (row.path, row.name, row.a, row.b, row.given): (row.state_a, row.state_b)
        for row in own.astype(object).where(own.notna(), None).itertuples(index=False)
    }
    none, off = '{"mode": "none"}', '{"mcp.client.auto_sampling": false}'
    assert rows["elicitation", "server_entry.elicitation", None, none, None] == ("object", "absent")
    assert rows["sampling", "mcp.client.auto_sampling", None, "false", None] == ("object", "absent")
    model = '{"model": "passthrough"}'
    assert rows["sampling", "server_entry.sampling", None, model, off] == ("absent", "object")
    alone = [key for key in rows if key[0] == "sampling" and key[1].startswith("server_entry") and key[4] is None]
    assert alone == []
    assert {key[1] for key in rows if key[0] == "roots"} == {"server_entry.roots"}


def test_drift(frame, varied, tmp_path):
    picture = stories.drift_chart(frame, varied, str(tmp_path / "drift"))
    assert picture.alt.startswith("5 of 8 clients declared differently in another release with all else equal: ")
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".pdf", ".png", ".svg"]


def test_what_became_of_what_was_declared(traces):
    said = repr(stories.kept(promises(traces)))
    assert "declared and, when it was used, it worked: 2 paths, 11 releases, as roots of fast-agent 0.10.48 (" in said
    assert "used although it was not declared: 1 path, 5 releases, as roots of cline 3.0.65 (" in said
    assert "declared, and not answered when it was used: 1 path, 4 releases" in said
    assert "refused when it was used" not in said


def test_fast_agent_declares_differently_to_two_servers_of_one_file(traces):
    said = repr(stories.side_by_side(traces, "two-servers-A", "two-servers-B"))
    assert said.count("5 paths differ") == 2  # over http and over stdio
    assert re.search(r"^roots +object +absent$", said, re.MULTILINE)
    assert re.search(r"^elicitation +absent +object$", said, re.MULTILINE)
    assert '"elicitation": {"mode": "none"}' in said


def test_goose_stands_on_the_document_alone(traces):
    said = repr(stories.uncaptured(stories.gathered(None), traces))
    assert said.startswith("Of goose no capture is here")
    assert "By the document, goose implements elicitation.url and does not declare it." in said
    (silent,) = re.findall("^No document here speaks of (.*)$", said, re.MULTILINE)
    assert "fastmcp" in silent
    assert "gemini-cli" not in silent  # a table lists it, by the name that it gives itself


def test_one_claim_is_wrong_and_the_messages_prove_it(found, traces):
    wrong = found[found["reason"] == "wrong"]
    assert [(row.client, row.path, row.what) for row in wrong.itertuples()] == [("fast-agent", "sampling", "settings")]
    assert "- 1: wrong, as far as can be told" in repr(stories.disagreement(found))
    said = repr(stories.disproof(found, traces))
    assert "says that sampling is switched by server_entry." in said
    proofs = dict(re.findall(r"^Configured with (.*), event .*:\n(\{\n(?:.*\n)*?\})$", said, re.MULTILINE))
    assert '"sampling"' in proofs['{"server_entry": {"sampling": null}, "mcp.client": {}}']  # not off by its own entry
    off = '"mcp.client": {"auto_sampling": false}}'
    assert '"sampling"' not in proofs['{"server_entry": {}, ' + off]
    assert '"sampling"' in proofs['{"server_entry": {"sampling": {"model": "passthrough"}}, ' + off]  # on again
    assert repr(stories.disproof(found[found["reason"] != "wrong"], traces)) == "No claim here can be called wrong."


def test_the_proof_is_shown_of_a_capture_with_blanks_in_its_name():
    mine = Traces([make_trace(stories.hello({"roots": {}}, {})).renamed("my capture #1")])
    row = {
        "client": "x", "source": "a note", "path": "roots", "what": "declares", "claimed": "no", "claimed_date": None,
        "found": "yes", "found_version": None, "reason": "wrong", "why": "seen", "evidence": "my capture #1#0",
    }  # fmt: skip
    told = repr(stories.disproof(pd.DataFrame([row]), mine))
    assert "event 0 of my capture #1:" in told
    assert '"roots"' in told


def test_codex_declares_more_than_the_document_says(found, traces):
    rows = found[(found["client"] == "codex") & (found["tier"] == "read")].set_index("path")
    assert rows["reason"].to_dict() == dict.fromkeys(["experimental", "extensions"], "differs by configuration")
    rows = compare(stories.of_client(traces, ["codex"]), by=["client_version", "transport"])
    assert rows.loc["experimental", ("0.129.0", "stdio")] == "absent"
    assert rows.loc["experimental", ("0.171.0", "http")] == "absent"
    assert rows.loc["experimental", ("0.171.0", "stdio")] == "varies"


def test_an_older_opencode_declares_nothing(found):
    row = found[(found["client"] == "opencode") & (found["tier"] == "read")].iloc[0]
    assert (row["path"], row["reason"], row["found_version"]) == ("roots", "differs by release", "1.3.2")


def test_cline_is_as_the_document_says(found):
    assert found[(found["client"] == "cline") & (found["tier"] == "read")].empty


def test_who_falls_back_and_why(traces):
    found = stories.fallbacks(traces).set_index(["client", "outcome"])
    assert set(found.index.get_level_values("client")) == {
        "ai-sdk-mcp", "codex", "fast-agent", "fastmcp", "mastra-mcp", "openai-agents", "pydantic-ai", "python-sdk",
        "typescript-sdk",
    }  # fmt: skip
    assert set(found["why"]) == {"error -32601 Method not found (HTTP 400); error -32601 Method not found"}
    assert ("fast-agent", "gave up") in found.index
    assert found.loc[("ai-sdk-mcp", "fell back"), "instances"] == 4  # on eight connections
    assert stories.era_headline(traces) == "9 of 31 releases spoke the modern era, 9 fell back where it was refused"


def test_either_era_runs_over_either_transport(traces):
    said = repr(stories.crossed(traces))
    assert "- legacy was spoken over http and stdio." in said
    assert "- modern was spoken over http and stdio." in said


def test_the_two_that_are_drawn(traces):
    legacy, modern = stories.pick(traces, "legacy"), stories.pick(traces, "modern")
    assert legacy is not None
    assert modern is not None
    assert set(legacy.connections["era"]) == {"legacy"}
    assert set(modern.connections["era"]) == {"modern"}
    assert {"POST (JSON)", "GET (SSE)", "DELETE"} <= set(legacy.events["channel"])
    strip = repr(stories.strip(legacy))
    assert "✖" in strip  # the refused discovery
    assert "60 segments of " in strip


def test_silence_is_explained(traces):
    said = repr(stories.silent(traces))
    assert "the server advertises neither list changes nor subscriptions" in said
    assert "legacy protocol" in said


# The words themselves ------------------------------------------------------------------------------


def test_a_mutated_capture_changes_what_is_said(traces, tmp_path, captures):
    """The sentences follow the data: opencode's older release is made to declare roots."""
    source = next(path for path in captures if "opencode-1.3.2" in path.name)
    text = source.read_text(encoding="utf-8")
    assert text.count('"capabilities": {}') == 1
    (tmp_path / source.name).write_text(
        text.replace('"capabilities": {}', '"capabilities": {"roots": {}}'), encoding="utf-8"
    )
    found = contradictions(read_traces(tmp_path), stories.gathered(None))
    assert "read" not in set(found[found["against"] == "observed"]["tier"])
    assert found[(found["client"] == "opencode") & (found["path"] == "roots")]["found"].tolist()[0] == "yes"


def test_a_claim_of_ones_own_is_held_against_a_capture_of_ones_own(tmp_path):
    hello = stories.hello({"roots": {}}, {})
    hello[0][1]["params"]["clientInfo"] = {"name": "mystery-client", "version": "0.0.1"}
    make_trace(hello).save(tmp_path / "mine.jsonl")
    note = tmp_path / "note.md"
    note.write_text(
        "---\nid: n\n---\n| Client | Declares |\n|---|---|\n| mystery-client | nothing |\n", encoding="utf-8"
    )
    lesson = parametrized(LESSONS["06-claims"].notebook, {"TRACES": "mine.jsonl", "CLAIMS": ["note.md"], "OUT": "."})
    assert execute(lesson, tmp_path, timeout=SECONDS) == ""
    assert "Something speaks against 1 claim" in outputs(lesson)
    rows = (tmp_path / "tables" / "contradictions.csv").read_text(encoding="utf-8").splitlines()
    assert rows[1].startswith("mystery-client,client,roots,declares,read,no,")


def test_what_is_told_can_do_no_harm():
    evil = "<script>alert(1)</script>\x1b[31m\u202e"
    told = Told(evil, [(stories.Name(evil), evil)], stories.Code(evil))
    shown = told._repr_html_()
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 4
    for bad in ("\x1b", "\u202e"):
        assert bad not in shown + repr(told)
    assert safe("a\nb\u2028c\x9b") == r"a\nb\u2028c\x9b"
