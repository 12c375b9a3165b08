"""Java clients of 0.9 to 4.4, and KIP-31's migration from magic 0 to 2 while they produce and consume."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.interop import old_peer
from tests.waiting import HANG_S, until

from kwire.broker import Broker
from kwire.log import LogDirectory

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

MAGICS = {"0.9.0": 0, "0.10.2": 1, "3.0": 2}
NO_TIMESTAMP = "-1"
OLDEST = "0.9.0.1"


@pytest.fixture(scope="module", autouse=True)
def _clients() -> None:
    for release in old_peer.RELEASES:
        old_peer.class_path(release)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(
        tmp_path_factory.mktemp("broker") / "data", offsets_topic_num_partitions=1, keep_requests=2000
    ) as broker:
        yield broker


def make_topic(broker: Broker, name: str, **settings: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(HANG_S)
    return admin


def produce(broker: Broker, topic: str, word: str, count: int, codec: str) -> None:
    """Produce with librdkafka."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec, "log_level": 0})
    for i in range(count):
        producer.produce(topic, f"{word}{i}", f"k{i}", partition=0)
    assert producer.flush(HANG_S) == 0


def consume(broker: Broker, topic: str, count: int) -> list[str]:
    """Consume with librdkafka; return records as OldPeer prints them, without timestamps."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "-", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    lines: list[str] = []
    while len(lines) < count:
        message = consumer.poll(HANG_S)
        assert message is not None, f"{len(lines)} of {count} records came"
        assert message.error() is None, message.error()
        lines.append(f"{message.offset()} {message.key().decode()} {message.value().decode()}")
    consumer.close()
    return lines


def magics(broker: Broker, topic: str) -> list[tuple[int, int]]:
    """Return offset and magic of the partition's batches on disk."""
    assert broker.data_dir is not None
    log = LogDirectory(broker.data_dir)[topic, 0]
    return [(batch.base_offset, batch.magic) for _, batch in log.batches()]


@pytest.mark.parametrize(
    ("format_version", "codec"),
    [("0.9.0", "none"), ("0.9.0", "lz4"), ("0.10.2", "snappy"), ("3.0", "gzip")],  # lz4: KIP-57's wrong checksum
)
@pytest.mark.requirement("U-01", "U-02", "U-04", "A-20", "A-21", "A-22", "S31-13", "S31-15", "S31-16", "S31-18")
def test_every_release_reads_records_of_every_other(broker: Broker, format_version: str, codec: str) -> None:
    topic = f"all-{format_version}-{codec}"
    make_topic(broker, topic, message_format_version=format_version)
    written = []
    for release in old_peer.RELEASES:
        word = f"from-{release}-"
        printed = old_peer.run(release, broker.bootstrap_servers, "produce", topic, codec, word, 5)
        assert printed == [" ".join(str(len(written) + i) for i in range(5))]
        written += [f"{len(written) + i} k{i} {word}{i}" for i in range(5)]
    assert {magic for _, magic in magics(broker, topic)} == {MAGICS[format_version]}
    for release in old_peer.RELEASES:
        *lines, committed = old_peer.run(release, broker.bootstrap_servers, "follow", topic, release, 20, int(HANG_S))
        assert [line.rpartition(" ")[0] for line in lines] == written
        assert committed == "committed 20"
        timestamps = [line.rpartition(" ")[2] for line in lines]
        if release == OLDEST:
            assert set(timestamps) == {"-"}
        elif format_version == "0.9.0":
            assert set(timestamps) == {NO_TIMESTAMP}
        else:  # 0.9's producer sends none
            assert set(timestamps[:5]) == {NO_TIMESTAMP}
            assert NO_TIMESTAMP not in timestamps[5:]
    assert consume(broker, topic, 20) == written


