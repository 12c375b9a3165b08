"""The small text files of a log directory.

    0                           the version: always 0
    2                           the number of entries
    orders 0 4711               topic, partition, offset; in leader-epoch-checkpoint: epoch, start offset
    orders 1 4702

An empty file has no entries. `meta.properties` is a Java properties file; `partition.metadata` is `key: value` lines.
Source: rules F-01 to F-05; Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataFile, MetaProperties.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from kwire.errors import Malformed

LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpoch:
    """One entry of leader-epoch-checkpoint: this leader's records begin at start_offset."""

    leader_epoch: int
    start_offset: int


def _lines(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """(position, fields) of each entry line, after the version and the count were checked."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("a checkpoint is UTF-8 text", error.start) from error
    if not text.strip():
        return
    position, found, expected = 0, 0, -1
    for number, line in enumerate(text.splitlines(keepends=True)):
        fields = line.split()
        if number == 0:
            if fields != ["0"]:
                raise Malformed(f"unrecognised checkpoint version {line.strip()[:40]!r}, expected 0", 0)
        elif number == 1:
            if len(fields) != 1 or not fields[0].isdecimal():
                raise Malformed(f"the number of entries is {line.strip()[:40]!r}", position)
            expected = int(fields[0][:18])
        elif fields:
            found += 1
            yield position, fields
        position += len(line.encode())
    if found != expected:
        raise Malformed(f"a checkpoint of {expected} entries has {found}", position)


def _integer(field: str, position: int) -> int:
    """A decimal int64, as Java's Long.parseLong takes it."""
    digits = field.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and -(1 << 63) <= int(field) < 1 << 63):
        raise Malformed(f"{field[:40]!r} is no number", position)
    return int(field)


def parse_offset_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    """(topic, partition) -> offset. Raises Malformed (position: byte in the file) on a wrong version, line or count."""
    entries = {}
    for position, fields in _lines(data):
        if len(fields) != 3:
            raise Malformed(f"expected 'topic partition offset', found {' '.join(fields)[:60]!r}", position)
        entries[fields[0], _integer(fields[1], position)] = _integer(fields[2], position)
    return entries


def parse_leader_epochs(data: bytes) -> list[LeaderEpoch]:
    """The entries of leader-epoch-checkpoint, oldest first. Raises Malformed, also where they do not rise (F-04)."""
    entries: list[LeaderEpoch] = []
    for position, fields in _lines(data):
        if len(fields) != 2:
            raise Malformed(f"expected 'epoch start_offset', found {' '.join(fields)[:60]!r}", position)
        entry = LeaderEpoch(leader_epoch=_integer(fields[0], position), start_offset=_integer(fields[1], position))
        if entries and (
            entry.leader_epoch <= entries[-1].leader_epoch or entry.start_offset < entries[-1].start_offset
        ):
            raise Malformed("leader epochs and their start offsets must increase", position)
        entries.append(entry)
    return entries


def end_offset_for(leader_epoch: int, entries: list[LeaderEpoch], log_end_offset: int) -> tuple[int, int]:
    """(leader epoch, end offset) as OffsetForLeaderEpoch answers it; (-1, -1) is undefined.

    Source: rule F-05; Kafka's LeaderEpochFileCache.endOffsetFor.
    """
    undefined = (-1, -1)
    if leader_epoch == -1 or not entries or leader_epoch > entries[-1].leader_epoch:
        return undefined
    if leader_epoch == entries[-1].leader_epoch:
        return leader_epoch, log_end_offset
    if leader_epoch < entries[0].leader_epoch:
        return leader_epoch, entries[0].start_offset
    at = max(i for i, entry in enumerate(entries) if entry.leader_epoch <= leader_epoch)
    return entries[at].leader_epoch, entries[at + 1].start_offset


def parse_uuid(text: str, position: int = 0) -> uuid.UUID:
    """Kafka's 22 characters of URL-safe base64 without padding. Raises Malformed."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"{text[:40]!r} is no uuid", position) from error
    if len(raw) != 16:
        raise Malformed(f"{text[:40]!r} is no uuid", position)
    return uuid.UUID(bytes=raw)


def parse_partition_metadata(data: bytes) -> uuid.UUID:
    """The topic id in partition.metadata. Raises Malformed on another version or without a topic id."""
    fields = dict[str, str]()
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    if fields.get("version") != "0":
        raise Malformed(f"unrecognised version {fields.get('version', '')[:40]!r}, expected 0", 0)
    return parse_uuid(fields.get("topic_id", ""))


def parse_properties(data: bytes) -> dict[str, str]:
    """A Java properties file as Kafka writes it: comments from #, `key=value`, `\\` before a special character."""
    found = {}
    for line in data.decode("utf-8", "replace").splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            found[key.strip().replace("\\", "")] = value.strip().replace("\\", "")
    return found
