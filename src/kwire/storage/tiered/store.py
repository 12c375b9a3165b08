"""Present tiered storage as a Kafka log directory, which all readers of log directories can read.

    <prefix><topic>-<topic id>/<partition>/<20 digits>-<segment id>.log | .indexes | .rsm-manifest        objects

    orders-0/00000000000000000042.log            one per manifest; the broker's original bytes
    orders-0/00000000000000000042.index ...      .timeindex, .txnindex from `.indexes`
    orders-0/00000000000000000099.snapshot       producer state at the end of the segment
    orders-0/leader-epoch-checkpoint             of the newest segment
    orders-0/partition.metadata                  the topic id

The manifest is uploaded last, so objects without one are unfinished uploads and ignored. After a change of leader,
segments may overlap; each offset is read from one of them, see without_overlaps. A topic that was
deleted and created again exists under two ids: the one copied last becomes `orders-0`, the other
`orders-0.<id>-stray`, which brokers do not load either.

Which segments are live and where the log starts is recorded in `__remote_log_metadata`, which is not read here.
Source: Aiven-Open/tiered-storage-for-apache-kafka 1.0.0, ObjectKeyFactory, RemoteStorageManager; KIP-405.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kwire.errors import LogError, Malformed, OptionError
from kwire.identifiers import parse_uuid
from kwire.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import Entry, Store, StoredFile, open_files
from kwire.storage.tiered.encryption import OVERHEAD_BYTES, Decrypt, KeyRing
from kwire.storage.tiered.files import MemoryFile, SegmentFile, read_index
from kwire.storage.tiered.manifest import Manifest, parse_manifest

SCHEME = "tiered+"
TOPIC_DIRECTORY = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<id>[A-Za-z0-9_-]{22})")
MANIFEST = re.compile(r"(?P<name>(?P<base>[0-9]{20})-[A-Za-z0-9_-]{22})\.rsm-manifest")
LARGEST_MANIFEST_BYTES = 16 << 20

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One segment: its manifest, the path of its objects without suffix, and the first offset used of it."""

    manifest: Manifest
    path: str
    base_offset: int


