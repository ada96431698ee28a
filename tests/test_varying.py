"""What a declaration varies with: the rule on invented runs, and what it finds in the captures."""

from __future__ import annotations

import json

import pytest

from mcplab import TraceError, compare, load, make_trace, read_trace, variance
from mcplab.model import COLUMNS
from mcplab.stories import most_varied
from mcplab.varying import settings

META = "io.modelcontextprotocol/"


def run(capabilities, config=None, *, version="1.0", transport="stdio", mode="legacy", name="agent", **header):
    """One capture: a handshake that declares this, under that configuration."""
    head = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": transport, "server_mode": mode,
            "client": {"name": name, "version": version}, **header}  # fmt: skip
    if config is not None:
        head["config"] = config
    if mode == "modern":
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": capabilities}
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}},
            {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}},
        ]
    else:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "i", "version": "1"},
        }
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        ]
    events = [
        {"kind": "message", "seq": n, "dir": ("c2s", "s2c")[n % 2], "msg": message}
        for n, message in enumerate(messages)
    ]
    return read_trace([head, *events])


def found(*traces, client="agent"):
    frame = variance(load([trace.renamed(f"t{n}") for n, trace in enumerate(traces)]), client)
    assert list(frame.columns) == list(COLUMNS["variance"])
    return frame.astype(object).where(frame.notna(), None)


def brief(frame, path):
    rows = frame[frame["path"] == path]
    return [
        tuple(row) for row in rows[["factor", "name", "state_a", "state_b", "contexts", "same"]].itertuples(index=False)
    ]


# The rule --------------------------------------------------------------------------------------------------


def test_a_setting_that_alone_differs_is_the_thing():
    frame = found(run({}, {"x": 1}), run({"roots": {}}, {"x": 2}), run({}, {"x": 1, "y": 5}))
    assert brief(frame, "roots") == [("configuration", "x", "absent", "empty", 1, 0)]
    row = frame.iloc[0]
    assert (row["a"], row["b"], row["given"], row["evidence_a"], row["evidence_b"]) == ("1", "2", None, "t0#0", "t1#0")


@pytest.mark.parametrize(
    ("one", "other", "factor", "name"),
    [
        ({"version": "1"}, {"version": "2"}, "version", "client_version"),
        ({"transport": "stdio"}, {"transport": "streamable-http"}, "transport", "transport"),
        ({"mode": "legacy"}, {"mode": "modern"}, "era", "server"),
        ({"mode": "legacy"}, {"mode": "dual"}, "server", "server"),
        ({"config": {"command": "a"}}, {"config": {"command": "b"}}, "sub-command", "command"),
        ({"config": {"features": "a = 1\nb = true"}}, {"config": {"features": "a = 1"}}, "configuration", "features.b"),
        ({"label": "one"}, {"label": "two"}, "configuration", "label"),
    ],
)
def test_each_kind_of_thing(one, other, factor, name):
    config = {} if "label" not in one else None
    frame = found(run({}, **{"config": config, **one}), run({"roots": {}}, **{"config": config, **other}))
    [(*what, state_a, state_b, contexts, same)] = brief(frame, "roots")
    assert (*what, {state_a, state_b}, contexts, same) == (factor, name, {"absent", "empty"}, 1, 0)


def test_two_things_at_once_cannot_be_told_apart():
    frame = found(run({}, {"x": 1}, version="1"), run({"roots": {}}, {"x": 2}, version="2"))
    assert brief(frame, "roots") == [("configuration+version", "x, client_version", "absent", "empty", 1, 0)]
    assert json.loads(frame.iloc[0]["b"]) == {"x": 2, "client_version": "2"}


def test_nothing_that_was_recorded_differs():
    for config in ({"x": 1}, None):
        frame = found(run({}, config), run({"roots": {}}, config))
        assert brief(frame, "roots") == [("unknown", None, "absent", "empty", 1, 0)]


def test_a_difference_that_makes_none_elsewhere_is_counted():
    frame = found(
        run({}, {"x": 1}), run({"roots": {}}, {"x": 2}),
        run({}, {"x": 1, "y": True}), run({}, {"x": 2, "y": True}),
    )  # fmt: skip
    assert ("configuration", "x", "absent", "empty", 1, 1) in brief(frame, "roots")


