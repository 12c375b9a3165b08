"""Check the other files of the metadata log: snapshots (`.checkpoint`) and quorum-state.

A snapshot is a record set that begins with a SNAPSHOT_HEADER and ends with a SNAPSHOT_FOOTER control record;
bootstrap.checkpoint, written when a directory is formatted, is one as well.
Source: rules F-50, R-42; Kafka's Snapshots, RecordsSnapshotReader, FileQuorumStateStore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch, LogError, Malformed
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.maintenance.verify.assessment import Assessment, assess_unreadable
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.storage.header_walk import is_zero_tail
from kwire.storage.store import Store

if TYPE_CHECKING:
    from kwire.log.reading.partition_log import PartitionLog

__all__ = ["BOOTSTRAP", "verify_metadata_files", "verify_metadata_snapshot"]

BOOTSTRAP = "bootstrap.checkpoint"
QUORUM_STATE = "quorum-state"
SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
UNFINISHED = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint(\.part|\.deleted)")
VERSIONS = {
    0: ("leaderId", "leaderEpoch", "votedId"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}


def verify_metadata_files(log: PartitionLog) -> list[Damage]:
    """Verify the snapshots and quorum-state of `__cluster_metadata-0`; other logs have none."""
    if log.topic != METADATA_TOPIC:
        return []
    damages: list[Damage] = []
    snapshots = sorted(name for name in log.file_names if SNAPSHOT.fullmatch(name))
    for name in snapshots:
        damages += verify_metadata_snapshot(log.store, log.path_of(name), log=log, is_newest=name == snapshots[-1])
    for name in log.file_names:
        if UNFINISHED.fullmatch(name):
            url = log.url_of(name)
            reason = "an incomplete snapshot" if name.endswith(".part") else "marked for removal"
            effect = "a starting broker removes it"
            damages.append(Assessment(Severity.NOTE, effect, "none needed").damage(log, url, Kind.LEFTOVER, reason))
    if log.has_file(QUORUM_STATE):
        damages += _quorum_state(log)
    return damages


def verify_metadata_snapshot(
    store: Store, path: str, *, log: PartitionLog | None = None, is_newest: bool = True
) -> list[Damage]:
    """Verify one snapshot of the metadata log."""
    url = store.url_of(path)
    severity = Severity.STOPS_BROKER if is_newest else Severity.MISLEADS
    effect = "a starting broker cannot read the cluster's metadata" if is_newest else "none: a newer snapshot exists"
    hint = "move it elsewhere if an older snapshot and the log after it exist, or copy one from another controller"
    assessment = Assessment(severity, effect, hint)
    try:
        return [
            assessment.damage(log, url, Kind.METADATA, what, position=position)
            for position, what in _snapshot_faults(store, path)
        ]
    except LogError as error:
        return [assess_unreadable(error).damage(log, url, Kind.UNREADABLE, error.what)]


def _snapshot_faults(store: Store, path: str) -> Iterator[tuple[int, str]]:
    """Return (position, cause) of the first fault of a snapshot, which is read whole."""
    data = store.read_all(path)
    position = 0
    first = last = None
    try:
        for batch in read_batches(data):
            position = batch.position + batch.size_bytes
            batch.check()
            records = list(batch.records())
            control = parse_control_record(records[0]).type if batch.is_control and records else None
            first = control if batch.position == 0 else first
            last = control
    except CorruptBatch as error:
        yield error.position, error.what
        return
    except Malformed as error:
        yield position, error.what
        return
    if position < len(data):
        with store.open(path) as file:
            zeros = is_zero_tail(file, position)
        yield position, "zeros after the last batch" if zeros else "the file ends inside a batch"
    elif not path.endswith(BOOTSTRAP) or last is not None:
        if first is not ControlRecordType.SNAPSHOT_HEADER:
            yield 0, "it does not begin with a snapshot header"
        if last is not ControlRecordType.SNAPSHOT_FOOTER:
            yield position, "incomplete: it does not end with a snapshot footer"


def _quorum_state(log: PartitionLog) -> Iterator[Damage]:
    url = log.url_of(QUORUM_STATE)
    effect = "a KRaft node does not start"
    hint = "with several nodes, remove it on this one, which then votes again; otherwise restore it from a backup"
    try:
        data = log.read_file(QUORUM_STATE)
    except LogError as error:
        yield assess_unreadable(error, effect).damage(log, url, Kind.UNREADABLE, error.what)
        return
    what = None
    try:
        state = json.loads(data)
        version = state["data_version"]
        missing = [name for name in VERSIONS[version] if name not in state]
        if missing:
            what = f"{missing[0]} is missing"
        elif not all(isinstance(state[name], int) for name in VERSIONS[0]):
            what = f"{', '.join(VERSIONS[0])} must be integers"
    except (ValueError, TypeError):
        what = "not a JSON object"
    except KeyError as error:
        what = f"data_version is missing or unsupported: {error}; expected 0 or 1"
    if what:
        yield Assessment(Severity.STOPS_BROKER, effect, hint).damage(log, url, Kind.METADATA, what)
