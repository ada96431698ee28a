"""Text and tables for a reader."""

from __future__ import annotations

import pandas as pd
import pytest

from mcplab.told import LONG, Told, count, safe, series, table_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb", "a\\nb"),
        ("left\u202eright", "left\\u202eright"),
        ("half\ud83d", "half\\ud83d"),
    ],
)
def test_what_would_act_on_a_terminal_is_shown_as_an_escape(text, shown):
    assert safe(text) == shown


def test_a_table_escapes_and_breaks_only_long_words():
    word = "x" * (LONG + 1)
    page = table_html(pd.DataFrame({"<b>": ["<script>", None], "long": [word, "short"]}))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page
    assert page.count("overflow-wrap:anywhere") == 2
    assert "None" not in page
    assert "nan" not in page


def test_an_empty_table_says_so():
    assert "no rows" in table_html(pd.DataFrame({"a": []}))


def test_counts_and_series():
    assert [count(n, "capture") for n in (0, 1, 2, 1000)] == ["0 captures", "1 capture", "2 captures", "1,000 captures"]
    assert count(2, "entry", "entries") == "2 entries"
    assert "".join(series(["a", "b", "c"])) == "a, b and c"
    assert "".join(series(["a", "b", "c"], most=1)) == "a and 2 more"


def test_told_is_text_where_there_is_no_browser():
    told = Told("One:", pd.DataFrame({"a": [1]}))
    assert "One:" in repr(told)
    assert "<table>" in told._repr_html_()


def test_names_of_columns_may_break_and_dates_may_not():
    page = Told(pd.DataFrame({"client_version": ["a-b"], "since": ["2025-11-25"]}))._repr_html_()
    assert ">client_<wbr>version</th>" in page
    assert 'white-space:nowrap">2025-11-25</td>' in page
    assert 'white-space:nowrap">a-b' not in page
