"""What the repository must never hold, and what it must always keep: a look at the tracked files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import mcplab

ROOT = Path(__file__).parents[1]
MAX_LINES = 500
MAX_NOTEBOOK_BYTES = 60_000

# A folder of one person or one machine. In examples and invented logs people are called so:
INVENTED = ("user", "you", "me", "name", "alice", "bob", "someone", "dev", "runner", "jane", "demo", "test", "x")
FOLDERS = r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})"
HOME = re.compile(r"(?<![\w.~-])" + FOLDERS + rf"(?!(?:{'|'.join(INVENTED)})\b)[\w.-]+")
ROOT_HOME = re.compile(r"(?<![\w.~-])/[r]oot/[\w.-]+")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com|net|io)\b", re.IGNORECASE)


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        return []
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


TRACKED = _tracked()
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

needs_git = pytest.mark.skipif(not TRACKED, reason="not a git checkout: nothing is tracked")


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in TRACKED:
        text = path.read_bytes().decode("utf-8", "replace")
        if pattern.search(text):
            name = path.relative_to(ROOT)
            for number, line in enumerate(text.splitlines(), start=1):
                if pattern.search(line):
                    found.append(f"{name}:{number}: {line[:160]}")
    return found


@needs_git
def test_no_path_of_one_machine():
    # the folder that this checkout lies in, unless it is one that everybody has
    here = str(ROOT.parent) + "/"
    checkout = [re.compile(r"(?<![\w.~-])" + re.escape(here) + r"\w")] if here.count("/") > 2 else []
    for pattern in (HOME, ROOT_HOME, *checkout):
        assert _lines_with(pattern) == []


@needs_git
def test_no_address_of_a_package_registry():
    assert _lines_with(REGISTRY) == []


@pytest.mark.parametrize(
    ("pattern", "text", "hit"),
    [
        (HOME, "see /home/" + "smith/notes", True),
        (HOME, "C:" + r"\Users\smith\x", True),
        (HOME, "/home/" + "user/project", False),
        (HOME, "/workspace/home/codex/.codex", False),
        (ROOT_HOME, "in /" + "root/venv", True),
        (ROOT_HOME, "/workspace/" + "root/x", False),
        (REGISTRY, "https://" + "pypi." + "org/simple", True),
        (REGISTRY, "PyPI mcp and npm mcp-remote, Debian's chromium", False),
    ],
)
def test_the_patterns_see_what_they_should(pattern, text, hit):
    assert bool(pattern.search(text)) is hit


@needs_git
def test_python_files_stay_short():
    files = [path for path in TRACKED if path.suffix == ".py"]
    assert files
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


# Notebooks -----------------------------------------------------------------------------------------


def _notebook_faults(content: str) -> list[str]:
    """What a stored notebook must not carry: outputs, counts, anything of the kernel or editor that last ran it."""
    notebook = json.loads(content)
    faults = []
    tagged = 0
    for number, cell in enumerate(notebook["cells"]):
        metadata = cell.get("metadata", {})
        tagged += "parameters" in metadata.get("tags", [])
        if cell.get("outputs"):
            faults.append(f"cell {number}: has outputs")
        if cell.get("execution_count") is not None:
            faults.append(f"cell {number}: has an execution count")
        if cell.get("attachments"):
            faults.append(f"cell {number}: has attachments")
        if extra := set(metadata) - {"tags", "jupyter", "slideshow", "editable"}:
            faults.append(f"cell {number}: has metadata {sorted(extra)}")
    if tagged != 1:
        faults.append(f"{tagged} cells are tagged parameters, not 1")
    kernel = notebook["metadata"].get("kernelspec")
    if kernel not in (None, {"display_name": "Python 3", "language": "python", "name": "python3"}):
        faults.append(f"names a kernel of its own: {kernel}")
    if extra := set(notebook["metadata"]) - {"kernelspec", "language_info"}:
        faults.append(f"has metadata {sorted(extra)}")
    if notebook["metadata"].get("language_info", {"name": "python"}) != {"name": "python"}:
        faults.append("language_info says more than the language: it names the Python that last ran it")
    if len(content.encode()) >= MAX_NOTEBOOK_BYTES:
        faults.append(f"{len(content.encode())} bytes, under {MAX_NOTEBOOK_BYTES} wanted")
    return faults


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_clean(path):
    assert _notebook_faults(path.read_text(encoding="utf-8")) == []


def _notebook(**changes: object) -> str:
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": ""}
    cell |= {"outputs": [], "execution_count": None}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    for name, value in changes.items():
        (cell if name in cell else notebook)[name] = value  # type: ignore[index]
    return json.dumps(notebook)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}, "cell 0: has outputs"),
        ({"execution_count": 3}, "cell 0: has an execution count"),
        ({"metadata": {}}, "0 cells are tagged parameters, not 1"),
        ({"metadata": {"tags": ["parameters"], "execution": {}}}, "cell 0: has metadata ['execution']"),
        ({"source": "x" * MAX_NOTEBOOK_BYTES}, "bytes, under 60000 wanted"),
    ],
)
def test_each_fault_of_a_notebook_is_found(changes, fault):
    assert _notebook_faults(_notebook()) == []
    assert any(fault in found for found in _notebook_faults(_notebook(**changes)))


def test_a_kernel_of_ones_own_is_found():
    notebook = json.loads(_notebook())
    notebook["metadata"] = {
        "kernelspec": {"display_name": "my env", "language": "python", "name": "my-env"},
        "language_info": {"name": "python", "version": "3.11.7"},
        "widgets": {},
    }
    assert len(_notebook_faults(json.dumps(notebook))) == 3


# Release -------------------------------------------------------------------------------------------


def test_the_changelog_begins_with_this_version():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading
    assert heading.group(1) == mcplab.__version__
    assert f"\nversion: {mcplab.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
