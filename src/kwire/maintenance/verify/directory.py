"""Verify a log directory: its own files against its logs, and each log.

Partitions are verified in parallel threads; the kernels release the GIL.
Source: rules F-01 to F-03, G-01 to G-11; Kafka's LogManager, OffsetCheckpointFile, MetaProperties.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.errors import LogError, Malformed
from kwire.identifiers import parse_uuid
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.log.files.file_names import MARKED_DIRECTORY
from kwire.maintenance.verify.assessment import OFFLINE, Assessment, PartitionContext, assess_unreadable, is_refused
from kwire.maintenance.verify.findings import DirectoryFindings, PartitionFindings
from kwire.maintenance.verify.metadata import BOOTSTRAP, verify_metadata_files, verify_metadata_snapshot
from kwire.maintenance.verify.partition import verify_partition
from kwire.maintenance.verify.root_files import (
    OWN_FILES,
    RootFiles,
    context_of,
    partitions_without_directory,
    read_root_files,
    root_files_above,
)
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_properties,
)
from kwire.storage.directory_lock import is_held
from kwire.storage.store import LocalStore

if TYPE_CHECKING:
    from kwire.log.reading.log_directory import LogDirectory
    from kwire.log.reading.partition_log import PartitionLog

__all__ = [
    "verify_directory",
    "verify_log",
    "verify_root",
]

NO_LOGS = frozenset({"remote-log-index-cache"})  # KIP-405 keeps it beside the logs

NAMES_SHOWN = 10
MAX_ATTEMPTS = 3  # for a partition whose files change while it is verified


def verify_directory(
    directory: LogDirectory,
    logs: Sequence[PartitionLog] | None = None,
    *,
    advance: Callable[[int], None] | None = None,
    threads: int | None = None,
) -> DirectoryFindings:
    """Verify a log directory. logs: only these partitions; the directory's own files are always verified.

    advance: called from several threads with bytes of `.log` files read. threads: default: one per processor.
    """
    chosen = list(directory.values()) if logs is None else list(logs)
    whole = len(chosen) == 1 and not chosen[0].directory  # a partition's own directory
    root = None if whole else root_files_above(chosen[0])

    def verify(log: PartitionLog) -> PartitionFindings:
        context = context_of(log) if root is None else root.context((log.topic, log.partition))
        return verify_log(log.reopened(), context, advance=advance)

    findings = DirectoryFindings()
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        findings.partitions = list(pool.map(verify, chosen))
    if root is not None:
        findings.damages += _verify_root_twice(directory, root, findings.partitions, is_whole=logs is None)
    for each in findings.partitions:
        findings.damages += each.damages
    findings.damages.sort(key=lambda each: (-each.severity, each.file, each.position or 0))
    return findings


def verify_log(
    log: PartitionLog, context: PartitionContext, *, advance: Callable[[int], None] | None = None
) -> PartitionFindings:
    """Verify one log, including the metadata log's other files.

    A broker may be running on it: if files have changed during the verification, it is repeated with a new listing, and
    only findings that occur again are reported.
    """
    with suppress(LogError):  # of a directory that was deleted, which verification reports
        if not (log.listing and log.is_fully_listed):
            log = log.reopened()
            _ = log.listing  # changes of any file count, so sizes and times of all of them are needed
    findings = _verify_once(log, context, advance)
    for _ in range(MAX_ATTEMPTS - 1):
        if all(each.is_harmless for each in findings.damages):
            break
        if log.is_deleted:  # the topic was deleted
            return PartitionFindings(log=log, segments=[], damages=[])
        again = log.reopened()
        if not log.has_changed(again):
            break
        log, before = again, {_identity(each) for each in findings.damages}
        findings = _verify_once(log, context, None)
        if log.has_changed(log.reopened()):
            findings.damages = [each for each in findings.damages if each.is_harmless or _identity(each) in before]
    return findings


def _verify_once(
    log: PartitionLog, context: PartitionContext, advance: Callable[[int], None] | None
) -> PartitionFindings:
    findings = verify_partition(log, context, advance=advance)
    findings.damages += verify_metadata_files(log)
    return findings


def _identity(damage: Damage) -> tuple[str, Kind, int | None, str]:
    return damage.file, damage.kind, damage.position, damage.cause


def verify_root(
    directory: LogDirectory, root: RootFiles, partitions: list[PartitionFindings], *, is_whole: bool
) -> list[Damage]:
    """Verify the directory's own files. partitions: findings of its logs; is_whole: whether these are all."""
    return _Root(directory, root, partitions, is_whole=is_whole).damages()


