"""What a client's declaration varies with: pairs of runs that differ in one thing and declare differently."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

import pandas as pd

from mcplab.comparison import declares, speaking
from mcplab.frames.table import build
from mcplab.jsontext import printable
from mcplab.model import COLUMNS, ArgumentError
from mcplab.spec import ROOT, path_key
from mcplab.tiers import each
from mcplab.traces import Trace
from mcplab.versions import label_key

OF_THE_RECORDER: Final = ("server_asks", "server_get", "note")
"""Members of a header's ``config`` that speak of the recording, not of the client."""

COMMAND: Final = ("how", "command", "cli", "argv", "args")
"""Members that say how the client was started."""

MOST: Final = 400
"""Different configurations of one client beyond which joint differences are not searched."""

MOST_VALUES: Final = 100
"""Of how many values of one thing, all else equal, each pair is looked at."""

NAMELESS: Final = "unknown"
"""Stands for the client where none gave its name."""

ABOUT: Final = ("client", "client_version", "client_info", "transport")
_RELEASE: Final = ("version", "client_version")
_SHOWN: Final = 5
Setup = dict[tuple[str, str], str]
"""(factor, name) -> value as JSON text. What is not set has no entry."""


def configuration(trace: Trace) -> dict[str, Any]:
    """What the header says of the client's configuration, without what it says of the recording."""
    config = trace.header.get("config")
    return {k: v for k, v in config.items() if k not in OF_THE_RECORDER} if isinstance(config, dict) else {}


