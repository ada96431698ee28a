"""The display against what fast-agent's own screen said of the same three runs."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from mcplab import read_trace
from mcplab.render import facts, segments, text

HERE = Path(__file__).with_name("fast_agent")

# What the screens said: the header lines, the client's requests by name, counts of requests and notifications (it does
# not see the server's answers), the words behind a channel, and the line on discovery.
SCREENS = {
    "mini405-auto": {
        "implementation": "mini405 1", "label": "2025-11-25 (legacy)", "session": "sess-405", "health": "ok",
        "interval": 2, "missed": 0, "limit": 3,
        "calls": {"initialize": 1, "tools/call": 1, "tools/list": 1},
        "channels": {
            "GET (SSE)": (None, None, "disabled (HTTP 405)"), "LISTEN (SSE)": (None, None, "unavailable (legacy protocol)"),
            "POST (SSE)": (None, None, "not observed"), "POST (JSON)": (4, 1, ""),
        },
        "discovery": ("HTTP 404", "legacy fallback succeeded"),
    },
    "py-legacy": {
        "implementation": "mcp-conformance-test-server 0.1.0", "label": "2025-11-25 (forced legacy)",
        "session": "182dad79cbfa400284371e0e9ec092cc", "health": "ok", "interval": 2, "missed": 0, "limit": 3,
        "calls": {"initialize": 1, "prompts/list": 1, "resources/list": 1, "tools/call": 2, "tools/list": 1},
        "channels": {
            "GET (SSE)": (0, 0, ""), "LISTEN (SSE)": (None, None, "unavailable (legacy protocol)"),
            "POST (SSE)": (6, 3, ""), "POST (JSON)": (0, 1, ""),
        },
        "discovery": (),
    },
    "py-modern": {
        "implementation": "mcp-conformance-test-server 0.1.0", "label": "2026-07-28 (modern)", "session": None,
        "health": None, "interval": None, "missed": None, "limit": None,
        "calls": {"discover": 1, "prompts/list": 2, "resources/list": 2, "tools/call": 2, "tools/list": 2},
        "channels": {
            "GET (SSE)": (None, None, "unavailable (modern protocol has no GET stream)"), "LISTEN (SSE)": (1, None, ""),
            "POST (SSE)": (1, 3, ""), "POST (JSON)": (8, 0, ""),
        },
        "discovery": (),
    },
}  # fmt: skip
NAMES = {"list_tools": "tools/list", "tool": "tools/call"}


@pytest.fixture(params=SCREENS)
def run(request):
    return SCREENS[request.param], read_trace(HERE / f"{request.param}.jsonl")


def test_the_same_facts(run):
    screen, trace = run
    (one,) = facts(trace)
    assert one.implementation == screen["implementation"]
    assert one.caller == "fast-agent 0.10.48 (calls itself fast-agent-mcp)"  # the screen has the name on the wire
    for name in ("label", "session", "health", "missed", "limit"):
        assert getattr(one, name) == screen[name], name
    assert one.interval == (None if screen["interval"] is None else pytest.approx(screen["interval"], abs=0.05))
    counted = dict(part.rsplit(":", 1) for part in one.calls.split(", "))
    counted.pop("subscriptions/listen", None)  # a request of the client, which the screen does not list
    assert {NAMES.get(name, name): int(n) for name, n in counted.items()} == screen["calls"]
    for part in screen["discovery"]:
        assert part in one.found
    if one.answered_before is not None:
        assert one.answered_before < 1  # "last ok: <1s"


def test_the_same_channels(run):
    screen, trace = run
    rows = {row.channel: row for row in facts(trace)[0].channels}
    for channel, (requests, notifications, words) in screen["channels"].items():
        row = rows[channel]
        if requests is None:
            assert row.counts is None
        else:
            assert row.counts["request"] == requests, channel
            assert notifications is None or row.counts["notification"] == notifications, channel
        assert not words or row.words == words


def test_the_same_columns(run):
    screen, trace = run
    shown = text(trace, steps=20)
    modern = screen["label"].endswith("(modern)")
    assert ("health" in shown) is not modern
    assert bool(re.search(r"req +resp +notif +ping", shown)) is not modern
    assert bool(re.search(r"^session   ", shown, re.MULTILINE)) is not modern


def strip(name: str, now: str, channel: str) -> str:
    """What fast-agent had on its strip: 20 steps of a second up to the moment of the screen."""
    trace = read_trace(HERE / f"{name}.jsonl")
    cells = segments(trace, name, steps=20, end=now).cells.get(channel, ["none"] * 20)
    marks = {
        "none": "·",
        "request": "◆",
        "disabled": "▽",
        "notification": "●",
        "error": "✖",
        "ping": "•",
        "response": "▼",
    }
    return "".join(marks[word] for word in cells)


def test_the_strips_show_what_the_screens_showed_and_what_they_left_out():
    assert strip("mini405-auto", "2026-11-30T09:37:02Z", "GET (SSE)") == "············▽▽······"  # as on the screen
    # the screen: ············◆◆······; the refused discovery is an error here, and pings are shown
    assert strip("mini405-auto", "2026-11-30T09:37:02Z", "POST (JSON)") == "············✖◆•·•·•·"
    # the screen: ·············●······
    assert strip("py-legacy", "2026-11-30T09:36:31Z", "POST (JSON)") == "·············●······"
    # the screen: ·············◆◆·····
    assert strip("py-legacy", "2026-11-30T09:36:31Z", "POST (SSE)") == "·············◆◆•·•·•"
    # the screen: ·········◆◆·◆◆······ and ··········◆·········, with listening one step later than on the wire
    assert strip("py-modern", "2026-11-30T09:35:48Z", "POST (JSON)") == "·········◆◆·◆◆······"
    assert strip("py-modern", "2026-11-30T09:35:48Z", "LISTEN (SSE)") == "·········◆··········"


def test_counts_of_a_channel_add_up_to_its_messages(run):
    _, trace = run
    for row in facts(trace)[0].channels:
        mine = trace.messages[trace.messages["channel"] == row.channel]
        assert sum((row.counts or {}).values()) == len(mine)
    assert isinstance(trace.messages, pd.DataFrame)
