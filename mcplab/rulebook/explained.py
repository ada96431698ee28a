"""Why was this rejected, or never offered? One message, what was in force, its gate and its rules, in five lines."""

from __future__ import annotations

import difflib
import html
from collections.abc import Mapping
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
from mcplab.rulebook.judging import legacy_revision
from mcplab.rulebook.outcome import KEPT, Broken, Outcome
from mcplab.rulebook.plan import Entry, Plan
from mcplab.told import framed, safe

_RECORD = "record from the start (mcplab tap or wrap, docs/recording.md)"
_SHOWN = 5  # seqs, and connections


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


class _Pass(Run):
    """A pass that keeps of each connection its handshake's latest message, and what stood beside each declaration.

    An initialize result whose request is not in the capture tells the version and the server's declaration, as it does
    to ``read``. The rules do not go by it: a cut must never make a breach.
    """

    def __init__(self, wire: Wire, links: dict[str, Link], plan: Plan) -> None:
        self.disputed = set(wire.disputed.values())
        super().__init__(wire, links, plan, grouped=False)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        super()._judge(fact, kind, sender, method)
        session, memory = fact.session, fact.session.memory
        if fact.row < 0 or fact.again or (method == "initialize" and (kind == "request") is (sender == "server")):
            return
        if method == "initialize" or fact.row in self.disputed:
            memory["handshake"] = fact
            memory["beside client" if kind == "request" else "beside server"] = fact.params or fact.result
        elif kind == "result" and method == "server/discover":
            session.instance.memory["beside server"] = fact.result
        elif self.wire.orphans.get(fact.row) == "initialize_result" and not session.phase:
            memory["orphan"] = fact
            session.server = fact.result.get("capabilities", ABSENT)


class _Noting(_Pass):
    """A pass that notes what is said at one event."""

    def __init__(self, wire: Wire, links: dict[str, Link], plan: Plan, seq: int, answer: int | None) -> None:
        self.wanted = seq
        self.answer_seq = answer
        self.said: list[tuple[str, Outcome]] = []
        self.facts: list[Fact] = []
        self.answers: list[Fact] = []
        self.revision: str | None = None
        self.gates: list[tuple[Verdict, str]] = []
        super().__init__(wire, links, plan)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        if fact.row >= 0 and fact.seq == self.wanted:
            self.facts.append(fact)
            self.revision = revision = _revision(fact)
            if revision is not None and fact.sender is not None and isinstance(fact.body, dict):
                gate = Gate(revision, fact.client_capabilities, fact.server_capabilities)
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


class _Ends(_Pass):
    """A pass that notes where a method was sent, and each connection's last message, by which all is declared."""

    def __init__(self, wire: Wire, links: dict[str, Link], plan: Plan, method: str) -> None:
        self.wanted = method
        self.sent: dict[str, list[int]] = {}
        self.errors: dict[str, list[Fact]] = {}
        self.last: dict[str, Fact] = {}
        super().__init__(wire, links, plan)

    def _judge(self, fact: Fact, kind: str, sender: str, method: str | None) -> None:
        if fact.row >= 0:
            name = fact.session.name
            inputs = fact.result.get("inputRequests")
            parts = [fact.body, *inputs.values()] if isinstance(inputs, dict) else [fact.body]
            if any(isinstance(part, dict) and part.get("method") == self.wanted for part in parts):
                self.sent.setdefault(name, []).append(fact.seq)
            if fact.kind == "error" and fact.method == self.wanted and not fact.again:
                self.errors.setdefault(name, []).append(fact)
            before = self.last.get(name)
            if before is None or (fact.revision and (fact.kind != "notification" or before.revision is None)):
                self.last[name] = fact
        super()._judge(fact, kind, sender, method)


