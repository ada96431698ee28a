"""Paths over releases: each cell reads back, a line says what is known and no more, and nothing stands in a gap."""

from __future__ import annotations

import pandas as pd
import pytest
from figures import assert_legible, said
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcplab import compare, load, plots, variance
from mcplab.traces import make_trace

STATES = {
    ("a", "0.9"): ["empty", "absent", "absent", "varies", "absent"],
    ("a", "0.10"): ["object", "object", "unknown", "varies", "absent"],
    ("a", "1.0"): ["object", "object", "true", "varies", "absent"],
    ("b", "2.0"): ["object", "absent", "absent", "absent", "null"],
}
PATHS = ["$", "roots", "roots.listChanged", "sampling", "elicitation"]


def frame(*whos: tuple[str, str]) -> pd.DataFrame:
    names = whos or tuple(STATES)
    columns = pd.MultiIndex.from_tuples(names, names=["client", "client_version"])
    made = pd.DataFrame([[STATES[who][row] for who in names] for row in range(5)], PATHS, columns, dtype="str")
    made.index.name = "path"
    made.attrs["counts"] = {("sampling", who): {"empty": 2, "absent": 1} for who in names}
    return made


def lines(ax: Axes) -> list[tuple[str, float, float]]:
    """Kind of each step, between which releases it is drawn."""
    found = []
    for line in ax.lines:
        if str(line.get_gid()).startswith("step:"):
            x = [float(one) for one in line.get_xdata()]  # type: ignore[union-attr]
            found.append((str(line.get_gid())[5:], round(x[0] / 1.7), round(x[1] / 1.7)))
    return found


ALONE = pd.DataFrame([["a", "roots", "version", '"0.9"', '"0.10"']], columns=["client", "path", "factor", "a", "b"])


def test_every_cell_of_what_changed_reads_back() -> None:
    ax = plots.drift(frame(), title="What changed")
    seen = plots.read_declarations(ax)
    assert list(seen.columns) == [("a", "0.9"), ("a", "0.10"), ("a", "1.0")], "oldest first, as numbers"
    assert list(seen.index) == ["$", "roots", "roots.listChanged"]
    for path in seen.index:
        assert seen.loc[path].tolist() == frame().loc[path, "a"].tolist()
    assert_legible(ax)
    note = "1 further path cannot be told, varying within releases. Of 1 further client one release only was captured."
    assert note in said(ax)
    assert set(plots.read_declarations(plots.drift(frame(), show_all=True)).index) == set(PATHS) - {"elicitation"}


def test_a_line_says_what_the_release_did_and_no_more() -> None:
    bare = plots.drift(frame())
    assert lines(bare) == [("differs", 0, 1), ("same", 1, 2), ("differs", 0, 1), ("same", 1, 2)]
    ax = plots.drift(frame(), variance=ALONE)
    assert lines(ax) == [("differs", 0, 1), ("same", 1, 2), ("release", 0, 1), ("same", 1, 2)]
    assert "absent → object in 0.10" in said(ax)
    assert "absent → true between 0.9 and 1.0" in said(ax), "a declaration in between was not captured: no line"


def test_a_release_without_a_capture_has_a_place_and_nothing_in_it() -> None:
    ax = plots.drift(frame(("a", "0.9"), ("a", "1.0")), releases={"a": ["0.9", "0.9.5"]}, variance=ALONE)
    assert lines(ax) == []
    assert {"(0.9.5)", "No capture of a 0.9.5."} < {part for text in said(ax) for part in (text, text[:22])}
    assert set(plots.read_declarations(ax).columns) == {("a", "0.9"), ("a", "1.0")}
    xs = sorted({round(float(line.get_xdata()[0]), 2) for line in ax.lines if "cell" in str(line.get_gid())})  # type: ignore[index]
    assert xs == [0.0, 3.4]


def test_an_unknown_release_has_no_place_among_the_others() -> None:
    made = pd.concat([frame(), frame(("b", "2.0")).rename(columns={"2.0": "unknown", "b": "a"})], axis=1)
    ax = plots.drift(made)
    assert list(plots.read_declarations(ax).columns) == [("a", "0.9"), ("a", "0.10"), ("a", "1.0")]
    assert "Captures of a of an unknown release are left out." in " ".join(said(ax))


def test_a_path_is_named_by_what_stands_above_it_in_its_own_client() -> None:
    whos = pd.MultiIndex.from_product([["a", "b"], ["1", "2"]], names=["client", "client_version"])
    cells = [["object"] * 4, ["absent", "object", "object", "object"], ["absent", "empty", "empty", "absent"]]
    for order in ([0, 1, 2, 3], [2, 3, 0, 1]):
        made = pd.DataFrame(cells, ["$", "sampling", "sampling.tools"], whos, dtype="str").iloc[:, order]
        texts = said(plots.drift(made))
        assert {"sampling", ".tools", "sampling.tools"} <= set(texts), "of b the path above does not change"


def test_the_sentence_for_who_cannot_see_it() -> None:
    told = plots.alt_text(plots.drift(frame(), title="Drift."))
    assert told.startswith("Drift: paths over the releases of 1 client; 3 paths of 1 of them changed, among them a $: ")
    still = frame(("a", "0.10"), ("a", "1.0")).loc[["$", "roots"]]
    ax = plots.drift(still)
    assert "nothing is seen to change" in said(ax)
    assert plots.alt_text(ax).endswith("nothing is seen to change.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: plots.drift(f["b"]), "client_version"),
        (lambda f: plots.drift(f, client="c"), "no client 'c'"),
        (lambda f: plots.drift(f, client="b"), "two releases"),
    ],
)
def test_what_cannot_be_drawn(change, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        change(frame())


def test_given_axes_and_hostile_names() -> None:
    evil = frame(("a", "0.9"), ("a", "1.0"))
    evil.columns = pd.MultiIndex.from_tuples(
        [("$x_1$\u202e" * 9, "9" * 60), ("$x_1$\u202e" * 9, "<b>\x1b[31m")], names=["client", "client_version"]
    )
    assert_legible(plots.drift(evil, theme="dark", title="$\\frac{1}{0}$"))
    ax = Figure(figsize=(1, 1)).subplots()
    with pytest.warns(UserWarning, match="needs an Axes of at least"):
        assert plots.drift(frame(), ax=ax) is ax


def test_of_the_bundled_captures_and_one_of_ones_own(tmp_path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
             "clientInfo": {"name": "opencode", "version": "99.0"}}  # fmt: skip
    mine = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})])
    traces = load(["bundled:opencode", str(mine.save(tmp_path / "mine.jsonl"))])
    ax = plots.drift(compare(traces, by=["client", "client_version"]), variance=variance(traces), client="opencode")
    assert "absent → empty in 1.18.33; empty → absent in 99.0" in said(ax)
    assert ("release", 0, 1) in lines(ax)
    assert ("release", 1, 2) not in lines(ax)
