"""The transport display: what it says of real captures, of live traffic, and of traces that mean harm."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from mcplab import TraceError, make_trace, read_trace
from mcplab.live.handshakes import handshake
from mcplab.live.server.demo import DEMO
from mcplab.render import facts, html, mermaid, steps, text
from mcplab.render.facts import COUNTS
from mcplab.render.plain import columns_of

FAST_AGENT = Path(__file__).parents[1] / "data" / "traces" / "fast-agent"


def call(id_, method, **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def lines_of(shown: str) -> list[str]:
    return shown.splitlines()


def row_of(shown: str, channel: str) -> str:
    return next(line for line in lines_of(shown) if re.match(rf"│ \S {re.escape(channel)}", line))


@pytest.fixture(scope="module")
def modern():
    """Discovery, a list, a call answered as JSON and one over SSE with progress."""
    slow = (
        "tools/call",
        {"name": "progress", "arguments": {"steps": 3, "seconds": 0.1}, "_meta": {"progressToken": 7}},
    )
    quick = ("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    return handshake(DEMO(transport="http"), then=[("tools/list", None), quick, slow]).trace


@pytest.fixture(scope="module")
def legacy():
    target = DEMO(transport="http", session_id="docs-legacy-session")
    pinged = [step for _ in range(3) for step in (("ping", None), 0.05)]
    return handshake(target, mode="legacy", then=[("tools/list", None), *pinged], listen=True).trace


# Live traffic ----------------------------------------------------------------------------------------


def test_a_modern_connection_shows_protocol_calls_and_both_post_channels(modern):
    shown = text(modern)
    assert "protocol  2026-07-28 (modern)" in lines_of(shown)
    assert "mcp calls: discover:1, list_tools:1, tool:2" in lines_of(shown)
    assert not re.search(r"^(session|health|pings)", shown, re.MULTILINE)
    assert re.search(r"req +resp +notif +err", shown)  # no column of pings
    assert "unavailable (modern protocol has no GET stream)" in row_of(shown, "GET (SSE)")
    assert re.search(r"3 +3 +0 +0", row_of(shown, "POST (JSON)"))
    assert re.search(r"1 +1 +3 +0", row_of(shown, "POST (SSE)"))
    assert "In◆" in shown
    assert "To●*" in shown


def test_a_legacy_connection_shows_session_and_health(legacy):
    shown = text(legacy)
    for line in ("protocol  2025-11-25 (forced legacy)", "session   docs-legacy-session", "health    ok"):
        assert line in lines_of(shown)
    assert re.search(r"req +resp +notif +ping +err", shown)
    assert "unavailable (legacy protocol)" in row_of(shown, "LISTEN (SSE)")
    assert re.search(r"2 +2 +1 +6 +0", row_of(shown, "POST (JSON)"))
    assert "60 segments of 1 s" in shown


def test_a_server_without_list_changes_and_subscriptions_disables_listening():
    trace = handshake(DEMO(transport="http", capabilities={"tools": {}}), then=[("tools/list", None)]).trace
    shown = text(trace)
    assert "disabled (the server advertises neither list changes nor subscriptions)" in shown
    assert "◁ LISTEN (SSE)" in shown
    assert facts(trace)[0].found.endswith("; modern protocol")


def test_a_fallback_over_stdio():
    shown = text(handshake(DEMO(serves="legacy"), then=[("tools/list", None)]).trace, width=200)
    assert "protocol  2025-11-25 (legacy)" in lines_of(shown)
    assert "session   local" in lines_of(shown)
    assert "transport stdio" in lines_of(shown)
    assert "⇄ STDIO" in shown
    assert re.search(r"^│ △ Discovery: error -\d+ .*; legacy fallback succeeded$", shown, re.MULTILINE)
    assert "mcp calls: initialize:1, list_tools:1" in lines_of(shown)


# Captures ------------------------------------------------------------------------------------------------


def test_every_capture_has_a_display_whose_counts_are_those_of_its_messages(captures):
    for path in captures[::6]:
        trace = read_trace(path)
        for one in facts(trace):
            mine = trace.messages[trace.messages["instance"] == one.instance]
            for row in one.channels:
                here = mine[mine["channel"] == row.channel]
                counted = {name: int((here["activity"] == name).sum()) for name in COUNTS}
                counted["error"] += int((here["activity"] == "disabled").sum())
                assert (row.counts or dict.fromkeys(COUNTS, 0)) == counted
            assert sum(sum(row.counts.values()) for row in one.channels if row.counts) == len(mine)
        for width in (60, 80, 120, 200):
            assert (
                max(len(line) for line in text(trace, width=width).splitlines() if not line.startswith("mcp calls"))
                <= width
            )
        assert text(trace, short=True).count("\n") == 3 * len(facts(trace))
        assert trace._repr_html_()


def test_fast_agents_setting_in_the_server_entry_says_what_was_forced():
    for path in sorted(FAST_AGENT.glob("*.jsonl")):
        trace = read_trace(path)
        entry = trace.header["config"].get("server_entry")
        setting = entry.get("protocol_mode") if isinstance(entry, dict) else None
        wanted = {"legacy": "forced", "modern": "forced", "auto": "auto", None: "unknown"}[setting]
        assert set(trace.connections["mode"]) == {wanted}


def header(**more):
    return {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio", **more}


def told(trace, party, name):
    return next(token for token in facts(trace)[0].tokens if (token.party, token.name) == (party, name))


HELLO = call(0, "initialize", protocolVersion="2025-11-25", capabilities={"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}},
             clientInfo={"name": "c", "version": "1"})  # fmt: skip


def answer(**capabilities):
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "serverInfo": {"name": "s", "version": "2"},
    }
    return {"jsonrpc": "2.0", "id": 0, "result": result}


def test_tokens_keep_the_states_apart():
    server = answer(tools={"listChanged": True}, prompts={}, resources={"subscribe": False, "listChanged": False}, logging=None,
                    experimental={"x": {}}, extensions={"io.modelcontextprotocol/skills": {}})  # fmt: skip
    trace = make_trace([("client", HELLO), ("server", server)])
    found = {token.name: token for token in facts(trace)[0].tokens}
    states = {name: token.state for name, token in found.items()}
    assert states == {
        "To": "object", "Pr": "empty", "Re": "object", "Rs": "false", "Lo": "null", "Co": "absent", "Ex": "object",
        "In": "absent", "Sk": "empty", "Ui": "absent", "Ro": "object", "El": "object", "Sa": "absent",
    }  # fmt: skip
    assert [name for name, token in found.items() if token.marked] == ["To", "Ro"]
    assert found["El"].detail == "form, url"
    only = make_trace([("client", HELLO)])
    assert told(only, "server", "To").state == told(only, "server", "In").state == "unknown"


def test_what_only_the_configuration_knows_comes_from_the_header_alone():
    server = answer(tools={})
    server["result"]["instructions"] = "be kind"
    events = [
        {"kind": "message", "seq": 0, "conn": "c1", "dir": "c2s", "msg": HELLO},
        {"kind": "message", "seq": 1, "conn": "c1", "dir": "s2c", "msg": server},
    ]
    config = {
        "protocol_mode": "legacy",
        "include_instructions": False,
        "implementation": {"name": "other"},
        "elicitation": {"mode": "forms"},
    }
    trace = read_trace([header(config=config), *events])
    assert told(trace, "server", "In")[2:] == ("value", False, "not passed on")
    assert told(trace, "client", "Sp").state == "true"
    assert told(trace, "client", "El").detail == "form, url, mode forms"
    assert "protocol  2025-11-25 (forced legacy)" in text(trace)
    plain = read_trace([header(), *events])
    assert told(plain, "server", "In").detail == ""
    assert [token.name for token in facts(plain)[0].tokens if token.name == "Sp"] == []
    assert facts(read_trace([header(config={"protocol_mode": "auto"}), *events]))[0].label == "2025-11-25 (legacy)"


def test_apps_are_seen_on_tools_where_nobody_declared_them():
    listed = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": "a", "_meta": {"ui": {"resourceUri": "ui://a"}}}, {"name": "b", "_meta": {"openai/outputTemplate": "x"}},
    ]}}  # fmt: skip
    trace = make_trace(
        [("client", HELLO), ("server", answer(tools={})), ("client", call(1, "tools/list")), ("server", listed)]
    )
    token = told(trace, "server", "Ui")
    assert (token.state, token.detail) == ("true", "not declared, seen: MCP Apps, OpenAI Apps SDK")
    listed["result"]["tools"] = [{"name": "openai/outputTemplate", "description": '"ui" ui/resourceUri'}]
    trace = make_trace(
        [("client", HELLO), ("server", answer(tools={})), ("client", call(1, "tools/list")), ("server", listed)]
    )
    assert told(trace, "server", "Ui").state == "absent"


def pings(n, interval=2, **more):
    stamp = pd.Timestamp("2026-01-01T00:00:00Z")
    for at in range(n):
        when = (stamp + pd.Timedelta(seconds=at * interval)).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield {"kind": "message", "seq": 10 + 2 * at, "ts": when, "conn": "c1", "dir": "c2s", "msg": call(at, "ping")}
        yield {
            "kind": "message",
            "seq": 11 + 2 * at,
            "ts": when,
            "conn": "c1",
            "dir": "s2c",
            "msg": {"jsonrpc": "2.0", "id": at, "result": {}},
        }


def test_how_the_pings_stood():
    row = read_trace([header(), *list(pings(4))[:-1]]).connections.iloc[0]
    assert (row["health"], row["ping_interval"], row["ping_missed"], row["ping_limit"]) == ("pending", 2.0, 0, 3)
    assert row["ping_answered"] == pd.Timestamp("2026-01-01T00:00:04Z")
    row = read_trace([header(ping={"interval": 1, "max_missed": 5}), *pings(2)]).connections.iloc[0]
    assert (row["health"], row["ping_interval"], row["ping_limit"]) == ("ok", 1.0, 5)
    none = make_trace([("client", HELLO)]).connections.iloc[0]
    assert none[["health", "ping_interval", "ping_missed", "ping_limit", "ping_answered"]].isna().all()


def test_a_delete_that_the_server_does_not_offer_is_no_ill_health():
    last = {
        "kind": "http",
        "seq": 90,
        "conn": "c1",
        "dir": "c2s",
        "http": {"method": "DELETE", "path": "/mcp", "exchange": "x9"},
    }
    refused = {"kind": "http", "seq": 91, "conn": "c1", "dir": "s2c", "http": {"status": 405, "exchange": "x9"}}
    beats = list(pings(2))
    for number, event in enumerate(beats):
        event["http"] = {
            "exchange": f"x{number // 2}",
            **({"method": "POST"} if event["dir"] == "c2s" else {"status": 200}),
        }
    trace = read_trace([header(transport="streamable-http"), *beats, last, refused])
    assert trace.connections["health"].tolist() == ["ok"]
    assert "closed (HTTP 405)" in text(trace)


def test_several_instances_are_shown_one_below_the_other_or_one_alone():
    events = []
    for n in range(10):
        hello = {**HELLO, "params": {**HELLO["params"], "clientInfo": {"name": f"c{n}", "version": "1"}}}
        events.append({"kind": "message", "seq": n, "conn": f"p{n}", "dir": "c2s", "msg": hello})
    trace = read_trace([header(), *events])
    names = [one.instance for one in facts(trace)]
    assert len(names) == 10
    assert text(trace).count("▎") == 10
    assert text(trace, instance=names[3]).count("▎") == 1
    assert "and 2 more instances" in html(trace)
    with pytest.raises(TraceError, match="no instance 'x'"):
        text(trace, instance="x")


def test_a_capture_without_events_or_clock():
    assert text(read_trace([header()])) == "no connection was captured\n"
    shown = text(make_trace([("client", HELLO)]))
    assert "no clock" in shown
    assert "session   local" in lines_of(shown)
    with pytest.raises(TraceError, match="no event has a time stamp"):
        text(make_trace([("client", HELLO)]), end="2026-01-01")


def test_pings_where_the_protocol_has_none_are_told_in_a_line(modern):
    assert facts(modern)[0].pings_out_of_place == 0
    trace = handshake(DEMO(transport="http"), then=[("ping", None)]).trace
    assert "1 ping messages, which this protocol does not have" in text(trace)


# Colour and harm -----------------------------------------------------------------------------------------

EVIL = "\x1b[31mred\x1b]0;title\x07\u202eslip<script>alert(1)</script>$x$\r\nforged line"


def evil():
    hello = {**HELLO, "params": {**HELLO["params"], "clientInfo": {"name": EVIL, "version": EVIL}}}
    reply = answer(tools={EVIL: {}})
    reply["result"]["serverInfo"] = {"name": EVIL, "version": EVIL}
    reply["result"]["protocolVersion"] = EVIL
    failed = {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": EVIL}}
    return make_trace(
        [("client", hello), ("server", reply), ("client", call(5, EVIL)), ("server", failed), ("server", EVIL)]
    )


def test_a_trace_cannot_speak_to_the_terminal():
    for short in (False, True):
        shown = text(evil(), short=short)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
        assert not any(line.startswith("forged line") for line in shown.splitlines())
        assert "\\x1b[31mred" in shown
    coloured = text(evil(), colour=True)
    assert set(re.findall("\x1b[^m]*m", coloured)) <= {
        f"\x1b[{code}m" for code in ("0", "1", "2", "32", "33", "34", "91", "93", "94", "96", "1;93", "35")
    }
    assert text(evil(), colour=False) == re.sub("\x1b\\[[0-9;]*m", "", text(evil(), colour=False))


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_trace_cannot_speak_to_the_browser():
    seen = Seen()
    page = evil()._repr_html_()
    seen.feed(page)
    assert seen.tags <= {"div", "style", "p", "b", "table", "tr", "th", "td", "i", "span", "br"}
    assert seen.attributes <= {"class", "title", "scope", "role", "aria-label", "data-row"}
    assert "mathjax_ignore" in page
    assert "\x1b" not in page


def test_colour_keeps_the_documents_symbols_and_plain_text_tells_by_shape():
    trace = make_trace([
        ("client", HELLO), ("server", answer()), ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ("client", call(1, "ping")), ("client", call(2, "x")), ("server", {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": ""}}),
    ])  # fmt: skip
    assert "◆▼●•◆✖" in text(trace)
    assert "◆▼●●◆●" in re.sub("\x1b\\[[0-9;]*m", "", text(trace, colour=True))
    assert "\x1b[91m●\x1b[0m" in text(trace, colour=True)


# The ladder as text ------------------------------------------------------------------------------------------


def test_mermaid_tells_the_handshake_and_nothing_can_break_out(legacy):
    written = mermaid(legacy.messages, legacy.events)
    assert written.startswith(
        "sequenceDiagram\n    participant C as client\n    participant S as server\n    C->>S: initialize - 2025-11-25"
    )
    assert "Note over C,S: agreed on 2025-11-25 (legacy)" in written
    assert re.search(r"C->>S: GET$", written, re.MULTILINE)
    for line in mermaid(evil().messages, evil().events).splitlines()[1:]:
        assert re.match(r"    (participant [CS] as \w+|[CS]--?(>>|x)[CS]: |Note over C,S: )", line)
        assert not re.search(r"[;<>](?!>)", re.sub(r"#\d+;|-?->>|--?x", "", line))
    assert mermaid(legacy.messages, limit=2).rstrip().endswith("more")


def test_steps_of_a_negotiation(modern, legacy):
    assert [step[1:5] for step in steps(legacy.messages)] == [
        ("initialize (2025-11-25)", "a result: 2025-11-25", "agreed on 2025-11-25 (legacy)", True)
    ]
    only = steps(modern.messages)
    assert (only[0].asked, only[0].so) == ("server/discover (2026-07-28)", "agreed on 2026-07-28 (modern)")
    trace = handshake(DEMO(transport="http", serves="legacy")).trace
    first, second = steps(trace.messages, trace.events)
    assert (first.good, second.good) == (False, True)
    assert first.so == "fell back: initialize"
    assert first.came != "no answer"
    assert steps(make_trace([("client", call(1, "ping"))]).messages) == []
    hanging = make_trace([("client", call(0, "server/discover"))])
    assert (steps(hanging.messages)[0].came, steps(hanging.messages)[0].so) == (
        "no answer",
        "not known: no answer was captured",
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_reasons_are_folded_and_nothing_of_them_is_lost(width):
    trace = read_trace(Path(__file__).with_name("fast_agent") / "mini405-auto.jsonl")
    out = text(trace, width=width)
    words = re.sub(r"[│\s]+", " ", out)
    for told in (
        "15 messages, 2026-11-30 09:36:55.600 to 09:37:02.441 UTC (6.84 s)",
        "△ Discovery: error -32601 Method not found (HTTP 404); legacy fallback succeeded",
        "closed (HTTP 405); 1 refused or unreadable; last error: HTTP 405; last status: 405",
        "every 2.03 s, missed 0 of 3, last answer <1 s before the end",
    ):
        assert told in words
    assert "…" not in out
    assert max(map(columns_of, out.splitlines())) <= width


def test_names_as_long_as_a_book_are_cut_and_calls_folded():
    client = {"name": "N" * 1_000_000, "version": "日本" * 1_000}
    asks = [("client", {"jsonrpc": "2.0", "id": n, "method": f"vendor/method-{n:02}"}) for n in range(2, 22)]
    trace = make_trace([
        ("client", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25" * 100, "capabilities": {}, "clientInfo": client}}),
        ("server", {"jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": "2025-11-25" * 100, "capabilities": {}, "serverInfo": client}}),
        *asks,
    ])  # fmt: skip
    for width in (60, 80, 120):
        for short in (False, True):
            lines = text(trace, width=width, short=short).splitlines()
            assert max(map(columns_of, lines)) <= width
        calls = text(trace, width=width).split("mcp calls: ")[1].split("\n\n")[0]
        assert [part.strip() for part in calls.split(",")] == [
            "initialize:1",
            *(f"vendor/method-{n:02}:1" for n in range(2, 22)),
        ]
