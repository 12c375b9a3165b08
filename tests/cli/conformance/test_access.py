"""Settings that do not let a run in end it before the first check, instead of failing every check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme

from kwire.broker import Broker
from kwire.cli.main import run

SASL = "SASL_PLAINTEXT://127.0.0.1:0"


def refused(capsys: pytest.CaptureFixture[str], address: str, *words: str) -> tuple[int, str]:
    code = run(["conformance", "broker", f"kafka://{address}", "--only", "METADATA", *words])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


def test_a_listener_that_requires_a_login(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(listeners=SASL, users={"admin": "secret"}) as broker:
        code, text = refused(capsys, broker.bootstrap_servers)
    assert code == 2
    assert "the listener requires a login (PLAIN" in text


def test_a_wrong_password(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = tmp_path / "admin.properties"
    lines = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=admin", "sasl.password=wrong")
    settings.write_text("\n".join(lines))
    with Broker(listeners=SASL, users={"admin": "secret"}) as broker:
        code, text = refused(capsys, broker.bootstrap_servers, "--config-file", str(settings))
    assert code != 0
    assert "Authentication failed" in text


def test_a_listener_that_requires_tls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files: dict[str, Any] = {"ssl_certfile": str(tmp_path / "cert.pem"), "ssl_keyfile": str(tmp_path / "key.pem")}
    with Broker(listeners="SSL://127.0.0.1:0", **files) as broker:
        code, text = refused(capsys, broker.bootstrap_servers)
    assert code == 2
    assert "the listener requires TLS" in text


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
    code, text = refused(capsys, address)
    assert code != 0
    assert "cannot connect" in text


def test_a_user_who_may_not_create_topics(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = tmp_path / "nobody.properties"
    lines = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=nobody", "sasl.password=pw")
    settings.write_text("\n".join(lines))
    with Broker(listeners=SASL, users={"nobody": "pw"}, acls=True) as broker:
        address = f"kafka://{broker.bootstrap_servers}"
        run(["conformance", "broker", address, "--only", "FETCH-001", "--config-file", str(settings)])
    assert "1 not applicable" in capsys.readouterr().out
