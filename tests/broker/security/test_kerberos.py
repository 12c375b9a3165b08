"""Kerberos (GSSAPI), with tickets of MIT's KDC: our client and broker, Kafka's, and aiokafka."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import kafka

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.kerberos import KerberosLogin
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import CreateTopicsRequest, CreateTopicsResponse, SaslAuthenticateRequest, SaslHandshakeRequest
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.raw_client import Closed, RawClient
from tests.broker.security.test_clients import SMALL
from tests.kerberos import REALM, SKEW_S, Realm, need_gssapi
from tests.waiting import HANG_S, until

pytestmark = [pytest.mark.slow]

LOGIN_PEER = Path(__file__).parent / "java" / "LoginPeer.java"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
CLIENT = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"}
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    need_gssapi()
    with Realm(tmp_path_factory.mktemp("realm")) as running:
        running.add("kafka/localhost", "kafka/127.0.0.1", "other/localhost", "alice", "bob", "carl/admin")
        yield running


def settings(realm: Realm, **more: Any) -> dict[str, Any]:
    """Return a broker's settings."""
    return {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl_enabled_mechanisms": "GSSAPI",
        "kerberos_keytab": str(realm.keytab),
        "kerberos_principal": f"kafka/localhost@{REALM}",
        "acls": True,
        "super_users": "User:alice",
        **SMALL,
        **more,
    }


@pytest.fixture(scope="module")
def broker(realm: Realm) -> Iterator[Broker]:
    with Broker(**settings(realm)) as running:
        yield running


def of_keytab(realm: Realm, principal: str = "alice") -> dict[str, Any]:
    jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{realm.keytab}" principal="{principal}@{REALM}";'
    return {**CLIENT, "sasl.jaas.config": jaas}


def of_cache(cache: str) -> dict[str, Any]:
    return {**CLIENT, "sasl.jaas.config": f'{MODULE} useTicketCache=true ticketCache="{cache}";'}


def creates_a_topic(broker: Broker, configs: dict[str, Any]) -> int:
    """Return the error code of a request that only User:alice may send."""
    topic = CreateTopicsRequest.CreatableTopic(name=f"t{time.monotonic_ns()}", num_partitions=1, replication_factor=1)
    with Client(broker.bootstrap_servers, **configs) as client:
        response = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=9000), CreateTopicsResponse)
    return response.topics[0].error_code


def context_for(principal: str, realm: Realm, service: str = "kafka@localhost") -> Any:
    """Return a context of a client, by the library itself."""
    import gssapi

    name = gssapi.Name(f"{principal}@{REALM}", gssapi.NameType.kerberos_principal)
    store = {"client_keytab": str(realm.keytab), "ccache": f"MEMORY:{time.monotonic_ns()}"}
    return gssapi.SecurityContext(
        name=gssapi.Name(service, gssapi.NameType.hostbased_service),
        creds=gssapi.Credentials(name=name, usage="initiate", store=store),
        mech=gssapi.MechType.kerberos,
        flags=[gssapi.RequirementFlag.mutual_authentication],
        usage="initiate",
    )


def take(client: RawClient, token: bytes) -> Any:
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


def shake(client: RawClient, mechanism: str = "GSSAPI") -> RawClient:
    assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    return client


def offer_for(client: RawClient, context: Any) -> bytes:
    """Show a ticket, check the broker's proof and return its offer of security layers."""
    context.step(take(client, context.step()).auth_bytes)
    assert context.complete
    return bytes(context.unwrap(take(client, b"").auth_bytes).message)


# ---- our client and our broker


def test_tickets_of_a_keytab_and_of_a_cache_log_in_as_their_principals(realm: Realm, broker: Broker) -> None:
    assert creates_a_topic(broker, of_keytab(realm)) == 0
    assert creates_a_topic(broker, of_cache(realm.log_in("alice"))) == 0
    assert creates_a_topic(broker, of_keytab(realm, "bob")) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    names = {"sasl.kerberos.keytab": str(realm.keytab), "sasl.kerberos.principal": f"alice@{REALM}"}  # librdkafka's
    assert creates_a_topic(broker, {**CLIENT, **names}) == 0


def test_the_default_cache_is_used_without_a_login_module(
    realm: Realm, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match=r"GSSAPI: no ticket for kafka@localhost: .*; kinit makes one"):
        creates_a_topic(broker, CLIENT)
    monkeypatch.setenv("KRB5CCNAME", realm.log_in("alice"))
    configs = {name: value for name, value in CLIENT.items() if name != "sasl.mechanism"}  # GSSAPI is Java's default
    assert creates_a_topic(broker, configs) == 0