def settings(config: Mapping[str, Any]) -> dict[str, str]:
    """A header's ``config`` as single settings: name -> JSON text.

    An empty text, list or object at the top says that nothing was set there. Below it everything counts: a server
    entry's ``elicitation: {}`` is set. An object is taken apart into its members, and so is text that is TOML.
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        if value in ("", [], {}) or value is None:
            continue
        if isinstance(value, str) and "=" in value and len(value) <= 10_000:
            try:
                value = tomllib.loads(value)
            except (tomllib.TOMLDecodeError, RecursionError):
                pass
        inner = value if isinstance(value, dict) else {"": value}
        for key, one in inner.items():
            found[printable(f"{name}.{key}" if key else name)] = json.dumps(one, ensure_ascii=False, default=str)
    return found


class Said(NamedTuple):
    """One declaring message: where it is, its connection and revision, its paths with their states."""

    proof: tuple[str, int]
    conn: str
    revision: str | None
    states: dict[str, str]


class Run:
    """One instance: what was set, and what it declared. ``setup`` None: nothing is known of its settings."""

    def __init__(
        self, instance: str, setup: Setup | None, era: str, said: list[Said], version: str | None, info: str | None
    ) -> None:
        self.instance = instance
        self.setup = setup
        self.era = era
        self.said = said
        self.version = version
        self.info = info
        self.first = said[0].proof
        self.paths = {path for one in said for path in one.states}
        self._states: dict[str, str] = {}

    def state(self, path: str) -> str:
        """The state of a path; absent where it is not there, ``varies`` where messages differ."""
        found = self._states.get(path)
        if found is None:
            states = {one.states.get(path, "absent") for one in self.said}
            found = self._states[path] = states.pop() if len(states) == 1 else "varies"
        return found

    @property
    def settings(self) -> dict[str, str]:
        """What was set, and how the client was started: name -> JSON text."""
        return {
            name: text for (kind, name), text in (self.setup or {}).items() if kind in ("configuration", "sub-command")
        }

    def declares(self, path: str) -> str:
        """``yes``, ``no``, or ``varies`` where messages differ."""
        found = {declares(one.states, path, one.revision) for one in self.said}
        return "varies" if len(found) > 1 else "yes" if found.pop() else "no"

    def evidence(self, path: str) -> tuple[str, int]:
        """A message that shows it; the first declaration, where the path is not there."""
        return next((one.proof for one in self.said if path in one.states), self.first)

    def changes(self, path: str) -> dict[tuple[str, str, str], tuple[Said, Said]]:
        """(factor, state, state) -> two messages that differ so: of one connection (``request``), else of two.

        A change back is the same difference.
        """
        found: dict[tuple[str, str, str], tuple[Said, Said]] = {}
        last: dict[str, Said] = {}
        for one in self.said:
            self._change(found, "request", path, last.get(one.conn, one), one)
            last[one.conn] = one
        if not found:
            for one in self.said:
                self._change(found, "connection", path, self.said[0], one)
        return found

    @staticmethod
    def _change(found: dict[tuple[str, str, str], tuple[Said, Said]], factor: str, path: str, *two: Said) -> None:
        before, after = (one.states.get(path, "absent") for one in two)
        if before != after and (factor, after, before) not in found:
            found.setdefault((factor, before, after), (two[0], two[1]))


def runs(traces: Any, client: str | None = None) -> dict[str, list[Run]]:
    """Client -> its runs, in the order of the captures. ``client``: a product or a ``clientInfo.name``; None: all."""
    rows = speaking(traces, "client")
    if client is not None:
        rows = rows[(rows["client"] == client) | (rows["client_info"] == client)]
    links = traces.connections
    servers = dict(zip(links["instance"], zip(links["server"], links["server_version"], strict=True), strict=True))
    headers = {trace.name: (_set_up(trace), trace.header) for trace in each(traces)}
    names = ("instance", "trace", "conn", "seq", "revision", "path", "state", "spoken", *ABOUT)
    said: dict[str, list[Said]] = {}
    about: dict[str, tuple[Any, ...]] = {}
    eras: dict[str, set[str]] = {}
    lists = [rows[name].tolist() for name in names]
    for instance, trace, conn, seq, revision, path, state, era, *rest in zip(*lists, strict=True):
        messages = said.setdefault(instance, [])
        if not messages or messages[-1].proof != (trace, seq) or path in messages[-1].states:
            messages.append(Said((trace, seq), conn, revision if isinstance(revision, str) else None, {}))
        messages[-1].states[path] = state
        about.setdefault(instance, (trace, *(one if isinstance(one, str) else None for one in rest)))
        eras.setdefault(instance, set()).add(era)
    found: dict[str, list[Run]] = {}
    for instance, (trace, product, version, info, transport) in about.items():
        own, header = headers[trace]
        setup: Setup | None = None
        if own is not None:
            setup = {
                ("transport", "transport"): _json(transport),
                ("server", "server"): _server(header, servers[instance]),
            }
            if version is not None:
                setup[_RELEASE] = _json(version)
            setup |= {(_factor(name), name): text for name, text in own.items()}
        era = "+".join(sorted(eras[instance]))
        found.setdefault(product or NAMELESS, []).append(Run(instance, setup, era, said[instance], version, info))
    return found


def _server(header: Mapping[str, Any], wire: tuple[Any, Any]) -> str:
    """Which server it was, and what it speaks: as the header says, else the name and version that it gave itself."""
    stated, mode = header.get("server"), header.get("server_mode")
    if isinstance(stated, dict):
        wire = stated.get("name"), stated.get("version")
    elif isinstance(mode, str):
        return _json(mode)
    return json.dumps([*(one if isinstance(one, str) else None for one in wire), mode], default=str)


def _json(value: Any) -> str:
    return json.dumps(value if isinstance(value, str) else None, ensure_ascii=False)


def _set_up(trace: Trace) -> dict[str, str] | None:
    """The settings that a header tells; by its label alone where it has no ``config``; None where it tells nothing."""
    if isinstance(trace.header.get("config"), dict):
        return settings(configuration(trace))
    label = trace.header.get("label")
    return {"label": json.dumps(label, ensure_ascii=False)} if isinstance(label, str) and label else None


def _factor(name: str) -> str:
    return "sub-command" if name.partition(".")[0] in COMMAND else "configuration"


# The rule --------------------------------------------------------------------------------------------------


class _Difference:
    """What one change of one thing did to a path, over all contexts in which it was tried."""

    def __init__(self) -> None:
        self.contexts = 0
        self.given: set[tuple[str, str]] | None = None
        self.a: list[tuple[str, int]] = []
        self.b: list[tuple[str, int]] = []

    def add(self, given: set[tuple[str, str]], a: tuple[str, int], b: tuple[str, int]) -> None:
        self.contexts += 1
        self.given = given if self.given is None else self.given & given
        if len(self.a) < _SHOWN:
            self.a.append(a)
            self.b.append(b)


def variance(traces: Any, client: str | None = None) -> pd.DataFrame:
    """Which paths of a client's declaration vary with what.

    The rule: a path varies with a thing where two runs differ in that thing alone and the path's state differs. Things
    are the release, the transport, the server (its name, release and the eras that it speaks), how the client was
    started and each setting that the header's ``config`` tells. If the eras spoken differ along with the server, the
    thing is the era. Where no two such runs exist, what differs between the closest two is named together, joined by
    ``+``: it cannot be told apart. Where messages of one instance differ, the factor is ``request``, or ``connection``
    if only those of different connections do. Runs whose header tells nothing of their settings explain nothing:
    ``unknown``. Runs of a client that gave no name are not compared, as nobody knows whether they are of one.

    Args:
        traces: Traces, or one Trace.
        client: a product, or a ``clientInfo.name``; None: every client, one below the other.

    Returns:
        The columns of ``variance`` (docs/columns.md): a row a path, thing, two values and two states. ``contexts`` says
        in how many setups that are else equal it was so, ``same`` in how many the two values made no difference,
        ``given`` what else was set in all of the former. No row: nothing varies.

    Raises:
        TraceError: no capture here is of that client.
    """
    found = runs(traces, client)
    if client is not None and not found:
        known = ", ".join(sorted(set(traces.connections["client"].dropna()))) or "none that is named"
        raise ArgumentError(f"no declaration of client {client!r} was captured; these captures have: {known}")
    rows: list[dict[str, Any]] = []
    for product in sorted(found, key=label_key):
        if product != NAMELESS:
            rows += _of_client(product, found[product])
    return build("variance", {name: [row.get(name) for row in rows] for name in COLUMNS["variance"]})


def _of_client(product: str, all_runs: list[Run]) -> Iterator[dict[str, Any]]:
    seen = {path for run in all_runs for path in run.paths} - {ROOT}
    paths = sorted(seen, key=lambda path: path_key(path, "client"))
    if {one.states.get(ROOT) for run in all_runs for one in run.said} - {"empty", "object"}:
        paths.insert(0, ROOT)
    varied = [path for path in paths if len({run.state(path) for run in all_runs}) > 1]
    alone = _alone(all_runs, set(varied))
    for path in paths:
        changes: dict[tuple[str, str, str], list[tuple[Said, Said]]] = {}
        for run in all_runs:
            if run.state(path) == "varies":
                for what, two in run.changes(path).items():
                    changes.setdefault(what, []).append(two)
        for (factor, state_a, state_b), pairs in changes.items():
            yield {
                "client": product, "path": path, "factor": factor, "name": factor, "state_a": state_a,
                "state_b": state_b, "contexts": len(pairs), "same": 0,
                "evidence_a": shown([one.proof for one, _ in pairs]),
                "evidence_b": shown([other.proof for _, other in pairs]),
            }  # fmt: skip
        if path not in varied:
            continue
        for (factor, name, a, b, state_a, state_b), one, same in alone.get(path) or _joint(all_runs, path):
            yield {
                "client": product, "path": path, "factor": factor, "name": name, "a": a, "b": b, "state_a": state_a,
                "state_b": state_b, "contexts": one.contexts, "same": same, "given": _given(one.given),
                "evidence_a": shown(one.a), "evidence_b": shown(one.b),
            }  # fmt: skip


def shown(proof: Sequence[tuple[str, int]], most: int = _SHOWN) -> str:
    """The first of some messages, as ``trace#seq``."""
    return " ".join(f"{trace}#{seq}" for trace, seq in list(dict.fromkeys(proof))[:most])


