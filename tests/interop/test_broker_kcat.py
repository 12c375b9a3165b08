"""kcat: librdkafka with the protocol of brokers of every age, and topics of every format."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.waiting import HANG_S
from tools import kafka

from kwire.broker import Broker
from kwire.records import read_batches

pytestmark = pytest.mark.slow

AGES = {
    "0.8.2": ["api.version.request=false", "broker.version.fallback=0.8.2"],
    "0.9.0": ["api.version.request=false", "broker.version.fallback=0.9.0"],
    "0.10.1": ["api.version.request=false", "broker.version.fallback=0.10.1"],
    "now": [],
}
SENT_MAGIC = {"0.8.2": 0, "0.9.0": 0, "0.10.1": 2, "now": 2}  # from 0.10 librdkafka always requests ApiVersions
TOPIC_MAGIC = {"0.9.0": 0, "0.10.2": 1, "3.0": 2}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(keep_requests=2000) as broker:
        yield broker


def kcat(broker: Broker, age: str, *arguments: str, text: str = "", fails: bool = False) -> str:
    """Run kcat with the protocol of brokers of that age and return its output."""
    settings = [word for each in AGES[age] for word in ("-X", each)]
    command = [kafka.need("kcat", "kcat"), "-b", broker.bootstrap_servers, *settings, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode != 0) is fails, done.stderr
    return done.stderr if fails else done.stdout


def make_topic(broker: Broker, name: str, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    broker.call(lambda node: node.controller.create_topic(name, 1, configs=settings))


def magics(produced: bytes) -> set[int]:
    return {batch.magic for batch in read_batches(produced)}


@pytest.mark.parametrize("format_version", list(TOPIC_MAGIC))
@pytest.mark.requirement("U-01", "U-02", "U-04", "S31-16", "S31-17", "S31-18", "S31-19", "S31-20", "S31-21", "S31-24")
def test_clients_of_all_versions_share_topics_of_all_formats(broker: Broker, format_version: str) -> None:
    topic = f"topic-{format_version}"
    make_topic(broker, topic, message_format_version=format_version)
    expected = []
    for age in AGES:
        for codec in ("none", "gzip", "snappy"):
            before = len(broker.requests.of("Produce"))
            lines = [f"{age}-{codec}-{i}" for i in range(3)]
            kcat(
                broker,
                age,
                "-P",
                "-t",
                topic,
                "-p",
                "0",
                "-K",
                ":",
                "-z",
                codec,
                text="".join(f"k:{x}\n" for x in lines),
            )
            expected += lines
            sent = broker.requests.of("Produce")[before:]
            assert sent
            for each in sent:
                (of_topic,) = each.request.topic_data
                assert magics(of_topic.partition_data[0].records) == {SENT_MAGIC[age]}
    stored = broker.call(lambda node: node.topics.get(topic).partitions[0].log.fetch(0, 1 << 20).read())
    assert magics(stored) == {TOPIC_MAGIC[format_version]}
    for age in AGES:
        printed = kcat(broker, age, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k %s\n")
        assert printed.splitlines() == [f"{i} k {value}" for i, value in enumerate(expected)], age


@pytest.mark.parametrize("age", ["0.9.0", "now"])
def test_a_group_resumes_at_its_committed_offsets(broker: Broker, age: str) -> None:
    topic = f"grouped-{age}"
    make_topic(broker, topic)
    reading = ("-G", f"group-{age}", "-q", "-e", "-X", "auto.offset.reset=earliest", topic)
    for text in ("a\nb\n", "c\n"):
        kcat(broker, "now", "-P", "-t", topic, text=text)
        assert kcat(broker, age, *reading) == text


def test_headers_timestamps_and_transactions_of_today(broker: Broker) -> None:
    make_topic(broker, "today")
    kcat(
        broker, "now", "-P", "-t", "today", "-H", "h=1", "-X", "transactional.id=kcat", "-z", "zstd", text="one\ntwo\n"
    )
    printed = kcat(
        broker, "now", "-C", "-t", "today", "-e", "-q", "-X", "isolation.level=read_committed", "-f", "%h %s\n"
    )
    assert printed.splitlines() == ["h=1 one", "h=1 two"]


@pytest.mark.requirement("U-03", "U-10", "U-16")
def test_old_clients_cannot_fetch_zstd(broker: Broker) -> None:
    make_topic(broker, "squeezed")
    kcat(broker, "now", "-P", "-t", "squeezed", "-z", "zstd", text="z" * 1000 + "\n")
    printed = kcat(broker, "0.9.0", "-C", "-t", "squeezed", "-p", "0", "-o", "beginning", "-e", "-q", fails=True)
    assert "76" in printed or "compression" in printed.lower(), printed


@pytest.mark.parametrize("age", list(AGES))
def test_offsets_by_timestamp_and_topics_are_listed(broker: Broker, age: str) -> None:
    make_topic(broker, f"listed-{age}")
    kcat(broker, age, "-P", "-t", f"listed-{age}", text="1\n2\n3\n")
    assert f'topic "listed-{age}" with 1 partitions' in kcat(broker, age, "-L")
    printed = kcat(broker, age, "-C", "-t", f"listed-{age}", "-o", "-2", "-e", "-q")
    assert printed.splitlines() == ["2", "3"]
