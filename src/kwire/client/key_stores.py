"""Java's key and trust stores, PKCS12 and JKS, as PEM text.

A JKS file, all numbers big-endian, texts with a length of 16 bits, data with one of 32 bits:

    4      magic 0xFEEDFEED
    4 4    version 1 or 2; number of entries
           4 kind, text alias, 8 time in ms, then
             1 private key: data of PKCS #8 encrypted by Sun's algorithm; 4 number of certificates, certificates
             2 trusted certificate: certificate
           certificate: text type (version 2 only), data DER
    20     SHA-1 of the password in UTF-16, the text "Mighty Aphrodite", and everything before

The private key: 20 bytes of salt, the key XORed with a stream of SHA-1 of (password, last digest), SHA-1 of password
and key. The first bytes of a file tell its kind, as in Java, where either type reads both. PKCS12 requires
`cryptography` (extra `encryption`).

As a trust store, a file has its trusted certificates, and the certificate of each private key, but not the rest of its
chain: whoever has an identity of an authority does not thereby trust all others of it. For PKCS12, this is the first
key; of a file without any, all certificates are trusted, also those that Java did not mark.
Source: sun.security.provider.JavaKeyStore and KeyProtector, sun.security.pkcs12.PKCS12KeyStore,
sun.security.validator.TrustStoreUtil of OpenJDK 17.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.client.pkcs12_trust import elements, marked_certificates
from kwire.errors import OptionError
from kwire.extras import needing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

__all__ = ["is_java_store", "read_certificates", "read_key"]

JKS, SALTED = b"\xfe\xed\xfe\xed", b"Mighty Aphrodite"
KEY, TRUSTED = 1, 2
DIGEST = 20
MAX_BYTES = 16 << 20
DER = b"\x30"
ENDINGS = (".jks", ".p12", ".pfx", ".pkcs12")


def is_java_store(path: str) -> bool:
    """Return whether a file is a JKS or PKCS12 store. Raises OSError."""
    with Path(path).open("rb") as file:
        begin = file.read(4)
    return begin == JKS or begin[:1] == DER or path.lower().endswith(ENDINGS)


def read_certificates(path: str, password: str | None) -> str:
    """Return the trusted certificates of a store. Raises OptionError."""
    data = _read(path)
    if data.startswith(JKS):
        certificates = [chain[0] for _, chain in _entries(path, data, password)]
    else:
        certificates = _trusted_in_pkcs12(path, data, password)
    if not certificates:
        raise OptionError(f"{path}: has no trusted certificates")
    return "".join(_pem("CERTIFICATE", each) for each in certificates)


def read_key(path: str, password: str | None, key_password: str | None) -> tuple[str, str]:
    """Return the private key of a store and its certificates, its own first. key_password: by default the store's.

    Raises OptionError, also for a store with several keys.
    """
    data = _read(path)
    if data.startswith(JKS):
        keys = [(key, chain) for key, chain in _entries(path, data, password) if key is not None]
        if len(keys) == 1:
            protected, chain = keys[0]
            plain = _unprotect(path, protected, key_password or password or "")
            return _pem("PRIVATE KEY", plain), "".join(_pem("CERTIFICATE", each) for each in chain)
        count = len(keys)
    else:
        key_and_chain = _own_chain(path, data, password)
        if key_and_chain is not None:
            key, chain = key_and_chain
            return _pem("PRIVATE KEY", key), "".join(_pem("CERTIFICATE", each) for each in chain)
        count = 0
    raise OptionError(f"{path}: expected one private key, found {count}")


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise OptionError(f"{path}: not a key store: longer than {MAX_BYTES} bytes")
    return data


def _pem(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"


def _pkcs12(path: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    with needing(f"{path}: PKCS12 store"):
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise OptionError(f"{path}: not a PKCS12 store, or another password: {error}") from None


def _trusted_in_pkcs12(path: str, data: bytes, password: str | None) -> list[bytes]:
    store = _pkcs12(path, data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    own = [] if store.cert is None else [store.cert.certificate.public_bytes(Encoding.DER)]
    if store.key is None:
        return own + [each.certificate.public_bytes(Encoding.DER) for each in store.additional_certs]
    try:
        return own + marked_certificates(data, password)
    except ValueError as error:
        raise OptionError(
            f"{path}: has a private key, and its trusted certificates cannot be told from the key's own: {error}; "
            "write it again with a newer keytool -importkeystore, or use a trust store without keys"
        ) from None


def _own_chain(path: str, data: bytes, password: str | None) -> tuple[bytes, list[bytes]] | None:
    """Return the private key and its certificates, its own first, by the names of issuers as in Java."""
    store = _pkcs12(path, data, password)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None:
        return None
    chain = [] if store.cert is None else [store.cert.certificate]
    by_name = {each.certificate.subject: each.certificate for each in store.additional_certs}
    while (
        chain and (issuer := by_name.pop(chain[-1].issuer, None)) is not None and chain[-1].issuer != chain[-1].subject
    ):
        chain.append(issuer)
    key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return key, [each.public_bytes(Encoding.DER) for each in chain]


class _Reader:
    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data, self.position = path, data, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.position:
            raise OptionError(f"{self.path}: not a JKS store: it ends early")
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, form: str = ">I") -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def sized(self, form: str = ">I") -> bytes:
        return self.take(self.number(form))


def _entries(path: str, data: bytes, password: str | None) -> list[tuple[bytes | None, list[bytes]]]:
    """Return (protected private key, None for a trusted certificate; certificates) of each entry of a JKS store."""
    body, digest = data[:-DIGEST], data[-DIGEST:]
    if password is not None:  # without one, Java does not check it either
        expected = hashlib.sha1(password.encode("utf-16-be") + SALTED + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise OptionError(f"{path}: damaged, or another password")
    reader = _Reader(path, body)
    reader.take(4)
    version = reader.number()
    entries: list[tuple[bytes | None, list[bytes]]] = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.sized(">H")
        reader.take(8)
        if kind not in (KEY, TRUSTED):
            raise OptionError(f"{path}: entry of unknown kind {kind}")
        key = _algorithm_removed(path, reader.sized()) if kind == KEY else None
        chain = []
        for _ in range(reader.number() if kind == KEY else 1):
            if version >= 2:
                reader.sized(">H")
            chain.append(reader.sized())
        if not chain:
            raise OptionError(f"{path}: a private key without a certificate")
        entries.append((key, chain))
    return entries


def _algorithm_removed(path: str, der: bytes) -> bytes:
    """Return the octets of an EncryptedPrivateKeyInfo: SEQUENCE of an algorithm and an OCTET STRING (RFC 5208)."""
    try:
        ((_, info),) = elements(der)
        _, (_, octets), *_ = elements(info)
    except ValueError:
        raise OptionError(f"{path}: a private key is not readable") from None
    return octets


def _unprotect(path: str, protected: bytes, password: str) -> bytes:
    """Decrypt a private key, as Sun's KeyProtector does."""
    secret = password.encode("utf-16-be")
    digest, mixed, check = protected[:DIGEST], protected[DIGEST:-DIGEST], protected[-DIGEST:]
    plain = bytearray()
    for at in range(0, len(mixed), DIGEST):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        plain += bytes(a ^ b for a, b in zip(mixed[at : at + DIGEST], itertools.islice(digest, DIGEST), strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise OptionError(f"{path}: the password of the private key is another one; set ssl.key.password")
    return bytes(plain)