def test_rules_name_the_user_and_without_one_that_applies_nobody_logs_in(realm: Realm) -> None:
    rules = "RULE:[2:$1-$2]s/^carl-admin$/alice/,RULE:[1:$1](b.*)"
    with Broker(**settings(realm, sasl_kerberos_principal_to_local_rules=rules)) as broker:
        assert creates_a_topic(broker, of_keytab(realm, "carl/admin")) == 0
        assert creates_a_topic(broker, of_keytab(realm, "bob")) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(BrokerError, match=INVALID):
            creates_a_topic(broker, of_keytab(realm))


def test_a_server_properties_of_kafka_configures_the_key(realm: Realm) -> None:
    jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{realm.keytab}" principal="kafka/localhost@{REALM}";'
    given = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "GSSAPI,PLAIN",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas,
        "users": {"carl": "secret"},
        "super.users": "User:alice",
        "acls": "true",
    }
    with Broker(**given) as broker:
        assert creates_a_topic(broker, of_keytab(realm)) == 0
        plain = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        plain |= {"sasl.username": "carl", "sasl.password": "secret"}
        assert creates_a_topic(broker, plain) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kerberos_keytab": "/none.keytab"}, r"kerberos_keytab /none\.keytab with principal .* cannot be used"),
        ({"kerberos_principal": f"kafka/nowhere@{REALM}"}, "with principal 'kafka/nowhere@KWIRE.TEST' cannot be used"),
        ({"kerberos_keytab": ""}, "GSSAPI requires kerberos_keytab and kerberos_principal"),
        ({"sasl_kerberos_service_name": "broker"}, "service.name is 'broker', but the principal is 'kafka/"),
        ({"sasl_kerberos_principal_to_local_rules": "RULE:x"}, "invalid rule 'RULE:x'"),
    ],
)
def test_a_broker_without_a_usable_key_does_not_start(realm: Realm, change: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message), Broker(**settings(realm, **change)):
        pass


def test_a_client_says_what_is_missing(realm: Realm, broker: Broker) -> None:
    with pytest.raises(OptionError, match=r"no ticket for kafkb@localhost: .*not found in Kerberos database"):
        creates_a_topic(broker, {**of_keytab(realm), "sasl.kerberos.service.name": "kafkb"})
    with pytest.raises(OptionError, match=r"no ticket .*; keytab .*, principal dora@KWIRE.TEST"):
        creates_a_topic(broker, of_keytab(realm, "dora"))
    cache = realm.log_in("alice", life_s=1)
    assert creates_a_topic(broker, of_keytab(realm)) == 0

    def is_refused() -> bool:
        try:
            return creates_a_topic(broker, of_cache(cache)) != 0
        except OptionError as error:
            return "expired" in str(error)
        except BrokerError as error:  # expired on the way
            return error.what.endswith(INVALID) and False

    until(is_refused, "an expired ticket still logs in")


# ---- what a broker refuses


def test_a_ticket_for_another_service_of_the_same_keytab_is_refused(realm: Realm, broker: Broker) -> None:
    with RawClient(broker) as client:
        response = take(shake(client), context_for("alice", realm, "other@localhost").step())
        assert (response.error_code, response.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, INVALID)
        with pytest.raises(Closed):
            take(client, b"")


def test_a_ticket_that_was_sent_before_is_refused(realm: Realm, broker: Broker) -> None:
    token = context_for("alice", realm).step()
    with RawClient(broker) as client:
        assert take(shake(client), token).error_code == 0
    with RawClient(broker) as client:
        assert take(shake(client), token).error_message == INVALID


def test_a_ticket_that_has_expired_on_its_way_is_refused(realm: Realm, broker: Broker) -> None:
    import gssapi

    cache = realm.log_in("alice", life_s=2)
    creds = gssapi.Credentials(usage="initiate", store={"ccache": cache})
    context = gssapi.SecurityContext(
        name=gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service),
        creds=creds,
        mech=gssapi.MechType.kerberos,
        usage="initiate",
    )
    token = context.step()
    time.sleep(2 + 2 * SKEW_S)  # of the ticket's own life: nothing else can be waited for
    with RawClient(broker) as client:
        assert take(shake(client), token).error_message == INVALID


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"garbage", b"\x60\x82\x02\x53" * 100, b"\0alice\0secret", bytes(range(256)) * 1000]
)
def test_garbage_is_refused_like_everything_else(broker: Broker, realm: Realm, token: bytes) -> None:
    with RawClient(broker) as client:
        assert take(shake(client), token).error_message == INVALID


