"""Principals from certificate names, and TLS contexts from configs."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from kwire.broker.configs.given import parse_settings
from kwire.broker.configs.settings import Settings
from kwire.broker.context import ANONYMOUS
from kwire.broker.security import principal_of, server_context
from kwire.broker.security.tls import distinguished_name
from kwire.errors import OptionError

# Left: as getpeercert() has them, in the certificate's order. Right: X500Principal.getName() of a JDK 17.
NAMES = [
    ([("commonName", "client")], "CN=client"),
    ([("countryName", "DE"), ("organizationName", "A, B"), ("commonName", "x y")], "CN=x y,O=A\\, B,C=DE"),
    ([("organizationalUnitName", 'a+b"c\\d<e>f;g')], 'OU=a\\+b\\"c\\\\d\\<e\\>f\\;g'),
    ([("stateOrProvinceName", "=#x"), ("localityName", "two")], "L=two,ST=\\=\\#x"),
    ([("domainComponent", "org"), ("domainComponent", "kafka"), ("userId", "u1")], "UID=u1,DC=kafka,DC=org"),
    ([("commonName", "Zoë")], "CN=Zoë"),
    ([("commonName", "c"), ("emailAddress", "a@b.c")], "1.2.840.113549.1.9.1=#16056140622e63,CN=c"),
    ([("serialNumber", "17")], "2.5.4.5=#13023137"),
]


@pytest.mark.parametrize(("subject", "name"), NAMES)
def test_a_principal_is_the_subject_in_javas_notation(subject: list[tuple[str, str]], name: str) -> None:
    parts = tuple((part,) for part in subject)
    assert distinguished_name(parts) == name
    assert principal_of({"subject": parts}) == f"User:{name}"


@pytest.mark.parametrize(
    ("value", "written"), [(" two ", "\\ two\\ "), ("  ", "\\ \\ "), (" a b", "\\ a b"), ("a ", "a\\ ")]
)
def test_leading_and_trailing_spaces_of_a_value_are_escaped(value: str, written: str) -> None:
    assert distinguished_name(((("localityName", value),),)) == f"L={written}"


def test_parts_of_a_name_with_several_values_are_joined() -> None:
    assert distinguished_name(((("commonName", "a"), ("userId", "b")),)) == "CN=a+UID=b"


def test_without_a_certificate_the_principal_is_anonymous() -> None:
    assert principal_of(None) == principal_of({}) == ANONYMOUS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of a certificate, its key and the certificate authority."""
    root = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(root / "key.pem")
    for number, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(root / "cert.pem", append=number > 0)
    authority.cert_pem.write_to_path(root / "ca.pem")
    return {name: str(root / f"{name}.pem") for name in ("cert", "key", "ca")}


def settings(files: dict[str, str], **more: str) -> Settings:
    return parse_settings(
        {"ssl_certfile": files["cert"], "ssl_keyfile": files["key"], "ssl_cafile": files["ca"], **more}
    )


@pytest.mark.parametrize(
    ("word", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("REQUIRED", ssl.CERT_REQUIRED)],
)
def test_ssl_client_auth_decides_whether_certificates_are_requested(
    files: dict[str, str], word: str, mode: ssl.VerifyMode
) -> None:
    context = server_context(settings(files, ssl_client_auth=word))
    assert context.verify_mode == mode
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("TLSv1.2", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
        ("TLSv1.3, TLSv1.2", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
        ("TLSv1.3", (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
    ],
)
def test_only_enabled_versions_of_tls_are_used(
    files: dict[str, str], text: str, versions: tuple[ssl.TLSVersion, ssl.TLSVersion]
) -> None:
    context = server_context(settings(files, ssl_enabled_protocols=text))
    assert (context.minimum_version, context.maximum_version) == versions


def test_errors_of_tls_configs_do_not_show_file_contents(files: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
    for wrong, name in (
        ({"ssl_certfile": ""}, "ssl_certfile"),
        ({"ssl_certfile": str(tmp_path / "none.pem")}, "ssl_certfile"),
        ({"ssl_keyfile": str(broken), "ssl_key_password": "hush"}, "ssl_keyfile"),
        ({"ssl_keyfile": files["ca"]}, "ssl_keyfile"),
        ({"ssl_cafile": str(broken)}, "ssl_cafile"),
        ({"ssl_client_auth": "maybe"}, "ssl_client_auth"),
        ({"ssl_client_auth": "required", "ssl_cafile": ""}, "ssl_cafile"),
        ({"ssl_enabled_protocols": "TLSv1.1,TLSv1.2"}, "ssl_enabled_protocols"),
        ({"ssl_enabled_protocols": ""}, "ssl_enabled_protocols"),
    ):
        with pytest.raises(OptionError, match=name) as caught:
            server_context(settings(files, **wrong))
        assert "hush" not in str(caught.value)
        assert "c2VjcmV0" not in str(caught.value)
