"""Try kwire with versions of Python, PySpark, Sail, Kafka and clients, and write docs/tested-versions.md.

    python -m tools.pairs [--only WORD ...]

Each pair is a program of some lines in a new environment of uv, with this checkout's wheel. The results are kept in
tools/pairs.json; a run of some pairs leaves the others' results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["PAIRS", "Outcome", "Pair", "main", "page"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tools" / "pairs.json"
PAGE = ROOT / "docs" / "tested-versions.md"
TIMEOUT_S = 240

# What each program begins with: a broker with a topic of 3 records.
BROKER = """
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.records import BatchBuilder
def fill(servers):
    with Client(servers) as client, Producer(client) as producer:
        builder = BatchBuilder(**producer.fields("orders", 0))
        for n in range(3):
            builder.append(b"k", b"v%d" % n, timestamp=n)
        producer.send("orders", 0, builder.build(), 3)
def values(servers, end=3):
    from kwire.records import read_batches
    with Client(servers) as client:
        found = b"".join(each.records for each in client.read("orders", 0, 0, end))
    return [bytes(record.value) for batch in read_batches(found) for record in batch.records()]
ALL = [b"v0", b"v1", b"v2"]
"""
PLAIN = """
with Broker() as broker:
    broker.create_topic("orders", 1)
    fill(broker.bootstrap_servers)
    assert values(broker.bootstrap_servers) == ALL
"""
SPARK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with Broker() as broker:
    broker.create_topic("orders", 1)
    fill(broker.bootstrap_servers)
    frame = spark.read.format("kafka-live").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = frame.option("subscribe", "orders").load().select("value").collect()
    assert [bytes(row.value) for row in rows] == ALL
"""
SAIL = """
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
server = SparkConnectServer()
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
with Broker() as broker:
    broker.create_topic("orders", 1)
    fill(broker.bootstrap_servers)
    frame = spark.read.format("kafka-live").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    rows = frame.option("subscribe", "orders").load().select("value").collect()
    assert [bytes(row.value) for row in rows] == ALL
spark.stop()
server.stop()
"""
CONFLUENT = """
from confluent_kafka import Consumer, Producer as Theirs
with Broker() as broker:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    broker.create_topic("orders", 1)
    producer = Theirs(servers)
    for value in ALL:
        producer.produce("orders", value)
    assert producer.flush(30) == 0
    consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert [message.value() for message in consumer.consume(3, 30)] == ALL
    consumer.close()
    assert values(broker.bootstrap_servers) == ALL
"""
KAFKA_PYTHON = """
from kafka import KafkaConsumer, KafkaProducer
with Broker() as broker:
    broker.create_topic("orders", 1)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for value in ALL:
        producer.send("orders", value).get(30)
    producer.close()
    consumer = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, group_id="g",
                             auto_offset_reset="earliest", consumer_timeout_ms=20_000)
    assert [next(consumer).value for _ in ALL] == ALL
    consumer.close()
    assert values(broker.bootstrap_servers) == ALL
"""
AIOKAFKA = """
import asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
async def main(servers):
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for value in ALL:
            await producer.send_and_wait("orders", value)
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
    await consumer.start()
    assert [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in ALL] == ALL
    await consumer.stop()
with Broker() as broker:
    broker.create_topic("orders", 1)
    asyncio.run(main(broker.bootstrap_servers))
    assert values(broker.bootstrap_servers) == ALL
"""
KAFKA = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, {root!r})
from tools.kafka import KafkaBroker
from kwire.messages import CreateTopicsRequest
with tempfile.TemporaryDirectory() as folder, KafkaBroker(Path(folder), version={version!r}, heap="512m") as kafka:
    with Client(kafka.bootstrap_servers) as client:
        topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    fill(kafka.bootstrap_servers)
    assert values(kafka.bootstrap_servers) == ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What is tried. packages: for pip, beside kwire with its extras."""

    name: str
    what: str
    program: str
    python: str = "3.11"
    extras: str = ""
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The newest run of a pair. versions: of Python and the named packages, as installed. error: its last line."""

    date: str
    versions: str
    passed: bool
    error: str = ""


def kafka(version: str) -> Pair:
    """Return the pair of kwire's client and a release of Kafka."""
    program = KAFKA.format(root=str(ROOT), version=version)
    return Pair(name=f"kafka-{version}", what=f"kwire's client with Kafka {version}", program=program)


def client(package: str, version: str, program: str, python: str = "3.11") -> Pair:
    """Return the pair of kwire's broker and a release of a client; "" is the newest."""
    name = f"{package}-{version or 'newest'}-on-{python}"
    wanted = f"{package}=={version}" if version else package
    return Pair(name=name, what=f"{package} with kwire's broker", program=program, python=python, packages=(wanted,))


