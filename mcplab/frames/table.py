"""Lists to DataFrames: one place that gives every column the dtype of the contract (model.COLUMNS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mcplab.formats.columns import STAMP
from mcplab.jsontext import printable
from mcplab.model import COLUMNS, NO_TIME

pd.set_option("display.html.use_mathjax", False)  # a name from a trace is no formula where a notebook shows a table
_pool = pa.system_memory_pool()  # Arrow's own takes much more than a column needs
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
FEW = 200  # times that are quicker read one by one
PIECE = 20_000  # messages turned into one piece of a text column


def strings(values: Sequence[Any]) -> pd.api.extensions.ExtensionArray:
    """A ``str`` column; None is missing."""
    try:
        array = pa.array(values, type=pa.large_string())
    except UnicodeEncodeError:  # a lone surrogate from the wire
        array = pa.array([None if v is None else printable(v) for v in values], type=pa.large_string())
    return pd.array(array, dtype="str")  # type: ignore[return-value]


def texts(values: Sequence[Any]) -> pd.api.extensions.ExtensionArray:
    """A ``str`` column from raw bytes; bytes that are no UTF-8 read as U+FFFD. Built in pieces to save memory."""
    pieces = [_texts(values[n : n + PIECE]) for n in range(0, len(values), PIECE)]
    return pd.array(pa.chunked_array(pieces, type=pa.large_string()), dtype="str")  # type: ignore[return-value]


def _texts(values: Sequence[Any]) -> pa.Array:
    raw = [bytes(value) for value in values]
    try:
        return pa.array(raw, type=pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in raw], type=pa.large_string())


def integers(values: Sequence[int | None]) -> pd.api.extensions.ExtensionArray:
    """An ``Int64`` column; None, and what does not fit 64 bits, is missing."""
    try:
        array = pa.array(values, type=pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        fits = [v if v is not None and -(2**63) <= v < 2**63 else None for v in values]
        array = pa.array(fits, type=pa.int64())
    missing = array.is_null().to_numpy(zero_copy_only=False)
    filled = array.fill_null(0).to_numpy(zero_copy_only=False)
    return pd.arrays.IntegerArray(np.array(filled, dtype="int64"), np.array(missing, dtype=bool))


def constant(value: str | None, count: int) -> pd.api.extensions.ExtensionArray:
    """A ``str`` column of one word, or of none."""
    word = None if value is None else printable(value)
    made = pa.repeat(pa.scalar(word, pa.large_string()), count, memory_pool=_pool)
    return pd.array(made, dtype="str")  # type: ignore[return-value]


def coded(codes: np.ndarray, words: Sequence[str | None]) -> pd.api.extensions.ExtensionArray:
    """A ``str`` column of words named by their place in ``words``; None is missing."""
    known = pa.array([None if word is None else printable(word) for word in words], type=pa.large_string())
    made = pc.take(known, pa.array(codes), memory_pool=_pool)
    return pd.array(made, dtype="str")  # type: ignore[return-value]


def combined(*columns: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Combinations of small numbers from 0 on that occur side by side, and the place in that list of each row's."""
    shape = tuple(int(column.max(initial=0)) + 1 for column in columns)
    flat = np.ravel_multi_index([column.astype("int64") for column in columns], shape)
    found = np.flatnonzero(np.bincount(flat))
    place = np.zeros(int(found.max(initial=0)) + 1, dtype="int32")
    place[found] = np.arange(len(found))
    return list(zip(*(part.tolist() for part in np.unravel_index(found, shape)), strict=True)), place[flat]


def pick(codes: np.ndarray, numbers: Sequence[int | None]) -> pd.api.extensions.ExtensionArray:
    """An ``Int64`` column of numbers named by their place in ``numbers``."""
    return integers(numbers).take(codes)


