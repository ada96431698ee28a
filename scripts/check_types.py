"""pyright over the package's files that changed, or import one that did, since it last found nothing in them.

    python scripts/check_types.py [--all]

Over the whole package it takes about 45 s, too long before each commit. A file counts as checked when it, every file of
the package that it reaches by imports, the settings, the fixed versions and this script are what they were; which those
were is kept in ``build/types.json``. On a clean clone that is no file, so continuous integration checks them all.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KNOWN = ROOT / "build" / "types.json"
SETTINGS = ("pyproject.toml", "constraints.txt", "scripts/check_types.py")


def imported(text: str) -> Iterator[str]:
    """Dotted names that a file may import; of ``from a import b`` both a and a.b."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def digests(root: Path = ROOT) -> dict[str, str]:
    """File -> SHA-256 over all that its verdict depends on; the package has no relative imports."""
    files = sorted((root / "mcplab").rglob("*.py"))
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    names = {file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in texts}
    needs = {file: {names[name] for name in imported(text) if name in names} for file, text in texts.items()}
    base = "".join((ROOT / name).read_text(encoding="utf-8") for name in SETTINGS) + sys.version
    made: dict[str, str] = {}
    for file in texts:
        reached, new = {file}, {file}
        while new:
            new = set().union(*(needs[each] for each in new)) - reached
            reached |= new
        made[file] = hashlib.sha256((base + "".join(map(texts.__getitem__, sorted(reached)))).encode()).hexdigest()
    return made


def main() -> int:
    now = digests()
    try:
        known = {} if "--all" in sys.argv[1:] else json.loads(KNOWN.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    todo = [file for file, digest in now.items() if known.get(file) != digest]
    if not todo:
        print(f"pyright: none of {len(now)} files changed since it found nothing")
        return 0
    print(f"pyright: {len(todo)} of {len(now)} files", flush=True)
    command = [Path(sys.executable).with_name("pyright"), "--pythonpath", sys.executable, *todo]
    if len(todo) > 40:  # each process reads the libraries' types again
        command += ["--threads", str(os.cpu_count() or 1)]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not status:
        KNOWN.parent.mkdir(exist_ok=True)
        KNOWN.write_text(json.dumps(now, indent=0), encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
