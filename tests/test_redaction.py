"""What is masked, what is not, and that nothing else changes."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab import make_trace, read_trace
from mcplab.cli import run
from mcplab.credentials import is_secret, is_secret_header
from mcplab.model import UsageError
from mcplab.redacting import redact_file, redacted_trace
from mcplab.redaction import MASK, Masks

HEADER = '{"kind":"header","format":"mcplab-trace","version":1,"transport":"stdio"}\n'


def masked(text: str, *redact: str, event: bool = False, keep_secrets: bool = False) -> str:
    masks = Masks(redact, keep_secrets=keep_secrets)
    return (masks.line if event else masks.message)(text.encode()).decode()


@pytest.mark.parametrize(
    "name",
    "password PASSWORD dbPassword client_secret clientSecret token access_token refreshToken id_token api_key apikey API-KEY"
    " OPENAI_API_KEY GITHUB_TOKEN aws_secret_access_key AWS_ACCESS_KEY_ID privateKey authorization Cookie x-api-key jwt"
    " code_verifier client_assertion credentials passphrase myaccesstoken PGPASSWORD password2 DB_PASS MYSQL_PWD GITHUB_PAT"
    " OPENAI_KEY userpassword Proxy-Authorization SECRET_KEY_BASE SUPABASE_SERVICE_ROLE_KEY githubPat AZURE_DEVOPS_PAT"
    " DD_APP_KEY SSHPASS".split(),
)
def test_names_of_credentials(name):
    assert is_secret(name)
    assert masked(json.dumps({"params": {name: "s3cret"}})) == json.dumps({"params": {name: MASK}})


@pytest.mark.parametrize(
    "name",
    "progressToken nextCursor cursor pageToken nextPageToken maxTokens tokens keyword monkey author authorName key"
    " requestState subscriptionId sessionId tokenType token_endpoint passenger secretary tokenizer sortKey".split(),
)
def test_names_that_are_none(name):
    assert not is_secret(name)
    text = json.dumps({"params": {name: "value", "_meta": {name: "value"}}})
    assert masked(text) == text


def test_headers():
    for name in (
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "X-Auth-Token",
        "Mcp-Param-Token",
    ):
        assert is_secret_header(name)
    for name in ("WWW-Authenticate", "Mcp-Session-Id", "Accept", "Host", "Sec-WebSocket-Key"):
        assert not is_secret_header(name)
    agent = '{"kind":"http","http":{"headers":{"user-agent":"x (token=a; key b)"}}}'
    assert masked(agent, event=True) == agent.replace("token=a", "token=***")
    event = '{"kind":"http","http":{"path":"/m?token=a&session_id=b","headers":{"authorization":"Bearer abc","cookie":"a=b; c=d"}}}'
    assert masked(event, event=True) == event.replace("token=a", "token=***").replace(
        "Bearer abc", "Bearer ***"
    ).replace("a=b; c=d", "***")
    assert masked(event, event=True, keep_secrets=True) == event


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # duplicates, escapes, spacing and numbers stay
        (r'{ "password" : "a\"b\\", "n": 1.50, "password":"\u0061" }', r'{ "password" : "***", "n": 1.50, "password":"***" }'),
        (r'{"p\u0061ssword":"x"}', r'{"p\u0061ssword":"***"}'),
        ('{"password":12345,"token":null,"secret":true,"passwd":""}', None),
        ('{"secrets":["a","b"],"tokens":["a"]}', '{"secrets":["***","***"],"tokens":["a"]}'),
        # a schema that describes a password
        ('{"properties":{"password":{"type":"string","default":"x"}},"required":["password"]}', None),
        # addresses
        ('{"u":"https://me:pw@host/x?access_token=abc&page=2#frag"}', '{"u":"https://***@host/x?access_token=***&page=2#frag"}'),
        (r'{"u":"postgres:\/\/me:p@ss@db\/x é 😀"}', r'{"u":"postgres:\/\/***@db\/x é 😀"}'),
        ('{"u":"ssh://git@host/x","v":"me@example.org","w":"https://host/?keyword=a&sessionId=b&pageToken=c"}', None),
        (r'{"u":"\ud83d\ude00 \ud800 https://h/?sig=abc&x=\u0041"}', r'{"u":"\ud83d\ude00 \ud800 https://h/?sig=***&x=\u0041"}'),
        # pairs, arguments, JSON inside a string
        ('[{"name":"API_KEY","value":"x"},{"name":"HOME","value":"y"}]', '[{"name":"API_KEY","value":"***"},{"name":"HOME","value":"y"}]'),
        ('{"args":["--token","x","--name","y","--api-key=z","KEY=v"]}', '{"args":["--token","***","--name","y","--api-key=***","KEY=v"]}'),
        (r'{"text":"{\"token\": \"a\\nb\", \"n\": [1]}"}', r'{"text":"{\"token\": \"***\", \"n\": [1]}"}'),
        ('{"env":[{"value":"x","name":"API_KEY"},{"value":"y","name":"HOME"}]}', '{"env":[{"value":"***","name":"API_KEY"},{"value":"y","name":"HOME"}]}'),
        ('{"u":"https://h/?api%5Fkey=abc","form":"code=abc&n=1","one":"code=abc"}', '{"u":"https://h/?api%5Fkey=***","form":"code=***&n=1","one":"code=abc"}'),
        # lines of a file or header, and JSON, among other text of a string
        (r'{"text":"A=1\nexport API_KEY=a b\r\nB=\"2\""}', r'{"text":"A=1\nexport API_KEY=***\r\nB=\"2\""}'),
        ('{"h":["Authorization: Bearer abc","Cookie: a=b","Accept: x"]}', '{"h":["Authorization: Bearer ***","Cookie: ***","Accept: x"]}'),
        (r'{"text":"it is:\n{\"password\": \"a\", \"b\": 1} so"}', r'{"text":"it is:\n{\"password\": \"***\", \"b\": 1} so"}'),
        ('{"d":"The password: words. A token=t in a sentence. The Cookie: header, key=value, {x}"}', None),
        ('{"m":"sent authorization: bearer abc, got 401; authorization: is needed"}', '{"m":"sent authorization: bearer ***, got 401; authorization: is needed"}'),
        ('{"d":"Pass Authorization: Bearer <token>, or authorization = ${T}"}', None),
        ('{"u":"https://h/?%74%6f%6b%65%6e=abc"}', '{"u":"https://h/?%74%6f%6b%65%6e=***"}'),
        # text that is no JSON
        ("password=a,b;c&d key=v,w", "password=*** key=v,w"),
        ("password=a,b=c;token=d", "password=***,b=c;token=***"),
        ("start: API_KEY=abc, password: 'two words', Authorization: Bearer q.w", "start: API_KEY=***, password: '***', Authorization: Bearer ***"),
        ("Cookie: a=b; c=d\r\nHost: x", "Cookie: ***\r\nHost: x"),
        ("Authorization: Bearer\r\n abc\r\n\tdef\r\nHost: x", "Authorization: Bearer\r\n ***\r\nHost: x"),
        ("grant_type=code&client_secret=s&code_verifier=v", "grant_type=code&client_secret=***&code_verifier=***"),
        ('2026 [info] sent {"params":{"password":"two words"}} (token "abc")', '2026 [info] sent {"params":{"password":"***"}} (token "abc")'),
        ('{"a": "password": "x"', '{"a": "password": "***"'),
        ("plain {{{[ text", None),
        ("run --token abc --name y", "run --token *** --name y"),
        (r'cut: {"password":"a\"b", "c":', r'cut: {"password":"***", "c":'),
        (r"{'password': 'a\'b'}", "{'password': '***'}"),
    ],
)  # fmt: skip
def test_by_default(text, left):
    assert masked(text) == (text if left is None else left)
    assert masked(masked(text)) == masked(text)
    assert masked(text, keep_secrets=True) == text


def test_long_values_and_deep_ones():
    """What makes most messages cheap to look at, and where JSON in JSON ends, lets nothing through."""
    pad, long = "z" * 3000, "a" * 300
    for name in ("AUTHORIZATION: Bearer ", "X-Api-Key: "):
        text = json.dumps({"pad": pad, "args": [name + long]})
        assert masked(text) == text.replace(long, MASK)
    text = '{"password":"abc"}'
    for _ in range(6):
        text = json.dumps({"x": text})
    assert "abc" not in masked(text)


def test_command_lines_in_a_header():
    for words, left in (
        ("--header|Authorization: Bearer abc", "--header|Authorization: Bearer ***"),
        ("--header=X-Api-Key: abc|y", "--header=X-Api-Key: ***|y"),
        ("-e|DB_PASSWORD=a b|-e|HOME=/x", "-e|DB_PASSWORD=***|-e|HOME=/x"),
        ("sh|-c|srv --api-key abc --name y", "sh|-c|srv --api-key *** --name y"),
        ('--config={"password":"abc","n":1}', '--config={"password":"***","n":1}'),
        ("--keep|name: value", "--keep|name: value"),
        ("curl|-su|me:pw, x|-U|a:b|https://h/x", "curl|-su|***|-U|***|https://h/x"),
        ("/usr/bin/curl|-ume:pw|--user=a:b|--proxy-user|c:d|h", "/usr/bin/curl|-u***|--user=***|--proxy-user|***|h"),
        ("sh|-c|curl -s -u me:p&w https://h:1/x | jq", "sh|-c|curl -s -u *** https://h:1/x | jq"),
        ("sh|-c|curl -u 'me:p w' --user \"a:b\" h", "sh|-c|curl -u '***' --user \"***\" h"),
        ("curl|-u|me|--user-agent|a:b|-o|c:d|http://h:80/", "curl|-u|me|--user-agent|a:b|-o|c:d|http://h:80/"),
        ("docker|run|-u|node:node|--user=1:1|image", "docker|run|-u|node:node|--user=1:1|image"),
    ):
        line = json.dumps({"kind": "header", "config": {"command": words.split("|")}})
        assert json.loads(masked(line, event=True))["config"]["command"] == left.split("|")
        assert masked(line, event=True, keep_secrets=True) == line


def test_curl_elsewhere():
    """In stderr, in an entry whose arguments stand apart, and in what a tool is to run."""
    for text, left in (
        ('{"kind":"stderr","raw":"+ curl -u me:pw h"}', '{"kind":"stderr","raw":"+ curl -u *** h"}'),
        (
            '{"kind":"header","config":{"server_entry":{"command":"curl","args":["-u","me:pw","h"]}}}',
            '{"kind":"header","config":{"server_entry":{"command":"curl","args":["-u","***","h"]}}}',
        ),
        (
            r'{"kind":"message","msg":{"id":1,"params":{"run":"curl -u \"me:pw\" h"}}}',
            r'{"kind":"message","msg":{"id":1,"params":{"run":"curl -u \"***\" h"}}}',
        ),
    ):
        assert masked(text, event=True) == left
        assert masked(text, event=True, keep_secrets=True) == text


PEM = ["-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", "MIIEowIBAAKCAQEA", "Qk1+/w==", "-----END RSA PRIVATE KEY-----"]  # fmt: skip


def stderr(conn: str, raw: str, kind: str = "stderr") -> bytes:
    return json.dumps({"kind": kind, "conn": conn, "dir": "s2c", "raw": raw}).encode() + b"\n"


def test_a_private_key_that_comes_line_by_line():
    """Other streams' lines between its own, something before its beginning and after its end."""
    lines = [stderr("c1", "key: " + PEM[0])]
    for part in PEM[1:-1]:
        lines += [stderr("c1", part), stderr("c2", "fine"), stderr("c1", "fine too", "unparsed"), b'{"kind":"open"}\n']
    lines += [stderr("c1", PEM[-1] + " read"), stderr("c1", "MIIEowIBAAKCAQEA")]
    done = [json.loads(line).get("raw") for line in redacted_trace([HEADER.encode(), *lines], Masks())[1:]]
    assert [raw for raw in done if raw not in ("fine", "fine too", None)] == [
        "key: ***", "***", "", "***", "***", "*** read", "MIIEowIBAAKCAQEA",
    ]  # fmt: skip
    assert done.count("fine") == done.count("fine too") == 4
    kept = redacted_trace([HEADER.encode(), *lines], Masks(keep_secrets=True))
    assert kept == [HEADER.encode(), *lines]


