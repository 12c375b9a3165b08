import gzip
import re
from pathlib import Path

import pytest

from kwire.internal_topics.placement import java_hash, partition_for

# Of Java's own String.hashCode: empty, ASCII, beyond Latin-1, two UTF-16 units, and the one without an absolute value.
HASHES = [
    ("", 0),
    ("a", 97),
    ("hello world", 1794106052),
    ("é", 233),
    ("\N{GRINNING FACE}", 1772899),
    ("polygenelubricants", -2147483648),
]


@pytest.mark.parametrize(("text", "value"), HASHES)
def test_group_ids_have_javas_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_hash_without_an_absolute_value_maps_to_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_groups_are_in_the_partitions_of_a_real_broker(kafka_logs: dict[str, Path]) -> None:
    seen = set()
    for name in ("modern", "modern44"):
        for path in (kafka_logs[name] / "expected" / "dump" / "decoded").glob("__consumer_offsets-*.txt.gz"):
            partition = int(re.findall(r"-(\d+)\.txt", path.name)[0])
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                for group in re.findall(r'"data":\{"group(?:Id)?":"([^"]+)"', stream.read()):
                    assert partition_for(group, 3) == partition, group
                    seen.add(group)
    assert len(seen) > 5
