"""What a cell of a comparison looks like, and the legend that says so."""

from __future__ import annotations

from collections.abc import Hashable

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from mcplab.look import CELLS, STATES, UNKNOWN_HATCH, VARIES_ALPHA, VARIES_EDGE, Ground
from mcplab.plots import margins, paper
from mcplab.plots.cells import Cells, gid
from mcplab.plots.paper import SMALL, Key, measure


class Pen:
    """Draws one cell after another."""

    def __init__(self, cells: Cells, pitch: float, row: float, theme: str, ground: Ground) -> None:
        self.cells, self.pitch, self.theme, self.ground = cells, pitch, theme, ground
        self.size = min(pitch * 0.72, row * 0.66, 9.0)
        self.styles = {w: paper.marker(look, theme, self.size, ground) for w, look in CELLS.items() if look.marker}

    def _note(self, path: str, who: Hashable) -> str:
        """``n of m``, where the cell has room for it beside its mark."""
        _, n, m = self.cells.commonest.get((path, who), ("", 0, 0))
        note = f"{n} of {m}" if m else ""
        return note if measure(note) <= self.pitch - self.size - 8 else ""

    def counts(self) -> bool:
        """Whether some cell says ``n of m``."""
        return any(self._note(*place) for place in self.cells.commonest)

    def cell(self, ax: Axes, j: float, top: float, bottom: float, path: str, who: Hashable) -> None:
        """Draw one cell: a mark, or a ground with what stands on it."""
        word, name = self.cells.state[path, who], gid("cell", path, who)
        middle = (top + bottom) / 2
        if word in self.styles:
            self._mark(ax, j, middle, word, name)
            return
        box = Rectangle((j - 0.5, top), 1, bottom - top, zorder=1.5, gid=name)
        ax.add_artist(box)
        if word == "unknown":
            box.set(facecolor="none", hatch=UNKNOWN_HATCH, edgecolor=STATES["unknown"].colour(self.theme), linewidth=0)
            return
        box.set(facecolor=to_rgba(STATES["varies"].colour(self.theme), VARIES_ALPHA[self.theme]))
        box.set(edgecolor=VARIES_EDGE[self.theme], linewidth=0.4, clip_on=False)  # its edge lies on that of the axes
        state = self.cells.commonest.get((path, who), ("", 0, 0))[0]
        note = self._note(path, who)
        shift = (measure(note) + 3) / 2 / self.pitch if note else 0.0
        how = {"color": self.ground.ink, "parse_math": False, "va": "center_baseline", "fontsize": SMALL}
        if not state:
            ax.text(j, middle, STATES["varies"].symbol, ha="center", **how)
            return
        self._mark(ax, j - shift, middle, state, gid("mark", path, who))
        if note:
            ax.text(j - shift + (self.size / 2 + 3) / self.pitch, middle, note, **how)

    def _mark(self, ax: Axes, x: float, y: float, word: str, name: str) -> None:
        ax.add_artist(Line2D([x], [y], zorder=3, gid=name, **self.styles[word]))


def keys(cells: Cells, theme: str, ground: Ground, *, counted: bool) -> list[Key]:
    """The legend: what is drawn, nothing else."""
    drawn = {*cells.state.values(), *(state for state, _, _ in cells.commonest.values())}
    found = [Key(look.meaning, look) for word, look in CELLS.items() if word in drawn and look.marker]
    if "varies" in drawn:
        tint = to_rgba(STATES["varies"].colour(theme), VARIES_ALPHA[theme])
        meaning = STATES["varies"].meaning if cells.commonest else "varies"
        meaning += ", n of m declarations" if counted else ""
        found.append(Key(meaning, patch={"facecolor": tint, "edgecolor": VARIES_EDGE[theme], "linewidth": 0.4}))
    if "unknown" in drawn:
        hatch = {
            "facecolor": "none",
            "hatch": UNKNOWN_HATCH,
            "edgecolor": STATES["unknown"].colour(theme),
            "linewidth": 0,
        }
        found.append(Key(STATES["unknown"].meaning if cells.tier == "observed" else "nothing is known", patch=hatch))
    eras = margins.eras_shown(cells)
    if eras:
        found.append(Key("era agreed on: " + ", ".join(eras), bare=True))
    return found
