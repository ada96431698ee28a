"""The tap in a client's configuration: in, out, and nothing else touched."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcplab.cli import run
from mcplab.live.wrapping import tap_command, unwrap, wrap
from mcplab.model import MCPLabError

CONFIGS = {
    "most": '{\n  "mcpServers": {\n    "a": {\n      "command": "npx",\n      "args": [\n        "-y",\n        "srv"\n      ],\n'
    '      "env": {"K": "v"}\n    }, "b":{"command":"x"}\n  },\n "other": 1.50}\n',
    "no args": '{"mcpServers":{"a":{"command":"x\\/y", "type":"stdio"}}}',
    "no args at the end": '{"mcpServers":{"a":{"command":"x"}}}',
    "empty args": '{"mcpServers":{"a":{"command":"x", "args": []}}}',
    "args first": '{"mcpServers":{"a":{"args": [ ],"command":"x"}}}',
    "one arg": '{"mcpServers":{"a":{"command":"x", "args": ["y"]}}}',
    "twice": '{"mcpServers":{"a":{"command":"w","command":"x","args":["y"]}}}',
    "comments": '\ufeff// hi\r\n{"servers": {/* , */ "a": {"command": "x", // "c\r\n "args": ["http://x", /*q*/ "y",], },\r\n},}\r\n',
    "opencode": '{"mcp":{"a":{"type":"local","command":["x","y"],"enabled":true}}}',
    "opencode, one word": '{"mcp":{"a":{"type":"local","command":["x"]}}}',
    "vs code": '{"mcp":{"servers":{"a":{"command":"x","args":["--","-m"]}}}}',
    "claude code": '{"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}}}}',
    "zed": '{"context_servers":{"a":{"source":"custom","command":"é","args":["q"]}}}',
}


def entry(config: str) -> dict:
    """The one server `a` of a configuration without comments."""
    found: list[dict] = []
    json.loads(config, object_pairs_hook=lambda pairs: found.append(dict(pairs).get("a")) or dict(pairs))
    return next(one for one in found if isinstance(one, dict))


@pytest.mark.parametrize("name", CONFIGS)
def test_in_and_out_again(tmp_path, name):
    before = CONFIGS[name].encode()
    config = tmp_path / "c.json"
    config.write_bytes(before)
    config.chmod(0o640)
    done = wrap(config, "a", tmp_path / "o.jsonl", ["--redact", '/x "y"/'])
    after = config.read_bytes()
    assert done.changed
    assert done.backup.read_bytes() == before
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert not wrap(config, "a", tmp_path / "o.jsonl", ["--redact", '/x "y"/']).changed
    assert config.read_bytes() == after
    if name != "comments":
        old, new = entry(before.decode()), entry(after.decode())
        words = [old["command"], *old.get("args", [])] if isinstance(old["command"], str) else old["command"]
        now = [new["command"], *new["args"]] if isinstance(new["command"], str) else new["command"]
        assert now == [*tap_command(tmp_path / "o.jsonl", ["--redact", '/x "y"/']), *words]
        assert {key: old[key] for key in old if key not in ("command", "args")} == {
            key: new[key] for key in new if key not in ("command", "args")
        }
    assert wrap(config, "a", tmp_path / "p.jsonl").changed  # another trace
    assert done.backup.read_bytes() == before
    assert unwrap(config).servers == ["a"]
    assert config.read_bytes() == before
    assert not unwrap(config, "a").changed


def test_written_anew_by_the_client_meanwhile(tmp_path):
    for text in (text for name, text in CONFIGS.items() if name not in ("comments", "twice")):
        config = tmp_path / "c.json"
        config.write_text(text, encoding="utf-8")
        wrap(config, "a", tmp_path / "o.jsonl")
        config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")), indent=2))
        unwrap(config, "a")
        old, new = entry(text), entry(config.read_text())
        assert {"args": [], **old} == {"args": [], **new}


def test_two_servers_and_a_link(tmp_path):
    config, link = tmp_path / "c.json", tmp_path / "link.json"
    config.write_text(CONFIGS["most"])
    link.symlink_to(config)
    wrap(link, "a", tmp_path / "a.jsonl")
    done = wrap(link, "b", tmp_path / "b.jsonl")
    assert link.is_symlink()
    assert done.backup.read_text() == CONFIGS["most"]
    assert unwrap(link, "a").servers == ["a"]
    assert unwrap(link).servers == ["b"]
    assert config.read_text() == CONFIGS["most"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers":{"a":{"type":"http","url":"http://h/mcp"}}}', "mcplab proxy --upstream http://h/mcp -o a.jsonl"),
        ('{"mcpServers":{"a":{"httpUrl":"http://h/mcp"}}}', "has an address and no command"),
        ('{"mcpServers":{"b":{"command":"x"}}}', "no server a; there are: b"),
        ("{}", "no server a; there are: none"),
        ('[mcp_servers.a]\ncommand = "x"', "by hand: .* -m mcplab tap -o .*trace.jsonl --"),
        ('{"mcpServers":{"a":{"command":"x","args":null}}}', "no list"),
        ('{"mcpServers":{"a":{"command":"x"}},"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}}}}', "2 servers are named a"),
    ],
)  # fmt: skip
def test_what_is_left_alone(tmp_path, text, message):
    config = tmp_path / "c.json"
    config.write_text(text)
    with pytest.raises(MCPLabError, match=message):
        wrap(config, "a", tmp_path / "o.jsonl")
    assert config.read_text() == text
    assert list(tmp_path.iterdir()) == [config]


def test_without_a_backup_nothing_is_changed(tmp_path):
    config = tmp_path / "c.json"
    config.write_text(CONFIGS["most"])
    (tmp_path / "c.json.mcplab-backup").mkdir()
    with pytest.raises(MCPLabError, match=r"mcplab-backup: cannot be written \(.*\), so nothing was changed"):
        wrap(config, "a", tmp_path / "o.jsonl")
    assert config.read_text() == CONFIGS["most"]


def test_the_commands_and_that_the_configuration_works(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    config = tmp_path / "c.json"
    echo = "import sys; sys.stdout.write(sys.stdin.read())"
    config.write_text(json.dumps({"mcpServers": {"a": {"command": sys.executable, "args": ["-c", echo]}}}))
    before = config.read_bytes()
    assert run(["wrap", "c.json", "a"]) == 0
    assert "restart the client" in capsys.readouterr().err
    assert run(["wrap", "c.json", "a"]) == 0
    assert "already" in capsys.readouterr().err
    server = json.loads(config.read_text())["mcpServers"]["a"]
    done = subprocess.run(
        [server["command"], *server["args"]], input=b"hello\n", capture_output=True, cwd="/", check=True
    )
    assert (done.stdout, done.stderr) == (b"hello\n", b"")
    assert b'"raw":"hello"' in (tmp_path / "a.jsonl").read_bytes()
    assert run(["unwrap", "c.json"]) == 0
    assert config.read_bytes() == before
    assert run(["unwrap", "c.json", "b"]) == 1
    assert run(["wrap", "none.json", "a"]) == 1
    assert "no such file" in capsys.readouterr().err
    # what the tap could not use would show only inside the client
    assert run(["wrap", "c.json", "a", "--redact", "/(/"]) == 2
    assert "no regular expression" in capsys.readouterr().err
    assert run(["wrap", "c.json", "a", "-o", "nowhere/a.jsonl"]) == 1
    assert "no such folder" in capsys.readouterr().err
    assert config.read_bytes() == before
