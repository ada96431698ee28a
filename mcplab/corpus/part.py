"""One part of a corpus: the tables of some files as Parquet in a folder that appears complete or not at all."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from mcplab.corpus.plan import File, Options, identity
from mcplab.corpus.reading import ChangedError, Snapshot, records
from mcplab.corpus.verdicts import EXTRA, LEADS, Findings
from mcplab.frames import Tables, connections, declared, messages, table
from mcplab.jsontext import dumps, printable
from mcplab.model import COLUMNS, NO_TIME, Record, TraceError

TABLES: Final = ("instances", "connections", "declarations", "exchanges", "findings", "messages")
BATCH: Final = 4_000  # captures whose rows are written at once
COLLECT: Final = 500  # captures after which garbage is looked for
BATCH_BYTES: Final = 32 << 20  # ... or so many bytes of their messages
TRIES: Final = 3  # before a file that changes while it is read is left out

_TYPES: Final = {
    "str": pa.large_string(), "int64": pa.int64(), "Int64": pa.int64(), "float": pa.float64(), "bool": pa.bool_(),
    "boolean": pa.bool_(), "time": pa.timestamp("us", tz="UTC"),
}  # fmt: skip
_KIND: Final = (
    "transport", "era", "mode", "label", "offered", "selected", "discovery", "discovery_detail", "client",
    "client_from", "client_info", "client_version", "server", "server_version",
)  # fmt: skip
"""What instances of one kind have in common, besides their declarations."""
VARIES: Final = "~"
"""Last letter of a kind whose client did not declare the same each time."""
SETUP: Final = ("config", "label", "server", "server_mode")
"""What of a header an instance keeps."""
_SAID: Final = ("party", "place", "revision", "era", "path", "state", "value", "duplicate", "disputed")


def schema(name: str) -> pa.Schema:
    """The columns of a stored table."""
    if name == "findings":
        word = pa.dictionary(pa.int32(), pa.large_string())
        columns = [(c, word if dtype == "str" else _TYPES[dtype]) for c, dtype in COLUMNS[name].items()]
        return pa.schema([*columns, *((extra, word) for extra in EXTRA), (LEADS, pa.bool_())])
    return pa.schema([(column, _TYPES[dtype]) for column, dtype in COLUMNS[name].items()])


def whole(home: Path) -> dict[str, Any] | None:
    """What ``part.json`` says of a part; None: it is not there, or a table is not, or one that cannot be opened."""
    try:
        said = json.loads((home / "part.json").read_text(encoding="utf-8"))
        if all(not n or pq.read_metadata(home / f"{name}.parquet").num_rows == n for name, n in said["rows"].items()):
            return said
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def write_part(out: str, files: Sequence[File], options: Options) -> dict[str, Any]:
    """Make the part of these files below ``out``, unless it is there; what ``part.json`` says, and whether it is new.

    Safe to run twice at once, and to kill: the folder gets its name when all of it is on the disk.
    """
    restless: dict[str, int] = {}
    while True:
        try:
            return _once(Path(out), files, options, {path for path, n in restless.items() if n >= TRIES})
        except ChangedError as error:
            restless[str(error)] = restless.get(str(error), 0) + 1


def _once(out: Path, files: Sequence[File], options: Options, without: set[str]) -> dict[str, Any]:
    snapshots: list[tuple[File, Snapshot, str]] = []
    failed: list[tuple[str, str]] = []
    for file in files:
        if file.path in without:
            failed.append((file.shown, "changes while it is read: build again when it is at rest"))
            continue
        try:
            snapshot = Snapshot(Path(file.path))
            snapshots.append((file, snapshot, snapshot.digest()))
        except TraceError as error:
            failed.append((file.shown, str(error)))
    name = identity([(file.name, digest) for file, _, digest in snapshots], options)
    seen = [(file.path, snapshot.size, snapshot.mtime, digest) for file, snapshot, digest in snapshots]
    home = out / "parts" / name
    new = whole(home) is None
    if new:
        work = out / "tmp" / uuid.uuid4().hex
        work.mkdir(parents=True)
        try:
            with _uncollected(), _Writer(work, options) as writer:
                for file, snapshot, digest in snapshots:
                    _file(writer, file, snapshot, options, work / "spool")
                    snapshot.settled(digest)
            said = {"part": name, "files": len(snapshots), "rows": writer.rows, "failed": writer.failed}
            _commit(work, home, json.dumps(said, ensure_ascii=True, indent=1) + "\n")
        finally:
            shutil.rmtree(work, ignore_errors=True)
    said = json.loads((home / "part.json").read_text(encoding="utf-8"))
    return {**said, "failed": [*failed, *map(tuple, said["failed"])], "seen": seen, "new": new}


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Captures make many small objects that die young: looking for garbage each time would take longer than they do."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if collecting:
            gc.enable()


def _commit(work: Path, home: Path, said: str) -> None:
    """Everything to the disk, then the name: who sees the folder sees all of it."""
    (work / "part.json").write_text(said, encoding="utf-8")
    shutil.rmtree(work / "spool", ignore_errors=True)
    for path in sorted(work.iterdir()):
        _sync(path)
    _sync(work)
    home.parent.mkdir(parents=True, exist_ok=True)
    if home.exists() and whole(home) is None:  # damaged since
        shutil.rmtree(home)
    with contextlib.suppress(OSError):  # another worker was faster with the same part
        work.rename(home)
    if not home.is_dir():
        raise TraceError(f"{home}: cannot be written")
    _sync(home.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _file(writer: _Writer, file: File, snapshot: Snapshot, options: Options, spool: Path) -> None:
    try:
        for suffix, record in records(snapshot, split=options.split, spool=spool):
            if isinstance(record, TraceError):
                writer.failed.append((file.shown if not suffix else file.name + suffix, str(record)))
            else:
                writer.take(record, file.name + suffix)
    except TraceError as error:
        writer.failed.append((file.shown, str(error)))


class _Writer:
    """Rows of captures until they are enough for a row group; a Parquet file a table."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.options = options
        wanted = {"messages": options.messages, "findings": options.check}
        self.names = [name for name in TABLES if wanted.get(name, True)]
        self.rows = dict.fromkeys(self.names, 0)
        self.failed: list[tuple[str, str]] = []
        self._files: dict[str, pq.ParquetWriter] = {}
        self._findings = Findings()
        self._kinds: dict[Any, str] = {}
        self._clear()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            for file in self._files.values():
                file.close()

    def _clear(self) -> None:
        names = [name for name in self.names if name != "findings"]
        self._columns: dict[str, dict[str, list[Any]]] = {name: {c: [] for c in COLUMNS[name]} for name in names}
        self._captures = self._bytes = 0

    def take(self, record: Record, name: str) -> None:
        """Add a capture; one that breaks a table is listed as failed, and leaves nothing behind."""
        before = {table: len(columns["trace"]) for table, columns in self._columns.items()}
        try:
            self._add(record, Tables(record, name))
        except Exception as error:  # one capture must not stop the others
            for table, length in before.items():
                for values in self._columns[table].values():
                    del values[length:]
            text = printable(" ".join(str(error).split()))
            self.failed.append((name, text if isinstance(error, TraceError) else f"{type(error).__name__}: {text}"))
            return
        self._captures += 1
        if self._captures % COLLECT == 0:
            gc.collect()
        if self._captures >= BATCH or self._bytes >= BATCH_BYTES:
            self.flush()

    def _add(self, record: Record, tables: Tables) -> None:
        wire, name, found, ts = tables.wire, tables.name, tables.links, tables.ts
        columns = self._columns
        links, said = len(columns["connections"]["trace"]), len(columns["declarations"]["trace"])
        connections.add(columns["connections"], wire, name, found, ts)
        declared.add(columns["declarations"], wire, name, found)
        messages.add_exchanges(columns["exchanges"], wire, name, tables.instance, ts)
        if self.options.messages:
            messages.add_messages(columns["messages"], wire, name, tables.instance, ts)
        rows = list(_instances(columns["connections"], links))
        breaches: dict[str, int] = {}
        kinds = _kinds(columns, links, said)
        setup = _setup(record.header)
        made = [{**row, "kind": self._kind(kinds[row["instance"]]), "broken": None, "setup": setup} for row in rows]
        if self.options.check:
            whose = {row["instance"]: (row["client"], row["client_version"]) for row in rows}
            breaches = self._findings.take(tables, whose)
        for row in made:
            row["broken"] = breaches.get(str(row["instance"]))
            for column, values in columns["instances"].items():
                values.append(row[column])
        self._bytes += sum(len(row.raw) for row in wire.rows)

    def _kind(self, facts: Any) -> str:
        kind = self._kinds.get(facts)
        if kind is None:
            if len(self._kinds) > BATCH:
                self._kinds.clear()
            links, said = facts
            text = repr((links, sorted(said, key=repr)))
            kind = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
            told = {rows for _, rows in said if rows[0][0] == "client"}
            kind = self._kinds[facts] = kind + (VARIES if len(told) > 1 else "")
        return kind

    def flush(self) -> None:
        """Write what waits as a row group of each table."""
        for name, columns in self._columns.items():
            if name == "messages":
                columns = {**columns, "message": table.texts(columns["message"])}
            frame = table.build(name, columns)
            self._write(name, pa.Table.from_pandas(frame, schema(name), preserve_index=False))
        if self.options.check:
            self._write("findings", self._findings.arrow(schema("findings")))
        self._clear()

    def _write(self, name: str, rows: pa.Table) -> None:
        if not len(rows):
            return
        file = self._files.get(name)
        if file is None:
            path = self.folder / f"{name}.parquet"
            file = self._files[name] = pq.ParquetWriter(path, schema(name), compression="zstd")
        file.write_table(rows.replace_schema_metadata(None), row_group_size=len(rows))
        self.rows[name] += len(rows)


