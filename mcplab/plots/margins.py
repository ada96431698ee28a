"""What stands around a matrix: labels of its rows on the left, of its columns on top."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from mcplab.look import Ground
from mcplab.plots.cells import Cells
from mcplab.plots.paper import MONO, SMALL, literal, measure, pin, put, wrap
from mcplab.plots.releases import spans

LINE: Final = SMALL * 1.25
"""Points from one line of a label to the next."""
_GAP: Final = 5.0
_ERAS: Final = {"legacy": "L", "modern": "M", "both": "LM", "legacy+modern": "LM", "unknown": "?", "": ""}

_WORDS: Final = (("legacy", "L"), ("modern", "M"), ("both", "LM"), ("unknown", "?"))


class Label(NamedTuple):
    """A text beside the cells ``first`` to ``last``, ``off`` points away from them."""

    first: int
    last: int
    off: float
    text: str
    how: dict[str, Any]


class Margin(NamedTuple):
    """``size`` points deep; ``need`` is how much each cell takes along the edge, ``names`` head the extra lines."""

    size: float
    labels: list[Label]
    need: list[float]
    brackets: list[tuple[int, int, float]]
    names: list[tuple[float, str]]


def eras_shown(cells: Cells) -> list[str]:
    """What the letters of the era line mean, for the legend; nothing where the marks are other text."""
    texts = {str(text) for text in cells.era.values()}
    if not texts <= {*_ERAS}:
        return []
    letters = {_ERAS[text] for text in texts}
    return [f"{letter} {word}" for word, letter in _WORDS if letter in letters]


def _extras(cells: Cells) -> list[tuple[str, list[str]]]:
    """Lines of further facts next to the cells: (name, one text for each who)."""
    found = []
    if cells.era:
        texts = [str(cells.era.get(who.key, "")) for who in cells.whos]
        short = {*texts} <= {*_ERAS}
        found.append(("era", [_ERAS[text] if short else literal(text) for text in texts]))
    if cells.instances:
        found.append(("instances", [str(cells.instances.get(who.key, "")) for who in cells.whos]))
    return found


def _deepest(texts: list[str], **font: Any) -> float:
    return max((measure(text, **font) for text in texts), default=0.0)


def _over(level: bool, weight: str) -> dict[str, Any]:
    """How a label stands over its cells: flat on one line's base, or upright."""
    return {"va": "baseline" if level else "bottom", "ha": "center", "weight": weight, "rotation": 0 if level else 90}


def path_text(label: str) -> str:
    """``$`` in words; anything else as it is written."""
    return "capabilities ($)" if label == "$" else literal(label, family=MONO)


def path_side(cells: Cells) -> Margin:
    """Paths down the left, members indented under their parent."""
    wrapped = [wrap(path_text(row.label), 200 - 8 * row.depth, family=MONO) for row in cells.paths]
    size = max(8 * row.depth + _deepest(lines, family=MONO) for row, lines in zip(cells.paths, wrapped, strict=True))
    names = [name for name, _ in _extras(cells)]
    size = max(size, _deepest(names)) + _GAP
    labels = [
        Label(at, at, size - 8 * row.depth, "\n".join(lines), {"ha": "left", "family": MONO})
        for at, (row, lines) in enumerate(zip(cells.paths, wrapped, strict=True))
    ]
    return Margin(size, labels, [len(lines) * LINE + 0.8 for lines in wrapped], [], [])


def path_head(cells: Cells) -> Margin:
    """Paths over the columns, upright and in full."""
    wrapped = [wrap(path_text(row.path), 190, family=MONO, lines=2) for row in cells.paths]
    labels = [
        Label(at, at, _GAP, "\n".join(lines), {"rotation": 90, "va": "bottom", "ha": "center", "family": MONO})
        for at, lines in enumerate(wrapped)
    ]
    size = _GAP + max(_deepest(lines, family=MONO) for lines in wrapped)
    return Margin(size, labels, [len(lines) * LINE + 2 for lines in wrapped], [], [])


