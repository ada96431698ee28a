"""``Trace`` and ``Traces``: a capture, or many, as DataFrames; reading and making them."""

from __future__ import annotations

import glob
import html
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import msgspec
import pandas as pd

from mcplab import formats, jsontext, render
from mcplab.channels import Marks
from mcplab.formats import by_hand, halves, native, packs
from mcplab.formats.source import Source, is_text, load, stem
from mcplab.frames import Tables
from mcplab.model import Event, Record, TraceError
from mcplab.progress import over
from mcplab.redacting import redacted_record, write_whole
from mcplab.redaction import Masks
from mcplab.rulebook import check
from mcplab.told import framed, safe, table_html


class Trace:
    """One capture. Its tables are attributes, each made when it is first asked for (columns: docs/columns.md)."""

    def __init__(self, record: Record, name: str | None = None) -> None:
        self.record = record
        self.name = record.name if name is None else name
        self._tables = Tables(record, self.name)

    def renamed(self, name: str) -> Trace:
        """The same capture under another name in its tables."""
        return self if name == self.name else Trace(self.record, name)

    # what it is

    @property
    def header(self) -> dict[str, Any]:
        """The capture's header; {} where it has none."""
        return dict(self.record.header)

    @property
    def format(self) -> str:
        """The reader that read it."""
        return self.record.format

    @cached_property
    def notes(self) -> list[str]:
        """What this source cannot tell, a sentence each."""
        notes = list(self.record.notes)
        if self._tables.clockless:
            notes.append(f"{self._tables.clockless} time stamps cannot be read and are missing")
        return notes

    def __len__(self) -> int:
        return len(self.record.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.record.events)

    @cached_property
    def _by_seq(self) -> dict[int, int]:
        return {event.seq: n for n, event in enumerate(self.record.events)}

    def raw(self, seq: int) -> str:
        """The text of an event's message, byte for byte, or what else the event holds.

        Raises:
            TraceError: there is no event with this seq.
        """
        at = self._by_seq.get(int(seq))
        if at is None:
            raise TraceError(f"{self.name}: no event has seq {seq}")
        event = self.record.events[at]
        return event.text or str(self.events["text"].iloc[at] or "")

    # tables

    @property
    def messages(self) -> pd.DataFrame:
        """A row a message (a batch: a row a part)."""
        return self._tables.messages

    @property
    def exchanges(self) -> pd.DataFrame:
        """A row a request, with its answer or without."""
        return self._tables.exchanges

    @property
    def connections(self) -> pd.DataFrame:
        """A row a connection: who spoke to whom, in which era, and how they found it."""
        return self._tables.connections

    @property
    def declarations(self) -> pd.DataFrame:
        """A row a capability path of each declaring message."""
        return self._tables.declarations

    @property
    def channels(self) -> pd.DataFrame:
        """A row an instance and channel."""
        return self._tables.channels

    @property
    def http(self) -> pd.DataFrame:
        """A row an HTTP exchange."""
        return self._tables.http

    @property
    def events(self) -> pd.DataFrame:
        """A row an event, messages and all others."""
        return self._tables.events

    @property
    def unparsed(self) -> pd.DataFrame:
        """What is no message: written by a party (``wire``) or unreadable for us (``file``)."""
        return self._tables.unparsed

    @cached_property
    def findings(self) -> pd.DataFrame:
        """Did they keep to the rules? A verdict for each rule, instance and revision (docs/rules.md)."""
        return check(self)

    @property
    def tables(self) -> Tables:
        """The walk over the events, and what it says of each connection: what tables and rules are made from."""
        return self._tables

    @property
    def marks(self) -> Marks:
        """What a timeline is made of."""
        return self._tables.marks

    # writing and showing

    def save(self, path: str | os.PathLike[str], format: str = native.NAME, *, mode: int = 0o666) -> Path:
        """Write the capture; message texts stay byte for byte. Returns the path. ``formats.WRITERS`` names the formats.

        ``mode``: of the file, less what the process masks (0o600: for nobody else, as recorders do it).

        Raises:
            TraceError: the format cannot be written, or the file cannot.
        """
        pieces = formats.write(self.record, format, self._answers() if format == formats.chrome_trace.NAME else None)
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(
                f"{target}: cannot be written ({(error.strerror or str(error)).lower()}); choose another path"
            ) from None
        write_whole(target, pieces, mode)
        return target

    def _answers(self) -> dict[int, int]:
        """seq of each answer -> seq of its request, outside of batches."""
        asked = self.exchanges
        asked = asked[asked["reply_seq"].notna() & asked["part"].isna() & asked["reply_part"].isna()]
        return dict(zip(asked["reply_seq"].astype(int), asked["seq"].astype(int), strict=True))

    def redacted(self, *redact: str, keep_secrets: bool = False) -> Trace:
        """The same capture with its secrets masked; the header's ``redacted`` says where.

        ``redact``: what to mask besides credentials: a key, a ``/regex/``, a path, or ``tokens``
        (``mcplab.redaction``); ``keep_secrets``: only that.

        Raises:
            UsageError: a word of ``redact`` cannot be used.
        """
        return Trace(redacted_record(self.record, Masks(redact, keep_secrets=keep_secrets)), self.name)

    def __repr__(self) -> str:
        return f"<Trace {self.name}: {len(self)} events, {self.format}>"

    def _repr_html_(self) -> str:
        head = f"<b>{html.escape(safe(self.name))}</b>: {len(self):,} events, read as {html.escape(self.format)}"
        notes = "".join(f"<br>note: {html.escape(safe(note))}" for note in self.notes)
        return f"<div>{head}{notes}</div>{render.html(self)}"


