"""What all figures share: the ground they stand on, text that is measured and literal, legends, captions.

Everything beside the data is placed in points from a corner of the Axes (``pin``), so it keeps its size whatever the
Axes' size is. No text is read as mathematics, and what a reader could not see or what would re-order a line is written
as an escape.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, ScaledTranslation, Transform, blended_transform_factory

from mcplab.look import ALT, GROUNDS, Ground, Look
from mcplab.model import DrawError
from mcplab.told import safe

SANS: Final = "DejaVu Sans"
MONO: Final = "DejaVu Sans Mono"
SMALL: Final = 7.0
"""Points. Nothing is set smaller."""
PAGE: Final = 518.0
"""Points: width of a page's text in landscape or of a wide column, where figures stop growing unless they must."""
LEADING: Final = 1.3


@contextmanager
def page(theme: str) -> Iterator[Ground]:
    """The shipped style on matplotlib's defaults, while drawing only; gives the colours of the ground."""
    if theme not in GROUNDS:
        raise DrawError(f"theme {theme!r} is none of {', '.join(GROUNDS)}")
    interactive = mpl.is_interactive()
    try:
        with style.context(["default", Path(__file__).with_name("mcplab.mplstyle")]):
            yield GROUNDS[theme]
            interactive = mpl.is_interactive()
    finally:
        # The first figure of a session loads its backend, and a notebook's turns interactive drawing on: that must
        # stay, or no later figure would be shown.
        mpl.interactive(interactive)


