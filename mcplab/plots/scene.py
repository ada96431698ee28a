"""Traffic as numbers before it is drawn: who sent what when on which lane, what answers what, what was open meanwhile.

Pure arrays: nothing here draws, and nothing here loops over messages.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from mcplab.model import ACTIVITIES, CHANNELS, DrawError

NEEDED = ("seq", "sender", "kind", "channel", "activity")
NO_CLOCK = np.iinfo(np.int64).min
MOST_LANES: Final = 12
"""More lanes are no page: the instances that carry least then share theirs."""


class Lane(NamedTuple):
    """One channel of one instance."""

    instance: str
    channel: str


class Scene(NamedTuple):
    """All of one chart. Arrays are as long as there are messages, ``event_*`` as there are further events.

    ``x`` is seconds or seq, NaN where a message has no clock and the others have one; ``lane`` indexes ``lanes``;
    ``activity`` indexes ``ACTIVITIES``; ``side`` is 1 for the client's messages (above), -1 for the server's, 0 where
    nobody sent it; ``answer`` is the row of a request's answer, -1 without one; ``start`` and ``zero`` are the earliest
    origin; ``zero`` and ``micros`` are microseconds since 1970, ``NO_CLOCK`` where there is no time; ``together`` is
    how many instances share the last lanes.
    """

    lanes: list[Lane]
    clock: bool
    aligned: bool
    start: pd.Timestamp | None
    zero: int
    seq: np.ndarray
    x: np.ndarray
    lane: np.ndarray
    side: np.ndarray
    kind: np.ndarray
    method: np.ndarray
    activity: np.ndarray
    answer: np.ndarray
    group: np.ndarray
    streams: np.ndarray
    event_seq: np.ndarray
    event_x: np.ndarray
    event_lane: np.ndarray
    event_side: np.ndarray
    event_activity: np.ndarray
    event_text: np.ndarray
    micros: np.ndarray
    event_micros: np.ndarray
    unclocked: int
    asks_person: np.ndarray
    together: int


def build(
    messages: pd.DataFrame,
    http: pd.DataFrame | None,
    events: pd.DataFrame | None,
    align: str | None,
    exchanges: pd.DataFrame | None = None,
) -> Scene:
    """Check the frames and turn them into arrays, in the order in which things happened."""
    missing = [name for name in NEEDED if name not in messages.columns]
    if missing:
        raise DrawError(f"this is no messages frame: it has no column {missing[0]!r}")
    if messages.empty and (events is None or events.empty):
        raise DrawError("nothing to draw: the frame has no messages")
    if align not in (None, "clock", "start"):
        raise DrawError(f"align {align!r} is none of clock, start")
    messages = _complete(messages if exchanges is None else _grouped(messages, exchanges))
    extra = _complete(events) if events is not None else messages.iloc[:0]
    extra = extra[(extra["kind"] != "message") & extra["channel"].notna()]
    streams = _complete(http) if http is not None else messages.iloc[:0]
    if http is not None and len(streams):
        streams = streams[streams["content_type"].astype("str").str.startswith("text/event-stream").fillna(False)]
    traces = {str(name) for part in (messages, extra) for name in part["trace"].unique()}
    aligned = align == "start" or (align is None and len(traces) > 1)

    stamps = _micros(messages["ts"]), _micros(extra["ts"])
    clock = bool((stamps[0] != NO_CLOCK).any() or (stamps[1] != NO_CLOCK).any())
    origin = _origins([messages, extra], list(stamps), aligned=aligned)
    x = _place(messages, stamps[0], origin, clock)
    event_x = _place(extra, stamps[1], origin, clock)

    if messages.empty and extra.empty:
        raise DrawError("nothing to draw: no event of these frames was on a channel")
    together = _together(messages, extra)
    if together:
        messages, extra, streams = (_renamed(part, together) for part in (messages, extra, streams))
    index, lane_of = _lanes(messages, extra, streams, last=_all_of(together))
    side = np.select([messages["sender"] == "client", messages["sender"] == "server"], [1, -1], 0)
    kind = messages["kind"].astype(object).to_numpy()
    first = min((value for value in origin.values() if value != NO_CLOCK), default=None)
    return Scene(
        lanes=index,
        clock=clock,
        aligned=aligned,
        start=None if first is None or not clock else pd.Timestamp(first, unit="us", tz="UTC"),
        zero=first or 0,
        seq=messages["seq"].to_numpy(dtype=np.int64),
        x=x,
        lane=lane_of[0],
        side=side,
        kind=kind,
        method=messages["method"].astype(object).where(messages["method"].notna(), "").to_numpy(),
        activity=_codes(messages["activity"]),
        answer=_answers(messages),
        group=_groups(messages),
        streams=_streams(streams, lane_of[2], origin, clock, _ends([messages, extra], list(stamps), clock)),
        event_seq=extra["seq"].to_numpy(dtype=np.int64),
        event_x=event_x,
        event_lane=lane_of[1],
        event_side=np.select([extra["sender"] == "client", extra["sender"] == "server"], [1, -1], 0),
        event_activity=_codes(extra["activity"]),
        event_text=_event_texts(extra),
        micros=stamps[0],
        event_micros=stamps[1],
        unclocked=int(np.isnan(x).sum() + np.isnan(event_x).sum()),
        asks_person=_asks_person(messages, exchanges),
        together=len(together),
    )


_OPTIONAL: dict[str, Any] = {
    "trace": "", "instance": "", "conn": "", "part": pd.NA, "ts": pd.NaT, "method": None, "reply_to": pd.NA,
    "reply_part": pd.NA, "group": pd.NA, "status": pd.NA, "content_type": None, "sender": None, "activity": "none",
}  # fmt: skip


_PLACE = ["trace", "seq", "part"]


def _keys(frame: pd.DataFrame, seq: str = "seq", part: str = "part") -> pd.MultiIndex:
    """Where a message stands, as (trace, seq, part); a message outside of a batch has part -1."""
    whole = frame.assign(trace=frame.get("trace", ""), part=frame.get(part, pd.NA))  # type: ignore[arg-type]
    return pd.MultiIndex.from_arrays(
        [
            whole["trace"].astype(object),
            whole[seq].astype("Int64").fillna(-1),
            whole["part"].astype("Int64").fillna(-1),
        ],
        names=_PLACE,
    )


def _grouped(messages: pd.DataFrame, exchanges: pd.DataFrame) -> pd.DataFrame:
    """The messages with the ``group`` of their exchange, unless they have one of their own."""
    if "group" in messages.columns or not exchanges["group"].notna().any():
        return messages
    rounds = exchanges[exchanges["group"].notna()]
    found = pd.Series(rounds["group"].to_numpy(), index=_keys(rounds))
    at = found.index.get_indexer(_keys(messages))
    group = pd.array(found.tolist(), dtype="Int64")[np.maximum(at, 0)]
    group[at < 0] = pd.NA
    return messages.assign(group=group)


def _groups(messages: pd.DataFrame) -> np.ndarray:
    """A number for all rounds of one request: a group is the seq of its first round, and so repeats over traces."""
    group = messages["group"].astype("Int64")
    keys = pd.MultiIndex.from_arrays([messages["trace"].astype(object), group.fillna(-1)])
    return np.where(group.notna(), pd.factorize(keys)[0], -1).astype(float)


def _asks_person(messages: pd.DataFrame, exchanges: pd.DataFrame | None) -> np.ndarray:
    """Answers that ask for input (``input_required``), an elicitation among it (2026-07-28 basic/patterns/mrtr)."""
    out = np.zeros(len(messages), dtype=bool)
    if exchanges is None or "message" not in messages.columns:
        return out
    asking = exchanges[(exchanges["outcome"] == "input_required") & exchanges["reply_seq"].notna()]
    if len(asking):
        at = _keys(messages).get_indexer(_keys(asking, "reply_seq", "reply_part"))
        for row in at[at >= 0]:
            out[row] = '"elicitation/create"' in str(messages["message"].iloc[row])
    return out


def _complete(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that may be left out, put in as missing."""
    return frame.assign(**{name: value for name, value in _OPTIONAL.items() if name not in frame.columns})


