"""What kwire needs where: each extra alone, installed from the wheel into an environment with nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kwire import extras
from kwire.errors import MissingExtra, OptionError
from tests.interop import installed
from tests.sampling import mostly_slow

ROOT = Path(__file__).parents[1]
HEAVY = ("cryptography", "fsspec", "numpy", "pyarrow", "pyspark", "rich", "typer")

# The codec, records in every codec, a broker, a client, and logs as objects; then what a base install has not.
BASE = """
import hashlib, json, sys, tempfile
from kwire import records
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.errors import KwireError
from kwire.log import LogDirectory
from kwire.messages import MetadataResponse

def row(value):
    return records.Record(offset=0, timestamp=1, timestamp_type=records.TimestampType.CREATE_TIME, key=b"k",
                          value=value, headers=[], sequence=-1)

def values(data):
    return [each.value for batch in records.read_batches(data) for each in batch.records()]

def hashed(data):
    return hashlib.sha256(b"".join(map(bytes, data))).hexdigest()

message = MetadataResponse(cluster_id="c")
many = [row(b"%d" % i) for i in range(400)]
old = b"".join(records.write_batch([each], magic=1) for each in many)
data = records.write_batch(many, base_offset=7)
found = {
    "message": MetadataResponse.decode(message.encode(version=12), version=12) == message,
    "codecs": [
        (magic, codec)
        for magic in (0, 1, 2)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
        if (magic, codec) not in ((0, "zstd"), (1, "zstd"))
        and values(records.write_batch([row(b"v")], magic=magic, compression=codec)) == [b"v"]
    ],
    "down": hashed([records.down_convert(data, 1)]),
    "up": hashed([records.up_convert(old, 2)]),
    "appended": hashed(records.validate_and_assign_offsets(old, 5, now_ms=9).parts),
}
with tempfile.TemporaryDirectory() as folder:
    with Broker(folder) as broker, Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        broker.create_topic("orders", 1)
        producer.send("orders", 0, records.write_batch(many, **producer.fields("orders", 0)), len(many))
        fetched = b"".join(each.records for each in client.read("orders", 0, 0, len(many)))
        found["fetched"] = values(fetched) == values(data)
    log = LogDirectory(folder)["orders", 0]
    found["log"] = [each.value for each in log.read()] == values(data)
    refused = {}
    for tried in TRIED:
        try:
            exec(tried, {"log": log, "data": data})
            refused[tried] = "no error"
        except KwireError as error:
            refused[tried] = f"{type(error).__name__}: {error}"
