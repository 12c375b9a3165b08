"""Messages share no object that can be changed: each has its own lists and structs, also those of defaults."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.compiled import needs_compiled_code

from kwire import plan, schema
from kwire.messages import FetchResponse, MetadataResponse, registry
from kwire.messages.base import Struct

Partition = FetchResponse.PartitionData
Leader = FetchResponse.LeaderIdAndEpoch


IMMUTABLE = (NoneType, bool, int, float, str, bytes, UUID, tuple)
"""Of tuples there are only unknown tagged fields, (int, bytes)."""


def attributes(struct: Any) -> list[Any]:
    """Return the values of the fields, as a program reads them."""
    return [getattr(struct, name) for name in struct.__struct_fields__]


def as_dict(struct: Any) -> list[Any]:
    """Return the values of the fields, as msgspec reads them."""
    return list(msgspec.structs.asdict(struct).values())


VALUES: dict[str, Callable[[Any], Iterable[Any]]] = {
    "attributes": attributes,
    "asdict": as_dict,
    "astuple": msgspec.structs.astuple,
}


def reachable(value: Any, values_of: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Find the lists and structs in a message, in no message twice."""
    if isinstance(value, list):
        yield value
        parts: Iterable[Any] = value
    elif isinstance(value, Struct):
        yield value
        parts = values_of(value)
    else:
        assert isinstance(value, IMMUTABLE), type(value)
        parts = value if isinstance(value, tuple) else ()
    for part in parts:
        yield from reachable(part, values_of)


def change(found: Any) -> None:
    """Change every field of a struct, or add to a list."""
    if isinstance(found, list):
        list.append(found, 5)
    else:
        for name in found.__struct_fields__:
            setattr(found, name, object())


def filled(message: Any, struct: Any, version: int, cls: Any) -> Any:
    """Make an object with an element in each array of structs that a version has; other fields have defaults."""
    made = cls()
    for field in struct.fields:
        if field.type == "records" and version not in field.nullable:
            setattr(made, field.attr, b"")
        if field.struct is not None and version in field.versions:
            of = getattr(message, field.struct.name)
            value = filled(message, field.struct, version, of)
            setattr(made, field.attr, [value] if field.is_array else value)
    return made


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


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kernels", [pytest.param(True, marks=needs_compiled_code, id="compiled"), pytest.param(False, id="plain")]
)
@pytest.mark.parametrize("way", VALUES)
def test_no_change_of_a_message_reaches_another(way: str, kernels: bool) -> None:
    """Programs once changed all later messages of the process through the lists and structs of one."""
    values_of = VALUES[way]
    count = 0
    for name in registry.names():
        cls: Any = registry.get(name)
        for version in cls.VALID_VERSIONS:
            codec = plan.codec(cls.SPEC, version, cls, kernels=kernels)
            for original in (cls(), filled(cls, cls.SPEC.struct, version, cls)):
                wire = codec.encode(original)
                changed, other = codec.decode(wire), codec.decode(wire)
                found, untouched = list(reachable(changed, values_of)), list(reachable(other, values_of))
                objects = {id(each) for each in (*found, *untouched)}
                assert len(objects) == len(found) + len(untouched), f"{name} version {version} shares an object"
                for each in found:
                    change(each)
                assert codec.encode(other) == wire == codec.encode(codec.decode(wire)), f"{name} version {version}"
                assert other == codec.decode(wire) == original
                count += 1
    assert count > 1700


@pytest.mark.parametrize("way", VALUES)
def test_no_change_of_a_new_message_reaches_another(way: str) -> None:
    for name in registry.names():
        cls: Any = registry.get(name)
        for of in (cls, *(getattr(cls, struct.name) for struct in cls.SPEC.structs)):
            changed, other = of(), of()
            for each in list(reachable(changed, VALUES[way])):
                change(each)
            assert list(reachable(other, VALUES[way])) == list(reachable(of(), VALUES[way]))
            assert other == of() != changed


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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_deep_copies_share_nothing_that_can_change(copied: Callable[[Any], Any]) -> None:
    original = fetched().responses[0].partitions[0]
    same = copied(original)
    assert same == original
    same.current_leader.leader_id = 5
    same.unknown_tagged_fields.append((9, b""))
    assert original.current_leader.leader_id == -1
    assert original == fetched().responses[0].partitions[0] == Partition(partition_index=0, records=b"")
    whole = copied(described())
    whole.topics[0].partitions[0].offline_replicas.append(5)
    assert whole.topics[0].partitions[1].offline_replicas == []


@pytest.mark.parametrize("copied", [copy.copy, msgspec.structs.replace])
def test_shallow_copies_share_with_their_original_only(copied: Callable[[Any], Any]) -> None:
    original = fetched().responses[0].partitions[0]
    same = copied(original)
    assert same == original
    same.current_leader.leader_id = 5
    assert original.current_leader is same.current_leader
    assert fetched().responses[0].partitions[0] == Partition(partition_index=0, records=b"")


def test_pickled_structs_share_no_defaults() -> None:
    first, second, _ = pickle.loads(pickle.dumps(fetched())).responses[0].partitions
    first.current_leader.leader_id = 5
    assert second.current_leader.leader_id == -1


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


@pytest.mark.slow
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
