"""Decoded objects share empty lists and default structs until they are read, and then have their own."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kwire import native, plan, schema
from kwire.messages import FetchResponse, MetadataResponse, registry

Partition = FetchResponse.PartitionData
Leader = FetchResponse.LeaderIdAndEpoch


def fetched() -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse(
        topic="t", partitions=[Partition(partition_index=i, records=b"") for i in range(3)]
    )
    return FetchResponse.decode(FetchResponse(responses=[topic]).encode(version=12), version=12)


def described() -> MetadataResponse:
    topic = MetadataResponse.MetadataResponseTopic(
        name="t",
        partitions=[MetadataResponse.MetadataResponsePartition(partition_index=i, isr_nodes=[1]) for i in range(3)],
    )
    return MetadataResponse.decode(MetadataResponse(topics=[topic]).encode(version=9), version=9)


def test_a_list_that_is_read_belongs_to_its_object() -> None:
    first, second, third = described().topics[0].partitions
    assert type(first.offline_replicas) is list
    assert first.offline_replicas is first.offline_replicas
    first.offline_replicas.append(7)
    assert (first.offline_replicas, second.offline_replicas, third.offline_replicas) == ([7], [], [])
    assert [p.offline_replicas for p in described().topics[0].partitions] == [[], [], []]
    assert first.isr_nodes == [1]
    first.isr_nodes.append(2)  # equal arrays of a message are separate lists
    assert second.isr_nodes == [1]


def test_a_struct_that_is_read_belongs_to_its_object() -> None:
    first, second, _ = fetched().responses[0].partitions
    assert type(first.current_leader) is Leader
    assert first.current_leader is first.current_leader
    assert first.current_leader == Leader()
    first.current_leader.leader_id = 5
    assert (first.current_leader.leader_id, second.current_leader.leader_id) == (5, -1)
    assert fetched().responses[0].partitions[0].current_leader == Leader() == Partition().current_leader


def test_reading_changes_neither_equality_nor_bytes_nor_text() -> None:
    for make, version in ((fetched, 12), (described, 9)):
        fresh, read = make(), make()
        shown = repr(read)
        for struct in (read, *getattr(read, "responses" if version == 12 else "topics")[0].partitions):
            for name in struct.__struct_fields__:
                getattr(struct, name)
        assert fresh == read
        assert fresh.encode(version=version) == read.encode(version=version)
        assert fresh.to_json(version=version) == read.to_json(version=version)
        assert msgspec.json.encode(make()) == msgspec.json.encode(read)
        assert repr(read) == shown
        walker = plan.codec(type(read).SPEC, version, type(read), kernels=False)
        assert walker.encode(make()) == read.encode(version=version)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj)), msgspec.structs.replace]
)
def test_copies_share_nothing_that_can_change(copied: Callable[[Any], Any]) -> None:
    original = fetched().responses[0].partitions[0]
    same = copied(original)
    assert same == original
    same.current_leader.leader_id = 5
    same.unknown_tagged_fields.append((9, b""))
    if copied is not copy.copy:  # a shallow copy shares what has been read
        assert original.current_leader.leader_id == -1
    assert fetched().responses[0].partitions[0] == Partition(partition_index=0, records=b"")
    whole = copied(described())
    whole.topics[0].partitions[0].offline_replicas.append(5)
    assert whole.topics[0].partitions[1].offline_replicas == []


def test_pickled_structs_share_no_defaults() -> None:
    first, second, _ = pickle.loads(pickle.dumps(fetched())).responses[0].partitions
    first.current_leader.leader_id = 5
    assert second.current_leader.leader_id == -1


@pytest.mark.skipif(native.LEVEL is None, reason="only compiled code shares")
def test_the_shared_list_cannot_be_changed() -> None:
    """msgspec's functions return it."""
    partition = described().topics[0].partitions[0]
    found = msgspec.structs.asdict(partition)["offline_replicas"]
    assert found == []
    with pytest.raises(TypeError, match="get it from the attribute of its struct"):
        found.append(1)


def test_attributes_are_set_and_deleted_as_others() -> None:
    first = described().topics[0].partitions[0]
    given = [1, 2]
    first.offline_replicas = given
    assert first.offline_replicas is given
    del first.offline_replicas
    for _ in range(2):
        with pytest.raises(AttributeError):
            first.offline_replicas  # noqa: B018
    with pytest.raises(AttributeError):
        del first.offline_replicas
    if native.LEVEL is None:
        return
    attribute: Any = MetadataResponse.MetadataResponsePartition.offline_replicas
    with pytest.raises(TypeError):
        attribute.__get__(described())
    with pytest.raises(TypeError):
        attribute.__set__(5, [])
    with pytest.raises(TypeError):
        type(attribute)()


def test_subclasses_of_a_message_are_read() -> None:
    class Mine(registry.get("ListOffsetsResponse")):  # type: ignore[misc]
        @property
        def count(self) -> int:
            return len(self.topics)

    read = Mine.decode(Mine(throttle_time_ms=5).encode(version=6), version=6)
    assert (type(read), read.throttle_time_ms, read.count, read.topics) == (Mine, 5, 0, [])


def test_classes_compiled_at_run_time_are_freed() -> None:
    def use() -> weakref.ref[type]:
        cls: Any = schema.compile(
            schema.parse("""{"type": "data", "name": "Freed", "validVersions": "0", "flexibleVersions": "0+",
                "fields": [
                {"name": "Many", "type": "[]int32", "versions": "0+"},
                {"name": "One", "type": "One", "versions": "0+", "tag": 0, "taggedVersions": "0+", "fields": [
                    {"name": "X", "type": "int32", "versions": "0+"}]}]}""")
        )
        for read in (cls.decode(cls().encode(version=0), version=0) for _ in range(3)):
            assert (read.many, read.one.x) == ([], 0)
        return weakref.ref(cls)

    found = use()
    gc.collect()
    gc.collect()
    assert found() is None
