"""Run kernels of every kind on bytes that Kafka wrote, and print digests of the results, equal on every processor.

The last line of the output is a JSON object. test_processors runs this program on emulated processors.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import golden
from tests.fuzz import record_writing
from tests.log.cleaner import kafka_cleaned

from kwire import native
from kwire.errors import CorruptBatch, KwireError
from kwire.log import FileSystem, LogConfig, PartitionWriter
from kwire.log.cleaner import Cleaner
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.messages import registry
from kwire.records import ColumnReader
from kwire.records.format.batch_checksums import crc32c

CLEANED = (("modern", "txn-0"), ("modern", "compacted-1"), ("legacy", "mixed-format-0"))


def checksums() -> Iterator[int]:
    """Yield CRC-32C of every way to add up: single bytes, words, three streams at once."""
    for size in (0, 1, 7, 8, 100, 767, 768, 6144, 6150, 20011):
        data = random.Random(size).randbytes(size)
        expected = crc32c(data)
        assert not native.HAS_CRC32C or native.sum_bytes(data) == expected, size
        yield expected


def messages() -> Iterator[Any]:
    """Yield messages decoded and encoded again."""
    for line in golden.cached("messages-4.4.0.jsonl.gz"):
        message = registry.get(line["message"]).decode(golden.unpack(line["b64"]) or b"", version=line["version"])
        assert message.to_json(version=line["version"]) == line["json"]
        yield message.encode(version=line["version"])


def columns() -> Iterator[Any]:
    """Yield the rows of record sets of every format and codec, and what is wrong with others."""
    for line in [*golden.record_sets(), *golden.reads_of_invalid_bytes()]:
        try:
            for batch in ColumnReader().read(golden.unpack(line["b64"]) or b""):
                yield str(batch) if isinstance(batch, CorruptBatch) else batch.to_pylist()
        except KwireError as error:
            yield str(error)


def written() -> Iterator[Any]:
    """Write random rows by columns and by objects, and read them in both ways."""
    for seed in range(60):
        record_writing.write_both(random.Random(seed))
        yield seed


def cleaned(folder: Path) -> Iterator[Any]:
    """Clean logs; Kafka's cleaner wrote the same."""
    expected = json.loads(kafka_cleaned.EXPECTED.read_text())
    for archive, name in CLEANED:
        directory = kafka_cleaned.copy_partition(golden.extract(archive, folder), name, folder)
        topic, _, partition = name.rpartition("-")
        now_ms, files, clean = kafka_cleaned.PASSES[0], FileSystem(), PartitionCheckpoints(is_clean=True)
        config = LogConfig.parse(kafka_cleaned.SETTINGS)
        log = PartitionWriter.open(
            files, str(directory), topic, int(partition), config, now_ms=now_ms, checkpoints=clean
        )
        Cleaner(CleanerCheckpoints(files, str(folder))).clean(log, now_ms)
        log.close()
        digests = kafka_cleaned.digests(directory)
        assert digests == expected[f"{archive}/{name}"][0]["files"], name
        yield digests


def digest(values: Iterator[Any]) -> str:
    """Hash values by their repr."""
    found = hashlib.sha256()
    for value in values:
        found.update(repr(value).encode())
    return found.hexdigest()


def main() -> None:
    """Print the results."""
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "checksums": digest(checksums()),
            "messages": digest(messages()),
            "columns": digest(columns()),
            "written": digest(written()),
            "cleaned": digest(cleaned(Path(folder))),
        }
    json.dump({"level": native.LEVEL, "crc32c": native.HAS_CRC32C, "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
