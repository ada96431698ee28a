"""A conversation as arrows between two life lines, and its negotiation as steps; also as Mermaid text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from mcplab import jsontext
from mcplab.capabilities import flatten
from mcplab.model import DrawError
from mcplab.spec import META_CAPABILITIES
from mcplab.told import safe

NEEDED: Final = ("seq", "sender", "kind", "method", "message")
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_PATHS: Final = 8
"""Capability paths named on one arrow; what more there is becomes a number."""


class Arrow(NamedTuple):
    """One message, or an HTTP request or response without one.

    ``sender``: client, server, or ``""`` where nobody knows. ``label``: what it is. ``matters``: version, capability
    paths, status. ``decides``: what is settled by it. ``after``: seconds since the first arrow, None without a clock.
    """

    seq: int
    after: float | None
    sender: str
    kind: str
    activity: str
    label: str
    matters: str
    decides: str
    conn: str


class Step(NamedTuple):
    """One step of a negotiation: what was asked, what came, what followed. ``good``: did it get a result?

    ``settled``: seq of the answer or of the HTTP response that came in its place, None without either.
    """

    seq: int
    asked: str
    came: str
    so: str
    good: bool
    settled: int | None


def arrows(messages: pd.DataFrame, events: pd.DataFrame | None = None, *, limit: int | None = None) -> list[Arrow]:
    """The arrows of a ladder, in the wire's order: the first ``limit``, which is quick however many follow.

    Args:
        messages: ``trace.messages`` or rows of it; needed are seq, sender, kind, method and message.
        events: ``trace.events``: adds HTTP requests that carry no message (GET, DELETE) and refusals.

    Raises:
        DrawError: a column is missing, or there is nothing to draw.
    """
    rows = list(_rows(messages, events, limit))
    if not rows:
        raise DrawError("nothing to draw: the frame has no messages")
    rows.sort(key=lambda row: (row["seq"], row.get("part") or 0))
    rows = rows[:limit]
    settled = steps(messages, events, limit=limit)  # more of them than arrows cannot be on the page
    at = {step.seq if step.settled is None else step.settled: step.so for step in settled}
    stamps = [row["ts"] for row in rows if row.get("ts") is not None and not pd.isna(row["ts"])]
    first = stamps[0] if stamps else None
    conns = {row.get("conn") for row in rows}
    out: list[Arrow] = []
    for row in rows:
        ts = row.get("ts")
        after = None if first is None or ts is None or pd.isna(ts) else (ts - first).total_seconds()
        decides = at.pop(row["seq"], "")
        label, matters = _words(row)
        conn = str(row["conn"]) if len(conns) > 1 and row.get("conn") is not None else ""
        sender = row["sender"] if row["sender"] in ("client", "server") else ""
        activity = str(row.get("activity") or _plain_activity(row))
        out.append(Arrow(int(row["seq"]), after, sender, row["kind"], activity, label, matters, decides, conn))
    return out


def how_many(messages: pd.DataFrame, events: pd.DataFrame | None = None) -> int:
    """How many arrows there are without a limit."""
    return len(messages) + (0 if events is None else len(_silent(events)))


def _silent(events: pd.DataFrame) -> pd.DataFrame:
    """What is no message and has an arrow all the same: GET and DELETE, refusals, text that is no JSON-RPC."""
    kind = events["kind"]
    refused = (events["status"].astype("Int64") >= 400).fillna(False)
    shown = refused | events["http_method"].isin(["GET", "DELETE"])
    return events[(kind == "unparsed") | ((kind == "http") & shown)]


def _rows(messages: pd.DataFrame, events: pd.DataFrame | None, limit: int | None) -> Iterator[dict[str, Any]]:
    missing = [name for name in NEEDED if name not in messages.columns]
    if missing:
        raise DrawError(f"this is no messages frame: it has no column {missing[0]!r}")
    yield from _records(messages, limit)
    if events is None:
        return
    for row in _records(_silent(events), limit):
        yield {**row, "method": None, "message": row["text"] or "", "part": None,
               "status": None if row["sender"] == "client" else row["status"]}  # fmt: skip


def _records(frame: pd.DataFrame, limit: int | None) -> list[dict[str, Any]]:
    if limit is not None:
        frame = frame.sort_values("seq", kind="stable").head(limit)
    return frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[return-value]


def _plain_activity(row: dict[str, Any]) -> str:
    return {"response": "response", "error": "error", "invalid": "error", "unparsed": "error"}.get(
        row["kind"], row["kind"] if row["kind"] in ("request", "notification") else "none"
    )


# Words -----------------------------------------------------------------------------------------------


def _words(row: dict[str, Any]) -> tuple[str, str]:
    """What an arrow is, and what matters about it."""
    kind, method, text = row["kind"], row["method"], row["message"] or ""
    status = row.get("status")
    refused = f"HTTP {status}" if status is not None and status >= 400 else ""
    if kind == "http":
        name = row.get("http_method") or "HTTP"
        return (name, "") if row["sender"] == "client" else (f"{name}: HTTP {status}", "")
    if kind in ("unparsed", "invalid"):
        return ("no JSON-RPC", refused)
    if kind == "error":
        code, message = _get(text, "error", "code"), _get(text, "error", "message")
        told = " ".join(part for part in ("error", code, _string(message)) if part)
        return told, ", ".join(part for part in (f"to {method}" if method else "", refused) if part)
    if kind == "response":
        if method in ("initialize", "server/discover"):
            return f"result of {method}", _declared(text, "result")
        more = "asks for input" if _string(_get(text, "result", "resultType")) == "input_required" else ""
        return f"result of {method}" if method else "a result to nothing known", more
    return method or "no method", _asked(method, text) if kind == "request" else _told(method, text)


def _asked(method: str | None, text: str) -> str:
    if method == "initialize":
        return _declared(text, "params")
    if method == "server/discover":
        version = _string(_get(text, "params", "_meta", META_VERSION))
        return "; ".join(part for part in (version, _paths(_get(text, "params", "_meta", META_CAPABILITIES))) if part)
    name = _string(_get(text, "params", "name")) or _string(_get(text, "params", "uri"))
    again = _get(text, "params", "inputResponses") is not None or _get(text, "params", "requestState") is not None
    return ", ".join(part for part in (name, "with the input asked for" if again else "") if part)


def _told(method: str | None, text: str) -> str:
    if method == "notifications/progress":
        done, total = _get(text, "params", "progress"), _get(text, "params", "total")
        return f"{done} of {total}" if done and total else done or ""
    return ""


def _declared(text: str, place: str) -> str:
    version = _string(_get(text, place, "protocolVersion"))
    supported = _get(text, place, "supportedVersions")
    if supported is not None:
        version = ", ".join(filter(None, map(_string, jsontext.elements(supported)))) or "supports nothing"
    return "; ".join(part for part in (version, _paths(_get(text, place, "capabilities"))) if part)


def _paths(text: str | None) -> str:
    """The capability paths that say something, parents left out: ``tools.listChanged, logging``."""
    if text is None:
        return "no capabilities"
    leaves = flatten(text)
    if len(leaves) == 1:
        return "{}" if leaves[0].state == "empty" else f"capabilities {leaves[0].state}"
    named = [
        leaf.path if leaf.state in ("empty", "true") else f"{leaf.path}: {leaf.state}"
        for leaf in leaves
        if leaf.state != "object"
    ]
    more = f" and {len(named) - _PATHS} more" if len(named) > _PATHS else ""
    return ", ".join(named[:_PATHS]) + more


def _get(text: str, *path: str) -> str | None:
    try:
        return jsontext.get(text, *path)[0]
    except ValueError:
        return None


def _string(text: str | None) -> str:
    """A JSON string's value; any other value as its text; nothing for nothing."""
    if text is None:
        return ""
    try:
        value = jsontext.loads(text)
    except (ValueError, RecursionError):
        return text
    return jsontext.printable(value) if isinstance(value, str) else text


