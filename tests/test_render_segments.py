"""The strip: steps merge as if they had been longer from the start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab import TraceError, make_trace, timeline
from mcplab.channels import Marks, stronger
from mcplab.model import ACTIVITIES, NO_TIME
from mcplab.render import merge, segments, within
from mcplab.render.segments import overall


class Fake:
    """Marks without a trace."""

    def __init__(self, rows):
        rows = list(rows)
        channels = [row[2] if len(row) > 2 else "STDIO" for row in rows]
        ts = np.array([row[0] for row in rows], dtype="int64")
        self.marks = Marks(list(range(len(rows))), ts, ["i"] * len(rows), channels, [row[1] for row in rows])


SECOND = 1_000_000
moments = st.integers(1_700_000_000 * SECOND, 1_700_000_090 * SECOND)
rows = st.lists(
    st.tuples(moments, st.sampled_from(ACTIVITIES), st.sampled_from(["POST (JSON)", "GET (SSE)"])),
    min_size=1,
    max_size=40,
).map(lambda found: sorted(found, key=lambda row: row[0]))


@given(rows, st.integers(1, 7), st.sampled_from([0.001, 0.1, 0.3, 0.5, 0.7, 1.0, 1.001, 2.5, 7.0]))
def test_the_strip_at_k_times_the_step_is_the_merged_strip(found, k, step):
    trace = Fake(found)
    fine = timeline(trace, steps=None, step_seconds=step)
    merged = merge(fine, k, step)
    coarse = timeline(trace, steps=merged.shape[1], step_seconds=step * k, end=fine.columns[-1])
    assert merged.columns.equals(coarse.columns)
    assert merged.to_numpy().tolist() == coarse.to_numpy().tolist()


@given(rows, st.integers(2, 60), st.integers(1, 20))
def test_a_strip_that_was_merged_for_want_of_room_hides_nothing(found, steps, room):
    trace = Fake(found)
    wide = segments(trace, "i", steps=steps)
    narrow = segments(trace, "i", steps=steps, room=room)
    assert narrow.count <= room
    assert narrow.outside == wide.outside
    assert narrow.seconds == narrow.merged * wide.seconds
    for channel, cells in wide.cells.items():
        shown = "none"
        for cell in cells:
            shown = stronger(shown, cell)
        best = "none"
        for cell in narrow.cells[channel]:
            best = stronger(best, cell)
        assert best == shown
        assert set(narrow.cells[channel]) <= set(cells)


@given(rows, st.sampled_from([0.1, 0.3, 1.0, 1.001, 2.5, 1 / 3]), st.booleans())
def test_a_segment_shows_the_strongest_of_the_events_within_it(found, step, clock):
    trace = Fake(found if clock else [(NO_TIME, *row[1:]) for row in found])
    strips = segments(trace, "i", steps=200, step_seconds=step)
    seq, channel = np.asarray(trace.marks.seq), np.asarray(trace.marks.channel)
    for name, cells in strips.cells.items():
        for start, cell in zip(strips.starts, cells, strict=True):
            shown = "none"
            for at in np.flatnonzero(within(seq, trace.marks.ts, start, strips.seconds) & (channel == name)):
                shown = stronger(shown, trace.marks.activity[at])
            assert shown == cell


@given(rows, st.integers(1, 12))
def test_events_as_steps_merge_from_the_last(found, k):
    trace = Fake([(NO_TIME, activity, channel) for _, activity, channel in found])
    fine = timeline(trace, axis="seq", steps=None)
    merged = merge(fine, k)
    for at in range(merged.shape[1]):
        stop = fine.shape[1] - (merged.shape[1] - 1 - at) * k
        for line in range(len(fine)):
            shown = "none"
            for cell in fine.iloc[line, max(stop - k, 0) : stop]:
                shown = stronger(shown, cell)
            assert merged.iloc[line, at] == shown


def test_what_lies_outside_is_counted():
    trace = Fake([(0, "error"), (5 * SECOND, "ping"), (9 * SECOND, "request"), (NO_TIME, "ping")])
    assert segments(trace, "i", steps=5).outside == (1, 0, 1)
    assert segments(trace, "i", steps=2, end="1970-01-01T00:00:06Z").outside == (1, 1, 1)
    assert segments(trace, "i", steps=3, end="now").outside == (3, 0, 1)
    assert segments(trace, "nobody").count == 0


def test_without_a_clock_a_step_is_an_event():
    trace = make_trace([("client", {"jsonrpc": "2.0", "id": n, "method": "ping"}) for n in range(9)])
    found = segments(trace, "made", steps=4)
    assert (found.count, found.seconds, found.first, found.last, found.outside) == (4, None, 5, 8, (5, 0, 0))
    assert segments(trace, "made", steps=9, room=4).merged == 3
    with pytest.raises(TraceError, match="no end to ask for"):
        segments(trace, "made", end="2026-01-01")


def test_all_channels_in_one():
    trace = Fake([(0, "ping", "GET (SSE)"), (1, "request", "POST (JSON)"), (2 * SECOND, "response", "POST (JSON)")])
    assert overall(segments(trace, "i", steps=3)) == ["request", "none", "response"]
