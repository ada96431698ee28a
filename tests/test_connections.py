"""Peers joined into connections and instances; era, label, discovery, calls, health."""

from __future__ import annotations

import pytest

from mcplab import make_trace, read_trace

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """Event lines by hand, over HTTP."""

    def __init__(self, **header):
        self.lines = [
            {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "streamable-http", **header}
        ]
        self.n = 0

    def add(self, kind, conn, **facts):
        self.lines.append({"kind": kind, "seq": len(self.lines) - 1, "conn": conn, **facts})
        return self

    def post(self, conn, message, answer=None, *, session=None, given=None, status=200, ts=None):
        self.n += 1
        headers = {"content-type": "application/json"} | ({"mcp-session-id": session} if session else {})
        clock = {"ts": ts} if ts else {}
        self.add("message", conn, dir="c2s", msg=message, **clock,
                 http={"method": "POST", "path": "/mcp", "headers": headers, "exchange": f"x{self.n}"})  # fmt: skip
        back = {"status": status, "exchange": f"x{self.n}", "headers": {"content-type": "application/json"}}
        if given:
            back["headers"]["mcp-session-id"] = given
        if answer is None:
            return self.add("http", conn, dir="s2c", http=back, **clock)
        return self.add("message", conn, dir="s2c", msg=answer, http=back, **clock)

    def read(self):
        return read_trace(self.lines)


def initialize(n=1, name="c"):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
    return {"jsonrpc": "2.0", "id": n, "method": "initialize", "params": params}


def initialized(n=1, **more):
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "2"}, **more}
    return {"jsonrpc": "2.0", "id": n, "result": result}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(n, method="tools/list"):
    return {"jsonrpc": "2.0", "id": n, "method": method}


def result(n, **members):
    return {"jsonrpc": "2.0", "id": n, "result": members}


def discover(n=1):
    return {"jsonrpc": "2.0", "id": n, "method": "server/discover", "params": {"_meta": META}}


def discovered(n=1):
    return result(n, resultType="complete", supportedVersions=["2026-07-28"], capabilities={}, instructions="Hi.")


def refused(n=1, code=-32601, message="Method not found"):
    return {"jsonrpc": "2.0", "id": n, "error": {"code": code, "message": message}}


def test_peers_of_one_session_are_one_connection():
    trace = (
        Wire()
        .post("c1", initialize(), initialized(), given="A")
        .post("c2", INITIALIZED, session="A", status=202)
        .post("c3", call(2), result(2, tools=[]), session="A")
        .read()
    )
    row = trace.connections.iloc[0]
    assert len(trace.connections) == 1
    assert (row["conn"], row["peers"], row["session"], row["complete"]) == ("c1", "c1, c2, c3", "A", True)
    assert trace.messages["peer"].tolist() == ["c1", "c1", "c2", "c3", "c3"]


def test_two_sessions_with_equal_ids_do_not_mix():
    trace = (
        Wire()
        .post("c1", initialize(), initialized(), given="A")
        .post("c2", initialize(), initialized(), given="B")
        .post("c1", call(2), session="A")
        .post("c1", call(2), result(2, tools=[]), session="B")
        .read()
    )
    rows = trace.exchanges
    assert rows["conn"].tolist() == ["c1", "c2", "c1", "c2"]
    assert rows["outcome"].tolist() == ["result", "result", "unanswered", "result"]


def test_a_second_session_on_the_same_peer_is_a_connection_of_its_own():
    trace = (
        Wire()
        .post("c1", initialize(1), initialized(1), given="A")
        .post("c1", call(2), refused(2, -32001, "Session not found"), session="A", status=404)
        .post("c1", initialize(3), initialized(3), given="B")
        .read()
    )
    assert trace.connections["conn"].tolist() == ["c1", "c1.2"]
    assert trace.connections["instance"].nunique() == 1
    assert trace.connections["calls"].tolist() == ["initialize:2, list_tools:1"] * 2


