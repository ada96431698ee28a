"""Text on figures: wrapped to what fits, measured seldom, nothing of a caption lost."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import v4

from mcplab.plots import paper
from mcplab.report.execute import execute

WORDS = st.text("abcim .,-_/[WM", min_size=1, max_size=60)


@given(WORDS, st.floats(10, 120), st.integers(1, 3))
def test_lines_fit_and_no_longer_one_would(text: str, limit: float, lines: int) -> None:
    done = paper.wrap(text, limit, lines=lines)
    assert len(done) <= lines
    assert all(paper.measure(line) <= limit or len(line) <= 3 for line in done)
    if "…" not in "".join(done):
        assert "".join(done).replace(" ", "") == text.replace(" ", "")


def test_a_line_loses_as_little_of_its_middle_as_it_must() -> None:
    text = "".join(chr(97 + n % 26) for n in range(90))
    line = paper.fitting(text, 100)
    head, tail = line.split("…")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert abs(len(head) - len(tail)) <= 1
    assert paper.measure(line) <= 100 < paper.measure(text[: len(head) + 1] + "…" + text[-len(tail) - 1 :])


def test_a_name_as_long_as_a_book_is_measured_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = paper.measure
    monkeypatch.setattr(paper, "measure", lambda text, *rest: (asked.append(len(text)), real(text, *rest))[1])
    assert "…" in paper.fitting("N" * 1_000_000, 200)
    paper.wrap("longword" * 1_000, 200, lines=3)
    assert len(asked) < 80
    assert max(asked) <= 1_201


def test_a_long_caption_keeps_every_word() -> None:
    words = [f"word{n}" for n in range(300)]
    assert " ".join(paper.paragraphs(" ".join(words), 400)).split() == words


def test_every_chart_of_a_fresh_notebook_is_shown(tmp_path: Path) -> None:
    notebook = v4.new_notebook(cells=[v4.new_code_cell(code) for code in (
        "from mcplab import make_trace, plots\ntrace = make_trace([('client', {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize'})])",
        "ax = plots.sequence(trace.messages)",
        "ax = plots.timeline(trace.messages)",
        "for _ in range(1):\n    ax = plots.negotiation(trace.messages)",
    )])  # fmt: skip
    assert execute(notebook, tmp_path) == ""
    shown = [["image/png" in out.get("data", {}) for out in cell.outputs] for cell in notebook.cells]
    assert shown == [[], [True], [True], [True]]


def test_a_session_stays_as_interactive_as_it_was() -> None:
    for wanted in (True, False):
        with mpl.rc_context({"interactive": wanted}):
            with pytest.raises(ZeroDivisionError), paper.page("light"):
                _ = 1 / 0
            with paper.page("light"):
                pass
            assert mpl.is_interactive() is wanted
