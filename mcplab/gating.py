"""May this message be sent? What the receiver, or the sender, must have declared for it, down to nested flags.

Pure functions over JSON values: a declaration is any JSON value, ``ABSENT`` (the member was not there) or ``UNKNOWN``
(nobody saw it). What gates what is data (mcplab/spec/methods_*.toml); which rule says so, too (mcplab/spec/rules/).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from mcplab import jsontext
from mcplab.model import ABSENT, UNKNOWN, JsonText, Sentinel, UsageError
from mcplab.spec import Condition, capability, era, eras_of, gates, method, split
from mcplab.spec.files import load
from mcplab.spec.revisions import revision_data, word_at

DIRECTION: Final = {"client": "c2s", "server": "s2c"}
OTHER: Final = {"client": "server", "server": "client"}


class Need(NamedTuple):
    """One thing that must be declared before a message may be sent. ``when``: only if that holds for the message."""

    party: str
    path: str
    when: Condition | None
    strength: str
    section: str


class Standing(NamedTuple):
    """How a declaration stands to a path.

    ``declared`` is None where nobody saw the declaration. ``malformed``: the path, or one above it, is there with a
    value that declares nothing (``"tools": true``, ``"listChanged": "yes"``): that is a fault of its own.
    """

    declared: bool | None
    reason: str
    malformed: bool = False


class Verdict(NamedTuple):
    """May the message be sent? ``allowed`` is None where the declarations that matter are not known.

    ``rule``: id in the catalogue, None where no rule looks at such a message. ``path``: the capability that decides.
    ``level``: how strongly the revision asks for it, as the catalogue says it of the rule (where the text has no
    capitalised word, how it is read); ``""`` where neither has a word.
    """

    allowed: bool | None
    rule: str | None
    path: str | None
    reason: str
    level: str = ""


def standing(revision: str, party: str, path: str, declared: Any) -> Standing:
    """Whether ``declared``, the capabilities of ``party``, declares ``path`` in that revision.

    Markers and groups are declared by an object, ``{}`` too; flags by ``true``; form elicitation also by
    ``"elicitation": {}`` (2025-11-25 client/elicitation#capabilities).

    Raises:
        SpecError: no such revision or party, or ``path`` is no path.
    """
    if declared is UNKNOWN:
        return Standing(None, f"the {party}'s declaration was not seen")
    if declared is ABSENT:
        return Standing(False, f"the {party} sent no capabilities")
    if not isinstance(declared, Mapping):
        return Standing(False, f"the {party}'s capabilities are {_word(declared)}, not an object", malformed=True)
    known = capability(revision, party, path)
    value: Any = declared
    walked = ""
    for key in split(path):
        above, walked = walked, f"{walked}.{key}" if walked else key
        if key not in value:
            if (
                known is not None
                and known.implied_by is not None
                and known.implied_by == (above, "empty")
                and not value
            ):
                return Standing(True, f"{above} is {{}}, which means {path}")
            return Standing(False, f"{walked} is absent")
        value = value[key]
        if walked != path and not isinstance(value, Mapping):
            return Standing(False, f"{walked} is {_word(value)}, not an object", malformed=True)
    if known is not None and known.type == "boolean-flag":
        return Standing(value is True, f"{path} is {_word(value)}", malformed=not isinstance(value, bool))
    declares = isinstance(value, Mapping)
    return Standing(declares, f"{path} is {_word(value)}", malformed=not declares)


def _word(value: Any) -> str:
    text = jsontext.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# What a message needs -------------------------------------------------------------------------------------


@cache
def _needs(revision: str) -> dict[tuple[str, str, str], tuple[Need, ...]]:
    found: dict[tuple[str, str, str], list[Need]] = {}
    for party in ("client", "server"):
        for path, entries in gates(revision, party).items():
            for gate_ in entries:
                need = Need(party, path, gate_.when, gate_.strength, gate_.section)
                found.setdefault((gate_.direction, gate_.kind, gate_.method), []).append(need)
    return {key: tuple(needs) for key, needs in found.items()}


_NONE: Final[tuple[Need, ...]] = ()


def needs(revision: str, direction: str, kind: str, name: str) -> tuple[Need, ...]:
    """What traffic of that kind needs. ``kind``: request, notification, input-request, result or error.

    For answers ``name`` is the method answered; entries for any method (``""``) count too.
    """
    table = _needs(revision)
    found = table.get((direction, kind, name), _NONE)
    return found + table.get((direction, kind, ""), _NONE) if kind in ("result", "error") else found


@cache
def _rule_ids() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for entry in load("rules/gate.toml")["rule"]:
        args = entry.get("args", {})
        for name in args.get("methods", ()):
            found[args["path"], name] = entry["id"]
    return found


def rule_of(path: str, name: str) -> str | None:
    """The catalogue's id of the rule that gates the method by that path; ``error``/``result`` for an answer."""
    return _rule_ids().get((path, name))


@cache
def _levels() -> dict[str, Any]:
    return {entry["id"]: entry["level"] for entry in load("rules/gate.toml")["rule"]}


@cache
def rule_paths() -> dict[str, str]:
    """Rule -> the capability path by which it gates."""
    return {rule: path for (path, _), rule in _rule_ids().items()}


# The gate -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gate:
    """The contract of one connection, or of one modern request, at a message boundary.

    In a modern revision ``client`` is what the very request declared that the message belongs to, and ``server`` the
    latest discover result.
    """

    revision: str
    client: Any = UNKNOWN
    server: Any = UNKNOWN

    def allows(self, message: Any, sender: str, *, answers: str | None = None) -> Verdict:
        """May ``sender`` (client or server) send this message?

        Args:
            message: a JSON-RPC message as JSON value or text. Of a batch the first part that may not be sent decides.
            answers: for an answer, the method that it answers, where known.

        Raises:
            SpecError: no such revision.
            UsageError: ``sender`` is no party, or the message is no JSON.
        """
        if sender not in DIRECTION:
            raise UsageError(f"sender={sender!r} is neither 'client' nor 'server'; say which of them sends the message")
        if isinstance(message, (str, JsonText, bytes)):
            try:
                message = jsontext.loads(message)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the message is no JSON ({error}); give it as a JSON value, or as its text") from None
        if isinstance(message, list):
            parts = [self.allows(part, sender, answers=answers) for part in message]
            worst = sorted(parts, key=lambda part: (part.allowed is True, part.allowed is None))
            return worst[0] if worst else Verdict(None, None, None, "an empty batch")
        if not isinstance(message, Mapping):
            return Verdict(None, None, None, f"{_word(message)} is no JSON-RPC message")
        name = message.get("method")
        if isinstance(name, str):
            return self._call(message, sender, name)
        return self._answer(message, sender, answers or "")

    def _call(self, message: Mapping[str, Any], sender: str, name: str) -> Verdict:
        kind = "request" if "id" in message else "notification"
        direction = DIRECTION[sender]
        entry = method(self.revision, name, direction)
        if entry is None or entry.kind == "input-request":
            if revision_data(self.revision)["era"] == "modern" and kind == "request" and sender == "server":
                reason = f"{self.revision} lets no server send requests"
                return Verdict(False, "mrtr.server-no-requests", None, reason, "MUST NOT")
            if method(self.revision, name) is not None:
                reason = f"{self.revision} has {name} in the other direction only"
                return Verdict(False, "jsonrpc.method-direction", None, reason, "MUST")
            if eras_of(name):
                return Verdict(False, "jsonrpc.method-known", None, f"{self.revision} has no {name}")
            return Verdict(None, None, None, f"no revision defines {name}: an extension or the two parties may")
        return self._judge(list(self._standings(direction, kind, name, message)), f"{name} needs no capability")

    def _answer(self, message: Mapping[str, Any], sender: str, answers: str) -> Verdict:
        direction = DIRECTION[sender]
        kind = "error" if "error" in message else "result"
        found = list(self._standings(direction, kind, answers, message))
        result = message.get("result")
        asked = result.get("inputRequests") if isinstance(result, Mapping) else None
        if isinstance(asked, Mapping) and era(self.revision) == "modern":
            for entry in asked.values():
                name = entry.get("method") if isinstance(entry, Mapping) else None
                if isinstance(name, str):
                    found += self._standings("s2c", "input-request", name, entry)
        return self._judge(found, "an answer needs no capability")

    def _standings(
        self, direction: str, kind: str, name: str, message: Mapping[str, Any]
    ) -> Iterator[tuple[Need, Standing, str | None]]:
        for need in needs(self.revision, direction, kind, name):
            if need.when is None or need.when.holds(message):
                declared = self.client if need.party == "client" else self.server
                rule = rule_of(need.path, kind if kind in ("result", "error") else name)
                if kind == "input-request" and "." not in need.path:
                    rule = "mrtr.input-request-declared"
                yield need, standing(self.revision, need.party, need.path, declared), rule

    def _judge(self, found: list[tuple[Need, Standing, str | None]], free: str) -> Verdict:
        if not found:
            return Verdict(True, None, None, free)
        order = {False: 0, None: 1, True: 2}
        need, stands, rule = min(found, key=lambda one: order[one[1].declared])
        words = _levels().get(rule or "", f"{need.strength} NOT" if need.strength else "")
        level = word_at(words, self.revision)
        return Verdict(stands.declared, rule, need.path, f"{need.party}: {stands.reason}", level)


def gate(revision: str, client: Any = UNKNOWN, server: Any = UNKNOWN) -> Gate:
    """The gate between two parties: ``gate("2025-11-25", server={"tools": {}}).allows(message, "client")``.

    Args:
        revision: the revision in force.
        client, server: the declared capabilities: a JSON value, ``ABSENT`` or ``UNKNOWN`` each.

    Raises:
        SpecError: no such revision.
        UsageError: a declaration is none that can be.
    """
    revision_data(revision)
    for name, value in (("client", client), ("server", server)):
        if isinstance(value, Sentinel) and value is not ABSENT and value is not UNKNOWN:
            raise UsageError(f"{name}={value!r}: a declaration is a JSON value, ABSENT or UNKNOWN")
        if not isinstance(value, Sentinel):
            try:
                jsontext.dumps(value)
            except (TypeError, ValueError, RecursionError) as error:
                raise UsageError(
                    f"{name} is no JSON value ({error}); a declaration is one, ABSENT or UNKNOWN"
                ) from None
    return Gate(revision, client, server)