class TieredStore(Store):
    """The store at `tiered+URL`, with private keys as `#id=file.pem&id=file.pem` at its end."""

    def __init__(
        self, url: str, options: Mapping[str, Any], opener: Callable[[str, Mapping[str, Any]], Store] = open_files
    ) -> None:
        """opener: of the store that has the objects."""
        self.options = options
        place, mark, keys = url.removeprefix(SCHEME).rpartition("#")
        if not mark or "=" not in keys:
            place, keys = url.removeprefix(SCHEME), ""
        pairs = [pair.partition("=") for pair in keys.split("&") if pair]
        if any(not (key_id and equals and path) for key_id, equals, path in pairs):
            raise OptionError(f"{url}: wrong fragment; expected #key-id=private.pem")
        self._inner = opener(place, options)
        self.url = SCHEME + self._inner.url + ("#" + keys if keys else "")
        self._keys = KeyRing({key_id: path for key_id, _, path in pairs})
        self._directories: dict[str, str] | None = None
        self._segments: dict[str, Sequence[RemoteSegment]] = {}
        self._manifests: dict[str, Manifest] = {}  # by path: objects are never replaced
        self._listed: dict[str, Mapping[str, Entry]] = {}  # of the last prefix in which a segment was looked up
        self._starts: dict[str, int] = {}
        self._decryptors: dict[str, Decrypt] = {}

    # ---- Store

    def url_of(self, path: str) -> str:
        """Return the `tiered+` URL of a path."""
        return f"{SCHEME}{self._inner.url_of(path)}" if path else self.url

    def is_file(self) -> bool:
        """Return whether the root is a file. Raises LogError when it does not exist."""
        return self._inner.is_file()

    def list(self, path: str) -> list[Entry]:
        """List the partitions, or the files of one, as they are now. Raises LogError."""
        if not path:
            self._directories = dict(self._find_directories())
            return [Entry(name=name, is_directory=True) for name in sorted(self._directories)]
        self._segments[path] = self._read_segments(self._place(path))
        sizes = self._files(path)
        return [Entry(name=name, is_directory=False, size_bytes=sizes[name]) for name in sorted(sizes)]

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Open a file of a partition. Raises LogError."""
        stem, _, kind = path.rpartition("/")[2].partition(".")
        if kind == "log":
            segment = self._find(path, stem)
            return self._whole_segment(segment, self._start(segment))
        return MemoryFile(self.read_all(path), self.url_of(path))

    def read_all(self, path: str) -> bytes:
        """Read a whole file of a partition. Raises LogError."""
        directory, _, name = path.rpartition("/")
        if name == PARTITION_METADATA:  # not by render_partition_metadata: the id may be malformed
            return f"version: 0\ntopic_id: {_topic_id_text(self._place(directory))}".encode()
        stem, _, kind = name.partition(".")
        if name == LEADER_EPOCHS:
            segment, kind = self._load(directory)[-1], "leader-epochs"
        elif kind == "log":
            with self.open(path) as file:
                return file.pread(0, file.size())
        else:
            segment = self._find(path, stem)
        decryptor = partial(self._decryptor, segment)
        return read_index(self._inner, f"{segment.path}.indexes", segment.manifest, kind, decryptor)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """Return the function's result for each item; for several items at a time where requests are slow."""
        return self._inner.map(function, items)

    # ---- directories

    def _names(self) -> dict[str, str]:
        """Return partition directory as named by a broker -> prefix of the partition's objects."""
        if self._directories is None:
            self._directories = dict(self._find_directories())
        return self._directories

    def _find_directories(self) -> Iterator[tuple[str, str]]:
        directories: dict[tuple[str, int], list[str]] = {}
        for topic in self._inner.list(""):
            match = TOPIC_DIRECTORY.fullmatch(topic.name)
            if match is None or not topic.is_directory:
                continue
            for partition in self._inner.list(topic.name):
                if partition.is_directory and re.fullmatch("0|[1-9][0-9]{0,9}", partition.name, re.ASCII):
                    key = match["topic"], int(partition.name)
                    directories.setdefault(key, []).append(f"{topic.name}/{partition.name}")
        for (name, number), places in directories.items():
            if len(places) > 1:
                places.sort(key=self._copied_last)
            yield f"{name}-{number}", places[-1]
            for place in places[:-1]:
                yield f"{name}-{number}.{_topic_id_hex(place)}-stray", place

    def _copied_last(self, place: str) -> int:
        return max((segment.manifest.copied_ms for segment in self._read_segments(place)), default=-1)

    # ---- segments

    def _load(self, directory: str) -> Sequence[RemoteSegment]:
        if directory not in self._segments:
            self._segments[directory] = self._read_segments(self._place(directory))
        return self._segments[directory]

    def _read_segments(self, place: str) -> Sequence[RemoteSegment]:
        """Read the segments of a partition by base offset, without overlaps. Raises LogError."""
        entries = self._entries(place)
        names = [match for match in map(MANIFEST.fullmatch, entries) if match is not None]
        manifests = self._inner.map(lambda match: self._manifest(place, match, entries), names)
        return without_overlaps(
            [
                RemoteSegment(manifest, f"{place}/{match['name']}", manifest.base_offset)
                for manifest, match in zip(manifests, names, strict=True)
            ]
        )

    def _entries(self, place: str) -> Mapping[str, Entry]:
        return {entry.name: entry for entry in self._inner.list(place) if not entry.is_directory}

    def _manifest(self, place: str, match: re.Match[str], entries: Mapping[str, Entry]) -> Manifest:
        """Read a manifest and check it against the names and sizes of its objects. Raises LogError."""
        path = f"{place}/{match.string}"
        url = self._inner.url_of(path)
        if entries[match.string].size_bytes > LARGEST_MANIFEST_BYTES:
            raise LogError(f"not a segment manifest: {entries[match.string].size_bytes} bytes", url)
        if path not in self._manifests:
            self._manifests[path] = parse_manifest(self._inner.read_all(path), url)
        manifest = self._manifests[path]
        named = TOPIC_DIRECTORY.fullmatch(place.partition("/")[0])
        assert named is not None
        if (manifest.topic, manifest.partition) != (named["topic"], int(place.rpartition("/")[2])):
            what = f"manifest of {manifest.topic[:300]}-{manifest.partition} does not match its name"
            raise LogError(f"{what}; a key.prefix that is not a folder is not supported", url)
        if manifest.base_offset != int(match["base"]):
            raise LogError(f"manifest of base offset {manifest.base_offset} does not match its name", url)
        stored = manifest.chunks.ends[-1] if manifest.chunks.ends else 0
        needed = {"log": stored, "indexes": max(position + size for position, size in manifest.indexes.values())}
        for kind, size_bytes in needed.items():
            entry = entries.get(f"{match['name']}.{kind}")
            if entry is None:
                raise LogError(f"{kind} object of this manifest is missing", url)
            if entry.size_bytes < size_bytes or (kind == "log" and entry.size_bytes != size_bytes):
                what = f"{kind} object has {entry.size_bytes} bytes, expected {size_bytes} according to this manifest"
                raise LogError(what, url)
        return manifest

    def _files(self, directory: str) -> dict[str, int]:
        """Return the names and sizes of the files in a partition's directory."""
        sizes = {}
        for segment in self._load(directory):
            start = self._start(segment)
            encrypted = OVERHEAD_BYTES if segment.manifest.encryption else 0
            sizes[f"{segment.base_offset:020}.log"] = segment.manifest.chunks.file_bytes - start
            for kind, (_, size) in segment.manifest.indexes.items():
                plain = max(size - encrypted, 0)
                if kind == "snapshot" and plain:
                    sizes[f"{segment.manifest.last_offset + 1:020}.snapshot"] = plain
                elif kind == "leader-epochs":
                    sizes[LEADER_EPOCHS] = plain  # of the newest segment, which is the last
                elif kind != "snapshot" and not start:
                    sizes[f"{segment.base_offset:020}.{kind}"] = plain  # positions of a cut segment are others
        return sizes | {PARTITION_METADATA: len(self.read_all(f"{directory}/{PARTITION_METADATA}"))}

    def _find(self, path: str, stem: str) -> RemoteSegment:
        directory, _, name = path.rpartition("/")
        if directory not in self._segments and not name.endswith(".snapshot"):
            remote = self._find_by_name(directory, stem)
            if remote is not None:
                return remote
        for segment in self._load(directory):
            number = segment.manifest.last_offset + 1 if name.endswith(".snapshot") else segment.base_offset
            if f"{number:020}" == stem:
                return segment
        raise LogError("no such file", self.url_of(path))

    def _find_by_name(self, directory: str, stem: str) -> RemoteSegment | None:
        """Find a segment by the names of its objects, and read its manifest only.

        A task reads one of thousands of segments. None if no manifest has the name: only part of a segment is used.
        """
        place = self._place(directory)
        listed = self._listed
        if place not in listed:
            listed = self._listed = {place: self._entries(place)}
        entries = listed[place]
        candidates = [
            RemoteSegment(self._manifest(place, match, entries), f"{place}/{match['name']}", int(stem))
            for match in map(MANIFEST.fullmatch, entries)
            if match is not None and match["base"] == stem
        ]
        return max(candidates, key=precedence, default=None)

    def _place(self, directory: str) -> str:
        """Return the prefix of a partition's objects, without listing other topics. Raises LogError."""
        if self._directories is None:
            topic, _, partition = directory.rpartition("-")
            matches = (TOPIC_DIRECTORY.fullmatch(entry.name) for entry in self._inner.list(""))
            names = [match.string for match in matches if match is not None and match["topic"] == topic]
            if len(names) == 1 and partition.isdecimal():
                return f"{names[0]}/{partition}"
        if directory not in self._names():
            raise LogError("no such directory", self.url_of(directory))
        return self._names()[directory]

    def _whole_segment(self, segment: RemoteSegment, start: int = 0) -> SegmentFile:
        decrypt = self._decryptor(segment) if segment.manifest.encryption else None
        return SegmentFile(self._inner.open(f"{segment.path}.log"), segment.manifest, decrypt, start)

    def _start(self, segment: RemoteSegment) -> int:
        """Return the position of the first batch that the previous segment does not contain."""
        if segment.base_offset == segment.manifest.base_offset:
            return 0
        if segment.path not in self._starts:
            with self._whole_segment(segment) as file:
                walk = HeaderWalk(file)
                starts = (header.position for header in walk if header.last_offset >= segment.base_offset)
                self._starts[segment.path] = next(starts, walk.position)
        return self._starts[segment.path]

    def _decryptor(self, segment: RemoteSegment) -> Decrypt:
        if segment.path not in self._decryptors:
            encryption, url = segment.manifest.encryption, self._inner.url_of(f"{segment.path}.rsm-manifest")
            assert encryption is not None
            self._decryptors[segment.path] = self._keys.decryptor(encryption, url)
        return self._decryptors[segment.path]


