"""Kill `kwire log pull`, and now and then its source, at random moments while clients write; compare the batches.

Each run continues the same copy: some with --follow, all killed with SIGKILL but the last one. In the end the copy must
have every batch of the source once, with the same bytes.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic
from tests.soak.clients import CLIENT, PARTITIONS, PlainWriter, TransactionalWriter, Worker
from tests.waiting import HANG_S

from kwire.log import LogDirectory
from kwire.maintenance.pull.manifest import manifest_damages
from kwire.maintenance.verify import verify_directory

__all__ = ["PullReport", "Source", "soak_pulls"]

ALIVE_S = (0.2, 4.0)
"""Age at which a run is killed: from before its first request on."""
SOURCE_KILLS = 0.15
"""Part of the runs during which the source is killed as well."""
WRITING_S = 1.5
"""Seconds between runs at most, so that every run has something new to copy."""


class Source(Protocol):
    """A broker that is killed and restarted on the same port and directory. data: its log directory."""

    data: Path
    bootstrap_servers: str
    kills: int

    def start(self) -> None:
        """Start it, and wait until it listens."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""

    def close(self) -> None:
        """Stop it if it is running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullReport:
    """The report of a soak. lost, doubled, different: batches, by their hashes. damages: of the copy."""

    seed: int
    seconds: float
    pull_kills: int
    source_kills: int
    partitions: int
    batches: int
    size_bytes: int
    lost: int
    doubled: int
    different: int
    damages: int


def soak_pulls(directory: Path, source: Source, *, kills: int, seed: int) -> PullReport:
    """Kill a pull this many times, let the last one end, and return what the copy has."""
    rng, started, copy = random.Random(seed), time.monotonic(), directory / "copy"
    try:
        source.start()
        workers = clients(source.bootstrap_servers, seed)
        for worker in workers:
            worker.start()
        for _ in range(kills):
            time.sleep(rng.uniform(0, WRITING_S))
            kill_one(source, copy, rng)
        for worker in workers:
            worker.end()
        done = subprocess.run(command(source, copy), capture_output=True, text=True, timeout=HANG_S, check=False)
        if done.returncode:
            raise AssertionError(f"the last run has exit code {done.returncode}: {done.stderr[-2000:]}")
    finally:
        source.close()
    theirs, ours = hashes(source.data), hashes(copy)
    missing, extra = theirs - ours, ours - theirs
    places = {each[:3] for each in missing} & {each[:3] for each in extra}
    logs = LogDirectory(copy)
    damages = [each for each in verify_directory(logs).damages if not each.is_harmless]
    return PullReport(
        seed=seed,
        seconds=round(time.monotonic() - started, 1),
        pull_kills=kills,
        source_kills=source.kills,
        partitions=len(logs),
        batches=theirs.total(),
        size_bytes=sum(log.size_bytes for log in logs.values()),
        lost=sum(n for each, n in missing.items() if each[:3] not in places),
        doubled=sum(n for each, n in extra.items() if each[:3] not in places),
        different=len(places),
        damages=len(damages) + len(manifest_damages(str(copy), set(logs))),
    )


def clients(servers: str, seed: int) -> list[Worker]:
    """Create the topics, and return their writers."""
    admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("plain", "tx")]).values():
        future.result(HANG_S)
    plain = [PlainWriter(f"p{i}", servers, seed, "plain", codec) for i, codec in enumerate(("none", "zstd"))]
    return [*plain, TransactionalWriter("t0", servers, seed)]


def command(source: Source, copy: Path, *options: str) -> list[str]:
    url = f"kafka://{source.bootstrap_servers}"
    return [sys.executable, "-m", "kwire.cli", "log", "pull", url, "-o", str(copy), *options]


def kill_one(source: Source, copy: Path, rng: random.Random) -> None:
    """Run a pull and kill it; now and then kill the source first, while the pull goes on."""
    options = ["--follow"] if rng.random() < 0.5 else []
    with (copy.parent / "pull.log").open("ab") as log:
        process = subprocess.Popen(command(source, copy, *options), stdout=log, stderr=log)
        if rng.random() < SOURCE_KILLS:
            time.sleep(rng.uniform(*ALIVE_S))
            source.kill()
            source.start()
        time.sleep(rng.uniform(*ALIVE_S))
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)


def hashes(directory: Path) -> Counter[tuple[str, int, int, str]]:
    """Count the batches of a directory: topic, partition, base offset, hash of the bytes."""
    return Counter(
        (*key, batch.base_offset, sha256(batch.buffer).hexdigest())
        for key, log in LogDirectory(directory).items()
        if key[0] != "__cluster_metadata"
        for _, batch in log.batches()
    )
