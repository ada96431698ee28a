"""The table ``declarations``: what each message declared, one row a capability path."""

from __future__ import annotations

from typing import Any

import msgspec
import pandas as pd
from msgspec import UNSET, Struct, field

from mcplab import jsontext
from mcplab.capabilities import Leaf, flatten
from mcplab.envelope import Text
from mcplab.frames.links import Link, said
from mcplab.frames.table import build
from mcplab.frames.wire import Wire
from mcplab.model import COLUMNS, Opt
from mcplab.spec import META_CAPABILITIES


def declarations(wire: Wire, name: str, found: dict[str, Link]) -> pd.DataFrame:
    """One row for each capability path of each declaring message, ``$`` rows included (design, section 2)."""
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS["declarations"]}
    add(columns, wire, name, found)
    return build("declarations", columns)


def add(columns: dict[str, list[Any]], wire: Wire, name: str, found: dict[str, Link]) -> None:
    """Append the rows of one capture to columns that may hold those of others."""
    for number, place, party, answered, disputed in declaring(wire):
        row = wire.rows[number]
        event = wire.record.events[row.event]
        link = found[wire.conns[row.event]]
        text, duplicate = capabilities_text(row, place)
        leaves = _flattened(text)
        for key, value in (
            ("trace", name), ("instance", link.instance), ("conn", link.name), ("party", party),
            ("client", said(link.client, "name") or link.info_name),
            ("client_version", said(link.client, "version") or link.info_version), ("client_info", link.info_name),
            ("config", link.config), ("transport", link.transport), ("server", link.server),
            ("revision", wire.version[answered]), ("era", wire.era[answered]), ("place", place),
            ("seq", event.seq), ("part", row.part), ("tier", "observed"), ("evidence", f"{name}#{event.seq}"),
            ("disputed", disputed),
        ):  # fmt: skip
            columns[key] += [value] * len(leaves)
        columns["path"] += [leaf.path for leaf in leaves]
        columns["state"] += [leaf.state for leaf in leaves]
        columns["value"] += [leaf.value for leaf in leaves]
        columns["duplicate"] += [leaf.duplicate or (duplicate and leaf.path == "$") for leaf in leaves]


def declaring(wire: Wire) -> list[tuple[int, str, str, int, bool]]:
    """Messages that a declaration was due in: (row, place, party, row that gives revision and era, disputed)."""
    found: list[tuple[int, str, str, int, bool]] = []
    late = {answer: asked for asked, answer in wire.disputed.items()}
    for n, kind in enumerate(wire.kind):
        if kind == "request" and wire.sender[n] != "server":
            if wire.method[n] == "initialize":
                found.append((n, "initialize", "client", n, False))
            elif wire.era[n] == "modern":
                found.append((n, "request_meta", "client", n, False))
        elif kind == "response" and wire.sender[n] != "client":
            asked = wire.reply_to[n]
            if asked is not None and wire.method[asked] == "initialize":
                found.append((n, "initialize_result", "server", n, False))
            elif asked is not None and wire.method[asked] == "server/discover":
                found.append((n, "discover_result", "server", asked, False))
            elif n in late:
                found.append((n, "initialize_result", "server", n, True))
            elif n in wire.orphans:
                found.append((n, wire.orphans[n], "server", n, False))
    return found


class _Holder(Struct, gc=False):
    capabilities: Text = UNSET
    modern: Text = field(default=UNSET, name=META_CAPABILITIES)
    meta: _Holder | Opt = field(default=UNSET, name="_meta")


class _Message(Struct, gc=False):
    params: _Holder | Opt = UNSET
    result: _Holder | Opt = UNSET


_messages = msgspec.json.Decoder(_Message)
_WAYS = {
    "request_meta": ("params", "_meta", META_CAPABILITIES),
    "initialize": ("params", "capabilities"),
    "initialize_result": ("result", "capabilities"),
    "discover_result": ("result", "capabilities"),
}
_KEYS = {place: [f'"{key}"'.encode() for key in way] for place, way in _WAYS.items()}


def capabilities_text(row: Any, place: str) -> tuple[str | None, bool]:
    """The text of the declared object at its place (None: absent), and whether a key on the way was given twice."""
    raw = bytes(row.raw)
    # where each key on the way stands once, the quick decoder has found it, and none was given twice
    if all(raw.count(key) == 1 for key in _KEYS[place]) and b"\\u" not in raw:
        try:
            message = _messages.decode(raw)
            holder = message.result if place.endswith("_result") else message.params
            if holder is not UNSET and place == "request_meta":
                holder = holder.meta
            found = UNSET if holder is UNSET else holder.modern if place == "request_meta" else holder.capabilities
            if found is not UNSET:
                return bytes(found).decode("utf-8"), False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # something else stands on the way
    return jsontext.get(raw.decode("utf-8", "replace"), *_WAYS[place])


_cache: dict[str | None, list[Leaf]] = {}


def _flattened(text: str | None) -> list[Leaf]:
    """Modern clients repeat one declaration in every request: flatten each text once."""
    found = _cache.get(text)
    if found is None:
        if len(_cache) > 4096:
            _cache.clear()
        found = _cache[text] = flatten(text)
    return found