def test_a_private_key_in_one_text_and_one_that_is_only_spoken_of():
    whole = json.dumps("\n".join(PEM))
    for text, left in (
        (f'{{"kind":"stderr","raw":{whole}}}', '{"kind":"stderr","raw":"***"}'),
        (f'{{"kind":"message","msg":{{"result":{{"t":{whole}}}}}}}', None),  # of a message: with `tokens`
        (f'{{"kind":"header","config":{{"args":[{whole}]}}}}', '{"kind":"header","config":{"args":["***"]}}'),
        ("\n".join(["a", *PEM, "b"]), "a\n***\nb"),
    ):
        assert masked(text, event=text.startswith('{"kind')) == (left or text)
    masks = Masks()
    lines = [stderr("c1", PEM[0]), *[stderr("c1", "words")] * 400]
    done = [json.loads(masks.line(line))["raw"] for line in lines]
    assert done[300:302] == ["***", "words"]  # it has to end at some time


def test_an_argument_that_is_copied_into_a_header_is_masked_there_too():
    event = '{"kind":"http","http":{"headers":{"mcp-param-note":"abc","mcp-param-other":"abc"}}}'
    for word in ("note", "params.arguments.note", "/params/arguments/note"):
        assert masked(event, word, event=True) == event.replace("abc", "***", 1)
    for word in ("params.arguments", "/params/arguments/*"):
        assert masked(event, word, event=True) == event.replace("abc", "***")
    assert masked(event, "result.note", event=True) == event
    secret = event.replace("note", "passphrase")  # a name of a credential's in a body is one in a header too
    assert masked(secret, event=True) == secret.replace("abc", "***", 1)


