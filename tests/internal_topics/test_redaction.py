"""Configs and fields that are redacted."""

from __future__ import annotations

import pytest

from kwire.internal_topics.redaction import redacted
from kwire.protocol import HIDDEN, is_secret_setting

SECRET = [
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "sasl.jaas.config",
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
    "listener.name.external.ssl.keystore.password",
    "delegation.token.secret.key",
    "delegation.token.master.key",
    "password.encoder.secret",
    "password.encoder.old.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "my.plugin.database.password",
]
PLAIN = [
    "segment.bytes",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "password.encoder.iterations",
    "password.encoder.cipher.algorithm",
    "delegation.token.max.lifetime.ms",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.assertion.private.key.file",
    "log.cleaner.threads",
    "unclean.leader.election.enable",
]


@pytest.mark.parametrize("name", SECRET)
def test_secret_configs_are_redacted(name: str) -> None:
    assert is_secret_setting(name)
    assert redacted("ConfigRecord", {"name": name, "value": "x"}) == {"name": name, "value": HIDDEN}
    assert redacted("ConfigRecord", {"name": name, "value": None}) == {"name": name, "value": None}


@pytest.mark.parametrize("name", PLAIN)
def test_configs_without_secrets_are_unchanged(name: str) -> None:
    assert not is_secret_setting(name)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("UserScramCredentialRecord", ["salt", "storedKey", "serverKey"]),
        ("DelegationTokenRecord", ["tokenId"]),
        ("RemoveDelegationTokenRecord", ["tokenId"]),
    ],
)
def test_secret_fields_are_redacted(kind: str, names: list[str]) -> None:
    assert redacted(kind, dict.fromkeys([*names, "name"], "x")) == dict.fromkeys(names, HIDDEN) | {"name": "x"}


def test_other_records_are_unchanged() -> None:
    assert redacted("TopicRecord", {"name": "secret"}) == {"name": "secret"}
