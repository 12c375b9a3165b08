"""TLS of client connections: certificates, versions of the protocol and cipher suites, by Kafka's configs.

Python cannot choose among the suites of TLS 1.3 before 3.15: there, a connection that got one that is not allowed is
closed before anything is sent.
Source: SslConfigs and org.apache.kafka.common.security.ssl.DefaultSslEngineFactory of Kafka 4.4.0.
"""

from __future__ import annotations

import socket
import ssl
import tempfile

from kwire.client.cipher_suites import OF_TLS_1_3, SIGNAL, openssl_name, openssl_names
from kwire.client.key_stores import is_java_store, read_certificates, read_key
from kwire.client.settings import ClientSettings
from kwire.errors import OptionError

__all__ = ["check_suite", "tls_context", "wrap"]

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def wrap(opened: socket.socket, settings: ClientSettings, host: str) -> ssl.SSLSocket:
    """Begin TLS on a connection. Raises OSError, OptionError for certificates that cannot be read."""
    wrapped = tls_context(settings).wrap_socket(opened, server_hostname=host)
    try:
        check_suite(wrapped.cipher(), settings)
    except ssl.SSLError:
        wrapped.close()
        raise
    return wrapped


def check_suite(chosen: tuple[str, str, int] | None, settings: ClientSettings) -> None:
    """Raise SSLError unless the settings allow the cipher suite of a connection, as `cipher()` returns it."""
    if settings.ssl_cipher_suites and (chosen is None or chosen[0] not in openssl_names(settings.ssl_cipher_suites)):
        raise ssl.SSLError(
            f"the broker chose cipher suite {chosen[0] if chosen else None}, which ssl.cipher.suites does not allow; "
            "add it, or set ssl.enabled.protocols=TLSv1.2"
        )


def tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """Make the TLS context of these settings. Raises OptionError for certificates that cannot be read."""
    try:
        location, certificates = settings.ssl_ca_location, settings.ssl_truststore_certificates
        if location is not None and is_java_store(location):
            certificates = read_certificates(location, settings.ssl_truststore_password)
            location = None
        context = ssl.create_default_context(cafile=location, cadata=certificates)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, what is trusted need not be a root
        if not settings.ssl_endpoint_identification_algorithm:
            context.check_hostname = False
        _load_key(context, settings)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise OptionError(f"TLS certificates cannot be loaded: {error}") from None
    suites = settings.ssl_cipher_suites
    versions = [VERSIONS[name] for name in settings.ssl_enabled_protocols]
    if suites and not OF_TLS_1_3 & set(suites):
        versions = [ssl.TLSVersion.TLSv1_2]
    elif suites and set(suites) - {SIGNAL} <= OF_TLS_1_3:
        versions = [ssl.TLSVersion.TLSv1_3]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    older = [openssl_name(name) for name in suites if name not in OF_TLS_1_3 and name != SIGNAL]
    if older:
        context.set_ciphers(":".join(older))
    return context


def _load_key(context: ssl.SSLContext, settings: ClientSettings) -> None:
    location, password = settings.ssl_certificate_location, settings.ssl_key_password
    key, chain = settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain
    if location and is_java_store(location):
        key, chain = read_key(location, settings.ssl_keystore_password, password)
        password = None
    elif location:
        context.load_cert_chain(location, settings.ssl_key_location, password or settings.ssl_keystore_password)
        return
    if key and chain:
        # ssl reads certificates from files only; this one is readable by its owner only, and deleted after loading
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(f"{key}\n{chain}\n")
            pem.flush()
            context.load_cert_chain(pem.name, password=password)
