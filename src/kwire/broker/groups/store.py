"""All groups and their offsets: the state of `__consumer_offsets`, and the live classic groups.

A change is a list of records. They are appended as one batch and then applied by the code that replays the log at
start, so a restart restores the same state. Consumer groups are groups of that state. Classic groups exist beside it:
members wait for each other in memory, and the record is written when the leader's assignment arrives.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.replay, OffsetMetadataManager.replay,
runtime.CoordinatorRuntime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kwire.broker.clock import Clock, Timers
from kwire.broker.configs.settings import Settings
from kwire.broker.coordinator_log import CoordinatorLog, CoordinatorRecord, append_error, typed, warn_of_problems
from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kwire.broker.groups.consumer_group import ConsumerGroup
from kwire.broker.groups.timers import NamedTimers
from kwire.broker.topics import TopicRegistry
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.errors import BrokerError, EncodeError, LogError
from kwire.internal_topics.groups_state import CONSUMER, SHARE, GroupsState, group_of
from kwire.internal_topics.groups_state import Group as StoredGroup
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.typed_record import TypedRecord, usable
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["Group", "GroupStore"]

Group = ClassicGroup | ConsumerGroup


def effective(settings: Settings, configs: Mapping[str, str], name: str) -> int:
    """Return a time or limit of a consumer or share group: its own, within the broker's limits, or the broker's.

    The limits may have changed since the config was set. Source: GroupConfig.evaluate 4.4.0.
    """
    kind, _, rest = name.partition(".")
    base = rest.replace(".", "_")
    if name not in configs:
        return int(getattr(settings, f"group_{kind}_{base}"))
    low, high = (int(getattr(settings, f"group_{kind}_{limit}_{base}")) for limit in ("min", "max"))
    return min(max(int(configs[name]), low), high)


class GroupStore:
    """The groups of a node, and what both protocols share.

    state: the state of the log, with consumer groups and all offsets. classic: the classic groups. checked: consumer
    groups whose topics have been checked since the last change of a topic. configs_of: the configs set on a group.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        settings: Settings,
        topics: TopicRegistry,
        offsets_log: CoordinatorLog,
        configs_of: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.clock = clock
        self.timers = NamedTimers(timers)
        self.settings = settings
        self.topics = topics
        self.state = GroupsState()
        self.classic: dict[str, ClassicGroup] = {}
        self.checked: set[str] = set()
        self._log = offsets_log
        self._configs_of = configs_of

    # --- configs ---

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the session timeout of the members of a consumer group."""
        return effective(self.settings, self._configs_of(group_id), "consumer.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the heartbeat interval of the members of a consumer group."""
        return effective(self.settings, self._configs_of(group_id), "consumer.heartbeat.interval.ms")

    def share_time(self, group_id: str, name: str) -> int:
        """Return a time or limit of a share group, by the name of its config."""
        return effective(self.settings, self._configs_of(group_id), name)

    def configs_of(self, group_id: str) -> Mapping[str, str]:
        """Return the configs set on a group."""
        return self._configs_of(group_id)

    # --- groups ---

    def find(self, group_id: str) -> Group | None:
        """Return a classic or consumer group; None for one that does not exist."""
        classic = self.classic.get(group_id)
        if classic is not None:
            return classic
        group = self.state.groups.get(group_id)
        return group if group is not None and group.kind == CONSUMER else None

    def groups(self) -> list[Group]:
        """Return all classic and consumer groups."""
        return [*self.classic.values(), *self.consumer_groups()]

    def consumer_groups(self) -> list[ConsumerGroup]:
        """Return all consumer groups."""
        return [group for group in self.state.groups.values() if group.kind == CONSUMER]

    def group(self, group_id: str) -> Group:
        """Return a classic or consumer group. Raises BrokerError: GROUP_ID_NOT_FOUND."""
        self.refuse_share_group(group_id)
        group = self.find(group_id)
        if group is None:
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group. Raises BrokerError: GROUP_ID_NOT_FOUND, also for classic groups."""
        group = self.group(group_id)
        if isinstance(group, ClassicGroup):
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    # --- share groups ---

    def has(self, group_id: str) -> bool:
        """Return whether a group of any kind exists."""
        return self.find(group_id) is not None or self.is_share_group(group_id)

    def is_share_group(self, group_id: str) -> bool:
        """Return whether a group is a share group."""
        group = self.state.groups.get(group_id)
        return group is not None and group.kind == SHARE

    def share_groups(self) -> list[StoredGroup]:
        """Return all share groups."""
        return [group for group in self.state.groups.values() if group.kind == SHARE]

    def share_group(self, group_id: str) -> StoredGroup:
        """Return a share group. Raises BrokerError: GROUP_ID_NOT_FOUND."""
        group = self.state.groups.get(group_id)
        if group is None or group.kind != SHARE:
            known = self.find(group_id) is not None
            what = f"Group {group_id} is not a share group." if known else f"Group {group_id} not found."
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, what)
        return group

    def refuse_share_group(self, group_id: str) -> None:
        """Raise BrokerError (GROUP_ID_NOT_FOUND) for a share group, which has no offsets of consumers."""
        if self.is_share_group(group_id):
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """Create an empty classic group, without a record."""
        group = ClassicGroup(group_id=group_id, state_since_ms=self.clock.now_ms())
        self.classic[group_id] = group
        return group

    # --- writing ---

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that holds a group."""
        return partition_for(group_id, self._log.partition_count())

    def write(
        self, group_id: str, records: Sequence[CoordinatorRecord], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> None:
        """Append records of one group as a batch and apply them.

        Raises BrokerError with a code for clients; nothing has changed then.
        """
        if not records:
            return
        partition = self.partition_of(group_id)
        try:
            offset = self._log.append(partition, [record.encode() for record in records], producer)
        except (BrokerError, LogError, EncodeError) as error:
            raise append_error(error, f"group {group_id!r}") from error
        for record in typed(GROUPS_TOPIC, partition, records, offset, self.clock.now_ms(), producer):
            self._apply(record)

    # --- reading ---

    def unload(self, partition: int) -> list[Group]:
        """Forget the groups of a partition of `__consumer_offsets`, and return them."""
        ids = {*self.classic, *self.state.groups}
        gone = [group_id for group_id in ids if self.partition_of(group_id) == partition]
        groups = [group for group in map(self.find, gone) if group is not None]
        self.state.forget(partition, gone)
        self.timers.cancel_those(lambda name: isinstance(name, tuple) and len(name) > 1 and name[1] in gone)
        for group_id in gone:
            self.classic.pop(group_id, None)
            self.checked.discard(group_id)
        return groups

    def load(self, partition: int | None = None) -> None:
        """Apply the whole log, or one partition. Raises LogError.

        Records that cannot be read are skipped, with a warning.
        """
        for record in usable(self._log.replay(partition), self.state.problems):
            self._apply(record)
            group_id = group_of(record)
            if group_id is not None and record.kind == "GroupMetadata" and record.value is not None:
                self.classic[group_id] = classic_group(self.state.groups[group_id])
        warn_of_problems(self.state.problems)

    def _apply(self, record: TypedRecord) -> None:
        """Apply a record to the state; create and delete the classic groups that follow from it."""
        self.state.apply(record)
        group_id = group_of(record)
        if group_id is None:
            return
        stored = self.state.groups.get(group_id)
        if stored is None:
            self.checked.discard(group_id)
        if record.kind == "OffsetCommit":
            if record.value is not None and self.find(group_id) is None:
                self.new_classic_group(group_id)
        elif (stored is not None and stored.kind == CONSUMER) or (
            record.kind == "GroupMetadata" and record.value is None
        ):
            self.classic.pop(group_id, None)


def classic_group(stored: StoredGroup) -> ClassicGroup:
    """Return the classic group that a record describes, with no member waiting."""
    group = ClassicGroup(
        group_id=stored.group_id,
        state=ClassicState.STABLE if stored.members else ClassicState.EMPTY,
        state_since_ms=stored.state_timestamp,
        generation_id=stored.epoch,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        leader=stored.leader,
    )
    for member in stored.members.values():
        has_timeout = member.rebalance_timeout_ms != -1
        group.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms if has_timeout else member.session_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                protocol_type=stored.protocol_type,
                protocols=((stored.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    if group.leader not in group.members:
        group.leader = next(iter(group.members), None)
    group.subscribed_topics = group.find_subscribed_topics()
    return group
