"""Statements of every tier in one long table, and side by side: what was sent, used, read and listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import pandas as pd

from mcplab import comparison
from mcplab.citing import Cites
from mcplab.comparison import PLACES, Fixed, declares, speaking
from mcplab.frames.table import build, empty
from mcplab.model import COLUMNS, ArgumentError
from mcplab.published import claims as bundled
from mcplab.published import fold
from mcplab.rulebook import exercised
from mcplab.rulebook.used import PING
from mcplab.spec import ROOT, parent, path_key, split
from mcplab.traces import Trace
from mcplab.versions import label_key

TIERS: Final = ("observed", "exercised", "read", "listed")
BY: Final = {**comparison.BY, "era": "era"}
_ABOUT: Final = (
    "conn", "client", "client_version", "client_info", "config", "transport", "server", "era", "revision",
)  # fmt: skip
_SEQS: Final = re.compile(r"#([0-9]+)(?=; |$)")


def statements(traces: Any = None, claims: pd.DataFrame | None = None, *, tier: str | None = None) -> pd.DataFrame:
    """Every statement on a capability path, with where it comes from: one long table.

    Args:
        traces: Traces, or one Trace; None: no captures.
        claims: what ``mcplab.claims`` gives (several: ``pandas.concat``); None: the bundled ones.
        tier: only this one: ``observed`` (a message declared it), ``exercised`` (traffic used it: ``declares``,
            ``implements`` and counts), ``read`` (source or documents) or ``listed`` (a published table).

    Returns:
        The columns of ``statements`` (docs/columns.md). ``evidence`` is ``trace#seq`` (several: with ``; `` between),
        or a citation. A claim's ``client`` is the product of the captures that it names: by product or
        ``clientInfo.name``, else by a name equal but for case, spaces and punctuation; where captures of several
        products send that ``clientInfo.name`` it stays as the source has it, as it cannot be told whom it means.

    Raises:
        TraceError: ``tier`` is none of these, or ``traces`` are none.
    """
    wanted = TIERS if tier is None else (tier,)
    if unknown := [name for name in wanted if name not in TIERS]:
        raise ArgumentError(f"tier={unknown[0]!r}: it is one of {', '.join(TIERS)}")
    parts: list[pd.DataFrame] = []
    if traces is not None and "observed" in wanted:
        parts += [observed(traces, party) for party in PLACES]
    if traces is not None and "exercised" in wanted:
        parts.append(used(traces))
    if "read" in wanted or "listed" in wanted:
        told = joined(bundled() if claims is None else claims, traces)
        parts.append(told[told["tier"].isin(wanted)])
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else empty("statements")


def each(traces: Any) -> Iterable[Trace]:
    """The captures of Traces, or of one Trace."""
    return [traces] if hasattr(traces, "record") else traces


def days(traces: Any) -> dict[str, str | None]:
    """Trace -> day of the capture: its header's, else that of its first event."""
    firsts = traces.connections.groupby("trace")["first"].min()
    found: dict[str, str | None] = {}
    for trace in each(traces):
        stated = trace.header.get("captured_at")
        first = firsts.get(trace.name)
        clock = None if first is None or pd.isna(first) else first.strftime("%Y-%m-%d")
        found[trace.name] = stated[:10] if isinstance(stated, str) and len(stated) >= 10 else clock
    return found


# Tiers of the wire -----------------------------------------------------------------------------------------


def observed(traces: Any, party: str) -> pd.DataFrame:
    """What messages declared, as ``compare`` counts them: a row a path and message."""
    rows = speaking(traces, party)
    day = days(traces)
    known: dict[tuple[Any, ...], str] = {}
    said: list[str | None] = []
    for path, state, revision in zip(rows["path"], rows["state"], rows["revision"], strict=True):
        if path == ROOT:
            said.append(None)
            continue
        key = (path, state, revision)
        if key not in known:
            spoken = revision if isinstance(revision, str) else None
            known[key] = "yes" if declares({path: state}, path, spoken, party) else "no"
        said.append(known[key])
    columns = {name: rows[name].array for name in COLUMNS["statements"] if name in rows}
    return _filled(len(rows), columns | {
        "name": rows["client"].array, "declares": said, "seq": rows["seq"].astype("Int64").array,
        "date": [day.get(trace) for trace in rows["trace"]],
    })  # fmt: skip


