"""Requests and notifications of every revision: direction, phase, result, and what gates them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from mcplab.model import SpecError
from mcplab.spec.conditions import Condition, condition
from mcplab.spec.files import load
from mcplab.spec.revisions import REVISIONS, Era, capability_level, is_revision, revision_data

Party = Literal["client", "server"]
Direction = Literal["c2s", "s2c"]

_FILES: Final = {"legacy": "methods_legacy.toml", "modern": "methods_modern.toml"}


@dataclass(frozen=True, slots=True)
class Variant:
    """What a method needs besides its own gate when ``when`` holds for the message.

    Members as in :class:`Method`; ``result`` is None where the variant does not change it.
    """

    when: Condition
    gate: str
    gate_side: str
    strength: str
    gate_section: str
    also_needs: str = ""
    result: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """One method in one revision and direction.

    Attributes:
        kind: ``request``, ``notification``, or ``input-request`` (an entry of ``inputRequests``, no message).
        direction: ``c2s``, ``s2c``, or ``both``: either party may send it.
        gate: capability path that must be declared for it to be sent, or None.
        gate_side: who declares the gate: ``client``, ``server``, ``receiver`` or ``sender`` of this message, ``both``.
        strength: ``MUST`` or ``SHOULD`` as the text has it; ``""`` where it has no capitalised word, or no gate.
        gate_section: the section that makes it a gate.
        also_needs: what else must be true, in words.
        phase: when it may be sent; docs/protocol-data.md lists the words.
        result: members that a complete result must have (modern: besides ``resultType``); ``()`` is an empty result,
            None where there is no result or it is that of another request (``result_of``).
        paginated: takes a cursor, may answer with ``nextCursor``.
        variants: further gates, each under a condition.
        mrtr: may be answered with ``input_required``.
        mcp_name: member that the ``Mcp-Name`` header repeats.
        cacheable: its result carries ``ttlMs`` and ``cacheScope``.
        transports: the only transports that carry it; empty: all.
        stream: modern notifications: ``response`` (stream of the request it belongs to) or ``listen``.
        tagged: carries the subscription id in ``_meta``.
        filter: member of a ``subscriptions/listen`` filter that asks for it.
        extension: identifier of the extension that defines it.
        section: where it is described: a page below the revision with anchor, ``schema.ts#Type``, or ``seps/...``.
    """

    name: str
    revision: str
    era: Era
    kind: str
    direction: str
    phase: str
    section: str
    gate: str | None = None
    gate_side: str = ""
    strength: str = ""
    gate_section: str = ""
    also_needs: str = ""
    result: tuple[str, ...] | None = None
    result_of: str = ""
    paginated: bool = False
    variants: tuple[Variant, ...] = ()
    mrtr: bool = False
    mcp_name: str = ""
    cacheable: bool = False
    transports: tuple[str, ...] = ()
    stream: str = ""
    tagged: bool = False
    filter: str = ""
    extension: str = ""
    note: str = ""

    def sent(self, direction: str | None) -> bool:
        """Whether it may go in ``direction`` (``c2s`` or ``s2c``; None: any)."""
        return direction is None or self.direction == "both" or self.direction == direction


@dataclass(frozen=True, slots=True)
class Gate:
    """Traffic that a capability path gates.

    ``direction`` is that of the traffic. For ``kind`` ``error`` and ``result`` the traffic is an answer (``method`` is
    the method answered, empty: any) and ``when`` looks at it.
    """

    method: str
    kind: str
    direction: str
    when: Condition | None = None
    strength: str = ""
    also_needs: str = ""
    section: str = ""


def in_force(entry: dict[str, Any], revision: str) -> bool:
    """Whether a TOML entry with ``since`` and ``until`` stands for that revision."""
    at = REVISIONS.index(revision)
    return REVISIONS.index(entry.get("since", REVISIONS[0])) <= at <= REVISIONS.index(entry.get("until", REVISIONS[-1]))


def _words(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _source(revision: str) -> dict[str, Any]:
    return load(_FILES[revision_data(revision)["era"]])


def _method(entry: dict[str, Any], revision: str, source: dict[str, Any]) -> Method:
    gate = entry.get("gate")
    return Method(
        name=entry["name"],
        revision=revision,
        era=source["era"],
        kind=entry["kind"],
        direction=entry["direction"],
        phase=entry["phase"],
        section=entry["section"],
        gate=gate,
        gate_side=entry.get("gate_side", ""),
        strength=entry.get("strength", capability_level(revision)) if gate else "",
        gate_section=entry.get("gate_section", source["gate_section"]) if gate else "",
        also_needs=entry.get("also_needs", ""),
        result=_words(entry.get("result")),
        result_of=entry.get("result_of", ""),
        paginated=entry.get("paginated", False),
        variants=tuple(_variant(part) for part in entry.get("variants", ()) if in_force(part, revision)),
        mrtr=entry.get("mrtr", False),
        mcp_name=entry.get("mcp_name", ""),
        cacheable=entry.get("cacheable", False),
        transports=tuple(entry.get("transports", ())),
        stream=entry.get("stream", ""),
        tagged=entry.get("tagged", False),
        filter=entry.get("filter", ""),
        extension=entry.get("extension", ""),
        note=entry.get("note", ""),
    )


def _variant(entry: dict[str, Any]) -> Variant:
    when = condition(entry["when"])
    assert when is not None
    return Variant(
        when=when,
        gate=entry["gate"],
        gate_side=entry["gate_side"],
        strength=entry["strength"],
        gate_section=entry["gate_section"],
        also_needs=entry.get("also_needs", ""),
        result=_words(entry.get("result")),
    )


@cache
def methods(revision: str) -> tuple[Method, ...]:
    """All methods of a revision, of the official extensions too, in the order of the data files.

    Raises:
        SpecError: no such revision.
    """
    source = _source(revision)
    return tuple(_method(entry, revision, source) for entry in source["method"] if in_force(entry, revision))


@cache
def _index(revision: str) -> dict[tuple[str, str | None], Method]:
    index: dict[tuple[str, str | None], Method] = {}
    for entry in methods(revision):
        for direction in (None, "c2s", "s2c"):
            if entry.sent(direction):
                index.setdefault((entry.name, direction), entry)
    return index


def method(revision: str, name: str, direction: str | None = None) -> Method | None:
    """The entry of a method, or None where the revision has no such method in that direction.

    ``direction`` is ``c2s`` or ``s2c``; without it the first entry of that name counts (2026-07-28 has two for
    ``notifications/cancelled``). In 2026-07-28 ``roots/list``, ``sampling/createMessage`` and ``elicitation/create``
    are found, with ``kind`` ``input-request``: as messages they do not exist there.

    Raises:
        SpecError: no such revision.
    """
    if not is_revision(revision):
        revision_data(revision)
    return _index(revision).get((name, direction))


@cache
def method_names() -> tuple[str, ...]:
    """Every method name of any revision, each once, oldest revision first."""
    return tuple(dict.fromkeys(entry.name for revision in REVISIONS for entry in methods(revision)))


@cache
def _eras() -> dict[tuple[str, str | None], frozenset[Era]]:
    found: dict[tuple[str, str | None], set[Era]] = {}
    for revision in REVISIONS:
        for entry in methods(revision):
            if entry.kind != "input-request":
                for direction in (None, "c2s", "s2c"):
                    if entry.sent(direction):
                        found.setdefault((entry.name, direction), set()).add(entry.era)
    return {key: frozenset(eras) for key, eras in found.items()}


_NO_ERA: Final[frozenset[Era]] = frozenset()


def eras_of(name: str, direction: str | None = None) -> frozenset[Era]:
    """The eras in which a message of that method exists in that direction (None: in any); empty for an unknown one.

    ``initialize`` is ``{"legacy"}``, ``server/discover`` ``{"modern"}``, ``tools/list`` both. Input requests are no
    messages: ``sampling/createMessage`` is ``{"legacy"}``.
    """
    return _eras().get((name, direction), _NO_ERA)


def _declarers(side: str, direction: str) -> list[tuple[Party, str]]:
    """Who declares a gate, and the direction that this declaration opens."""
    found: list[tuple[Party, str]] = []
    for way in ("c2s", "s2c") if direction == "both" else (direction,):
        receiver: Party = "server" if way == "c2s" else "client"
        sender: Party = "client" if way == "c2s" else "server"
        parties: dict[str, tuple[Party, ...]] = {
            "client": ("client",), "server": ("server",), "receiver": (receiver,), "sender": (sender,),
            "both": ("client", "server"),
        }  # fmt: skip
        if side not in parties:
            raise SpecError(f"gate_side {side!r} in the method files is none of {', '.join(parties)}")
        found.extend((party, way) for party in parties[side])
    return found


@cache
def gates(revision: str, party: Party) -> dict[str, tuple[Gate, ...]]:
    """Capability path -> the traffic that it gates when ``party`` is the one to declare it.

    Raises:
        SpecError: no such revision.
    """
    found: dict[str, list[Gate]] = {}

    def add(side: str, direction: str, path: str, **members: Any) -> None:
        for declarer, way in _declarers(side, direction):
            if declarer == party:
                found.setdefault(path, []).append(Gate(direction=way, **members))

    for entry in methods(revision):
        if entry.gate is not None:
            add(
                entry.gate_side, entry.direction, entry.gate, method=entry.name, kind=entry.kind,
                strength=entry.strength, also_needs=entry.also_needs, section=entry.gate_section,
            )  # fmt: skip
        for part in entry.variants:
            add(
                part.gate_side, entry.direction, part.gate, method=entry.name, kind=entry.kind, when=part.when,
                strength=part.strength, also_needs=part.also_needs, section=part.gate_section,
            )  # fmt: skip
    for answer in _source(revision).get("answer", ()):
        if in_force(answer, revision):
            add(
                answer["gate_side"], answer["direction"], answer["gate"], method=answer.get("method", ""),
                kind=answer["kind"], when=condition(answer["when"]),
                strength=answer.get("strength", capability_level(revision)), section=answer["section"],
            )  # fmt: skip
    return {path: tuple(entries) for path, entries in found.items()}