PAIRS = [
    *(
        Pair(name=f"python-{version}", what="kwire's broker and client", program=PLAIN, python=version)
        for version in ("3.11", "3.12", "3.13", "3.14")
    ),
    client("confluent-kafka", "", CONFLUENT),
    client("confluent-kafka", "", CONFLUENT, "3.14"),
    client("confluent-kafka", "2.3.0", CONFLUENT),
    client("kafka-python", "", KAFKA_PYTHON),
    client("kafka-python", "2.0.2", KAFKA_PYTHON),
    client("aiokafka", "", AIOKAFKA),
    client("aiokafka", "0.10.0", AIOKAFKA),
    *(kafka(version) for version in ("2.8.2", "3.9.1", "4.4.0")),
    *(
        Pair(name=f"pyspark-{version}", what="`kafka-live`", program=SPARK, extras="[spark]",
             packages=(f"pyspark=={version}",))
        for version in ("4.1.0", "4.3.0")
    ),
    Pair(name="sail", what="`kafka-live` on Sail", program=SAIL, extras="[sail]", packages=("pysail",)),
]  # fmt: skip


def interpreter(version: str) -> str:
    """Return pyenv's newest Python of a version, or the version itself, which uv looks for or downloads."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    return str(found[-1]) if found else version


def attempt(pair: Pair, wheel: Path, folder: Path) -> Outcome | None:
    """Install a pair in a new environment and run its program; None if this machine cannot have its Python."""
    python = folder / pair.name / "bin" / "python"
    named = [re.split(r"[=<>]", each)[0] for each in pair.packages]
    show = (
        "import importlib.metadata as m, platform;"
        "print('Python', platform.python_version(), *[f', {n} {m.version(n)}' for n in %r])"
    )
    steps = [
        ["uv", "venv", "--quiet", "--no-project", "--python", interpreter(pair.python), str(folder / pair.name)],
        [
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python),
            f"kwire{pair.extras} @ file://{wheel}",
            *pair.packages,
        ],
        [str(python), "-c", show % (["kwire", *named],)],
        [str(python), str(folder / f"{pair.name}.py")],  # not -c: PySpark's client then looks for Spark, and exits
    ]
    (folder / f"{pair.name}.py").write_text(BROKER + pair.program, "utf-8")
    versions, error = "", ""
    variables = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    variables |= {"PYSPARK_PYTHON": str(python), "PATH": f"{python.parent}:{variables['PATH']}"}
    for number, step in enumerate(steps):
        try:
            done = subprocess.run(
                step, cwd=folder, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            error = f"no end within {TIMEOUT_S} s"
            break
        if done.returncode and number == 0:
            return None
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
            error = f"exit code {done.returncode}: {(errors or lines or [''])[-1][:160]}"
            break
        if number == 2:
            versions = re.sub(r" +,", ",", done.stdout.strip())
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    return Outcome(date=today, versions=versions, passed=not error, error=error.replace(str(folder), ""))


def read() -> dict[str, Outcome]:
    """Return the kept results by pair."""
    return {name: Outcome(**found) for name, found in json.loads(RESULTS.read_text("utf-8")).items()}


def page() -> str:
    """Return the text of docs/tested-versions.md."""
    kept = read()
    lines = [
        "# Tested versions",
        "Each row is a program of some lines that wrote and read records, in a new environment with the wheel and",
        "these releases, on Linux x86-64. `python -m tools.pairs` runs the programs and writes this page. The",
        "test suite runs with the releases of `requirements.lock`. PySpark before 4.1 is not supported. Where a row",
        'says "not run", that Python was missing on the machine.',
        "",
        "| tried | versions | date | result |",
        "| --- | --- | --- | --- |",
    ]
    for pair in PAIRS:
        found = kept.get(pair.name)
        if found is None:
            wanted = ", ".join([f"Python {pair.python}", *pair.packages])
            lines.append(f"| {pair.what} | {wanted} | | not run |")
        else:
            result = "works" if found.passed else f"**fails**: `{found.error}`"
            lines.append(f"| {pair.what} | {found.versions or ', '.join(pair.packages)} | {found.date} | {result} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run the pairs whose name contains one of the words; exit code 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.pairs", description=__doc__)
    parser.add_argument("--only", nargs="+", action="extend", metavar="WORD", help="pairs whose name contains a word")
    asked = parser.parse_args(arguments)
    chosen = [pair for pair in PAIRS if any(word in pair.name for word in asked.only or [""])]
    if not chosen:
        parser.error(f"no such pair; there are {', '.join(pair.name for pair in PAIRS)}")
    failed = False
    with tempfile.TemporaryDirectory(prefix="kwire-pairs-") as name:
        folder = Path(name)
        words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name]
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        for pair in chosen:
            found = attempt(pair, wheel, folder)
            if found is None:
                print(
                    f"{pair.name}: not run: Python {pair.python} is not installed and cannot be downloaded", flush=True
                )
                failed = True
                continue
            failed |= not found.passed
            print(f"{pair.name}: {found.versions}: {found.error or 'works'}", flush=True)
            kept = {**read(), pair.name: found}
            RESULTS.write_text(json.dumps({key: asdict(kept[key]) for key in sorted(kept)}, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(), "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
