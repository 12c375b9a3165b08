"""kwire's own broker against the newest baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tools.conformance import CREDENTIALS

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.settings import ClientSettings
from kwire.conformance import Report, Verdict
from kwire.conformance.broker import BrokerCheck, Session, all_checks, read_baseline, run_checks
from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.acls import allow
from kwire.conformance.broker.users import new_user
from kwire.conformance.check import select


def session_of(broker: Broker, exchange_s: float = 20) -> Session:
    """A session with credentials for a broker of `secured`."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    configs = {"bootstrap.servers": broker.bootstrap_servers}
    if broker.settings.listeners.startswith("SASL"):
        configs |= CREDENTIALS
    settings = ClientSettings.parse(configs)
    return Session([(host, int(port))], settings, exchange_s=exchange_s, settled_s=0.5, with_users=True)


@contextmanager
def secured(folder: Path) -> Iterator[Broker]:
    """A broker with SASL and ACLs, and telemetry, which is served once something is subscribed to."""
    user, password = CREDENTIALS["sasl.username"], CREDENTIALS["sasl.password"]
    with Broker(
        folder,
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        users={user: password},
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        acls=True,
        super_users=f"User:{user}",
    ) as broker:
        subscribe(broker)
        yield broker


def subscribe(broker: Broker) -> None:
    """Subscribe to the metrics of no client: kwire serves telemetry only with a subscription."""
    broker.call(lambda node: node.controller.alter_client_metrics("nobody", {"match": "client_id=nobody"}))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        subscribe(broker)
        return run_checks(session_of(broker), all_checks(), read_baseline("4.4"))


def test_nothing_failed(report: Report) -> None:
    assert [f"{each.check.id}: {each.reason}" for each in report.findings()] == []
    assert report.notes == ()


def test_most_checks_pass(report: Report) -> None:
    applicable = len(report.results) - report.totals[Verdict.NOT_APPLICABLE]
    assert report.totals[Verdict.PASS] > 0.95 * applicable
    assert applicable > 0.7 * len(report.results)


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
        assert session.clean_up() == ([], [])
        with Client(broker.bootstrap_servers) as client:
            assert set(client.metadata().topics) == {"kwire-conformance-mine"}


# With credentials

CHAPTERS = ("SASL", "ACLs", "Every API without ACLs", "Quotas", "Telemetry")


