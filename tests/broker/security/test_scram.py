"""SCRAM: the RFC's example, every client error, and what an unauthenticated client can learn."""

from __future__ import annotations

import base64
import hashlib

import pytest

from kwire.broker.security.errors import AuthenticationFailed
from kwire.broker.security.scram import MIN_ITERATIONS, ScramServer, keys_of, new_credential
from kwire.internal_topics.cluster_state import ScramCredential
from kwire.internal_topics.enums import ScramMechanism
from tests.broker.security.scram_client import ScramClient

SHA_256 = ScramMechanism.SHA_256
PEPPER = b"pepper"
PENCIL = {mechanism: new_credential(mechanism, "pencil") for mechanism in ScramMechanism}


def server(mechanism: ScramMechanism = SHA_256) -> ScramServer:
    """A SCRAM server with the user `user`, whose password is pencil."""
    return ScramServer(mechanism, lambda name: PENCIL[mechanism] if name in ("user", "a,b=c") else None, PEPPER)


def client(password: str = "pencil", **values: str) -> ScramClient:
    return ScramClient(**{"algorithm": "sha256", "user": "user", "password": password, "nonce": "abc", **values})


def test_the_exchange_of_rfc_7677_is_reproduced_byte_for_byte() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    stored_key, server_key = keys_of(SHA_256, hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096))
    credential = ScramCredential(salt=salt, iterations=4096, stored_key=stored_key, server_key=server_key)
    scram = ScramServer(SHA_256, {"user": credential}.get, PEPPER, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = scram.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = scram.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert scram.user == "user"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("name", ["user", "a=2Cb=3Dc"])
@pytest.mark.parametrize("header", ["n,,", "n,a=NAME,"])
def test_the_right_password_authenticates(mechanism: ScramMechanism, name: str, header: str) -> None:
    scram = server(mechanism)
    user = client(algorithm=mechanism.algorithm, user=name, header=header.replace("NAME", name))
    response = scram.step(user.final(scram.step(user.first())))
    assert response == b"v=" + user.server_signature
    assert scram.user == name.replace("=2C", ",").replace("=3D", "=")


@pytest.mark.parametrize(
    "first",
    [
        b"y,,n=user,r=abc",  # the client could bind to the channel
        b"p=tls-unique,,n=user,r=abc",  # it wants to
        b"n,,m=x,n=user,r=abc",  # an extension that must be understood
        b"n,a=other,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user",
        b"n,,n=us\xc3\xa9r,r=abc",
        b"",
        b"\x00" * 50,
    ],
)
def test_an_invalid_first_message_fails_authentication(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server().step(first)


def test_unknown_extensions_are_ignored() -> None:
    scram, user = server(), client()
    user.bare += ",x=1"
    scram.step(user.final(scram.step(user.first())))
    assert scram.user == "user"


@pytest.mark.parametrize("binding", ["y,,", "n,a=user,", "p=tls-unique,,data"])
def test_channel_binding_in_the_final_message_fails_authentication(binding: str) -> None:
    scram, user = server(), client()
    with pytest.raises(AuthenticationFailed):
        scram.step(user.final(scram.step(user.first()), binding=binding))
    assert scram.user is None


@pytest.mark.parametrize("change", [("r=abc", "r=abd"), (",p=", ",p=A"), ("c=biws", "c=!iws"), (",p=", ",q=")])
def test_a_changed_final_message_fails_authentication(change: tuple[str, str]) -> None:
    scram, user = server(), client()
    message = user.final(scram.step(user.first())).decode().replace(*change).encode()
    with pytest.raises(AuthenticationFailed):
        scram.step(message)
    assert scram.user is None


def test_a_failed_exchange_cannot_be_retried() -> None:
    scram, wrong, right = server(), client("pen"), client()
    first = scram.step(wrong.first())
    with pytest.raises(AuthenticationFailed):
        scram.step(wrong.final(first))
    with pytest.raises(AuthenticationFailed):
        scram.step(right.final(first))


def test_an_unknown_user_is_indistinguishable_from_a_known_one() -> None:
    salts = []
    for _ in range(2):
        scram, stranger = server(), client(user="nobody")
        first = scram.step(stranger.first()).decode()
        salts.append(first.partition(",s=")[2])
        assert first.endswith(f",i={MIN_ITERATIONS}")
        assert len(first) == len(server().step(client().first()))
        with pytest.raises(AuthenticationFailed) as unknown:
            scram.step(stranger.final(first.encode()))
    assert salts[0] == salts[1]  # repeated requests get the same salt
    scram, wrong = server(), client("pen")
    with pytest.raises(AuthenticationFailed) as known:
        scram.step(wrong.final(scram.step(wrong.first())))
    assert str(unknown.value) == str(known.value)


def test_the_repr_of_a_credential_hides_its_keys() -> None:
    text = repr(PENCIL[SHA_256])
    assert "iterations=4096" in text
    for secret in (PENCIL[SHA_256].stored_key, PENCIL[SHA_256].server_key, PENCIL[SHA_256].salt):
        assert repr(secret) not in text
        assert secret.hex() not in text
