"""Groups of a cluster by its admin APIs: ListGroups, DescribeGroups, ConsumerGroupDescribe, OffsetFetch.

What only `__consumer_offsets` has is unknown here: times of commits, epochs of classic groups, members of share and
streams groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.client.admin.requests import AdminRequests
from kwire.client.client import Client, only
from kwire.errors import UnsupportedVersion
from kwire.internal_topics.group_members import AssignedPartitions, Member, classic_member
from kwire.internal_topics.groups_state import CommittedOffset, Group, GroupsState
from kwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kwire.messages.group_metadata_value import MemberMetadata
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.messages.consumer_group_describe_response import Assignment

__all__ = ["describe_groups"]

OFFSET_FETCH, OFFSETS_BY_NAME, MANY_GROUPS_VERSION = 9, 9, 8


@dataclass(slots=True, kw_only=True)
class DescribedGroup(Group):
    """A group with the state that its coordinator reports."""

    described_state: str

    @property
    def state(self) -> str:
        """The state."""
        return self.described_state


def describe_groups(client: Client, *, details: bool = True) -> tuple[GroupsState, AdminRequests]:
    """Return all groups that the account may describe. details: members and committed offsets too.

    Raises BrokerError, ConnectionFailed.
    """
    requests, state = AdminRequests(), GroupsState()

    def ask(node_id: int) -> None:
        listed = requests.one(client, ListGroupsRequest(), ListGroupsResponse, node_id=node_id)
        if listed.error_code:
            requests.without(f"groups of broker {node_id}", ErrorCode(listed.error_code))
            return
        groups = {
            each.group_id: DescribedGroup(
                group_id=each.group_id,
                partition=-1,
                kind=each.group_type.lower() or "classic",
                protocol_type=each.protocol_type,
                described_state=each.group_state,
            )
            for each in listed.groups
        }
        if details and groups:
            _describe_classic(client, requests, node_id, [each for each in groups.values() if each.kind == "classic"])
            _describe_consumer(client, requests, node_id, [each for each in groups.values() if each.kind == "consumer"])
            for group in groups.values():
                if group.kind in ("classic", "consumer"):
                    _fetch_offsets(client, requests, node_id, group)
                else:
                    requests.unseen[f"members and offsets of group {group.group_id!r}"] = f"a {group.kind} group"
        state.groups.update(groups)

    requests.every(client, "groups", ask)
    return state, requests


def _describe_classic(client: Client, requests: AdminRequests, node_id: int, groups: list[DescribedGroup]) -> None:
    if not groups:
        return
    by_id = {group.group_id: group for group in groups}
    request = DescribeGroupsRequest(groups=list(by_id))
    for each in requests.one(client, request, DescribeGroupsResponse, node_id=node_id).groups:
        if each.group_id not in by_id:
            continue
        if each.error_code:
            requests.without(f"members of group {each.group_id!r}", ErrorCode(each.error_code))
            continue
        group = by_id[each.group_id]
        group.described_state, group.protocol_type = each.group_state, each.protocol_type
        group.protocol = each.protocol_data or None
        for member in each.members:
            metadata = MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout=-1,
                rebalance_timeout=-1,
                subscription=bytes(member.member_metadata),
                assignment=bytes(member.member_assignment),
            )
            group.members[member.member_id] = classic_member(metadata, each.protocol_type)


def _describe_consumer(client: Client, requests: AdminRequests, node_id: int, groups: list[DescribedGroup]) -> None:
    if not groups:
        return
    by_id = {group.group_id: group for group in groups}
    request = ConsumerGroupDescribeRequest(group_ids=list(by_id))
    for each in requests.one(client, request, ConsumerGroupDescribeResponse, node_id=node_id).groups:
        if each.group_id not in by_id:
            continue
        if each.error_code:
            requests.without(f"members of group {each.group_id!r}", ErrorCode(each.error_code))
            continue
        group = by_id[each.group_id]
        group.described_state, group.protocol = each.group_state, each.assignor_name or None
        group.epoch, group.assignment_epoch = each.group_epoch, each.assignment_epoch
        for member in each.members:
            group.members[member.member_id] = Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rack_id=member.rack_id,
                subscribed_topics=tuple(member.subscribed_topic_names),
                subscribed_regex=member.subscribed_topic_regex or None,
                epoch=member.member_epoch,
                assigned=_assigned(member.assignment),
                target=_assigned(member.target_assignment),
            )


def _assigned(assignment: Assignment) -> tuple[AssignedPartitions, ...]:
    return tuple(
        AssignedPartitions(topic=each.topic_name, topic_id=each.topic_id, partitions=tuple(each.partitions))
        for each in assignment.topic_partitions
    )


def _fetch_offsets(client: Client, requests: AdminRequests, node_id: int, group: Group) -> None:
    version = min(OFFSETS_BY_NAME, client.connection(node_id).version_for(OFFSET_FETCH))
    if version >= MANY_GROUPS_VERSION:
        one = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group.group_id, topics=None)
        request = OffsetFetchRequest(groups=[one])
    elif version >= 2:
        request = OffsetFetchRequest(group_id=group.group_id, topics=None)
    else:
        requests.without(f"offsets of group {group.group_id!r}", UnsupportedVersion())
        return
    response = requests.one(client, request, OffsetFetchResponse, node_id=node_id, version=version)
    what = f"offsets of group {group.group_id!r}"
    group_response = only(response.groups, what, "OffsetFetch") if version >= MANY_GROUPS_VERSION else response
    if group_response.error_code:
        requests.without(what, ErrorCode(group_response.error_code))
        return
    for topic in group_response.topics:
        for each in topic.partitions:
            if each.committed_offset >= 0 and not each.error_code:
                group.offsets[topic.name, each.partition_index] = CommittedOffset(
                    topic=topic.name,
                    partition=each.partition_index,
                    offset=each.committed_offset,
                    leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata or "",
                    commit_timestamp=-1,
                    expire_timestamp=-1,
                    topic_id=UUID(int=0),
                    record_offset=-1,
                    timestamp=-1,
                    producer_id=-1,
                )
