"""Why was this rejected, or never offered? One message, what was in force, its gate and its rules, in five lines."""

from __future__ import annotations

import difflib
import html
from dataclasses import dataclass
from typing import Any

from mcplab import jsontext, spec
from mcplab.frames.links import Link
from mcplab.frames.wire import Wire
from mcplab.gating import Gate, Verdict
from mcplab.model import ABSENT, Sentinel, SpecError, TraceError
from mcplab.rulebook.board import Board
from mcplab.rulebook.engine import Run
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Broken, Outcome
from mcplab.rulebook.plan import Entry, Plan
from mcplab.told import framed, safe


@dataclass(frozen=True, slots=True)
class Explanation:
    """Five lines about one message, or three about a method. ``str(...)`` is the text; a notebook shows it as a list.

    ``gate``: may the message be sent, by the declarations in force; ``rules``: what each rule that looked at it said.
    """

    trace: str
    seq: int | None
    lines: tuple[str, ...]
    gate: Verdict | None
    rules: tuple[tuple[str, str, str], ...]  # (rule, verdict, detail)

    def __str__(self) -> str:
        return "\n".join(map(safe, self.lines))

    def _repr_html_(self) -> str:
        return framed("<ol>" + "".join(f"<li>{html.escape(safe(line))}</li>" for line in self.lines) + "</ol>")


class _Noting(Run):
    """A pass that notes what is said at one event."""

    def __init__(self, wire: Wire, links: dict[str, Link], plan: Plan, seq: int, answer: int | None) -> None:
        self.wanted = seq
        self.answer_seq = answer
        self.said: list[tuple[str, Outcome]] = []
        self.facts: list[Fact] = []
        self.answers: list[Fact] = []
        self.gates: list[tuple[Verdict, str]] = []
        super().__init__(wire, links, plan, grouped=False)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        if fact.row >= 0 and fact.seq == self.wanted:
            self.facts.append(fact)
            if fact.revision is not None and fact.sender is not None and isinstance(fact.body, dict):
                gate = Gate(fact.revision, fact.client_capabilities, fact.server_capabilities)
                said = gate.allows(fact.body, fact.sender, answers=method)
                self.gates.append((said, _declaration(fact, said)))
        if fact.row >= 0 and fact.seq == self.answer_seq:
            self.answers.append(fact)
        super()._judge(fact, kind, sender, method)

    def _each(self, fact: Fact, board: Board, entries: tuple[Entry, ...]) -> None:
        if fact.seq != self.wanted:
            super()._each(fact, board, entries)
            return
        for rule, check in entries:
            said = check(fact)
            if said is not None:
                self.said.append((self.plan.rules[rule].id, said))
                self._note(board, rule, said, fact)


class _Ends(Run):
    """A pass that notes where a method was sent, and each connection's last message, by which all is declared."""

    def __init__(self, wire: Wire, links: dict[str, Link], plan: Plan, method: str) -> None:
        self.wanted = method
        self.sent: dict[str, list[int]] = {}
        self.last: dict[str, Fact] = {}
        super().__init__(wire, links, plan, grouped=False)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        if fact.row >= 0:
            name = fact.session.name
            inputs = fact.result.get("inputRequests")
            parts = [fact.body, *inputs.values()] if isinstance(inputs, dict) else [fact.body]
            if any(isinstance(part, dict) and part.get("method") == self.wanted for part in parts):
                self.sent.setdefault(name, []).append(fact.seq)
            if fact.revision is not None and (fact.kind != "notification" or name not in self.last):
                self.last[name] = fact
        super()._judge(fact, kind, sender, method)


def _declaration(m: Fact, said: Verdict) -> str:
    """The declaration that decides, as it was sent."""
    party = said.reason.partition(":")[0] if said.path else ""
    if party not in ("client", "server"):
        shown = [f"{who} {_short(_of(m, who))}" for who in ("client", "server")]
        return "; ".join(shown)
    top = (said.path or "").partition(".")[0]
    declared = _of(m, party)
    part = declared.get(top, ABSENT) if isinstance(declared, dict) else declared
    like = difflib.get_close_matches(top, declared, n=1, cutoff=0.8) if part is ABSENT and declared else []
    return f"{party}: {top} is {_short(part)}" + "".join(f"; it has {jsontext.dumps(key)}" for key in like)


def _of(m: Fact, party: str) -> Any:
    return m.client_capabilities if party == "client" else m.server_capabilities