# Negotiation -------------------------------------------------------------------------------------------


def steps(messages: pd.DataFrame, events: pd.DataFrame | None = None, *, limit: int | None = None) -> list[Step]:
    """The negotiation of these messages: each server/discover and initialize of the client, with its outcome.

    The first ``limit``; None: all.

    A fallback is read from what came after: an initialize that follows a discover without a result. ``events``
    (``trace.events``) adds refusals that carried no message.
    """
    following = _records(_negotiation(messages), None if limit is None else limit + 1)
    rows = following[:limit]
    out: list[Step] = []
    parts = zip(rows, _found(messages, rows), _refusals(rows, events), strict=True)
    for number, (row, answer, refusal) in enumerate(parts):
        later = following[number + 1] if number + 1 < len(following) else None
        version = row.get("version") or _string(_get(row["message"] or "", "params", "protocolVersion"))
        asked = f"{row['method']} ({version})" if version else str(row["method"])
        good = answer is not None and answer["kind"] == "response"
        came = refusal[1] if answer is None and refusal is not None else _came(row, answer)
        settled = int(answer["seq"]) if answer is not None else refusal[0] if refusal is not None else None
        so = _so(messages, row, answer, later, refused=refusal is not None)
        out.append(Step(int(row["seq"]), asked, came, so, good, settled))
    return out


def how_many_steps(messages: pd.DataFrame) -> int:
    """How many steps there are without a limit."""
    return len(_negotiation(messages))


def _negotiation(messages: pd.DataFrame) -> pd.DataFrame:
    return messages[
        (messages["kind"] == "request")
        & messages["method"].isin(["initialize", "server/discover"])
        & (messages["sender"] != "server")
    ]


