"""Groups on a node with files: written by Kafka, interrupted, and created by real clients."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.broker.node import Node
from tests.broker.groups.test_apis import commit
from tests.broker.still import StillBroker
from tests.waiting import HANG_S

Offsets = dict[str, dict[tuple[str, int], int]]


def dumped_offsets(folder: Path) -> tuple[Offsets, set[str]]:
    """Return committed offsets by group, and the groups at the end, from the output of Kafka's dump tool."""
    offsets: Offsets = {}
    pending: dict[tuple[Path, str], list[tuple[str, tuple[str, int], int]]] = {}
    groups: set[str] = set()
    for path in sorted((folder / "expected" / "dump" / "decoded").glob("__consumer_offsets-*.txt.gz")):
        producer = "-1"
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            if line.startswith("baseOffset"):
                producer = re.findall(r"producerId: (-?\d+)", line)[0]
            elif "endTxnMarker:" in line:
                for group, partition, offset in pending.pop((path, producer), []):
                    if "endTxnMarker: COMMIT" in line:
                        offsets.setdefault(group, {})[partition] = offset
            elif line.startswith("|") and " key: " in line:
                text = line.split(" key: ", 1)[1].strip()
                key, end = json.JSONDecoder().raw_decode(text)
                payload = text[end:].strip().removeprefix("payload: ")
                value = None if payload in ("<DELETE>", "null", "") else json.loads(payload)
                note(key, value, producer, offsets, pending.setdefault((path, producer), []), groups)
    offsets = {group: found for group, found in offsets.items() if found}
    return offsets, groups | set(offsets)


def note(key: Any, value: Any, producer: str, offsets: Offsets, pending: list[Any], groups: set[str]) -> None:
    """Apply one dumped record."""
    data = key["data"]
    group = data.get("group") or data.get("groupId")
    if key["type"] in ("0", "1"):
        partition = (data["topic"], data["partition"])
        if value is None:
            offsets.get(group, {}).pop(partition, None)
        elif producer != "-1":
            pending.append((group, partition, value["data"]["offset"]))
        else:
            offsets.setdefault(group, {})[partition] = value["data"]["offset"]
    elif key["type"] in ("2", "3"):
        (groups.discard if value is None else groups.add)(group)


def groups_of(node: Node) -> tuple[Offsets, set[str]]:
    """Return the same for our groups."""
    store = node.groups.store
    groups = {group.group_id for group in store.groups()}
    offsets = {
        group: {partition: offset.offset for partition, offset in store.state.offsets_of(group).items()}
        for group in groups
    }
    return {group: found for group, found in offsets.items() if found}, groups


@pytest.mark.parametrize("name", ["modern", "modern44"])
def test_groups_of_a_real_broker_are_loaded(name: str, kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs[name] / "data", tmp_path / "data")
    with StillBroker(data_dir=tmp_path / "data") as broker:
        ours = broker.call(groups_of)
    offsets, groups = dumped_offsets(kafka_logs[name])
    assert ours[0] == offsets
    assert len(offsets) >= 4
    assert ours[1] >= groups


CHILD = """
    import os, sys
    from kwire.broker import Broker
    from tests.broker.groups.harness import Bench, subscription
    from kwire.messages import OffsetCommitValue

    def fill(node):
        node.controller.create_topic("t", 4)
        groups = node.groups
        value = OffsetCommitValue(offset=42, metadata="note", commit_timestamp=node.clock.now_ms())
        groups.offsets.check_commit("simple", "", None, -1, version=9, transactional=False)
        groups.offsets.commit("simple", [(("t", 0), value), (("t", 3), value)])
        bench = Bench.__new__(Bench)
        bench.coordinator = groups
        first = bench.beat("consumers")
        bench.coordinator.store.consumer_group("consumers")
        print(first.member_id, flush=True)

    broker = Broker(data_dir=sys.argv[1], offsets_topic_num_partitions=3)
    broker.start()
    broker.call(fill)
    os._exit(9)
"""


def test_groups_survive_a_broker_that_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 9, done.stderr
    member_id = done.stdout.strip()
    with Broker(data_dir=tmp_path / "data") as broker:
        offsets, groups = broker.call(groups_of)
        assert offsets == {"simple": {("t", 0): 42, ("t", 3): 42}}
        assert groups == {"simple", "consumers"}
        group = broker.call(lambda node: node.groups.store.consumer_group("consumers"))
        assert (set(group.members), group.epoch, str(group.state)) == ({member_id}, 1, "Stable")


def test_deleting_a_topic_deletes_its_offsets(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", offsets_topic_num_partitions=1) as broker:

        def act(node: Node) -> tuple[Offsets, set[str]]:
            topic = node.controller.create_topic("t", 1)
            node.controller.create_topic("u", 1)
            commit(node, "g", {("t", 0): 1, ("u", 0): 2})
            node.controller.delete_topic(topic)
            return groups_of(node)

        assert broker.call(act) == ({"g": {("u", 0): 2}}, {"g"})
    with Broker(data_dir=tmp_path / "data") as broker:
        assert broker.call(groups_of) == ({"g": {("u", 0): 2}}, {"g"})
