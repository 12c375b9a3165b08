"""`kwire log adopt`: a metadata log for log directories that lost theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.options import FormatOption
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.identifiers import render_uuid
from kwire.pages.escaping import printable
from kwire.pages.quantities import plural

if TYPE_CHECKING:
    from kwire.maintenance.adopt import AdoptedPartition, AdoptedTopic, Adoption, NewController

__all__ = ["adopt"]


def _nodes(nodes: list[int]) -> str:
    return ",".join(map(str, nodes)) or "-"


COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="replicas", heading="REPLICAS", show=_nodes),
    Column(key="isr", heading="ISR", show=_nodes),
    Column(key="leader_epoch", heading="EPOCH", right=True),
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="behind", heading="BEHIND", show=lambda behind: " ".join(f"{n}:{count}" for n, count in behind.items())),
    Column(key="missing", heading="MISSING", show="; ".join),
)


def adopt(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR",
            help="Log directories of stopped brokers; directories of the same broker in the order of its log.dirs.",
        ),
    ],
    kafka_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Oldest Kafka that has to start, such as 3.9; by default that of the old metadata, or 3.3.",
        ),
    ] = None,
    controller_dir: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=DIR", help="Also write the directory of a new controller. Repeatable."),
    ] = None,
    strays: Annotated[
        bool, typer.Option("--strays", help="Also adopt partitions that Kafka set aside (NAME.ID-stray).")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write the metadata log.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Write a metadata log for log directories whose controllers are gone.

    Topics with their ids, partitions, replicas and leader epochs are taken from the directories; configs, users, ACLs
    and quotas from what is left of an old metadata log, as far as it can be read. Give the directories of all brokers:
    the ISR consists of the replicas that have every acknowledged record. Without --apply, a dry run. Exit code 1 if
    anything is missing, or prevents it.
    """
    from kwire.internal_topics.metadata_versions import release_of
    from kwire.maintenance.adopt import apply_adoption, plan_adoption

    with terminal.progress("Reading logs", 0) as bar:
        plan = plan_adoption(
            directories,
            release=None if kafka_version is None else release_of(kafka_version),
            controllers=[_controller(each) for each in controller_dir or ()],
            strays=strays,
            advance=bar.advance,
        )
    copies: list[str] = []
    is_written = apply and not plan.problems
    if is_written:
        with if_interrupted("not all directories have the new metadata log; run the command again before Kafka starts"):
            copies = apply_adoption(plan, now_ms=time.time_ns() // 1_000_000)
    rows = list(_partitions(plan))
    if format is Format.TABLE:
        write_rows(rows, COLUMNS, format)
        for line in _summary(plan, copies, is_written=is_written):
            print(printable(line))
    else:
        write_rows([_cluster(plan, copies, is_written=is_written), *rows], COLUMNS, format)
    for topic in plan.topics.values():
        for note in topic.notes:
            terminal.warn(printable(f"{topic.name}: {note}"))
    for note in plan.notes:
        terminal.warn(printable(note))
    for problem in plan.problems:
        terminal.warn(printable(f"prevents adoption: {problem}"))
    return FINE if plan.is_complete else FOUND


def _controller(text: str) -> NewController:
    """Parse a value of --controller-dir. Raises OptionError."""
    from kwire.maintenance.adopt import NewController

    node_id, equals, path = text.partition("=")
    if not (equals and path and node_id.isascii() and node_id.isdecimal() and int(node_id) < 1 << 31):
        raise OptionError(f"--controller-dir {text[:100]!r}: expected ID=DIR, with the controller's node.id")
    return NewController(path=str(Path(path).absolute()), node_id=int(node_id))


def _partitions(plan: Adoption) -> Iterator[Row]:
    for topic in plan.topics.values():
        for index, each in sorted(topic.partitions.items()):
            yield _row(topic, index, each)


def _row(topic: AdoptedTopic, index: int, adopted: AdoptedPartition) -> Row:
    best = adopted.replicas[0] if adopted.replicas else None
    behind = [each for each in adopted.replicas if each.node_id not in adopted.partition.isr]
    return {
        "kind": "partition",
        "topic": topic.name,
        "topic_id": render_uuid(topic.topic_id),
        "partition": index,
        "replicas": list(adopted.partition.replicas),
        "isr": list(adopted.partition.isr),
        "leader_epoch": adopted.partition.leader_epoch,
        "log_start_offset": None if best is None else best.log_start_offset,
        "log_end_offset": None if best is None else best.log_end_offset,
        "behind": {str(each.node_id): best.log_end_offset - each.log_end_offset for each in behind if best is not None},
        "found": [
            {
                "node_id": each.node_id,
                "path": each.path,
                "log_start_offset": each.log_start_offset,
                "log_end_offset": each.log_end_offset,
                "leader_epoch": each.leader_epoch,
            }
            for each in adopted.replicas
        ],
        "configs": topic.configs,
        "missing": [*adopted.notes],
    }


def _cluster(plan: Adoption, copies: list[str], *, is_written: bool) -> Row:
    return {
        "kind": "cluster",
        "cluster_id": plan.cluster_id,
        "kafka_version": plan.release.name,
        "features": plan.release.features,
        "old_metadata": None if plan.remains is None else plan.remains.path,
        "directories": [{"path": each.path, "node_id": each.node_id} for each in plan.directories],
        "metadata_logs": _metadata_logs(plan),
        "voters": [each.node_id for each in plan.voters],
        "end_offset": plan.end_offset,
        "leader_epoch": plan.leader_epoch,
        "next_producer_id": plan.cluster.next_producer_id,
        "missing": plan.notes + [f"{topic.name}: {note}" for topic in plan.topics.values() for note in topic.notes],
        "assumed": plan.assumptions,
        "problems": plan.problems,
        "is_written": is_written,
        "copies": copies,
    }


def _metadata_logs(plan: Adoption) -> list[str]:
    return [*plan.metadata_directories(), *(each.path for each in plan.controllers)]


def _summary(plan: Adoption, copies: list[str], *, is_written: bool) -> Iterator[str]:
    """Yield the lines below the table."""
    kept = [each for each in plan.release.features.items() if each[0] != "metadata.version"]
    features = "".join(f", {name} {level}" for name, level in kept)
    partitions = sum(len(topic.partitions) for topic in plan.topics.values())
    nodes = sorted({each.node_id for each in plan.directories} | {each.node_id for each in plan.controllers})
    yield ""
    yield f"cluster {plan.cluster_id}, {'nodes' if len(nodes) > 1 else 'node'} {', '.join(map(str, nodes))}"
    yield f"{plural(len(plan.topics), 'topic')}, {plural(partitions, 'partition')}"
    yield f"metadata.version {plan.release.level}{features}: for Kafka {plan.release.name} and newer"
    if plan.voters:
        yield f"voters of the dynamic quorum: {', '.join(str(each.node_id) for each in plan.voters)}"
    yield f"old metadata: {'none' if plan.remains is None else plan.remains.path}"
    for each in plan.assumptions:
        yield f"assumed: {each}"
    for each in copies:
        yield f"copy of the former metadata log: {each}"
    for each in _metadata_logs(plan):
        yield f"{'metadata log written' if is_written else 'metadata log to be written'}: {each}/__cluster_metadata-0"
    if plan.problems:
        yield "nothing was written: see the problems below"
    elif not is_written:
        yield "dry run, nothing was written: --apply writes"