def who_side(cells: Cells) -> Margin:
    """Products at the far left, their releases beside the cells, between them nothing; then era and instances."""
    labels: list[Label] = []
    names: list[tuple[float, str]] = []
    off = _GAP
    for name, texts in reversed(_extras(cells)):
        width = max(_deepest(texts), SMALL)
        labels += [Label(at, at, off + width / 2, text, {"ha": "center"}) for at, text in enumerate(texts)]
        names.append((off + width / 2, name))
        off += width + 6
    wrapped = [wrap(literal(who.label), 150, lines=2) for who in cells.whos]
    labels += [Label(at, at, off, "\n".join(lines), {"ha": "right"}) for at, lines in enumerate(wrapped)]
    off += max(_deepest(lines) for lines in wrapped)
    need = [len(lines) * LINE + 0.8 for lines in wrapped]
    if cells.tiers:
        runs = spans([who.group for who in cells.whos])
        titles = [wrap(literal(group, bold=True), 150, bold=True, lines=2) for group, _, _ in runs]
        off += 8 + max(_deepest(lines, bold=True) for lines in titles)
        for (_, first, _), lines in zip(runs, titles, strict=True):
            labels.append(Label(first, first, off, "\n".join(lines), {"ha": "left", "weight": "bold"}))
            need[first] = max(need[first], len(lines) * LINE + 0.8)
    return Margin(off, labels, need, [], names)


def who_head(cells: Cells, pitch: float) -> Margin:
    """Over the cells: era and instances, then releases upright, a bracket for each product, and its name."""
    labels: list[Label] = []
    names: list[tuple[float, str]] = []
    need = [0.0] * len(cells.whos)
    off = _GAP
    for name, texts in reversed(_extras(cells)):
        flat = max(map(len, texts)) <= 4
        deep = SMALL if flat else _deepest(texts)
        how = {"ha": "center"} if flat else {"va": "bottom", "ha": "center", "rotation": 90}
        labels += [Label(at, at, off + (deep / 2 if flat else 0), text, how) for at, text in enumerate(texts)]
        names.append((off + deep / 2, name))
        need = [max(least, measure(text) + 2 if flat else 0.0) for least, text in zip(need, texts, strict=True)]
        off += deep + 4
    runs = spans([who.group for who in cells.whos])
    single = not cells.tiers
    wrapped = [wrap(literal(who.label, bold=single), 150, lines=2, bold=single) for who in cells.whos]
    level = all(len(lines) == 1 and measure(lines[0], bold=single) + 6 <= pitch for lines in wrapped)
    how = _over(level, "bold" if single else "normal")
    labels += [Label(at, at, off, "\n".join(lines), how) for at, lines in enumerate(wrapped)]
    need = [max(least, len(lines) * LINE + 2) for least, lines in zip(need, wrapped, strict=True)]
    off += max(SMALL if level else _deepest(lines, bold=single) for lines in wrapped) + 3
    brackets: list[tuple[int, int, float]] = []
    if cells.tiers:
        off += 1
        brackets = [(first, last, off) for _, first, last in runs]
        off += 3
        titles = [wrap(literal(group, bold=True), 170, bold=True, lines=2) for group, _, _ in runs]
        level = all(
            len(lines) == 1 and measure(lines[0], bold=True) + 6 <= pitch * (last - first + 1)
            for (_, first, last), lines in zip(runs, titles, strict=True)
        )
        how = _over(level, "bold")
        for (_, first, last), lines in zip(runs, titles, strict=True):
            labels.append(Label(first, last, off, "\n".join(lines), how))
            share = (len(lines) * LINE + 2) / (last - first + 1)
            need[first : last + 1] = [max(least, share) for least in need[first : last + 1]]
        off += max(SMALL if level else _deepest(lines, bold=True) for lines in titles)
    return Margin(off, labels, need, brackets, names)


def draw_side(ax: Axes, margin: Margin, edges: list[float], ground: Ground) -> None:
    """The left margin; ``edges`` are the boundaries of the rows."""
    beside = blended_transform_factory(pin(ax, 0, 0), ax.transData)
    for label in margin.labels:
        y = (edges[label.first] + edges[label.last + 1]) / 2
        put(ax, -label.off, y, label.text, beside, color=ground.ink, linespacing=1.1, **label.how)
    for off, name in margin.names:
        put(ax, -off, 4, name, pin(ax, 0, 1), color=ground.muted, rotation=90, va="bottom", ha="center")


def draw_head(ax: Axes, margin: Margin, ground: Ground) -> None:
    """The top margin; columns have their centres at 0, 1, 2, ..."""
    over = blended_transform_factory(ax.transData, pin(ax, 0, 1))
    for label in margin.labels:
        x = (label.first + label.last) / 2
        put(ax, x, label.off, label.text, over, color=ground.ink, linespacing=1.1, **label.how)
    for off, name in margin.names:
        put(ax, -_GAP, off, name, pin(ax, 0, 1), color=ground.muted, ha="right")
    for first, last, off in margin.brackets:
        bracket = Line2D([first - 0.36, last + 0.36], [off, off], transform=over, color=ground.muted, linewidth=0.6)
        bracket.set_clip_on(False)
        ax.add_artist(bracket)
