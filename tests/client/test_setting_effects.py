"""Client settings whose effect only the other side sees: what it is sent, when, and through which socket."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trustme

from kwire.broker import Broker
from kwire.client import Client, ClientSettings, Producer, fetch_requests
from kwire.client import client as client_module
from kwire.client.broker_connection import BrokerConnection
from kwire.client.oauthbearer import unsecured_token
from kwire.errors import ConnectionFailed, KwireError, OptionError
from kwire.records import read_batches, write_batch
from tests.records.test_builder import plain
from tests.rewriting_proxy import RewritingProxy
from tests.waiting import HANG_MS, HANG_S, until


@pytest.fixture
def credentials() -> Iterator[list[str]]:
    """Logins that a token endpoint got; its address is the first entry."""
    got: list[str] = []

    class Granting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            got.append(base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode())
            body = b'{"access_token": "%s"}' % unsecured_token({"sub": "a", "exp": time.time() + 60}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Granting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        got.append(f"http://127.0.0.1:{server.server_port}")
        yield got
        server.shutdown()


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, "a b:100%+ö"),
        ({"header.urlencode": "false"}, "a b:100%+ö"),
        ({"header.urlencode": "true"}, "a+b:100%25%2B%C3%B6"),
    ],
)
def test_credentials_are_encoded_for_the_token_endpoint_if_asked(
    credentials: list[str], given: dict[str, str], sent: str
) -> None:
    # RFC 6749, 2.3.1: encoded as a form before they are joined by a colon. Java does so with urlencode only.
    prefix = "sasl.oauthbearer."
    settings = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        f"{prefix}token.endpoint.url": credentials[0],
        f"{prefix}client.credentials.client.id": "a b",
        f"{prefix}client.credentials.client.secret": "100%+ö",
        **{f"{prefix}{name}": value for name, value in given.items()},
    }
    source = ClientSettings.parse(settings).token_source
    assert source is not None
    source.token()
    assert credentials[1:] == [sent]


def test_the_receive_buffer_is_that_of_the_socket() -> None:
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")

        def buffer(**given: Any) -> int:
            settings = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers, **given})
            connection = BrokerConnection(host, int(port), settings)
            try:
                assert connection._socket is not None
                return connection._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            finally:
                connection.close()

        default = buffer()
        for unset in (-1, 0):
            assert buffer(receive_buffer_bytes=unset) == default  # that of the system
        small, large = buffer(receive_buffer_bytes=8_192), buffer(receive_buffer_bytes=32_768)
        assert 8_192 <= small < large
        assert (small, large) != (default, default)


@pytest.mark.parametrize(
    ("most_ms", "expected"), [(400, [0.1, 0.2, 0.4, 0.4, 0.4]), (100, [0.1] * 5), (1_000, [0.1, 0.2, 0.4, 0.8, 1.0])]
)
def test_waits_between_attempts_double_up_to_the_longest(
    most_ms: int, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == len(expected):
            raise KwireError("enough")

    monkeypatch.setattr(client_module.time, "sleep", sleep)
    monkeypatch.setattr(client_module.random, "uniform", lambda *_: 1.0)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # not listening: every attempt is refused at once
        settings = {"retry.backoff.ms": 100, "retry.backoff.max.ms": most_ms}
        with pytest.raises(KwireError, match="enough"):
            Client(f"127.0.0.1:{closed.getsockname()[1]}", **settings).metadata()
    assert waits == pytest.approx(expected)


@pytest.fixture(scope="module")
def other_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, dict[str, str]]]:
    """A broker with a certificate for another host, which asks clients for one; texts of the client's PEM."""
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    authority.issue_cert("elsewhere.example").private_key_and_cert_chain_pem.write_to_path(str(folder / "broker.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    mine = authority.issue_cert("client@example.org")
    texts = {
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
        "ssl.keystore.key": mine.private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": "".join(each.bytes().decode() for each in mine.cert_chain_pems),
    }
    security = {"ssl_certfile": str(folder / "broker.pem"), "ssl_cafile": str(folder / "ca.pem")}
    with Broker(listeners="SSL://127.0.0.1:0", ssl_client_auth="required", **security) as broker:
        yield broker, texts


ANY_HOST = {"ssl.endpoint.identification.algorithm": ""}


def topics(broker: Broker, given: dict[str, str]) -> object:
    settings = {"security.protocol": "SSL", "default.api.timeout.ms": 3_000, **given}
    with Client(broker.bootstrap_servers, **settings) as client:
        return client.metadata()


def test_certificates_and_key_may_be_texts_and_the_host_unchecked(other_host: tuple[Broker, dict[str, str]]) -> None:
    broker, texts = other_host
    assert topics(broker, {**texts, **ANY_HOST})


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("ssl.endpoint.identification.algorithm", "IP address mismatch|doesn't match|not valid for"),
        ("ssl.truststore.certificates", "CERTIFICATE_VERIFY_FAILED|certificate verify failed|self.signed"),
        ("ssl.keystore.key", None),  # with TLS 1.3 the alert comes before or after the connection is lost
    ],
)
def test_each_of_these_settings_is_needed(
    other_host: tuple[Broker, dict[str, str]], without: str, message: str | None
) -> None:
    broker, texts = other_host
    given = {**texts, **ANY_HOST}
    del given[without]
    if without == "ssl.keystore.key":
        del given["ssl.keystore.certificate.chain"]
    with pytest.raises(ConnectionFailed, match=message):
        topics(broker, given)


