"""Known capability paths of every revision and party, and the specification's order of paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final, cast

from mcplab.model import SpecError
from mcplab.spec.files import load
from mcplab.spec.paths import ROOT, join, split
from mcplab.spec.revisions import REVISIONS, is_revision, revision_data
from mcplab.spec.traffic import Gate, Party, gates, in_force

_FILE: Final = "capabilities.toml"
_ANY: Final = ".*"


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability path of one party in one revision.

    Attributes:
        type: ``object-marker`` (an object declares), ``boolean-flag`` (true declares), ``object-group`` (holds further
            paths), ``map`` (free keys) or ``setting`` (a value that an extension defines).
        gates: the traffic that may be sent only if it is declared.
        implied_by: (path, state): in that state of that path this one counts as declared. None: never implied.
        deprecated: the revision that deprecated it, from that revision on; else ``""``.
        informal: the revision's schema does not define it, though it was in use.
        pattern: the entry that matched, where the path itself is not in the data (``extensions.*``).
        revisions: the revisions that know it.
    """

    path: str
    party: Party
    revision: str
    type: str
    gates: tuple[Gate, ...] = ()
    implied_by: tuple[str, str] | None = None
    deprecated: str = ""
    informal: bool = False
    pattern: str = ""
    note: str = ""
    revisions: tuple[str, ...] = ()


def _party(party: str) -> Party:
    if party not in ("client", "server"):
        raise SpecError(f"no party {party!r}: it is client or server")
    return cast(Party, party)


@cache
def capabilities(revision: str, party: str) -> tuple[Capability, ...]:
    """Every capability path that ``party`` can declare in ``revision``, in the specification's order.

    ``experimental.*`` and ``extensions.*`` stand for keys of the declarer's choice.

    Raises:
        SpecError: no such revision or party.
    """
    revision_data(revision)
    side = _party(party)
    gated = gates(revision, side)
    return tuple(_capability(entry, revision, side, gated) for entry in load(_FILE)[side] if in_force(entry, revision))


def _capability(entry: dict[str, Any], revision: str, party: Party, gated: dict[str, tuple[Gate, ...]]) -> Capability:
    deprecated, informal = entry.get("deprecated", ""), entry.get("informal_before", "")
    implied = entry.get("implied_by")
    return Capability(
        path=entry["path"],
        party=party,
        revision=revision,
        type=entry["type"],
        gates=gated.get(entry["path"], ()),
        implied_by=None if implied is None else (implied[0], implied[1]),
        deprecated=deprecated if deprecated and deprecated <= revision else "",
        informal=revision < informal,
        note=entry.get("note", ""),
        revisions=tuple(name for name in REVISIONS if in_force(entry, name)),
    )


@cache
def _index(revision: str, party: str) -> dict[str, Capability]:
    return {entry.path: entry for entry in capabilities(revision, party)}


def capability(revision: str, party: str, path: str) -> Capability | None:
    """The entry of one path, or None where the revision knows no such path for that party.

    A key below ``experimental`` or ``extensions`` that the data does not name resolves to its pattern: the result has
    the path asked for, and ``pattern`` says which entry it came from. Paths below such a key are unknown.

    Raises:
        SpecError: no such revision or party, or ``path`` is no path.
    """
    if not is_revision(revision):
        revision_data(revision)
    index = _index(revision, _party(party))
    found = index.get(path)
    if found is not None or path == ROOT:
        return found
    keys = split(path)
    found = index.get(join(keys))
    if found is None and len(keys) == 2:
        found = index.get(join(keys[:1]) + _ANY)
        if found is not None:
            found = replace(found, path=join(keys), pattern=found.path)
    return found


# Order ------------------------------------------------------------------------------------------------------


class _Node(dict[str, "_Node"]):
    """Known keys below a path, in the specification's order."""


@cache
def _tree(party: str | None) -> _Node:
    root = _Node()
    data = load(_FILE)
    for side in ("client", "server") if party is None else (_party(party),):
        for entry in data[side]:
            if not entry["path"].endswith(_ANY):
                node = root
                for key in split(entry["path"]):
                    node = node.setdefault(key, _Node())
    return root


def _walk(node: _Node, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield above
    for key, below in node.items():
        yield from _walk(below, (*above, key))


@cache
def path_order(party: str | None = None) -> dict[str, int]:
    """Every known path over all revisions -> its place in the specification's order; ``$`` is 0, parents come first.

    Without a party: the client's paths, then those that only servers have. Patterns are no paths. The dict is shared:
    callers must not change it.

    Raises:
        SpecError: no such party.
    """
    return {join(keys): place for place, keys in enumerate(_walk(_tree(party), ()))}


@lru_cache(maxsize=65536)
def path_key(path: str, party: str | None = None) -> tuple[tuple[int, str], ...]:
    """Sort key that puts any path in the specification's order.

    Members come right after their parent; among siblings the known ones in the specification's order, then the others
    by name. ``$`` comes first.

    Raises:
        SpecError: no such party, or ``path`` is no path.
    """
    node: _Node | None = _tree(party)
    key: list[tuple[int, str]] = []
    for name in split(path):
        places = {} if node is None else {known: place for place, known in enumerate(node)}
        key.append((places.get(name, len(places)), name))
        node = None if node is None else node.get(name)
    return tuple(key)
