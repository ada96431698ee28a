"""The timeline draws what was sent, where and when it was sent, and says what it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from figures import assert_legible, said
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import mcplab
from mcplab import export, look, plots
from mcplab.model import ACTIVITIES, PRIORITY
from mcplab.plots import density, paper, scene, strip

START = pd.Timestamp("2026-11-30T12:00:00Z")


def row(at: float | None, seq: int, sender: str, kind: str, **more: Any) -> dict[str, Any]:
    """One message; ``at`` in seconds from the start."""
    activity = {"request": "request", "response": "response", "error": "error", "notification": "notification"}[kind]
    stamp = pd.NaT if at is None else START + pd.Timedelta(milliseconds=round(at * 1000))
    return {
        "trace": "t", "instance": "i", "conn": "c", "seq": seq, "part": None, "ts": stamp, "sender": sender, "kind": kind,
        "method": None, "channel": "STDIO", "activity": activity, "reply_to": None, "reply_part": None, **more,
    }  # fmt: skip


def frame_of(*rows: dict[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows))
    frame["ts"] = pd.to_datetime(frame["ts"], utc=True)
    return frame.astype({"reply_to": "Int64", "reply_part": "Int64", "part": "Int64"})


HANDSHAKE = frame_of(
    row(0.0, 0, "client", "request", method="initialize"),
    row(0.5, 1, "server", "response", method="initialize", reply_to=0),
    row(0.6, 2, "client", "notification", method="notifications/initialized"),
    row(1.0, 3, "client", "request", method="tools/call"),
    row(1.2, 4, "server", "notification", method="notifications/progress"),
    row(1.3, 5, "server", "request", method="elicitation/create"),
    row(3.0, 6, "client", "response", method="elicitation/create", reply_to=5),
    row(3.5, 7, "server", "error", method="tools/call", reply_to=3),
    row(4.0, 8, "client", "request", method="ping", activity="ping"),
    row(4.1, 9, "server", "response", method="ping", reply_to=8, activity="ping"),
    row(5.0, 10, "client", "request", method="resources/read"),
)


def busy(n: int, seed: int = 0) -> pd.DataFrame:
    """Traffic of a made-up busy server: half requests, some never answered, some with errors."""
    dice = np.random.default_rng(seed)
    kinds = dice.choice(4, n, p=[0.4, 0.35, 0.2, 0.05])
    words = np.array(["request", "response", "notification", "error"], dtype=object)[kinds]
    reply = pd.array(np.maximum(np.arange(n) - 1, 0), dtype="Int64")
    reply[~np.isin(kinds, (1, 3))] = pd.NA
    return pd.DataFrame(
        {
            "trace": "t", "instance": "i", "conn": "c", "seq": np.arange(n),
            "ts": START + pd.to_timedelta(np.cumsum(dice.integers(1, 400_000, n)), unit="us"),
            "sender": np.where(kinds == 0, "client", "server"), "kind": words, "activity": words,
            "method": "tools/call", "reply_to": reply,
            "channel": np.array(["POST (JSON)", "POST (SSE)", "GET (SSE)"])[dice.integers(0, 3, n)],
        }
    )  # fmt: skip


def part(ax: Axes, gid: str) -> Any:
    """The one artist of that gid."""
    (found,) = [artist for artist in ax.get_children() if artist.get_gid() == gid]
    return found


def marks(ax: Axes, word: str) -> list[tuple[float, float]]:
    """Places of all marks of an activity on the lanes."""
    found = [line for line in ax.lines if line.get_gid() == f"marks:{word}"]
    return [tuple(spot) for line in found for spot in np.asarray(line.get_xydata()).tolist()]


def corners(artist: PolyCollection) -> list[tuple[float, float]]:
    """Left and right end of each rectangle."""
    ends = [np.asarray(path.vertices)[:, 0] for path in artist.get_paths()]
    return [(round(float(x.min()), 6), round(float(x.max()), 6)) for x in ends]


def lane_line(ax: Axes) -> float:
    """y of the first lane's line."""
    lines = [np.asarray(line.get_ydata()) for line in ax.lines if list(np.asarray(line.get_xdata())) == [0, 1]]
    return float(lines[0][0])


