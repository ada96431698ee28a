"""The transport timeline: what went over the wire when, lane by lane, and the segment strip under it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, ScalarFormatter, StrMethodFormatter

from mcplab.look import ACTIVITIES as LOOKS
from mcplab.look import Ground
from mcplab.model import ACTIVITIES
from mcplab.plots import density, lanes, paper, scene, strip
from mcplab.plots.lanes import Brush, Half
from mcplab.plots.paper import SMALL, Key, literal, measure
from mcplab.plots.scene import Scene
from mcplab.plots.strip import Strip

_MANY: Final = 600
"""More messages than this are drawn as densities."""
_ROWS: Final = 48
"""Rows of a strip that stands alone."""
_COVERED: Final = 40
"""So too where more marks than this, and more than a third of them, would lie on others."""
_NAMED: Final = 80
"""Up to so many labels are tried; beyond, marks speak alone."""
_FADE: Final = 0.09
"""Part of the time axis over which a bar without an answer fades: its true end is not known."""
_OVER: Final = 16.0
"""Points above densities, for the words on their height."""
_HEAD: Final = 15.0
_GAP: Final = 7.0


class _Row(NamedTuple):
    """One lane as laid out: the y of its line, what is on it (None: densities)."""

    lane: int
    line: float
    top: float
    bottom: float
    halves: tuple[Half, Half] | None


def timeline(
    frame: pd.DataFrame,
    *,
    http: pd.DataFrame | None = None,
    events: pd.DataFrame | None = None,
    exchanges: pd.DataFrame | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    steps: int = 60,
    step_seconds: float | None = None,
    align: str | None = None,
    dense: bool | None = None,
    theme: str = "light",
) -> Axes:
    """Draw messages on lanes by channel over time, and the segment strip below on the same axis.

    Parameters
    ----------
    frame
        ``trace.messages``; needed are ``seq sender kind channel activity``, used where there ``trace instance conn
        part ts method reply_to reply_part group``. Or a frame of ``mcplab.timeline``, of which the strip is drawn.
    http, events
        ``trace.http`` adds streams as pale bars, ``trace.events`` what is no message (refusals, unreadable text).
    exchanges
        ``trace.exchanges`` joins the rounds of one request, and tells where they wait for a person.
    steps, step_seconds
        Segments of the strip. Default length: a round number of seconds that brings the whole trace into ``steps``;
        with a length of its own the strip shows the last ``steps``.
    align
        ``clock``: all on one clock; ``start``: each trace from its own first event, which is the default for several.
    dense
        Densities in place of single events. Default: above 600 messages, and where most would lie on each other.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        x is seconds from the first event, or seq where no event has a clock (the axis says which). The client's
        messages are above a lane's line, the server's below. Of more than 12 lanes those of the instances with fewest
        messages are drawn as one instance's, last. Artists have the gids ``bars`` (request to answer),
        ``fades`` (no answer), ``streams``, ``marks:<activity>`` and ``strip:<row>:<activity>``.
    """
    if isinstance(frame.index, pd.MultiIndex) and "activity" not in frame.columns:
        return _only_strip(frame, ax, title, caption, theme)
    made = scene.build(frame, http, events, align, exchanges)
    segments = strip.segments(made, steps, step_seconds)
    with paper.page(theme) as ground:
        chart = _Chart(made, segments, dense, theme, ground)
        ax = chart.draw(ax, title, caption)
    paper.describe(ax, _sentence(made, title))
    return ax


class _Chart:
    """Lays a scene out in points, then draws it; one use each."""

    def __init__(self, made: Scene, segments: Strip, dense: bool | None, theme: str, ground: Ground) -> None:
        self.scene, self.strip, self.theme, self.ground = made, segments, theme, ground
        self.dense = len(made.x) > _MANY if dense is None else dense
        self.free = dense is None
        self.several = len({lane.instance for lane in made.lanes}) > 1
        known = [x[~np.isnan(x)] for x in (made.x, made.event_x, made.streams[:, 1], made.streams[:, 2])]
        known += [segments.left, segments.left + segments.step]
        every = np.concatenate([part for part in known if len(part)] or [np.zeros(1)])
        self.low, self.high = float(every.min()), float(every.max())
        self.peaks: dict[int, int] = {}

    def draw(self, ax: Axes | None, title: str | None, caption: str | None) -> Axes:
        names = [literal(lane.channel, bold=True) for lane in self.scene.lanes]
        left = max(max(measure(name, bold=True) for name in names), measure("server")) + 14
        right = 24.0  # half of the last tick's label
        width = paper.extent(ax)[0] if ax is not None else paper.PAGE - left - right
        low, high = self._limits()
        rows, tall = self._rows(width / (high - low))
        if self.free and not self.dense and self._covered(rows) > max(_COVERED, len(self.scene.x) / 3):
            self.dense = True
            low, high = self._limits()
            rows, tall = self._rows(width / (high - low))
        if ax is None and not self.dense:  # labels of late events run over the right edge: keep room for them
            over = self._overhang(rows, low, width / (high - low), width)
            if over > 0:
                right = min(10 + over, 150.0) if over > 14 else right
                width = paper.PAGE - left - right
                rows, tall = self._rows(width / (high - low))
        strip_top = tall + 20
        bottom = strip_top + strip.height(self.strip, self.several) + 4
        total = left + width + right
        text = max(total - 16, 200.0)
        titles = paper.title_lines(title, text)
        above = 8 + (8 + len(titles) * 9.5 * 1.3 if titles else 0)
        keys = self._keys(rows)
        legend = paper.flow(keys, text)
        said = paper.paragraphs(self._caption(rows) if caption is None else caption, text)
        said = [*paper.paragraphs(self._must_say(rows), text), *said] if caption is not None else said
        below = 34 + len(legend) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
        ax = paper.new_axes(ax, self.ground, (total, above + bottom + below), (left, below, width, bottom))
        ax.set_xlim(low, high)
        ax.set_ylim(bottom, 0)
        self._axis(ax)
        scale = width / (high - low)
        brush = Brush(self.scene, self.theme, self.ground)
        self._streams(ax, rows)
        for row in rows:
            self._lane(ax, row, brush, scale, left, width)
        if not self.dense:
            brush.answers()
            brush.paint(ax)
        step = f"one symbol per {self._step()}"
        paper.put_row(ax, 0, strip_top - 9, step, self.ground.muted)
        strip.draw(ax, self.strip, strip_top, self.strip.step * scale, left - 8, self.several, self.theme, self.ground)
        paper.set_title(ax, titles, 8 - left, 8, self.ground)
        at = -34.0
        at -= paper.legend(ax, legend, 8 - left, at, self.theme, self.ground) + 3
        paper.lines_of(ax, said, 8 - left, at, self.ground.muted)
        return ax

    # Layout

    def _limits(self) -> tuple[float, float]:
        span = self.high - self.low
        asks = (self.scene.kind == "request") & (self.scene.answer < 0)
        last = float(self.scene.x[asks].max(initial=self.low)) if not self.dense else self.low
        return self.low - 0.012 * span, max(self.high, last + _FADE * span) + 0.012 * span

    def _rows(self, scale: float) -> tuple[list[_Row], float]:
        rows, y, instance = [], 0.0, None
        named = int(np.isin(self.scene.kind, ("request", "notification")).sum()) <= _NAMED
        for number, lane in enumerate(self.scene.lanes):
            if self.several and lane.instance != instance:
                y += _HEAD
            instance = lane.instance
            halves = None
            up, down = density.TALL + _OVER, density.TALL + 6
            if not self.dense:
                fade = _FADE * (self.high - self.low)
                one, two = (lanes.half(self.scene, number, side, scale, named, fade) for side in (1, -1))
                halves = one, two
                up, down = halves[0].size, halves[1].size
            up, down = max(up, 13.0), max(down, 13.0)
            rows.append(_Row(number, y + up, y, y + up + down, halves))
            y += up + down + _GAP
        return rows, y

    @staticmethod
    def _covered(rows: list[_Row]) -> int:
        return sum(half.covered for row in rows for half in row.halves or ())

    def _overhang(self, rows: list[_Row], low: float, scale: float, width: float) -> float:
        ends = [
            (x - low) * scale + measure(text) + 4
            for row in rows for half in row.halves or () for x, text, _ in half.labels
        ]  # fmt: skip
        return max(ends, default=0.0) - width

    # Drawing

    def _axis(self, ax: Axes) -> None:
        for name in ("left", "right", "top"):
            ax.spines[name].set_visible(False)
        ax.spines["bottom"].set_color(self.ground.muted)
        ax.set_yticks([])
        ax.tick_params(axis="x", colors=self.ground.ink, labelsize=7.5)
        ax.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10], integer=not self.scene.clock))
        plain = ScalarFormatter(useOffset=False)
        plain.set_scientific(False)
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}") if self.high - self.low >= 5000 else plain)
        ax.set_xlabel(self._unit(), color=self.ground.ink, labelpad=2, parse_math=False)

    def _unit(self) -> str:
        if not self.scene.clock:
            return "seq: number of the event (this capture has no clock)"
        if self.scene.aligned or self.scene.start is None:
            return "seconds from the first event of each trace"
        return f"seconds from the first event, {self.scene.start:%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"

    def _lane(self, ax: Axes, row: _Row, brush: Brush, scale: float, left: float, width: float) -> None:
        lane = self.scene.lanes[row.lane]
        first = row.lane == 0 or self.scene.lanes[row.lane - 1].instance != lane.instance
        if self.several and first:
            name = paper.fitting(lane.instance, left + width, bold=True)
            paper.put_row(ax, 8 - left, row.top - _HEAD / 2 + 1, name, self.ground.ink, weight="bold")
        line = Line2D(
            [0, 1], [row.line, row.line], transform=ax.get_yaxis_transform(), color=self.ground.muted, linewidth=0.6
        )
        ax.add_artist(line)
        paper.put_row(ax, -6, row.line, literal(lane.channel, bold=True), self.ground.ink, ha="right", weight="bold")
        paper.put_row(ax, -6, row.line - 8.5, "client", self.ground.muted, ha="right")
        paper.put_row(ax, -6, row.line + 8.5, "server", self.ground.muted, ha="right")
        if row.halves is None:
            edges = np.linspace(self.low, self.high, density.BINS + 1)
            self.peaks[row.lane], _ = density.draw(ax, self.scene, row.lane, row.line, edges, self.theme, self.ground)
            if self.peaks[row.lane]:
                paper.put_row(
                    ax,
                    width - 2,
                    row.top + 3,
                    f"highest: {self.peaks[row.lane]:,} per {self._bin()}",
                    self.ground.muted,
                    ha="right",
                )
            return
        for side, half in zip((1, -1), row.halves, strict=True):
            brush.half(ax, half, row.line, side, scale)
        for at in np.flatnonzero((self.scene.event_lane == row.lane) & (self.scene.event_side == 0)):
            spot = float(self.scene.event_x[at]), row.line
            if not np.isnan(spot[0]):
                brush.marks.setdefault(lanes.word_of(int(self.scene.event_activity[at])), []).append(spot)

    def _streams(self, ax: Axes, rows: list[_Row]) -> None:
        place = {row.lane: row for row in rows}
        colour = LOOKS["notification"].colour(self.theme)
        for lane, begin, end in _merged(self.scene.streams, 300):
            row = place[int(lane)]
            box = Rectangle((begin, row.top + 1), end - begin, row.bottom - row.top - 2, gid="streams", zorder=0.5)
            box.set(facecolor=to_rgba(colour, 0.16), edgecolor=to_rgba(colour, 0.5), linewidth=0.4)
            ax.add_artist(box)

    # Words

    def _bin(self) -> str:
        each = (self.high - self.low) / density.BINS
        return _seconds(each) if self.scene.clock else f"{each:,.1f} events"

    def _step(self) -> str:
        if self.scene.clock:
            return _seconds(self.strip.step)
        return "event" if self.strip.step == 1 else f"{self.strip.step:.0f} events"

    def _keys(self, rows: list[_Row]) -> list[Key]:
        shown = {ACTIVITIES[code] for code in np.unique(self.strip.cells)}
        heights = {ACTIVITIES[code] for code in np.unique(self.scene.activity)}
        drawn = shown | heights | {ACTIVITIES[code] for code in np.unique(self.scene.event_activity)}
        if self.dense:
            symbols = shown | ({"error"} & drawn)
            return [
                *density.keys(heights, self.theme, self.ground),
                *self._stream_key(),
                Key("symbols:", bare=True),
                *(Key(LOOKS[word].meaning, LOOKS[word]) for word in reversed(ACTIVITIES) if word in symbols),
            ]
        keys = [Key(LOOKS[word].meaning, LOOKS[word]) for word in reversed(ACTIVITIES) if word in drawn]
        if ((self.scene.event_activity == 0) & ~np.isnan(self.scene.event_x)).any():
            keys.append(Key("open, close, HTTP without a message", line=lanes.other(self.ground)))
        return keys + lanes.keys(self.scene, self.theme, self.ground) + self._stream_key()

    def _stream_key(self) -> list[Key]:
        if not len(self.scene.streams):
            return []
        colour = LOOKS["notification"].colour(self.theme)
        box = {"facecolor": to_rgba(colour, 0.16), "edgecolor": to_rgba(colour, 0.5), "linewidth": 0.4}
        return [Key("open stream", patch=box)]

    def _caption(self, rows: list[_Row]) -> str:
        asks = self.scene.kind == "request"
        open_ = int((asks & (self.scene.answer < 0)).sum())
        text = f"{_count(len(asks), 'message')}, {_count(int(asks.sum()), 'request')}, {open_:,} without an answer."
        return " ".join(filter(None, (text, self._must_say(rows))))

    def _must_say(self, rows: list[_Row]) -> str:
        """What a reader must know whatever the caption is."""
        said = []
        if self.dense:
            code = ACTIVITIES.index("error")
            errors = (self.scene.activity == code).any() or (self.scene.event_activity == code).any()
            said.append(
                f"Too many to draw one by one: heights are messages per {self._bin()}, each lane on its own scale"
                + ("; a circled cross marks a moment with an error." if errors else ".")
            )
        if self.scene.together:
            said.append(f"The {self.scene.together:,} instances with fewest messages are drawn together, last.")
        if covered := self._covered(rows):
            said.append(f"{_count(covered, 'mark')} lie on others.".replace("mark lie", "mark lies"))
        if self.scene.unclocked:
            said.append(f"{_count(self.scene.unclocked, 'event')} without a clock cannot be placed.")
        dropped = sum(half.unlabelled for row in rows for half in row.halves or ())
        if dropped:
            said.append(f"{_count(dropped, 'label')} left out for want of room.")
        return " ".join(said)


def _merged(streams: np.ndarray, limit: int) -> list[tuple[float, float, float]]:
    """(lane, begin, end) of each stream; above ``limit`` those that overlap as one."""
    rows = [(float(a), float(b), float(c)) for a, b, c in streams]
    if len(rows) <= limit:
        return rows
    found: list[tuple[float, float, float]] = []
    for lane, begin, end in sorted(rows):
        if found and found[-1][0] == lane and begin <= found[-1][2]:
            found[-1] = (lane, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((lane, begin, end))
    return found


def _only_strip(frame: pd.DataFrame, ax: Axes | None, title: str | None, caption: str | None, theme: str) -> Axes:
    """The strip alone, from a frame of ``mcplab.timeline``."""
    more = len(frame) - _ROWS
    made = strip.from_frame(frame.iloc[:_ROWS])
    if more > 0:
        caption = f"{_count(more, 'more row')} left out; name an instance to see its own. {caption or ''}".strip()
    several = len({lane.instance for lane in made.lanes}) > 1
    clock = isinstance(frame.columns, pd.DatetimeIndex)
    with paper.page(theme) as ground:
        left = max(measure(literal(lane.channel)) for lane in made.lanes) + 14
        width = paper.extent(ax)[0] if ax is not None else paper.PAGE - left - 24
        total = left + width + 24
        titles = paper.title_lines(title, total - 16)
        drawn = {ACTIVITIES[code] for code in np.unique(made.cells)}
        legend = paper.flow([Key(LOOKS[w].meaning, LOOKS[w]) for w in reversed(ACTIVITIES) if w in drawn], total - 16)
        said = paper.paragraphs(caption or "", total - 16)
        tall = strip.height(made, several) + 4
        above = 8 + (8 + len(titles) * 9.5 * 1.3 if titles else 0)
        below = 34 + len(legend) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
        ax = paper.new_axes(ax, ground, (total, above + tall + below), (left, below, width, tall))
        span = made.left[-1] + made.step - made.left[0]
        ax.set_xlim(made.left[0] - 0.005 * span, made.left[0] + 1.005 * span)
        ax.set_ylim(tall, 0)
        for name in ("left", "right", "top"):
            ax.spines[name].set_visible(False)
        ax.spines["bottom"].set_color(ground.muted)
        ax.set_yticks([])
        ax.tick_params(axis="x", colors=ground.ink, labelsize=7.5)
        unit = "segments, one an event (seq)"
        if clock:
            unit = (
                f"seconds from {frame.columns[0]:%Y-%m-%d %H:%M:%S.%f}"[:-3]
                + f" UTC, one symbol per {_seconds(made.step)}"
            )
        ax.set_xlabel(unit, color=ground.ink, labelpad=2, parse_math=False)
        strip.draw(ax, made, 0, made.step * width / (1.01 * span), left - 8, several, theme, ground)
        paper.set_title(ax, titles, 8 - left, 8, ground)
        at = -34.0
        at -= paper.legend(ax, legend, 8 - left, at, theme, ground) + 3
        paper.lines_of(ax, said, 8 - left, at, ground.muted)
    active = int((made.cells > 0).sum())
    lead = f"{title.rstrip('.')}: a strip" if title else "Strip"
    paper.describe(
        ax, f"{lead} of {len(made.lanes)} channels by {made.cells.shape[1]} segments; {active} show activity."
    )
    return ax


def _seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _sentence(made: Scene, title: str | None) -> str:
    """The alternative text."""
    asks = made.kind == "request"
    errors = int(
        (made.activity == ACTIVITIES.index("error")).sum() + (made.event_activity == ACTIVITIES.index("error")).sum()
    )
    known = made.x[~np.isnan(made.x)]
    long = f" over {_seconds(float(np.ptp(known)))}" if made.clock and len(known) else ""
    lead = f"{title.rstrip('.')}: a timeline" if title else "Timeline"
    lanes_ = ", ".join(dict.fromkeys(lane.channel for lane in made.lanes))
    return (
        f"{lead} of {_count(len(made.kind), 'message')}{long} on {lanes_}: {_count(int(asks.sum()), 'request')}, "
        f"{int((asks & (made.answer < 0)).sum()):,} without an answer, {_count(errors, 'error')}."
    )
