"""Every API and version that the broker serves: what its requests name, and where its errors are."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

import pytest

from kwire.broker.apis import SERVED, handler
from kwire.broker.context import Peer, RequestContext
from kwire.broker.dispatch import Call
from kwire.broker.faults.conditions import Seen
from kwire.broker.faults.entities import collect, divide, failed, merge
from kwire.broker.faults.names import METADATA_APIS, api_name
from kwire.broker.faults.plan import Plan, Step
from kwire.broker.faults.rules import Faults
from kwire.broker.faults.shapes import Level, error_level, kinds_of, request_shape
from kwire.broker.injection import Injection
from kwire.broker.request_log import error_codes
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode

VERSIONS = [(key, version) for key, api in SERVED.items() for version in sorted({api.lowest, api.highest})]
IDS = [f"{api_name(key)}-{version}" for key, version in VERSIONS]
CODE = ErrorCode.KAFKA_STORAGE_ERROR
DESCRIBE_LOG_DIRS = 35
ONE, OTHER = UUID(int=1), UUID(int=2)


class Topics:
    """Two topics, by name and id."""

    known: ClassVar = {"one": ONE, "other": OTHER}

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, each in self.known.items() if each == topic_id), None)

    def id_of(self, name: str) -> UUID | None:
        return self.known.get(name)

    def names(self) -> list[str]:
        return list(self.known)

    def fetched(self, session_id: int) -> list[tuple[str | UUID, int]]:
        return []

    def share_fetched(self, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        return []


VALUES: dict[str, tuple[Any, Any]] = {
    "topic": ("one", "other"),
    "topic_id": (ONE, OTHER),
    "partition": (0, 1),
    "group": ("one", "other"),
    "transactional_id": ("one", "other"),
    "coordinator_key": ("one", "other"),
    "resource": ("one", "other"),
    "resource_type": (2, 2),
    "quota": ({"user": "one", "client-id": None}, {"user": "other", "client-id": None}),
    "user": ("one", "other"),
}


def filled(key: int, version: int) -> Any:
    """Return a request that names two of everything."""
    shape = request_shape(key, version)
    request = shape.cls()
    for kind, attr in shape.kinds.items():
        setattr(request, str(attr), VALUES[kind][0])
    for level in shape.levels:
        setattr(request, level.attr, elements(shape.cls, level))
    for field in shape.cls.SPEC.struct.fields:  # what faults do not select, such as resources and creations
        is_empty = version in field.versions and field.is_array and not getattr(request, field.attr)
        if is_empty and field.struct is not None:
            setattr(request, field.attr, [getattr(shape.cls, field.struct.name)()])
    return request


def elements(cls: Any, level: Level) -> list[Any]:
    made = []
    for place in (0, 1) if level.kinds else (0,):
        if level.struct is None:
            made.append(VALUES[next(iter(level.kinds))][place])
            continue
        element = getattr(cls, level.struct)()
        for kind, attr in level.kinds.items():
            value = VALUES[kind][place]
            if kind == "quota":
                value = [cls.EntityData(entity_type=one, entity_name=name) for one, name in value.items()]
            setattr(element, str(attr), value)
        for below in level.levels:
            setattr(element, below.attr, elements(cls, below))
        made.append(element)
    return made


@pytest.mark.parametrize(("key", "version"), VERSIONS, ids=IDS)
def test_an_error_for_the_whole_response_is_in_it(key: int, version: int) -> None:
    if key in METADATA_APIS or (key, version) == (DESCRIBE_LOG_DIRS, 0):
        return  # the broker's response is changed, see test_errors; and one without a field for an error
    request = filled(key, version)
    faults = Faults(SERVED)
    fault = faults.fail(api_name(key), CODE)
    plan = faults.take(Seen(key, version, "c", request, Topics()))
    assert isinstance(plan, Plan)
    assert plan.answer == Step(fault)
    peer = Peer(connection_id="", host="", port=0, listener="")
    context = RequestContext(
        peer=peer, api_key=key, api_version=version, correlation_id=0, client_id="c", request_bytes=0
    )
    call = Call(handler(key), context, request, True, version)
    response = Injection(call, plan, None, None, None)._fail(CODE)  # type: ignore[arg-type]
    sent = registry.response(key).decode(response.encode(version=version), version=version)
    assert set(error_codes(sent)) == {CODE}


@pytest.mark.parametrize(("key", "version"), VERSIONS, ids=IDS)
def test_an_error_for_one_element_leaves_the_others(key: int, version: int) -> None:
    request, topics = filled(key, version), Topics()
    for kind in kinds_of(request_shape(key, version)):
        named = error_level(key, version, frozenset({kind}))
        if named is None or key in METADATA_APIS or (key == 10 and kind != "group"):
            continue  # FindCoordinator: the filled request is for groups
        wanted = VALUES[kind][0]
        matched, rest = divide(request, key, version, named, lambda each, k=kind, w=wanted: each.get(k) == w, topics)
        assert matched is not None
        assert rest is not None
        assert all(each[kind] == wanted for each in collect(matched, key, version, topics))
        assert wanted not in [each[kind] for each in collect(rest, key, version, topics)]
        errors, fine = (
            failed(part, key, version, code, "") for part, code in ((matched, CODE), (rest, ErrorCode.NONE))
        )
        merge(fine, errors, key, version)
        sent = registry.response(key).decode(fine.encode(version=version), version=version)
        assert list(error_codes(sent)) == [CODE] * len(list(error_codes(errors)))
        assert list(error_codes(sent)), kind


def test_all_kinds_of_elements_were_found() -> None:
    """The definitions say what a field names; were this lost, faults for a partition would fail whole responses."""
    found = {api_name(key): kinds_of(request_shape(key, SERVED[key].highest)) for key in SERVED}
    assert found["Produce"] == {"topic", "partition", "transactional_id"}
    assert found["OffsetFetch"] == {"topic", "partition", "group"}
    assert found["FindCoordinator"] == {"group", "transactional_id"}
    assert found["WriteTxnMarkers"] == {"topic", "partition"}
    assert found["TxnOffsetCommit"] == {"topic", "partition", "group", "transactional_id"}
    assert {name for name, kinds in found.items() if "group" in kinds} == {
        "AddOffsetsToTxn", "AlterShareGroupOffsets", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "DeleteGroups",
        "DeleteShareGroupOffsets", "DescribeGroups", "DescribeShareGroupOffsets", "FindCoordinator", "Heartbeat",
        "JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetDelete", "OffsetFetch", "ShareAcknowledge", "ShareFetch",
        "ShareGroupDescribe", "ShareGroupHeartbeat", "StreamsGroupDescribe", "StreamsGroupHeartbeat",
        "StreamsGroupTopologyDescriptionUpdate", "SyncGroup", "TxnOffsetCommit",
    }  # fmt: skip
    with_errors = {
        api_name(key) for key, version in VERSIONS if error_level(key, version, frozenset({"topic", "partition"}))
    }
    assert with_errors == {
        "AddPartitionsToTxn", "AlterPartitionReassignments", "AlterReplicaLogDirs", "AlterShareGroupOffsets",
        "DeleteRecords", "DeleteShareGroupState", "DescribeProducers", "DescribeQuorum", "DescribeShareGroupOffsets",
        "DescribeTopicPartitions", "ElectLeaders", "Fetch", "InitializeShareGroupState", "ListOffsets", "Metadata",
        "OffsetCommit", "OffsetDelete", "OffsetFetch", "OffsetForLeaderEpoch", "Produce", "ReadShareGroupState",
        "ReadShareGroupStateSummary", "ShareAcknowledge", "ShareFetch", "TxnOffsetCommit", "WriteShareGroupState",
        "WriteTxnMarkers",
    }  # fmt: skip