@pytest.mark.gate
@pytest.mark.requirement(
    "U-01", "U-02", "U-04", "S31-13", "S31-15", "S31-16", "S31-18", "S31-19", "S31-20", "S31-21", "S31-25", "S31-26",
    "S31-22", "S31-28", "S31-29", "S31-30", "S31-32", "S31-35", "S31-37",
)  # fmt: skip
def test_a_topic_can_change_to_newer_formats_in_use(broker: Broker) -> None:
    """KIP-31, Migration Plan: consumers of every age stay connected while the format changes from 0 to 1 to 2."""
    admin = make_topic(broker, "moved", message_format_version="0.9.0")
    servers = broker.bootstrap_servers
    batch, phases = 4, 3
    expected_magic: list[tuple[int, int]] = []  # first offset of a phase, magic from there on
    written: list[str] = []
    total = phases * 5 * batch

    def write(word: str, release: str | None, codec: str) -> None:
        if release is None:
            produce(broker, "moved", word, batch, codec)
        else:
            old_peer.run(release, servers, "produce", "moved", codec, word, batch)
        written.extend([f"{len(written) + i} k{i} {word}{i}" for i in range(batch)])

    with ExitStack() as running:
        readers = {
            release: running.enter_context(
                old_peer.following(release, servers, "follow", "moved", f"reader-{release}", total, int(HANG_S))
            )
            for release in ("0.9.0.1", "0.10.2.2", "3.9.1")
        }
        for phase, (version, magic) in enumerate(MAGICS.items()):
            if phase:
                entry = ConfigEntry("message.format.version", version, incremental_operation=AlterConfigOpType.SET)
                resource = ConfigResource(ResourceType.TOPIC, "moved", incremental_configs=[entry])
                admin.incremental_alter_configs([resource])[resource].result(HANG_S)
            expected_magic.append((len(written), magic))
            write(f"old{phase}-", "0.9.0.1", "gzip")
            write(f"mid{phase}-", "0.10.2.2", "snappy")
            write(f"new{phase}-", "3.9.1", "lz4")
            write(f"plain{phase}-", "4.4.0", "none")
            write(f"c{phase}-", None, "gzip")
        for release, process in readers.items():
            out, errors = process.communicate(timeout=HANG_S)
            *lines, committed = out.splitlines()
            assert [line.rpartition(" ")[0] for line in lines] == written, f"{release}: {errors[-1000:]}"
            assert committed == f"committed {total}"
    assert consume(broker, "moved", total) == written
    for offset, magic in magics(broker, "moved"):
        assert magic == max(m for first, m in expected_magic if first <= offset), f"offset {offset}"


@pytest.mark.requirement("U-03", "U-10", "U-16")
def test_old_consumers_cannot_read_zstd(broker: Broker) -> None:
    make_topic(broker, "zstd")
    word = "z" * 200  # librdkafka does not compress what would not become smaller
    produce(broker, "zstd", word, 3, "zstd")
    unsupported_compression_type = 76
    for release in ("0.9.0.1", "0.10.2.2"):  # a code that they do not know is a warning to them, and they ask again
        broker.requests.clear()
        words = (broker.bootstrap_servers, "follow", "zstd", f"zstd-{release}", 3, int(HANG_S))
        with old_peer.following(release, *words) as process:
            until(lambda: len(broker.requests.of("Fetch")) >= 3 or process.poll() is not None)
            process.kill()
            assert process.communicate()[0] == ""
        answers = [each.response.responses[0] for each in broker.requests.of("Fetch")]
        assert {each.topic for each in answers} == {"zstd"}
        assert {each.partitions[0].error_code for each in answers} == {unsupported_compression_type}
    assert consume(broker, "zstd", 3) == [f"{i} k{i} {word}{i}" for i in range(3)]


@pytest.mark.requirement("U-02")
def test_down_conversion_can_be_disabled_per_topic(broker: Broker) -> None:
    make_topic(broker, "forbidden", message_downconversion_enable="false")
    produce(broker, "forbidden", "f", 3, "none")
    printed = old_peer.run("0.10.2.2", broker.bootstrap_servers, "follow", "forbidden", "forbidden", 3, int(HANG_S))
    assert "Unexpected error code 35 " in printed[0], printed  # UNSUPPORTED_VERSION
    assert consume(broker, "forbidden", 3) == [f"{i} k{i} f{i}" for i in range(3)]


@pytest.mark.requirement("R-03", "S31-33")
def test_the_log_of_a_converted_topic_reads_the_same_without_a_broker(broker: Broker, tmp_path: Path) -> None:
    """After the migration test, one log contains all three formats."""
    assert broker.data_dir is not None
    shutil.copytree(broker.data_dir / "moved-0", tmp_path / "moved-0")
    log = LogDirectory(tmp_path)["moved", 0]
    assert {batch.magic for _, batch in log.batches()} == {0, 1, 2}
    values = [record.value for record in log.read()]
    assert len(values) == 60
    assert values[0] == b"old0-0"
    assert values[-1] == b"c2-3"