def used(traces: Any) -> pd.DataFrame:
    """What traffic did with it: a row a path of each party and instance (``exercised``), found out once a Traces."""
    if traces not in _used:
        _used[traces] = _uses(traces)
    return _used[traces].copy(deep=False)


_used: WeakKeyDictionary[Any, pd.DataFrame] = WeakKeyDictionary()


def _uses(traces: Any) -> pd.DataFrame:
    table = exercised(traces)
    table = table[table["path"] != PING]  # no capability: nobody states it
    links = traces.connections.drop_duplicates("instance").set_index("instance")
    links = links.rename(columns={"selected": "revision"})
    day = days(traces)
    about = {
        name: links[name].reindex(table["instance"]).array
        for name in (
            "conn",
            "client",
            "client_version",
            "client_info",
            "config",
            "transport",
            "server",
            "era",
            "revision",
        )
    }
    seqs = [text.split(", ") if isinstance(text, str) else [] for text in table["seqs"]]
    counts = zip(table["n"], table["worked"], table["refused"], strict=True)
    words = {True: "yes", False: "no"}
    return _filled(len(table), about | {
        **{name: table[name].array for name in ("trace", "instance", "party", "path", "status")},
        "name": about["client"], "tier": ["exercised"] * len(table),
        "seq": [int(found[0]) if found else None for found in seqs],
        "declares": ["unknown" if pd.isna(one) else words[bool(one)] for one in table["declared"]],
        "implements": ["yes" if worked else "no" if n and refused >= n else "unknown" for n, worked, refused in counts],
        **{name: table[name].astype("Int64").array for name in ("n", "worked", "refused")},
        "text": table["why"].array, "date": [day.get(trace) for trace in table["trace"]],
        "evidence": [
            "; ".join(f"{trace}#{seq}" for seq in found) or None
            for trace, found in zip(table["trace"], seqs, strict=True)
        ],
    })  # fmt: skip


def _filled(count: int, columns: dict[str, Any]) -> pd.DataFrame:
    blank = [None] * count
    return build("statements", {name: columns.get(name, blank) for name in COLUMNS["statements"]})


# Tiers of documents ----------------------------------------------------------------------------------------


def joined(claims: pd.DataFrame, traces: Any) -> pd.DataFrame:
    """Claims with the products of these captures as ``client``, where it can be told which one is meant."""
    lacking = [name for name in ("client", "path", "tier", "evidence") if name not in claims.columns]
    if lacking:
        raise ArgumentError(f"these are no claims (no column {', '.join(lacking)}); mcplab.claims(path) reads them")
    if traces is None:
        return claims
    links = traces.connections
    products = set(links["client"].dropna())
    infos: dict[str, set[str]] = {}
    for info, product in zip(links["client_info"], links["client"], strict=True):
        if isinstance(info, str) and isinstance(product, str):
            infos.setdefault(info, set()).add(product)
    folded = {fold(product): product for product in sorted(products)}
    found: dict[tuple[Any, Any], Any] = {}
    for client, name in dict.fromkeys(zip(claims["client"], claims["name"], strict=True)):
        meant = infos.get(name, set())
        if client in products or not isinstance(client, str):
            found[client, name] = client
        elif meant:
            found[client, name] = next(iter(meant)) if len(meant) == 1 else client
        else:
            found[client, name] = folded.get(fold(client), client)
    named = [found[pair] for pair in zip(claims["client"], claims["name"], strict=True)]
    return claims.assign(client=pd.array(named, dtype="str"))


# Side by side ----------------------------------------------------------------------------------------------


