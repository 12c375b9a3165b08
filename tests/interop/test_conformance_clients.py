"""Real clients in every scenario of `kwire conformance client`: what each does differently is known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tools import kafka

from kwire.conformance import Report
from kwire.conformance.client import all_scenarios, run_scenarios

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples" / "conformance" / "client"
KNOWN = {
    "librdkafka": {
        "CONSUME-026",  # Fetch goes on during a throttle time
        "REPORT-JOIN-GROUP-82",  # FENCED_INSTANCE_ID and GROUP_AUTHORIZATION_FAILED are retried, and not reported
        "REPORT-SYNC-GROUP-30",
        "REPORT-SYNC-GROUP-82",
    },
    "aiokafka": {
        "CONSUME-026",  # throttle times are ignored
        "PRODUCER-009",
        "FORMAT-MIXED",  # the magic of the first batch is taken for that of all
        "MOVE-006",  # leader epochs are ignored (KIP-320)
        "REPORT-LIST-OFFSETS-29",  # an error of ListOffsets is retried without end
        "TRANSACT-010",  # a transaction is committed without the record that failed
    },
}
MAX_LINES = 150


def findings(command: list[str]) -> set[str]:
    report: Report = run_scenarios(command, all_scenarios(), release="4.4", keeps_running=True)
    return {each.check.id for each in report.findings()}


def test_the_client_of_kafka_passes() -> None:
    jars = kafka.jars("4.4.0")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(EXAMPLES / "KafkaClient.java")]
    assert findings(command) == set()


@pytest.mark.parametrize("name", KNOWN)
def test_a_client_differs_only_where_it_is_known(name: str) -> None:
    assert findings([sys.executable, str(EXAMPLES / f"{name}_client.py")]) <= KNOWN[name]


def test_programs_are_short() -> None:
    for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.java")):
        assert len(path.read_text().splitlines()) <= MAX_LINES, path
