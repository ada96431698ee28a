"""What the whole rule catalogue costs on a big trace beside a bare loop of orjson over its lines: time and memory.

    python benchmarks/bench_rules.py [--events 400000] [--keep FILE]

Each measurement runs in a process of its own, three times, alternating; the best CPU time counts, since other work on
the machine disturbs the clock. Memory is what the pass adds to a trace that was read, at three sizes: the files differ
in their events, hardly in their open requests. Exit status 1 where a limit is missed. Results: benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ROUNDS = 3
LIMIT = 5.0  # times the orjson loop, from the file to the table of findings
GOAL = 2.0
SIZES = (50_000, 100_000, 400_000)


def orjson_loop(path: str) -> int:
    """A bare loop over the lines."""
    import orjson

    with open(path, "rb") as file:
        return sum(1 for line in file if orjson.loads(line) is not None)


def reading(path: str) -> int:
    """The reader alone."""
    import mcplab

    return len(mcplab.read_trace(path))


def walking(path: str) -> int:
    """Read, and the walk that tells connections, eras and which answer is whose."""
    import mcplab

    sparse = mcplab.read_trace(path).tables.sparse
    return 0 if sparse is None else len(sparse.events)


def passing(path: str) -> int:
    """Read, walk and the pass of all rules."""
    return sum(1 for board in _run(path).boards.values() for _ in board.breaches())


def findings(path: str) -> int:
    """The whole way to the table of findings."""
    import mcplab

    return len(mcplab.read_trace(path).findings)


def _run(path: str) -> Any:
    import mcplab
    from mcplab.rulebook.stretches import Swift
    from mcplab.rulebook.tables import certain

    sparse = mcplab.read_trace(path).tables.sparse
    return Swift(sparse, sparse.walked.links, certain())


WAYS: dict[str, Callable[[str], int]] = {
    "orjson loop": orjson_loop,
    "mcplab read": reading,
    "read, walk": walking,
    "read, walk, rules": passing,
    "mcplab findings": findings,
}


def measure(name: str, path: str) -> None:
    """In a process of its own: print CPU seconds and peak memory in bytes."""
    import orjson  # noqa: F401

    import mcplab

    if name != "orjson loop":  # load what is needed, so that imports and the catalogue are not measured
        mcplab.make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]).findings  # noqa: B018
    cpu = time.process_time()
    count = WAYS[name](path)
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"cpu": cpu, "peak": peak, "count": count}))


def weigh(path: str) -> None:
    """In a process of its own: print what walk and pass keep and their peak, in bytes, without the trace itself."""
    import mcplab
    from mcplab.rulebook.stretches import Swift
    from mcplab.rulebook.tables import certain

    plan = certain()
    trace = mcplab.read_trace(path)
    len(trace.record.lines[0])
    tracemalloc.start()
    sparse = trace.tables.sparse
    assert sparse is not None
    walk = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    run = Swift(sparse, sparse.walked.links, plan)
    after, peak = tracemalloc.get_traced_memory()
    breaches = sum(1 for board in run.boards.values() for _ in board.breaches())
    for board in run.boards.values():
        board.broken.clear()
        board.many.clear()
    without = tracemalloc.get_traced_memory()[0]
    print(
        json.dumps(
            {
                "walk": walk, "peak": peak - walk, "state": without - walk, "breaches": breaches,
                "held": after - without, "connections": len(run.sessions),
                "open": sum(len(session.open) for session in run.sessions.values()), "events": len(trace),
            }
        )
    )  # fmt: skip


def child(*words: str) -> dict[str, float]:
    """One measurement."""
    done = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--keep", type=Path, default=None, help="use (or make) this file")
    parser.add_argument("--measure", nargs=2, default=None, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--weigh", default=None, metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(*given.measure)
        return 0
    if given.weigh:
        weigh(given.weigh)
        return 0
    from benchmarks.generate import generate

    with tempfile.TemporaryDirectory() as folder:
        path = given.keep or Path(folder) / "big.jsonl"
        if not path.exists():
            generate(path, given.events)
        best: dict[str, dict[str, float]] = {}
        for _ in range(ROUNDS):
            for name in WAYS:
                found = child("--measure", name, str(path))
                old = best.setdefault(name, found)
                best[name] = {key: min(old[key], found[key]) for key in found}
        weights = []
        for size in SIZES:
            file = Path(folder) / f"{size}.jsonl"
            generate(file, size)
            weights.append(child("--weigh", str(file)))
    return report(best, weights)


def report(best: dict[str, dict[str, float]], weights: list[dict[str, float]]) -> int:
    """Print the tables; 1 where the limit is missed."""
    from mcplab.rulebook.tables import certain

    bare = best["orjson loop"]["cpu"]
    print(f"{int(best['orjson loop']['count']) - 1:,} events, {len(certain().rules)} rules\n")
    print("| way | CPU s | of orjson | peak memory |\n|---|---|---|---|")
    for name, found in best.items():
        print(f"| {name} | {found['cpu']:.2f} | {found['cpu'] / bare:.2f} | {found['peak'] / 1e6:.0f} MB |")
    print(
        "\n| events | connections | open at the end | walk | rules: state | peak | breaches noted |\n"
        + "|---" * 7
        + "|"
    )
    for each in weights:
        print(
            f"| {int(each['events']):,} | {int(each['connections']):,} | {int(each['open']):,} "
            f"| {each['walk'] / 1e6:.1f} MB | {each['state'] / 1e6:.1f} MB | {each['peak'] / 1e6:.1f} MB "
            f"| {int(each['breaches']):,}: {each['held'] / 1e6:.1f} MB |"
        )
    ratio = best["mcplab findings"]["cpu"] / bare
    print(
        f"\n{'kept  ' if ratio <= LIMIT else 'MISSED'} findings in at most {LIMIT} times the orjson loop (goal {GOAL})"
    )
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
