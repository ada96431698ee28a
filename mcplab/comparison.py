"""Declarations side by side: who declares what, what differs, and whom a server loses that needs a capability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcplab import jsontext
from mcplab.capabilities import as_text, flatten
from mcplab.citing import Cites, citation, short_names
from mcplab.model import CELL_STATES, ArgumentError, JsonText, Sentinel, TraceError
from mcplab.spec import capability, is_revision, path_key, split
from mcplab.versions import label_key

BY = {"client": "client", "client_version": "client_version", "config": "config", "transport": "transport",
      "era": "spoken", "instance": "instance", "trace": "trace"}  # fmt: skip
"""What ``compare(by=)`` takes -> the column of the speaking declarations."""

PLACES = {"client": ("initialize", "request_meta"), "server": ("initialize_result", "discover_result")}


def speaking(traces: Any, party: str) -> pd.DataFrame:
    """The declarations that count in a comparison, with a column ``spoken``: the connection's era.

    A legacy connection speaks by its initialize (or its result), any other by its modern requests (or discover
    results); where a connection sent none of those, what it did send counts.
    """
    if party not in PLACES:
        raise ArgumentError(f"party={party!r}: it is 'client' or 'server'")
    if not hasattr(traces, "declarations"):
        raise TraceError(
            f"a {type(traces).__name__} is no trace; read_traces makes Traces of files and of Trace objects"
        )
    legacy, modern = PLACES[party]
    rows = traces.declarations
    rows = rows[rows["party"] == party]
    known = traces.connections.set_index(["trace", "conn"])["era"]
    keys = pd.MultiIndex.from_frame(rows[["trace", "conn"]])
    spoken = known.reindex(keys).to_numpy(dtype=object)
    wanted = np.where(spoken == "legacy", legacy, modern)
    place = rows["place"].to_numpy(dtype=object)
    fits = place == wanted
    # a connection of unknown era that was refused its initialize still said what it can do
    conn = rows["trace"].astype(object) + "\0" + rows["conn"].astype(object)
    spoke = set(conn[fits])
    late = ~fits & ~conn.isin(spoke).to_numpy() & (spoken != "legacy")
    kept = fits | late
    return rows[kept].assign(spoken=spoken[kept])


class Evidence(Mapping[tuple[str, Any], list[tuple[str, int]]]):
    """(path, who) -> [(trace, seq)]: the messages that a cell rests on. Looked up when asked for."""

    def __init__(
        self, said: dict[Any, dict[str, list[tuple[str, int]]]], where: dict[Any, list[tuple[str, int]]]
    ) -> None:
        self._said = said  # who -> path -> messages that have the path
        self._where = where  # who -> all declaring messages

    def __getitem__(self, key: tuple[str, Any]) -> list[tuple[str, int]]:
        path, who = key
        if who not in self._where:
            raise KeyError(key)
        found, all_ = self._said[who].get(path, []), self._where[who]
        # messages without the path are evidence too, for the absence that makes the cell vary
        return found if len(found) == len(all_) else all_

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((path, who) for who, paths in self._said.items() for path in paths)

    def __len__(self) -> int:
        return sum(len(paths) for paths in self._said.values())

    def __deepcopy__(self, memo: Any) -> Evidence:
        return self  # pandas copies attrs at every step; the evidence never changes

    def __repr__(self) -> str:
        return f"<evidence for {len(self)} cells>"


class Counts(Mapping[tuple[str, Any], dict[str, int]]):
    """(path, who) -> {state: instances that declared it so}; an instance that left the path out counts as absent."""

    def __init__(
        self,
        paths: list[str],
        seen: dict[tuple[str, Any], dict[str, set[str]]],
        had: dict[tuple[str, Any], dict[str, int]],
        spoke: dict[Any, dict[str, int]],
    ) -> None:
        self._paths, self._seen, self._had, self._spoke = paths, seen, had, spoke

    def __getitem__(self, key: tuple[str, Any]) -> dict[str, int]:
        path, who = key
        spoke = self._spoke[who]
        if key not in self._seen and path not in self._paths:
            raise KeyError(key)
        count = self._had.get(key, {})
        states = {state: len(found) for state, found in self._seen.get(key, {}).items()}
        lacking = sum(count.get(instance, 0) < total for instance, total in spoke.items())
        if lacking:
            states["absent"] = states.get("absent", 0) + lacking
        return states

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((path, who) for who in self._spoke for path in self._paths)

    def __len__(self) -> int:
        return len(self._spoke) * len(self._paths)

    def __deepcopy__(self, memo: Any) -> Counts:
        return self


def compare(
    traces: Any,
    *,
    by: str | Sequence[str] = "client",
    party: str = "client",
    tier: str = "observed",
    long: bool = False,
) -> pd.DataFrame:
    """Which capability paths who declares.

    Args:
        traces: Traces, or one Trace.
        by: client, client_version, config, transport, era, instance or trace, or a list of them.
        party: whose declarations: client or server.
        tier: where the statements come from; ``observed``: messages.
        long: one row a cell in place of a matrix.

    Returns:
        Index ``path``: ``$`` first, then the specification's order, members below their parent. Columns: who (a
        MultiIndex for a list). Cells: a state; ``varies`` (more than one state was seen); ``unknown`` (no declaration
        of this party was captured). ``.attrs["evidence"][path, who]`` is [(trace, seq)],
        ``.attrs["counts"][path, who]`` {state: instances that declared it}; ``.attrs["instances"][who]`` and
        ``.attrs["era"][who]`` tell what a column rests on.
        ``.attrs["cite"][path, who]`` is the id by which a cell is cited: its first message as
        ``fast-agent-0.10.48-http-legacy-default#3``.
        With ``long``: columns path, the ``by`` names, state, states (n a state), messages, instances, evidence, cite.

    Raises:
        TraceError: ``by``, ``party`` or ``tier`` is not known.
    """
    if tier != "observed":
        raise ArgumentError(f"tier={tier!r}: only 'observed' statements (messages) can be compared")
    keys = [by] if isinstance(by, str) else list(by)
    unknown = [key for key in keys if key not in BY]
    if unknown or not keys:
        raise ArgumentError(f"by={by!r}: it is one or more of {', '.join(BY)}")
    rows = speaking(traces, party)
    everyone = _everyone(traces, keys, by)
    return _matrix(rows, keys, by, party, everyone, traces.connections["trace"].unique(), long=long)


def labels(frame: pd.DataFrame, names: Sequence[str], by: Any) -> list[Any]:
    """A label a row: the value, or a tuple of values for a list. What is not known reads ``unknown``."""
    columns = [frame[name].astype(object).where(frame[name].notna(), "unknown").tolist() for name in names]
    return columns[0] if isinstance(by, str) else list(zip(*columns, strict=True))


def _everyone(traces: Any, keys: list[str], by: Any) -> dict[Any, tuple[set[str], set[str]]]:
    """who -> (instances, eras), of all connections, so that one without a declaration has its column too."""
    links = traces.connections.rename(columns={"era": "spoken"})
    found: dict[Any, tuple[set[str], set[str]]] = {}
    who = labels(links, [BY[key] for key in keys], by)
    for label, instance, spoken in zip(who, links["instance"], links["spoken"], strict=True):
        instances, eras = found.setdefault(label, (set(), set()))
        instances.add(instance)
        if spoken != "unknown":
            eras.add(spoken)
    return found


def _matrix(
    rows: pd.DataFrame,
    keys: list[str],
    by: Any,
    party: str,
    everyone: dict[Any, tuple[set[str], set[str]]],
    traces: Iterable[str],
    *,
    long: bool,
) -> pd.DataFrame:
    said: dict[Any, dict[str, list[tuple[str, int]]]] = {who: {} for who in everyone}
    where: dict[Any, list[tuple[str, int]]] = {who: [] for who in everyone}
    seen: dict[tuple[str, Any], dict[str, set[str]]] = {}  # path, who -> state -> instances
    spoke: dict[Any, dict[str, int]] = {who: {} for who in everyone}  # who -> instance -> declaring messages
    had: dict[tuple[str, Any], dict[str, int]] = {}  # path, who -> instance -> those of them that have the path
    lists = [rows[name].tolist() for name in ("path", "state", "trace", "seq", "instance")]
    for who, path, state, trace, seq, instance in zip(labels(rows, [BY[key] for key in keys], by), *lists, strict=True):
        if path == "$":
            where[who].append((trace, seq))
            spoke[who][instance] = spoke[who].get(instance, 0) + 1
        said[who].setdefault(path, []).append((trace, seq))
        seen.setdefault((path, who), {}).setdefault(state, set()).add(instance)
        count = had.setdefault((path, who), {})
        count[instance] = count.get(instance, 0) + 1
    paths = sorted({path for path, _ in seen} | {"$"}, key=lambda path: path_key(path, party))
    rank = {path: n for n, path in enumerate(paths)}
    whos = sorted(everyone, key=_label_key)
    counts = Counts(paths, seen, had, spoke)
    cells: dict[Any, list[str]] = {}
    for who in whos:
        column = cells[who] = ["absent" if spoke[who] else "unknown"] * len(paths)
        for path in said[who]:
            states = counts[path, who]
            column[rank[path]] = next(iter(states)) if len(states) == 1 else "varies"
    evidence = Evidence(said, where)
    instances = {who: len(everyone[who][0]) for who in whos}
    eras = {who: "+".join(sorted(everyone[who][1])) or "unknown" for who in whos}
    if long:
        messages = {who: len(where[who]) for who in whos}
        return _long(paths, whos, cells, counts, evidence, messages, instances, keys, by, short_names(traces))
    frame = matrix([cells[who] for who in whos], paths, columns(whos, keys, by))
    frame.attrs.update(
        evidence=evidence,
        cite=Cites(evidence, traces),
        counts=counts,
        instances=Fixed(instances),
        era=Fixed(eras),
        party=party,
        tier="observed",
    )
    return frame


def columns(whos: Sequence[Any], keys: Sequence[str], by: Any) -> pd.Index:
    """The columns of a matrix: a MultiIndex for a list of keys."""
    if isinstance(by, str):
        return pd.Index(list(whos), name=by, dtype="str")
    levels = list(zip(*whos, strict=True)) if whos else [[] for _ in keys]
    return pd.MultiIndex.from_arrays(levels, names=list(keys))


def matrix(cells: Sequence[Sequence[str]], paths: list[str], columns: pd.Index) -> pd.DataFrame:
    """The DataFrame of a matrix, given column by column: one text array, cut up, as there may be many columns."""
    whole, height = pd.array([cell for column in cells for cell in column], dtype="str"), len(paths)
    index = pd.Index(paths, name="path", dtype="str")
    made = {n: whole[n * height : (n + 1) * height] for n in range(len(cells))}
    frame = pd.DataFrame(made, index=index, copy=False)
    frame.columns = columns
    return frame


class Fixed(dict):
    """A dict that pandas may pass on without copying it each time."""

    def __deepcopy__(self, memo: Any) -> Fixed:
        return self


def _label_key(label: Any) -> Any:
    return [label_key(str(part)) for part in (label if isinstance(label, tuple) else (label,))]


def _long(
    paths: list[str], whos: list[Any], cells: dict[Any, list[str]], counts: Counts,
    evidence: Evidence, messages: dict[Any, int], instances: dict[Any, int], keys: list[str], by: Any,
    short: Mapping[str, str],
) -> pd.DataFrame:  # fmt: skip
    out: list[dict[str, Any]] = []
    for who in whos:
        values = who if not isinstance(by, str) else (who,)
        for path, state in zip(paths, cells[who], strict=True):
            states = counts[path, who]
            proof = evidence[path, who]
            out.append({
                "path": path, **dict(zip(keys, values, strict=True)), "state": state,
                "states": ", ".join(f"{name}:{states[name]}" for name in CELL_STATES if name in states),
                "messages": messages[who], "instances": instances[who],
                "evidence": " ".join(f"{trace}#{seq}" for trace, seq in proof), "cite": citation(proof, short),
            })  # fmt: skip
    names = ["path", *keys, "state", "states", "messages", "instances", "evidence", "cite"]
    frame = pd.DataFrame(out, columns=names)
    return frame.astype({name: "str" for name in names if name not in ("messages", "instances")})


def _states(value: Any, party: str) -> dict[str, tuple[str, str | None]]:
    """path -> (state, JSON text) of a trace's party, a declarations frame, or a JSON value."""
    if isinstance(value, Sentinel):
        return {leaf.path: (leaf.state, leaf.value) for leaf in flatten(as_text(value))}
    if hasattr(value, "declarations") and hasattr(value, "connections"):
        value = speaking(value, party)
    if isinstance(value, pd.DataFrame):
        rows = value[value["party"] == party] if "party" in value else value
        found: dict[str, tuple[str, str | None]] = {}
        total = sum(path == "$" for path in rows["path"])
        for path, group in rows.groupby("path", sort=False):
            text = [None if pd.isna(v) else v for v in group["value"]]
            pairs = {
                (state, _compact(value)): (state, value) for state, value in zip(group["state"], text, strict=True)
            }
            states = set(group["state"]) | ({"absent"} if len(group) < total else set())
            if len(states) > 1 or len(pairs) > 1:
                found[str(path)] = ("varies", None)
            else:
                found[str(path)] = pairs.popitem()[1]
        return found or {"$": ("unknown", None)}
    text = str(value) if isinstance(value, JsonText) else as_text(value)
    if text is not None and (why := jsontext.check(text)):
        raise TraceError(f'no JSON to compare: {why}; a declaration looks like {{"roots": {{}}}}')
    return {leaf.path: (leaf.state, leaf.value) for leaf in flatten(text)}


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^ \t\r\n]', re.DOTALL)