def test_what_else_had_to_be_set():
    frame = found(
        run({}, {"off": True, "s": {"a": 1}}), run({"sampling": {}}, {"off": True, "s": {"a": 1, "b": 2}}),
        run({"sampling": {}}, {"s": {"a": 1, "b": 2}}), run({"sampling": {}}, {"s": {"a": 1}}),
    )  # fmt: skip
    row = frame[frame["name"] == "s.b"].iloc[0]
    assert (row["given"], row["same"]) == ('{"off": true, "s.a": 1}', 1)
    assert frame[frame["name"] == "off"].iloc[0][["a", "b", "state_a", "state_b"]].tolist() == [
        None, "true", "empty", "absent",
    ]  # fmt: skip


def test_between_requests_of_one_modern_instance():
    def request(ident, capabilities):
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": capabilities,
                f"{META}clientInfo": {"name": "agent", "version": "1"}}  # fmt: skip
        return ("client", {"jsonrpc": "2.0", "id": ident, "method": "tools/list", "params": {"_meta": meta}})

    answer = ("server", {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}})
    frame = found(make_trace([request(1, {"roots": {}}), answer, request(2, {}), request(3, {"roots": {}})]))
    assert brief(frame, "roots") == [("request", "request", "empty", "absent", 1, 0)]
    assert frame.iloc[0][["evidence_a", "evidence_b"]].tolist() == ["t0#0", "t0#2"]


def test_every_state_that_one_instance_sent_is_in_a_row():
    def request(ident, *capabilities):
        given = {f"{META}clientCapabilities": one for one in capabilities}
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientInfo": {"name": "agent", "version": "1"}, **given}
        return ("client", {"jsonrpc": "2.0", "id": ident, "method": "tools/list", "params": {"_meta": meta}})

    sent = [{}, {"roots": {}}, {"roots": None}, {"roots": {}}, {}, {"roots": {"listChanged": False}}]
    frame = found(make_trace([request(n, one) for n, one in enumerate(sent)]))
    assert brief(frame, "roots") == [
        ("request", "request", "absent", "empty", 1, 0), ("request", "request", "empty", "null", 1, 0),
        ("request", "request", "absent", "object", 1, 0),
    ]  # fmt: skip
    assert frame.loc[1, ["evidence_a", "evidence_b"]].tolist() == ["t0#1", "t0#2"]
    frame = found(make_trace([request(0), request(1, None), request(2, False), request(3, {})]))
    assert [row[2:4] for row in brief(frame, "$")] == [("absent", "null"), ("null", "false"), ("false", "empty")]


def test_an_unknown_release_is_not_another_one():
    def nameless(capabilities):
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": capabilities}
        head = {"kind": "header", "format": "mcplab-trace", "version": 1, "transport": "stdio", "config": {},
                "client": {"name": "agent"}, "server_mode": "modern"}  # fmt: skip
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        return read_trace([head, {"kind": "message", "seq": 0, "dir": "c2s", "msg": ask}])

    other = run({"roots": {}}, {}, mode="modern")
    assert brief(found(nameless({}), other), "roots") == [("unknown", None, "absent", "empty", 1, 0)]
    assert len(found(nameless({}), run({}, {}, mode="modern"))) == 0


def test_captures_in_which_no_client_gave_its_name_are_not_runs_of_one():
    def nameless(n, capabilities):
        hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        return make_trace([("client", ask)]).renamed(f"t{n}")

    traces = load([nameless(0, {}), nameless(1, {"roots": {}})])
    assert len(variance(traces)) == 0
    frame = compare(traces)
    assert frame.loc["roots", "unknown"] == "varies"
    assert most_varied(frame) is None


def test_no_row_where_nothing_varies():
    assert len(found(run({"roots": {}}, {"x": 1}), run({"roots": {}}, {"x": 2}))) == 0


