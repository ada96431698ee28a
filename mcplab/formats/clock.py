"""Times as the sources write them -> RFC 3339 UTC with microseconds, or nothing where there is no time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from msgspec import UNSET, UnsetType

from mcplab.model import TraceError

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_LONG = re.compile(r"(\.\d{6})\d+")

_WRITTEN = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<y>\d{4})/(?P<m>\d\d)/(?P<d>\d\d)[T ](?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    r"|\b(?P<D>\d\d)\.(?P<M>\d\d)\.(?P<Y>\d{4}),? (?P<T>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
)
_SOME = re.compile(r"\b\d{1,2}:\d\d:\d\d\b")

OTHER_FORM = "the lines have times in a form that does not say which number is the day or the year: they are not read"
NAIVE = (
    "times are local and name no zone; they are shown as if they were UTC: give tz= (a name such as Europe/Berlin, "
    "or +02:00) to place them"
)


def zone(tz: str | None) -> tzinfo | None:
    """The zone that ``tz`` names: an IANA name, ``UTC`` or an offset such as ``+02:00``; None for None."""
    if tz is None:
        return None
    offset = _OFFSET.fullmatch(tz.strip())
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    if tz.strip().upper() in ("UTC", "Z"):
        return UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(tz)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise TraceError(f"tz={tz!r} is no time zone; give a name such as Europe/Berlin, or +02:00") from None


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z" if moment.year >= 1000 else ""


def utc(text: Any, local: tzinfo | None = None) -> str | UnsetType:
    """An ISO 8601 time (also with a space or a comma) in UTC; without a zone it is one of ``local`` (or UTC)."""
    if not isinstance(text, str):
        return UNSET
    try:
        moment = datetime.fromisoformat(_LONG.sub(r"\1", text.strip().replace(",", ".")))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=local or UTC)
        return _stamp(moment) or UNSET
    except (ValueError, OverflowError):
        return UNSET


def written(words: str) -> str | None:
    """The first time in the words of a log line, as ISO 8601: also ``2026/01/05 10:00:00`` and ``05.01.2026 10:00:00``,
    which have one meaning each. None where there is none; ``""`` where there is one that can be read in two ways."""
    found = _WRITTEN.search(words)
    if found is None:
        return "" if _SOME.search(words) is not None else None
    if found["iso"]:
        return found["iso"]
    if found["y"]:
        return f"{found['y']}-{found['m']}-{found['d']}T{found['t']}"
    return f"{found['Y']}-{found['M']}-{found['D']}T{found['T']}"


def is_naive(text: Any) -> bool:
    """Does this time name no zone?"""
    try:
        return isinstance(text, str) and datetime.fromisoformat(text.strip().replace(",", ".")).tzinfo is None
    except ValueError:
        return False


def epoch(seconds: Any) -> str | UnsetType:
    """Seconds since 1970 (integer or float)."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return UNSET
    try:
        return _stamp(datetime.fromtimestamp(seconds, UTC)) or UNSET
    except (ValueError, OverflowError, OSError):
        return UNSET


def later(stamp: str | UnsetType, milliseconds: Any) -> str | UnsetType:
    """``stamp`` and so many milliseconds; UNSET where either is missing or out of range."""
    if stamp is UNSET or isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return UNSET
    try:
        return _stamp(datetime.fromisoformat(stamp) + timedelta(milliseconds=milliseconds)) or UNSET  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return UNSET
