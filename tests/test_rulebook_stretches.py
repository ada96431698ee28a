"""A big plain trace is judged by stretches: that must never change an outcome of looking at each event."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcplab import read_trace
from mcplab.formats import native, read
from mcplab.formats.columns import Events
from mcplab.formats.source import load
from mcplab.frames.direct import walked
from mcplab.frames.links import links
from mcplab.frames.sparse import Sparse
from mcplab.frames.wire import Wire
from mcplab.model import Event, Record
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import catalogue
from mcplab.rulebook.engine import Run
from mcplab.rulebook.plan import Plan
from mcplab.rulebook.stretches import Swift
from mcplab.rulebook.tables import certain, plan_of

ALL = [rule for rule in catalogue().values() if rule.check]


@pytest.fixture(autouse=True)
def big(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is a big one."""
    monkeypatch.setattr(native, "BIG", 0)


def said(run: Run) -> Counter[Any]:
    """Everything that the checks said."""
    found: Counter[Any] = Counter()
    for (instance, revision), board in run.boards.items():
        for rule, times in enumerate(board.kept):
            found[instance, revision, run.plan.rules[rule].id, "kept"] += times
        for rule, times in enumerate(board.unknown):
            found[instance, revision, run.plan.rules[rule].id, "unknown"] += times
        for rule, breach, *where in board.breaches():
            found[instance, revision, run.plan.rules[rule].id, breach, *where] += 1
    return +found


def both(record: Record, plan: Plan) -> tuple[Swift, Run] | None:
    """The two passes over a record; None where it is none of those that are walked as numbers."""
    if not isinstance(record.events, Events):
        return None
    numbers = walked(record.events.columns, record, "x")
    if numbers is None:
        return None
    wire = Wire(record)
    return Swift(Sparse(record, numbers), numbers.links, plan), Run(wire, links(wire, "x"), plan)


def again(record: Record, times: int, *, beside: bool = True) -> Record | None:
    """The same connections several times, side by side or one after the other, with a clock: what the first told is
    known the next time."""
    lines = [json.dumps(dict(record.header))] if record.header else []
    count = len(record.events)
    events = [event for event in record.events for _ in range(times)] if beside else [*record.events] * times
    for seq, event in enumerate(events):
        turn = seq % times if beside else seq // count
        stamp = f"2026-01-05T10:{seq // 60 % 60:02}:{seq % 60:02}.{seq % 1000:06}Z"
        more: dict[str, Any] = {"conn": f"{event.conn}-{turn}"} if isinstance(event.conn, str) else {}
        text = msgspec.json.encode(msgspec.structs.replace(event, seq=seq, ts=stamp, **more)).decode()
        lines.append(re.sub(r'("mcp-session-id":"[^"]+)"', rf'\1-{turn}"', text))
    try:
        return read(load("\n".join(lines).encode() + b"\n"), format=None, tz=None)
    except msgspec.MsgspecError:
        return None


def settled(swift: Swift) -> int:
    """How many events were counted and not looked at."""
    return swift._flags.count(2)


def openings(swift: Swift) -> int:
    """How many handshakes were judged as one."""
    found = swift._openings
    return 0 if found is None else sum(swift._flags[n + 1] == 2 for n, starts in enumerate(found.starts) if starts)


@pytest.mark.parametrize("plan", [certain(), plan_of(None)], ids=["certain", "all"])
def test_captures(captures: list[Path], plan: Plan) -> None:
    compared = 0
    for path in captures[::4]:
        record = read(load(path), format=None, tz=None)
        for one in (record, again(record, 3), again(record, 3, beside=False)):
            found = both(one, plan) if one is not None else None
            if found is not None:
                assert said(found[0]) == said(found[1]), path.name
                assert {*found[0].boards} == {*found[1].boards}, path.name
                compared += 1
    assert compared > 40


def test_examples_of_all_rules() -> None:
    compared = 0
    for rule in ALL:
        for revision in {rule.revisions[0], rule.revisions[-1]}:
            for which in ("kept", "broken"):
                record = examples.of(rule, which, revision)
                for beside in (True, False):
                    one = again(record, 2 + (not beside), beside=beside) if record is not None else None
                    found = both(one, plan_of(None)) if one is not None else None
                    if found is not None:
                        assert said(found[0]) == said(found[1]), (rule.id, which, revision, beside)
                        compared += 1
    assert compared > 1000


