"""What traffic did with what was declared, and what it would have been without: ``exercised`` and ``what_if``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd

from mcplab import gating, spec
from mcplab.frames.links import Link
from mcplab.frames.wire import Wire
from mcplab.gating import DIRECTION, Gate, Need
from mcplab.jsontext import printable
from mcplab.model import Sentinel
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.visit import visit

EXERCISED: Final = {
    "trace": "str", "instance": "str", "party": "str", "path": "str", "status": "str", "declared": "boolean",
    "n": "int64", "refused": "int64", "why": "str", "seqs": "str", "worked": "int64", "outcome": "str",
}  # fmt: skip
WHAT_IF: Final = {
    "trace": "str", "instance": "str", "conn": "str", "seq": "int64", "part": "Int64", "sender": "str", "kind": "str",
    "method": "str", "path": "str", "rule": "str", "level": "str", "reason": "str",
}  # fmt: skip
_SHOWN: Final = 20
_MEMBER: Final = {
    "roots/list": "roots", "sampling/createMessage": "content", "elicitation/create": "action",
    "tasks/list": "tasks", "tasks/get": "taskId", "tasks/cancel": "taskId",
}  # fmt: skip
"""What a client's answer must hold to be one: a required member of each result."""


PING: Final = "ping"
"""What a row of ``exercised`` that is of no capability is called: the request that either party may always send."""


class _Use:
    """One path of one party, as an instance used it."""

    def __init__(self) -> None:
        self.declared: bool | None = None
        self.stated = False
        self.undeclared = 0
        self.unknown = 0
        self.seqs: list[int] = []
        self.n = 0
        self.refused = 0
        self.worked = 0
        self.answered = 0
        self.why: dict[str, None] = {}


def _applying(m: Fact) -> list[Need]:
    """What a message needs, entries of ``inputRequests`` too."""
    direction = DIRECTION.get(m.sender or "", "")
    revision = m.revision or ""
    found = [
        need
        for need in gating.needs(revision, direction, m.kind, m.method or "")
        if need.when is None or need.when.holds(m.body)
    ]
    if m.kind == "request" and m.method == PING and spec.method(revision, PING) is not None:
        found.append(Need("server" if m.sender == "client" else "client", PING, None, "", ""))
    asked = m.result.get("inputRequests") if m.era == "modern" else None
    for entry in asked.values() if isinstance(asked, Mapping) else ():
        found += _entry(m, entry)
    return found


def _entry(m: Fact, entry: Any) -> list[Need]:
    """What one entry of ``inputRequests`` needs."""
    name = entry.get("method") if isinstance(entry, Mapping) else None
    if not isinstance(name, str):
        return []
    found = gating.needs(m.revision or "", "s2c", "input-request", name)
    return [need for need in found if need.when is None or need.when.holds(entry)]


def _answered(one: _Use, path: str, method: str, given: Any) -> None:
    """Count an answer, and whether it is one: a task where one was asked for, else what the method's result holds."""
    one.answered += 1
    if isinstance(given, Mapping):
        task = isinstance(given.get("task"), Mapping)
        plain = method not in _MEMBER or _MEMBER[method] in given
        one.worked += task if path.startswith("tasks.requests.") else task or plain


def _declared(m: Fact, party: str) -> Any:
    return m.client_capabilities if party == "client" else m.server_capabilities


def _states(m: Fact) -> tuple[str, Any] | None:
    """(party, capabilities) where this message declares them."""
    if m.kind == "request" and m.sender != "server" and (m.method == "initialize" or m.era == "modern"):
        if m.method == "initialize":
            return "client", m.params.get("capabilities")
        return "client", m.meta.get(spec.META_CAPABILITIES)
    if m.kind == "result" and m.method in ("initialize", "server/discover"):
        return "server", m.result.get("capabilities")
    return None


