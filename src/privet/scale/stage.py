"""A release as a stage of somebody's own pipeline: an Arrow table goes in and one comes out.

    ds.map_batches(privet.Stage("r", id="person"), batch_format="pyarrow")         # Ray Data
    frame.mapInArrow(stage.batches, stage.spark_schema(frame))                     # Spark
    stage.register(connection, "privatize", "people")                              # DuckDB
    dataset.with_format("arrow").map(stage, batched=True)                          # Hugging Face

The noise of a record follows from the campaign's key, the record's content and its id, not from
where it stands: a task that is done again, on another machine or in other batches, gives the same
numbers. Rows are neither added nor left out, and their order is the engine's. The release and the
key travel with the stage to the workers, each of which loads the model once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from pickle import PickleBuffer
from threading import Lock
from typing import Any

import pandas as pd
import pyarrow as pa

from privet.core.errors import refuse_if, unknown
from privet.core.settings import names
from privet.data.arrow_encoding import numbers_of_arrow
from privet.data.dataset import Array
from privet.data.spaces import check_space, space_in
from privet.data.stream import encoded_table, record_field
from privet.release.apply import at_once, check_kept, released_column
from privet.release.kept_columns import check_judged
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise_keys import noise_key
from privet.release.randomness import Fresh, Randomness
from privet.release.runtime import Runnable, read_card, read_graph, session

# Releases that a process keeps loaded.
LOADED = 4
PROTOCOL_OF_BUFFERS = 5


class Stage:
    """A release that takes Arrow tables and gives Arrow tables, wherever an engine runs it.

    Parameters:
        release: The folder of a release.
        id: The column that tells records with the same content apart. Without it, equal records get
            equal noise, and come out equal.
        keep: Columns that are passed on beside the released records; judged as `privet.apply` does.
        accept: Those of them that are passed on whatever they tell.
        audit: The audit that has judged them, where it is not in the release's folder.
        column: The column that holds the picture, text or window, where it is not plain to see.
        campaign: Whose key the noise is drawn with; the beginning of the graph's hash where none is
            named.
        fresh: Draw noise that nobody can repeat. A task that is done again then gives other
            numbers, and whoever sees both can average.
        threads: Threads of one worker's model; engines run several workers.
        home: Where keys are kept; `$PRIVET_HOME`, or `~/.local/share/privet`.

    Example:
        >>> import numpy as np, pyarrow as pa, privet, tempfile
        >>> rows = {f"c{i}": np.random.default_rng(i).standard_normal(80) for i in range(3)}
        >>> rows["sex"] = np.where(rows["c0"] > 0, "f", "m")
        >>> data = privet.load(rows, progress=False)
        >>> release = privet.LEACE().fit(data, "sex", run=privet.Run(progress=False))
        >>> folder = tempfile.mkdtemp()
        >>> release.save(folder + "/r")
        >>> stage = privet.Stage(folder + "/r", home=folder)
        >>> stage(pa.table(rows)).column_names
        ['z']
    """

    def __init__(
        self,
        release: str | Path,
        id: str | None = None,
        keep: str | Iterable[str] = (),
        *,
        accept: str | Iterable[str] = (),
        audit: str | Path | None = None,
        column: str | None = None,
        campaign: str | None = None,
        fresh: bool = False,
        threads: int = 1,
        home: str | Path | None = None,
    ) -> None:
        folder = Path(release)
        self.card, self.graph = read_card(folder), read_graph(folder)
        self.id, self.keep, self.column = id, tuple(names(keep)), column
        self.threads = threads
        self._model: tuple[Runnable, Any] | None = None
        check_kept(self.keep, self.card.get("private", []))
        check_judged(folder, self.card, self.keep, names(accept), audit)
        digest = self.card["sha256"]["graph"]
        campaign = campaign or digest[:16]
        self.randomness: Randomness = Fresh()
        if not fresh:
            key = noise_key(campaign, None if home is None else Path(home))
            self.randomness = KeyedNoise(key, digest, campaign)

    def __call__(self, records: Any) -> Any:
        """Released records of a table, a record batch, or a mapping of columns: the kept columns
        and `z`, in the same order."""
        if isinstance(records, pa.RecordBatch):
            return self.table(pa.Table.from_batches([records])).to_batches()[0]
        if isinstance(records, pa.Table):
            return self.table(records)
        if isinstance(records, pd.DataFrame):
            return self.table(pa.Table.from_pandas(records, preserve_index=False)).to_pandas()
        return self.table(pa.table(dict(records))).to_pydict()

    def batches(self, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, batch by batch: what Spark's `mapInArrow` calls. Spark takes lists of a free
        size only."""
        for batch in records:
            if batch.num_rows:
                table = self.table(pa.Table.from_batches([batch]))
                z = table["z"].cast(pa.list_(pa.float32()))
                yield from table.set_column(len(self.keep), "z", z).to_batches()

    def table(self, records: pa.Table) -> pa.Table:
        """Released records of a table."""
        release, run = self._loaded()
        for name in self._beside:
            if name not in records.column_names:
                raise unknown("column", name, records.column_names)
        if not len(records):
            return self.schema(records.schema).empty_table()
        space = getattr(release.schema.plain, "space", None)
        check_space(space, space_in(records.schema.metadata), "The table")
        column = self.column or record_field(release.schema, records.schema, self._beside)
        x = encoded_table(release.schema, records, column, "The table")
        ids = self._ids(records, release)
        kept = records.select(list(self.keep))
        return kept.append_column("z", self._released(release, run, x, ids))

    def _released(self, release: Runnable, run: Any, x: Array, ids: list[str]) -> pa.Array:
        """The column `z`. Where records are of one size it is made in one piece: engines copy what
        comes in many."""
        few, fixed = at_once(release.schema), None not in release.shape
        z = numbers_of_arrow(len(x) if fixed else 0, release.size)
        parts = []
        for at in range(0, len(x), few):
            here = slice(at, at + few)
            given = release.release(run, x[here], self.randomness, at, ids[here], places=False)
            if fixed:
                z[here] = given.z.reshape(-1, release.size)
            else:
                parts.append(released_column(given.z, given.x))
        return released_column(z, x[:0]) if fixed else pa.concat_arrays(parts)

    def _loaded(self) -> tuple[Runnable, Any]:
        if self._model is None:
            run = _session(self.card["sha256"]["graph"], self.graph, self.threads)
            self._model = Runnable.from_card(self.card), run
        return self._model

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """What travels to a worker: all but the loaded model. The graph as a buffer, where pickle
        has them, so that an engine that shares memory does not copy it for every task."""
        buffers = int(protocol) >= PROTOCOL_OF_BUFFERS
        graph = PickleBuffer(self.graph) if buffers else bytes(self.graph)
        return _arrived, (type(self), {**self.__dict__, "graph": graph, "_model": None})

    @property
    def _beside(self) -> tuple[str, ...]:
        """Columns that are not the record."""
        return (*self.keep, *([self.id] if self.id else []))

    def _ids(self, records: pa.Table, release: Runnable) -> list[str]:
        refuse_if(
            self.id is not None and records[self.id].null_count > 0,
            f"The column '{self.id}' has gaps: it cannot tell records apart.",
        )
        if self.id is None or release.noise is None:
            return [""] * len(records)
        return list(map(str, records[self.id].to_pylist()))

    def z_type(self) -> pa.DataType:
        """The type of the released records: lists of a fixed size, or free where a text's length
        is."""
        release = Runnable.from_card(self.card)
        fixed = None not in release.shape
        return pa.list_(pa.float32(), release.size if fixed else -1)

    def schema(self, records: pa.Schema) -> pa.Schema:
        """The schema of what comes out of records of this schema."""
        fields = [records.field(name) for name in self.keep]
        return pa.schema([*fields, pa.field("z", self.z_type())])

    def spark_schema(self, frame: Any) -> Any:
        """What `mapInArrow` has to be told about what comes out of a Spark frame."""
        from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

        fields = [frame.schema[name] for name in self.keep]
        return StructType([*fields, StructField("z", ArrayType(FloatType()))])

    def register(self, connection: Any, name: str, table: str) -> None:
        """Make the stage a function of DuckDB that takes a row of `table`:
        `SELECT id, privatize(people) AS z FROM people`.

        Parameters:
            connection: Of DuckDB.
            name: What the function is called.
            table: The table or view whose rows it takes.
        """
        import duckdb

        rows = connection.table(table)
        fields = dict(zip(rows.columns, rows.types, strict=True))
        if None in Runnable.from_card(self.card).shape:
            kind: Any = duckdb.list_type("FLOAT")
        else:
            kind = duckdb.array_type("FLOAT", self.z_type().list_size)

        def privatize(row: Any) -> Any:
            whole = row.combine_chunks() if isinstance(row, pa.ChunkedArray) else row
            fields = [whole.type.field(k).name for k in range(whole.type.num_fields)]
            columns = pa.table(list(whole.flatten()), names=fields)
            return self.table(columns)["z"].combine_chunks()

        connection.create_function(
            name,
            privatize,
            [duckdb.struct_type(fields)],
            kind,
            type="arrow",
            # Its noise is keyed, or fresh for every row: neither may be taken for a constant.
            side_effects=isinstance(self.randomness, Fresh),
        )


def _arrived(kind: type[Stage], state: dict[str, Any]) -> Stage:
    stage = kind.__new__(kind)
    stage.__dict__.update(state)
    return stage


_SESSIONS: dict[tuple[str, int], Any] = {}
_LOADING = Lock()


def _session(digest: str, graph: bytes, threads: int) -> Any:
    """The model, loaded once in a process, also where an engine runs the stage in several threads.
    The digest stands for the graph, which may be large."""
    with _LOADING:
        made = _SESSIONS.pop((digest, threads), None) or session(bytes(graph), threads)
        _SESSIONS[digest, threads] = made
        if len(_SESSIONS) > LOADED:
            del _SESSIONS[next(iter(_SESSIONS))]
        return made
