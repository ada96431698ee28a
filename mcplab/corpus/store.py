"""A corpus that was built: its tables for a selection, SQL over all of it, and the questions that traces answer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from mcplab import comparison, jsontext
from mcplab.corpus.part import TABLES, VARIES, schema, whole
from mcplab.corpus.plan import LAYOUT
from mcplab.corpus.verdicts import EXTRA, LEADS
from mcplab.frames import Tables, table
from mcplab.model import COLUMNS, ArgumentError, MCPLabError, TraceError
from mcplab.versions import label_key

MANIFEST: Final = "corpus.json"
FACTS: Final = (
    "client", "client_version", "config", "transport", "era", "server", "server_version", "discovery", "trace",
    "instance", "kind",
)  # fmt: skip
"""What ``select`` takes by name."""
_MANIFEST: Final = {"rows": dict, "files": str, "failed": list, "parts": list, "options": dict}


def manifest(home: Path) -> dict[str, Any] | None:
    """What the last finished build left; None: there was none.

    Raises:
        TraceError: the file is no manifest of a corpus of this version.
    """
    try:
        said = json.loads((home / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TraceError(f"{home / MANIFEST}: cannot be read ({error}); build the corpus anew") from None
    if not isinstance(said, dict) or said.get("format") != "mcplab-corpus":
        raise TraceError(f"{home / MANIFEST}: not the manifest of a corpus")
    if said.get("version") != LAYOUT:
        told = f"layout {said.get('version')!r}, here {LAYOUT}"
        raise TraceError(f"{home}: made by another version of mcplab ({told}); build the corpus anew")
    if not all(isinstance(said.get(name), kind) for name, kind in _MANIFEST.items()):
        raise TraceError(f"{home / MANIFEST}: damaged; build the corpus anew")
    return said


@contextmanager
def _whole(home: Path) -> Iterator[None]:
    """Files that a corpus names and that cannot be read are a TraceError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        told = " ".join(str(error).split())
        raise TraceError(f"{home}: damaged ({told}); take away the part that it names and build again") from None


def opened(out: str | os.PathLike[str], *, memory: str = "1GB", threads: int | None = None) -> Corpus:
    """A corpus that was built.

    Args:
        out: its folder.
        memory: what DuckDB may take before it goes on in temporary files (they are removed with the corpus object).
        threads: of DuckDB; None: as many as there are cores.

    Raises:
        TraceError: there is no finished corpus in the folder.
    """
    home = Path(out)
    said = manifest(home)
    if said is None:
        raise TraceError(f"{home}: holds no finished corpus; mcplab corpus build makes one")
    return Corpus(home, said, memory=memory, threads=threads)