def precedence(segment: RemoteSegment) -> tuple[int, int]:
    """Order copies of a segment: the longest is used, and of these the newest."""
    return segment.manifest.last_offset, segment.manifest.copied_ms


def without_overlaps(segments: Iterable[RemoteSegment]) -> Sequence[RemoteSegment]:
    """Choose segments that contain each offset once, in order of their offsets.

    A segment that begins where the one before ends is preferred: its objects have the name of its first offset. Without
    one, the part of another segment that reaches furthest is used.
    """
    longest = {segment.base_offset: segment for segment in sorted(segments, key=precedence)}
    bases = sorted(longest)
    kept: list[RemoteSegment] = []
    next_offset, i = 0, 0
    furthest: RemoteSegment | None = None
    while True:
        while i < len(bases) and bases[i] < next_offset:
            furthest = max(furthest or longest[bases[i]], longest[bases[i]], key=precedence)
            i += 1
        if next_offset in longest:
            chosen, start = longest[next_offset], next_offset
        elif furthest is not None and furthest.manifest.last_offset >= next_offset:
            chosen, start = furthest, next_offset
        elif i < len(bases):
            chosen, start = longest[bases[i]], bases[i]
        else:
            return kept
        kept.append(RemoteSegment(chosen.manifest, chosen.path, start))
        next_offset = chosen.manifest.last_offset + 1


def _topic_id_text(place: str) -> str:
    match = TOPIC_DIRECTORY.fullmatch(place.partition("/")[0])
    assert match is not None
    return match["id"]


def _topic_id_hex(place: str) -> str:
    try:
        return parse_uuid(_topic_id_text(place)).hex
    except Malformed:
        return "0" * 32