def _found(messages: pd.DataFrame, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """The first answer of each request, or None."""
    if "reply_to" not in messages.columns or not rows:
        return [None] * len(rows)
    replies = messages[messages["reply_to"].isin([row["seq"] for row in rows])]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for reply in _records(replies, None):
        found.setdefault((reply.get("trace"), reply["reply_to"], reply.get("reply_part")), reply)  # type: ignore
    return [found.get((row.get("trace"), row["seq"], row.get("part"))) for row in rows]


def _refusals(rows: Sequence[dict[str, Any]], events: pd.DataFrame | None) -> list[tuple[int, str] | None]:
    """The HTTP response without a message that came to each request: (seq, ``HTTP 400``)."""
    if events is None or not rows:
        return [None] * len(rows)
    bare = events[events["kind"].isin(["http", "unparsed"]) & events["status"].notna() & (events["sender"] != "client")]
    found: dict[tuple[Any, ...], tuple[int, str]] = {}
    keys = zip(*(bare[name] for name in ("trace", "peer", "http_exchange", "seq", "status")), strict=True)
    for trace, peer, exchange, seq, status in keys:
        found.setdefault((trace, peer, exchange), (int(seq), f"HTTP {status}"))
    return [found.get((row.get("trace"), row.get("peer"), row.get("http_exchange"))) for row in rows]


def _came(row: dict[str, Any], answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "no answer"
    text = answer["message"] or ""
    status = answer.get("status")
    http = f" (HTTP {status})" if status is not None and status >= 400 else ""
    if answer["kind"] == "error":
        code, message = _get(text, "error", "code"), _string(_get(text, "error", "message"))
        return " ".join(part for part in ("error", code, message) if part) + http
    if row["method"] == "initialize":
        return f"a result: {_string(_get(text, 'result', 'protocolVersion')) or 'without a version'}{http}"
    supported = _get(text, "result", "supportedVersions")
    names = ", ".join(filter(None, map(_string, jsontext.elements(supported)))) if supported is not None else ""
    return f"a result: supports {names or 'nothing named'}{http}"


def _so(
    messages: pd.DataFrame,
    row: dict[str, Any],
    answer: dict[str, Any] | None,
    later: dict[str, Any] | None,
    *,
    refused: bool,
) -> str:
    good = answer is not None and answer["kind"] == "response"
    if row["method"] == "server/discover":
        if later is not None and later["method"] == "initialize":
            return "a probe: initialize all the same" if good else "fell back: initialize"
        if later is not None:
            return "discovered again"
        if not good:
            return "no agreement" if answer is not None or refused else "not known: no answer was captured"
        after = messages[
            (messages["seq"] > row["seq"]) & (messages["kind"] == "request") & (messages["sender"] != "server")
        ]
        spoken = list(after["version"].dropna().unique()) if "version" in after else []
        version = spoken[0] if spoken else row.get("version")
        return f"agreed on {version} (modern)" if version else "modern"
    if not good or answer is None:
        return "initialize again" if later is not None and later["method"] == "initialize" else "no agreement"
    version = _string(_get(answer["message"] or "", "result", "protocolVersion"))
    told = messages[(messages["seq"] > row["seq"]) & (messages["method"] == "notifications/initialized")]
    offered = row.get("version") or version
    word = f"agreed on {version}" if offered == version else f"offered {offered}, got {version}"
    return f"{word} (legacy)" + ("" if len(told) else "; no notifications/initialized")


# Mermaid -------------------------------------------------------------------------------------------------

_MERMAID: Final = re.compile("[;#<>%$]")  # ends of commands, entities, markup, comments and directives, formulas


def mermaid(messages: pd.DataFrame, events: pd.DataFrame | None = None, *, limit: int = 40) -> str:
    """The ladder as Mermaid text (sequenceDiagram): the first ``limit`` arrows, and a note of how many follow.

    Names from a trace are escaped as Mermaid wants it (``#59;``), so none can end its line or start a command.
    """
    found = arrows(messages, events, limit=limit)
    more = how_many(messages, events) - len(found)
    lines = ["sequenceDiagram", "    participant C as client", "    participant S as server"]
    for one in found:
        label = " - ".join(part for part in (one.label, one.matters) if part)
        label = _shown(f"[{one.conn}] {label}" if one.conn else label)
        tail = "x" if one.activity == "error" else ">>"
        dash = "--" if one.kind in ("response", "error", "http") and one.sender == "server" else "-"
        if one.sender:
            ends = ("C", "S") if one.sender == "client" else ("S", "C")
            lines.append(f"    {ends[0]}{dash}{tail}{ends[1]}: {label}")
        else:
            lines.append(f"    Note over C,S: {label} (sender not known)")
        if one.decides:
            lines.append(f"    Note over C,S: {_shown(one.decides)}")
    if more > 0:
        lines.append(f"    Note over C,S: and {more} more")
    return "\n".join(lines) + "\n"


def _shown(text: str, most: int = 160) -> str:
    text = text if len(text) <= most else text[: most - 1] + "…"
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", safe(text))
