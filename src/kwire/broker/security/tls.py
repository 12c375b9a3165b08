"""TLS: the server's context from PEM files, and the principal of a client certificate.

Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, authenticator.DefaultKafkaPrincipalBuilder;
RFC 2253 for names, as javax.security.auth.x500.X500Principal.getName writes them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import Any

from kwire.broker.configs.settings import Settings
from kwire.broker.context import ANONYMOUS
from kwire.errors import OptionError

__all__ = ["principal_of", "server_context"]

CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The attributes that RFC 2253 has words for; others are written by number, with their value's bytes."""
NUMBERS = {
    "emailAddress": "1.2.840.113549.1.9.1",
    "serialNumber": "2.5.4.5",
    "title": "2.5.4.12",
    "surname": "2.5.4.4",
    "givenName": "2.5.4.42",
    "initials": "2.5.4.43",
    "generationQualifier": "2.5.4.44",
    "dnQualifier": "2.5.4.46",
    "name": "2.5.4.41",
    "pseudonym": "2.5.4.65",
}
ESCAPED = frozenset(',=+<>#;"\\')
IA5_STRING, PRINTABLE_STRING, UTF8_STRING = 0x16, 0x13, 0x0C
PRINTABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?")
SHORT_LENGTH = 0x80


def server_context(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context of the settings. Raises OptionError, which never contains file contents."""
    if not settings.ssl_certfile:
        raise OptionError("ssl_certfile is missing; a TLS listener needs a certificate in PEM format")
    mode = CLIENT_AUTH.get(settings.ssl_client_auth.lower())
    if mode is None:
        raise OptionError(f"ssl_client_auth {settings.ssl_client_auth!r} is invalid; use none, requested or required")
    if mode != ssl.CERT_NONE and not settings.ssl_cafile:
        raise OptionError(f"ssl_client_auth={settings.ssl_client_auth} needs ssl_cafile with the trusted certificates")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = versions_of(settings.ssl_enabled_protocols)
    password = settings.ssl_key_password.text
    try:
        # an empty password instead of none: OpenSSL would ask on the terminal
        context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile or None, password)
    except (OSError, ValueError) as error:
        raise OptionError(f"ssl_certfile, ssl_keyfile, ssl_key_password: {reason(error)}") from None
    if settings.ssl_cafile:
        try:
            context.load_verify_locations(settings.ssl_cafile)
        except OSError as error:
            raise OptionError(f"ssl_cafile: {reason(error)}") from None
    context.verify_mode = mode
    return context


def versions_of(text: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    """Return the lowest and the highest version of ssl.enabled.protocols. Raises OptionError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = next((name for name in names if name not in VERSIONS), None)
    if unknown is not None or not names:
        raise OptionError(f"ssl_enabled_protocols: expected one or more of {', '.join(VERSIONS)}, got {text!r}")
    versions = [VERSIONS[name] for name in names]
    return min(versions), max(versions)


def reason(error: Exception) -> str:
    """Return the reason of a TLS error, without library details."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__


def principal_of(certificate: Mapping[str, Any] | None) -> str:
    """Return the principal of a certificate from SSLSocket.getpeercert; anonymous without one."""
    return f"User:{distinguished_name(certificate['subject'])}" if certificate else ANONYMOUS


def distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return a name in the form of RFC 2253, its last part first."""
    parts = ("+".join(attribute(name, value) for name, value in part) for part in subject)
    return ",".join(reversed(list(parts)))


def attribute(name: str, value: str) -> str:
    """Return an attribute of a distinguished name as Java prints it; unknown types are hex-encoded DER."""
    short = SHORT_NAMES.get(name)
    if short is not None:
        return f"{short}={escape(value)}"
    kind = IA5_STRING if name == "emailAddress" else PRINTABLE_STRING if PRINTABLE.issuperset(value) else UTF8_STRING
    data = value.encode()
    size = bytes([len(data)])
    if len(data) >= SHORT_LENGTH:
        digits = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
        size = bytes([SHORT_LENGTH | len(digits)]) + digits
    return f"{NUMBERS.get(name, name)}=#{(bytes([kind]) + size + data).hex()}"


def escape(value: str) -> str:
    """Escape a value of a distinguished name with backslashes."""
    text = "".join(f"\\{char}" if char in ESCAPED else char for char in value)
    begin = len(value) - len(value.lstrip(" "))
    end = len(value.rstrip(" "))
    if begin:
        text = "\\ " * min(begin, len(value)) + text[begin:]
    if end < len(value) and begin < len(value):
        text = text[: len(text) - (len(value) - end)] + "\\ " * (len(value) - end)
    return text
