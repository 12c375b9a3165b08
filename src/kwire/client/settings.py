"""Settings of a client by Kafka's names, from strings to checked values.

Names are those of Kafka's Java clients; where librdkafka calls the same thing otherwise (sasl.username,
ssl.ca.location) that name is taken too. A setting of Java's clients that means nothing here is accepted and listed in
`ignored`, so that a configuration that works elsewhere works here; a name that nobody knows is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kwire.errors import OptionError

__all__ = ["ClientSettings"]

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

# Settings of Java's consumer, producer and admin client that have no meaning for a client that reads ranges of offsets
# and writes whole batches.
MEANINGLESS = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "auto.offset.reset",
        "batch.size",
        "buffer.memory",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.wait.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "throw.on.fetch.stable.offset.unsupported",
        "value.deserializer",
        "value.serializer",
    }
)


def _text(value: str) -> str:
    return value


def _positive(value: str) -> int:
    number = int(value)
    if number <= 0:
        raise ValueError("a number above 0")
    return number


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        for choice in choices:
            if value.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"one of {', '.join(choices)}")

    return parse


def _servers(value: str) -> tuple[tuple[str, int], ...]:
    found = []
    for part in filter(None, (each.strip() for each in value.split(","))):
        host, _, port = part.rpartition("://")[2].rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"host:port, with commas between; found {part!r}")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ValueError("host:port, with commas between")
    return tuple(found)


def _acks(value: str) -> int:
    numbers = {"all": -1, "-1": -1, "1": 1, "0": 0}
    if value not in numbers:
        raise ValueError("all, 1 or 0")
    return numbers[value]


# name -> (field, how to read it)
KNOWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "acks": ("acks", _acks),
    "bootstrap.servers": ("bootstrap_servers", _servers),
    "client.id": ("client_id", _text),
    "compression.type": ("compression_type", _one_of("none", "gzip", "snappy", "lz4", "zstd")),
    "default.api.timeout.ms": ("default_api_timeout_ms", _positive),
    "enable.idempotence": ("enable_idempotence", _flag),
    "fetch.max.bytes": ("fetch_max_bytes", _positive),
    "fetch.min.bytes": ("fetch_min_bytes", _positive),
    "isolation.level": ("isolation_level", _one_of("read_uncommitted", "read_committed")),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _positive),
    "max.request.size": ("max_request_size", _positive),
    "receive.buffer.bytes": ("receive_buffer_bytes", int),
    "request.timeout.ms": ("request_timeout_ms", _positive),
    "retry.backoff.max.ms": ("retry_backoff_max_ms", _positive),
    "retry.backoff.ms": ("retry_backoff_ms", _positive),
    "sasl.jaas.config": ("sasl_jaas_config", _text),
    "sasl.mechanism": ("sasl_mechanism", _one_of(*SASL_MECHANISMS)),
    "sasl.password": ("sasl_password", _text),
    "sasl.username": ("sasl_username", _text),
    "security.protocol": ("security_protocol", _one_of(*SECURITY_PROTOCOLS)),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _positive),
    "ssl.ca.location": ("ssl_ca_location", _text),
    "ssl.certificate.location": ("ssl_certificate_location", _text),
    "ssl.endpoint.identification.algorithm": ("ssl_endpoint_identification_algorithm", _text),
    "ssl.key.location": ("ssl_key_location", _text),
    "ssl.key.password": ("ssl_key_password", _text),
    "ssl.keystore.certificate.chain": ("ssl_keystore_certificate_chain", _text),
    "ssl.keystore.key": ("ssl_keystore_key", _text),
    "ssl.keystore.location": ("ssl_certificate_location", _text),
    "ssl.keystore.password": ("ssl_keystore_password", _text),
    "ssl.keystore.type": ("ssl_keystore_type", _one_of("PEM", "JKS", "PKCS12")),
    "ssl.truststore.certificates": ("ssl_truststore_certificates", _text),
    "ssl.truststore.location": ("ssl_ca_location", _text),
    "ssl.truststore.password": ("ssl_truststore_password", _text),
    "ssl.truststore.type": ("ssl_truststore_type", _one_of("PEM", "JKS", "PKCS12")),
    "transaction.timeout.ms": ("transaction_timeout_ms", _positive),
    "transactional.id": ("transactional_id", _text),
}
SYNONYMS = {"metadata.broker.list": "bootstrap.servers", "sasl.mechanisms": "sasl.mechanism"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What a client needs to know. Times in ms, sizes in bytes; secrets are in no repr.

    ssl_ca_location, ssl_certificate_location, ssl_key_location: PEM files; the same by Kafka's store names with type
    PEM. ssl_truststore_certificates, ssl_keystore_certificate_chain, ssl_keystore_key: the PEM text itself.
    ignored: names that mean nothing here.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "kwire"
    acks: int = -1
    compression_type: str = "none"
    enable_idempotence: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    max_request_size: int = 1_048_576
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 8 << 20  # Java's 1 MiB is for many partitions at once; one is read here
    receive_buffer_bytes: int = -1
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    socket_connection_setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_keystore_certificate_chain: str | None = field(default=None, repr=False)
    ssl_keystore_key: str | None = field(default=None, repr=False)
    ssl_truststore_certificates: str | None = field(default=None, repr=False)
    ssl_endpoint_identification_algorithm: str = "https"
    ignored: tuple[str, ...] = ()

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> ClientSettings:
        """From Kafka's names (or the same with underscores) to values; strings as in a properties file.

        Raises OptionError naming the setting, what is wrong with it and what would be right; never a secret value.
        """
        fields: dict[str, Any] = {}
        ignored = []
        for given, value in settings.items():
            name = given.replace("_", ".")
            name = SYNONYMS.get(name, name)
            if name in MEANINGLESS:
                ignored.append(name)
                continue
            if name not in KNOWN:
                close = difflib.get_close_matches(name, [*KNOWN, *MEANINGLESS], n=1)
                raise OptionError(f"Unknown setting '{name}'" + (f" (did you mean '{close[0]}'?)" if close else ""))
            key, parse = KNOWN[name]
            try:
                fields[key] = parse(str(value).lower() if isinstance(value, bool) else str(value))
            except ValueError as error:
                raise OptionError(f"Setting '{name}': expected {error}") from None
        if "bootstrap_servers" not in fields:
            raise OptionError("Setting 'bootstrap.servers' must be given: host:port, with commas between")
        return cls(**check(fields), ignored=tuple(ignored))

    @property
    def uses_sasl(self) -> bool:
        """Whether a connection begins with SASL."""
        return self.security_protocol.startswith("SASL")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")


def check(fields: dict[str, Any]) -> dict[str, Any]:
    """What settings say together; the ones that only say how to read others are taken out."""
    for store, text in (("truststore", "ssl.truststore"), ("keystore", "ssl.keystore")):
        kind = fields.pop(f"ssl_{store}_type", None)
        password = fields.pop(f"ssl_{store}_password", None)
        location = fields.get("ssl_ca_location" if store == "truststore" else "ssl_certificate_location", "")
        if kind in ("JKS", "PKCS12") or (kind is None and location.lower().endswith((".jks", ".p12", ".pfx"))):
            raise OptionError(
                f"Setting '{text}.type': only PEM is read here; `keytool -importkeystore -deststoretype pkcs12` and "
                "`openssl pkcs12 -nodes` make PEM of a Java key store"
            )
        if store == "keystore" and password is not None:
            fields.setdefault("ssl_key_password", password)
    jaas = fields.pop("sasl_jaas_config", None)
    if jaas is not None:
        found = dict(re.findall(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"', jaas))
        if "username" not in found or "password" not in found:
            raise OptionError(
                'Setting \'sasl.jaas.config\': expected ...LoginModule required username="..." password="...";'
            )
        fields.setdefault("sasl_username", re.sub(r"\\(.)", r"\1", found["username"]))
        fields.setdefault("sasl_password", re.sub(r"\\(.)", r"\1", found["password"]))
    if fields.get("security_protocol", "").startswith("SASL"):
        fields.setdefault("sasl_mechanism", None)
        missing = [name for name in ("sasl_mechanism", "sasl_username", "sasl_password") if not fields.get(name)]
        if missing:
            raise OptionError(
                f"Setting '{missing[0].replace('_', '.')}' must be given with security.protocol "
                f"{fields['security_protocol']} (mechanisms: {', '.join(SASL_MECHANISMS)})"
            )
    if "default_api_timeout_ms" in fields:  # no part takes longer than the whole, where nobody says so
        for name in ("request_timeout_ms", "socket_connection_setup_timeout_ms"):
            default = ClientSettings.__dataclass_fields__[name].default
            fields.setdefault(name, min(default, fields["default_api_timeout_ms"]))
    if fields.get("transactional_id") is not None and fields.get("enable_idempotence") is False:
        raise OptionError("Setting 'enable.idempotence': a transactional producer cannot do without")
    return fields
