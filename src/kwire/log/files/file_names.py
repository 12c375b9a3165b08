"""Names in a log directory, and the valid files of a partition.

    orders-0                                        one partition: topic and number split at the last `-`
    orders-0.<32 hex>-delete | -future | -stray     being deleted, being moved, or not assigned to this broker
    00000000000000000042.log .index .timeindex .txnindex .snapshot      a segment by its base offset
    ... .deleted                                    to be removed
    ... .cleaned                                    output of compaction or splitting, not yet valid
    ... .swap                                       complete output that replaces its source segments

A starting broker deletes and renames files until only valid ones remain (rules G-02 to G-05). This module takes the
same decisions in memory; nothing on disk changes.
Source: Kafka's LogFileUtils, LocalLog.parseTopicPartitionName, LogLoader.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from kwire.errors import OptionError
from kwire.identifiers import MAX_OFFSET

PARTITION_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})", re.ASCII | re.DOTALL)
MARKED_DIRECTORY = re.compile(r"\S+-\S+\.\S+-(?P<mark>delete|future|stray)", re.ASCII)
SEGMENT_FILE = re.compile(
    r"(?P<base>[0-9]{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(?:\.(?P<suffix>deleted|cleaned|swap))?"
)
SUFFIXES = (".deleted", ".cleaned", ".swap")
SEGMENT_KINDS = ("log", "index", "timeindex", "txnindex", "snapshot")
BASE_DIGITS = 20
# The kind and the suffix of a segment's file by the end of its name.
_ENDINGS = {
    f".{kind}{f'.{suffix}' if suffix else ''}": (kind, suffix)
    for kind in SEGMENT_KINDS
    for suffix in (None, "deleted", "cleaned", "swap")
}
MARKS = {
    "delete": "a log that is being deleted",
    "future": "a replica that is being moved to this directory",
    "stray": "a replica that is not assigned to this broker",
}
LONGEST_NAME = 255  # of a file or directory
CAPTURE = re.compile(r"\.(pcap|pcapng|cap)[0-9]*", re.ASCII | re.IGNORECASE)
TOPIC = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
LONGEST_TOPIC = 249
LARGEST_PARTITION = (1 << 31) - 1
SMALLEST_SEGMENT_BYTES, LARGEST_SEGMENT_BYTES = 16 << 10, (1 << 31) - 1  # of logs that kwire creates


def is_capture(path: str) -> bool:
    """Return whether a path or URL names a packet capture, by its ending: tcpdump may add a number."""
    return CAPTURE.fullmatch(os.path.splitext(path)[1]) is not None


def check_topic(topic: str, partition: int = 0) -> None:
    """Raise OptionError for an invalid topic name or partition number.

    Source: org.apache.kafka.common.internals.Topic.validate.
    """
    if not TOPIC.fullmatch(topic) or topic in (".", "..") or len(topic) > LONGEST_TOPIC:
        raise OptionError(
            f"topic name {topic[:300]!r} is invalid; expected 1 to {LONGEST_TOPIC} letters, digits, '.', '_' and '-', "
            "and not '.' or '..'"
        )
    if not 0 <= partition <= LARGEST_PARTITION:
        raise OptionError(f"partition {partition} of {topic!r} is invalid; expected 0 to {LARGEST_PARTITION}")


def segment_file(offset: int, kind: str) -> str:
    """Return the name of a segment's file. kind: log, index, timeindex, txnindex or snapshot."""
    return f"{offset:020d}.{kind}"


def parse_segment_file(name: str) -> tuple[int, str, str | None] | None:
    """Return (number, kind, suffix or None) of a name like SEGMENT_FILE, in half the time of the pattern; or None."""
    ending, base = _ENDINGS.get(name[BASE_DIGITS:]), name[:BASE_DIGITS]
    return (int(base), *ending) if ending is not None and base.isascii() and base.isdecimal() else None