def _declaration(m: Fact, said: Verdict) -> str:
    """The declaration that decides, as it was sent."""
    party = said.reason.partition(":")[0] if said.path else ""
    if party not in ("client", "server"):
        return "; ".join(f"{who} {_short(_of(m, who))}" for who in ("client", "server"))
    key, declared = (said.path or "").partition(".")[0], _of(m, party)
    part, near = declared, {}
    if isinstance(declared, Mapping):
        part, near = declared.get(key, ABSENT), {one: one for one in declared}
    else:
        key = "clientCapabilities" if m.era == "modern" and party == "client" else "capabilities"
        near = {one.rpartition("/")[2]: one for one in _beside(m, party)}
    like = difflib.get_close_matches(key, near, n=1, cutoff=0.8) if part is ABSENT else []
    return f"{party}: {key} is {_short(part)}" + "".join(f"; it has {jsontext.dumps(near[one])}" for one in like)


def _of(m: Fact, party: str) -> Any:
    if party == "client" and (m.kind, m.method) == ("request", "initialize"):  # it declares them itself
        return m.params.get("capabilities", ABSENT)
    if party == "server" and m.kind == "result" and m.method in ("initialize", "server/discover"):
        return m.result.get("capabilities", ABSENT)
    return m.client_capabilities if party == "client" else m.server_capabilities


def _beside(m: Fact, party: str) -> Mapping[str, Any]:
    """The members among which the declaration had to be."""
    asked = m if m.kind == "request" else m.request
    if m.era == "modern" and party == "client":
        return asked.meta if asked is not None else {}
    memory = m.session.instance.memory if m.era == "modern" else m.session.memory
    found: Mapping[str, Any] = memory.get(f"beside {party}", {})
    return found


def _revision(m: Fact) -> str | None:
    """What judges it; where that is not known, the revision of an initialize result that lost its request."""
    orphan = m.session.memory.get("orphan")
    if m.revision is not None or orphan is None or m.session.phase:
        return m.revision
    version = orphan.result.get("protocolVersion")
    return legacy_revision(version if isinstance(version, str) else None)


def _judged(m: Fact, revision: str | None) -> str:
    if m.revision is not None:
        return f"{m.revision} ({m.era})"
    if revision is None:
        begun = m.session.began or m.session.spoke_modern
        why = f": neither initialize nor a modern request of this connection is in it; {_RECORD}"
        return "a revision that the capture does not tell" + ("" if begun else why)
    seq = m.session.memory["orphan"].seq
    return f"{revision} (legacy), by the initialize result #{seq}, which lost its request: check judges nothing by it"


def _disagreed(m: Fact, link: Link) -> str:
    """Why a handshake came to nothing; empty where it did not."""
    last = m.session.memory.get("handshake")
    if m.era != "legacy" or last is None or any(era == "legacy" for era, _ in link.agreed):
        return ""
    if last.kind == "request":
        return "initialize has no answer in this capture, so whether anything was agreed on is not known"
    what = f"#{last.seq} answers initialize under another id"
    if last.kind == "error":
        what = f"initialize was refused ({_other([last], last.seq)})"
    return f"{what}: nothing was agreed on"


def _short(value: Any) -> str:
    if isinstance(value, Sentinel):
        return "absent" if value is ABSENT else "not seen"
    text = jsontext.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def explain(wire: Wire, links: dict[str, Link], name: str, seq: int, plan: Plan) -> Explanation:
    """The explanation of the message with that seq."""
    rows = [n for n, row in enumerate(wire.rows) if wire.record.events[row.event].seq == seq]
    if not rows:
        seqs = [event.seq for event in (wire.record.events[row.event] for row in wire.rows)]
        there = f"its messages have {min(seqs)} to {max(seqs)}" if seqs else f"it holds no message; {_RECORD}"
        raise TraceError(f"{name}: no message has seq {seq}; {there}")
    row = rows[0]
    paired = wire.answer.get(row) if wire.kind[row] == "request" else wire.reply_to[row]
    answer = None if paired is None else wire.record.events[wire.rows[paired].event].seq
    run = _Noting(wire, links, plan, seq, answer)
    fact = run.facts[0]
    gated, declared = run.gates[0] if run.gates else (None, "the revision in force is not known")
    rules = tuple(sorted((rule, *_verdict(one)) for rule, said in run.said for one in _each_of(said)))
    what = f"#{seq}: {fact.sender or 'unknown party'}, " + " ".join(filter(None, (fact.kind, fact.method, fact.id)))
    lines = (
        f"{what}; judged by {_judged(fact, run.revision)}",
        f"declared: {declared}",
        f"gate: {_gate_line(gated, run.revision, fact.sender)}",
        f"{'answer' if fact.kind == 'request' else 'paired with'}: {_other(run.answers, answer)}",
        f"rules: {_rules_line(rules) if fact.revision else 'unknown: check cannot tell the revision'}",
    )
    return Explanation(name, seq, lines, gated, rules)


