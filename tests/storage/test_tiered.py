"""Objects of the tiered storage plugin read like the original logs; inconsistent objects are rejected."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import shutil
import uuid
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cramjam
import pytest

from kwire.errors import KwireError, LogError, OptionError
from kwire.log import LogDirectory, PartitionLog, open_tiered, plan_splits, read_split
from kwire.records.columns.reader import COLUMNS
from kwire.storage.open_store import open_store
from kwire.storage.tiered.encryption import KeyRing, unwrap
from kwire.storage.tiered.manifest import (
    MAX_CHUNKS,
    Chunks,
    Encryption,
    Fields,
    Manifest,
    decode_sizes,
    parse_manifest,
)
from kwire.storage.tiered.store import RemoteSegment, without_overlaps
from tests import golden
from tests.log.expected import ISOLATIONS, read_arrow, read_objects, rows_of

Row = dict[str, Any]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of tests/data/tiered."""
    return golden.extract_tiered(tmp_path_factory.mktemp("tiered"))


@pytest.fixture
def copy(objects: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Function that returns a writable copy: copy("plain")."""
    return lambda name: shutil.copytree(objects / name, tmp_path / name)


def keys(objects: Path) -> dict[str, str]:
    return {"key1": str(objects / "private.pem")}


def original(kafka_logs: Mapping[str, Path], topic: str, partition: int) -> PartitionLog:
    archive = "legacy" if topic in ("v0", "v1") else "modern"
    return LogDirectory(kafka_logs[archive] / "data")[topic, partition]


FOLDERS = {
    "plain": [("trimmed", 0), ("txn", 0)],
    "zstd/tiered": [("txn", 0), ("v0", 0), ("v1", 1)],
    "encrypted": [("txn", 0)],
    "zstd-encrypted": [("txn", 0)],
}


@pytest.mark.sampled
@pytest.mark.parametrize("folder", FOLDERS)
def test_tiered_segments_read_as_on_their_broker(folder: str, objects: Path, kafka_logs: dict[str, Path]) -> None:
    directory = open_tiered(objects / folder, private_keys=keys(objects))
    assert list(directory) == FOLDERS[folder]
    for key, log in directory.items():
        source = original(kafka_logs, *key)
        end = source.segments[-1].base_offset  # the active segment is never copied
        assert log.log_end_offset == end
        assert [segment.base_offset for segment in log.segments] == [s.base_offset for s in source.segments[:-1]]
        assert log.leader_epochs == source.leader_epochs
        assert log.topic_id == source.topic_id or key[0] in ("v0", "v1")
        for isolation in ISOLATIONS:
            stop = min(end, log.last_stable_offset) if isolation == "read_committed" else end
            rows = read_objects(source, end_offset=stop, isolation=isolation)
            start = source.log_start_offset
            assert len(rows) > 100
            assert read_objects(log, start_offset=start, isolation=isolation) == rows
            assert read_arrow(log, start_offset=start, isolation=isolation) == rows
            splits = pickle.loads(pickle.dumps(plan_splits(log, isolation=isolation, split_bytes=20_000)))
            read = [row for split in splits for row in rows_of(read_split(split, COLUMNS))]
            assert [row for row in read if row.offset >= start] == rows


def test_indexes_and_snapshots_are_read_from_the_indexes_object(objects: Path, kafka_logs: dict[str, Path]) -> None:
    source = original(kafka_logs, "txn", 0)
    for folder in ("zstd/tiered", "zstd-encrypted"):
        log = open_tiered(objects / folder, private_keys=keys(objects))["txn", 0]
        for ours, theirs in zip(log.segments, source.segments, strict=False):
            assert ours.has == theirs.has
            assert list(ours.index or ()) == list(theirs.index or ())
            assert list(ours.time_index or ()) == list(theirs.time_index or ())
            assert ours.transaction_index == theirs.transaction_index
        for name in source._files.snapshots.values():
            if name in log._files.snapshots.values():
                assert log.read_file(name) == source.read_file(name)
        assert len(log._files.snapshots) > 5


def test_encrypted_segments_require_the_private_key(objects: Path, tmp_path: Path) -> None:
    log = open_tiered(objects / "encrypted")["txn", 0]
    with pytest.raises(LogError, match=r"encrypted with key pair 'key1'.*#key1=private.pem"):
        list(log.read())
    with pytest.raises(OptionError, match="not a PEM private key"):
        list(open_tiered(objects / "encrypted", private_keys={"key1": __file__})["txn", 0].read())
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = tmp_path / "other.pem"
    key = rsa.generate_private_key(65537, 2048)
    other.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(LogError, match="does not unwrap"):
        list(open_tiered(objects / "encrypted", private_keys={"key1": str(other)})["txn", 0].read())
    assert unwrap(b"x" * 256, key.private_numbers()) is None


@pytest.mark.parametrize("folder", ["zstd/tiered", "encrypted", "zstd-encrypted"])
def test_a_changed_byte_of_an_object_is_rejected(folder: str, objects: Path, copy: Callable[[str], Path]) -> None:
    root = copy(folder.partition("/")[0])
    for path in sorted(root.rglob("txn-*/0/*012-*.log")):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)
    target = root / folder.partition("/")[2] if "/" in folder else root
    log = open_tiered(target, private_keys=keys(objects))["txn", 0]
    with pytest.raises(KwireError, match=r"chunk \d|CRC"):
        list(log.read())


# ---- the same offsets twice, topics twice


def store(root: Path, log: PartitionLog, first: int, last: int, name: str, **changed: Any) -> Path:
    """Write segments first..last of a log as one object in root, like the plugin without compression."""
    data = b"".join(Path(segment.url).read_bytes() for segment in log.segments[first : last + 1])
    base, end = log.segments[first].base_offset, log.segments[last].next_base
    assert end is not None
    topic_id = changed.pop("topic_id", "FdLbL8xnRjCBHSJyw8VnZg")
    manifest = {
        "version": "1",
        "chunkIndex": {
            "type": "fixed",
            "originalChunkSize": 5000,
            "originalFileSize": len(data),
            "transformedChunkSize": 5000,
            "finalTransformedChunkSize": len(data) % 5000 or 5000,
        },
        "segmentIndexes": {
            **{each: {"position": 0, "size": 0} for each in ("offset", "timestamp", "producerSnapshot", "leaderEpoch")},
            "transaction": None,
        },
        "compression": False,
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": topic_id,
                    "topicPartition": {"topic": log.topic, "partition": log.partition},
                },
                "id": name,
            },
            "startOffset": base,
            "endOffset": end - 1,
            "maxTimestampMs": 0,
            "brokerId": 1,
            "eventTimestampMs": changed.pop("copied_ms", 0),
            "segmentLeaderEpochs": {"0": base},
        },
        **changed,
    }
    folder = root / f"{log.topic}-{topic_id}" / str(log.partition)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020}-{name}"
    Path(f"{path}.log").write_bytes(data)
    Path(f"{path}.indexes").write_bytes(b"")
    Path(f"{path}.rsm-manifest").write_text(json.dumps(manifest))
    return Path(f"{path}.rsm-manifest")


def segment_id(n: int) -> str:
    return base64.urlsafe_b64encode(bytes([n]) * 16).decode().rstrip("=")


OVERLAPS = {
    "a segment begins where one ends": ([(0, 0), (0, 1), (1, 2), (3, 3), (2, 4), (4, 4)], [0, 2]),
    "only parts remain": ([(0, 1), (1, 2), (1, 3), (3, 4)], [0, 2, 4]),
    "a part, then a whole segment": ([(0, 1), (1, 2), (3, 4), (2, 2)], [0, 2, 3]),
}


@pytest.mark.parametrize(("copies", "begins"), OVERLAPS.values(), ids=OVERLAPS)
def test_offsets_copied_by_two_leaders_are_read_once(
    kafka_logs: dict[str, Path], tmp_path: Path, copies: list[tuple[int, int]], begins: list[int]
) -> None:
    source = original(kafka_logs, "orders", 1)
    for number, (first, last) in enumerate(copies):
        store(tmp_path, source, first, last, segment_id(number))
    log = open_tiered(tmp_path)["orders", 1]
    bases = [segment.base_offset for segment in source.segments]
    assert [segment.base_offset for segment in log.segments] == [bases[begin] for begin in begins]
    for segment in log.segments:  # a task opens a file without listing its directory
        with open_store(f"tiered+{tmp_path}").open(f"orders-1/{segment.base_offset:020}.log") as alone:
            assert alone.pread(0, alone.size()) == log.store.read_all(f"orders-1/{segment.base_offset:020}.log")
    rows = read_objects(source, end_offset=bases[5])
    assert read_objects(log) == read_arrow(log) == rows
    assert read_objects(log, start_offset=bases[3] + 7) == rows[bases[3] + 7 :]


def test_opening_a_segment_reads_no_manifest_of_others(
    kafka_logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = original(kafka_logs, "orders", 1)
    for number in range(5):
        store(tmp_path, source, number, number, segment_id(number))
    read = []

    def count(data: bytes, url: str) -> Manifest:
        read.append(url)
        return parse_manifest(data, url)

    monkeypatch.setattr("kwire.storage.tiered.store.parse_manifest", count)
    base = source.segments[3].base_offset
    tiered = open_store(f"tiered+{tmp_path}")
    with tiered.open(f"orders-1/{base:020}.log") as file:
        assert file.size() == source.segments[3].size_bytes
    tiered.read_all(f"orders-1/{base:020}.index")
    assert len(set(read)) == 1


@pytest.mark.parametrize("path", ["orders-9/00000000000000000000.log", "orders-1/00000000000000000001.log", "x/y.log"])
def test_a_missing_segment_is_reported(kafka_logs: dict[str, Path], tmp_path: Path, path: str) -> None:
    store(tmp_path, original(kafka_logs, "orders", 1), 0, 0, segment_id(1))
    with pytest.raises(LogError, match=r"(?i)no such"):
        open_store(f"tiered+{tmp_path}").open(path)


def test_the_last_copied_of_two_topics_with_the_same_name_is_read(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    old, new = original(kafka_logs, "orders", 0), original(kafka_logs, "orders", 1)
    store(tmp_path, old, 0, 1, segment_id(1), copied_ms=5, topic_id="A" * 21 + "A")
    path = store(tmp_path, new, 0, 0, segment_id(2), copied_ms=9)
    manifest = json.loads(path.read_text())
    manifest["remoteLogSegmentMetadata"]["remoteLogSegmentId"]["topicIdPartition"]["topicPartition"]["partition"] = 0
    path.write_text(json.dumps(manifest))
    path.parent.rename(path.parent.with_name("0"))
    directory = open_tiered(tmp_path)
    assert list(directory) == [("orders", 0)]
    assert [each.name for each in directory.ignored] == [f"orders-0.{'0' * 32}-stray"]
    assert read_objects(directory["orders", 0]) == read_objects(new, end_offset=new.segments[0].next_base)


def test_an_upload_without_a_manifest_is_ignored(copy: Callable[[str], Path]) -> None:
    root = copy("plain")
    newest = sorted(root.glob("txn-*/0/*.rsm-manifest"))[-1]
    newest.unlink()
    assert open_tiered(root)["txn", 0].log_end_offset == 688


# ---- manifests that lie


def with_field(manifest: Row, path: str, value: Any) -> Row:
    """Return a manifest with the field at a dotted path replaced, or removed if the value is `...`."""
    *above, name = path.split(".")
    inner = manifest
    for step in above:
        inner = inner[step]
    if value is ...:
        del inner[name]
    else:
        inner[name] = value
    return manifest


METADATA = "remoteLogSegmentMetadata"
TOPIC = f"{METADATA}.remoteLogSegmentId.topicIdPartition"
LIES: list[tuple[str, Any, str]] = [
    ("version", "2", "version '2'"),
    ("chunkIndex", ..., "expected a JSON object"),
    ("chunkIndex.type", "other", "'fixed' or 'variable'"),
    ("chunkIndex.originalChunkSize", 0, "from 1 to"),
    ("chunkIndex.originalChunkSize", 1, "sizes, the segment has|chunks|bytes, expected"),
    ("chunkIndex.originalFileSize", 1 << 31, "from 0 to"),
    ("chunkIndex.originalFileSize", -1, "from 0 to"),
    ("chunkIndex.originalFileSize", True, "from 0 to"),
    ("chunkIndex.originalFileSize", 1e300, "from 0 to"),
    ("chunkIndex.finalTransformedChunkSize", 1 << 30, "bytes, expected"),
    ("segmentIndexes.offset.size", 1 << 30, "indexes object has"),
    ("segmentIndexes.timestamp", None, "expected a JSON object"),
    ("compression", "yes", "true or false"),
    (f"{TOPIC}.topicPartition.topic", "../../etc", "does not match its name"),
    (f"{TOPIC}.topicPartition.partition", 7, "does not match its name"),
    (f"{TOPIC}.topicId", "short", "not an id of 22"),
    (f"{METADATA}.startOffset", 1, "does not match its name|expected a number"),
    (f"{METADATA}.endOffset", -5, "expected a number"),
    ("encryption", {"dataKey": "no colon", "aad": ""}, "key id:base64"),
    ("encryption", {"dataKey": "k:%%%", "aad": ""}, "not base64"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("field", "value", "said"), LIES, ids=[f"{path}={value}" for path, value, _ in LIES])
def test_an_inconsistent_manifest_is_rejected_and_reported(
    field: str, value: Any, said: str, copy: Callable[[str], Path]
) -> None:
    root = copy("plain")
    path = sorted(root.glob("txn-*/0/*.rsm-manifest"))[1]
    path.write_text(json.dumps(with_field(json.loads(path.read_text()), field, value)))
    with pytest.raises(LogError, match=said) as refused:
        list(open_tiered(root)["txn", 0].read())
    assert str(path) in str(refused.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("folder", ["plain", "zstd/tiered", "encrypted"])
@pytest.mark.parametrize(
    ("kind", "more", "is_refused"),
    [
        ("log", -1, True),
        ("log", 0, False),
        ("log", 1, True),
        ("indexes", -1, True),
        ("indexes", 0, False),
        ("indexes", 1, False),  # what no index refers to is not read
    ],
)
def test_an_object_has_the_size_of_its_manifest(
    kind: str, more: int, is_refused: bool, folder: str, objects: Path, copy: Callable[[str], Path]
) -> None:
    """A log of another size is not that of the manifest, although each of its chunks can be read."""
    root = copy(folder.partition("/")[0])
    path = sorted(root.rglob(f"txn-*/0/*.{kind}"))[1]
    data = path.read_bytes()
    path.write_bytes(data[:more] if more < 0 else data + bytes(more))
    target = root / folder.partition("/")[2] if "/" in folder else root
    log = open_tiered(target, private_keys=keys(objects))["txn", 0]
    if not is_refused:
        assert len(list(log.read())) == 626
        return
    with pytest.raises(LogError) as refused:
        list(log.read())
    said = f"{kind} object has {len(data) + more} bytes, expected {len(data)} according to this manifest"
    assert (refused.value.what, refused.value.file) == (said, str(path.with_suffix(".rsm-manifest")))


@pytest.mark.parametrize(
    ("count", "is_refused"), [(MAX_CHUNKS - 1, False), (MAX_CHUNKS, False), (MAX_CHUNKS + 1, True)]
)
@pytest.mark.parametrize("last_bytes", [1, 2047, 2048])
def test_a_segment_has_a_million_chunks_at_most(count: int, is_refused: bool, last_bytes: int, objects: Path) -> None:
    """2 KiB each: a segment of 2 GiB, the largest, has as many as are accepted."""
    (path, *_) = sorted((objects / "plain").glob("txn-*/0/*.rsm-manifest"))
    manifest = json.loads(path.read_text())
    size = min((count - 1) * 2048 + last_bytes, (1 << 31) - 1) if count <= MAX_CHUNKS else count
    manifest["chunkIndex"] = {
        "type": "fixed",
        "originalChunkSize": 2048 if count <= MAX_CHUNKS else 1,
        "originalFileSize": size,
        "transformedChunkSize": 2048,
        "finalTransformedChunkSize": last_bytes,
    }
    text = json.dumps(manifest).encode()
    if is_refused:
        with pytest.raises(LogError, match=f"{count} chunks, expected at most {MAX_CHUNKS}"):
            parse_manifest(text, "m")
        return
    chunks = parse_manifest(text, "m").chunks
    assert (len(chunks.ends), chunks.ends[-1], chunks.file_bytes) == (count, (count - 1) * 2048 + last_bytes, size)


def test_chunk_sizes_are_cross_checked(objects: Path) -> None:
    path = sorted((objects / "zstd/tiered").glob("txn-*/0/*.rsm-manifest"))[1]
    manifest = json.loads(path.read_text())
    good = parse_manifest(path.read_bytes(), "m")
    assert good.chunks.ends[-1] == path.with_suffix(".log").stat().st_size
    count = len(good.chunks.ends)
    bodies = [
        b"",
        count.to_bytes(4, "big"),
        (1 << 30).to_bytes(4, "big") + b"\0" * 20,
        count.to_bytes(4, "big") + b"\0\0\0\0\x09" + b"x" * 40,
        b"\0" * (11 << 20),
        (count + 1).to_bytes(4, "big") + b"\0\0\0\0\1" + b"x" * (count + 4),
    ]
    for body in bodies:
        manifest["chunkIndex"]["transformedChunks"] = base64.b64encode(bytes(cramjam.zstd.compress(body))).decode()
        with pytest.raises(LogError, match="transformedChunks"):
            parse_manifest(json.dumps(manifest).encode(), "m")
    manifest["chunkIndex"]["transformedChunks"] = base64.b64encode(b"no zstd").decode()
    with pytest.raises(LogError, match="transformedChunks"):
        parse_manifest(json.dumps(manifest).encode(), "m")


def test_any_changed_byte_of_a_manifest_gives_the_records_or_an_error_with_its_name(
    objects: Path, kafka_logs: dict[str, Path]
) -> None:
    path = sorted((objects / "zstd-encrypted").glob("txn-*/0/*.rsm-manifest"))[0]
    data = path.read_bytes()
    seen = 0
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        try:
            parse_manifest(bytes(changed), "m")
        except LogError:
            seen += 1
    assert seen > 100
    for cut in range(0, len(data), 7):
        with pytest.raises(LogError, match=r"^m: "):
            parse_manifest(data[:cut], "m")
    with pytest.raises(LogError, match=r"^m: not a segment manifest"):
        parse_manifest(b"[" * 100_000, "m")


def test_a_chunk_larger_than_declared_is_rejected(copy: Callable[[str], Path]) -> None:
    root = copy("zstd") / "tiered"
    path = sorted(root.glob("v0-*/0/*.rsm-manifest"))[-1]
    bomb = bytes(cramjam.zstd.compress(b"\0" * (1 << 24)))
    path.with_suffix(".log").write_bytes(bomb)
    manifest = json.loads(path.read_text())
    size = manifest["chunkIndex"]["originalFileSize"]
    sizes = (1).to_bytes(4, "big") + len(bomb).to_bytes(4, "big")
    manifest["chunkIndex"]["originalChunkSize"] = size
    manifest["chunkIndex"]["transformedChunks"] = base64.b64encode(bytes(cramjam.zstd.compress(sizes))).decode()
    path.write_text(json.dumps(manifest))
    with pytest.raises(LogError, match=f"more than {size} bytes"):
        list(open_tiered(root)["v0", 0].read())


def test_private_keys_in_urls_are_hidden(objects: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(str(objects / "zstd-encrypted"), "/bucket/logs", recursive=True)
    url = f"tiered+memory://bucket/logs#key1={objects / 'private.pem'}"
    log = LogDirectory(url)["txn", 0]
    assert log.log_end_offset == 700
    assert len(list(log.read())) == 626
    with pytest.raises(OptionError, match=r"key-id=private\.pem"):
        LogDirectory("tiered+memory://bucket/logs#=x")
    with pytest.raises(LogError, match=r"^memory://nothing-here: no such file or directory"):
        LogDirectory("tiered+memory://nothing-here")


def test_the_command_line_accepts_tiered_urls(objects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kwire.cli.main import run

    assert run(["log", "ls", f"tiered+{objects / 'plain'}", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["topic"], row["log_end_offset"]) for row in rows] == [("trimmed", 982), ("txn", 700)]


def test_one_chunk_size_or_none_is_accepted(objects: Path) -> None:
    from kwire.storage.tiered.manifest import Fields

    fields = Fields({}, "m", "chunkIndex")
    for values, encoded in (([], "00000000"), ([7], "0000000100000007")):
        assert decode_sizes(bytes(cramjam.zstd.compress(bytes.fromhex(encoded))), len(values), fields) == values


@pytest.mark.parametrize(("last", "starts"), [(14, [0, 20]), (15, [0, 15, 20]), (16, [0, 15, 20])])
def test_the_last_offset_of_a_part_is_read_too(last: int, starts: list[int]) -> None:
    """Copies of offsets 0 to 14, 10 to `last`, and 20 to 29."""
    copies = [(0, 14), (10, last), (20, 29)]
    rest: dict[str, Any] = {"topic": "t", "partition": 0, "topic_id": uuid.UUID(int=1), "copied_ms": 0}
    rest |= {"chunks": Chunks(file_bytes=0, chunk_bytes=1, ends=array("q"))}
    rest |= {"compression": False, "encryption": None, "indexes": {}}
    segments = [
        RemoteSegment(Manifest(base_offset=first, last_offset=end, **rest), str(first), first) for first, end in copies
    ]
    assert [each.base_offset for each in without_overlaps(segments)] == starts


def encoded(base: int, sizes: list[int], width: int) -> bytes:
    """Encode sizes of chunks as the plugin does: all but the last as differences from a base."""
    head = len(sizes).to_bytes(4, "big")
    if len(sizes) == 1:
        return head + sizes[0].to_bytes(4, "big")
    values = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return head + base.to_bytes(4, "big") + bytes([width]) + values + sizes[-1].to_bytes(4, "big")


def decoded(data: bytes, count: int) -> list[int]:
    return decode_sizes(bytes(cramjam.zstd.compress(data)), count, Fields({}, "m", "chunkIndex"))


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sizes_of_chunks_have_one_to_four_bytes(width: int) -> None:
    """Below their base there are none; the last chunk has its size as it is."""
    largest = min(1000 + 256**width - 1, (1 << 31) - 1)
    for sizes in ([1000, 7], [1000, largest, 1001, 7], [largest, (1 << 31) - 1]):
        assert decoded(encoded(1000, sizes, width), len(sizes)) == sizes
        for wrong in (encoded(1000, sizes, width) + b"\0", encoded(1000, sizes, width)[:-1]):
            with pytest.raises(LogError, match="transformedChunks"):
                decoded(wrong, len(sizes))


def test_a_segment_may_have_one_chunk_or_none() -> None:
    assert decoded(bytes(4), 0) == []
    assert decoded(encoded(0, [77], 1), 1) == [77]
    for width in (0, 5):
        wrong = bytearray(encoded(0, [1, 2], 1))
        wrong[8] = width
        with pytest.raises(LogError, match=f"{width} bytes per size, expected 1 to 4"):
            decoded(bytes(wrong), 2)
    with pytest.raises(LogError, match="0 bytes per size"):
        decoded(encoded(0, [1, 2], 1)[:8], 2)


@pytest.mark.parametrize("sizes", [[1 << 31, 7], [7, 1 << 31]])
def test_a_chunk_has_less_than_two_gib(sizes: list[int]) -> None:
    allowed = [min(size, (1 << 31) - 1) for size in sizes]
    assert decoded(encoded(0, allowed, 4), 2) == allowed
    with pytest.raises(LogError, match="above 2"):
        decoded(encoded(0, sizes, 4), 2)


def wrapped(message: bytes, public: Any) -> bytes:
    """Encrypt as RSA-OAEP with SHA3-512 (RFC 8017, 7.1.1), which the library does not have."""

    def mask(seed: bytes, n: int) -> bytes:
        blocks = (hashlib.sha3_512(seed + i.to_bytes(4, "big")).digest() for i in range(n // 64 + 1))
        return b"".join(blocks)[:n]

    def exclusive_or(one: bytes, other: bytes) -> bytes:
        return bytes(a ^ b for a, b in zip(one, other, strict=True))

    size, numbers, seed = public.key_size // 8, public.public_numbers(), bytes(range(64))
    data = hashlib.sha3_512().digest() + bytes(size - 2 * 64 - 2 - len(message)) + b"\1" + message
    masked = exclusive_or(data, mask(seed, len(data)))
    block = b"\0" + exclusive_or(seed, mask(masked, 64)) + masked
    return pow(int.from_bytes(block, "big"), numbers.e, numbers.n).to_bytes(size, "big")


def test_an_encrypted_chunk_may_be_empty(tmp_path: Path) -> None:
    """It is then as long as what encryption adds; a shorter one is damage."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key, data_key = rsa.generate_private_key(65537, 2048), bytes(range(32))
    (tmp_path / "k.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    encryption = Encryption(key_id="k", wrapped_key=wrapped(data_key, key.public_key()), aad=b"aad")
    decrypt = KeyRing({"k": str(tmp_path / "k.pem")}).decryptor(encryption, "m")
    stored = bytes(12) + AESGCM(data_key).encrypt(bytes(12), b"", b"aad")
    assert decrypt(stored) == b""
    with pytest.raises(ValueError, match="27 bytes, expected at least 28"):
        decrypt(stored[:-1])


def test_the_smallest_key_wraps_an_empty_message() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 1040)  # 130 bytes: two hashes and two bytes
    assert unwrap(wrapped(b"", key.public_key()), key.private_numbers()) == b""
    smaller = rsa.generate_private_key(65537, 1032)
    assert unwrap(bytes(129), smaller.private_numbers()) is None