def _compact(text: str | None) -> str | None:
    """A value's text without the space between its parts, which some recorders write anew and which says nothing."""
    return None if text is None else "".join(_TOKEN.findall(text))


def diff(a: Any, b: Any, *, party: str | None = None) -> pd.DataFrame:
    """Where two declarations differ.

    Args:
        a, b: a Trace, a declarations frame, or a JSON value (also JsonText or ABSENT) each.
        party: whose; None: the client's for JSON values, both parties' for traces and frames.

    Returns:
        Index ``path``, or (``party``, ``path``) where both parties are compared; only rows that differ. Columns ``a``
        and ``b``: a state, ``varies`` or ``unknown``; ``a_value`` and ``b_value``: the JSON text of a leaf.
    """
    both = party is None and any(hasattr(x, "declarations") or isinstance(x, pd.DataFrame) for x in (a, b))
    parts: list[tuple[str, str, str, str, str | None, str | None]] = []
    for side in ("client", "server") if both else (party or "client",):
        left, right = _states(a, side), _states(b, side)
        lack_a = ("unknown", None) if left.get("$", ("", None))[0] == "unknown" else ("absent", None)
        lack_b = ("unknown", None) if right.get("$", ("", None))[0] == "unknown" else ("absent", None)
        for path in sorted({*left, *right}, key=lambda path: path_key(path, side)):
            one, two = left.get(path, lack_a), right.get(path, lack_b)
            if (one[0], _compact(one[1])) != (two[0], _compact(two[1])):
                parts.append((side, path, one[0], two[0], one[1], two[1]))
    names = ["party", "path", "a", "b", "a_value", "b_value"]
    frame = pd.DataFrame(parts, columns=names).astype(dict.fromkeys(names, "str"))
    return frame.set_index(["party", "path"]) if both else frame.drop(columns="party").set_index("path")


