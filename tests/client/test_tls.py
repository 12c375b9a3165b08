"""TLS by Kafka's configs: versions, cipher suites, and stores that Java's keytool wrote."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from kwire.broker import Broker
from kwire.client import Client, ClientSettings
from kwire.client.cipher_suites import openssl_name
from kwire.client.tls import tls_context
from kwire.errors import ConnectionFailed, OptionError
from tests.waiting import HANG_S

SERVERS = {"bootstrap.servers": "a:1"}
GCM = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
PASSWORD = "changeit"
needs_keytool = pytest.mark.skipif(shutil.which("keytool") is None, reason="needs keytool of a JDK")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("tls")
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    authority.cert_pem.write_to_path(root / "ca.pem")
    issued = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.RSA)
    issued.private_key_and_cert_chain_pem.write_to_path(root / "broker.pem")
    client = authority.issue_cert("client", key_type=trustme.KeyType.RSA)
    client.private_key_and_cert_chain_pem.write_to_path(root / "client.pem")
    return {path.stem: str(path) for path in root.iterdir()}


Serve = Callable[[Callable[[ssl.SSLContext], None]], str]


@pytest.fixture
def serve(files: dict[str, str]) -> Iterator[Serve]:
    """serve(configure) starts a TLS server that closes connections after the handshake; returns its address."""
    listeners = []

    def start(configure: Callable[[ssl.SSLContext], None]) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["broker"])
        configure(context)
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            while True:
                try:
                    opened, _ = listener.accept()
                except OSError:
                    return
                opened.settimeout(HANG_S)
                try:
                    context.wrap_socket(opened, server_side=True).close()
                except OSError:
                    opened.close()

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture(scope="module")
def broker(files: dict[str, str]) -> Iterator[Broker]:
    security = {"ssl_certfile": files["broker"], "ssl_cafile": files["ca"], "ssl_client_auth": "required"}
    with Broker(listeners="SSL://127.0.0.1:0", **security) as started:
        yield started


def connect(address: str, files: dict[str, str], **settings: Any) -> tuple[str | None, str]:
    """Connect, and return the version of TLS and the cipher suite."""
    given = {
        "security.protocol": "SSL",
        "ssl.ca.location": files["ca"],
        "ssl.certificate.location": files["client"],
        "default.api.timeout.ms": 2000,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    with Client(address, **given) as client:
        opened = client.connection()._socket
        assert isinstance(opened, ssl.SSLSocket)
        cipher = opened.cipher()
        assert cipher is not None
        return opened.version(), cipher[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("TLSv1.3", None)),
        ({"ssl_enabled_protocols": "TLSv1.3"}, ("TLSv1.3", None)),
        ({"ssl_enabled_protocols": "TLSv1.2"}, ("TLSv1.2", None)),
        ({"ssl_enabled_protocols": "TLSv1.2, TLSv1.3"}, ("TLSv1.3", None)),
        ({"ssl_protocol": "TLSv1.2"}, ("TLSv1.2", None)),
        ({"ssl_protocol": "TLSv1.3"}, ("TLSv1.3", None)),
        ({"ssl_cipher_suites": GCM}, ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384")),
        (
            {"ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
            ("TLSv1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
        ),
        (
            {"ssl_cipher_suites": f"TLS_AES_256_GCM_SHA384,{GCM},TLS_EMPTY_RENEGOTIATION_INFO_SCSV"},
            ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        ),
        (
            {"ssl_cipher_suites": f"TLS_AES_256_GCM_SHA384,{GCM}", "ssl_enabled_protocols": "TLSv1.2"},
            ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
        ),
    ],
)
def test_connections_have_the_version_and_suite_of_the_configs(
    broker: Broker, files: dict[str, str], settings: dict[str, str], expected: tuple[str, str | None]
) -> None:
    version, suite = connect(broker.bootstrap_servers, files, **settings)
    assert (version, suite) == (expected[0], expected[1] or suite)


def only_1_2(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2


def test_a_broker_without_an_enabled_version_is_refused(serve: Serve, files: dict[str, str]) -> None:
    address = serve(only_1_2)
    with pytest.raises(ConnectionFailed, match=r"(?i)version"):
        connect(address, files, ssl_enabled_protocols="TLSv1.3")
    with pytest.raises(ConnectionFailed, match="closed the connection"):  # after a handshake
        connect(address, files)


@pytest.mark.skipif(hasattr(ssl.SSLContext, "set_ciphersuites"), reason="Python offers the allowed suites only")
def test_a_suite_of_tls_1_3_that_is_not_allowed_ends_the_connection(broker: Broker, files: dict[str, str]) -> None:
    with pytest.raises(ConnectionFailed, match=r"chose cipher suite TLS_AES_256_GCM_SHA384, which ssl.cipher.suites"):
        connect(broker.bootstrap_servers, files, ssl_cipher_suites="TLS_CHACHA20_POLY1305_SHA256")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.enabled.protocols": "TLSv1.1"}, "expected comma-separated TLSv1.2 and TLSv1.3"),
        ({"ssl.enabled.protocols": ""}, "expected comma-separated TLSv1.2"),
        ({"ssl.protocol": "SSLv3"}, "'ssl.protocol': expected one of TLS, TLSv1.2, TLSv1.3"),
        ({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, "allows TLSv1.2 only"),
        ({"ssl.cipher.suites": "AES256-SHA"}, "unknown cipher suite 'AES256-SHA'; expected names such as"),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_RC4_128_SHA"}, "unknown cipher suite"),
        ({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA384"}, "is not supported by OpenSSL"),
        ({"ssl.cipher.suites": GCM, "ssl.enabled.protocols": "TLSv1.3"}, "no suite is one of TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256", "ssl.protocol": "TLSv1.2"}, "no suite is one of TLSv1.2"),
    ],
)
def test_what_openssl_cannot_do_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ClientSettings.parse({**SERVERS, **given})


def test_names_of_suites_are_those_of_openssl() -> None:
    """Facts: `openssl ciphers -stdname` prints both names."""
    lines = subprocess.run(["openssl", "ciphers", "-stdname", "ALL"], capture_output=True, text=True, check=True).stdout
    pairs = dict(line.split()[:3:2] for line in lines.splitlines())
    known = {}
    for name, openssl in pairs.items():
        try:
            known[name] = openssl_name(name)
        except OptionError:
            assert (
                "CCM" in name
                or "PSK" in name
                or "ARIA" in name
                or "CAMELLIA" in name
                or "anon" in name
                or ("SRP" in name or "NULL" in name or "DSS" in name)
            ), name
        else:
            assert known[name] == openssl
    assert len(known) > 20


# ---- Java's stores


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", "-noprompt", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module", params=["JKS", "PKCS12"])
def stores(request: pytest.FixtureRequest, files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trust store and a key store that keytool wrote."""
    root = tmp_path_factory.mktemp("stores")
    trust, key, kind = str(root / "trust"), str(root / "key"), request.param
    store = ("-storetype", kind, "-storepass", PASSWORD)
    keytool("-importcert", "-alias", "ca", "-file", files["ca"], "-keystore", trust, *store)
    p12 = str(root / "client.p12")
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-in", files["client"], "-out", p12, "-passout", f"pass:{PASSWORD}"],
        check=True,
    )
    keytool(
        *("-importkeystore", "-srckeystore", p12, "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD),
        *("-destkeystore", key, "-deststoretype", kind, "-deststorepass", PASSWORD),
    )
    return root


@pytest.mark.sampled
@needs_keytool
def test_java_stores_are_read(broker: Broker, files: dict[str, str], stores: Path) -> None:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(stores / "trust"),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(stores / "key"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "default.api.timeout.ms": 2000,
    }
    with Client(broker.bootstrap_servers, **settings) as client:
        assert client.metadata([]).brokers
    for kind in ("JKS", "PKCS12"):  # as in Java, either type reads both
        types = {"ssl.truststore.type": kind, "ssl.keystore.type": kind}
        with Client(broker.bootstrap_servers, **settings, **types) as client:
            assert client.metadata([]).brokers
    with pytest.raises(OptionError, match=r"trust: .*another password"):
        Client(broker.bootstrap_servers, **{**settings, "ssl.truststore.password": "other"}).metadata([])
    with pytest.raises(OptionError, match=r"expected one private key, found 0"):
        Client(broker.bootstrap_servers, **{**settings, "ssl.keystore.location": str(stores / "trust")}).metadata([])


@pytest.mark.sampled
@needs_keytool
def test_damaged_stores_give_an_error(stores: Path, tmp_path: Path) -> None:
    undamaged = 0
    for name in ("trust", "key"):
        data = (stores / name).read_bytes()
        location = {"trust": "ssl.truststore.location", "key": "ssl.keystore.location"}[name]
        path = tmp_path / f"{name}.jks"
        cuts = [data[:n] for n in range(0, len(data), max(1, len(data) // 20))]
        flips = [data[:n] + bytes([data[n] ^ 0xFF]) + data[n + 1 :] for n in range(4, len(data) - 20, 149)]
        for damaged in [*cuts, *flips]:
            path.write_bytes(damaged)
            for password in (PASSWORD, None):
                given = {location: str(path), location.replace("location", "password"): password}
                given = {key: value for key, value in given.items() if value is not None}
                settings = ClientSettings.parse({**SERVERS, "security.protocol": "SSL", **given})
                with contextlib.suppress(OptionError):  # a flag of an attribute may change nothing
                    tls_context(settings)
                    undamaged += 1
    assert undamaged < 12