def read_strip(ax: Axes) -> list[list[str]]:
    """The strip as words, from its symbols: shape, fill, size and colour, never from a name."""
    shapes = {}
    for word, one in look.ACTIVITIES.items():
        for theme in look.GROUNDS:
            style = paper.marker(one, theme, 10, look.GROUNDS[theme])
            shapes[one.marker, to_hex(style["markeredgecolor"]), one.filled, round(one.scale, 2)] = word
    rows: dict[float, dict[float, str]] = {}
    symbols = [line for line in ax.lines if str(line.get_gid()).startswith("strip:")]
    biggest = max(line.get_markersize() / look.ACTIVITIES[str(line.get_gid()).split(":")[2]].scale for line in symbols)
    for line in symbols:
        edge, face = to_hex(line.get_markeredgecolor()), to_hex(line.get_markerfacecolor())
        key = (line.get_marker(), edge, edge == face, round(line.get_markersize() / biggest, 2))
        for x, y in np.asarray(line.get_xydata()).tolist():
            rows.setdefault(y, {})[round(x, 9)] = shapes[key]
    return [[cells[x] for x in sorted(cells)] for _, cells in sorted(rows.items())]


def test_a_request_is_a_bar_from_its_sending_to_its_answer() -> None:
    ax = plots.timeline(HANDSHAKE)
    assert sorted(corners(part(ax, "bars"))) == [(0.0, 0.5), (1.0, 3.5), (1.3, 3.0), (4.0, 4.1)]


def test_the_clients_direction_is_above_the_line_and_the_servers_below() -> None:
    ax = plots.timeline(HANDSHAKE)
    line = lane_line(ax)
    for word in ("request", "response", "notification", "error", "ping"):
        rows = HANDSHAKE[HANDSHAKE["activity"] == word]
        expected = {
            ((t - START).total_seconds(), s == "client") for t, s in zip(rows["ts"], rows["sender"], strict=True)
        }
        assert {(round(x, 6), y < line) for x, y in marks(ax, word)} == expected, word
    bottom, top = ax.get_ylim()
    assert bottom > top, "y grows downwards: smaller is above"


def test_what_got_no_answer_fades_to_the_right() -> None:
    ax = plots.timeline(HANDSHAKE)
    fades = part(ax, "fades")
    ends = corners(fades)
    assert ends[0][0] == 5.0
    assert all(left < right for left, right in ends)
    alphas = fades.get_facecolor()[:, 3]
    assert (np.diff(alphas) < 0).all(), "paler and paler"
    assert alphas[-1] < 0.05
    assert ends[-1][1] <= ax.get_xlim()[1], "all of it is on the chart"


def test_errors_are_unmistakable() -> None:
    ax = plots.timeline(HANDSHAKE)
    bars = part(ax, "bars")
    red = to_rgba(look.ACTIVITIES["error"].light)[:3]
    failed = [n for n, ends in enumerate(corners(bars)) if ends == (1.0, 3.5)]
    assert [tuple(bars.get_facecolor()[n, :3]) for n in failed] == [red]
    crosses = [line for line in ax.lines if line.get_marker() == "x" and line.get_zorder() > 5]
    assert crosses, "an error keeps its cross where colour is lost"


def test_waiting_for_a_person_is_set_apart() -> None:
    ax = plots.timeline(HANDSHAKE)
    assert corners(part(ax, "person")) == [(1.3, 3.0)]
    assert part(ax, "person").get_hatch()
    assert "waits for a person" in said(ax)


def test_labels_name_methods_without_touching() -> None:
    ax = plots.timeline(HANDSHAKE, title="A handshake")
    assert {"initialize", "initialized", "tools/call", "progress", "elicitation/create", "resources/read"} <= set(
        said(ax)
    )
    assert "ping" not in [t.get_text() for t in ax.texts if t.get_position()[0] == 4.0]
    assert_legible(ax)


@pytest.mark.parametrize("n", [10, 60, 300, 5000])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_legible_at_every_size(n: int, theme: str) -> None:
    assert_legible(plots.timeline(busy(n), title="Traffic", theme=theme))


def test_ten_events_fill_the_width() -> None:
    ax = plots.timeline(HANDSHAKE)
    low, high = ax.get_xlim()
    assert (5.0 - 0.0) / (high - low) > 0.85


def test_seconds_on_the_axis_and_when_they_start() -> None:
    assert plots.timeline(HANDSHAKE).get_xlabel() == "seconds from the first event, 2026-11-30 12:00:00.000 UTC"


def test_without_a_clock_the_axis_is_seq_and_says_so() -> None:
    frame = HANDSHAKE.assign(ts=pd.NaT)
    ax = plots.timeline(frame)
    assert ax.get_xlabel() == "seq: number of the event (this capture has no clock)"
    assert (0.0, 1.0) in corners(part(ax, "bars"))
    assert read_strip(ax)[0] == list(frame["activity"])
    assert "one symbol per event" in said(ax)


