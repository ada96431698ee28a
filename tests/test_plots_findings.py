"""The chart of findings says who broke what, in how many of the instances that called on a rule."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from figures import assert_legible, said
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

import mcplab
from mcplab import look, plots
from mcplab.plots import breaches, paper

ROWS = [
    ("a.one", "MUST", "client", "broken", "t1", "i1"), ("a.one", "MUST", "client", "broken", "t1", "i1"),
    ("a.one", "MUST", "client", "kept", "t2", "i2"), ("a.one", "MUST", "client", "unexercised", "t3", "i3"),
    ("a.one", "MUST", "client", "unknown", "t4", "i4"), ("a.one", "MUST", "client", "kept", "t5", "i5"),
    # either party may break it: the server did in t1, the client in t4
    ("b.two", "SHOULD", "server", "broken", "t1", "i1"), ("b.two", "SHOULD", "either", "kept", "t2", "i2"),
    ("b.two", "SHOULD", "either", "unexercised", "t3", "i3"), ("b.two", "SHOULD", "client", "broken", "t4", "i4"),
    ("b.two", "SHOULD", "either", "kept", "t5", "i5"),
    *[("c.three", "MUST NOT", "server", "kept", f"t{n}", f"i{n}") for n in range(1, 6)],
]  # fmt: skip
FRAME = pd.DataFrame(ROWS, columns=["rule", "level", "party", "verdict", "trace", "instance"])
WHO = pd.DataFrame(
    [("t1", "i1", "Zed", "1.0"), ("t2", "i2", "Zed", "1.0"), ("t3", "i3", "alpha", "2.0"), ("t4", "i4", "alpha", "10.0"),
     ("t5", "i5", None, None), ("t5", "i5", None, None)],
    columns=["trace", "instance", "client", "client_version"],
)  # fmt: skip


def read(ax: Axes, theme: str = "light") -> dict[tuple[str, str, str], str]:
    """(rule, party, release) -> verdict and count, from shapes, colours, hatches and texts; only the place by gid."""
    looks = {}
    for word, one in breaches.VERDICTS.items():
        if one.marker:
            style = paper.marker(one, theme, 10, look.GROUNDS[theme])
            looks[one.marker, to_rgba(style["markerfacecolor"]), round(style["markersize"] / 10, 2)] = word
    counts = {str(text.get_gid()).removeprefix("count:"): text.get_text() for text in ax.texts if text.get_gid()}
    found = {}
    for line in ax.lines:
        name = str(line.get_gid())
        if name.startswith("finding:"):
            size = round(float(line.get_markersize()) / 8.0, 2)
            word = looks[line.get_marker(), to_rgba(line.get_markerfacecolor()), size]
            found[_place(name)] = f"{word} {counts.get(name, '')}".strip()
    for box in ax.patches:
        if str(box.get_gid()).startswith("finding:"):
            assert box.get_hatch() == look.UNKNOWN_HATCH
            found[_place(str(box.get_gid()))] = "unknown"
    return found


def _place(name: str) -> tuple[str, str, str]:
    _, rule, party, client, version = map(unquote, name.split(":"))
    return rule, party, f"{client} {version}"


def test_each_cell_is_the_gravest_of_its_instances() -> None:
    # alpha 2.0 was never called on: it is left out, and the caption counts it
    assert read(plots.findings(FRAME, connections=WHO)) == {
        ("a.one", "client", "alpha 10.0"): "unknown", ("a.one", "client", "Zed 1.0"): "broken 1/2",
        ("a.one", "client", "— —"): "kept",
        ("b.two", "client", "alpha 10.0"): "broken 1/1", ("b.two", "client", "Zed 1.0"): "kept",
        ("b.two", "client", "— —"): "kept",
        ("b.two", "server", "alpha 10.0"): "unexercised", ("b.two", "server", "Zed 1.0"): "broken 1/2",
        ("b.two", "server", "— —"): "kept",
    }  # fmt: skip


def test_what_the_server_broke_stands_apart_from_what_the_client_did() -> None:
    ax = plots.findings(FRAME, connections=WHO)
    down = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert down["broken by the client"] < down["a.one"] < down["broken by the server"]
    twos = sorted(text.get_position()[1] for text in ax.texts if text.get_text() == "b.two")
    assert down["a.one"] < twos[0] < down["broken by the server"] < twos[1]
    assert "c.three" not in down
    assert "1 further release never called on these rules." in " ".join(said(ax))
    assert {"MUST", "SHOULD"} <= set(said(ax))


def test_rules_that_are_named_are_drawn_whatever_came_of_them() -> None:
    ax = plots.findings(FRAME, connections=WHO, rules=["c.three"])
    assert set(read(ax).values()) == {"kept"}
    assert len(read(ax)) == 4
    assert "not broken" in said(ax)
    assert "none is broken" in plots.alt_text(ax)


def test_hints_have_a_mark_of_their_own() -> None:
    frame = pd.concat([FRAME, FRAME.iloc[:1].assign(verdict="hint", trace="t2", instance="i2", rule="d.four")])
    cells = read(plots.findings(frame, connections=WHO))
    assert cells["d.four", "client", "Zed 1.0"] == "hint"


def test_a_count_stands_beside_its_mark_or_below_it() -> None:
    few = plots.findings(FRAME, connections=WHO)
    many = WHO.assign(client="x", client_version="1")
    more = [("a.one", "MUST", "client", "kept", f"u{n}", f"j{n}") for n in range(40)]
    frame = pd.concat([FRAME, pd.DataFrame(more, columns=FRAME.columns)])
    names = [(f"u{n}", f"j{n}", f"client-{n}", "1") for n in range(40)]
    wide = plots.findings(frame, connections=pd.concat([many, pd.DataFrame(names, columns=WHO.columns)]))
    for ax, below in ((few, False), (wide, True)):
        (note, *_) = [text for text in ax.texts if str(text.get_gid()).startswith("count:")]
        (mark,) = [line for line in ax.lines if line.get_gid() == str(note.get_gid()).removeprefix("count:")]
        x, y = map(float, np.asarray(mark.get_xydata())[0])
        assert (note.get_position()[1] > y) is below
        assert (note.get_position()[0] > x) is not below
        assert_legible(ax)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("clients", "rules"), [(1, 1), (31, 8), (12, 60), (60, 3)])
def test_legible_at_any_size(clients: int, rules: int, theme: str) -> None:
    rows = [
        (f"topic-{r}.a-rule-of-some-length", ("MUST", "SHOULD NOT")[r % 2], ("client", "server")[r % 3 % 2],
         ("broken", "kept", "unknown", "broken")[(c + r) % 4], f"t{c}", f"i{c}")
        for c in range(clients) for r in range(rules)
    ]  # fmt: skip
    who = [(f"t{c}", f"i{c}", f"client-number-{c // 3}", f"{c}.0.1") for c in range(clients)]
    frame = pd.DataFrame(rows, columns=FRAME.columns)
    title = "Whose rules are broken, and by whom"
    ax = plots.findings(frame, connections=pd.DataFrame(who, columns=WHO.columns), title=title, theme=theme)
    assert_legible(ax)
    assert len(read(ax, theme)) == len(ax.lines) - len([line for line in ax.lines if not line.get_gid()]) + sum(
        str(box.get_gid()).startswith("finding:") for box in ax.patches
    )


def test_the_bundled_captures_are_legible(captures: list[Path]) -> None:
    traces = mcplab.read_traces(*captures, progress=False)
    found, links = traces.findings, traces.connections
    ax = plots.findings(found, connections=links, title="Bundled captures")
    assert_legible(ax)
    broken = found[found["verdict"] == "broken"].drop_duplicates(["rule", "party", "trace", "instance"])
    cells = read(ax)
    counted = sum(int(words.split()[1].split("/")[0]) for words in cells.values() if words.startswith("broken"))
    assert counted == len(broken)


def test_an_axes_of_ones_own() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(14, 5))
    ax = plots.findings(FRAME, connections=WHO, ax=axes[0])
    assert ax is axes[0]
    assert len(read(ax)) == 9
    assert not read(axes[1])
    assert figure is ax.figure


def test_hostile_names_are_literal() -> None:
    who = WHO.assign(client="$x$ \x1b" + "y" * 300, client_version="$1$")
    ax = plots.findings(FRAME.assign(rule="$r$ %"), connections=who, title="$t$")
    assert {"$1$", "$r$ %", "$t$"} <= set(said(ax))
    assert_legible(ax)


def test_wrong_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="no column 'verdict'"):
        plots.findings(FRAME.drop(columns="verdict"), connections=WHO)
    with pytest.raises(ValueError, match="give connections="):
        plots.findings(FRAME)
    with pytest.raises(ValueError, match="nothing to draw: no rule is broken"):
        plots.findings(FRAME[FRAME["verdict"] != "broken"], connections=WHO)
    with pytest.raises(ValueError, match=r"none of the rules no\.such"):
        plots.findings(FRAME, connections=WHO, rules=["no.such"])


def test_names_may_stand_in_the_frame_itself() -> None:
    named = FRAME.merge(WHO.drop_duplicates(["trace", "instance"]), on=["trace", "instance"])
    assert read(plots.findings(named)) == read(plots.findings(FRAME, connections=WHO))


def test_alternative_text_and_ground() -> None:
    ax = plots.findings(FRAME, connections=WHO, title="Two rules break.", theme="dark")
    assert plots.alt_text(ax) == (
        "Two rules break: a chart of 3 rules by 3 client releases; broken: a.one by the client in captures of 1 "
        "release; b.two by the client in captures of 1 release; b.two by the server in captures of 1 release."
    )
    assert read(ax, "dark")["a.one", "client", "Zed 1.0"] == "broken 1/2"


def test_same_chart_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_plots_findings as t; from mcplab import plots, export;"
        "export(plots.findings(t.FRAME, connections=t.WHO), sys.argv[1] + '/findings.svg')"
    )
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code, str(tmp_path / seed), str(Path(__file__).parent)]
        subprocess.run(run, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    assert (tmp_path / "1" / "findings.svg").read_bytes() == (tmp_path / "2" / "findings.svg").read_bytes()
