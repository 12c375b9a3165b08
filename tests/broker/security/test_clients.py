"""Common clients over SASL and TLS, and what is logged and stored."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
import trustme
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kwire.broker import Broker
from kwire.broker.context import ANONYMOUS
from kwire.errors import OptionError
from kwire.internal_topics.enums import ScramMechanism as Mechanism
from kwire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.raw_client import Closed, RawClient
from tests.broker.security.scram_client import ScramClient
from tests.waiting import HANG_S, until

PASSWORDS = {"root": "pw-of-the-root", "alice": "pw-of-alice"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
SMALL = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of the certificate authority, and of the certificates and keys of the broker and a client."""
    root = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    for who, names in (("broker", ("127.0.0.1", "localhost")), ("client", ("client.example",))):
        issued = authority.issue_cert(
            *names, common_name=who, organization_name="Tests, all", organization_unit_name="TLS"
        )
        issued.private_key_pem.write_to_path(root / f"{who}.key")
        for number, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(root / f"{who}.pem", append=number > 0)
    return {path.name: str(path) for path in root.iterdir()}


def tls(files: dict[str, str], **more: str) -> dict[str, str]:
    """Return the TLS configs of the broker."""
    return {
        "ssl_certfile": files["broker.pem"],
        "ssl_keyfile": files["broker.key"],
        "ssl_cafile": files["ca.pem"],
        **more,
    }


@pytest.fixture(scope="module")
def broker(files: dict[str, str]) -> Iterator[Broker]:
    """A broker with SASL_PLAINTEXT, then with SASL_SSL."""
    with Broker(
        listeners="SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        users=PASSWORDS,
        acls=True,
        super_users="User:root;User:alice",
        **tls(files),
        **SMALL,
    ) as running:
        yield running


def client(broker: Broker, files: dict[str, str], mechanism: str, encrypted: bool, password: str) -> dict[str, Any]:
    """Return librdkafka's configs for the user alice."""
    host, port = broker.node.endpoints["SASL_SSL" if encrypted else "SASL_PLAINTEXT"]
    return {
        "bootstrap.servers": f"{host}:{port}",
        "security.protocol": "SASL_SSL" if encrypted else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "ssl.ca.location": files["ca.pem"],
        "log_level": 0,
    }


def works(settings: dict[str, Any], topic: str = "t") -> None:
    """Return whether a record can be produced and consumed."""
    producer = confluent_kafka.Producer(settings)
    outcomes: list[str] = []
    producer.produce(
        topic, b"hello", on_delivery=lambda error, message: outcomes.append("" if error is None else error.name())
    )
    assert producer.flush(HANG_S) == 0
    assert outcomes == [""]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_authenticates(broker: Broker, files: dict[str, str], mechanism: str, encrypted: bool) -> None:
    works(client(broker, files, mechanism, encrypted, PASSWORDS["alice"]))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_with_a_wrong_password_is_rejected(broker: Broker, files: dict[str, str], mechanism: str) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    settings = client(broker, files, mechanism, False, "wrong") | {"error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    until(lambda: (producer.poll(0.1), errors)[1])
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_authenticates(broker: Broker, files: dict[str, str], mechanism: str) -> None:
    async def run() -> None:
        host, port = broker.node.endpoints["SASL_SSL"]
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"{host}:{port}",
            security_protocol="SASL_SSL",
            ssl_context=ssl.create_default_context(cafile=files["ca.pem"]),
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=PASSWORDS["alice"],
        )
        await producer.start()
        try:
            await producer.send_and_wait("t", b"hello")
        finally:
            await producer.stop()

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_authenticates(broker: Broker, files: dict[str, str], mechanism: str) -> None:
    from kafka import KafkaProducer

    host, port = broker.node.endpoints["SASL_SSL"]
    producer = KafkaProducer(
        bootstrap_servers=f"{host}:{port}",
        security_protocol="SASL_SSL",
        ssl_cafile=files["ca.pem"],
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=PASSWORDS["alice"],
    )
    assert producer.send("t", b"hello").get(HANG_S).offset >= 0
    producer.close()


def test_a_client_certificate_sets_the_principal(files: dict[str, str]) -> None:
    with Broker(
        listeners="SSL://127.0.0.1:0",
        acls=True,
        super_users="User:CN=client,OU=TLS,O=Tests\\, all",
        **tls(files, ssl_client_auth="required"),
        **SMALL,
    ) as broker:
        works(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SSL",
                "ssl.ca.location": files["ca.pem"],
                "ssl.certificate.location": files["client.pem"],
                "ssl.key.location": files["client.key"],
                "log_level": 0,
            }
        )
        context = ssl.create_default_context(cafile=files["ca.pem"])
        with (
            pytest.raises((ssl.SSLError, Closed)),
            RawClient(broker, lambda sock: context.wrap_socket(sock, server_hostname="127.0.0.1")) as stranger,
        ):
            stranger.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)


