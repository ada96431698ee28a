"""What TRACES may name, and what becomes of traces that cannot be read."""

from __future__ import annotations

import pytest

from mcplab import sources
from mcplab.model import TraceError
from mcplab.traces import Trace, make_trace, read_trace

PING = [("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]


def test_nothing_named_means_the_bundled_captures(captures):
    traces = sources.load()
    assert len(traces) == len(captures)
    assert {trace.name for trace in traces} == {f"{path.parent.name}/{path.stem}" for path in captures}


def test_who_reads_a_bundled_name_as_a_file_is_told_how():
    with pytest.raises(
        TraceError, match=r"no such file; check the path, or read it by mcplab\.load\('bundled:codex'\)"
    ):
        read_trace("bundled:codex")


@pytest.mark.parametrize(
    ("name", "many"),
    [
        ("bundled:opencode", 9),
        ("bundled:opencode/", 9),
        ("bundled:opencode-1.3.2-stdio-legacy-mcp-list", 1),
        ("bundled:opencode/opencode-1.3.2-stdio-legacy-mcp-list", 1),
        ("bundled:opencode-1.3.2-stdio-legacy-mcp-list.jsonl", 1),
    ],
)
def test_bundled_captures_by_name(name, many):
    traces = sources.load(name)
    assert len(traces) == many
    assert all(trace.name.startswith("opencode/opencode-1.") for trace in traces)


@pytest.mark.parametrize("name", ["bundled:../recipes", "bundled:..", "bundled:/etc", "bundled:nonsense"])
def test_no_other_file_is_bundled(name):
    with pytest.raises(TraceError, match=r"of that name; (near it: opencode|bundled: alone names them)"):
        sources.resolve(name)


def test_what_is_no_bundled_name_stays_as_it_is(tmp_path):
    assert sources.resolve("x.jsonl") == "x.jsonl"
    assert sources.resolve(tmp_path) is tmp_path


def test_names_do_not_depend_on_what_is_read_together(tmp_path):
    make_trace(PING).save(tmp_path / "deep" / "mine.jsonl")
    traces = sources.load([tmp_path, "bundled:cline"])
    assert traces[0].name == "mine"
    assert traces[1].name.startswith("cline/cline-3.0.65-")


def test_traces_and_paths_together(tmp_path):
    mine = make_trace(PING)
    assert [trace.name for trace in sources.load([mine, "bundled:opencode-1.3.2-stdio-legacy-mcp-list"])][1].startswith(
        "open"
    )
    loaded = sources.load(mine)
    assert len(loaded) == 1
    assert sources.load(loaded) is loaded


def test_what_fails_is_listed_and_the_rest_loaded(tmp_path):
    make_trace(PING).save(tmp_path / "good.jsonl")
    (tmp_path / "bad.jsonl").write_text("hello")
    (tmp_path / "none").mkdir()
    traces = sources.load([tmp_path / "good.jsonl", tmp_path / "bad.jsonl", tmp_path / "none", str(tmp_path / "*.nix")])
    assert [trace.name for trace in traces] == ["good"]
    assert len(traces.failed) == 3
    assert list(traces.failed.columns) == ["file", "error"]
    assert [error.rsplit(": ", 1)[-1][:9] for error in traces.failed["error"]][:2] == ["the folde", "no file m"]


def test_a_trace_whose_tables_fail_is_set_aside(tmp_path, monkeypatch):
    for name in ("good", "odd"):
        make_trace(PING).save(tmp_path / f"{name}.jsonl")
    real = Trace.connections

    def connections(self):
        if self.name == "odd":
            raise ValueError("a table\nthat fails")
        return real.fget(self)  # type: ignore[attr-defined]

    monkeypatch.setattr(Trace, "connections", property(connections))
    traces = sources.load(tmp_path)
    assert [trace.name for trace in traces] == ["good"]
    assert traces.failed.to_dict("records") == [{"file": "odd", "error": "ValueError: a table that fails"}]


def test_nothing_that_can_be_read_is_one_line(tmp_path):
    (tmp_path / "bad.jsonl").write_text("hello")
    for given in ([], [tmp_path / "bad.jsonl"], [tmp_path / "bad.jsonl", "missing.jsonl"]):
        with pytest.raises(TraceError, match=r"^nothing to read: ") as caught:
            sources.load(given)
        assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("(and 1 more)")


def test_captures_of_a_client():
    traces = sources.load(["bundled:codex", "bundled:cline"])
    assert {name.partition("/")[0] for name in (t.name for t in sources.of_client(traces, ["cline"]))} == {"cline"}
    assert len(sources.of_client(traces, ["codex-mcp-client"])) == 33  # as it calls itself on the wire
    with pytest.raises(TraceError, match="these captures have: cline, codex"):
        sources.of_client(traces, ["nobody"])