def _setup(header: Mapping[str, Any]) -> str | None:
    """What a header says of settings, as JSON text."""
    told = {name: header[name] for name in SETUP if name in header}
    return dumps(told) if told else None


# Instances -----------------------------------------------------------------------------------------


def _instances(links: dict[str, list[Any]], start: int) -> Iterator[dict[str, Any]]:
    """The instances of the connections from ``start`` on. What their connections differ in is joined by commas."""
    rows: dict[str, list[int]] = {}
    for n in range(start, len(links["trace"])):
        rows.setdefault(links["instance"][n], []).append(n)
    for instance, mine in rows.items():
        row: dict[str, Any] = {"instance": instance, "trace": links["trace"][mine[0]], "connections": len(mine)}
        for name in ("transport", "era", "label", "config", "client", "client_version", "server", "server_version"):
            values = links[name]
            found = values[mine[0]] if len(mine) == 1 else None
            row[name] = found or ", ".join(dict.fromkeys(v for n in mine if (v := values[n]) is not None)) or None
        for name in ("discovery", "calls"):
            row[name] = links[name][mine[0]]
        firsts = [t for n in mine if (t := links["first"][n]) is not None and t != NO_TIME]
        lasts = [t for n in mine if (t := links["last"][n]) is not None and t != NO_TIME]
        row |= {"first": min(firsts, default=None), "last": max(lasts, default=None)}
        row["messages"] = sum(links["messages"][n] for n in mine)
        yield row


