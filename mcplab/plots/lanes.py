"""Lanes of a timeline, event by event: bars from a request to its answer, marks, labels on stems."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from mcplab.look import ACTIVITIES as LOOKS
from mcplab.look import Ground
from mcplab.model import ACTIVITIES
from mcplab.plots import paper
from mcplab.plots.flags import label_rows, levels
from mcplab.plots.paper import SMALL, Key, measure
from mcplab.plots.scene import Scene

BASE: Final = 4.0
LEVEL: Final = 8.5
FLAG: Final = 9.0
BAR: Final = 5.0
MARK: Final = 6.5
_SLICES: Final = 24
_PERSON: Final = frozenset({"elicitation/create"})
"""Requests that wait for a person, whoever asks."""
_REQUEST, _ERROR, _PING = (ACTIVITIES.index(word) for word in ("request", "error", "ping"))


class Item(NamedTuple):
    """Something with a place on one side of a lane: a bar when ``end`` is not its ``x``."""

    row: int
    x: float
    end: float
    code: int
    level: int
    answered: bool
    bar: bool


class Half(NamedTuple):
    """One side of a lane: its items, its labels as (x, text, row), and how many points it takes.

    ``unlabelled``: labels for which there is no room. ``covered``: items that lie on others.
    """

    items: list[Item]
    labels: list[tuple[float, str, int]]
    size: float
    unlabelled: int
    covered: int


def word_of(code: int) -> str:
    """The activity an index stands for; ``other`` for what shows none, as opening and closing."""
    return ACTIVITIES[code] if code else "other"


def other(ground: Ground) -> dict[str, Any]:
    """Line2D's keywords for the mark of an event without an activity."""
    return {
        "marker": "|",
        "markersize": 6.0,
        "markeredgewidth": 0.8,
        "markeredgecolor": ground.muted,
        "linestyle": "none",
    }


def answered_with_error(scene: Scene, row: int) -> bool:
    """Whether the answer to this request is an error."""
    answer = scene.answer[row]
    return bool(answer >= 0 and scene.activity[answer] == _ERROR)


def half(scene: Scene, lane: int, side: int, scale: float, labelled: bool, fade: float) -> Half:
    """Lay out one side; ``scale`` is points a unit of x, ``fade`` how long (in x) a bar without an answer is drawn."""
    mine = np.flatnonzero((scene.lane == lane) & (scene.side == side) & ~np.isnan(scene.x))
    extra = np.flatnonzero((scene.event_lane == lane) & (scene.event_side == side) & ~np.isnan(scene.event_x))
    asks = scene.kind[mine] == "request"
    answer = scene.answer[mine]
    begin = scene.x[mine]
    end = np.where(asks & (answer >= 0), scene.x[np.maximum(answer, 0)], np.where(asks, begin + fade, begin))
    end = np.fmax(end, begin)
    rough = [
        Item(int(row), float(x), float(last), int(scene.activity[row]), 0, bool(ans >= 0), bool(ask))
        for row, x, last, ans, ask in zip(mine, begin, end, answer, asks, strict=True)
    ]
    for at in extra:
        x = float(scene.event_x[at])
        rough.append(Item(-1 - int(at), x, x, int(scene.event_activity[at]), 0, True, False))
    rough.sort(key=lambda item: (item.x, scene.seq[item.row] if item.row >= 0 else scene.event_seq[-1 - item.row]))
    ends = [max(item.end, item.x + (MARK + 1) / scale) for item in rough]
    level, covered = levels([item.x for item in rough], ends)
    items = [item._replace(level=level) for item, level in zip(rough, level, strict=True)]
    deepest = max((item.level for item in items), default=0)
    labels: list[tuple[float, str, int]] = []
    named = sorted((item.x, _label(scene, item)) for item in items if _label(scene, item))
    dropped = len(named)
    if labelled:
        rows = label_rows([x * scale for x, _ in named], [measure(text) + 8 for _, text in named])
        labels = [(x, text, row) for (x, text), row in zip(named, rows, strict=True) if row >= 0]
        dropped = rows.count(-1)
    high = max((row for _, _, row in labels), default=-1) + 1
    size = BASE + (deepest + 1) * LEVEL + (high * FLAG + 3 if high else 0)
    return Half(items, labels, size, dropped, covered)


