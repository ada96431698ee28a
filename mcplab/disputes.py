"""What documents say and something else speaks against: captures, or another document; and what can be told of why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import pandas as pd

from mcplab.citing import proofs
from mcplab.frames.table import build
from mcplab.model import COLUMNS
from mcplab.published import claims as bundled
from mcplab.spec import ROOT, path_key, split
from mcplab.tiers import days, joined, used
from mcplab.varying import Run, runs, shown, variance
from mcplab.versions import label_key, version_key

BY_DEFAULT: Final = "by default"
WITHIN: Final = ("transport", "era", "server", "sub-command", "configuration", "request", "connection")
"""Factors of ``variance`` that differ within one release."""

Row = dict[str, Any]


def _records(claims: pd.DataFrame) -> list[Row]:
    return claims.astype(object).where(claims.notna(), None).to_dict("records")  # type: ignore


@cache
def _readings() -> list[Row]:
    """What the bundled claims say of the source of single releases: it can tell whether another claim is wrong."""
    return [row for row in _records(bundled()) if row["tier"] == "read" and row["client_version"] is not None]


def contradictions(traces: Any, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every claim that something speaks against, with versions and dates of both sides, and why, as far as it shows.

    A claim is held against the captures of its client (a published table's record: of that ``clientInfo.name``, where
    it was captured; of none, where several products send that name): against what they declare, what use of it came to
    (``implements``), and which settings switch it; and against the claims of other sources. ``by default`` is held
    against runs with no setting at all; a claim under any other condition is not held, as text is not understood here.
    What cannot be held against anything has no row.

    ``reason``, by the first rule that fits:

    - ``differs by configuration``: captures of one release both agree and disagree, and ``variance`` says with what.
    - ``changed since``: captures of older releases agree, those of newer ones do not, and no release has both. A claim
      about a release that was not captured is about an older one than those.
    - ``differs by release``: captures of some releases agree, and these are not all older than those that do not.
    - ``wrong``: no capture agrees, and they are of the very release that the claim is about; or a reading of the
      source of the release captured, among these claims or the bundled ones, says what the captures say.
    - ``unknown``: none of these. A claim about a release that nobody names, or that was not captured, may have been
      right when it was made; between two documents nothing here can tell.

    Args:
        traces: Traces, or one Trace.
        claims: what ``mcplab.claims`` gives; None: the bundled ones.

    Returns:
        The columns of ``contradictions`` (docs/columns.md), by client and path. ``why`` is the rule in a sentence.
    """
    told = joined(bundled() if claims is None else claims, traces)
    rows = _records(told)
    found = runs(traces)
    day = days(traces)
    out: list[Row] = []
    exercised = _exercised(traces, rows, found)
    sent = traces.connections.groupby("client_info")["client"].nunique()
    several = set(sent[sent > 1].index)  # nobody knows which of these products a record of that name means
    for client in dict.fromkeys(row["client"] for row in rows):
        own = [row for row in rows if row["client"] == client]
        if client in found:
            case = _Case(traces, client, found[client], own, day)
            for row in own:
                if row["client_info"] not in several:
                    out += case.against(row, exercised)
        out += _between(own)
    out.sort(key=lambda row: (label_key(str(row["client"])), path_key(row["path"]), row["tier"], str(row["source"])))
    return build("contradictions", {name: [row.get(name) for row in out] for name in COLUMNS["contradictions"]})


def _exercised(traces: Any, rows: Iterable[Row], found: dict[str, list[Run]]) -> pd.DataFrame | None:
    """What was exercised, where a claim speaks of it: it takes the longest to find out."""
    spoken = any(row["implements"] in ("yes", "no") and row["client"] in found for row in rows)
    return used(traces) if spoken else None


def _claim(row: Row, **more: Any) -> Row:
    """The claim's side of a row."""
    same = {name: row[name] for name in ("client", "party", "path", "tier", "source", "when")}
    cited = {"claimed_version": row["client_version"], "claimed_date": row["date"], "citation": row["evidence"]}
    return {**same, **cited, "instances": 0, "agree": 0, **more}


