"""Paths over the releases of a client: what began to be declared, what changed, and where there is no capture."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from mcplab.look import Ground
from mcplab.model import DrawError
from mcplab.plots import margins, paper
from mcplab.plots.cells import Cells, PathRow, prepare, rows
from mcplab.plots.paper import MONO, SMALL, Key, fitting, literal, measure, put_row
from mcplab.plots.pen import Pen, keys
from mcplab.plots.releases import shown
from mcplab.versions import version_key

_ROW: Final = 12.5
_PITCH: Final = 46.0
_APART: Final = 1.7
"""Cells from one release to the next: between two cells is room for a line."""
_HEAD: Final = 1.5
"""Rows that a client's name and its releases take."""
_SAID: Final = 210.0
_LINES: Final[dict[str, dict[str, Any]]] = {
    "same": {"linewidth": 0.7, "linestyle": "-"},
    "differs": {"linewidth": 1.1, "linestyle": (0, (2.5, 1.5))},
    "release": {"linewidth": 2.2, "linestyle": "-"},
}
_WORDS: Final = {
    "same": "the same",
    "differs": "differs; more than the release did, or it is not known",
    "release": "the release alone makes the difference",
}


class Step(NamedTuple):
    """From one captured release to the next one: ``kind`` is one of same, differs, release; "" cannot be told."""

    at: int
    to: int
    kind: str
    before: str
    after: str
    when: str


class Part(NamedTuple):
    """One client: its releases (captured or not, oldest first), and the steps of each path that is drawn."""

    client: str
    versions: list[str]
    cells: Cells
    rows: list[tuple[PathRow, list[Step]]]
    open: int
    unnamed: bool
    """There are captures of which the release is not known: they stand before or after nothing."""


def drift(
    frame: pd.DataFrame,
    *,
    client: str | None = None,
    variance: pd.DataFrame | None = None,
    releases: Mapping[str, Sequence[str]] | None = None,
    show_all: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
    caption: str | None = None,
    theme: str = "light",
) -> Axes:
    """Draw how the declarations of each client changed from release to release.

    Parameters
    ----------
    frame
        ``compare(traces, by=["client", "client_version"])``.
    client
        Only this one. Default: every client of which several releases are known.
    variance
        What ``variance(traces)`` gives: a step is drawn as the release's doing where two runs differed in nothing
        else. Without it no step is.
    releases
        Client -> releases that there are, captured or not. One without a capture has its place, and nothing in it.
    show_all
        Also paths that stayed as they were, and those of which it cannot be told.
    ax, title, caption, theme
        As in ``declarations``.

    Returns
    -------
    Axes
        Release j of a client has its centre at x = 1.7 j. Cells are marked as in ``declarations``.

    Raises
    ------
    DrawError
        Other columns than ``client`` and ``client_version``, or no client with two releases.
    """
    parts, single = _parts(frame, client, variance, releases or {}, show_all)
    with paper.page(theme) as ground:
        ax = _draw(parts, single, ax, title, caption, theme, ground)
    paper.describe(ax, _sentence(parts, title))
    return ax


# Content -------------------------------------------------------------------------------------------


def _parts(
    frame: pd.DataFrame, client: str | None, variance: pd.DataFrame | None,
    releases: Mapping[str, Sequence[str]], show_all: bool,
) -> tuple[list[Part], list[str]]:  # fmt: skip
    """The clients to draw, and those of which there is one release only."""
    if list(frame.columns.names) != ["client", "client_version"]:
        raise DrawError("drift is drawn of compare(traces, by=['client', 'client_version'])")
    names = list(dict.fromkeys(frame.columns.get_level_values("client")))
    if client is not None and client not in names:
        raise DrawError(f"no client {client!r} here; there are {', '.join(map(str, names)) or 'none'}")
    proven: set[tuple[Any, ...]] = set()
    if variance is not None:
        alone = variance[variance["factor"] == "version"]
        proven = set(zip(alone["client"], alone["path"], alone["a"], alone["b"], strict=True))
    found, single = [], []
    for name in names if client is None else [client]:
        mine = [who for who in frame.columns if who[0] == name]
        versions = {shown(version): version for _, version in mine if version != "unknown"}
        order = sorted({*versions, *map(str, releases.get(name, ()))}, key=version_key)
        if len(order) < 2:
            single.append(str(name))
            continue
        part = frame[mine]
        part.attrs = frame.attrs
        cells = prepare(part, order="name", show_all=False)
        whos = [(name, versions[one]) if one in versions else None for one in order]
        steps = {row.path: _steps(row.path, name, order, whos, cells, proven) for row in cells.paths}
        kept = [path for path, own in steps.items() if show_all or _changes(own)]
        unnamed = len(versions) < len(mine)
        left = sum(any(not step.kind for step in own) for path, own in steps.items() if path not in kept)
        found.append(Part(str(name), order, cells, [(row, steps[row.path]) for row in rows(kept)], left, unnamed))
    if not found:
        raise DrawError("nothing to draw: of no client here there are two releases")
    return found, single