def test_events_without_a_clock_among_others_are_counted_not_guessed() -> None:
    frame = HANDSHAKE.copy()
    frame.loc[2, "ts"] = pd.NaT
    ax = plots.timeline(frame)
    assert any("1 event without a clock cannot be placed." in text for text in said(ax))
    assert len(marks(ax, "notification")) == 1
    own = plots.timeline(frame, caption="My words.")
    assert any("1 event without a clock" in text for text in said(own)), "a caption of one's own does not hide it"


def test_order_is_seq_where_clocks_agree_and_a_backward_clock_does_not_break() -> None:
    frame = frame_of(
        row(1.0, 0, "client", "request", method="a"),
        row(0.5, 1, "server", "response", method="a", reply_to=0),
    )
    ax = plots.timeline(frame)
    assert corners(part(ax, "bars")) == [(0.5, 0.5)], "an answer dated before its request has no length"


def test_batches_pair_by_part() -> None:
    frame = frame_of(
        row(0, 0, "client", "request", method="a", part=0),
        row(0, 0, "client", "request", method="b", part=1),
        row(1, 1, "server", "response", method="b", part=0, reply_to=0, reply_part=1),
        row(2, 2, "server", "response", method="a", reply_to=0, reply_part=0),
    )
    made = scene.build(frame, None, None, None)
    assert made.answer.tolist() == [3, 2, -1, -1]


def test_ids_of_two_traces_do_not_mix() -> None:
    one = frame_of(row(0, 0, "client", "request", method="a"))
    two = frame_of(row(0, 0, "client", "request", method="a"), row(1, 1, "server", "response", method="a", reply_to=0))
    frame = pd.concat([one, two.assign(trace="u", instance="j")])
    assert scene.build(frame, None, None, None).answer.tolist() == [-1, 2, -1]


def test_streams_are_pale_bars_and_unended_ones_run_to_the_edge() -> None:
    http = pd.DataFrame(
        {
            "trace": "t", "instance": "i", "channel": "STDIO", "seq": [0, 1, 2], "response_seq": [0, 1, 2],
            "last_seq": [5, 6, 7],
            "content_type": ["text/event-stream", "text/event-stream; charset=utf-8", "application/json"],
            "ts": [START] * 3, "response_ts": [START + pd.Timedelta(seconds=1)] * 3,
            "last_ts": [START + pd.Timedelta(seconds=2)] * 3, "ended": pd.array([True, None, True], dtype="boolean"),
        }
    )  # fmt: skip
    ax = plots.timeline(HANDSHAKE, http=http)
    streams = [patch for patch in ax.patches if patch.get_gid() == "streams"]
    assert [(s.get_x(), s.get_x() + s.get_width()) for s in streams] == [(1.0, 2.0), (1.0, pytest.approx(5.0, abs=0.2))]  # type: ignore[attr-defined]
    assert all(to_rgba(s.get_facecolor())[3] < 0.3 for s in streams)
    assert "open stream" in said(ax)


def test_events_that_are_no_messages_are_drawn_too() -> None:
    events = pd.DataFrame(
        {
            "trace": "t", "instance": "i", "seq": [20, 21, 22], "ts": [START + pd.Timedelta(seconds=2)] * 3,
            "kind": ["http", "http", "message"], "sender": ["server", "client", "server"], "channel": "GET (SSE)",
            "activity": ["error", "none", "error"], "status": pd.array([404, None, 500], dtype="Int64"),
        }
    )  # fmt: skip
    ax = plots.timeline(HANDSHAKE, events=events)
    assert "HTTP 404" in said(ax)
    assert "HTTP 500" not in said(ax), "messages come from the messages frame"
    assert (2.0, True) in {(x, y > lane_line(ax)) for x, y in marks(ax, "error")}
    assert "GET (SSE)" in said(ax)


def test_rounds_of_one_request_are_joined() -> None:
    frame = frame_of(
        row(0, 0, "client", "request", method="tools/call", group=7),
        row(1, 1, "server", "response", method="tools/call", reply_to=0),
        row(4, 2, "client", "request", method="tools/call", group=7),
        row(5, 3, "server", "response", method="tools/call", reply_to=2),
    )
    ax = plots.timeline(frame)
    (segment,) = part(ax, "rounds").get_segments()
    assert [float(x) for x in np.asarray(segment)[:, 0]] == [1.0, 4.0]


def test_lanes_stand_in_the_order_of_all_tables() -> None:
    frame = busy(60)
    ax = plots.timeline(frame)
    names = [
        t for t in ax.texts if t.get_text() in set(frame["channel"]) and t.get_fontproperties().get_weight() == "bold"
    ]
    assert [t.get_text() for t in sorted(names, key=lambda t: t.get_position()[1])] == [
        "POST (JSON)", "POST (SSE)", "GET (SSE)",
    ]  # fmt: skip


