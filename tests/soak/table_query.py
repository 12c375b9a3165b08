"""A streaming query into a table or a topic, in a process that is killed: `python -m tests.soak.table_query SETTINGS`.

A TableQuery may have a second process in reserve, whose Spark session is ready, to replace a killed driver at once.
A query that ends because one of its Python processes was killed is started again in the same session.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.soak.query_process import descendants
from tests.spark.conftest import environment_of_a_new_session
from tests.waiting import HANG_S
from tools.kafka import SHORT_LIVED

import kwire.spark
from kwire.schemas.avro import Encoder, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["RECORDS", "QuerySettings", "TableQuery", "record_schema"]

ROOT = Path(__file__).parents[2]
COMMITTER = b"python_streaming_sink_runner"
TASK = b"pyspark.worker"
SLOW_STARTS = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET")
"""Errors if a Python process takes more than the ten seconds that Spark waits: docs/deployment.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySettings:
    """What a query does. format: of the sink, with its options; columns: SQL of the rows.

    is_direct: whether copy_stream copies the rows, which then are the same without SQL; to a topic as they are.
    """

    servers: str
    topic: str
    checkpoint: str
    format: str
    options: dict[str, str]
    columns: tuple[str, ...]
    is_direct: bool = False
    shape: str = "text"
    limit: int = 2000


class Driver:
    """One process with a Spark session. It says `ready`, `ended ERROR` and `done`; `go` and `rest` start a query."""

    def __init__(self, settings: QuerySettings, log: Path) -> None:
        java = " ".join(SHORT_LIVED)
        environment = environment_of_a_new_session() | {"PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": java}
        environment["PYSPARK_PYTHON"] = sys.executable
        command = [sys.executable, "-m", "tests.soak.table_query", json.dumps(asdict(settings))]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def tell(self, what: str) -> None:
        """Start a query: `go`, or `rest` for one that ends with the available records."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()

    def wait_for(self, what: str) -> None:
        """Wait until it says something. Raises AssertionError if it says something else, or nothing."""
        try:
            said = self.said.get(timeout=2 * HANG_S)
        except queue.Empty:
            said = "nothing"
        assert said == what, f"the query said: {said}"

    def kill(self, *, with_workers: bool) -> None:
        """Stop it at once, then kill it, with its Python processes or without."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGSTOP)
        groups = {self.process.pid}
        for pid in descendants(self.process.pid) if with_workers else ():
            with contextlib.suppress(ProcessLookupError):
                groups.add(os.getpgid(pid))
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self.process.wait(HANG_S)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):  # closed
            for line in self.process.stdout:
                if line.startswith("@"):
                    self.said.put(line[1:].strip())
        self.said.put("nothing, and it has ended")


