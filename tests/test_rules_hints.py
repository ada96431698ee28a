"""Rules of low confidence have no examples in the catalogue: here each one speaks once, and once it is silent."""

from __future__ import annotations

import pytest

from mcplab import Trace, check
from mcplab.rulebook import examples
from mcplab.rulebook.catalogue import catalogue

MODERN, LEGACY = "2026-07-28", "2025-11-25"
LISTEN = '> {"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
STREAM = "answer 200 [content-type=text/event-stream]\n"
CALL = '> {"id":1,"method":"tools/call","params":{"name":"t"}}\n'
WRONG = '< {"id":1,"error":{"code":-32603,"message":"Session not initialized"}}\n'
POST = "http\nhandshake\n> [%s] " + '{"id":1,"method":"ping"}\n< [status=%s] {"id":1,"result":{}}'
SESSION = "http session=%s\nhandshake"

SPEAKS = {
    "capabilities.wrong-party": (LEGACY, 'handshake client={"tools":{}}', 'handshake client={"roots":{}}'),
    "capabilities.not-in-revision": ("2025-03-26", 'handshake server={"tasks":{}}', 'handshake server={"tools":{}}'),
    "capabilities.tasks-structure": (
        LEGACY,
        'handshake server={"tasks":{"requests":{"tools/call":{}}}}',
        'handshake server={"tasks":{"requests":{"tools":{"call":{}}}}}',
    ),
    "extensions.reserved-vendor": (
        MODERN,
        'handshake server={"extensions":{"io.modelcontextprotocol/acme":{}}}',
        'handshake server={"extensions":{"io.modelcontextprotocol/ui":{},"com.example/x":{}}}',
    ),
    "gate.subscription-filter-undeclared": (
        MODERN,
        'handshake server={"tools":{}}\n' + LISTEN,
        'handshake server={"tools":{"listChanged":true}}\n' + LISTEN,
    ),
    "subscriptions.graceful-end": (
        MODERN,
        f'http\nhandshake server={{}}\n{LISTEN}{STREAM}end by="server"',
        f'http\nhandshake server={{}}\n{LISTEN}{STREAM}end by="client"',
    ),
    "jsonrpc.unknown-method-error": (
        LEGACY,
        'handshake\n> {"id":1,"method":"foo/bar"}\n< {"id":1,"error":{"code":-32603,"message":""}}',
        'handshake\n> {"id":1,"method":"foo/bar"}\n< {"id":1,"error":{"code":-32601,"message":""}}',
    ),
    "version.era-not-mixed": (
        MODERN,
        'handshake server={"tools":{}}\n' + CALL + WRONG,
        'handshake server={"tools":{}}\n' + CALL + WRONG.replace("Session not initialized", "disk full"),
    ),
    "sessions.id-strength": (LEGACY, SESSION % "12345678901234567890", SESSION % "0e8f6a4c1b7d4d5e9f"),
    "version-header.legacy-absent-tolerated": (
        LEGACY, POST % ("-mcp-protocol-version", 400), POST % ("-mcp-protocol-version", 200),
    ),
    "http.origin-refused-403": (
        LEGACY, POST % ("origin=http://evil.example; host=localhost:1", 200),
        POST % ("origin=http://localhost:2; host=localhost:1", 200),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", SPEAKS)
def test_a_hint_and_its_silence(rule: str) -> None:
    revision, wrong, right = SPEAKS[rule]
    assert set(catalogue()[rule].confidence.values()) == {"low"}
    for script, verdicts in ((wrong, {"hint"}), (right, {"kept", "unexercised"})):
        record = examples.record(script, revision)
        table = check(Trace(record), rules=rule, hints=True)
        said = set(table.loc[table["revision"] == revision, "verdict"])
        assert said & {"hint", "broken"} == verdicts & {"hint"}, (script, said)
        assert said <= verdicts | {"kept", "unexercised"}
        assert "broken" not in set(Trace(record).findings.loc[lambda t: t["rule"] == rule, "verdict"])
