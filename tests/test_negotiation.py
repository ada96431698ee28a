"""The negotiation as a playbook: events in, commands out; no process, no port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mcplab import negotiation
from mcplab.model import ABSENT, HandshakeError
from mcplab.negotiation import (
    Accept,
    Ended,
    Fail,
    Late,
    Negotiation,
    Notify,
    Opened,
    Refused,
    Rejected,
    Request,
    Restart,
    Result,
    Silent,
    Switch,
    Unreachable,
    discover_versions,
    misshapen,
    recognised,
)

DISCOVERED = Result({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
INITIALIZED = Result({"protocolVersion": "2025-11-25", "capabilities": {}})
DISCOVER = Request("server/discover", "2026-07-28")
PROBE = Request("server/discover", "2026-07-28", probe=True)
INITIALIZE = Request("initialize", "2025-11-25")
INITIALIZED_NOTE = Notify("notifications/initialized")


@dataclass
class Play:
    state: Negotiation

    def feed(self, event: Any) -> tuple[Any, ...]:
        self.state, commands = self.state.feed(event)
        return commands


def play(mode: str, transport: Any = "stdio") -> tuple[Play, tuple[Any, ...]]:
    game = Play(Negotiation(mode))
    return game, game.feed(Opened(transport))


def unsupported(*names: str, status: int | None = None) -> Refused:
    return Refused(-32022, "Unsupported", {"supported": list(names), "requested": "2026-07-28"}, status)


def test_a_server_that_refuses_what_it_lists_contradicts_itself():
    game, _ = play("modern", "http")
    (failure,) = game.feed(unsupported("2026-07-28", status=400))
    assert isinstance(failure, Fail)
    assert failure.what == "the server refuses 2026-07-28 as unsupported and lists it as supported"


@pytest.mark.parametrize(
    ("mode", "supported", "advice"),
    [
        ("2099-01-01", ["2026-07-28"], "try mode 2026-07-28"),
        ("2099-01-01", ["2025-11-25"], "try mode 2025-11-25"),
        ("2099-01-01", ["2100-01-01", "2025-06-18", "2026-07-28", "x"], "try mode 2026-07-28"),
        ("2099-01-01", ["2100-01-01"], "try mode 2100-01-01, which mcplab does not know"),
        ("2099-01-01", ["two", "three"], "mcplab knows none of its versions"),
        ("2099-01-01", [], "only the server can mend that"),
        ("2026-07-28", ["2099-01-01", "2025-06-18"], "try mode 2025-06-18"),
        ("modern", ["2099-01-01"], "try mode 2099-01-01, which mcplab does not know"),
        ("auto", ["two"], "mcplab knows none of its versions"),
        ("auto", [], "only the server can mend that"),
    ],
)
@pytest.mark.parametrize("told", ["error", "result"])
def test_what_to_try_where_no_version_is_common(mode, supported, advice, told):
    game, (request,) = play(mode)
    listed = Result({"supportedVersions": supported, "capabilities": {}})
    (failure,) = game.feed(unsupported(*supported) if told == "error" else listed)
    spoken = ", ".join(supported) or "none"
    assert failure == Fail(f"no common version: asked for {request.version}, the server speaks {spoken}", advice)


@pytest.mark.parametrize(
    ("mode", "supported", "advice"),
    [
        ("2025-11-25", ["2026-07-28"], "the server names 2026-07-28: try mode 2026-07-28"),
        ("1999-01-01", ["two"], "the server names two: mcplab knows none of its versions"),
        ("1999-01-01", [], "the server names no version: only the server can mend that"),
        (
            "1999-01-01",
            ["1999-01-01"],
            "the server names 1999-01-01: it contradicts itself: only the server can mend that",
        ),
    ],
)
def test_what_to_try_where_initialize_is_refused(mode, supported, advice):
    game, _ = play(mode)
    (failure,) = game.feed(unsupported(*supported))
    assert failure.advice == advice


# The seven rows of basic/versioning#compatibility-matrix ------------------------------------------------


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_modern_client_modern_server(transport):
    game, first = play("modern", transport)
    assert first == (DISCOVER,)
    assert game.feed(DISCOVERED) == (Accept("modern", "2026-07-28", DISCOVERED.value),)
    assert game.state.discovery == "modern"


@pytest.mark.parametrize(
    ("transport", "event"),
    [
        ("stdio", Refused(-32601, "Method not found")),
        ("stdio", Silent(30)),
        ("stdio", Ended("gone")),
        ("http", Rejected(400)),
        ("http", Refused(-32601, "Method not found", ABSENT, 404)),
    ],
)
def test_modern_client_legacy_server_fails_and_never_falls_back(transport, event):
    game, _ = play("modern", transport)
    (failure,) = game.feed(event)
    assert isinstance(failure, Fail)
    assert "server/discover" in failure.what
    assert game.state.phase == "done"
    assert game.state.discovery == "failed"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_dual_client_modern_server_stays_modern(transport):
    game, first = play("auto", transport)
    assert first == (PROBE,)
    assert game.feed(DISCOVERED) == (Accept("modern", "2026-07-28", DISCOVERED.value),)


LEGACY_SIGNS = [
    *[("stdio", Refused(code)) for code in (-32601, -32602, -32600, -32603, -32000, -32002, -32022, -32021, -32020, 0)],
    *[("stdio", event) for event in (Silent(10), Result({}), Result(None), Result({"supportedVersions": "no"}))],
    *[("http", Rejected(status)) for status in (400, 404, 405, 406, 415, 422, 500, 502, 307)],
    *[("http", Refused(code, "", ABSENT, 400)) for code in (-32000, -32600, -32601, -32602, -32022, -32021)],
    ("http", Refused(-32601, "", ABSENT, 404)),
    ("http", Refused(-32022, "", {"supported": "2026-07-28"}, 400)),
    ("http", Silent(10)),
    ("http", Ended("HTTP 200 without an answer")),
]


@pytest.mark.parametrize(("transport", "event"), LEGACY_SIGNS)
def test_dual_client_legacy_server_falls_back(transport, event):
    """Whatever is no recognised modern error makes the server legacy: no code alone decides."""
    game, _ = play("auto", transport)
    assert game.feed(event) == (INITIALIZE,)
    assert game.feed(INITIALIZED) == (INITIALIZED_NOTE, Accept("legacy", "2025-11-25", INITIALIZED.value))
    assert game.state.discovery == "legacy-fallback"


@pytest.mark.parametrize(
    ("transport", "event"),
    [
        ("stdio", Refused(-32601, "Method not found")),
        ("stdio", Refused(-32602, "Invalid params")),
        ("http", Refused(-32020, "Header mismatch", ABSENT, 400)),
    ],
)
def test_legacy_client_modern_server_fails(transport, event):
    game, first = play("legacy", transport)
    assert first == (INITIALIZE,)
    assert isinstance(game.feed(event)[0], Fail)
    assert game.state.discovery == "none"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_legacy_client_dual_or_legacy_server(transport):
    game, _ = play("legacy", transport)
    assert game.feed(INITIALIZED)[-1] == Accept("legacy", "2025-11-25", INITIALIZED.value)


# Recognised modern errors -----------------------------------------------------------------------------


def test_unsupported_version_names_one_of_ours_only_once():
    game, _ = play("auto")
    (failure,) = game.feed(unsupported("2026-07-28"))  # the very version that was asked for: no endless loop
    assert isinstance(failure, Fail)


def test_unsupported_version_with_newer_ones_only_fails_without_fallback():
    for mode in ("auto", "modern"):
        game, _ = play(mode, "http")
        (failure,) = game.feed(unsupported("2030-01-01", status=400))
        assert isinstance(failure, Fail)
        assert "2030-01-01" in failure.what


def test_a_server_that_names_legacy_versions_only_gets_one_of_those():
    game, _ = play("auto")
    assert game.feed(unsupported("2024-11-05", "2025-06-18")) == (Request("initialize", "2025-06-18"),)
    game, _ = play("modern")
    (failure,) = game.feed(unsupported("2025-06-18"))
    assert isinstance(failure, Fail)
    assert "2025-06-18" in failure.advice


def test_missing_capability_and_header_mismatch_end_it():
    game, _ = play("auto", "http")
    (failure,) = game.feed(Refused(-32021, "", {"requiredCapabilities": {"roots": {}}}, 400))
    assert "roots" in failure.advice
    game, _ = play("auto", "http")
    assert isinstance(game.feed(Refused(-32020, "", ABSENT, 400))[0], Fail)


def test_recognised_needs_code_and_data():
    assert recognised(unsupported("2026-07-28"))
    assert recognised(unsupported())
    assert not recognised(Refused(-32022, "", {"supported": [1]}))
    assert not recognised(Refused(-32022, "", [{"supported": []}]))
    assert not recognised(Refused(-32021, "", {"requiredCapabilities": ["roots"]}))
    assert not recognised(Refused(-32020))
    assert not recognised(Refused("-32022", "", {"supported": ["2026-07-28"]}))


def test_a_newer_revision_of_ours_gives_way_to_one_that_the_server_speaks(monkeypatch):
    monkeypatch.setattr(negotiation, "MODERN", ("2026-07-28", "2027-01-01"))
    game, opening = play("modern")
    assert opening == (Request("server/discover", "2027-01-01"),)
    assert game.feed(unsupported("2026-07-28")) == (DISCOVER,)
    assert game.feed(DISCOVERED)[-1] == Accept("modern", "2026-07-28", DISCOVERED.value)


# Processes, silence, late answers ---------------------------------------------------------------------


def test_a_process_that_dies_of_the_probe_is_started_again():
    game, _ = play("auto")
    assert game.feed(Ended("exit status 1")) == (Restart(),)
    assert game.feed(Opened("stdio")) == (INITIALIZE,)
    assert game.feed(INITIALIZED)[-1].era == "legacy"


def test_a_process_that_dies_again_ends_it():
    game, _ = play("auto")
    game.feed(Ended("exit status 1"))
    game.feed(Opened("stdio"))
    (failure,) = game.feed(Ended("exit status 1"))
    assert failure.what == "server/discover: exit status 1; then initialize: exit status 1"


def test_a_late_discover_answer_counts_when_initialize_is_refused():
    game, _ = play("auto")
    game.feed(Silent(10))
    assert game.feed(Late(DISCOVERED.value)) == ()
    assert game.feed(Refused(-32601)) == (Accept("modern", "2026-07-28", DISCOVERED.value),)
    assert game.state.discovery == "modern"


def test_a_late_discover_answer_does_not_undo_initialize():
    game, _ = play("auto")
    game.feed(Silent(10))
    game.feed(Late(DISCOVERED.value))
    assert game.feed(INITIALIZED)[-1].era == "legacy"


def test_initialize_refused_with_modern_versions_discovers_again_once():
    game, _ = play("auto")
    game.feed(Silent(10))
    assert game.feed(unsupported("2026-07-28")) == (PROBE,)
    game.feed(Silent(10))
    (failure,) = game.feed(unsupported("2026-07-28"))
    assert isinstance(failure, Fail)


def test_initialize_refused_with_legacy_versions_offers_one_of_those():
    game, _ = play("legacy")
    event = Refused(-32602, "Unsupported protocol version", {"supported": ["2024-11-05"], "requested": "2025-11-25"})
    assert game.feed(event) == (Request("initialize", "2024-11-05"),)
    assert isinstance(game.feed(event)[0], Fail)


def test_a_request_that_the_server_could_not_read_is_no_matter_of_eras():
    game, _ = play("modern")
    (failure,) = game.feed(Refused(-32700, "Parse error"))
    assert failure.what == "server/discover: error -32700 (Parse error)"
    assert failure.advice.startswith("the server could not read the request as JSON")


def test_what_comes_before_anything_was_asked_ends_it():
    game = Play(Negotiation("auto"))
    assert game.feed(Late(DISCOVERED.value)) == ()
    (failure,) = game.feed(Ended("exit status 3"))
    assert failure.what == "before anything was asked: exit status 3"
    assert game.feed(Opened("stdio")) == ()


def test_every_event_has_words():
    said = [Opened("http"), DISCOVERED, Refused(-1, "m", ABSENT, 400), Refused(-1), Rejected(404, "gone"), Silent(10), Ended("e"),
        Unreachable("u"), Late({})]  # fmt: skip
    assert [negotiation.words(event) for event in said] == ["http open", "a result", "HTTP 400, error -1 (m)", "error -1",
        "HTTP 404 (gone)", "no answer within 10 s", "e", "u", "a late discover result"]  # fmt: skip


def test_unreachable_ends_it_at_once():
    game = Play(Negotiation("auto"))
    (failure,) = game.feed(Unreachable("Connection refused"))
    assert "Connection refused" in failure.what
    assert game.feed(DISCOVERED) == ()


# HTTP+SSE ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy", "2024-11-05"])
@pytest.mark.parametrize("status", [400, 404, 405])
def test_http_sse_is_the_last_fallback(mode, status):
    game, _ = play(mode, "http")
    if mode == "auto":
        game.feed(Rejected(status))
    assert game.feed(Rejected(status)) == (Switch("sse"),)
    version = "2024-11-05" if mode == "2024-11-05" else "2025-11-25"
    assert game.feed(Opened("sse")) == (Request("initialize", version),)
    result = {"protocolVersion": version, "capabilities": {}}
    assert game.feed(Result(result))[-1] == Accept("legacy", version, result)


@pytest.mark.parametrize("event", [Rejected(405), Silent(3), Ended("no endpoint"), Unreachable("refused")])
def test_no_http_sse_either(event):
    game, _ = play("legacy", "http")
    game.feed(Rejected(404))
    (failure,) = game.feed(event)
    assert "HTTP 404" in failure.what
    assert "GET" in failure.what


@pytest.mark.parametrize(
    ("transport", "event"),
    [
        ("http", Rejected(500)),
        ("http", Rejected(401)),
        ("http", unsupported("2026-07-28", status=400)),
        ("http", Refused(-32602, "", ABSENT, 200)),
        ("stdio", Refused(-32602)),
    ],
)
def test_other_refusals_do_not_lead_to_http_sse(transport, event):
    game, _ = play("legacy", transport)
    assert isinstance(game.feed(event)[0], Fail)


def test_modern_never_leads_to_http_sse():
    game, _ = play("modern", "http")
    assert isinstance(game.feed(Rejected(404))[0], Fail)


@pytest.mark.parametrize("status", [401, 403, 407])
def test_a_closed_door_is_no_sign_of_an_era(status):
    game, _ = play("auto", "http")
    (failure,) = game.feed(Rejected(status))
    assert str(status) in failure.what


# Exact revisions, odd results -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2001-01-01"])
def test_an_exact_legacy_revision_takes_no_other(mode):
    game, first = play(mode)
    assert first == (Request("initialize", mode),)
    answer = {"protocolVersion": "2025-06-18", "capabilities": {}}
    last = game.feed(Result(answer))[-1]
    assert isinstance(last, Accept if mode == "2025-06-18" else Fail)


@pytest.mark.parametrize("mode", ["2026-07-28", "2031-05-05"])
def test_an_exact_modern_revision_takes_no_other(mode):
    game, first = play(mode)
    assert first == (Request("server/discover", mode),)
    assert isinstance(game.feed(DISCOVERED)[0], Accept if mode == "2026-07-28" else Fail)
    game, _ = play(mode)
    assert isinstance(game.feed(unsupported("2025-11-25", "2030-01-01"))[0], Fail)
    game, _ = play(mode)
    assert isinstance(game.feed(Silent(1))[0], Fail)


@pytest.mark.parametrize("mode", ["", "newest", "2026", "26-07-28", "AUTO"])
def test_no_such_mode(mode):
    with pytest.raises(HandshakeError, match="auto, modern, legacy"):
        Negotiation(mode)


@pytest.mark.parametrize(
    ("result", "what"),
    [
        (None, "the initialize result is null, not an object"),
        ([], "the initialize result is an array, not an object"),
        ("2025-11-25", "the initialize result is a string, not an object"),
        ({}, "the initialize result has no protocolVersion"),
        ({"protocolVersion": 20251125}, "the initialize result has a number as its protocolVersion"),
        ({"protocolVersion": None}, "the initialize result has null as its protocolVersion"),
        (
            {"protocolVersion": "1999-01-01"},
            "the server answered initialize with version '1999-01-01', which is no legacy revision",
        ),
        (
            {"protocolVersion": "2026-07-28"},
            "the server answered initialize with version '2026-07-28', which is no legacy revision",
        ),
    ],
)
def test_an_initialize_result_that_cannot_be_agreed_to(result, what):
    game, _ = play("legacy")
    (failed,) = game.feed(Result({"capabilities": {}} | result if isinstance(result, dict) else result))
    assert isinstance(failed, Fail)
    assert failed.what == what


@pytest.mark.parametrize(
    ("capabilities", "flaw"),
    [
        ({}, "the server's result has no capabilities"),
        ({"capabilities": None}, "the server's capabilities are null, not an object"),
        ({"capabilities": ["tools"]}, "the server's capabilities are an array, not an object"),
        ({"capabilities": {"tools": True}}, "the server's capability 'tools' is true, not an object"),
    ],
)
def test_a_declaration_of_the_wrong_shape_is_named_and_stops_nothing(capabilities, flaw):
    game, _ = play("legacy")
    result = {"protocolVersion": "2025-11-25", **capabilities}
    assert game.feed(Result(result)) == (
        Notify("notifications/initialized"),
        Accept("legacy", "2025-11-25", result, flaw),
    )
    assert game.state.steps[-1].so == f"agreed on 2025-11-25, though {flaw}"
    assert game.state.discovery == "none"


@pytest.mark.parametrize(
    ("result", "flaw"),
    [
        ({}, "the discover result has no supportedVersions"),
        ({"supportedVersions": "2026-07-28"}, "the discover result's supportedVersions is no array of strings"),
        ({"supportedVersions": None}, "the discover result's supportedVersions is no array of strings"),
        (
            {"supportedVersions": ["2026-07-28"], "resultType": "input_required"},
            "the discover result has a resultType other than complete",
        ),
    ],
)
def test_an_ill_formed_discover_result_stops_only_who_has_a_choice(result, flaw):
    whole = {"capabilities": {}, **result}
    for mode in ("modern", "2026-07-28"):
        game, _ = play(mode)
        assert game.feed(Result(whole)) == (Accept("modern", "2026-07-28", whole, flaw),)
        assert game.state.discovery == "modern"
    game, _ = play("auto")
    assert game.feed(Result(whole)) == (INITIALIZE,)
    (failed,) = game.feed(Refused(-32601, "Method not found"))
    assert failed.what == f"server/discover: {flaw}; then initialize: error -32601 (Method not found)"
    assert failed.advice == "try mode modern: it goes on with that result"


def test_a_discover_result_that_is_no_object():
    game, _ = play("2026-07-28")
    (failed,) = game.feed(Result(["tools"]))
    assert failed.what == "server/discover: its result is an array, not an object"
    game, _ = play("auto")
    game.feed(Result(["tools"]))
    (failed,) = game.feed(Refused(-32601, "Method not found"))
    assert "modern" not in failed.advice  # a modern mode would get no further with that


def test_shapes():
    assert misshapen({}) == ""
    assert misshapen({"tools": {"listChanged": "true"}, "unknown": 1}) == ""  # flags inside are for the rules to judge
    assert "null" in misshapen({"tools": None})
    assert "no capabilities" in misshapen(ABSENT)
    assert "a string" in misshapen("tools")
    assert discover_versions({"supportedVersions": []}) == []
    assert discover_versions({"resultType": "input_required", "supportedVersions": []}) is None


def test_steps_tell_the_story():
    game, _ = play("auto", "http")
    game.feed(Refused(-32601, "Method not found", ABSENT, 404))
    game.feed(INITIALIZED)
    assert [(step.asked, step.came) for step in game.state.steps] == [
        ("server/discover (2026-07-28)", "HTTP 404, error -32601 (Method not found)"),
        ("initialize (2025-11-25)", "a result"),
    ]
    assert game.state.steps[-1].so == "agreed on 2025-11-25"