def _given(given: set[tuple[str, str]] | None) -> str | None:
    """Settings as a JSON object, sorted; None where nothing else was set."""
    if not given:
        return None
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in sorted(given)) + "}"


Row = tuple[tuple[str, str, "str | None", "str | None", str, str], _Difference, int]


def _alone(all_runs: list[Run], paths: set[str]) -> dict[str, list[Row]]:
    """path -> the differences between runs that differ in one thing only."""
    names = sorted({key for run in all_runs if run.setup is not None for key in run.setup})
    found: dict[str, dict[tuple[Any, ...], _Difference]] = {}
    tried: dict[tuple[str, str, str | None, str | None], int] = {}
    kept: dict[tuple[Any, ...], int] = {}
    for key in names:
        groups: dict[frozenset[Any], dict[str | None, Run]] = {}
        for run in all_runs:
            if run.setup is not None:
                rest = frozenset(item for item in run.setup.items() if item[0] != key)
                groups.setdefault(rest, {}).setdefault(run.setup.get(key), run)
        for rest, values in groups.items():
            if key == _RELEASE:
                values.pop(None, None)  # of an unknown release nobody knows that it is another one
            given = {(name, text) for (factor, name), text in rest if factor == "configuration"}
            for a, b in combinations(sorted(values, key=_value_key)[:MOST_VALUES], 2):
                one, other = values[a], values[b]
                factor = "era" if key[0] == "server" and one.era != other.era else key[0]
                tried[factor, key[1], a, b] = tried.get((factor, key[1], a, b), 0) + 1
                for path in paths:
                    states = one.state(path), other.state(path)
                    if states[0] != states[1]:
                        what = (factor, key[1], a, b, *states)
                        found.setdefault(path, {}).setdefault(what, _Difference()).add(
                            given, one.evidence(path), other.evidence(path)
                        )
                        kept[path, factor, key[1], a, b] = kept.get((path, factor, key[1], a, b), 0) + 1
    return {
        path: [
            (what, one, tried[what[:4]] - kept[(path, *what[:4])])
            for what, one in sorted(rows.items(), key=lambda row: (-row[1].contexts, _order(row[0])))
        ]
        for path, rows in found.items()
    }


