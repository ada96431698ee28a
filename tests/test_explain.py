"""``explain`` on what newcomers bring: declarations of any form, logs that begin late, handshakes that came to nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcplab import explain, gate, make_trace, read_trace
from mcplab.model import ABSENT, UNKNOWN, TraceError
from mcplab.spec import META_CAPABILITIES, META_VERSION

FORMS = [ABSENT, UNKNOWN, None, True, 5, "x", [], {}, {"resources": {}, "elicitation": {}}]
INFO = {"name": "a", "version": "1"}


def rpc(sender: str, **members: Any) -> tuple[str, dict]:
    return sender, {"jsonrpc": "2.0", **members}


def having(members: dict, key: str, value: Any) -> dict:
    return members if value is ABSENT else members | {key: value}


def legacy(client: Any = ABSENT, server: Any = ABSENT, **beside: Any) -> list:
    asked = having({"protocolVersion": "2025-11-25", "clientInfo": INFO}, "capabilities", client)
    result = having({"protocolVersion": "2025-11-25", "serverInfo": INFO, **beside}, "capabilities", server)
    return [
        *([] if client is UNKNOWN else [rpc("client", id=0, method="initialize", params=asked)]),
        *([] if server is UNKNOWN else [rpc("server", id=0, result=result)]),
        rpc("client", method="notifications/initialized"),
    ]


def modern(client: Any = ABSENT, server: Any = ABSENT, **beside: Any) -> list:
    meta = having({META_VERSION: "2026-07-28", **beside}, META_CAPABILITIES, client)
    found = having({"resultType": "complete", "supportedVersions": ["2026-07-28"]}, "capabilities", server)
    known = [rpc("client", id=0, method="server/discover", params={"_meta": meta}), rpc("server", id=0, result=found)]
    call = rpc("client", id=1, method="tools/call", params={"name": "x", "_meta": meta})
    done = rpc("server", id=1, result={"resultType": "complete", "content": []})
    if client is UNKNOWN:
        return [done]
    return [*([] if server is UNKNOWN else known), call, done]


@pytest.mark.parametrize("value", FORMS, ids=repr)
@pytest.mark.parametrize("party", ["client", "server"])
@pytest.mark.parametrize("era", [legacy, modern])
def test_every_form_of_a_declaration(era, party, value) -> None:
    method = "elicitation/create" if party == "client" else "resources/list"
    messages = era(**({"client": {}, "server": {}} | {party: value}))
    trace = make_trace(messages)
    said = explain(trace, method)
    assert len(said.lines) == 3
    for seq in trace.messages["seq"]:
        assert len(explain(trace, int(seq)).lines) == 5
    if value is UNKNOWN:
        assert said.gate is None or said.gate.allowed is None
        return
    revision = "2025-11-25" if era is legacy else "2026-07-28"
    message = {"jsonrpc": "2.0", "id": 0, "method": method}
    if era is modern and party == "client":
        message = {"jsonrpc": "2.0", "id": 0, "result": {"inputRequests": {"0": {"method": method}}}}
    sender = "server" if party == "client" else "client"
    assert said.gate == gate(revision, **{party: value}).allows(message, sender, answers="tools/call")
    member = "clientCapabilities" if era is modern and party == "client" else "capabilities"
    if not isinstance(value, dict):
        shown = "absent" if value is ABSENT else json.dumps(value)
        assert said.lines[1] == f"declared: {party}: {member} is {shown}"
    level = "SHOULD NOT" if era is modern and party == "server" else "MUST NOT"
    assert said.gate.allowed is not False or said.gate.level == level
    assert (f"so the {sender} {level.lower()} send it" in said.lines[2]) is (said.gate.allowed is False)


def test_a_misspelt_member_of_capabilities_is_named() -> None:
    found = [
        explain(make_trace(legacy({}, capabilites={"resources": {}})), "resources/list"),
        explain(make_trace(modern({}, **{"io.modelcontextprotocol/clientCapabilites": {}})), "elicitation/create"),
    ]
    assert found[0].lines[1] == 'declared: server: capabilities is absent; it has "capabilites"'
    assert found[1].lines[1] == "declared: client: elicitation is absent"
    meta = {"io.modelcontextprotocol/clientCapabilites": {}}
    said = explain(make_trace(modern(server={}, **meta)), "elicitation/create")
    assert said.lines[1].endswith('clientCapabilities is absent; it has "io.modelcontextprotocol/clientCapabilites"')


def test_a_closed_gate_says_who_must_do_what() -> None:
    said = explain(make_trace(legacy({}, {"resources": {}})), "resources/subscribe").lines[2]
    assert "the server did not declare resources.subscribe, so the client must not send it (2025-11-25)" in said
    assert said.endswith('a server that has it declares {"resources":{"subscribe":true}}')
    own = explain(make_trace(legacy({}, {})), "notifications/tools/list_changed").lines[2]
    assert "the server did not declare tools.listChanged, so it must not send it" in own


@pytest.mark.parametrize("refused", [1, 2])
def test_a_refusal_is_told(refused) -> None:
    asked = [
        one
        for n in range(1, refused + 1)
        for one in (
            rpc("client", id=n, method="resources/list"),
            rpc("server", id=n, error={"code": -32601, "message": f"none {n}"}),
        )
    ]
    said = explain(make_trace([*legacy({}, {}), *asked]), "resources/list").lines[0]
    often = "sent once: #3; refused" if refused == 1 else "sent 2 times: #3, #5; refused 2 times, first"
    assert f"{often} (answer #4, error -32601: none 1); judged" in said


def test_a_connection_of_unknown_revision_counts(tmp_path) -> None:
    late = [rpc("client", id=2, method="resources/list"), rpc("server", id=2, result={"resources": []})]
    lines = [{"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}]
    for conn, messages in (("a", late), ("b", legacy({}, {}))):
        for sender, message in messages:
            way = "c2s" if sender == "client" else "s2c"
            lines.append({"kind": "message", "seq": len(lines) - 1, "conn": conn, "dir": way, "msg": message})
    path = tmp_path / "rotated.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = explain(read_trace(path), "resources/list").lines
    assert said[0].startswith("a: resources/list: sent once: #0; judged by a revision that the capture does not tell")
    assert "docs/recording.md" in said[0]
    assert said[1:3] == ("declared: not seen", "gate: cannot be told")
    assert said[3] == "b: resources/list: never sent; judged by 2025-11-25 (legacy)"
    alone = explain(make_trace(late), "resources/list")
    assert "sent once: #0" in alone.lines[0]
    assert alone.gate is None


def test_an_initialize_result_without_its_request_tells_the_revision() -> None:
    trace = make_trace([*legacy(UNKNOWN, {"resources": {}}), rpc("client", id=2, method="resources/list")])
    assert trace.tables.links["c1"].label == "2025-11-25 (legacy)"
    for what in ("resources/list", 2):
        said = explain(trace, what)
        assert "judged by 2025-11-25 (legacy), by the initialize result #0, which lost its request" in said.lines[0]
        assert said.lines[1] == "declared: server: resources is {}"
        assert said.lines[2].startswith("gate: open: ")
    assert said.lines[4] == "rules: unknown: check cannot tell the revision"
    assert explain(trace, "roots/list").gate.allowed is None  # the client's declaration was lost


def test_a_handshake_that_came_to_nothing() -> None:
    asked, answer, _ = legacy({}, {"tools": {}})
    other = (answer[0], answer[1] | {"id": "0"})
    refusal = rpc("server", id=0, error={"code": -32602, "message": "no"})
    for messages, why in (
        ([asked, other], "#1 answers initialize under another id: nothing was agreed on"),
        ([asked, refusal], "initialize was refused (#1, error -32602: no): nothing was agreed on"),
        ([asked], "initialize has no answer in this capture, so whether anything was agreed on is not known"),
    ):
        said = explain(make_trace(messages), "tools/list")
        assert said.lines[0].endswith("judged by 2025-11-25 (legacy), which was only offered")
        assert said.lines[2].endswith(f"; {why}")
        assert "chose not to" not in said.lines[2]
    agreed = explain(make_trace([asked, other, rpc("client", method="notifications/initialized")]), "tools/list")
    assert "only offered" not in agreed.lines[0]


def test_what_declares_is_explained_by_what_it_declares() -> None:
    asked, answered = (
        explain(make_trace(legacy({}, {"tools": {}})), 0),
        explain(make_trace(legacy({}, {"tools": {}})), 1),
    )
    assert asked.lines[1] == "declared: client {}; server not seen"
    assert answered.lines[1] == 'declared: client {}; server {"tools":{}}'
    assert explain(make_trace(modern({}, {"tools": {}})), 1).lines[1] == 'declared: client {}; server {"tools":{}}'
    assert explain(make_trace(modern({}, ABSENT)), 1).lines[1] == "declared: client {}; server absent"


def test_a_seq_that_is_not_there_and_an_error_that_nothing_asked_for() -> None:
    trace = make_trace([*legacy({}, {}), rpc("server", id=77, error={"code": 1, "message": "x"})])
    assert explain(trace, 3).lines[0].startswith("#3: server, error 77; ")
    with pytest.raises(TraceError, match="no message has seq 99; its messages have 0 to 3"):
        explain(trace, 99)
