"""JupyterLab as ``mcplab lab`` starts it, and a person's browser in front of it: what the browser tests stand on.

Every wait is for a condition, with a limit (``LIMIT``) that only a hang reaches.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil
from playwright.sync_api import Browser, Locator, Page, Request

from mcplab.data import notebooks_dir

LIMIT: Final = 300.0
"""Seconds."""
LAPTOP: Final = {"width": 1366, "height": 768}
TALL: Final = {"width": 1366, "height": 3000}
"""As wide as a laptop, so tall that a notebook needs few pictures."""
SCREENS: Final = Path(__file__).parents[2] / "build" / "screens"
THEMES: Final = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
FLAGS: Final = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-breakpad"
).split()
SETTINGS: Final = {
    # all cells are in the page, not those alone that the window shows
    "notebook-extension/tracker": {"windowingMode": "none"},
}


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait for something outside the browser; what it came to."""
    end = time.monotonic() + LIMIT
    while not (found := true()):
        assert time.monotonic() < end, f"in {LIMIT:.0f} s there was no {what}"
        time.sleep(0.1)
    return found


def chromium() -> str:
    """Where the system's Chromium is; Playwright's own is never fetched."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "chromium is not installed; make browser installs it where it may"
    return found


# The server ------------------------------------------------------------------------------------------


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, Path]]:
    """``mcplab lab`` in a folder below ``home``, with no settings of the user; its address with token, and the folder."""
    settings = home / "jupyter_config_dir" / "lab" / "user-settings" / "@jupyterlab"
    for name, values in SETTINGS.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values))
    names = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    environ = {**os.environ, **{name: str(home / name.lower()) for name in names}}
    environ.pop("MATPLOTLIBRC", None)  # figures as a user sees them
    folder, log = home / "lab", home / "server.log"
    command = [sys.executable, "-m", "mcplab", "lab", str(folder), "--", "--no-browser", "--allow-root"]
    command += ["--ServerApp.port=0", "--LabApp.expose_app_in_browser=True"]
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environ, cwd=home, stdout=out, stderr=subprocess.STDOUT)
    try:
        facts = until(lambda: _facts(home / "jupyter_runtime_dir", server, log), "server")
        yield f"http://127.0.0.1:{facts['port']}/lab?token={facts['token']}", folder
    finally:
        server.terminate()
        try:
            server.wait(LIMIT)
        finally:
            server.kill()


def _facts(runtime: Path, server: subprocess.Popen[bytes], log: Path) -> dict[str, Any] | None:
    assert server.poll() is None, log.read_text()
    for file in runtime.glob("jpserver-*.json"):
        try:
            return json.loads(file.read_text())
        except ValueError:
            pass  # half written
    return None


def left(home: Path) -> list[psutil.Process]:
    """Processes that know this folder: server, kernels, what those started, the browser."""
    found = []
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(home) in word for word in said):
            found.append(process)
    return found


# The page --------------------------------------------------------------------------------------------


class Watched:
    """A page that notes what may not happen in it: errors of scripts, dialogs, requests that leave."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.page: Page = browser.new_page(viewport=dict(LAPTOP))
        self.page.set_default_timeout(LIMIT * 1000)
        self._own = urlsplit(address)._replace(path="", query="", fragment="").geturl()
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("dialog", lambda box: (self.problems.append(f"dialog: {box.message}"), box.dismiss()))
        self.page.on("popup", lambda page: self.problems.append(f"window: {page.url}"))
        self.page.on("request", self._request)
        self.page.on("websocket", lambda socket: self._goes(socket.url.replace("ws://", "http://", 1)))
        self.page.goto(address)

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.problems.append(f"console: {text}")

    def _request(self, request: Request) -> None:
        self.asked.append(request.url)
        self._goes(request.url)

    def _goes(self, url: str) -> None:
        if not url.startswith((f"{self._own}/", "data:", "blob:")):
            self.problems.append(f"request: {url}")

    def take_problems(self) -> list[str]:
        """What happened since the last call."""
        found, self.problems = self.problems, []
        return found

    def call(self, script: str, argument: Any = None) -> Any:
        """Run an async function in the page. ``Page.evaluate`` alone would wait for ever."""
        self.page.evaluate(
            f"""argument => {{
                window.mcplabDone = null;
                ({script})(argument).then(
                    value => {{ window.mcplabDone = {{value: value ?? null}} }},
                    error => {{ window.mcplabDone = {{error: String(error)}} }});
            }}""",
            argument,
        )
        done = self.page.wait_for_function("() => window.mcplabDone", polling=200).json_value()
        assert "error" not in done, done["error"]
        return done["value"]

    def screen(self, name: str) -> None:
        self.page.screenshot(path=SCREENS / f"{name}.png")


