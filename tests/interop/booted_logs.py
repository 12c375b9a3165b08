"""Real Kafka on log directories made from its own, and the records that its consumer reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.log.expected import Row
from tools import kafka

PEER = Path(__file__).parent / "java" / "LogPeer.java"
MODERN, MODERN44 = "127.0.0.1:21093", "127.0.0.1:21893"  # the controllers of tests/data/logs
Place = tuple[str, int]


@contextmanager
def booted(
    directory: Path, *, version: str = kafka.VERSION, controller: str = MODERN
) -> Iterator[Callable[..., list[str]]]:
    """Run Kafka on directory / "data"; yield read(isolation, *topics), which returns the lines of its consumer.

    controller: host and port that the metadata log of the directory names as the only voter.
    """
    # its own cleaner would go on with compacted topics meanwhile
    broker = kafka.KafkaBroker(
        directory, version=version, **{"controller.quorum.voters": "", "log.cleaner.enable": "false"}
    )
    listeners = [each for each in str(broker.settings["listeners"]).split(",") if "CONTROLLER" not in each]
    broker.settings["listeners"] = ",".join([*listeners, f"CONTROLLER://{controller}"])
    broker.settings["controller.quorum.bootstrap.servers"] = controller
    # or the coordinator would abort the transaction that is open in there, sooner or later
    broker.settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = 3_600_000
    classes = kafka.compile_java(PEER)

    def read(*arguments: str) -> list[str]:
        return kafka.java("LogPeer", broker.bootstrap_servers, "read", *arguments, classes=classes).splitlines()

    with broker:
        yield read


def by_place(lines: list[str]) -> dict[Place, list[tuple[int, int, str, str]]]:
    """Return (offset, timestamp, key, value) of LogPeer's lines by partition, in order."""
    found: dict[Place, list[tuple[int, int, str, str]]] = {}
    for line in lines:
        topic, partition, offset, timestamp, key, value = line.split(" ")
        found.setdefault((topic, int(partition)), []).append((int(offset), int(timestamp), key, value))
    return {key: sorted(records) for key, records in found.items()}


def as_printed(rows: list[Row]) -> list[tuple[int, int, str, str]]:
    return [(row.offset, row.timestamp, *map(as_hex, (row.key, row.value))) for row in rows]  # type: ignore[misc]


def as_hex(data: bytes | None) -> str:
    """Render bytes as the Java consumer prints them: "x" and hexadecimal digits, or "-" for null."""
    return "-" if data is None else "x" + data.hex()
