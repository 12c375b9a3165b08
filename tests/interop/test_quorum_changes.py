"""Kafka 4.4.0 changes the quorum of a cluster that kwire wrote: to a dynamic one, with other controllers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.test_takeover import consume, produce
from tests.interop.real_cluster import NODES, RealCluster
from tests.interop.test_broker_tools import TOOLS
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.broker import Cluster
from kwire.cli.main import run
from kwire.client import Client
from kwire.client.admin.cluster import describe_cluster
from kwire.errors import BrokerError
from kwire.identifiers import render_uuid
from kwire.internal_topics.cluster_rows import ClusterPart
from kwire.storage.checkpoints import META_PROPERTIES
from kwire.storage.meta_properties import MetaProperties

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

RELEASE = "4.4.0"
NEW = 4
NO_DIRECTORY = "A" * 22  # a zero UUID, of a static voter
VALUES = [f"v{number:03}" for number in range(100)]


def ids_of(directory: Path) -> MetaProperties:
    """Return the ids of a log directory."""
    return MetaProperties.parse((directory / META_PROPERTIES).read_bytes())


def change(servers: str, name: str, *arguments: str, voters: set[int]) -> dict[int, str]:
    """Run one of Kafka's tools until the quorum has these voters; return their directory ids."""
    found: dict[int, str] = {}

    def is_done() -> bool:
        with contextlib.suppress(BrokerError), Client(servers) as client:  # without a leader
            described = describe_cluster(client, [ClusterPart.VOTERS]).state.voters
            found.clear()
            found.update({node: render_uuid(each.directory_id) for node, each in described.items()})
        if set(found) == voters and NO_DIRECTORY not in found.values():
            return True
        with contextlib.suppress(RuntimeError):  # a leader that has just been elected refuses
            kafka.java(TOOLS + name, "--bootstrap-server", servers, *arguments, heap="128m")
        return False

    until(is_done, f"{name} {arguments}")
    return found


def new_controller(folder: Path, cluster: RealCluster, cluster_id: str) -> kafka.KafkaBroker:
    """Format the directory of a controller that does not vote yet."""
    controller = kafka.KafkaBroker(folder, version=RELEASE, heap="256m")
    del controller.settings["controller.quorum.voters"], controller.settings["advertised.listeners"]
    controller.settings |= {
        "process.roles": "controller",
        "node.id": NEW,
        "listeners": f"CONTROLLER://127.0.0.1:{controller.port}",
        "controller.quorum.bootstrap.servers": ",".join(
            voter.partition("@")[2] for voter in str(cluster.nodes[1].settings["controller.quorum.voters"]).split(",")
        ),
    }
    folder.mkdir()
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in controller.settings.items()))
    arguments = ("format", "-t", cluster_id, "-c", str(properties), "--no-initial-controllers")
    kafka.java("kafka.tools.StorageTool", *arguments, version=RELEASE, heap="128m")
    return controller


def test_voters_of_a_cluster_that_kwire_was_change(tmp_path: Path) -> None:
    """Its static quorum becomes a dynamic one, is adopted, gets a fourth controller, and continues without one."""
    data = tmp_path / "data"
    with Cluster(nodes=3, data_dir=data) as ours:
        ours.create_topic("orders", 3)
        produce(ours.bootstrap_servers, "orders", VALUES)
    nodes = tmp_path / "nodes"
    assert run(["log", "restore", str(data), "-o", str(nodes), "--nodes", "3", "--kafka-version", "4.4"]) == 0
    directories = {node: tmp_path / "kafka" / str(node) / "data" for node in NODES}
    for node, directory in directories.items():
        directory.parent.mkdir(parents=True)
        (nodes / f"node-{node}").rename(directory)
    ids = {node: ids_of(directory).directory_id for node, directory in directories.items()}
    with contextlib.ExitStack() as cleanup:
        cluster = RealCluster(tmp_path / "kafka", cleanup, RELEASE)
        servers = cluster.bootstrap_servers
        dynamic = ("upgrade", "--feature", "kraft.version=1")
        assert change(servers, "FeatureCommand", *dynamic, voters=set(NODES)) == ids
        for node in NODES:
            cluster.crash(node)
        assert run(["log", "adopt", *map(str, directories.values()), "--apply"]) == 0
        cluster.start()
        controller = new_controller(tmp_path / "controller", cluster, ids_of(directories[1]).cluster_id)
        cleanup.callback(controller.stop, kill=True)
        controller.__enter__()
        config = str(tmp_path / "controller" / "server.properties")
        ids[NEW] = ids_of(controller.log_dir).directory_id
        added = ("--command-config", config, "add-controller")
        assert change(servers, "MetadataQuorumCommand", *added, voters={*NODES, NEW}) == ids
        removed = ("remove-controller", "--controller-id", "1", "--controller-directory-id", ids.pop(1))
        assert change(servers, "MetadataQuorumCommand", *removed, voters=set(ids)) == ids
        cluster.stop(1)
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        admin.create_topics([NewTopic("later", 1, 2)])["later"].result(HANG_S)
        produce(servers, "later", VALUES)
        assert sorted(consume(servers, "readers", ["orders", "later"], 2 * len(VALUES))) == sorted(2 * VALUES)