found["refused"] = refused
found["loaded"] = [name for name in HEAVY if name in sys.modules]
print(json.dumps(found))
"""

ARROW = "which is not installed; pip install 'kwire[arrow]'"
REGISTRY = "which is not installed; pip install 'kwire[registry]'"
# What a base install has not, and what it says.
REFUSED = {
    "from kwire.records import to_arrow; to_arrow(data)": f"records as Arrow columns: needs pyarrow, {ARROW}",
    "from kwire.records import from_arrow; from_arrow(None)": f"records from Arrow columns: needs numpy, {ARROW}",
    "from kwire.records import ColumnReader; ColumnReader()": f"records as Arrow columns: needs numpy, {ARROW}",
    "from kwire.records import arrow_schema; arrow_schema()": f"records as Arrow columns: needs pyarrow, {ARROW}",
    "log.read_arrow()": f"records as Arrow columns: needs pyarrow, {ARROW}",
    "log.verify()": f"verification of logs: needs numpy, {ARROW}",
    "from kwire.maintenance.verify import verify_directory": f"verification of logs: needs numpy, {ARROW}",
    "from kwire.log.cleaner import Cleaner": f"compaction of logs: needs numpy, {ARROW}",
    "from kwire.maintenance import compaction": f"compaction of logs: needs numpy, {ARROW}",
    "from kwire.maintenance import repair": f"verification of logs: needs numpy, {ARROW}",
    "from kwire.maintenance import from_parquet": f"restoring from Parquet files: needs numpy, {ARROW}",
    "from kwire.plan.columns import ColumnReader": f"columns of messages: needs numpy, {ARROW}",
    "from kwire.schemas import decode_arrow": f"values of schema registries: needs pyarrow, {REGISTRY}",
    "from kwire.schemas.avro import parse": f"Avro values: needs pyarrow, {REGISTRY}",
    "from kwire.schemas import Registry; Registry('http://127.0.0.1:1').schema(1)": (
        f"schema registries: needs urllib3, {REGISTRY}"
    ),
    "import kwire; kwire.open('s3://bucket/logs')": (
        "s3://bucket/logs: needs fsspec, which is not installed; pip install 'kwire[s3]'"
    ),
    "import kwire.lake; kwire.lake.open_iceberg('a.b', {})": (
        "Iceberg tables: needs pyiceberg, which is not installed; pip install 'kwire[iceberg]'"
    ),
    "import kwire.lake; kwire.lake.open_delta('/nowhere')": (
        "Delta tables: needs deltalake, which is not installed; pip install 'kwire[delta]'"
    ),
    "from kwire.spark import KafkaLogSource": (
        "kwire.spark.KafkaLogSource: needs pyspark, which is not installed; pip install 'kwire[spark]'"
    ),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.build_wheel(tmp_path_factory.mktemp("wheel"))


class Environment:
    """An environment with kwire and some extras."""

    def __init__(self, folder: Path, wheel: Path, *requirements: str, extras: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.python = installed.make_environment(
            folder / "environment", wheel, *requirements, extras=extras, compiled=False
        )
        self.variables = installed.environment(self.python, folder / "home")

    def results(self, program: str) -> Mapping[str, object]:
        """Run a program that prints JSON."""
        return installed.results(installed.run([str(self.python), "-c", program], env=self.variables, cwd=self.folder))

    def command(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        return subprocess.run(
            [str(self.python.with_name(words[0])), *words[1:]],
            env={**self.variables, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("base"), wheel, "pytest")


@pytest.mark.slow
def test_without_an_extra_the_codec_records_logs_and_the_broker_work(base: Environment, tmp_path: Path) -> None:
    found = base.results(f"HEAVY = {HEAVY}\nTRIED = {list(REFUSED)}\n{BASE}")
    assert found["refused"] == {tried: f"MissingExtra: {text}" for tried, text in REFUSED.items()}
    assert found["loaded"] == []
    complete = installed.results(installed.run([sys.executable, "-c", f"HEAVY = TRIED = ()\n{BASE}"], cwd=tmp_path))
    assert (complete["message"], complete["fetched"], complete["log"]) == (True, True, True)
    assert len(complete["codecs"]) == 13  # type: ignore[arg-type]
    for name in ("message", "codecs", "down", "up", "appended", "fetched", "log"):  # bytes as those from columns
        assert found[name] == complete[name], name


def test_without_an_extra_the_fixture_works(base: Environment) -> None:
    (base.folder / "test_it.py").write_text(
        "from kwire.client import Client\n"
        "def test_it(kafka_broker):\n"
        "    with Client(kafka_broker.bootstrap_servers) as client:\n"
        "        assert len(client.metadata().brokers) == 1\n"
    )
    done = base.command("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_its_extra_the_command_says_so_in_one_line(base: Environment) -> None:
    for words in (("kwire", "log", "ls", "."), ("python", "-m", "kwire.cli", "--version")):
        done = base.command(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "kwire: needs typer, which is not installed; pip install 'kwire[cli]'\n"


COMPACTED = """
import json, logging, threading
from kwire import records
from kwire.broker import Broker
from kwire.client import Client, Producer

lines, warned = [], threading.Event()

class Kept(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
        warned.set()

logging.getLogger("kwire.broker").addHandler(Kept())
created = records.TimestampType.CREATE_TIME
row = records.Record(offset=0, timestamp=1, timestamp_type=created, key=b"k", value=b"v", headers=[], sequence=-1)
with Broker() as broker, Client(broker.bootstrap_servers) as client, Producer(client) as producer:
    broker.create_topic("prices", 1, cleanup_policy="compact")
    broker.advance(60_000)
    assert not lines
    producer.send("prices", 0, records.write_batch([row], **producer.fields("prices", 0)), 1)
    broker.advance(60_000)
    warned.wait(30)
    broker.advance(60_000)
print(json.dumps(lines))
"""


def test_compacted_topics_of_a_broker_without_numpy_are_named_in_one_warning(base: Environment) -> None:
    assert base.results(COMPACTED) == [
        "compacted topics are not cleaned: compaction of logs: needs numpy, which is not installed; "
        "pip install 'kwire[arrow]'"
    ]


# What each extra is for, alone.
ALONE = {
    "arrow": """
import json, tempfile
from kwire import records
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.log import LogDirectory
import pyarrow as pa
rows = pa.record_batch({"key": pa.array([b"a", b"b"], pa.binary()), "value": pa.array([b"1", None], pa.binary())})
with tempfile.TemporaryDirectory() as folder:
    with Broker(folder) as broker, Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        broker.create_topic("orders", 1)
        producer.send("orders", 0, records.from_arrow(rows, **producer.fields("orders", 0)), 2)
    log = LogDirectory(folder)["orders", 0]
    print(json.dumps([log.read_arrow().read_all().num_rows, [each.cause for each in log.verify()]]))
""",
    "registry": """
import json, pathlib, tempfile
import pyarrow as pa
from kwire.schemas import Registry, decode_arrow, encode_arrow
orders = pa.array([{"id": 1}], pa.struct([("id", pa.int64())]))
texts = {
    "avsc": '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}',
    "proto": 'syntax = "proto3"; message O { int64 id = 1; }',
    "schema.json": '{"type": "object", "properties": {"id": {"type": "integer"}}}',
}
found = []
for suffix, text in texts.items():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "orders-value.1.7." + suffix).write_text(text)
        registry = Registry(folder)
        values = encode_arrow(orders, registry, topic="orders")
        found += decode_arrow(values, registry, topic="orders").to_pylist()
