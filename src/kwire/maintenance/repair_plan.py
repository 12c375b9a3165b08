"""The plan of a repair, made from the findings of verify before anything is written.

SALVAGE keeps valid batches after damaged ones, which leaves gaps like compaction. TRUNCATE does what a recovering
broker does: the log ends at its first damaged batch. An index plan changes no `.log` file. Source: rules G-05 to G-12,
F-02, F-44; Kafka's LogLoader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kwire.errors import LogError, Malformed
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.damage import Damage, Kind
from kwire.log.files.file_names import SEGMENT_FILE, segment_file
from kwire.log.files.segment import Segment
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.topics.topic_metadata import TopicMetadata
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.verify import DamagedRange, DirectoryFindings, PartitionFindings, SegmentFindings, SuspectBatch
from kwire.maintenance.verify.layout import Layout
from kwire.maintenance.verify.root_files import partitions_without_directory
from kwire.records.format.batch_header import LEADER_EPOCH, LEADER_EPOCH_POSITION, OFFSET
from kwire.storage.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
    render_offset_checkpoint,
    render_partition_metadata,
)
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import Store

__all__ = ["PartitionPlan", "Plan", "SegmentPlan", "make_index_plan", "make_plan"]

INDEX_KINDS = frozenset({Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX})
CHECKPOINTS = (CLEANER_OFFSETS, LOG_START_OFFSETS, HIGH_WATERMARKS, RECOVERY_POINTS)
"""In the order in which they are replaced: recovery points, which show that a directory is lost, last."""


@dataclass(slots=True, kw_only=True)
class SegmentPlan:
    """The plan of one segment.

    removed: bytes to quarantine, replaced with batches of other files if findings.fills has some. restored, epochs:
    batches whose offset or leader epoch is restored. moved_from: current name of its file, if wrong. is_dropped:
    quarantine all of it. rebuilds: rebuild its indexes.
    """

    findings: SegmentFindings
    removed: list[DamagedRange] = field(default_factory=list)
    restored: list[DamagedRange] = field(default_factory=list)
    epochs: list[SuspectBatch] = field(default_factory=list)
    moved_from: str | None = None
    is_dropped: bool = False
    rebuilds: bool = False

    @property
    def base_offset(self) -> int:
        """The base offset in its name."""
        return self.findings.segment.base_offset

    @property
    def rewrites(self) -> bool:
        """Whether its `.log` file changes."""
        return bool(self.removed or self.restored or self.epochs or self.moved_from)

    @property
    def patches(self) -> list[tuple[int, bytes]]:
        """(position, new bytes), in file order."""
        offsets = [(damaged.position, OFFSET.pack(damaged.restored_offset)) for damaged in self.restored]
        epochs = [
            (suspect.position + LEADER_EPOCH_POSITION, LEADER_EPOCH.pack(suspect.restored_epoch))
            for suspect in self.epochs
        ]
        return sorted(offsets + epochs)

    @property
    def kept_bytes(self) -> int:
        """Size of its `.log` file after the repair."""
        filled = [
            piece.size_bytes for damaged in self.removed for piece in self.findings.fills.get(damaged.position, ())
        ]
        return self.findings.size_bytes - sum(damaged.size_bytes for damaged in self.removed) + sum(filled)


@dataclass(slots=True, kw_only=True)
class PartitionPlan:
    """The plan of one partition. log_end_offset: after the repair.

    snapshots: base offsets whose producer snapshot is rewritten; snapshots_gone: those removed. dropped: segments
    quarantined as a whole, by base offset, with the reason. gone: names of all moved or removed files.
    """

    log: PartitionLog
    segments: list[SegmentPlan]
    log_end_offset: int
    snapshots: set[int] = field(default_factory=set)
    snapshots_gone: set[int] = field(default_factory=set)
    leader_epochs: bool = False
    topic_id: bytes | None = None
    dropped: dict[int, tuple[Segment, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    @property
    def is_touched(self) -> bool:
        """Whether anything in its directory changes."""
        changed = any(each.is_dropped or each.rewrites or each.rebuilds for each in self.segments)
        files = self.snapshots or self.snapshots_gone or self.leader_epochs or self.topic_id or self.gone
        return changed or bool(files)

    @property
    def loses_batches(self) -> bool:
        """Whether more than an incomplete end of the log is removed."""
        torn = (Kind.CUT, Kind.ZEROS)
        return any(each.is_dropped or any(lost.kind not in torn for lost in each.removed) for each in self.segments)

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"{self.log.topic}-{self.log.partition}"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (file, action) as text."""
        for segment, why in self.dropped.values():
            yield segment.name_of("log"), f"quarantined: {why}"
        for each in self.segments:
            log = segment_file(each.base_offset, "log")
            if each.moved_from is not None:
                yield each.moved_from, f"renamed to {log}"
            if each.is_dropped:
                yield log, f"quarantined with its indexes, {each.findings.size_bytes} bytes"
                continue
            for damaged in each.removed:
                yield log, f"bytes {damaged.position} to {damaged.end} quarantined: {damaged.cause}{_offsets(damaged)}"
                for piece in each.findings.fills.get(damaged.position, ()):
                    first, last = piece.offsets
                    yield log, f"offsets {first} to {last} taken from {piece.name}"
            for damaged in each.restored:
                yield log, f"offset of the batch at byte {damaged.position} restored: {damaged.restored_offset}"
            for suspect in each.epochs:
                yield log, f"leader epoch of the batch at byte {suspect.position} restored: {suspect.restored_epoch}"
            if each.rebuilds:
                yield log.removesuffix(".log") + ".*index", "rebuilt"
        for offset in sorted(self.snapshots):
            yield segment_file(offset, "snapshot"), "rewritten"
        for offset in sorted(self.snapshots_gone - self.snapshots):
            yield segment_file(offset, "snapshot"), "quarantined"
        if self.leader_epochs:
            yield LEADER_EPOCHS, "rebuilt from the batches"
        if self.topic_id is not None:
            yield PARTITION_METADATA, "rewritten with the topic id"


