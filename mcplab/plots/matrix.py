"""The declaration matrix: which client declares which capability path, in which state."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from itertools import pairwise
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import blended_transform_factory

from mcplab.look import CELLS, GROUNDS, STATES, VARIES_ALPHA, Ground
from mcplab.plots import margins, paper
from mcplab.plots.cells import SILENT, Cells, identity, prepare
from mcplab.plots.paper import SMALL, pin
from mcplab.plots.pen import Pen, keys
from mcplab.plots.releases import spans

_TURN: Final = 40
"""More columns than this are turned: paths across, clients down."""
_TIGHT: Final = 11.0
"""Points: the least pitch at which labels of 7 points, set upright beside each other, do not touch."""
_ROW: Final = 12.5
_LOW: Final = 9.6
_TALL: Final = 600.0
"""Points: rows come closer, down to ``_LOW``, so that this many are not exceeded: a page holds them."""
_WIDEST: Final = 58.0


def declarations(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    order: str = "name",
    turned: bool | None = None,
    show_all: bool = False,
    theme: str = "light",
) -> Axes:
    """Draw a comparison as a matrix: a mark in each cell says the state by its shape and its colour.

    Parameters
    ----------
    frame
        What ``compare`` returns, of any ``tier``: index ``path``, columns who, cells a state or ``yes`` and ``no``,
        ``varies`` or ``unknown``. Of its
        ``attrs`` are drawn, where there: ``counts`` ((path, who) -> {state: n}), ``instances`` (who -> n), ``era``
        (who -> text).
    ax
        Default: an Axes of its own in a figure that fits. Labels stand outside the Axes.
    title, caption
        The finding, and where the data come from. Both are text, not mathematics.
    order
        ``name``: products by name, releases oldest first; ``given``: as in the frame, products kept together.
    turned
        Paths across and clients down. Default: when there are more than 40 columns.
    show_all
        Draw a row, too, for each path that nobody declares; else a note names them.
    theme
        ``light`` or ``dark``.

    Returns
    -------
    Axes
        Cell j, i has its centre at x = j. Each cell's artist has the gid ``cell:<path>:<who>``;
        ``read_declarations`` reads the states back.
    """
    cells = prepare(frame, order=order, show_all=show_all)
    turned = len(cells.whos) > _TURN if turned is None else turned
    with paper.page(theme) as ground:
        ax = _draw(cells, ax, title, _caption(cells, turned) if caption is None else caption, turned, theme, ground)
    paper.describe(ax, _sentence(cells, title))
    return ax


def _draw(
    cells: Cells, ax: Axes | None, title: str | None, caption: str, turned: bool, theme: str, ground: Ground
) -> Axes:
    """Lay everything out in points, then draw."""
    side = margins.who_side(cells) if turned else margins.path_side(cells)
    across, down = (len(cells.paths), len(cells.whos)) if turned else (len(cells.whos), len(cells.paths))
    head = margins.path_head(cells) if turned else margins.who_head(cells, 0)
    least = max(_TIGHT, *head.need)
    row = min(max(_TALL / down, _LOW), _ROW)
    rows = [max(1.0, need / row) for need in side.need]
    left = 8 + side.size
    if ax is None:
        pitch = min(max((paper.PAGE - left - 8) / across, least), _WIDEST)
    else:
        width, height = paper.extent(ax)
        rows = [max(1.0, need / _LOW) for need in side.need]
        pitch, row = width / across, height / sum(rows)
        if pitch < least - 0.01 or row < _LOW - 0.01:
            warnings.warn(
                f"labels overlap: {across} columns and {down} rows need an Axes of at least "
                f"{across * least / 72:.1f} x {sum(rows) * _LOW / 72:.1f} inches; give a larger one, or none",
                stacklevel=3,
            )
    if not turned:
        head = margins.who_head(cells, pitch)  # names lie flat where the pitch allows it
    total = max(left + across * pitch + 10, 340.0)
    text = total - 16
    titles = paper.title_lines(title, text)
    pen = Pen(cells, pitch, row, theme, ground)
    legend = paper.flow(keys(cells, theme, ground, counted=pen.counts()), text)
    notes, said = paper.paragraphs(_note(cells), text), paper.paragraphs(caption, text)
    below = 10 + len(legend) * SMALL * 1.6 + 3 + (len(notes) + len(said)) * SMALL * paper.LEADING + 6
    above = head.size + (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 6
    ax = paper.new_axes(
        ax, ground, (total, above + sum(rows) * row + below), (left, below, across * pitch, sum(rows) * row)
    )
    ax.set_axis_off()
    ax.set_xlim(-0.5, across - 0.5)
    ax.set_ylim(sum(rows), 0)
    edges = [0.0]
    for size in rows:
        edges.append(edges[-1] + size)
    _bands_and_rules(ax, cells, edges, side.size, head.size, turned, ground)
    for i, (top, bottom) in enumerate(pairwise(edges)):
        for j in range(across):
            path, who = (cells.paths[j], cells.whos[i]) if turned else (cells.paths[i], cells.whos[j])
            pen.cell(ax, j, top, bottom, path.path, who.key)
    margins.draw_side(ax, side, edges, ground)
    margins.draw_head(ax, head, ground)
    paper.set_title(ax, titles, 8 - left, head.size + 8, ground)
    at = -10.0
    at -= paper.legend(ax, legend, 8 - left, at, theme, ground) + 3
    at -= paper.lines_of(ax, notes, 8 - left, at, ground.muted)
    paper.lines_of(ax, said, 8 - left, at, ground.muted)
    return ax


def _bands_and_rules(
    ax: Axes, cells: Cells, edges: list[float], side: float, head: float, turned: bool, ground: Ground
) -> None:
    """A tinted band behind every other capability, a thin rule between products."""
    along, beside = (
        blended_transform_factory(ax.transData, pin(ax, 0, 1)),
        blended_transform_factory(pin(ax, 0, 0), ax.transData),
    )
    width, height = paper.extent(ax)
    for number, (_, first, last) in enumerate(spans([row.root for row in cells.paths])):
        if number % 2 == 0:
            continue
        if turned:
            place = Rectangle((first - 0.5, -height), last - first + 1, height + head, transform=along)
        else:
            place = Rectangle((-side, edges[first]), width + side, edges[last + 1] - edges[first], transform=beside)
        place.set(facecolor=ground.band, edgecolor="none", zorder=0, clip_on=False, gid=f"band:{number}")
        ax.add_artist(place)
    if not cells.tiers:
        return
    for _, first, _ in spans([who.group for who in cells.whos])[1:]:
        if turned:
            rule = Line2D([-side, width], [edges[first]] * 2, transform=beside)
        else:
            rule = Line2D([first - 0.5] * 2, [-height, head], transform=along)
        rule.set(color=ground.rule, linewidth=0.5, zorder=1, clip_on=False)
        ax.add_artist(rule)


# Words around it -----------------------------------------------------------------------------------


def _note(cells: Cells) -> str:
    """How many paths were left out, and which."""
    n = len(cells.left_out)
    if not n:
        return ""
    named = ", ".join(cells.left_out[:8]) + (f" and {n - 8} more" if n > 8 else "")
    return f"Nobody here declares {named}." if n == 1 else f"Nobody here declares {n} further paths: {named}."


def _caption(cells: Cells, turned: bool) -> str:
    groups = len({who.group for who in cells.whos})
    text = _count(len(cells.whos), "row" if turned else "column") + (
        f" of {_count(groups, 'product')}" if cells.tiers else ""
    )
    counted = cells.instances and cells.tier != "all"  # there one instance stands behind several rows
    return text + (f", {_count(sum(cells.instances.values()), 'instance')}." if counted else ".")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _sentence(cells: Cells, title: str | None) -> str:
    """The alternative text."""
    declared = {
        row.path: sum(cells.state[row.path, who.key] not in {*SILENT, "no"} for who in cells.whos)
        for row in cells.paths
        if row.path != "$"
    }
    words = list(cells.state.values())
    most = sorted(declared, key=lambda path: -declared[path])[:3]
    facts = [f"{path} in {declared[path]}" for path in most if declared[path]]
    lead = f"{title.rstrip('.')}: a matrix" if title else "Matrix"
    text = f"{lead} of {_count(len(cells.paths), 'capability path')} by {_count(len(cells.whos), 'column')}"
    text += f"; most often declared: {', '.join(facts)}" if facts else "; nothing is declared"
    varies, unknown = words.count("varies"), words.count("unknown")
    return text + f"; {_count(varies, 'cell')} vary and {unknown} are unknown."


# Reading back --------------------------------------------------------------------------------------


def read_declarations(ax: Axes) -> pd.DataFrame:
    """The comparison that a matrix shows, read from its artists: shape, fill, colour, hatch and ground.

    Index ``path``, columns who, cells a state, in drawing order; ``attrs["commonest"]`` has the state drawn on each
    varying cell. Only which cell it is comes from the artist's gid; what it says comes from what is seen.
    """
    marks = {}
    for theme, ground in GROUNDS.items():
        for word, look in CELLS.items():
            if look.marker:
                seen = paper.marker(look, theme, 10, ground)
                marks[look.marker, to_rgba(seen["markerfacecolor"]), to_rgba(seen["markeredgecolor"])] = word
    tints = {to_rgba(STATES["varies"].colour(theme), VARIES_ALPHA[theme]) for theme in GROUNDS}
    lines = [line for line in ax.lines if str(line.get_gid()).startswith(("cell:", "mark:"))]
    state: dict[tuple[str, Hashable], str] = {}
    commonest: dict[tuple[str, Hashable], str] = {}
    place: dict[tuple[str, Hashable], tuple[float, float]] = {}
    for line in lines:
        name = str(line.get_gid())
        seen: Any = (line.get_marker(), to_rgba(line.get_markerfacecolor()), to_rgba(line.get_markeredgecolor()))
        where = identity(name)
        (state if name.startswith("cell:") else commonest)[where] = marks.get(seen, "unreadable")
        if name.startswith("cell:"):
            spot: Any = line.get_xydata()
            place[where] = (float(spot[0, 0]), float(spot[0, 1]))
    for box in ax.patches:
        name = str(box.get_gid())
        if name.startswith("cell:") and isinstance(box, Rectangle):
            where = identity(name)
            hatched, tinted = bool(box.get_hatch()), to_rgba(box.get_facecolor()) in tints
            state[where] = "unknown" if hatched and not tinted else "varies" if tinted else "unreadable"
            place[where] = (box.get_x() + 0.5, box.get_y() + box.get_height() / 2)
    return _frame(state, commonest, place)


def _frame(
    state: dict[tuple[str, Hashable], str],
    commonest: dict[tuple[str, Hashable], str],
    place: dict[tuple[str, Hashable], tuple[float, float]],
) -> pd.DataFrame:
    """Cells put in a frame by where they were drawn, whichever way the matrix was turned."""
    heights: dict[str, set[float]] = {}
    for (path, _), (_, y) in place.items():
        heights.setdefault(path, set()).add(y)
    upright = all(len(seen) == 1 for seen in heights.values())
    by_path = {path: xy[1] if upright else xy[0] for (path, _), xy in place.items()}
    by_who = {who: xy[0] if upright else xy[1] for (_, who), xy in place.items()}
    paths, columns = sorted(by_path, key=by_path.__getitem__), sorted(by_who, key=by_who.__getitem__)
    several: Any = [who for who in columns if isinstance(who, tuple)]
    index: pd.Index = pd.MultiIndex.from_tuples(several) if several else pd.Index(columns)
    rows = [[state.get((path, who), "missing") for who in columns] for path in paths]
    frame = pd.DataFrame(rows, index=pd.Index(paths, name="path"), columns=index, dtype="str")
    frame.attrs["commonest"] = commonest
    return frame