def test_a_probe_before_the_session_stays_with_its_peer():
    trace = (
        Wire()
        .post("c1", discover(), refused(), status=400)
        .post("c1", initialize(2), initialized(2), given="A")
        .post("c1", INITIALIZED, session="A", status=202)
        .read()
    )
    row = trace.connections.iloc[0]
    assert len(trace.connections) == 1
    assert (row["era"], row["label"], row["discovery"]) == ("legacy", "2025-11-25 (legacy)", "legacy-fallback")
    assert row["discovery_detail"] == "error -32601 Method not found (HTTP 400)"
    assert (row["offered"], row["calls"]) == ("2026-07-28, 2025-11-25", "initialize:1")


def test_a_long_name_does_not_stand_in_full_in_each_row():
    """A name of a megabyte beside ten thousand capabilities would be ten gigabytes of tables."""
    names = ["n" * 1_000, "n" * 1_001, "n" * 1_002, "\udfff" + "n" * 2_000]
    shown = [Wire().post("c1", initialize(name=name), initialized()).read().connections["client"][0] for name in names]
    assert shown[0] == names[0]
    assert shown[1].startswith(f"{names[0]}... (1,001 characters, SHA-256 ")
    assert len(set(shown)) == 4
    assert max(map(len, shown)) < 1_100


def test_a_modern_client_over_several_peers_is_one_instance():
    trace = (
        Wire()
        .post("c1", discover(), discovered())
        .post("c2", {**call(2), "params": {"_meta": META}}, result(2, resultType="complete", tools=[]))
        .read()
    )
    assert trace.connections["conn"].tolist() == ["c1", "c2"]
    assert trace.connections["instance"].nunique() == 1
    assert trace.connections["calls"].tolist() == ["discover:1, list_tools:1"] * 2
    assert trace.connections["discovery"].tolist() == ["modern"] * 2
    assert trace.connections["instructions"].tolist()[0] == "Hi."
    assert trace.connections["complete"].isna().all()
    assert trace.connections["client_from"].tolist() == ["wire"] * 2


def test_two_clients_in_one_file_are_two_instances_unless_the_header_names_one():
    wire = Wire().post("c1", initialize(name="a"), initialized()).post("c2", initialize(name="b"), initialized())
    rows = wire.read().connections
    assert rows["instance"].nunique() == 2
    assert rows["client"].tolist() == ["a", "b"]
    wire.lines[0]["client"] = {"name": "product", "version": "9"}
    rows = wire.read().connections
    assert rows["instance"].nunique() == 1
    assert rows["client"].tolist() == ["product"] * 2
    assert rows["client_info"].tolist() == ["a", "b"]
    assert rows["client_from"].tolist() == ["header"] * 2


def test_an_open_may_name_the_client_label_and_mode_of_its_connection():
    wire = Wire(client={"name": "a"}, label="all", mode="auto")
    wire.add("open", "c1", client={"name": "b", "version": "2"}, label="roots", mode="forced")
    row = wire.post("c1", initialize(), initialized()).read().connections.iloc[0]
    assert (row["client"], row["client_version"], row["config"], row["mode"]) == ("b", "2", "roots", "forced")
    assert row["label"] == "2025-11-25 (forced legacy)"


STDIO = {
    "refused": [("client", initialize()), ("server", refused())],
    "silent": [("client", initialize())],
    "modern": [("client", discover()), ("server", discovered())],
    "both": [("client", discover()), ("server", discovered()), ("client", initialize(2)), ("server", initialized(2))],
    "late": [("client", call(5)), ("server", result(5, tools=[]))],
    "incomplete": [("client", initialize()), ("server", initialized())],
    "failed": [("client", discover()), ("server", refused())],
    "unanswered": [("client", discover())],
}


@pytest.mark.parametrize(
    ("name", "era", "label", "discovery", "complete"),
    [
        ("refused", "unknown", "none (offered 2025-11-25)", "none", False),
        ("silent", "unknown", "none (offered 2025-11-25)", "none", False),
        ("modern", "modern", "2026-07-28 (modern)", "modern", None),
        ("both", "both", "2026-07-28 (modern), 2025-11-25 (legacy)", "probe", False),
        ("late", "unknown", "unknown", "none", None),
        ("incomplete", "legacy", "2025-11-25 (legacy)", "none", False),
        ("failed", "unknown", "none (offered 2026-07-28)", "failed", None),
        ("unanswered", "unknown", "none (offered 2026-07-28)", "probe", None),
    ],
)
def test_era_label_and_discovery(name, era, label, discovery, complete):
    row = make_trace(STDIO[name]).connections.iloc[0]
    assert (row["era"], row["label"], row["discovery"]) == (era, label, discovery)
    assert (
        None if row["complete"] is row["complete"] and str(row["complete"]) == "<NA>" else bool(row["complete"])
    ) == complete
    assert row["session"] == "local"


