"""Findings by rule and client: who broke what, in how many of the instances in which the rule was called on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import blended_transform_factory

from mcplab.look import STATES, UNKNOWN_HATCH, Ground, Look
from mcplab.model import DrawError
from mcplab.plots import margins, paper
from mcplab.plots.cells import Cells
from mcplab.plots.paper import MONO, SMALL, Key, fitting, measure, pin, put, put_row
from mcplab.plots.releases import Who, shown, spans, whos

VERDICTS: Final = {
    look.word: look
    for look in (
        Look("broken", "✗", "broken, in n of m instances that called on it", "X", True, 0.95,
             STATES["false"].light, STATES["false"].dark, "33"),
        Look("hint", "△", "perhaps broken (a hint)", "^", False, 0.85,
             STATES["value"].light, STATES["value"].dark, "35"),
        Look("kept", "○", "kept wherever the capture tells", "o", False, 0.8,
             STATES["true"].light, STATES["true"].dark, "32"),
        Look("unknown", "?", "the capture cannot tell", "", True, 1.0,
             STATES["unknown"].light, STATES["unknown"].dark, "2"),
        Look("unexercised", "·", "not called on", "o", True, 0.22,
             STATES["absent"].light, STATES["absent"].dark, "2"),
    )
}  # fmt: skip
"""Verdict -> its look; of several instances the first of these that one of them has is drawn."""

_NEEDED: Final = ("rule", "level", "party", "verdict", "trace", "instance")
_ROW: Final = 14.0
_LOW: Final = 9.6
_TALL: Final = 600.0
_TIGHT: Final = 11.0
_WIDEST: Final = 58.0


class Row(NamedTuple):
    """A rule as one party broke it. ``party`` is empty where nobody did."""

    rule: str
    party: str
    level: str


class Tally(NamedTuple):
    """What is drawn: rows, columns, for each place how many instances had which verdict, releases left out."""

    rows: list[Row]
    whos: list[Who]
    count: dict[tuple[Row, Hashable], Counter[str]]
    instances: dict[Hashable, int]
    left_out: int


def findings(
    frame: pd.DataFrame,
    *,
    connections: pd.DataFrame | None = None,
    rules: Iterable[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    theme: str = "light",
) -> Axes:
    """Draw findings by rule and client: a mark in each cell says the verdict by its shape and its colour.

    A row is a rule and the party that broke it: what a server did stands apart from what the client in whose column it
    is did.

    Parameters
    ----------
    frame
        ``traces.findings`` or what ``check`` returns; needed are ``rule level party verdict trace instance``.
    connections
        ``traces.connections``, which names each instance's client. Default: columns ``client`` and ``client_version``
        of the frame itself.
    rules
        Ids of the rules to draw; default: those that are broken, and hints where the frame has them.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        Column j has its centre at x = j. Each cell's artist has the gid
        ``finding:<rule>:<party>:<client>:<version>``; beside a breach, or below it, stands ``n/m`` in
        instances.

    Raises
    ------
    DrawError
        A column is missing, nobody says which client an instance is, or there is nothing to draw.
    """
    tally = count(frame, connections, rules)
    with paper.page(theme) as ground:
        ax = _Chart(tally, theme, ground).draw(ax, title, caption)
    paper.describe(ax, _sentence(tally, title))
    return ax


# Counting ------------------------------------------------------------------------------------------


def count(frame: pd.DataFrame, connections: pd.DataFrame | None = None, rules: Iterable[str] | None = None) -> Tally:
    """Count instances by rule, party that broke it, release and verdict."""
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise DrawError(f"this is no findings frame: it has no column {missing[0]!r}")
    rows = _named(frame, connections)
    wanted = None if rules is None else list(rules)
    drawn = rows[rows["verdict"].isin(["broken", "hint"]) if wanted is None else rows["rule"].isin(wanted)]
    if drawn.empty:
        why = "no rule is broken" if wanted is None else f"the frame has none of the rules {', '.join(wanted)}"
        raise DrawError(f"nothing to draw: {why}; rules=[...] names rules whose verdicts to draw")
    rows = rows[rows["rule"].isin(set(drawn["rule"]))]
    order = _rows(rows)
    places: dict[tuple[Row, Hashable], dict[Any, set[str]]] = {}
    by_rule: dict[str, list[Row]] = {}
    for row in order:
        by_rule.setdefault(row.rule, []).append(row)
    columns = ("rule", "party", "verdict", "trace", "instance", "client", "client_version")
    for rule, party, verdict, trace, instance, client, version in zip(*(rows[name] for name in columns), strict=True):
        for row in by_rule[rule]:
            if verdict not in ("broken", "hint") or row.party == party:
                places.setdefault((row, (client, version)), {}).setdefault((trace, instance), set()).add(verdict)
    counts = {
        place: Counter(next(word for word in VERDICTS if word in verdicts) for verdicts in runs.values())
        for place, runs in places.items()
    }
    every = rows[["client", "client_version"]].drop_duplicates()
    judged = {who for (_, who), tally in counts.items() if {*tally} != {"unexercised"}}
    kept = [who for who in every.itertuples(index=False, name=None) if who in judged]
    index = pd.MultiIndex.from_tuples(kept or list(every.itertuples(index=False, name=None)))
    index.names = ["client", "client_version"]
    runs = rows.drop_duplicates(["trace", "instance"]).groupby(["client", "client_version"]).size()
    instances = {who: int(runs[who]) for who in index}
    return Tally(order, whos(index, "name"), counts, instances, len(every) - len(index))


def _named(frame: pd.DataFrame, connections: pd.DataFrame | None) -> pd.DataFrame:
    """The frame with a client and a version in each row, ``—`` where nobody says."""
    names = ["client", "client_version"]
    if connections is not None:
        who = connections[["trace", "instance", *names]].drop_duplicates(["trace", "instance"])
        frame = frame.drop(columns=names, errors="ignore").merge(who, on=["trace", "instance"], how="left")
    elif any(name not in frame.columns for name in names):
        raise DrawError("nobody says which client an instance is: give connections=traces.connections")
    return frame.assign(**{name: [shown(value) for value in frame[name]] for name in names})


def _rows(rows: pd.DataFrame) -> list[Row]:
    """A row a rule and party that broke it; the client's first, a MUST before a SHOULD, the commonest first."""
    found: dict[tuple[str, str], set[Any]] = {}
    levels: dict[tuple[str, str], set[str]] = {}
    broken = rows[rows["verdict"].isin(["broken", "hint"])]
    whole = rows[~rows["rule"].isin(set(broken["rule"]))]
    for part, named in ((broken, True), (whole, False)):
        columns = (part[name] for name in ("rule", "party", "level", "trace", "instance"))
        for rule, party, level, trace, instance in zip(*columns, strict=True):
            key = (str(rule), str(party) if named else "")
            found.setdefault(key, set()).add((trace, instance) if named else None)
            levels.setdefault(key, set()).add(str(level))
    made = [Row(*key, min(levels[key], key=lambda word: (not word.startswith("MUST"), word))) for key in found]

    def place(row: Row) -> tuple[Any, ...]:
        party = ("client", "server", "either", "").index(row.party) if row.party in ("client", "server", "") else 2
        return party, not row.level.startswith("MUST"), -len(found[row.rule, row.party]), row.rule

    return sorted(made, key=place)


