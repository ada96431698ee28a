"""Who offers and gets which protocol revision, and who falls back and why: one row a client release."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from mcplab import spec
from mcplab.look import STATES, Ground, Look
from mcplab.model import DrawError
from mcplab.plots import paper
from mcplab.plots.paper import SMALL, Key, fitting, literal, measure, pin, put, put_row
from mcplab.plots.releases import shown, spans
from mcplab.versions import natural_key, version_key

_ROW: Final = 12.5
_LOW: Final = 9.8
_TALL: Final = 600.0
_NEEDED: Final = ("client", "client_version", "offered", "selected", "discovery", "discovery_detail")
AGREED: Final = STATES["object"]._replace(word="agreed", meaning="agreed on")
OFFERED: Final = STATES["empty"]._replace(
    word="offered", meaning="offered, not agreed on", light=STATES["false"].light, dark=STATES["false"].dark
)


class Release(NamedTuple):
    """What was seen of one release: instances, then for each revision and each reason how many of them."""

    client: str
    version: str
    instances: int
    agreed: Counter[str]
    offered: Counter[str]
    back: Counter[str]
    stopped: Counter[str]
    forced: int
    silent: int


def releases(frame: pd.DataFrame) -> list[Release]:
    """Count over the instances of each release, products by name, oldest first. ``offered`` are those not agreed on."""
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise DrawError(f"this is no connections frame: it has no column {missing[0]!r}")
    if frame.empty:
        raise DrawError("nothing to draw: the frame has no connections")
    names = ["client", "client_version", "offered", "selected", "discovery", "discovery_detail", "mode"]
    columns: dict[str, list[Any]] = {
        name: frame[name].astype(object).where(frame[name].notna(), None).tolist()  # type: ignore[arg-type]
        if name in frame
        else [None] * len(frame)
        for name in names
    }
    keys = [name for name in ("trace", "instance") if name in frame]
    who = list(zip(*(frame[name].astype(object) for name in keys), strict=True)) if keys else list(range(len(frame)))
    runs: dict[tuple[str, str], dict[Any, list[int]]] = {}
    for at, (client, version) in enumerate(zip(columns["client"], columns["client_version"], strict=True)):
        runs.setdefault((shown(client), shown(version)), {}).setdefault(who[at], []).append(at)
    found = [_release(client, version, by, columns) for (client, version), by in runs.items()]
    return sorted(found, key=lambda row: (natural_key(row.client), row.client, version_key(row.version), row.version))


def _release(client: str, version: str, runs: dict[Any, list[int]], columns: dict[str, list[Any]]) -> Release:
    row = Release(client, version, len(runs), Counter(), Counter(), Counter(), Counter(), 0, 0)
    forced = silent = 0
    for rows in runs.values():
        agreed = {columns["selected"][at] for at in rows} - {None}
        tokens = {part.strip() for at in rows for part in (columns["offered"][at] or "").split(",")} - {""}
        row.agreed.update(agreed)
        row.offered.update(tokens - agreed)
        for kind, counter in (("legacy-fallback", row.back), ("failed", row.stopped)):
            why = {columns["discovery_detail"][at] or "" for at in rows if columns["discovery"][at] == kind}
            counter.update(why)
        forced += any(columns["mode"][at] == "forced" for at in rows)
        silent += not (agreed or tokens)
    return row._replace(forced=forced, silent=silent)


def versions(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    theme: str = "light",
) -> Axes:
    """Draw which revisions each client release offered and got, and what it did when discovery was refused.

    Parameters
    ----------
    frame
        ``traces.connections``; needed are ``client client_version offered selected discovery discovery_detail``, used
        where there ``mode trace instance``. Numbers count instances.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        Column j has its centre at x = j, row i at y = i + 0.5. Marks have the gid
        ``agreed:<client>:<version>:<revision>`` or ``offered:...``.
    """
    rows = releases(frame)
    with paper.page(theme) as ground:
        ax = _Chart(rows, theme, ground).draw(ax, title, caption)
    paper.describe(ax, _sentence(rows, title))
    return ax


def _ranked(counter: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first; a tie by name, so that the same frame gives the same chart."""
    return sorted(counter.items(), key=lambda one: (-one[1], one[0]))


