"""Run the clients again whose captures are bundled, and compare what they declare: ``make observe-check``.

Clients are installed into the cache where they are not there. Without words the ones below; else CLIENT or
CLIENT:CONFIG, each with every capture of that version. Exit status 1: a declaration differs, or a client did not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from mcplab.data import traces_dir
from mcplab.live.installing import cache_folder, install
from mcplab.live.observing import observe
from mcplab.live.recipes import Recipe, recipe
from mcplab.model import MCPLabError
from mcplab.traces import Trace, read_trace

USUAL: Final = (
    "python-sdk", "fastmcp", "fast-agent:default", "fast-agent:elicitation-none", "fast-agent:roots",
    "fast-agent:auto-sampling-false", "fast-agent:two-servers", "fast-agent:protocol-legacy",
    "fast-agent:protocol-modern", "typescript-sdk", "codex:exec", "codex:app-server", "codex:feature-mcp_2026_07_28",
    "gemini-cli", "opencode", "cline",
)  # fmt: skip


class Run(NamedTuple):
    client: str
    config: str
    transport: str
    serves: str
    captures: list[Path]


def runs(word: str, every: bool) -> Iterator[Run]:
    """What has captures; one a configuration unless ``every``: over stdio, with a server of both eras, if it can be."""
    name, _, wanted = word.partition(":")
    made = recipe(name)
    for config in [wanted] if wanted else made.configs or ["default"]:
        ways = [(transport, serves) for transport in made.transports for serves in ("dual", "legacy", "modern")]
        all_ = [Run(name, config, *way, captures(made, config, *way)) for way in ways]
        found = [run for run in all_ if run.captures]
        yield from found if every else found[:1]


def captures(made: Recipe, config: str, transport: str, serves: str) -> list[Path]:
    """The bundled captures of a configuration, one for each of its servers; [] where they are not there."""
    labels = (made.configuration(config)[1].capture or config).split()
    start = f"{made.client}-{made.version}-{transport}"
    found = []
    for label in labels:
        folder = traces_dir() / made.client
        same = folder / f"{start}-{serves}-{label}.jsonl"
        if label == "default" and not same.exists():
            same = folder / f"{start}-{serves}.jsonl"  # of one that was captured in one configuration only
        others = [] if len(labels) == 1 or not found else sorted(folder.glob(f"{start}-*-{label}.jsonl"))
        found += [same] if same.exists() else others[:1]
    return found if len(found) == len(labels) else []


def declared(trace: Trace, server: str | None = None, *, place: bool = True) -> set[tuple[Any, ...]]:
    """What the client declared (to one of its servers): place, path, state and value."""
    rows = trace.declarations
    rows = rows[rows["party"] == "client"]
    if server is not None:
        conns = trace.connections
        rows = rows[rows["conn"].isin(conns.loc[conns["server"] == server, "conn"])]
    names = ["place", "path", "state", "value"][0 if place else 1 :]
    return set(rows[names].astype(object).where(rows[names].notna(), None).itertuples(index=False, name=None))


def differences(seen: Trace, bundled: list[Trace]) -> list[str]:
    """What was declared now and not then, and the other way round."""
    servers = ["mcplab-probe", "mcplab-probe-b"] if len(bundled) > 1 else [None]
    told = []
    for server, then in zip(servers, bundled, strict=True):
        # a second server's capture may be of another era: then the place says nothing
        place = seen.header.get("server_mode") == then.header.get("server_mode")
        now, before = declared(seen, server, place=place), declared(then, place=place)
        told += [f"new: {_words(one)}" for one in sorted(now - before, key=str)]
        told += [f"gone: {_words(one)}" for one in sorted(before - now, key=str)]
    return told


def _words(row: tuple[Any, ...]) -> str:
    return " ".join(str(one) for one in row if one is not None)


def checked(run: Run, cache: Path) -> str:
    try:
        seen = observe(run.client, config=run.config, serves=run.serves, transport=run.transport, cache=cache)
    except MCPLabError as error:
        return str(error)
    return "; ".join(differences(seen, [read_trace(path) for path in run.captures])) or "same"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", help="CLIENT or CLIENT:CONFIG")
    parser.add_argument("--every", action="store_true", help="each capture of a configuration, not only one")
    parser.add_argument("--cache", type=Path, help="where clients are installed")
    parser.add_argument("--python", default="", help="the Python for clients that are to be installed")
    given = parser.parse_args()
    cache = cache_folder(given.cache)
    rows = []
    for word in given.clients or USUAL:
        made = recipe(word.partition(":")[0])
        try:
            install(made, cache, say=lambda line: print(line, file=sys.stderr), python=given.python)
            todo = list(runs(word, given.every or bool(given.clients)))
        except MCPLabError as error:
            rows.append((word, "", "", "", str(error)))
            continue
        for run in todo:
            rows.append((f"{run.client} {made.version}", run.config, run.transport, run.serves, checked(run, cache)))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    table = pd.DataFrame(rows, columns=["client", "config", "transport", "serves", "declarations"])
    print(table.to_string(index=False, max_colwidth=200))
    return int(not len(table) or not (table["declarations"] == "same").all())


if __name__ == "__main__":
    sys.exit(main())
