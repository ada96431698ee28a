"""What becomes of a timeline with more than a page holds: lanes that are shared, marks on marks, heights in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from figures import assert_legible, figure_of, said
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from test_plots_timeline import HANDSHAKE, START, busy, frame_of, row

from mcplab import plots
from mcplab.plots import scene


def streams(ax: Axes) -> list[tuple[float, float]]:
    boxes: Any = [patch for patch in ax.patches if patch.get_gid() == "streams"]
    return [(box.get_x(), box.get_x() + box.get_width()) for box in boxes]


def burst(n: int, gap: float = 3600.0) -> pd.DataFrame:
    """``n`` requests in a tenth of a second, and one long after."""
    at = [*np.linspace(0, 0.1, n), gap]
    return frame_of(*(row(float(t), k, "client", "request", method="tools/call") for k, t in enumerate(at)))


def test_marks_that_lie_on_others_are_counted() -> None:
    ax = plots.timeline(burst(30))
    assert any("24 marks lie on others." in text for text in said(ax))
    assert_legible(ax)
    assert not any("on others" in text for text in said(plots.timeline(HANDSHAKE)))


def test_where_most_marks_would_lie_on_others_heights_stand_for_them() -> None:
    ax = plots.timeline(burst(100))
    assert any("Too many to draw one by one" in text for text in said(ax))
    assert_legible(ax)
    one_by_one = plots.timeline(burst(100), dense=False)
    assert any("94 marks lie on others." in text for text in said(one_by_one))


def test_methods_that_are_not_named_are_counted() -> None:
    frame = busy(400)
    ax = plots.timeline(frame)
    left_out = int(frame["kind"].isin(["request", "notification"]).sum())
    assert any(f"{left_out} labels left out for want of room." in text for text in said(ax))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heights_and_symbols_are_both_in_the_legend_and_nothing_lies_on_them(theme: str) -> None:
    ax = plots.timeline(busy(5000), theme=theme)
    words = said(ax)
    assert {"heights:", "symbols:"} <= set(words)
    assert words.count("request") == 2
    assert any("a circled cross marks a moment with an error" in text for text in words)
    assert_legible(ax)
    renderer = FigureCanvasAgg(figure_of(ax)).get_renderer()
    heights = [patch for patch in ax.patches if str(patch.get_gid()).startswith("density:")]
    for text in (text for text in ax.texts if text.get_text().startswith("highest:")):
        box = text.get_window_extent(renderer)
        assert not any(box.overlaps(patch.get_window_extent(renderer)) for patch in heights), text.get_text()
    calm = busy(5000).assign(activity="notification", kind="notification")
    assert not any("circled cross" in text for text in said(plots.timeline(calm)))


def crowd(instances: int) -> pd.DataFrame:
    """Instance n sends n + 1 notifications on each of two channels."""
    rows = [
        row(n + k / 100, 1000 * n + 10 * k + at, "client", "notification", instance=f"i{n:03}", channel=channel)
        for n in range(instances)
        for k in range(n + 1)
        for at, channel in enumerate(["POST (JSON)", "POST (SSE)"])
    ]
    return frame_of(*rows)


def test_of_many_instances_the_quietest_share_the_last_lanes() -> None:
    frame = crowd(40)
    made = scene.build(frame, None, None, None)
    assert len(made.lanes) == scene.MOST_LANES
    assert [lane.instance for lane in made.lanes[::2]] == [
        "i035",
        "i036",
        "i037",
        "i038",
        "i039",
        "35 instances together",
    ]
    assert len(made.x) == len(frame), "nothing is left out"
    ax = plots.timeline(frame)
    assert any("The 35 instances with fewest messages are drawn together, last." in text for text in said(ax))
    assert_legible(ax)


def test_as_many_lanes_as_a_page_holds_are_all_drawn() -> None:
    made = scene.build(crowd(6), None, None, None)
    assert made.together == 0
    assert len({lane.instance for lane in made.lanes}) == 6


def test_a_stream_whose_end_was_not_seen_lasts_as_long_as_its_own_trace() -> None:
    later = HANDSHAKE.assign(trace="u", instance="second", ts=HANDSHAKE["ts"] + pd.Timedelta(hours=1))
    http = pd.DataFrame(
        {
            "trace": ["t", "u"], "instance": ["i", "second"], "channel": "STDIO", "seq": 0, "response_seq": 0, "last_seq": 5,
            "content_type": "text/event-stream", "ts": [START, START + pd.Timedelta(hours=1)],
            "response_ts": [START, START + pd.Timedelta(hours=1)],
            "last_ts": [START + pd.Timedelta(seconds=2), START + pd.Timedelta(hours=1, seconds=2)],
            "ended": pd.array([None, None], dtype="boolean"),
        }
    )  # fmt: skip
    both = pd.concat([HANDSHAKE, later])
    assert streams(plots.timeline(both, http=http, align="clock")) == [(0.0, 5.0), (3600.0, 3605.0)]
    no_clock = both.assign(ts=pd.Series(pd.NaT, index=both.index, dtype="datetime64[us, UTC]"))
    unclocked = http.assign(
        **{
            name: pd.Series(pd.NaT, index=http.index, dtype="datetime64[us, UTC]")
            for name in ("ts", "response_ts", "last_ts")
        }
    )
    assert streams(plots.timeline(no_clock, http=unclocked)) == [(0.0, 10.0), (0.0, 10.0)]


def test_events_without_a_channel_are_nothing_to_draw() -> None:
    opened = pd.DataFrame({
        "trace": "t", "instance": "i", "seq": [0], "ts": [START], "kind": "open", "sender": "client", "channel": None,
        "activity": "none", "status": pd.array([None], dtype="Int64"),
    })  # fmt: skip
    with pytest.raises(ValueError, match="no event of these frames was on a channel"):
        plots.timeline(HANDSHAKE.iloc[:0], events=opened)


def test_a_strip_alone_shows_as_many_rows_as_a_page_holds_and_counts_the_others() -> None:
    index = pd.MultiIndex.from_tuples([(f"i{n:03}", "STDIO") for n in range(300)], names=["instance", "channel"])
    frame = pd.DataFrame({n: ["request"] * 300 for n in range(3)}, index=index)
    ax = plots.timeline(frame)
    assert "252 more rows left out; name an instance to see its own." in said(ax)
    assert figure_of(ax).get_size_inches()[1] < 20
    assert not any("left out" in text for text in said(plots.timeline(frame.iloc[:48])))