def test_instances_stand_below_each_other_on_one_clock() -> None:
    later = HANDSHAKE.assign(
        instance="second", conn="d", ts=HANDSHAKE["ts"] + pd.Timedelta(seconds=10), seq=HANDSHAKE["seq"] + 20
    )
    later["reply_to"] = later["reply_to"] + 20
    ax = plots.timeline(pd.concat([HANDSHAKE, later]))
    assert {(0.0, 0.5), (10.0, 10.5)} <= set(corners(part(ax, "bars")))
    assert {"i", "second"} <= set(said(ax))
    assert_legible(ax)


def test_several_traces_start_at_their_own_first_event_unless_asked() -> None:
    later = HANDSHAKE.assign(trace="u", instance="second", ts=HANDSHAKE["ts"] + pd.Timedelta(days=3))
    both = pd.concat([HANDSHAKE, later])
    ax = plots.timeline(both)
    assert corners(part(ax, "bars")).count((0.0, 0.5)) == 2
    assert ax.get_xlabel() == "seconds from the first event of each trace"
    clock = plots.timeline(both, align="clock")
    assert clock.get_xlim()[1] > 3 * 86400


# Many events ---------------------------------------------------------------------------------------


def test_a_hundred_thousand_events_become_densities() -> None:
    frame = busy(100_000)  # how long it takes is benchmarks/bench_display.py
    ax = plots.timeline(frame)
    assert isinstance(ax.figure, Figure)
    ax.figure.canvas.draw()
    assert any("Too many to draw one by one: heights are messages per" in text for text in said(ax))
    assert_legible(ax)


def test_densities_add_up_to_the_messages() -> None:
    frame = busy(5000)
    made = scene.build(frame, None, None, None)
    edges = np.linspace(made.x.min(), made.x.max(), density.BINS + 1)
    total = sum(
        int(numbers.sum())
        for lane in range(len(made.lanes))
        for side in (1, -1)
        for numbers in density.counts(made, lane, side, edges).values()
    )
    assert total == 5000
    ax = plots.timeline(frame, dense=True)
    assert [a for a in ax.patches if str(a.get_gid()).startswith("density:")]
    assert not [a for a in ax.collections if a.get_gid() == "bars"]
    assert [a for a in plots.timeline(frame.head(200)).collections if a.get_gid() == "bars"]


# The strip -----------------------------------------------------------------------------------------


def words(made: strip.Strip) -> list[list[str]]:
    return [[ACTIVITIES[code] for code in lane] for lane in made.cells]


def test_strip_shows_the_strongest_activity_of_a_step_and_on_a_tie_the_later() -> None:
    frame = frame_of(
        row(0.1, 0, "client", "notification"), row(0.2, 1, "client", "request", activity="ping"),
        row(1.1, 2, "client", "request"), row(1.2, 3, "server", "response"), row(1.3, 4, "server", "error", activity="disabled"),
        row(2.1, 5, "server", "error"), row(2.2, 6, "client", "request"),
        row(4.5, 7, "client", "request", activity="ping"), row(4.6, 8, "server", "notification"),
    )  # fmt: skip
    ax = plots.timeline(frame, step_seconds=1)
    assert read_strip(ax) == [["ping", "disabled", "error", "none", "notification"]]
    assert "one symbol per 1 s" in said(ax)


@given(
    st.lists(st.tuples(st.integers(0, 50_000), st.sampled_from(ACTIVITIES), st.booleans()), min_size=1, max_size=40),
    st.integers(2, 5),
)
def test_a_coarser_strip_is_the_merge_of_the_finer(events: list[tuple[int, str, bool]], times: int) -> None:
    """The strip at k times the step is the priority merge of the strip at the step, for steps that share their edges."""
    rows = [
        row(at / 1000, seq, "client", "notification", activity=word, channel="STDIO" if one else "POST (JSON)")
        for seq, (at, word, one) in enumerate(sorted(events, key=lambda e: e[0]))
    ]
    made = scene.build(frame_of(*rows), None, None, None)
    fine, coarse = strip.segments(made, 10_000, 1.0), strip.segments(made, 10_000, float(times))
    for lane in range(len(made.lanes)):
        merged: dict[float, str] = {}
        for left, word in zip(fine.left, words(fine)[lane], strict=True):
            where = float(coarse.left[np.searchsorted(coarse.left, left + 1e-6) - 1])
            if PRIORITY[word] >= PRIORITY[merged.get(where, "none")]:
                merged[where] = word
        assert words(coarse)[lane] == [merged[float(left)] for left in coarse.left]