def exercised(wire: Wire, links: dict[str, Link], name: str) -> pd.DataFrame:
    """One row a path that gates traffic and was declared, or that traffic needed; and one for pings, if there were any.

    ``worked``: uses that came to something: a request got its result (a task, where it asked for one), an input request
    its response, both with what makes it one (``roots``, ``content``, ``action``, ...), and a notification was sent,
    which nothing answers.
    ``outcome``: what that says of the declaration, as ``declared and works``, ``declared and fails``, ``undeclared and
    works``, ``undeclared and refused`` (as it should be), ``undeclared and ignored`` (answered, but not with what was
    asked for: without tasks a request for one is a plain request) or ``undeclared and unanswered`` (a modern client
    that gives its request up says nothing); missing where nothing was used, or the declaration was not seen.

    A ping needs no declaration, and 2026-07-28 has none. Its row is of the party that has to answer: path ``ping``,
    ``declared`` missing, status ``used, needs no declaration`` or ``refused``, outcome ``works``, ``refused``,
    ``ignored`` (the result is no object) or ``unanswered``.
    """
    uses: dict[tuple[str, str, str], _Use] = {}
    asked: dict[tuple[str, str], list[tuple[_Use, str, str]]] = {}  # instance, key of an input request -> what it used

    def use(m: Fact, party: str, path: str) -> _Use:
        return uses.setdefault((m.session.instance.name, party, path), _Use())

    def look(m: Fact) -> None:
        stated = _states(m)
        if stated is not None:
            party, declared = stated
            for path in spec.gates(m.revision or "", party):  # type: ignore[arg-type]
                if gating.standing(m.revision or "", party, path, declared).declared:
                    use(m, party, path).stated = True
        for need in _applying(m):
            one = use(m, need.party, need.path)
            one.n += 1
            if need.path != PING:
                stands = gating.standing(m.revision or "", need.party, need.path, _declared(m, need.party)).declared
                one.undeclared += stands is False
                one.unknown += stands is None
            one.worked += m.kind == "notification"
            if len(one.seqs) < _SHOWN:
                one.seqs.append(m.seq)
        rounds = m.result.get("inputRequests") if m.era == "modern" else None
        for key, entry in rounds.items() if isinstance(rounds, Mapping) else ():
            asked[m.session.instance.name, key] = [
                (use(m, need.party, need.path), need.path, entry["method"]) for need in _entry(m, entry)
            ]
        given = m.params.get("inputResponses") if m.kind == "request" and m.era == "modern" else None
        for key, response in given.items() if isinstance(given, Mapping) else ():
            for one, path, method in asked.pop((m.session.instance.name, key), ()):
                _answered(one, path, method, response)
        if m.kind == "result" and m.request is not None and not m.again and rounds is None:
            for need in _applying(m.request):
                # not `m.result`, which is {} for what is no object
                _answered(use(m, need.party, need.path), need.path, m.request.method or "", m.body.get("result"))
        if m.kind == "error" and m.request is not None and not m.again:
            for need in _applying(m.request):
                one = use(m, need.party, need.path)
                one.refused += 1
                one.why[f"{m.code}: {m.error.get('message', '')}"] = None

    visit(wire, links, look)
    rows = []
    for (instance, party, path), one in uses.items():
        if one.n == 0:
            status: str = "declared and unused"
        elif one.refused and one.refused >= one.n:
            status = "refused"
        elif path == PING:
            status = "used, needs no declaration"
        elif one.undeclared:
            status = "used undeclared"
        else:
            status = "declared and used" if one.stated or not one.unknown else "used, declaration not seen"
        known = True if one.stated else None if path == PING or (one.unknown and not one.undeclared) else False
        rows.append(
            (name, instance, party, path, status, known, one.n, one.refused, printable("; ".join(one.why)) or None,
             ", ".join(map(str, one.seqs)) or None, one.worked, _outcome(one, path, known))
        )  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(EXERCISED)).astype(EXERCISED)
    order = frame["path"].map(lambda path: spec.path_key(path))
    return (
        frame.assign(_order=order)
        .sort_values(["instance", "party", "_order"])
        .drop(columns="_order")
        .reset_index(drop=True)
    )


def _outcome(one: _Use, path: str, declared: bool | None) -> str | None:
    if one.n == 0 or (declared is None and path != PING):
        return None
    if declared:
        return "declared and works" if one.worked else "declared and fails"
    undeclared = "" if path == PING else "undeclared and "
    if one.worked:
        return f"{undeclared}works"
    return f"{undeclared}{'refused' if one.refused else 'ignored' if one.answered else 'unanswered'}"


def without(declared: Any, paths: Iterable[str]) -> Any:
    """A declaration with some paths taken out; what is no object stays as it is."""
    for path in paths:
        declared = _without(declared, spec.split(path))
    return declared


def _without(value: Any, keys: list[str]) -> Any:
    if isinstance(value, Sentinel) or not isinstance(value, Mapping) or not keys or keys[0] not in value:
        return value
    if len(keys) == 1:
        return {key: inner for key, inner in value.items() if key != keys[0]}
    return {key: _without(inner, keys[1:]) if key == keys[0] else inner for key, inner in value.items()}


def what_if(wire: Wire, links: dict[str, Link], name: str, paths: list[str]) -> pd.DataFrame:
    """Messages that kept to the contract and would not have, had nobody declared the paths."""
    for path in paths:
        spec.split(path)  # a SpecError for what is no path
    rows: list[tuple[Any, ...]] = []

    def look(m: Fact) -> None:
        if m.sender is None or m.kind == "invalid" or not isinstance(m.body, dict):
            return
        client, server = m.client_capabilities, m.server_capabilities
        real = Gate(m.revision or "", client, server).allows(m.body, m.sender, answers=m.method)
        if real.allowed is not True:
            return
        gate = Gate(m.revision or "", _dropped(m, "client", client), _dropped(m, "server", server))
        said = gate.allows(m.body, m.sender, answers=m.method)
        if said.allowed is False:
            session = m.session
            where = (name, session.instance.name, printable(session.name), m.seq, m.part, m.sender, m.kind, m.method)
            rows.append((*where, said.path, said.rule, said.level or None, printable(said.reason)))

    def _dropped(m: Fact, party: str, declared: Any) -> Any:
        left = without(declared, paths)
        for path in paths:
            known = spec.capability(m.revision or "", party, path)
            if known is None or known.implied_by is None:
                continue
            if gating.standing(m.revision or "", party, path, left).declared:
                left = without(left, [known.implied_by[0]])  # what is left is empty, which would still mean the path
        return left

    visit(wire, links, look)
    return pd.DataFrame(rows, columns=list(WHAT_IF)).astype(WHAT_IF)
