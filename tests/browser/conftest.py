"""One JupyterLab and one Chromium for all of these tests, in a temporary folder; nothing of them is left behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from laboratory import FLAGS, SCREENS, Lab, chromium, left, serving
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="session")
def house() -> Iterator[Path]:
    """The folder in which everything happens. Whatever still runs with it in the end is ended, and is an error."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    for old in SCREENS.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="mcplab-browser-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        (home / "tmp").mkdir()
        yield home
        _, alive = psutil.wait_procs(left(home), 30)
        told = [" ".join(process.cmdline())[:200] for process in alive if process.is_running()]
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, 30)
    assert not told, f"still running when all was over: {told}"
    assert not home.exists(), "the temporary folder is still there"


@pytest.fixture(scope="session")
def started(house: Path) -> Iterator[tuple[Browser, str, Path]]:
    """Browser and server, which start at the same time."""
    before = dict(os.environ)
    os.environ.update(TMPDIR=str(house / "tmp"), HOME=str(house))  # the browser's own files, too
    try:
        with sync_playwright() as playwright:
            os.environ.clear()
            os.environ.update(before)
            with serving(house) as (address, folder):
                environ = {**before, "HOME": str(house), "TMPDIR": str(house / "tmp")}
                browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS, env=environ)
                yield browser, address, folder
                browser.close()
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def browser(started: tuple[Browser, str, Path]) -> Browser:
    return started[0]


@pytest.fixture(scope="session")
def lab(started: tuple[Browser, str, Path]) -> Lab:
    return Lab(*started)