def _steps(
    path: str, client: Any, order: list[str], whos: list[Any], cells: Cells, proven: set[tuple[Any, ...]]
) -> list[Step]:
    states = {at: cells.state[path, who] for at, who in enumerate(whos) if who is not None}
    known = [at for at, state in states.items() if state != "unknown"]
    steps = []
    for at, to in pairwise(known):
        before, after = states[at], states[to]
        pair = [json.dumps(order[one], ensure_ascii=False) for one in (at, to)]
        if {(client, path, *pair), (client, path, *reversed(pair))} & proven:
            kind = "release"
        elif before == after == "varies":
            kind = ""
        else:
            kind = "same" if before == after else "differs"
        when = f"in {order[to]}" if to == at + 1 else f"between {order[at]} and {order[to]}"
        steps.append(Step(at, to, kind, before, after, when))
    return steps


def _changes(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.kind in ("differs", "release")]


def _told(steps: list[Step]) -> str:
    """``absent → object in 0.171.0``."""
    return "; ".join(f"{step.before} → {step.after} {step.when}" for step in _changes(steps))


# Drawing -------------------------------------------------------------------------------------------


def _draw(
    parts: list[Part], single: list[str], ax: Axes | None, title: str | None, caption: str | None,
    theme: str, ground: Ground,
) -> Axes:  # fmt: skip
    """Lay everything out in points, then draw."""
    whole = _whole(parts)
    across = (max(len(part.versions) for part in parts) - 1) * _APART + 1
    height = sum(_HEAD + max(len(part.rows), 1) + 0.5 for part in parts)
    labels = {
        row: paper.wrap(margins.path_text(row.label), 200 - 8 * row.depth, family=MONO, lines=1)[0]
        for part in parts for row, _ in part.rows
    }  # fmt: skip
    beside = _PITCH * (_APART - 1) / 2  # a release's name may be wider than its cells
    left = (
        14
        + beside
        + max(
            [8 * row.depth + measure(labels[row], family=MONO) for part in parts for row, _ in part.rows]
            + [measure(fitting(literal(part.client, bold=True), 200, bold=True), bold=True) for part in parts]
        )
    )
    said = [fitting(_told(steps), _SAID) for part in parts for _, steps in part.rows]
    right = 4 + beside + max(map(measure, said), default=0.0)
    pitch, row = _PITCH, _ROW
    if ax is not None:
        width, tall = paper.extent(ax)
        pitch, row = width / across, tall / height
        if pitch < 30 or row < 9.6:
            warnings.warn(
                f"labels overlap: this needs an Axes of at least {across * 30 / 72:.1f} x {height * 9.6 / 72:.1f} "
                "inches; give a larger one, or none",
                stacklevel=3,
            )
    total = max(left + across * pitch + right, 340.0)
    titles = paper.title_lines(title, total - 16)
    pen = Pen(whole, pitch, row, theme, ground)
    legend = paper.flow(_legend(parts, whole, theme, ground, counted=pen.counts()), total - 16)
    notes = paper.paragraphs(_note(parts, single), total - 16)
    notes += paper.paragraphs(_caption(parts) if caption is None else caption, total - 16)
    below = 10 + len(legend) * SMALL * 1.6 + 3 + len(notes) * SMALL * paper.LEADING + 6
    above = (8 + len(titles) * 9.5 * 1.3 if titles else 0) + 4
    size = (total, above + height * row + below)
    ax = paper.new_axes(ax, ground, size, (left, below, across * pitch, height * row))
    ax.set_axis_off()
    ax.set_xlim(-0.5, across - 0.5)
    ax.set_ylim(height, 0)
    y = 0.0
    for number, part in enumerate(parts):
        if number:
            ax.add_artist(_rule(ax, left, y - 0.2, across * pitch + right, ground))
        y = _client(ax, part, y, (left, across * pitch, pitch), labels, pen, theme, ground) + 0.5
    paper.set_title(ax, titles, 8 - left, 8, ground)
    at = -10.0
    at -= paper.legend(ax, legend, 8 - left, at, theme, ground) + 3
    paper.lines_of(ax, notes, 8 - left, at, ground.muted)
    return ax


