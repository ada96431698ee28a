"""The engine: verdicts, revisions, instances, planted breaches; explain, exercised, what_if and the commands."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import mcplab
from mcplab import SpecError, TraceError, check, exercised, explain, gate, make_trace, read_trace, rules, tiers, what_if
from mcplab.frames.links import links
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, MCPLabError, Record, UsageError
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import CONFIDENCES, LEVELS, PARTIES, catalogue, find
from mcplab.rulebook.engine import Run
from mcplab.rulebook.facts import Ids
from mcplab.rulebook.judging import legacy_revision, modern_revision
from mcplab.rulebook.tables import plan_of
from mcplab.rulebook_commands import check_text
from mcplab.spec import REVISIONS, spec_url
from mcplab.traces import Traces

INIT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


def shake(server: dict, client: dict | None = None, version: str = "2025-11-25") -> list:
    asked = {**INIT, "capabilities": client or {}, "protocolVersion": version}
    result = {"protocolVersion": version, "capabilities": server, "serverInfo": {"name": "b", "version": "1"}}
    return [
        ("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}),
        ("server", {"jsonrpc": "2.0", "id": 0, "result": result}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def ask(method: str, ident: int = 1, **params: object) -> tuple[str, dict]:
    return "client", {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def verdict(frame: pd.DataFrame, rule: str) -> list[str]:
    return sorted(set(frame.loc[frame["rule"] == rule, "verdict"]))


# The catalogue ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", catalogue().values(), ids=list(catalogue()))
def test_every_entry_is_complete(rule) -> None:
    assert rule.party in PARTIES
    assert set(rule.level.values()) <= set(LEVELS)
    assert set(rule.confidence.values()) <= set(CONFIDENCES)
    assert set(rule.revisions) <= set(REVISIONS)
    assert rule.check or not rule.on
    for revision, section in rule.section.items():
        assert spec_url(revision, section), section
    for also in (*rule.also.values(), *rule.kept_also.values()):
        assert all(find(name) for name in also)


def test_the_table_of_rules_reads_as_traces() -> None:
    table = rules()
    assert list(table.columns) == [
        "id", "title", "level", "confidence", "party", "revisions", "section", "needs", "checked", "kept", "broken",
        "also",
    ]  # fmt: skip
    row = table.set_index("id").loc["gate.tools-request"]
    assert verdict(read_trace(row["kept"]).findings, "gate.tools-request") == ["kept"]
    assert verdict(read_trace(row["broken"]).findings, "gate.tools-request") == ["broken"]


def test_an_unknown_rule_names_its_like() -> None:
    with pytest.raises(SpecError, match=r"gate\.tools-request"):
        find("tools-request")
    with pytest.raises(SpecError, match="no rule"):
        check(make_trace(shake({})), rules=["no.such"])
    with pytest.raises(SpecError, match="no revision"):
        check(make_trace(shake({})), revision="2020-01-01")


# Verdicts -----------------------------------------------------------------------------------------------------


def test_columns_and_rows() -> None:
    trace = make_trace([*shake({}), ask("tools/list"), ask("tools/list", 2)])
    found = check(trace, rules="gate.tools-request")
    assert list(found.columns) == list(COLUMNS["findings"])
    assert found[["verdict", "seq", "n", "anchor", "related", "party", "level"]].values.tolist() == [
        ["broken", 3, 1, "message", "0", "client", "MUST NOT"],
        ["broken", 4, 1, "message", "0", "client", "MUST NOT"],
    ]
    kept = check(
        make_trace([*shake({"tools": {}}), ask("tools/list"), ask("tools/list", 2)]), rules="gate.tools-request"
    )
    assert kept[["verdict", "n"]].values.tolist() == [["kept", 2]]
    assert kept["seq"].isna().all()
    idle = check(make_trace(shake({})), rules="gate.tools-request")
    assert idle[["verdict", "n"]].values.tolist() == [["unexercised", 0]]


def test_without_the_handshake_nothing_is_kept() -> None:
    found = check(make_trace([ask("tools/list")]), rules="gate.tools-request")
    assert found[["verdict", "n"]].values.tolist() == [["unknown", 2]] or verdict(found, "gate.tools-request") == [
        "unknown"
    ]
    assert found["revision"].isna().all()
    given = check(make_trace([ask("tools/list")]), rules="gate.tools-request", revision="2025-11-25")
    assert given[["verdict", "revision"]].values.tolist() == [["unknown", "2025-11-25"]]


def test_level_follows_the_negotiated_revision() -> None:
    for version, level in (("2024-11-05", "SHOULD NOT"), ("2025-06-18", "MUST NOT")):
        found = check(make_trace([*shake({}, version=version), ask("tools/list")]), rules="gate.tools-request")
        assert found[["level", "revision"]].values.tolist() == [[level, version]]


def test_hints_on_request_only() -> None:
    trace = make_trace([*shake({}), ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"})])
    assert "hint" not in set(check(trace)["verdict"])
    hinted = check(trace, hints=True)
    assert hinted.loc[hinted["verdict"] == "hint", "rule"].tolist() == ["lifecycle.initialized-once"]


def test_what_never_came_needs_the_close() -> None:
    script = """
    open
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}
    > {"id":1,"method":"tools/list"}
    < {"id":1,"result":{"tools":[]}}
    """
    rule = "lifecycle.initialized-sent"
    for end, said in (("close", ["broken"]), ("", ["unknown"])):
        record = examples.record(script + end, "2025-11-25")
        found = check(mcplab.Trace(record), rules=rule)
        assert verdict(found, rule) == said
    record = examples.record(script + "close", "2025-11-25")
    row = check(mcplab.Trace(record), rules=rule).iloc[0]
    assert (row["seq"], row["anchor"], row["related"]) == (3, "absence", "5")


def test_modern_declarations_hold_for_their_own_request_alone() -> None:
    script = """
    client {"elicitation":{}}
    handshake server={"tools":{}}
    > {"id":1,"method":"tools/call","params":{"name":"t"}}
    client {}
    > {"id":2,"method":"tools/call","params":{"name":"t"}}
    < {"id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}}
    close
    """
    found = check(mcplab.Trace(examples.record(script, "2026-07-28")), rules="mrtr.input-request-declared")
    assert verdict(found, "mrtr.input-request-declared") == ["broken"]


def test_ids_are_told_apart_by_type_and_kept_as_ranges() -> None:
    ids = Ids()
    assert [ids.add(one) for one in (1, 2, "1", 1.0, True, 2, "1", 4, 3, 4)] == [
        False, False, False, False, False, True, True, False, False, True,
    ]  # fmt: skip
    many = Ids()
    assert not any(many.add(n) for n in range(10_000))
    assert many.add(5_000)
    assert len(many._others) == 0


@pytest.mark.parametrize(
    ("version", "judged"),
    [("2025-06-18", "2025-06-18"), ("2025-07-01", "2025-06-18"), ("2024-10-07", "2024-11-05"), ("1.0", "2025-11-25"),
     (None, "2025-11-25"), ("2026-07-28", "2025-11-25")],
)  # fmt: skip
def test_which_revision_judges_a_version(version, judged) -> None:
    assert legacy_revision(version) == judged
    assert modern_revision(version) == "2026-07-28"


# Planted breaches -----------------------------------------------------------------------------------------------


def planted(base: Record, extra: Record) -> Record:
    """Another connection behind the capture, with a client of its own."""
    start = len(base.events)
    events = [
        msgspec.structs.replace(event, seq=start + n, conn=f"planted-{event.conn}")
        for n, event in enumerate(extra.events)
    ]
    header = {key: value for key, value in base.header.items() if key != "client"}
    first = [msgspec.structs.replace(event, seq=n) for n, event in enumerate(base.events)]
    return Record(header, [*first, *events], name="planted")


def accused(record: Record) -> set[tuple]:
    wire = Wire(record)
    run = Run(wire, links(wire, "x"), plan_of(None))
    return {
        (run.plan.rules[one.rule].id, revision, one.seq, one.part)
        for (_, revision), board in run.boards.items()
        for one in board.broken
    }


def test_planted_breaches_are_found_and_nothing_else(captures: list[Path]) -> None:
    """1,000 broken examples behind clean captures of the same transport: each is found where it is, and no other."""
    dice = random.Random(20260728)
    found = {"stdio": [], "streamable-http": []}
    for path in captures:
        record = read_trace(path).record
        if not accused(record) and len(record.events) < 40:
            found[str(record.header.get("transport"))].append(record)
    broken = {"stdio": [], "streamable-http": []}
    for rule in catalogue().values():
        for revision in rule.revisions if rule.check and not rule.given else ():
            extra = examples.of(rule, "broken", revision)
            if extra is not None and extra.header["transport"] in broken:  # no capture is of the oldest transport
                broken[str(extra.header["transport"])].append((rule, extra))
    used = set()
    for _ in range(1000):
        transport = dice.choice(["stdio", "streamable-http"])
        base, (rule, extra) = dice.choice(found[transport]), dice.choice(broken[transport])
        used.add(rule.id)
        start = len(base.events)
        alone = {(name, revision, seq + start, part) for name, revision, seq, part in accused(extra)}
        assert accused(planted(base, extra)) == alone, (rule.id, base.name)
    assert len(used) >= 50


# Around the engine ----------------------------------------------------------------------------------------------


def test_explain_is_five_lines() -> None:
    refused = ("server", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no tools here"}})
    trace = make_trace([*shake({"prompts": {}}), ask("tools/list"), refused])
    said = explain(trace, 3)
    assert len(said.lines) == 5
    assert str(said).count("\n") == 4
    assert said.gate is not None
    assert said.gate.allowed is False
    assert "tools is absent" in said.lines[1]
    assert "gate.tools-request" in said.lines[2]
    assert "-32601: no tools here" in said.lines[3]
    assert ("gate.tools-request", "broken") in {(rule, verdict) for rule, verdict, _ in said.rules}
    assert said._repr_html_().count("<li>") == 5
    with pytest.raises(TraceError, match="no message has seq 99"):
        explain(trace, 99)


def test_explain_shows_a_key_that_was_nearly_the_one() -> None:
    misspelt = explain(make_trace([*shake({"resource": {}})]), "resources/list")
    assert 'server: resources is absent; it has "resource"' in misspelt.lines[1]
    assert explain(make_trace([*shake({"prompts": {}})]), "resources/list").lines[1].endswith("resources is absent")


def test_explain_says_why_a_method_was_never_sent() -> None:
    legacy = explain(make_trace(shake({"tools": {}})), "resources/list")
    assert "never sent" in legacy.lines[0]
    assert legacy.lines[1] == "declared: server: resources is absent"
    assert legacy.lines[2].startswith("gate: closed: ")
    assert "gate.resources-request" in legacy.lines[2]
    declared = explain(make_trace(shake({"resources": {}})), "resources/list")
    assert declared.lines[2].startswith("gate: open: ")
    assert "no declaration kept the client from it" in declared.lines[2]
    sent = explain(make_trace([*shake({"tools": {}}), *(ask("tools/list", n) for n in range(1, 8))]), "tools/list")
    assert "sent 7 times: #3, #4, #5, #6, #7, ..." in sent.lines[0]
    assert "kept the client" not in sent.lines[2]
    roots = explain(make_trace(shake({"tools": {}})), "roots/list")
    assert "client: roots" in roots.lines[2]
    with pytest.raises(SpecError, match=r"did you mean .*resources/list"):
        explain(make_trace(shake({})), "resource/list")
    with pytest.raises(TraceError, match="no message"):
        explain(make_trace([]), "tools/list")


def test_explain_of_a_method_where_each_request_declares_for_itself() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    call = ("client", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "_meta": meta}})
    said = explain(make_trace([call]), "sampling/createMessage")
    assert said.lines[1] == "declared: client: sampling is absent"
    assert said.lines[2].startswith("gate: closed: ")
    asked = {"resultType": "input_required", "inputRequests": {"a": {"method": "sampling/createMessage"}}}
    said = explain(
        make_trace([call, ("server", {"jsonrpc": "2.0", "id": 1, "result": asked})]), "sampling/createMessage"
    )
    assert "sent once: #1" in said.lines[0]
    assert explain(make_trace([call]), "resources/list").gate.allowed is None  # no discover result was seen


def test_exercised_tells_four_things_apart() -> None:
    trace = make_trace([
        *shake({"tools": {}, "prompts": {}}),
        ask("tools/list"), ("server", {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
        ask("resources/list", 2), ("server", {"jsonrpc": "2.0", "id": 2, "result": {"resources": []}}),
        ask("logging/setLevel", 3, level="info"),
        ("server", {"jsonrpc": "2.0", "id": 3, "error": {"code": -32601, "message": "none"}}),
    ])  # fmt: skip
    table = exercised(trace).set_index("path")
    assert table["status"].to_dict() == {
        "tools": "declared and used", "prompts": "declared and unused", "resources": "used undeclared",
        "logging": "refused",
    }  # fmt: skip
    assert table.loc["logging", "why"] == "-32601: none"
    assert table["worked"].to_dict() == {"tools": 1, "prompts": 0, "resources": 1, "logging": 0}
    assert table["declared"].astype(object).to_dict() == {
        "tools": True,
        "prompts": True,
        "resources": False,
        "logging": False,
    }


def test_what_worked_is_told_from_what_was_only_asked() -> None:
    roots = {"jsonrpc": "2.0", "id": 7, "method": "roots/list"}
    changed = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    legacy = make_trace([*shake({}, {"roots": {"listChanged": True}}), ("server", roots), ("client", changed)])
    told = exercised(legacy).set_index("path")
    assert told.loc["roots", ["n", "worked"]].tolist() == [1, 0]
    assert told.loc["roots.listChanged", ["n", "worked"]].tolist() == [1, 1]

    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}  # fmt: skip
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": meta}}
    asked = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", "params": {}}}}
    retry = {**call, "id": 2, "params": {**call["params"], "inputResponses": {"a": {"roots": []}}}}
    messages = [("client", call), ("server", {"jsonrpc": "2.0", "id": 1, "result": asked})]
    for more, worked in (([], 0), ([("client", retry)], 1)):
        told = exercised(make_trace([*messages, *more])).set_index("path")
        assert told.loc["roots", ["n", "worked"]].tolist() == [1, worked]


@pytest.mark.parametrize(
    ("method", "asked", "given", "path", "said"),
    [
        ("roots/list", {}, {"roots": []}, "roots", "works"),
        ("roots/list", {}, None, "roots", "ignored"),
        ("roots/list", {}, {"error": {"code": -32601}}, "roots", "ignored"),
        ("elicitation/create", {"mode": "url"}, ["accept"], "elicitation.url", "ignored"),
        ("elicitation/create", {"mode": "url"}, {"action": "decline"}, "elicitation.url", "works"),
        ("sampling/createMessage", {"task": {}}, {"task": {"taskId": "1"}}, "sampling", "works"),
        ("sampling/createMessage", {"task": {}}, {"task": {"taskId": "1"}}, "tasks.requests.*", "works"),
        ("sampling/createMessage", {"task": {}}, {"content": {}}, "sampling", "works"),
        ("sampling/createMessage", {"task": {}}, {"content": {}}, "tasks.requests.*", "ignored"),
    ],
)
def test_an_answer_that_is_none_works_in_neither_era(method, asked, given, path, said) -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": asked}
    legacy = [*shake({}), ("server", request), ("client", {"jsonrpc": "2.0", "id": 7, "result": given})]
    found = exercised(make_trace(legacy)).set_index("path")["outcome"]
    assert found[path.replace("*", method.replace("/", "."))] == f"undeclared and {said}"
    if "task" in asked:
        return
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": meta}}
    rounds = {"resultType": "input_required", "inputRequests": {"a": {"method": method, "params": asked}}}
    retry = {**call, "id": 2, "params": {**call["params"], "inputResponses": {"a": given}}}
    modern = [("client", call), ("server", {"jsonrpc": "2.0", "id": 1, "result": rounds}), ("client", retry)]
    assert exercised(make_trace(modern)).set_index("path")["outcome"][path] == f"undeclared and {said}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"result": {}}, ("used, needs no declaration", "works", 1, 0)),
        ({"result": None}, ("used, needs no declaration", "ignored", 0, 0)),
        ({"error": {"code": -32601, "message": "none"}}, ("refused", "refused", 0, 1)),
        (None, ("used, needs no declaration", "unanswered", 0, 0)),
    ],
)
def test_a_ping_has_a_row_of_whoever_has_to_answer_and_needs_no_declaration(answer, said) -> None:
    pings = [(who, {"jsonrpc": "2.0", "id": 7, "method": "ping"}) for who in ("server", "client")]
    answers = [(who, {"jsonrpc": "2.0", "id": 7, **answer}) for who in ("client", "server")] if answer else []
    trace = make_trace([*shake({"tools": {}}, {"roots": {}}), *pings, *answers])
    table = exercised(trace)
    for party in ("client", "server"):
        (row,) = table[(table["party"] == party) & (table["path"] == "ping")].to_dict("records")
        assert (row["status"], row["outcome"], row["worked"], row["refused"]) == said
        assert (row["n"], pd.isna(row["declared"])) == (1, True)
    assert set(table["path"]) == {"ping", "roots", "tools"}
    stated = tiers.statements(Traces([trace]), tier="exercised")
    assert "ping" not in set(stated["path"])  # what is no capability is stated by nobody


def test_a_revision_without_pings_has_no_row_for_them() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    sent = ask("ping", 1, _meta=meta), ("server", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": ""}})
    assert exercised(make_trace([*sent])).empty


def test_what_if_lists_what_would_have_been_out_of_contract() -> None:
    trace = make_trace([*shake({"tools": {}, "logging": {}}), ask("tools/list"), ask("resources/list", 2)])
    lost = what_if(trace, drop=["tools"])
    assert lost[["seq", "method", "path", "rule"]].values.tolist() == [[3, "tools/list", "tools", "gate.tools-request"]]
    assert len(what_if(trace, drop=["logging"])) == 0
    form = {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "?"}}
    asking = make_trace([*shake({}, {"elicitation": {"form": {}}}), ("server", form)])
    assert what_if(asking, "elicitation.form")["path"].tolist() == ["elicitation"]
    with pytest.raises(SpecError, match="no capability path"):
        what_if(trace, drop=["a b"])


def test_commands(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(str(examples.text(find("gate.tools-request"), "broken", "2025-11-25")), encoding="utf-8")
    text, status, _ = check_text([str(bad)])
    assert status == 1
    assert "gate.tools-request" in text
    known, status, _ = check_text([str(bad)], format="json")
    baseline = tmp_path / "known.json"
    baseline.write_text(known, encoding="utf-8")
    assert [row["rule"] for row in json.loads(known)] == ["gate.tools-request"]
    assert check_text([str(bad)], baseline=baseline)[1] == 0
    baseline.write_text("[1]", encoding="utf-8")
    with pytest.raises(UsageError, match="no baseline"):
        check_text([str(bad)], baseline=baseline)
    assert "gate.tools-request" in check_text([str(bad)], format="junit")[0]
    assert check_text([str(bad)], format="md")[0].startswith("| trace |")
    assert check_text([str(bad)], format="csv")[0].startswith("rule,")
    assert check_text([str(bad)], rule=["lifecycle"])[1] == 0
    assert [check_text([str(bad)], party=party)[1] for party in ("client", "server")] == [1, 0]
    with pytest.raises(SpecError, match="format"):
        check_text([str(bad)], format="yaml")
    (tmp_path / "junk.bin").write_bytes(b"\x00\x01")
    text, status, unread = check_text([str(tmp_path / "junk.bin"), str(bad)])
    assert (status, len(unread)) == (3, 1)
    assert unread[0].startswith("junk.bin: ")
    assert "junk" not in text
    bad.write_text(bad.read_text(encoding="utf-8").partition("\n")[0] + '\n{"t": 1, "seq"\n', encoding="utf-8")
    assert check_text([str(bad)])[1] == 3


def test_findings_of_a_trace_and_of_many(captures: list[Path]) -> None:
    some = mcplab.read_traces(*captures[:3], progress=False)
    assert len(some.findings) == sum(len(trace.findings) for trace in some)
    assert set(some.findings["trace"]) == {trace.name for trace in some}


def test_one_half_of_the_traffic_breaks_nothing_by_what_the_other_half_holds() -> None:
    lines = [
        (
            '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
            '"clientInfo":{"name":"a","version":"1"}}}'
        ),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    ]
    assert not (check(mcplab.read_trace("\n".join(lines) + "\n"))["verdict"] == "broken").any()
    log = "DEBUG:mcp.client.streamable_http:Sending client message: root=JSONRPC"  # JSON answers are not logged
    sent = f"{log}Request(method='initialize', params={json.loads(lines[0])['params']}, jsonrpc='2.0', id=0)\n"
    sent += f"{log}Notification(method='notifications/initialized', jsonrpc='2.0')\n"
    assert not (check(mcplab.read_trace(sent))["verdict"] == "broken").any()
    lines[1:1] = ['{"jsonrpc":"2.0","id":"s","method":"roots/list"}']  # both sides are there, and no answer is
    assert (check(mcplab.read_trace("\n".join(lines) + "\n"))["verdict"] == "broken").any()


def test_a_server_that_fell_leaves_the_client_no_time_to_confirm() -> None:
    script = """
    open
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}
    > {"id":1,"method":"tools/list"}
    close
    """
    rule = "lifecycle.initialized-sent"
    events = list(examples.record(script, "2025-11-25").events)
    for end, said in ({"exit_code": 1}, ["unknown"]), ({"by": "server"}, ["unknown"]), ({"exit_code": 0}, ["broken"]):
        last = msgspec.structs.replace(events[-1], **end)
        record = examples.record(script, "2025-11-25")
        record = msgspec.structs.replace(record, events=[*events[:-1], last])
        assert verdict(check(mcplab.Trace(record), rules=rule), rule) == said


def test_a_ping_before_the_handshake_is_judged_though_the_beginning_was_not_seen() -> None:
    text = (
        'received: {"jsonrpc":"2.0","id":4,"method":"ping"}\n'
        'sent: {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}\n'
        'received: {"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
        'sent: {"jsonrpc":"2.0","id":5,"result":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"serverInfo":{"name":"b","version":"1"}}}\n'
    )
    found = check(mcplab.read_trace(text), rules="ping.answered")
    assert found.loc[found["verdict"] == "broken", ["seq", "revision"]].values.tolist() == [[1, "2025-06-18"]]


@pytest.mark.parametrize(
    "ask",
    [lambda t: check("a.jsonl"), lambda t: check(None), lambda t: check([t, 5]), lambda t: check(t, rules=[5]),
     lambda t: explain(t, None), lambda t: explain(t, 2.5), lambda t: explain([t], 1), lambda t: exercised(5),  # type: ignore
     lambda t: what_if(t, [5]), lambda t: what_if(t, None), lambda t: gate("2025-11-25", server=object())],  # type: ignore
)  # fmt: skip
def test_wrong_use_is_one_line(ask) -> None:
    with pytest.raises(MCPLabError, match=r"^[^\n]{20,}$"):
        ask(make_trace(shake({})))
