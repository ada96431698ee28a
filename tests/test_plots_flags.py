"""Labels, stems and bars of a lane get places where nothing lies on anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcplab.plots import flags


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(5, 90)), max_size=25))
def test_labels_and_stems_never_cross(spots: list[tuple[float, float]]) -> None:
    spots = sorted(spots)
    xs, widths = [x for x, _ in spots], [w for _, w in spots]
    rows = flags.label_rows(xs, widths)
    for a in range(len(xs)):
        for b in range(a + 1, len(xs)):
            if rows[a] >= 0 and rows[b] >= 0 and xs[b] < xs[a] + widths[a]:
                assert rows[a] > rows[b], "the stem of the later one ends below the earlier text"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 30)), max_size=30))
def test_bars_on_one_level_do_not_touch_until_levels_run_out(bars: list[tuple[float, float]]) -> None:
    bars = sorted(bars)
    begin, end = [b for b, _ in bars], [b + long for b, long in bars]
    level, _ = flags.levels(begin, end, limit=1000)
    for a in range(len(bars)):
        for b in range(a + 1, len(bars)):
            assert level[a] != level[b] or end[a] <= begin[b]
