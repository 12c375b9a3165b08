"""Client telemetry (KIP-714): the same requests at the same times gave the same error codes in Kafka 4.4.0."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.messages.error_codes import ErrorCode
from kwire.protocol.error_codes import ErrorCode as Codes
from tests.broker.wire import RawClient

NEW = UUID(int=0)
INTERVAL_MS = 60_000


@pytest.fixture
def running() -> Iterator[Broker]:
    with Broker() as broker:
        configs = {"interval.ms": str(INTERVAL_MS), "metrics": "a.b,c.d", "match": "client_id=ra[w]"}
        broker.call(lambda node: node.controller.alter_client_metrics("one", configs))
        yield broker


def get(client: RawClient, instance_id: UUID = NEW) -> Any:
    return client.ask(messages.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push(client: RawClient, instance_id: UUID, subscription_id: int, **fields: Any) -> ErrorCode:
    request = messages.PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=subscription_id, **{"metrics": b"abc", **fields}
    )
    return Codes(client.ask(request, 0).error_code)


def test_a_client_gets_the_metrics_of_all_subscriptions_that_match_it(running: Broker) -> None:
    alter = running.call
    alter(lambda node: node.controller.alter_client_metrics("two", {"interval.ms": "90000", "metrics": "c.d,e.f"}))
    alter(lambda node: node.controller.alter_client_metrics("no", {"metrics": "g", "match": "client_id=nobody"}))
    alter(lambda node: node.controller.alter_client_metrics("port", {"metrics": "h", "match": "client_source_port=x"}))
    with RawClient(running) as client, RawClient(running, "other") as other:
        found = get(client)
        assert found.requested_metrics == ["a.b", "c.d", "e.f"]
        assert found.push_interval_ms == INTERVAL_MS
        assert found.client_instance_id != NEW
        assert found.accepted_compression_types == [4, 3, 1, 2]
        assert (found.telemetry_max_bytes, found.delta_temporality) == (1 << 20, True)
        theirs = get(other)
        assert (theirs.requested_metrics, theirs.push_interval_ms) == (["c.d", "e.f"], 90_000)
        alter(lambda node: node.controller.alter_client_metrics("two", {"metrics": "*"}))
        assert get(other, theirs.client_instance_id).requested_metrics == ["*"]


def test_requests_before_the_interval_has_passed_are_throttled(running: Broker) -> None:
    with RawClient(running) as client:
        found = get(client)
        instance, subscription = found.client_instance_id, found.subscription_id
        assert get(client, instance).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert push(client, instance, subscription) == ErrorCode.NONE  # the first push may come at any time
        assert push(client, instance, subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        running.advance(INTERVAL_MS)
        assert push(client, instance, subscription) == ErrorCode.NONE
        assert get(client, instance).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        running.advance(INTERVAL_MS)
        assert get(client, instance).error_code == ErrorCode.NONE


def test_a_push_is_validated(running: Broker) -> None:
    compressor = zlib.compressobj(wbits=31)
    gzip = compressor.compress(b"metrics") + compressor.flush()
    with RawClient(running) as client:
        found = get(client)
        instance, subscription = found.client_instance_id, found.subscription_id
        for expected, fields in (
            (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, {"subscription_id": subscription ^ 1}),
            (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, {"compression_type": 9}),
            (ErrorCode.TELEMETRY_TOO_LARGE, {"metrics": bytes((1 << 20) + 1)}),
            (ErrorCode.INVALID_RECORD, {"compression_type": 1}),
            (ErrorCode.NONE, {"compression_type": 1, "metrics": gzip}),
            (ErrorCode.NONE, {"metrics": b""}),
        ):
            given = {"subscription_id": subscription, **fields}
            assert push(client, instance, **given) == expected
            running.advance(INTERVAL_MS)
        for reserved in (UUID(int=0), UUID(int=1)):
            assert push(client, reserved, subscription) == ErrorCode.INVALID_REQUEST
        assert push(client, UUID(int=7), subscription) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_nothing_is_accepted_after_a_terminating_push(running: Broker) -> None:
    with RawClient(running) as client:
        found = get(client)
        instance, subscription = found.client_instance_id, found.subscription_id
        assert push(client, instance, subscription) == ErrorCode.NONE
        assert push(client, instance, subscription, terminating=True) == ErrorCode.NONE
        assert push(client, instance, subscription, terminating=True) == ErrorCode.INVALID_REQUEST


def test_a_changed_subscription_has_a_new_id(running: Broker) -> None:
    with RawClient(running) as client:
        found = get(client)
        running.call(lambda node: node.controller.alter_client_metrics("one", {"metrics": "z"}))
        assert push(client, found.client_instance_id, found.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        assert get(client, found.client_instance_id).requested_metrics == ["z"]  # at once, as in Kafka 4
        assert get(client, found.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert get(client, UUID(int=9)).requested_metrics == ["z"]


def test_the_telemetry_apis_are_advertised_once_a_subscription_exists() -> None:
    request = messages.ApiVersionsRequest(client_software_name="raw", client_software_version="1")

    def offered(client: RawClient) -> set[int]:
        return {key.api_key for key in client.ask(request, 4).api_keys} & {71, 72}

    with Broker() as broker, RawClient(broker) as client:
        assert offered(client) == set()
        found = get(client)
        assert (found.requested_metrics, found.push_interval_ms) == ([], 300_000)
        broker.call(lambda node: node.controller.alter_client_metrics("one", {"metrics": "z"}))
        assert offered(client) == {71, 72}
        broker.reset()
        assert offered(client) == set()
