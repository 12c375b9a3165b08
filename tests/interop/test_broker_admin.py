"""The answers to requests of administrators that tests/broker expects, compared with a real Kafka 4.4.0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.broker.test_config_changes import documentation
from tests.broker.test_feature_updates import (
    METADATA,
    SAFE,
    TRANSACTION,
    UP,
    check_steps,
    features,
    levels_in_log,
    unregister,
    update,
)
from tests.broker.test_loggers import check_loggers
from tests.broker.test_offsets import check_deleted_records, check_offsets_before
from tests.broker.wire import RawClient
from tests.waiting import until
from tools import kafka

from kwire import messages
from kwire.broker import Broker
from kwire.messages.error_codes import ErrorCode

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


def test_features_change_and_brokers_are_unregistered_as_in_kafka(tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path / "kafka", version="4.4.0", release="3.9", heap="512m") as broker:
        with RawClient(broker) as client:
            until(lambda: features(client)[1])
            check_steps(client)
            for unknown in (77, -1, 0, 2**31 - 1):
                what = f"Broker ID {unknown} is not currently registered"
                assert unregister(client, unknown) == (ErrorCode.BROKER_ID_NOT_REGISTERED, what)
            theirs = levels_in_log(broker.log_dir)
            assert unregister(client, 1) == (0, "")  # the reason why the broker refuses its own id
            assert unregister(client, 1)[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
        broker.stop(kill=True)  # it would wait forever
    with Broker(tmp_path / "ours", transaction_version=0, share_version=0) as ours, RawClient(ours) as client:
        check_steps(client)
    written = levels_in_log(tmp_path / "ours")
    assert (
        theirs[-len(written) :] == written
    )  # before them is that of the snapshot with which Kafka formats a directory


@pytest.mark.parametrize(("version", "level"), [("3.9.1", 0), ("4.4.0", 2)])
def test_kafka_takes_over_changed_features(tmp_path: Path, version: str, level: int) -> None:
    updates = [(METADATA, 20, SAFE), (TRANSACTION, level, UP if level else SAFE)]
    every_change: dict[str, Any] = {"metadata_log_max_record_bytes_between_snapshots": 1}
    with Broker(tmp_path / "data", **every_change) as ours, RawClient(ours) as client:
        assert update(client, 2, updates)[0] == 0
        ours.call(lambda node: node.metadata_log.maintain())
    expected = {name: number for name, number, _ in updates if number}
    with kafka.KafkaBroker(tmp_path, version=version, heap="512m") as theirs, RawClient(theirs) as client:
        until(lambda: features(client)[1] == expected)
        wanted = [(METADATA, 21, UP)]
        until(lambda: update(client, 1, wanted)[0] == 0)
    with Broker(tmp_path / "data", transaction_version=0) as ours, RawClient(ours) as client:
        assert features(client)[1] == {**expected, METADATA: 21}


LOG4J = """
rootLogger.level=INFO
loggers=one
logger.one.name=kafka.server.KafkaApis
logger.one.level=WARN
"""


def test_levels_of_loggers_change_as_in_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "log4j2.properties"
    config.write_text(LOG4J)
    monkeypatch.setattr(kafka, "JVM_OPTIONS", (*kafka.JVM_OPTIONS, f"-Dlog4j2.configurationFile={config}"))
    with kafka.KafkaBroker(tmp_path / "kafka", version="4.4.0", heap="512m") as broker, RawClient(broker) as client:
        until(lambda: features(client)[1])
        check_loggers(client, "kafka.server.KafkaApis")


def test_configs_are_documented_as_in_kafka(tmp_path: Path) -> None:
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    described = []
    with kafka.KafkaBroker(tmp_path, version="4.4.0", heap="512m") as theirs, Broker() as ours:
        for broker in (theirs, ours):
            with RawClient(broker) as client:
                until(lambda client=client: client.ask(request, 7).topics[0].error_code in (0, 36))
                resources = ((2, "t"), (4, "1"), (16, "sub"), (32, "g"))
                described.append([documentation(client, kind, name) for kind, name in resources])
    for of_kafka, of_ours in zip(*described, strict=True):
        common = of_kafka.keys() & of_ours.keys()
        assert len(common) > 0.9 * len(of_kafka)
        assert {name: of_ours[name] for name in common} == {name: of_kafka[name] for name in common}


def test_offsets_are_listed_and_records_deleted_as_in_kafka(tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path, version="3.9.1", heap="512m") as broker, RawClient(broker) as client:
        check_offsets_before(client, broker.log_dir, segment_bytes="100")
        check_deleted_records(client)