def new_axes(
    ax: Axes | None, ground: Ground, size: tuple[float, float], box: tuple[float, float, float, float]
) -> Axes:
    """``ax`` itself, or an Axes of a new current figure; ``size`` and ``box`` (left, bottom, width, height) in points.

    An empty current figure, as ``plt.figure()`` leaves it, is taken and brought to size.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.gcf() if plt.get_fignums() and not plt.gcf().axes else plt.figure()
        figure.set_size_inches(size[0] / 72, size[1] / 72)
        left, bottom, width, height = box
        ax = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
        figure.set_facecolor(ground.paper)
    elif ground is GROUNDS["dark"]:
        figure = ax.get_figure(root=True)
        if figure is not None:  # labels stand outside the Axes: they need the dark ground too
            figure.set_facecolor(ground.paper)
    ax.set_facecolor(ground.paper)
    return ax


def extent(ax: Axes) -> tuple[float, float]:
    """Width and height of the Axes in points."""
    box, figure = ax.get_position(), ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    if ax.figure is not figure:  # in a subfigure
        window = ax.get_window_extent()
        return window.width / figure.dpi * 72, window.height / figure.dpi * 72
    return box.width * width * 72, box.height * height * 72


def pin(ax: Axes, x: float, y: float) -> Transform:
    """Points from the corner (``x``, ``y``) of the Axes, which are 0 or 1."""
    figure: Any = ax.figure
    corner: Any = ax.transAxes
    return Affine2D().scale(1 / 72) + figure.dpi_scale_trans + ScaledTranslation(x, y, corner)


# Text ----------------------------------------------------------------------------------------------


@cache
def _glyphs(family: str, bold: bool) -> frozenset[int]:
    font = get_font(findfont(FontProperties(family=family, weight="bold" if bold else "normal")))
    return frozenset(font.get_charmap())


def literal(text: object, *, family: str = SANS, bold: bool = False) -> str:
    """The text as it can be shown: control and format characters and those without a glyph as JSON escapes."""
    known = _glyphs(family, bold)

    def shown(char: str) -> str:
        kind = unicodedata.category(char)
        if ord(char) in known and kind not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and safe(char) == char:
            return char
        code = ord(char)
        if code < 0x10000:
            return f"\\u{code:04x}"
        return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"

    return "".join(map(shown, str(text)))


@lru_cache(maxsize=65536)
def measure(text: str, size: float = SMALL, family: str = SANS, bold: bool = False) -> float:
    """Width in points."""
    if not text:
        return 0.0
    font = FontProperties(family=family, size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def wrap(
    text: str, limit: float, *, size: float = SMALL, family: str = SANS, bold: bool = False, lines: int = 3
) -> list[str]:
    """At most ``lines`` lines no wider than ``limit`` points; what is still too long loses its middle (``…``).

    Lines break after a space or punctuation where one is near, else anywhere.
    """

    def fits(part: str) -> bool:
        return measure(part, size, family, bold) <= limit

    most = 400 * lines  # more never fits, and a name may be a megabyte long
    if len(text) > most:
        text = _without_middle(text, most)
    if fits(text):
        return [text]
    done: list[str] = []
    rest = text
    while rest:
        if fits(rest):
            return [*done, rest]
        if len(done) == lines - 1:
            return [*done, _without_middle(rest, _most(rest, 2, _without_middle, fits))]
        end = _most(rest, 1, _head, fits)
        late = range(end // 2, end)
        soft = max((at for at in late if rest[at] == " "), default=-1)
        soft = soft if soft >= 0 else max((at for at in late if rest[at] in ",;./-_:["), default=-1)
        if soft >= 0 and end < len(rest):
            end = soft if rest[soft] == "[" and soft > 0 else soft + 1
        done.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return done


def _head(text: str, keep: int) -> str:
    return text[:keep].rstrip()


def _without_middle(text: str, keep: int) -> str:
    return f"{text[: keep // 2]}…{text[-(keep - keep // 2) :]}"


def _most(text: str, low: int, shorten: Callable[[str, int], str], fits: Callable[[str], bool]) -> int:
    """How many characters may stay, at least ``low``. Found by halving: a text is slow to measure."""
    high = len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(shorten(text, middle)) else (low, middle - 1)
    return low


def paragraphs(text: str, limit: float, *, size: float = SMALL) -> list[str]:
    """Running text, its own line breaks kept, as lines no wider than ``limit``."""
    lines: list[str] = []
    for part in text.split("\n") if text else ():
        lines += wrap(literal(part), limit, size=size, lines=40)
    return lines


def put(ax: Axes, x: float, y: float, text: str, transform: Transform, **how: Any) -> Text:
    """Text at a place, never clipped, never read as mathematics."""
    how.setdefault("fontsize", SMALL)
    how.setdefault("va", "center_baseline" if "\n" not in text else "center")
    return ax.text(x, y, text, transform=transform, clip_on=False, parse_math=False, **how)


# Title, legend, caption ----------------------------------------------------------------------------


class Key(NamedTuple):
    """One entry of a legend: what is drawn (a look, or the style of a rectangle or line) and what it means."""

    text: str
    look: Look | None = None
    patch: dict[str, Any] = {}  # noqa: RUF012 - never changed
    line: dict[str, Any] = {}  # noqa: RUF012 - never changed
    fade: tuple[float, float, float, float] | None = None
    bare: bool = False


def marker(look: Look, theme: str, size: float, ground: Ground) -> dict[str, Any]:
    """Line2D's keywords for the look's shape in a box of ``size`` points."""
    colour = look.colour(theme)
    bare = look.marker in ("x", "+", "|", "_")
    return {
        "marker": look.marker,
        "markersize": size * look.scale,
        "markeredgecolor": colour,
        "markerfacecolor": colour if look.filled else ground.paper,
        "markeredgewidth": (size * 0.2 if bare else 0.0) if look.filled else max(0.9, size * 0.14),
        "linestyle": "none",
        "color": colour,
    }


def flow(keys: Sequence[Key], width: float) -> list[list[tuple[float, Key]]]:
    """Legend entries in rows no wider than ``width`` points: (x of the entry, entry)."""
    rows: list[list[tuple[float, Key]]] = [[]]
    at = 0.0
    for key in keys:
        need = (0 if key.bare else 16) + measure(key.text, SMALL) + 12
        if at and at + need - 12 > width:
            rows.append([])
            at = 0.0
        rows[-1].append((at, key))
        at += need
    return rows


def legend(ax: Axes, rows: list[list[tuple[float, Key]]], left: float, top: float, theme: str, ground: Ground) -> float:
    """Draw the legend with its first line at ``top`` points from the lower left corner; returns the height used."""
    place = pin(ax, 0, 0)
    pitch = SMALL * 1.6
    for number, row in enumerate(rows):
        y = top - pitch * (number + 0.5)
        for x, key in row:
            x += left
            if key.patch:
                _add(ax, Rectangle((x, y - 4), 11, 8, transform=place, **key.patch))
            if key.fade:
                for n in range(6):
                    tint = (*key.fade[:3], key.fade[3] * (1 - n / 6))
                    _add(ax, Rectangle((x + n * 2, y - 3), 2, 6, transform=place, facecolor=tint))
            if key.line:
                spots = [x + 5.5] if "marker" in key.line else [x, x + 11]
                _add(ax, Line2D(spots, [y] * len(spots), transform=place, **key.line))
            if key.look is not None:
                _add(ax, Line2D([x + 5.5], [y], transform=place, **marker(key.look, theme, 7.5, ground)))
                if key.look.inner:
                    _add(ax, Line2D([x + 5.5], [y], transform=place, **inner(key.look, 7.5, ground)))
            put(ax, x if key.bare else x + 16, y - 0.4, key.text, place, color=ground.ink)
    return pitch * len(rows)


def inner(look: Look, size: float, ground: Ground) -> dict[str, Any]:
    """Line2D's keywords for the small mark in paper colour on top of a look's shape."""
    side = size * look.scale * 0.42
    return {
        "marker": look.inner,
        "markersize": side,
        "markeredgewidth": side * 0.34,
        "markeredgecolor": ground.paper,
        "linestyle": "none",
    }


def _add(ax: Axes, artist: Line2D | Patch) -> None:
    artist.set_clip_on(False)
    ax.add_artist(artist)


def lines_of(ax: Axes, lines: Sequence[str], left: float, top: float, colour: str, **how: Any) -> float:
    """Lines of text below one another from ``top`` points (lower left corner) on; returns the height used."""
    place, pitch = pin(ax, 0, 0), SMALL * LEADING
    for number, line in enumerate(lines):
        put(ax, left, top - pitch * (number + 0.5), line, place, color=colour, **how)
    return pitch * len(lines)


def title_lines(title: str | None, limit: float) -> list[str]:
    """The title wrapped to ``limit`` points."""
    size = mpl.rcParams["axes.titlesize"]
    return [] if not title else wrap(literal(title, bold=True), limit, size=size, bold=True, lines=4)


def set_title(ax: Axes, lines: Sequence[str], left: float, pad: float, ground: Ground) -> None:
    """The title over everything, ``pad`` points above the Axes, starting ``left`` points from its left edge."""
    if lines:
        width, _ = extent(ax)
        ax.set_title(
            "\n".join(lines), loc="left", x=left / width, y=1.0, pad=pad, color=ground.ink, parse_math=False,
            linespacing=1.25,
        )  # fmt: skip


def describe(ax: Axes, sentence: str) -> None:
    """Keep the alternative text with the Axes."""
    setattr(ax, ALT, sentence)


def alt_text(ax: Any) -> str:
    """The one sentence that stands for the chart where it cannot be seen; of a Figure: one for each of its charts."""
    axes = ax.axes if hasattr(ax, "axes") and isinstance(ax.axes, list) else [ax]
    return " ".join(filter(None, (getattr(one, ALT, "") for one in axes)))


def put_row(ax: Axes, x: float, y: float, text: str, colour: str, **how: Any) -> Text:
    """Text ``x`` points from the left edge of the Axes, at ``y`` in data."""
    return put(ax, x, y, text, blended_transform_factory(pin(ax, 0, 0), ax.transData), color=colour, **how)


def fitting(text: str, limit: float, *, bold: bool = False) -> str:
    """One line no wider than ``limit`` points; the middle goes where it is too long."""
    return wrap(literal(text, bold=bold), limit, bold=bold, lines=1)[0]
