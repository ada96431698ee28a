"""A trace that means harm, in a notebook and on the report's page: nothing runs, nothing is asked of anywhere else."""

from __future__ import annotations

from pathlib import Path

import hostile
import nbformat
import pytest
from laboratory import Watched, until
from playwright.sync_api import Locator, expect

from mcplab import report
from mcplab.data import notebooks_dir
from mcplab.report.execute import find, parametrized

NAMES = ("02-declarations", "03-timeline")


def harmed(watched: Watched) -> list[str]:
    """What a text of the trace has brought about: a dialog, a request, an error, a title, something of its own."""
    found = watched.take_problems()
    if "harm" in watched.page.title():
        found.append("a script set the title")
    active = "img[src*='evil'], [onerror], [onload], [onmouseover], iframe[src*='evil'], a[href^='javascript:'], a[href*='evil']"
    found += watched.page.locator(active).evaluate_all("found => found.map(one => one.outerHTML.slice(0, 200))")
    return found


def opened(panel: Locator) -> bool:
    """Click the first request of those listed: is its text there? The list may still be that of another instance."""
    events = panel.locator(".mcplab-events select")
    at = next((n for n, label in enumerate(events.locator("option").all_inner_texts()) if "request" in label), None)
    if at is None:
        return False
    events.select_option(index=at)
    try:
        expect(panel.locator("pre")).to_contain_text("jsonrpc")
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_in_a_notebook(lab, name):
    traces = [str(file) for file in hostile.write(lab.folder / "hostile")]
    lesson = next(one for one in find(notebooks_dir()) if one.name == name)
    notebook = parametrized(lesson.notebook, {"TRACES": traces, "OUT": "build/hostile"})
    nbformat.write(notebook, lab.folder / f"hostile-{name}.ipynb")
    with lab.lesson(f"hostile-{name}") as shown:
        assert shown.faults() == []
        assert hostile.AWAY in shown.node.inner_text()  # it is there, as text
        if name.startswith("03"):
            panel = shown.cell("panel").locator(".mcplab-panel")
            instances = panel.locator(".widget-dropdown select").nth(1)
            count = instances.locator("option").count()
            assert count > 1
            for at in sorted({1, count // 2, count - 1}):
                instances.select_option(index=at)
                until(lambda: opened(panel), "text of a request")
        shown.screens("light")
        assert harmed(lab) == []


def test_on_the_page_of_a_report(browser, house):
    notebooks = house / "some"
    notebooks.mkdir()
    for name in NAMES:
        (notebooks / f"{name}.ipynb").write_bytes((notebooks_dir() / f"{name}.ipynb").read_bytes())
    traces = [str(file) for file in hostile.write(house / "hostile")]
    done = report.build(traces, house / "report", notebooks=notebooks)
    assert done.complete, done.summary
    for page in [done.index, *(file for file in done.files if file.suffix == ".html" and "notebooks" in file.parts)]:
        shown = Watched(browser, Path(page).absolute().as_uri())
        try:
            assert hostile.AWAY in shown.page.inner_text("body")
            shown.screen(f"hostile-report-{Path(page).stem}")
            assert harmed(shown) == []
        finally:
            shown.page.close()
