"""Real Kafka passes every check of its release, and keeps nothing of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from tools import conformance, kafka

from kwire.client import Client
from kwire.client.settings import ClientSettings
from kwire.conformance import Verdict
from kwire.conformance.broker import Session, all_checks, read_baseline, run_checks
from kwire.conformance.check import select

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", pytest.param("4.4.0", marks=pytest.mark.gate)])
def test_real_kafka_passes(release: str, tmp_path: Path) -> None:
    with kafka.KafkaBroker(tmp_path, version=release) as broker:
        settings = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers})
        session = Session([("127.0.0.1", broker.port)], settings, exchange_s=30)
        report = run_checks(session, all_checks(), read_baseline(release))
        assert [f"{each.check.id}: {each.reason}" for each in report.findings(strict=True)] == []
        assert report.notes == ()
        assert report.totals[Verdict.PASS] >= 600
        with Client(broker.bootstrap_servers) as client:
            # A broker of KRaft learns of deletions after they are acknowledged.
            until(lambda: not any(name.startswith(session.prefix) for name in client.metadata().topics))


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.4.0"])
def test_real_kafka_with_credentials_passes(release: str, tmp_path: Path) -> None:
    with conformance.secured(tmp_path, release) as broker:
        configs = {"bootstrap.servers": broker.bootstrap_servers, **conformance.CREDENTIALS}
        session = Session([("127.0.0.1", broker.port)], ClientSettings.parse(configs), exchange_s=30)
        checks = select(all_checks(), ["SASL", "ACLs", "Every API without ACLs", "Quotas", "Telemetry"], [])
        report = run_checks(session, checks, read_baseline(release))
        assert [f"{each.check.id}: {each.reason}" for each in report.findings(strict=True)] == []
        assert report.notes == ()
        assert report.totals[Verdict.PASS] >= 220


@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_kafka_forgets_users_after_another_was_deleted(release: str, tmp_path: Path) -> None:
    """Why checks create no users beside others. Passes while Kafka has the defect; --with-users is then needed less."""
    admin = pytest.importorskip("confluent_kafka.admin")
    sha_256 = admin.ScramMechanism.SCRAM_SHA_256

    def alter(broker: kafka.KafkaBroker, *changes: Any) -> list[str]:
        client = admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for change in changes:
            for done in client.alter_user_scram_credentials([change]).values():
                done.result(30)
        return sorted(client.describe_user_scram_credentials().result(30))

    def user(name: str) -> Any:
        return admin.UserScramCredentialUpsertion(name, admin.ScramCredentialInfo(sha_256, 4096), b"password")

    with kafka.KafkaBroker(tmp_path, version=release) as broker:
        deletion = admin.UserScramCredentialDeletion("bob", sha_256)
        assert alter(broker, user("alice"), user("bob"), deletion) == ["alice"]
    with kafka.KafkaBroker(tmp_path, version=release) as broker:
        assert alter(broker) == []
