"""Configs that protect a broker: encryption, login, authorization and limits. None of them is lost in silence.

A config that this broker does not have is refused if the broker would be more open without it, unless its value is
Kafka's default. Configs of TLS and SASL require a listener that uses them. Configs of connections that Kafka's broker
opens itself, to other brokers, controllers and token endpoints, have no effect on a single node.

Source: org.apache.kafka.common.config.SslConfigs, SaslConfigs, internals.BrokerSecurityConfigs 4.4.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from kwire.broker.configs.definitions import ConfigType, Resource, definitions
from kwire.broker.configs.settings import Settings
from kwire.errors import MAX_COMPARED, did_you_mean

__all__ = ["JAAS_CONFIG", "Asked", "asked_of", "is_protective", "is_secret", "refusal_of", "resembles_protective"]

JAAS_CONFIG = "sasl.jaas.config"
MECHANISMS = "sasl.enabled.mechanisms"
INTER_BROKER = "security.inter.broker.protocol"
PREFIXES = ("authorizer.", "listener.name.", "principal.", "sasl.", "security.", "ssl.")
"""Names that begin so protect the broker, also if Kafka does not have them: they may be misspelled."""
OTHERS = frozenset(
    {
        "alter.config.policy.class.name",
        "client.quota.callback.class",
        "config.providers",
        "create.topic.policy.class.name",
        "max.connection.creation.rate",
        "max.connections.per.ip.overrides",
    }
)
OF_THE_BROKER = frozenset(
    {
        "acls",
        "allow.everyone.if.no.acl.found",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "delegation.token.secret.key",
        "listener.security.protocol.map",
        "listeners",
        "max.connections",
        "max.connections.per.ip",
        "super.users",
        "users",
    }
)
"""Configs of Settings that protect the broker and have none of PREFIXES."""
FIRST_WORDS = ("authorizer", "listener", "principal", "sasl", "security", "ssl")
LIKE_A_WORD, LIKE_A_NAME = 0.75, 0.8
"""Least similarity of misspelled names: "sals" is 0.75 like "sasl"; "max.connection" is 0.97 like "max.connections"."""
NOT_OF_CLIENTS = (
    INTER_BROKER,
    "sasl.client.callback.handler.class",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.",
    "sasl.login.",
    "sasl.mechanism.controller.protocol",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.oauthbearer.assertion.",
    "sasl.oauthbearer.client.credentials.",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.endpoint.identification.algorithm",
)
"""Names, or beginnings of names, of configs for connections that a broker opens, and for dynamic changes."""
TOKENS = "tokens are validated by Broker(sasl_oauthbearer_validator=...)"
REMEDIES = (
    ("ssl.key", "set ssl.certfile and ssl.keyfile to PEM files"),
    ("ssl.truststore.", "set ssl.cafile to a PEM file"),
    ("ssl.protocol", "set ssl.enabled.protocols"),
    ("sasl.server.callback.handler.class", TOKENS),
    ("sasl.oauthbearer.", TOKENS),
    ("config.providers", "replace variables by their values"),
)
SECRET_WORDS = ("password", "passphrase", "secret", JAAS_CONFIG)
OF_LOGIN = frozenset(
    {
        "users",
        "sasl_oauthbearer_validator",
        "connections_max_reauth_ms",
        "kerberos_keytab",
        "kerberos_principal",
        "sasl_kerberos_principal_to_local_rules",
    }
)


def is_protective(name: str) -> bool:
    """Return whether a broker could be more open without this config than with it."""
    return not name.startswith(NOT_OF_CLIENTS) and (name.startswith(PREFIXES) or name in OTHERS)


def resembles_protective(name: str, known: Iterable[str]) -> bool:
    """Return whether an unknown name may be meant for a config that protects the broker. known: all known names.

    The first word counts, and the closest of the known names. Case, underscores and hyphens make no difference. Configs
    of ZooKeeper's client are none of the broker, although they end like configs of TLS.
    """
    import difflib

    plain = name[:MAX_COMPARED].lower().replace("_", ".").replace("-", ".")
    if plain.startswith(("zookeeper.", *NOT_OF_CLIENTS)):
        return False
    if difflib.get_close_matches(plain.partition(".")[0], FIRST_WORDS, 1, LIKE_A_WORD):
        return True
    closest = difflib.get_close_matches(plain, known, 1, LIKE_A_NAME)
    return any(is_protective(each) or each in OF_THE_BROKER for each in closest)


def refusal_of(name: str, text: str, known: Iterable[str]) -> str | None:
    """Return why a config that this broker does not have is refused; None if it merely has no effect.

    known: names to suggest for one that Kafka does not have either.
    """
    definition = definitions(Resource.BROKER).get(name)
    if not is_protective(name) or (definition is not None and text.strip() == (definition.default or "")):
        return None
    remedy = next((remedy for start, remedy in REMEDIES if name.startswith(start)), "remove it if that is acceptable")
    guess = did_you_mean(name, known) if definition is None else ""
    return f"broker config {name} is not supported{guess}, and the broker would be more open without it; {remedy}"


def is_secret(name: str) -> bool:
    """Return whether the value of a broker config is a secret. name: with dots."""
    definition = definitions(Resource.BROKER).get(name)
    is_password = definition is not None and definition.kind == ConfigType.PASSWORD
    return is_password or name == "users" or any(word in name for word in SECRET_WORDS)


class Asked(NamedTuple):
    """The protection that settings ask for: the first config that needs TLS, the first that needs SASL; "" for none."""

    tls: str
    sasl: str

    @property
    def protocol(self) -> str:
        """The security protocol of a listener that has both."""
        return f"{'SASL_' if self.sasl else ''}{'SSL' if self.tls else 'PLAINTEXT'}"


def asked_of(settings: Settings, given: Iterable[str]) -> Asked:
    """Return what settings ask for.

    given: the names of all configs that were given: mechanisms and login modules ask for SASL whatever they contain.
    """
    fields = [each for each in dataclasses.fields(Settings) if getattr(settings, each.name) != each.default]
    tls = [each.name.replace("_", ".") for each in fields if each.name.startswith("ssl_")]
    sasl = [each.name.replace("_", ".") for each in fields if each.name in OF_LOGIN]
    sasl += [name for name in given if name in (MECHANISMS, JAAS_CONFIG)]
    between = settings.others.get(INTER_BROKER, "")
    if between.startswith("SASL"):
        sasl.append(INTER_BROKER)
    if between.endswith("SSL"):
        tls.append(INTER_BROKER)
    return Asked(next(iter(tls), ""), next(iter(sasl), ""))