@dataclass(slots=True, kw_only=True)
class Plan:
    """The plan of a repair. checkpoints: changed files of the log directory, with their new bytes.

    left: damage that is not repaired, because it needs other replicas, a backup or a person.
    """

    mode: Mode
    directory: LogDirectory
    partitions: list[PartitionPlan]
    checkpoints: dict[str, bytes]
    left: list[Damage]

    @property
    def touched(self) -> list[PartitionPlan]:
        """The changed partitions."""
        return [each for each in self.partitions if each.is_touched]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.touched and not self.checkpoints


def make_index_plan(directory: LogDirectory, findings: DirectoryFindings) -> Plan:
    """Plan the rebuild of wrong indexes, snapshots and leader epochs of valid `.log` files.

    Partitions with damaged batches are omitted; `make_plan` includes their indexes.
    """
    partitions = []
    for each in findings.partitions:
        segments = [SegmentPlan(findings=segment) for segment in each.segments]
        plan = PartitionPlan(log=_files_of(each), segments=segments, log_end_offset=each.log_end_offset)
        if not any(segment.damaged for segment in each.segments):
            _plan_rebuilds(plan, each)
        partitions.append(plan)
    left = [each for each in findings.damages if not each.is_harmless and not _is_repaired(each, partitions, {})]
    return Plan(mode=Mode.SALVAGE, directory=directory, partitions=partitions, checkpoints={}, left=left)


def make_plan(directory: LogDirectory, findings: DirectoryFindings, mode: Mode) -> Plan:
    """Plan the repair of findings. Reads headers where a log is cut; changes nothing."""
    partitions = [_plan_partition(each, mode, directory) for each in findings.partitions]
    alone = any(not each.log.directory for each in partitions)
    lost = {each.key for each in findings.damages if each.kind is Kind.MISSING_RECORDS}
    known = [each for each in partitions if each.segments or (each.log.topic, each.log.partition) in lost]
    is_whole = len(findings.partitions) == len(directory)
    checkpoints = {} if alone else _plan_checkpoints(partitions[0].log.store, known, directory if is_whole else None)
    left = [
        each for each in findings.damages if not each.is_harmless and not _is_repaired(each, partitions, checkpoints)
    ]
    return Plan(mode=mode, directory=directory, partitions=partitions, checkpoints=checkpoints, left=left)


def _plan_partition(findings: PartitionFindings, mode: Mode, directory: LogDirectory) -> PartitionPlan:
    log = _files_of(findings)
    segments = [SegmentPlan(findings=each) for each in findings.segments]
    plan = PartitionPlan(log=log, segments=segments, log_end_offset=findings.log_end_offset)
    _plan_files(plan, findings.layout)
    if mode is Mode.SALVAGE:
        _salvage(plan)
    else:
        _truncate(plan)
    _plan_rebuilds(plan, findings)
    if any(each.kind is Kind.METADATA and each.name == PARTITION_METADATA for each in findings.damages):
        plan.topic_id = _topic_id_elsewhere(log, directory)
    return plan


