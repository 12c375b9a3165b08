"""Brokers that cannot be reached: what is said while a client retries, and what is final."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.failures import ConnectionFailures
from kwire.errors import ConnectionFailed
from tests.waiting import HANG_MS, until


def test_a_refused_connection_is_reported_while_it_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as bound:  # refuses connections: it does not listen
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with Client(f"127.0.0.1:{port}", **{"default.api.timeout.ms": HANG_MS}) as client, ThreadPoolExecutor() as pool:
            asked = pool.submit(client.metadata)
            until(lambda: caplog.records)
            bound.close()
            with Broker(port=port) as broker:
                assert asked.result().cluster_id == broker.call(lambda node: node.cluster_id)
    said = f"127.0.0.1:{port}: cannot connect: Connection refused; trying again"
    found = [each.getMessage() for each in caplog.records if each.name == "kwire.client"]
    assert found == [said]


def test_a_broker_that_stays_away_is_reported_every_ten_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("kwire.client.failures.time.monotonic", lambda: now)
    failures, warned = ConnectionFailures(), []
    for now in (100.0, 100.9, 101.0, 110.9, 111.0, 111.1, 121.0):
        caplog.clear()
        failures.note(ConnectionFailed("refused", "a:1"))
        if caplog.records:
            warned.append(now)
    assert warned == [101.0, 111.0, 121.0]
    failures.clear("a:1")
    now = 131.0
    caplog.clear()
    failures.note(ConnectionFailed("refused", "a:1"))
    assert not caplog.records  # it was there in between


@pytest.mark.parametrize("host", ["a" * 64 + ".com", "a..b"])
def test_a_name_that_cannot_exist_fails_at_once(host: str) -> None:
    refused = pytest.raises(ConnectionFailed, match="not a valid host name")
    with Client(f"{host}:9092", **{"default.api.timeout.ms": HANG_MS}) as client, refused:
        client.metadata()


def test_a_certificate_that_is_not_trusted_fails_at_once(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "other-ca.pem")
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "other-ca.pem"),
        "default.api.timeout.ms": HANG_MS,
    }
    pem = str(tmp_path / "server.pem")
    with Broker(listeners="SSL://127.0.0.1:0", ssl_certfile=pem, ssl_keyfile=pem) as broker:
        refused = pytest.raises(ConnectionFailed, match="certificate verify failed")
        with Client(broker.bootstrap_servers, **settings) as client, refused:
            client.metadata()
