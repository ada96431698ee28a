"""Published statements about clients, kept as data in ``data/claims``, and what captures say to them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mcplab.comparison import speaking
from mcplab.data import claims_dir
from mcplab.model import MCPLabError
from mcplab.spec import split
from mcplab.told import Name, Told, count, series
from mcplab.traces import Traces
from mcplab.varying import configuration
from mcplab.versions import version_key


@dataclass(frozen=True)
class Note:
    """One published note: what it says of which client, and where that stands."""

    about: Mapping[str, Any]  # id, title, canonical, last_verified ...
    claims: Sequence[Mapping[str, Any]]
    readings: Sequence[Mapping[str, Any]]  # other readings of a source, not the note's

    def cited(self) -> str:
        """The note's address and the day on which its authors last verified it."""
        return f"{self.about['canonical']} (verified {self.about['last_verified']})"


def read_note(path: Path | None = None) -> Note:
    """A note from its file; default: the one on five clients.

    Raises:
        MCPLabError: the file cannot be read, or lacks what a note has.
    """
    file = path or claims_dir() / "five-clients.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        return Note(data["note"], data["claims"], data.get("readings", []))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MCPLabError(f"{file.name}: cannot be read ({error})") from None
    except KeyError as error:
        raise MCPLabError(f"{file.name}: no {error} in it; data/README.md says what a claims file holds") from None


# What captures say ---------------------------------------------------------------------------------


def declared(traces: Traces, product: str) -> pd.DataFrame:
    """How many instances of a product declare each top-level capability.

    Returns:
        A row a release (index ``client_version``, oldest first): ``instances``, and a column a top-level path with the
        number of instances that sent it (whatever its value).
    """
    rows = speaking(traces, "client")
    rows = rows[rows["client"] == product]
    versions = rows["client_version"].astype(object).where(rows["client_version"].notna(), "unknown")
    rows = rows.assign(version=versions, top=[split(path)[0] if path != "$" else "$" for path in rows["path"]])
    table = rows.groupby(["version", "top"])["instance"].nunique().unstack(fill_value=0)
    if table.empty:
        return pd.DataFrame({"instances": pd.Series(dtype="int64")}, index=pd.Index([], name="client_version"))
    table = table.rename(columns={"$": "instances"}).reindex(sorted(table.index, key=version_key))
    table.index.name = "client_version"
    return table[["instances", *sorted(name for name in table.columns if name != "instances")]]


def _shown(table: pd.DataFrame) -> str:
    """``0.129.0: elicitation; 0.171.0: elicitation, experimental (15 of 30)``."""
    lines = []
    for version, row in table.iterrows():
        said = [
            name if row[name] == row["instances"] else f"{name} ({row[name]} of {row['instances']})"
            for name in table.columns
            if name != "instances" and row[name]
        ]
        lines.append(f"{version}: {', '.join(said) or 'nothing'}")
    return "; ".join(lines)


def _differences(claim: Mapping[str, Any], table: pd.DataFrame) -> list[str]:
    """Where the captures say something else than the claim, release by release."""
    claimed, settable = list(claim.get("paths", [])), list(claim.get("per_server", []))
    found: list[str] = []
    for version, row in table.iterrows():
        for path in claimed:
            n = row.get(path, 0)
            if n < row["instances"] and path not in settable:
                found.append(f"{version} leaves out {path} in {row['instances'] - n} of {row['instances']}")
        for path in table.columns:
            if path != "instances" and row[path] and claim.get("only") and path not in (*claimed, *settable):
                found.append(f"{version} also declares {path} in {row[path]} of {row['instances']}")
    return found


def against(note: Note, traces: Traces) -> pd.DataFrame:
    """A note's table beside the captures.

    Returns:
        Columns: client, document (what the note says), captures (what was declared, release by release, or that
        there is no capture), differences (empty: none seen), source (where the row comes from).
    """
    out: list[dict[str, str]] = []
    for claim in note.claims:
        table = declared(traces, claim["product"])
        row = {"client": claim["client"], "document": claim["declares"]}
        if table.empty:
            row |= {"captures": "not among these captures", "differences": "cannot be told", "source": "document only"}
        else:
            differences = _differences(claim, table) if "paths" in claim else []
            differences += contested(traces, claim)
            row |= {
                "captures": _shown(table), "differences": "; ".join(differences),
                "source": f"document, and {count(int(table['instances'].sum()), 'captured instance')}",
            }  # fmt: skip
        out.append(row)
    return pd.DataFrame(out, columns=["client", "document", "captures", "differences", "source"])


# Per server, or for the whole process? -------------------------------------------------------------

FOR_ALL = ("mcp.client", "top_level")
"""Members of a header's ``config`` that say what was set for the whole process, not for one server."""


