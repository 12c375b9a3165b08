"""kwire's own broker against the newest baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.settings import ClientSettings
from kwire.conformance import Report, Verdict
from kwire.conformance.broker import Session, all_checks, read_baseline, run_checks


def session_of(broker: Broker, exchange_s: float = 20) -> Session:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    settings = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers})
    return Session([(host, int(port))], settings, exchange_s=exchange_s)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        return run_checks(session_of(broker), all_checks(), read_baseline("4.4"))


def test_nothing_failed(report: Report) -> None:
    assert [f"{each.check.id}: {each.reason}" for each in report.findings()] == []
    assert report.notes == ()


def test_most_checks_pass(report: Report) -> None:
    assert report.totals[Verdict.PASS] > 0.8 * len(report.results)


def test_verdicts_have_reasons(report: Report) -> None:
    for result in report.results:
        assert result.reason or result.verdict is Verdict.PASS, result.check.id
        if result.verdict not in (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE) and not result.check.id.startswith(
            "RANGE"
        ):
            assert result.evidence, result.check.id


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    checks = [check for check in all_checks() if check.id in ("ORDER-002", "FRAME-001")]
    with Broker(tmp_path) as broker:
        session = session_of(broker)
        broker.create_topic("kwire-conformance-mine")  # with the word, but not with the prefix of the run
        run_checks(session, checks, read_baseline("4.4"))
        with Client(broker.bootstrap_servers) as client:
            names = set(client.metadata().topics)
        assert [name for name in names if name.startswith(session.prefix)] == []
        assert "kwire-conformance-mine" in names


def test_topics_that_the_broker_should_have_rejected_are_deleted(tmp_path: Path) -> None:
    """Tansu 0.6.0 kept those of ERROR-CREATE-TOPICS: it accepts their names."""
    with Broker(tmp_path) as broker:
        session = session_of(broker)
        session.learn_versions()
        broker.create_topic(f"{session.prefix}-rejected")
        broker.create_topic("kwire-conformance-mine")
        assert session.clean_up() == []
        with Client(broker.bootstrap_servers) as client:
            assert set(client.metadata().topics) == {"kwire-conformance-mine"}
