"""Bars come where something takes long, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from mcplab import make_trace, progress
from mcplab.rulebook import engine


class Terminal(io.StringIO):
    """What bars are written to."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put one in place of stderr; no fixture, as pytest puts its own there before a test begins."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "DELAY", 0)
    return made


PING = ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"})


def test_who_wants_none_and_few_items_get_no_bar():
    items = [1, 2, 3]
    assert progress.over(items, "doing", "thing", False) is items
    assert progress.over(items, "doing", "thing", least=4) is items


def test_who_wants_one_sees_it_from_the_start_and_it_stays(capsys: pytest.CaptureFixture[str]):
    assert list(progress.over([1, 2, 3], "doing", "thing", True)) == [1, 2, 3]
    assert "doing: 100%" in capsys.readouterr().err


def test_what_is_over_in_a_second_shows_none(capsys: pytest.CaptureFixture[str]):
    assert list(progress.over([1, 2, 3], "doing", "thing")) == [1, 2, 3]
    with progress.bytewise(3, "reading", least=1) as done:
        done(3)
    assert capsys.readouterr().err.strip() == ""


def test_a_file_or_a_pipe_gets_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "DELAY", 0)
    assert list(progress.over([1, 2, 3], "doing", "thing")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_bytes_are_counted_where_there_are_many(monkeypatch: pytest.MonkeyPatch):
    terminal = terminal_of(monkeypatch)
    with progress.bytewise(999_999, "reading", least=1_000_000) as done:
        done(999_999)
    assert terminal.getvalue() == ""
    with progress.bytewise(2_000_000, "reading", least=1_000_000) as done:
        done(2_000_000)
        assert done.__self__.n == 2_000_000  # type: ignore[attr-defined]
    assert "0.00/2.00M" in terminal.getvalue()


def test_judging_a_big_trace_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    terminal = terminal_of(monkeypatch)
    assert len(make_trace([PING] * 20).findings)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(engine, "SHOWN", 20)
    assert len(make_trace([PING] * 20).findings)
    assert "judging" in terminal.getvalue()


def test_tqdm_disable_holds_in_notebooks_too(monkeypatch: pytest.MonkeyPatch):
    items = list(range(9))
    assert progress.over(items, "doing", "thing") is not items
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert progress.over(items, "doing", "thing") is items
    with progress.bytewise(9, "reading", least=1) as done:
        assert not hasattr(done, "__self__")