def calls(odd: int, *, http: bool, session: str = "s1") -> Record:
    """A handshake and forty calls; ``odd`` of them differ from the rest in one way or another."""
    events: list[dict[str, Any]] = []

    def add(side: str, message: dict[str, Any], exchange: int, status: int = 200) -> None:
        facts: dict[str, Any] = {}
        if http and side == "c2s":
            facts = {"method": "POST", "path": "/mcp", "exchange": f"x{exchange}"}
            facts["headers"] = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            if exchange:
                facts["headers"] |= {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
        elif http:
            facts = {"status": status, "exchange": f"x{exchange}"}
            facts["headers"] = {"content-type": "application/json", "mcp-session-id": session}
        event = {"kind": "message", "conn": session, "dir": side, "msg": {"jsonrpc": "2.0", **message}}
        events.append({**event, "http": facts} if facts else event)

    declared = {"tools": {}, "logging": {}}
    client = {"name": "c", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    add("c2s", {"id": 0, "method": "initialize", "params": params}, 0)
    result = {"protocolVersion": "2025-06-18", "capabilities": declared, "serverInfo": {"name": "s", "version": "1"}}
    add("s2c", {"id": 0, "result": result}, 0)
    add("c2s", {"method": "notifications/initialized"}, 1)
    listed = [
        {"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["n"]}}
    ]
    for number in range(1, 41):
        call: dict[str, Any] = {"id": number, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
        answer: dict[str, Any] = {"content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": 1}}
        if number == 12 and odd > 0:
            call |= {"method": "tools/list", "params": {}}
            answer = {"tools": listed}
        if number % 9 == 0 and odd > 1:
            answer = {"content": [{"type": "text", "text": "no"}], "structuredContent": {"m": 1}}
        if number == 20 and odd > 2:
            call["params"]["_meta"] = {"progressToken": 7}
        if number == 25 and odd > 3:
            answer = {"content": [{"type": "image", "data": "%", "mimeType": "image/png"}], "isError": True}
        add("c2s", call, number + 1)
        if number == 30 and odd > 4:
            add("c2s", {"method": "notifications/cancelled", "params": {"requestId": 29}}, 60)
        add("s2c", {"id": number, "result": answer}, number + 1)
        if number == 33 and odd > 5:
            add("s2c", {"id": number, "result": answer}, number + 1)
        if number == 35 and odd > 6:
            add("c2s", {"id": 3, "method": "ping"}, 70)
    if not http:  # the next process is one of the same server
        events.append({"kind": "close", "conn": session})
    transport = "streamable-http" if http else "stdio"
    found = [msgspec.json.decode(json.dumps(event | {"seq": seq}), type=Event) for seq, event in enumerate(events)]
    return Record({"kind": "header", "format": "mcplab-trace", "version": 1, "transport": transport}, found)


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("http", [True, False])
@pytest.mark.parametrize("odd", range(8))
def test_calls(odd: int, http: bool, beside: bool) -> None:
    record = again(calls(odd, http=http), 5, beside=beside)
    assert record is not None
    found = both(record, certain())
    assert found is not None
    assert said(found[0]) == said(found[1])
    ordinary = settled(found[0]) - 2 * openings(found[0])
    assert (ordinary > 0) == (odd < 5)  # from there on somebody may ask for what was answered
    if not beside and odd == 0:  # what is kept of lists could not be compared
        assert openings(found[0]) == 5
        assert any(found[0]._openings._led.values())  # type: ignore[union-attr]


def test_findings_of_a_big_trace_are_those_of_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    record = again(calls(4, http=True), 3)
    assert record is not None
    data = record.header_line + b"\n" + b"\n".join(record.lines) + b"\n"
    big = read_trace(data)
    assert isinstance(big.record.events, Events)
    monkeypatch.setattr(native, "BIG", 1 << 30)
    small = read_trace(data)
    assert not isinstance(small.record.events, Events)
    assert big.findings.equals(small.findings)
    assert len(big.findings)