class Traces(Sequence[Trace]):
    """Captures that were read together: a sequence of ``Trace`` with the same tables, one below the other.

    ``failed``: a DataFrame (file, error) of what could not be read.
    """

    def __init__(self, traces: Iterable[Trace], failed: Sequence[tuple[str, str]] = ()) -> None:
        self._traces = list(traces)
        rows = [[jsontext.printable(text) for text in row] for row in failed]  # a file's name need be no UTF-8
        self.failed = pd.DataFrame(rows, columns=["file", "error"], dtype="str")
        self._made: dict[str, pd.DataFrame] = {}

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: str) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> Traces: ...
    def __getitem__(self, index: int | str | slice) -> Trace | Traces:
        """A trace by position or name, or a slice of them."""
        if isinstance(index, slice):
            return Traces(self._traces[index])
        if isinstance(index, str):
            found = next((trace for trace in self._traces if trace.name == index), None)
            if found is None:
                raise KeyError(index)
            return found
        return self._traces[index]

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._traces)

    def _table(self, name: str) -> pd.DataFrame:
        made = self._made.get(name)
        if made is None:
            parts = [table for trace in self._traces if len(table := getattr(trace, name))]
            made = pd.concat(parts, ignore_index=True) if parts else Tables.empty(name)
            self._made[name] = made
        return made

    @property
    def messages(self) -> pd.DataFrame:
        """As ``Trace.messages``, of all traces."""
        return self._table("messages")

    @property
    def exchanges(self) -> pd.DataFrame:
        """As ``Trace.exchanges``, of all traces."""
        return self._table("exchanges")

    @property
    def connections(self) -> pd.DataFrame:
        """As ``Trace.connections``, of all traces."""
        return self._table("connections")

    @property
    def declarations(self) -> pd.DataFrame:
        """As ``Trace.declarations``, of all traces."""
        return self._table("declarations")

    @property
    def channels(self) -> pd.DataFrame:
        """As ``Trace.channels``, of all traces."""
        return self._table("channels")

    @property
    def http(self) -> pd.DataFrame:
        """As ``Trace.http``, of all traces."""
        return self._table("http")

    @property
    def events(self) -> pd.DataFrame:
        """As ``Trace.events``, of all traces."""
        return self._table("events")

    @property
    def unparsed(self) -> pd.DataFrame:
        """As ``Trace.unparsed``, of all traces."""
        return self._table("unparsed")

    @property
    def findings(self) -> pd.DataFrame:
        """As ``Trace.findings``, of all traces."""
        return self._table("findings")

    def redacted(self, *redact: str, keep_secrets: bool = False) -> Traces:
        """Each as ``Trace.redacted`` gives it."""
        done = Traces([trace.redacted(*redact, keep_secrets=keep_secrets) for trace in self._traces])
        done.failed = self.failed
        return done

    @property
    def marks(self) -> Marks:
        """What a timeline of all traces is made of."""
        import numpy as np

        all_ = [trace.marks for trace in self._traces]
        ts = np.concatenate([m.ts for m in all_]) if all_ else np.empty(0, dtype="int64")
        return Marks(
            [s for m in all_ for s in m.seq],
            ts,
            [s for m in all_ for s in m.instance],
            [s for m in all_ for s in m.channel],
            [s for m in all_ for s in m.activity],
        )

    def __repr__(self) -> str:
        return f"<Traces: {len(self)} captures, {len(self.failed)} failed>"

    def _repr_html_(self) -> str:
        rows = self.connections.groupby(["client", "client_version"], dropna=False, sort=True).agg(
            captures=("trace", "nunique"), transports=("transport", lambda t: ", ".join(sorted(set(t.dropna())))),
            eras=("era", lambda e: ", ".join(sorted(set(e)))),
        )  # fmt: skip
        failed = table_html(self.failed) if len(self.failed) else ""
        return framed(f"<b>{len(self)} captures</b>{table_html(rows)}{failed}")


