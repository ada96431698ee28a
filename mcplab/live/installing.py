"""Installing clients, each alone in a folder of the cache, and finding them there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Final

from mcplab.live.recipes import Recipe
from mcplab.model import MCPLabError, UsageError

_MARK: Final = "mcplab-installed.json"


class InstallError(MCPLabError):
    """A client is not there, or could not be installed."""


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Where installed clients live: the given folder, else ``mcplab/clients`` in the user's cache."""
    if given is not None:
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcplab" / "clients"


def place(recipe: Recipe, cache: Path) -> Path:
    return cache / f"{recipe.client}-{recipe.version}"


def is_installed(recipe: Recipe, cache: Path) -> bool:
    if recipe.installer == "path":
        return shutil.which(recipe.program) is not None
    try:
        found = json.loads((place(recipe, cache) / _MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return found == recipe.packages


def bin_of(recipe: Recipe, cache: Path, install: str) -> Path:
    """The folder of the client's programs. ``install``: the command that installs it.

    Raises:
        InstallError: it is not installed; the line says how to.
    """
    if not is_installed(recipe, cache):
        raise InstallError(f"{recipe.client} is not installed; {how(recipe, install)}")
    if recipe.installer == "path":
        return Path(shutil.which(recipe.program) or "").parent
    return place(recipe, cache) / ("bin" if recipe.installer == "pip" else "node_modules/.bin")


def how(recipe: Recipe, install: str) -> str:
    """What to do to have the client."""
    if recipe.installer == "path":
        return f"put {recipe.program} on your PATH ({recipe.note or 'mcplab does not install it'})"
    return f"{install} installs {' '.join(recipe.packages)} with {recipe.installer}"


def version_of(recipe: Recipe, cache: Path) -> str:
    """The version that a recipe pins, else what is installed of its first package; "" where nobody knows."""
    name = next((one for one in recipe.packages if not one.startswith("-")), "")
    if recipe.version or not name or recipe.installer == "path":
        return recipe.version
    folder = place(recipe, cache)
    if recipe.installer == "pip":
        known = re.split(r"[^\w.-]", name)[0]
        paths = [str(path) for path in folder.glob("lib/python*/site-packages")]
        return next((one.version for one in metadata.distributions(name=known, path=paths)), "")
    known = name[: name.rindex("@")] if "@" in name[1:] else name
    with contextlib.suppress(OSError, ValueError):
        facts = json.loads((folder / "node_modules" / known / "package.json").read_text(encoding="utf-8"))
        return str(facts.get("version", "")) if isinstance(facts, dict) else ""
    return ""


def install(recipe: Recipe, cache: Path, *, say: Callable[[str], None], python: str = "") -> Path:
    """Install a client with pip or npm, whose own progress goes to stderr; done already, it does nothing.

    Args:
        say: gets a line before each step.
        python: the interpreter for pip's environment, where the first one found is not to be taken.

    Raises:
        InstallError: it cannot be installed; whatever is in its folder counts as nothing.
    """
    folder = place(recipe, cache)
    if is_installed(recipe, cache):
        say(f"{recipe.client} {recipe.version} is installed")
        return folder
    if recipe.installer == "path":
        raise InstallError(f"{recipe.client}: {how(recipe, '')}")
    folder.mkdir(parents=True, exist_ok=True)
    if recipe.installer == "pip":
        interpreter = python or _interpreter(recipe.python)
        say(f"{recipe.client} {recipe.version}: an environment with {interpreter}")
        _step(recipe, [interpreter, "-m", "venv", "--clear", str(folder)], folder)
        words = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--progress-bar=on",
        ]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise InstallError(f"{recipe.client} needs npm, which is not on the PATH; install Node.js")
        words = [npm, "install", "--no-audit", "--no-fund", "--loglevel=notice", "--prefix", str(folder)]
    say(f"{recipe.client} {recipe.version}: {recipe.installer} install {' '.join(recipe.packages)}")
    _step(recipe, [*words, *recipe.packages], folder)
    (folder / _MARK).write_text(json.dumps(recipe.packages), encoding="utf-8")
    say(f"{recipe.client} {recipe.version}: installed")
    return folder


def _step(recipe: Recipe, words: list[str], folder: Path) -> None:
    try:
        status = subprocess.run(words, stdout=sys.stderr.fileno(), stdin=subprocess.DEVNULL, cwd=folder, check=False)
    except OSError as error:
        raise InstallError(f"{recipe.client}: {words[0]}: {error.strerror or error}") from error
    if status.returncode != 0:
        raise InstallError(f"{recipe.client}: {Path(words[0]).name} failed with status {status.returncode}; see above")


def _interpreter(least: str) -> str:
    """An interpreter that is new enough: this one, or the first ``python3.N`` on the PATH that runs."""
    wanted = tuple(int(part) for part in least.split(".")) if least else (3, 11)
    if sys.version_info[:2] >= wanted:
        return sys.executable
    for minor in range(wanted[1], wanted[1] + 6):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    raise UsageError(f"Python {least} or newer is needed, and none is on the PATH; --python PATH names one")
