"""What is trusted of a store that has private keys, as Java decides it."""

from __future__ import annotations

import random
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from kwire.client import ClientSettings
from kwire.client.key_stores import read_certificates, read_key
from kwire.client.pkcs12_trust import elements, marked_certificates
from kwire.client.tls import tls_context
from kwire.errors import OptionError

PASSWORD = "changeit"
TRUSTED = {
    "key.p12": {"broker"},
    "key.jks": {"broker"},
    "mixed.p12": {"broker", "root"},
    "mixed.jks": {"broker", "root"},
    "other.p12": {"broker", "other"},
    "trust.p12": {"root"},
    "trust.jks": {"root"},
    "openssl.p12": {"broker"},
}
"""By store: mixed and other have a trusted entry beside the key. tests/interop/test_key_stores.py asks Java."""


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", "-noprompt", *arguments], check=True, capture_output=True)


def make_stores(root: Path) -> dict[str, trustme.LeafCert]:
    """Write the stores of TRUSTED into a folder; return the servers' certificates, of one authority."""
    authority = trustme.CA(organization_name="root", organization_unit_name="root")
    between = trustme.CA(parent_cert=authority, organization_name="between", organization_unit_name="between")
    other = trustme.CA(organization_name="other", organization_unit_name="other")
    leaf, second = (
        between.issue_cert("localhost", organization_name=name, organization_unit_name=name)
        for name in ("broker", "second")
    )
    (root / "root.pem").write_bytes(authority.cert_pem.bytes())
    (root / "other.pem").write_bytes(other.cert_pem.bytes())
    certificates = [x509.load_pem_x509_certificate(each.bytes()) for each in leaf.cert_chain_pems]
    certificates += [x509.load_pem_x509_certificate((root / "root.pem").read_bytes())]
    loose = x509.load_pem_x509_certificate(other.cert_pem.bytes())
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    for name, more in (("given.p12", certificates[1:]), ("openssl.p12", [*certificates[1:], loose])):
        data = pkcs12.serialize_key_and_certificates(
            b"broker",
            key,
            certificates[0],
            more,
            BestAvailableEncryption(PASSWORD.encode()),
        )
        (root / name).write_bytes(data)
    secret = ("-storepass", PASSWORD)
    for kind, end in (("PKCS12", "p12"), ("JKS", "jks")):
        store = ("-storetype", kind, *secret)
        keytool(
            *("-importkeystore", "-srckeystore", str(root / "given.p12"), "-srcstorepass", PASSWORD),
            *("-destkeystore", str(root / f"key.{end}"), "-deststoretype", kind, "-deststorepass", PASSWORD),
        )
        shutil.copy(root / f"key.{end}", root / f"mixed.{end}")
        for name in ("mixed", "trust"):
            keytool(
                *("-importcert", "-alias", "mine", "-file", str(root / "root.pem"), "-trustcacerts"),
                *("-keystore", str(root / f"{name}.{end}"), *store),
            )
    shutil.copy(root / "key.p12", root / "other.p12")
    keytool(
        "-importcert", "-alias", "x", "-file", str(root / "other.pem"), "-keystore", str(root / "other.p12"), *secret
    )
    return {"broker": leaf, "second": second}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, trustme.LeafCert]]:
    if shutil.which("keytool") is None:
        pytest.skip("needs keytool of a JDK")
    root = tmp_path_factory.mktemp("stores")
    return root, make_stores(root)


def subjects(pem: str) -> list[str]:
    found = x509.load_pem_x509_certificates(pem.encode())
    return [str(each.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)[0].value) for each in found]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", TRUSTED)
def test_the_chain_of_a_key_is_not_trusted(made: tuple[Path, dict[str, trustme.LeafCert]], name: str) -> None:
    found = subjects(read_certificates(str(made[0] / name), PASSWORD))
    assert sorted(found) == sorted(TRUSTED[name])


@pytest.mark.parametrize("name", ["key.p12", "key.jks", "mixed.p12", "other.p12", "openssl.p12"])
def test_a_key_has_its_chain_only(made: tuple[Path, dict[str, trustme.LeafCert]], name: str) -> None:
    _, chain = read_key(str(made[0] / name), PASSWORD, None)
    assert subjects(chain) == ["broker", "between", "root"]


