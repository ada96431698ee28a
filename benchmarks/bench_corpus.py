"""What a corpus of generated sessions costs: building it, asking it; CPU seconds, memory, bytes, and how they grow.

    python benchmarks/bench_corpus.py [--full] [--sizes 1000,4000] [--folder FOLDER]

``--full``: 10,000, 100,000 and a million sessions of six events each. Each size runs in a process of its own, which
first builds a small corpus, so that loading the rules is not measured. CPU time, since other work on the machine
disturbs the clock. Exit status 1 where a limit is missed. Results of a run: benchmarks/RESULTS.md.
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
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LIMIT_MEMORY = 2e9  # bytes, building and asking
LIMIT_GROWTH = 0.2  # CPU a session, from one size to ten times as many
SMALL = 10_000  # below so many sessions growth says nothing
FULL = (10_000, 100_000, 1_000_000)


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(folder: Path, sessions: int) -> dict[str, float]:
    """In a process of its own."""
    from mcplab import corpus

    source, out = folder / f"day-{sessions}", folder / f"corpus-{sessions}"
    corpus.day(folder / "warm", 400)
    corpus.build(folder / "warm", folder / "warm-corpus", progress=False).compare()
    raw = sum(file.stat().st_size for file in source.iterdir())
    wall = time.perf_counter()
    found = {"sessions": sessions, "raw": raw, "build": cpu(lambda: corpus.build(source, out, progress=False))}
    found |= {"wall": time.perf_counter() - wall, "build peak": peak()}
    made = corpus.open(out)
    found["stored"] = made.status()["bytes"]
    asks: dict[str, Callable[[], object]] = {
        "compare": lambda: made.compare(by=["client", "client_version"]),
        "reach": lambda: made.reach(["elicitation.url", "sampling.tools"]),
        "versions": made.versions,
        "counts": made.counts,
        "sql": lambda: made.sql(
            "select client, date_trunc('hour', first) as hour, count(*) as n, avg(latency) as waited "
            "from instances join exchanges using (instance) group by all"
        ),
        "again": lambda: corpus.build(source, out, progress=False),
    }
    for name, ask in asks.items():
        found[name] = cpu(ask)
    return found | {"peak": peak()}


def report(rows: list[dict[str, float]]) -> int:
    """Print the tables; 1 where a limit is missed."""
    print("| sessions | files | built, CPU s | µs a session | peak memory | corpus | bytes a session |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        n = row["sessions"]
        print(
            f"| {int(n):,} | {row['raw'] / 1e6:,.0f} MB | {row['build']:,.1f} | {row['build'] / n * 1e6:,.0f} "
            f"| {row['build peak'] / 1e6:,.0f} MB | {row['stored'] / 1e6:,.1f} MB | {row['stored'] / n:,.0f} |"
        )
    names = ["compare", "reach", "versions", "counts", "sql", "again"]
    print(f"\n| sessions | {' | '.join(names)} | peak memory |\n|---|{'---|' * (len(names) + 1)}")
    for row in rows:
        print(
            f"| {int(row['sessions']):,} | "
            + " | ".join(f"{row[name]:.2f}" for name in names)
            + f" | {row['peak'] / 1e6:,.0f} MB |"
        )
    checks = {f"under {LIMIT_MEMORY / 1e9:.0f} GB of memory": max(row["peak"] for row in rows) < LIMIT_MEMORY}
    big = [row for row in rows if row["sessions"] >= SMALL]
    for few, many in pairwise(big):
        ratio = (many["build"] / many["sessions"]) / (few["build"] / few["sessions"])
        words = f"{int(few['sessions']):,} to {int(many['sessions']):,}: CPU a session times {ratio:.2f}"
        checks[words] = abs(ratio - 1) <= LIMIT_GROWTH
    print()
    for words, kept in checks.items():
        print(f"{'kept  ' if kept else 'MISSED'} {words}")
    return 0 if all(checks.values()) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sizes", default="1000,4000")
    parser.add_argument("--folder", type=Path, default=None, help="where files are made (and left)")
    parser.add_argument("--measure", type=int, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.folder, given.measure)))
        return 0
    from mcplab import corpus

    sizes = FULL if given.full else tuple(map(int, given.sizes.split(",")))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        home = given.folder or Path(folder)
        for size in sizes:
            corpus.day(home / f"day-{size}", size)
            command = [sys.executable, __file__, "--folder", str(home), "--measure", str(size)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{size:,} sessions, {rows[-1]['wall']:.0f} s by the clock: {rows[-1]}", file=sys.stderr)
    return report(rows)


if __name__ == "__main__":
    raise SystemExit(main())
