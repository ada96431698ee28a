"""The relay behind the proxy: what it answers itself, and what the trace says of either side's end."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from scripted import OK, PING, PONG, SSE, Scripted, answer, ask, chunk, dial, last, on_disk, proxied, rest, told, until

from mcplab.live import http_relay
from mcplab.live.admission import Admission
from mcplab.live.capture import Capture
from mcplab.live.proxy import Proxy
from mcplab.model import UsageError
from mcplab.traces import read_trace

# What it answers itself ------------------------------------------------------------------------------


def test_the_server_is_down(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    warnings: list[str] = []
    with Proxy(f"http://127.0.0.1:{port}/mcp", tmp_path / "t.jsonl", warn=warnings.append) as proxy:
        with dial(proxy) as client:
            request = ask()
            client.sendall(request[:-10])
            time.sleep(0.05)
            client.sendall(request[-10:])
            reply = rest(client)
        with dial(proxy) as client:
            client.sendall(ask(expect="100-continue")[: -len(PING)])
            assert rest(client).startswith(b"HTTP/1.1 502 ")
    assert reply.startswith(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain")
    assert b"Connection refused" in reply
    trace = read_trace(tmp_path / "t.jsonl")
    assert told(trace)[:5] == ["open", "message c2s", "http s2c 502", "close stream", "close"]
    assert "Connection refused" in str(last(trace).reason)
    assert len(warnings) == 1


FOREIGN = {
    "host": (403, ask(Host="evil.example:80")),
    "no host": (400, ask(Host="")),
    "two hosts": (400, ask(host="localhost")),
    "origin": (403, ask(Origin="https://evil.example")),
    "null origin": (403, ask(Origin="null")),
    "odd origin": (403, ask(Origin="http://[")),
    "odder origin": (403, ask(Origin="http:evil//localhost")),
    "odd host": (403, ask(Host="localhost#.evil.example")),
    "user in host": (403, ask(Host="evil@localhost")),
    "forward proxy": (400, ask(target="http://127.0.0.1/mcp")),
    "connect": (400, ask("CONNECT", "127.0.0.1:80", b"")),
    "websocket": (501, ask("GET", body=b"", Upgrade="websocket", Connection="Upgrade")),
    "no http": (400, b"\x16\x03\x01\x02\x00\x01\x00"),
    "http/2": (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "both lengths": (400, ask(transfer_encoding="chunked")),
    "bad length": (400, ask("POST", body=b"", Content_Length="1x")),
    "bad chunk": (400, ask(body=b"", transfer_encoding="chunked") + b"zz\r\n"),
    "giant head": (431, ask(x="y" * 70_000)),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_not_let_in(what, tmp_path):
    status, wire = FOREIGN[what]

    def script(connection: socket.socket) -> None:
        got = rest(connection)
        assert what == "bad chunk" or b"evil" not in got

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(wire)
        reply = rest(client)
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert reply.partition(b"\r\n\r\n")[2].endswith(b"\n")
    trace = read_trace(tmp_path / "t.jsonl")
    answers = [e for e in trace.record.events if e.http is not UNSET and e.http.status is not UNSET]
    assert [e.http.status for e in answers] == [status]
    assert str(last(trace).reason).startswith("answered by the proxy: ")
    assert any(e.dir == "c2s" for e in trace.record.events)


def test_who_is_let_in(tmp_path):
    options = {"allow_host": ["Box.example"], "allow_origin": ["https://page.example", "null"]}
    with proxied(answer, tmp_path / "t.jsonl", **options) as (proxy, _):
        for more in (
            {"Host": "box.EXAMPLE:99"}, {"Host": "[::1]:7"}, {"Origin": "https://page.example"}, {"Origin": "null"},
            {"Origin": "http://localhost:6274"}, {"Host": "localhost \t"}, {"Origin": "tauri://localhost"}, {"Upgrade": "h2c", "Connection": "Upgrade"},
        ):  # fmt: skip
            with dial(proxy) as client:
                client.sendall(ask(**more))
                assert until(client, PONG) == OK, more
    with (
        proxied(answer, tmp_path / "u.jsonl", allow_host=["*"], allow_origin=["*"]) as (proxy, _),
        dial(proxy) as client,
    ):
        client.sendall(ask(Host="any.example", Origin="https://any.example"))
        assert until(client, PONG) == OK


def test_a_refusal_waits_for_the_answers_before_it(tmp_path):
    go = threading.Event()

    def script(connection: socket.socket) -> None:
        until(connection, PING)
        assert go.wait(20)
        connection.sendall(OK)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask() + ask(Host="evil.example"))
        go.set()
        reply = rest(client)
    assert reply.startswith(OK + b"HTTP/1.1 403 ")
    assert told(read_trace(tmp_path / "t.jsonl")) == [
        "open", "message c2s", "message s2c 200", "http c2s", "http s2c 403", "close stream", "close",
    ]  # fmt: skip


def test_a_head_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(http_relay, "HEAD_TIME", 0.2)
    with proxied(answer, tmp_path / "t.jsonl") as (proxy, _):
        with dial(proxy) as client, dial(proxy) as silent:
            client.sendall(b"POST /mcp HTTP/1.1\r\nX-")
            assert rest(client).startswith(b"HTTP/1.1 408 ")
            assert rest(silent) == b""
        with dial(proxy) as client:
            client.sendall(ask())
            assert until(client, PONG) == OK
            time.sleep(0.4)  # between two requests nobody is hurried
            client.sendall(ask()[:-5])
            time.sleep(0.4)  # nor in a body
    assert told(read_trace(tmp_path / "t.jsonl")).count("message s2c 200") == 1


def test_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(http_relay, "MOST", 2)
    with proxied(answer, tmp_path / "t.jsonl") as (proxy, _), dial(proxy), dial(proxy), dial(proxy) as third:
        reply = b""
        with suppress(ConnectionError):
            reply = rest(third)
    assert reply == b""
    assert "more than 2 connections" in (tmp_path / "t.jsonl").read_text()


def test_a_server_that_switches(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n\x00\x00")

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask(Upgrade="h2c", Connection="Upgrade"))
        assert rest(client).startswith(b"HTTP/1.1 502 ")
    assert told(read_trace(tmp_path / "t.jsonl"))[:3] == ["open", "message c2s", "http s2c 502"]


def test_an_answer_that_nobody_asked_for(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(OK * 2)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask())
        assert rest(client) == OK * 2
    trace = read_trace(tmp_path / "t.jsonl")
    assert told(trace)[:5] == ["open", "message c2s", "message s2c 200", "http s2c 200", "unparsed s2c"]
    assert last(trace, "unparsed").raw == PONG.decode()


# Either side's end -----------------------------------------------------------------------------------


def test_the_server_vanishes(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(SSE + chunk(b'data: {"jsonrpc":"2.0","method":"n"}\n\ndata: {"js'))

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask())
        assert rest(client).endswith(b'data: {"js\r\n')
    trace = read_trace(tmp_path / "t.jsonl")
    assert told(trace) == [
        "open", "message c2s", "http s2c 200", "message s2c 200", "unparsed s2c", "close server stream", "close server",
    ]  # fmt: skip
    assert last(trace).unexpected is True


@pytest.mark.parametrize("moment", ["request", "waiting", "stream"])
def test_the_client_vanishes(moment, tmp_path):
    gone = threading.Event()

    def script(connection: socket.socket) -> None:
        if moment != "request":
            until(connection, PING)
        if moment == "stream":
            connection.sendall(SSE + chunk(b'data: {"jsonrpc":"2.0","method":"n"}\n\n'))
        rest(connection)  # the end of the client's side comes through
        gone.set()

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _):
        with dial(proxy) as client:
            client.sendall(ask()[: -5 if moment == "request" else None])
            if moment == "stream":
                until(client, b"\n\n\r\n")
            else:
                time.sleep(0.05)
        assert gone.wait(20)
    trace = read_trace(tmp_path / "t.jsonl")
    expected = {
        "request": ["unparsed c2s"],
        "waiting": ["message c2s"],
        "stream": ["message c2s", "http s2c 200", "message s2c 200"],
    }
    assert told(trace) == ["open", *expected[moment], "close client stream", "close client"]


def test_half_closed_clients_get_their_answer(tmp_path):
    def script(connection: socket.socket) -> None:
        assert rest(connection).endswith(PING)
        connection.sendall(OK)

    with proxied(script, tmp_path / "t.jsonl") as (proxy, _), dial(proxy) as client:
        client.sendall(ask())
        client.shutdown(socket.SHUT_WR)
        assert rest(client) == OK
    assert told(read_trace(tmp_path / "t.jsonl")) == ["open", "message c2s", "message s2c 200", "close client"]


def test_stopped_in_mid_stream(tmp_path):
    def script(connection: socket.socket) -> None:
        until(connection, PING)
        connection.sendall(SSE)
        rest(connection)

    before = set(threading.enumerate())
    with Scripted(script) as server:
        proxy = Proxy(server.url, tmp_path / "t.jsonl").start()
        with pytest.raises(UsageError):
            proxy.start()
        client, idle = dial(proxy), dial(proxy)
        client.sendall(ask())
        until(client, b"\r\n\r\n")
        proxy.stop()
        proxy.stop()
        with pytest.raises(ConnectionError):
            dial(proxy)
        client.close()
        idle.close()
    assert set(threading.enumerate()) == before
    trace = read_trace(tmp_path / "t.jsonl")
    assert told(trace)[-3:] in (["close stream", "close", "close"], ["close", "close stream", "close"])
    assert last(trace).reason == "the proxy was stopped"


def test_in_a_loop_of_ones_own_nothing_is_left(tmp_path):
    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))  # takes connections and never answers
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        async with Proxy(url, tmp_path / "t.jsonl") as proxy:
            port = int(proxy.url.split(":")[2].partition("/")[0])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ask())
            await writer.drain()
            while not on_disk(tmp_path / "t.jsonl", PING):
                await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        writer.close()
        listener.close()

    asyncio.run(main())
    assert told(read_trace(tmp_path / "t.jsonl"))[-2:] == ["close stream", "close"]


class Pipe(asyncio.Transport):
    """A transport that only keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.out = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.out += bytes(data)

    def close(self) -> None:
        self.closed = True

    abort = write_eof = close

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


