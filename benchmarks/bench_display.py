"""What showing 100,000 events costs: the timeline chart, and the panel when something in it is changed.

    python benchmarks/bench_display.py [--events 100000]

CPU seconds of this process, since other work on the machine disturbs the clock: the best of three charts, the worst of
three redraws. All events are of one instance, so every redraw looks at all of them. Exit status 1 where a limit is
missed.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

LIMIT_CHART = 3.0
LIMIT_REDRAW = 0.3


def timed(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    given = parser.parse_args()
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from generate import generate

    import mcplab
    from mcplab import plots
    from mcplab.render import html, text

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.jsonl"
        generate(path, given.events)
        head, rest = path.read_bytes().split(b"\n", 1)  # a header that names the client makes it one instance
        path.write_bytes(
            head.replace(b'"transport"', b'"client":{"name":"busy","version":"1"},"transport"') + b"\n" + rest
        )
        trace = mcplab.read_trace(path)
        messages, http, events, exchanges = trace.messages, trace.http, trace.events, trace.exchanges
    trace.connections, trace.channels, trace.declarations, trace.marks  # noqa: B018  # tables are not what is measured
    print(f"{len(events):,} events, {len(messages):,} messages, {trace.connections['instance'].nunique()} instance")

    def chart() -> None:
        ax = plots.timeline(messages, http=http, events=events, exchanges=exchanges)
        ax.figure.savefig(io.BytesIO(), format="png")
        plt.close("all")

    shown: list[Any] = []
    first = timed(lambda: shown.append(mcplab.panel(trace)))
    panel = shown[0]
    methods = [value for _, value in panel.methods.options]
    busiest = str(messages["channel"].mode()[0])
    redraws = {
        "steps": [lambda n=n: setattr(panel.steps, "value", n) for n in (30, 90, 120)],
        "length of a step": [lambda n=n: setattr(panel.seconds, "value", n) for n in (2.0, 5.0, 10.0)],
        "methods": [lambda n=n: setattr(panel.methods, "value", n) for n in ((methods[0],), (methods[1],), ())],
        "page of events": [lambda n=n: setattr(panel.page, "value", n) for n in (2, 30, 400)],
        "an event's text": [lambda n=n: setattr(panel.events, "value", panel.events.options[n][1]) for n in (3, 5, 9)],
        "a segment's events": [lambda n=n: panel.pick(busiest, panel.steps.value + n) for n in (-1, -2, -3)],
    }
    rows = [("chart, drawn and saved as png", min(timed(chart) for _ in range(3)), LIMIT_CHART)]
    rows += [(f"panel: {what}", max(map(timed, works)), LIMIT_REDRAW) for what, works in redraws.items()]
    rows += [("panel, first time", first, None), ("text", min(timed(lambda: text(trace)) for _ in range(3)), None)]
    rows += [("html", min(timed(lambda: html(trace)) for _ in range(3)), None)]
    missed = False
    for what, seconds, limit in rows:
        late = limit is not None and seconds > limit
        missed |= late
        print(
            f"{what:32} {seconds:6.3f} s"
            + (f"   at most {limit} s" if limit is not None else "")
            + ("   MISSED" if late else "")
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
