"""Notebooks, each run in a kernel of its own with its parameters set."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcplab.model import MCPLabError

PARAMETERS: Final = "parameters"
"""Tag of the cell that says what a notebook works on; papermill reads the same tag."""


@dataclass
class Lesson:
    """A notebook: as it is stored, and after the run what it came to."""

    path: Path
    notebook: Any
    seconds: float = 0.0
    error: str = ""
    files: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def title(self) -> str:
        """The first heading."""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown" and cell.source.startswith("# "):
                return cell.source.splitlines()[0].removeprefix("# ").strip()
        return self.name


def _lab() -> Any:
    try:
        import nbclient
        import nbconvert
        import nbformat
    except ImportError as error:
        raise MCPLabError(f"a report needs Jupyter ({error.name} is missing): pip install 'mcplab[lab]'") from None
    return nbformat, nbclient, nbconvert


def find(folder: Path) -> list[Lesson]:
    """The notebooks of a folder whose parameters cell sets ``TRACES``, by name.

    Raises:
        MCPLabError: there is none, one is no notebook, or the ``lab`` extra is missing.
    """
    nbformat, _, _ = _lab()
    lessons: list[Lesson] = []
    for path in sorted(folder.glob("*.ipynb")):
        try:
            notebook = nbformat.read(path, as_version=4)
        except (OSError, ValueError, AttributeError) as error:
            raise MCPLabError(f"{path.name}: no notebook that can be read ({str(error).splitlines()[0]})") from None
        at = _parameters_cell(notebook)
        if at is not None and "TRACES" in notebook.cells[at].source:
            lessons.append(Lesson(path, notebook))
    if not lessons:
        raise MCPLabError(f"{folder}: no notebook here takes TRACES, so there is nothing to run")
    return lessons


def _parameters_cell(notebook: Any) -> int | None:
    return next((n for n, cell in enumerate(notebook.cells) if PARAMETERS in cell.metadata.get("tags", [])), None)


def parametrized(notebook: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy with a cell after the parameters cell that sets them."""
    nbformat, _, _ = _lab()
    copy = nbformat.from_dict(notebook)
    at = _parameters_cell(copy)
    source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["injected-parameters"]})
    cell["id"] = "injected-parameters"
    copy.cells.insert(0 if at is None else at + 1, cell)
    return copy


def run(lessons: Sequence[Lesson], folder: Path, parameters: Mapping[str, Any], *, timeout: int = 300) -> None:
    """Run them one after another in ``folder``; executed notebooks, as ipynb and html, go to ``folder/notebooks``."""
    from tqdm import tqdm

    (folder / "notebooks").mkdir(exist_ok=True)
    for lesson in lessons:
        lesson.notebook = parametrized(lesson.notebook, parameters)
    cells = sum(cell.cell_type == "code" for lesson in lessons for cell in lesson.notebook.cells)
    with tqdm(total=cells, desc="notebooks", unit="cell", mininterval=0.5, file=sys.stderr) as bar:
        for lesson in lessons:
            bar.set_description(lesson.name)
            start, done = time.monotonic(), bar.n
            lesson.error = execute(lesson.notebook, folder, timeout=timeout, tick=lambda **_: bar.update())
            bar.update(done + sum(cell.cell_type == "code" for cell in lesson.notebook.cells) - bar.n)
            lesson.seconds = time.monotonic() - start
            lesson.files = _keep(lesson, folder)


def execute(notebook: Any, folder: Path, *, timeout: int = 300, tick: Any = None) -> str:
    """Run a notebook in place, in a fresh kernel of this Python; what stopped it in one line, or ""."""
    _, nbclient, _ = _lab()
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    # No kernel that is installed somewhere: this interpreter, with the mcplab that is running now.
    here = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    settings = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "TQDM_DISABLE": "1"}  # our own bar is enough
    env = os.environ | settings | {"PYTHONPATH": paths}
    with tempfile.TemporaryDirectory(prefix="mcplab-") as sockets:
        manager = AsyncKernelManager(
            kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **_wire(sockets)
        )
        client = nbclient.NotebookClient(
            notebook, km=manager, timeout=timeout, resources={"metadata": {"path": str(folder)}}, on_cell_executed=tick,
            record_timing=False, store_widget_state=False,
        )  # fmt: skip
        try:
            _drive(client, env=env, cleanup_kc=True)
        except nbclient.exceptions.CellExecutionError as error:
            return f"{error.ename}: {' '.join(error.evalue.split())[:300]}"
        except nbclient.exceptions.CellTimeoutError:
            return f"a cell took longer than {timeout} s"
        except nbclient.exceptions.DeadKernelError:
            return "the kernel died"
    return ""


class _Interruptible(asyncio.SelectorEventLoop):
    """A loop that Ctrl-C ends: nbclient's own handler of signals would end one kernel, and the next notebook begin."""

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:
        raise RuntimeError("signals are not for the loop")  # nbclient expects that of a thread

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Say nothing of what an interrupted notebook leaves."""


def _drive(client: Any, **how: Any) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner(loop_factory=_Interruptible) as runner:
            runner.get_loop().run_until_complete(client.async_execute(**how))
    else:  # called in a notebook, whose loop takes the interrupts
        client.execute(**how)


def _wire(folder: str) -> dict[str, Any]:
    """The kernel's files in a folder of our own, and its sockets too where the system can: TCP ports others reach.

    An address of unix(7) has 108 bytes, on macOS 104, with the zero that ends it; a long TMPDIR has used them up.
    """
    ipc = os.name == "posix" and len(os.fsencode(Path(folder) / "kernel-ipc-5")) < 104
    return {"connection_file": str(Path(folder) / "kernel.json")} | ({"transport": "ipc"} if ipc else {})


def _keep(lesson: Lesson, folder: Path) -> list[str]:
    """Write the executed notebook and a page of it; their names below the folder."""
    from mcplab.report.page import notebook_page

    nbformat, _, nbconvert = _lab()
    names = [f"notebooks/{lesson.name}.ipynb", f"notebooks/{lesson.name}.html"]
    nbformat.write(lesson.notebook, folder / names[0])
    body, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(lesson.notebook)
    (folder / names[1]).write_text(notebook_page(lesson.title, body), encoding="utf-8")
    return names
