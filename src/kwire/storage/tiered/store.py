"""A place in tiered storage as a Kafka log directory, so that everything that reads one reads this.

    <prefix><topic>-<topic id>/<partition>/<20 digits>-<segment id>.log | .indexes | .rsm-manifest        what is stored

    orders-0/00000000000000000042.log            one for each manifest; its bytes as they were on the broker
    orders-0/00000000000000000042.index ...      .timeindex, .txnindex out of `.indexes`
    orders-0/00000000000000000099.snapshot       producers at the end of the segment
    orders-0/leader-epoch-checkpoint             of the newest segment
    orders-0/partition.metadata                  the topic id

A manifest is uploaded last, so objects without one are unfinished uploads and not looked at. After a change of leaders
the same offsets may be there twice: the segment that reaches further counts, and the one behind it begins where that
ends. A topic that was deleted and made again is there under two ids: the one copied last is `orders-0`, the other
`orders-0.<id>-stray`, which a broker would not take for a log either.

Which segments the brokers still count, and the log start, stand in `__remote_log_metadata` and not here.
Source: Aiven-Open/tiered-storage-for-apache-kafka 1.0.0, ObjectKeyFactory, RemoteStorageManager; KIP-405.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

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
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One segment: its manifest, the path of its objects without ending, and the first offset that counts."""

    manifest: Manifest
    path: str
    base_offset: int