@pytest.mark.slow
def test_nothing_failed_with_credentials(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        report = run_checks(session_of(broker), select(all_checks(), CHAPTERS, []), read_baseline("4.4"))
        assert [f"{each.check.id}: {each.reason}" for each in report.findings()] == []
        assert report.notes == ()
        assert kept(broker) == NOTHING
    applicable = [each for each in report.results if each.verdict is not Verdict.NOT_APPLICABLE]
    assert len(applicable) > 0.98 * len(report.results)  # but those of streams groups
    password = CREDENTIALS["sasl.password"].encode()
    assert not any(password in each.data for result in report.results for each in result.evidence)


NOTHING: dict[str, list[Any]] = {"acls": [], "users": [], "quotas": [], "client metrics": ["nobody"]}


def kept(broker: Broker) -> dict[str, list[Any]]:
    """What a cluster has of the things that checks create; none of it is made by the settings."""
    session = session_of(broker)
    session.learn_versions()
    bench = Bench(session, "kept")
    try:
        return {
            "acls": bench.ask("DescribeAcls", resource_type_filter=1, operation=1, permission_type=1).resources,
            "users": [
                each.user
                for each in bench.ask("DescribeUserScramCredentials", users=None).results
                if each.user != CREDENTIALS["sasl.username"]
            ],
            "quotas": bench.ask("DescribeClientQuotas", components=[], strict=False).entries,
            "client metrics": [
                each.resource_name for each in bench.ask("ListConfigResources", resource_types=[16]).config_resources
            ],
        }
    finally:
        bench.close()


def test_checks_that_need_credentials_are_not_applicable_without(report: Report) -> None:
    reasons = {each.reason for each in report.results if each.check.chapter in CHAPTERS[:3]}
    assert reasons == {"no SASL credentials are given; use --config-file"}


def test_no_users_are_created_beside_others(tmp_path: Path) -> None:
    """Kafka with KRaft can forget them at its next start, once a user of a check was deleted."""
    with secured(tmp_path) as broker:
        session = session_of(broker)
        session.with_users = False
        report = run_checks(session, select(all_checks(), ["USER", "LOGIN-020", "ACL-020"], []), read_baseline("4.4"))
    assert {each.verdict for each in report.results} == {Verdict.NOT_APPLICABLE}
    assert all("the cluster has SCRAM users, such as 'admin', and deleting" in each.reason for each in report.results)


def test_only_these_chapters_need_credentials() -> None:
    needing = {each.chapter for each in all_checks() if {"credentials", "own users", "authorizer"} & set(each.needs)}
    assert needing == {*CHAPTERS} - {"Telemetry"}


def test_an_interrupted_check_leaves_nothing_behind(tmp_path: Path) -> None:
    def observe(bench: Bench) -> None:
        allow(bench, new_user(bench), bench.name("topic"), 3)
        raise KeyboardInterrupt

    source = next(each.id for each in all_checks() if each.chapter == "ACLs")
    check = BrokerCheck(id=source, chapter="ACLs", title="t", needs=("own users",), observe=observe)
    with secured(tmp_path) as broker:
        report = run_checks(session_of(broker), [check], read_baseline("4.4"))
        assert report.was_interrupted
        assert report.notes == ("interrupted after 0 of 1 checks",)
        assert kept(broker) == NOTHING


def test_what_a_check_cannot_undo_is_undone_at_the_end_or_reported(tmp_path: Path) -> None:
    attempts: list[str] = []

    def remove(bench: Bench) -> None:
        attempts.append("")
        if len(attempts) == 1:
            raise OSError

    def never(bench: Bench) -> None:
        raise OSError

    def observe(bench: Bench) -> dict[str, Any]:
        bench.own("something", remove)
        bench.own("something else", never)
        return {}

    check = BrokerCheck(id="FRAME-001", chapter="C", title="t", observe=observe)
    with Broker(tmp_path) as broker:
        report = run_checks(session_of(broker), [check], read_baseline("4.4"))
    assert len(attempts) == 2
    assert report.notes == ("cannot be deleted: something else",)


@pytest.mark.parametrize("user", [None, "ANONYMOUS", "other"])
def test_quotas_of_clients_are_not_checked_beside_one_of_the_user(tmp_path: Path, user: str | None) -> None:
    """They do not count then, so the checks failed; real Kafka 3.9.1 does the same."""
    with Broker(tmp_path) as broker:
        session = session_of(broker)
        session.learn_versions()
        bench = Bench(session, "test")
        entry = {
            "entity": [{"entity_type": "user", "entity_name": user}],
            "ops": [{"key": key, "value": 1e9} for key in ("producer_byte_rate", "consumer_byte_rate")],
        }
        assert not bench.ask("AlterClientQuotas", entries=[entry], validate_only=False).entries[0].error_code
        bench.close()
        names = ["QUOTA-006", "QUOTA-007", "QUOTA-008"]
        report = run_checks(session, select(all_checks(), names, []), read_baseline("4.4"))
    if user == "other":
        assert {each.verdict for each in report.results} == {Verdict.PASS}
        return
    assert {each.verdict for each in report.results} == {Verdict.NOT_APPLICABLE}
    of = "the default user" if user is None else "user 'ANONYMOUS'"
    reason = f"the cluster has a producer_byte_rate of {of}, which comes before that of a client id"
    assert report.results[0].reason == reason


def test_all_that_is_left_is_named_and_nothing_else(tmp_path: Path) -> None:
    """The list ended after ten names, some of which had never been created."""

    def observe(bench: Bench) -> dict[str, Any]:
        names = [bench.created(bench.name(f"topic-{number}")) for number in range(12)]
        bench.created(bench.name("never"))
        bench.group("never")
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        bench.ask("CreateTopics", topics=topics, timeout_ms=5000)
        bench.session.served.pop("DeleteTopics")
        bench.session.served.pop("DeleteGroups")
        return {}

    check = BrokerCheck(id="FRAME-001", chapter="C", title="t", observe=observe)
    with Broker(tmp_path) as broker:
        report = run_checks(session_of(broker), [check], read_baseline("4.4"))
    (note,) = report.notes
    assert note.startswith("cannot be deleted: ")
    assert note.count("topic-") == 12
    assert "never" not in note