def _files_of(findings: PartitionFindings) -> PartitionLog:
    assert isinstance(findings.log, PartitionLog)  # of a directory
    return findings.log


def _plan_files(plan: PartitionPlan, layout: Layout) -> None:
    """Plan files that are dropped as copies, and files that are renamed."""
    plan.dropped = {each.segment.base_offset: (each.segment, f"a copy of {each.original}") for each in layout.copies}
    plan.dropped |= {
        each.segment.base_offset: (each.segment, f"empty; {each.within} has its offsets") for each in layout.empty
    }
    for segment, _ in plan.dropped.values():
        plan.gone |= {segment.name_of(kind) for kind in segment.has}
    for each in plan.segments:
        each.moved_from = layout.misnamed.get(each.base_offset)
        if each.moved_from is not None:
            segment = each.findings.segment
            plan.gone |= {segment.name_of(kind) for kind in segment.has}


def _plan_rebuilds(plan: PartitionPlan, findings: PartitionFindings) -> None:
    """Plan the indexes of changed segments and wrong ones, snapshots and leader epochs."""
    damaged = {each.name: each for each in findings.damages if not each.is_harmless}
    kept = [each for each in plan.segments if not each.is_dropped]
    for each in kept:
        stem = f"{each.base_offset:020d}."
        wrong = any(name.startswith(stem) and damage.kind in INDEX_KINDS for name, damage in damaged.items())
        each.rebuilds = each.rewrites or wrong
    _plan_snapshots(plan, kept, damaged)
    plan.leader_epochs = any(
        each.kind is Kind.LEADER_EPOCHS and each.name == LEADER_EPOCHS for each in findings.damages
    ) or bool(_epochs_above(plan.log, plan.log_end_offset))


def _salvage(plan: PartitionPlan) -> None:
    """Plan the removal of damaged bytes. Segments without batches are dropped, except the last."""
    for each in plan.segments:
        each.epochs += each.findings.epochs
        for damaged in each.findings.damaged:
            (each.removed if damaged.restored_offset is None else each.restored).append(damaged)
    for each in plan.segments[:-1]:
        each.is_dropped = bool(each.removed) and each.kept_bytes == 0
    last = plan.segments[-1] if plan.segments else None
    if last is not None:
        restored = [damaged.offsets[1] + 1 for damaged in last.restored if damaged.offsets is not None]
        plan.log_end_offset = max(plan.log_end_offset, *restored, 0)


def _truncate(plan: PartitionPlan) -> None:
    """Plan a cut at the first damaged batch (G-07)."""
    cut = False
    for each in plan.segments:
        if cut:
            each.is_dropped = True
        elif lost := [damaged for damaged in each.findings.damaged if not _is_filled(each.findings, damaged)]:
            first = lost[0]
            each.removed += each.findings.damaged[: each.findings.damaged.index(first)]
            whole = DamagedRange(
                position=first.position,
                size_bytes=each.findings.size_bytes - first.position,
                kind=first.kind,
                cause=first.cause if first.is_tail else f"{first.cause}; and everything after it",
                offsets=first.offsets if first.is_tail else None,
                is_tail=True,
            )
            each.removed.append(whole)
            each.epochs += [suspect for suspect in each.findings.epochs if suspect.position < first.position]
            plan.log_end_offset = _end_before(each.findings.segment, first.position)
            cut = True
        else:
            each.removed += each.findings.damaged
            each.epochs += each.findings.epochs


def _is_filled(findings: SegmentFindings, damaged: DamagedRange) -> bool:
    """Return whether other files have every offset of a damaged range."""
    if damaged.offsets is None or damaged.position not in findings.fills:
        return False
    end = damaged.offsets[0]
    for piece in findings.fills[damaged.position]:
        if piece.offsets[0] != end:
            return False
        end = piece.offsets[1] + 1
    return end == damaged.offsets[1] + 1


def _end_before(segment: Segment, position: int) -> int:
    """Return the offset after the last batch before a position."""
    end = segment.base_offset
    with segment.open() as file:
        for header in HeaderWalk(file, 0, position):
            end = header.last_offset + 1
    return end


