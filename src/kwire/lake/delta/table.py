"""A Delta table: commits with transaction identifiers, and merges by delta-rs.

    txn       appId: the query's id, version: its micro-batch                                       its Mark
              appId: kwire/TOPIC/PARTITION, version: the offset after the last one in the table; kwire/:TOPIC/...:
              the same of offsets whose dead letters are lost
              appId: kwire/TOPIC/PARTITION/0, /1, ..., versions: the first offset, then end and start of each hole
              appId: kwire/merge-key/["COLUMN", ...], version: 1 while the rows are merged by these columns, [] for
              rows that were appended
              appId: kwire/topic-id/TOPIC/ID, version: 1 while the offsets are those of this topic id
              appId: kwire/record/NAME, version: the number of a commit, see kwire.lake.counterparts
    commitInfo  kwire.commit-id, kwire.offsets, kwire.state

The state of a table is that of its rows. RESTORE brings rows of an earlier version back and leaves the transaction
identifiers as they are: the state is then that of the earlier version, and the next commit writes all that differ.
Identifiers cannot be removed; -1 is that of a query without a batch.

A partition from offset 0 without holes has the first of these only. kwire.state of the last commit is read if the log
still has one, since it is one look; a look at a transaction takes 2 ms. Transaction identifiers stay in the table's
checkpoints when commits are deleted from the log, unless the table has a retention for them. delta-rs and Spark refuse
concurrent commits with the same one.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kwire.errors import OptionError, TableError
from kwire.extras import need
from kwire.lake.data_files import FilePlan, WrittenFile
from kwire.lake.delta.checkpoints import transaction_ids
from kwire.lake.delta.errors import as_table_errors
from kwire.lake.delta.files import live_files
from kwire.lake.delta.layout import can_partition, check_partitioning, sort_terms
from kwire.lake.delta.plan import DeltaPlan, file_system, statistics_of
from kwire.lake.delta.transactions import (
    MERGE_KEY,
    app_id_of,
    bounds_of,
    inner_bounds,
    merge_mark,
    partition_of,
    ranges_of,
    state_spans,
    stored_spans,
)
from kwire.lake.delta.unfinished import delete_unfinished, find_unfinished, is_unfinished
from kwire.lake.evolution import Evolution, compare_schemas, evolved, nullable_fields, type_name
from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Spans, render_spans
from kwire.lake.setting_names import warn_of_misspelt
from kwire.lake.state import Change, TableState
from kwire.lake.table import (
    RECORD,
    CommitConflict,
    Layout,
    LoadedTable,
    Orphan,
    check_kept,
    check_key,
    check_merge_key,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, Schema

__all__ = ["DeltaLakeTable"]

STATE, COMMIT_ID, OFFSETS = "kwire.state", "kwire.commit-id", "kwire.offsets"
DELETED = "__kwire_deleted"
RECORD_COMMIT = "kwire/record/"
TOPIC_ID = re.compile(r"kwire/topic-id/([^/]+)/([\w-]{22})")
RECENT = 100  # commits to look for one in
# What writers of these tables have to do, and kwire does not. Source: Delta protocol, "Table Features".
UNSUPPORTED = {
    "columnMapping": "delta.columnMapping.mode",
    "rowTracking": "delta.enableRowTracking",
    "identityColumns": "delta.identity",
    "generatedColumns": "delta.generationExpression",
    "invariants": "delta.invariants",
    "checkConstraints": "delta.constraints.",
}
GOING_BACK = ("RESTORE", "CLONE")  # CREATE OR REPLACE TABLE t SHALLOW CLONE t VERSION AS OF 5
FORGETTING = "delta.setTransactionRetentionDuration"
DELETION_VECTOR = re.compile(r"deletion_vector_.+\.bin")
LOCAL_OPTIONS = ("allow_unsafe_rename", "mount_allow_unsafe_rename")
"""Options of delta-rs for a directory, such as one that is mounted; it ignores all others."""


class DeltaLakeTable(LoadedTable["DeltaTable"]):
    """The table in a directory. uri: path or URL. storage: options of delta-rs for its object store."""

    _table: DeltaTable | None = None
    _seen: tuple[int, int, int] | None = None  # version, and size and time of its file in the log
    _recorded = TableState()  # what the transaction identifiers say, as of the last state that was read

    def __init__(self, uri: str, storage: Mapping[str, str] | None = None) -> None:
        need("deltalake", "pyarrow", what="Delta tables", extra="delta")
        self.uri = uri if "://" in uri else os.path.abspath(uri.removeprefix("file:"))
        self.name, self.storage = self.uri, dict(storage or {})
        if "://" not in self.uri or self.uri.startswith("file://"):
            _check_local(self.storage)
        warn_of_misspelt(self.storage, "delta-rs", self.name)

    @property
    def id(self) -> str | None:
        """The id in the metadata of the table as of the last refresh."""
        return None if self._table is None else str(self._table.metadata().id)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties as of the last refresh."""
        return {} if self._table is None else self._table.metadata().configuration

    def refresh(self) -> None:
        """Load the table's current version."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with as_table_errors(self.name), suppress(TableNotFoundError):
            if self._table is not None and self._seen is not None and self._seen == self._version(self._seen[0]):
                self._table.update_incremental()
            else:  # delta-rs would put the log of another table on top of the one that is loaded
                self._table = None
                self._table = DeltaTable(self.uri, storage_options=self.storage)
            self._seen = self._version(self._table.version())

    def _version(self, version: int) -> tuple[int, int, int] | None:
        """Return a version with size and time of its file; None without it, for which loading gives the reason."""
        from deltalake.exceptions import DeltaError

        try:
            info = file_system(self.uri, self.storage).get_file_info(f"_delta_log/{version:020d}.json")
        except (DeltaError, OSError):
            return None
        return (version, info.size, info.mtime_ns) if info.is_file else None

    # ---- before a write

    def prepare(self, schema: pa.Schema, layout: Layout, *, key: Sequence[str] = ()) -> DeltaPlan:
        """Create the table or add new columns; return how tasks write."""
        self.refresh_known()
        wanted = nullable_fields(schema)
        if self._table is None:
            self._create(wanted, layout, key)
        self.check_record(layout)
        self.check_layout(layout)
        self._check_features()
        sort_by = self._evolve(wanted, layout, key)
        return self._plan(() if key else sort_by, is_staged=bool(key))

    def check_layout(self, layout: Layout) -> None:
        """Raise TableError if the table is divided otherwise than a layout says; each write may be sorted anew."""
        if self._table is not None:
            check_kept("partitionBy", layout.partition_by, self._table.metadata().partition_columns, self.name)

    def _plan(self, sort_by: tuple[tuple[str, str], ...] = (), *, is_staged: bool = False) -> DeltaPlan:
        metadata = self.table.metadata()
        target = metadata.configuration.get("delta.targetFileSize", "")
        plan = DeltaPlan(
            table=self.name,
            table_id=str(metadata.id),
            uri=self.uri,
            arrow=self._arrow(),
            partition_by=tuple(metadata.partition_columns),
            storage=self.storage,
            sort_by=sort_by,
            is_staged=is_staged,
        )
        return DeltaPlan(**{**vars(plan), "target_bytes": int(target)}) if target.isdigit() else plan

    def _create(self, schema: pa.Schema, layout: Layout, key: Sequence[str]) -> None:
        from deltalake import DeltaTable

        check_partitioning(layout.partition_by, schema)
        check_key(key, schema)
        sort_terms(layout, schema)
        stored = self._stored(schema)
        try:
            with as_table_errors(self.name):
                self._table = DeltaTable.create(
                    self.uri,
                    schema=stored,
                    partition_by=list(layout.partition_by),
                    configuration=dict(layout.properties),
                    storage_options=self.storage,
                    raise_if_key_not_exists=RECORD not in layout.properties,  # delta-rs knows none but Delta's own
                )
        except (CommitConflict, TableError) as error:
            self.refresh()
            if self._table is None:
                reason = error.what if isinstance(error, TableError) else error
                raise TableError(f"cannot be created: {reason}", self.name) from error

    def _arrow(self) -> pa.Schema:
        """Return the table's schema, with types as Spark's batches have them."""
        import pyarrow as pa

        with as_table_errors(self.name):
            return pa.schema(self.table.schema())

    def _check_features(self) -> None:
        """Raise TableError if writers of this table have to do what kwire does not."""
        text = self.table.schema().to_json()
        configuration = self.table.metadata().configuration
        for feature, setting in UNSUPPORTED.items():
            values = [value for name, value in configuration.items() if name.startswith(setting)]
            if any(value not in ("false", "none") for value in values) or f'"{setting}' in text:
                raise TableError(f"it uses {feature}, which is not supported; write with Spark's Delta Lake", self.name)
        for name in self.table.metadata().partition_columns:
            kind = self._arrow().field(name).type
            if not can_partition(kind):
                raise TableError(
                    f"it is partitioned by column '{name}' of type {type_name(kind)}, whose values readers do not "
                    "agree on; write to a table with other partitions",
                    self.name,
                )
        if FORGETTING in configuration:
            raise TableError(
                f"its property {FORGETTING} makes it forget the offsets and micro-batches that it has; unset it",
                self.name,
            )

    def _evolve(self, schema: pa.Schema, layout: Layout, key: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Add new columns, unless something is wrong with any; return what rows are sorted by."""
        for _ in range(5):
            current = self._arrow()
            evolution = compare_schemas(schema, current, self.name, can_widen=lambda narrow, wide: False)
            wanted = evolved(current, evolution)
            check_key(key, wanted)
            if key:
                check_merge_key(self.state(), key, self.name)
            sort_by = sort_terms(layout, wanted)
            if not evolution:
                return sort_by
            names = _top_level(evolution)
            changed = [field for field in self._stored(wanted).fields if field.name in names]
            try:
                with as_table_errors(self.name):
                    self.table.alter.add_columns(changed)
            except CommitConflict:
                pass
            self._table = None
            self.refresh()
        raise TableError("its schema is being changed by other writers; try again", self.name)

    def _stored(self, schema: pa.Schema) -> Schema:
        """Return a schema as Delta stores it. Raises TableError for types that it stores as others, or not."""
        import pyarrow as pa
        from deltalake import Schema

        for field in schema:
            try:
                Schema.from_arrow(pa.schema([field]))
            except Exception as error:  # its text has a stack
                raise TableError(
                    f"column '{field.name}' is of type {type_name(field.type)}, which Delta tables do not have; cast "
                    "the column, or leave it out",
                    self.name,
                ) from error
        stored = Schema.from_arrow(schema)
        compare_schemas(schema, pa.schema(stored), self.name, can_widen=lambda narrow, wide: False)
        return stored

    # ---- state

    def _state_version(self, table: DeltaTable) -> object:
        return self.id, table.version()

    def _read_state(self) -> TableState:
        self._recorded, state = self._states(self.table)
        return state

    def _states(self, table: DeltaTable) -> tuple[TableState, TableState]:
        """Return what the last commit of kwire says, or without one in the log, the transactions; and what is true.

        Raises TableError if the table has gone back to a version that is not known.
        """
        back: dict[str, Any] | None = None
        for version, commit in self._commits(table.version()):
            if STATE in commit:
                recorded = TableState.parse(commit[STATE], self.name)
                break
            if back is None and commit.get("operation") in GOING_BACK:
                back = {**commit, "version": version}
        else:
            recorded = self._checkpointed(table)
        if back is None or recorded == TableState():
            return recorded, recorded
        _, restored = self._states(self._restored(back))
        return recorded, restored.without_later(recorded.batches)

    def _restored(self, commit: Mapping[str, Any]) -> DeltaTable:
        """Return the version that a table has gone back to. Raises TableError."""
        from deltalake import DeltaTable

        version = str(commit.get("operationParameters", {}).get("version", "")).strip('"')
        what = f"version {commit['version']} is a {commit['operation']}"
        remedy = "restore it by version, as with RESTORE TABLE ... TO VERSION AS OF, or write to another table"
        if commit["operation"] != "RESTORE" or not version.isdecimal() or int(version) >= commit["version"]:
            raise TableError(
                f"{what} that does not name a version of it, so the offsets of its rows are not known; {remedy}",
                self.name,
            )
        try:
            with as_table_errors(self.name):
                return DeltaTable(self.uri, version=int(version), storage_options=self.storage)
        except TableError as error:
            raise TableError(
                f"{what} to version {version}, which its log no longer has, so the offsets of its rows are not known; "
                "write to another table",
                self.name,
            ) from error

    def _checkpointed(self, table: DeltaTable) -> TableState:
        """Return the partitions and queries that the transactions of a version have, by those of the last checkpoint.

        Those that are in no checkpoint are in a commit of kwire in the log, which has its state.
        """
        with as_table_errors(self.name):
            names = transaction_ids(file_system(self.uri, self.storage))
        merge_keys = {name for name in names if name.startswith(f"{MERGE_KEY}[")}
        of_topics = [match for name in names if (match := TOPIC_ID.fullmatch(name))]
        of_records = {name for name in names if name.startswith(RECORD_COMMIT)}
        names -= merge_keys | of_records | {match[0] for match in of_topics}
        merge_key = next((name for name in merge_keys if table.transaction_version(name)), None)
        merging = [] if merge_key is None else json.loads(merge_key.removeprefix(MERGE_KEY))
        keys = {name: partition_of(name) for name in sorted(names)}
        ends = {key: table.transaction_version(app_id_of(key)) for key in keys.values() if key is not None}
        all_bounds = {key: [*(bounds_of(table, key) or [0]), end] for key, end in ends.items() if end}
        batches = {name: table.transaction_version(name) for name, key in keys.items() if key is None}
        spans, rows_only = state_spans({key: ranges_of(bounds) for key, bounds in all_bounds.items()})
        return TableState(
            spans=spans,
            rows_only=rows_only,
            batches={query: batch for query, batch in batches.items() if batch is not None and batch >= 0},
            merge_key=None if merge_key is None else tuple(each for each in merging if isinstance(each, str)),
            order_by=tuple(name for each in merging if isinstance(each, dict) for name in each["orderBy"]),
            topic_ids={match[1]: match[2] for match in of_topics if table.transaction_version(match[0])},
            records={name.removeprefix(RECORD_COMMIT): table.transaction_version(name) or 0 for name in of_records},
        )

    def last_batch(self, query: str) -> int | None:
        """Return the last micro-batch of a query, also of one that Delta Lake's own sink has committed."""
        if self._table is None:
            return None
        state = self.state()
        batches = [
            state.batches.get(query),
            None if query in state.rolled_back else self.table.transaction_version(query),
        ]
        return max((batch for batch in batches if batch is not None and batch >= 0), default=None)

    def has_commit(self, change: Change) -> bool:
        """Return whether a commit is among the last ones."""
        if self._table is None:
            return False
        with as_table_errors(self.name):
            return any(commit.get(COMMIT_ID) == change.id for commit in self._table.history(RECENT))

    def _commits(self, version: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Return the versions in the log and what they say of themselves, from a version back.

        DeltaTable.history() counts commits without that information as none, and does not begin at an earlier version.
        """
        with as_table_errors(self.name):
            files = file_system(self.uri, self.storage)
        for each in range(version, -1, -1):
            with as_table_errors(self.name):
                try:
                    with files.open_input_file(f"_delta_log/{each:020d}.json") as file:
                        actions = [json.loads(line) for line in file.read().splitlines() if b'"commitInfo"' in line]
                except FileNotFoundError:
                    return
            yield each, next((action["commitInfo"] for action in actions if "commitInfo" in action), {})

    # ---- commits

    def add(self, files: Sequence[WrittenFile], change: Change, plan: FilePlan) -> None:
        """Append files, or replace all files by them."""
        from deltalake.transaction import AddAction, RemoveAction

        assert isinstance(plan, DeltaPlan)
        known = {field.name: field.type for field in self._arrow()}
        if any(known.get(field.name) != field.type for field in plan.schema):
            raise TableError("its schema was changed while rows were written; run the query again", self.name)
        if tuple(self.table.metadata().partition_columns) != plan.partition_by:
            raise TableError("its partitioning was changed while rows were written; run the query again", self.name)
        with as_table_errors(self.name):
            now_ms = time.time_ns() // 1_000_000
            actions: list[AddAction | RemoveAction] = [
                AddAction(
                    path=each.path,
                    size=each.size_bytes,
                    partition_values=each.facts["partition"],
                    modification_time=now_ms,
                    data_change=not change.same_rows,
                    stats=statistics_of(each.facts["footer"]),
                )
                for each in files
            ]
            actions += [
                RemoveAction(
                    path=each.path,
                    data_change=not change.same_rows,
                    deletion_timestamp=now_ms,
                    size=each.size_bytes,
                    partition_values=each.entry.values,
                )
                for each in change.removed
            ]
            self.table.create_write_transaction(
                actions,
                "overwrite" if change.overwrite else "append",
                self.table.schema(),
                list(plan.partition_by),
                commit_properties=self._properties(change),
            )

    def merge(self, rows: pa.Table, key: Sequence[str], deleted: pa.Table, change: Change, plan: FilePlan) -> None:
        """Merge rows by key."""
        import pyarrow as pa

        marked = [
            each.append_column(DELETED, pa.array([is_deleted] * len(each), pa.bool_()))
            for each, is_deleted in ((rows, False), (deleted, True))
        ]
        source = pa.concat_tables(marked, promote_options="default")
        condition = " AND ".join(f"{_quoted('t', name)} = {_quoted('s', name)}" for name in key)
        properties, version = self._properties(change), self.table.version()
        with as_table_errors(self.name):
            merge = self.table.merge(
                source, condition, source_alias="s", target_alias="t", commit_properties=properties
            )
            merge.when_matched_delete(f"s.{DELETED}").when_matched_update_all(
                except_cols=[DELETED]
            ).when_not_matched_insert_all(f"NOT s.{DELETED}", except_cols=[DELETED]).execute()
            if self.table.version() == version:  # nothing to change, but the offsets
                partition_by = self.table.metadata().partition_columns
                self.table.create_write_transaction(
                    [], "append", self.table.schema(), partition_by, commit_properties=properties
                )

    def read_staged(self, files: Sequence[WrittenFile], plan: FilePlan) -> Iterator[pa.Table]:
        """Return the rows of files that are not committed."""
        assert isinstance(plan, DeltaPlan)
        for each in files:
            with as_table_errors(self.name):
                yield plan.read(each)

    def _properties(self, change: Change) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        state = self.state().after(change)
        recorded = self._recorded
        marks: list[Transaction] = []
        before, after = stored_spans(recorded), stored_spans(state)
        changed = {key for key, _ in before.items() ^ after.items()}
        for key in changed | change.spans.keys():
            old, new = before.get(key, ()), after.get(key, ())
            marks.append(Transaction(app_id_of(key), new[-1][1] if new else 0))
            if inner_bounds(old) != inner_bounds(new):
                bounds = inner_bounds(new)
                # transactions cannot be removed: those of former holes become empty ranges
                bounds += [bounds[-1] if bounds else 0] * (len(bounds_of(self.table, key)) - len(bounds))
                marks += [Transaction(app_id_of(key, number), bound) for number, bound in enumerate(bounds)]
        old_key, new_key = merge_mark(recorded), merge_mark(state)
        if old_key != new_key:
            marks += [Transaction(name, version) for name, version in ((old_key, 0), (new_key, 1)) if name is not None]
        for topic, topic_id in recorded.topic_ids.items() ^ state.topic_ids.items():
            version = int(state.topic_ids.get(topic) == topic_id)
            marks.append(Transaction(f"kwire/topic-id/{topic}/{topic_id}", version))
        for record in {record for record, _ in recorded.records.items() ^ state.records.items()}:
            marks.append(Transaction(f"{RECORD_COMMIT}{record}", state.records.get(record, 0)))
        queries = {query for query, _ in recorded.batches.items() ^ state.batches.items()}
        queries |= state.rolled_back - recorded.rolled_back
        for query in queries if change.mark is None else queries | {change.mark.query}:
            if query in state.rolled_back:
                marks.append(Transaction(query, -1))
            elif query in state.batches:  # others are forgotten
                marks.append(Transaction(query, state.batches[query]))
        return CommitProperties(
            max_commit_retries=0,  # a retry has to read the state again
            app_transactions=marks,
            custom_metadata={COMMIT_ID: change.id, OFFSETS: render_spans(change.spans), STATE: state.render()},
        )

    # ---- data files

    def plan(self) -> DeltaPlan:
        """Return how tasks write files of the table as it is."""
        self._check_features()
        return self._plan()

    def live_files(self, wanted: Spans | None = None) -> list[LiveFile]:
        """Return the data files."""
        with as_table_errors(self.name):
            return live_files(self.table, wanted)

    def read_live(self, files: Sequence[LiveFile], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of data files."""
        for each in files:
            with as_table_errors(self.name):
                yield from each.entry.rows(self._arrow(), columns)

    # ---- orphans

    def find_orphans(self, older_than_s: float) -> list[Orphan]:
        """Return files in the table's directory that its log does not have."""
        from pyarrow.fs import FileType

        limit_ms = (time.time() - older_than_s) * 1000  # before the log is read: what is older was committed by then
        self.refresh()
        orphans = []
        with as_table_errors(self.name):
            every, tombstones = (
                self.table.vacuum(
                    int(older_than_s // 3600), dry_run=True, enforce_retention_duration=False, full=is_full
                )
                for is_full in (True, False)
            )
            files = file_system(self.uri, self.storage)
            for path in set(every) - set(tombstones):
                if DELETION_VECTOR.fullmatch(path.rpartition("/")[2]):  # delta-rs does not look for them in the log
                    continue
                info = files.get_file_info(path)
                if info.type == FileType.File:
                    orphans.append(Orphan(path=path, size_bytes=info.size, modified_ms=info.mtime_ns // 1_000_000))
            orphans += find_unfinished(self.uri)
        return sorted((each for each in orphans if each.modified_ms <= limit_ms), key=lambda each: each.path)

    def expire(self, older_than_s: float, *, dry_run: bool = False) -> list[str]:
        """Delete files of older versions: those that a commit removed before that time."""
        self.refresh()
        with as_table_errors(self.name):
            return sorted(
                self.table.vacuum(int(older_than_s // 3600), dry_run=dry_run, enforce_retention_duration=False)
            )

    def delete_orphans(self, orphans: Sequence[Orphan]) -> None:
        """Delete files."""
        with as_table_errors(self.name):
            files = file_system(self.uri, self.storage)
            for each in orphans:
                if is_unfinished(each.path):
                    delete_unfinished(self.uri, each.path)
                else:
                    files.delete_file(each.path)


def _check_local(storage: Mapping[str, str]) -> None:
    """Raise OptionError for options that a table in a directory does not have."""
    for name in storage:
        if name.lower() not in LOCAL_OPTIONS:
            raise OptionError(
                f"storage option '{name}': requires the URL of an object store; a path has only "
                f"{' and '.join(LOCAL_OPTIONS)}"
            )


def _quoted(alias: str, name: str) -> str:
    return f'{alias}."{name}"'


def _top_level(evolution: Evolution) -> set[str]:
    return {path[0] for path, _ in (*evolution.added, *evolution.widened)}