def read_trace(source: Any, *, format: str | None = None, tz: str | None = None) -> Trace:
    """Read one capture.

    Args:
        source: a path, an open file, bytes, text, a list of event dicts (docs/trace-format.md), or a pair: the file
            of what the client wrote and the file of what the server wrote, ordered by ids only.
        format: name of the format; default: the first whose reader recognises the source.
        tz: time zone of local times in logs that name none, as ``Europe/Berlin``.

    Raises:
        TraceError: there is nothing to read, or no reader knows the format. One line.
    """
    if isinstance(source, (list, tuple)) and all(isinstance(event, Mapping) for event in source):
        if not source:
            raise TraceError("no events: the list is empty, so there is no trace to read")
        return Trace(native.from_dicts(source, name="events"))
    if isinstance(source, tuple) and len(source) == 2:
        return Trace(halves.read(*map(load, source)))
    return Trace(formats.read(load(source), format=format, tz=tz))


def read_traces(*sources: Any, progress: bool | None = None) -> Traces:
    """Read many captures: paths, globs, folders (all files below them), or anything ``read_trace`` takes.

    A trace is named by its path below the folder that all have in common, without suffix; the captures of a file that
    holds several (each begins with its header) as ``name:1``, ``name:2`` ... What cannot be read is listed in
    ``.failed`` and the rest is loaded. ``progress``: a bar; default: when it takes longer than a second.

    Raises:
        TraceError: a folder or glob has no file, or nothing at all was given.
    """
    found: list[Any] = []
    failed: list[tuple[str, str]] = []
    for source in sources:
        if isinstance(source, (list, tuple)) and not all(isinstance(item, dict) for item in source):
            source = read_traces(*source, progress=progress)
        if isinstance(source, Traces):
            found.extend(source)
            failed.extend(source.failed.itertuples(index=False, name=None))
        elif isinstance(source, (str, os.PathLike)) and not (isinstance(source, str) and is_text(source)):
            found.extend(found_files(source, failed))
        else:
            found.append(source)
    if not found and not failed:
        raise TraceError("no traces: name a file, a folder or a glob")
    names = trace_names(found)
    traces: list[Trace] = []
    for source, name in zip(over(found, "reading traces", "trace", progress), names, strict=True):
        if isinstance(source, Trace):
            traces.append(source)
            continue
        try:
            if isinstance(source, Path):
                traces.extend(_captures(load(source), name or "", failed))
            else:
                traces.append(read_trace(source))
        except TraceError as error:
            failed.append(((file_of(source, name) if name else str(source)[:80]), str(error)))
    return Traces(_distinct(traces), failed)


