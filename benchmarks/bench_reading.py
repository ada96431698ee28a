"""What reading a big trace costs beside a bare loop of orjson over its lines: time, memory, a small trace end to end.

    python benchmarks/bench_reading.py [--events 400000] [--keep FILE]

Each measurement runs in a process of its own, three times, alternating; the best CPU time counts, since other work on
the machine disturbs the clock. Exit status 1 where a limit is missed. Results of a run: benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ROUNDS = 3
LIMIT_TIME = 2.0  # of the orjson loop
LIMIT_MEMORY = 3.0  # of the file's size
LIMIT_PANDAS = 5.0  # so many times faster than pandas.read_json
LIMIT_SMALL = 0.050  # seconds, 50 events read and compared


def orjson_loop(path: str) -> int:
    """A bare loop over the lines."""
    import orjson

    count = 0
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
            count += 1
    return count - 1


def reading(path: str) -> int:
    """The reader alone: the facts of every event, and its message's own text."""
    import mcplab

    return len(mcplab.read_trace(path))


def objects(path: str) -> int:
    """The same, and an object of each event."""
    import mcplab

    return sum(1 for _ in mcplab.read_trace(path))


def messages(path: str) -> int:
    """The whole way to the messages table."""
    import mcplab

    return len(mcplab.read_trace(path).messages)


def pandas_json(path: str) -> int:
    """What pandas offers for JSON Lines."""
    import pandas as pd

    return len(pd.read_json(path, lines=True)) - 1


WAYS: dict[str, Callable[[str], int]] = {
    "orjson loop": orjson_loop,
    "mcplab read": reading,
    "mcplab events": objects,
    "mcplab messages": messages,
    "pandas.read_json": pandas_json,
}


def warm(name: str) -> None:
    """Load what the way needs, so that imports are not measured."""
    if name == "orjson loop":
        import orjson  # noqa: F401
    elif name == "pandas.read_json":
        import pandas  # noqa: F401
    else:
        import mcplab

        mcplab.make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]).messages  # noqa: B018


def measure(name: str, path: str) -> None:
    """In a process of its own: print CPU seconds, wall seconds, peak memory in bytes, and the number of events."""
    warm(name)
    wall, cpu = time.perf_counter(), time.process_time()
    count = WAYS[name](path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "count": count}))


def run(name: str, path: Path) -> dict[str, float]:
    """One measurement."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, str(path)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def small(folder: Path) -> float:
    """Seconds for 50 events: two traces read and their declarations compared."""
    import mcplab
    from benchmarks.generate import generate

    paths = [folder / "a.jsonl", folder / "b.jsonl"]
    for path in paths:
        generate(path, 25)
    best = 9.0
    for _ in range(5):
        began = time.perf_counter()
        traces = mcplab.read_traces(*map(str, paths))
        mcplab.compare(traces)
        best = min(best, time.perf_counter() - began)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--keep", type=Path, default=None, help="use (or make) this file")
    parser.add_argument("--measure", nargs=2, default=None, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(*given.measure)
        return 0
    from benchmarks.generate import generate

    with tempfile.TemporaryDirectory() as folder:
        path = given.keep or Path(folder) / "big.jsonl"
        if not path.exists():
            generate(path, given.events)
        size = path.stat().st_size
        best: dict[str, dict[str, float]] = {}
        for turn in range(ROUNDS):
            for name in WAYS:
                if name == "pandas.read_json" and turn:
                    continue  # it takes long, and need not be exact
                found = run(name, path)
                old = best.setdefault(name, found)
                best[name] = {key: min(old[key], found[key]) for key in found}
        quick = small(Path(folder))
    return report(best, size, quick)


def report(best: dict[str, dict[str, float]], size: int, quick: float) -> int:
    """Print the table; 1 where a limit is missed."""
    bare = best["orjson loop"]["cpu"]
    print(f"{int(best['orjson loop']['count']):,} events, {size / 1e6:.0f} MB\n")
    print("| way | CPU s | of orjson | peak memory | of the file |\n|---|---|---|---|---|")
    for name, found in best.items():
        print(
            f"| {name} | {found['cpu']:.2f} | {found['cpu'] / bare:.2f} | {found['peak'] / 1e6:.0f} MB "
            f"| {found['peak'] / size:.2f} |"
        )
    print(f"\n50 events in two traces, read and compared: {quick * 1000:.0f} ms")
    ours = best["mcplab messages"]
    checks = {
        f"messages in at most {LIMIT_TIME} times the orjson loop": ours["cpu"] <= LIMIT_TIME * bare,
        f"at least {LIMIT_PANDAS} times faster than pandas.read_json": best["pandas.read_json"]["cpu"]
        >= LIMIT_PANDAS * ours["cpu"],
        f"peak memory at most {LIMIT_MEMORY} times the file": ours["peak"] <= LIMIT_MEMORY * size,
        f"50 events under {LIMIT_SMALL * 1000:.0f} ms": quick <= LIMIT_SMALL,
    }
    for words, kept in checks.items():
        print(f"{'kept  ' if kept else 'MISSED'} {words}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