class _Case:
    """One captured client and what is claimed of it."""

    def __init__(
        self, traces: Any, client: str, found: list[Run], claims: list[Row], day: dict[str, str | None]
    ) -> None:
        self.traces = traces
        self.client = client
        self.runs = found
        self.claims = claims
        self.readings = [row for row in _readings() if row["client"] == client]
        self.day = day
        self._variance: pd.DataFrame | None = None

    def varied(self, path: str) -> pd.DataFrame:
        """What this path varies with."""
        found = self._variance
        if found is None:
            found = self._variance = variance(self.traces, self.client)
        return found[found["path"] == path]

    def meant(self, row: Row) -> list[Run]:
        """The runs that a claim is about, as far as it says."""
        named = [run for run in self.runs if run.info == row["client_info"]] if row["client_info"] else []
        found = named or self.runs
        if row["client_version"] in {run.version for run in found}:
            found = [run for run in found if run.version == row["client_version"]]
        return found

    def against(self, row: Row, exercised: pd.DataFrame | None) -> Iterator[Row]:
        """What the captures have against one claim."""
        if row["party"] == "client":
            if row["path"] == ROOT:
                yield from self._besides(row)
            elif row["declares"] in ("yes", "no") and row["when"] in (None, BY_DEFAULT):
                yield from self._declared(row, row["path"], row["declares"])
            if row["settings"] and row["path"] != ROOT:
                yield from self._settings(row)
        if exercised is not None and row["implements"] in ("yes", "no") and row["when"] is None:
            yield from self._implemented(row, exercised)

    def _besides(self, row: Row) -> Iterator[Row]:
        """Top-level members that a source leaves out which says that it names all."""
        if not row["only"]:
            return
        spoken = {
            split(one["path"])[0] for one in self.claims if one["source"] == row["source"] and one["path"] != ROOT
        }
        tops = {split(path)[0] for run in self.meant(row) for path in run.paths if path != ROOT}
        for top in sorted(tops - spoken, key=lambda path: path_key(path, "client")):
            yield from self._declared({**row, "path": top}, top, "no")

    def _declared(self, row: Row, path: str, claimed: str) -> Iterator[Row]:
        meant = self.meant(row)
        if row["when"] == BY_DEFAULT:
            meant = [run for run in meant if run.setup is not None and not run.settings]
        agree = [run for run in meant if run.declares(path) == claimed]
        others = [run for run in meant if run.declares(path) != claimed]
        if not others:
            return
        words = {run.declares(path) for run in meant}
        word = words.pop() if len(words) == 1 else "varies"
        reason, why = self._reason(row, path, agree, others)
        yield _claim(
            row, what="declares", claimed=claimed, against="observed", found=word,
            instances=len(meant), agree=len(agree), reason=reason, why=why,
            evidence=shown([run.evidence(path) for run in others]), **self._side(others),
        )  # fmt: skip

    def _side(self, found: Sequence[Run]) -> Row:
        """Releases and days of some runs."""
        dates = sorted({day for run in found if (day := self.day.get(run.first[0])) is not None})
        return {
            "found_version": ", ".join(_versions(found)) or None,
            "found_date": None if not dates else dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        }

    def _reason(self, row: Row, path: str, agree: Sequence[Run], others: Sequence[Run]) -> tuple[str, str]:
        both = set(_versions(agree)) & set(_versions(others))
        if both or (agree and not (_versions(agree) and _versions(others))):
            rows = self.varied(path)
            rows = rows[rows["factor"].isin(WITHIN)]
            if len(rows):
                pairs = dict.fromkeys(zip(rows["factor"], rows["name"], strict=True))
                names = ", ".join(factor if name == factor else f"{factor} ({name})" for factor, name in pairs)
                return "differs by configuration", f"captures of one release differ, with {names}"
            return "unknown", "captures of one release differ, and nothing that was recorded tells with what"
        if agree:
            return _by_release(row["client_version"], _versions(agree), _versions(others))
        return self._wrong(
            row, others, lambda one: one["path"] == path and one["declares"] in {run.declares(path) for run in others}
        )

    def _wrong(self, row: Row, others: Sequence[Run], says_so: Any) -> tuple[str, str]:
        """No capture agrees: is the claim wrong, or can that not be told?"""
        captured = _versions(others)
        version = row["client_version"]
        if version is not None and captured == [version]:
            return "wrong", f"no capture of {version}, the very release that the claim is about, agrees"
        readings = [
            one for one in (*self.claims, *self.readings)
            if one["tier"] == "read" and one["client_version"] in captured and one["source"] != row["source"]
            and says_so(one)
        ]  # fmt: skip
        if readings:
            one = readings[0]
            return (
                "wrong",
                f"no capture agrees, nor does a reading of {one['client_version']} itself: {one['evidence']}",
            )
        if version is not None:
            return (
                "unknown",
                f"the claim is about {version}, and what was captured is {', '.join(captured) or 'unnamed'}",
            )
        return "unknown", "no capture agrees, but the claim names no release: it may have been right for another"

    def _settings(self, row: Row) -> Iterator[Row]:
        """Do these settings switch the path by themselves?"""
        path, names = row["path"], [name.strip() for name in row["settings"].split(",")]
        top = split(path)[0]
        tried = [
            run for run in self.meant(row)
            if any(key == name or key == f"{name}.{top}" for name in names for key in run.settings)
        ]  # fmt: skip
        rows = self.varied(path)
        rows = rows[rows["factor"].isin(("configuration", "sub-command"))]
        alone = list(dict.fromkeys(rows.loc[rows["given"].isna(), "name"]))
        within = rows[rows["name"].map(lambda name: _below(name, names)).astype(bool)]
        if not tried or within["given"].isna().any():
            return
        said = f"switched by {', '.join(alone)}" if alone else "switched by no setting that was tried"
        for name, given in dict.fromkeys(zip(within["name"], within["given"], strict=True)):
            said += f"; by {name} only given {given}"
        others = [name for name in alone if not _below(name, names)]

        def says_so(one: Row) -> bool:
            stated = [name.strip() for name in (one["settings"] or "").split(",") if name.strip()]
            return one["path"] == path and bool(stated) and set(stated) <= set(others)

        reason, why = self._wrong(row, tried, says_so)
        proof = [one for text in rows.loc[rows["given"].isna(), "evidence_b"] for one in proofs(text)]
        proof += [run.evidence(path) for run in tried[:5]]
        yield _claim(
            row, what="settings", claimed=f"switched by {', '.join(names)}", against="observed", found=said,
            instances=len(tried), agree=0, reason=reason, why=why,
            evidence=shown(proof, 10), **self._side(tried),
        )  # fmt: skip

    def _implemented(self, row: Row, exercised: pd.DataFrame) -> Iterator[Row]:
        rows = exercised[
            (exercised["client"] == self.client) & (exercised["path"] == row["path"])
            & (exercised["party"] == row["party"]) & exercised["implements"].isin(["yes", "no"])
        ]  # fmt: skip
        for name in ("client_info", "client_version"):
            if row[name] is not None and (rows[name] == row[name]).any():
                rows = rows[rows[name] == row[name]]
        others = rows[rows["implements"] != row["implements"]]
        if others.empty:
            return
        agree = rows[rows["implements"] == row["implements"]]
        versions = [sorted(set(part["client_version"].dropna()), key=version_key) for part in (agree, others)]
        if set(versions[0]) & set(versions[1]):
            reason, why = (
                "unknown",
                "uses in one release came to something and were refused; by what, cannot be told here",
            )
        elif len(agree):
            reason, why = _by_release(row["client_version"], *versions)
        elif row["client_version"] is not None and versions[1] == [row["client_version"]]:
            reason, why = "wrong", f"no use in {versions[1][0]}, the very release that the claim is about, agrees"
        else:
            reason, why = "unknown", "no use agrees, but the claim is about no release that was captured"
        dates = sorted(set(others["date"].dropna()))
        yield _claim(
            row, what="implements", claimed=row["implements"], against="exercised",
            found="varies" if len(agree) else "no" if row["implements"] == "yes" else "yes",
            found_version=", ".join(versions[1]) or None,
            found_date=None if not dates else dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
            instances=len(rows), agree=len(agree), reason=reason, why=why,
            evidence=" ".join(one.split("; ")[0] for one in list(others["evidence"].dropna())[:5]),
        )  # fmt: skip


