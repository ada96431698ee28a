"""The oldest version that pyproject.toml allows of every direct dependency, as constraints of ``name==version`` lines.

``python scripts/oldest.py > build/oldest.txt``; ``make test-oldest`` installs by them. What those bring in turn is left
to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

LOWER = re.compile(r"^\s*([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][0-9.a-z]*)")


def oldest(project: dict) -> list[str]:
    """One line a dependency, sorted; raises ValueError for one without a lower bound."""
    wanted = list(project["dependencies"])
    for extra in ("lab", "scale"):  # what users install; the tests' own tools are as constraints.txt has them
        wanted += project["optional-dependencies"][extra]
    lines = set()
    for requirement in wanted:
        if not (found := LOWER.match(requirement)):
            raise ValueError(f"pyproject.toml: {requirement!r} names no oldest version; write name>=version")
        lines.add(f"{found[1]}=={found[2]}")
    return sorted(lines)


if __name__ == "__main__":
    file = Path(__file__).parent.parent / "pyproject.toml"
    sys.stdout.write("".join(f"{line}\n" for line in oldest(tomllib.loads(file.read_text())["project"])))
