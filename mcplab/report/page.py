"""Pages of a report: one file each, nothing fetched, nothing that runs, every text escaped."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from xml.etree import ElementTree

from mcplab import __version__
from mcplab.told import Told, count, safe

if TYPE_CHECKING:
    from mcplab.report.execute import Lesson
    from mcplab.traces import Traces

PREVIEW: Final = 40
"""Rows of a table that the index shows."""

AGAIN: Final = (
    "Run it again on other traces: "
    '<code>make report TRACES="file folder glob"</code> or <code>mcplab report FILE...</code>'
)

OBSERVED: Final = "observed.json"
"""The records of all instances, beside the page."""

_WORDS: Final = 160
"""Characters of a cell that the index shows."""

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1a1a1a; --muted: #5c5c5c; --paper: #fff; --rule: #c4c4c4; --band: #f4f5f7;
  --link: #0a58a8; --bad: #a12d1d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --muted: #a8a8a8; --paper: #15181d; --rule: #4a4f57;
  --band: #1e2229; --link: #7cc7f0; --bad: #ff8a6d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 76rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .2rem 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
p, ul, ol { max-width: 46rem; overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre, .highlight { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .86em; }
pre { overflow-x: auto; padding: .6rem .8rem; background: var(--band); border-radius: 4px; line-height: 1.4; }
table { border-collapse: collapse; font-size: .86rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--rule); }
th { color: var(--muted); font-weight: 600; }
td { overflow-wrap: break-word; max-width: 30rem; }
.scroll { overflow-x: auto; }
.scroll table { width: max-content; }
figure { margin: 1rem 0 2rem; }
figure img { display: block; width: 100%; max-width: 64rem; height: auto; background: #fff;
  border: 1px solid var(--rule); border-radius: 4px; padding: .5rem; }
@media (max-width: 44rem) { figure { overflow-x: auto; } figure img { width: 44rem; max-width: none; } }
figcaption { color: var(--muted); font-size: .9rem; max-width: 52rem; margin-top: .4rem; }
.files { font-size: .9rem; margin: .3rem 0; }
.bad { color: var(--bad); }
.muted, footer { color: var(--muted); font-size: .9rem; }
"""

NOTEBOOK_STYLE: Final = """
.jp-Cell, .cell { margin: .6rem 0; }
.input_prompt, .prompt, .output_prompt, .jp-InputPrompt, .jp-OutputPrompt, .anchor-link { display: none; }
.input_area, .highlight { background: var(--band); border-radius: 4px; }
.output_area { overflow-x: auto; }
.output_area img, .output_png img { max-width: 100%; height: auto; background: #fff; }
@media (max-width: 44rem) { .output_area img, .output_png img { max-width: none; } }
.dataframe { border: 0; }
.output_stdout pre, .output_stderr pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.output_stderr pre { color: var(--muted); }
.output_error pre { color: var(--bad); }
.highlight .c1, .highlight .c { color: var(--muted); font-style: italic; }
.highlight .k, .highlight .kn, .highlight .ow, .highlight .kc { font-weight: 600; }
.highlight .s1, .highlight .s2, .highlight .mi, .highlight .mf { color: #a35b00; }
@media (prefers-color-scheme: dark) { .highlight .s1, .highlight .s2, .highlight .mi, .highlight .mf {
  color: #e6a85c; } }
"""


def _policy(styles: str) -> str:
    """Nothing may load or run; pictures are part of the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src {styles}; base-uri 'none'; form-action 'none'"
    )  # fmt: skip


def _page(title: str, body: str, style: str, policy: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _text(text: object) -> str:
    return html.escape(safe(text))


def _hash(style: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


# Executed notebooks --------------------------------------------------------------------------------


def notebook_page(title: str, body: str) -> str:
    """A page around a notebook's HTML. Tables in its outputs bring styles of their own; scripts do not run."""
    back = '<p class="files"><a href="../index.html">all of this report</a></p>'
    return _page(title, back + body, STYLE + NOTEBOOK_STYLE, _policy("'unsafe-inline'"))


# The index -----------------------------------------------------------------------------------------