def _client(
    ax: Axes, part: Part, y: float, room: tuple[float, float, float], labels: dict[PathRow, str], pen: Pen, theme: str,
    ground: Ground,
) -> float:  # fmt: skip
    """One client: its name, its releases, a line a path; returns where it ends."""
    left, width, pitch = room
    named = literal(part.client, bold=True)
    put_row(ax, 8 - left, y + _HEAD / 2, fitting(named, 200, bold=True), ground.ink, weight="bold")
    captured = {shown(who.key[1]) for who in part.cells.whos if isinstance(who.key, tuple)}
    for at, version in enumerate(part.versions):
        ink = ground.ink if version in captured else ground.muted
        text = fitting(version if version in captured else f"({version})", pitch * _APART - 6)
        paper.put(ax, at * _APART, y + _HEAD / 2, text, ax.transData, color=ink, ha="center")
    y += _HEAD
    if not part.rows:
        put_row(ax, 8 - left, y + 0.5, "nothing is seen to change", ground.muted)
        return y + 1
    colours = {"same": ground.rule, "differs": ground.ink, "release": ground.ink}
    whos: dict[str, Hashable] = {shown(who.key[1]): who.key for who in part.cells.whos if isinstance(who.key, tuple)}
    for row, steps in part.rows:
        put_row(ax, 8 - left + 8 * row.depth, y + 0.5, labels[row], ground.ink, family=MONO)
        for step in steps:
            if step.kind and step.to == step.at + 1:
                spots = [step.at * _APART + _half(step.before, pen), step.to * _APART - _half(step.after, pen)]
                style = _LINES[step.kind] | {"color": colours[step.kind], "zorder": 2, "gid": f"step:{step.kind}"}
                ax.add_artist(Line2D(spots, [y + 0.5] * 2, solid_capstyle="butt", **style))
        for at, version in enumerate(part.versions):
            if version in whos:
                pen.cell(ax, at * _APART, y, y + 1, row.path, whos[version])
        put_row(ax, width + 6, y + 0.5, fitting(_told(steps), _SAID), ground.muted)
        y += 1
    return y


def _half(word: str, pen: Pen) -> float:
    """How far a cell reaches from its centre, with the space that stands around it."""
    return 0.5 + 2 / pen.pitch if word == "varies" else (pen.size / 2 + 3) / pen.pitch


def _rule(ax: Axes, left: float, y: float, right: float, ground: Ground) -> Line2D:
    place = blended_transform_factory(paper.pin(ax, 0, 0), ax.transData)
    rule = Line2D([8 - left, right - 6], [y, y], transform=place, color=ground.rule, linewidth=0.5)
    rule.set_clip_on(False)
    return rule


# Words around it -----------------------------------------------------------------------------------


def _whole(parts: list[Part]) -> Cells:
    """What is drawn of all clients: their states, for the legend and the pen."""
    drawn = {(part.client, row.path) for part in parts for row, _ in part.rows}
    state: dict[tuple[str, Hashable], str] = {}
    commonest: dict[tuple[str, Hashable], tuple[str, int, int]] = {}
    for part in parts:
        state |= {place: word for place, word in part.cells.state.items() if (part.client, place[0]) in drawn}
        commonest |= {place: one for place, one in part.cells.commonest.items() if place in state}
    return Cells([], [], state, commonest, {}, {}, [], True)


def _legend(parts: list[Part], whole: Cells, theme: str, ground: Ground, *, counted: bool) -> list[Key]:
    found = keys(whole, theme, ground, counted=counted)
    kinds = {step.kind if step.to == step.at + 1 else "" for part in parts for _, steps in part.rows for step in steps}
    for kind, style in _LINES.items():
        if kind in kinds:
            colour = ground.rule if kind == "same" else ground.ink
            found.append(Key(_WORDS[kind], line={"color": colour, **style}))
    if "" in kinds:
        found.append(Key("no line: cannot be told", bare=True))
    return found


def _note(parts: list[Part], single: list[str]) -> str:
    gaps = [
        f"{part.client} {version}" for part in parts for version in part.versions
        if version not in {shown(who.key[1]) for who in part.cells.whos if isinstance(who.key, tuple)}
    ]  # fmt: skip
    said = [f"No capture of {', '.join(gaps)}."] if gaps else []
    if unnamed := [part.client for part in parts if part.unnamed]:
        said.append(f"Captures of {', '.join(unnamed)} of an unknown release are left out.")
    left = sum(part.open for part in parts)
    if left:
        said.append(f"{left} further path{'' if left == 1 else 's'} cannot be told, varying within releases.")
    if single:
        said.append(f"Of {len(single)} further client{'' if len(single) == 1 else 's'} one release only was captured.")
    return " ".join(said)


def _caption(parts: list[Part]) -> str:
    releases = sum(len(part.cells.whos) for part in parts)
    runs = sum(sum(part.cells.instances.values()) for part in parts)
    text = f"{releases} releases of {len(parts)} client{'' if len(parts) == 1 else 's'}"
    return f"{text}, {runs} instances." if runs else f"{text}."


def _sentence(parts: list[Part], title: str | None) -> str:
    """The alternative text."""
    changed = [(part.client, row.path, _told(steps)) for part in parts for row, steps in part.rows if _told(steps)]
    lead = f"{title.rstrip('.')}: paths" if title else "Paths"
    clients = len({client for client, _, _ in changed})
    text = f"{lead} over the releases of {len(parts)} client{'' if len(parts) == 1 else 's'}; "
    if not changed:
        return text + "nothing is seen to change."
    text += f"{len(changed)} path{'' if len(changed) == 1 else 's'} of {clients} of them changed, among them "
    return text + "; ".join(f"{client} {path}: {told}" for client, path, told in changed[:3]) + "."
