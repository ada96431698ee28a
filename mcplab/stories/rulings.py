"""Rules told with their examples: what one asks, where that stands, a kept and a broken exchange, judged now."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd
from msgspec import UNSET

from mcplab import jsontext, spec
from mcplab.comparison import diff
from mcplab.gating import Gate, gate
from mcplab.model import Event, Sentinel, SpecError
from mcplab.rulebook import check, explain
from mcplab.rulebook.catalogue import Rule, catalogue, find
from mcplab.rulebook.examples import of, record
from mcplab.told import Name, Told, safe, series
from mcplab.traces import Trace

_SIGNS: Final = {"kept": "✓ kept", "broken": "✗ broken", "unknown": "? unknown", "unexercised": "– unexercised"}
_WHO: Final = {"c2s": "client", "s2c": "server"}
_USUAL: Final = (("accept", "application/json, text/event-stream"), ("content-type", "application/json"))
"""Headers that every example has alike; they are not shown."""


class Ruling(Told):
    """A rule as a lesson shows it: title, level, links, then its examples."""

    def __init__(self, rule: Rule, revision: str, *blocks: Any) -> None:
        super().__init__(*blocks)
        self.rule, self.revision = rule, revision

    @property
    def links(self) -> dict[str, str]:
        """Revision -> address of the section, each section once (under its newest revision)."""
        seen = {section: revision for revision, section in self.rule.section.items()}
        seen[self.rule.section[self.revision]] = self.revision
        return {revision: spec.spec_url(revision, section) for section, revision in seen.items()}

    def __repr__(self) -> str:
        links = "; ".join(self.links.values())
        return f"{self.rule.title} [{self.rule.id}]\n{_levels(self.rule)} {links}\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        links = ", ".join(
            f'<a href="{html.escape(url)}">{html.escape(revision)} {html.escape(self.rule.section[revision])}</a>'
            for revision, url in self.links.items()
        )
        head = f"<p><b>{html.escape(safe(self.rule.title))}</b> <code>{html.escape(self.rule.id)}</code><br>"
        return f'<div class="mcplab">{head}{html.escape(_levels(self.rule))} {links}</p></div>{super()._repr_html_()}'


def _levels(rule: Rule) -> str:
    """Whom it binds and how strongly, by revision: ``Binds the server: SHOULD NOT from 2024-11-05, MUST NOT ...``."""
    runs: list[list[str]] = []
    for revision, word in rule.level.items():
        if runs and runs[-1][0] == word:
            runs[-1][2] = revision
        else:
            runs.append([word, revision, revision])
    words = [f"{word} in {_span(first, last)}" for word, first, last in runs]
    whom = "either party" if rule.party == "either" else f"the {rule.party}"
    sure = dict.fromkeys(rule.confidence.values())
    return f"Binds {whom}: {', '.join(words)}. How surely a capture shows it: {' or '.join(sure)}."


def rule(name: str, revision: str | None = None) -> Ruling:
    """One rule of the catalogue, with its kept and its broken example judged now.

    Args:
        name: the rule's id.
        revision: which revision's examples; default: the rule's newest one.

    Raises:
        SpecError: no such rule, or the rule does not stand in that revision.
    """
    known = find(name)
    at = known.revisions[-1] if revision is None else revision
    if at not in known.revisions:
        raise SpecError(f"{known.id} does not stand in {at}: it does in {', '.join(known.revisions)}")
    blocks: list[Any] = []
    for which in ("kept", "broken"):
        made = of(known, which, at)
        if made is not None:
            blocks += _example(Trace(made), known, which, at)
    return Ruling(known, at, *(blocks or ["It is only hinted at, so it has no example."]))


def _example(trace: Trace, rule: Rule, which: str, revision: str) -> list[Any]:
    found = check(trace, revision=revision if rule.given and which == "broken" else None)
    mine = found[found["rule"] == rule.id]
    verdicts = [_SIGNS[word] for word in dict.fromkeys(mine["verdict"])]
    also = [str(name) for name in dict.fromkeys(found.loc[found["verdict"] == "broken", "rule"]) if name != rule.id]
    said: tuple[str, ...] = (f"The {which} example, {revision}. Verdict: {', '.join(verdicts)}",)
    said += ("; it breaks ", *series(also), " as well.") if also else (".",)
    return [said, exchange(trace, mine)]


# Exchanges -----------------------------------------------------------------------------------------


def exchange(trace: Trace, found: pd.DataFrame | None = None, *, folded: bool = True) -> pd.DataFrame:
    """What went over the wire, a row an event, with the breaches at their messages.

    ``folded``: a handshake, or a discovery, that breaks nothing is one row.

    Columns: #, who, http (where there is any), message, verdict (where a finding is broken).
    """
    broken = {} if found is None else _at(found)
    events = list(trace)
    rows: list[tuple[str, str, str, str, str]] = []
    short = (folded and (_handshake(events, set(broken)) or _discovery(events, set(broken)))) or []
    for at, event in enumerate(events):
        if at in short:
            if at == short[-1]:
                rows.append((f"{events[short[0]].seq}..{event.seq}", "both", "", _shaken(events, short), ""))
            continue
        rows.append((str(event.seq), _who(event), _carried(event), _said(event), broken.get(event.seq, "")))
    cells = [map(jsontext.printable, row) for row in rows]
    frame = pd.DataFrame(cells, columns=["#", "who", "http", "message", "verdict"])
    drop = [name for name in ("http", "verdict") if not frame[name].any()]
    return frame.drop(columns=drop)


def _at(found: pd.DataFrame) -> dict[int, str]:
    """Seq -> its breaches in words."""
    words: dict[int, list[str]] = {}
    rows = found[found["verdict"] == "broken"]
    for rule_id, seq, anchor, detail in zip(rows["rule"], rows["seq"], rows["anchor"], rows["detail"], strict=True):
        shows = "shows what never came: " if anchor == "absence" else ""
        words.setdefault(int(seq), []).append(f"✗ {rule_id}: {shows}{detail}")
    return {seq: "; ".join(dict.fromkeys(texts)) for seq, texts in words.items()}


def _who(event: Event) -> str:
    return _WHO.get(event.dir, "") if isinstance(event.dir, str) else ""


def _said(event: Event) -> str:
    if event.msg is not UNSET:
        return event.text
    raw = event.raw if isinstance(event.raw, str) else ""
    return f"({event.kind}) {raw}".rstrip()


def _carried(event: Event) -> str:
    """The HTTP facts that matter here: method or status, and headers but the usual ones."""
    if event.http is UNSET:
        return ""
    parts = [str(part) for part in (event.http.method, event.http.status) if part is not UNSET]
    headers = event.http.headers if isinstance(event.http.headers, dict) else {}
    return "; ".join(parts + [f"{name}: {value}" for name, value in headers.items() if (name, value) not in _USUAL])


def _handshake(events: list[Event], broken: set[int]) -> list[int]:
    """Positions of a whole handshake at the beginning, with its ``open`` and 202; none where it breaks a rule."""
    taken: list[int] = []
    wanted = ["initialize", "result", "notifications/initialized"]
    for at, event in enumerate(events):
        if event.kind == "open" or (event.kind == "http" and not wanted):
            taken.append(at)
            continue
        if not wanted:
            break
        value = jsontext.loads(event.text) if event.msg is not UNSET else None
        if event.seq in broken or not isinstance(value, dict):
            return []
        if wanted[0] not in (value.get("method"), "result" if "result" in value else None):
            return []
        wanted.pop(0)
        taken.append(at)
    return [] if wanted else taken


def _discovery(events: list[Event], broken: set[int]) -> list[int]:
    """Positions of ``server/discover`` and its result at the beginning, where more follows; none where they matter."""
    taken = [0] if events and events[0].kind == "open" else []
    first = events[len(taken) : len(taken) + 2]
    if any(event.seq in broken or event.msg is UNSET for event in first):
        return []
    values = [jsontext.loads(event.text) for event in first]
    if len(events) <= len(taken) + 3 or not all(isinstance(value, dict) for value in values):
        return []
    if values[0].get("method") != "server/discover" or not isinstance(values[1].get("result"), dict):
        return []
    return [*taken, len(taken), len(taken) + 1]


def _shaken(events: list[Event], short: list[int]) -> str:
    """The declarations and the version that these events settle."""
    asked, answered = [jsontext.loads(events[at].text) for at in short if events[at].msg is not UNSET][:2]
    result = answered["result"]
    server = jsontext.dumps(result.get("capabilities", "nothing"))
    if asked["method"] == "server/discover":
        return f"server/discover and its result: {jsontext.dumps(result.get('supportedVersions'))}; server {server}"
    client = jsontext.dumps(asked.get("params", {}).get("capabilities", "nothing"))
    return f"initialize, its result, initialized: {result.get('protocolVersion')}; client {client}, server {server}"


# Exchanges of one's own ----------------------------------------------------------------------------


def hello(client: Any, server: Any, revision: str = "2025-11-25") -> list[tuple[str, Any]]:
    """The three messages of a legacy handshake with these two declarations, as ``make_trace`` takes them."""
    params = {"protocolVersion": revision, "capabilities": client, "clientInfo": {"name": "you", "version": "1"}}
    result = {"protocolVersion": revision, "capabilities": server, "serverInfo": {"name": "other", "version": "1"}}
    return [
        ("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        ("server", {"jsonrpc": "2.0", "id": 0, "result": result}),
        ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def asks(id: Any, method: str, declares: Any, **params: Any) -> tuple[str, Any]:
    """A modern request: its declaration travels in it."""
    meta = {spec.META_VERSION: spec.REVISIONS[-1], spec.META_CAPABILITIES: declares,
            spec.META_CLIENT_INFO: {"name": "you", "version": "1"}}  # fmt: skip
    return "client", {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def play(script: str, revision: str = "2025-11-25") -> Trace:
    """A capture from a script, as the rules' examples are written (docs/rules.md): also HTTP and headers, open, close.

    Raises:
        SpecError: a line cannot be read.
    """
    return Trace(record(script, revision))


def judged(trace: Trace, *rules: str) -> Told:
    """A capture beside what ``check`` says of it.

    Args:
        rules: ids or topics whose verdicts are told, also where nothing is broken; default: all, and told are breaches.
    """
    found = check(trace, rules=list(rules) or None)
    called = found[found["verdict"] != "unexercised"] if not rules else found[found["verdict"] != ""]
    words = called["verdict"].value_counts()
    counted = ", ".join(f"{words[word]} {word}" for word in _SIGNS if word in words and word != "unexercised")
    line = f"Verdicts: {counted or 'nothing called on these rules'}."
    shown = called if rules else called[called["verdict"] == "broken"]
    shown = shown[shown["verdict"] != "unexercised"]
    table = shown[["rule", "level", "verdict", "detail"]].assign(verdict=shown["verdict"].map(_SIGNS))
    if not table["detail"].any():
        table = table.drop(columns="detail")
    return Told(exchange(trace, found), line, table if len(table) else None)


# Gates ---------------------------------------------------------------------------------------------


def gates(
    revision: str, declared: Iterable[Any], messages: Mapping[str, Any], *, of: str, sender: str | None = None
) -> pd.DataFrame:
    """May these messages be sent, under each of these declarations? One row a declaration, one column a message.

    Args:
        declared: JSON values, ``ABSENT`` or ``UNKNOWN``.
        of: the party that declares.
        sender: who sends; default: the other one.
    """
    who = sender or ("server" if of == "client" else "client")
    rows: list[list[str]] = []
    for value in declared:
        door: Gate = gate(revision, **{of: value})
        cells = [_opening(door.allows(message, who).allowed) for message in messages.values()]
        rows.append([_shown(value), *cells])
    return pd.DataFrame(rows, columns=[f"{of} declares", *messages])


def _opening(allowed: bool | None) -> str:
    return {True: "✓ open", False: "✗ closed", None: "? not known"}[allowed]


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, Sentinel) else jsontext.dumps(value)


def layers(ways: Mapping[str, Any], messages: Mapping[str, Any], *, revision: str, of: str = "client") -> pd.DataFrame:
    """What is left of a declaration after each way through some code, and what that changes at the gate.

    Args:
        ways: name -> the declaration as it came out; the first one is what the peer sent.

    Returns:
        Columns: way, what came out, paths changed (against the first), and one a message.
    """
    first = next(iter(ways.values()))
    rows: list[list[str]] = []
    for name, value in ways.items():
        door = gate(revision, **{of: value})
        sender = "server" if of == "client" else "client"
        changed = diff(first, value)
        paths = [f"{path}: {row.a} → {row.b}" for path, row in zip(changed.index, changed.itertuples(), strict=True)]
        cells = [_opening(door.allows(message, sender).allowed) for message in messages.values()]
        rows.append([name, _shown(value), "; ".join(paths) or "none", *cells])
    return pd.DataFrame(rows, columns=["way", "what came out", "paths changed", *messages])


# The book ------------------------------------------------------------------------------------------


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def topics() -> pd.DataFrame:
    """The catalogue by topic. Columns: topic, rules, MUST and SHOULD (with NOT), hints only, revisions."""
    rows: dict[str, list[Any]] = {}
    for one in catalogue().values():
        row = rows.setdefault(one.id.partition(".")[0], [0, 0, 0, 0, set()])
        newest = one.revisions[-1]
        low = one.confidence[newest] == "low"
        row[0] += 1
        row[1] += not low and one.level[newest].startswith("MUST")
        row[2] += not low and one.level[newest].startswith("SHOULD")
        row[3] += low
        row[4] |= {*one.revisions}
    table = [[name, *row[:4], _span(min(row[4]), max(row[4]))] for name, row in sorted(rows.items())]
    return pd.DataFrame(table, columns=["topic", "rules", "MUST", "SHOULD", "hints only", "revisions"])


def explained(trace: Trace, seq: int) -> Told:
    """``explain`` as a list, with the message itself."""
    lines: list[str | tuple[str, ...]] = [(line,) for line in explain(trace, seq).lines]
    return Told((f"Event {seq} of ", Name(trace.name), ":"), exchange_of(trace, seq), lines)


def exchange_of(trace: Trace, seq: int, found: pd.DataFrame | None = None) -> pd.DataFrame:
    """One event as a row, with what those findings break there."""
    rows = exchange(trace, None if found is None else found[found["trace"] == trace.name], folded=False)
    return rows[rows["#"] == str(seq)]