WIRES = {
    "c": [ask(), ask("GET", body=b""), ask(body=b"", transfer_encoding="chunked") + chunk(PING) + b"0\r\n\r\n", ask("HEAD", body=b"")],
    "s": [OK, SSE + chunk(b"data: " + PONG + b"\n\n") + b"0\r\n\r\n", b"HTTP/1.1 100 X\r\n\r\n", b"HTTP/1.1 200 X\r\n\r\n{}", b"HTTP/1.1 101 X\r\n\r\n"],
}  # fmt: skip
OWN = re.compile(rb"HTTP/1\.1 \d{3} [^\r\n]*\r\nContent-Type: text/plain; charset=utf-8\r\n.*", re.DOTALL)
STEPS = st.tuples(
    st.sampled_from("cs"), st.integers(0, 4), st.integers(0, 200), st.integers(0, 400), st.binary(max_size=3)
)


@given(st.lists(STEPS, max_size=12), st.sampled_from(["client", "server", "stop"]))
def test_no_bytes_can_break_it(steps, ends):
    """Whole, cut and damaged requests and responses in any order: no error, and what goes on is what came."""

    async def main() -> None:
        capture = Capture()
        upstream = http_relay.Upstream("127.0.0.1", 1, "127.0.0.1:1")
        hub = http_relay.Hub(capture, upstream, Admission(), lambda _: None)
        client = http_relay.ClientSide(hub)
        server = client._server = http_relay.ServerSide(client)
        ours, theirs = Pipe(), Pipe()
        client.connection_made(ours)
        server.connection_made(theirs)
        came = b""
        for side, which, start, end, extra in steps:
            data = WIRES[side][which % len(WIRES[side])][start if start < 30 else 0 : end] + extra
            if side == "c":
                client.data_received(data)
            elif not theirs.closed:
                came += data
                server.data_received(data)
            await asyncio.sleep(0)
        relayed = OWN.sub(b"", ours.out)
        assert came.startswith(relayed)
        assert client.over or relayed == came
        {"client": client.eof_received, "server": server.eof_received, "stop": lambda: None}[ends]()
        client.end(None, "over", at_once=True)
        client.connection_lost(None)
        server.connection_lost(ConnectionResetError())
        assert ours.closed
        assert theirs.closed
        assert not hub.open
        assert not hub.clients
        kinds = [event.kind for event in capture.events if event.kind == "open" or event.http is UNSET]
        assert kinds.count("open") == kinds.count("close") == 1

    asyncio.run(main())
