"""Topic ids in the state of a table: they tell a topic from one that was deleted and created again."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.client import Client
from kwire.errors import TableError
from kwire.identifiers import render_uuid
from kwire.lake import Change, Layout, Mark, append_logs
from kwire.lake.state import TableState
from kwire.log import LogDirectory
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, kafka_rows
from tests.lake.tables import write as write_rows
from tests.lake.test_append import arguments
from tests.lake.test_commits import clean_log
from tests.maintenance.pull.test_pull import create, delete, write

LAYOUT = Layout()
OLD, NEW = uuid.UUID(int=7), uuid.UUID(int=8)
REFUSED = (
    f"topic 'avro' has id {render_uuid(NEW)}, and the table has offsets of id {render_uuid(OLD)}: the topic was "
    "deleted and created again, or is one of another cluster"
)


def state_of(tables: Tables) -> TableState:
    table = tables.open()
    table.refresh()
    return table.state()


def append(tables: Tables, folder: Path, **options: Any) -> int:
    """Append all logs of a folder; return the number of rows."""
    logs = list(LogDirectory(folder).values())
    return sum(each.rows for each in append_logs(tables.open(), logs, layout=LAYOUT, **options))


def log_of(folder: Path, count: int, topic_id: uuid.UUID | None, partition: int = 0) -> Path:
    return write_values(folder, [b"value"] * count, topic_id=topic_id, partition=partition)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [9, 10, 11, 30])
@pytest.mark.parametrize("commit_bytes", [1, 1 << 30])
def test_a_topic_that_was_created_again_is_refused(
    tables: Tables, tmp_path: Path, count: int, commit_bytes: int
) -> None:
    """Whether it is shorter than the table, as long, or longer; also for a partition that the table does not have."""
    append(tables, log_of(tmp_path / "old", 10, OLD))
    again = log_of(tmp_path / "new", count, NEW)
    other_partition = log_of(tmp_path / "other", count, NEW, partition=1)
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))  # only transaction identifiers are left
    assert state_of(tables).topic_ids == {"avro": render_uuid(OLD)}
    for folder in (again, other_partition):
        for fill in (False, True):
            with pytest.raises(TableError, match=REFUSED):
                append(tables, folder, commit_bytes=commit_bytes, fill=fill)
    assert len(tables.read()) == 10
    assert append(tables, log_of(tmp_path / "old", 12, OLD)) == 2


def test_a_topic_of_a_cluster_that_was_created_again_is_refused(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker(data_dir=tmp_path / "source") as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "orders")
        write(client, "orders", 2)
        command = ["lake", "append", f"kafka://{broker.bootstrap_servers}/orders", *arguments(tables)]
        assert run(command) == 0
        assert run(["lake", "append", str(tmp_path / "source"), *arguments(tables), "--topic", "orders"]) == 0
        assert capsys.readouterr().err == ""
        delete(broker, "orders")
        create(broker, "orders")
        write(client, "orders", 3)
        assert run(command) == 1
        error = capsys.readouterr().err
        assert "the topic was deleted and created again" in error
        assert "append it to another table" in error
    assert len(tables.read()) == 20


def test_a_log_without_a_topic_id_is_named_once_in_a_warning(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A log directory before Kafka 2.8. Nothing is compared for a topic that is new in the table."""
    for partition in (0, 1):
        log_of(tmp_path / "logs", 10, None, partition)
    append(tables, tmp_path / "logs")
    assert caplog.messages == []
    for partition in (0, 1):
        log_of(tmp_path / "logs", 20, None, partition)
    assert append(tables, tmp_path / "logs") == 20
    (warning,) = caplog.messages
    assert "the log of topic 'avro' has no topic id (partition.metadata), which would tell it from a topic" in warning
    assert state_of(tables).topic_ids == {}


