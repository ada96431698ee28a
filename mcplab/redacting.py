"""Secrets out of a trace or log that is on disk."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mcplab import formats, jsontext
from mcplab.formats import mcpsnoop, native, plain, recordings
from mcplab.formats.source import Source, load
from mcplab.lines import head_of
from mcplab.model import Record, TraceError, UsageError
from mcplab.redaction import Masks, is_json

_LINES = (plain.NAME, mcpsnoop.NAME, recordings.NAME)
"""Formats that may be a JSON value a line: they keep their format."""


class Redacted(NamedTuple):
    """The file that was written, and the places where something was masked."""

    path: Path
    places: list[str]


def redact_file(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    redact: Sequence[str] = (),
    keep_secrets: bool = False,
) -> Redacted:
    """Write ``source`` with its secrets masked (``mcplab.redaction`` says which), mode 0600.

    A version 1 trace keeps every other byte but for the header's ``redacted``; so does a log of JSON lines, which has
    no header to say where. Any other format is read and written as a version 1 trace.

    Raises:
        TraceError: the source cannot be read, or the output cannot be written.
        UsageError: a word of ``redact`` cannot be used, or the output is the source.
    """
    masks = Masks(redact, keep_secrets=keep_secrets)
    given = load(Path(source))
    if native.sniff(given.data):
        out, suffix = redacted_trace(io.BytesIO(given.data), masks), ".jsonl"
    elif (lines := _json_lines(given)) is not None:
        out, suffix = [masks.message(line) for line in lines], Path(given.file).suffix
    else:
        out, suffix = redacted_trace(native.write(formats.read(given)), masks), ".jsonl"
    target = Path(output) if output is not None else Path(source).with_name(f"{given.name}-redacted{suffix}")
    if target.exists() and target.samefile(source):
        raise UsageError(f"{target}: would overwrite what is read; give another -o")
    write_whole(target, out, 0o600)
    return Redacted(target, list(masks.places))


def redacted_trace(lines: Iterable[bytes], masks: Masks) -> list[bytes]:
    """The lines of a version 1 file with their secrets masked; the header's ``redacted`` says where, besides what it
    said before. Where there is no header one is put before the events, if anything was masked.
    """
    out: list[bytes] = []
    for line in lines:
        bare = line.rstrip(b"\r\n")
        known = is_json(bare.decode("utf-8", "replace"))
        out.append((masks.line(bare) if known else masks.message(bare)) + line[len(bare) :])
    if masks.places:
        at = next((n for n, line in enumerate(out) if line.strip()), 0)
        head = out[at].decode("utf-8", "surrogateescape")
        if is_json(head) and jsontext.get(head, "kind")[0] == '"header"':
            out[at] = _listing(head, list(masks.places)).encode("utf-8", "surrogateescape")
        else:
            out.insert(at, (jsontext.dumps(head_of({"redacted": list(masks.places)})) + "\n").encode())
    return out


def _listing(head: str, places: list[str]) -> str:
    """A header's text whose ``redacted`` names these places too."""
    span = next(((at, jsontext.value_end(head, at)) for key, at in jsontext.places(head) if key == "redacted"), None)
    if span is None:
        end = head.rindex("}")
        return f'{head[:end]},"redacted":{jsontext.dumps(places)}{head[end:]}'
    before = jsontext.loads(head[slice(*span)])
    known = before if isinstance(before, list) else [before]
    both = [*known, *(place for place in places if place not in known)]
    return head[: span[0]] + jsontext.dumps(both) + head[span[1] :]


def redacted_record(record: Record, masks: Masks) -> Record:
    """A record with its secrets masked: a version 1 trace, whatever it was before."""
    data = b"".join(redacted_trace(native.write(record), masks))
    done = native.read(Source(record.name, data, record.name))
    unread = [msgspec.structs.replace(one, text=_masked(one.text, masks)) for one in record.unread]
    return msgspec.structs.replace(done, notes=tuple(dict.fromkeys((*record.notes, *done.notes))), unread=unread)


def _masked(text: str, masks: Masks) -> str:
    return masks.message(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _json_lines(source: Source) -> list[bytes] | None:
    """The lines, where the format is one of JSON lines and each is a JSON value."""
    if next((one.NAME for one in formats.FORMATS if one.sniff(source.data)), "") not in _LINES:
        return None
    lines = io.BytesIO(source.data).readlines()
    fine = all(not line.strip() or not jsontext.check(line.decode("utf-8", "replace")) for line in lines)
    return lines if fine else None


def write_whole(target: Path, lines: Iterable[bytes], mode: int = 0o666) -> None:
    """A file that is there whole or not at all; what is no file (``/dev/null``, a named pipe) is written into.

    Raises ``TraceError`` where it cannot be written.
    """
    part = target.with_name(target.name + ".part")
    try:
        if target.exists() and not target.is_file() and not target.is_dir():  # to take its place would take it away
            with target.open("wb") as file:
                file.writelines(lines)
            return
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.writelines(lines)
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise TraceError(
            f"{target}: cannot be written ({(error.strerror or str(error)).lower()}); choose another path"
        ) from None
