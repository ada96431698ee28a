"""Caption, methods paragraph and citable ids say what the captures say."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from mcplab import caption, claims, compare, load, methods, read_traces
from mcplab.citing import proofs, short_names
from mcplab.traces import Traces, make_trace
from tests.test_cli import initialize


@pytest.fixture(scope="module")
def bundled() -> Traces:
    return load(None)


def test_caption(bundled) -> None:
    assert re.fullmatch(
        r"284 captures of 20 clients in 31 releases \(2026-11-30\); input SHA-256 [0-9a-f]{12}; mcplab [0-9.]+\.",
        caption(bundled),
    )
    one = Traces([make_trace(initialize({}, "x"))])
    assert caption(one).startswith("1 capture of 1 client in 1 release (no date); input SHA-256 ")
    assert caption(one) != caption(Traces([make_trace(initialize({"roots": {}}, "x"))]))


def test_methods(bundled, tmp_path) -> None:
    said = methods(bundled, claims())
    links = bundled.connections
    counts = links.drop_duplicates("instance")["transport"].value_counts()
    assert f"stdio ({counts['stdio']}), Streamable HTTP ({counts['http']})" in said
    assert f"legacy ({(links['era'] == 'legacy').sum()})" in said
    assert "fast-agent-declares-capabilities-per-server (2026-08-25)" in said
    assert f"{len(claims())} statements" in said
    assert "\n" not in said
    assert "could not be read" not in said
    assert "statements" not in methods(bundled[:1])
    (tmp_path / "bad.jsonl").write_text("hello", encoding="utf-8")
    make_trace(initialize({}, "\x1b[31mx")).save(tmp_path / "x.jsonl")
    assert "1 file could not be read and is left out." in methods(read_traces(tmp_path))


def test_each_cell_has_an_id_that_a_paper_can_cite(bundled) -> None:
    frame = compare(bundled, by=["client", "client_version"])
    cite = frame.attrs["cite"]
    assert cite["elicitation", ("opencode", "1.18.33")].startswith("opencode-1.18.33-")
    by_name = {trace.name.rpartition("/")[2]: trace for trace in bundled}
    for who in frame.columns:
        for path in frame.index:
            if frame.at[path, who] != "unknown":
                name, _, seq = cite[path, who].rpartition("#")
                assert (by_name[name].name, int(seq)) == tuple(frame.attrs["evidence"][path, who][0])
    flat = compare(bundled, by=["client", "client_version"], long=True)
    for row in flat.itertuples():
        assert row.cite == cite[row.path, (row.client, row.client_version)]


def test_ids_of_documents_and_of_equal_names() -> None:
    frame = compare(load(["bundled:codex"]), by="client", tier="all")
    cite = frame.attrs["cite"]
    assert cite["roots", ("goose", "read")].startswith("https://")
    assert cite["roots", ("codex", "observed")].startswith("codex-0.")
    flat = compare(load(["bundled:codex"]), by="client", tier="read", long=True)
    assert not pd.isna(flat["cite"]).any()
    assert short_names(["a/x", "b/x", "b/y"]) == {"a/x": "a/x", "b/x": "b/x", "b/y": "y"}


def test_messages_are_found_in_a_text_whatever_their_captures_are_called() -> None:
    assert proofs("a/b#1 my capture #2#3 c#4") == [("a/b", 1), ("my capture #2", 3), ("c", 4)]
    assert proofs("") == proofs("no message") == []
