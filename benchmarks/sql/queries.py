"""What does SQL over topics cost?

    group_by      1.5 million JSON records in 12 partitions, counted by a field, as one command: from a directory, and
                  from a broker; kcat piped into DuckDB reads the same broker, where kcat is installed
    raw, avro     rows a second of CPU time, of the second query in a process: all bytes of values summed; two of ten
                  Avro fields summed, or all ten counted; beside the log read to Arrow, and the Avro decoder, alone
    arrow_clients the same sum over a broker's topic, by kwire and by kafkarrow, where it is installed: its batches in
                  DuckDB
    cores         wall time of a command on one core, divided by that on two: raw values of 4 GB, JSON and Avro of 2 GB
    threads       the same of queries of 2 GB with one thread and two, the best of four in turns in one process
    recent        the newest 0.6 % of a topic of 10 GB: time to the first row, share of the bytes that is fetched
    limit         LIMIT 5 on a full, an idle and an empty topic of a broker: time and Fetch requests
    memory        peaks of queries of raw, JSON and Avro values of 1, 2 and 4 GB

CPU time of the command with its start, unless noted; the best of two runs. `python -m benchmarks.sql.queries WORD...`
runs some of them: group_by, rates, arrow_clients, cores, threads, memory, large.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import kwire
from benchmarks.data import CACHE, FIRST_TIMESTAMP_MS, log_directory
from benchmarks.processes import Cost, costs_of
from benchmarks.schemas.avro import ORDER, PREFIX, rows_of
from benchmarks.schemas.json_values import encoded_orders
from benchmarks.schemas.orders import even_orders
from kwire.client.client import Client
from kwire.records import ColumnWriter
from kwire.schemas.avro import Decoder, Encoder, parse
from kwire.sql import TopicDataset
from kwire.sql.values import ValueColumns, infer_json_column, registry_columns
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import LocalFile

JSON_RECORDS, PARTITIONS = 1_500_000, 12
AVRO_RECORDS = 1_000_000
LARGE_PARTITIONS, LARGE_PARTITION_RECORDS = 10, 8_640_000  # a gigabyte each
JSON_DDL = "id BIGINT, status STRING, city STRING, amount DOUBLE"
SERVE = """
import sys, threading
from kwire.broker import Broker
with Broker(sys.argv[1], port=0) as broker:
    broker.create_topic("idle", 1)
    broker.create_topic("empty", 12)
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


def write_partition(folder: Path, topic: str, partition: int, values: pa.Array) -> None:
    """Write a partition of a log directory, with an index entry for each batch."""
    writer = ColumnWriter()
    path = folder / f"{topic}-{partition}"
    path.mkdir(parents=True)
    with (path / f"{0:020}.log").open("wb") as log:
        for start in range(0, len(values), 100_000):
            for piece in writer.write(pa.record_batch({"value": values[start : start + 100_000]})):
                log.write(piece)
    with LocalFile(log.name) as file:
        entries = [(each.last_offset, each.position) for each in HeaderWalk(file) if each.position]
    (path / f"{0:020}.index").write_bytes(b"".join(struct.pack(">ii", *each) for each in entries))


def json_directory() -> Path:
    """Return a log directory with the topic `orders` of JSON values, generated on the first call."""
    root = CACHE / "sql-json"
    if (root / "done").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    each = JSON_RECORDS // PARTITIONS
    for partition in range(PARTITIONS):
        ids = pa.array(range(partition * each, (partition + 1) * each), pa.int64())
        text = ids.cast(pa.string())
        status = pa.array(["NEW", "PAID", "SENT", "DONE", "LATE"])
        chosen = status.take(pa.array([i * 7919 % 5 for i in range(each)]))
        pieces = ['{"id":', text, ',"status":"', chosen, '","city":"Athens ', text, '","amount":', text, ".25}"]
        values = pc.binary_join_element_wise(*pieces, "").cast(pa.binary())
        write_partition(root, "orders", partition, values)
    (root / "done").touch()
    return root