def plain_segments(names: Iterable[str]) -> list[tuple[int, str]] | None:
    """Return the base offset and the `.log` file of each segment, ascending, by these files alone.

    None if there are files of a deletion, a swap or a split, for which decide_files has to look at all files.
    """
    segments = []
    for name in names:
        kind, suffix = _ENDINGS.get(name[BASE_DIGITS:], (None, ""))
        if suffix is None:
            base = name[:BASE_DIGITS]
            if kind == "log" and base.isdecimal() and base.isascii() and int(base) <= MAX_OFFSET:
                segments.append((int(base), name))
        elif name.endswith(SUFFIXES):
            return None
    segments.sort()
    return segments


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """A file or directory that is not read. name: as listed."""

    name: str
    reason: str


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Parse `orders-0` to ("orders", 0); return None for any other name, including marked directories."""
    match = PARTITION_DIRECTORY.fullmatch(name)
    if match is None or int(match["partition"]) > (1 << 31) - 1:
        return None
    return match["topic"], int(match["partition"])


def marked_as(name: str, topic: str, partition: int) -> bool:
    """Return whether a directory was a partition's before it was marked. Long topics are cut (Kafka's LocalLog)."""
    key = parse_partition_directory(name.rpartition(".")[0]) if MARKED_DIRECTORY.fullmatch(name) else None
    if key is None or key[1] != partition:
        return False
    return key[0] == topic or (len(name) >= LONGEST_NAME and topic.startswith(key[0]))


def explain_directory(name: str) -> str:
    """Return why a directory is not a partition."""
    match = MARKED_DIRECTORY.fullmatch(name)
    return MARKS[match["mark"]] if match else "not named like a partition"


@dataclass(slots=True, kw_only=True)
class SegmentFiles:
    """Names of the files of one segment by kind (log, index, timeindex, txnindex)."""

    base_offset: int
    names: dict[str, str] = field(default_factory=dict)


class PartitionFiles(msgspec.Struct, kw_only=True):
    """Valid files of a partition directory (segments and snapshots, in offset order), and ignored ones."""

    segments: list[SegmentFiles]
    snapshots: dict[int, str]
    ignored: list[Ignored]


class Swaps(msgspec.Struct, frozen=True, kw_only=True):
    """Segment files by the state of swaps: plain names, complete `.swap` files, and files to remove in this order."""

    plain: list[tuple[int, str, str]]
    swap: list[tuple[int, str, str]]
    removed: list[Ignored]


def decide_swaps(names: Iterable[str], next_offset: Callable[[str, int], int]) -> Swaps:
    """Decide which swaps to finish or undo. Files are (base offset, kind, name). Arguments as for decide_files.

    Source: rules G-02 to G-04; Kafka's LogLoader.load.
    """
    files: dict[str | None, list[tuple[int, str, str]]] = {"deleted": [], "cleaned": [], "swap": [], None: []}
    for name in names:
        parsed = parse_segment_file(name)
        if parsed is not None and parsed[0] <= MAX_OFFSET:
            files[parsed[2]].append((parsed[0], parsed[1], name))
    if not (files["deleted"] or files["cleaned"] or files["swap"]):
        return Swaps(plain=files[None], swap=[], removed=[])
    unfinished = min((base for base, _, _ in files["cleaned"]), default=MAX_OFFSET)
    undone = [file for file in files["swap"] if file[0] >= unfinished]
    swap = [file for file in files["swap"] if file[0] < unfinished]
    swap_logs = [(base, name) for base, kind, name in swap if kind == "log"]
    low = min((base for base, _ in swap_logs), default=MAX_OFFSET)
    high = max((next_offset(name, base) for base, name in swap_logs), default=-1)
    reasons = (
        ("marked for removal", files["deleted"]),
        ("part of an unfinished split", undone),  # before .cleaned files, without which it would count as complete
        ("unfinished output of compaction or splitting", files["cleaned"]),
        ("replaced by a .swap file", [file for file in files[None] if low <= file[0] < high]),
    )
    return Swaps(
        plain=[file for file in files[None] if not low <= file[0] < high],
        swap=swap,
        removed=[Ignored(name=name, reason=reason) for reason, group in reasons for _, _, name in group],
    )


def decide_files(names: Iterable[str], next_offset: Callable[[str, int], int]) -> PartitionFiles:
    """Decide which files of a partition directory a starting broker would keep, by their current names.

    Checkpoints and other files are not included. next_offset(name, base_offset): the offset after the last batch of a
    `.swap` log; only called for valid ones. Source: rules G-02 to G-05; Kafka's LogLoader.load.
    """
    names = list(names)
    swaps = decide_swaps(names, next_offset)
    ignored = swaps.removed + [
        Ignored(name=name, reason="the number in its name is not an offset")
        for name in names
        if (parsed := parse_segment_file(name)) is not None and parsed[0] > MAX_OFFSET
    ]
    segments: dict[int, SegmentFiles] = {}
    snapshots: dict[int, str] = {}
    for base, kind, name in swaps.plain + swaps.swap:  # a .swap file replaces the file of its name
        if kind == "snapshot":
            snapshots[base] = name
        else:
            segments.setdefault(base, SegmentFiles(base_offset=base)).names[kind] = name
    for segment in segments.values():
        if "log" not in segment.names:
            ignored += [Ignored(name=name, reason="an index without its log") for name in segment.names.values()]
    return PartitionFiles(
        segments=[segments[base] for base in sorted(segments) if "log" in segments[base].names],
        snapshots=dict(sorted(snapshots.items())),
        ignored=sorted(ignored, key=lambda each: each.name),
    )
