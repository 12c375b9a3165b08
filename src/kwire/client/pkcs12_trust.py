"""The trusted certificates of a PKCS12 file that has private keys as well.

Java marks the certificate of a trusted entry with the attribute trustedKeyUsage; the others are the chains of keys.
`cryptography` does not show attributes, so the bags are read here, of files that it has read before: their checksum
and password are right.

    PFX              SEQUENCE of version, ContentInfo with an AuthenticatedSafe, checksum
    AuthenticatedSafe  SEQUENCE of ContentInfo: plain or encrypted SafeContents
    SafeContents     SEQUENCE of bags: SEQUENCE of kind, [0] value, SET of attributes

Source: RFC 7292, RFC 8018 (PBES2); sun.security.pkcs12.PKCS12KeyStore of OpenJDK 17.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

__all__ = ["elements", "marked_certificates"]

OID, SEQUENCE, CONTEXT_0, IMPLICIT_0 = 0x06, 0x30, 0xA0, 0x80
DATA, ENCRYPTED_DATA = bytes.fromhex("2a864886f70d010701"), bytes.fromhex("2a864886f70d010706")
CERTIFICATE_BAG = bytes.fromhex("2a864886f70d010c0a0103")
TRUSTED_KEY_USAGE = bytes.fromhex("6086480186f966adca7b0101")  # 2.16.840.1.113894.746875.1.1
PBES2, PBKDF2 = bytes.fromhex("2a864886f70d01050d"), bytes.fromhex("2a864886f70d01050c")
HMAC = bytes.fromhex("2a864886f70d02")
HMAC_SHA1 = HMAC + b"\x07"
HMACS = {HMAC_SHA1: "sha1", HMAC + b"\x08": "sha224", HMAC + b"\x09": "sha256"}
HMACS |= {HMAC + b"\x0a": "sha384", HMAC + b"\x0b": "sha512"}
AES_CBC = bytes.fromhex("6086480165030401")
AES_CBC_KEYS = {AES_CBC + b"\x02": 16, AES_CBC + b"\x16": 24, AES_CBC + b"\x2a": 32}
MAX_ITERATIONS = 5_000_000  # as in Java

Element = tuple[int, bytes]


def elements(data: bytes) -> Iterator[Element]:
    """Iterate over the DER elements in data, as (tag, content). Raises ValueError."""
    position = 0
    while position < len(data):
        if position + 2 > len(data):
            raise ValueError("an element of DER ends early")
        size, start = data[position + 1], position + 2
        if size & 0x80:
            start, n = start + (size & 0x7F), start
            if not 1 <= start - n <= 4 or start > len(data):
                raise ValueError("an element of DER has no size")
            size = int.from_bytes(data[n:start])
        if size > len(data) - start:
            raise ValueError("an element of DER ends early")
        yield data[position], data[start : start + size]
        position = start + size


def marked_certificates(data: bytes, password: str | None) -> list[bytes]:
    """Return the certificates of trusted entries, as DER. Raises ValueError for what is not read here."""
    _, (_, safe), *_ = elements(_inside(data, SEQUENCE))
    certificates = []
    for _, info in elements(_inside(_plain(safe, password), SEQUENCE)):
        for _, bag in elements(_inside(_plain(info, password), SEQUENCE)):
            (_, kind), (_, value), *attributes = elements(bag)
            names = [_first(each) for _, these in attributes for _, each in elements(these)]
            if kind == CERTIFICATE_BAG and TRUSTED_KEY_USAGE in names:
                _, (_, certificate) = elements(_inside(value, SEQUENCE))
                certificates.append(_inside(certificate, 0x04))
    return certificates


def _inside(data: bytes, tag: int) -> bytes:
    """Return the content of the only element in data."""
    ((actual, content),) = elements(data)
    if actual != tag:
        raise ValueError(f"expected an element of DER with tag {tag:#x}, found {actual:#x}")
    return content


def _first(data: bytes) -> bytes:
    """Return the content of the first element in data."""
    (_, content), *_ = elements(data)
    return content


def _plain(info: bytes, password: str | None) -> bytes:
    """Return the data of a ContentInfo, decrypted."""
    (_, kind), (_, content) = elements(info)
    if kind == DATA:
        return _inside(content, 0x04)
    if kind != ENCRYPTED_DATA:
        return b"\x30\x00"  # encrypted with a public key: not of Java
    _, (_, encrypted) = elements(_inside(content, SEQUENCE))
    _, (_, algorithm), (tag, data) = elements(encrypted)
    if tag != IMPLICIT_0:
        raise ValueError("the encrypted certificates are in pieces")
    (_, name), (_, parameters) = elements(algorithm)
    if name != PBES2:
        raise ValueError("the certificates are encrypted with an old algorithm")
    return _decrypt(parameters, data, (password or "").encode())


def _decrypt(parameters: bytes, data: bytes, password: bytes) -> bytes:
    """Decrypt by PBES2 with PBKDF2 and AES-CBC."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    (_, derivation), (_, scheme) = elements(parameters)
    (_, function), (_, options) = elements(derivation)
    (_, cipher), (_, start) = elements(scheme)
    (_, salt), (_, iterations), *rest = elements(options)
    hmac = next((_first(content) for tag, content in rest if tag == SEQUENCE), HMAC_SHA1)
    count = int.from_bytes(iterations)
    if function != PBKDF2 or cipher not in AES_CBC_KEYS or hmac not in HMACS or not 0 < count <= MAX_ITERATIONS:
        raise ValueError("the certificates are encrypted in an unknown way")
    key = hashlib.pbkdf2_hmac(HMACS[hmac], password, salt, count, AES_CBC_KEYS[cipher])
    decryptor = Cipher(algorithms.AES(key), modes.CBC(start)).decryptor()
    padding = PKCS7(128).unpadder()
    return padding.update(decryptor.update(data) + decryptor.finalize()) + padding.finalize()
