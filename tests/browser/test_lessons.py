"""Every notebook in JupyterLab, run with Run All, in both themes, as a person sees it and uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from laboratory import LIMIT, NAMES, Lab, Lesson, until
from playwright.sync_api import expect

from mcplab.data import traces_dir
from mcplab.traces import read_trace

expect.set_options(timeout=LIMIT * 1000)


def seen(lesson: Lesson, *, figures: bool = True) -> None:
    """It ran, all of it is there, and it can be read in the light and in the dark."""
    found = lesson.faults()
    if figures and not lesson.node.locator(".jp-RenderedImage img").count():
        found.append("no figure")
    for theme in ("light", "dark"):
        lesson.lab.theme(theme)
        lesson.screens(theme)
        found += [f"{theme}: {one}" for one in lesson.pale()]
    lesson.lab.theme("light")
    assert found + lesson.lab.take_problems() == []


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("03", "05"))])
def test_a_lesson(lab, name):
    with lab.lesson(name) as lesson:
        seen(lesson, figures=not name.startswith("01"))


def test_the_timeline_and_its_panel(lab):
    with lab.lesson("03-timeline") as lesson:
        seen(lesson)
        panel = lesson.cell("panel").locator(".mcplab-panel")
        trace, instance = (panel.locator(".widget-dropdown select").nth(n) for n in (0, 1))
        before = instance.inner_text()
        # another client
        name = next(one for one in trace.locator("option").all_inner_texts() if "opencode" in one)
        trace.select_option(label=name)
        expect(instance).not_to_have_text(before)
        # a filter: the list has as many events as the method said
        channels, methods = (panel.locator(".widget-select-multiple select").nth(n) for n in (0, 1))
        option = methods.locator("option", has_text="tools/list").first.inner_text()
        number = re.search(r"\(([\d,]+)\)", option)
        assert number
        methods.select_option(label=option)
        expect(panel).to_contain_text(f"events 1 to {number[1]} of {number[1]}")
        expect(panel).to_contain_text("the segments show the chosen methods")
        methods.select_option([])
        expect(panel).not_to_contain_text("the segments show the chosen methods")
        assert channels.locator("option").count()
        # a segment, and the events in it
        panel.locator(".strip i[class*='a-request']").first.click()
        expect(panel).to_contain_text("in the segment from")
        panel.get_by_role("button", name="all segments").click()
        expect(panel).not_to_contain_text("in the segment from")
        # an event, and its text
        events = panel.locator(".mcplab-events select")
        option = events.locator("option", has_text="initialize").first.inner_text()
        events.select_option(label=option)
        expect(panel).to_contain_text(f"event {option.split()[0]} on")
        expect(panel.locator("pre")).to_contain_text('"jsonrpc"')
        panel.get_by_label("indented").check()
        expect(panel.locator("pre")).to_contain_text('"jsonrpc": "2.0"')
        panel.scroll_into_view_if_needed()
        lab.screen("03-panel-light")
        lab.theme("dark")
        lab.screen("03-panel-dark")
        assert lesson.pale() == []
        lab.theme("light")
        assert lesson.faults() == []


def test_a_capture_is_uploaded_read_and_exported(lab):
    capture = next(path for path in sorted(traces_dir().rglob("*.jsonl")) if "opencode" in str(path))
    with lab.lesson("05-your-traces") as lesson:
        seen(lesson)
        kept = Path(lab.folder) / "build" / "own" / "own.jsonl"
        chart = Path(lab.folder) / "build" / "charts" / "own-timeline.svg"
        assert kept.exists()
        assert chart.exists()
        kept.unlink()
        chart.unlink()
        upload = lesson.cell("own-upload").get_by_role("button", name="Your file")
        with lesson.page.expect_file_chooser() as chooser:
            upload.click()
        chooser.value.set_files(capture)
        expect(upload).to_contain_text("(1)")
        lesson.cell("own-read").locator(".jp-InputArea-editor").click()
        lesson.run("notebook:run-all-below")
        expect(lesson.cell("own-read")).to_contain_text("Read as")
        expect(lesson.cell("own-declarations")).to_contain_text("opencode")
        until(chart.exists, "chart")
        mine, theirs = read_trace(kept), read_trace(capture)
        assert [event.text for event in mine] == [event.text for event in theirs]
        assert chart.read_text(encoding="utf-8").count("<svg") == 1
        assert lesson.faults() == []


def test_the_lab_asks_for_no_news_and_no_extensions(lab: Lab):
    assert lab.asked
    assert [url for url in lab.asked if re.search(r"/lab/api/(news|update|extensions)", url)] == []
    assert lab.page.locator(".jp-Notification-List-Item, .Toastify__toast").count() == 0
