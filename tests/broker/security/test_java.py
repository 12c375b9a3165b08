"""Kafka's own clients authenticate; a real Kafka reads our ACLs, users and quotas, and we read them back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tools import kafka

from kwire import messages as m
from kwire.broker import Broker
from kwire.broker.context import ANONYMOUS
from kwire.client import Client
from kwire.client.oauthbearer import unsecured_token
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.raw_client import RawClient
from tests.broker.security.test_clients import SMALL
from tests.broker.security.test_credentials import upsertion
from tests.waiting import HANG_S

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "LoginPeer.java"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@pytest.mark.parametrize(("client", "mechanism"), [("3.9.1", "SCRAM-SHA-512"), ("4.4.0", "PLAIN")])
def test_kafkas_client_reauthenticates(client: str, mechanism: str) -> None:
    classes = kafka.compile_java(PEER, version=client)
    with Broker(
        listeners="SASL_PLAINTEXT://127.0.0.1:0", users={"alice": "secret"}, connections_max_reauth_ms=600, **SMALL
    ) as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{MODULES[mechanism]} required username="alice" password="secret";',
        }
        arguments = [f"{key}={value}" for key, value in settings.items()]
        out = kafka.java("LoginPeer", "240", *arguments, version=client, classes=classes)
    assert out.strip() == "logged in again: true"


OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_kafkas_client_reauthenticates_with_tokens(version: str) -> None:
    classes = kafka.compile_java(PEER, version=version)
    with Broker(
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        sasl_enabled_mechanisms="OAUTHBEARER",
        connections_max_reauth_ms=600,
        **SMALL,
    ) as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{OAUTHBEARER} unsecuredLoginStringClaim_sub="alice";',
        }
        arguments = [f"{key}={value}" for key, value in settings.items()]
        out = kafka.java("LoginPeer", "240", *arguments, version=version, classes=classes)
    assert out.strip() == "logged in again: true"


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_our_client_authenticates_to_a_real_kafka_with_tokens(version: str, tmp_path: Path) -> None:
    settings: dict[str, str | int] = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.plaintext.oauthbearer.sasl.jaas.config": f'{OAUTHBEARER} unsecuredLoginStringClaim_sub="b";',
    }
    with kafka.KafkaBroker(tmp_path, version=version, **settings) as broker:
        base = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}

        def brokers(**given: Any) -> int:
            with Client(broker.bootstrap_servers, **base, **given) as client:
                return len(client.metadata([]).brokers)

        jaas = f'{OAUTHBEARER} unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_pool="p";'
        assert brokers(**{"sasl.jaas.config": jaas}) == 1
        path = tmp_path / "token"
        for claims, is_valid in (({"sub": "a", "exp": time.time() + 600}, True), ({"sub": "a", "exp": 1}, False)):
            path.write_text(unsecured_token(claims))
            if is_valid:
                assert brokers(**{"sasl.oauthbearer.token.endpoint.url": path.as_uri()}) == 1
            else:
                with pytest.raises(BrokerError, match=r"refused the token .*invalid_token"):
                    brokers(**{"sasl.oauthbearer.token.endpoint.url": path.as_uri()})


def entry(name: str) -> Any:
    return m.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name=name, principal="User:a", host="*", operation=3, permission_type=3
    )


def test_a_real_kafka_reads_our_acls_users_and_quotas_and_we_read_them_back(tmp_path: Path) -> None:
    everything = m.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    quotas = m.DescribeClientQuotasRequest()

    def names(client: RawClient) -> list[str]:
        return sorted(each.resource_name for each in client.ask(everything, 3).resources)

    def users(client: RawClient) -> dict[str, list[int]]:
        found = client.ask(m.DescribeUserScramCredentialsRequest(users=None), 0).results
        return {each.user: [info.iterations for info in each.credential_infos] for each in found}

    def rates(client: RawClient) -> dict[Any, float]:
        return {each.entity[0].entity_name: each.values[0].value for each in client.ask(quotas, 1).entries}

    def alter(client: RawClient, user: str, rate: float) -> None:
        added = m.AlterUserScramCredentialsRequest(upsertions=[upsertion(user, "secret", iterations=5000)])
        assert client.ask(added, 0).results[0].error_code == ErrorCode.NONE
        assert client.ask(m.CreateAclsRequest(creations=[entry(user)]), 3).results[0].error_code == ErrorCode.NONE
        quota = m.AlterClientQuotasRequest(
            entries=[
                m.AlterClientQuotasRequest.EntryData(
                    entity=[m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name=user)],
                    ops=[m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=rate)],
                )
            ]
        )
        assert client.ask(quota, 1).entries[0].error_code == ErrorCode.NONE

    ours = {"acls": True, "super_users": ANONYMOUS, **SMALL}
    with Broker(tmp_path / "data", **ours) as broker, RawClient(broker) as client:
        alter(client, "one", 1000)
    with kafka.KafkaBroker(tmp_path, **{"authorizer.class.name": AUTHORIZER, "super.users": ANONYMOUS}) as real:
        ready = confluent_kafka.Producer({"bootstrap.servers": real.bootstrap_servers})
        assert ready.list_topics(timeout=HANG_S).brokers
        with RawClient(real) as client:  # type: ignore[arg-type]
            assert (names(client), users(client), rates(client)) == (["one"], {"one": [5000]}, {"one": 1000})
            alter(client, "two", 2000)
            gone = m.AlterUserScramCredentialsRequest(
                deletions=[m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="one", mechanism=1)]
            )
            assert client.ask(gone, 0).results[0].error_code == ErrorCode.NONE
    with Broker(tmp_path / "data", **ours) as broker, RawClient(broker) as client:
        assert names(client) == ["one", "two"]
        assert users(client) == {"two": [5000]}
        assert rates(client) == {"one": 1000, "two": 2000}
