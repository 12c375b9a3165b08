"""Configs of Java's clients that this client does not have: refused, or without effect.

docs/client-settings.md shows these tables. Names are from ConsumerConfig, ProducerConfig and AdminClientConfig of
Kafka 3.9.1 and 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HARMLESS", "OF_CALLS", "REFUSED", "WITHOUT_EFFECT", "WITHOUT_RACK"]

JAVA_CLASS = "Java classes cannot be loaded"
ASSERTIONS = "tokens for a JWT assertion (the jwt-bearer grant) are not supported; use client credentials or a file"

REFUSED: Mapping[str, str] = {
    "bootstrap.controllers": "requests go to brokers; set bootstrap.servers",
    "config.providers": "references such as ${env:NAME} are not resolved; set the values themselves",
    "interceptor.classes": f"{JAVA_CLASS}: records would not be what the interceptors make of them",
    "partitioner.class": f"{JAVA_CLASS}; records are partitioned by the hash of the key, as Kafka's default does",
    "partitioner.ignore.keys": "records with a key are partitioned by its hash",
    "sasl.client.callback.handler.class": JAVA_CLASS,
    "sasl.login.class": JAVA_CLASS,
    "sasl.oauthbearer.assertion.*": ASSERTIONS,
    "security.providers": "Java's security providers cannot be loaded; TLS is that of Python's ssl module",
    "ssl.engine.factory.class": f"{JAVA_CLASS}; TLS is that of Python's ssl module",
    "ssl.provider": "Java's security providers cannot be loaded; TLS is that of Python's ssl module",
}
"""Configs that would change security, records or routing, and why they are not supported; * ends a prefix."""

HARMLESS: Mapping[str, tuple[str, ...]] = {
    "partitioner.class": ("org.apache.kafka.clients.producer.internals.DefaultPartitioner",),
    "partitioner.ignore.keys": ("false",),
}
"""Values of refused configs that mean what this client does anyway; an empty value always does."""

WITHOUT_RACK: Mapping[str, str] = {
    "metadata.max.age.ms": "without client.rack: metadata is renewed when a request fails",
}
"""Configs that only matter with client.rack, and why the others are without effect."""

OF_CALLS: Mapping[str, str] = {
    "isolation.level": "commands that read records have --isolation, and functions isolation=",
}
"""Configs that only matter to Client and kafka-live, and why URLs of clusters leave them without effect."""

WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "records are read by offsets, without a consumer group": (
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "enable.auto.commit",
        "exclude.internal.topics",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "internal.leave.group.on.close",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
    "keys and values are bytes": ("key.deserializer", "key.serializer", "value.deserializer", "value.serializer"),
    "topics are never created by a request for metadata": ("allow.auto.create.topics",),
    "checksums of fetched batches are always checked": ("check.crcs",),
    "batches are complete when they are sent, one request of a partition at a time": (
        "batch.size",
        "buffer.memory",
        "buffer.memory.allocation.strategy",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.rack.aware",
    ),
    "default.api.timeout.ms limits retries": ("delivery.timeout.ms", "retries"),
    "a broker waits for at most 0.5 s": ("fetch.max.wait.ms",),
    "connections, addresses and metadata are renewed when a request fails": (
        "bootstrap.resolve.timeout.ms",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "metadata.cluster.check.enable",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
    ),
    "the client has no metrics": (
        "auto.include.jmx.reporter",
        "enable.metrics.push",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    "certificates are checked, and random numbers made, by OpenSSL": (
        "ssl.keymanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
    "each connection uses tickets that are valid when it is opened; tickets of a keytab are renewed then": (
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
    "each connection gets a token that is valid when it is opened": (
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
    ),
    "brokers check tokens": (
        "sasl.oauthbearer.allow.unverified.audience",
        "sasl.oauthbearer.allow.unverified.issuer",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
    ),
}
"""Reason -> configs that are accepted, so that a configuration of Java's clients can be used; a warning names them."""