@pytest.mark.parametrize("place", [0, 10, 200, -1])
def test_a_changed_ticket_is_refused(broker: Broker, realm: Realm, place: int) -> None:
    token = bytearray(context_for("alice", realm).step())
    token[place] ^= 0x41
    with RawClient(broker) as client:
        assert take(shake(client), bytes(token)).error_message == INVALID


@pytest.mark.parametrize(
    "choice", [b"\x02\0\0\0", b"\x04\xff\xff\xff", b"\x03\0\0\0", b"\0\0\0\0", b"\x01\0\0", b"", b"unwrapped"]
)
def test_the_choice_of_a_security_layer_and_a_malformed_one_are_refused(
    broker: Broker, realm: Realm, choice: bytes
) -> None:
    with RawClient(broker) as client:
        context = context_for("alice", realm)
        assert offer_for(shake(client), context) == b"\x01\0\0\0"
        token = choice if choice == b"unwrapped" else context.wrap(choice, False).message
        assert take(client, token).error_message == INVALID


def test_the_authorization_id_is_not_used_as_in_kafka(broker: Broker, realm: Realm) -> None:
    with RawClient(broker) as client:
        context = context_for("bob", realm)
        offer_for(shake(client), context)
        assert take(client, context.wrap(b"\x01\0\0\0alice", False).message).error_code == 0
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        response = client.ask(CreateTopicsRequest(topics=[topic]), 7)
        assert response.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_messages_out_of_turn_are_refused(broker: Broker, realm: Realm) -> None:
    with RawClient(broker) as client:  # the choice before the offer
        context = context_for("alice", realm)
        context.step(take(shake(client), context.step()).auth_bytes)
        assert take(client, context.wrap(b"\x01\0\0\0", False).message).error_message == INVALID
    with RawClient(broker) as client:  # the offer sent back
        context = context_for("alice", realm)
        context.step(take(shake(client), context.step()).auth_bytes)
        assert take(client, take(client, b"").auth_bytes).error_message == INVALID


def test_tokens_without_headers_log_in_too(broker: Broker, realm: Realm) -> None:
    with RawClient(broker) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 0).error_code == 0
        context = context_for("alice", realm)
        context.step(client.bare(context.step()))
        assert context.unwrap(client.bare(b"")).message == b"\x01\0\0\0"
        assert client.bare(context.wrap(b"\x01\0\0\0", False).message) == b""


