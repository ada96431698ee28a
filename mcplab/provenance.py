"""Where numbers come from: a hash of the input, a caption and a paragraph on the method, made from the captures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final

import pandas as pd

from mcplab import __version__, formats
from mcplab.tiers import days, each
from mcplab.told import count, safe
from mcplab.traces import Trace

_SHORT: Final = 12
"""Characters of a hash in a caption."""
_TRANSPORTS: Final = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP with SSE (2024-11-05)"}

_READ: Final = (
    "A client's declaration is the capabilities object of its initialize request, or, in revisions from 2026-07-28 on, "
    "that in _meta of each of its requests; a server's is that of the initialize or server/discover result. Of each "
    "capability path the state is taken from the message's text: absent, null, an empty object, an object, true, false "
    "or another value. A cell shows a state where all instances behind it sent the same one, 'varies' where they did "
    "not, 'unknown' where no declaration was captured. A difference is put down to one thing only where two runs "
    "differed in nothing else that was recorded."
)


def digest(trace: Trace) -> str:
    """SHA-256 of one capture as version 1 text (what ``save`` writes), whatever it was read from and is called."""
    found = hashlib.sha256()
    for piece in formats.write(trace.record, formats.native.NAME, None):
        found.update(piece)
    return found.hexdigest()


def input_digest(traces: Any) -> str:
    """SHA-256 over the digests of all captures, one a line, sorted: the same for the same captures in any order."""
    lines = sorted(digest(trace) for trace in each(traces))
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def caption(traces: Any) -> str:
    """For below a chart: how many captures of whom, when made, and the hash of the input (its first 12 characters)."""
    return f"{_whom(traces)} ({_when(traces)}); input SHA-256 {input_digest(traces)[:_SHORT]}; mcplab {__version__}."


def _whom(traces: Any) -> str:
    links = traces.connections
    releases = links[["client", "client_version"]].drop_duplicates()
    clients = count(links["client"].nunique(dropna=False), "client")
    return f"{count(len(list(each(traces))), 'capture')} of {clients} in {count(len(releases), 'release')}"


def _when(traces: Any) -> str:
    found = sorted({day for day in days(traces).values() if day is not None})
    return "no date" if not found else found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _shares(values: Iterable[Any], words: dict[str, str] | None = None) -> str:
    """``stdio (150), Streamable HTTP (134)``: the commonest first."""
    counts = pd.Series(list(values), dtype="object").fillna("not known").value_counts()
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return ", ".join(f"{(words or {}).get(str(word), safe(word))} ({n})" for word, n in pairs)


def methods(traces: Any, claims: pd.DataFrame | None = None) -> str:
    """A paragraph on the method for a write-up: the input, how a declaration is read and compared, the tools.

    Args:
        traces: Traces, or one Trace.
        claims: where documents were compared, too: what ``mcplab.claims`` gave.
    """
    links = traces.connections
    instances = links.drop_duplicates("instance")
    tools = _shares(trace.header.get("tool") if isinstance(trace.header.get("tool"), str) else None
                    for trace in each(traces))  # fmt: skip
    failed = len(getattr(traces, "failed", ()))
    parts = [
        f"The input is {_whom(traces)}, made {_when(traces)}; recorded with: {tools}.",
        (f"They hold {count(len(instances), 'instance')} (one run of one client against one server), by transport: "
        f"{_shares(instances['transport'], _TRANSPORTS)}; {count(len(links), 'connection')} by era: "
        f"{_shares(links['era'])}; by revision agreed on: {_shares(links['selected'])}."),
        f"{count(failed, 'file')} could not be read and {'is' if failed == 1 else 'are'} left out." if failed else "",
        _READ,
        _documents(claims),
        (f"Tables and charts were made with mcplab {__version__}, pandas {version('pandas')} and matplotlib "
        f"{version('matplotlib')}. Each cell leads to its messages by capture and sequence number (trace#seq). SHA-256 "
        f"over the captures: {input_digest(traces)}."),
    ]  # fmt: skip
    return " ".join(filter(None, parts))


def _documents(claims: pd.DataFrame | None) -> str:
    if claims is None or claims.empty:
        return ""
    rows = claims[["source", "date"]].astype(object).where(claims[["source", "date"]].notna(), None)  # type: ignore[arg-type]
    cited = [f"{safe(source)} ({date or 'no date'})" for source, date in rows.drop_duplicates().itertuples(index=False)]
    shown = "; ".join(cited[:8]) + (f"; and {len(cited) - 8} more" if len(cited) > 8 else "")
    return f"Documents and published tables, {count(len(claims), 'statement')}: {shown}."
