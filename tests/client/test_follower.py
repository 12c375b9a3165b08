"""Partitions followed as records are written, in fetch sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.fetch_requests import FETCH
from kwire.client.follower import Follower
from kwire.errors import LogError
from kwire.identifiers import TopicPartition
from kwire.messages import FetchRequest, ListOffsetsRequest
from kwire.messages.base import Message
from kwire.records import read_batches
from tests.client.test_cluster_logs import create, delete_records, delete_topic, write
from tests.rewriting_proxy import RewritingProxy
from tests.waiting import until

SETTINGS = {"default.api.timeout.ms": 20_000, "retry.backoff.ms": 10}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers, **SETTINGS) as client:
        yield client


def following(client: Client, offsets: Mapping[TopicPartition, int]) -> Follower:
    follower = Follower(client)
    for key, offset in offsets.items():
        follower.add(key, offset)
    return follower


def poll(follower: Follower) -> dict[str, list[int]]:
    """Poll once; return the base offsets of the batches by topic."""
    found: dict[str, list[int]] = {}
    for (topic, _), fetched in follower.poll():
        found.setdefault(topic, []).extend(batch.base_offset for batch in read_batches(fetched.records))
    return found


def test_a_session_sends_only_what_has_changed(broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(broker.bootstrap_servers) as writer:
        for topic in ("a", "b", "c"):
            create(writer, topic)
            write(writer, topic, 1)
        sent: list[FetchRequest] = []
        connection = client.connection(client.leader(("a", 0)))
        send = connection.send

        def spy(message: Message, **options: object) -> None:
            if isinstance(message, FetchRequest):
                sent.append(message)
            send(message, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(connection, "send", spy)
        with following(client, {("a", 0): 0, ("b", 0): 0, ("c", 0): 10}) as follower:
            assert poll(follower) == {"a": [0], "b": [0]}
            write(writer, "c", 1)
            assert poll(follower) == {"c": [10]}
            write(writer, "b", 1)
            follower.remove(("a", 0))
            assert poll(follower) == {"b": [10]}
    assert connection.version_for(FETCH) >= 12
    assert [request.session_epoch for request in sent] == [0, 1, 2, 3]
    assert len({request.session_id for request in sent[1:]}) == 1
    topics = [[topic.topic for topic in request.topics] for request in sent]
    assert topics == [["a", "b", "c"], ["a", "b"], ["c"], ["b"]]
    assert [[each.topic for each in request.forgotten_topics_data] for request in sent] == [[], [], [], ["a"]]


def test_what_retention_deletes_is_skipped_and_noted(client: Client) -> None:
    create(client, "short")
    write(client, "short", 10)
    delete_records(client, "short", 55)
    with following(client, {("short", 0): 3}) as follower:
        until(lambda: poll(follower) == {"short": [50, 60, 70, 80, 90]})
        assert follower.lost == [(("short", 0), 3, 55)]


@pytest.mark.slow
def test_a_deleted_topic_is_no_longer_followed(client: Client) -> None:
    for topic in ("gone", "kept"):
        create(client, topic)
        write(client, topic, 1)
    with following(client, {("gone", 0): 0, ("kept", 0): 0}) as follower:
        assert set(poll(follower)) == {"gone", "kept"}
        delete_topic(client, "gone")
        until(lambda: poll(follower) == {} and follower.deleted)
        assert follower.deleted == [("gone", 0)]
        assert len(follower) == 1
        write(client, "kept", 1)
        until(lambda: poll(follower) == {"kept": [10]})


def test_a_position_beyond_the_log_is_an_error(client: Client) -> None:
    create(client, "ends")
    write(client, "ends", 1)
    with (
        following(client, {("ends", 0): 500}) as follower,
        pytest.raises(LogError, match=r"ends-0: the log ended below offset 500, .* ends at offset 10 now"),
    ):
        list(follower.poll())


@pytest.mark.parametrize("first", [19, 20, 21])
def test_a_log_that_was_written_again_after_it_had_ended_is_not_taken_for_retention(first: int) -> None:
    """The range of the log is asked for after the fetch: by then, it may begin where the position is."""
    with (
        Broker() as broker,
        RewritingProxy(("127.0.0.1", broker.port)) as proxy,
        Client(broker.bootstrap_servers, **SETTINGS) as writer,
    ):
        create(writer, "again")
        write(writer, "again", 1)

        def write_on(request: ListOffsetsRequest) -> None:
            proxy.observe.clear()
            write(writer, "again", 2)
            delete_records(writer, "again", first)

        proxy.observe["ListOffsetsRequest"] = write_on
        with Client(proxy.address, **SETTINGS) as client, following(client, {("again", 0): 20}) as follower:
            if first <= 20:
                with pytest.raises(LogError, match=r"again-0: the log ended below offset 20, .* at offset 30 now"):
                    list(follower.poll())
                assert follower.lost == []
            else:  # no one can tell
                list(follower.poll())
                assert follower.lost == [(("again", 0), 20, 21)]


def test_a_partition_is_followed_up_to_its_end(client: Client) -> None:
    create(client, "wide", 3)
    write(client, "wide", 5)
    with Follower(client) as follower:
        follower.add(("wide", 0), 0, end=7)
        follower.add(("wide", 1), 7, end=7)
        assert len(follower) == 1
        found = [fetched.next_offset for _, fetched in follower.poll()]
        assert len(follower) == 0
        assert found[-1] >= 7


def test_a_restart_of_the_broker_goes_unnoticed(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        client = Client(broker.bootstrap_servers, **SETTINGS)
        create(client, "t")
        write(client, "t", 1)
        follower = following(client, {("t", 0): 0})
        assert poll(follower) == {"t": [0]}
    with Broker(data_dir=tmp_path, port=port) as broker, Client(broker.bootstrap_servers) as writer, client, follower:
        write(writer, "t", 1)
        until(lambda: poll(follower) == {"t": [10]})


def test_a_poll_that_is_given_up_leaves_the_client_usable(client: Client) -> None:
    create(client, "wide", 3)
    write(client, "wide", 5)
    with following(client, {("wide", 0): 0, ("wide", 1): 0}) as follower:
        next(iter(follower.poll()))
        assert client.metadata(["wide"]).topics["wide"].partitions
    assert client.metadata(["wide"]).topics["wide"].partitions


def test_an_epoch_that_the_leader_does_not_know_is_left_out_of_the_position(broker: Broker, client: Client) -> None:
    """Also epoch 0, the first one."""
    create(client, "early")
    write(client, "early", 1)
    with Follower(client) as follower:
        follower.add(("early", 0), 0)
        until(lambda: poll(follower) == {"early": [0]})  # from here on with the epoch of the batch
        broker.faults.fail("Fetch", "OFFSET_OUT_OF_RANGE", times=1)
        until(lambda: poll(follower) == {} and not broker.faults.pending)
        write(client, "early", 1)
        until(lambda: poll(follower) == {"early": [10]})
        assert follower.lost == []