def avro_directory() -> Path:
    """Return a log directory with the topic `orders` of Avro values, and the registry in its folder `schemas`."""
    root = CACHE / "sql-avro"
    if (root / "done").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    values = avro_values()
    for partition in range(2):
        write_partition(root / "data", "orders", partition, pa.concat_arrays([values] * (AVRO_RECORDS // 200_000)))
    (root / "schemas").mkdir()
    (root / "schemas" / "orders-value.1.1.avsc").write_text(json.dumps(ORDER))
    (root / "done").touch()
    return root


def avro_values() -> pa.Array:
    """Return 100,000 orders as Avro."""
    schema = parse(json.dumps(ORDER))
    columns = pa.schema(list(Decoder([schema], schema).type))
    rows = pa.Table.from_pylist(rows_of(even_orders(100_000)), columns).to_struct_array()
    return Encoder(schema).encode(rows.combine_chunks(), prefix=PREFIX).array


def json_values() -> pa.Array:
    """Return the same orders as JSON."""
    return pa.array(encoded_orders(even_orders(100_000)), pa.binary())


def memory_directory(make: Callable[[], pa.Array], gb: int) -> Path:
    """Return a log directory of `gb` GB, whose partitions are hard links to one of 250 MB. make: values to repeat."""
    one = CACHE / "sql-memory" / make.__name__
    root = one.with_name(f"{make.__name__}-{gb}")
    if not (one / "done").exists():
        shutil.rmtree(one, ignore_errors=True)
        values = make()
        write_partition(one, "orders", 0, pa.concat_arrays([values] * (250_000_000 // values.nbytes)))
        (one / "done").touch()
    shutil.rmtree(root, ignore_errors=True)
    for partition in range(4 * gb):
        shutil.copytree(one / "orders-0", root / f"orders-{partition}", copy_function=os.link)
    return root


def sql(source: object, query: str, *options: str, cores: str | None = None) -> Cost:
    """Return the cost of a command, the best of two."""
    command = [sys.executable, "-m", "kwire.cli", "sql", str(source), query, "--format", "csv", *options]
    if cores is not None:
        command = ["taskset", "-c", cores, *command]
    runs = [costs_of(*command) for _ in range(2)]
    return Cost(min(each.cpu_s for each in runs), min(each.wall_s for each in runs), max(each.peak_mb for each in runs))


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Serve a log directory in another process; yield its bootstrap servers."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def group_by() -> None:
    query = "SELECT value.status, count(*) AS n FROM orders GROUP BY 1"
    options = ("--value", "json", "--schema", JSON_DDL)
    start = sql(json_directory(), "SELECT 1", *options)
    with tempfile.TemporaryDirectory() as folder:
        served = shutil.copytree(json_directory(), Path(folder) / "data")
        (served / "done").unlink()
        with serving(served) as servers:
            costs = {"directory": sql(json_directory(), query, *options)}
            costs["broker"] = sql(f"kafka://{servers}", query, *options)
            if shutil.which("kcat"):
                file = Path(folder) / "kcat.json"
                read = costs_of("kcat", "-q", "-C", "-e", "-b", servers, "-t", "orders", output=file)
                counting = (
                    "import duckdb, sys; print(duckdb.sql(f\"SELECT status, count(*) FROM read_json('{sys.argv[1]}', "
                    "format='newline_delimited') GROUP BY 1\"))"
                )
                count = costs_of(sys.executable, "-c", counting, str(file))
                costs["kcat-then-duckdb"] = Cost(read.cpu_s + count.cpu_s, read.wall_s + count.wall_s, count.peak_mb)
    for name, cost in costs.items():
        print(
            f"sql.group_by.{name} {cost.cpu_s:.2f} s-of-CPU {cost.wall_s:.2f} wall-s, {cost.peak_mb:.0f} MB", flush=True
        )
    print(f"sql.start {start.cpu_s:.2f} s-of-CPU {start.wall_s:.2f} wall-s", flush=True)


def rates() -> None:
    directory, avro = log_directory(), avro_directory()
    records = sum(each.log_end_offset for each in kwire.open(directory).values())
    query = "SELECT count(*), sum(octet_length(value)) FROM topic"
    with kwire.open(directory) as logs:
        topic = logs.topic("bench")
        raw = cpu_s(lambda: run(topic, query))
        read = cpu_s(lambda: [each.read_arrow(columns=["value"]).read_all() for each in logs.of_topic("bench")])
    print(
        f"sql.raw {records / raw / 1e6:.2f} M-rows/s-of-CPU {records / read / 1e6:.2f} the-log-read-to-Arrow",
        flush=True,
    )
    with kwire.open(avro / "data") as logs:
        topic = logs.topic("orders", values=registry_columns(str(avro / "schemas"), "orders"))
        column = pa.concat_arrays(logs["orders", 0].read_arrow(columns=["value"]).read_all().column(0).chunks)
        schema = parse(json.dumps(ORDER))
        decode = cpu_s(lambda: Decoder([schema], schema).decode(column, skip=5)) / len(column)
        for name, what in (("2_of_10", "sum(value.id), sum(value.amount)"), ("10_of_10", every_field())):
            each = cpu_s(lambda what=what: run(topic, f"SELECT {what} FROM topic")) / AVRO_RECORDS
            print(
                f"sql.avro.{name} {1 / each / 1e6:.2f} M-rows/s-of-CPU {1 / decode / 1e6:.2f} Avro-decoder", flush=True
            )


def arrow_clients() -> None:
    query = "SELECT count(*), sum(octet_length(value)) FROM topic"
    directory = log_directory()
    records = sum(each.log_end_offset for each in kwire.open(directory).values())
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        served = Path(shutil.copytree(directory, Path(folder) / "data", copy_function=os.link))
        (served / "done").unlink()
        with serving(served) as servers, kwire.open(f"kafka://{servers}") as logs:
            topic = logs.topic("bench")
            mine = cpu_s(lambda: run(topic, query))
            print(f"sql.arrow_clients.kwire {records / mine / 1e6:.2f} M-rows/s-of-CPU", flush=True)
            if importlib.util.find_spec("kafkarrow"):
                theirs = cpu_s(lambda: run(kafkarrow_reader(servers, records), query))
                print(f"sql.arrow_clients.kafkarrow {records / theirs / 1e6:.2f} M-rows/s-of-CPU", flush=True)


def kafkarrow_reader(servers: str, records: int) -> pa.RecordBatchReader:
    """Return the batches that kafkarrow makes of the topic."""
    import kafkarrow

    def batches() -> Iterator[pa.RecordBatch]:
        left = records
        topics = [kafkarrow.SourceTopic.from_earliest("bench")]
        manager = kafkarrow.ConsumerManager({"bootstrap.servers": servers, "group.id": "bench"}, topics)
        while left > 0:
            batch = manager.poll(timeout_ms=1000)
            left -= batch.num_rows
            yield batch

    return pa.RecordBatchReader.from_batches(kafkarrow.MESSAGE_SCHEMA, batches())


def cores() -> None:
    for name, (make, query, options) in QUERIES.items():
        directory = memory_directory(make, 4 if name == "raw" else 2)
        one, two = (sql(directory, query, *options, cores=cores) for cores in ("0", None))
        print(f"sql.cores.{name} {one.wall_s / two.wall_s:.2f} times one core's {one.wall_s:.2f} wall-s", flush=True)


def threads() -> None:
    avro_directory()  # has the registry
    for name, (make, query, _) in QUERIES.items():
        with kwire.open(memory_directory(make, 2)) as logs:
            values = {
                "raw": ValueColumns,
                "json": lambda logs=logs: ValueColumns({"value": infer_json_column(logs.of_topic("orders"))}),
                "avro": lambda: registry_columns(str(CACHE / "sql-avro" / "schemas"), "orders"),
            }[name]()
            one, two = [], []
            for _ in range(4):
                for count, walls in ((1, one), (2, two)):
                    topic = logs.topic("orders", values=values, threads=count)
                    start = time.perf_counter()
                    run(topic, query.replace("orders", "topic"), threads=count)
                    walls.append(time.perf_counter() - start)
        print(f"sql.threads.{name} {min(one) / min(two):.2f} times one thread's {min(one):.2f} wall-s", flush=True)


def run(topic: TopicDataset, query: str, threads: int | None = None) -> None:
    """Run a query of a topic in this process. threads: DuckDB's."""
    import duckdb

    connection = duckdb.connect(config={} if threads is None else {"threads": threads})
    connection.register("topic", topic)
    connection.sql(query).fetchall()


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU time of this process and its threads, the best of four; the first one imports."""
    best = float("inf")
    for _ in range(4):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def every_field() -> str:
    return ", ".join(f"count(value.{each['name']})" for each in ORDER["fields"])


FIELDS = "SELECT value.status, count(*) FROM orders GROUP BY 1"
QUERIES: dict[str, tuple[Callable[[], pa.Array], str, tuple[str, ...]]] = {
    "raw": (json_values, "SELECT count(*), sum(octet_length(value)) FROM orders", ()),
    "json": (json_values, FIELDS, ("--value", "json")),
    "avro": (avro_values, FIELDS, ("--registry", str(CACHE / "sql-avro" / "schemas"))),
}


def memory() -> None:
    avro_directory()  # has the registry
    for name, (make, query, options) in QUERIES.items():
        for gb in (1, 2, 4):
            cost = sql(memory_directory(make, gb), query, *options)
            print(f"sql.memory.{name}.{gb}gb {cost.peak_mb:.0f} MB {cost.cpu_s:.2f} s-of-CPU", flush=True)


def large() -> None:
    with serving_large() as (directory, servers):
        fetched = counted_fetches()
        for name, source in (("directory", str(directory)), ("broker", f"kafka://{servers}")):
            for _ in range(2):  # the first one imports
                recent(name, source, fetched)
        for topic, rows in (("bench", 5), ("bench", 5), ("idle", 0), ("empty", 0)):
            limit(f"kafka://{servers}", topic, rows, fetched)


@contextmanager
def serving_large() -> Iterator[tuple[Path, str]]:
    """Yield a log directory of 10 GB and the servers of a broker with a copy; partitions are hard links to one."""
    one = log_directory(LARGE_PARTITION_RECORDS, partitions=1) / "bench-0"
    directory, copy = CACHE / "sql-large", CACHE / "sql-served"
    for root in (directory, copy):
        shutil.rmtree(root, ignore_errors=True)
        for partition in range(LARGE_PARTITIONS):
            shutil.copytree(one, root / f"bench-{partition}", copy_function=os.link)
    with serving(copy) as servers:
        yield directory, servers
    for root in (directory, copy):
        shutil.rmtree(root)


def counted_fetches() -> list[int]:
    """Return the sizes of responses to Fetch requests, as they come."""
    sizes: list[int] = []
    real = Client._receive_fetch

    def receive(self: Client, *arguments: object) -> object:
        received = real(self, *arguments)  # type: ignore[arg-type]
        sizes.append(0 if received is None else len(received[0].records))
        return received

    Client._receive_fetch = receive  # type: ignore[assignment,method-assign]
    return sizes


def recent(name: str, source: str, fetched: list[int]) -> None:
    import duckdb

    since = FIRST_TIMESTAMP_MS + LARGE_PARTITION_RECORDS - LARGE_PARTITION_RECORDS * 6 // 1000
    with kwire.open(source) as logs:
        topic = logs.topic("bench")
        connection = duckdb.connect()
        connection.register("bench", topic)
        fetched.clear()
        began, cpu = time.perf_counter(), time.process_time()
        condition = f"timestamp >= make_timestamptz({since * 1000})"
        result = connection.sql(f'SELECT "offset", value FROM bench WHERE {condition}').to_arrow_reader(10_000)
        rows = next(result).num_rows
        first, cpu = time.perf_counter() - began, time.process_time() - cpu
        rows += sum(batch.num_rows for batch in result)
        size = sum(each.size_bytes or 0 for each in logs.of_topic("bench"))
        share = topic.rows_read / LARGE_PARTITIONS / LARGE_PARTITION_RECORDS if not fetched else sum(fetched) / size
        print(
            f"sql.recent.{name} {first:.3f} wall-s, {cpu:.3f} s-of-CPU "
            f"to the first of {rows} rows of {size / 1e9:.1f} GB; "
            f"{share:.2%} of the {'bytes' if fetched else 'records'} read",
            flush=True,
        )


def limit(source: str, topic: str, rows: int, fetched: list[int]) -> None:
    import duckdb

    with kwire.open(source) as logs:
        cluster: Any = logs
        cluster.client.metadata()
        fetched.clear()
        began, cpu = time.perf_counter(), time.process_time()
        connection = duckdb.connect()
        connection.register("topic", logs.topic(topic))
        found = connection.sql("SELECT * FROM topic LIMIT 5").fetchall()
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert len(found) == rows, (topic, found)
        print(
            f"sql.limit_5.{topic} {took:.3f} wall-s, {cpu:.3f} s-of-CPU "
            f"{len(fetched)} fetches, {sum(fetched) / 1e6:.1f} MB",
            flush=True,
        )


def main() -> None:
    """Print the figures that the command line names, by default all."""
    parts = {each.__name__: each for each in (group_by, rates, arrow_clients, cores, threads, memory, large)}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
