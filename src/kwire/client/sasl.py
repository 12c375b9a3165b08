"""The client side of SASL PLAIN, SCRAM and OAUTHBEARER, without sockets: tokens in, tokens out.

    exchange = start("SCRAM-SHA-256", "alice", "secret")
    token = next(exchange)                       the first token to send
    token = exchange.send(challenge)             StopIteration: authentication is complete

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

__all__ = ["oauthbearer", "parse", "start"]

SASL_AUTHENTICATION_FAILED = 58
MAX_ITERATIONS = 1_000_000  # a broker cannot keep a client busy for minutes


def start(
    mechanism: str, username: str, password: str, *, is_token: bool = False, nonce: str | None = None
) -> Generator[bytes, bytes, None]:
    """Start an authentication; yields the tokens to send.

    is_token: whether user and password are id and HMAC of a delegation token (SCRAM only). nonce: for tests, by default
    random.

    Raises Malformed for challenges that are not SCRAM, BrokerError if the broker refused the credentials or cannot
    prove that it knows the password.
    """
    if mechanism == "PLAIN":
        return plain(username, password)
    return scram(
        mechanism.removeprefix("SCRAM-").replace("-", "").lower(), username, password, nonce, is_token=is_token
    )


def plain(username: str, password: str) -> Generator[bytes, bytes, None]:
    """Authenticate with one token: authorization identity (empty), name, password."""
    yield f"\0{username}\0{password}".encode()


def oauthbearer(token: str, extensions: Mapping[str, str]) -> Generator[bytes, bytes, None]:
    """Authenticate with one token; acknowledge the broker's reason if it refuses the token (RFC 7628, 3.2.3)."""
    refused = yield initial_response(token, extensions)
    if not refused:
        return
    reason = refused[:200].decode("utf-8", "replace")
    try:
        yield b"\x01"
    except BrokerError as error:
        raise BrokerError(f"the broker refused the token ({reason}): {error.what}", error.code) from None
    raise BrokerError(f"the broker refused the token: {reason}", SASL_AUTHENTICATION_FAILED)


def scram(
    digest: str, username: str, password: str, nonce: str | None, *, is_token: bool = False
) -> Generator[bytes, bytes, None]:
    """Authenticate with two tokens and verify the broker's signature. digest: sha256 or sha512."""
    ours = nonce or base64.b64encode(os.urandom(24)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={ours}{',tokenauth=true' if is_token else ''}"
    challenge = yield f"n,,{first}".encode()
    fields = parse(challenge)
    try:
        salt, iterations, both = base64.b64decode(fields["s"], validate=True), int(fields["i"]), fields["r"]
    except (KeyError, ValueError, binascii.Error):
        raise Malformed("the broker's SCRAM challenge lacks nonce, salt or iterations", 0) from None
    if not both.startswith(ours) or len(both) == len(ours):
        raise Malformed("the broker's SCRAM nonce does not continue ours", 0)
    if not 4096 <= iterations <= MAX_ITERATIONS:
        raise Malformed(f"the broker's SCRAM iterations are {iterations}; 4096 to {MAX_ITERATIONS} are accepted", 0)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    final = f"c=biws,r={both}"  # biws: n,, in base64
    message = f"{first},{challenge.decode()},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verdict = parse((yield f"{final},p={base64.b64encode(proof).decode()}".encode()))
    if "e" in verdict:
        raise BrokerError(f"the broker refused the credentials: {verdict['e'][:100]}", SASL_AUTHENTICATION_FAILED)
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(verdict.get("v", "").encode(), base64.b64encode(expected)):
        raise BrokerError("the broker cannot prove that it knows the password", SASL_AUTHENTICATION_FAILED)


def parse(token: bytes) -> dict[str, str]:
    """Parse the fields of a SCRAM message, `r=...,s=...,i=...`. Raises Malformed."""
    try:
        pairs = [part.partition("=") for part in token.decode().split(",")]
    except UnicodeDecodeError as error:
        raise Malformed("the broker's SCRAM message is not UTF-8", error.start) from None
    return {name: value for name, _, value in pairs}