def _kinds(columns: dict[str, dict[str, list[Any]]], links: int, said: int) -> dict[str, Any]:
    """Instance -> what it has in common with others of its kind: facts of its connections, and all that they declared.

    How often something was declared does not count, nor does a configuration's name, unless connections differ in it.
    """
    table = columns["connections"]
    place: dict[str, int] = {}
    facts: dict[str, list[Any]] = {}
    configs: dict[str, list[Any]] = {}
    for n in range(links, len(table["trace"])):
        instance = table["instance"][n]
        mine = facts.setdefault(instance, [])
        place[table["conn"][n]] = len(mine)
        mine.append(tuple(table[name][n] for name in _KIND))
        configs.setdefault(instance, []).append(table["config"][n])
    table = columns["declarations"]
    told: dict[str, set[Any]] = {instance: set() for instance in facts}
    groups: dict[tuple[str, Any, Any, Any], list[Any]] = {}
    each = [table[name][said:] for name in ("instance", "conn", "seq", "part", *_SAID)]
    for instance, conn, seq, part, *rest in zip(*each, strict=True):
        groups.setdefault((instance, conn, seq, part), []).append(tuple(rest))
    for (instance, conn, _, _), rows in groups.items():
        told[instance].add((place[conn], tuple(rows)))
    made: dict[str, Any] = {}
    for instance, mine in facts.items():
        names = configs[instance] if len(set(configs[instance])) > 1 else []
        made[instance] = (tuple(mine), tuple(names)), frozenset(told[instance])
    return made
