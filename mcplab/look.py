"""One visual language: what a state or an activity looks like, in charts, tables, panels and terminals.

Each has a shape, a colour and a word, and any one of the three is enough. Colours are those of Okabe and Ito
("Color Universal Design", 2008), or a lighter shade of the same hue where the ground is dark.
Pure data: nothing here draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Look(NamedTuple):
    """How one word of the vocabulary is shown.

    ``symbol`` is for running text and tables, ``marker`` matplotlib's code for the same shape, ``filled`` whether the
    shape is solid or an outline, ``scale`` its diameter as a part of the largest one, ``light`` and ``dark`` its
    colour on a light and on a dark ground, ``sgr`` the code of the nearest terminal colour, ``inner`` a second marker
    that is drawn on the first in the colour of the paper.
    """

    word: str
    symbol: str
    meaning: str
    marker: str
    filled: bool
    scale: float
    light: str
    dark: str
    sgr: str
    inner: str = ""

    def colour(self, theme: str = "light") -> str:
        """The colour on the ground ``theme`` names: ``light`` or ``dark``."""
        return self.dark if theme == "dark" else self.light


_BLUE, _GREEN, _VERMILION, _PURPLE, _GREY = "#0072B2", "#009E73", "#D55E00", "#CC79A7", "#999999"
_BLUE_D, _GREEN_D, _VERMILION_D, _PURPLE_D, _GREY_D = "#56B4E9", "#2BBD90", "#FF8A3D", "#E3A3C6", "#8A8A8A"


def _table(*looks: Look) -> Mapping[str, Look]:
    return MappingProxyType({look.word: look for look in looks})


STATES: Final = _table(
    Look("absent", "·", "not declared", "o", True, 0.22, _GREY, _GREY_D, "2"),
    Look("null", "∅", "null", "P", False, 0.95, _VERMILION, _VERMILION_D, "33"),
    Look("empty", "○", "{}: declared, no members", "o", False, 0.9, _BLUE, _BLUE_D, "34"),
    Look("object", "●", "declared, with members", "o", True, 0.9, _BLUE, _BLUE_D, "34"),
    Look("true", "■", "true", "s", True, 0.82, _GREEN, _GREEN_D, "32"),
    Look("false", "×", "false", "x", True, 0.8, _VERMILION, _VERMILION_D, "33"),
    Look("value", "◆", "string, number or array", "D", True, 0.75, _PURPLE, _PURPLE_D, "35"),
    Look("varies", "~", "varies: the commonest state is drawn", "", True, 1.0, "#F0E442", "#F0E442", "93"),
    Look("unknown", "?", "no declaration captured", "", True, 1.0, _GREY, _GREY_D, "2"),
)
"""State of a capability path -> its look. ``varies`` and ``unknown`` are grounds of a cell, not markers."""

ANSWERS: Final = _table(
    Look("yes", "▲", "yes, it says", "^", True, 0.88, _GREEN, _GREEN_D, "32"),
    Look("no", "–", "no, it says", "_", True, 0.85, _VERMILION, _VERMILION_D, "33"),
)
"""Answer of a tier that is no message (``exercised``, ``read``, ``listed``) -> its look."""

CELLS: Final[Mapping[str, Look]] = MappingProxyType({**STATES, **ANSWERS})
"""Every word that a cell of a comparison may hold -> its look."""

VARIES_ALPHA: Final = {"light": 0.45, "dark": 0.28}
"""Opacity of the ground that marks ``varies``."""

VARIES_EDGE: Final = {"light": "#BFAE00", "dark": "#A89C2E"}
"""Its outline, which keeps it apart from other tints where colour is lost."""

UNKNOWN_HATCH: Final = "////"
"""Hatch of a cell that marks ``unknown``."""

ACTIVITIES: Final = _table(
    Look("none", "·", "nothing seen", "o", True, 0.2, _GREY, _GREY_D, "2"),
    Look("ping", "●", "ping", "o", True, 0.45, _GREEN, _GREEN_D, "32"),
    Look("notification", "●", "notification", "o", True, 0.8, "#3A92C8", "#7CC7F0", "96"),
    Look("response", "▼", "response", "v", True, 0.95, _BLUE, "#4FA3E0", "94"),
    Look("request", "◆", "request", "D", True, 0.8, "#B87800", "#E69F00", "93"),
    Look("disabled", "▽", "disabled", "v", False, 0.95, "#767676", "#A0A0A0", "94"),
    Look("error", "●", "error", "o", True, 1.15, "#C8321F", "#FF6A4D", "91", inner="x"),
)
"""Activity -> its look. An error is a red ●, as people know it; on a chart, which may be printed in grey, crossed."""


class Ground(NamedTuple):
    """Colours of everything that is no data: paper, text, secondary text, rules, bands."""

    paper: str
    ink: str
    muted: str
    rule: str
    band: str


GROUNDS: Final[Mapping[str, Ground]] = MappingProxyType(
    {
        "light": Ground("#FFFFFF", "#1A1A1A", "#5C5C5C", "#C4C4C4", "#F4F5F7"),
        "dark": Ground("#15181D", "#E8E8E8", "#A8A8A8", "#4A4F57", "#1E2229"),
    }
)


def symbol(word: str) -> str:
    """The text symbol of a cell's word; a word that is none is given back, so that nothing is hidden."""
    look = CELLS.get(word)
    return word if look is None else look.symbol


def legend(table: Mapping[str, Look] = STATES) -> str:
    """One line of text that explains the symbols: ``· absent  ∅ null  ○ empty ...``."""
    return "  ".join(f"{look.symbol} {look.word}" for look in table.values())


ALT: Final = "mcplab_alt"
"""Attribute of an Axes that carries its alternative text: one sentence for who cannot see the chart."""