def _versions(found: Iterable[Run]) -> list[str]:
    return sorted({run.version for run in found if run.version is not None}, key=version_key)


def _by_release(version: str | None, agree: list[str], others: list[str]) -> tuple[str, str]:
    """Captures of some releases agree and those of others do not: did it change, and since when?"""
    if not agree or not others:
        return "unknown", "some agree and some do not, and of which releases they are is not known"
    why = f"it holds for {', '.join(agree)} and not for {', '.join(others)}"
    first = min(map(version_key, others))
    older = max(map(version_key, agree)) < first
    if version is not None and version not in agree and not (older and version_key(version) < first):
        return "unknown", f"the claim is about {version}; {why}"
    return "changed since" if older else "differs by release", f"{why}, and within a release all captures agree"


def _below(name: str, names: Iterable[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in names)


def _between(claims: list[Row]) -> Iterator[Row]:
    """Claims of different sources about one client that cannot both be true of one release."""
    spoken = [row for row in claims if row["path"] != ROOT and row["when"] is None]
    for number, row in enumerate(spoken):
        for other in spoken[:number]:
            if (row["path"], row["party"]) != (other["path"], other["party"]) or row["source"] == other["source"]:
                continue
            if None not in (of := {row["client_version"], other["client_version"]}) and len(of) > 1:
                continue
            for what in ("declares", "implements"):
                if {row[what], other[what]} == {"yes", "no"}:
                    yield _claim(
                        row, what=what, claimed=row[what], against=other["tier"], found=other[what],
                        found_version=other["client_version"], found_date=other["date"], reason="unknown",
                        why="two documents disagree, and nothing was captured that could tell here",
                        evidence=other["evidence"],
                    )  # fmt: skip
                    break
