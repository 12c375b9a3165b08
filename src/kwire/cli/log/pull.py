"""`kwire log pull`: an exact copy of topics of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.client_configs import client_configs
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, Topics
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text, time_text

if TYPE_CHECKING:
    from kwire.maintenance.pull import Event, Manifest, PullResult

__all__ = ["pull"]

COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="state", heading="STATE"),  # not last: a line may be longer than a terminal
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="segments", heading="SEGMENTS", right=True),
    Column(key="high_watermark", heading="HIGH WATERMARK", right=True),
)
EVENTS = {
    "gap": "offsets {first} to {last} were removed by retention before they were copied",
    "truncated": "offsets {first} to {last} were removed: the partition's new leader does not have them",
    "recreated": "deleted and created again; the earlier log, up to offset {end}, is kept in a directory named *-stray",
    "readable": "the account may read it now; the log made from admin APIs is kept in a directory named *-stray",
    "deleted": "deleted; its copy, up to offset {end}, is kept",
}


def pull(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Cluster, topic or partition: kafka://host:port[/topic[-partition]]."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|URL",
            help="Log directory, or URL of an object store: new, or a copy of the same cluster.",
        ),
    ],
    topic: Topics = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new records, topics and partitions until Ctrl-C.")
    ] = False,
    no_groups: Annotated[
        bool, typer.Option("--no-groups", help="Without the internal topics of groups and transactions.")
    ] = False,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Copy topics of a running cluster into a log directory or an object store, batch for batch.

    Stored batches are copied unchanged: offsets, timestamps, producer ids, transactions, epochs and compression are
    as in the source, up to the high watermarks at the start. The account needs READ on topics, and
    nothing on the brokers' disks. Running the same command again copies what is new. kwire-manifest.json has the
    hashes, which `kwire log verify` checks, and users, ACLs, quotas and configs of brokers. Exit code 1 if a partition
    is not complete.
    """
    from kwire.client.address import ClusterAddress
    from kwire.maintenance.pull import PullOptions
    from kwire.maintenance.pull import pull as pull_topics

    address = ClusterAddress.parse(source)
    state = f"{output} is a valid copy of what was copied; run the command again to continue"
    with (
        if_interrupted(state),
        address.connect(client_configs(source, config, config_file)) as client,
        terminal.progress("Copying", 0) as bar,
    ):
        name, partition = address.resolve(client)
        if name is not None and topic:
            raise OptionError(f"{source}: names a topic; use --topic with the URL of a cluster")
        options = PullOptions(
            topics=[name] if name is not None else topic or (),
            partitions=None if partition is None else (partition,),
            groups=not no_groups and name is None,
            cluster=name is None,
            follow=follow,
        )
        result = pull_topics(client, output, options, progress=bar.advance)
    write_rows(list(_rows(result)), COLUMNS, format)
    for event in result.events:
        terminal.warn(printable(_event(event)))
    for hidden in result.manifest.hidden:
        terminal.warn(printable(f"not visible: {hidden}"))
    if not result.copied:
        terminal.warn("nothing to copy: the cluster has no topics that the account may see")
    for (name, number), error in result.failures.items():
        terminal.warn(printable(f"{name}-{number}: {error}"))
    if format is Format.TABLE:
        for line in _described(result.manifest):
            print(printable(line))
        print(f"{count_text(len(result.copied))} partitions, {bytes_text(result.copied_bytes)} copied")
    return FINE if result.is_complete else FOUND


def _rows(result: PullResult) -> list[Row]:
    rows: list[Row] = []
    for (topic, number), entry in result.copied.items():
        rows.append(
            {
                "topic": topic,
                "partition": number,
                "log_start_offset": entry.log_start_offset,
                "log_end_offset": entry.log_end_offset,
                "high_watermark": entry.high_watermark,
                "segments": len(entry.segments),
                "size_bytes": sum(segment.size_bytes for segment in entry.segments),
                "state": "complete" if entry.is_complete and (topic, number) not in result.failures else "incomplete",
            }
        )
    return rows


def _described(manifest: Manifest) -> Iterator[str]:
    """Yield lines about what is not a copied log."""
    for name, topic in manifest.topics.items():
        if topic.made_from:
            yield f"{name}: made from {', '.join(topic.made_from)}"
    cluster = manifest.cluster
    if cluster is not None:
        parts = {
            "users (without passwords, which brokers do not return)": cluster.users,
            "ACLs": cluster.acls,
            "quotas": cluster.quotas,
            "brokers with dynamic configs": cluster.broker_configs,
        }
        counts = [f"{len(part)} {name}" for name, part in parts.items() if part]
        if counts:
            yield f"in the manifest: {', '.join(counts)}"


def _event(event: Event) -> str:
    end = event.end_offset or 0
    what = EVENTS[event.kind].format(first=event.first_offset, last=end - 1, end=end)
    return f"{time_text(event.time_ms)} {event.topic}-{event.partition}: {what}"
