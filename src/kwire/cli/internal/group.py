"""`kwire group`: the groups, members and committed offsets of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli.internal.moment import (
    Moment,
    matching,
    matching_records,
    parse_moment,
    shown_time,
    warn_of_problems,
)
from kwire.cli.internal.record_table import write_history
from kwire.cli.internal.sources import InternalSource
from kwire.cli.options import AtOffset, AtTime, ClientConfigFile, ClientConfigs, FormatOption, History
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.client import Client
    from kwire.client.admin.requests import AdminRequests
    from kwire.internal_topics.groups_state import Group, GroupsState
    from kwire.log.reading.readable_log import LogSource, ReadableLog

__all__ = ["group"]


def group(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="Log directory or partition of __consumer_offsets: path or URL; or kafka://HOST:PORT."
        ),
    ],
    name: Annotated[str | None, typer.Argument(metavar="GROUP", help="Group id or pattern (*, ?).")] = None,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Committed offsets and lag per partition; default with GROUP.")
    ] = False,
    members: Annotated[bool, typer.Option("--members", help="Members and their assignments.")] = False,
    history: History = False,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show consumer, share and streams groups.

    LAG is the distance to the log end offset, if the partition's log is in the same directory; a past state has none.
    Of a cluster, __consumer_offsets is read if the account has READ on it; otherwise the admin APIs are used.
    Exit code 1 if a record cannot be read; the rest is shown.
    """
    if offsets + members + history > 1:
        raise OptionError("--offsets, --members and --history are mutually exclusive")
    moment = parse_moment(at_offset, at_time)
    from kwire.internal_topics.names import GROUPS_TOPIC

    source = InternalSource(path, GROUPS_TOPIC, config, config_file)
    source.require(moment, name, "a GROUP")
    directory = source.logs
    from kwire.internal_topics.groups_state import group_of
    from kwire.log.topics import read_group_records, replay_groups

    if history:
        records = read_group_records(directory, at_offset=moment.at_offset, at_time=moment.at_time)
        return write_history(matching_records(records, name, group_of), format)
    state = source.state(
        lambda: replay_groups(directory, at_offset=moment.at_offset, at_time=moment.at_time), _described, moment
    )
    chosen = [state.groups[each] for each in matching(list(state.groups), name, "group")]
    if members:
        write_rows(_members(directory, chosen, moment), MEMBER_COLUMNS, format)
    elif offsets or name is not None:
        write_rows(_offsets(directory, chosen, moment), OFFSET_COLUMNS, format)
    else:
        write_rows(_groups(directory, state, moment), GROUP_COLUMNS, format)
    return warn_of_problems(state.problems)


def _described(client: Client) -> tuple[GroupsState, AdminRequests]:
    from kwire.client.admin.groups import describe_groups

    return describe_groups(client)


def _groups(directory: LogSource[ReadableLog], state: GroupsState, moment: Moment) -> Iterator[Row]:
    from kwire.internal_topics.group_rows import LogEnds, group_row

    ends = LogEnds(None if moment.is_past else directory)
    for _, each in sorted(state.groups.items()):
        yield group_row(each, ends)


def _offsets(directory: LogSource[ReadableLog], groups: list[Group], moment: Moment) -> Iterator[Row]:
    from kwire.internal_topics.group_rows import LogEnds, offset_rows, share_row
    from kwire.internal_topics.names import SHARE_STATE_TOPIC
    from kwire.log.topics import replay_share_state

    ends = LogEnds(None if moment.is_past else directory)
    names = _names(directory, groups, moment)
    shared = {each.group_id for each in groups if each.kind == "share"}
    for each in groups:
        yield from offset_rows(each, ends, names)
    # the other topic has other offsets; timestamps apply to both
    if shared and moment.at_offset is None and any(topic == SHARE_STATE_TOPIC for topic, _ in directory):
        for share in replay_share_state(directory, at_time=moment.at_time).partitions.values():
            if share.group_id in shared:
                row = share_row(share, ends, names)
                yield row | {"offset": row["start_offset"]}


def _members(directory: LogSource[ReadableLog], groups: list[Group], moment: Moment) -> Iterator[Row]:
    from kwire.internal_topics.group_rows import member_rows

    names = _names(directory, groups, moment)
    for each in groups:
        yield from member_rows(each, names)


def _names(directory: LogSource[ReadableLog], groups: list[Group], moment: Moment) -> dict[Any, str]:
    """Return topic names by id; looked up only if a group has ids."""
    from kwire.log.topics import topic_names

    if all(each.kind == "classic" for each in groups):
        return {}
    names: dict[Any, str] = {}
    for each in groups:
        names.update(each.topic_names)
    return names | topic_names(directory, deleted=moment.is_past)


def _assigned(row: Row) -> str | None:
    parts = [f"{each['topic'] or each['topic_id']}:{_numbers(each['partitions'])}" for each in row["assigned"]]
    parts += [f"{each['subtopology']}:{_numbers(each['partitions'])}" for each in row["active_tasks"]]
    return " ".join(parts) or None


def _numbers(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _subscribed(row: Row) -> str | None:
    return ",".join(row["subscribed_topics"]) or row["subscribed_regex"]


GROUP_COLUMNS = (
    Column(key="group", heading="GROUP"),
    Column(key="kind", heading="KIND"),
    Column(key="state", heading="STATE"),
    Column(key="members", heading="MEMBERS", right=True),
    Column(key="partitions", heading="PARTITIONS", right=True),
    Column(key="lag", heading="LAG", right=True),
    Column(key="epoch", heading="EPOCH", right=True),
    Column(key="protocol", heading="ASSIGNOR"),
    Column(key="last_timestamp", heading="LAST RECORD", show=shown_time),
)
OFFSET_COLUMNS = (
    Column(key="group", heading="GROUP"),
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="offset", heading="OFFSET", right=True),
    Column(key="log_end_offset", heading="LOG END", right=True),
    Column(key="lag", heading="LAG", right=True),
    Column(pick=lambda row: row.get("commit_timestamp") or row.get("timestamp"), heading="COMMITTED", show=shown_time),
    Column(key="member_id", heading="MEMBER"),
    Column(key="client_host", heading="HOST"),
    Column(key="client_id", heading="CLIENT"),
    Column(
        pick=lambda row: "in a transaction" if row.get("in_transaction") else row.get("metadata") or None,
        heading="METADATA",
    ),
)
MEMBER_COLUMNS = (
    Column(key="group", heading="GROUP"),
    Column(key="member_id", heading="MEMBER"),
    Column(key="instance_id", heading="INSTANCE"),
    Column(key="client_host", heading="HOST"),
    Column(key="client_id", heading="CLIENT"),
    Column(key="epoch", heading="EPOCH", right=True),
    Column(key="state", heading="STATE"),
    Column(pick=_subscribed, heading="SUBSCRIBED"),
    Column(pick=_assigned, heading="ASSIGNED"),
)
