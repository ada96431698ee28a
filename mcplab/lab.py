"""The bundled notebooks in a folder of the user's own, and JupyterLab on them.

A folder remembers in ``.mcplab-lab.json`` the checksums of what was put there, so that a later version brings its
notebooks up to date where nobody touched them, and leaves every changed one alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcplab.data import notebooks_dir
from mcplab.model import MCPLabError

MANIFEST: Final = ".mcplab-lab.json"
OPTIONS: Final = (
    "--ServerApp.ip=127.0.0.1",
    "--LabApp.extension_manager=readonly",  # lists what is installed, searches nowhere
)
"""What JupyterLab is started with: it answers this machine only, and asks no other."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What happened to each notebook, by file name."""

    folder: Path
    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)  # an older one of ours that nobody had changed
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # changed by somebody, or not ours: left as it was

    @property
    def summary(self) -> str:
        """One line, as ``lab: 5 notebooks written, 1 kept as changed (02-declarations.ipynb)``."""
        said = [
            f"{len(names)} {word}"
            for names, word in ((self.written, "written"), (self.replaced, "brought up to date"), (self.same, "there"))
            if names
        ]
        if self.kept:
            said.append(f"{len(self.kept)} kept as changed ({', '.join(self.kept)}; move one away to get the new one)")
        return f"{self.folder}: notebooks: {', '.join(said)}"


def place(folder: str | os.PathLike[str]) -> Placed:
    """Put the bundled notebooks into ``folder`` (made where missing), never over a changed file or through a link.

    Raises MCPLabError when the folder cannot be made or written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = _known(folder / MANIFEST)
        placed = Placed(folder)
        for source in sorted(notebooks_dir().glob("*.ipynb")):
            content = source.read_bytes()
            _outcome(placed, folder / source.name, content, known.get(source.name)).append(source.name)
            if source.name not in placed.kept:
                known[source.name] = _sha(content)
        _write(folder / MANIFEST, json.dumps(known, indent=1, sort_keys=True).encode() + b"\n")
    except OSError as error:
        raise MCPLabError(
            f"{error.filename or folder}: {(error.strerror or str(error)).lower()}; name a folder that you may write"
        ) from error
    return placed


def _outcome(placed: Placed, target: Path, content: bytes, known: str | None) -> list[str]:
    """Write the file if it may be written; the list that its name belongs to."""
    if target.is_symlink() or (target.exists() and not target.is_file()):
        return placed.kept
    if not target.exists():
        _write(target, content)
        return placed.written
    here = target.read_bytes()
    if here == content:
        return placed.same
    if _sha(here) != known:
        return placed.kept
    _write(target, content)
    return placed.replaced


def command(folder: Path, arguments: Sequence[str] = ()) -> list[str]:
    """The command line of JupyterLab for a folder, with ``OPTIONS`` unless ``arguments`` say otherwise."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MCPLabError("JupyterLab is not installed here: pip install 'mcplab[lab]'")
    return [sys.executable, "-m", "jupyterlab", str(folder), *OPTIONS, *arguments]


def start(folder: Path, arguments: Sequence[str] = ()) -> None:
    """Become JupyterLab on this folder: the process is replaced, so nothing is left behind when it ends."""
    words = command(folder, arguments)
    # The environment's own kernel and settings count, not what the user has elsewhere. Those in labconfig/ are
    # defaults: no news is fetched and no update sought, and nobody is asked whether it may be.
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    environment = {"JUPYTER_PREFER_ENV_PATH": "1", **os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}
    os.execve(words[0], words, environment)


def _known(manifest: Path) -> dict[str, str]:
    try:
        known = json.loads(manifest.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}  # nothing is known to be ours: what differs is kept
    return {k: v for k, v in known.items() if isinstance(v, str)} if isinstance(known, dict) else {}


def _write(target: Path, content: bytes) -> None:
    """Whole or not at all: a copy that was cut off would look like a file that somebody changed."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
