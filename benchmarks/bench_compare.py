"""What it costs to compare ten thousand instances: by client, by release, and with a column for each instance.

    python benchmarks/bench_compare.py [--instances 10000]

The capture is made up: stdio processes of 200 clients in many releases, with five different declarations. Reading it
and making its tables is shown, not counted: that happens once. The best CPU time of three counts, since other work on
the machine disturbs the clock. Exit status 1 where a limit is missed. Results of a run: benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LIMIT = 2.0  # CPU seconds for 10,000 instances
CLIENTS = 200
DECLARED = (
    {}, {"roots": {"listChanged": True}}, {"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}},
    {"elicitation": {}}, {"experimental": {"x/y": {"a": 1}}},
)  # fmt: skip


def lines(instances: int) -> Iterator[str]:
    """A trace file with this many instances."""
    yield json.dumps(
        {"kind": "header", "format": "mcplab-trace", "version": 1, "tool": "bench 1", "transport": "stdio"}
    )
    answer = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    }
    for n in range(instances):
        name, version = f"client-{n % CLIENTS}", f"{n // CLIENTS}.0"
        hello = {
            "protocolVersion": "2025-11-25", "capabilities": DECLARED[n % len(DECLARED)],
            "clientInfo": {"name": name, "version": version},
        }  # fmt: skip
        conn = {"conn": f"c{n}"}
        yield json.dumps({"kind": "open", "seq": 3 * n, **conn, "client": {"name": name, "version": version}})
        for at, (way, body) in enumerate(
            (("c2s", {"method": "initialize", "params": hello}), ("s2c", {"result": answer})), 1
        ):
            message = {"jsonrpc": "2.0", "id": 1, **body}
            yield json.dumps({"kind": "message", "seq": 3 * n + at, **conn, "dir": way, "msg": message})


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the best of three."""
    took = []
    for _ in range(3):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000)
    count = parser.parse_args().instances
    import mcplab

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl"
        path.write_text("\n".join(lines(count)), encoding="utf-8")
        start = time.process_time()
        trace = mcplab.read_trace(path)
        found = trace.connections["instance"].nunique(), len(trace.declarations)
        print(f"read, and its tables made: {time.process_time() - start:.2f} s ({found[0]} instances, {found[1]} rows)")
    missed = False
    for by in ("client", ["client", "client_version"], "instance"):
        took = best(lambda by=by: mcplab.compare(trace, by=by))
        missed |= took > LIMIT * count / 10_000
        columns = mcplab.compare(trace, by=by).shape[1]
        print(f"compare by {by if isinstance(by, str) else ', '.join(by)}: {took:.2f} s ({columns} columns)")
    took = best(lambda: mcplab.compare(trace, party="server"))
    missed |= took > LIMIT * count / 10_000
    print(f"compare, servers: {took:.2f} s")
    print(f"limit: {LIMIT * count / 10_000:.2f} s of CPU each: {'MISSED' if missed else 'kept'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
