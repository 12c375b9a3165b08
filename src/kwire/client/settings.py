"""Client configs by Kafka's names, parsed and checked.

Names are as in Kafka's Java clients, and librdkafka's names for the same configs (sasl.username, ssl.ca.location).
Configs of the Java clients that have no effect here are accepted, listed in `ignored`, and named in one warning of a
process, so that a configuration for them can be used unchanged. Unknown names are an error, and so are configs that are
not supported but would change security, records or routing: see kwire.client.unused_configs.
Source: ConsumerConfig, ProducerConfig, AdminClientConfig, SaslConfigs and SslConfigs of Kafka 3.9.1 and 4.4.0.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kwire.client.cipher_suites import check_suites
from kwire.client.kerberos import KerberosConfigs, KerberosLogin, choose_login
from kwire.client.oauthbearer import OAuthConfigs, TokenSource, choose_source
from kwire.client.unused_configs import HARMLESS, OF_CALLS, REFUSED, WITHOUT_EFFECT, WITHOUT_RACK
from kwire.errors import OptionError, did_you_mean

__all__ = ["ClientSettings", "parse_config", "warn_of"]

MAX_INT32 = (1 << 31) - 1
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OF_ONE_MECHANISM = {"Krb5LoginModule": "GSSAPI", "OAuthBearerLoginModule": "OAUTHBEARER"}
JAAS_FORM = 'expected ...LoginModule required username="..." password="...";'
JAAS_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""", re.DOTALL)
JAAS = re.compile(
    r"\s*([\w.$]+)\s+(?i:required|requisite|sufficient|optional)"
    rf"((?:(?:\s+|(?<=[\"']))(?:{JAAS_OPTION.pattern}))*)\s*;?\s*",
    re.DOTALL,
)
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

REASONS = {name: reason for reason, names in WITHOUT_EFFECT.items() for name in names}
LOGGER = logging.getLogger("kwire.client")
_warned: set[str] = set()
"""Configs without effect that a warning of this process named."""


def _text(value: str) -> str:
    return value


def _integer(value: str) -> int:
    """Parse an int of Kafka's: 32 bits."""
    try:
        number = int(value)
    except ValueError:
        raise ValueError("a number") from None
    if abs(number) > MAX_INT32:
        raise ValueError(f"a number up to {MAX_INT32}")
    return number


def _long(value: str) -> int:
    """Parse a long of Kafka's, from 0 on."""
    if not value.strip().isdecimal() or int(value) >= 1 << 63:
        raise ValueError("a number from 0 on")
    return int(value)


def _positive(value: str) -> int:
    number = _integer(value)
    if number <= 0:
        raise ValueError("a number above 0")
    return number


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        number = _integer(value)
        if not low <= number <= high:
            raise ValueError(f"a number from {low} to {high}")
        return number

    return parse


def _off(value: str) -> bool:
    if _flag(value):
        raise ValueError("false: kwire does not support two-phase commit (KIP-939)")
    return False


def _gzip_level(value: str) -> int:
    level = _integer(value)
    return level if level == -1 else _between(1, 9)(value)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        for choice in choices:
            if value.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"one of {', '.join(choices)}")

    return parse


def _servers(value: str) -> tuple[tuple[str, int], ...]:
    addresses = []
    for part in filter(None, (each.strip() for each in value.split(","))):
        host, _, port = part.rpartition("://")[2].rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"comma-separated host:port, found {part!r}")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise ValueError("comma-separated host:port")
    return tuple(addresses)


def _protocols(value: str) -> tuple[str, ...]:
    protocols = tuple(filter(None, (each.strip() for each in value.split(","))))
    if not protocols or not set(protocols) <= set(TLS_VERSIONS):
        raise ValueError(f"comma-separated {' and '.join(TLS_VERSIONS)}")
    return protocols


def _endpoint_algorithm(value: str) -> str:
    if value.lower() not in ("https", ""):  # another one would make Java's handshakes fail
        raise ValueError("https, or nothing to skip the verification of the broker's name")
    return value.lower()


