"""Ladder, negotiation and latency: what they draw is what was said, and all of it can be read."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from figures import assert_legible, figure_of, said
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection

import mcplab
from mcplab import make_trace, plots, read_trace
from mcplab.live.handshakes import handshake
from mcplab.live.server.demo import DEMO
from mcplab.plots import alt_text
from mcplab.plots.delays import seconds
from mcplab.render.arrows import arrows, how_many, steps

HERE = Path(__file__).with_name("fast_agent")


@pytest.fixture(scope="module")
def fallback():
    return read_trace(HERE / "mini405-auto.jsonl")


@pytest.fixture(scope="module")
def asked():
    """A tool that asks a person, over HTTP in the modern era: one call in two rounds."""
    answers = {"elicitation/create": {"action": "accept", "content": {"name": "x"}}}
    then = [("tools/list", None), ("tools/call", {"name": "ask-elicitation", "arguments": {}})]
    return handshake(DEMO(transport="http"), declare={"elicitation": {"form": {}}}, answers=answers, then=then).trace


def gids(ax, start):
    return [str(artist.get_gid()) for artist in ax.get_children() if str(artist.get_gid()).startswith(start)]


# Sequence ------------------------------------------------------------------------------------------------


def test_the_first_handshake_is_on_one_page_with_what_was_decided(fallback):
    ax = plots.sequence(fallback.messages, events=fallback.events, title="It falls back")
    assert_legible(ax)
    words = said(ax)
    for word in (
        "server/discover",
        "initialize",
        "notifications/initialized",
        "fell back: initialize",
        "GET: HTTP 405",
    ):
        assert word in words
    assert "2026-07-28; sampling.tools, elicitation.form, elicitation.url" in words
    assert any(word.startswith("agreed on 2025-11-25") for word in words)
    assert "0.044 s" in words
    wanted = [n for n in fallback.events["seq"] if n in set(fallback.messages["seq"]) or n in (6, 8, 13, 14, 21, 22)]
    assert gids(ax, "arrow:") == [f"arrow:{n}" for n in wanted]
    assert (
        alt_text(ax)
        == "It falls back: a ladder of 21 arrows, 11 of them from the client. fell back: initialize; agreed on 2025-11-25 (legacy)."
    )


@pytest.mark.parametrize("width", [None, 300])
def test_what_was_declared_is_never_cut(asked, width):
    ax = None
    if width is not None:
        ax = plt.figure(figsize=(width / 72 * 2, 6)).add_axes((0.25, 0.1, 0.5, 0.8))
    ax = plots.sequence(asked.messages, events=asked.events, ax=ax)
    text = " ".join(said(ax))
    assert "2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05; tools.listChanged, prompts.listChanged," in text
    assert "resources.subscribe, resources.listChanged, logging, completions" in text
    assert "…" not in text
    assert_legible(ax)


def test_words_stand_clear_of_the_marks_of_their_arrows(fallback):
    ax = plots.sequence(fallback.messages, events=fallback.events)
    renderer = FigureCanvasAgg(figure_of(ax)).get_renderer()
    shown = [line for line in ax.lines if line.get_marker() not in ("None", None) and line.get_zorder() == 4]
    assert len(shown) > 10
    for text in ax.texts:
        box = text.get_window_extent(renderer)
        assert not any(box.overlaps(line.get_window_extent(renderer)) for line in shown), text.get_text()


def test_of_many_steps_a_page_is_drawn_and_the_rest_counted():
    asks = [("client", {"jsonrpc": "2.0", "id": n, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
            for n in range(40)]  # fmt: skip
    messages = make_trace(asks).messages
    ax = plots.negotiation(messages)
    assert len(gids(ax, "step:")) == 16
    assert "24 more steps follow." in said(ax)
    assert "39 more steps follow." in said(plots.negotiation(messages, limit=1))
    assert_legible(ax)


@pytest.mark.parametrize("limit", [1, 4, 9])
def test_the_first_arrows_and_steps_are_those_of_the_whole(fallback, limit):
    frames = fallback.messages, fallback.events
    assert arrows(*frames, limit=limit) == arrows(*frames)[:limit]
    assert steps(*frames, limit=limit) == steps(*frames)[:limit]
    assert how_many(*frames) == len(arrows(*frames))


def test_arrows_go_from_who_spoke_and_down(fallback):
    ax = plots.sequence(fallback.messages, limit=4)
    for artist, sender in zip(
        (a for a in ax.patches if str(a.get_gid()).startswith("arrow:")), ["client", "server"] * 2, strict=True
    ):
        (x0, y0), (x1, y1) = artist._posA_posB
        assert (x0, x1) == ((0.0, 1.0) if sender == "client" else (1.0, 0.0))
        assert y1 > y0
    assert "11 more arrows follow. Times since the first arrow." in said(ax)


def test_one_instance_is_drawn_and_the_others_are_counted(captures):
    many = mcplab.read_traces([captures[0], captures[5], captures[9]], progress=False)
    ax = plots.sequence(many.messages)
    assert any(f"{len(set(many.messages['instance'])) - 1} more in this frame" in word for word in said(ax))
    last = many.messages["instance"].iloc[-1]
    assert len(gids(plots.sequence(many.messages, instance=last), "arrow:")) == min(
        26, int((many.messages["instance"] == last).sum())
    )
    with pytest.raises(ValueError, match="no instance 'x'"):
        plots.sequence(many.messages, instance="x")


def test_every_capture_has_a_legible_ladder_and_negotiation(captures):
    for path in captures[::40]:
        trace = read_trace(path)
        assert_legible(plots.sequence(trace.messages, events=trace.events, theme="dark"))
        assert_legible(plots.negotiation(trace.messages, events=trace.events))


def test_a_ladder_without_a_clock_or_a_sender_and_with_strange_words():
    trace = make_trace(
        [("client", {"jsonrpc": "2.0", "id": 1, "method": "$x$\x1b\u202e" + "y" * 300}), ("server", "no json")]
    )
    ax = plots.sequence(trace.messages, events=trace.events)
    assert_legible(ax)
    assert {"seq 0", "seq 1", "no JSON-RPC"} <= set(said(ax))
    assert not any("\x1b" in word or "\u202e" in word for word in said(ax))
    unknown = trace.messages.assign(sender=None)
    assert len(gids(plots.sequence(unknown), "arrow:")) == 1
    with pytest.raises(ValueError, match="no column 'seq'"):
        plots.sequence(pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.sequence(trace.messages.iloc[:0])


def test_an_axes_of_ones_own_is_used(fallback):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(16, 9))
    assert plots.sequence(fallback.messages, ax=left) is left
    assert plots.negotiation(fallback.messages, ax=right) is right
    assert figure.axes == [left, right]


# Negotiation -----------------------------------------------------------------------------------------------


def test_steps_with_their_reasons(fallback):
    ax = plots.negotiation(fallback.messages, events=fallback.events)
    assert_legible(ax)
    assert gids(ax, "step:") == ["step:0:bad", "step:1:good"]
    words = said(ax)
    assert words.index("came: error -32601 Method not found (HTTP 404)") < words.index("→ fell back: initialize")
    assert "→ agreed on 2025-11-25 (legacy)" in words
    shake = handshake(DEMO(serves="legacy"))
    own = plots.negotiation(shake.steps)
    assert gids(own, "step:")[-1].endswith(":good")
    assert len(gids(own, "step:")) == len(shake.steps)
    nothing = plots.negotiation(make_trace([("client", {"jsonrpc": "2.0", "method": "x"})]).messages)
    assert "no negotiation was captured" in said(nothing)


# Latency ------------------------------------------------------------------------------------------------------


def exchanges(*rows):
    return pd.DataFrame([dict(zip(("method", "sender", "outcome", "latency"), row, strict=True)) for row in rows])


def test_each_method_has_its_answers_errors_and_median():
    frame = exchanges(
        *(("tools/call", "client", "result", s) for s in (0.1, 0.2, 0.3, 0.4)), ("tools/call", "client", "error", 0.5),
        ("tools/list", "client", "result", 0.001), ("tools/list", "client", "unanswered", np.nan),
        ("ping", "server", "result", 0.0), ("lost", "client", "cancelled", np.nan),
    )  # fmt: skip
    ax = plots.latency(frame)
    assert_legible(ax)
    words = said(ax)
    assert {"5, 300 ms", "1, 1 ms, 1 unanswered", "ping (server asks)", "0, 1 unanswered"} <= set(words)
    ticks = next(
        part for part in ax.collections if isinstance(part, LineCollection) and part.get_gid() == "answers:tools/call"
    )
    assert [segment[0][0] for segment in ticks.get_segments()] == [0.1, 0.2, 0.3, 0.4]
    errors = next(line for line in ax.lines if line.get_gid() == "errors:tools/call")
    assert list(errors.get_xdata()) == [0.5]
    box = next(patch for patch in ax.patches if patch.get_gid() == "box:tools/call")
    assert (box.get_x(), box.get_x() + box.get_width()) == (0.2, pytest.approx(0.4))
    assert alt_text(ax).startswith("Latency of 7 answers to 4 methods; slowest by median tools/call")


def test_a_method_that_both_sides_ask_has_two_ids():
    ax = plots.latency(
        exchanges(*(("ping", who, "result", 0.1 * n) for who in ("client", "server") for n in (1, 2, 3)))
    )
    ids = [part.get_gid() for part in (*ax.collections, *ax.patches) if part.get_gid()]
    assert sorted(ids) == ["answers:ping", "answers:ping:server", "box:ping", "box:ping:server"]


def test_many_errors_are_ticks_below_the_answers_and_counted():
    rows = [("initialize", "client", "result" if n % 2 else "error", 0.001 * (n + 1)) for n in range(40)]
    ax = plots.latency(exchanges(*rows))
    assert_legible(ax)
    assert "40, 20.5 ms, 20 errors" in said(ax)
    ticks = {part.get_gid(): part.get_segments() for part in ax.collections if isinstance(part, LineCollection)}
    good, bad = ticks["answers:initialize"], ticks["errors:initialize"]
    assert [float(line[0][0]) for line in bad] == pytest.approx([0.001 * (n + 1) for n in range(0, 40, 2)])
    assert max(float(line[:, 1].max()) for line in good) < min(float(line[:, 1].min()) for line in bad)


def test_many_answers_are_a_box_and_a_range_and_rare_methods_are_counted():
    dice = np.random.default_rng(1)
    frame = exchanges(
        *((f"m{n % 30}" if n > 400 else "busy", "client", "result", float(dice.lognormal(-4))) for n in range(700))
    )
    ax = plots.latency(frame, most=5)
    assert not [part for part in ax.collections if part.get_gid() == "answers:busy"]
    assert [patch for patch in ax.patches if patch.get_gid() == "box:busy"]
    assert "26 rarer methods are left out." in said(ax)
    assert_legible(ax)


def test_latency_of_captures_and_wrong_frames(captures):
    traces = mcplab.read_traces(captures[::50], progress=False)
    assert_legible(plots.latency(traces.exchanges, theme="dark"))
    with pytest.raises(ValueError, match="no column 'method'"):
        plots.latency(pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match="no request of this frame"):
        plots.latency(exchanges(("a", "client", "unanswered", np.nan)))
    assert [seconds(s) for s in (0.00035, 0.012, 1.5, 120)] == ["350 µs", "12 ms", "1.5 s", "2 min"]


# Timeline with rounds --------------------------------------------------------------------------------------------


def test_rounds_of_one_request_are_joined_and_the_wait_for_a_person_is_set_apart(asked):
    table = asked.exchanges
    call = table[table["group"].notna()]
    assert len(call) == 2
    ax = plots.timeline(asked.messages, http=asked.http, events=asked.events, exchanges=table)
    (person,) = [part for part in ax.collections if isinstance(part, PolyCollection) and part.get_gid() == "person"]
    (corners,) = [path.vertices for path in person.get_paths()]
    start = asked.messages["ts"].min()
    first = asked.messages.set_index("seq").loc[int(call["reply_seq"].iloc[0]), "ts"]
    again = call["ts"].iloc[1]
    assert corners[:, 0].min() == pytest.approx((first - start).total_seconds())
    assert corners[:, 0].max() == pytest.approx((again - start).total_seconds())
    (joins,) = [part for part in ax.collections if part.get_gid() == "rounds"]
    assert len(joins.get_segments()) == 1
    assert {"waits for a person", "next round of one request"} <= set(said(ax))
    plain = plots.timeline(asked.messages)
    assert not [part for part in plain.collections if part.get_gid() in ("person", "rounds")]


def test_groups_of_two_traces_do_not_mix(asked):
    both = mcplab.read_traces(asked.renamed("a"), asked.renamed("b"), progress=False)
    ax = plots.timeline(both.messages, exchanges=both.exchanges)
    (joins,) = [part for part in ax.collections if part.get_gid() == "rounds"]
    assert len(joins.get_segments()) == 2
    assert len({segment[0][1] for segment in joins.get_segments()}) == 2
