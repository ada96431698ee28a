"""Why was this rejected, or never offered? One message, what was in force, its gate and its rules, in five lines."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from mcplab import jsontext
from mcplab.frames.links import Link
from mcplab.frames.wire import Wire
from mcplab.gating import Gate, Verdict
from mcplab.model import ABSENT, Sentinel, TraceError
from mcplab.rulebook.engine import Board, Run
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Broken, Outcome
from mcplab.rulebook.plan import Entry, Plan
from mcplab.told import framed, safe


@dataclass(frozen=True, slots=True)
class Explanation:
    """Five lines about one message. ``str(...)`` is the text; a notebook shows it as a list.

    ``gate``: may the message be sent, by the declarations in force; ``rules``: what each rule that looked at it said.
    """

    trace: str
    seq: int
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


def _declaration(m: Fact, said: Verdict) -> str:
    """The declaration that decides, as it was sent."""
    party = said.reason.partition(":")[0] if said.path else ""
    if party not in ("client", "server"):
        shown = [f"{who} {_short(_of(m, who))}" for who in ("client", "server")]
        return "; ".join(shown)
    top = (said.path or "").partition(".")[0]
    declared = _of(m, party)
    part = declared.get(top, ABSENT) if isinstance(declared, dict) else declared
    return f"{party}: {top} is {_short(part)}"


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
        raise TraceError(f"{name}: no message has seq {seq}; look into .messages for those that there are")
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