def _given(value: str) -> str:
    """Parse a config that Java does not accept empty: without it, a client would trust or present something else."""
    if not value.strip():
        raise ValueError("a value, as in Java; remove the config if it is not needed")
    return value


def _names(value: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in value.split(","))))


def _acks(value: str) -> int:
    numbers = {"all": -1, "-1": -1, "1": 1, "0": 0}
    if value not in numbers:
        raise ValueError("all, 1 or 0")
    return numbers[value]


# name -> (field, parser)
KNOWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "acks": ("acks", _acks),
    "bootstrap.servers": ("bootstrap_servers", _servers),
    "client.id": ("client_id", _text),
    "client.rack": ("client_rack", _text),
    "compression.type": ("compression_type", _one_of("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.gzip.level": ("gzip_level", _gzip_level),
    "compression.lz4.level": ("lz4_level", _between(1, 17)),
    "compression.zstd.level": ("zstd_level", _between(-131_072, 22)),
    "default.api.timeout.ms": ("default_api_timeout_ms", _positive),
    "enable.idempotence": ("enable_idempotence", _flag),
    "fetch.max.bytes": ("fetch_max_bytes", _positive),
    "fetch.min.bytes": ("fetch_min_bytes", _positive),
    "isolation.level": ("isolation_level", _one_of("read_uncommitted", "read_committed")),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _positive),
    "metadata.max.age.ms": ("metadata_max_age_ms", _long),
    "max.request.size": ("max_request_size", _positive),
    "receive.buffer.bytes": ("receive_buffer_bytes", _integer),
    "request.timeout.ms": ("request_timeout_ms", _positive),
    "retry.backoff.max.ms": ("retry_backoff_max_ms", _positive),
    "retry.backoff.ms": ("retry_backoff_ms", _positive),
    "sasl.jaas.config": ("sasl_jaas_config", _text),
    "sasl.kerberos.keytab": ("kerberos_keytab", _text),
    "sasl.kerberos.principal": ("kerberos_principal", _text),
    "sasl.kerberos.service.name": ("kerberos_service_name", _text),
    "sasl.login.callback.handler.class": ("oauth_handler", _text),
    "sasl.login.connect.timeout.ms": ("oauth_connect_timeout_ms", _positive),
    "sasl.login.read.timeout.ms": ("oauth_read_timeout_ms", _positive),
    "sasl.mechanism": ("sasl_mechanism", _one_of(*SASL_MECHANISMS)),
    "sasl.oauthbearer.client.credentials.client.id": ("oauth_client_id", _text),
    "sasl.oauthbearer.client.credentials.client.secret": ("oauth_client_secret", _text),
    "sasl.oauthbearer.header.urlencode": ("oauth_urlencode", _flag),
    "sasl.oauthbearer.jwt.retriever.class": ("oauth_retriever", _text),
    "sasl.oauthbearer.scope": ("oauth_scope", _text),
    "sasl.oauthbearer.token.callback": ("oauth_callback", _text),
    "sasl.oauthbearer.token.endpoint.url": ("oauth_endpoint_url", _text),
    "sasl.oauthbearer.token.env": ("oauth_token_env", _text),
    "sasl.password": ("sasl_password", _text),
    "sasl.username": ("sasl_username", _text),
    "security.protocol": ("security_protocol", _one_of(*SECURITY_PROTOCOLS)),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _positive),
    "ssl.ca.location": ("ssl_ca_location", _given),
    "ssl.certificate.location": ("ssl_certificate_location", _given),
    "ssl.cipher.suites": ("ssl_cipher_suites", _names),
    "ssl.enabled.protocols": ("ssl_enabled_protocols", _protocols),
    "ssl.endpoint.identification.algorithm": ("ssl_endpoint_identification_algorithm", _endpoint_algorithm),
    "ssl.key.location": ("ssl_key_location", _given),
    "ssl.key.password": ("ssl_key_password", _text),
    "ssl.keystore.certificate.chain": ("ssl_keystore_certificate_chain", _given),
    "ssl.keystore.key": ("ssl_keystore_key", _given),
    "ssl.keystore.location": ("ssl_certificate_location", _given),
    "ssl.keystore.password": ("ssl_keystore_password", _text),
    "ssl.keystore.type": ("ssl_keystore_type", _one_of("PEM", "JKS", "PKCS12")),
    "ssl.protocol": ("ssl_protocol", _one_of("TLS", *TLS_VERSIONS)),
    "ssl.truststore.certificates": ("ssl_truststore_certificates", _given),
    "ssl.truststore.location": ("ssl_ca_location", _given),
    "ssl.truststore.password": ("ssl_truststore_password", _text),
    "ssl.truststore.type": ("ssl_truststore_type", _one_of("PEM", "JKS", "PKCS12")),
    "transaction.two.phase.commit.enable": ("two_phase_commit", _off),
    "transaction.timeout.ms": ("transaction_timeout_ms", _positive),
    "transactional.id": ("transactional_id", _text),
}
SYNONYMS = {"metadata.broker.list": "bootstrap.servers", "sasl.mechanisms": "sasl.mechanism"}


