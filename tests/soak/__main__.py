"""Kill a broker, a streaming query or a pull repeatedly while clients work, and check the data.

python -m tests.soak --minutes 30 --seed 7              clients of a broker
python -m tests.soak streams --minutes 30 --seed 7      streaming queries, three minutes each, of all kinds in turn
python -m tests.soak tables --minutes 60 --seed 7       streams into tables, 25 kills each, of all kinds in turn
python -m tests.soak commands --minutes 60 --seed 7     kwire lake and jobs.table, 15 kills each, of all ways in turn
python -m tests.soak replaces --minutes 30 --seed 7     lake append --replace, 25 kills each, of both formats in turn
python -m tests.soak pulls --minutes 30 --seed 7        kwire log pull, 25 kills each, from kwire and Kafka in turn
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.soak.soak import soak

STREAM_S = 180
PULL_KILLS = TABLE_KILLS = 25
COMMAND_KILLS, JOB_KILLS = 15, 8


def main() -> None:
    """Run one soak and print its report; the directory of a failed soak is kept and printed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="?", choices=["clients", "streams", "tables", "commands", "replaces", "pulls"], default="clients"
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", default="", help="tables, commands: those whose name has this text")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kwire-soak-"))
    print(f"seed {given.seed}, {given.minutes:g} minutes, in {directory}", flush=True)
    try:
        if given.what == "clients":
            show(soak(directory, seconds=given.minutes * 60, seed=given.seed))
        elif given.what == "pulls":
            soak_all_pulls(directory, given.minutes * 60, given.seed)
        elif given.what == "commands":
            soak_all_commands(directory, given.minutes * 60, given.seed, given.only)
        elif given.what == "replaces":
            soak_all_replaces(directory, given.minutes * 60, given.seed)
        elif given.what == "tables":
            soak_all_tables(directory, given.minutes * 60, given.seed, given.only)
        else:
            soak_all_streams(directory, given.minutes * 60, given.seed)
    except BaseException:
        print(f"failed; what the broker left is in {directory}", file=sys.stderr)
        raise


def soak_all_streams(directory: Path, seconds: float, seed: int) -> None:
    """Run each kind of query in turn, alternately with kwire's broker and Kafka, until the time is over."""
    from tests.soak.stream_query import VARIANTS
    from tests.soak.streams import RealKafka, remove, soak_streams

    deadline = time.monotonic() + seconds
    n = 0
    while (left := deadline - time.monotonic()) > 0:
        here = directory / f"{n}"
        here.mkdir()
        broker = RealKafka(here / "kafka", "3.9.1") if n % 3 == 2 else None
        variant = VARIANTS[n % len(VARIANTS)]
        show(soak_streams(here, variant=variant, seconds=min(left, STREAM_S), seed=seed + n, broker=broker))
        remove(here)
        n += 1


def soak_all_tables(directory: Path, seconds: float, seed: int, only: str) -> None:
    """Write tables of both formats in all scenarios in turn, until the time is over."""
    from tests.soak.streams import remove
    from tests.soak.tables import FORMATS, SCENARIOS, soak_tables

    deadline = time.monotonic() + seconds
    chosen = [each for each in SCENARIOS if only in each.name]
    n = 0
    while time.monotonic() < deadline:
        here = directory / f"{n}"
        here.mkdir()
        scenario = chosen[n // len(FORMATS) % len(chosen)]
        format = FORMATS[n % len(FORMATS)]
        show(soak_tables(here, format=format, scenario=scenario, kills=TABLE_KILLS, seed=seed + n))
        remove(here)
        n += 1


def soak_all_commands(directory: Path, seconds: float, seed: int, only: str) -> None:
    """Append to tables of both formats in all ways, locally and in S3, with the command and the job, in turn."""
    from tests.soak.commands import JOB_WAYS, WAYS, soak_commands
    from tests.soak.streams import remove
    from tests.soak.tables import FORMATS

    deadline = time.monotonic() + seconds
    every = [
        (way, format, in_store, on_spark)
        for way in WAYS
        for on_spark in (False, True)
        for in_store in (False, True)
        for format in FORMATS
        if only in way.name and (way.name in JOB_WAYS or not on_spark)
    ]
    n = 0
    while time.monotonic() < deadline:
        here = directory / f"{n}"
        here.mkdir()
        way, format, in_store, on_spark = every[n % len(every)]
        show(
            soak_commands(
                here,
                format=format,
                way=way,
                kills=JOB_KILLS if on_spark else COMMAND_KILLS,
                seed=seed + n,
                in_object_store=in_store,
                on_spark=on_spark,
            )
        )
        remove(here)
        n += 1


def soak_all_replaces(directory: Path, seconds: float, seed: int) -> None:
    """Replace rows of tables of both formats, locally and in S3, until the time is over."""
    from tests.soak.replaces import soak_replaces
    from tests.soak.streams import remove
    from tests.soak.tables import FORMATS

    deadline = time.monotonic() + seconds
    n = 0
    while time.monotonic() < deadline:
        here = directory / f"{n}"
        here.mkdir()
        format, in_store = FORMATS[n % len(FORMATS)], n % 4 >= len(FORMATS)
        show(soak_replaces(here, format=format, kills=TABLE_KILLS, seed=seed + n, in_object_store=in_store))
        remove(here)
        n += 1


def soak_all_pulls(directory: Path, seconds: float, seed: int) -> None:
    """Pull from kwire's broker and from Kafka in turn, until the time is over or a batch is wrong."""
    from tests.soak.broker_process import BrokerProcess
    from tests.soak.pulls import Source, soak_pulls
    from tests.soak.streams import RealKafka, remove

    deadline = time.monotonic() + seconds
    n = 0
    while time.monotonic() < deadline:
        here = directory / f"{n}"
        here.mkdir()
        source: Source = RealKafka(here / "kafka", "3.9.1") if n % 2 else BrokerProcess(here)
        report = soak_pulls(here, source, kills=PULL_KILLS, seed=seed + n)
        show(report)
        if report.lost or report.doubled or report.different or report.damages:
            raise AssertionError("the copy is not what the source has")
        remove(here)
        n += 1


def show(report: Any) -> None:
    for name, value in asdict(report).items():
        print(f"{name:24}{value}")
    print(flush=True)


if __name__ == "__main__":
    main()
