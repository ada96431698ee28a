"""Content codings: any body, in any portions; what nobody here can decode is said to be."""

from __future__ import annotations

import gzip
import sys
import zlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcplab.live.coding import decoder


def bare(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


WAYS = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:]),
    "deflate": zlib.compress,
    "Deflate": bare,
    "identity": bytes,
    "deflate, GZIP": lambda data: gzip.compress(zlib.compress(data)),
}


def decoded(coding: str, portions: list[bytes]) -> bytes:
    found = decoder(coding)
    assert found is not None
    return b"".join(piece for portion in portions for piece in found.feed(portion))


@given(st.sampled_from(sorted(WAYS)), st.binary(max_size=200), st.integers(1, 50))
def test_any_body_in_any_portions(coding, data, size):
    wire = WAYS[coding](data)
    assert decoded(coding, [wire[at : at + size] for at in range(0, len(wire), size)]) == data


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_small_bodies_that_stand_for_big_ones(coding):
    data = b"a" * 5_000_001
    found = decoder(coding)
    assert found is not None
    pieces = list(found.feed(WAYS[coding](data)))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 1 << 20


def test_what_is_written_so_far_is_read_so_far():
    made = zlib.compressobj(wbits=31)
    found = decoder("gzip")
    assert found is not None
    for text in (b"data: 1\n\n", b"data: 2\n\n"):
        wire = made.compress(text) + made.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(found.feed(wire)) == text


def test_damage():
    with pytest.raises(ValueError, match="incorrect header"):
        decoded("gzip", [b"no gzip at all"])


def test_packages_that_may_be_there(monkeypatch):
    assert decoder("compress") is None
    assert decoder("gzip, unheard-of") is None

    class Decompressor:
        def process(self, data: bytes) -> bytes:
            if data == b"bad":
                raise RuntimeError("broken")
            return data.upper()

    module: Any = ModuleType("brotli")
    monkeypatch.setitem(sys.modules, "brotli", None)
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    assert decoder("br") is None
    module.Decompressor = Decompressor
    monkeypatch.setitem(sys.modules, "brotli", module)
    assert decoded("br", [b"a", b"b"]) == b"AB"
    with pytest.raises(ValueError, match="broken"):
        decoded("br", [b"bad"])
