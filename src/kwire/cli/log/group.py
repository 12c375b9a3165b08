"""The commands of `kwire log`."""

from __future__ import annotations

import typer

from kwire.cli.command import add_command, add_group, new_group
from kwire.cli.log.adopt import adopt
from kwire.cli.log.compact import compact
from kwire.cli.log.convert import convert
from kwire.cli.log.dump import dump
from kwire.cli.log.export import export
from kwire.cli.log.ls import ls
from kwire.cli.log.pull import pull
from kwire.cli.log.repair import index, repair
from kwire.cli.log.report import report
from kwire.cli.log.restore import restore
from kwire.cli.log.verify import verify

__all__ = ["register"]

DATA = "/var/lib/kafka/data"


def register(app: typer.Typer) -> None:
    """Add `log` and its commands to the app."""
    group = new_group("log", help="Read, check, repair and convert log directories.")
    add_command(
        group,
        "ls",
        ls,
        f"kwire log ls {DATA}",
        f"kwire log ls {DATA} --topics --sort size",
        f"kwire log ls {DATA} --topic 'orders*' --wide --format json",
    )
    add_command(
        group,
        "dump",
        dump,
        f"kwire log dump {DATA}/orders-0 --deep --offsets 100:120",
        f"kwire log dump {DATA} --topic orders --deep --since 2025-10-09T08:55Z",
        f"kwire log dump {DATA}/orders-0/00000000000000000000.log --like-kafka --deep",
    )
    add_command(group, "report", report, f"kwire log report {DATA} -o report.html")
    add_command(
        group,
        "verify",
        verify,
        f"kwire log verify {DATA}",
        f"kwire log verify {DATA} --topic orders --report damage.html",
    )
    add_command(
        group,
        "repair",
        repair,
        f"kwire log repair {DATA}",
        f"kwire log repair {DATA} -o repaired",
        f"kwire log repair {DATA} --topic orders --mode truncate --apply",
    )
    add_command(group, "index", index, f"kwire log index {DATA}", f"kwire log index {DATA} --apply")
    add_command(
        group,
        "convert",
        convert,
        f"kwire log convert {DATA} --magic 1 --codec lz4",
        f"kwire log convert {DATA} --codec zstd --topic orders -o converted",
    )
    add_command(
        group,
        "export",
        export,
        f"kwire log export {DATA} --topic orders -o orders.parquet",
        f"kwire log export {DATA} --topic orders --isolation read_committed --since 2025-10-09 -o exported",
    )
    add_command(
        group,
        "pull",
        pull,
        "kwire log pull kafka://broker:9092 -o copy",
        "kwire log pull kafka://broker:9093/orders -o copy --config-file client.properties",
        "kwire log pull kafka://broker:9092 -o copy --topic 'orders*' --no-groups --follow",
    )
    add_command(
        group,
        "restore",
        restore,
        "kwire log restore copy -o restored --at 2025-10-09T12:03:20Z",
        "kwire log restore orders.parquet -o restored --codec lz4",
        "kwire log restore orders.parquet -o renumbered --new-offsets --offset-table offsets.parquet",
    )
    add_command(group, "adopt", adopt, f"kwire log adopt {DATA} --controller-dir 100=controller --kafka-version 3.9")
    add_command(
        group,
        "compact",
        compact,
        f"kwire log compact {DATA} --topic compacted",
        f"kwire log compact {DATA} --topic compacted -c delete.retention.ms=0 -o smaller",
    )
    add_group(app, group, section="Logs")
