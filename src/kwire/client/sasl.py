"""The client's side of SASL PLAIN, SCRAM and OAUTHBEARER, without sockets: tokens in, tokens out.

    exchange = start("SCRAM-SHA-256", "alice", "secret")
    token = next(exchange)                       the first token to send
    token = exchange.send(answer)                StopIteration: the broker has proved itself, nothing more to send

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), without channel binding, RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Generator, Mapping

from kwire.client.oauthbearer import initial_response
from kwire.errors import BrokerError, Malformed

__all__ = ["oauthbearer", "start"]

SASL_AUTHENTICATION_FAILED = 58
MAX_ITERATIONS = 1_000_000  # a broker must not keep a client busy for minutes


def start(mechanism: str, username: str, password: str, *, nonce: str | None = None) -> Generator[bytes, bytes, None]:
    """The tokens of one authentication. nonce: for tests; else drawn.

    Raises Malformed for answers that are no SCRAM, BrokerError where the broker refuses or cannot prove that it knows
    the password.
    """
    if mechanism == "PLAIN":
        return plain(username, password)
    return scram(mechanism.removeprefix("SCRAM-").replace("-", "").lower(), username, password, nonce)


def plain(username: str, password: str) -> Generator[bytes, bytes, None]:
    """One token: authorization identity (none), name, password."""
    yield f"\0{username}\0{password}".encode()


def oauthbearer(token: str, extensions: Mapping[str, str]) -> Generator[bytes, bytes, None]:
    """One token; where the broker refuses it, its reason is acknowledged and the broker ends the authentication."""
    refused = yield initial_response(token, extensions)
    if not refused:
        return
    said = refused[:200].decode("utf-8", "replace")
    try:
        yield b"\x01"
    except BrokerError as error:
        raise BrokerError(f"the broker refuses the token ({said}): {error.what}", error.code) from None
    raise BrokerError(f"the broker refuses the token: {said}", SASL_AUTHENTICATION_FAILED)


def scram(digest: str, username: str, password: str, nonce: str | None) -> Generator[bytes, bytes, None]:
    """Two tokens; the broker's last answer proves that it knows the password too. digest: sha256 or sha512."""
    ours = nonce or base64.b64encode(os.urandom(24)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={ours}"
    challenge = yield f"n,,{first}".encode()
    fields = parse(challenge)
    try:
        salt, iterations, both = base64.b64decode(fields["s"], validate=True), int(fields["i"]), fields["r"]
    except (KeyError, ValueError, binascii.Error):
        raise Malformed("the broker's SCRAM challenge lacks nonce, salt or iterations", 0) from None
    if not both.startswith(ours) or len(both) == len(ours):
        raise Malformed("the broker's SCRAM nonce does not continue ours", 0)
    if not 4096 <= iterations <= MAX_ITERATIONS:
        raise Malformed(f"the broker asks for {iterations} SCRAM iterations; 4096 to {MAX_ITERATIONS} are accepted", 0)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    final = f"c=biws,r={both}"  # biws: n,, in base64
    message = f"{first},{challenge.decode()},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verdict = parse((yield f"{final},p={base64.b64encode(proof).decode()}".encode()))
    if "e" in verdict:
        raise BrokerError(f"the broker refuses the credentials: {verdict['e'][:100]}", SASL_AUTHENTICATION_FAILED)
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(verdict.get("v", "").encode(), base64.b64encode(expected)):
        raise BrokerError("the broker cannot prove that it knows the password", SASL_AUTHENTICATION_FAILED)


def parse(token: bytes) -> dict[str, str]:
    """The fields of a SCRAM message, `r=...,s=...,i=...`. Raises Malformed."""
    try:
        pairs = [part.partition("=") for part in token.decode().split(",")]
    except UnicodeDecodeError as error:
        raise Malformed("a SCRAM message is text", error.start) from None
    return {name: value for name, _, value in pairs}
