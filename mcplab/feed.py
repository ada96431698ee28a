"""Captures as records for a machine: one an instance, with what it declared as it was sent (docs/observed.md)."""

from __future__ import annotations

import json
from typing import Any, Final

import pandas as pd

from mcplab import __version__, jsontext
from mcplab.citing import short_names
from mcplab.provenance import digest, input_digest
from mcplab.spec import META_CAPABILITIES, META_CLIENT_INFO, META_SERVER_INFO
from mcplab.tiers import each
from mcplab.traces import Trace
from mcplab.varying import configuration

FORMAT: Final = "mcplab-observed"
VERSION: Final = 1

_HELD: Final[dict[str, tuple[str, ...]]] = {
    "initialize": ("params",), "request_meta": ("params", "_meta"),
    "initialize_result": ("result",), "discover_result": ("result",),
}  # fmt: skip
_INFO: Final = {
    "initialize": ("clientInfo",), "request_meta": (META_CLIENT_INFO,),
    "initialize_result": ("serverInfo",), "discover_result": ("_meta", META_SERVER_INFO),
}  # fmt: skip


def observed(traces: Any) -> dict[str, Any]:
    """All instances of some captures, as docs/observed.md describes; JSON values only.

    What a party sent stands in ``text`` members as JSON text, character for character: numbers, duplicate keys and the
    order of members survive. A member that is null was not recorded; no declared value is ever null here.
    """
    short = short_names(trace.name for trace in each(traces))
    return {
        "format": FORMAT,
        "version": VERSION,
        "mcplab": __version__,
        "input_sha256": input_digest(traces),
        "instances": [record for trace in each(traces) for record in _records(trace, short[trace.name])],
    }


def observed_json(traces: Any) -> str:
    """The same as text; the same captures give the same text."""
    return json.dumps(observed(traces), indent=1) + "\n"


def _records(trace: Trace, name: str) -> list[dict[str, Any]]:
    said = trace.declarations
    roots = said[said["path"] == "$"]
    captured = trace.header.get("captured_at")
    common = {
        "trace": trace.name, "settings": configuration(trace), "sha256": digest(trace),
        "captured_at": captured if isinstance(captured, str) else None,
    }  # fmt: skip
    out = []
    for instance, links in trace.connections.groupby("instance", sort=False):
        stated = _declarations(trace, roots[roots["instance"] == instance], name)
        eras = {era for era in links["era"] if era != "unknown"}
        first = links["first"].min()
        out.append({
            "instance": str(instance), **common,
            "client": {
                "product": _one(links["client"]), "product_from": _one(links["client_from"]),
                "version": _one(links["client_version"]), "info": _texts(stated, "client"),
            },
            "server": {
                "name": _one(links["server"]), "version": _one(links["server_version"]),
                "info": _texts(stated, "server"),
            },
            "transport": _one(links["transport"]), "config": _one(links["config"]),
            "era": "both" if len(eras) > 1 or "both" in eras else next(iter(eras), "unknown"),
            "revisions": sorted(set(links["selected"].dropna())), "modes": sorted(set(links["mode"].dropna())),
            "first": None if pd.isna(first) else first.isoformat().replace("+00:00", "Z"),
            "declarations": [{key: value for key, value in one.items() if key != "info"} for one in stated],
        })  # fmt: skip
    return out


def _one(values: pd.Series) -> str | None:
    """The one value of all connections; several, which a header's single client never has, joined."""
    found = list(dict.fromkeys(values.dropna()))
    return ", ".join(map(str, found)) if found else None


def _texts(stated: list[dict[str, Any]], party: str) -> list[str]:
    """What this party called itself, as JSON text, each text once."""
    return list(dict.fromkeys(one["info"] for one in stated if one["party"] == party and one["info"] is not None))


def _declarations(trace: Trace, roots: pd.DataFrame, name: str) -> list[dict[str, Any]]:
    """One entry a different text at a place, with the messages that sent it."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in roots.to_dict("records"):
        seq, place = int(row["seq"]), row["place"]
        held = _held(trace.raw(seq), None if pd.isna(row["part"]) else int(row["part"]), place)
        key = META_CAPABILITIES if place == "request_meta" else "capabilities"
        text = None if held is None else jsontext.get(held, key)[0]
        info = None if held is None else jsontext.get(held, *_INFO[place])[0]
        revision = None if pd.isna(row["revision"]) else row["revision"]
        one = found.setdefault((place, row["conn"], revision, text, info), {
            "party": row["party"], "place": place, "conn": row["conn"], "revision": revision, "state": row["state"],
            **({} if text is None else {"text": text}), "info": info, "messages": [],
        })  # fmt: skip
        one["messages"].append(f"{name}#{seq}")
    return list(found.values())


def _held(text: str, part: int | None, place: str) -> str | None:
    """The JSON text of the object that holds the declaration."""
    message = text if part is None else jsontext.elements(text)[part]
    return jsontext.get(message, *_HELD[place])[0]
