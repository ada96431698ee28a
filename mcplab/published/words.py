"""Words of published tables, turned into statements where they are plain, and left as text where they are not."""

from __future__ import annotations

import re
from typing import Any, Final

from mcplab.model import SpecError
from mcplab.spec import ROOT, join, path_order, split

YES: Final = ("yes", "true", "supported", "full", "✓", "✔", "✅")
NO: Final = ("no", "false", "unsupported", "not supported", "none", "✕", "✗", "❌", "✘")
PER_SERVER: Final = "server_entry"
"""Settings of a server's own entry, as captures name them in ``config``: what "per server" means."""

_NOTHING: Final = ("nothing", "none", "{}", "no capabilities", "no capability")
_LIST: Final = re.compile(r",? and |, ?|,? & ")
_QUALIFIED: Final = re.compile(r"(.{1,400}?)(?: (by default|always|only|never|per server))?$")
_ALL: Final = re.compile(r"(?:all|both|each)(?: [a-z]+)* (?:configurable|configured|set|settable) per server$")


def answer(text: str | None) -> str:
    """``yes``, ``no`` or ``unknown``: blank, partial and any other word are unknown."""
    word = (text or "").strip().rstrip("\ufe0f").casefold()
    return "yes" if word in YES else "no" if word in NO else "unknown"


def capability_of(text: str) -> str | None:
    """The client's capability path that a text names, in its canonical form; None where it names none."""
    text = text.strip()
    word = text[:1].lower() + text[1:]
    for given in (text, word):
        try:
            keys = split(given)
        except SpecError:
            continue
        path = join(keys)
        known = path_order("client")
        if path in known or (keys and keys[0] in ("experimental", "extensions")):
            return path
    return None


def declared(text: str) -> list[dict[str, Any]]:
    """The statements of a cell that says what a client declares; the first is about ``$``, the object itself.

    A clause is a list of capabilities, with ``by default``, ``always``, ``only``, ``never`` or ``per server`` behind it
    or not; or ``nothing``; or ``less than it implements``; or ``all three configurable per server``. If each clause is
    one of these the cell says all (``only``). Of any other clause only the text is kept.
    """
    whole: dict[str, Any] = {"path": ROOT, "declares": "unknown", "text": text or None}
    rows: list[dict[str, Any]] = []
    clauses = [clause.strip().rstrip(".") for clause in text.split(";") if clause.strip()]
    understood = bool(clauses)
    for clause in clauses:
        plain = clause.casefold()
        if plain in _NOTHING and len(clauses) == 1:
            return [{**whole, "state": "empty", "declares": "no", "only": True}]
        if plain in ("less than it implements", "less than implemented"):
            whole["implements"], understood = "more", False
        elif _ALL.match(plain):
            for row in rows:
                row["settings"] = PER_SERVER
        elif (named := _clause(clause)) is not None:
            rows += named
        else:
            understood = False
    if understood:
        whole |= {"only": True, "declares": "yes" if any(row["declares"] == "yes" for row in rows) else "varies"}
    return [whole, *rows]


def _clause(text: str) -> list[dict[str, Any]] | None:
    match = _QUALIFIED.match(text)
    if match is None:
        return None
    paths = [capability_of(name) for name in _LIST.split(match[1].strip())]
    if None in paths or ROOT in paths:
        return None
    how = match[2]
    row: dict[str, Any] = {"declares": "varies" if how == "per server" else "no" if how == "never" else "yes"}
    if how in ("by default", "per server"):
        row["when"] = how
    if how == "per server":
        row["settings"] = PER_SERVER
    return [{"path": path, **row} for path in paths]