def test_default_step_is_round_and_brings_everything_in() -> None:
    made = scene.build(busy(500), None, None, None)
    for steps in (7, 60, 200):
        cut = strip.segments(made, steps, None)
        assert len(cut.left) <= steps
        assert cut.left[0] <= made.x.min()
        assert cut.left[-1] + cut.step > made.x.max()
        assert round(cut.step / 10 ** np.floor(np.log10(cut.step)), 6) in (1, 2, 5)


def test_strip_of_the_chart_equals_the_strip_of_the_package(captures: list[Path]) -> None:
    """Over real captures: the same steps, the same activities."""
    for file in captures[::40]:
        trace = mcplab.read_trace(file)
        frame = mcplab.timeline(trace, steps=30, step_seconds=0.1)
        mine = strip.segments(scene.build(trace.messages, trace.http, trace.events, None), 30, 0.1)
        for at, lane in enumerate(mine.lanes):
            theirs = frame.loc[(lane.instance, lane.channel)].tolist()
            assert words(mine)[at] == theirs[-len(mine.left) :], (file.name, lane)


def test_a_timeline_frame_draws_the_strip_alone() -> None:
    columns = pd.date_range("2026-11-30T12:00:00Z", periods=4, freq="s", name="step")
    index = pd.MultiIndex.from_tuples([("i", "POST (JSON)"), ("i", "GET (SSE)")], names=["instance", "channel"])
    cells = [["request", "response", "none", "error"], ["none", "ping", "notification", "disabled"]]
    frame = pd.DataFrame(cells, index=index, columns=columns, dtype="str")
    ax = plots.timeline(frame, title="Four seconds")
    assert read_strip(ax) == cells
    assert ax.get_xlabel() == "seconds from 2026-11-30 12:00:00.000 UTC, one symbol per 1 s"
    assert_legible(ax)
    by_seq = plots.timeline(frame.set_axis(pd.Index([3, 4, 8, 9], name="seq"), axis=1))
    assert read_strip(by_seq) == cells
    with pytest.raises(ValueError, match="a cell holds 'busy'"):
        plots.timeline(frame.replace({"none": "busy"}))


# Around it -----------------------------------------------------------------------------------------


def test_hostile_names_are_literal(tmp_path: Path) -> None:
    frame = HANDSHAKE.assign(
        method=["$x$", "", "\x1b[31m", "a" * 400, "\u202e", "客户", None, "", "", "", "_b_"], channel="weird $y$ channel",
        instance="in$tance " * 30,
    )  # fmt: skip
    ax = plots.timeline(pd.concat([frame, frame.assign(instance="other\nline", trace="u")]), title="$z$")
    assert {"$x$", "weird $y$ channel", "other\\u000aline"} <= set(said(ax))
    assert not any(char in text for text in said(ax) for char in "\x1b\u202e")
    assert_legible(ax)
    assert len(export(ax, tmp_path / "hostile")) == 3


def test_alternative_text() -> None:
    assert plots.alt_text(plots.timeline(HANDSHAKE, title="One call fails.")) == (
        "One call fails: a timeline of 11 messages over 5 s on STDIO: 5 requests, 1 without an answer, 1 error."
    )


def test_given_axes_and_untouched_session() -> None:
    before = dict(mpl.rcParams)
    ax = Figure(figsize=(8, 4)).subplots()
    assert plots.timeline(HANDSHAKE, ax=ax) is ax
    assert dict(mpl.rcParams) == before
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: plots.timeline(HANDSHAKE.drop(columns="activity")), "no column 'activity'"),
        (lambda: plots.timeline(HANDSHAKE.iloc[:0]), "nothing to draw"),
        (lambda: plots.timeline(HANDSHAKE, steps=0), "steps 0"),
        (lambda: plots.timeline(HANDSHAKE, step_seconds=-1), "step_seconds"),
        (lambda: plots.timeline(HANDSHAKE, align="left"), "align"),
    ],
)
def test_wrong_use_is_refused(call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_one_event_alone_is_drawn() -> None:
    ax = plots.timeline(HANDSHAKE.head(1))
    low, high = ax.get_xlim()
    assert low < 0 < high
    assert_legible(ax)


def test_real_captures_are_legible(captures: list[Path]) -> None:
    for file in captures[::30]:
        trace = mcplab.read_trace(file)
        assert_legible(plots.timeline(trace.messages, http=trace.http, events=trace.events, title=file.stem))
        assert isinstance(plt.gca(), Axes)
        assert all(isinstance(line, Line2D) for line in plt.gca().lines)
        plt.close("all")
