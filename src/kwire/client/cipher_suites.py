"""Cipher suites by Java's names, which the standards use too, and OpenSSL's names for them."""

from __future__ import annotations

import re
import ssl

from kwire.errors import OptionError

__all__ = ["OF_TLS_1_3", "SIGNAL", "check_suites", "openssl_name", "openssl_names"]

OF_TLS_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
SIGNAL = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""A name in Java's lists that is not a suite: what it signals, OpenSSL always does."""
OLDER = re.compile(
    r"TLS_(ECDHE_RSA|ECDHE_ECDSA|DHE_RSA|RSA)_WITH_"
    r"(?:(AES_128|AES_256)_(GCM|CBC)_(SHA|SHA256|SHA384)|(CHACHA20_POLY1305)_SHA256)"
)


def check_suites(names: tuple[str, ...], protocols: tuple[str, ...]) -> None:
    """Raise OptionError for a suite that OpenSSL does not have, or if no protocol has one of the suites."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in names:
        if name in OF_TLS_1_3 or name == SIGNAL:
            continue
        try:
            context.set_ciphers(openssl_name(name))
        except ssl.SSLError:
            raise OptionError(
                f"config 'ssl.cipher.suites': {name!r} is not supported by {ssl.OPENSSL_VERSION}"
            ) from None
    new = bool(OF_TLS_1_3 & set(names))
    old = bool(set(names) - OF_TLS_1_3 - {SIGNAL})
    if names and not (("TLSv1.3" in protocols and new) or ("TLSv1.2" in protocols and old)):
        raise OptionError(f"config 'ssl.cipher.suites': no suite is one of {' or '.join(protocols)}")


def openssl_names(suites: tuple[str, ...]) -> set[str]:
    """Return OpenSSL's names of cipher suites."""
    return {openssl_name(name) for name in suites if name != SIGNAL}


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a cipher suite. Raises OptionError for a name without one."""
    if suite in OF_TLS_1_3:
        return suite
    match = OLDER.fullmatch(suite)
    if match is None:
        raise OptionError(
            f"config 'ssl.cipher.suites': unknown cipher suite {suite[:100]!r}; expected names such as "
            "TLS_AES_256_GCM_SHA384 and TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
        )
    exchange, cipher, mode, digest, chacha = match.groups()
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    if chacha:
        parts.append("CHACHA20-POLY1305")
    else:
        parts += [cipher.replace("_", ""), *(["GCM"] if mode == "GCM" else []), digest]
    return "-".join(parts)