def _short(value: Any) -> str:
    if isinstance(value, Sentinel):
        return "absent" if value is ABSENT else "not seen"
    text = jsontext.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def explain(wire: Wire, links: dict[str, Link], name: str, seq: int, plan: Plan) -> Explanation:
    """The explanation of the message with that seq."""
    rows = [n for n, row in enumerate(wire.rows) if wire.record.events[row.event].seq == seq]
    if not rows:
        raise TraceError(f"{name}: no message has seq {seq}; its table messages has those that there are")
    row = rows[0]
    paired = wire.answer.get(row) if wire.kind[row] == "request" else wire.reply_to[row]
    answer = None if paired is None else wire.record.events[wire.rows[paired].event].seq
    run = _Noting(wire, links, plan, seq, answer)
    fact = run.facts[0]
    gated, declared = run.gates[0] if run.gates else (None, "the revision in force is not known")
    rules = tuple(sorted((rule, *_verdict(one)) for rule, said in run.said for one in _each_of(said)))
    judged = f"{fact.revision} ({fact.era})" if fact.revision else "a revision that the capture does not tell"
    what = f"#{seq}: {fact.sender or 'unknown party'}, {fact.kind} {fact.method or ''} {fact.id or ''}".rstrip()
    lines = (
        f"{what}; judged by {judged}",
        f"declared: {declared}",
        f"gate: {_gate_line(gated)}",
        f"{'answer' if fact.kind == 'request' else 'paired with'}: {_other(run.answers, answer)}",
        f"rules: {_rules_line(rules)}",
    )
    return Explanation(name, seq, lines, gated, rules)


def explain_method(wire: Wire, links: dict[str, Link], name: str, method: str, plan: Plan) -> Explanation:
    """Was this method sent on each connection, and did the declarations there allow it?"""
    if method not in spec.method_names():
        like = difflib.get_close_matches(method, spec.method_names(), n=3)
        hint = f"did you mean {', '.join(like)}?" if like else "one looks like resources/list"
        raise SpecError(f"{method!r}: no seq, and no revision has such a method; {hint}")
    run = _Ends(wire, links, plan, method)
    told: dict[tuple[str, ...], list[str]] = {}
    gated = None
    for conn, fact in run.last.items():
        sender, message = _as_sent(str(fact.revision), method)
        gate = Gate(str(fact.revision), fact.client_capabilities, fact.server_capabilities)
        gated = gate.allows(message, sender, answers="tools/call")
        seqs = run.sent.get(conn, [])
        count = f"sent {len(seqs)} times: {', '.join(f'#{seq}' for seq in seqs[:5])}" if seqs else "never sent"
        lines = (
            f"{method}: {count}{', ...' * (len(seqs) > 5)}; judged by {fact.revision} ({fact.era})",
            f"declared: {_declaration(fact, gated)}",
            f"gate: {_gate_line(gated)}{_why_not(sender) * (gated.allowed is True and not seqs)}",
        )
        told.setdefault(lines, []).append(conn)
    if not told:
        raise TraceError(f"{name}: it does not tell which revision is spoken; a capture needs its handshake for that")
    named = [(f"{', '.join(conns)}: " if len(told) > 1 else "") for conns in told.values()]
    shown = [line for head, (first, *rest) in zip(named, told, strict=True) for line in (head + first, *rest)]
    return Explanation(name, None, tuple(shown), gated, ())


def _why_not(sender: str) -> str:
    return f"; no declaration kept the {sender} from it: it chose not to, or the capture ends before"


def _as_sent(revision: str, method: str) -> tuple[str, dict[str, Any]]:
    """Who may send the method in that revision, and the barest message of it."""
    message = {"jsonrpc": "2.0", "method": method} | ({} if method.startswith("notifications/") else {"id": 0})
    if spec.method(revision, method, "c2s") is not None:
        return "client", message
    entry = spec.method(revision, method, "s2c")
    if entry is not None and entry.kind == "input-request":
        return "server", {"jsonrpc": "2.0", "id": 0, "result": {"inputRequests": {"0": {"method": method}}}}
    return "client" if entry is None and "c2s" in _directions(method) else "server", message


def _directions(method: str) -> set[str]:
    return {way for way in ("c2s", "s2c") if spec.eras_of(method, way)}


def _each_of(said: Outcome) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _verdict(said: Any) -> tuple[str, str]:
    return ("broken", said.detail) if isinstance(said, Broken) else (str(said), "")


def _gate_line(said: Verdict | None) -> str:
    if said is None:
        return "cannot be told"
    word = {True: "open", False: "closed", None: "cannot be told"}[said.allowed]
    rule = f" [{said.rule}{', ' + said.level if said.level else ''}]" if said.rule and said.path else ""
    return f"{word}: {said.reason}{rule}"


def _other(facts: list[Fact], seq: int | None) -> str:
    if seq is None or not facts:
        return "none in this capture"
    other = facts[0]
    if other.kind == "error":
        return f"#{seq}, error {other.code}: {other.error.get('message', '')}"
    return f"#{seq}, {other.kind} {other.method or ''}".rstrip()


def _rules_line(rules: tuple[tuple[str, str, str], ...]) -> str:
    broken = [f"{rule} broken ({detail})" for rule, verdict, detail in rules if verdict == "broken"]
    unknown = [rule for rule, verdict, _ in rules if verdict == "unknown"]
    kept = sum(verdict == KEPT for _, verdict, _ in rules)
    parts = (
        broken + [f"{kept} kept"] * (kept > 0) + [f"{len(unknown)} unknown ({', '.join(unknown[:3])})"] * bool(unknown)
    )
    return "; ".join(parts) or "none looked at it"