MESSAGE = (
    '{"jsonrpc":"2.0","id":"abc","method":"tools/call","params":{"name":"abc","arguments":{"note":"abc","notes":'
    '[{"note":["abc",1,{"x":"abc"}]},"sk-abcdefghijklmnop1234"],"a.b":"abc"}}}'
)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("note", 3), ("NO_TE", 3), ("x", 1), ("abc", 0), ("jsonrpc", 0), ("id", 0),
        ("/abc/", 6), ("/ABC/i", 6), ("/ABC/", 0), ("/b(?=c)/", 6),
        ("/params/arguments/note", 1), ("/params/arguments/notes/0/note/0", 1), ("/params/arguments/notes/*/note", 2),
        ("/params/arguments/a.b", 1), ("/params/arguments", 5), ("/id", 0), ("/arguments/note", 0),
        ("params.arguments.note", 1), ("params.arguments.notes.note", 2), ("params.*.note", 1), ("params.arguments.notes.note.x", 1),
        ('params.arguments["a.b"]', 1), ("arguments.note", 0), ("tokens", 1),
    ],
)  # fmt: skip
def test_more(word, count):
    out = masked(MESSAGE, word)
    assert out.count(MASK) == count
    assert json.loads(out)["id"] == "abc"
    line = HEADER[:-2] + ',"x":"y"}'
    event = '{"kind":"message","seq":0,"conn":"abc","dir":"c2s","msg":' + MESSAGE + "}"
    assert masked(event, word, event=True) == event[: event.index(MESSAGE)] + out + "}"
    assert masked("[" + MESSAGE + "," + MESSAGE + "]", word) == f"[{out},{out}]"
    assert masked(line, word, event=True).count('"kind":"header"') == 1


