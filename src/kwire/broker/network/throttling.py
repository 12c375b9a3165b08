"""Client quotas: throttle times, and requests rejected above a quota.

    producer_byte_rate          bytes of Produce requests
    consumer_byte_rate          bytes of Fetch responses; above the quota, the response is empty
    request_percentage          request handling time in percent of one thread; throttled for at most one window
    controller_mutation_rate    partitions created and deleted; newer API versions are rejected above the quota

A response is sent without delay and has the throttle time in throttle_time_ms. The broker then reads nothing from the
connection for that time. The most specific matching quota applies: user and client id, user, client id, each before its
default. Which clients share a quota depends on the kinds of quotas that were ever set, as in Kafka.

Source: kafka.server.ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager 3.9.1.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from kwire.broker.network.quota_rates import SampledRate, TokenBucket
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.configs.settings import Settings
    from kwire.broker.context import RequestContext
    from kwire.broker.security.quotas import Quotas
    from kwire.messages.base import Message

__all__ = ["MutationQuota", "QuotaType", "Throttling", "set_throttle_time"]

MAX_RATES = 10_000
"""Maximum number of rates of one kind; the least recently used are dropped."""
NS_PER_PERCENT = 10_000_000
"""One percent of a second."""

Tags = tuple[str, str]
"""User and client id that share a rate, each empty if it does not apply."""


class QuotaType(Enum):
    """Kinds of quotas; the value is the quota's key in AlterClientQuotas."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


Rate = TypeVar("Rate")


def set_throttle_time(body: Message, version: int, throttle_ms: int) -> None:
    """Set throttle_time_ms of a response, in versions that have the field."""
    if has_throttle_time(type(body), version):
        body.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]


@functools.cache
def has_throttle_time(cls: type[Message], version: int) -> bool:
    """Return whether a version of a response has throttle_time_ms."""
    return any(each.name == "ThrottleTimeMs" and version in each.versions for each in cls.SPEC.struct.fields)


class Rates(Generic[Rate]):
    """Rates of one kind by tags, at most MAX_RATES."""

    def __init__(self, make: Callable[[], Rate]) -> None:
        self._make = make
        self._by_tags: OrderedDict[Tags, Rate] = OrderedDict()

    def get(self, tags: Tags) -> Rate:
        """Return the rate of a client, creating it if needed."""
        rate = self._by_tags.get(tags)
        if rate is None:
            rate = self._by_tags[tags] = self._make()
            if len(self._by_tags) > MAX_RATES:
                self._by_tags.popitem(last=False)
        self._by_tags.move_to_end(tags)
        return rate

    def clear(self) -> None:
        """Forget all clients."""
        self._by_tags.clear()


class MutationQuota:
    """controller_mutation_rate for one request. is_strict: reject mutations above the quota.

    throttle_ms: throttle time of the client.
    """

    def __init__(self, bucket: TokenBucket | None, quota: float, now_ms: int, *, is_strict: bool) -> None:
        self._bucket, self._quota, self._now_ms, self._is_strict = bucket, quota, now_ms, is_strict
        self.throttle_ms = 0

    def record(self, partition_count: int) -> None:
        """Record mutations. Raises BrokerError: THROTTLING_QUOTA_EXCEEDED."""
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
    """The rates of the clients of one node."""

    def __init__(self, quotas: Quotas, clock: Clock, settings: Settings) -> None:
        self._quotas, self._clock = quotas, clock
        samples, window_ms = settings.quota_window_num, settings.quota_window_size_seconds * 1000
        self._window_ms = window_ms
        self._fetch_window_s = (samples - 1) * settings.quota_window_size_seconds
        burst_s = settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
        self._rates = {
            kind: Rates(lambda: SampledRate(samples, window_ms))
            for kind in (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
        }
        self._buckets = Rates(lambda: TokenBucket(burst_s))

    def clear(self) -> None:
        """Forget the usage of all clients."""
        for rates in self._rates.values():
            rates.clear()
        self._buckets.clear()

    def limit(self, kind: QuotaType, context: RequestContext) -> tuple[Tags, float] | None:
        """Return the tags and quota of a client, None without a quota."""
        user = context.principal.partition(":")[2]
        return self._quotas.limit(kind.value, user, context.client_id)

    def record(self, kind: QuotaType, context: RequestContext, value: float) -> int:
        """Record usage of a client; returns its throttle time in milliseconds."""
        limit = self.limit(kind, context)
        if limit is None:
            return 0
        tags, quota = limit
        rate, now_ms = self._rates[kind].get(tags), self._clock.now_ms()
        rate.record(value, now_ms)
        throttle_ms = rate.throttle_ms(quota, now_ms)
        return min(throttle_ms, self._window_ms) if kind == QuotaType.REQUEST else throttle_ms

    def unrecord(self, kind: QuotaType, context: RequestContext, value: float) -> None:
        """Undo record()."""
        limit = self.limit(kind, context)
        if limit is not None:
            self._rates[kind].get(limit[0]).record(-value, self._clock.now_ms())

    def record_time(self, context: RequestContext) -> int:
        """Record the handling time of a request (RequestContext.thread_ns); returns the throttle time."""
        return self.record(QuotaType.REQUEST, context, context.thread_ns / NS_PER_PERCENT)

    def max_fetch_bytes(self, context: RequestContext) -> int | None:
        """Return the size that a fetch must not exceed because of its quota; None without a quota."""
        limit = self.limit(QuotaType.FETCH, context)
        return None if limit is None else int(limit[1] * self._fetch_window_s)

    def mutations(self, context: RequestContext, *, strict_since: int) -> MutationQuota:
        """Return the quota of a request that creates or deletes partitions. strict_since: first strict version."""
        limit = self.limit(QuotaType.MUTATION, context)
        bucket = None if limit is None else self._buckets.get(limit[0])
        quota = 0.0 if limit is None else limit[1]
        is_strict = context.api_version >= strict_since
        return MutationQuota(bucket, quota, self._clock.now_ms(), is_strict=is_strict)
