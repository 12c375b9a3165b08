"""Quotas are stored and found; invalid ones are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker import Broker
from kwire.broker.security import Quotas
from kwire.errors import BrokerError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.metadata_records import metadata_record
from kwire.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest
from kwire.protocol.error_codes import ErrorCode
from tests.broker.wire import RawClient

EXACT, DEFAULT, SPECIFIED = range(3)
ALICE, APP, ANYONE = ("user", "alice"), ("client-id", "app"), ("user", None)


def op(key: str = "producer_byte_rate", value: float | None = 1000.0) -> Any:
    return AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)


@pytest.fixture
def quotas() -> Quotas:
    cluster = ClusterState()
    made = Quotas(cluster, lambda records: [cluster.apply(metadata_record(*each)) for each in records])
    made.alter([ALICE], [op(), op("request_percentage", 12.5)], validate_only=False)
    made.alter([ALICE, APP], [op(value=2000.0)], validate_only=False)
    made.alter([ANYONE], [op(value=3000.0)], validate_only=False)
    made.alter([("ip", "10.0.0.1")], [op("connection_creation_rate", 5)], validate_only=False)
    return made


def find(quotas: Quotas, *components: tuple[str, int, str | None], strict: bool = False) -> list[set[Any]]:
    parts = [
        DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in components
    ]
    return [set(entity) for entity in quotas.find(parts, strict=strict)]


def test_quota_filters_match_entities(quotas: Quotas) -> None:
    assert len(find(quotas)) == 4
    assert find(quotas, ("user", EXACT, "alice")) == [{ALICE}, {ALICE, APP}]
    assert find(quotas, ("user", EXACT, "alice"), strict=True) == [{ALICE}]
    assert find(quotas, ("user", DEFAULT, None)) == [{ANYONE}]
    assert find(quotas, ("user", SPECIFIED, None)) == [{ALICE}, {ALICE, APP}, {ANYONE}]
    assert find(quotas, ("user", SPECIFIED, None), ("client-id", EXACT, "app")) == [{ALICE, APP}]
    assert find(quotas, ("ip", SPECIFIED, None)) == [{("ip", "10.0.0.1")}]
    assert find(quotas, ("user", EXACT, "bob")) == []


def test_quotas_are_changed_and_removed(quotas: Quotas) -> None:
    quotas.alter([ALICE], [op(value=None), op("request_percentage", 13)], validate_only=False)
    alice = (ALICE,)
    everything = quotas.find([], strict=False)
    assert everything[alice] == {"request_percentage": 13}
    quotas.alter([ALICE], [op("request_percentage", None)], validate_only=False)
    assert alice not in quotas.find([], strict=False)
    quotas.alter([ALICE], [op("request_percentage", None)], validate_only=False)  # it does not exist: no change


def test_validate_only_changes_nothing(quotas: Quotas) -> None:
    quotas.alter([("user", "bob")], [op()], validate_only=True)
    assert find(quotas, ("user", EXACT, "bob")) == []


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ([], [op()]),
        ([("user", "")], [op()]),
        ([("group", "g")], [op()]),
        ([ALICE, ("user", "bob")], [op()]),
        ([ALICE, ("ip", "10.0.0.1")], [op("connection_creation_rate", 1)]),
        ([("ip", "10.0.0.300")], [op("connection_creation_rate", 1)]),
        ([("ip", "10.0.0.1")], [op()]),
        ([ALICE], [op("connection_creation_rate", 1)]),
        ([ALICE], [op("unknown", 1)]),
        ([ALICE], [op(), op()]),
        ([ALICE], [op(value=-1.0)]),
        ([ALICE], [op(value=float("nan"))]),
        ([ALICE], [op(value=0.5)]),
        ([ALICE], [op(value=1e30)]),
        ([("ip", None)], [op("connection_creation_rate", 2.0**31)]),
    ],
)
def test_invalid_quotas_are_rejected_and_change_nothing(quotas: Quotas, entity: Any, ops: Any) -> None:
    before = {entity: dict(values) for entity, values in quotas.find([], strict=False).items()}
    with pytest.raises(BrokerError) as caught:
        quotas.alter(entity, ops, validate_only=False)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    assert quotas.find([], strict=False) == before


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "x"), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", SPECIFIED, None), ("user", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_filters_are_rejected(quotas: Quotas, components: Any, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as caught:
        find(quotas, *components)
    assert caught.value.code == code


@pytest.mark.parametrize("turn", [1, -1])
def test_responses_have_the_order_of_kafkas_hash_maps(turn: int) -> None:
    """The Node client @platformatic/kafka compares whole responses with those of Kafka 4.4.0."""
    entity = [
        AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
        for kind, name in (("user", "ada"), ("client-id", None))[::turn]
    ]
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")[::turn]
    entry = AlterClientQuotasRequest.EntryData(entity=entity, ops=[op(key) for key in keys])
    with Broker() as broker, RawClient(broker) as client:
        (altered,) = client.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries
        (described,) = client.ask(DescribeClientQuotasRequest(), 1).entries
    for each in (altered, described):
        assert [(part.entity_type, part.entity_name) for part in each.entity] == [("client-id", None), ("user", "ada")]
    assert [each.key for each in described.values] == ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]
