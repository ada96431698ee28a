"""Cases with a source as a user would have it and the traffic that it came from, where a checkout has them beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcplab import formats
from mcplab.formats import halves, source
from mcplab.model import Event, Http, Record

CASES = Path(__file__).parents[2] / "shared" / "cases"
SOURCES = sorted(CASES.glob("*/source.*")) if CASES.is_dir() else []

pytestmark = pytest.mark.skipif(not SOURCES, reason="no cases beside this checkout")

NO_MESSAGES = {"source.cursor.log"}
PARTS = {"source.mcp-remote.log", "source.stdin.log", "source.stdout.log"}


def expected(file: Path) -> dict[str, Any]:
    text = (file.parent / "EXPECTED.md").read_text("utf-8")
    found = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def truth(file: Path) -> list[Event]:
    """The messages of the trace that the source came from."""
    record = formats.read(source.load(file.parent / "trace.jsonl"))
    return [event for event in record.events if event.kind == "message"]


def plain(event: Event) -> str:
    return json.dumps(json.loads(event.text), sort_keys=True)


def recovered(record: Record) -> list[Event]:
    return [event for event in record.events if event.kind == "message"]


def ids(file: Path) -> str:
    return f"{file.parent.name[:2]}-{file.name}"


@pytest.mark.parametrize("file", SOURCES, ids=ids)
def test_messages_and_directions(file: Path) -> None:
    record = formats.read(source.load(file))
    want, got = truth(file), recovered(record)
    if file.name in NO_MESSAGES:
        assert not got
        assert any("no protocol message" in note for note in record.notes)
        return
    if file.parent.name.startswith("37"):  # read in spite of the framing, which the trace does not do
        assert len(got) == 5
        assert any("framed" in note for note in record.notes)
        return
    if file.parent.name.startswith("48") and "cp1252" in file.name:
        assert len(got) == 5
        assert "café" in got[1].text
        assert any("Windows-1252" in note for note in record.notes)
        return
    found = [plain(event) for event in got]
    if file.name in PARTS:
        assert set(found) <= {plain(event) for event in want}
    elif file.parent.name.startswith("49"):  # of a double key the last counts: a message, where the trace has none
        assert [text for text in found if "two ids" not in text] == [plain(event) for event in want]
    else:
        assert sorted(found) == sorted(plain(event) for event in want)
        if "curl" not in file.name:
            assert found == [plain(event) for event in want]
    sides: dict[str, set[Any]] = {}
    for event in want:
        sides.setdefault(plain(event), set()).add(event.dir)
    for event, text in zip(got, found, strict=True):
        if event.dir in ("c2s", "s2c") and text in sides:
            assert event.dir in sides[text]
        elif text in sides:
            assert any("direction" in note for note in record.notes)


@pytest.mark.parametrize("file", [file for file in SOURCES if file.suffix == ".har" or "curl" in file.name], ids=ids)
def test_http_facts(file: Path) -> None:
    record = formats.read(source.load(file))
    original = formats.read(source.load(file.parent / "trace.jsonl"))

    def facts(events: Any) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for event in events:
            if isinstance(event.http, Http) and event.kind in ("message", "http", "sse"):
                headers = {k: v for k, v in (event.http.headers or {}).items() if k != "host"}
                one = (event.dir, event.kind, event.http.method, event.http.path, event.http.status, headers, event.sse)
                found.setdefault(str(event.http.exchange), []).append(one)
        return found

    assert facts(record.events) == facts(original.events)


@pytest.mark.parametrize("file", [file for file in SOURCES if file.name == "source.stdin.log"], ids=ids)
def test_two_halves(file: Path) -> None:
    record = halves.read(source.load(file), source.load(file.parent / "source.stdout.log"))
    want = truth(file)
    assert sorted((event.dir, plain(event)) for event in record.events) == sorted(
        (event.dir, plain(event)) for event in want
    )
    asked: set[str] = set()
    for event in record.events:
        body = json.loads(event.text)
        if "method" in body and "id" in body:
            asked.add(f"{event.dir}{body['id']!r}")
        elif "method" not in body:
            assert f"{'s2c' if event.dir == 'c2s' else 'c2s'}{body['id']!r}" in asked


@pytest.mark.parametrize("file", SOURCES, ids=ids)
def test_channels_are_told_or_said_to_be_unknown(file: Path) -> None:
    record = formats.read(source.load(file))
    transports = {"stdio" if word == "stdio" else "streamable-http" for word in expected(file)["channels"].values()}
    if "transport" in record.header:
        assert {record.header["transport"]} == transports
    else:
        assert any("transport" in note for note in record.notes)


def test_faulty_lines_are_named() -> None:
    file = CASES / "49-not-json-and-cut-off" / "trace.bad-lines.jsonl"
    if not file.exists():
        pytest.skip("that case is not here")
    record = formats.read(source.load(file))
    assert {each.line for each in record.unread} == set(range(3, 11))
