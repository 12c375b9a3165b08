"""Brokers that hang, lie or die, and an interruption: their checks fail, and the run ends."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tools.conformance import CREDENTIALS

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.settings import ClientSettings
from kwire.conformance import Report, Verdict
from kwire.conformance.broker import BrokerCheck, Session, all_checks, bench, read_baseline, run_checks
from kwire.conformance.broker.connection import Deadlines
from kwire.messages import registry
from tests.conformance.broker.lying_proxy import LIES, LyingProxy
from tests.conformance.broker.test_kwire import secured, session_of

IDS = ("FRAME-001", "FRAME-006", "VERSION-001", "METADATA-004", "PRODUCE-001", "FETCH-001", "GROUP-001", "TXN-001")
METADATA, JOIN_GROUP, CREATE_TOPICS = 3, 11, 19
CHECKS = [check for check in all_checks() if check.id in IDS]
Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve) -> Iterator[tuple[str, int]]:
    """A server that handles each connection with a function."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=one, args=(connection,), daemon=True).start()

        def one(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                serve(connection)

        threading.Thread(target=run, daemon=True).start()
        yield listener.getsockname()[:2]


def hang(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def close(connection: socket.socket) -> None:
    connection.recv(1)


def zeros(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        connection.sendall(bytes(64))


def huge_frame(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        connection.sendall(b"\x7f\xff\xff\xff" + bytes(1 << 16))


def drip(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"\x00\x00\x10\x00" + bytes(100))
    hang(connection)


def empty_lists(connection: socket.socket) -> None:
    """Respond to everything with its correlation id and zeros: no error, and empty arrays."""
    while data := connection.recv(1 << 16):
        connection.sendall(b"\x00\x00\x00\x40" + data[8:12] + bytes(60))


def run(address: tuple[str, int]) -> Report:
    settings = ClientSettings.parse({"bootstrap.servers": f"{address[0]}:{address[1]}"})
    return run_checks(Session([address], settings, exchange_s=0.3), CHECKS, read_baseline("4.4"))


@pytest.mark.sampled
@pytest.mark.parametrize("serve", [hang, close, zeros, huge_frame, drip, empty_lists], ids=lambda serve: serve.__name__)
def test_every_check_ends(serve: Serve) -> None:
    with server(serve) as address:
        report = run(address)
    assert len(report.results) == len(CHECKS)
    assert report.notes
    failed = {each.check.id for each in report.findings()}
    assert failed >= {"FRAME-006", "VERSION-001", "METADATA-004", "FETCH-001"}
    assert all(each.reason for each in report.results if each.verdict is not Verdict.PASS)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()[:2]
    report = run(address)
    assert len(report.findings()) == len(CHECKS)
    assert "cannot connect" in report.results[0].reason


def test_a_broker_that_dies_on_the_way(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:

        def stop(check: BrokerCheck) -> None:
            if check.id == "FETCH-001":
                broker.stop()

        report = run_checks(session_of(broker), CHECKS, read_baseline("4.4"), progress=stop)
        broker.start()
    verdicts = {each.check.id: each.verdict for each in report.results}
    assert verdicts["PRODUCE-001"] is Verdict.PASS
    assert verdicts["FETCH-001"] is verdicts["TXN-001"] is Verdict.FAIL
    assert any("cannot be deleted" in note for note in report.notes)


def test_an_interruption_leaves_nothing_behind(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:

        def interrupt(check: BrokerCheck) -> None:
            if check.id == "GROUP-001":
                raise KeyboardInterrupt

        session = session_of(broker)
        report = run_checks(session, CHECKS, read_baseline("4.4"), progress=interrupt)
        assert report.was_interrupted
        assert 0 < len(report.results) < len(CHECKS)
        with Client(broker.bootstrap_servers) as client:
            assert [name for name in client.metadata().topics if name.startswith(session.prefix)] == []


def test_topics_that_metadata_creates_are_used_without_create_topics(tmp_path: Path) -> None:
    """As those of librdkafka's mock cluster."""

    def hide(_: Any, response: Any) -> Any:
        response.api_keys = [each for each in response.api_keys if each.api_key != CREATE_TOPICS]
        return response

    with Broker(tmp_path, auto_create_topics_enable=True) as broker:
        broker.faults.change("ApiVersions", hide)
        checks = [check for check in CHECKS if check.id in ("PRODUCE-001", "FETCH-001")]
        report = run_checks(session_of(broker), checks, read_baseline("4.4"))
    results = {each.check.id: (each.verdict, each.reason) for each in report.results}
    assert results["PRODUCE-001"] == results["FETCH-001"] == (Verdict.PASS, "")


def test_a_broker_that_is_silent_for_one_api_only_is_waited_for_less() -> None:
    deadlines = Deadlines(10)
    for _ in range(4):
        deadlines.count(arrived=True, api_key=METADATA)
        deadlines.count(arrived=False, api_key=JOIN_GROUP)
    assert deadlines.wait_s(JOIN_GROUP) == 1
    assert deadlines.wait_s(METADATA) == deadlines.wait_s() == 10
    deadlines.count(arrived=True, api_key=JOIN_GROUP)
    assert deadlines.wait_s(JOIN_GROUP) == 10


def short_list(connection: socket.socket) -> None:
    """Respond to everything as to a too new ApiVersions, with a list of 9 APIs that ends early."""
    while data := connection.recv(1 << 16):
        connection.sendall(b"\x00\x00\x00\x10" + data[8:12] + b"\x00\x23\x00\x00\x00\x09" + bytes(6))


def test_a_short_list_of_apis_is_named(tmp_path: Path) -> None:
    with server(short_list) as address:
        result = next(each for each in run(address).results if each.check.id == "VERSION-001")
    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith("the response does not have the format of its version: api_keys: array of 9")
    assert [each.label for each in result.evidence] == ["bytes sent", "bytes received"]


SET_UP = ("Topics", "CreateTopics", "Metadata", "ApiVersions", "AlterUserScramCredentials", "CreateAcls")


@pytest.mark.slow
@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_broker_that_lies_about_what_a_check_is_about(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but verdicts comes out, and no reason is an exception of Python."""
    monkeypatch.setattr(bench, "READY_S", 0.3)
    monkeypatch.setattr(bench, "PATIENCE_S", 0.5)
    checks = all_checks()[sorted(LIES).index(lie) :: 3 * len(LIES)]
    with secured(tmp_path) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with LyingProxy((host, int(port)), lie) as proxy:
            settings = ClientSettings.parse({"bootstrap.servers": proxy.address, **CREDENTIALS})
            session = Session([("127.0.0.1", proxy.port)], settings, exchange_s=0.3, settled_s=0.2)

            def lie_about(check: BrokerCheck) -> None:
                own = [api for api in check.uses if api not in SET_UP] or [api for api in check.uses if api != "Topics"]
                proxy.about = {registry.get(f"{api}Request").API_KEY or 0 for api in own}

            report = run_checks(session, checks, read_baseline("4.4"), progress=lie_about)
    assert len(report.results) == len(checks)
    verdicts = [each for each in report.results if each.verdict is not Verdict.NOT_APPLICABLE]
    assert sum(each.verdict is Verdict.FAIL for each in verdicts) > 0.5 * len(verdicts)  # those of ranges pass
    assert [each.reason for each in verdicts if PYTHON.search(each.reason)] == []
    # Ranges compare what was learned before; a login is made by kwire's client, and keeps no bytes.
    silent = [each for each in verdicts if each.verdict is Verdict.FAIL and not each.evidence]
    assert [
        each.check.id for each in silent if not LOGIN & each.check.uses.keys() and each.check.id[:5] != "RANGE"
    ] == []


LOGIN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
PYTHON = re.compile(r"[A-Za-z]Error\b|[A-Za-z]Exception\b|StopIteration|unpack|NoneType|list index|struct\.")
