"""The report: every notebook that takes ``TRACES``, run on these captures, and a page that shows what came out."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcplab.data import notebooks_dir
from mcplab.feed import observed_json
from mcplab.model import MCPLabError
from mcplab.provenance import methods
from mcplab.report.execute import Lesson, find, run
from mcplab.report.page import OBSERVED, index
from mcplab.sources import BUNDLED, load
from mcplab.stories import overview
from mcplab.told import count
from mcplab.traces import Traces

__all__ = ["Done", "build"]

MANIFEST: Final = "manifest.json"
"""The files of a report, so that the next one in the same folder removes these and no others."""


@dataclass(frozen=True)
class Done:
    """What a report came to."""

    index: Path
    files: Sequence[Path]
    failed: Sequence[Lesson]
    summary: str

    @property
    def complete(self) -> bool:
        """Did every notebook run to its end?"""
        return not self.failed


def build(traces: Sequence[str] | None, folder: Path, *, timeout: int = 300, notebooks: Path | None = None) -> Done:
    """Run the notebooks and write the page.

    Args:
        traces: files, folders, globs, ``bundled:NAME``; None: the bundled captures.
        folder: where ``index.html``, ``observed.json``, ``notebooks/``, ``charts/`` and ``tables/`` go; what an earlier
            report left there is removed, anything else stays.
        timeout: seconds that one cell may take.
        notebooks: where the notebooks are; default: the bundled ones.

    Raises:
        MCPLabError: nothing can be read, nothing can be written, or the ``lab`` extra is missing. A notebook that fails
            raises nothing: the page shows how far it came, and ``Done.failed`` names it.
    """
    start = time.monotonic()
    lessons = find(notebooks or notebooks_dir())
    read = load(list(traces) if traces else None)
    folder = Path(os.path.abspath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        run(lessons, folder, _parameters(traces, folder), timeout=timeout)
        outputs = _outputs(folder)
        page = folder / "index.html"
        page.write_text(index(read, overview(read), lessons, folder, outputs, methods(read)), encoding="utf-8")
        records = folder / OBSERVED
        records.write_text(observed_json(read), encoding="utf-8")
        files = [page, records, *(folder / name for lesson in lessons for name in lesson.files), *outputs]
        names = sorted(file.relative_to(folder).as_posix() for file in files)
        (folder / MANIFEST).write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise MCPLabError(
            f"{error.filename or folder}: cannot be written ({(error.strerror or '').lower()}); choose another folder"
        ) from None
    failed = [lesson for lesson in lessons if lesson.error]
    summary = _summary(read, lessons, failed, len(outputs), time.monotonic() - start)
    return Done(Path(os.path.relpath(page)), files, failed, summary)


def _parameters(traces: Sequence[str] | None, folder: Path) -> dict[str, Any]:
    """What the notebooks' parameters cell is given: paths as they look from the report's folder, where they run."""
    if not traces:
        return {"TRACES": None, "OUT": "."}
    return {"TRACES": [name if name.startswith(BUNDLED) else _from(name, folder) for name in traces], "OUT": "."}


def _from(name: str, folder: Path) -> str:
    try:
        return os.path.relpath(name, folder)
    except ValueError:  # another drive: there is no relative path
        return os.path.abspath(name)


def _clear(folder: Path) -> None:
    """Remove what the manifest of an earlier report lists, and folders that are empty then."""
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    root = folder.resolve()
    for name in names if isinstance(names, list) else []:
        file = folder / str(name)
        if file.is_file() and root in file.resolve().parents:
            file.unlink()
    for part in ("charts", "tables", "notebooks"):
        if (folder / part).is_dir() and not any((folder / part).iterdir()):
            shutil.rmtree(folder / part)


def _outputs(folder: Path) -> list[Path]:
    return sorted(file for part in ("charts", "tables") for file in (folder / part).glob("*") if file.is_file())


def _summary(read: Traces, lessons: Sequence[Lesson], failed: Sequence[Lesson], outputs: int, seconds: float) -> str:
    parts = [count(len(read), "capture"), count(len(lessons), "notebook"), f"{outputs} charts and tables"]
    if len(read.failed):
        parts.append(f"{count(len(read.failed), 'file')} could not be read (the page lists them)")
    if failed:
        parts.append(f"failed: {', '.join(f'{lesson.name} ({lesson.error})' for lesson in failed)}")
    return f"{', '.join(parts)}; {seconds:.0f} s"
