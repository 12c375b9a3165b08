"""Repair of log directories: valid bytes are kept, damaged ones are quarantined.

    plan      repair_plan: for each segment the ranges to keep, to remove and to rebuild
    build     the changed partitions in a new directory; the originals are only read
    finish    by renaming the new directory, or new files over old ones

The originals survive a stop at any moment: a new directory is named `<target>.part` until it is complete, and in place
every file is in the quarantine before the first one changes.
Source: rules G-05 to G-12, F-02; Kafka's LogLoader.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kwire.errors import LogError
from kwire.log.files.file_names import SEGMENT_FILE, segment_file
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.new_directory import without_others
from kwire.maintenance.quarantine import Quarantine, copy_range
from kwire.maintenance.reindex import rebuild_indexes
from kwire.maintenance.repair_plan import PartitionPlan, Plan, SegmentPlan
from kwire.maintenance.verify import DamagedRange, SuspectBatch
from kwire.storage.checkpoints import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA
from kwire.storage.directory_lock import LOCK_FILE, DirectoryLock
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.links import refuse_links
from kwire.storage.staged_directory import StagedDirectory, remove_tree
from kwire.storage.store import LocalStore, Store, StoredFile
from kwire.target_paths import path_inside

__all__ = ["repair_in_place", "repair_into"]

PART, MARKER = ".part", ".kwire-repair"
STAGING, FRESH = "staging", ".repaired"  # where files are built; a suffix that Kafka ignores
INDEX_SUFFIXES = ("index", "timeindex", "txnindex")
NOT_COPIED = frozenset({".lock", MARKER})

Advance = Callable[[int], None]


class _Builder:
    """Writer of repaired partitions. Sources are read through their store only.

    links: link unchanged files to the originals instead of copying them; for a temporary directory.
    """

    def __init__(
        self, plan: Plan, file_system: FileSystem, quarantine: Quarantine, advance: Advance | None, *, links: bool
    ) -> None:
        self.plan, self.file_system, self.quarantine, self.links = plan, file_system, quarantine, links
        self.advance = advance or (lambda amount: None)

    def build(self, partition: PartitionPlan, directory: str) -> None:
        """Write all files of a changed partition to `directory`, repaired."""
        self.file_system.make_directory(directory)
        for segment, why in partition.dropped.values():
            for kind in sorted(segment.has):
                self._quarantine(partition, segment.name_of(kind), why)
        for each in partition.segments:
            if each.is_dropped:
                self._drop(partition, each)
            else:
                self._segment(partition, each, directory)
        self._other_files(partition, directory)
        rebuild_indexes(
            self.file_system,
            directory,
            [each.base_offset for each in partition.segments if not each.is_dropped],
            indexes={each.base_offset for each in partition.segments if each.rebuilds and not each.is_dropped},
            snapshots=partition.snapshots,
            leader_epochs=partition.leader_epochs,
        )
        self.file_system.sync_directory(directory)

    def _other_files(self, partition: PartitionPlan, directory: str) -> None:
        """Copy files that are not logs or indexes of segments: snapshots, checkpoints, unknown files."""
        log = partition.log
        gone = {segment_file(offset, "snapshot") for offset in partition.snapshots_gone | partition.snapshots}
        gone |= {
            segment_file(each.base_offset, "snapshot")
            for each in partition.segments
            if each.is_dropped and each.base_offset > partition.log_end_offset
        }
        gone |= {PARTITION_METADATA} if partition.topic_id is not None else set()
        gone |= {LEADER_EPOCHS} if partition.leader_epochs else set()
        for name in log.file_names:
            match = SEGMENT_FILE.fullmatch(name)
            if match is not None and name not in log.snapshots.values():
                continue  # logs and indexes are written; a starting broker removes the rest
            if name in partition.gone:
                continue  # its records are in another file
            if name in gone:
                self._quarantine(partition, name, "replaced, or about offsets above the end of the log")
            else:
                self._copy(log, name, path_inside(directory, name.removesuffix(".swap")))
        if partition.topic_id is not None:
            self.file_system.write_atomically(f"{directory}/{PARTITION_METADATA}", partition.topic_id)

    def _drop(self, partition: PartitionPlan, each: SegmentPlan) -> None:
        for kind in sorted(each.findings.segment.has):
            name = each.findings.segment.name_of(kind)
            self._quarantine(partition, name, "its segment follows a cut or has no valid batch")

    def _segment(self, partition: PartitionPlan, each: SegmentPlan, directory: str) -> None:
        segment = each.findings.segment
        log = segment_file(segment.base_offset, "log")
        if each.rewrites or each.rebuilds:
            self._write_log(partition, each, f"{directory}/{log}")
        else:
            self._copy(partition.log, segment.name_of("log"), f"{directory}/{log}")
        self.advance(segment.size_bytes)
        for kind in INDEX_SUFFIXES:
            if kind not in segment.has:
                continue
            name = segment.name_of(kind)
            if each.rebuilds:
                self._quarantine(partition, name, "built again")
            else:
                self._copy(partition.log, name, f"{directory}/{segment_file(segment.base_offset, kind)}")

    def _write_log(self, partition: PartitionPlan, each: SegmentPlan, target: str) -> None:
        segment = each.findings.segment
        with segment.open() as source, self.file_system.open(target, create=True) as out:
            out.truncate(0)
            at = 0
            for damaged in sorted(each.removed, key=lambda damaged: damaged.position):
                copy_range(source, at, damaged.position - at, out)
                self._keep(source, partition, segment.base_offset, damaged)
                for position, data in [p for p in each.patches if at <= p[0] < damaged.position]:
                    out.write_at(out.end - (damaged.position - position), data)
                for piece in each.findings.fills.get(damaged.position, ()):
                    with partition.log.open_file(piece.name) as other:
                        copy_range(other, piece.position, piece.size_bytes, out)
                at = damaged.end
            end = each.findings.size_bytes
            copy_range(source, at, end - at, out)
            for position, data in [p for p in each.patches if at <= p[0]]:
                out.write_at(out.end - (end - position), data)
            places: list[DamagedRange | SuspectBatch] = [*each.restored, *each.epochs]
            for changed in places:
                self._keep(source, partition, segment.base_offset, changed)
            out.sync()
        if segment.modified_ms is not None:
            self.file_system.set_modified(target, segment.modified_ms)

    def _keep(
        self, source: StoredFile, partition: PartitionPlan, base_offset: int, place: DamagedRange | SuspectBatch
    ) -> None:
        """Quarantine removed and changed bytes of a log."""
        self.quarantine.add(
            source,
            partition.name,
            segment_file(base_offset, "log"),
            cause=place.cause,
            position=place.position,
            size_bytes=place.size_bytes,
            offsets=place.offsets,
        )

    def _quarantine(self, partition: PartitionPlan, name: str, why: str) -> None:
        if not partition.log.has_file(name):
            return
        with partition.log.open_file(name) as source:
            self.quarantine.add(source, partition.name, name, cause=why)

    def _copy(self, log: PartitionLog, name: str, target: str) -> None:
        if self.links and target.endswith(f"/{name}"):
            try:
                os.symlink(log.url_of(name), target)
            except OSError as error:
                raise LogError(f"cannot be created: {cause(error)}", target) from error
        else:
            self.copy_file(log.store, log.path_of(name), target)

    def copy_file(self, store: Store, path: str, target: str) -> None:
        """Copy one file unchanged."""
        if isinstance(store, LocalStore):
            self.file_system.copy(store.url_of(path), target)
            return
        with store.open(path) as source, self.file_system.open(target, create=True) as out:
            out.truncate(0)
            copy_range(source, 0, source.size(), out)
            out.sync()

    def copy_partition(self, partition: PartitionPlan, directory: str) -> None:
        """Copy an unchanged partition."""
        self.file_system.make_directory(directory)
        for name in partition.log.file_names:
            self._copy(partition.log, name, path_inside(directory, name))
        self.advance(partition.log.size_bytes)
        self.file_system.sync_directory(directory)

    def finish(self) -> None:
        """Write the manifest."""
        self.quarantine.finish({"repaired": self.plan.directory.url, "mode": self.plan.mode.value})


def repair_into(
    plan: Plan, target: str, *, file_system: FileSystem | None = None, advance: Advance | None = None
) -> Quarantine:
    """Write the repaired directory to `target`, and the quarantine to `<target>.quarantine`.

    Both are named `.part` until they are complete; files of an interrupted run are replaced. advance: called with bytes
    of `.log` files as they are written.
    Raises LogError if target or its quarantine is not empty, or a file cannot be read or written.
    """
    files = file_system or FileSystem()
    target = os.path.abspath(target)
    quarantined = f"{target}.quarantine"
    if _is_log_directory(files, os.path.dirname(target)):
        raise LogError(
            "inside a broker's log directory, where it would be a partition; choose another directory", target
        )
    for path in (target, quarantined):
        if files.exists(f"{path}/{MARKER}"):
            remove_tree(files, path)  # an interrupted run was about to be published
        if files.exists(path) and (not files.is_directory(path) or files.list(path)):
            raise LogError("not an empty directory", path)
    need_space(files, target, sum(each.log.directory_bytes for each in plan.partitions))
    for path in (target, quarantined):
        _make_anew(files, path + PART)
    builder = _Builder(plan, files, Quarantine(files, quarantined + PART), advance, links=False)
    for each in plan.partitions:
        directory = path_inside(target + PART, each.log.directory) if each.log.directory else target + PART
        if each.is_touched:
            builder.build(each, directory)
        else:
            builder.copy_partition(each, directory)
    _copy_own_files(plan, builder, target + PART)
    builder.finish()
    for path in (target, quarantined):
        StagedDirectory(files, path).publish()
    for path in (target, quarantined):
        files.remove(f"{path}/{MARKER}")
    if not builder.quarantine.entries:
        files.remove(quarantined)
    builder.quarantine.directory = quarantined
    return builder.quarantine


def _make_anew(files: FileSystem, path: str) -> None:
    """Create a directory with the marker only. Raises LogError if one without our marker exists."""
    if files.exists(path):
        if files.list(path) and not files.exists(f"{path}/{MARKER}"):
            raise LogError("exists and is not of an interrupted repair; move it away", path)
        remove_tree(files, path)
    files.make_directory(path)
    files.open(f"{path}/{MARKER}", create=True).close()


def _copy_own_files(plan: Plan, builder: _Builder, part: str) -> None:
    """Write the files of the log directory itself, checkpoints repaired."""
    first = plan.partitions[0].log
    if not first.directory:
        return
    keys = {(each.log.topic, each.log.partition) for each in plan.partitions}
    for entry in first.store.list(""):
        if not entry.is_directory and entry.name not in NOT_COPIED and entry.name not in plan.checkpoints:
            data = without_others(entry.name, first.store.read_all(entry.name), keys)
            builder.file_system.write_atomically(path_inside(part, entry.name), data)
    for name, data in plan.checkpoints.items():
        with first.store.open(name) as source:
            builder.quarantine.add(source, "", name, cause="replaced")
        builder.file_system.write_atomically(f"{part}/{name}", without_others(name, data, keys))


# ---- in place


def repair_in_place(plan: Plan, *, file_system: FileSystem | None = None, advance: Advance | None = None) -> Quarantine:
    """Repair the directory in place. Every changed file is quarantined as a whole before the first one changes.

    The quarantine is `<log directory>.quarantine-<n>`, also if the plan is of one partition directory: a broker takes
    every directory inside a log directory for a partition. Holds the lock of the directory. Raises LogError if a broker
    has the directory open, it is not local, or a file cannot be read or written.
    """
    files = file_system or FileSystem()
    store = plan.partitions[0].log.store
    if not isinstance(store, LocalStore):
        raise LogError("not a local directory, so it cannot be repaired in place; write a new one", plan.directory.url)
    place = store.url.rstrip("/")
    root = place if plan.partitions[0].log.directory else os.path.dirname(place)
    for each in plan.touched:
        if os.path.islink(each.log.url):
            raise LogError("a symbolic link; repair the directory it points to", each.log.url)
    if root != place and not _is_log_directory(files, root):
        refuse_links(place)
        return _in_place(plan, files, root, advance)  # a single partition directory, not in a log directory
    lock = DirectoryLock(root)
    try:
        return _in_place(plan, files, root, advance)
    finally:
        lock.release()


def _is_log_directory(files: FileSystem, path: str) -> bool:
    """Return whether a broker has used a directory as one of its log.dirs."""
    return any(files.exists(f"{path}/{name}") for name in (META_PROPERTIES, LOCK_FILE))


def _in_place(plan: Plan, files: FileSystem, root: str, advance: Advance | None) -> Quarantine:
    n = 1
    while files.exists(f"{root}.quarantine-{n}"):
        n += 1
    final = f"{root}.quarantine-{n}"
    part = final + PART
    need_space(files, root, sum(_bytes_in_place(each) for partition in plan.touched for each in partition.segments))
    _make_anew(files, part)
    builder = _Builder(plan, files, Quarantine(files, part), advance, links=True)
    quarantine = builder.quarantine
    for each in plan.touched:
        built = path_inside(part, f"{STAGING}/{each.name}")
        builder.build(each, built)
        staged = set(files.list(built))
        changed = _changed(files, built, each)
        kept = {entry.file for entry in quarantine.entries}
        for name in each.log.file_names:
            if (name in changed or _is_removed(name, staged, each)) and f"{each.name}/{name}" not in kept:
                with each.log.open_file(name) as source:
                    quarantine.add(source, each.name, name, cause="the whole file, before the repair")
    for name in plan.checkpoints:
        with plan.partitions[0].log.store.open(name) as source:
            quarantine.add(source, "", name, cause="the whole file, before the repair")
    builder.finish()
    StagedDirectory(files, final).publish()
    files.remove(f"{final}/{MARKER}")
    for each in plan.touched:
        _replace(files, f"{final}/{STAGING}/{each.name}", each)
    for name, data in plan.checkpoints.items():
        files.write_atomically(f"{root}/{name}", data)
    if plan.touched:
        remove_tree(files, f"{final}/{STAGING}")
    quarantine.directory = final
    return quarantine


def _bytes_in_place(segment: SegmentPlan) -> int:
    """Return the disk space for the repair of a segment in place: built, quarantined and in its place."""
    size = segment.findings.segment.size_bytes
    if segment.rewrites:
        return 3 * size
    return size if segment.rebuilds or segment.is_dropped else 0


def _changed(files: FileSystem, built: str, partition: PartitionPlan) -> set[str]:
    """Return the names of files that replace old ones, without logs whose indexes only were rebuilt."""
    same = {segment_file(each.base_offset, "log") for each in partition.segments if not each.rewrites}
    return {
        name
        for name in files.list(built)
        if not os.path.islink(f"{built}/{name}") and not (name in same and partition.log.has_file(name))
    }


def _is_removed(name: str, staged: set[str], partition: PartitionPlan) -> bool:
    return name not in staged and (SEGMENT_FILE.fullmatch(name) is not None or name in partition.gone)


def _replace(files: FileSystem, built: str, partition: PartitionPlan) -> None:
    """Rename new files over old ones, logs first; then remove files that are no longer part of the log.

    All new files are written beside the old ones before the first rename: if segments swap names, a rename may replace
    the only file with another segment's content, which the next run then finds under its new name.
    """
    directory = partition.log.url
    staged = files.list(built)
    changed = sorted(_changed(files, built, partition), key=lambda name: (not name.endswith(".log"), name))
    for name in changed:
        fresh = f"{directory}/{name}{FRESH}"
        files.copy(f"{built}/{name}", fresh)
        with files.open(fresh) as file:
            file.sync()
    for name in changed:
        files.rename(f"{directory}/{name}{FRESH}", f"{directory}/{name}")
    for name in partition.log.file_names:
        if _is_removed(name, set(staged), partition) or name.endswith(FRESH):  # of an interrupted run
            files.remove(f"{directory}/{name}")
    files.sync_directory(directory)
