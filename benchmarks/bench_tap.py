"""What the tap adds between a client and a stdio server: to a call and its answer, and to many at once.

    python benchmarks/bench_tap.py [--rounds 12] [--calls 500] [--many 20000]

The server is ``cat``: each request comes back as its own answer, so all time is the way there and back. Rounds with
and without the tap alternate, and each round's median is compared with its neighbour's, since other work on the machine
disturbs both. Everything is recorded as always: masked, one write an event, before it goes on. Exit status 1 where the
limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

LIMIT_ADDED = 0.2  # milliseconds, at the median
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


class Party:
    """A server that echoes, with or without a tap before it, and the client's ends of its pipes."""

    def __init__(self, trace: Path | None) -> None:
        tap = [] if trace is None else [sys.executable, "-P", "-m", "mcplab", "tap", "-o", str(trace), "--"]
        self.process = subprocess.Popen([*tap, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.call(request(0, 100))  # it is up

    def call(self, message: bytes) -> float:
        """Milliseconds from the request to the end of its answer."""
        begun = time.perf_counter()
        os.write(self.input, message)
        left = len(message)
        while left:
            left -= len(os.read(self.output, 1 << 16))
        return (time.perf_counter() - begun) * 1000

    def many(self, messages: list[bytes]) -> float:
        """Messages a second, all sent as fast as the pipe takes them; there and back counts as one."""
        data = b"".join(messages)
        begun = time.perf_counter()
        writer = threading.Thread(target=self._write, args=(data,))
        writer.start()
        left = len(data)
        while left:
            left -= len(os.read(self.output, 1 << 16))
        writer.join()
        return len(messages) / (time.perf_counter() - begun)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.input, view[: 1 << 16]) :]

    def close(self) -> None:
        self.process.communicate(timeout=60)


def request(number: int, size: int) -> bytes:
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"_meta": {"progressToken": number}, "name": "echo", "arguments": {"text": "x" * size}},
    }
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--many", type=int, default=20_000)
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        bare, tapped = Party(None), Party(Path(folder) / "trace.jsonl")
        for size in (200, 20_000):
            added: list[float] = []
            plain: list[float] = []
            for number in range(given.rounds):
                calls = [request(number * given.calls + n, size) for n in range(given.calls)]
                first = statistics.median(map(bare.call, calls))
                second = statistics.median(map(tapped.call, calls))
                plain.append(first)
                added.append(second - first)
            middle = statistics.median(added)
            text = f"{size:>6,} bytes: {statistics.median(plain):.3f} ms without, {middle:.3f} ms added"
            if size == 200:
                failed = middle > LIMIT_ADDED
                text += f" (limit {LIMIT_ADDED}{': MISSED' if failed else ''})"
            print(f"{text}; rounds {min(added):.3f} to {max(added):.3f}")
        rates = {
            name: [party.many([request(n, 200) for n in range(given.many)]) for _ in range(3)]
            for name, party in (("without", bare), ("tapped", tapped))
        }
        told = ", ".join(f"{max(found):,.0f} a second {name}" for name, found in rates.items())
        print(f"{given.many:,} messages there and back: {told}")
        bare.close()
        tapped.close()
        events = (Path(folder) / "trace.jsonl").read_bytes().count(b"\n") - 3
    wanted = 2 * (1 + 2 * given.rounds * given.calls + 3 * given.many)
    if events != wanted:
        print(f"the trace holds {events:,} messages, not {wanted:,}: MISSED")
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