Fields = dict[str, Any]
"""Parsed values by the field of ClientSettings, or of OAuthConfigs and KerberosConfigs with a prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Configs of a client. Times in ms, sizes in bytes; the repr has no secrets.

    compression_level: of compression_type, None for its default. token_source: of OAUTHBEARER, else None. kerberos: of
    GSSAPI, else None. sasl_tokenauth: whether user and password are a delegation token's.
    ssl_ca_location, ssl_certificate_location: PEM files, or Java's stores. ssl_key_location: a PEM file.
    ssl_cipher_suites: by Java's names, empty for OpenSSL's.
    ssl_truststore_certificates, ssl_keystore_certificate_chain, ssl_keystore_key: PEM text.
    ignored: names of configs that do not apply.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "kwire"
    client_rack: str = ""
    acks: int = -1
    compression_type: str = "none"
    compression_level: int | None = None
    enable_idempotence: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    max_request_size: int = 1_048_576
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 8 << 20  # Java's default is 1 MiB, but Java reads many partitions at a time
    receive_buffer_bytes: int = -1
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    socket_connection_setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_tokenauth: bool = False
    token_source: TokenSource | None = field(default=None, repr=False)
    kerberos: KerberosLogin | None = None
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_keystore_certificate_chain: str | None = field(default=None, repr=False)
    ssl_keystore_key: str | None = field(default=None, repr=False)
    ssl_truststore_certificates: str | None = field(default=None, repr=False)
    ssl_truststore_password: str | None = field(default=None, repr=False)
    ssl_keystore_password: str | None = field(default=None, repr=False)
    ssl_enabled_protocols: tuple[str, ...] = TLS_VERSIONS
    ssl_cipher_suites: tuple[str, ...] = ()
    ssl_endpoint_identification_algorithm: str = "https"
    ignored: tuple[str, ...] = ()

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> ClientSettings:
        """Parse configs by Kafka's names, with dots or underscores; values may be strings as in a properties file.

        Raises OptionError with the config's name and the expected value, never with a secret.
        """
        fields: Fields = {}
        names: dict[str, str] = {}
        ignored = []
        for name, value in settings.items():
            parsed = parse_config(name, value)
            if parsed is None:
                ignored.append(_name_of(name))
                continue
            key, parsed_value = parsed
            if key in fields and fields[key] != parsed_value:
                raise OptionError(f"configs '{names[key]}' and '{name}' set the same to different values; remove one")
            fields[key], names[key] = parsed_value, name
        if "bootstrap_servers" not in fields:
            raise OptionError("config 'bootstrap.servers' is required: comma-separated host:port")
        if not fields.get("client_rack"):
            ignored += [name for name in map(_name_of, settings) if name in WITHOUT_RACK]
        warn_of(ignored)
        warn_of_unprotected(names.values(), fields.get("security_protocol", "PLAINTEXT"))
        return cls(**check(fields), ignored=tuple(ignored))

    @property
    def uses_sasl(self) -> bool:
        """Whether connections authenticate with SASL."""
        return self.security_protocol.startswith("SASL")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")


def _name_of(given: str) -> str:
    name = given.replace("_", ".")
    return SYNONYMS.get(name, name)


def parse_config(given: str, value: object) -> tuple[str, object] | None:
    """Return the key in Fields and the value of one config; None for one without effect. Raises OptionError."""
    name = _name_of(given)
    if name in REASONS:
        return None
    for refused, reason in REFUSED.items():
        if name == refused or (refused.endswith("*") and name.startswith(refused[:-1])):
            if str(value).strip().lower() in ("", *map(str.lower, HARMLESS.get(name, ()))):
                return None
            raise OptionError(f"config '{name}' is not supported: {reason}")
    if name not in KNOWN:
        raise OptionError(f"unknown config '{name}'{did_you_mean(name, [*KNOWN, *REASONS])}")
    key, parse = KNOWN[name]
    if key == "oauth_callback" and callable(value):
        return key, value
    if not isinstance(value, str | int | float | os.PathLike):  # None would become a name or a password of 4 letters
        raise OptionError(f"config '{name}': expected text, a number or a bool, got {type(value).__name__}")
    try:
        return key, parse(str(value).lower() if isinstance(value, bool) else str(value))
    except ValueError as error:
        raise OptionError(f"config '{name}': expected {error}") from None


def warn_of(ignored: Sequence[str]) -> None:
    """Warn of configs without effect, of each once in a process. ignored: names with dots."""
    by_reason: dict[str, list[str]] = {}
    reasons = {**REASONS, **WITHOUT_RACK, **OF_CALLS}
    for name in ignored:
        if name in reasons and name not in _warned:
            by_reason.setdefault(reasons[name], []).append(name)
            _warned.add(name)
    if by_reason:
        what = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
        LOGGER.warning("configs without effect: %s", what)


def warn_of_unprotected(names: Iterable[str], protocol: str) -> None:
    """Warn of configs of logins and TLS that security.protocol leaves without effect, of each once in a process."""
    for prefix, is_used, lost in (
        ("sasl.", protocol.startswith("SASL"), "do not log in"),
        ("ssl.", protocol.endswith("SSL"), "are not encrypted"),
    ):
        unused = sorted({_name_of(name) for name in names if _name_of(name).startswith(prefix)} - _warned)
        if unused and not is_used:
            _warned.update(unused)
            text = "security.protocol is %s, so connections %s; configs without effect: %s"
            LOGGER.warning(text, protocol, lost, ", ".join(unused))


def check(fields: Fields) -> Fields:
    """Check configs that depend on each other; remove those that only say how to read others. Raises OptionError."""
    for store in ("truststore", "keystore"):
        fields.pop(f"ssl_{store}_type", None)  # the file tells it
    check_tls(fields)
    check_certificates(fields)
    levels = {name: fields.pop(f"{name}_level", None) for name in ("gzip", "lz4", "zstd")}
    fields["compression_level"] = levels.get(fields.get("compression_type", "none"))
    fields.pop("two_phase_commit", None)
    check_sasl(fields)
    if "default_api_timeout_ms" in fields:  # unless set, no single timeout is longer than the overall one
        for name in ("request_timeout_ms", "socket_connection_setup_timeout_ms"):
            default = ClientSettings.__dataclass_fields__[name].default
            fields.setdefault(name, min(default, fields["default_api_timeout_ms"]))
    if fields.get("transactional_id") is not None and fields.get("enable_idempotence") is False:
        raise OptionError("config 'enable.idempotence': a transactional producer requires true")
    return fields


def check_tls(fields: Fields) -> None:
    """Apply ssl.protocol, and check protocols and cipher suites. Raises OptionError."""
    protocol = fields.pop("ssl_protocol", "TLS")
    protocols = fields.get("ssl_enabled_protocols", TLS_VERSIONS)
    if protocol == "TLSv1.2":  # as in Java, where it is the newest version of the context
        protocols = tuple(each for each in protocols if each == protocol)
        if not protocols:
            raise OptionError("config 'ssl.enabled.protocols': ssl.protocol allows TLSv1.2 only")
    fields["ssl_enabled_protocols"] = protocols
    if suites := fields.get("ssl_cipher_suites"):
        check_suites(suites, protocols)


def check_certificates(fields: Fields) -> None:
    """Check that what is trusted, and the client's key, are given once and whole, as in Java. Raises OptionError."""
    location, key, chain = "ssl_certificate_location", "ssl_keystore_key", "ssl_keystore_certificate_chain"
    for given, other, what in (
        ("ssl_truststore_certificates", "ssl_ca_location", "the trusted certificates"),
        (key, location, "the client's key"),
    ):
        if fields.keys() >= {given, other}:
            raise OptionError(f"config '{given.replace('_', '.')}': a file has {what} already; remove one of both")
    for given, needed in ((key, chain), (chain, key), ("ssl_key_location", location)):
        if given in fields and needed not in fields:
            name, missing = (each.replace("_", ".") for each in (given, needed))
            raise OptionError(f"config '{name}': without '{missing}' the client would present no certificate; set both")
    for store, place in (("truststore", "ssl_ca_location"), ("keystore", location)):
        if fields.get(f"ssl_{store}_password") and place not in fields:
            name = f"ssl.{store}"
            raise OptionError(f"config '{name}.password': without '{name}.location' it opens nothing; set both")