def _micros(stamps: pd.Series) -> np.ndarray:
    """Microseconds since 1970; the smallest integer where there is no time."""
    times = pd.DatetimeIndex(pd.to_datetime(stamps, utc=True))
    return np.asarray(times.as_unit("us").asi8, dtype=np.int64)  # type: ignore[attr-defined]


def _origins(parts: list[pd.DataFrame], stamps: list[np.ndarray], *, aligned: bool) -> dict[str, int]:
    """Trace -> the moment that is 0 on the axis: its own first event, or the first of all."""
    names = np.concatenate([part["trace"].astype(object).to_numpy() for part in parts])
    micros = np.concatenate(stamps)
    found: dict[str, int] = {}
    for name in dict.fromkeys(names):
        known = micros[(names == name) & (micros != NO_CLOCK)]
        found[name] = int(known.min()) if len(known) else NO_CLOCK
    if not aligned:
        first = min((value for value in found.values() if value != NO_CLOCK), default=NO_CLOCK)
        found = dict.fromkeys(found, first)
    return found


def _place(frame: pd.DataFrame, micros: np.ndarray, origin: dict[str, int], clock: bool) -> np.ndarray:
    """Where on the axis: seconds from the origin, or seq."""
    if not clock:
        return frame["seq"].to_numpy(dtype=float)
    zero = frame["trace"].astype(object).map(origin).to_numpy(dtype=np.int64)
    return np.where(micros == NO_CLOCK, np.nan, (micros - zero) / 1e6)


