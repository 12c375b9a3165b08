"""Enforcement of client quotas: how long a client has to wait, and what it is refused meanwhile.

    producer_byte_rate          bytes of Produce requests
    consumer_byte_rate          bytes of Fetch responses; a fetch above it gets an empty response
    request_percentage          time that requests take, in percent of one thread; waits of at most one window
    controller_mutation_rate    partitions created and deleted; newer versions of the APIs are refused while above it

A response is sent without delay, with the time in throttle_time_ms; then the broker reads nothing from the connection
for that time. Of all quotas that match, the most specific one counts: user and client id, user, client id,
each before its default. Which clients share one measure depends on the kinds of quotas that were ever set, as in Kafka.
Source: kafka.server.ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager 3.9.1.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from kwire.broker.quota_rates import SampledRate, TokenBucket
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext
    from kwire.broker.node import Node
    from kwire.messages.base import Message

__all__ = ["MutationQuota", "QuotaType", "Throttling", "set_throttle_time"]

MAX_MEASURES = 10_000
"""Measures of one kind that are kept; those unused for longest go first."""
NS_PER_PERCENT = 10_000_000
"""One percent of a second."""

Tags = tuple[str, str]
"""User and client id that share a measure, empty where that one does not count."""


class QuotaType(Enum):
    """Kinds of quotas; the value is the key in AlterClientQuotas."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


Measure = TypeVar("Measure")


def set_throttle_time(body: Message, version: int, throttle_ms: int) -> None:
    """Tell a client for how long it is throttled, in versions of the response that can."""
    if has_throttle_time(type(body), version):
        body.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]


@functools.cache
def has_throttle_time(cls: type[Message], version: int) -> bool:
    return any(each.name == "ThrottleTimeMs" and version in each.versions for each in cls.SPEC.struct.fields)


class Measures(Generic[Measure]):
    """Measures of one kind by tags, at most MAX_MEASURES."""

    def __init__(self, make: Callable[[], Measure]) -> None:
        self._make = make
        self._by_tags: OrderedDict[Tags, Measure] = OrderedDict()

    def get(self, tags: Tags) -> Measure:
        """The measure of a client, a new one for a new client."""
        found = self._by_tags.get(tags)
        if found is None:
            found = self._by_tags[tags] = self._make()
            if len(self._by_tags) > MAX_MEASURES:
                self._by_tags.popitem(last=False)
        self._by_tags.move_to_end(tags)
        return found


class MutationQuota:
    """controller_mutation_rate for one request. is_strict: whether mutations above it are refused.

    throttle_ms: how long the client has to wait.
    """

    def __init__(self, bucket: TokenBucket | None, quota: float, now_ms: int, *, is_strict: bool) -> None:
        self._bucket, self._quota, self._now_ms, self._is_strict = bucket, quota, now_ms, is_strict
        self.throttle_ms = 0

    def record(self, partition_count: int) -> None:
        """Count mutations. Raises BrokerError: THROTTLING_QUOTA_EXCEEDED."""
        bucket = self._bucket
        if bucket is None:
            return
        if self._is_strict:
            self.throttle_ms = bucket.throttle_ms(self._quota, self._now_ms)
            if self.throttle_ms:
                raise refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "")  # Kafka has no message for it
            bucket.take(partition_count, self._quota, self._now_ms)
        else:
            bucket.take(partition_count, self._quota, self._now_ms)
            self.throttle_ms = bucket.throttle_ms(self._quota, self._now_ms)


class Throttling:
    """The measures of one node's clients."""

    def __init__(self, node: Node) -> None:
        self._node = node
        settings = node.settings
        samples, window_ms = settings.quota_window_num, settings.quota_window_size_seconds * 1000
        self._window_ms = window_ms
        self._fetch_window_s = (samples - 1) * settings.quota_window_size_seconds
        burst_s = settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
        self._rates = {
            kind: Measures(lambda: SampledRate(samples, window_ms))
            for kind in (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
        }
        self._buckets = Measures(lambda: TokenBucket(burst_s))

    def limit(self, kind: QuotaType, context: RequestContext) -> tuple[Tags, float] | None:
        """The client's tags and quota, None where it has none."""
        user = context.principal.partition(":")[2]
        return self._node.security.quotas.limit(kind.value, user, context.client_id)

    def record(self, kind: QuotaType, context: RequestContext, value: float) -> int:
        """Count what a client used; returns for how many ms it has to be throttled."""
        found = self.limit(kind, context)
        if found is None:
            return 0
        tags, quota = found
        rate, now_ms = self._rates[kind].get(tags), self._node.clock.now_ms()
        rate.record(value, now_ms)
        throttle_ms = rate.throttle_ms(quota, now_ms)
        return min(throttle_ms, self._window_ms) if kind == QuotaType.REQUEST else throttle_ms

    def unrecord(self, kind: QuotaType, context: RequestContext, value: float) -> None:
        """Take back what was counted."""
        found = self.limit(kind, context)
        if found is not None:
            self._rates[kind].get(found[0]).record(-value, self._node.clock.now_ms())

    def record_time(self, context: RequestContext) -> int:
        """Count the time that a request took (RequestContext.thread_ns)."""
        return self.record(QuotaType.REQUEST, context, context.thread_ns / NS_PER_PERCENT)

    def max_fetch_bytes(self, context: RequestContext) -> int | None:
        """What a fetch can return without being throttled for sure; None for no limit."""
        found = self.limit(QuotaType.FETCH, context)
        return None if found is None else int(found[1] * self._fetch_window_s)

    def mutations(self, context: RequestContext, *, strict_since: int) -> MutationQuota:
        """The quota for a request that creates or deletes partitions, strict from a version of its API on."""
        found = self.limit(QuotaType.MUTATION, context)
        bucket = None if found is None else self._buckets.get(found[0])
        quota = 0.0 if found is None else found[1]
        is_strict = context.api_version >= strict_since
        return MutationQuota(bucket, quota, self._node.clock.now_ms(), is_strict=is_strict)
