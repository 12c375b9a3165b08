"""Configs given to a broker: obeyed, stored, or refused; what protects the broker is never lost."""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from kwire.broker import Broker, Cluster
from kwire.broker.configs.definitions import Resource, definitions, render_java
from kwire.broker.configs.given import is_known, parse_settings
from kwire.broker.configs.protection import is_protective, is_secret, resembles_protective
from kwire.broker.configs.settings import FIELDS, Settings
from kwire.broker.network.server import bind_listeners
from kwire.errors import OptionError
from tests.waiting import HANG_S

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
LESS = {
    "SSL": ["PLAINTEXT", "SASL_PLAINTEXT"],
    "SASL_PLAINTEXT": ["PLAINTEXT", "SSL"],
    "SASL_SSL": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"],
}
"""Security protocols that lack something of another."""
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"ssl.client.auth": "none"}, "PLAINTEXT"),
        ({"acls": "true", "super.users": "User:ANONYMOUS"}, "PLAINTEXT"),
        ({"users": {"alice": "x"}}, "SASL_PLAINTEXT"),
        ({"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}, "SASL_PLAINTEXT"),
        ({"sasl_enabled_mechanisms": "OAUTHBEARER"}, "SASL_PLAINTEXT"),
        ({"listener.name.internal.plain.sasl.jaas.config": f'{PLAIN} username="a" password="x";'}, "SASL_PLAINTEXT"),
        ({"listener.name.internal.scram-sha-256.sasl.jaas.config": f"{SCRAM};"}, "SASL_PLAINTEXT"),
        ({"listener.name.internal.oauthbearer.sasl.jaas.config": OAUTH}, "SASL_PLAINTEXT"),
        ({"connections.max.reauth.ms": "1"}, "SASL_PLAINTEXT"),
        ({"security.inter.broker.protocol": "SASL_SSL"}, "SASL_SSL"),
        ({"ssl_certfile": "cert.pem"}, "SSL"),
        ({"ssl.client.auth": "required"}, "SSL"),
        ({"listener.name.internal.ssl.client.auth": "required"}, "SSL"),
        ({"ssl.enabled.protocols": "TLSv1.3", "users": {"alice": "x"}}, "SASL_SSL"),
    ],
)
def test_the_listener_has_the_protocol_that_configs_ask_for(given: dict[str, object], protocol: str) -> None:
    assert parse_settings(given, port=9092).listeners == f"{protocol}://127.0.0.1:9092"
    if protocol == "PLAINTEXT":
        return
    for less in LESS[protocol]:
        with pytest.raises(OptionError, match=r"requires a listener of protocol|listeners has no INTERNAL"):
            parse_settings({**given, "listeners": f"{less}://127.0.0.1:0"})
    both = f"PLAINTEXT://127.0.0.1:0,{protocol}://127.0.0.1:0"
    if not any(name.startswith("listener.name.") for name in given):
        assert parse_settings({**given, "listeners": both}).listeners == both


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("ssl.keystore.location", "/etc/kafka.jks", "set ssl.certfile and ssl.keyfile to PEM files"),
        ("ssl.keystore.password", "hidden", "set ssl.certfile and ssl.keyfile to PEM files"),
        ("ssl.truststore.location", "/etc/kafka.jks", "set ssl.cafile to a PEM file"),
        ("ssl.protocol", "TLSv1.2", "set ssl.enabled.protocols"),
        ("ssl.cipher.suites", "TLS_AES_256_GCM_SHA384", "remove it"),
        ("ssl.principal.mapping.rules", "RULE:^CN=(.*?)$/$1/", "remove it"),
        ("ssl.engine.factory.class", "org.example.Engine", "remove it"),
        ("ssl.client.auht", "required", "did you mean 'ssl.client.auth'"),
        ("listener.name.a.oauthbearer.sasl.server.callback.handler.class", "org.example.Handler", "_validator"),
        ("listener.name.a.oauthbearer.sasl.oauthbearer.expected.audience", "kafka", "sasl_oauthbearer_validator"),
        ("sasl.oauthbearer.expected.audience", "kafka", "sasl_oauthbearer_validator"),
        ("sasl.oauthbearer.jwks.endpoint.url", "https://example.org/keys", "sasl_oauthbearer_validator"),
        ("listener.name.a.scram-sha-256.sasl.server.callback.handler.class", "org.example.Handler", "remove|validator"),
        ("listener.name.a.ssl.keystore.location", "/etc/kafka.jks", "ssl.certfile"),
        ("principal.builder.class", "org.example.Builder", "remove it"),
        ("security.providers", "org.example.Provider", "remove it"),
        ("authorizer.class", "org.example.Authorizer", "did you mean 'authorizer.class.name'"),
        ("create.topic.policy.class.name", "org.example.Policy", "remove it"),
        ("alter.config.policy.class.name", "org.example.Policy", "remove it"),
        ("client.quota.callback.class", "org.example.Quota", "remove it"),
        ("max.connections.per.ip.overrides", "10.0.0.1:5", "remove it"),
        ("max.connection.creation.rate", "5", "remove it"),
        ("config.providers", "file", "replace variables by their values"),
    ],
)
def test_what_would_protect_the_broker_and_is_not_supported_is_refused(name: str, value: str, remedy: str) -> None:
    with pytest.raises(OptionError, match=remedy) as caught:
        parse_settings({name: value, "listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "A:SASL_SSL"})
    assert "more open" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_every_config_of_kafka_with_its_default_is_accepted() -> None:
    known = definitions(Resource.BROKER)
    given = {name: each.default for name, each in known.items() if each.default is not None and name not in FIELDS}
    assert len(given) > 190
    assert parse_settings(given).listeners == "PLAINTEXT://127.0.0.1:0"


def test_defaults_are_kafkas_unless_a_page_says_otherwise() -> None:
    """Without those that are null in Kafka, which then reads another config."""
    known, settings = definitions(Resource.BROKER), Settings()
    values = {name: getattr(settings, field.name) for name, field in FIELDS.items() if name in known}
    rendered = {name: value if isinstance(value, str) else render_java(value) for name, value in values.items()}
    differing = {name for name, value in rendered.items() if known[name].default not in (None, value)}
    assert differing == {
        "group.coordinator.rebalance.protocols",
        "group.initial.rebalance.delay.ms",
        "listener.security.protocol.map",
        "listeners",
        "queued.max.request.bytes",
        "sasl.enabled.mechanisms",
    }


def test_every_security_config_of_kafka_is_obeyed_refused_or_of_the_brokers_own_connections() -> None:
    lost = {
        name
        for name in definitions(Resource.BROKER)
        if name.startswith(("ssl.", "sasl.", "security.")) and name not in FIELDS and not is_protective(name)
    }
    assert {name for name in lost if not name.startswith(("sasl.login.", "sasl.kerberos."))} == {
        "sasl.client.callback.handler.class",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.token.endpoint.url",
        "security.inter.broker.protocol",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.endpoint.identification.algorithm",
    }


def test_configs_of_the_only_listener_replace_those_of_all() -> None:
    settings = parse_settings(
        {
            "listener.name.internal.ssl.client.auth": "required",
            "ssl.client.auth": "none",
            "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN} user_admin="controllers only";',
            "listener.name.internal.plain.sasl.jaas.config": f'{PLAIN} user_alice="x";',
            "listeners": "INTERNAL://127.0.0.1:0,CONTROLLER://127.0.0.1:1",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "INTERNAL:SASL_SSL,CONTROLLER:SASL_SSL",
        }
    )
    assert (settings.ssl_client_auth, dict(settings.users)) == ("required", {"alice": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow.everyone.if.no.acl.found", "true"),
        ("super.users", "User:ANONYMOUS"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("acls", "true"),
        ("listeners", "PLAINTEXT://127.0.0.1:0"),
        ("max.connections.per.ip", "1"),
        ("num.partitions", "3"),
        ("log.retention.hours", "1"),
        ("num.io.threads", "4"),
    ],
)
def test_configs_of_the_whole_broker_are_refused_for_a_listener(name: str, value: str) -> None:
    for given in ({}, {"listeners": "PLAINTEXT://127.0.0.1:0"}):
        with pytest.raises(OptionError, match=rf"plaintext\.{name}: Kafka ignores it, .*; remove it or set {name}"):
            parse_settings({**given, f"listener.name.plaintext.{name}": value})


ALICE = f'{PLAIN} user_alice="x";'


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("sasl.jaas.config", ALICE, "LISTENER.MECHANISM.sasl.jaas.config"),
        ("listener.name.a.sasl.jaas.config", ALICE, "a.MECHANISM.sasl.jaas.config"),
        ("listener.name.A.plain.sasl.jaas.config", ALICE, "a.plain.sasl.jaas.config"),
        ("listener.name.a.PLAIN.sasl.jaas.config", ALICE, "a.plain.sasl.jaas.config"),
        ("listener.name.A.sasl.enabled.mechanisms", "PLAIN", "a.sasl.enabled.mechanisms"),
        ("listener.name.A.ssl.client.auth", "required", "a.ssl.client.auth"),
        ("sasl.server.callback.handler.class", "x.Y", "LISTENER.MECHANISM.sasl.server.callback.handler.class"),
        ("listener.name.a.sasl.server.callback.handler.class", "x.Y", "a.MECHANISM.sasl.server.callback.handler.class"),
    ],
)
@pytest.mark.parametrize(
    "listeners", [{}, {"listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "A:SASL_SSL"}]
)
def test_names_that_kafka_ignores_are_refused(name: str, value: str, remedy: str, listeners: dict[str, str]) -> None:
    """tests/interop/test_broker_protection.py has Kafka's behaviour."""
    with pytest.raises(
        OptionError, match=rf"^broker config {name}: Kafka ignores it, .*; set listener\.name\.{remedy}$"
    ):
        parse_settings({name: value, **listeners})


def test_users_without_the_name_of_a_listener_and_a_mechanism_are_unknown() -> None:
    with pytest.raises(OptionError, match=r"unknown broker config 'plain\.sasl\.jaas\.config'"):
        parse_settings({"plain.sasl.jaas.config": ALICE})
    assert parse_settings({"sasl.server.callback.handler.class": ""}).listeners.startswith("PLAINTEXT:")


def test_client_certificates_are_asked_for_where_kafka_does(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "broker.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = {"ssl.certfile": str(tmp_path / "broker.pem"), "ssl.cafile": str(tmp_path / "ca.pem")}

    def modes(listeners: str, **more: str) -> dict[str, ssl.VerifyMode]:
        bound = bind_listeners(parse_settings({"listeners": listeners, **files, **more}), {})
        bound.close()
        return {name: context.verify_mode for name, context in bound.tls.items()}

    common = {"ssl.client.auth": "required"}
    assert modes("SSL://127.0.0.1:0", **common) == {"SSL": ssl.CERT_REQUIRED}
    assert caplog.messages == []
    both = "SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    assert modes(both, **common) == {"SSL": ssl.CERT_REQUIRED, "SASL_SSL": ssl.CERT_NONE}
    assert caplog.messages[0].startswith("ssl.client.auth: Kafka ignores it on listeners of SASL_SSL")
    named = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    assert modes("SASL_SSL://127.0.0.1:0", **named) == {"SASL_SSL": ssl.CERT_REQUIRED}
    assert modes("SASL_SSL://127.0.0.1:0", **{"ssl.client.auth": "NONE"}) == {"SASL_SSL": ssl.CERT_NONE}
    for listeners in ("SASL_SSL://127.0.0.1:0", "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"):
        with pytest.raises(
            OptionError, match=r"^broker config ssl\.client\.auth: Kafka ignores it on .* SASL_SSL .*; set"
        ):
            modes(listeners, **common)


def test_configs_that_kafka_reads_for_a_listener_are_accepted_for_it() -> None:
    given = {"max.connections": "5", "connections.max.reauth.ms": "7", "sasl.server.max.receive.size": "9000"}
    found = parse_settings({f"listener.name.sasl_plaintext.{name}": value for name, value in given.items()})
    assert (found.max_connections, found.connections_max_reauth_ms) == (5, 7)
    assert found.sasl_server_max_receive_size == 9000


@pytest.mark.parametrize(
    ("common", "mechanisms", "enabled", "expected"),
    [
        ("5000", {"scram-sha-512": "0"}, "", "(5000, 0)"),
        ("5000", {"scram-sha-512": "5001"}, "", "(5000, 5001)"),
        ("5000", {"scram-sha-512": "5000"}, "", 5000),
        ("5000", {"scram-sha-512": "0"}, "SCRAM-SHA-512", 0),
        ("5000", {"scram-sha-512": "0"}, "PLAIN", "has no SCRAM-SHA-512"),
        ("", {"oauthbearer": "5000"}, "", "has no OAUTHBEARER"),
        ("5000", {"plain": "7", "scram-sha-256": "7"}, "PLAIN, SCRAM-SHA-256", 7),
        ("5000", {"plain": "7", "scram-sha-256": "8"}, "PLAIN,SCRAM-SHA-256", "(7, 8)"),
        ("", {"plain": "7"}, "PLAIN", 7),
        ("", {"plain": "7"}, "", "(7, 0)"),
        ("0", {"plain": "x"}, "PLAIN", "expected an integer"),
    ],
)
def test_the_time_of_a_mechanism_counts_for_that_mechanism_only(
    common: str, mechanisms: dict[str, str], enabled: str, expected: int | str
) -> None:
    prefix = "listener.name.sasl_plaintext."
    given = {f"{prefix}{name}.connections.max.reauth.ms": value for name, value in mechanisms.items()}
    given |= {"connections.max.reauth.ms": common} if common else {}
    given |= {f"{prefix}sasl.enabled.mechanisms": enabled} if enabled else {}
    for order in (given, dict(reversed(given.items()))):
        if isinstance(expected, str):
            with pytest.raises(OptionError, match=expected.replace("(", r"\(").replace(")", r"\)")):
                parse_settings(order)
        else:
            assert parse_settings(order).connections_max_reauth_ms == expected


def test_a_config_that_kafka_does_not_read_for_a_mechanism_is_refused() -> None:
    with pytest.raises(OptionError, match=r"ssl.client.auth holds for all mechanisms; remove plain from the name"):
        parse_settings({"listener.name.sasl_ssl.plain.ssl.client.auth": "required"})


@pytest.mark.parametrize("value", ["", " ", ",", " , "])
def test_a_broker_without_any_mechanism_is_refused(value: str) -> None:
    for name in ("sasl.enabled.mechanisms", "listener.name.sasl_plaintext.sasl.enabled.mechanisms"):
        with pytest.raises(
            OptionError, match=r"sasl\.enabled\.mechanisms: it is empty, .*at least one of PLAIN, SCRAM"
        ):
            Broker(**{name: value}).start()


def test_configs_and_users_of_one_of_several_listeners_are_refused() -> None:
    several = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OUT:SASL_SSL",
        "ssl.certfile": "cert.pem",
    }
    with pytest.raises(OptionError, match=r"listener\.name\.out\.ssl\.client\.auth: .*set ssl\.client\.auth"):
        parse_settings({**several, "listener.name.out.ssl.client.auth": "required"})
    users = {f"listener.name.{name}.plain.sasl.jaas.config": f'{PLAIN} user_{name}="x";' for name in ("in", "out")}
    with pytest.raises(OptionError, match=r"sasl\.jaas\.config of several listeners"):
        parse_settings({**several, **users})
    same = dict.fromkeys(users, f'{PLAIN} user_alice="x";')
    assert dict(parse_settings({**several, **same}).users) == {"alice": "x"}


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log_retention_hours": 1}, 3_600_000),
        ({"log.retention.minutes": "2", "log.retention.hours": "1"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-2"}, -1),
        ({}, 7 * DAY_MS),
    ],
)
def test_retention_in_hours_and_minutes_counts(given: dict[str, object], retention_ms: int) -> None:
    assert parse_settings(given).log_retention_ms == retention_ms


def test_a_retention_of_zero_is_refused() -> None:
    with pytest.raises(OptionError, match=r"log\.retention\.ms: must be -1 \(unlimited\) or at least 1, got 0"):
        parse_settings({"log.retention.minutes": "0"})


def test_other_names_of_a_config_count() -> None:
    found = parse_settings(
        {
            "broker.id": "7",
            "log.roll.hours": "2",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "50",
        }
    )
    assert (found.node_id, found.log_roll_ms, found.log_roll_jitter_ms) == (7, 7_200_000, 3_600_000)
    assert found.topic_defaults()["flush.ms"] == "50"
    assert parse_settings({"broker.id": "7", "node.id": "7"}).node_id == 7


def test_configs_without_an_effect_are_stored_checked_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = parse_settings(
            {"offsets_topic_replication_factor": 1, "num.io.threads": "4", "num.network.threads": "3"}
        )
    assert found.others == {"num.io.threads": "4", "num.network.threads": "3"}
    assert found.offsets_topic_replication_factor == 1
    assert caplog.messages == [
        "configs without an effect on this broker: num.io.threads, offsets.topic.replication.factor"
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        parse_settings({"offsets_topic_replication_factor": 1}, nodes=3)
        parse_settings({"offsets_topic_replication_factor": 3, "default.replication.factor": 1})
    assert caplog.messages == []
    with pytest.raises(OptionError, match=r"num\.io\.threads: Value must be at least 1"):
        parse_settings({"num.io.threads": "0"})


@pytest.mark.parametrize(
    ("name", "guess"),
    [("num.partition", "num.partitions"), ("num_partition", "num_partitions"), ("num.io.thread", "num.io.threads")],
)
def test_suggestions_are_written_as_the_name_was(name: str, guess: str) -> None:
    with pytest.raises(OptionError, match=f"unknown broker config '{name}' .did you mean '{guess}'"):
        parse_settings({name: 3})
    assert not is_known(name)


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("sals.enabled.mechanisms", True),
        ("sal.x", True),
        ("salty.x", False),
        ("sslclientauth", True),
        ("alow.everyone.if.no.acl.found", True),
        ("connection.max.reauth.ms", True),
        ("Listeners", True),
        ("acl", True),
        ("max_connections", True),
        ("kafka.ssl.client.auth", True),
        ("ssl-" + "x" * 10_000, True),
        ("sasl.login.nothing", False),  # for connections that a broker opens
        ("zookeeper.ssl.keystore.location", False),
        ("zookeeper.connect", False),
        ("num.partition", False),
        ("log.dir", False),
        ("confluent.metrics.reporter.bootstrap.servers", False),
        ("x" * 10_000, False),
        ("", False),
    ],
)
def test_a_misspelled_name_is_recognized(name: str, is_meant: bool) -> None:
    known = [*FIELDS, *definitions(Resource.BROKER)]
    assert resembles_protective(name, known) == is_meant


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("super.users", False),
        ("users", True),
        ("ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("delegation.token.secret.key", True),
        ("listener.name.a.plain.sasl.jaas.config", True),
        ("num.partitions", False),
    ],
)
def test_secret_names(name: str, secret: bool) -> None:
    assert is_secret(name) == secret


def test_a_listener_that_is_advertised_exists(tmp_path: Path) -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": "SASL_SSL://kafka.example.org:9093"}
    with pytest.raises(OptionError, match=r"advertised\.listeners: 'SASL_SSL' is not one of listeners"):
        Broker(tmp_path / "data", **given).start()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group_consumer_min_session_timeout_ms": 0}, "min.session.timeout.ms: Value must be at least 1"),
        ({"group_consumer_session_timeout_ms": 1}, r"session.timeout.ms: must be at least .*min.* \(45000\), got 1"),
        ({"group_consumer_session_timeout_ms": 44_999}, "got 44999"),
        ({"group_consumer_session_timeout_ms": 60_001}, r"session.timeout.ms: must be at most .*max.* \(60000\)"),
        ({"group_consumer_max_session_timeout_ms": 44_999}, r"min.session.timeout.ms: must be at most .*max"),
        ({"group_consumer_heartbeat_interval_ms": 4999}, r"at least .*min.heartbeat.interval.ms \(5000\), got 4999"),
        ({"group_consumer_heartbeat_interval_ms": 15_001}, r"at most .*max.heartbeat.interval.ms \(15000\)"),
        (
            {
                "group_consumer_min_session_timeout_ms": 5000,
                "group_consumer_session_timeout_ms": 5000,
            },
            r"heartbeat.interval.ms: must be below group.consumer.session.timeout.ms \(5000\), got 5000",
        ),
        ({"group_share_session_timeout_ms": 1}, r"session.timeout.ms: must be at least group.share.min.session"),
        ({"group_share_heartbeat_interval_ms": 15_001}, r"at most group.share.max.heartbeat.interval.ms \(15000\)"),
        ({"group_share_record_lock_duration_ms": 60_001}, r"at most group.share.max.record.lock.duration.ms \(60000\)"),
        ({"group_share_record_lock_duration_ms": 14_999}, r"at least group.share.min.record.lock.duration.ms"),
        (
            {"group_share_delivery_count_limit": 9, "group_share_max_delivery_count_limit": 8},
            r"delivery.count.limit: must be at most group.share.max.delivery.count.limit \(8\), got 9",
        ),
        ({"group_share_partition_max_record_locks": 4001}, r"at most group.share.max.partition.max.record.locks"),
        ({"group_share_min_assignment_interval_ms": 1001}, r"assignment.interval.ms: must be at least"),
        ({"group_share_assignors": "simple,simple"}, r"group.share.assignors: must be one assignor, got 2"),
        ({"group_share_assignors": "range"}, r"group.share.assignors: must be simple or .*SimpleAssignor, got 'range'"),
        ({"group_share_max_share_sessions": 199}, r"group.share.max.size: must be at most .*sessions \(199\), got 200"),
        (
            {"group_share_min_session_timeout_ms": 5000, "group_share_session_timeout_ms": 5000},
            r"heartbeat.interval.ms: must be below group.share.session.timeout.ms \(5000\), got 5000",
        ),
    ],
)
def test_configs_of_groups_outside_their_limits_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_settings(given)


