"""What a transport display says of one instance, gathered from the tables; how it looks is decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from mcplab.model import TraceError
from mcplab.render.tokens import Token, tokens

COUNTS: Final = ("request", "response", "notification", "ping", "error")
"""Columns of a channel's counts, in their order."""

_CLIENT_SPEAKS: Final = ("POST (JSON)", "POST (SSE)", "POST", "DELETE")
_BOTH_SPEAK: Final = ("STDIO", "SSE (legacy transport)", "unknown")


@dataclass(frozen=True)
class Row:
    """One channel. ``counts``: None where the channel cannot be or was not used."""

    channel: str
    state: str
    why: str | None
    counts: dict[str, int] | None
    failures: int
    last_error: str | None
    last_status: int | None

    @property
    def words(self) -> str:
        """``unavailable (legacy protocol)``."""
        return f"{self.state} ({self.why})" if self.why else self.state

    @property
    def usable(self) -> bool:
        """May this channel carry anything? If not its arrow is hollow."""
        return self.state not in ("disabled", "unavailable")

    @property
    def arrow(self) -> str:
        if self.channel in _BOTH_SPEAK:
            return "⇄"
        if self.channel in _CLIENT_SPEAKS:
            return "▶" if self.usable else "▷"
        return "◀" if self.usable else "◁"


@dataclass(frozen=True)
class Facts:
    """One instance: who, in which protocol, how it stood, what was called, and each channel."""

    trace: str
    instance: str
    server: str | None
    server_version: str | None
    client: str | None
    client_version: str | None
    client_info: str | None
    config: str | None
    label: str
    eras: frozenset[str]
    transport: str | None
    session: str | None
    health: str | None
    interval: float | None
    missed: int | None
    limit: int | None
    answered_before: float | None
    calls: str
    discovery: str
    discovery_detail: str | None
    incomplete: bool
    first: pd.Timestamp | None
    last: pd.Timestamp | None
    messages: int
    connections: int
    channels: tuple[Row, ...]
    tokens: tuple[Token, ...]

    @property
    def modern(self) -> bool:
        """Session, health and pings are left out: every connection that agreed on an era was modern."""
        return self.eras == {"modern"}

    @property
    def pings_out_of_place(self) -> int:
        """Pings seen although the protocol in force has none."""
        return sum(row.counts["ping"] for row in self.channels if row.counts) if self.modern else 0

    @property
    def implementation(self) -> str:
        return " ".join(part for part in (self.server or "unknown", self.server_version) if part)

    @property
    def caller(self) -> str:
        """The client, with the name it gave on the wire where that is another one."""
        name = " ".join(part for part in (self.client or "unknown", self.client_version) if part)
        if self.client_info is not None and self.client_info != self.client:
            name += f" (calls itself {self.client_info})"
        return name

    @property
    def found(self) -> str:
        """The discovery line; empty where nothing was discovered."""
        ends = {
            "legacy-fallback": "legacy fallback succeeded",
            "failed": "no fallback seen",
            "probe": "a probe: the session did not build on it",
            "modern": "modern protocol",
        }
        end = ends.get(self.discovery)
        return "" if end is None else "; ".join(part for part in (self.discovery_detail, end) if part)


def facts(trace: Any, instance: str | None = None) -> list[Facts]:
    """The facts of each instance of a trace, or of one.

    Raises:
        TraceError: there is no such instance.
    """
    links = trace.connections
    names = list(dict.fromkeys(links["instance"]))
    if instance is not None and instance not in names:
        raise TraceError(f"no instance {instance!r} in this trace; it has: {', '.join(names[:12]) or 'none'}")
    return [_facts(trace, name) for name in (names if instance is None else [instance])]


def _facts(trace: Any, instance: str) -> Facts:
    links = trace.connections
    links = links[links["instance"] == instance]
    agreed = links[links["era"] != "unknown"]
    spoken = agreed if len(agreed) else links
    eras: set[str] = set()
    for era in agreed["era"]:
        eras |= {"legacy", "modern"} if era == "both" else {era}
    pinged = links[links["health"].notna()]
    beat = pinged.iloc[-1] if len(pinged) else None
    labels = agreed["label"] if len(agreed) else links["label"].iloc[-1:]
    config = text(links["config"].iloc[-1])
    known = links["transport"].dropna()
    first, last = links["first"].min(), links["last"].max()
    instructions = text(spoken["instructions"].dropna().iloc[-1]) if spoken["instructions"].notna().any() else None
    return Facts(
        trace=trace.name if hasattr(trace, "name") else str(links["trace"].iloc[0]),
        instance=instance,
        server=_latest(spoken["server"]),
        server_version=_latest(spoken["server_version"]),
        client=_latest(links["client"]),
        client_version=_latest(links["client_version"]),
        client_info=_latest(links["client_info"]),
        config=config,
        label=", ".join(dict.fromkeys(labels)),
        eras=frozenset(eras),
        transport=str(known.iloc[0]) if len(known) else None,
        session=", ".join(dict.fromkeys(links["session"].dropna())) or None,
        health=text(beat["health"]) if beat is not None else None,
        interval=_number(beat["ping_interval"]) if beat is not None else None,
        missed=_whole(beat["ping_missed"]) if beat is not None else None,
        limit=_whole(beat["ping_limit"]) if beat is not None else None,
        answered_before=_seconds(beat["ping_answered"], last) if beat is not None else None,
        calls=str(links["calls"].iloc[0]),
        discovery=str(links["discovery"].iloc[0]),
        discovery_detail=text(links["discovery_detail"].iloc[0]),
        incomplete=bool((spoken["complete"] == False).fillna(False).any()),  # noqa: E712 - a missing one is not False
        first=None if pd.isna(first) else first,
        last=None if pd.isna(last) else last,
        messages=int(links["messages"].sum()),
        connections=len(links),
        channels=tuple(_rows(trace.channels, instance)),
        tokens=tuple(tokens(trace, instance, instructions)),
    )


def _rows(channels: pd.DataFrame, instance: str) -> list[Row]:
    rows = channels[channels["instance"] == instance]
    out: list[Row] = []
    for row in rows.to_dict("records"):
        counts = {name: int(row[name]) for name in COUNTS}
        idle = row["state"] in ("unavailable", "not observed") or (
            row["state"] == "disabled" and not any(counts.values())
        )
        out.append(
            Row(
                channel=str(row["channel"]), state=str(row["state"]), why=text(row["why"]),
                counts=None if idle and not any(counts.values()) else counts, failures=int(row["failures"]),
                last_error=text(row["last_error"]), last_status=_whole(row["last_status"]),
            )
        )  # fmt: skip
    return out


def text(value: Any) -> str | None:
    """A cell of a text column, None where it is missing."""
    return None if value is None or value is pd.NA or (isinstance(value, float) and value != value) else str(value)


def _latest(column: pd.Series) -> str | None:
    found = column.dropna()
    return str(found.iloc[-1]) if len(found) else None


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _seconds(since: Any, until: Any) -> float | None:
    return None if pd.isna(since) or pd.isna(until) else max(0.0, (until - since).total_seconds())


def brief(seconds: float) -> str:
    """``<1 s``, ``5 s``, ``3 min``, ``2 h``: as a display has it."""
    if seconds < 1:
        return "<1 s"
    for size, unit in ((60.0, "s"), (60.0, "min"), (24.0, "h")):
        if seconds < size:
            return f"{seconds:.3g} {unit}"
        seconds /= size
    return f"{seconds:.3g} d"
