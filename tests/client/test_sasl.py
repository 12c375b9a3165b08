"""The examples of the RFCs, and invalid challenges of brokers."""

from __future__ import annotations

import pytest

from kwire.client.sasl import start
from kwire.errors import BrokerError, Malformed

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain_is_one_token() -> None:
    exchange = start("PLAIN", "alice", "wonderland")
    assert next(exchange) == b"\0alice\0wonderland"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_scram_matches_the_example_of_the_rfc() -> None:
    exchange = start("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(CHALLENGE) == FINAL
    with pytest.raises(StopIteration):
        exchange.send(PROOF)


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not continue ours"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not continue ours"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "SCRAM iterations are 1;"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "SCRAM iterations are 4095;"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2000000000", "SCRAM iterations are 2000000000;"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=*,i=4096", "lacks nonce, salt or iterations"),
        (b"", "lacks nonce, salt or iterations"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_an_invalid_challenge_is_an_error(challenge: bytes, message: str) -> None:
    exchange = start("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    next(exchange)
    with pytest.raises(Malformed, match=message):
        exchange.send(challenge)


@pytest.mark.parametrize(
    ("verdict", "message"), [(b"v=AAAA", "cannot prove"), (b"e=invalid-proof", "invalid-proof"), (b"", "prove")]
)
def test_a_broker_that_does_not_prove_the_password_is_an_error(verdict: bytes, message: str) -> None:
    exchange = start("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    next(exchange)
    exchange.send(CHALLENGE)
    with pytest.raises(BrokerError, match=message):
        exchange.send(verdict)


def test_names_with_commas_are_escaped() -> None:
    assert next(start("SCRAM-SHA-512", "a,b=c", "x", nonce="n")) == b"n,,n=a=2Cb=3Dc,r=n"


def test_the_iterations_of_scram_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.client.sasl.MAX_ITERATIONS", 4097)
    for iterations, is_accepted in ((4096, True), (4097, True), (4098, False)):
        exchange = start("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
        next(exchange)
        challenge = CHALLENGE.replace(b"i=4096", b"i=%d" % iterations)
        if is_accepted:
            assert b",p=" in exchange.send(challenge)
        else:
            with pytest.raises(Malformed, match="SCRAM iterations are 4098; 4096 to 4097 are accepted"):
                exchange.send(challenge)
