"""Encrypted segments of tiered storage: an AES-256 key for each, wrapped with RSA; AES-GCM over each chunk and index.

    chunk    12 bytes IV | ciphertext | 16 bytes tag; the manifest's aad is authenticated with it
    key      RSA-OAEP with SHA3-512, MGF1 with SHA3-512, no label

OpenSSL has no OAEP with SHA-3, so the padding is undone here. Needs `cryptography`, the extra `encryption`, imported
when something encrypted is read.
Source: Aiven-Open/tiered-storage-for-apache-kafka 1.0.0, AesEncryptionProvider, RsaEncryptionProvider; RFC 8017, 7.1.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.errors import LogError, OptionError
from kwire.storage.tiered.manifest import Encryption

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers

IV_BYTES, TAG_BYTES = 12, 16
OVERHEAD_BYTES = IV_BYTES + TAG_BYTES
HASH_BYTES = 64
AES_KEY_BYTES = 32

Decrypt = Callable[[bytes], bytes]


class KeyRing:
    """The RSA private keys that may unwrap segments' keys, by their ids; PEM files are read when they are needed."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """files: key id -> path of a PEM file without a pass phrase."""
        self._files = dict(files)
        self._keys: dict[str, RSAPrivateNumbers] = {}

    def decryptor(self, encryption: Encryption, url: str) -> Decrypt:
        """A function from stored chunk to plain chunk; it raises ValueError on bytes that are not authentic.

        url: of the manifest, for errors. Raises LogError when the key is not given or does not fit, OptionError for a
        PEM file that cannot be used.
        """
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise LogError(
                "this segment is encrypted; reading it needs: pip install 'kwire[encryption]'", url
            ) from None
        data_key = unwrap(encryption.wrapped_key, self._key(encryption.key_id, url))
        if data_key is None or len(data_key) != AES_KEY_BYTES:
            raise LogError(
                f"the private key given for {encryption.key_id!r} does not unwrap this segment's data key", url
            )
        cipher = AESGCM(data_key)

        def decrypt(chunk: bytes) -> bytes:
            if len(chunk) < OVERHEAD_BYTES:
                raise ValueError(f"{len(chunk)} bytes, an encrypted chunk has {OVERHEAD_BYTES} at least")
            try:
                return cipher.decrypt(chunk[:IV_BYTES], chunk[IV_BYTES:], encryption.aad)
            except InvalidTag:
                raise ValueError("the bytes are not what was encrypted") from None

        return decrypt

    def _key(self, key_id: str, url: str) -> RSAPrivateNumbers:
        """The numbers of a private key."""
        if key_id in self._keys:
            return self._keys[key_id]
        path = self._files.get(key_id)
        if path is None:
            raise LogError(
                f"this segment is encrypted with key pair {key_id!r}, whose private key was not given "
                f"(private_keys={{{key_id!r}: 'private.pem'}}, or #{key_id}=private.pem behind the URL)",
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
            raise OptionError(f"private key {key_id!r}: {path} is no PEM private key: {error}") from error
        if not isinstance(key, RSAPrivateKey):
            raise OptionError(f"private key {key_id!r}: {path} is no RSA key")
        self._keys[key_id] = key.private_numbers()
        return self._keys[key_id]


def unwrap(wrapped: bytes, key: RSAPrivateNumbers) -> bytes | None:
    """The message of one RSA-OAEP block (SHA3-512); None where it is none of this key."""
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
    """n bytes of MGF1 over seed."""
    blocks = (hashlib.sha3_512(seed + i.to_bytes(4, "big")).digest() for i in range(-(-n // HASH_BYTES)))
    return b"".join(blocks)[:n]


def exclusive_or(one: bytes, other: bytes) -> bytes:
    """Bitwise, of equal lengths."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
