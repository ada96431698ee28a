from __future__ import annotations

import base64
import csv
import io
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mcplab import ExportError, MCPLabError, export, publish
from mcplab.look import ALT

SVG = "{http://www.w3.org/2000/svg}"


def _figure(title: str = r"Costs \$5 & <b>") -> Figure:
    figure = Figure()
    ax = figure.subplots()
    ax.plot([0, 1], [1, 0])
    ax.set_title(title, loc="left")
    ax.set_xlabel("roots.listChanged")
    setattr(ax, ALT, "A line that falls from one to zero.")
    return figure


FRAME = pd.DataFrame(
    {
        "client": ["codex", "=HYPERLINK(1)", "a|b\nc <i>", None],
        "n": pd.array([1, -2, None, 4], dtype="Int64"),
        "ok": [True, False, True, False],
        "ts": pd.to_datetime(["2026-11-30T12:00:00.000001Z", None, "2026-11-30T12:00:00Z", None], format="ISO8601"),
    }
)


def compared() -> pd.DataFrame:
    """A comparison whose names would be markup."""
    columns = pd.MultiIndex.from_tuples(
        [("codex", "0.9"), ("codex", "0.10"), ("<script>a_b&", "$x$\x1b[31m")], names=["client", "client_version"]
    )
    rows = [["empty", "object", "varies"], ["absent", "yes", "unknown"]]
    return pd.DataFrame(rows, index=pd.Index(["$", "roots"], name="path"), columns=columns)


def test_figure_to_every_format_and_back(tmp_path: Path) -> None:
    files = export(_figure(), tmp_path / "deep" / "er" / "chart-0.10.48")
    assert [file.name for file in files] == [f"chart-0.10.48.{kind}" for kind in ("svg", "pdf", "png")]
    svg, pdf, png = (file.read_bytes() for file in files)
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert root.findtext(f"{SVG}title") == "Costs $5 & <b>"
    assert root.findtext(f"{SVG}desc") == "A line that falls from one to zero."
    assert "roots.listChanged" in ["".join(text.itertext()) for text in root.iter(f"{SVG}text")], "text stays text"
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf
    assert png.startswith(b"\x89PNG")
    assert b"A line that falls" in png


def test_axes_stand_for_their_figure(tmp_path: Path) -> None:
    figure = _figure()
    (a,) = export(figure, tmp_path / "a.svg")
    (b,) = export(figure.axes[0], tmp_path / "b.svg")
    assert a.read_bytes() == b.read_bytes()