def _captures(source: Source, name: str, failed: list[tuple[str, str]]) -> Iterator[Trace]:
    """The captures of a file: nearly always one."""
    if not (native.sniff(source.data) and packs.several(source.data)):
        yield Trace(formats.read(source), name)
        return
    for number, data in enumerate(packs.captures([source.data]), 1):
        try:
            yield Trace(native.read(msgspec.structs.replace(source, data=data)), f"{name}:{number}")
        except TraceError as error:
            failed.append((f"{name}:{number}", str(error)))


def file_of(path: Path, name: str) -> str:
    """What stands for a file in ``failed``: its trace's name with its suffix."""
    return name + jsontext.printable(path.name[len(stem(path.name)) :])


def found_files(source: str | os.PathLike[str], failed: list[tuple[str, str]]) -> list[Path]:
    """The files that a source names; folders that cannot be opened go to ``failed``."""
    path = Path(source)
    if os.path.isdir(path):  # unlike Path.is_dir, False where a folder above may not be opened
        shut = len(failed)
        files = _below(path, failed)
        if not files and len(failed) == shut:
            raise TraceError(f"{path}: the folder holds no file, so there is no trace to read")
        return files
    if not os.path.lexists(path) and glob.has_magic(str(source)):
        files = sorted(Path(file) for file in glob.glob(str(source), recursive=True) if os.path.isfile(file))
        if not files:
            raise TraceError(f"{source}: no file matches")
        return files
    return [path]


def _below(root: Path, failed: list[tuple[str, str]]) -> list[Path]:
    """All files below a folder but hidden ones, links that lead nowhere too: those fail when they are read."""
    files: list[Path] = []

    def shut(error: OSError) -> None:
        folder = Path(error.filename)
        name = os.path.relpath(folder, root.parent if folder == root else root)
        failed.append((jsontext.printable(name), f"{folder}: {(error.strerror or str(error)).lower()}"))

    for folder, below, names in os.walk(root, onerror=shut):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            file = os.path.join(folder, name)
            if not name.startswith(".") and (os.path.isfile(file) or not os.path.exists(file)):
                files.append(Path(file))
    return sorted(files)


def trace_names(found: Sequence[Any]) -> list[str | None]:
    """The path below the common folder, without suffix, of each path; None for anything else.

    Where nothing but the root of the file system is common, the file's own name has to do: a name never tells where a
    folder is on this machine.
    """
    paths = [source for source in found if isinstance(source, Path)]
    if not paths:
        return [None] * len(found)
    folders = [os.path.abspath(path.parent) for path in paths]
    common = os.path.commonpath(folders)
    names: list[str | None] = []
    rooted = len(Path(common).parts) > 1
    for source in found:
        if isinstance(source, Path) and not rooted:
            names.append(jsontext.printable(stem(source.name)))
        elif isinstance(source, Path):
            below = Path(os.path.relpath(os.path.abspath(source.parent), common))
            names.append(jsontext.printable((below / stem(source.name)).as_posix()))
        else:
            names.append(None)
    return names


def _distinct(traces: list[Trace]) -> list[Trace]:
    """Traces whose names differ: a name that is there already gets a number."""
    seen: dict[str, int] = {}
    out: list[Trace] = []
    for trace in traces:
        n = seen[trace.name] = seen.get(trace.name, 0) + 1
        out.append(trace if n == 1 else trace.renamed(f"{trace.name}-{n}"))
    return out


def make_trace(messages: Iterable[tuple[str, Any] | Mapping[str, Any]], *, transport: str = "stdio") -> Trace:
    """A trace by hand: ``[("client", {...}), ("server", "raw text"), ...]``; a list is a batch.

    Text that is no JSON becomes an ``unparsed`` event. There is no clock. Over ``http`` each client message is a POST
    of its own, and what the server says next comes as JSON on the latest one. An object with a ``kind`` among them is
    an event as docs/trace-format.md has it (``{"kind": "close", "by": "server"}``, ``open``, ``http``, ``sse``, ...);
    ``seq`` and ``conn`` are put in, and so is the exchange where its ``http`` names none: that of a client's request
    is a new one, any other the latest.

    Raises:
        TraceError: a sender is neither client nor server, a message is no JSON value, an event is none, or the
            transport is not known.
    """
    return Trace(by_hand.record(messages, transport))