class Corpus:
    """The tables of very many captures. ``failed``: what could not be read (file, error).

    The tables (instances, connections, declarations, exchanges, findings, and messages where they were kept) are
    DataFrames of the columns of docs/columns.md, in the order in which ``read_traces`` would give them. They hold all
    that is selected: narrow a big corpus first (``select``), or ask in SQL.
    """

    def __init__(
        self, home: Path, said: dict[str, Any], *, memory: str, threads: int | None, where: Sequence[Any] = ()
    ) -> None:
        self.home = home
        self.rows: dict[str, int] = dict(said["rows"])
        """Table -> rows, of the whole corpus."""
        self.built: dict[str, int] = {}
        """What the build did that gave this object: parts, new (of them), files, read (of them)."""
        self._said = said
        self._memory = memory
        self._threads = threads
        self._where = tuple(where)
        self._made: dict[str, pd.DataFrame] = {}
        self._database: Any = None

    @property
    def failed(self) -> pd.DataFrame:
        """A row a file, or a capture in it, that could not be read: file, error."""
        return pd.DataFrame(self._said["failed"], columns=["file", "error"], dtype="str")

    @property
    def options(self) -> dict[str, bool]:
        """How it was built: messages, check, split."""
        return dict(self._said["options"])

    def status(self) -> dict[str, Any]:
        """Numbers of files, parts, failures, rows a table and bytes on the disk."""
        with _whole(self.home):
            files = pq.read_metadata(self.home / self._said["files"]).num_rows
        size = sum(file.stat().st_size for file in (self.home / "parts").rglob("*") if file.is_file())
        parts, failed = len(self._said["parts"]), len(self._said["failed"])
        return {"files": files, "parts": parts, "failed": failed, **self.rows, "bytes": size}

    # tables -----------------------------------------------------------------------------------------

    def _paths(self, name: str) -> list[str]:
        if name not in TABLES:
            raise ArgumentError(f"no table {name!r}: there are {', '.join(TABLES)}")
        if name not in self.rows:
            option = "messages=True" if name == "messages" else "check=True"
            raise TraceError(f"{self.home}: built without {name}; build it with {option}")
        paths: list[str] = []
        for part in self._said["parts"]:
            path = self.home / "parts" / part / f"{name}.parquet"
            if path.exists():
                paths.append(str(path))
            elif whole(path.parent) is None:  # a table without rows has no file
                raise TraceError(f"{path}: missing or damaged; build the corpus again")
        return paths

    def _chosen(self) -> pc.Expression | None:
        chosen = None
        for one in self._where:
            chosen = one if chosen is None else chosen & one
        return chosen

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables, of what is selected."""
        made = self._made.get(name)
        if made is None:
            rows = self._rows(name, list(COLUMNS.get(name, ())))
            made = self._made[name] = _frame(name, rows)
        return made

    def _rows(self, name: str, columns: list[str]) -> pa.Table:
        paths, chosen = self._paths(name), self._chosen()
        if chosen is not None and name != "instances":
            chosen = pc.field("instance").isin(self._rows("instances", ["instance"])["instance"].combine_chunks())
        if not paths:
            return schema(name).empty_table().select(columns)
        with _whole(self.home):
            return ds.dataset(paths, schema=schema(name), format="parquet").to_table(columns, filter=chosen)

    @property
    def instances(self) -> pd.DataFrame:
        """A row an instance: who ran against whom, when, and of which kind it is."""
        return self.table("instances")

    @property
    def connections(self) -> pd.DataFrame:
        """As ``Trace.connections``."""
        return self.table("connections")

    @property
    def declarations(self) -> pd.DataFrame:
        """As ``Trace.declarations``."""
        return self.table("declarations")

    @property
    def exchanges(self) -> pd.DataFrame:
        """As ``Trace.exchanges``."""
        return self.table("exchanges")

    @property
    def findings(self) -> pd.DataFrame:
        """As ``Trace.findings``."""
        return self.table("findings")

    @property
    def messages(self) -> pd.DataFrame:
        """As ``Trace.messages``, where the corpus was built with messages."""
        return self.table("messages")

    def select(self, *, since: Any = None, until: Any = None, **facts: Any) -> Corpus:
        """The same corpus with only some instances in its tables and answers.

        Args:
            since, until: instances whose first event is not before, and is before, this time (a text such as
                ``2026-01-05`` or ``2026-01-05T10:00``, UTC, or a datetime).
            facts: what a column of ``instances`` has to be: a value or a list of values (None: missing). Columns:
                client, client_version, config, transport, era, server, server_version, discovery, trace, instance,
                kind; also ``version`` for client_version.

        Raises:
            ArgumentError: there is no such column, or the time is none.
        """
        where: list[pc.Expression] = list(self._where)
        for name, wanted in facts.items():
            column = "client_version" if name == "version" else name
            if column not in FACTS:
                raise ArgumentError(f"select: no column {name!r}; it is one of {', '.join(FACTS)}")
            values = [wanted] if wanted is None or isinstance(wanted, str) else list(wanted)
            known = [jsontext.printable(value) for value in values if value is not None]
            one = pc.field(column).isin(pa.array(known, type=pa.large_string()))
            where.append(one | pc.field(column).is_null() if None in values else one)
        for limit, after in ((since, True), (until, False)):
            if limit is not None:
                moment = pa.scalar(_moment(limit), type=pa.timestamp("us", tz="UTC"))
                where.append(pc.field("first") >= moment if after else pc.field("first") < moment)
        return Corpus(self.home, self._said, memory=self._memory, threads=self._threads, where=where)

    def __len__(self) -> int:
        return len(self.instances) if self._where else self.rows["instances"]

    def __repr__(self) -> str:
        return f"<Corpus {self.home.name}: {len(self)} instances, {len(self._said['failed'])} failed>"

    # SQL --------------------------------------------------------------------------------------------

    def sql(self, query: str) -> pd.DataFrame:
        """The answer to a query over the tables (``instances``, ``connections``, ...), of what is selected.

        DuckDB's SQL. It may take more than fits into memory: what does not goes to temporary files. A query reaches the
        files of the corpus, and no other file, address or variable of Python.

        Raises:
            ArgumentError: the query is wrong; what DuckDB says, in one line.
            TraceError: files of the corpus are missing or damaged.
            MCPLabError: DuckDB is not installed.
        """
        return _plain(self._query(query))

    def _query(self, query: str) -> pa.Table:
        try:
            import duckdb
        except ImportError:
            raise MCPLabError("SQL needs DuckDB: install the extra 'scale' (pip install 'mcplab[scale]')") from None
        if self._database is None:
            try:
                self._database = self._connect(duckdb)
            except duckdb.Error as error:
                with _whole(self.home):
                    raise OSError(str(error)) from None
        try:
            found = self._database.sql(query)
            return pa.table({}) if found is None else found.to_arrow_table()
        except (duckdb.Error, UnicodeError) as error:
            raise ArgumentError(f"the query failed: {' '.join(str(error).split())}") from None

    def _connect(self, duckdb: Any) -> Any:
        folder = tempfile.mkdtemp(prefix="mcplab-corpus-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        settings: dict[str, Any] = {
            "memory_limit": self._memory, "temp_directory": folder,
            "autoinstall_known_extensions": False, "autoload_known_extensions": False,
        }  # fmt: skip
        if self._threads is not None:
            settings["threads"] = self._threads
        database = duckdb.connect(":memory:", config=settings)
        database.execute(
            "set enable_progress_bar = false; set TimeZone = 'UTC'; set python_enable_replacements = false"
        )
        chosen = self._chosen()
        if chosen is not None:
            database.register("chosen_", pa.table({"instance": pa.array(self.instances["instance"])}))
        allowed: list[str] = []
        for name in self.rows:
            paths = self._paths(name)
            allowed += paths
            if paths:
                files = _listed(paths)
                view = f"select * from read_parquet([{files}])"
            else:
                database.register(f"empty_{name}", schema(name).empty_table())
                view = f"select * from empty_{name}"
            if chosen is not None:
                view += " where instance in (select instance from chosen_)"
            database.execute(f"create view {name} as {view}")
        database.execute(f"set allowed_paths = [{_listed(allowed)}]")
        database.execute("set enable_external_access = false; set lock_configuration = true")
        return database

    # questions --------------------------------------------------------------------------------------

    def kinds(self, *more: str, apart: bool = False) -> Kinds:
        """One instance of each kind, the first, with how many there are: enough for what does not ask how often.

        Args:
            more: columns of ``instances`` in which those of one kind may differ, and have to be told apart by.
            apart: all instances whose client did not declare the same each time, not one of them.
        """
        by = ["kind", *more]
        columns = list(dict.fromkeys(["instance", *by]))
        rows = self._rows("instances", columns)
        if apart:
            own = pc.if_else(pc.ends_with(rows["kind"], VARIES), rows["instance"], pa.scalar(None, pa.large_string()))
            rows, by = rows.append_column("own", own), [*by, "own"]
        found = rows.group_by(by, use_threads=False).aggregate([("instance", "first"), ("instance", "count")])
        names, counts = found["instance_first"].to_pylist(), found["instance_count"].to_pylist()
        return Kinds(self.select(instance=names), dict(zip(names, counts, strict=True)))

    def compare(self, *, by: str | Sequence[str] = "client", party: str = "client", **options: Any) -> pd.DataFrame:
        """As ``mcplab.compare``: the same cells and counts. The evidence of a cell is one instance of each kind."""
        keys = [by] if isinstance(by, str) else list(by)
        if {"instance", "trace"} & set(keys):
            return comparison.compare(self, by=by, party=party, **options)
        kinds = self.kinds(*(["config"] if "config" in keys else []))
        frame = comparison.compare(kinds, by=by, party=party, **options)
        return kinds.weighed(frame, keys, by, party) if frame.attrs else frame

    def reach(self, paths: str | Sequence[str]) -> pd.DataFrame:
        """As ``mcplab.reach``."""
        return comparison.reach(paths, self.kinds())

    def variance(self, client: str | None = None) -> pd.DataFrame:
        """As ``mcplab.variance``. In ``evidence`` the first instance of a kind and setup stands for all of them."""
        from mcplab.varying import variance

        return variance(self.kinds("setup", apart=True), client)

    def versions(self) -> pd.DataFrame:
        """Who offers and gets which revision, and how: client, client_version, offered, selected, era, discovery,
        connections (how many)."""
        names = ["client", "client_version", "offered", "selected", "era", "discovery"]
        words = ", ".join(f"coalesce({name}, '') as {name}" for name in names)
        found = self.sql(f"select {words}, count(*) as connections from connections group by all")
        return _sorted(found, names)

    def counts(self, by: str | Sequence[str] = ("client", "client_version")) -> pd.DataFrame:
        """How many findings of each rule and verdict there are.

        Columns: those of ``by`` (client, client_version or both), rule, verdict, findings (rows), instances (that they
        are of).
        """
        keys = [by] if isinstance(by, str) else list(by)
        if wrong := [key for key in keys if key not in EXTRA]:
            raise ArgumentError(f"by={wrong[0]!r}: it is one or more of {', '.join(EXTRA)}")
        names = [*keys, "rule", "verdict"]
        words = ", ".join(f"coalesce({name}, '') as {name}" for name in names)
        counted = f"count(*) as findings, count(*) filter (where {LEADS}) as instances"
        return _sorted(self.sql(f"select {words}, {counted} from findings group by all"), names)


class Kinds:
    """Stands for a corpus where a question is about what was declared, and not how often."""

    def __init__(self, corpus: Corpus, weights: dict[str, int]) -> None:
        self._corpus = corpus
        self.weights = weights
        """Instance -> how many there are of its kind."""

    def __iter__(self) -> Iterator[Any]:
        """What stands for captures where only their headers count: ``name`` and ``header``."""
        rows = self._corpus.instances
        for name, setup in dict(zip(rows["trace"], rows["setup"], strict=True)).items():
            yield SimpleNamespace(name=name, header=jsontext.loads(setup) if isinstance(setup, str) else {})

    @property
    def connections(self) -> pd.DataFrame:
        """Those of one instance of each kind."""
        return self._corpus.connections

    @property
    def declarations(self) -> pd.DataFrame:
        """Those of one instance of each kind."""
        return self._corpus.declarations

    def weighed(self, frame: pd.DataFrame, keys: list[str], by: Any, party: str) -> pd.DataFrame:
        """A comparison of kinds with the counts of the instances that they stand for."""
        each = comparison.compare(self, by=[*keys, "instance"], party=party)
        counts: dict[tuple[str, Any], dict[str, int]] = {
            (path, who): {} for path in frame.index for who in frame.columns
        }
        instances: dict[Any, int] = dict.fromkeys(frame.columns, 0)
        for label in each.columns:
            who = label[0] if isinstance(by, str) else tuple(label[:-1])
            times = self.weights[label[-1]]
            instances[who] += times
            for path in each.index:
                for state in each.attrs["counts"][path, label]:
                    found = counts[path, who]
                    found[state] = found.get(state, 0) + times
        frame.attrs.update(counts=_Fixed(counts), instances=_Fixed(instances))
        return frame


class _Fixed(dict):
    """A dict that pandas may pass on without copying it each time."""

    def __deepcopy__(self, memo: Any) -> _Fixed:
        return self


def _listed(paths: Sequence[str]) -> str:
    """In SQL."""
    return ", ".join("'" + path.replace("'", "''") + "'" for path in paths)


def _moment(limit: Any) -> Any:
    try:
        moment = pd.Timestamp(limit)
    except (ValueError, TypeError):
        raise ArgumentError(f"{limit!r} is no time: write 2026-01-05 or 2026-01-05T10:00") from None
    return moment.tz_localize("UTC") if moment.tzinfo is None else moment.tz_convert("UTC")


def _sorted(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    order = sorted(frame.index, key=lambda at: [label_key(str(frame.at[at, name])) for name in names])
    return frame.loc[order].reset_index(drop=True)


def _frame(name: str, rows: pa.Table) -> pd.DataFrame:
    """Stored rows with the dtypes that the table has everywhere else."""
    if not len(rows):
        return Tables.empty(name)
    made: dict[str, Any] = {}
    for column, dtype in COLUMNS[name].items():
        values = rows[column]
        if dtype == "str":
            made[column] = pd.array(values.cast(pa.large_string()), dtype="str")
        elif dtype in ("Int64", "boolean"):
            kind: Any = pd.Int64Dtype() if dtype == "Int64" else pd.BooleanDtype()
            made[column] = kind.__from_arrow__(values)
        elif dtype == "time":
            made[column] = table.times(values.cast(pa.int64()).fill_null(table.NO_TIME).to_numpy())
        else:
            made[column] = values.to_numpy()
    return pd.DataFrame(made, copy=False)


def _plain(rows: pa.Table) -> pd.DataFrame:
    """An answer of DuckDB as pandas has it everywhere else here."""
    texts: Any = pd.StringDtype(na_value=float("nan"))  # type: ignore[call-arg]  # the stubs are of an older pandas
    return rows.to_pandas(types_mapper={pa.string(): texts, pa.large_string(): texts}.get)
