"""kwire-manifest.json: what a copy of a cluster contains, with a hash of each segment.

Written atomically beside the partitions, at intervals and at the end of a run. It describes the copy at that moment:
a log may have grown since, never below the sizes given here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from kwire.errors import LogError
from kwire.identifiers import TopicPartition
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.storage.open_store import open_store
from kwire.storage.store import Store

__all__ = [
    "MANIFEST",
    "AclEntry",
    "ClusterEntry",
    "Event",
    "Manifest",
    "PartitionEntry",
    "QuotaEntry",
    "SegmentEntry",
    "TopicEntry",
    "UserEntry",
    "manifest_damages",
    "read_manifest",
]

MANIFEST = "kwire-manifest.json"
VERSION = 1
READ_BYTES = 1 << 20


class SegmentEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A `.log` file: its first size_bytes bytes have this SHA-256, in hex."""

    base_offset: int
    size_bytes: int
    sha256: str


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something in the cluster that the copy cannot hide.

    kind: 'gap' (retention removed [first_offset, end_offset) before it was copied), 'truncated' (the leader lost
    [first_offset, end_offset), and the copy follows it), 'recreated' (the topic has another id; the earlier log is kept
    in a directory that ends with -stray), 'deleted' (the topic is gone; its copy is kept), 'readable' (the topic may be
    read now; the log made from admin APIs is kept as -stray).
    """

    time_ms: int
    kind: str
    topic: str
    partition: int | None = None
    first_offset: int | None = None
    end_offset: int | None = None


class PartitionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A copied partition with records in [log_start_offset, log_end_offset).

    high_watermark: of the leader, at the start of the run or later.
    """

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    segments: list[SegmentEntry]

    @property
    def is_complete(self) -> bool:
        """Whether the copy has everything below the high watermark."""
        return self.log_end_offset >= self.high_watermark


class TopicEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A copied topic. id: 22 characters, None before Kafka 2.8. configs: those that differ from the defaults.

    configs is None if the account may not see them. made_from: the requests whose responses the log was made from, for
    a coordinator's topic that the account may not read; its id and offsets differ from the cluster's.
    """

    id: str | None
    configs: dict[str, str] | None
    partitions: dict[int, PartitionEntry]
    made_from: list[str] = []


class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A user's SCRAM credential. Brokers do not return passwords, salts or keys: the user needs a new password."""

    user: str
    mechanism: str
    iterations: int


class AclEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An access control entry, with the words of `kwire cluster PATH acls`."""

    principal: str
    permission: str
    operation: str
    resource_type: str
    pattern_type: str
    resource_name: str
    host: str


class QuotaEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The quotas of an entity. entity: user, client-id or ip -> name, None for the default."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


class ClusterEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the cluster itself, read at described_ms; None where the account may not see them.

    broker_configs: dynamic ones by node id, '' for all brokers; a value of None is a secret. features: name -> level.
    """

    described_ms: int
    users: list[UserEntry] | None
    acls: list[AclEntry] | None
    quotas: list[QuotaEntry] | None
    broker_configs: dict[str, dict[str, str | None]] | None
    features: dict[str, int] | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a copy. began_ms, written_ms: in ms since the epoch.

    complete: whether every partition of the run was copied up to the high watermark at its start. hidden: what could
    not be seen, and why: the account may not, or a broker did not respond. cluster: None if a run copied single topics
    only.
    """

    cluster_id: str | None
    bootstrap_servers: list[str]
    began_ms: int
    written_ms: int
    complete: bool
    topics: dict[str, TopicEntry]
    version: int = VERSION
    hidden: list[str] = []
    events: list[Event] = []
    cluster: ClusterEntry | None = None

    @classmethod
    def begun(
        cls, cluster_id: str | None, servers: list[str], now_ms: int, topics: dict[str, TopicEntry] | None = None
    ) -> Manifest:
        """Return the manifest of a copy that begins. topics: what it has already."""
        return cls(
            cluster_id=cluster_id,
            bootstrap_servers=servers,
            began_ms=now_ms,
            written_ms=now_ms,
            complete=False,
            topics=topics or {},
        )

    def render(self) -> bytes:
        """Return the contents of the file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def parse(cls, data: bytes, file: str) -> Manifest:
        """Parse a manifest. file: its path, for errors. Raises LogError."""
        try:
            manifest = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise LogError(f"not a manifest of a copy: {error}", file) from error
        if manifest.version != VERSION:
            raise LogError(f"manifest of version {manifest.version}; this release reads version {VERSION}", file)
        return manifest


def read_manifest(store: Store) -> Manifest | None:
    """Read the manifest of a copy, None for a directory without one. Raises LogError for an invalid manifest."""
    if store.is_file() or all(entry.name != MANIFEST for entry in store.list("")):
        return None
    return Manifest.parse(store.read_all(MANIFEST), store.url_of(MANIFEST))


def manifest_damages(
    url: str,
    keys: Collection[TopicPartition] | None,
    advance: Callable[[int], None] = lambda n: None,
    options: Mapping[str, Any] | None = None,
) -> list[Damage]:
    """Compare segments of a copy with its manifest; [] for a directory without one.

    url: path or URL of the copy. keys: partitions to compare, None for all in the manifest. advance: called with bytes
    read. options: storage options. Raises LogError for an invalid manifest.
    """
    store = open_store(url, options)
    manifest = read_manifest(store)
    if manifest is None:
        return []
    damages = []
    for topic, entry in manifest.topics.items():
        for partition, copied in entry.partitions.items():
            for segment in copied.segments if keys is None or (topic, partition) in keys else ():
                file_name = f"{topic}-{partition}/{segment.base_offset:020}.log"
                cause = difference(store, file_name, segment, advance)
                if cause is not None:
                    damages.append(
                        Damage(
                            kind=Kind.COPY,
                            severity=Severity.MISLEADS,
                            file=store.url_of(file_name),
                            cause=cause,
                            effect="none by itself: the records may differ from the source's",
                            hint="remove the partition's directory and pull it again",
                            topic=topic,
                            partition=partition,
                        )
                    )
    return damages


def difference(store: Store, path: str, segment: SegmentEntry, advance: Callable[[int], None]) -> str | None:
    """Return how a file differs from its entry, None if it does not."""
    digest, position = hashlib.sha256(), 0
    try:
        with store.open(path) as file:
            while position < segment.size_bytes:
                data = file.pread(position, min(READ_BYTES, segment.size_bytes - position))
                if not data:
                    return f"ends at byte {position}, the manifest has {segment.size_bytes}"
                digest.update(data)
                position += len(data)
                advance(len(data))
    except LogError as error:
        return "is missing" if isinstance(error.__cause__, FileNotFoundError) else error.what
    return None if digest.hexdigest() == segment.sha256 else "its SHA-256 is not that of the manifest"


def now() -> int:
    """Return the time in ms since the epoch, as manifests have it."""
    return time.time_ns() // 1_000_000
