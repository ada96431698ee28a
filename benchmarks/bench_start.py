"""CPU seconds from the start to the end: importing the package and ``mcplab --help``.

Best of ten, since others share the machine. Ends with status 1 where a limit is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMITS = {
    ("-c", "import mcplab"): 0.25,
    ("-m", "mcplab", "--help"): 0.3,
}


def cpu(command: tuple[str, ...]) -> float:
    """CPU seconds of one run, user and system."""
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    child = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: status {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    missed = 0
    for command, limit in LIMITS.items():
        best = min(cpu(command) for _ in range(10))
        missed += best > limit
        print(f"python {' '.join(command):24} {best:.2f} s CPU, limit {limit} s{': missed' * (best > limit)}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