def explain_method(wire: Wire, links: dict[str, Link], name: str, method: str, plan: Plan) -> Explanation:
    """Was this method sent on each connection, and did the declarations there allow it?"""
    if method not in spec.method_names():
        like = difflib.get_close_matches(method, spec.method_names(), n=3)
        hint = f"did you mean {', '.join(like)}?" if like else "one looks like resources/list"
        raise SpecError(f"{method!r}: no seq, and no revision has such a method; {hint}")
    run = _Ends(wire, links, plan, method)
    if not run.last:
        raise TraceError(f"{name}: it holds no message; {_RECORD}")
    told: dict[tuple[str, ...], list[str]] = {}
    gated = None
    for conn, fact in run.last.items():
        revision = _revision(fact)
        seqs, why = run.sent.get(conn, []), _disagreed(fact, links[conn])
        offered = ", which was only offered" * bool(why)
        declared, gate = "not seen", "cannot be told"
        if revision is not None:
            sender, message = _as_sent(revision, method)
            gated = Gate(revision, fact.client_capabilities, fact.server_capabilities).allows(
                message, sender, answers="tools/call"
            )
            declared, gate = _declaration(fact, gated), _gate_line(gated, revision, sender)
            if not why and gated.allowed is True and not seqs:
                why = f"no declaration kept the {sender} from it: it chose not to, or the capture ends before"
        count = _count(seqs, run.errors.get(conn, []))
        lines = (
            f"{method}: {count}; judged by {_judged(fact, revision)}{offered}",
            f"declared: {declared}",
            f"gate: {gate}{'; ' * bool(why)}{why}",
        )
        told.setdefault(lines, []).append(conn)
    named = [f"{_several(conns)}: " if len(told) > 1 else "" for conns in told.values()]
    shown = [line for head, (first, *rest) in zip(named, told, strict=True) for line in (head + first, *rest)]
    return Explanation(name, None, tuple(shown), gated, ())


def _count(seqs: list[int], errors: list[Fact]) -> str:
    """How often a method was sent, and which of it was refused."""
    if not seqs:
        return "never sent"
    count = f"sent {'once' if len(seqs) == 1 else f'{len(seqs)} times'}: {_several([f'#{seq}' for seq in seqs])}"
    if not errors:
        return count
    much = "" if len(seqs) == 1 else f" {len(errors)} times, first"
    return f"{count}; refused{much} (answer {_other(errors, errors[0].seq)})"


def _several(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + ", ..." * (len(names) > _SHOWN)


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


def _gate_line(said: Verdict | None, revision: str | None, sender: str | None) -> str:
    if said is None:
        return "cannot be told"
    word = {True: "open", False: "closed", None: "cannot be told"}[said.allowed]
    rule = f" [{said.rule}{', ' + said.level if said.level else ''}]" if said.rule and said.path else ""
    line = f"{word}: {said.reason}{rule}"
    party = said.reason.partition(":")[0]
    if said.allowed is not False or said.path is None:
        return line
    known = spec.capability(str(revision), party, said.path)  # type: ignore[arg-type]
    adds: Any = (known is not None and known.type == "boolean-flag") or {}
    for key in reversed(spec.split(said.path)):
        adds = {key: adds}
    who = "it" if party == sender else f"the {sender}"
    return (
        f"{line}; the {party} did not declare {said.path}, so {who} {said.level.lower() or 'is not to'} send it"
        f" ({revision}); a {party} that has it declares {jsontext.dumps(adds)}"
    )


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
