from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from mcplab import look, model


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _contrast(a: str, b: str) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_every_word_of_the_vocabulary_has_a_look_and_no_other() -> None:
    assert set(look.STATES) == set(model.CELL_STATES)
    assert set(look.ACTIVITIES) == set(model.ACTIVITIES)


def test_shape_alone_tells_states_apart() -> None:
    """In grey only shape, fill and size are left."""
    drawn = [s for s in look.STATES.values() if s.marker]
    assert len({(s.marker, s.filled, s.scale < 0.5) for s in drawn}) == len(drawn)
    assert len({s.symbol for s in look.STATES.values()}) == len(look.STATES)


def test_shape_alone_tells_activities_apart_on_a_chart() -> None:
    shapes = {(a.marker, a.filled, a.inner, a.scale) for a in look.ACTIVITIES.values()}
    assert len(shapes) == len(look.ACTIVITIES)
    dots = sorted(a.scale for a in look.ACTIVITIES.values() if a.marker == "o" and not a.inner)
    assert all(big / small > 1.6 for small, big in itertools.pairwise(dots)), "sizes must differ visibly"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_stand_out_from_their_ground(theme: str) -> None:
    paper = look.GROUNDS[theme].paper
    for table in (look.STATES, look.ACTIVITIES):
        for entry in table.values():
            least = 2.5 if entry.word in ("absent", "none", "unknown") else 3.0
            if entry.word != "varies":
                assert _contrast(entry.colour(theme), paper) >= least, (entry.word, theme)
    assert _contrast(look.GROUNDS[theme].ink, paper) >= 7
    assert _contrast(look.GROUNDS[theme].muted, paper) >= 4.5


def test_symbol_and_legend() -> None:
    assert look.symbol("empty") == "○"
    assert look.symbol("no such state") == "no such state"
    assert look.legend().startswith("· absent  ∅ null")


def test_import_is_light() -> None:
    code = "import sys, mcplab.look; print([m for m in ('pandas', 'matplotlib', 'numpy') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"
