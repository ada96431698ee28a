"""The declaration matrix says what its frame says, and every mark of it can be seen."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from figures import assert_legible, drawn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from mcplab import export, look, plots
from mcplab.model import CELL_STATES
from mcplab.plots import cells

HOSTILE = [
    "$x_1$ & <b>", "a" * 300, "לקוח", "evil\u202etxt\x1b[31m\nline", "客户端", "_a_", "\\alpha{}%", "a:b/c%20 d",
    "https://h/" + "long-name-" * 9, "-", "😀", "\ud7ff\uffff",
]  # fmt: skip
PATHS = [
    "$", "roots", "roots.listChanged", "sampling", "sampling.tools", "elicitation", "elicitation.form", "tasks",
    "tasks.list", 'extensions["io.modelcontextprotocol/ui"]', 'extensions["io.modelcontextprotocol/ui"].mimeTypes',
    'experimental["a.b\\"c$x$"]',
]  # fmt: skip


def frame_of(columns: int, *, paths: list[str] = PATHS, seed: int = 1, attrs: bool = True) -> pd.DataFrame:
    """A comparison with every state in it."""
    dice = random.Random(seed)
    who = [(f"client-{n // 3}", f"{n % 3}.{n}.0") for n in range(columns)]
    words = [[dice.choice(CELL_STATES) for _ in who] for _ in paths]
    words[1][0] = "absent"
    index = pd.MultiIndex.from_tuples(who, names=["client", "client_version"])
    frame = pd.DataFrame(words, index=pd.Index(paths, name="path"), columns=index, dtype="str")
    if attrs:
        frame.attrs["counts"] = {(path, w): {"absent": 1, "empty": 3, "true": 2} for path in paths for w in who}
        frame.attrs["instances"] = {w: n + 1 for n, w in enumerate(who)}
        frame.attrs["era"] = {w: ("legacy", "modern", "legacy+modern", "unknown")[n % 4] for n, w in enumerate(who)}
    return frame


def assert_reads_back(ax: Axes, frame: pd.DataFrame) -> None:
    seen = plots.read_declarations(ax)
    assert sorted(map(str, seen.columns)) == sorted(map(str, frame.columns))
    for path in seen.index:
        for who in seen.columns:
            assert seen.at[path, who] == frame.at[path, who], (path, who)
    left_out = set(frame.index) - set(seen.index)
    assert all(set(frame.loc[path]) <= {"absent", "unknown"} for path in left_out)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("columns", [1, 5, 30, 41, 60])
def test_every_cell_reads_back_and_is_legible(columns: int, theme: str) -> None:
    frame = frame_of(columns)
    ax = plots.declarations(frame, title="One state a cell " * 6, theme=theme)
    assert_reads_back(ax, frame)
    assert_legible(ax)


def test_reading_looks_at_what_is_seen_not_at_names() -> None:
    """Whoever repaints one cell changes what is read; the gid says which cell, never what it says."""
    frame = frame_of(4)
    ax = plots.declarations(frame)
    mark = next(line for line in ax.lines if line.get_gid() == cells.gid("cell", "roots", ("client-0", "0.0.0")))
    assert frame.at["roots", ("client-0", "0.0.0")] == "absent"
    mark.set_marker("s")
    mark.set_markerfacecolor("#009E73")
    mark.set_markeredgecolor("#009E73")
    assert plots.read_declarations(ax).at["roots", ("client-0", "0.0.0")] == "true"
    mark.set_marker("*")
    assert plots.read_declarations(ax).at["roots", ("client-0", "0.0.0")] == "unreadable"


def test_cells_stand_where_their_labels_stand() -> None:
    """Position, not only the name on the artist: a mark lies beside its row's and under its column's label."""
    frame = pd.DataFrame(
        [["empty", "absent", "true"], ["absent", "false", "null"]],
        index=pd.Index(["roots", "sampling"], name="path"),
        columns=pd.Index(["a", "b", "c"], name="client"),
    )
    ax = plots.declarations(frame)
    figure = ax.get_figure(root=True)
    assert figure is not None
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    where = {text.get_text(): text.get_window_extent(renderer) for text in drawn(ax)}
    for line in ax.lines:
        if str(line.get_gid()).startswith("cell:"):
            path, who = cells.identity(str(line.get_gid()))
            x, y = ax.transData.transform(line.get_xydata()[0])  # type: ignore[index]
            assert where[path].y0 <= y <= where[path].y1
            assert where[str(who)].x0 - 1 <= x <= where[str(who)].x1 + 1


def test_every_cell_has_exactly_one_artist_with_its_gid() -> None:
    frame = frame_of(7)
    ax = plots.declarations(frame, show_all=True)
    names = [str(a.get_gid()) for a in [*ax.lines, *ax.patches] if str(a.get_gid()).startswith("cell:")]
    assert sorted(names) == sorted(cells.gid("cell", path, who) for path in frame.index for who in frame.columns)


def test_grey_keeps_the_states_apart() -> None:
    """Shape, fill and ground alone: colour is not asked for."""
    frame = pd.DataFrame(
        [[word] for word in CELL_STATES],
        index=pd.Index([f"p{n}" for n in range(9)], name="path"),
        columns=pd.Index(["one"], name="client"),
    )
    ax = plots.declarations(frame, show_all=True)
    seen = set()
    for artist in [*ax.lines, *ax.patches]:
        if not str(artist.get_gid()).startswith("cell:"):
            continue
        if isinstance(artist, Line2D):
            hollow = artist.get_markerfacecolor() != artist.get_markeredgecolor()
            seen.add((artist.get_marker(), hollow, artist.get_markersize() < 4))
        else:
            assert isinstance(artist, Rectangle)
            seen.add(("ground", bool(artist.get_hatch())))
    assert len(seen) == 9


def test_releases_stand_side_by_side_oldest_first() -> None:
    columns = pd.MultiIndex.from_tuples(
        [("b", "0.20.1"), ("A", "2.0.0"), ("b", "0.9.4"), ("A", "2.0.0-rc.1"), ("A", "10.0"), ("b", "0.9.4.1")],
        names=["client", "client_version"],
    )
    frame = pd.DataFrame([["empty"] * 6], index=pd.Index(["roots"], name="path"), columns=columns)
    seen = plots.read_declarations(plots.declarations(frame))
    assert list(seen.columns) == [
        ("A", "2.0.0-rc.1"), ("A", "2.0.0"), ("A", "10.0"), ("b", "0.9.4"), ("b", "0.9.4.1"), ("b", "0.20.1"),
    ]  # fmt: skip
    given = plots.read_declarations(plots.declarations(frame, order="given"))
    assert list(given.columns)[:3] == [("b", "0.20.1"), ("b", "0.9.4"), ("b", "0.9.4.1")]


def test_varying_cells_show_the_commonest_state_and_how_often() -> None:
    who = ("client-0", "0.0.0")
    frame = frame_of(2)
    frame.loc["roots"] = ["varies", "varies"]
    frame.attrs["counts"]["roots", who] = {"absent": 2, "object": 5}
    ax = plots.declarations(frame)
    assert plots.read_declarations(ax).attrs["commonest"]["roots", who] == "object"
    assert "5 of 7" in [text.get_text() for text in drawn(ax)]
    bare = frame_of(2, attrs=False)
    bare.loc["roots"] = ["varies", "varies"]
    assert "~" in [text.get_text() for text in drawn(plots.declarations(bare))]


def test_a_tie_shows_what_was_declared() -> None:
    frame = frame_of(1)
    frame.loc["roots", :] = "varies"
    frame.attrs["counts"]["roots", ("client-0", "0.0.0")] = {"absent": 3, "empty": 3}
    seen = plots.read_declarations(plots.declarations(frame))
    assert seen.attrs["commonest"]["roots", ("client-0", "0.0.0")] == "empty"


def test_instances_and_eras_are_written_over_their_columns() -> None:
    texts = [text.get_text() for text in drawn(plots.declarations(frame_of(3)))]
    assert {"instances", "era", "1", "2", "3", "L", "M", "LM"} <= set(texts)
    assert "era agreed on: L legacy, M modern, LM both" in texts
    without = [text.get_text() for text in drawn(plots.declarations(frame_of(3, attrs=False)))]
    assert not {"instances", "era"} & set(without)


def test_eras_given_as_revisions_are_written_out() -> None:
    frame = frame_of(3)
    frame.attrs["era"] = dict.fromkeys(frame.columns, "2025-11-25")
    ax = plots.declarations(frame)
    assert [text.get_text() for text in drawn(ax)].count("2025-11-25") == 3
    assert_legible(ax)


def test_what_nobody_declares_is_counted_not_dropped_silently() -> None:
    frame = frame_of(3)
    frame.loc["tasks"] = ["absent", "unknown", "absent"]
    frame.loc["tasks.list"] = "absent"
    ax = plots.declarations(frame)
    assert "Nobody here declares 2 further paths: tasks, tasks.list." in [text.get_text() for text in drawn(ax)]
    assert not {"tasks", "tasks.list"} & set(plots.read_declarations(ax).index)
    shown = plots.declarations(frame, show_all=True)
    assert list(plots.read_declarations(shown).index) == PATHS
    assert not [text for text in drawn(shown) if "Nobody" in text.get_text()]


def test_the_capability_object_is_always_drawn() -> None:
    frame = pd.DataFrame({"a": ["absent", "absent"]}, index=pd.Index(["$", "roots"], name="path"))
    assert list(plots.read_declarations(plots.declarations(frame)).index) == ["$"]


def test_members_are_indented_under_their_parent() -> None:
    rows = cells.prepare(frame_of(2), order="name", show_all=True).paths
    assert [(row.label, row.depth) for row in rows[:5]] == [
        ("$", 0), ("roots", 0), (".listChanged", 1), ("sampling", 0), (".tools", 1),
    ]  # fmt: skip
    assert rows[9].label == 'extensions["io.modelcontextprotocol/ui"]', "its parent has no row: named in full"
    assert (rows[10].label, rows[10].depth) == (".mimeTypes", 1)
    assert cells.steps('experimental["a.b\\"c$x$"].d') == ["experimental", '["a.b\\"c$x$"]', ".d"]
    assert cells.steps("no path at all [") == ["no path at all ["]


def test_more_than_forty_columns_are_turned() -> None:
    forty, more = plots.declarations(frame_of(40)), plots.declarations(frame_of(41))
    assert forty.get_xlim() == (-0.5, 39.5)
    assert more.get_xlim() == (-0.5, len(PATHS) - 0.5)
    assert plots.declarations(frame_of(3), turned=True, show_all=True).get_xlim() == (-0.5, len(PATHS) - 0.5)


@pytest.mark.parametrize("turned", [False, True])
def test_hostile_names_are_shown_literally(turned: bool, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        [[CELL_STATES[(row + column) % 9] for column in range(len(HOSTILE))] for row in range(4)],
        index=pd.Index(["$", "experimental", 'experimental["$\\\\a$\\u0000"]', "x" * 500 + "\u202e$y$"], name="path"),
        columns=pd.Index(HOSTILE, name="client"),
    )
    ax = plots.declarations(frame, turned=turned, title="$\\frac{1}{0}$ \x07", caption="50 % of $a_b$ \u202e")
    assert_reads_back(ax, frame)
    assert_legible(ax)
    assert len(export(ax, tmp_path / "hostile")) == 3
    assert not any(char in text.get_text() for text in drawn(ax) for char in "\x1b\x07\u202e")
    assert "$x_1$ & <b>" in [text.get_text() for text in drawn(ax)]


def test_legend_names_what_is_drawn_and_nothing_else() -> None:
    frame = pd.DataFrame({"a": ["empty"], "b": ["true"]}, index=pd.Index(["roots"], name="path"))
    texts = [text.get_text() for text in drawn(plots.declarations(frame))]
    assert "{}: declared, no members" in texts
    assert "true" in texts
    assert not {"false", "null", "varies"} & set(texts)


def test_given_axes_are_used_and_the_session_keeps_its_style() -> None:
    before = dict(mpl.rcParams)
    figure = Figure(figsize=(9, 5))
    left, right = figure.subplots(1, 2, gridspec_kw={"left": 0.25, "bottom": 0.3, "top": 0.7, "wspace": 1.4})
    assert plots.declarations(frame_of(3), ax=left) is left
    assert plots.declarations(frame_of(4), ax=right) is right
    assert_reads_back(left, frame_of(3))
    assert dict(mpl.rcParams) == before
    assert not plt.get_fignums(), "nothing of pyplot is touched when an Axes is given"


def test_too_small_an_axes_says_what_it_needs() -> None:
    ax = Figure(figsize=(2, 2)).subplots()
    with pytest.warns(UserWarning, match=r"labels overlap: 30 columns .* need an Axes of at least \d"):
        plots.declarations(frame_of(30), ax=ax)


def test_without_axes_an_empty_current_figure_is_taken_else_a_new_one_made() -> None:
    empty = plt.figure()
    assert plots.declarations(frame_of(2)).figure is empty
    assert plots.declarations(frame_of(2)).figure is not empty


def test_alternative_text_is_one_sentence_with_the_facts(tmp_path: Path) -> None:
    ax = plots.declarations(frame_of(4), title="Four releases.", show_all=True)
    said = plots.alt_text(ax)
    assert said.startswith("Four releases: a matrix of 12 capability paths by 4 columns; most often declared: ")
    assert said.endswith(".")
    assert said.count(". ") == 0
    assert plots.alt_text(ax.figure) == said
    (file,) = export(ax, tmp_path / "m.svg")
    assert ET.parse(file).getroot().findtext("{http://www.w3.org/2000/svg}desc") == said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.replace({"absent": "maybe"}), "a cell holds 'maybe'"),
        (lambda f: f.replace({"absent": None}), "a cell holds"),
        (lambda f: pd.concat([f, f]), "there twice"),
        (lambda f: f.iloc[:0], "nothing to draw"),
        (lambda f: f.iloc[:, :0], "nothing to draw"),
    ],
)
def test_what_is_no_comparison_is_refused(change, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        plots.declarations(change(frame_of(3)))


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        plots.declarations(frame_of(2), color="red")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="theme"):
        plots.declarations(frame_of(2), theme="sepia")
    with pytest.raises(ValueError, match="order"):
        plots.declarations(frame_of(2), order="random")


def test_themes_have_the_ground_they_name() -> None:
    for theme in ("light", "dark"):
        ax = plots.declarations(frame_of(2), theme=theme)
        assert to_hex(ax.figure.get_facecolor()).upper() == look.GROUNDS[theme].paper.upper()


def test_answers_of_documents_are_drawn_beside_states() -> None:
    columns = pd.MultiIndex.from_tuples(
        [("b", "listed"), ("a", "observed"), ("a", "exercised"), ("a", "read")], names=["client", "tier"]
    )
    rows = [["unknown", "object", "unknown", "varies"], ["no", "absent", "no", "yes"], ["unknown"] * 4]
    frame = pd.DataFrame(rows, index=pd.Index(["$", "roots", "tasks"], name="path"), columns=columns, dtype="str")
    frame.attrs |= {
        "tier": "all", "counts": {("$", ("a", "read")): {"unknown": 3, "varies": 2, "no": 1}},
        "instances": {("a", "observed"): 2, ("a", "read"): 0, ("b", "listed"): None},
        "era": {("a", "observed"): "legacy", ("a", "read"): "unknown"},
    }  # fmt: skip
    ax = plots.declarations(frame)
    seen = plots.read_declarations(ax)
    assert list(seen.columns) == [("a", "observed"), ("a", "exercised"), ("a", "read"), ("b", "listed")]
    assert seen.loc["roots"].tolist() == ["absent", "no", "yes", "no"]
    assert seen.attrs["commonest"]["$", ("a", "read")] == "no", "the commonest of what has a mark"
    texts = [text.get_text() for text in drawn(ax)]
    assert {"yes, it says", "no, it says", "nothing is known", "4 columns of 2 products."} <= set(texts)
    assert not {"?", "0", "None"} & set(texts), "documents rest on no run"
    assert "Nobody here declares tasks." in texts
    assert_legible(ax)
