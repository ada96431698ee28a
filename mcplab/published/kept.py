"""Claims files (TOML): what a note says, taken down by hand as facts with their places (data/README.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcplab.model import ClaimsError
from mcplab.published.note import cited, citing
from mcplab.published.words import PER_SERVER
from mcplab.spec import ROOT


def read_kept(text: str, file: str) -> dict[str, Any]:
    """The file's content.

    Raises:
        ClaimsError: it is no TOML, or has no [note].
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClaimsError(f"{file}: no TOML ({error})") from None
    if not isinstance(data.get("note"), dict):
        raise ClaimsError(f"{file}: no claims file: it has no [note]; data/README.md says what one holds")
    return data


def _rows(data: Mapping[str, Any], name: str, file: str) -> list[dict[str, Any]]:
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) and "product" in one for one in found):
        raise ClaimsError(f"{file}: [[{name}]] is a list of tables, each with a product")
    return found


def kept_rows(data: Mapping[str, Any], file: str) -> Iterator[dict[str, Any]]:
    """The rows of ``statements`` of a claims file: [[claims]], [[details]] and [[readings]].

    Raises:
        ClaimsError: a part does not have the form that data/README.md gives.
    """
    note = data["note"]
    sources = {str(one.get("id")): {k: _text(v) for k, v in one.items()} for one in data.get("sources", [])}
    address = str(note.get("canonical", note.get("id", file)))
    shared = {
        "party": "client", "tier": "read", "source": address, "date": _text(note.get("last_verified")),
        "revision": ", ".join(map(str, note.get("revisions", []))) or None,
    }  # fmt: skip
    names = {one["product"]: one.get("client") for one in _rows(data, "claims", file)}
    for part in ("claims", "details"):
        for number, one in enumerate(_rows(data, part, file), 1):
            used = [sources[ident] for ident in one.get("sources", []) if ident in sources]
            base = {
                **shared, "client": one["product"], "name": one.get("client", names.get(one["product"])),
                "tier": one.get("tier", "read"), "place": part, "client_version": one.get("version"),
                "evidence": "; ".join([f"{address} ({file}: {part} {number})", *map(cited, used)]), **citing(used),
            }  # fmt: skip
            yield from ({**base, **row} for row in (_claim(one) if part == "claims" else _detail(one)))
    for number, one in enumerate(_rows(data, "readings", file), 1):
        source = {k: _text(v) for k, v in one.items()}
        base = {
            "party": "client", "tier": one.get("tier", "read"), "client": one["product"], "name": one["product"],
            "client_version": one.get("version"), "source": one.get("url"), "place": "readings",
            "date": source.get("date"), "evidence": f"{cited(source)} ({file}: readings {number})", **citing([source]),
        }  # fmt: skip
        yield {**base, "path": ROOT, "declares": "unknown", "text": one.get("note")}
        for said in one.get("statements", []):
            yield {**base, **_said(said)}


def _text(value: Any) -> str | None:
    """Text of a scalar; dates too."""
    return None if value is None or isinstance(value, (list, dict)) else str(value)


def _claim(one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    paths, settable = one.get("paths"), list(one.get("per_server", []))
    whole: dict[str, Any] = {"path": ROOT, "declares": "unknown", "text": one.get("declares")}
    if one.get("only") and paths is not None:
        whole |= {"only": True, "declares": "yes" if paths else "no", "state": None if paths else "empty"}
    if "implements" in one:
        whole |= {"implements": "more", "text": one["implements"]}
    yield whole
    for path in paths or []:
        per_server = {"when": "by default", "settings": PER_SERVER} if path in settable else {}
        yield {"path": path, "declares": "yes", **per_server}
    for path in settable:
        if path not in (paths or []):
            yield {"path": path, "declares": "varies", "when": "per server", "settings": PER_SERVER}


def _detail(one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    row = {"path": one.get("path"), "declares": "varies", "when": one.get("when"), "state": one.get("state")}
    if "used" in one:
        row["implements"] = "yes" if one["used"] else "no"
    yield row


def _said(one: Mapping[str, Any]) -> dict[str, Any]:
    settings: Sequence[str] = one.get("settings", [])
    keys = ("path", "declares", "implements", "when", "state", "text", "lines", "file")
    return {**{key: one[key] for key in keys if key in one}, "settings": ", ".join(settings) or None}
