"""UpdateFeatures and UnregisterBroker: the responses of one Kafka 4.4.0 node whose features are those of Kafka 3.9.

tests/interop/test_broker_admin.py sends the same requests to Kafka.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kwire import messages
from kwire.broker import Broker, Cluster
from kwire.broker.transactions.log_records import write_key
from kwire.log import LogDirectory
from kwire.log.topics.stored_metadata import read_metadata
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient
from tests.waiting import until

METADATA, TRANSACTION, KRAFT, SHARE = "metadata.version", "transaction.version", "kraft.version", "share.version"
UP, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "
UPGRADE_ONLY = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
NEWER = "Can't downgrade to a newer version."
KIND = "The controller does not support the given upgrade type."
NEGATIVE = "A feature version cannot be less than 0."
UNKNOWN = "Local controller 1 does not support this feature."
LOSS = "Refusing to perform the requested downgrade because it might delete metadata information."
UNSAFE_LOSS = "Unsafe metadata downgrade is not supported in this version."


class Step(NamedTuple):
    """Updates (name, level, upgrade type) that succeed without a message, or fail for the one about `feature`."""

    updates: list[tuple[str, int, int]]
    problem: str = ""


def invalid(name: str, level: int, kind: int, reason: str) -> Step:
    return Step([(name, level, kind)], f"{FAILED}Invalid update version {level} for feature {name}. {reason}")


def lossy(level: int, kind: int) -> Step:
    reason = UNSAFE_LOSS if kind == UNSAFE else LOSS
    return Step(
        [(METADATA, level, kind)], f"{FAILED}Unsupported metadata.version downgrade from 21 to {level}. {reason}"
    )


STEPS = [
    Step([]),
    Step([(METADATA, 21, UP)]),
    Step([(METADATA, 21, SAFE)]),
    Step([(METADATA, 21, UNSAFE)]),
    invalid(METADATA, 20, UP, UPGRADE_ONLY),
    lossy(16, SAFE),
    lossy(16, UNSAFE),
    lossy(7, SAFE),
    *(invalid(METADATA, level, SAFE, "Local controller 1 only supports versions 7-{}") for level in (6, 1, 0, 34)),
    invalid(METADATA, -1, UP, NEGATIVE),
    *(invalid(METADATA, 20, kind, KIND) for kind in (0, 4, -1)),
    invalid(METADATA, -1, 0, KIND),
    *(invalid("nope", 1, kind, UNKNOWN) for kind in (UP, SAFE, UNSAFE)),
    *(invalid("nope", 0, kind, "Feature nope not found.") for kind in (UP, SAFE, UNSAFE)),
    invalid("nope", -1, UP, NEGATIVE),
    invalid("", 1, UP, UNKNOWN),
    Step([(METADATA, 20, SAFE)]),
    invalid(METADATA, 21, SAFE, NEWER),
    Step([(METADATA, 17, UNSAFE)]),
    Step([(METADATA, 18, UP)]),
    Step([(METADATA, 21, UP)]),
    Step([(KRAFT, 0, UP)]),
    invalid(KRAFT, 2, UP, "Local controller 1 only supports versions 0-{}"),
    Step([(TRANSACTION, 2, UP)]),
    invalid(TRANSACTION, 3, UP, "Local controller 1 only supports versions 0-2"),
    invalid(TRANSACTION, 1, UP, UPGRADE_ONLY),
    invalid(TRANSACTION, 0, UP, UPGRADE_ONLY),
    Step([(TRANSACTION, 1, SAFE)]),
    invalid(TRANSACTION, 2, SAFE, NEWER),
    invalid(TRANSACTION, 2, UNSAFE, NEWER),
    Step([(TRANSACTION, 1, UP)]),
    Step([(TRANSACTION, 0, UNSAFE)]),
    Step([(TRANSACTION, 0, SAFE)]),
    Step(
        [(TRANSACTION, 2, UP), ("nope", 1, UP)],
        f"{FAILED}Invalid update version 1 for feature nope. {UNKNOWN}",
    ),
    Step([(TRANSACTION, 0, UP)]),
    Step([(TRANSACTION, 2, UP), (TRANSACTION, 1, UP)]),
    invalid(TRANSACTION, 0, UP, UPGRADE_ONLY),
    Step([(SHARE, 2, UP)]),
    invalid(SHARE, 3, UP, "Local controller 1 only supports versions 0-2"),
    invalid(SHARE, 1, UP, UPGRADE_ONLY),
    Step([(SHARE, 1, SAFE)]),
    invalid(SHARE, 2, SAFE, NEWER),
    Step([(SHARE, 2, UP)]),
    Step([(SHARE, 0, UNSAFE)]),
    Step([(SHARE, 1, UP)]),
    Step([(METADATA, 20, SAFE), (TRANSACTION, 2, UP)]),
]


def update(
    client: RawClient, version: int, updates: list[tuple[str, int, int]], *, validate_only: bool = False
) -> tuple[int, str | None, list[tuple[str, int, str | None]]]:
    cls = messages.UpdateFeaturesRequest
    asked = [
        cls.FeatureUpdateKey(feature=name, max_version_level=level, **({"upgrade_type": kind} if version else {}))
        for name, level, kind in updates
    ]
    response = client.ask(cls(feature_updates=asked, validate_only=validate_only), version)
    return (
        response.error_code,
        response.error_message,
        [(each.feature, each.error_code, each.error_message) for each in response.results],
    )


def features(client: RawClient) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """Return the supported levels, the finalized levels and their epoch."""
    found = client.ask(messages.ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4)
    return (
        {each.name: (each.min_version, each.max_version) for each in found.supported_features},
        {each.name: each.max_version_level for each in found.finalized_features},
        found.finalized_features_epoch,
    )


def check_steps(client: RawClient) -> None:
    """Send all steps, each without and with an effect."""
    supported, _, _ = features(client)
    for step in STEPS:
        expected: Any = (0, None, [])
        if step.problem:
            name = step.updates[0][0]
            expected = (ErrorCode.INVALID_UPDATE_VERSION, step.problem.format(supported.get(name, (0, 0))[1]), [])
        before = features(client)[1]
        assert update(client, 2, step.updates, validate_only=True) == expected, step
        assert features(client)[1] == before, step
        if not step.problem:
            expected = (0, None, [(name, 0, "NONE") for name, _, _ in step.updates])
        assert update(client, 1, step.updates) == expected, step
        after = before | ({} if step.problem else {name: level for name, level, _ in step.updates})
        after = {name: level for name, level in after.items() if level}
        until(lambda expected=after: features(client)[1] == expected)  # Kafka's broker follows its controller


def levels_in_log(data: Path) -> list[tuple[str, int]]:
    """Return the features in the metadata log, in order."""
    stored = read_metadata(data / "__cluster_metadata-0")
    return [(each.value.name, each.value.feature_level) for each in stored.records if each.kind == "FeatureLevelRecord"]


def test_levels_change_as_in_kafka(tmp_path: Path) -> None:
    with Broker(tmp_path, transaction_version=0, share_version=0) as broker, RawClient(broker) as client:
        check_steps(client)
    written = [
        pair
        for step in STEPS
        if not step.problem
        for pair in {name: level for name, level, _ in step.updates if name != KRAFT}.items()
    ]
    assert levels_in_log(tmp_path) == [(METADATA, 21), *written]


@pytest.mark.sampled
@pytest.mark.parametrize("by_snapshot", [False, True])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_level_is_that_of_the_next_start(tmp_path: Path, level: int, by_snapshot: bool) -> None:
    given: dict[str, Any] = {"metadata_log_max_record_bytes_between_snapshots": 1} if by_snapshot else {}
    other = (level + 1) % 3
    with Broker(tmp_path, transaction_version=2, **given) as broker, RawClient(broker) as client:
        assert update(client, 2, [(TRANSACTION, level, SAFE if level < 2 else UP), (METADATA, 20, SAFE)])[0] == 0
        if by_snapshot:
            broker.call(lambda node: node.metadata_log.maintain())
    expected = {name: number for name, number in ((METADATA, 20), (TRANSACTION, level), (SHARE, 2)) if number}
    with Broker(tmp_path, transaction_version=other) as broker, RawClient(broker) as client:
        assert features(client)[1] == expected


def test_the_features_of_a_directory_are_reported(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        record = messages.FeatureLevelRecord
        newer = [(record(name=METADATA, feature_level=25), 0), (record(name="group.version", feature_level=1), 0)]
        broker.call(lambda node: node.controller.commit(newer))
        assert features(client)[1] == {METADATA: 25, "group.version": 1, TRANSACTION: 2, SHARE: 2}
        problem = f"{FAILED}Unsupported metadata.version downgrade from 25 to 21. {LOSS}"
        assert update(client, 2, [(METADATA, 21, SAFE)])[1] == problem


def test_a_new_transaction_version_is_in_effect_at_once(tmp_path: Path) -> None:
    def initialize(client: RawClient, transactional_id: str) -> None:
        cls = messages.InitProducerIdRequest
        assert client.ask(cls(transactional_id=transactional_id, transaction_timeout_ms=1000), 4).error_code == 0

    with Broker(tmp_path, transaction_version=0) as broker, RawClient(broker) as client:
        initialize(client, "a")
        assert update(client, 2, [(TRANSACTION, 1, UP)])[0] == 0
        initialize(client, "b")
    log = LogDirectory(tmp_path)
    found = [log["__transaction_state", index].read() for topic, index in log if topic == "__transaction_state"]
    versions = {record.key: int.from_bytes(record.value[:2], "big") for records in found for record in records}
    assert versions == {write_key("a"): 0, write_key("b"): 1}


def test_downgrades_of_version_0_are_refused(tmp_path: Path) -> None:
    cls = messages.UpdateFeaturesRequest
    with Broker() as broker, RawClient(broker) as client:
        asked = [cls.FeatureUpdateKey(feature=METADATA, max_version_level=20, allow_downgrade=True)]
        response = client.ask(cls(feature_updates=asked), 0)
        assert response.error_message == f"{FAILED}Invalid update version 20 for feature {METADATA}. {UPGRADE_ONLY}"
        assert update(client, 0, [(METADATA, 21, UP)]) == (0, None, [(METADATA, 0, "NONE")])


@pytest.mark.parametrize("may", [False, True])
def test_administrators_need_a_permission(may: bool) -> None:
    users = {"super_users": "User:ANONYMOUS"} if may else {}
    with Broker(acls=True, **users) as broker, RawClient(broker) as client:
        denied = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        assert update(client, 2, [(METADATA, 20, SAFE)])[:2] == ((0, None) if may else denied)
        unknown = (ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 7 is not currently registered")
        assert unregister(client, 7) == (unknown if may else denied)
        assert features(client)[1][METADATA] == (20 if may else 21)


@pytest.mark.parametrize("make", [Broker, Cluster])
def test_reset_takes_changed_features_back(make: type[Broker]) -> None:
    with make(transaction_version=1) as broker, RawClient(broker) as client:
        before = features(client)[1]
        assert update(client, 2, [(METADATA, 18, SAFE), (TRANSACTION, 2, UP), (SHARE, 0, SAFE)])[:2] == (0, None)
        assert features(client)[1] != before
        broker.reset()
        _, levels, epoch = features(client)
        assert levels == before
        broker.reset()
        assert features(client)[1:] == (before, epoch)


def unregister(client: RawClient, broker_id: int) -> tuple[int, str | None]:
    response = client.ask(messages.UnregisterBrokerRequest(broker_id=broker_id), 0)
    return response.error_code, response.error_message


@pytest.mark.parametrize("broker_id", [77, -1, 0, 2**31 - 1])
def test_an_unknown_broker_is_not_unregistered(broker_id: int) -> None:
    with Broker() as broker, RawClient(broker) as client:
        assert unregister(client, broker_id) == (
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {broker_id} is not currently registered",
        )


def test_a_former_broker_is_unregistered_and_the_running_one_is_not(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        topic_id = broker.call(lambda node: node.controller.create_topic("t", 2)).topic_id
        former = messages.RegisterBrokerRecord(broker_id=7, broker_epoch=5, fenced=True)
        changes = [
            (messages.PartitionChangeRecord(partition_id=index, topic_id=topic_id, isr=isr), 1)
            for index, isr in enumerate(([1, 7], [7]))
        ]
        broker.call(lambda node: node.controller.commit([(former, 3), *changes]))
        code, message = unregister(client, 1)
        assert code == ErrorCode.INVALID_REQUEST
        assert message == "Broker ID 1 is this broker, the only one that is running; stop it instead"
        assert unregister(client, 7) == (0, "")
        assert unregister(client, 7)[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
    with Broker(tmp_path) as broker:
        assert broker.call(lambda node: list(node.cluster.brokers)) == [1]
        partitions = broker.call(lambda node: node.cluster.topics["t"].partitions)
        assert [partitions[0].isr, partitions[1].isr] == [(1,), (1,)]