def check_sasl(fields: Fields) -> None:
    """Convert sasl.jaas.config and the configs of a mechanism to fields of ClientSettings. Raises OptionError."""
    module, options = parse_jaas(fields.pop("sasl_jaas_config", None) or "")
    oauth, kerberos = (of_mechanism(fields, prefix) for prefix in ("oauth_", "kerberos_"))
    if not fields.get("security_protocol", "").startswith("SASL"):
        return  # configs of mechanisms are ignored, as in Java
    mechanism = fields.setdefault("sasl_mechanism", "GSSAPI")
    for name, required in OF_ONE_MECHANISM.items():
        if module.rpartition(".")[2] == name and mechanism != required:
            raise OptionError(f"config 'sasl.mechanism': {name} in sasl.jaas.config requires {required}")
    if mechanism == "OAUTHBEARER":
        fields["token_source"] = choose_source(OAuthConfigs(**oauth), options)
    elif mechanism == "GSSAPI":
        fields["kerberos"] = choose_login(KerberosConfigs(**kerberos), module, options)
    else:
        check_password(fields, module, options)


def of_mechanism(fields: Fields, prefix: str) -> Fields:
    """Remove the fields with a prefix, and return them without it."""
    return {name.removeprefix(prefix): fields.pop(name) for name in list(fields) if name.startswith(prefix)}