@pytest.fixture
def servers(made: tuple[Path, dict[str, trustme.LeafCert]]) -> Iterator[dict[str, int]]:
    """The ports of TLS servers with the certificates `broker` and `second`."""
    with ExitStack() as stack:
        ports = {}
        for name, issued in made[1].items():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            issued.configure_cert(context)
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=accept, args=(listener, context), daemon=True).start()
            ports[name] = listener.getsockname()[1]
        yield ports


def accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        try:
            context.wrap_socket(plain, server_side=True).close()
        except OSError:
            plain.close()


def trusts(store: Path, port: int) -> bool:
    given = {"ssl.truststore.location": str(store), "ssl.truststore.password": PASSWORD}
    settings = ClientSettings.parse({"bootstrap.servers": "a:1", "security.protocol": "SSL", **given})
    with socket.create_connection(("127.0.0.1", port)) as plain:
        try:
            tls_context(settings).wrap_socket(plain, server_hostname="localhost").close()
        except ssl.SSLCertVerificationError:
            return False
        return True


@pytest.mark.parametrize("name", ["key.p12", "key.jks", "mixed.p12", "trust.jks"])
def test_a_key_store_as_trust_store_trusts_its_own_certificate_only(
    made: tuple[Path, dict[str, trustme.LeafCert]], servers: dict[str, int], name: str
) -> None:
    store = made[0] / name
    assert trusts(store, servers["broker"])
    assert trusts(store, servers["second"]) == ("root" in TRUSTED[name])


def test_certificates_of_an_old_encryption_are_refused_beside_a_key(
    made: tuple[Path, dict[str, trustme.LeafCert]], tmp_path: Path
) -> None:
    old, pem = tmp_path / "old.p12", tmp_path / "broker.pem"
    made[1]["broker"].private_key_and_cert_chain_pem.write_to_path(pem)
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-legacy", "-in", pem, "-out", old, "-passout", f"pass:{PASSWORD}"], check=True
    )
    assert subjects(read_key(str(old), PASSWORD, None)[1]) == ["broker", "between"]
    with pytest.raises(
        OptionError, match=r"old\.p12: has a private key, .* old algorithm; write it again with a newer"
    ):
        read_certificates(str(old), PASSWORD)


def test_damaged_bags_give_an_error(made: tuple[Path, dict[str, trustme.LeafCert]]) -> None:
    data, draw, errors = (made[0] / "other.p12").read_bytes(), random.Random(5), 0
    assert len(marked_certificates(data, PASSWORD)) == 1
    for n in range(600):
        damaged = bytearray(data[: draw.randrange(len(data))] if n % 3 == 0 else data)
        for _ in range(n % 3):
            if len(damaged):
                damaged[draw.randrange(min(len(damaged), 400))] = draw.randrange(256)
        try:
            marked_certificates(bytes(damaged), PASSWORD)
        except ValueError:
            errors += 1
    assert errors > 250


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65535, 65536])
def test_elements_of_der_have_short_and_long_sizes(size: int) -> None:
    """Source: X.690, 8.1.3. An element that its data cuts is an error, wherever it is cut."""
    digits = size.to_bytes((size.bit_length() + 7) // 8 or 1, "big")
    head = b"\x04" + (bytes([size]) if size < 128 else bytes([0x80 | len(digits)]) + digits)
    one, other = head + bytes(size), b"\x05\x00"
    assert list(elements(b"")) == []
    assert list(elements(one)) == [(4, bytes(size))]
    assert list(elements(one + other)) == [(4, bytes(size)), (5, b"")]
    for cut in {*range(1, len(head) + 1), len(one) - 1} - {0, len(one)}:
        with pytest.raises(ValueError, match="an element of DER"):
            list(elements(one[:cut]))


def test_elements_of_der_have_at_most_four_bytes_of_size() -> None:
    assert list(elements(b"\x04\x84\0\0\0\1x")) == [(4, b"x")]
    assert list(elements(b"\x04\x84\0\0\0\0")) == [(4, b"")]
    for wrong in (b"\x04\x80x", b"\x04\x85\0\0\0\0\1x"):
        with pytest.raises(ValueError, match="has no size"):
            list(elements(wrong))