def _together(messages: pd.DataFrame, extra: pd.DataFrame) -> frozenset[str]:
    """The instances with fewest messages, which share lanes where otherwise there would be more than a page holds."""
    both = [part[["instance", "channel"]].drop_duplicates() for part in (messages, extra)]
    lanes = pd.concat(both).drop_duplicates()
    if len(lanes) <= MOST_LANES or lanes["instance"].nunique() == 1:
        return frozenset()
    need = lanes.groupby("instance", dropna=False).size()
    carried = messages["instance"].value_counts().reindex(need.index).fillna(0)
    order = carried.sort_values(ascending=False, kind="stable").index
    room = MOST_LANES - lanes["channel"].nunique()
    alone = (need.reindex(order).cumsum() <= room).to_numpy()
    return frozenset(map(str, order[~alone]))


def _renamed(part: pd.DataFrame, together: frozenset[str]) -> pd.DataFrame:
    names = part["instance"].astype(object)
    return part.assign(instance=names.where(~names.isin(together), _all_of(together)))


def _all_of(together: frozenset[str]) -> str:
    return f"{len(together):,} instances together"


def _lanes(*parts: pd.DataFrame, last: str = "") -> tuple[list[Lane], list[np.ndarray]]:
    """Lanes by instance as they appear, channels in the order of all tables; and the lane of each row of each part."""
    keys = [
        pd.MultiIndex.from_arrays([part["instance"].fillna(""), part["channel"].fillna("unknown")]) for part in parts
    ]
    seen = list(dict.fromkeys(key for part in keys for key in part.unique()))
    order = {instance: at for at, instance in enumerate(dict.fromkeys(instance for instance, _ in seen))}
    known = {channel: at for at, channel in enumerate(CHANNELS)}
    seen.sort(key=lambda key: (key[0] == last, order[key[0]], known.get(key[1], len(known))))
    index = pd.MultiIndex.from_tuples(seen)
    return [Lane(*map(str, key)) for key in seen], [index.get_indexer(part) for part in keys]


def _codes(activity: pd.Series) -> np.ndarray:
    return pd.Categorical(activity, categories=list(ACTIVITIES)).codes.clip(0)


def _answers(messages: pd.DataFrame) -> np.ndarray:
    """Row of the first answer to each message, -1 where there is none: by trace, seq and part."""
    place = pd.DataFrame(
        {"trace": messages["trace"].astype(object), "seq": messages["seq"], "part": messages["part"]}
    ).astype({"seq": "Int64", "part": "Int64"})
    place["part"] = place["part"].fillna(-1)
    target = place.assign(
        seq=messages["reply_to"].astype("Int64"), part=messages["reply_part"].astype("Int64").fillna(-1)
    )
    target["row"] = np.arange(len(target))
    target = target[target["seq"].notna()].drop_duplicates(["trace", "seq", "part"])
    joined = place.merge(target, on=["trace", "seq", "part"], how="left")
    return joined["row"].fillna(-1).to_numpy(dtype=np.int64)


def _ends(parts: list[pd.DataFrame], stamps: list[np.ndarray], clock: bool) -> dict[str, float]:
    """Trace -> its last moment: microseconds since 1970, or seq."""
    names = np.concatenate([part["trace"].astype(object).to_numpy() for part in parts])
    last = np.concatenate(stamps if clock else [part["seq"].to_numpy(dtype=np.int64) for part in parts])
    return pd.Series(last).groupby(names).max().to_dict()  # type: ignore[return-value]


def _streams(
    http: pd.DataFrame, lane: np.ndarray, origin: dict[str, int], clock: bool, ends: dict[str, float]
) -> np.ndarray:
    """Rows of (lane, begin, end): one whose end was not seen lasts as long as its trace."""
    if not len(http):
        return np.empty((0, 3))
    ended = http["ended"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    trace = http["trace"].astype(object).map(ends)
    if clock:
        zero = http["trace"].astype(object).map(origin).fillna(NO_CLOCK).to_numpy(dtype=np.int64)
        opened, asked, closed = (_micros(http[name]) for name in ("response_ts", "ts", "last_ts"))
        begin = (np.where(opened == NO_CLOCK, asked, opened) - zero) / 1e6
        over = np.where(ended, closed, np.maximum(closed, trace.fillna(NO_CLOCK).to_numpy(dtype=np.int64)))
        end = (over - zero) / 1e6
        good = (closed != NO_CLOCK) & (zero != NO_CLOCK) & ((opened != NO_CLOCK) | (asked != NO_CLOCK))
    else:
        begin = http["response_seq"].astype("Float64").fillna(http["seq"].astype("Float64")).to_numpy(dtype=float)
        end = http["last_seq"].to_numpy(dtype=float)
        end = np.where(ended, end, np.fmax(end, trace.to_numpy(dtype=float)))
        good = np.ones(len(http), dtype=bool)
    return np.column_stack([lane, begin, end])[good]


def _event_texts(extra: pd.DataFrame) -> np.ndarray:
    status = extra["status"].astype("Int64")
    return np.array(["" if pd.isna(code) or code < 400 else f"HTTP {code}" for code in status], dtype=object)