class Lab(Watched):
    """JupyterLab, open."""

    def __init__(self, browser: Browser, address: str, folder: Path) -> None:
        super().__init__(browser, address)
        self.folder = folder
        self.page.wait_for_function("() => window.jupyterapp", polling=200)
        self.call("() => window.jupyterapp.started")
        self.page.locator("#jp-main-dock-panel").wait_for()
        assert self.take_problems() == []

    def theme(self, name: str) -> None:
        self.call("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[name])
        light = "true" if name == "light" else "false"
        self.page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")

    @contextmanager
    def lesson(self, name: str) -> Iterator[Lesson]:
        """A notebook, opened and run to its end with Run All; closed afterwards, its kernel too."""
        self.page.set_viewport_size(dict(LAPTOP))
        self.call(_OPEN, f"{name}.ipynb")
        lesson = Lesson(self, name)
        try:
            lesson.run("notebook:run-all-cells")
            yield lesson
            assert self.take_problems() == []
        finally:
            self.call(_CLOSE)
            self.take_problems()  # of a lesson that failed: not the next one's


_OPEN: Final = """async path => {
    const app = window.jupyterapp;
    const shown = await app.commands.execute('docmanager:open', {path, factory: 'Notebook'});
    await shown.context.ready;
    await shown.sessionContext.ready;
    app.shell.activateById(shown.id);
}"""
_CLOSE: Final = """async () => {
    const shown = window.jupyterapp.shell.currentWidget;
    await shown.sessionContext.shutdown();
    shown.dispose();
}"""
_RUN: Final = "command => window.jupyterapp.commands.execute(command)"
_IDLE: Final = "() => window.jupyterapp.shell.currentWidget.sessionContext.kernelDisplayStatus === 'idle'"
_CELLS: Final = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .map(cell => ({
        id: cell.model.id,
        source: cell.model.sharedModel.getSource(),
        count: cell.model.executionCount,
        outputs: cell.model.outputs.toJSON().map(one => ({
            type: one.output_type, name: one.name ?? one.ename ?? '', text: String(one.text ?? one.evalue ?? ''),
            kinds: Object.keys(one.data ?? {}), plain: String(one.data?.['text/plain'] ?? '')})),
    }))"""
BARS: Final = ("reading traces:", "judging")
_DRAWN: Final = """() => {
    const notebook = window.jupyterapp.shell.currentWidget.node;
    const views = [...notebook.querySelectorAll('.jp-OutputArea-output > .jupyter-widgets')];
    const images = [...notebook.querySelectorAll('.jp-RenderedImage img')];
    return {
        views: views.length,
        drawn: views.filter(view => view.getBoundingClientRect().height > 0).length,
        loading: notebook.textContent.includes('Loading widget'),
        images: images.length,
        seen: images.filter(image => image.complete && image.naturalWidth > 0).length,
    };
}"""
_TOO_WIDE: Final = """() => {
    // what sticks out of its output (an output with a wide table scrolls by itself)
    const notebook = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
    const found = [];
    const box = notebook.querySelector('.jp-WindowedPanel-outer');
    if (box.scrollWidth > box.clientWidth + 1) found.push('the notebook scrolls sideways');
    for (const output of notebook.querySelectorAll('.jp-OutputArea-output')) {
        const scrolls = ['auto', 'scroll'].includes(getComputedStyle(output).overflowX);
        if (!scrolls && output.scrollWidth > output.clientWidth + 1) found.push(output.textContent.trim().slice(0, 80));
        for (const image of output.querySelectorAll('img, svg'))
            if (image.getBoundingClientRect().right > output.getBoundingClientRect().right + 1 && !image.closest('.mcplab'))
                found.push(`image ${image.alt ?? ''}`.slice(0, 80));
    }
    return found;
}"""
_SCROLL: Final = """at => {
    const box = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer');
    box.scrollTop = at * (box.clientHeight - 60);
    return box.scrollTop + box.clientHeight + 1 >= box.scrollHeight;
}"""
_PALE: Final = """() => {
    // text whose contrast with what lies behind it is below 2.5 to 1 (what is absent is grey on purpose: 2.8)
    const parse = text => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, n) => sum + v * [.2126, .7152, .0722][n], 0);
    const behind = node => {
        for (; node; node = node.parentElement) {
            const colour = parse(getComputedStyle(node).backgroundColor);
            if (colour.length < 4 || colour[3] > .5) return colour;
        }
        return [255, 255, 255];
    };
    const found = {};
    for (const output of document.querySelectorAll('.jp-Notebook .jp-OutputArea-output, .jp-Notebook .jp-RenderedMarkdown')) {
        const walk = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const text = walk.currentNode.textContent.trim(), node = walk.currentNode.parentElement;
            if (!/[a-z0-9]/i.test(text) || node.closest('style, script, select') || !node.getClientRects().length) continue;
            const style = getComputedStyle(node);
            const front = parse(node instanceof SVGElement ? style.fill : style.color), back = behind(node);
            const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
            const contrast = (a + .05) / (b + .05);
            if (contrast < 2.5) found[`${contrast.toFixed(1)}: ${front} on ${back}`] ??= text.slice(0, 60);
        }
    }
    return found;
}"""


class Lesson:
    """A notebook that is open in JupyterLab."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.page = lab.page
        self.name = name
        self.node: Locator = lab.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def run(self, command: str) -> None:
        """Run cells, and wait until the kernel has nothing more to do."""
        self.lab.call(_RUN, command)
        self.page.wait_for_function(_IDLE, polling=200)

    def cell(self, ident: str) -> Locator:
        """A code cell of the notebook."""
        at = self.page.evaluate(
            "id => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(cell => cell.model.id === id)", ident
        )
        assert at >= 0, ident
        return self.node.locator(".jp-Notebook .jp-Cell").nth(at)

    def faults(self) -> list[str]:
        """What is wrong with what the notebook shows: cells that did not run or failed, what is not drawn, errors."""
        end = time.monotonic() + LIMIT
        while True:  # counted anew each time: an output may still take the place of another
            cells = self.page.evaluate(_CELLS)
            assert cells
            outputs = [output for cell in cells for output in cell["outputs"]]
            # a bar comes only where reading takes more than a second, and goes when it is over: its output stays empty
            kinds = [kind for one in outputs if not one["plain"].startswith(BARS) for kind in one["kinds"]]
            widgets, images = (
                sum(kind.startswith(what) for kind in kinds) for what in ("application/vnd.jupyter.widget", "image/")
            )
            shown = self.page.evaluate(_DRAWN)
            wanted = {"views": widgets, "drawn": widgets, "loading": False, "images": images, "seen": images}
            if shown == wanted or time.monotonic() > end:
                break
            time.sleep(0.2)
        found = [f"{cell['id']}: not run" for cell in cells if cell["count"] is None and cell["source"].strip()]
        found += [
            f"{cell['id']}: {output['name']}: {output['text'][:300]}"
            for cell in cells
            for output in cell["outputs"]
            if output["type"] == "error" or output["name"] == "stderr"
        ]
        if shown != wanted:
            found.append(f"{widgets} widgets and {images} images, but in the page {shown}")
        return found + [f"too wide: {one}" for one in self.page.evaluate(_TOO_WIDE)] + self.lab.take_problems()

    def pale(self) -> list[str]:
        """Text that can hardly be read, with its contrast and colours."""
        return [f"{colours}: {text}" for colours, text in self.page.evaluate(_PALE).items()]

    def screens(self, theme: str) -> None:
        """Pictures of all of it, from top to bottom."""
        self.page.set_viewport_size(dict(TALL))
        for at in range(99):
            last = self.page.evaluate(_SCROLL, at)
            self.lab.screen(f"{self.name}-{theme}-{at + 1}")
            if last:
                break
        self.page.set_viewport_size(dict(LAPTOP))


NAMES: Final = sorted(path.stem for path in notebooks_dir().glob("*.ipynb"))
