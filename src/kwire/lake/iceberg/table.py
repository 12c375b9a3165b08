"""An Iceberg table: catalog, snapshots, and merges by copy on write.

    kwire.commit-id             of this commit
    kwire.query, kwire.batch    its Mark
    kwire.offsets               offsets of its rows
    kwire.state                 offsets and micro-batches of all commits so far; also a property of the table, for the
                                time when snapshots of kwire have expired, there with the snapshot's place

These are in the summaries of snapshots, so that a table that is rolled back is rolled back with its offsets.
PyIceberg's own retries are off: a retry has to look for the Mark again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from kwire.errors import TableError
from kwire.extras import need
from kwire.lake.data_files import FilePlan, WrittenFile, write_files
from kwire.lake.evolution import compare_schemas, evolved, nullable_fields
from kwire.lake.iceberg.errors import as_table_errors, configuration_error
from kwire.lake.iceberg.files import as_replacing, live_files, offsets_filter, read_live
from kwire.lake.iceberg.layout import layout_of, partition_terms, set_partitioning, set_sort_order, sort_terms
from kwire.lake.iceberg.plan import IcebergPlan, arrow_schema, plan_of
from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Spans, render_spans
from kwire.lake.setting_names import warn_of_misspelt
from kwire.lake.state import Change, TableState
from kwire.lake.table import CommitConflict, Layout, LoadedTable, Orphan, check_kept, check_key, check_merge_key

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

__all__ = ["IcebergTable"]

STATE, COMMIT_ID, QUERY, BATCH, OFFSETS = (
    "kwire.state",
    "kwire.commit-id",
    "kwire.query",
    "kwire.batch",
    "kwire.offsets",
)
SNAPSHOT = "snapshot"  # in kwire.state of the table's properties: id, sequence number (0 in format version 1), time
SOURCE = "source-snapshot-id"  # of a snapshot that was made by cherrypick_snapshot
RECENT = 100  # snapshots to look for a commit in
ATTEMPTS = 5  # to create or change what other writers create or change at the same time
MERGE = "commit.manifest-merge.enabled"
NEW_TABLE = {"write.metadata.delete-after-commit.enabled": "true"}  # each commit writes a metadata file


class IcebergTable(LoadedTable["Table"]):
    """The table `namespace.name` of a catalog. catalog: properties of pyiceberg.catalog.load_catalog, and its name."""

    def __init__(self, name: str, catalog: Mapping[str, str], *, catalog_name: str | None = None) -> None:
        need("pyiceberg", "pyarrow", what="Iceberg tables", extra="iceberg")
        if "." not in name.strip("."):
            raise TableError("expected NAMESPACE.TABLE, such as sales.orders", name)
        self.name = name
        self._settings, self._catalog_name = dict(catalog), catalog_name
        warn_of_misspelt(catalog, "PyIceberg", name)
        self._opened: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The catalog. Raises TableError."""
        for attempt in range(ATTEMPTS):
            try:
                self._opened = self._opened or self._open_catalog()
                return self._opened
            except CommitConflict:  # another process creates the tables of an SQL catalog
                time.sleep(0.1 * 2**attempt)
        raise TableError("the catalog is being changed by other writers; try again", self.name)

    def close(self) -> None:
        """Close the connections of the catalog."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _open_catalog(self) -> Catalog:
        """Return the catalog. Raises TableError, CommitConflict."""
        with as_table_errors(self.name):
            try:
                from pyiceberg.catalog import load_catalog  # reads .pyiceberg.yaml and the environment

                return load_catalog(self._catalog_name, **self._settings)
            except (OSError, ImportError):
                raise
            except Exception as error:
                if type(error).__module__.startswith(("strictyaml", "builtins", "pydantic")):
                    # without the cause, which quotes secrets, and which Spark would log
                    raise configuration_error(error, self.name) from None
                raise

    @property
    def id(self) -> str | None:
        """The UUID of the table as of the last refresh."""
        return None if self._table is None else str(self._table.metadata.table_uuid)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties as of the last refresh."""
        return {} if self._table is None else self._table.properties

    def refresh(self) -> None:
        """Load the table's current metadata."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            with as_table_errors(self.name):
                self._table = self.catalog.load_table(self.name)
        except CommitConflict as conflict:
            if not isinstance(conflict.__cause__, NoSuchTableError):
                raise TableError(f"{conflict}; try again", self.name) from conflict
            self._table = None
        except TableError as error:
            if not isinstance(error.__cause__, NoSuchNamespaceError):
                raise
            self._table = None

    # ---- before a write

    def prepare(self, schema: pa.Schema, layout: Layout, *, key: Sequence[str] = ()) -> IcebergPlan:
        """Create the table or add new columns; return how tasks write."""
        self.refresh_known()
        if self._table is None:
            self._create(nullable_fields(schema), layout, key)
        self.check_record(layout)
        self.check_layout(layout)
        self._check_version()
        self._evolve(nullable_fields(schema), key)
        return plan_of(self.table, self.name, is_staged=bool(key))

    def check_layout(self, layout: Layout) -> None:
        """Raise TableError if the table is divided or sorted otherwise than a layout says."""
        if self._table is not None:
            found = layout_of(self._table.metadata)
            check_kept("partitionBy", partition_terms(layout.partition_by), found.partition_by, self.name)
            check_kept("sortBy", sort_terms(layout.sort_by), found.sort_by, self.name)

    def _create(self, schema: pa.Schema, layout: Layout, key: Sequence[str]) -> None:
        from pyiceberg.exceptions import TableAlreadyExistsError

        check_key(key, schema)
        for attempt in range(ATTEMPTS):
            try:
                with as_table_errors(self.name):
                    self._create_namespace()
                    creation = self.catalog.create_table_transaction(
                        self.name, schema=schema, properties={**NEW_TABLE, **layout.properties}
                    )
                    self._check_stored(schema, creation)
                    set_partitioning(creation, layout.partition_by)
                    if layout.sort_by:
                        set_sort_order(creation, layout.sort_by)
                    self._table = creation.commit_transaction()
                return
            except (CommitConflict, TableError) as error:
                self.refresh()
                is_late = isinstance(error, CommitConflict) or isinstance(error.__cause__, TableAlreadyExistsError)
                if self._table is None and (not is_late or attempt + 1 == ATTEMPTS):
                    reason = error.what if isinstance(error, TableError) else error
                    raise TableError(f"cannot be created: {reason}", self.name) from error
                if self._table is not None and is_late:
                    return
                if not is_late:
                    raise

    def _create_namespace(self) -> None:
        """Create the namespace, if it is missing: only then is the right to do so needed."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        namespace = self.name.rpartition(".")[0]
        try:
            self.catalog.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            self.catalog.create_namespace_if_not_exists(namespace)

    def _check_version(self) -> None:
        """Raise TableError for a format version that PyIceberg reads but does not write."""
        from pyiceberg.table.metadata import SUPPORTED_TABLE_FORMAT_VERSION

        version = self.table.format_version
        if version > SUPPORTED_TABLE_FORMAT_VERSION:
            raise TableError(
                f"it has format version {version}, and PyIceberg writes up to {SUPPORTED_TABLE_FORMAT_VERSION}; write "
                "with Iceberg's JAR, or to a table of a lower version",
                self.name,
            )

    def _evolve(self, schema: pa.Schema, key: Sequence[str]) -> None:
        """Add what is new in a schema, unless another writer has done so meanwhile, or something is wrong with any."""
        for _ in range(ATTEMPTS):
            current = arrow_schema(self.table.metadata)
            evolution = compare_schemas(schema, current, self.name, can_widen=lambda narrow, wide: True)
            wanted = evolved(current, evolution)
            check_key(key, wanted)
            if key:
                check_merge_key(self.state(), key, self.name)
            if not evolution:
                return
            for path, _kind in evolution.added:
                self._check_new(path)
            try:
                with as_table_errors(self.name):
                    change = self.table.transaction()
                    with change.update_schema() as update:
                        update.union_by_name(wanted, format_version=self.table.format_version)
                    self._check_stored(schema, change)
                    change.commit_transaction()
            except CommitConflict:
                pass
            self.refresh()
        raise TableError("its schema is being changed by other writers; try again", self.name)

    def _check_stored(self, schema: pa.Schema, change: Transaction) -> None:
        """Raise TableError if a table will have other types than its rows."""
        compare_schemas(schema, arrow_schema(change.table_metadata), self.name, can_widen=lambda narrow, wide: False)

    def _check_new(self, path: tuple[str, ...]) -> None:
        """Raise TableError if a column is not new, but was renamed or dropped by somebody else."""
        name = ".".join(path)
        current = self.table.schema()
        for earlier in reversed(list(self.table.metadata.schemas)):
            with suppress(ValueError):
                field = earlier.find_field(name)
                now = current.find_column_name(field.field_id)
                what = f"was renamed to '{now}'" if now else "was dropped from the table"
                remedy = f"rename the column of the rows to '{now}'" if now else "drop it from the rows"
                raise TableError(
                    f"column '{name}' {what} after schema {earlier.schema_id}; {remedy}, or add a column '{name}' to "
                    "the table",
                    self.name,
                ) from None

    # ---- state

    def _state_version(self, table: Table) -> object:
        return table.metadata.current_snapshot_id, table.properties.get(STATE)

    def _read_state(self) -> TableState:
        """Return the offsets and micro-batches of the table's current snapshot.

        Raises TableError if the table was rolled back to a snapshot whose offsets are not known any more.
        """
        text = self.table.properties.get(STATE)
        last = TableState() if text is None else TableState.parse(text, self.name)
        oldest: Snapshot | None = None
        for snapshot in self._ancestors():
            if snapshot is None:
                break
            oldest = snapshot
            self._check_not_picked(snapshot)
            stored = _summary(snapshot).get(STATE)
            if stored is not None:
                return self._with_rolled_back(TableState.parse(stored, self.name), last)
        if text is None or oldest is None:
            return TableState()
        if oldest.sequence_number == 1:  # the first one of all: the table has gone back to before kwire's commits
            return self._with_rolled_back(TableState(), last)
        self._check_has_last(text, oldest)
        return last

    def _with_rolled_back(self, state: TableState, last: TableState) -> TableState:
        """Return a state with the queries whose later batches the table had: last, and in other snapshots."""
        later = dict(last.batches)
        for each in map(_summary, self.table.metadata.snapshots):
            if QUERY in each:
                later[each[QUERY]] = max(int(each[BATCH]), later.get(each[QUERY], -1))
        return state.without_later(later)

    def _check_has_last(self, text: str, oldest: Snapshot) -> None:
        """Raise TableError unless the last commit of kwire, in an expired snapshot, precedes the oldest one left.

        oldest: of the ancestors of the current snapshot, none of which has a state.
        """
        try:
            last_id, *last = json.loads(text)[SNAPSHOT]
        except (KeyError, ValueError, TypeError):
            raise TableError(f"its property {STATE} cannot be read: {text[:100]!r}", self.name) from None
        is_kept = any(each.snapshot_id == last_id for each in self.table.metadata.snapshots)
        # a table that was replaced has a first snapshot without a parent, and keeps those before
        if last >= _place(oldest) or (is_kept and oldest.parent_snapshot_id is not None):
            raise TableError(
                f"it was rolled back to a snapshot before {last_id}, which has its last offsets, and the snapshots "
                "with the offsets of its rows have expired; write to another table",
                self.name,
            )

    def _check_not_picked(self, snapshot: Snapshot) -> None:
        """Raise TableError for a copy of kwire's rows without their offsets."""
        source = _summary(snapshot).get(SOURCE)
        for each in self.table.metadata.snapshots:
            if source == str(each.snapshot_id) and COMMIT_ID in _summary(each):
                raise TableError(
                    f"snapshot {snapshot.snapshot_id} has rows of snapshot {source} (cherrypick_snapshot), and not "
                    "their offsets; roll back to a snapshot before it, or write to another table",
                    self.name,
                )

    def has_commit(self, change: Change) -> bool:
        """Return whether a commit is among the last snapshots."""
        for count, snapshot in enumerate(self._ancestors()):
            if snapshot is None or count >= RECENT:
                break
            if _summary(snapshot).get(COMMIT_ID) == change.id:
                return True
        return False

    def _ancestors(self) -> Iterator[Snapshot | None]:
        """Return the snapshots from the current one back to the first; None for one that has expired."""
        if self._table is None:
            return
        by_id = {each.snapshot_id: each for each in self._table.metadata.snapshots}
        current = self._table.metadata.current_snapshot_id
        while current is not None:
            snapshot = by_id.get(current)
            yield snapshot
            if snapshot is None:
                return
            current = snapshot.parent_snapshot_id

    # ---- commits

    def add(self, files: Sequence[WrittenFile], change: Change, plan: FilePlan) -> None:
        """Append files, or replace all files by them."""
        assert isinstance(plan, IcebergPlan)
        self._check_version()
        self._check_columns(plan)
        if self.table.metadata.default_spec_id != plan.spec_id:
            raise TableError("its partitioning was changed while rows were written; run the query again", self.name)
        with as_table_errors(self.name):
            replaced = [task.file for task in self.table.scan().plan_files()] if change.overwrite else []
            replaced += [each.entry.file for each in change.removed]
            self._commit([plan.data_file(each) for each in files], replaced, change)

    def merge(self, rows: pa.Table, key: Sequence[str], deleted: pa.Table, change: Change, plan: FilePlan) -> None:
        """Rewrite the files that have rows with these keys, and add the new rows."""
        import pyarrow as pa

        assert isinstance(plan, IcebergPlan)
        self._check_version()
        keys = pa.concat_tables([rows.select(list(key)), deleted])
        now = plan_of(self.table, self.name)
        for name in key:
            if name not in now.schema.names:
                raise TableError(
                    f"column '{name}' of mergeKey was renamed or dropped while rows were written; run the query again",
                    self.name,
                )
        self._check_columns(plan)
        written: list[WrittenFile] = []
        try:
            with as_table_errors(self.name):
                replaced: list[DataFile] = []
                for old, kept in self._files_with(keys, key):
                    replaced.append(old)
                    written += write_files(kept.to_batches(), now).files
                written += write_files(rows.to_batches(), now).files
                self._commit([now.data_file(each) for each in written], replaced, change)
        except CommitConflict:
            self.refresh()
            if not self.has_commit(change):  # a request that is sent twice conflicts with itself
                self.discard(written, now)
            raise

    def _check_columns(self, plan: IcebergPlan) -> None:
        """Raise TableError if columns of the rows were dropped, also if others of their names were added."""
        if plan.column_ids - self.table.schema().field_ids:
            raise TableError("its schema was changed while rows were written; run the query again", self.name)

    def read_staged(self, files: Sequence[WrittenFile], plan: FilePlan) -> Iterator[pa.Table]:
        """Return the rows of files that are not committed."""
        assert isinstance(plan, IcebergPlan)
        for each in files:
            with as_table_errors(self.name):
                yield plan.read(each.path)

    def _files_with(self, keys: pa.Table, key: Sequence[str]) -> Iterable[tuple[DataFile, pa.Table]]:
        """Return the files that have rows with one of the keys, each with its other rows."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, LessThanOrEqual

        if not len(keys):
            return
        at_least: Any = GreaterThanOrEqual  # whose types are those of pydantic
        at_most: Any = LessThanOrEqual
        wanted: BooleanExpression = AlwaysTrue()
        for name in key:
            bounds = pc.min_max(keys.column(name)).as_py()
            wanted = And(wanted, at_least(name, bounds["min"]), at_most(name, bounds["max"]))
        schema = arrow_schema(self.table.metadata)
        for each in live_files(self.table, wanted):
            rows = pa.Table.from_batches(read_live(self.table, each, None), schema)
            kept = without_keys(rows, keys, key)
            if len(kept) < len(rows):
                yield each.entry.file, kept

    def _commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], change: Change) -> None:
        state = self.state().after(change).render()
        properties = {COMMIT_ID: change.id, OFFSETS: render_spans(change.spans), STATE: state}
        if change.mark is not None:
            properties |= {QUERY: change.mark.query, BATCH: str(change.mark.batch)}
        transaction = self._transaction()
        update = transaction.update_snapshot(snapshot_properties=properties)
        producer: Any = update.overwrite() if removed else update.merge_append()
        if removed and change.same_rows:
            producer = as_replacing(producer)
        for old in removed:
            producer.delete_data_file(old)
        for new in added:
            producer.append_data_file(new)
        producer.commit()
        made = transaction.table_metadata.current_snapshot()
        assert made is not None
        snapshot = {SNAPSHOT: [made.snapshot_id, *_place(made)]}
        transaction.set_properties({STATE: json.dumps({**json.loads(state), **snapshot}, separators=(",", ":"))})
        transaction.commit_transaction()

    def _transaction(self) -> Transaction:
        """Return a transaction that does not retry by itself, and merges manifests unless the table says otherwise.

        Iceberg merges them by default, PyIceberg does not: each commit would add one to all that follow.
        """
        properties = {MERGE: "true", **self.table.metadata.properties, "commit.retry.num-retries": "0"}
        self.table.metadata = self.table.metadata.model_copy(update={"properties": properties})
        return self.table.transaction()

    # ---- data files

    def plan(self) -> IcebergPlan:
        """Return how tasks write files of the table as it is."""
        self._check_version()
        return plan_of(self.table, self.name)

    def live_files(self, wanted: Spans | None = None) -> list[LiveFile]:
        """Return the data files."""
        with as_table_errors(self.name):
            return live_files(self.table, None if wanted is None else offsets_filter(wanted))

    def read_live(self, files: Sequence[LiveFile], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of data files."""
        for each in files:
            with as_table_errors(self.name):
                yield from read_live(self.table, each, columns)

    # ---- orphans

    def find_orphans(self, older_than_s: float) -> list[Orphan]:
        """Return files in the table's directory that none of its snapshots has."""
        from kwire.lake.iceberg.orphans import find_orphans

        self.refresh()
        with as_table_errors(self.name):
            return find_orphans(self.table, self.refreshed, older_than_s)

    def expire(self, older_than_s: float, *, dry_run: bool = False) -> list[str]:
        """Remove older snapshots, and delete files that no other has.

        The current one, those of branches and tags, and the last one with kwire's state are kept.
        """
        from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotsUpdate

        from kwire.lake.iceberg.orphans import only_used_by

        limit_ms = (time.time() - older_than_s) * 1000
        for _ in range(ATTEMPTS):
            self.refresh()
            metadata = self.table.metadata
            kept = {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}
            with_state = (each for each in self._ancestors() if each is not None and STATE in _summary(each))
            kept |= {each.snapshot_id for each in islice(with_state, 1)}
            old = {each.snapshot_id for each in metadata.snapshots if each.timestamp_ms <= limit_ms} - kept
            if not old:
                return []
            try:
                with as_table_errors(self.name):
                    files = only_used_by(self.table, old)
                    if not dry_run:
                        require: Any = AssertRefSnapshotId  # whose types are those of pydantic
                        remove: Any = RemoveSnapshotsUpdate
                        is_current = require(ref="main", snapshot_id=metadata.current_snapshot_id)
                        transaction = self._transaction()  # PyIceberg's expire_snapshots() requires nothing
                        transaction._apply((remove(snapshot_ids=sorted(old)),), (is_current,))
                        transaction.commit_transaction()
                        for each in files:
                            self.table.io.delete(each)
                    return files
            except CommitConflict:
                time.sleep(0.1)
        raise TableError("other writers have committed first; try again", self.name)

    def refreshed(self) -> Table:
        """Return the table as it is now."""
        self.refresh()
        return self.table

    def delete_orphans(self, orphans: Sequence[Orphan]) -> None:
        """Delete files."""
        with as_table_errors(self.name):
            for each in orphans:
                self.table.io.delete(each.path)


def without_keys(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows whose key is not among `keys`."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pa.table({name: keys.column(name).cast(rows.schema.field(name).type) for name in key})
    if len(key) == 1:
        return rows.filter(pc.invert(pc.is_in(rows.column(key[0]), value_set=keys.column(key[0]))))
    numbered = rows.select(list(key)).append_column("__row", pa.array(np.arange(len(rows))))
    left = numbered.join(keys, keys=list(key), join_type="left anti")
    return rows.take(left.column("__row").combine_chunks().sort())


def _place(snapshot: Snapshot) -> list[int]:
    """Return what is larger for a later snapshot."""
    return [snapshot.sequence_number or 0, snapshot.timestamp_ms]


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