def _label(scene: Scene, item: Item) -> str:
    """What is written over an item: methods of requests and notifications, never of pings and answers."""
    if item.row < 0:
        return paper.literal(scene.event_text[-1 - item.row])
    if item.code == _PING or not scene.method[item.row]:
        return ""
    if scene.kind[item.row] in ("request", "notification"):
        return paper.fitting(str(scene.method[item.row]).removeprefix("notifications/"), 130)
    return ""


class Brush:
    """Collects what is to be drawn and draws it in a few artists."""

    def __init__(self, scene: Scene, theme: str, ground: Ground) -> None:
        self.scene, self.theme, self.ground = scene, theme, ground
        self.marks: dict[str, list[tuple[float, float]]] = {}
        self.bars: list[tuple[list[tuple[float, float]], Any]] = []
        self.person: list[list[tuple[float, float]]] = []
        self.fades: list[tuple[list[tuple[float, float]], Any]] = []
        self.links: list[tuple[list[tuple[float, float]], Any]] = []
        self.stems: list[list[tuple[float, float]]] = []
        self.joins: list[list[tuple[float, float]]] = []
        self.place: dict[int, tuple[float, float]] = {}

    def half(self, ax: Axes, half: Half, line: float, side: int, scale: float) -> None:
        """One side of a lane whose line is at ``line``; y grows downwards."""
        up = -side or -1
        for item in half.items:
            y = line + up * (BASE + LEVEL * (item.level + 0.5)) if side else line
            word = word_of(item.code)
            if item.bar:
                failed = answered_with_error(self.scene, item.row)
                colour = LOOKS["error" if failed else word].colour(self.theme)
                if item.answered:
                    self._bar(item, y, colour, thin=word == "ping")
                else:
                    self._fade(item, y, colour, thin=word == "ping")
            self.marks.setdefault(word, []).append((item.x, y))
            if item.row >= 0:
                self.place[item.row] = (item.x, y)
        deepest = max((item.level for item in half.items), default=0)
        foot = BASE + LEVEL * (deepest + 1)
        for x, text, row in half.labels:
            y = line + up * (foot + 2 + FLAG * (row + 0.5))
            self.stems.append([(x, line + up * BASE), (x, y + up * 3)])
            ax.text(
                x + 2.5 / scale, y, text, fontsize=SMALL, va="center_baseline", color=self.ground.ink,
                clip_on=False, parse_math=False, zorder=4,
            )  # fmt: skip

    def _bar(self, item: Item, y: float, colour: str, *, thin: bool) -> None:
        tall = BAR * (0.4 if thin else 1) / 2
        corners = [(item.x, y - tall), (item.end, y - tall), (item.end, y + tall), (item.x, y + tall)]
        self.bars.append((corners, to_rgba(colour, 0.55)))
        if self.scene.method[item.row] in _PERSON:
            self.person.append(corners)

    def _fade(self, item: Item, y: float, colour: str, *, thin: bool) -> None:
        tall = BAR * (0.4 if thin else 1) / 2
        edges = np.linspace(item.x, item.end, _SLICES + 1)
        for n in range(_SLICES):
            a, b = float(edges[n]), float(edges[n + 1])
            corners = [(a, y - tall), (b, y - tall), (b, y + tall), (a, y + tall)]
            self.fades.append((corners, to_rgba(colour, 0.6 * (1 - n / _SLICES) ** 1.3)))

    def answers(self) -> None:
        """A thin line from the end of each bar to the answer's own mark, and between rounds of one request."""
        for row, (_, y) in self.place.items():
            answer = int(self.scene.answer[row])
            if answer in self.place:
                x, below = self.place[answer]
                failed = answered_with_error(self.scene, row)
                word = "error" if failed else ACTIVITIES[self.scene.activity[row]]
                self.links.append(([(x, y), (x, below)], to_rgba(LOOKS[word].colour(self.theme), 0.6)))
        rounds: dict[float, list[int]] = {}
        for row in self.place:
            if self.scene.group[row] >= 0 and self.scene.kind[row] == "request":
                rounds.setdefault(float(self.scene.group[row]), []).append(row)
        for members in rounds.values():
            members.sort(key=lambda row: self.scene.seq[row])
            for one, two in pairwise(members):
                answer = int(self.scene.answer[one])
                if answer in self.place:
                    begin, (end, y) = (self.place[answer][0], self.place[one][1]), self.place[two]
                    self.joins.append([begin, (end, y)])
                    if self.scene.asks_person[answer]:
                        self._wait(begin[0], end, begin[1])

    def _wait(self, begin: float, end: float, y: float) -> None:
        """Between two rounds: no message is under way, a person has been asked."""
        tall = BAR / 2
        corners = [(begin, y - tall), (end, y - tall), (end, y + tall), (begin, y + tall)]
        self.bars.append((corners, to_rgba(self.ground.muted, 0.25)))
        self.person.append(corners)

    def paint(self, ax: Axes) -> None:
        """Draw all of it."""
        ink = self.ground.ink
        for name, parts in (("bars", self.bars), ("fades", self.fades)):
            if parts:
                corners, colours = [part for part, _ in parts], [colour for _, colour in parts]
                ax.add_collection(
                    PolyCollection(corners, facecolors=colours, linewidths=0, gid=name, zorder=2), autolim=False
                )
        if self.person:
            hatched = PolyCollection(
                self.person, facecolors="none", edgecolors=ink, linewidths=0, hatch="....", gid="person", zorder=2.1
            )
            ax.add_collection(hatched, autolim=False)
        if self.links:
            lines = [part for part, _ in self.links]
            colours = [colour for _, colour in self.links]
            ax.add_collection(
                LineCollection(lines, colors=colours, linewidths=0.8, gid="links", zorder=1.9), autolim=False
            )
        if self.stems:
            stems = LineCollection(self.stems, colors=self.ground.muted, linewidths=0.4, gid="stems", zorder=1.8)
            stems.set_clip_on(False)
            ax.add_collection(stems, autolim=False)
        if self.joins:
            dotted = LineCollection(self.joins, colors=ink, linewidths=0.9, linestyles=":", gid="rounds", zorder=2.2)
            ax.add_collection(dotted, autolim=False)
        for word, spots in self.marks.items():
            points(ax, word, spots, MARK, self.theme, self.ground, f"marks:{word}")


