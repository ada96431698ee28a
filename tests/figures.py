"""How tests look at a chart: the texts that are seen, whether all can be read, what lies where."""

from __future__ import annotations

import itertools

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text


def drawn(ax: Axes) -> list[Text]:
    """Every text of the chart that is visible and not empty, axis labels and ticks too."""
    found = [*ax.texts, ax.title, ax._left_title]  # type: ignore[attr-defined]
    if ax.axison:
        found += [ax.xaxis.label, *(tick.label1 for tick in ax.xaxis.get_major_ticks() if tick.get_visible())]
    low, high = sorted(ax.get_xlim())
    ticks = set(ax.xaxis.get_ticklabels())
    inside = {text for text in ticks if low <= text.get_position()[0] <= high}
    return [text for text in found if text.get_text() and text.get_visible() and (text not in ticks or text in inside)]


def said(ax: Axes) -> list[str]:
    """What is written on the chart."""
    return [text.get_text() for text in drawn(ax)]


def figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def assert_legible(ax: Axes) -> None:
    """At least 7 points, inside the figure, no text over another one."""
    figure = figure_of(ax)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = []
    for text in drawn(ax):
        assert float(text.get_fontsize()) >= 7, text.get_text()
        boxes.append((text.get_text(), text.get_window_extent(renderer)))
    whole = figure.bbox
    for text, box in boxes:
        assert box.x0 >= whole.x0 - 1, f"cut: {text}"
        assert box.x1 <= whole.x1 + 1, f"cut: {text}"
        assert box.y0 >= whole.y0 - 1, f"cut: {text}"
        assert box.y1 <= whole.y1 + 1, f"cut: {text}"
    for (a, one), (b, two) in itertools.combinations(boxes, 2):
        over_x = min(one.x1, two.x1) - max(one.x0, two.x0)
        over_y = min(one.y1, two.y1) - max(one.y0, two.y0)
        assert over_x < 0.7 or over_y < 0.7, f"{a!r} lies on {b!r}"
