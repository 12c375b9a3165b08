"""A transactional stream is killed before and after each of its requests: every row is written once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kwire.broker import Broker
from kwire.client.broker_connection import BrokerConnection

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("confluent_kafka")

from tests.spark.live.test_sink import consume, create, options, run_batch

from kwire.spark.live.sink import commit_batch
from kwire.spark.live.write_options import LiveWriteOptions

BATCHES = [[["a0", "a1"], ["b0"]], [["a2"], ["b1", "b2"], [], ["c0"]], [["a3"], ["b3"]]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(offsets_topic_num_partitions=3, transaction_state_log_num_partitions=3) as broker:
        yield broker.bootstrap_servers


class Killed(BaseException):
    """The process was killed."""


class Kill:
    """Counts requests and kills at one of them. is_sent: whether the broker receives that request."""

    def __init__(self, patch: pytest.MonkeyPatch, *, at: int, is_sent: bool) -> None:
        self.at, self.is_sent = at, is_sent
        self.requests = 0
        really = BrokerConnection._write

        def write(connection: BrokerConnection, data: bytes) -> None:
            self.requests += 1
            if self.requests == self.at and self.is_sent:
                really(connection, data)
            if self.requests >= self.at:  # nor does it clean up
                connection.close()
                raise Killed
            really(connection, data)

        patch.setattr(BrokerConnection, "_write", write)


def run(given: LiveWriteOptions, number: int) -> None:
    commit_batch(given, run_batch(given, number, BATCHES[number]), number, tasks=len(BATCHES[number]))


@pytest.mark.slow
@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
def test_a_batch_killed_at_any_request_is_written_once(servers: str, is_sent: bool) -> None:
    at, is_over = 0, False
    while not is_over:
        at += 1
        topic = create(servers, f"at-{at}-{is_sent}", 2)
        given = options(servers, topic=topic, transactionalIdPrefix=topic)
        run(given, 0)
        with pytest.MonkeyPatch.context() as patch:
            Kill(patch, at=at, is_sent=is_sent)
            try:
                run(given, 1)
                is_over = True  # it has fewer requests than that
            except Killed:
                pass
        run(given, 1)
        run(given, 2)
        check(servers, topic, f"killed at request {at}")
    assert at > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_repeatedly_killed_runs_write_every_row_once(servers: str, seed: int) -> None:
    choose = random.Random(seed)
    topic = create(servers, f"seed-{seed}", 2)
    given = options(servers, topic=topic, transactionalIdPrefix=topic)
    kills = 0
    for number in range(len(BATCHES)):
        is_over = False
        while not is_over:
            with pytest.MonkeyPatch.context() as patch:
                Kill(patch, at=choose.randint(1, 120), is_sent=choose.random() < 0.5)
                try:
                    run(given, number)
                    # its checkpoint may not say so
                    is_over = choose.random() < 0.5
                except Killed:
                    kills += 1
    check(servers, topic, f"killed {kills} times")
    assert kills


def check(servers: str, topic: str, what: str) -> None:
    found = sorted(message.value().decode() for message in consume(servers, topic))
    assert found == sorted(row for rows in BATCHES for task in rows for row in task), what