def compare(
    traces: Any,
    *,
    by: str | Sequence[str] = "client",
    party: str = "client",
    tier: str = "observed",
    long: bool = False,
    claims: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Which capability paths who declares, by one tier of statements or by all of them.

    Args:
        traces: Traces, or one Trace. A capture of your own joins the bundled ones in
            ``mcplab.load(["bundled:", "mine.jsonl"])``; its client need not be known to anyone.
        by: client, client_version, config, transport, era, instance or trace, or a list of them.
        party: whose declarations: client or server.
        tier: ``observed`` (messages), ``exercised`` (what was used), ``read``, ``listed``, or ``all``, which leaves out
            clients that only a published table lists.
        long: one row a cell in place of a matrix.
        claims: for ``read``, ``listed`` and ``all``: what ``mcplab.claims`` gives; None: the bundled ones.

    Returns:
        Index ``path``: ``$`` first, then the specification's order, members below their parent. Columns: who (a
        MultiIndex for a list); with ``all`` a last level ``tier``. Cells of ``observed``: a state; ``varies`` (more
        than one was seen); ``unknown`` (no declaration of this party was captured). Cells of the other tiers: ``yes``,
        ``no``, ``varies`` (the statements differ, or it depends on a condition) or ``unknown``; ``exercised`` says
        ``yes`` where a use came to something and ``no`` where each was refused.
        ``.attrs["evidence"][path, who]``: [(trace, seq)]; of ``read`` and ``listed`` [citation]. ``.attrs["counts"]
        [path, who]``: {state or answer: n}; ``.attrs["cite"][path, who]``: the first of the evidence, as a paper cites
        it (``fast-agent-0.10.48-http-legacy-default#3``); ``.attrs["instances"][who]`` and ``.attrs["era"][who]``: what
        a column rests on. With ``long``: columns path, the ``by`` names, tier (``all``), state, states (n a state),
        messages, instances, evidence, cite.

    Raises:
        TraceError: ``by``, ``party`` or ``tier`` is not known.
    """
    if tier not in (*TIERS, "all"):
        raise ArgumentError(f"tier={tier!r}: it is one of {', '.join(TIERS)}, all")
    if tier == "observed":
        return comparison.compare(traces, by=by, party=party, long=long)
    keys = [by] if isinstance(by, str) else list(by)
    first = comparison.compare(traces, by=by, party=party)  # says what is wrong with the arguments, too
    whole = statements(traces, claims, tier=None if tier == "all" else tier)
    whole = whole[whole["party"] == party]
    if tier == "all":
        known = {*traces.connections["client"].dropna(), *whole.loc[whole["tier"] == "read", "client"]}
        whole = whole[(whole["tier"] != "listed") | whole["client"].isin(known)]
    seen = {ROOT, *(first.index if tier == "all" else ()), *whole["path"]}
    paths = sorted(seen, key=lambda path: path_key(path, party))
    parts = {} if tier != "all" else {"observed": _observed(first, paths)}
    for one in TIERS[1:] if tier == "all" else (tier,):
        parts[one] = _answers(whole[whole["tier"] == one], keys, by, paths, one)
    frame = _beside(parts, keys) if tier == "all" else parts[tier]
    names = traces.connections["trace"].unique()
    frame.attrs |= {"party": party, "tier": tier, "cite": Cites(frame.attrs["evidence"], names)}
    return _long(frame, keys, tier) if long else frame


def _observed(frame: pd.DataFrame, paths: list[str]) -> pd.DataFrame:
    """The matrix of messages with further paths: absent where something was declared, else unknown."""
    out = frame.reindex(paths)
    for who in frame.columns:
        out[who] = out[who].fillna("unknown" if frame.loc[ROOT, who] == "unknown" else "absent")
    return out


def _answers(rows: pd.DataFrame, keys: list[str], by: Any, paths: list[str], tier: str) -> pd.DataFrame:
    said = rows["implements"] if tier == "exercised" else rows["declares"].fillna(rows["implements"])
    whos = comparison.labels(rows, [BY[key] for key in keys], by)
    counts: dict[tuple[str, Any], dict[str, int]] = {}
    evidence: dict[tuple[str, Any], list[Any]] = {}
    closed: dict[Any, list[Any]] = {}
    runs: dict[Any, set[Any]] = {}
    eras: dict[Any, set[str]] = {}
    for who, path, word, only, proof, trace, instance, era in zip(
        whos, rows["path"], said.fillna("unknown"), rows["only"].fillna(False), rows["evidence"], rows["trace"],
        rows["instance"], rows["era"], strict=True,
    ):  # fmt: skip
        count = counts.setdefault((path, who), {})
        count[word] = count.get(word, 0) + 1
        rests = evidence.setdefault((path, who), [])
        if isinstance(proof, str):
            found = [(trace, int(seq)) for seq in _SEQS.findall(proof)] if tier == "exercised" else proof.split("; ")
            rests += [one for one in found if one not in rests]
        if only:
            closed[who] = rests
        runs.setdefault(who, set()).update({instance} if isinstance(instance, str) else ())
        eras.setdefault(who, set()).update({era} if isinstance(era, str) and era != "unknown" else ())
    labels = sorted(
        runs, key=lambda who: [label_key(str(part)) for part in (who if isinstance(who, tuple) else (who,))]
    )
    cells: dict[Any, list[str]] = {}
    for who in labels:
        column = cells[who] = []
        for path in paths:
            word = _word(counts.get((path, who), {}))
            if word == "unknown" and who in closed and path != ROOT and _left_out(path, who, counts):
                word = "no"
                evidence[path, who] = closed[who]
            column.append(word)
    frame = comparison.matrix([cells[who] for who in labels], paths, comparison.columns(labels, keys, by))
    frame.attrs |= {
        "evidence": Fixed(evidence), "counts": Fixed(counts), "tier": tier,
        "instances": Fixed({who: len(found) for who, found in runs.items()}),
        "era": Fixed({who: "+".join(sorted(found)) or "unknown" for who, found in eras.items()}),
    }  # fmt: skip
    return frame


def _parts(who: Any) -> tuple[Any, ...]:
    return who if isinstance(who, tuple) else (who,)


def _word(count: dict[str, int]) -> str:
    words = set(count) - {"unknown"}
    return "unknown" if not words else next(iter(words)) if len(words) == 1 else "varies"


def _left_out(path: str, who: Any, counts: dict[tuple[str, Any], dict[str, int]]) -> bool:
    """Nothing is said of the path, nor of what it stands below, or only that it is not declared."""
    top = split(path)[0]
    if path == top:
        return (path, who) not in counts
    above = parent(path)
    while True:
        if (above, who) in counts:
            return _word(counts[above, who]) == "no"
        if "." not in above and "[" not in above:
            return _left_out(top, who, counts)
        above = parent(above)


def _beside(parts: dict[str, pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    """The matrices of the tiers in one, ``tier`` as the last level of the columns."""
    names = [*keys, "tier"]
    whos = [
        ((*(who if isinstance(who, tuple) else (who,)), tier), tier, who)
        for tier, part in parts.items()
        for who in part.columns
    ]
    whos.sort(key=lambda one: [label_key(str(name)) for name in one[0][:-1]] + [TIERS.index(one[1])])
    frame = pd.DataFrame({whole: parts[tier][who] for whole, tier, who in whos})
    frame.columns = pd.MultiIndex.from_tuples([whole for whole, _, _ in whos], names=names)
    frame.index.name = "path"
    for name in ("evidence", "counts"):
        frame.attrs[name] = Fixed({
            (path, whole): parts[tier].attrs[name][path, who]
            for whole, tier, who in whos for path in frame.index if (path, who) in parts[tier].attrs[name]
        })  # fmt: skip
    for name in ("instances", "era"):
        frame.attrs[name] = Fixed({whole: parts[tier].attrs[name].get(who) for whole, tier, who in whos})
    return frame


def _long(frame: pd.DataFrame, keys: list[str], tier: str) -> pd.DataFrame:
    names = [*keys, "tier"] if tier == "all" else keys
    attrs = frame.attrs
    out: list[dict[str, Any]] = []
    for who in frame.columns:
        for path, state in frame[who].items():
            proof = attrs["evidence"].get((path, who), [])
            counts = attrs["counts"].get((path, who), {})
            out.append({
                "path": path, **dict(zip(names, _parts(who), strict=True)),
                "state": state, "states": ", ".join(f"{name}:{counts[name]}" for name in sorted(counts)),
                "messages": sum(isinstance(one, tuple) for one in proof), "instances": attrs["instances"].get(who) or 0,
                "evidence": " ".join(f"{one[0]}#{one[1]}" if isinstance(one, tuple) else one for one in proof),
                "cite": attrs["cite"].get((path, who), ""),
            })  # fmt: skip
    wanted = ["path", *names, "state", "states", "messages", "instances", "evidence", "cite"]
    made = pd.DataFrame(out, columns=wanted)
    return made.astype({name: "str" for name in wanted if name not in ("messages", "instances")})