def index(
    traces: Traces, about: Told, lessons: Sequence[Lesson], folder: Path, outputs: Sequence[Path], method: str = ""
) -> str:
    """The page that shows everything: what was read, what could not be, notebooks, charts, tables, the method."""
    body = [
        "<header><h1>What clients and servers declare, and how they talk</h1>",
        f"<p>{_text(about.blocks[0])}</p></header>\n<main>",
        _failures(traces),
        _notebooks(lessons),
        _charts(folder, outputs),
        _tables(folder, outputs),
        _method(method),
        f"</main>\n<footer><p>mcplab {_text(__version__)}. {AGAIN}</p></footer>",
    ]
    return _page("mcplab report", "\n".join(filter(None, body)), STYLE, _policy(_hash(STYLE)))


def _failures(traces: Traces) -> str:
    if not len(traces.failed):
        return ""
    rows = zip(traces.failed["file"], traces.failed["error"], strict=True)
    head = f"{count(len(traces.failed), 'file')} could not be read"
    return (
        f'<section id="failed"><h2 class="bad">{head}</h2>'
        + _table(["file", "error"], [[str(file), str(error)] for file, error in rows])
        + '<p class="muted">Everything below comes from the others.</p></section>'
    )


def _notebooks(lessons: Sequence[Lesson]) -> str:
    items = []
    for lesson in lessons:
        page, source = (_href(name) for name in sorted(lesson.files))
        error = f'<br><span class="bad">stopped: {_text(lesson.error)}</span>' if lesson.error else ""
        items.append(
            f'<li><a href="{page}">{_text(lesson.title)}</a> '
            f'<span class="muted">(<a href="{source}">{_text(lesson.name)}.ipynb</a>)</span>{error}</li>'
        )
    return f'<section id="notebooks"><h2>Notebooks, as run on these captures</h2><ul>{"".join(items)}</ul></section>'


def _method(text: str) -> str:
    """The paragraph for a write-up, and the records behind all of it."""
    if not text:
        return ""
    return (
        f'<section id="method"><h2>Method</h2><p>{_text(text)}</p><p class="files">A record an instance, for machines: '
        f'<a href="{OBSERVED}" download>{OBSERVED}</a></p></section>'
    )


def _href(name: str) -> str:
    return html.escape(quote(name))


def _charts(folder: Path, outputs: Sequence[Path]) -> str:
    figures = []
    for file in outputs:
        if file.suffix == ".svg":
            title, alt = _described(file)
            data = base64.b64encode(file.read_bytes()).decode()
            figures.append(
                f'<figure id="{_text(file.stem)}"><h3>{_text(_heading(file))}</h3>'
                f'<img alt="{_text(alt or title or file.stem)}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{_text(alt)}</figcaption>{_links(folder, outputs, file)}</figure>"
            )
    return f'<section id="charts"><h2>Charts</h2>{"".join(figures)}</section>' if figures else ""


def _heading(file: Path) -> str:
    return re.sub(r"[-_]+", " ", file.stem).capitalize()


def _described(svg: Path) -> tuple[str, str]:
    """Title and alternative text, as ``export`` puts them into the file."""
    try:
        root = ElementTree.parse(svg).getroot()
    except ElementTree.ParseError:
        return "", ""
    found = (root.find(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc"))
    title, alt = ((element.text or "") if element is not None else "" for element in found)
    return " ".join(title.split()), " ".join(alt.split())


def _links(folder: Path, outputs: Sequence[Path], file: Path) -> str:
    same = [other for other in outputs if other.parent == file.parent and other.stem == file.stem]
    links = " ".join(
        f'<a href="{_href(other.relative_to(folder).as_posix())}" download>{_text(other.suffix[1:])}</a>'
        for other in same
    )
    return f'<p class="files">{_text(file.stem)}: {links}</p>'


def _tables(folder: Path, outputs: Sequence[Path]) -> str:
    parts = []
    for file in outputs:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as stream:
                header, *rows = list(csv.reader(stream)) or [[]]
            more = f'<p class="muted">{PREVIEW} of {len(rows)} rows</p>' if len(rows) > PREVIEW else ""
            shown = [[_short(cell) for cell in row] for row in rows[:PREVIEW]]
            parts.append(f'<h3 id="table-{_text(file.stem)}">{_text(_heading(file))}</h3>{_table(header, shown)}{more}')
            parts.append(_links(folder, outputs, file))
    return f'<section id="tables"><h2>Tables</h2>{"".join(parts)}</section>' if parts else ""


def _short(cell: str) -> str:
    return cell if len(cell) <= _WORDS else f"{cell[: _WORDS - 1]}…"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
