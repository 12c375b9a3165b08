"""Voters and controllers of a directory that Kafka wrote: requests to change them are refused as in Kafka 4.4.0.

Those of a new broker are among the requests of test_api_outcomes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kwire.broker import Broker
from kwire.identifiers import render_uuid
from kwire.messages import (
    AddRaftVoterRequest,
    RegisterControllerRecord,
    RemoveRaftVoterRequest,
    UnregisterControllerRequest,
)
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient

OTHER = UUID(int=77)


@pytest.fixture(scope="module")
def running(kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker on a directory of Kafka 4.4.0, whose voters are in its log."""
    directory = tmp_path_factory.mktemp("kafka") / "data"
    shutil.copytree(kafka_logs["modern44"] / "data", directory)
    with Broker(directory) as broker:
        yield broker


def test_voters_in_the_log_stay(running: Broker) -> None:
    [own] = running.call(lambda node: list(node.cluster.voters.values()))
    assert own.directory_id.int
    key = f"ReplicaKey(id={own.node_id}, directoryId={render_uuid(own.directory_id)})"
    other = f"ReplicaKey(id=7, directoryId={render_uuid(OTHER)})"
    listener = AddRaftVoterRequest.Listener(name="controller", host="localhost", port=1)
    with RawClient(running) as client:
        for node_id, code, message in (
            (own.node_id, ErrorCode.DUPLICATE_VOTER, f"{own.node_id}, directoryId={render_uuid(OTHER)}"),
            (7, ErrorCode.REQUEST_TIMED_OUT, f"Aborted add voter operation for {other}"),
        ):
            add = AddRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=OTHER, listeners=[listener])
            response = client.ask(add, 1)
            assert response.error_code == code
            assert message in response.error_message
        for node_id, directory_id in ((own.node_id, own.directory_id), (own.node_id, OTHER), (7, own.directory_id)):
            remove = RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id)
            response = client.ask(remove, 0)
            assert response.error_code == ErrorCode.VOTER_NOT_FOUND
            assert response.error_message.endswith(f"from the set of voters [{key}]")


def test_controllers_that_left_are_unregistered(running: Broker) -> None:
    def unregister(client: RawClient, controller_id: int) -> tuple[int, str | None]:
        response = client.ask(UnregisterControllerRequest(controller_id=controller_id), 0)
        return response.error_code, response.error_message

    def registered() -> list[int]:
        return running.call(lambda node: sorted(node.cluster.controllers))

    own = running.call(lambda node: node.node_id)
    assert registered() == [own]
    gone = RegisterControllerRecord(controller_id=7, incarnation_id=OTHER)
    running.call(lambda node: node.controller.commit([(gone, 0)]))
    assert registered() == [own, 7]
    with RawClient(running) as client:
        what = "Controller cannot unregister itself while it is active."
        assert unregister(client, own) == (ErrorCode.INVALID_REQUEST, what)
        assert unregister(client, 7) == (0, "")
        assert registered() == [own]
        what = "Controller ID 7 is not currently registered."
        assert unregister(client, 7) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, what)
