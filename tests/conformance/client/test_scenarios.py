"""Scenarios for clients: with a real client, and with programs that lie, die or hang."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.conformance import Report, Verdict
from kwire.conformance.broker import all_checks
from kwire.conformance.check import select
from kwire.conformance.client import all_scenarios, run_scenarios
from kwire.conformance.client.cluster import Loop
from kwire.conformance.client.runner import BROKER_SETTINGS
from kwire.conformance.client.script import Script
from kwire.conformance.client.stage import Stage
from kwire.errors import OptionError

EXAMPLES = Path(__file__).parents[3] / "examples" / "conformance" / "client"
BY_CHAPTER = Counter(each.chapter for each in all_scenarios())
AIOKAFKA = [sys.executable, str(EXAMPLES / "aiokafka_client.py")]


def run(command: list[str], *only: str, keeps_running: bool = False, deadline_s: float = 20) -> Report:
    scenarios = select(all_scenarios(), only, ())
    return run_scenarios(command, scenarios, release="4.4", keeps_running=keeps_running, jobs=2, deadline_s=deadline_s)


def verdicts(report: Report) -> dict[str, tuple[Verdict, str]]:
    return {each.check.id: (each.verdict, each.reason) for each in report.results}


def test_scenarios_are_described_and_have_ids_of_their_own() -> None:
    scenarios = all_scenarios()
    assert len(scenarios) >= 120
    ids = [each.id for each in [*scenarios, *all_checks()]]
    assert len(ids) == len(set(ids))
    for each in scenarios:
        assert all((each.title, each.steps, each.source)), each.id
        assert not each.title.endswith("."), each.id


@pytest.mark.sampled
@pytest.mark.parametrize("chapter", [chapter for chapter, _ in reversed(BY_CHAPTER.most_common())])
def test_each_scenario_can_be_set_up(chapter: str) -> None:
    with Loop() as loop, Broker(keep_requests=0, **BROKER_SETTINGS) as broker:
        for scenario in all_scenarios():
            if scenario.chapter == chapter:
                with Stage(loop, broker, scenario.id, nodes=scenario.nodes) as stage:
                    steps = scenario.play(stage)
                    assert next(steps).topic, scenario.id
                    steps.close()


@pytest.mark.slow
def test_a_client_that_keeps_running() -> None:
    chosen = ["PRODUCER-003", "CONSUME-003", "MOVE-002", "RETRY-PRODUCE-06"]
    report = run(AIOKAFKA, *chosen, keeps_running=True)
    assert verdicts(report) == dict.fromkeys([each.check.id for each in report.results], (Verdict.PASS, ""))
    assert report.kind == "client"
    assert all(result.evidence for result in report.results)


def test_a_client_that_is_started_for_each_task() -> None:
    assert run(AIOKAFKA, "CONSUME-001").totals[Verdict.PASS] == 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("scenario", "verdict", "reason"),
    [
        ("PRODUCER-011", Verdict.NOT_APPLICABLE, "one batch of a partition in flight"),
        ("CONSUME-035", Verdict.UNSUPPORTED, "does not use Fetch sessions"),
    ],
)
def test_a_scenario_without_what_it_is_about_is_not_passed(scenario: str, verdict: Verdict, reason: str) -> None:
    (result,) = run(AIOKAFKA, scenario).results
    assert result.verdict is verdict
    assert reason in result.reason


def test_rules_that_no_request_has_matched_are_known() -> None:
    script = Script()
    script.fail("Produce", "NOT_ENOUGH_REPLICAS")
    script.close("EndTxn", optional=True)
    assert [rule.api_key for rule in script.idle()] == [0]


LIAR = """
import json, os
for i, record in enumerate(json.loads(os.environ["KWIRE_TASK"]).get("records", [])):
    print("a line that is not JSON")
    print(json.dumps({"acked": i, "offset": i}))
"""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("pass", "without an acknowledgement: 0, 1, 2"),
        (LIAR, "acknowledged and not in the log: v0, v1"),
        ("raise SystemExit('cannot go on')", "exit code 1; the end of its standard error: cannot go on"),
        ("import time; time.sleep(60)", "still running at the deadline"),
        ("""print('{"unsupported": "no producer"}')""", "the program says: no producer"),
    ],
)
def test_a_bad_program(program: str, reason: str) -> None:
    report = run([sys.executable, "-c", program], "PRODUCER-001", deadline_s=1 if "sleep" in program else 20)
    (result,) = report.results
    assert reason in result.reason
    assert result.verdict is (Verdict.UNSUPPORTED if "unsupported" in program else Verdict.FAIL)


def test_a_program_that_cannot_be_started() -> None:
    with pytest.raises(OptionError, match="cannot be started"):
        run(["/no/such/program"], "PRODUCER-001")


STRANGER = """
import os, socket, struct
host, port = os.environ["KWIRE_BOOTSTRAP"].split(":")
with socket.create_connection((host, int(port))) as s:
    s.sendall(bytes.fromhex("{hex}"))
    s.settimeout(2)
    s.recv(100)
"""


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("0000000a0003000100000001ffff" + "00", "Metadata 1"),  # ends early
        ("0000000a03e8000000000001ffff", "API 1000 0"),
        ("474554202f20485454502f312e310d0a", ""),  # GET / HTTP/1.1
    ],
)
def test_requests_that_no_broker_should_get(frame: str, reason: str) -> None:
    report = run([sys.executable, "-c", STRANGER.replace("{hex}", frame)], "PRODUCER-001", deadline_s=5)
    (result,) = report.results
    assert result.verdict is Verdict.FAIL
    assert f"on the wire: request {reason}" in result.reason


def test_tasks_are_one_line_of_json() -> None:
    from kwire.conformance.client.task import consume, produce

    task = json.loads(produce("t", [{"partition": 0, "key": None, "value": "v"}], acks="0").to_json("A-1.0", "h:1"))
    assert (task["id"], task["bootstrap"], task["settings"]["acks"]) == ("A-1.0", "h:1", "0")
    assert "\n" not in consume("t", 1).to_json("A-1.1", "h:1")
    assert (
        "session.timeout.ms"
        not in json.loads(consume("t", 1, group_protocol="consumer").to_json("A", "h:1"))["settings"]
    )