def blocks(
    data: Sequence[bytes], sizes: Sequence[int], pieces: Sequence[tuple[int, int, int, int]]
) -> pd.api.extensions.ExtensionArray:
    """A ``str`` column of texts that stand one behind the other in blocks, without a copy where they are UTF-8.

    ``sizes``: bytes of each text. ``pieces``: (block, from, to, number of texts).
    """
    counts = [0] * len(data)
    for block, _, _, count in pieces:
        counts[block] += count
    arrays: list[pa.Array] = []
    lengths, start = np.asarray(sizes, dtype="int64"), 0
    for block, count in zip(data, counts, strict=True):
        ends = np.zeros(count + 1, dtype="int64")
        np.cumsum(lengths[start : start + count], out=ends[1:])
        start += count
        array = pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(block))
        try:
            if not block.isascii():
                array.validate(full=True)
            arrays.append(array)
        except pa.ArrowInvalid:
            arrays.append(_texts([block[a:b] for a, b in pairwise(ends.tolist())]))
    return pd.array(pa.chunked_array(arrays, type=pa.large_string()), dtype="str")  # type: ignore[return-value]


def times(micros: Sequence[int] | np.ndarray) -> pd.DatetimeIndex:
    """A UTC time column from microseconds since 1970; NO_TIME is missing."""
    return pd.DatetimeIndex(np.asarray(micros, dtype="int64").view("datetime64[us]")).tz_localize("UTC")


def parse_times(texts: Sequence[str | None]) -> np.ndarray:
    """Microseconds since 1970 of RFC 3339 texts (int64); NO_TIME where there is none or it cannot be read."""
    try:
        if len(texts) < FEW:
            return np.array([_micros(text) for text in texts], dtype="int64")
    except ValueError:
        pass  # one of them is not as recorders write it
    try:
        array = pa.array(texts, type=pa.string()).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        return array.fill_null(NO_TIME).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, UnicodeEncodeError):  # one of them is no time, or finer than microseconds
        series = pd.Series([None if t is None else printable(t) for t in texts], dtype="str")
        parsed = pd.to_datetime(series, format="ISO8601", utc=True, errors="coerce")
        return parsed.dt.as_unit("us").dt.tz_localize(None).to_numpy().view("int64")


def _micros(text: str | None) -> int:
    """One time as recorders write it; ValueError for any other. Arrow and pandas take longer to begin."""
    if text is None:
        return NO_TIME
    if len(text) != STAMP or text[4::15] != "-." or text[10::16] != "TZ" or not text[5].isdecimal():
        raise ValueError(text)
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def stamps(pieces: Sequence[bytes]) -> np.ndarray:
    """As ``parse_times``, of texts as ``2026-01-05T10:00:00.000000Z`` that stand one behind the other."""
    data = b"".join(pieces)
    count = len(data) // STAMP
    ends = pa.py_buffer(np.arange(0, len(data) + 1, STAMP, dtype="int32"))
    array = pa.StringArray.from_buffers(count, ends, pa.py_buffer(data))
    try:
        return array.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return parse_times(array.to_pylist())


def extend(columns: dict[str, list[Any]], more: Mapping[str, Sequence[Any]]) -> None:
    """Append the rows of ``more`` to columns of the same names."""
    for name, values in more.items():
        columns[name] += values


def build(table: str, columns: Mapping[str, Any]) -> pd.DataFrame:
    """The DataFrame of ``table``; ``columns`` holds a list (or a ready array) for each column of the contract."""
    made: dict[str, Any] = {}
    for name, dtype in COLUMNS[table].items():
        values = columns[name]
        if not isinstance(values, (list, tuple)):
            made[name] = values
        elif dtype == "str":
            made[name] = strings(values)
        elif dtype == "Int64":
            made[name] = integers(values)
        elif dtype == "int64":
            made[name] = np.asarray(values, dtype="int64")
        elif dtype == "float":
            made[name] = np.asarray([np.nan if v is None else v for v in values], dtype="float64")
        elif dtype == "bool":
            made[name] = np.asarray(values, dtype=bool)
        elif dtype == "boolean":
            made[name] = pd.array(values, dtype="boolean")
        elif dtype == "time":
            made[name] = times([NO_TIME if v is None else v for v in values])
        else:
            raise AssertionError(f"{table}.{name}: no dtype {dtype!r}")
    return pd.DataFrame(made, copy=False)


def empty(table: str) -> pd.DataFrame:
    """The table without rows, with its dtypes."""
    return build(table, {name: [] for name in COLUMNS[table]})
