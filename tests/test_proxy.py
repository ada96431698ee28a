"""The recording proxy: what passes is the same, at once, and in the trace; how it is started."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from scripted import OK, PING, PONG, SSE, Scripted, answer, ask, chunk, dial, last, on_disk, proxied, rest, told, until

from mcplab.live import exchanges
from mcplab.live.handshakes import handshake
from mcplab.live.proxy import Proxy
from mcplab.live.server.demo import serving
from mcplab.model import MCPLabError, UsageError
from mcplab.traces import read_trace

ROOT = Path(__file__).parents[1]

# What passes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "transport"), [("modern", "http"), ("legacy", "http"), ("2024-11-05", "sse")])
def test_same_messages_with_and_without(mode, transport, tmp_path):
    then = [
        ("tools/list", None),
        ("tools/call", {"name": "progress", "arguments": {"steps": 3, "delay": 0.01}}),
        ("x/y", {}),
    ]
    runs = []
    for name in ("direct", "proxied"):
        with serving(old_sse=transport == "sse") as served:
            if name == "direct":
                done = handshake(served.url, mode=mode, then=then)
            else:
                with Proxy(served.url, tmp_path / "t.jsonl", header={"mode": "forced"}) as proxy:
                    done = handshake(proxy.url, mode=mode, then=then)
            runs.append((done.label, [result.outcome for result in done.results], list(served.wire.texts)))
    assert runs[0] == runs[1]
    trace = read_trace(tmp_path / "t.jsonl")
    recorded = [(str(e.dir), e.text) for e in trace.record.events if e.kind == "message"]
    # the order within a direction: how both interleave is the moment's matter on a transport of several connections
    for direction in ("c2s", "s2c"):
        assert [text for way, text in recorded if way == direction] == [t for way, t in runs[1][2] if way == direction]
    assert trace.connections["label"].tolist() == [done.label]
    assert trace.connections["transport"].tolist() == [transport]
    channels = set(trace.messages["channel"])
    assert channels == ({"SSE (legacy transport)"} if transport == "sse" else {"POST (JSON)"})
    assert not len(trace.unparsed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize(
    ("mode", "serves"), [("auto", "dual"), ("auto", "legacy"), ("legacy", "dual"), ("2026-07-28", "modern")]
)
def test_the_sdk_through_it(mode, serves, tmp_path):
    import mcp
    from mcp import types

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///sdk")])  # type: ignore[arg-type]

    async def talk(url: str) -> list[str]:
        progress: list[float] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        async with mcp.Client(url, mode=mode, list_roots_callback=roots) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            echoed = await client.call_tool("echo", {"text": "hello \U0001f600"})
            await client.call_tool("progress", {"steps": 3, "delay": 0.01}, progress_callback=on_progress)
            failed = await client.call_tool("fail", {})
            return [client.protocol_version, *names, str(echoed.content), str(failed.content), str(progress)]

    with serving(serves=serves) as served:
        direct = asyncio.run(talk(served.url))
        count = len(served.wire.texts)
        with Proxy(served.url, tmp_path / "t.jsonl") as proxy:
            assert asyncio.run(talk(proxy.url)) == direct
        texts = served.wire.texts
    assert sorted(way for way, _ in texts[:count]) == sorted(way for way, _ in texts[count:])
    recorded = [(str(e.dir), e.text) for e in read_trace(tmp_path / "t.jsonl").record.events if e.kind == "message"]
    assert sorted(recorded) == sorted(texts[count:])


def test_an_event_is_seen_and_on_disk_before_the_next_is_sent(tmp_path):
    path = tmp_path / "t.jsonl"
    go = threading.Semaphore(0)

    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(SSE)
        for number in range(3):
            connection.sendall(chunk(b'id: %d\ndata: {"jsonrpc":"2.0","method":"n%d"}\n\n' % (number, number)))
            assert go.acquire(timeout=20)
        connection.sendall(b"0\r\n\r\n")
        rest(connection)

    with proxied(script, path) as (proxy, _), dial(proxy) as client:
        client.sendall(ask())
        assert until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        assert on_disk(path, PING)
        for number in range(3):
            until(client, b"\n\n\r\n")
            assert on_disk(path, b'"method":"n%d"' % number)
            go.release()
        until(client, b"0\r\n\r\n")
    trace = read_trace(path)
    assert told(trace) == [
        "open", "message c2s", "http s2c 200", *["message s2c 200"] * 3, "close server stream", "close client",
    ]  # fmt: skip
    assert [e.sse.id for e in trace.record.events if e.sse is not UNSET] == ["0", "1", "2"]


def test_resumption_and_what_has_no_body(tmp_path):
    heads = [
        b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ]
    heads += [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
    ]

    def script(connection: socket.socket) -> None:
        for head in heads:
            until(connection, b"\r\n\r\n")
            connection.sendall(head)
        assert not connection.recv(1)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        for method, head in zip(("GET", "DELETE", "HEAD", "OPTIONS"), heads, strict=True):
            client.sendall(
                ask(method, body=b"", last_event_id="7" if method == "GET" else "", origin="http://localhost:6274")
            )
            assert until(client, head[-4:]) == head
    http = read_trace(tmp_path / "t.jsonl").http
    assert http["method"].tolist() == ["GET", "DELETE", "HEAD", "OPTIONS"]
    assert http["status"].tolist() == [405, 204, 200, 404]
    assert http["channel"].tolist()[0] == "RESUMPTION"
    assert http["last_event_id"].tolist()[0] == "7"


def test_big_messages_both_ways(tmp_path):
    text = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"' + b"a" * 8_000_000 + b'"}}'
    reply = text.replace(b'"method":"m","params"', b'"result"')

    def script(connection: socket.socket) -> None:
        assert until(connection, b"\r\n\r\n")
        got = bytearray()
        while len(got) < len(text):
            got += connection.recv(1 << 20)
        assert got == text
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + reply + b"\n\n")

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask(body=text))
        time.sleep(0.3)  # nobody reads: what is under way must wait, not pile up
        assert rest(client).partition(b"\r\n\r\n")[2] == b"data: " + reply + b"\n\n"
    assert [e.text for e in read_trace(tmp_path / "t.jsonl").record.events if e.kind == "message"] == [
        text.decode(),
        reply.decode(),
    ]


def test_expect_continue(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        answer(connection)
        rest(connection)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask(expect="100-continue")[: -len(PING)])
        assert until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(PING)
        assert until(client, PONG) == OK
    assert told(read_trace(tmp_path / "t.jsonl")) == ["open", "message c2s", "message s2c 200", "close client"]


def test_an_answer_that_does_not_wait_for_the_request(tmp_path):
    refusal = (
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=x\r\nContent-Length: 25\r\n\r\n"
        b'{"error":"invalid_token"}'
    )

    def script(connection: socket.socket) -> None:
        until(connection, b"\r\n\r\n")
        connection.sendall(refusal)
        until(connection, PING)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask(target="/mcp?access_token=s3cret", authorization="Bearer s3cret")[: -len(PING)])
        assert until(client, b"}") == refusal
        client.sendall(PING)
        assert rest(client) == b""
    assert told(read_trace(tmp_path / "t.jsonl")) == ["open", "http c2s", "http s2c 401", "message c2s", "close server"]
    assert not on_disk(tmp_path / "t.jsonl", b"s3cret")


@pytest.mark.parametrize(("coding", "kept"), [("gzip", False), ("br", False), ("br", True)])
def test_compressed(coding, kept, tmp_path):
    plain = b'data: {"jsonrpc":"2.0","method":"n1"}\n\ndata: {"jsonrpc":"2.0","method":"n2"}\n\n'
    body = gzip.compress(plain) if coding == "gzip" else b"\x0b\x02\x80not decoded here\x03"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {coding}\r\n\r\n".encode()

    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(head + body[:20])
        connection.sendall(body[20:])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchanges, "decoder", (lambda _: None) if coding == "br" else exchanges.decoder)
        with proxied(script, tmp_path / "t.jsonl", keep_secrets=kept) as (proxy, warnings), dial(proxy) as client:
            client.sendall(ask())
            assert rest(client) == head + body
    trace = read_trace(tmp_path / "t.jsonl")
    if coding == "gzip":
        assert trace.messages["method"].tolist() == ["ping", "n1", "n2"]
        assert not warnings
    else:
        assert told(trace) == ["open", "message c2s", "http s2c 200", "close server"]
        reason = "kept as it is" if kept else "not kept, for what cannot be read cannot be masked"
        assert last(trace, "http").reason == f"br body, {reason}"
        assert (last(trace, "http").raw_b64 is not UNSET) is kept
        assert "brotli" in warnings[0]


def test_a_body_that_ends_with_the_connection_is_recorded_when_it_is_there(tmp_path):
    over = threading.Event()

    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + PONG)
        assert over.wait(20)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask())
        until(client, PONG)
        assert on_disk(tmp_path / "t.jsonl", b'"result":{}')
        over.set()
        assert rest(client) == b""
    assert told(read_trace(tmp_path / "t.jsonl")) == ["open", "message c2s", "message s2c 200", "close server"]


def test_a_server_that_speaks_no_http(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(b"Server listening on \xff ...\r\n")

    with proxied(script, tmp_path / "t.jsonl") as (proxy, warnings), dial(proxy) as client:
        client.sendall(ask())
        assert rest(client) == b"Server listening on \xff ...\r\n"
    trace = read_trace(tmp_path / "t.jsonl")
    assert told(trace) == ["open", "message c2s", "unparsed s2c", "close server stream", "close server"]
    assert last(trace).unexpected is True
    assert "no HTTP/1.1" in warnings[0]


def test_addresses_that_lead_round_it(tmp_path):
    redirects = [b"http://127.0.0.1:9/mcp/?s=1", b"http://127.0.0.1:9/mcp/?s=2", b"/mcp/", b"http://[", b""]

    def script(connection: socket.socket) -> None:
        for address in redirects:
            until(connection, b"\r\n\r\n")
            connection.sendall(b"HTTP/1.1 307 X\r\nLocation: " + address + b"\r\nContent-Length: 0\r\n\r\n")
        until(connection, b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for data in (b"/near", b"http://[", b"http://127.0.0.1:9/far"):
            connection.sendall(b"event: endpoint\ndata: " + data + b"\n\n")

    with proxied(script, tmp_path / "t.jsonl") as (proxy, warnings), dial(proxy) as client:
        for _ in redirects:
            client.sendall(ask("GET", body=b""))
            until(client, b"\r\n\r\n")
        client.sendall(ask("GET", body=b""))
        rest(client)
    assert len(warnings) == 2
    assert "redirects to http://127.0.0.1:9/mcp/:" in warnings[0]
    assert "http://127.0.0.1:9/far:" in warnings[1]


# TLS, addresses, the program ----------------------------------------------------------------------------


def certificate(folder: Path) -> Path:
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mcplab test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    pem = signed.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "cert.pem").write_bytes(pem)
    (folder / "both.pem").write_bytes(private + pem)
    return folder / "cert.pem"


@pytest.mark.parametrize("trusted", [True, False])
def test_tls(trusted, tmp_path):
    cafile = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")

    def script(connection: socket.socket) -> None:
        if not trusted:
            with pytest.raises((ssl.SSLError, OSError)):
                context.wrap_socket(connection, server_side=True).recv(1)
            return
        with context.wrap_socket(connection, server_side=True) as wrapped:
            assert b"\r\nHost: 127.0.0.1:" in until(wrapped, PING)  # type: ignore[arg-type]
            wrapped.sendall(OK)
            assert not wrapped.recv(1)

    with Scripted(script) as server:
        url = server.url.replace("http:", "https:")
        with Proxy(url, tmp_path / "t.jsonl", cafile=cafile if trusted else None, warn=lambda _: None) as proxy:
            assert proxy.url.startswith("http://127.0.0.1:")
            with dial(proxy) as client:
                client.sendall(ask())
                reply = until(client, PONG) if trusted else rest(client)
    assert reply == OK if trusted else reply.startswith(b"HTTP/1.1 502 ")
    if not trusted:
        assert b"CERTIFICATE_VERIFY_FAILED" in reply
        assert b"--cafile FILE" in reply


def test_addresses(tmp_path):
    for upstream in ("ftp://x/", "x", "http://", "http://x:99999/", "http://[", "https://x:0/"):
        with pytest.raises(UsageError, match="no http or https address"):
            Proxy(upstream, tmp_path / "t.jsonl")
    for listen in ("", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(UsageError, match="no address to listen on"):
            Proxy("http://x/", tmp_path / "t.jsonl", listen=listen)
    with pytest.raises(UsageError, match="no certificates"):
        Proxy("https://x/", tmp_path / "t.jsonl", cafile=tmp_path / "none.pem")
    with pytest.raises(UsageError, match="no certificates"):
        Proxy("https://x/", tmp_path / "t.jsonl", cafile=__file__)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MCPLabError, match="free port"):
            Proxy("http://x/", tmp_path / "t.jsonl", listen=f"127.0.0.1:{port}").start()
    with Proxy("https://u:p4ss@x.example/a/b?api_key=k3y", tmp_path / "t.jsonl") as proxy:
        assert proxy.url.startswith("http://u:p4ss@127.0.0.1:")
        assert proxy.url.endswith("/a/b?api_key=k3y")
    header = (tmp_path / "t.jsonl").read_text()
    assert "x.example" in header
    assert "p4ss" not in header
    assert "k3y" not in header


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program(number, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving() as served:
        words = [sys.executable, "-m", "mcplab", "proxy", "--upstream", served.url, "-o", str(tmp_path / "t.jsonl")]
        words += ["--redact", "text"]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as child:
            assert child.stdout is not None
            url = child.stdout.readline().strip()
            assert url.endswith("/mcp")
            done = handshake(url, then=[("tools/call", {"name": "echo", "arguments": {"text": "hush"}})])
            assert done.results[0].outcome == "result"
            child.send_signal(number)
            out, errors = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "")
    assert f"events in {tmp_path / 't.jsonl'}" in errors
    assert stat.S_IMODE((tmp_path / "t.jsonl").stat().st_mode) == 0o600
    assert not on_disk(tmp_path / "t.jsonl", b"hush")
    assert read_trace(tmp_path / "t.jsonl").connections["label"].tolist() == [done.label]


def test_wrong_use_of_the_program():
    from mcplab.cli import run

    assert run(["proxy", "--upstream", "nowhere", "-o", "never.jsonl"]) == 2
    assert run(["proxy", "--upstream", "http://x/"]) == 2
    assert not Path("never.jsonl").exists()


def test_the_traffic_goes_on_when_the_disk_is_full(tmp_path):
    with proxied(answer, Path("/dev/full")) as (proxy, warnings), dial(proxy) as client:
        client.sendall(ask())
        assert until(client, PONG) == OK
    assert len(warnings) == 1
    assert "recording stopped" in warnings[0]
    assert proxy.recorder is not None
    assert proxy.recorder.failed is not None