def check_password(fields: Fields, module: str, options: dict[str, str]) -> None:
    """Take the user and the password of a login module, unless they are set. Raises OptionError without them."""
    mechanism = fields["sasl_mechanism"]
    if module and not {"username", "password"} <= options.keys():
        raise OptionError(f"config 'sasl.jaas.config': {JAAS_FORM}")
    for name in ("username", "password"):
        if options.keys() & {name} and fields.get(f"sasl_{name}", options[name]) != options[name]:
            raise OptionError(f"config 'sasl.{name}': sasl.jaas.config has another one; remove one of both")
        if not fields.setdefault(f"sasl_{name}", options.get(name)):
            raise OptionError(f"config 'sasl.{name}' is required with sasl.mechanism {mechanism}")
    if options.get("tokenauth", "").lower() == "true":
        if not mechanism.startswith("SCRAM"):
            raise OptionError(f"config 'sasl.jaas.config': tokenauth requires a SCRAM mechanism, got {mechanism}")
        fields["sasl_tokenauth"] = True


def parse_jaas(text: str) -> tuple[str, dict[str, str]]:
    """Return the one login module and its options, name="value", name='value' or name=value; ("", {}) for no text.

    Raises OptionError, without a secret, for anything else and for several modules, as in Java.
    Source: org.apache.kafka.common.security.JaasConfig, JaasContext.load.
    """
    if not text.strip():
        return "", {}
    login = JAAS.fullmatch(text)
    if login is None:
        raise OptionError(f"config 'sasl.jaas.config': {JAAS_FORM}")
    return login[1], {name: _unquoted(value) for name, value in JAAS_OPTION.findall(login[2])}


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value[0] in "\"'" else value
