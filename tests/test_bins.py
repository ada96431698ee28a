"""Steps of time and what they show."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab import TraceError, make_trace, read_trace, timeline
from mcplab.channels import Marks, stronger
from mcplab.model import ACTIVITIES, NO_TIME, PRIORITY


class Fake:
    """Marks without a trace: what the bins are made of."""

    def __init__(self, marks):
        n = len(marks)
        import numpy as np

        ts = np.array([m[0] for m in marks], dtype="int64")
        self.marks = Marks(list(range(n)), ts, ["i"] * n, ["STDIO"] * n, [m[1] for m in marks])


activities = st.sampled_from(ACTIVITIES)
marks = st.lists(st.tuples(st.integers(0, 60_000_000), activities), min_size=1, max_size=30)


@given(marks, st.integers(2, 6), st.integers(1, 8))
def test_k_steps_make_one_step_of_k_times_the_length(rows, k, count):
    rows = sorted(rows, key=lambda row: row[0])
    trace = Fake(rows)
    fine = timeline(trace, steps=None, step_seconds=1.0)
    end = fine.columns[-1]
    coarse = timeline(trace, steps=count, step_seconds=float(k), end=end)
    # steps are aligned to 1970, so a coarse step is the fine steps whose start falls into it
    for start, column in zip(coarse.columns, coarse.to_numpy().T, strict=True):
        inside = (fine.columns >= start) & (fine.columns < start + pd.Timedelta(seconds=k))
        shown = "none"
        for activity in fine.loc[:, inside].to_numpy()[0] if inside.any() else []:
            shown = stronger(shown, activity)
        # a tie keeps the later event, and so does the merge of what the fine steps kept
        assert column[0] == shown


@given(marks)
def test_a_segment_shows_the_highest_and_on_a_tie_the_later(rows):
    shown = timeline(Fake([(0, activity) for _, activity in rows]), steps=1).iloc[0, 0]
    best = max(PRIORITY[activity] for _, activity in rows)
    assert shown == [activity for _, activity in rows if PRIORITY[activity] == best][-1]


def test_the_last_step_holds_the_end():
    trace = Fake([(1_500_000, "request"), (2_400_000, "response")])
    frame = timeline(trace, steps=3, step_seconds=1.0)
    assert [str(c) for c in frame.columns] == [
        "1970-01-01 00:00:00+00:00", "1970-01-01 00:00:01+00:00", "1970-01-01 00:00:02+00:00",
    ]  # fmt: skip
    assert frame.iloc[0].tolist() == ["none", "request", "response"]
    later = timeline(trace, steps=2, end="1970-01-01T00:00:05Z")
    assert later.iloc[0].tolist() == ["none", "none"]
    whole = timeline(trace, steps=5, end="1970-01-01T01:00:05+01:00")
    assert whole.iloc[0].tolist() == ["request", "response", "none", "none", "none"]
    assert timeline(trace, steps=2, end=fine_end(trace)).iloc[0].tolist() == ["request", "response"]


def fine_end(trace):
    return timeline(trace, steps=None).columns[-1]


def test_without_a_clock_it_names_the_other_axis():
    trace = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})])
    with pytest.raises(TraceError, match="axis='seq'"):
        timeline(trace)
    frame = timeline(trace, axis="seq")
    assert frame.columns.tolist() == [0]
    assert frame.loc[("made", "STDIO")].tolist() == ["ping"]


def test_some_events_without_a_clock_are_left_out_of_time():
    assert timeline(Fake([(NO_TIME, "error"), (0, "ping")]), steps=1).iloc[0, 0] == "ping"


def test_wrong_use_is_told():
    trace = Fake([(0, "ping")])
    for words, kwargs in (("axis", {"axis": "x"}), ("steps", {"steps": 0}), ("step_seconds", {"step_seconds": 0}),
                          ("no instance", {"instance": "other"}), ("no time", {"end": "yesterday or so"})):  # fmt: skip
        with pytest.raises(TraceError, match=words):
            timeline(trace, **kwargs)


def test_every_capture_has_a_timeline_of_what_happened(captures):
    for path in captures[::20]:
        trace = read_trace(path)
        frame = timeline(trace, steps=None)
        assert set(frame.index.get_level_values("channel")) == set(trace.events["channel"].dropna())
        shown = set(trace.events["activity"])
        assert set(frame.to_numpy().ravel()) - {"none"} <= shown


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0}, {"steps": 1.5}, {"steps": "60"}, {"steps": 10**9}, {"steps": None, "step_seconds": 1e-12},
        {"step_seconds": 0}, {"step_seconds": float("nan")}, {"step_seconds": float("inf")}, {"step_seconds": "1"},
        {"step_seconds": 1e-9}, {"end": "yesterdayish"}, {"end": None, "axis": "clock"}, {"end": pd.NaT},
    ],
)  # fmt: skip
def test_what_is_no_timeline_is_one_clear_error(wrong):
    with pytest.raises(TraceError) as error:
        timeline(Fake([(0, "request"), (86_400_000_000, "response")]), **wrong)
    assert "\n" not in str(error.value)


def test_wild_clocks_hide_nothing_that_can_be_shown():
    first, last = -62_135_596_800 * 10**6, 253_402_300_800 * 10**6 - 1
    frame = timeline(Fake([(first, "request"), (0, "error"), (last, "response")]), step_seconds=1e10)
    assert frame.iloc[0].value_counts()[["error", "response"]].tolist() == [1, 1]
    assert frame.shape[1] == 32
    assert timeline(Fake([(first, "request"), (last, "response")])).shape[1] == 60
    assert timeline(Fake([(0, "request")]), step_seconds=1e12).shape[1] == 1


@pytest.mark.parametrize("step", [1.001, 1.003, 0.07, 0.3, 2.0])
def test_steps_begin_at_whole_multiples(step):
    length = round(step * 1e6)
    at = 1_764_500_000_000_000 // length * length
    frame = timeline(Fake([(at - 1, "ping"), (at, "error"), (at + length - 1, "ping")]), steps=2, step_seconds=step)
    assert frame.columns.astype("int64").tolist() == [at - length, at]
    assert frame.iloc[0].tolist() == ["ping", "error"]


@pytest.mark.parametrize("end", ["-1", "0001-01-01", "0001-01-01T00:00:58Z"])
def test_steps_before_the_first_year_are_refused(end):
    with pytest.raises(TraceError, match=r"beyond the years|is no time"):  # which of them depends on pandas
        timeline(Fake([(0, "request")]), end=end)
    first = timeline(Fake([(0, "request")]), end="0001-01-01T00:00:59Z").columns[0]
    assert str(first) == "0001-01-01 00:00:00+00:00"