class TableQuery:
    """The query, whatever process runs it. kills: of drivers; committer_kills, worker_kills: of Python processes."""

    def __init__(self, folder: Path, settings: QuerySettings, *, with_reserve: bool) -> None:
        self.settings, self.log = settings, folder / "query.log"
        self.checkpoint = Path(settings.checkpoint)
        self.kills = self.committer_kills = self.worker_kills = self.ended = 0
        self._lost_a_process = False
        self._active = Driver(settings, self.log)
        self._with_reserve = with_reserve
        self._reserve = Driver(settings, self.log) if with_reserve else None
        try:
            self._active.wait_for("ready")
        except BaseException:
            self.close()
            raise
        self._active.tell("go")

    def look(self) -> None:
        """Start it again if it ended because a process was killed. Raises AssertionError if it ended otherwise."""
        with contextlib.suppress(queue.Empty):
            said = self._active.said.get_nowait()
            is_slow = any(each in said for each in SLOW_STARTS)
            assert self._lost_a_process or is_slow, f"the query ended by itself: {said}"
            self.ended += 1
            self._lost_a_process = False
            self._active.tell("go")
        assert self._active.process.poll() is None, "the driver ended by itself"

    def kill(self, *, with_workers: bool) -> None:
        """Kill the driver. with_workers: its Python processes too, which otherwise end by themselves."""
        self._active.kill(with_workers=with_workers)
        self.kills += 1

    def replace(self, what: str = "go") -> None:
        """Let the process in reserve continue after kill()."""
        self._active, self._lost_a_process = self._reserve or Driver(self.settings, self.log), False
        self._active.wait_for("ready")
        self._active.tell(what)
        self._reserve = Driver(self.settings, self.log) if what == "go" and self._with_reserve else None

    def find(self, kind: bytes) -> list[int]:
        """Return the forked processes of a kind: COMMITTER or TASK."""
        named = set()
        for pid in descendants(self._active.process.pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().find(kind) >= 0:
                    named.add(pid)
        return [pid for pid in named if _parent(pid) in named]  # not the daemon that forks them

    def wait_for_processes(self, kind: bytes, timeout_s: float) -> list[int]:
        """Wait until there are processes of a kind, or until a timeout."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.find(kind)) and time.monotonic() < deadline:
            self.look()
            time.sleep(0.1)
        return found

    def kill_process(self, found: Sequence[int], kind: bytes) -> None:
        """Kill one of the processes of a kind that were found, or that run now; none if there is none."""
        for pid in [*found, *self.find(kind)]:
            with contextlib.suppress(ProcessLookupError):
                self._lost_a_process = True
                os.kill(pid, signal.SIGKILL)
                self.committer_kills += kind == COMMITTER
                self.worker_kills += kind == TASK
                return

    def finish(self) -> None:
        """Kill the driver, and process the remaining records without kills. Raises AssertionError if that fails."""
        self.kill(with_workers=True)
        self.replace("rest")
        self.wait_until_done()
        self.close()

    def wait_until_done(self) -> None:
        """Wait for a query of the available records. Raises AssertionError if it fails."""
        self._active.wait_for("done")

    def close(self) -> None:
        """Kill what runs."""
        for driver in (self._active, self._reserve):
            if driver is not None and driver.process.poll() is None:
                driver.kill(with_workers=True)

    def batch(self, kind: str) -> int:
        """Return the last micro-batch in the checkpoint's `offsets` or `commits`."""
        found = (self.checkpoint / kind).glob("[0-9]*")
        return max((int(each.name) for each in found if each.name.isdecimal()), default=-1)

    @property
    def id(self) -> str:
        """The query's id, by its checkpoint."""
        return str(json.loads((self.checkpoint / "metadata").read_text())["id"])


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    return 0


def start(spark: SparkSession, settings: QuerySettings, reading: dict[str, str], *, ends: bool) -> StreamingQuery:
    """Start the query. reading: options of the source. ends: with the available records."""
    if settings.is_direct:
        is_topic = settings.format == "kafka-live"
        return kwire.spark.copy_stream(
            spark,
            "kafka-live",
            reading | {"columns": "key,value,partition"} if is_topic else reading,
            settings.format,
            settings.options,
            checkpoint=settings.checkpoint,
            function=None if is_topic else SHAPES[settings.shape],
            trigger={"availableNow": True} if ends else None,
        )
    frame = spark.readStream.format("kafka-live").options(**reading).load().selectExpr(*settings.columns)
    writer = frame.writeStream.format(settings.format).options(**settings.options)
    writer = writer.option("checkpointLocation", settings.checkpoint)
    return (writer.trigger(availableNow=True) if ends else writer).start()


def with_text(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of a soak: place, key and value, as text."""
    texts = [rows.column(name).cast(pa.string()) for name in ("key", "value")]
    place = [rows.column(name) for name in ("topic", "partition", "offset")]
    return pa.RecordBatch.from_arrays([*place, *texts], ["topic", "partition", "offset", "key", "value"])


def is_dead(offset: int) -> bool:
    """Return whether a soak makes a record a dead letter."""
    return offset % 5 == 2


def with_errors(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of a soak; the values of dead letters have an error."""
    text = with_text(rows)
    errors = pa.array(["a bad value" if is_dead(each.as_py()) else None for each in text.column("offset")], pa.string())
    value = pa.StructArray.from_arrays([text.column("value"), errors], ["value", "error"])
    return text.set_column(text.schema.get_field_index("value"), "value", value)


def as_changes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return each record as an event of Debezium, a tombstone as a deletion."""
    text = with_text(rows)
    key, value = text.column("key"), text.column("value")
    row = pa.StructArray.from_arrays([key, value], ["key", "value"])
    before = pa.StructArray.from_arrays(row.flatten(), fields=list(row.type), mask=value.is_valid())
    after = pa.StructArray.from_arrays(row.flatten(), fields=list(row.type), mask=value.is_null())
    op = pa.array(["u" if each.is_valid else "d" for each in value], pa.string())
    event = pa.StructArray.from_arrays([before, after, op], ["before", "after", "op"])
    places = [text.column(name) for name in ("topic", "partition", "offset")]
    return pa.RecordBatch.from_arrays([*places, event], ["topic", "partition", "offset", "value"])


RECORDS = ("soak.First", "soak.Second", "soak.Third")
"""Record types of a soak: that of an offset has the number of the remainder."""


def record_schema(record: str) -> str:
    """Return the Avro schema of a record type."""
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in ("key", "value")]
    return json.dumps({"type": "record", "name": record, "fields": fields})


def as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return each record as a value of Avro, of a type by its offset."""
    text = with_text(rows)
    fields = pa.StructArray.from_arrays([text.column("key"), text.column("value")], ["key", "value"])
    values: list[bytes | None] = [None] * len(rows)
    for number, record in enumerate(RECORDS):
        offsets = enumerate(text.column("offset").to_pylist())
        chosen = [row for row, offset in offsets if offset % len(RECORDS) == number]
        prefix = b"\0" + (number + 1).to_bytes(4, "big")
        encoded = Encoder(parse(record_schema(record))).encode(fields.take(pa.array(chosen, pa.int64())), prefix=prefix)
        for row, value in zip(chosen, encoded.array.to_pylist(), strict=True):
            values[row] = value
    places = [text.column(name) for name in ("topic", "partition", "offset")]
    return pa.RecordBatch.from_arrays(
        [*places, pa.array(values, pa.binary())], ["topic", "partition", "offset", "value"]
    )


SHAPES = {"text": with_text, "letters": with_errors, "changes": as_changes, "records": as_records}


def main() -> None:
    """Run queries as told on stdin."""
    settings = QuerySettings(**json.loads(sys.argv[1]))
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2,4]")  # tasks whose worker is killed are tried again
        .appName("tables")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{settings.checkpoint}-warehouse")
        .getOrCreate()
    )
    print("@ready", flush=True)
    for line in sys.stdin:
        reading = {"subscribe": settings.topic, "kafka.bootstrap.servers": settings.servers}
        reading |= {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
        if line.strip() == "go":
            reading["maxOffsetsPerTrigger"] = str(settings.limit)
        try:
            start(spark, settings, reading, ends=line.strip() == "rest").awaitTermination()
        except Exception as error:
            text = str(error).split("JVM stacktrace")[0][-3000:]
            print(f"ended: {text}", file=sys.stderr, flush=True)
            print(f"@ended {' '.join(text.split())[-1500:]}", flush=True)
        else:
            print("@done", flush=True)


if __name__ == "__main__":
    main()
