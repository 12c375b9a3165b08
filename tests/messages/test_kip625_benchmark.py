"""The message of KIP-625's benchmark: its sizes in kwire, and why the KIP's sizes are impossible."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.messages import kip625

from kwire import schema
from kwire.messages import registry


@pytest.fixture(scope="module")
def metadata() -> Any:
    return schema.compile(kip625.definition())


@pytest.mark.requirement("I-50", "I-51", "S625-01", "S625-02", "S625-03", "S625-04", "S625-06", "S625-07")
def test_packing_halves_the_best_case_and_lengthens_the_worst(metadata: Any) -> None:
    best, worst = (kip625.response(metadata, worst=worst) for worst in (False, True))
    fixed = best.encoded_size(version=kip625.FIXED)
    assert worst.encoded_size(version=kip625.FIXED) == fixed
    for version in (kip625.PACKED, kip625.UNSIGNED):
        assert best.encoded_size(version=version) < 0.45 * fixed
        assert 1.2 * fixed < worst.encoded_size(version=version) < 1.25 * fixed
        for obj in (best, worst):
            assert metadata.decode(obj.encode(version=version), version=version) == obj
    topic = worst.topics[0]
    assert len(topic.partitions) == 100
    assert min(p.partition_index for p in topic.partitions) > 2**27 - 1 < min(b.node_id for b in worst.brokers)


@pytest.mark.requirement("S625-08")
def test_the_fixed_message_is_kafkas_byte_for_byte(metadata: Any) -> None:
    for worst in (False, True):
        ours = kip625.response(metadata, worst=worst)
        kafkas = registry.get("MetadataResponse").from_json(ours.to_json(version=kip625.FIXED), version=9)
        assert kafkas.encode(version=9) == ours.encode(version=kip625.FIXED)


@pytest.mark.requirement("I-51", "S625-02", "S625-03", "S625-04")
def test_no_version_of_the_message_has_the_sizes_of_the_kip() -> None:
    """The bound of `impossible`, checked for every version that the KIP may have used."""
    assert "at least 709 are int32; fixed, these take 3038 of the 3216 bytes and leave 178" in kip625.impossible()
    cls = registry.get("MetadataResponse")
    for version in range(10):
        node = cls.MetadataResponseTopic
        empty, full = (
            cls(topics=[node(partitions=[cls.MetadataResponsePartition() for _ in range(count)])])
            for count in (100, 200)
        )
        grown = full.encoded_size(version=version) - empty.encoded_size(version=version)
        integers = 2 + 4 * (3 if version >= 7 else 2)
        assert grown >= 100 * (integers + 2)  # the counts of two lists at least, and no second int16