@pytest.mark.parametrize(("given", "sizes"), [({}, [3]), ({"fetch.max.bytes": 200}, [2, 1])])
def test_a_response_has_at_most_fetch_max_bytes(given: dict[str, int], sizes: list[int]) -> None:
    """Also below max.partition.fetch.bytes, whose default is 8 MiB: the larger of both counted."""
    with Broker() as broker:
        broker.create_topic("most")
        with Client(broker.bootstrap_servers, **given) as client, Producer(client) as producer:
            for _ in range(3):
                batch = write_batch([plain(0, None, b"v", 5)], **producer.fields("most", 0))
                assert 66 < len(batch) < 100
                producer.send("most", 0, batch, 1)
            assert [len(list(read_batches(each.records))) for each in client.read("most", 0, 0, 3)] == sizes


def test_an_unknown_isolation_is_an_option_error() -> None:
    with Broker() as broker, Client(broker.bootstrap_servers) as client:
        broker.create_topic("orders")
        with pytest.raises(OptionError, match="isolation 'committed': expected one of read_uncommitted, read_commi"):
            client.list_offsets({("orders", 0): -1}, isolation="committed")
        with pytest.raises(OptionError, match="isolation 'committed'"):
            list(client.read("orders", 0, 0, 1, isolation="committed"))


@pytest.mark.parametrize(("more", "sizes"), [(0, [1, 1]), (1, [2])])
def test_a_fetch_waits_for_fetch_min_bytes(more: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of as many bytes as there are is answered; one of a byte more waits for the next batch."""
    monkeypatch.setattr(fetch_requests, "FETCH_WAIT_MS", HANG_MS)
    received = list[int]()

    def note(response: Any) -> None:
        records = [each.records for topic in response.responses for each in topic.partitions if each.records]
        received.extend(len(list(read_batches(each))) for each in records)

    def send(producer: Producer) -> int:
        batch = write_batch([plain(0, None, b"v", 5)], **producer.fields("minimum", 0))
        producer.send("minimum", 0, batch, 1)
        return len(batch)

    with Broker() as broker, RewritingProxy(("127.0.0.1", broker.port)) as proxy:
        broker.create_topic("minimum")
        partition = broker.call(lambda node: node.topics.partition("minimum", 0))
        proxy.rewrite["FetchResponse"] = note
        with Client(broker.bootstrap_servers) as writer, Producer(writer) as producer:
            least = send(producer) + more
            with Client(f"127.0.0.1:{proxy.port}", **{"fetch.min.bytes": str(least)}) as client:
                reading = threading.Thread(target=lambda: list(client.read("minimum", 0, 0, 2)), daemon=True)
                reading.start()
                until(lambda: received or broker.call(lambda _: len(partition.watchers)))
                send(producer)
                reading.join(HANG_S)
    assert received == sizes