def test_a_failed_login_leaves_its_reason_in_the_log_only(
    broker: Broker, realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kwire.broker"), RawClient(broker) as client:
        assert take(shake(client), context_for("alice", realm, "other@localhost").step()).error_message == INVALID
    assert any("a login with Kerberos failed" in record.getMessage() for record in caplog.records)


# ---- what a client refuses


def acceptor(realm: Realm, service: str = "kafka") -> Any:
    """Return a context of a broker, by the library itself."""
    import gssapi

    name = gssapi.Name(f"{service}/localhost@{REALM}", gssapi.NameType.kerberos_principal)
    creds = gssapi.Credentials(name=name, usage="accept", store={"keytab": str(realm.keytab)})
    return gssapi.SecurityContext(creds=creds, usage="accept")


def login(realm: Realm) -> KerberosLogin:
    found = ClientSettings.parse({"bootstrap.servers": "localhost:1", **of_keytab(realm)}).kerberos
    assert found is not None
    return found


def test_a_client_refuses_a_broker_without_a_proof(realm: Realm) -> None:
    for proof in (b"", b"garbage"):
        exchange = login(realm).exchange("localhost", HANG_S)
        next(exchange)
        with pytest.raises(BrokerError, match="cannot prove that it is kafka@localhost"):
            exchange.send(proof)
    exchange = login(realm).exchange("localhost", HANG_S)
    context = acceptor(realm)
    exchange.send(context.step(next(exchange)))
    with pytest.raises(BrokerError, match="cannot prove that it is kafka@localhost"):
        exchange.send(b"\x01\0\0\0")  # the offer, not wrapped


@pytest.mark.parametrize(
    ("offer", "layers"),
    [
        (b"\x06\0\1\0", "integrity, confidentiality"),
        (b"\x02\0\1\0", "integrity"),
        (b"\x01", "unknown"),
        (b"", "unknown"),
    ],
)
def test_a_client_refuses_a_broker_that_requires_a_security_layer(realm: Realm, offer: bytes, layers: str) -> None:
    exchange = login(realm).exchange("localhost", HANG_S)
    context = acceptor(realm)
    assert exchange.send(context.step(next(exchange))) == b""
    with pytest.raises(BrokerError, match=rf"requires a security layer of SASL \({layers}\)"):
        exchange.send(context.wrap(offer, False).message)


def test_a_client_chooses_no_security_layer_among_all(realm: Realm) -> None:
    exchange = login(realm).exchange("localhost", HANG_S)
    context = acceptor(realm)
    exchange.send(context.step(next(exchange)))
    choice = exchange.send(context.wrap(b"\x07\0\xff\xff", False).message)
    assert context.unwrap(choice).message == b"\x01\0\0\0"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_kdc_that_does_not_respond_is_an_error_in_time(
    realm: Realm, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = realm.config.read_text().replace(f":{realm.port}", f":{silent.getsockname()[1]}")
        (tmp_path / "krb5.conf").write_text(text)
        monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
        configs = {**of_keytab(realm, "bob"), "socket.connection.setup.timeout.ms": 300, "default.api.timeout.ms": 900}
        jaas = configs["sasl.jaas.config"].replace(str(realm.keytab), f"{realm.folder}/./all.keytab")  # no ticket yet
        started = time.monotonic()
        with pytest.raises(ConnectionFailed, match=r"no Kerberos KDC responded about kafka@localhost within 0\.\d+ s"):
            creates_a_topic(broker, {**configs, "sasl.jaas.config": jaas})
        assert time.monotonic() - started < 60
    monkeypatch.undo()


def test_a_kdc_that_is_away_is_an_error(
    realm: Realm, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = realm.config.read_text().replace(f":{realm.port}", f":{kafka.free_port()}")
    (tmp_path / "krb5.conf").write_text(text)
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    configs = {**of_keytab(realm, "bob"), "default.api.timeout.ms": 500}
    jaas = configs["sasl.jaas.config"].replace(str(realm.keytab), f"{realm.folder}/././all.keytab")  # no ticket yet
    with pytest.raises(ConnectionFailed, match="no Kerberos KDC"):
        creates_a_topic(broker, {**configs, "sasl.jaas.config": jaas})


# ---- others


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_kafkas_client_logs_in_and_logs_in_again(realm: Realm, version: str) -> None:
    classes = kafka.compile_java(LOGIN_PEER, version=version)
    with Broker(**settings(realm, connections_max_reauth_ms=600, acls=False, super_users="")) as broker:
        arguments = [f"{name}={value}" for name, value in of_keytab(realm).items()]
        config = f"-Djava.security.krb5.conf={realm.config}"
        servers = f"bootstrap.servers={broker.bootstrap_servers}"
        out = kafka.java(config, "LoginPeer", "240", servers, *arguments, version=version, classes=classes)
    assert out.strip() == "logged in again: true"


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_our_client_logs_in_to_a_real_kafka(
    realm: Realm, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "JVM_OPTIONS", (*kafka.JVM_OPTIONS, f"-Djava.security.krb5.conf={realm.config}"))
    jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{realm.keytab}" principal="kafka/127.0.0.1@{REALM}";'
    configs: dict[str, str | int] = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.plaintext.gssapi.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:kafka;User:ANONYMOUS",
    }
    with kafka.KafkaBroker(tmp_path, version=version, **configs) as real:
        assert creates_a_topic(real, of_keytab(realm)) == 0  # type: ignore[arg-type]  # it has bootstrap_servers
        assert creates_a_topic(real, of_cache(realm.log_in("bob"))) == ErrorCode.TOPIC_AUTHORIZATION_FAILED  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="not found in Kerberos database"):
            creates_a_topic(real, {**of_keytab(realm), "sasl.kerberos.service.name": "kafkb"})  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_aiokafka_logs_in(realm: Realm, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiokafka import AIOKafkaProducer

    monkeypatch.setenv("KRB5CCNAME", realm.log_in("alice"))

    async def produce() -> int:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI"
        )
        async with producer:
            return (await producer.send_and_wait("orders", b"one")).offset

    assert asyncio.run(produce()) == 0
