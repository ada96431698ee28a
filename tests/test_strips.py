"""Timelines as text: the step that holds a whole trace, and one symbol a segment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab import strips
from mcplab.bins import timeline
from mcplab.look import ACTIVITIES
from mcplab.model import NO_TIME
from mcplab.sources import load
from mcplab.traces import make_trace, read_trace


class Timed:
    """As much of a trace as a step is made from."""

    def __init__(self, ts: list[int]) -> None:
        self.ts = np.array(ts, dtype="int64")

    @property
    def marks(self):
        return self


@given(st.lists(st.integers(0, 2**51), min_size=1, max_size=5), st.integers(1, 400))
def test_the_step_holds_the_whole_trace_and_is_round(moments, steps):
    step = strips.step_for(Timed([*moments, NO_TIME]), steps)
    first, last = (math.floor(at / (step * 1e6)) for at in (min(moments), max(moments)))
    assert last - first < steps or steps == 1  # one segment cannot hold what crosses the full hour of every clock
    assert step >= strips.SHORTEST
    digit = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(digit, 6) in (1, 2, 5)


def test_without_a_clock():
    trace = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})])
    assert not strips.has_clock(trace)
    assert strips.step_for(trace) == 1.0


def test_a_symbol_each_that_speaks_without_colour():
    assert set(strips.PLAIN) == set(ACTIVITIES)
    assert len(set(strips.PLAIN.values())) == len(ACTIVITIES)


@pytest.mark.parametrize("name", ["fast-agent-0.10.48-http-legacy-roots", "cline-3.0.65-stdio-modern-run"])
def test_the_strip_says_what_the_table_says(name):
    trace = load(f"bundled:{name}")[0]
    frame = timeline(trace, steps=30, step_seconds=0.05)
    lines = strips.strip(frame, 0.05).splitlines()
    words = {symbol: word for word, symbol in strips.PLAIN.items()}
    blocks = [line for line in lines if line.startswith("  ")]
    assert len(blocks) == len(frame)
    for line, (_, channel), cells in zip(blocks, frame.index, frame.to_numpy(), strict=True):
        assert line.strip().startswith(channel)
        assert [words[symbol] for symbol in line[-30:]] == list(cells)
    assert lines[-2].startswith("30 segments of 0.05 s, from 2026-11-30 ")


def test_event_by_event():
    message = '{"kind":"message","seq":0,"conn":"c","dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}'
    frame = timeline(read_trace('{"kind":"header","format":"mcplab-trace","version":1}\n' + message), axis="seq")
    assert "1 segment, one an event" in strips.strip(frame)
