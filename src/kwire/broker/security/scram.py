"""The server side of SCRAM: both sides prove that they know the password without sending it.

    client-first   gs2-header "," n=user "," r=client nonce
    server-first   r=both nonces "," s=salt "," i=iterations
    client-final   c=gs2-header in base64 "," r=both nonces "," p=proof
    server-final   v=signature

The stored salt, iterations and two keys do not let anyone log in as the user. Channel binding is rejected (a gs2-header
of y or p), and so is its claim in the client's last message, which Kafka does not check.

With the extension tokenauth=true the user name is the id of a delegation token, and the token's owner logs in.

An unknown user gets the same messages as a known one, with a constant salt for each name, and fails at the proof:
neither messages nor timing reveal which users exist. Kafka fails at the name instead.

Source: RFC 5802, RFC 7677; org.apache.kafka.common.security.scram.internals.ScramSaslServer, ScramMessages.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

from kwire.broker.security.errors import AuthenticationFailed
from kwire.internal_topics.cluster_state import DelegationToken, ScramCredential
from kwire.internal_topics.enums import ScramMechanism

__all__ = [
    "MAX_ITERATIONS",
    "MIN_ITERATIONS",
    "ScramServer",
    "keys_of",
    "new_credential",
]

MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
NONCE_BYTES = 24
TOKEN_EXTENSION = "tokenauth=true"

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"  # all but comma
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<binding>[a-zA-Z0-9/+=]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>[a-zA-Z0-9/+=]+)"
)


def new_credential(mechanism: ScramMechanism, password: str, *, iterations: int = MIN_ITERATIONS) -> ScramCredential:
    """Return the credential of a password, with a random salt."""
    salt = secrets.token_bytes(NONCE_BYTES)
    salted = hashlib.pbkdf2_hmac(mechanism.algorithm, password.encode(), salt, iterations)
    stored_key, server_key = keys_of(mechanism, salted)
    return ScramCredential(salt=salt, iterations=iterations, stored_key=stored_key, server_key=server_key)


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> tuple[bytes, bytes]:
    """Return (stored key, server key)."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.algorithm)
    return (
        hashlib.new(mechanism.algorithm, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", mechanism.algorithm),
    )


class ScramServer:
    """One authentication.

    find: returns the credential of a user, None for an unknown one. find_token: returns the token and credential of a
    delegation token, None for an unknown one. pepper: makes salts for unknown users; constant while the server runs.
    nonce: the server's, random by default.
    """

    is_refusal = False

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], ScramCredential | None],
        pepper: bytes,
        nonce: str | None = None,
        find_token: Callable[[str], tuple[DelegationToken, ScramCredential] | None] = lambda token_id: None,
    ) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.is_token_authenticated = False
        self._find_token = find_token
        self._mechanism, self._find, self._pepper = mechanism, find, pepper
        self._own_nonce = nonce or secrets.token_urlsafe(NONCE_BYTES)
        self._name = self._owner = self._header = self._first = self._nonce = ""
        self._credential: ScramCredential | None = None

    def step(self, message: bytes) -> bytes:
        """Process a message and return the response; `user` is set after the last. Raises AuthenticationFailed."""
        try:
            text = message.decode("ascii")
        except UnicodeDecodeError:
            text = ""  # names in other letters are not for SCRAM, as in Kafka
        return self._take_final(text) if self._first else self._take_first(text)

    def _take_first(self, text: str) -> bytes:
        match = CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise AuthenticationFailed()
        self._name = unescape(match["name"])
        if match["authzid"] is not None and unescape(match["authzid"]) != self._name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if TOKEN_EXTENSION in match["bare"].split(",")[2:]:
            token, credential = self._find_token(self._name) or (None, None)
            if token is not None:
                self.is_token_authenticated, self.expires_at_ms = True, token.expiration_timestamp
                self._owner = token.owner.partition(":")[2]
        else:
            credential = self._find(self._name)
        self._credential = credential or self._unknown_user()
        self._header = match["header"]
        self._nonce = match["nonce"] + self._own_nonce
        salt = base64.b64encode(self._credential.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._first = f"{match['bare']},{server_first}"
        return server_first.encode()

    def _take_final(self, text: str) -> bytes:
        credential, self._credential = self._credential, None
        match = CLIENT_FINAL.fullmatch(text)
        if match is None or credential is None or match["nonce"] != self._nonce:
            raise AuthenticationFailed()
        binding, proof = from_base64(match["binding"]), from_base64(match["proof"])
        if binding != self._header.encode() or len(proof) != len(credential.stored_key):
            raise AuthenticationFailed()
        algorithm = self._mechanism.algorithm
        signed = f"{self._first},{match['bare']}".encode()
        signature = hmac.digest(credential.stored_key, signed, algorithm)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(algorithm, client_key).digest(), credential.stored_key):
            raise AuthenticationFailed()
        self.user = self._owner if self.is_token_authenticated else self._name
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, algorithm))

    def _unknown_user(self) -> ScramCredential:
        """Return a credential that no password matches, with the same salt each time for a name."""
        salt = hmac.digest(self._pepper, self._name.encode(), "sha256")[:NONCE_BYTES]
        key = secrets.token_bytes(hashlib.new(self._mechanism.algorithm).digest_size)
        return ScramCredential(salt=salt, iterations=MIN_ITERATIONS, stored_key=key, server_key=key)


def unescape(name: str) -> str:
    """Decode a SCRAM user name: `=2C` is a comma, `=3D` an equals sign (RFC 5802)."""
    return name.replace("=2C", ",").replace("=3D", "=")


def from_base64(text: str) -> bytes:
    """Decode base64. Raises AuthenticationFailed."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed() from None
