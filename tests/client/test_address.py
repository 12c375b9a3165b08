"""URLs of clusters, and which partitions they name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.broker import Broker
from kwire.client import Client, ClusterAddress, is_cluster_url
from kwire.errors import OptionError
from kwire.messages import CreateTopicsRequest, CreateTopicsResponse


@pytest.mark.parametrize(
    ("url", "servers", "name"),
    [
        ("kafka://b1:9093", (("b1", 9093),), None),
        ("kafka://b1", (("b1", 9092),), None),
        ("KAFKA://B1/Orders", (("B1", 9092),), "Orders"),
        ("kafka://b1/", (("b1", 9092),), None),
        ("kafka://b1:1,b2:65535/", (("b1", 1), ("b2", 65535)), None),
        ("kafka://b-1.example,10.0.0.2:9093/orders", (("b-1.example", 9092), ("10.0.0.2", 9093)), "orders"),
        ("kafka://[::1]:9093,[fe80::1%eth0]/orders-0/", (("::1", 9093), ("fe80::1%eth0", 9092)), "orders-0"),
        ("kafka://b/" + "x" * 249 + "-12", (("b", 9092),), "x" * 249 + "-12"),
    ],
)
def test_a_url_has_servers_and_at_most_one_name(url: str, servers: tuple[tuple[str, int], ...], name: str) -> None:
    address = ClusterAddress.parse(url)
    assert (address.servers, address.name) == (servers, name)
    assert ClusterAddress.parse(str(address)) == address
    assert address.connect().settings.bootstrap_servers == servers


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://", "'' is not host:port"),
        ("kafka:///orders", "'' is not host:port"),
        ("kafka://b:0", "'b:0' is not host:port"),
        ("kafka://b:65536", "'b:65536' is not host:port"),
        ("kafka://b:9092,", "'' is not host:port"),
        ("kafka://::1:9092", "an IPv6 address needs brackets"),
        ("kafka://b/orders/0", "topic name 'orders/0' is invalid"),
        ("kafka://b/orders?x=1", "topic name 'orders\\?x=1' is invalid"),
        ("kafka://b/..", "topic name '..' is invalid"),
        ("kafka://b/" + "x" * 250, "topic name 'x+' is invalid"),
        ("http://b/orders", "expected kafka://host:port"),
    ],
)
def test_a_url_of_another_form_is_refused(url: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ClusterAddress.parse(url)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(OptionError, match="--config-file") as raised:
        ClusterAddress.parse("kafka://alice:wonder@b:9092/orders")
    assert "wonder" not in str(raised.value)


def test_the_servers_of_a_url_replace_those_of_the_configs() -> None:
    client = ClusterAddress.parse("kafka://b:1").connect({"bootstrap.servers": "c:2", "client.id": "me"})
    assert client.settings.bootstrap_servers == (("b", 1),)
    assert client.settings.client_id == "me"
    assert is_cluster_url("kafka://b")
    assert not is_cluster_url("kafka-logs/data")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    topics = {"orders": 2, "orders-0": 1, "orders-7": 1, "bills-2024": 3, "orders-07": 1}
    with Broker() as broker, Client(broker.bootstrap_servers) as client:
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(name=name, num_partitions=n, replication_factor=1)
                for name, n in topics.items()
            ]
        )
        client.request(request, CreateTopicsResponse)
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, (None, None)),
        ("orders", ("orders", None)),
        ("orders-1", ("orders", 1)),
        ("orders-7", ("orders-7", None)),  # orders has no partition 7
        ("orders-07", ("orders-07", None)),
        ("orders-0-0", ("orders-0", 0)),
        ("bills-2024", ("bills-2024", None)),
        ("bills-2024-2", ("bills-2024", 2)),
    ],
)
def test_the_metadata_decides_whether_a_name_is_a_topic_or_a_partition(
    servers: str, name: str | None, found: tuple[str | None, int | None]
) -> None:
    url = f"kafka://{servers}" + (f"/{name}" if name else "")
    address = ClusterAddress.parse(url)
    with address.connect() as client:
        assert address.resolve(client) == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orders-0", "topic 'orders-0' and partition 0 of topic 'orders' both exist; use kafka://.* --topic orders-0,"),
        ("orders-2", "topic 'orders' has no partition 2: 2 partitions"),
        ("orders-01", "no topic 'orders-01'"),
        ("order", r"no topic 'order' \(did you mean 'orders'\?\); available: bills-2024, orders"),
        ("x-0", "no topic 'x-0'"),
    ],
)
def test_an_ambiguous_or_missing_name_is_an_error_that_says_what_to_do(servers: str, name: str, message: str) -> None:
    address = ClusterAddress.parse(f"kafka://{servers}/{name}")
    with address.connect() as client, pytest.raises(OptionError, match=message):
        address.resolve(client)


def test_the_isolation_of_settings_is_named_as_without_effect(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands and kwire.open have an isolation of their own, and took that of the settings without a word."""
    monkeypatch.setattr("kwire.client.settings._warned", set())
    address = ClusterAddress.parse("kafka://a:1")
    for name in ("isolation.level", "isolation_level"):
        address.connect({name: "read_committed"}).close()
    reason = "commands that read records have --isolation, and functions isolation="
    assert caplog.messages == [f"configs without effect: isolation.level ({reason})"]