def test_the_object_itself_only_where_its_state_says_more_than_its_members():
    assert set(found(run({}, {"x": 1}), run({"roots": {}}, {"x": 2}))["path"]) == {"roots"}
    assert brief(found(run({}, {"x": 1}), run(None, {"x": 2})), "$") == [("configuration", "x", "empty", "null", 1, 0)]


def test_an_unknown_client_is_told_with_those_that_are_there():
    with pytest.raises(TraceError, match="no declaration of client 'nobody' was captured; these captures have: agent"):
        found(run({}), client="nobody")


def test_settings_below_the_top_count_even_when_empty():
    assert settings({"a": {}, "b": "", "c": None, "d": {"e": {}, "f": None}, "g": "k = ", "h": 0, "i": False}) == {
        "d.e": "{}", "d.f": "null", "g": '"k = "', "h": "0", "i": "false",
    }  # fmt: skip


# The captures ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fast_agent():
    return variance(load("bundled:fast-agent"), "fast-agent")


def names(frame, path, state_b="absent"):
    """The settings that by themselves switch a path (nothing else set in common)."""
    rows = frame[(frame["path"] == path) & frame["given"].isna()]
    return set(rows["name"])


def test_fast_agent_roots_only_where_the_server_entry_lists_some(fast_agent):
    for path, state in (("roots", "object"), ("roots.listChanged", "true")):
        rows = fast_agent[fast_agent["path"] == path]
        assert set(rows["name"]) == {"server_entry.roots"}
        assert set(rows["state_a"]) == {"absent"}
        assert set(rows["state_b"]) == {state}
        assert (rows["same"] == 0).all()
        assert not rows["b"].isin(["[]"]).any()  # an empty list declares nothing


def test_fast_agent_elicitation_is_gone_with_mode_none(fast_agent):
    for path in ("elicitation", "elicitation.form", "elicitation.url"):
        assert names(fast_agent, path) == {"server_entry.elicitation", "top_level.elicitation"}
    rows = fast_agent[(fast_agent["path"] == "elicitation") & (fast_agent["state_b"] == "absent")]
    assert {'{"mode": "none"}', "{}"} == set(rows["b"])


def test_fast_agent_sampling_is_switched_off_for_the_whole_process_only(fast_agent):
    for path in ("sampling", "sampling.tools"):
        assert names(fast_agent, path) == {"mcp.client.auto_sampling", "top_level.auto_sampling"}
        back = fast_agent[(fast_agent["path"] == path) & (fast_agent["name"] == "server_entry.sampling")]
        assert back[["state_a", "given"]].values.tolist() == [["absent", '{"mcp.client.auto_sampling": false}']]
        assert back["b"].tolist() == ['{"model": "passthrough"}']


def test_codex_by_transport_subcommand_feature_and_release():
    frame = variance(load("bundled:codex"), "codex")
    change = frame[frame["path"] == 'experimental["codex/auth-change"]']
    assert set(change["factor"]) == {"transport", "sub-command", "version"}
    forms = frame[frame["path"] == "elicitation.form"]
    assert set(zip(forms["factor"], forms["name"], strict=True)) == {
        ("configuration", "features.auth_elicitation"), ("version", "client_version"),
    }  # fmt: skip
    lease = frame[frame["path"] == 'extensions["codex/connection-lease"]'].set_index("factor")
    assert lease.loc["configuration", "name"] == "features.mcp_connection_sharing"
    assert lease.loc["transport", "given"] == '{"features.mcp_connection_sharing": true}'


def test_every_row_leads_to_messages_that_say_so():
    traces = load(["bundled:codex", "bundled:gemini-cli", "bundled:mcp-remote", "bundled:opencode"])
    frame = variance(traces)
    assert set(frame["client"]) == {"codex", "gemini-cli", "mcp-remote", "opencode"}
    declared = traces.declarations.set_index(["trace", "seq", "path"])["state"]
    for side in "ab":
        for path, state, evidence in zip(frame["path"], frame[f"state_{side}"], frame[f"evidence_{side}"], strict=True):
            for one in evidence.split():
                trace, _, seq = one.rpartition("#")
                got = declared.get((trace, int(seq), path), "absent")
                assert state in (got, "varies"), (path, one)