class TieredStore:
    """The Store at `tiered+URL`; private keys as `#id=file.pem&id=file.pem` behind it."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self.options = options
        place, mark, keys = url.removeprefix(SCHEME).rpartition("#")
        if not mark or "=" not in keys:
            place, keys = url.removeprefix(SCHEME), ""
        pairs = [pair.partition("=") for pair in keys.split("&") if pair]
        if any(not (key_id and equals and path) for key_id, equals, path in pairs):
            raise OptionError(f"{url}: expected #key-id=private.pem behind the URL")
        self._inner: Store = open_files(place, options)
        self.url = SCHEME + self._inner.url + ("#" + keys if keys else "")
        self._keys = KeyRing({key_id: path for key_id, _, path in pairs})
        self._directories: dict[str, str] | None = None
        self._segments: dict[str, Sequence[RemoteSegment]] = {}
        self._starts: dict[str, int] = {}
        self._decryptors: dict[str, Decrypt] = {}

    # ---- the Store

    def url_of(self, path: str) -> str:
        return f"{SCHEME}{self._inner.url_of(path)}" if path else self.url

    def is_file(self) -> bool:
        return self._inner.is_file()

    def list(self, path: str) -> list[Entry]:
        if not path:
            return [Entry(name=name, is_directory=True) for name in sorted(self._names())]
        sizes = self._files(path)
        return [Entry(name=name, is_directory=False, size_bytes=sizes[name]) for name in sorted(sizes)]

    def open(self, path: str) -> StoredFile:
        stem, _, kind = path.rpartition("/")[2].partition(".")
        if kind == "log":
            segment = self._find(path, stem)
            return self._whole_segment(segment, self._start(segment))
        return MemoryFile(self.read_all(path), self.url_of(path))

    def read_all(self, path: str) -> bytes:
        directory, _, name = path.rpartition("/")
        segments = self._load(directory)
        if name == PARTITION_METADATA:
            return f"version: 0\ntopic_id: {_topic_id_text(self._names()[directory])}".encode()
        stem, _, kind = name.partition(".")
        if name == LEADER_EPOCHS:
            segment, kind = segments[-1], "leader-epochs"
        elif kind == "log":
            with self.open(path) as file:
                return file.pread(0, file.size())
        else:
            segment = self._find(path, stem)
        decryptor = partial(self._decryptor, segment)
        return read_index(self._inner, f"{segment.path}.indexes", segment.manifest, kind, decryptor)

    # ---- directories

    def _names(self) -> dict[str, str]:
        """Names of partition directories as a broker would have them -> where the partition's objects are."""
        if self._directories is None:
            self._directories = dict(self._find_directories())
        return self._directories

    def _find_directories(self) -> Iterator[tuple[str, str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for topic in self._inner.list(""):
            match = TOPIC_DIRECTORY.fullmatch(topic.name)
            if match is None or not topic.is_directory:
                continue
            for partition in self._inner.list(topic.name):
                if partition.is_directory and re.fullmatch("0|[1-9][0-9]{0,9}", partition.name, re.ASCII):
                    found.setdefault((match["topic"], int(partition.name)), []).append(f"{topic.name}/{partition.name}")
        for (name, number), places in found.items():
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
            if directory not in self._names():
                raise LogError("no such directory", self.url_of(directory))
            self._segments[directory] = self._read_segments(self._names()[directory])
        return self._segments[directory]

    def _read_segments(self, place: str) -> Sequence[RemoteSegment]:
        """The segments of a partition, each offset once, by base offset. Raises LogError."""
        entries = {entry.name: entry for entry in self._inner.list(place) if not entry.is_directory}
        names = [match for match in map(MANIFEST.fullmatch, entries) if match is not None]
        with ThreadPoolExecutor(CONNECTIONS) as pool:  # each is a round trip to the object store
            manifests = list(pool.map(lambda match: self._manifest(place, match, entries), names))
        found = sorted(
            (RemoteSegment(manifest, f"{place}/{match['name']}", manifest.base_offset)
             for manifest, match in zip(manifests, names, strict=True)),
            key=lambda each: (each.base_offset, -each.manifest.last_offset, -each.manifest.copied_ms),
        )  # fmt: skip
        kept: list[RemoteSegment] = []
        next_offset = 0
        for segment in found:
            if segment.manifest.last_offset < next_offset:
                continue  # a copy of what is there, by an earlier or later leader
            kept.append(RemoteSegment(segment.manifest, segment.path, max(segment.base_offset, next_offset)))
            next_offset = segment.manifest.last_offset + 1
        return kept

    def _manifest(self, place: str, match: re.Match[str], entries: Mapping[str, Entry]) -> Manifest:
        """One manifest, held against the names and sizes of its objects. Raises LogError."""
        path = f"{place}/{match.string}"
        url = self._inner.url_of(path)
        if entries[match.string].size_bytes > LARGEST_MANIFEST_BYTES:
            raise LogError(f"{entries[match.string].size_bytes} bytes are no segment manifest", url)
        manifest = parse_manifest(self._inner.read_all(path), url)
        named = TOPIC_DIRECTORY.fullmatch(place.partition("/")[0])
        assert named is not None
        if (manifest.topic, manifest.partition) != (named["topic"], int(place.rpartition("/")[2])):
            what = f"this manifest is of {manifest.topic[:300]}-{manifest.partition}, its name says otherwise"
            raise LogError(f"{what}; with a key.prefix that is no folder these objects cannot be read here", url)
        if manifest.base_offset != int(match["base"]):
            raise LogError(f"this manifest is of offset {manifest.base_offset}, its name says otherwise", url)
        stored = manifest.chunks.ends[-1] if manifest.chunks.ends else 0
        needed = {"log": stored, "indexes": max(position + size for position, size in manifest.indexes.values())}
        for kind, size_bytes in needed.items():
            entry = entries.get(f"{match['name']}.{kind}")
            if entry is None:
                raise LogError(f"the {kind} object of this manifest is missing", url)
            if entry.size_bytes < size_bytes or (kind == "log" and entry.size_bytes != size_bytes):
                raise LogError(f"the {kind} object has {entry.size_bytes} bytes, this manifest says {size_bytes}", url)
        return manifest

    def _files(self, directory: str) -> dict[str, int]:
        """Names and sizes of what a broker's directory would hold."""
        sizes = {}
        for segment in self._load(directory):
            start = self._start(segment)
            encrypted = OVERHEAD_BYTES if segment.manifest.encryption else 0
            sizes[f"{segment.base_offset:020}.log"] = segment.manifest.chunks.file_bytes - start
            for kind, (_, size) in segment.manifest.indexes.items():
                plain = max(size - encrypted, 0)
                if kind == "snapshot" and plain:
                    sizes[f"{segment.manifest.last_offset + 1:020}.snapshot"] = plain
                elif kind not in ("leader-epochs", "snapshot") and not start:
                    sizes[f"{segment.base_offset:020}.{kind}"] = plain  # positions of a cut segment are others
        return sizes | {name: len(self.read_all(f"{directory}/{name}")) for name in (PARTITION_METADATA, LEADER_EPOCHS)}

    def _find(self, path: str, stem: str) -> RemoteSegment:
        directory, _, name = path.rpartition("/")
        for segment in self._load(directory):
            number = segment.manifest.last_offset + 1 if name.endswith(".snapshot") else segment.base_offset
            if f"{number:020}" == stem:
                return segment
        raise LogError("no such file", self.url_of(path))

    def _whole_segment(self, segment: RemoteSegment, start: int = 0) -> SegmentFile:
        decrypt = self._decryptor(segment) if segment.manifest.encryption else None
        return SegmentFile(self._inner.open(f"{segment.path}.log"), segment.manifest, decrypt, start)

    def _start(self, segment: RemoteSegment) -> int:
        """Position of the first batch that an earlier segment does not have."""
        if segment.base_offset == segment.manifest.base_offset:
            return 0
        if segment.path not in self._starts:
            with self._whole_segment(segment) as file:
                walk = HeaderWalk(file)
                behind = (header.position for header in walk if header.last_offset >= segment.base_offset)
                self._starts[segment.path] = next(behind, walk.position)
        return self._starts[segment.path]

    def _decryptor(self, segment: RemoteSegment) -> Decrypt:
        if segment.path not in self._decryptors:
            encryption, url = segment.manifest.encryption, self._inner.url_of(f"{segment.path}.rsm-manifest")
            assert encryption is not None
            self._decryptors[segment.path] = self._keys.decryptor(encryption, url)
        return self._decryptors[segment.path]


def _topic_id_text(place: str) -> str:
    match = TOPIC_DIRECTORY.fullmatch(place.partition("/")[0])
    assert match is not None
    return match["id"]


def _topic_id_hex(place: str) -> str:
    try:
        return parse_uuid(_topic_id_text(place)).hex
    except Malformed:
        return "0" * 32