def _plan_snapshots(plan: PartitionPlan, kept: Sequence[SegmentPlan], damaged: dict[str, Damage]) -> None:
    """Plan snapshots: drop those above the log end and broken ones; rewrite those at the start of a segment."""
    bases = {each.base_offset for each in kept[1:]}
    for offset in plan.log.snapshots:
        if offset > plan.log_end_offset and offset not in bases:
            plan.snapshots_gone.add(offset)
    for name, damage in damaged.items():
        match = SEGMENT_FILE.fullmatch(name)
        if damage.kind is Kind.SNAPSHOT and match is not None:
            offset = int(match["base"])
            if offset in bases:
                plan.snapshots.add(offset)
            elif offset in plan.log.snapshots:
                plan.snapshots_gone.add(offset)


def _epochs_above(log: PartitionLog, end: int) -> list[int]:
    try:
        return [entry.leader_epoch for entry in log.leader_epochs if entry.start_offset > end]
    except LogError:
        return []


def _topic_id_elsewhere(log: PartitionLog, directory: LogDirectory) -> bytes | None:
    """Return partition.metadata with the topic id of the metadata log, or of the other partitions if they agree."""
    with suppress(LogError):
        known = TopicMetadata(log.sibling(METADATA_TOPIC, 0)).topic_id(log.topic)
        if known is not None:
            return render_partition_metadata(known)
    topic_ids = set()
    for topic, partition in directory:
        if topic == log.topic and partition != log.partition:
            try:
                topic_ids.add(directory[topic, partition].topic_id)
            except LogError:
                continue
    topic_ids.discard(None)
    only = topic_ids.pop() if len(topic_ids) == 1 else None
    return None if only is None else render_partition_metadata(only)


def _plan_checkpoints(
    store: Store, partitions: Sequence[PartitionPlan], directory: LogDirectory | None
) -> dict[str, bytes]:
    """Plan checkpoints of the directory that are unreadable, have offsets above the log end, or of lost directories.

    partitions: those whose log end is known. directory: None if only some of its partitions are repaired.
    """
    ends = {(each.log.topic, each.log.partition): each.log_end_offset for each in partitions}
    names = {entry.name for entry in store.list("") if not entry.is_directory}
    changed, offsets_by_file = {}, {}
    for name in CHECKPOINTS:
        if name not in names:
            continue
        try:
            offsets_by_file[name] = parse_offset_checkpoint(store.read_all(name))
        except Malformed:
            changed[name] = render_offset_checkpoint(ends if name == HIGH_WATERMARKS else {})
    claims = {} if directory is None else partitions_without_directory(directory, offsets_by_file)
    lost = {key for key, claim in claims.items() if claim.offset}
    for name, offsets in offsets_by_file.items():
        lowered = {key: min(offset, ends.get(key, offset)) for key, offset in offsets.items() if key not in lost}
        if lowered != offsets:
            changed[name] = render_offset_checkpoint(lowered)
    return changed


def _is_repaired(damage: Damage, partitions: Sequence[PartitionPlan], checkpoints: dict[str, bytes]) -> bool:
    """Return whether a plan repairs this damage."""
    name = damage.name
    if damage.kind is Kind.SEGMENT:
        return any(name in each.gone for each in partitions if (each.log.topic, each.log.partition) == damage.key)
    if damage.topic is None:
        return name in checkpoints
    plan = next(each for each in partitions if (each.log.topic, each.log.partition) == damage.key)
    segment = next((each for each in plan.segments if name == each.moved_from), None) or next(
        (each for each in plan.segments if name.startswith(f"{each.base_offset:020d}.")), None
    )
    if damage.kind is Kind.LEADER_EPOCHS and segment is None:
        return plan.leader_epochs and name == LEADER_EPOCHS
    if damage.kind is Kind.METADATA:
        return plan.topic_id is not None and name == PARTITION_METADATA
    if damage.kind is Kind.SNAPSHOT:
        return int(name.partition(".")[0]) in plan.snapshots | plan.snapshots_gone
    if damage.kind is Kind.MISSING_RECORDS:
        if segment is not None and segment is not plan.segments[-1]:
            return False  # between two segments: the records are lost
        return bool(checkpoints) or bool(plan.snapshots_gone) or plan.leader_epochs
    if segment is None:
        return False
    if segment.is_dropped:
        return True
    if damage.kind in INDEX_KINDS:
        return segment.rebuilds
    if any(suspect.position == damage.position and suspect.kind is damage.kind for suspect in segment.epochs):
        return True
    places = [*segment.removed, *segment.restored]
    return any(
        damaged.position <= (damage.position or 0) < max(damaged.end, damaged.position + 1) for damaged in places
    )


def _offsets(damaged: DamagedRange) -> str:
    if damaged.offsets is None:
        return ""
    first, last = damaged.offsets
    return f" (offset {first})" if first == last else f" (offsets {first} to {last})"