def _value_key(value: str | None) -> Any:
    return value is not None, label_key(value.strip('"')) if value is not None else ()


def _order(what: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple("" if one is None else str(one) for one in what)


def _joint(all_runs: list[Run], path: str) -> list[Row]:
    """Where no single thing explains a path: the fewest things that differ together between two of its states.

    Two runs of equal settings, or of settings that nobody knows, differ in nothing that was recorded: ``unknown``.
    """
    setups: dict[tuple[frozenset[Any] | None, str], Run] = {}
    for run in all_runs:
        setups.setdefault((None if run.setup is None else frozenset(run.setup.items()), run.state(path)), run)
    pairs = [
        (one, other)
        for (_, one), (_, other) in combinations(setups.items(), 2)
        if one.state(path) != other.state(path)
    ] if len(setups) <= MOST else []  # fmt: skip
    known = [(one.setup, other.setup, one, other) for one, other in pairs]
    apart = [
        ({key for key, _ in a.items() ^ b.items()}, dict(a.items() & b.items()), one, other)
        for a, b, one, other in known if a is not None and b is not None and (_RELEASE in a) is (_RELEASE in b)
    ]  # fmt: skip
    least = min((len(keys) for keys, _, _, _ in apart), default=0)
    apart = [row for row in apart if len(row[0]) == least]
    if not apart:  # nothing is known of the settings, or there are too many to look at each pair
        first: dict[str, Run] = {}
        for run in all_runs:
            first.setdefault(run.state(path), run)
        apart = [(set(), {}, *list(first.values())[:2])]
    found: dict[tuple[Any, ...], _Difference] = {}
    for keys, both, one, other in apart:
        differ = sorted(keys)
        sets = [run.setup or {} for run in (one, other)]
        values = [_given({(key[1], given[key]) for key in differ if key in given}) for given in sets]
        factor = "+".join(dict.fromkeys(key[0] for key in differ)) or "unknown"
        name = ", ".join(key[1] for key in differ) or None
        given = {(name, text) for (kind, name), text in both.items() if kind == "configuration"}
        what = (factor, name, *values, one.state(path), other.state(path))
        found.setdefault(what, _Difference()).add(given, one.evidence(path), other.evidence(path))
    return [(what, one, 0) for what, one in sorted(found.items(), key=lambda item: _order(item[0]))]