def test_the_assignor_of_share_groups_is_named_or_a_class(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("simple", " org.apache.kafka.coordinator.group.assignor.SimpleAssignor "):
        assert parse_settings({"group.share.assignors": name})
    assert caplog.messages == []


def test_times_of_consumer_groups_may_equal_their_limits() -> None:
    for name, value in (
        ("session.timeout.ms", 45_000),
        ("session.timeout.ms", 60_000),
        ("heartbeat.interval.ms", 15_000),
    ):
        assert parse_settings({f"group.consumer.{name}": value})
    assert parse_settings({"group_consumer_min_session_timeout_ms": 5001, "group_consumer_session_timeout_ms": 5001})


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_listener_on_all_interfaces_says_what_clients_are_sent_to(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    for advertised in ("", "PLAINTEXT://kafka.example.org:9092"):
        caplog.clear()
        bound = bind_listeners(parse_settings({"advertised.listeners": advertised}, host=host), {})
        bound.close()
        name, port = bound.endpoints["PLAINTEXT"]
        expected = [
            f"clients are sent to PLAINTEXT://{name}:{port}; set advertised.listeners if they do not know that name"
        ]
        assert caplog.messages == (expected if host == "0.0.0.0" and not advertised else [])


def test_members_of_a_new_group_share_partitions_at_once_by_default(tmp_path: Path) -> None:
    assert Broker().settings.group_consumer_heartbeat_interval_ms == 100
    assert Broker(tmp_path).settings.group_consumer_heartbeat_interval_ms == 5000
    assert Broker(**{"group.consumer.heartbeat.interval.ms": 300}).settings.group_consumer_heartbeat_interval_ms == 300
    slow = Broker(group_consumer_min_heartbeat_interval_ms=2000).settings
    assert (slow.group_consumer_min_heartbeat_interval_ms, slow.group_consumer_heartbeat_interval_ms) == (2000, 5000)


def test_a_program_patched_by_gevent_gets_a_sentence(tmp_path: Path) -> None:
    """gevent itself is not installed: its answer to is_module_patched is."""
    (tmp_path / "gevent").mkdir()
    (tmp_path / "gevent" / "__init__.py").touch()
    (tmp_path / "gevent" / "monkey.py").write_text("def is_module_patched(name):\n    return name == 'threading'\n")
    code = "import gevent.monkey; from kwire.broker import Broker; Broker().start()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert "the broker needs real threads, which gevent has patched; run `kwire serve`" in ended.stderr


@pytest.mark.parametrize(
    ("name", "refused", "accepted"),
    [
        ("num.partitions", (-1, 0, 2**31), (1, 2)),
        ("fetch.max.bytes", (1023,), (1024, 1025)),
        ("max.connections", (-1,), (0, 1)),
        ("log.cleaner.min.cleanable.ratio", (-0.1, 1.1), (0, 1)),
        ("node.id", (-1, 2**31), (0, 1, 2**31 - 1)),
    ],
)
def test_numbers_that_kafka_does_not_start_with_are_refused(
    name: str, refused: tuple[float, ...], accepted: tuple[float, ...]
) -> None:
    for value in refused:
        with pytest.raises(OptionError, match=f"Invalid value .* for configuration {name}"):
            parse_settings({name: value})
    for value in accepted:
        parse_settings({name.replace(".", "_"): value})


def test_a_config_in_two_spellings_and_two_ids_of_a_node_are_refused() -> None:
    with pytest.raises(OptionError, match=r"num\.partitions is given twice; remove num\.partitions"):
        parse_settings({"num_partitions": 3, "num.partitions": 5})
    with pytest.raises(OptionError, match=r"node\.id: must be that of broker\.id \(3\), got 4"):
        parse_settings({"broker.id": 3, "node.id": 4})
    assert parse_settings({"broker.id": 3, "node.id": 3}).node_id == 3


def test_defaults_of_a_broker_without_a_directory_give_way_in_both_spellings() -> None:
    for name in ("offsets_topic_num_partitions", "offsets.topic.num.partitions"):
        given: dict[str, Any] = {name: 7}
        assert Broker(**given).settings.offsets_topic_num_partitions == 7
        assert Cluster(nodes=2, **given).settings.offsets_topic_num_partitions == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep_requests": "many"}, "invalid keep_requests 'many': must be 0 or more"),
        ({"keep_requests": 1.5}, "invalid keep_requests 1.5"),
        ({"host": None}, "invalid host None"),
        ({"data_dir": ""}, "invalid data_dir ''"),  # Path("") is the current directory
        ({"data_dir": 5}, "invalid data_dir 5"),
    ],
)
def test_other_arguments_of_a_wrong_type_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Broker(**given)