def test_an_optional_client_certificate_may_be_missing(files: dict[str, str]) -> None:
    with Broker(listeners="SSL://127.0.0.1:0", **tls(files, ssl_client_auth="requested"), **SMALL) as broker:
        context = ssl.create_default_context(cafile=files["ca.pem"])
        with RawClient(broker, lambda sock: context.wrap_socket(sock, server_hostname="127.0.0.1")) as anybody:
            assert anybody.ask(MetadataRequest(topics=[]), 12).cluster_id


def test_a_tls_listener_without_a_certificate_does_not_start() -> None:
    with pytest.raises(OptionError, match="ssl_certfile"), Broker(listeners="SSL://127.0.0.1:0"):
        pass


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"sasl_enabled_mechanisms": "DIGEST-MD5"}, "sasl_enabled_mechanisms"),
        ({"sasl_enabled_mechanisms": "GSSAPI"}, "GSSAPI requires kerberos_keytab and kerberos_principal"),
        ({"authorizer_class_name": "com.example.Mine"}, "authorizer_class_name"),
        ({"acls": True, "super_users": "root"}, "super_users"),
    ],
)
def test_invalid_security_configs_prevent_startup(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(OptionError, match=name), Broker(**settings):
        pass


def test_requests_before_authentication_get_no_response(broker: Broker) -> None:
    with RawClient(broker) as stranger:
        assert stranger.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).api_keys
        with pytest.raises(Closed):
            stranger.ask(MetadataRequest(topics=None), 12)
    with RawClient(broker) as stranger:
        stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        refused = stranger.ask(MetadataRequest(topics=None), 12)  # an error response, as Kafka gives
        assert (refused.brokers, refused.topics, refused.cluster_id) == ([], [], None)
        with pytest.raises(Closed):
            stranger.ask(MetadataRequest(topics=None), 12)


def test_a_handshake_does_not_renew_a_session() -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": PASSWORDS, "connections_max_reauth_ms": 500_000}
    create = CreateTopicsRequest.CreatableTopic(name="never", num_partitions=1, replication_factor=1)
    with Broker(**settings, **SMALL) as broker, RawClient(broker) as client:
        client.log_in("alice", PASSWORDS["alice"])
        broker.advance(500_001)
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        refused = client.ask(CreateTopicsRequest(topics=[create], timeout_ms=1000), 5)
        assert [each.error_code for each in refused.topics] == [ErrorCode.ILLEGAL_SASL_STATE]
        with pytest.raises(Closed):
            client.ask(MetadataRequest(topics=None), 12)
        assert broker.call(lambda node: node.topics.get("never")) is None


def test_an_unauthenticated_client_uses_little_memory(broker: Broker) -> None:
    with RawClient(broker) as stranger:
        stranger.sock.sendall((600 * 1024).to_bytes(4, "big"))
        with pytest.raises(Closed):
            stranger.bare(b"")
    with RawClient(broker) as known:
        assert known.log_in("alice", PASSWORDS["alice"]).error_code == 0
        known.sock.sendall((600 * 1024).to_bytes(4, "big"))
        with RawClient(broker) as other:
            for _ in range(50):  # the broker has seen to every connection by then
                assert other.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).api_keys
        known.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            known.sock.recv(1)


def test_a_failed_authentication_gets_a_response_before_the_connection_is_closed(broker: Broker) -> None:
    with RawClient(broker) as stranger:
        began = time.monotonic()
        answered = stranger.log_in("alice", "wrong")
        assert time.monotonic() - began > 0.09  # guessing takes time
        assert answered.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answered.error_message == "Authentication failed: Invalid username or password"
        with pytest.raises(Closed):
            stranger.log_in("alice", PASSWORDS["alice"])


def test_an_unsupported_mechanism_gets_the_list_of_enabled_ones(broker: Broker) -> None:
    with RawClient(broker) as stranger:
        answered = stranger.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert answered.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answered.mechanisms == MECHANISMS
        with pytest.raises(Closed):
            stranger.log_in("alice", PASSWORDS["alice"])


def test_handshake_0_is_followed_by_raw_tokens(broker: Broker) -> None:
    with RawClient(broker) as old:
        assert old.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
        assert old.bare(f"\0alice\0{PASSWORDS['alice']}".encode()) == b""
        assert old.ask(MetadataRequest(topics=None), 1).brokers
    with RawClient(broker) as old:
        old.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0)
        user = ScramClient("sha256", "alice", PASSWORDS["alice"], "nonce")
        assert old.bare(user.final(old.bare(user.first()))) == b"v=" + user.server_signature
        assert old.ask(MetadataRequest(topics=None), 1).brokers
    with RawClient(broker) as old:
        old.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        with pytest.raises(Closed):
            old.bare(b"\0alice\0wrong")