def _verify_root_twice(
    directory: LogDirectory, root: RootFiles, partitions: list[PartitionFindings], *, is_whole: bool
) -> list[Damage]:
    """Run verify_root, and again with current files if it finds damage: a broker may have written them."""
    damages = verify_root(directory, root, partitions, is_whole=is_whole)
    if all(each.is_harmless for each in damages):
        return damages
    try:
        now = verify_root(directory.reopened(), read_root_files(root.store, root.topics), partitions, is_whole=is_whole)
    except LogError:
        return damages
    before = {_identity(each) for each in damages}
    return [each for each in now if each.is_harmless or _identity(each) in before]


class _Root:
    """The checks of the directory's own files."""

    def __init__(
        self, directory: LogDirectory, root: RootFiles, partitions: list[PartitionFindings], *, is_whole: bool
    ) -> None:
        self.directory, self.root, self.is_whole = directory, root, is_whole
        self.partitions = {(each.log.topic, each.log.partition): each for each in partitions}
        self.reported: list[Damage] = []

    def damages(self) -> list[Damage]:
        """Run all checks and return their findings."""
        self._unreadable()
        self._clean_shutdown()
        self._meta_properties()
        self._partitions_without_directory()
        self._cleaner_offsets()
        self._topic_ids()
        self._shared_directories()
        self._directories()
        if BOOTSTRAP in self.root.names:
            self.reported += verify_metadata_snapshot(self.root.store, BOOTSTRAP)
        return self.reported

    def report(self, name: str, kind: Kind, cause: str, severity: Severity, effect: str, hint: str) -> None:
        url = self.root.store.url_of(name)
        self.reported.append(Assessment(severity, effect, hint).damage(None, url, kind, cause))

    def _unreadable(self) -> None:
        for name, error in self.root.errors:
            if isinstance(error, LogError):
                self.report(name, Kind.UNREADABLE, error.what, *assess_unreadable(error))
                continue
            severity, effect = UNREADABLE_CHECKPOINTS[name]
            self.report(name, Kind.CHECKPOINT, str(error), severity, effect, "run kwire log repair to rewrite it")

    def _clean_shutdown(self) -> None:
        if self.root.is_clean is False:
            effect = "a starting broker recovers the segments from the recovery point on"
            hint, what = "none needed", "the file is missing: the broker was not shut down"
            if isinstance(self.root.store, LocalStore) and is_held(self.root.store.url):
                hint = "verify again after stopping the broker: writes in progress may be incomplete"
                what = "the file is missing: a broker is running, its lock is held"
            self.report(CLEAN_SHUTDOWN, Kind.UNCLEAN_STOP, what, Severity.NOTE, effect, hint)
        elif self.root.is_clean:
            try:
                data = self.root.store.read_all(CLEAN_SHUTDOWN)
                if data.strip():
                    json.loads(data)["version"]
            except (LogError, ValueError, KeyError, TypeError) as error:
                if isinstance(error, LogError) and is_refused(error):
                    self.report(CLEAN_SHUTDOWN, Kind.UNREADABLE, error.what, *assess_unreadable(error))
                    return
                effect = "the shutdown counts as clean, but the broker registers without its previous epoch"
                self.report(CLEAN_SHUTDOWN, Kind.METADATA, "not valid JSON", Severity.RECOVERS, effect, "none needed")

    def _meta_properties(self) -> None:
        if META_PROPERTIES not in self.root.names:
            if self.root.names.intersection(OWN_FILES):
                hint = "run kafka-storage format --ignore-formatted with the id of the cluster to rewrite it"
                what, effect = "the file is missing", "a KRaft broker does not start"
                self.report(META_PROPERTIES, Kind.METADATA, what, Severity.STOPS_BROKER, effect, hint)
            return
        try:
            properties = parse_properties(self.root.store.read_all(META_PROPERTIES))
        except LogError as error:
            self.report(META_PROPERTIES, Kind.UNREADABLE, error.what, *assess_unreadable(error))
            return
        version = properties.get("version")
        wrong = []
        if version not in ("0", "1"):
            wrong.append(f"version is {version!r}, expected 0 or 1")
        else:
            needed = ("cluster.id", "node.id") if version == "1" else ()
            wrong += [f"{key} is missing" for key in needed if not properties.get(key)]
            ids = {key: properties[key] for key in ("node.id", "broker.id") if properties.get(key)}
            wrong += [f"{key} is {value!r}, not a number" for key, value in ids.items() if not value.isdecimal()]
        if "directory.id" in properties:
            try:
                parse_uuid(properties["directory.id"])
            except Malformed as error:
                wrong.append(f"directory.id: {error.what}")
        for what in wrong:
            hint = "correct it: all directories and nodes of a cluster have the same cluster.id"
            effect = "a broker does not start"
            self.report(META_PROPERTIES, Kind.METADATA, what, Severity.STOPS_BROKER, effect, hint)

    def _partitions_without_directory(self) -> None:
        gone = partitions_without_directory(self.directory, self.root.offsets) if self.is_whole else {}
        for with_records in (True, False):
            names = [f"{key[0]}-{key[1]}" for key in gone if bool(gone[key].offset) is with_records]
            if not names:
                continue
            shown = ", ".join(names[:NAMES_SHOWN]) + (
                f" and {len(names) - NAMES_SHOWN} more" * (len(names) > NAMES_SHOWN)
            )
            state = "with records" if with_records else "without records"
            what = f"no directory for partitions {state}: {shown}"
            severity = Severity.LOSES_RECORDS if with_records else Severity.NOTE
            effect = "a broker creates them empty, or fetches them from other replicas"
            self.report(RECOVERY_POINTS, Kind.MISSING_RECORDS, what, severity, effect, "restore the directories")

    def _cleaner_offsets(self) -> None:
        for key, offset in self.root.offsets[CLEANER_OFFSETS].items():
            partition = self.partitions.get(key)
            if partition is not None and partition.segments and offset > partition.log_end_offset:
                what = (
                    f"{key[0]}-{key[1]} is marked clean up to {offset}, but its log ends at {partition.log_end_offset}"
                )
                effect = "the cleaner restarts at the log start offset"
                hint = "none needed; or run kwire log repair"
                self.report(CLEANER_OFFSETS, Kind.CHECKPOINT, what, Severity.RECOVERS, effect, hint)

    def _topic_ids(self) -> None:
        ids: dict[str, dict[str, list[int]]] = {}
        for topic, partition in self.directory:
            try:
                topic_id = self.directory[topic, partition].topic_id
            except LogError:
                continue  # reported for the partition
            if topic_id is not None:
                ids.setdefault(topic, {}).setdefault(str(topic_id), []).append(partition)
        for topic, by_id in ids.items():
            if len(by_id) > 1:
                each = "; ".join(f"{topic_id} in {partitions}" for topic_id, partitions in sorted(by_id.items()))
                what = f"partitions of topic {topic} have different topic ids: {each}"
                effect = "partitions whose id differs from the metadata log are stray and stay offline"
                hint = "find the topic id with kwire cluster; a partition with another id belongs to a deleted topic"
                self.report(f"{topic}-*", Kind.METADATA, what, Severity.STOPS_CONSUMERS, effect, hint)

    def _shared_directories(self) -> None:
        for name, other in self.directory.shared.items():
            effect = "a broker appends the records of both to the same files, where each damages the other's"
            hint = "remove the link; a partition that has to exist needs a directory of its own"
            what = f"a symbolic link to {other}: two directories with the same files"
            self.report(name, Kind.LEFTOVER, what, Severity.LOSES_RECORDS, effect, hint)

    def _directories(self) -> None:
        for each in self.directory.ignored:
            if each.name in self.root.names or each.name in NO_LOGS:
                continue
            if marked := MARKED_DIRECTORY.fullmatch(each.name):
                effect, hint = MARKED_DIRECTORY_EFFECTS[marked["mark"]]
                self.report(each.name, Kind.LEFTOVER, each.reason, Severity.NOTE, effect, hint)
            else:
                effect, hint = "a broker does not start", "move it elsewhere"
                self.report(each.name, Kind.LEFTOVER, each.reason, Severity.STOPS_BROKER, effect, hint)


# the effect of a renamed partition directory by its suffix, and the remedy
MARKED_DIRECTORY_EFFECTS = {
    "delete": ("a broker removes it after file.delete.delay.ms", "none needed"),
    "future": ("a broker continues to move the replica", "none needed"),
    "stray": ("brokers keep it and do not serve it", "none needed; or move it elsewhere to free the space"),
}
UNREADABLE_CHECKPOINTS = {
    RECOVERY_POINTS: (Severity.RECOVERS, "a starting broker recovers every segment of every log"),
    LOG_START_OFFSETS: (Severity.MISLEADS, "deleted records below the log start offset reappear"),
    HIGH_WATERMARKS: (Severity.STOPS_BROKER, OFFLINE),
    CLEANER_OFFSETS: (Severity.STOPS_BROKER, OFFLINE),
}
