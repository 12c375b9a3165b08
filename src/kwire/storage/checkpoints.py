"""The small text files of a log directory.

    0                           the version: always 0
    2                           the number of entries
    orders 0 4711               topic, partition, offset; in leader-epoch-checkpoint: epoch, start offset
    orders 1 4702

An empty file has no entries. `meta.properties` is a Java properties file; `partition.metadata` has `key: value` lines.
The render functions produce Kafka's files byte for byte, except for the order of topics in offset checkpoints: sorted
here, that of a hash map in Kafka.
Source: rules F-01 to F-05; Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataFile, MetaProperties.
"""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kwire.errors import Malformed
from kwire.identifiers import TopicPartition, parse_uuid, render_uuid

LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


PROPERTY = re.compile(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*(.*)", re.DOTALL)
PROPERTY_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class LeaderEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of leader-epoch-checkpoint: records of this leader epoch begin at start_offset."""

    leader_epoch: int
    start_offset: int


def _lines(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """(position, fields) of each entry line, after the version and the count were checked."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("checkpoint is not UTF-8 text", error.start) from error
    if not text.strip():
        return
    position, count, expected = 0, 0, -1
    for number, line in enumerate(text.splitlines(keepends=True)):
        fields = line.split()
        if number == 0:
            if fields != ["0"]:
                raise Malformed(f"unrecognised checkpoint version {line.strip()[:40]!r}, expected 0", 0)
        elif number == 1:
            if len(fields) != 1 or not fields[0].isdecimal():
                raise Malformed(f"number of entries is {line.strip()[:40]!r}, expected a decimal number", position)
            expected = int(fields[0][:18])
        elif fields:
            count += 1
            yield position, fields
        position += len(line.encode())
    if count != expected:
        raise Malformed(f"checkpoint has {count} entries, expected {expected}", position)


def _integer(field: str, position: int) -> int:
    """Parse a decimal int64 like Java's Long.parseLong."""
    digits = field.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and -(1 << 63) <= int(field) < 1 << 63):
        raise Malformed(f"{field[:40]!r} is not a number", position)
    return int(field)


def parse_offset_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    """Parse (topic, partition) -> offset. Raises Malformed on a wrong version, line or count; position is in bytes."""
    entries = {}
    for position, fields in _lines(data):
        if len(fields) != 3:
            raise Malformed(f"expected 'topic partition offset', found {' '.join(fields)[:60]!r}", position)
        entries[fields[0], _integer(fields[1], position)] = _integer(fields[2], position)
    return entries


def parse_leader_epochs(data: bytes) -> list[LeaderEpoch]:
    """Parse leader-epoch-checkpoint, oldest entry first. Raises Malformed, also for epochs out of order (F-04)."""
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


def end_offset_for(leader_epoch: int, entries: Sequence[LeaderEpoch], log_end_offset: int) -> tuple[int, int]:
    """Return (leader epoch, end offset) as in OffsetForLeaderEpoch responses; (-1, -1) is undefined.

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


def parse_partition_metadata(data: bytes) -> uuid.UUID:
    """Parse the topic id in partition.metadata. Raises Malformed on another version or a missing topic id."""
    fields = dict[str, str]()
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    if fields.get("version") != "0":
        raise Malformed(f"unrecognised version {fields.get('version', '')[:40]!r}, expected 0", 0)
    return parse_uuid(fields.get("topic_id", ""))


def parse_properties(data: bytes) -> dict[str, str]:
    """Parse a Java properties file: comments from #, `key=value`, `\\` before a special character or the end of a line.

    Spaces at the end of a value are dropped, unlike in Java. Source: java.util.Properties.load.
    """
    properties = {}
    for line in logical_lines(data.decode("utf-8", "replace")):
        match = PROPERTY.fullmatch(line)
        assert match is not None  # every part of the pattern may be empty
        properties[unescape_property(match[1])] = unescape_property(match[2])
    return properties


def logical_lines(text: str) -> Iterator[str]:
    """Yield the lines of a properties file without blank ones and comments; a backslash at the end continues a line."""
    line = ""
    for natural in text.splitlines():
        part = natural.strip()
        if not line and (not part or part[0] in "#!"):
            continue
        line += part
        if (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1]
            continue
        yield line
        line = ""
    if line:
        yield line


def unescape_property(text: str) -> str:
    """Replace the escapes of a properties file."""

    def character(match: re.Match[str]) -> str:
        code, other = match.groups()
        return chr(int(code, 16)) if code else PROPERTY_ESCAPES.get(other, other)

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", character, text, flags=re.DOTALL)


# ---- rendering


def render_entries(lines: Iterable[str]) -> bytes:
    """Render a checkpoint of these entries (F-02)."""
    entries = list(lines)
    return "\n".join(["0", str(len(entries)), *entries, ""]).encode()


def render_offset_checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Render the file that parse_offset_checkpoint reads."""
    return render_entries(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def render_leader_epochs(entries: Iterable[LeaderEpoch]) -> bytes:
    """Render the file that parse_leader_epochs reads; entries: oldest first."""
    return render_entries(f"{entry.leader_epoch} {entry.start_offset}" for entry in entries)


def render_partition_metadata(topic_id: uuid.UUID) -> bytes:
    """Render the file that parse_partition_metadata reads; like Kafka's, it ends without a newline."""
    return f"version: 0\ntopic_id: {render_uuid(topic_id)}".encode()


def render_clean_shutdown(broker_epoch: int = -1) -> bytes:
    """Render `.kafka_cleanshutdown` of Kafka 3.7 and later, where the file's existence is what counts."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def render_properties(properties: Mapping[str, str], written: datetime.datetime) -> bytes:
    """Render a Java properties file like Kafka's: a comment with the time, then entries in Java's hash order.

    Source: java.util.Properties.store; Kafka's PropertiesUtils.writePropertiesFile.
    """
    utc = written.astimezone(datetime.UTC)
    lines = ["#", f"#{DAYS[utc.weekday()]} {MONTHS[utc.month - 1]} {utc:%d %H:%M:%S} UTC {utc.year}"]
    lines += [
        f"{escape_property(key, is_key=True)}={escape_property(properties[key])}"
        for key in sorted(properties, key=java_bucket)
    ]
    return "\n".join([*lines, ""]).encode("latin-1")


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TABLE_SIZE = 8  # of the hash map in java.util.Properties, until it has 7 entries


def java_bucket(key: str) -> int:
    """Return the bucket of a key in Java's hash map."""
    value = 0
    for letter in key:
        value = value * 31 + ord(letter) & 0xFFFF_FFFF
    return (value ^ value >> 16) & 0x7FFF_FFFF & TABLE_SIZE - 1


def escape_property(text: str, *, is_key: bool = False) -> str:
    """Escape the characters of a key or value that have a meaning in properties files."""
    escaped = re.sub(r"[\\=:#!]", lambda match: "\\" + match[0], text)
    escaped = escaped.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    escaped = escaped.replace(" ", "\\ ") if is_key else re.sub(r"^ ", r"\\ ", escaped)
    return re.sub(r"[^ -~]", lambda match: rf"\u{ord(match[0]):04X}", escaped)