def test_pipelined_requests_after_a_rejected_login_are_harmless(broker: Broker) -> None:
    with RawClient(broker) as hasty:
        hasty.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        hasty.sock.sendall(hasty.connection.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), version=2))
    with RawClient(broker) as stranger:  # refused after the same delay, so after the one that did not wait
        assert stranger.log_in("alice", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    with RawClient(broker) as known:
        assert known.log_in("alice", PASSWORDS["alice"]).error_code == 0


def test_sasl_requests_on_a_plaintext_listener_are_rejected() -> None:
    with Broker(**SMALL) as broker, RawClient(broker) as anybody:
        assert anybody.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert anybody.ask(SaslAuthenticateRequest(), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert anybody.ask(MetadataRequest(topics=None), 12).brokers


def test_sessions_must_be_reauthenticated() -> None:
    with (
        Broker(
            listeners="SASL_PLAINTEXT://127.0.0.1:0", users=PASSWORDS, connections_max_reauth_ms=500_000, **SMALL
        ) as broker,
        RawClient(broker) as lazy,
        RawClient(broker) as keen,
    ):
        assert lazy.log_in("alice", PASSWORDS["alice"]).session_lifetime_ms == 500_000
        keen.log_in("alice", PASSWORDS["alice"])
        broker.advance(300_000)
        assert keen.log_in("alice", PASSWORDS["alice"]).session_lifetime_ms == 500_000
        broker.advance(300_000)
        assert keen.ask(MetadataRequest(topics=None), 12).brokers
        with pytest.raises(Closed):
            lazy.ask(MetadataRequest(topics=None), 12)


def test_users_and_acls_created_by_requests_survive_a_restart(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "users": PASSWORDS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root",
        **SMALL,
    }

    def connection(broker: Broker, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
        return {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }

    entry = AclBinding(
        ResourceType.TOPIC,
        "car",
        ResourcePatternType.PREFIXED,
        "User:carol",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    with Broker(tmp_path, **settings) as broker:
        admin = AdminClient(connection(broker, "root", PASSWORDS["root"]))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 5000)
        made = UserScramCredentialUpsertion("carol", info, b"pw-of-carol")
        for future in admin.alter_user_scram_credentials([made]).values():
            future.result(HANG_S)
        described = admin.describe_user_scram_credentials(["carol"])["carol"].result(HANG_S)
        assert described.scram_credential_infos[0].iterations == 5000
        for future in admin.create_acls([entry]).values():
            future.result(HANG_S)
    with Broker(tmp_path, **settings) as broker:
        carol = connection(broker, "carol", "pw-of-carol")
        works(carol, "cars")
        admin = AdminClient(connection(broker, "root", PASSWORDS["root"]))
        anything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            "User:carol",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        assert admin.describe_acls(anything).result(HANG_S) == [entry]
        [removed] = admin.delete_acls([anything]).values()
        assert removed.result(HANG_S) == [entry]
        with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
            works(carol, "cars")
        gone = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
        for future in admin.alter_user_scram_credentials([gone]).values():
            future.result(HANG_S)
        with pytest.raises(KafkaException, match="not exist"):
            admin.describe_user_scram_credentials(["carol"])["carol"].result(HANG_S)


def test_passwords_are_never_written_to_disk_or_logs(
    files: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the log at any level, in no repr, in no file: good and bad logins, broken tokens, requests that fail."""
    caplog.set_level(logging.DEBUG)
    with Broker(
        tmp_path,
        listeners="SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        users=PASSWORDS,
        keep_requests=1000,
        **tls(files, ssl_key_password="pw-of-a-key"),
        **SMALL,
    ) as broker:
        settings = client(broker, files, "PLAIN", False, PASSWORDS["alice"])
        works(settings)
        admin = AdminClient(settings)
        made = UserScramCredentialUpsertion(
            "carol", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"pw-of-carol"
        )
        for future in admin.alter_user_scram_credentials([made]).values():
            future.result(HANG_S)
        for token in (b"\0alice\0pw-of-a-guess", b"pw-of-a-guess", b"\0\0pw-of-a-guess", b"\xff\0alice\0pw-of-a-guess"):
            with RawClient(broker) as stranger:
                stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                assert stranger.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code
        with RawClient(broker) as stranger:
            stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            broken = SaslAuthenticateRequest(auth_bytes=b"\0alice\0pw-of-a-guess").encode(version=0)[:-3]
            header = b"\x00\x24\x00\x00\x00\x00\x00\x07\xff\xff"
            stranger.sock.sendall((len(header) + len(broken)).to_bytes(4, "big") + header + broken)
            with pytest.raises(Closed):
                stranger.bare(b"")
        with RawClient(broker) as known:
            known.log_in("alice", PASSWORDS["alice"])
            resource = DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=4, resource_name="1", configuration_keys=None
            )
            configs = known.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
            assert "ssl.key.password" in repr(configs)
        shown = broker.call(
            lambda node: repr(
                [
                    vars(node),
                    node.settings,
                    vars(node.security),
                    vars(node.security.credentials),
                    node.security.credentials.scram("carol", Mechanism.SHA_512),
                ]
            )
        )
    texts = [
        shown,
        repr(configs),
        repr(broker.settings),
        *(record.getMessage() for record in caplog.records),
        caplog.text,
    ]
    assert len(caplog.records) > 5
    for text in texts:
        assert "pw-of" not in text
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"pw-of" not in path.read_bytes(), path


def test_an_unauthenticated_connection_is_anonymous() -> None:
    with Broker(acls=True, allow_everyone_if_no_acl_found=True, super_users=ANONYMOUS, **SMALL) as broker:
        works({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