def test_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_export as t; from mcplab import export, publish;"
        "export(t._figure(), sys.argv[1] + '/x'); export(t._figure(), sys.argv[1] + '/f.html');"
        "export(publish(t.compared(), title='T', caption='C'), sys.argv[1] + '/p'); export(t.FRAME, sys.argv[1] + '/x',"
        " formats=['csv', 'md', 'parquet', 'tex', 'html'])"
    )
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code, str(tmp_path / seed), str(Path(__file__).parent)]
        subprocess.run(run, check=True, env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"})
    names = sorted(file.name for file in (tmp_path / "1").iterdir())
    assert names == [
        "f.html",
        "p.html",
        "p.tex",
        "x.csv",
        "x.html",
        "x.md",
        "x.parquet",
        "x.pdf",
        "x.png",
        "x.svg",
        "x.tex",
    ]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_export_twice_and_nothing_of_the_session_changes(tmp_path: Path) -> None:
    figure, before = _figure(), dict(mpl.rcParams)
    first = [file.read_bytes() for file in export(figure, tmp_path / "a")]
    assert first == [file.read_bytes() for file in export(figure, tmp_path / "a")]
    assert dict(mpl.rcParams) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg"], "no temporary file stays"


def test_csv_defuses_formulas_in_text_only(tmp_path: Path) -> None:
    frame = FRAME.assign(**{"+1": ["-x", "@y", "\tz", "\rw"]})
    (file,) = export(frame, tmp_path / "t.csv")
    rows = list(csv.reader(io.StringIO(file.read_bytes().decode(), newline="")))
    assert rows[0] == ["client", "n", "ok", "ts", "'+1"]
    assert rows[1] == ["codex", "1", "True", "2026-11-30T12:00:00.000001Z", "'-x"]
    assert rows[2] == ["'=HYPERLINK(1)", "-2", "False", "", "'@y"], "a negative number stays a number"
    assert rows[3][-1] == "'\tz"
    assert rows[4][-1] == "'\rw"
    assert rows[4][0] == ""
    assert len(rows) == 5


def test_csv_writes_a_comparison_with_its_path_index_and_two_levels_of_columns(tmp_path: Path) -> None:
    columns = pd.MultiIndex.from_tuples([("codex", "0.9"), ("codex", "0.10")], names=["client", "client_version"])
    frame = pd.DataFrame([["empty", "absent"]], index=pd.Index(["$"], name="path"), columns=columns)
    frame.attrs["evidence"] = {("$", ("codex", "0.9")): [("t", 0)]}
    files = export(frame, tmp_path / "c", formats=["csv", "parquet"])
    assert files[0].read_text() == "path,codex 0.9,codex 0.10\n$,empty,absent\n"
    back = pd.read_parquet(files[1])
    assert list(back.columns) == ["path", "codex 0.9", "codex 0.10"]
    assert back.iloc[0].tolist() == ["$", "empty", "absent"]
    assert frame.attrs["evidence"], "the frame that was given is left as it was"


def test_markdown_is_inert(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a|b": ["x|y\r\nz", "<script>&", "[a](http://b) `c` *d*", "_e_ io_f $g$ ~~h~~ \\"]})
    (file,) = export(frame, tmp_path / "t.md")
    assert file.read_text().splitlines() == [
        "| a\\|b |",
        "| --- |",
        "| x\\|y<br>z |",
        "| &lt;script&gt;&amp; |",
        "| \\[a](http://b) \\`c\\` \\*d\\* |",
        "| \\_e\\_ io_f <span>$</span>g<span>$</span> \\~\\~h\\~\\~ \\\\ |",
    ]


def test_tex_and_html_escape(tmp_path: Path) -> None:
    frame = pd.DataFrame({"100%": ['a_b & $c$ # {d} ~^ "', "<b>\n", "[9cm]", "*"]})
    tex, page = (file.read_text() for file in export(frame, tmp_path / "t", formats=["tex", "html"]))
    assert "100\\% \\\\" in tex
    assert "a\\_b \\& \\$c\\$ \\# \\{d\\} \\textasciitilde{}\\textasciicircum{}" in tex
    assert "\n{[}9cm] \\\\\n{*} \\\\\n" in tex, "no argument of the line end before it"
    assert "<td>&lt;b&gt;\n</td>" in page
    assert '<th scope="col">100%</th>' in page


def test_html_needs_no_page_that_names_its_coding(tmp_path: Path) -> None:
    (page,) = export(pd.DataFrame({"é": ["○ 数"]}), tmp_path / "t.html")
    assert page.read_bytes().isascii()
    assert ET.fromstring(page.read_bytes()).findtext(".//td") == "○ 数"
    assert ET.fromstring(page.read_bytes()).findtext(".//th") == "é"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(ExportError, match="a device or a pipe"):
        export(FRAME, tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("what", "name", "formats", "says"),
    [
        (FRAME, "t.svg", None, "csv, md, parquet, tex, html"),
        (FRAME, "t.xlsx", None, "csv"),
        (FRAME, "t", "docx", "cannot export as docx"),
        (FRAME, "t", [], "cannot export as nothing"),
        (_figure(), "t.csv", None, "svg, pdf, png"),
        ({"a": 1}, "t.csv", None, "cannot export dict"),
        (FRAME, "", None, "is a folder; name a file, as "),
        (FRAME, "-", None, "names no file; name a file, as NAME.csv"),
        (FRAME, ".", None, "is a folder; name a file, as "),
        (FRAME, "nul\0byte.csv", None, "cannot write"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, what: object, name: str, formats: object, says: str) -> None:
    target = tmp_path / name if name else tmp_path / "folder.csv"
    if not name:
        target.mkdir()
    with pytest.raises(ExportError) as caught:
        export(what, target, formats=formats)  # type: ignore[arg-type]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_path_through_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ExportError, match=r"cannot write .*choose another path"):
        export(FRAME, tmp_path / "plain" / "t.csv")


def test_failure_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = export(FRAME, tmp_path / "t.csv")
    old = file.read_bytes()

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ExportError, match="No space left"):
        export(FRAME.head(1), file)
    assert file.read_bytes() == old
    assert list(tmp_path.iterdir()) == [file]


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    (tmp_path / "by-hand").write_text("")
    (file,) = export(FRAME, tmp_path / "t.csv")
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((tmp_path / "by-hand").stat().st_mode)


def test_parquet_names_what_it_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="two columns are called 'a'"):
        export(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(ExportError, match="use csv"):
        export(pd.DataFrame({"a": [1, "x"]}), tmp_path / "t.parquet")


def test_a_figure_as_html_holds_the_svg_and_says_what_it_shows(tmp_path: Path) -> None:
    (page,) = export(_figure(), tmp_path / "f.html")
    (svg,) = export(_figure(), tmp_path / "f.svg")
    root = ET.fromstring(page.read_text(encoding="utf-8"))
    assert root.tag == "figure"
    picture = root.find("img")
    assert picture is not None
    assert picture.get("alt") == "A line that falls from one to zero."
    assert base64.b64decode(picture.get("src", "").partition(",")[2]) == svg.read_bytes()
    assert root.findtext("figcaption") == "Costs $5 & <b>"


def test_a_comparison_for_a_paper(tmp_path: Path) -> None:
    page, tex = (
        file.read_text(encoding="utf-8")
        for file in export(publish(compared(), title="Who <b>", caption="From 3 captures."), tmp_path / "p")
    )
    for text in ("Who &lt;b&gt;", "&lt;script&gt;a_b&amp;", r"$x$\x1b[31m", "From 3 captures.", "○ empty", "▲ yes"):
        assert text in page, text
    assert "<script" not in page
    assert "\x1b" not in page + tex
    assert "null" not in page.partition("<table")[2], "the legend names what occurs"
    words = export(publish(compared(), words=True), tmp_path / "w.tex")[0].read_text(encoding="utf-8")
    assert "0.9 & empty & absent" in words
    assert words.startswith("% needs booktabs and caption")
    assert r"\textless{}script\textgreater{}a\_b\&" in words
    assert words.isascii(), "pdfLaTeX has no glyphs for the symbols"
    starred = export(publish(pd.DataFrame({"a": ["*b"]})), tmp_path / "s.tex")[0].read_text(encoding="utf-8")
    assert "\n{*}b " in starred, "no argument of the line end before it"

    twice = compared().rename(index={compared().index[0]: compared().columns.names[0]})
    assert "○" in publish(twice).as_raw_html(), "a capability may be called as a column is"

    plain = export(publish(FRAME, caption="c"), tmp_path / "t.html")[0].read_text(encoding="utf-8")
    assert "a|b\\nc &lt;i&gt;" in plain


def test_without_great_tables_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "great_tables", None)
    with pytest.raises(MCPLabError, match=r"needs great-tables: pip install 'mcplab\[lab\]'"):
        publish(compared())
