"""Encrypted segments of tiered storage: each has an AES-256 key, wrapped with RSA; chunks and indexes use AES-GCM.

    chunk    12 bytes IV | ciphertext | 16 bytes tag, with the manifest's aad as additional data
    key      RSA-OAEP with SHA3-512, MGF1 with SHA3-512, no label

OpenSSL does not support OAEP with SHA-3, so the padding is decoded here. Requires `cryptography` (extra `encryption`),
which is imported when an encrypted segment is read.
Source: Aiven-Open/tiered-storage-for-apache-kafka 1.0.0, AesEncryptionProvider, RsaEncryptionProvider; RFC 8017, 7.1.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.errors import LogError, OptionError
from kwire.extras import needing
from kwire.storage.tiered.manifest import Encryption

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers

IV_BYTES, TAG_BYTES = 12, 16
OVERHEAD_BYTES = IV_BYTES + TAG_BYTES
HASH_BYTES = 64
AES_KEY_BYTES = 32

Decrypt = Callable[[bytes], bytes]


class KeyRing:
    """RSA private keys that unwrap the segments' keys, by key id; PEM files are read on first use."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """files: key id -> path of a PEM file without a pass phrase."""
        self._files = dict(files)
        self._keys: dict[str, RSAPrivateNumbers] = {}

    def decryptor(self, encryption: Encryption, url: str) -> Decrypt:
        """Return a function that decrypts a stored chunk and raises ValueError when authentication fails.

        url: the manifest's, for errors. Raises LogError for a missing or wrong key, OptionError for an unusable PEM
        file.
        """
        with needing(f"{url}: encrypted segment"):
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        data_key = unwrap(encryption.wrapped_key, self._key(encryption.key_id, url))
        if data_key is None or len(data_key) != AES_KEY_BYTES:
            raise LogError(
                f"private key {encryption.key_id!r} does not unwrap this segment's data key; pass the matching key", url
            )
        cipher = AESGCM(data_key)

        def decrypt(chunk: bytes) -> bytes:
            if len(chunk) < OVERHEAD_BYTES:
                raise ValueError(f"encrypted chunk has {len(chunk)} bytes, expected at least {OVERHEAD_BYTES}")
            try:
                return cipher.decrypt(chunk[:IV_BYTES], chunk[IV_BYTES:], encryption.aad)
            except InvalidTag:
                raise ValueError("authentication failed: the data or the key was changed") from None

        return decrypt

    def _key(self, key_id: str, url: str) -> RSAPrivateNumbers:
        """Load a private key."""
        if key_id in self._keys:
            return self._keys[key_id]
        path = self._files.get(key_id)
        if path is None:
            raise LogError(
                f"segment is encrypted with key pair {key_id!r}, whose private key is missing; pass it as "
                f"private_keys={{{key_id!r}: 'private.pem'}}, or append #{key_id}=private.pem to the URL",
                url,
            )
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(Path(path).read_bytes(), password=None)
        except OSError as error:
            raise OptionError(f"private key {key_id!r}: {path}: {error.strerror}") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise OptionError(f"private key {key_id!r}: {path} is not a PEM private key: {error}") from error
        if not isinstance(key, RSAPrivateKey):
            raise OptionError(f"private key {key_id!r}: {path} is not an RSA key")
        self._keys[key_id] = key.private_numbers()
        return self._keys[key_id]


def unwrap(wrapped: bytes, key: RSAPrivateNumbers) -> bytes | None:
    """Decrypt one RSA-OAEP block (SHA3-512); None if it was not encrypted for this key."""
    modulus = key.public_numbers.n
    size = (modulus.bit_length() + 7) // 8
    number = int.from_bytes(wrapped, "big")
    if len(wrapped) != size or number >= modulus or size < 2 * HASH_BYTES + 2:
        return None
    of_p, of_q = pow(number, key.dmp1, key.p), pow(number, key.dmq1, key.q)  # a quarter of the time of pow(n, d, pq)
    block = (of_q + key.q * (key.iqmp * (of_p - of_q) % key.p)).to_bytes(size, "big")
    masked_seed, masked = block[1 : 1 + HASH_BYTES], block[1 + HASH_BYTES :]
    seed = exclusive_or(masked_seed, mask(masked, HASH_BYTES))
    data = exclusive_or(masked, mask(seed, len(masked)))
    padding, one, message = data[HASH_BYTES:].partition(b"\1")
    if block[0] or data[:HASH_BYTES] != hashlib.sha3_512().digest() or not one or padding.strip(b"\0"):
        return None
    return message


def mask(seed: bytes, n: int) -> bytes:
    """Return n bytes of MGF1 of seed."""
    blocks = (hashlib.sha3_512(seed + i.to_bytes(4, "big")).digest() for i in range(-(-n // HASH_BYTES)))
    return b"".join(blocks)[:n]


def exclusive_or(one: bytes, other: bytes) -> bytes:
    """XOR two byte strings of equal length."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