@pytest.mark.parametrize(
    "token",
    [
        "sk-proj-abcdefghij0123456789", "sk_live_abcdefghij0123456789", "ghp_" + "a1" * 18, "github_pat_" + "a" * 30,
        "glpat-" + "a" * 20, "xoxb-1234567890-abc", "AKIA" + "A" * 16, "AIza" + "a" * 35, "hf_" + "a" * 30,
        "eyJhbGciOiJI.eyJzdWIiOiIx.abc-_", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_shapes_of_tokens(token):
    text = json.dumps({"result": {"content": f"it is {token} here"}})
    assert json.loads(masked(text, "tokens"))["result"]["content"] == "it is *** here"
    assert masked(text) == text
    assert masked("sketch sk-1 skeleton ghp eyJ AKIA", "tokens") == "sketch sk-1 skeleton ghp eyJ AKIA"


@pytest.mark.parametrize("word", ["", " ", "/(/", "a..b", ".a", "a[b]", "a."])
def test_words_that_cannot_be_used(word):
    with pytest.raises(UsageError, match="redact: "):
        Masks([word])


NAMES = st.sampled_from(["password", "token", "a", "é", "apiKey", "note", 'x"y', "progressToken"]) | st.text(max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.sampled_from(["https://u:p@h/?key=1", '{"token":"x"}', "--token", "sk-" + "a" * 20]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)  # fmt: skip
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


@given(VALUES, st.booleans(), st.sampled_from([(), ("note",), ("tokens", "/a/"), ("a.note", "/params/a")]))
def test_only_the_insides_of_string_values_change(value, escaped, redact):
    text = json.dumps({"params": value}, ensure_ascii=escaped)
    masks = Masks(redact)
    out = masks.message(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    assert STRING.sub('""', out) == STRING.sub('""', text)
    assert _bones(json.loads(out)) == _bones(json.loads(text))
    before, after = STRING.findall(text), STRING.findall(out)
    assert all(a == b or MASK in b for a, b in zip(before, after, strict=True))
    assert bool(masks.places) == (out != text)
    assert Masks(redact).message(out.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") == out


def _bones(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bones(inner) for key, inner in value.items()}
    return [_bones(inner) for inner in value] if isinstance(value, list) else "" if isinstance(value, str) else value


@given(st.binary(max_size=300), st.sampled_from([(), ("note", "/./", "a.b", "tokens")]))
def test_no_bytes_do_harm(data, redact):
    Masks(redact).message(data)
    redacted_trace([data, b'{"kind":"stderr","raw":"token=a"}'], Masks(redact))


@pytest.mark.parametrize(
    "text",
    [
        "ab" * 100_000 + " ://@ token", "a;" * 100_000 + "=token", "sk-" * 100_000, "eyJ" + "a" * 200_000, "x token" + " " * 200_000,
        "cookie: a" * 20_000, "{" * 200_000 + "token", "http://" * 40_000 + "token=a", "-----BEGIN PRIVATE KEY" * 9_000,
        '{"token":' + "[" * 50_000 + '"a"' + ',"b"]' * 50_000 + "}", '"' + "\\\"" * 100_000 + 'token"', "a=" * 100_000 + "token",
        "token=" * 40_000, "eyJ-" * 50_000, "?a=" * 60_000 + "token",
        '{"a":' * 50_000 + " token", '{"a":[' * 20_000 + " token", "--a " * 50_000 + "token", "\n " * 100_000 + "token=", " " * 200_000 + "token=",
    ],
)  # fmt: skip
def test_hostile_texts_take_no_longer_than_others(text):
    begun = time.process_time()
    for each in (text, json.dumps({"x": text})):
        Masks(["tokens", "a.b", "note"]).message(each.encode())
    assert time.process_time() - begun < 15


# On disk ---------------------------------------------------------------------------------------------


def test_a_trace_keeps_every_other_byte(tmp_path):
    events = [
        '{"kind":"message", "seq":0,"conn":"c1","dir":"c2s","later":{"word":1.50},"msg":{"id":1,"method":"x","params":{"token":"t","token":"u"}}}\r\n',
        '{"kind":"stderr","seq":1,"conn":"c1","dir":"s2c","raw":"nothing"}\n',
        '{"kind":"message","seq":2,"conn":"c1","dir":"c2s","msg":{"id":2,"method":"x","params":{"password":"cut\n',
    ]
    path = tmp_path / "t.jsonl"
    path.write_bytes((HEADER + "".join(events)).encode())
    done = redact_file(path)
    assert done.path == tmp_path / "t-redacted.jsonl"
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    lines = done.path.read_bytes().decode().splitlines(keepends=True)
    assert lines[0] == HEADER[:-2] + ',"redacted":["msg.params.token","text"]}\n'
    assert lines[1] == events[0].replace('"t"', '"***"').replace('"u"', '"***"')
    assert lines[2:] == [events[1], events[2].replace("cut", "***")]
    assert read_trace(done.path).header["redacted"] == ["msg.params.token", "text"]
    again = redact_file(done.path, tmp_path / "again.jsonl", redact=["/nothing/"])
    assert again.places == ["raw"]
    assert read_trace(again.path).header["redacted"] == ["msg.params.token", "text", "raw"]


def test_what_is_no_file_is_written_into(tmp_path):
    """A device or pipe keeps its place: as root a rename would put a file there."""
    source, pipe = tmp_path / "t.jsonl", tmp_path / "pipe"
    source.write_text(HEADER + '{"kind":"stderr","seq":0,"conn":"c1","dir":"s2c","raw":"token=abc"}\n')
    os.mkfifo(pipe)
    for write in (lambda: redact_file(source, pipe), lambda: read_trace(source).redacted().save(pipe)):
        fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            write()
            assert b"token=***" in os.read(fd, 1 << 16)
        finally:
            os.close(fd)
        assert pipe.is_fifo()


def test_logs_of_json_lines_keep_their_format(tmp_path):
    text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"password":"p"}}\n\n {"jsonrpc":"2.0","id":1,"result":{"v":1.50}}'
    path = tmp_path / "log.ndjson"
    path.write_text(text)
    assert redact_file(path).path.read_text() == text.replace('"p"', '"***"')
    assert redact_file(path).path.suffix == ".ndjson"


def test_other_formats_become_traces(tmp_path):
    path = tmp_path / "x.log"
    path.write_text(
        '2026-01-02T03:04:05.678Z [srv] [info] Message from client: {"jsonrpc":"2.0","id":1,"method":"x","params":{"password":"p q"}}\n'
    )
    done = redact_file(path)
    assert "p q" not in done.path.read_text()
    trace = read_trace(done.path)
    assert trace.format == "mcplab"
    assert list(trace.messages["method"]) == ["x"]


def test_a_trace_in_memory():
    trace = make_trace([("client", '{"id":1,"method":"x","params":{"token":"t","n":1.50}}'), ("server", "password=p")])
    red = trace.redacted("/zz/")
    assert red.raw(0) == '{"id":1,"method":"x","params":{"token":"***","n":1.50}}'
    assert red.raw(1) == "password=***"
    assert red.header["redacted"] == ["msg.params.token", "raw"]
    assert red.name == trace.name
    assert set(trace.notes) <= set(red.notes)
    assert "redacted" not in make_trace([("client", "{}")]).redacted().header


def test_the_command(tmp_path, capsys):
    path: Path = tmp_path / "t.jsonl"
    path.write_text(HEADER + '{"kind":"stderr","seq":0,"conn":"c1","dir":"s2c","raw":"token=a b"}\n')
    assert run(["redact", str(path), "--redact", "/b/"]) == 0
    assert '"raw":"token=*** ***"' in (tmp_path / "t-redacted.jsonl").read_text()
    assert "masked: raw" in capsys.readouterr().err
    assert run(["redact", str(path), "-o", str(path)]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert run(["redact", str(path), "--redact", "/(/"]) == 2
    assert run(["redact", str(tmp_path / "none")]) == 1
    assert path.read_text().endswith('token=a b"}\n')


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\x1b[31mtoken=hunter2 x", "\x1b[31mtoken=*** x"),
        ("\x1b[1mAuthorization:\x1b[0m Bearer hunter2", "\x1b[1mAuthorization:\x1b[0m Bearer ***"),
        ("\x1b[1mapi_key\x1b[0m=hunter2\x1b[0m x=1", "\x1b[1mapi_key\x1b[0m=***\x1b[0m x=1"),
        ("\x1b(B\x1b[mtoken: hunter2", "\x1b(B\x1b[mtoken: ***"),
        ("\x9b31mtoken=hunter2", "\x9b31mtoken=***"),
        ("[31mtoken=hunter2[0m", "[31mtoken=***[0m"),  # the log dropped the escape itself
        ('\x1b[32m"token"\x1b[39m: \x1b[33m"hunter2"\x1b[39m', '\x1b[32m"token"\x1b[39m: \x1b[33m"***"\x1b[39m'),
        (
            "\x1b[36mGET\x1b[0m http://h/p?access_token=hunter2&x=1",
            "\x1b[36mGET\x1b[0m http://h/p?access_token=***&x=1",
        ),
        ("token=hun\x1b[0mter2 x", "token=*** x"),  # nor does one end a value
        ("\x1b[1mtoken\x1b[0m: hun\x1b[7mter\x1b[0m2\x1b[0m x", "\x1b[1mtoken\x1b[0m: ***\x1b[0m x"),
        ("[36mINFO[0m token=hun[7mter2 x", "[36mINFO[0m token=*** x"),
        ("\x1b[31mmonkey=banana [5m tokens", "\x1b[31mmonkey=banana [5m tokens"),
    ],
)
def test_colours_hide_no_name(text, wanted):
    assert masked(text) == wanted
    assert masked(wanted) == wanted
    line = json.dumps({"kind": "stderr", "seq": 1, "conn": "c1", "raw": text})
    assert json.loads(masked(line, event=True))["raw"] == wanted


def test_colours_without_end_take_no_time():
    for text in ("\x1b[31m" * 50_000, "\x1b[" * 100_000, "[" * 200_000, "[0" * 100_000, "\x1b[0" * 100_000 + "m"):
        assert masked(f"token {text} x=1").startswith("token ")  # a limit only a hang reaches