# Drawing -------------------------------------------------------------------------------------------


class _Chart:
    """Lays out in points, then draws; one use each."""

    def __init__(self, tally: Tally, theme: str, ground: Ground) -> None:
        self.tally, self.theme, self.ground = tally, theme, ground
        self.stacked = False
        self.notes = {
            place: f"{counts['broken']}/{sum(counts.values()) - counts['unexercised']}"
            for place, counts in tally.count.items()
            if counts["broken"]
        }

    def draw(self, ax: Axes | None, title: str | None, caption: str | None) -> Axes:
        tally, ground = self.tally, self.ground
        across, down = len(tally.whos), len(tally.rows)
        cells = Cells([], tally.whos, {}, {}, tally.instances, {}, [], True)
        names = [fitting(row.rule, 190) for row in tally.rows]
        levels = max(measure(row.level) for row in tally.rows)
        label = max(measure(name, family=MONO) for name in names)
        parties = spans([row.party for row in tally.rows])
        words = [f"broken by the {party}" if party else "not broken" for party, _, _ in parties]
        # a line of its own for the party, above its rows: they are indented below it
        side = 8.0 + label + 10 + levels + 8
        size = 8.0
        note = max((measure(text) for text in self.notes.values()), default=0.0)
        needed = max(_TIGHT, *margins.who_head(cells, 0).need)
        left = 8 + max(side, max(measure(word, bold=True) for word in words) + 8)
        room = ((paper.PAGE if ax is None else left + 8 + paper.extent(ax)[0]) - left - 8) / across
        # where a page has no room for the count beside its mark it stands below it
        self.stacked = bool(note) and room < max(needed, size + note + 7)
        least = max(needed, note + 4 if self.stacked else size + note + 7 if note else 0.0)
        tall_row = 1.7 if self.stacked else 1.0
        lines = len(parties) + down * tall_row
        row = min(max(_TALL / lines, _LOW), _ROW)
        pitch = min(max(room, least), _WIDEST)
        if ax is not None:
            width, high = paper.extent(ax)
            pitch, row = width / across, high / lines
        head = margins.who_head(cells, pitch)
        total = max(left + across * pitch + 10, 340.0)
        text = total - 16
        titles = paper.title_lines(title, text)
        legend = paper.flow(self._keys(), text)
        said = paper.paragraphs(self._caption() if caption is None else caption, text)
        below = 10 + len(legend) * SMALL * 1.6 + 3 + len(said) * SMALL * paper.LEADING + 6
        above = head.size + (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 6
        tall = lines * row
        ax = paper.new_axes(ax, ground, (total, above + tall + below), (left, below, across * pitch, tall))
        ax.set_axis_off()
        ax.set_xlim(-0.5, across - 0.5)
        ax.set_ylim(lines, 0)
        self._rules(ax, left, head.size, across * pitch, tall)
        at = 0.0
        for (party, first, last), word in zip(parties, words, strict=True):
            self._party(ax, at, party, word, left, across * pitch)
            at += 1
            for n in range(first, last + 1):
                middle = at + tall_row / 2
                put_row(ax, 16 - left, middle, names[n], ground.ink, family=MONO)
                put_row(ax, -8, middle, tally.rows[n].level, ground.muted, ha="right")
                for j, who in enumerate(tally.whos):
                    self._cell(ax, j, (at, at + tall_row), tally.rows[n], who, size, pitch)
                at += tall_row
        margins.draw_head(ax, head, ground)
        paper.set_title(ax, titles, 8 - left, head.size + 8, ground)
        place = -10.0
        place -= paper.legend(ax, legend, 8 - left, place, self.theme, ground) + 3
        paper.lines_of(ax, said, 8 - left, place, ground.muted)
        return ax

    def _rules(self, ax: Axes, left: float, head: float, width: float, tall: float) -> None:
        """A thin line between products."""
        along = blended_transform_factory(ax.transData, pin(ax, 0, 1))
        for _, first, _ in spans([who.group for who in self.tally.whos])[1:]:
            rule = Line2D([first - 0.5] * 2, [-tall, head], transform=along)
            rule.set(color=self.ground.rule, linewidth=0.5, zorder=1, clip_on=False)
            ax.add_artist(rule)

    def _party(self, ax: Axes, at: float, party: str, word: str, left: float, width: float) -> None:
        """The line that heads a party's rules, tinted."""
        beside = blended_transform_factory(pin(ax, 0, 0), ax.transData)
        band = Rectangle((4 - left, at), width + left, 1, transform=beside, gid=f"band:{party}")
        band.set(facecolor=self.ground.band, edgecolor="none", zorder=0, clip_on=False)
        ax.add_artist(band)
        put_row(ax, 8 - left, at + 0.5, word, self.ground.ink, weight="bold")

    def _cell(
        self, ax: Axes, j: int, lines: tuple[float, float], row: Row, who: Who, size: float, pitch: float
    ) -> None:
        counts = self.tally.count.get((row, who.key), Counter({"unexercised": 1}))
        word = next(word for word in VERDICTS if counts[word])
        named = who.key if isinstance(who.key, tuple) else (who.key,)
        parts = (row.rule, row.party, *named)
        name = "finding:" + ":".join(quote(str(part), safe="") for part in parts)
        if word == "unknown":
            box = Rectangle(
                (j - 0.5, lines[0]), 1, lines[1] - lines[0], zorder=1.5, gid=name, facecolor="none", linewidth=0
            )
            box.set(hatch=UNKNOWN_HATCH, edgecolor=VERDICTS[word].colour(self.theme))
            ax.add_artist(box)
            return
        note = self.notes.get((row, who.key), "")
        middle = (lines[0] + lines[1]) / 2
        x, y, below = float(j), middle, middle
        if note and self.stacked:
            y, below = lines[0] + (lines[1] - lines[0]) * 0.29, lines[0] + (lines[1] - lines[0]) * 0.76
        elif note:
            x -= (2 + measure(note)) / 2 / pitch
        style = paper.marker(VERDICTS[word], self.theme, size, self.ground)
        ax.add_artist(Line2D([x], [y], zorder=3, gid=name, **style))
        if note:
            beside, side = (float(j), "center") if self.stacked else (x + (size / 2 + 2) / pitch, "left")
            put(ax, beside, below, note, ax.transData, color=self.ground.ink, gid=f"count:{name}", ha=side)

    def _keys(self) -> list[Key]:
        """The legend: what is drawn, nothing else."""
        drawn: set[str] = set()
        for row in self.tally.rows:
            for who in self.tally.whos:
                counts = self.tally.count.get((row, who.key), Counter({"unexercised": 1}))
                drawn.add(next(word for word in VERDICTS if counts[word]))
        keys = [Key(look.meaning, look) for word, look in VERDICTS.items() if word in drawn and look.marker]
        if "unknown" in drawn:
            look = VERDICTS["unknown"]
            hatch = {"facecolor": "none", "hatch": UNKNOWN_HATCH, "edgecolor": look.colour(self.theme), "linewidth": 0}
            keys.append(Key(look.meaning, patch=hatch))
        return keys

    def _caption(self) -> str:
        tally = self.tally
        text = f"{_count(len(tally.whos), 'release')}, {_count(sum(tally.instances.values()), 'instance')}."
        if tally.left_out:
            text += f" {_count(tally.left_out, 'further release')} never called on these rules."
        return text


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _sentence(tally: Tally, title: str | None) -> str:
    """The alternative text."""
    facts = []
    for row in tally.rows:
        who = [who for who in tally.whos if tally.count.get((row, who.key), Counter())["broken"]]
        if who:
            facts.append(f"{row.rule} by the {row.party} in captures of {_count(len(who), 'release')}")
    lead = f"{title.rstrip('.')}: a chart" if title else "Chart"
    broken = f"broken: {'; '.join(facts)}" if facts else "none is broken"
    return f"{lead} of {_count(len(tally.rows), 'rule')} by {_count(len(tally.whos), 'client release')}; {broken}."
