"""The client side of SCRAM, implemented from RFC 5802 alone."""

from __future__ import annotations

import base64
import hashlib
import hmac


class ScramClient:
    """One authentication. algorithm: sha256 or sha512."""

    def __init__(self, algorithm: str, user: str, password: str, nonce: str, header: str = "n,,") -> None:
        self.algorithm, self.password, self.header = algorithm, password, header
        self.bare = f"n={user},r={nonce}"
        self.server_signature = b""

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, server_first: bytes, *, binding: str | None = None) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        channel = base64.b64encode((binding or self.header).encode()).decode()
        bare = f"c={channel},r={fields['r']}"
        signed = f"{self.bare},{server_first.decode()},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(self.algorithm, self.password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self.algorithm)
        stored_key = hashlib.new(self.algorithm, client_key).digest()
        signature = hmac.digest(stored_key, signed, self.algorithm)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        server_key = hmac.digest(salted, b"Server Key", self.algorithm)
        self.server_signature = base64.b64encode(hmac.digest(server_key, signed, self.algorithm))
        return f"{bare},p={proof}".encode()