def reach(paths: str | Sequence[str], traces: Any) -> pd.DataFrame:
    """Whom a server reaches that needs these client capabilities, and whom it loses.

    Args:
        paths: one path or several, as ``elicitation.url``.
        traces: Traces, or one Trace.

    Returns:
        A row a client and version (index); a column a path: ``yes`` (declared by every instance), ``no`` (by none),
        ``varies`` (by some), ``unknown`` (no declaration captured). A path is declared by an object, by ``true`` where
        the specification has a flag; ``elicitation: {}`` declares form elicitation (2025-11-25 client/elicitation).
    """
    wanted = [paths] if isinstance(paths, str) else list(paths)
    for path in wanted:
        split(path)
    rows = speaking(traces, "client")
    links = traces.connections
    pairs = list(dict.fromkeys(zip(*_pairs(links), strict=True)))
    answers: dict[tuple[Any, Any], dict[str, set[str]]] = {pair: {path: set() for path in wanted} for pair in pairs}
    keyed = zip(
        *_pairs(rows),
        rows["trace"],
        rows["seq"],
        rows["part"].fillna(-1),
        rows["path"],
        rows["state"],
        rows["revision"],
        strict=True,
    )
    messages: dict[tuple[Any, ...], tuple[tuple[Any, Any], str | None, dict[str, str]]] = {}
    for client, version, trace, seq, part, path, state, revision in keyed:
        known = messages.setdefault(
            (trace, seq, part), ((client, version), None if pd.isna(revision) else revision, {})
        )
        known[2][path] = state
    for pair, revision, states in messages.values():
        for path in wanted:
            answers[pair][path].add("yes" if declares(states, path, revision) else "no")
    out = [(*pair, *(_answer(answers[pair][path]) for path in wanted)) for pair in sorted(pairs, key=_label_key)]
    frame = pd.DataFrame(out, columns=["client", "client_version", *wanted])
    return frame.astype("str").set_index(["client", "client_version"])


def _pairs(frame: pd.DataFrame) -> tuple[list[Any], list[Any]]:
    client, version = (
        frame[name].astype(object).where(frame[name].notna(), "unknown").tolist()
        for name in ("client", "client_version")
    )
    return client, version


def _answer(found: set[str]) -> str:
    if not found:
        return "unknown"
    return found.pop() if len(found) == 1 else "varies"


def declares(states: Mapping[str, str], path: str, revision: str | None = None, party: str = "client") -> bool:
    """Do these states (path -> state, of one declaration) declare a path?

    An object declares a feature, ``true`` a flag; a value of another type than the revision's schema has declares
    nothing. A path that the revision does not know is declared by anything but false and null.
    """
    state = states.get(path, "absent")
    if state in ("absent", "null", "false"):
        return state == "absent" and _implied(states, path, revision, party)
    known = capability(revision, party, path) if revision is not None and is_revision(revision) else None
    if known is None:
        return True
    if known.type == "boolean-flag":
        return state == "true"
    return state in ("empty", "object")


def _implied(states: Mapping[str, str], path: str, revision: str | None, party: str) -> bool:
    """``elicitation: {}`` stands for form elicitation."""
    return party == "client" and path == "elicitation.form" and states.get("elicitation") == "empty"
