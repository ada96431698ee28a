"""Lanes of a timeline with more events than can be told apart: how many of each kind in each moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import StepPatch

from mcplab.look import ACTIVITIES as LOOKS
from mcplab.look import Ground
from mcplab.model import ACTIVITIES
from mcplab.plots.lanes import points
from mcplab.plots.paper import Key
from mcplab.plots.scene import Scene

BINS: Final = 240
TALL: Final = 22.0
"""Points: height of one side of a lane."""
_ORDER: Final = ("request", "response", "notification", "ping", "disabled", "none", "error")
_HATCH: Final = {"response": "////", "notification": "\\\\\\\\", "ping": "...."}


def counts(scene: Scene, lane: int, side: int, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Activity -> how many messages of one side of a lane lie in each bin."""
    mine = (scene.lane == lane) & (scene.side == side) & ~np.isnan(scene.x)
    found = {}
    for word in _ORDER:
        x = scene.x[mine & (scene.activity == ACTIVITIES.index(word))]
        if len(x):
            found[word] = np.histogram(x, edges)[0]
    return found


def _fill(word: str, theme: str, ground: Ground) -> dict[str, Any]:
    colour = to_rgba(LOOKS[word].colour(theme), 0.85)
    return {"facecolor": colour, "edgecolor": ground.paper, "linewidth": 0, "hatch": _HATCH.get(word)}


def keys(words: Collection[str], theme: str, ground: Ground) -> list[Key]:
    """The legend's entries: the fill of the steps of each of these activities."""
    found = [
        Key(LOOKS[word].meaning, patch=_fill(word, theme, ground)) for word in reversed(ACTIVITIES) if word in words
    ]
    return [Key("heights:", bare=True), *found] if found else []


def draw(
    ax: Axes, scene: Scene, lane: int, line: float, edges: np.ndarray, theme: str, ground: Ground
) -> tuple[int, set[str]]:
    """Stacked steps above and below the lane's line; returns the tallest bin and the activities drawn.

    Both sides have the same scale. A bin with an error is marked whatever its height.
    """
    sides = {side: counts(scene, lane, side, edges) for side in (1, -1)}
    peak = max((int(sum(parts.values()).max()) for parts in sides.values() if parts), default=0)  # type: ignore[union-attr]
    seen: set[str] = set()
    middle = (edges[:-1] + edges[1:]) / 2
    for side, parts in sides.items():
        floor = np.zeros(len(edges) - 1)
        for word, number in parts.items():
            top = floor + number
            steps = StepPatch(
                line - side * top * TALL / peak, edges, baseline=line - side * floor * TALL / peak,  # type: ignore[arg-type]

                gid=f"density:{lane}:{side}:{word}", zorder=2, **_fill(word, theme, ground),
            )  # fmt: skip
            ax.add_artist(steps)
            floor = top
            seen.add(word)
        if "error" in parts:
            at = np.flatnonzero(parts["error"])
            spots = [(float(middle[n]), float(line - side * (floor[n] * TALL / peak + 4))) for n in at]
            points(ax, "error", spots, 5.0 if len(at) <= 60 else 3.5, theme, ground, f"marks:{lane}:{side}:error")
    extra = (scene.event_lane == lane) & (scene.event_activity == ACTIVITIES.index("error")) & ~np.isnan(scene.event_x)
    if extra.any():
        at = np.flatnonzero(np.histogram(scene.event_x[extra], edges)[0])
        points(ax, "error", [(float(middle[n]), line) for n in at], 5.0, theme, ground, f"marks:{lane}:0:error")
        seen.add("error")
    return peak, seen