def by_setting(traces: Traces, product: str) -> pd.DataFrame:
    """What a client declared under each of its configurations.

    Returns:
        Columns: server_entry, whole_process (JSON text of what was set for one server and for all of them), instances,
        and a column a top-level capability: ``yes``, ``no`` or ``varies``.
    """
    rows = speaking(traces, "client")
    rows = rows[rows["client"] == product]
    configured = {trace.name: configuration(trace) for trace in traces}
    tops = sorted({split(path)[0] for path in rows["path"] if path != "$"})
    cells: dict[tuple[str, str], dict[str, set[str]]] = {}
    for (trace, instance), part in rows.groupby(["trace", "instance"], sort=False):
        config = configured[str(trace)]
        entry = {k: v for k, v in config.items() if k not in FOR_ALL and v not in ("", [], None)}
        entry = entry["server_entry"] if set(entry) == {"server_entry"} else entry
        setting = (_text(entry), _text({k: v for k in FOR_ALL if (v := config.get(k))}))
        seen = {split(path)[0] for path in part["path"] if path != "$"}
        cell = cells.setdefault(setting, {"instances": set(), **{top: set() for top in tops}})
        cell["instances"].add(str(instance))
        for top in tops:
            cell[top].add("yes" if top in seen else "no")
    out = [
        (*setting, len(cell["instances"]), *(_one(cell[top]) for top in tops))
        for setting, cell in sorted(cells.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    return pd.DataFrame(out, columns=["server_entry", "whole_process", "instances", *tops])


def _one(answers: set[str]) -> str:
    return next(iter(answers)) if len(answers) == 1 else "varies"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def contested(traces: Traces, claim: Mapping[str, Any]) -> list[str]:
    """Capabilities that a note calls configurable per server, and that no captured server entry alone switched off."""
    settable = list(claim.get("per_server", []))
    table = by_setting(traces, claim["product"])
    found: list[str] = []
    for path in settable:
        if path not in table.columns or path not in claim.get("paths", []):
            continue
        off = table[table[path] != "yes"]
        if len(off) and (off["whole_process"] != "").all():
            found.append(
                f"{path} left out in {count(int(off['instances'].sum()), 'instance')}, always by a setting for the "
                "whole process, never by a server entry alone"
            )
    return found


def verdict(note: Note, traces: Traces) -> Told:
    """Where captures and note differ, in sentences; and which rows no capture backs."""
    table = against(note, traces)
    lines: list[Any] = []
    for row in table.to_dict("records"):
        if row["source"] == "document only":
            continue
        said = row["differences"] or "as the document says"
        lines.append((Name(row["client"]), f": {said}."))
    unseen = list(table.loc[table["source"] == "document only", "client"])
    tail = (
        ("No capture here backs the document on ", *series(unseen), ": read that row as the document's word alone.")
        if unseen
        else None
    )
    return Told(("Document: ", note.cited()), lines or None, tail)


def reading(note: Note, product: str) -> Told:
    """Other readings of a client's source than the note's, with their place; nothing where there is none."""
    blocks: list[Any] = []
    for one in note.readings:
        if one["product"] == product:
            place = f"{one['url']} at {one['commit']}, {one['path']}, read {one['date']}"
            blocks.append((f"Another reading of the source of {product} ({place}) finds declared: ",
                           *series(one["declares"]), f"; {one['note']}." if one.get("note") else "."))  # fmt: skip
    return Told(*blocks)


def switched(note: Note, traces: Traces, product: str) -> Told:
    """Which capabilities a server entry alone switched, beside those that the note calls configurable per server."""
    claim = next((claim for claim in note.claims if claim["product"] == product), None)
    table = by_setting(traces, product)
    settable = list(claim.get("per_server", [])) if claim else []
    if table.empty or not settable:
        return Told(f"No capture of {product} here, so nothing can be said about its settings.")
    alone = table[table["whole_process"] == ""]
    lines: list[Any] = []
    for path in settable:
        seen = set(alone[path]) if path in alone.columns else {"no"}
        said = "declared under some server entries and not under others" if seen >= {"yes", "no"} else (
            "declared under every server entry tried" if seen == {"yes"} else
            "declared under no server entry tried" if seen == {"no"} else "not to be told from these captures"
        )  # fmt: skip
        lines.append((Name(path), f": {said}"))
    contested_ = contested(traces, claim) if claim else []
    tail: list[str] = []
    if contested_:
        tail = [f"So the document is not borne out here as it stands: {'; '.join(contested_)}."]
        for setting, rows in table[table["whole_process"] != ""].groupby("whole_process"):
            again = [path for path in settable if path in rows.columns and {"yes", "no"} <= set(rows[path])]
            on = [(path, rows.loc[rows[path] == "yes", "server_entry"].iloc[0]) for path in again]
            tail += [f"Under {setting} the server entry {entry} did switch {path} on." for path, entry in on if entry]
    head = ("Configurable per server, by the document: ", *series(settable))
    return Told((*head, ". With nothing set for the whole process:"), lines, *tail)
