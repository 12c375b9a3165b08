"""Configured users, and SCRAM credentials that are altered while the broker runs."""

from __future__ import annotations

import hashlib

import pytest

from kwire.broker.configs.given import parse_settings
from kwire.broker.configs.secret_values import Secret, Users
from kwire.broker.security import Credentials
from kwire.broker.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramServer
from kwire.errors import BrokerError, OptionError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.enums import ScramMechanism
from kwire.internal_topics.metadata_records import metadata_record
from kwire.messages import AlterUserScramCredentialsRequest
from kwire.messages.base import Message
from kwire.protocol import HIDDEN, read_metadata_record, write_metadata_record
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.scram_client import ScramClient

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def credentials(cluster: ClusterState | None = None) -> Credentials:
    cluster = cluster or ClusterState()
    return Credentials(
        cluster,
        lambda records: [cluster.apply(metadata_record(*each)) for each in records],
        Users({"alice": "secret"}),
        [SHA_256],
    )


def upsertion(name: str, password: str, mechanism: int = SHA_256, iterations: int = MIN_ITERATIONS) -> Upsertion:
    """Return a credential as kafka-configs.sh sends it, with the salted password."""
    salted = hashlib.pbkdf2_hmac("sha512" if mechanism == SHA_512 else "sha256", password.encode(), b"salt", iterations)
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted)


def logs_in(known: Credentials, user: str, password: str, mechanism: ScramMechanism = SHA_256) -> bool:
    server = ScramServer(mechanism, lambda name: known.scram(name, mechanism), b"pepper")
    client = ScramClient(mechanism.algorithm, user, password, "nonce")
    try:
        server.step(client.final(server.step(client.first())))
    except BrokerError:
        return False
    return server.user == user


def test_configured_users_authenticate_with_the_enabled_mechanisms() -> None:
    known = credentials()
    assert known.password("alice") == "secret"
    assert known.password("bob") is None
    assert logs_in(known, "alice", "secret")
    assert not logs_in(known, "alice", "wrong")
    assert not logs_in(known, "alice", "secret", SHA_512)
    assert known.iterations() == {"alice": {SHA_256: MIN_ITERATIONS}}


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_credential_is_created_replaced_and_deleted(mechanism: ScramMechanism) -> None:
    known = credentials()
    assert known.alter([], [upsertion("bob", "one", mechanism, 5000)]) == {"bob": None}
    assert logs_in(known, "bob", "one", mechanism)
    assert known.password("bob") is None  # PLAIN needs the password, which nobody has
    assert known.iterations()["bob"] == {mechanism: 5000}
    known.alter([], [upsertion("bob", "two", mechanism)])
    assert (logs_in(known, "bob", "one", mechanism), logs_in(known, "bob", "two", mechanism)) == (False, True)
    assert known.alter([Deletion(name="bob", mechanism=mechanism)], []) == {"bob": None}
    assert not logs_in(known, "bob", "two", mechanism)


def test_stored_credentials_override_configured_ones_until_deleted() -> None:
    known = credentials()
    known.alter([], [upsertion("alice", "other")])
    assert (logs_in(known, "alice", "secret"), logs_in(known, "alice", "other")) == (False, True)
    known.alter([Deletion(name="alice", mechanism=SHA_256)], [])
    assert logs_in(known, "alice", "secret")


def test_credentials_are_restored_from_their_records() -> None:
    cluster, later = ClusterState(), ClusterState()
    written: list[tuple[Message, int]] = []

    def commit(records: list[tuple[Message, int]]) -> None:
        written.extend(records)
        for record, version in records:
            cluster.apply(metadata_record(record, version))

    Credentials(cluster, commit, Users(), []).alter([], [upsertion("bob", "one")])
    for record, version in written:
        later.apply(metadata_record(*read_metadata_record(write_metadata_record(record, version))))
    assert logs_in(credentials(later), "bob", "one")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion("", "x"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", "x", iterations=MIN_ITERATIONS - 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", "x", iterations=MAX_ITERATIONS + 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bob", "x", mechanism=9), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (Deletion(name="bob", mechanism=SHA_256), ErrorCode.RESOURCE_NOT_FOUND),
        (Deletion(name="bob", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_invalid_credentials_are_rejected_per_user(change: Upsertion | Deletion, code: ErrorCode) -> None:
    known = credentials()
    is_deletion = isinstance(change, Deletion)
    outcome = known.alter(
        [change] if is_deletion else [], [upsertion("carol", "x"), *([] if is_deletion else [change])]
    )
    error = outcome[change.name]
    assert error is not None
    assert error.code == code
    assert outcome["carol"] is None
    assert logs_in(known, "carol", "x")


def test_a_duplicate_user_in_a_request_is_rejected() -> None:
    known = credentials()
    known.alter([], [upsertion("bob", "one")])
    for deletions, upsertions in (
        ([], [upsertion("bob", "x"), upsertion("bob", "y", SHA_512)]),
        ([Deletion(name="bob", mechanism=SHA_256)], [upsertion("bob", "x")]),
        ([Deletion(name="bob", mechanism=SHA_256)] * 2, []),
    ):
        error = known.alter(deletions, upsertions)["bob"]
        assert error is not None
        assert error.code == ErrorCode.DUPLICATE_RESOURCE
        assert logs_in(known, "bob", "one")


def test_secret_configs_are_hidden() -> None:
    settings = parse_settings({"users": {"alice": "s3cret"}, "ssl.key.password": "hush"})
    text = f"{settings!r} {settings} {settings.users} {settings.ssl_key_password}"
    assert "s3cret" not in text
    assert "hush" not in text
    assert HIDDEN in text
    assert (settings.users["alice"], settings.ssl_key_password.text) == ("s3cret", "hush")


@pytest.mark.parametrize("wrong", ["alice:s3cret", {"alice": ""}, {"": "s3cret"}, {"alice": b"s3cret"}, ["s3cret"]])
def test_errors_of_secret_configs_hide_their_values(wrong: object) -> None:
    with pytest.raises(OptionError) as caught:
        parse_settings({"users": wrong})
    assert "s3cret" not in str(caught.value)
    with pytest.raises(OptionError) as caught:
        parse_settings({"ssl_key_password": [b"s3cret"]})
    assert "s3cret" not in str(caught.value)


def test_secrets_are_equal_if_their_values_are() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Users({"a": "x"}) == {"a": "x"}
    assert not Secret()