class _Chart:
    """Lays out in points, then draws; one use each."""

    def __init__(self, rows: list[Release], theme: str, ground: Ground) -> None:
        self.rows, self.theme, self.ground = rows, theme, ground
        seen = {revision for row in rows for revision in (*row.agreed, *row.offered)}
        known = list(spec.REVISIONS)
        self.columns = [r for r in known if r in seen] + sorted(seen - set(known), key=version_key)
        self.columns = self.columns or known[-1:]
        reasons = Counter[str]()
        for row in rows:
            reasons += row.back + row.stopped
        self.letters = {why: chr(ord("a") + at) for at, (why, _) in enumerate(_ranked(reasons)[:26]) if why}

    def draw(self, ax: Axes | None, title: str | None, caption: str | None) -> Axes:
        clients = spans([row.client for row in self.rows])
        names = [fitting(client, 140, bold=True) for client, _, _ in clients]
        labels = [fitting(row.version, 90) for row in self.rows]
        counts = [f"{row.instances:,}" for row in self.rows]
        count = max(map(measure, counts)) + 8
        label = max(map(measure, labels)) + 10
        left = 8 + max(measure(name, bold=True) for name in names) + label + count + 10
        said = [self._said(row) for row in self.rows]
        right = max(max(map(measure, said)), measure("server/discover refused")) + 16
        widest = max(measure(literal(revision)) for revision in self.columns) + 8
        most = max(measure(f"{n:,}") for row in self.rows for n in (*row.agreed.values(), *row.offered.values(), 0))
        widest = max(widest, 2 * (most + 14))
        row = min(max(_TALL / len(self.rows), _LOW), _ROW)
        width = min(max((paper.PAGE - left - right) / len(self.columns), widest), 74.0) * len(self.columns)
        if ax is not None:
            width, high = paper.extent(ax)
            row = high / len(self.rows)
        total = max(left + width + right, 340.0)
        text = total - 16
        titles = paper.title_lines(title, text)
        legend = paper.flow(self._keys(), text)
        notes = paper.paragraphs(" ".join(f"({letter}) {literal(why)}." for why, letter in self.letters.items()), text)
        lines = notes + paper.paragraphs(self._caption() if caption is None else caption, text)
        head = 32.0
        above = head + (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 4
        below = 12 + len(legend) * SMALL * 1.6 + 3 + len(lines) * SMALL * paper.LEADING + 6
        tall = row * len(self.rows)
        ax = paper.new_axes(ax, self.ground, (total, above + tall + below), (left, below, width, tall))
        ax.set_axis_off()
        ax.set_xlim(-0.5, len(self.columns) - 0.5)
        ax.set_ylim(len(self.rows), 0)
        self._head(ax, left, count, width)
        for (_, first, last), name in zip(clients, names, strict=True):
            put_row(ax, 8 - left, first + 0.5, name, self.ground.ink, weight="bold")
            if last + 1 < len(self.rows):
                beside = blended_transform_factory(pin(ax, 0, 0), ax.transData)
                rule = Line2D([8 - left, width + right - 8], [last + 1] * 2, transform=beside)
                rule.set(color=self.ground.rule, linewidth=0.5, clip_on=False)
                ax.add_artist(rule)
        for at, release in enumerate(self.rows):
            put_row(ax, -count - 8, at + 0.5, labels[at], self.ground.ink, ha="right")
            put_row(ax, -8, at + 0.5, counts[at], self.ground.ink, ha="right")
            put_row(ax, width + 8, at + 0.5, said[at], self.ground.ink)
            self._marks(ax, at, release, row, width / len(self.columns))
        paper.set_title(ax, titles, 8 - left, head + 8, self.ground)
        place = -12.0
        place -= paper.legend(ax, legend, 8 - left, place, self.theme, self.ground) + 3
        paper.lines_of(ax, lines, 8 - left, place, self.ground.muted)
        return ax

    def _head(self, ax: Axes, left: float, count: float, width: float) -> None:
        over, top = blended_transform_factory(ax.transData, pin(ax, 0, 1)), pin(ax, 0, 1)
        for at, revision in enumerate(self.columns):
            put(ax, at, 8, literal(revision), over, ha="center", color=self.ground.ink)
        eras = spans([spec.era(revision) for revision in self.columns])
        for era, first, last in eras:
            put(ax, (first + last) / 2, 22, era, over, ha="center", color=self.ground.ink, weight="bold")
            line = Line2D(
                [first - 0.45, last + 0.45], [15.5, 15.5], transform=over, color=self.ground.muted, linewidth=0.6
            )
            line.set_clip_on(False)
            ax.add_artist(line)
            if first:
                rule = Line2D(
                    [first - 0.5] * 2, [0, 1], transform=ax.get_xaxis_transform(), color=self.ground.rule, linewidth=0.6
                )
                ax.add_artist(rule)
        put(ax, -8, 8, "n", top, ha="right", color=self.ground.muted)
        put(ax, -count - 8, 8, "release", top, ha="right", color=self.ground.muted)
        put(ax, width + 8, 8, "server/discover refused", top, color=self.ground.muted)

    def _marks(self, ax: Axes, at: int, release: Release, row: float, pitch: float) -> None:
        size = min(row * 0.62, 7.5)
        for look, counter, shift in ((AGREED, release.agreed, -0.5), (OFFERED, release.offered, 0.02)):
            for revision, n in sorted(counter.items()):
                x = self.columns.index(revision) + shift + (size / 2 + 5) / pitch
                name = ":".join(quote(part, safe="") for part in (look.word, release.client, release.version, revision))
                style = paper.marker(look, self.theme, size, self.ground)
                ax.add_artist(Line2D([x], [at + 0.5], gid=name, clip_on=False, **style))
                ax.text(
                    x + (size / 2 + 2) / pitch, at + 0.5, f"{n:,}", fontsize=SMALL, va="center_baseline",
                    color=self.ground.ink, parse_math=False,
                )  # fmt: skip

    def _said(self, row: Release) -> str:
        parts = []
        for word, counter in (("falls back", row.back), ("gives up", row.stopped)):
            if counter:
                each = [
                    f"{n:,} {f'({self.letters[why]})' if why in self.letters else ''}".strip()
                    for why, n in sorted(counter.items(), key=lambda one: self.letters.get(one[0], "~"))
                ]
                parts.append(f"{word}: {', '.join(each)}")
        if row.forced:
            parts.append(f"forced: {row.forced:,}")
        if row.silent:
            parts.append(f"nothing offered: {row.silent:,}")
        return "; ".join(parts)

    def _keys(self) -> list[Key]:
        looks: list[Look] = [AGREED] if any(row.agreed for row in self.rows) else []
        looks += [OFFERED] if any(row.offered for row in self.rows) else []
        return [Key(f"{look.meaning} (instances)", look) for look in looks]

    def _caption(self) -> str:
        instances = sum(row.instances for row in self.rows)
        return f"n: instances, {instances:,} in all, of {_count(len(self.rows), 'release')}."


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _sentence(rows: list[Release], title: str | None) -> str:
    """The alternative text."""
    agreed = Counter(revision for row in rows for revision in row.agreed)
    facts = ", ".join(f"{revision} by {n}" for revision, n in sorted(agreed.items(), reverse=True)) or "none"
    back = sum(bool(row.back) for row in rows)
    lead = f"{title.rstrip('.')}: a chart" if title else "Chart"
    return (
        f"{lead} of protocol revisions agreed on by {_count(len(rows), 'client release')}: {facts}; {back} fall back."
    )