def keys(scene: Scene, theme: str, ground: Ground) -> list[Key]:
    """What the legend says about bars and lines, as far as there are any."""
    request = to_rgba(LOOKS["request"].colour(theme), 0.55)
    asks = scene.kind == "request"
    found = []
    if (asks & (scene.answer >= 0)).any():
        found.append(Key("from a request to its answer", patch={"facecolor": request}))
    asked = np.isin(scene.method[asks & (scene.answer >= 0)], list(_PERSON)).any()
    if asked or scene.asks_person.any():
        hatch = {
            "facecolor": request if asked else to_rgba(ground.muted, 0.25),
            "hatch": "....",
            "edgecolor": ground.ink,
            "linewidth": 0,
        }
        found.append(Key("waits for a person", patch=hatch))
    if (asks & (scene.answer < 0)).any():
        found.append(Key("fades: no answer seen", fade=request))
    grouped = scene.group[asks & (scene.group >= 0)]
    if len(grouped) > len(np.unique(grouped)):
        found.append(Key("next round of one request", line={"color": ground.ink, "linewidth": 0.9, "linestyle": ":"}))
    return found


def points(
    ax: Axes, word: str, spots: list[tuple[float, float]], size: float, theme: str, ground: Ground, name: str
) -> None:
    """All marks of one activity as one line without a line; errors get their cross."""
    xs, ys = zip(*spots, strict=True)
    if word == "other":
        ax.add_artist(Line2D(xs, ys, gid=name, zorder=2.9, clip_on=False, **other(ground)))
        return
    look = LOOKS[word]
    over = 5 if word == "error" else 3
    style = paper.marker(look, theme, size, ground)
    ax.add_artist(Line2D(xs, ys, gid=name, zorder=over, clip_on=False, **style))
    if look.inner:
        ax.add_artist(Line2D(xs, ys, zorder=over + 0.1, clip_on=False, **paper.inner(look, size, ground)))
