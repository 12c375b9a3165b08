"""Client telemetry: the metrics that clients are subscribed to, and the validation of their pushes (KIP-714).

Subscriptions are configs of the resource type CLIENT_METRICS: each has metrics, an interval and patterns that match
clients. A client instance gets the metrics of all matching subscriptions, at the shortest interval. Pushed metrics are
validated and discarded; tests read them as PushTelemetry requests in the request log.

Source: org.apache.kafka.server.ClientMetricsManager, server.metrics.ClientMetricsInstance 4.4.0.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from kwire.broker.configs.checks import parse_match
from kwire.broker.configs.definitions import Resource, definitions
from kwire.errors import BrokerError
from kwire.internal_topics.enums import ConfigResource
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.context import RequestContext
    from kwire.internal_topics.cluster_state import ClusterState

__all__ = ["MAX_PUSH_BYTES", "ClientInstance", "ClientMetrics"]

MAX_PUSH_BYTES = 1 << 20
"""telemetry.max.bytes."""
MAX_INSTANCES = 16_384
ALL_METRICS = "*"
LARGEST_CODEC = 4

Subscriptions = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class ClientInstance(msgspec.Struct, kw_only=True):
    """A client and its metrics. attributes: matched by patterns; subscriptions: the source of its metrics.

    may_ask_early: after a push that failed because its subscription has changed.
    """

    attributes: Mapping[str, str]
    subscriptions: Subscriptions
    subscription_id: int
    metrics: list[str]
    interval_ms: int
    last_get_ms: int = 0
    last_push_ms: int = 0
    is_terminating: bool = False
    may_ask_early: bool = False


class ClientMetrics:
    """The client instances of one node, at most MAX_INSTANCES; the least recently seen are dropped first."""

    def __init__(self, cluster: ClusterState, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()

    @property
    def is_subscribed(self) -> bool:
        """Whether any subscription exists."""
        return any(kind == ConfigResource.CLIENT_METRICS.label for kind, _ in self._cluster.configs)

    def get(self, instance_id: UUID, context: RequestContext) -> ClientInstance:
        """Return the instance for a GetTelemetrySubscriptions request.

        Raises BrokerError: THROTTLING_QUOTA_EXCEEDED before the push interval has passed, except after a push with an
        unknown subscription or codec.
        """
        instance, now_ms = self._instance(instance_id, context), self._clock.elapsed_ms()
        last_ms = max(instance.last_get_ms, instance.last_push_ms)
        if not last_ms or now_ms - last_ms >= instance.interval_ms:
            instance.last_get_ms = now_ms
        elif not instance.may_ask_early:
            raise too_early(instance_id)
        instance.may_ask_early = False
        return instance

    def push(
        self,
        instance_id: UUID,
        context: RequestContext,
        *,
        subscription_id: int,
        codec: int,
        size_bytes: int,
        is_terminating: bool,
    ) -> None:
        """Validate a PushTelemetry request. Raises BrokerError with Kafka's code."""
        instance, now_ms = self._instance(instance_id, context), self._clock.elapsed_ms()
        was_terminating, instance.is_terminating = instance.is_terminating, is_terminating
        instance.may_ask_early = False
        if was_terminating:
            what = f"Client [{instance_id}] sent the previous request with state terminating to TRUE"
            raise refusal(ErrorCode.INVALID_REQUEST, what)
        too_soon = instance.last_push_ms > 0 and now_ms - instance.last_push_ms < instance.interval_ms
        if too_soon and instance.last_get_ms <= instance.last_push_ms and not is_terminating:
            raise too_early(instance_id)
        if not too_soon or instance.last_get_ms > instance.last_push_ms:
            instance.last_push_ms = now_ms
        is_known, is_codec = subscription_id == instance.subscription_id, 0 <= codec <= LARGEST_CODEC
        instance.may_ask_early = not (is_known and is_codec)
        if not is_known:
            what = f"Unknown client subscription id for the client [{instance_id}]"
            raise refusal(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, what)
        if not is_codec:
            what = f"Unknown compression type [{codec}] is received in telemetry request from [{instance_id}]"
            raise refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, what)
        if size_bytes > MAX_PUSH_BYTES:
            what = f"Telemetry request from [{instance_id}] is larger than the maximum allowed size [{MAX_PUSH_BYTES}]"
            raise refusal(ErrorCode.TELEMETRY_TOO_LARGE, what)

    def _subscriptions(self) -> Subscriptions:
        return tuple(
            (name, tuple(sorted(configs.items())))
            for (kind, name), configs in self._cluster.configs.items()
            if kind == ConfigResource.CLIENT_METRICS.label
        )

    def _instance(self, instance_id: UUID, context: RequestContext) -> ClientInstance:
        instance, subscriptions = self._instances.get(instance_id), self._subscriptions()
        if instance is None or instance.subscriptions != subscriptions:
            attributes = attributes_of(instance_id, context) if instance is None else instance.attributes
            instance = self._instances[instance_id] = subscribed(instance_id, attributes, subscriptions)
            if len(self._instances) > MAX_INSTANCES:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        return instance


def attributes_of(instance_id: UUID, context: RequestContext) -> dict[str, str]:
    """Return the attributes of a client that subscriptions can match."""
    peer = context.peer
    return {
        "client_instance_id": str(instance_id),
        "client_id": context.client_id,
        "client_software_name": peer.client_software[0],
        "client_software_version": peer.client_software[1],
        "client_source_address": peer.host,
        "client_source_port": str(peer.port),
    }


def subscribed(instance_id: UUID, attributes: Mapping[str, str], subscriptions: Subscriptions) -> ClientInstance:
    """Create a client instance with the metrics of all matching subscriptions."""
    interval_ms = int(definitions(Resource.CLIENT_METRICS)["interval.ms"].default or 0)
    metrics: dict[str, None] = {}  # in order, each once
    for _, pairs in subscriptions:
        configs = dict(pairs)
        if matches(configs.get("match", ""), attributes):
            metrics |= dict.fromkeys(name.strip() for name in configs.get("metrics", "").split(",") if name.strip())
            interval_ms = min(interval_ms, int(configs.get("interval.ms", interval_ms)))
    names = [ALL_METRICS] if ALL_METRICS in metrics else list(metrics)
    number = zlib.crc32(f"{names}{interval_ms}".encode()) ^ zlib.crc32(instance_id.bytes)
    return ClientInstance(
        attributes=attributes,
        subscriptions=subscriptions,
        subscription_id=number - (1 << 32) if number >= 1 << 31 else number,
        metrics=names,
        interval_ms=interval_ms,
    )


def matches(match: str, attributes: Mapping[str, str]) -> bool:
    """Return whether all patterns of a subscription match a client; False if a pattern is too expensive."""
    try:
        return all(pattern.matches(attributes[name]) for name, pattern in parse_match(match).items())
    except BrokerError:
        return False


def too_early(instance_id: UUID) -> BrokerError:
    """Return the error for a request before the end of the push interval."""
    what = f"Request from the client [{instance_id}] arrived before the next push interval time"
    return refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, what)