def test_a_result_without_a_version_is_an_agreement_on_nothing_known():
    answer = result(1, capabilities={})
    row = make_trace([("client", initialize()), ("server", answer)]).connections.iloc[0]
    assert (row["era"], row["label"]) == ("legacy", "unknown (legacy)")


def pings(*answered, interval=1, after=0, close=None, header=True):
    lines = [{"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio"}]
    if header:
        lines[0]["ping"] = {"interval": interval, "max_missed": 3}

    def at(second, **facts):
        lines.append({"seq": len(lines), "conn": "c1", "ts": f"2026-01-01T00:00:{second:02d}.000000Z", **facts})

    at(0, kind="message", dir="c2s", msg=initialize(0))
    at(0, kind="message", dir="s2c", msg=initialized(0))
    for n, good in enumerate(answered, 1):
        at(n, kind="message", dir="c2s", msg=call(n, "ping"))
        if good:
            at(n, kind="message", dir="s2c", msg=result(n))
    at(len(answered) + after, kind="stderr", dir="s2c", raw="tick")
    if close is not None:
        at(len(answered) + after + 30, kind="close", **close)
    return read_trace(lines).connections["health"].iloc[0]


def test_health():
    assert pings(True, True) == "ok"
    assert pings(True, False) == "pending"
    assert pings(True, False, after=5) == "missed"
    assert pings(True, False, False, after=5) == "missed"
    assert pings(False, False, False, after=5) == "failed"
    assert pings(True, True, after=9) == "stale"
    assert pings(True, True, after=2) == "ok"
    assert pings(True, True, close={"by": "server"}) == "offline"
    assert pings(True, True, close={"by": "client"}) == "ok"
    assert pings(True, True, close={"exit_code": 1}) == "offline"
    assert pings(True, True, close={}) == "ok"
    assert pings(True, True, True, after=9, header=False) == "stale"
    assert make_trace(STDIO["incomplete"]).connections["health"].isna().all()


def test_health_after_a_refused_exchange():
    trace = (
        Wire()
        .post("c1", initialize(), initialized(), given="A")
        .post("c1", call(2, "ping"), result(2), session="A")
        .post("c1", call(3, "ping"), refused(3, -32001), session="A", status=404)
        .read()
    )
    assert trace.connections["health"].tolist() == ["error"]


def test_pings_and_failed_negotiation_are_no_calls():
    trace = make_trace([
        ("client", discover(0)), ("server", refused(0)), ("client", initialize(1)), ("server", initialized(1)),
        ("client", call(2, "ping")), ("server", result(2)), ("client", call(3, "tools/call")), ("client", call(4, "tools/call")),
        ("client", call(5, "prompts/list")), ("server", call(6, "roots/list")),
    ])  # fmt: skip
    assert trace.connections["calls"].tolist() == ["initialize:1, prompts/list:1, tool:2"]


def test_opens_and_closes_of_a_peer_go_with_its_session():
    wire = Wire().add("open", "c1").post("c1", initialize(), initialized(), given="A").add("open", "c2")
    trace = wire.post("c2", call(2), result(2, tools=[]), session="A").add("close", "c2").read()
    assert trace.connections["conn"].tolist() == ["c1"]
    assert set(trace.events["conn"]) == {"c1"}


def test_captures_agree_with_what_their_recorder_saw(captures):
    """The recorder of the bundled captures noted which era its server spoke."""
    for path in captures:
        trace = read_trace(path)
        rows = trace.connections
        mode = trace.header["server_mode"]
        eras = set(rows["era"]) - {"unknown"}
        assert eras <= {"legacy": {"legacy"}, "modern": {"modern"}, "dual": {"legacy", "modern"}}[mode]
        assert rows["instance"].nunique() == 1
        assert (rows["client"] == trace.header["client"]["name"]).all()