print(json.dumps(found))
""",
    "delta": """
import json, tempfile
import kwire.lake, pyarrow as pa
with tempfile.TemporaryDirectory() as folder:
    table = kwire.lake.open_delta(folder + "/t")
    table.prepare(pa.schema([("a", pa.int64())]), kwire.lake.Layout())
    print(json.dumps(table.state() is not None))
""",
    "iceberg": """
import json, tempfile
import kwire.lake, pyarrow as pa
with tempfile.TemporaryDirectory() as folder:
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}
    table = kwire.lake.open_iceberg("a.b", catalog, catalog_name="c")
    table.prepare(pa.schema([("a", pa.int64())]), kwire.lake.Layout())
    print(json.dumps(table.state() is not None))
""",
    "s3": """
import json, s3fs
import kwire
from kwire.errors import LogError
try:
    kwire.open("memory://nothing/here")
except LogError as error:
    print(json.dumps("fsspec" not in str(error)))
""",
    "encryption": """
import json
from cryptography.hazmat.primitives.serialization import pkcs12
from kwire.client import key_stores
print(json.dumps(key_stores.__name__))
""",
}
PRINTED = {
    "arrow": [2, []],
    "registry": [{"id": 1}] * 3,
    "delta": True,
    "iceberg": True,
    "s3": True,
    "encryption": "kwire.client.key_stores",
}


@pytest.mark.parametrize("extra", mostly_slow([*ALONE]))
def test_each_extra_alone_is_enough_for_what_it_is_for(extra: str, wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheel, extras=(extra,))
    assert environment.results(ALONE[extra]) == PRINTED[extra]


@pytest.mark.slow
def test_the_extra_cli_has_the_commands_and_names_those_of_others(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheel, extras=("cli",))
    (tmp_path / "logs" / "orders-0").mkdir(parents=True)
    (tmp_path / "logs" / "orders-0" / f"{0:020}.log").write_bytes(b"")
    shown = environment.command("kwire", "log", "ls", "logs")
    assert (shown.returncode, "orders" in shown.stdout) == (0, True), shown.stderr
    refused = environment.command("kwire", "log", "verify", "logs")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.strip().endswith("needs numpy, which is not installed; pip install 'kwire[arrow]'")
    assert len(refused.stderr.splitlines()) == 1


# The metadata


def declared() -> dict[str, list[Requirement]]:
    """Return the requirements of each extra in pyproject.toml; those of a base install as ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(line) for line in found] for extra, found in lines.items()}


def closure_of(extra: str) -> dict[str, set[str]]:
    """Return the modules at the top of each distribution that a base install with an extra brings."""
    found = installed.closure([str(each) for each in (*declared()[""], *declared()[extra])])
    return {
        name: {file.parts[0].partition(".")[0] for file in each.files or () if file.suffix in (".py", ".so", ".pyd")}
        for name, each in found.items()
    }


@pytest.mark.parametrize("extra", sorted({*extras.EXTRAS.values()} - {"kerberos", "sail"}))  # not in the lock
def test_the_extra_that_a_message_names_installs_the_library(extra: str) -> None:
    modules = set().union(*closure_of(extra).values())
    for library, its_extra in extras.EXTRAS.items():
        if its_extra == extra:
            assert library in modules, f"kwire[{extra}] does not install {library}"


def test_a_base_install_has_none_of_the_optional_libraries() -> None:
    assert not set().union(*closure_of("").values()) & extras.EXTRAS.keys()


def test_all_has_every_extra_that_goes_with_the_others() -> None:
    (whole,) = declared()["all"]
    assert whole.extras == declared().keys() - {"", "all", "sail", "compiler", "kerberos"}


def test_a_library_that_is_broken_is_not_taken_for_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match="libstdc"), extras.needing("columns"):
        raise ImportError("libstdc++.so.6: cannot open shared object file", name="numpy")
    with pytest.raises(ModuleNotFoundError, match="own"), extras.needing("columns"):
        raise ModuleNotFoundError("own", name="kwire.own")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtra, match=re.escape("columns: needs numpy, which is not installed; pip install")):
        extras.need("numpy", what="columns")
    with pytest.raises(OptionError, match=re.escape("pip install 'kwire[spark]'")), extras.needing("rows", "spark"):
        import numpy  # noqa: F401