def test_a_table_without_a_topic_id_takes_that_of_the_log(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A sink sees rows, which have none."""
    append(tables, log_of(tmp_path / "logs", 10, None))
    log_of(tmp_path / "logs", 20, OLD)
    append(tables, tmp_path / "logs")
    (warning,) = caplog.messages
    assert (
        f"has offsets of topic 'avro' without a topic id; they are taken for those of id {render_uuid(OLD)}" in warning
    )
    log_of(tmp_path / "logs", 30, OLD)
    append(tables, tmp_path / "logs")
    assert len(caplog.messages) == 1
    with pytest.raises(TableError, match=REFUSED):
        append(tables, log_of(tmp_path / "new", 40, NEW))
    (tmp_path / "logs/avro-0/partition.metadata").unlink()
    append(tables, tmp_path / "logs")
    assert len(caplog.messages) == 2
    assert state_of(tables).topic_ids == {"avro": render_uuid(OLD)}


def test_the_ids_are_compared_at_the_commit_too(tables: Tables, tmp_path: Path) -> None:
    """Another program appends the topic that was created again while the logs are read."""
    table: Any = tables.open()
    really = table.prepare
    new = log_of(tmp_path / "new", 10, NEW, partition=1)

    def prepare(*arguments: Any, **options: Any) -> Any:
        table.prepare = really
        append(tables, new)
        return really(*arguments, **options)

    table.prepare = prepare
    logs = list(LogDirectory(log_of(tmp_path / "old", 10, OLD)).values())
    with pytest.raises(TableError, match=f"has id {render_uuid(OLD)}, and the table has offsets of id"):
        list(append_logs(table, logs, layout=LAYOUT))
    assert len(tables.read()) == 10
    assert [each for each in table.find_orphans(0) if each.path.endswith(".parquet")] == []


def test_partitions_of_two_topics_of_one_name_are_refused(tables: Tables, tmp_path: Path) -> None:
    """Whether they share a commit or not."""
    for partition, topic_id in ((0, OLD), (1, NEW)):
        log_of(tmp_path / "logs", 10, topic_id, partition)
    with pytest.raises(TableError, match="the logs of topic 'avro' have two topic ids"):
        append(tables, tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs" / "avro-1")
    assert append(tables, tmp_path / "logs") == 10
    with pytest.raises(TableError, match=REFUSED):
        append(tables, log_of(tmp_path / "logs", 10, NEW, 1), commit_bytes=1)


def test_a_query_that_goes_on_brings_the_id_of_its_topic(tables: Tables) -> None:
    """Its source compares ids, and with failOnDataLoss false reads the topic that was created again."""

    def commit(query: str, topic_id: str) -> None:
        table = tables.open()
        plan = table.prepare(kafka_rows(0, 1).schema, LAYOUT)
        batch = state_of(tables).batches.get(query, -1) + 1
        topic_ids = {"orders": topic_id}
        change = Change(id=uuid.uuid4().hex, mark=Mark(query=query, batch=batch), topic_ids=topic_ids)
        table.commit([], replace(change, spans={("orders", 0): ((batch, batch + 1),)}), plan)

    commit("q", render_uuid(OLD))
    with pytest.raises(TableError, match="the topic was deleted and created again"):
        commit("other", render_uuid(NEW))
    commit("q", render_uuid(NEW))
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
    assert state_of(tables).topic_ids == {"orders": render_uuid(NEW)}


def test_overwriting_forgets_the_ids(tables: Tables, tmp_path: Path) -> None:
    append(tables, log_of(tmp_path / "old", 10, OLD))
    write_rows(tables.open(), kafka_rows(0, 3).select(["topic", "partition", "offset"]), overwrite=True)
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
    assert state_of(tables).topic_ids == {}
    append(tables, log_of(tmp_path / "new", 5, NEW))
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
    assert state_of(tables).topic_ids == {"avro": render_uuid(NEW)}


def test_ids_stay_when_a_sink_commits_offsets_of_the_topic() -> None:
    state = TableState().after(Change(id="1", spans={("t", 0): ((0, 5),)}, topic_ids={"t": "x"}))
    state = state.after(Change(id="2", spans={("t", 0): ((5, 9),), ("u", 0): ((0, 1),)}))
    assert state.topic_ids == {"t": "x"}
    assert TableState.parse(state.render(), "t") == state
