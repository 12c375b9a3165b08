"""The coordinators of groups, share partitions and transactions, and which node a client has to ask.

That node is the leader of the partition of `__consumer_offsets`, `__share_group_state` or `__transaction_state` which
holds the id. When it changes, what the partition holds is read again from its log, as the new leader does in Kafka:
waiting members get NOT_COORDINATOR, and what was not written is forgotten.

Source: org.apache.kafka.coordinator.group.GroupCoordinatorService.onElection, onResignation;
kafka.coordinator.transaction.TransactionCoordinator 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kwire.broker.coordinator_log import CoordinatorTopic
from kwire.broker.groups.coordinator import GroupCoordinator
from kwire.broker.groups.store import GroupStore
from kwire.broker.shares.coordinator import ShareCoordinator
from kwire.broker.shares.dead_letters import DeadLetterQueues
from kwire.broker.shares.share_partitions import SharePartitions
from kwire.broker.transactions.coordinator import TransactionCoordinator
from kwire.broker.transactions.partitions import PartitionMarkers, TransactionStateLog
from kwire.broker.transactions.producer_ids import ProducerIds
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.coordinator_records import decode_group, decode_share_state
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.placement import partition_for

if TYPE_CHECKING:
    from kwire.broker.clock import Clock, Timers
    from kwire.broker.configs.settings import Settings
    from kwire.broker.features import Features
    from kwire.broker.topic_creation import TopicCreation
    from kwire.broker.topics import Partition, TopicRegistry

__all__ = ["Coordinators"]


class Coordinators:
    """The coordinators of a cluster. All but the clock and settings are new after each start.

    topic_creation: of their topics. configs_of: the configs of a group. claim_producer_ids: see ProducerIds.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        timers: Timers,
        settings: Settings,
        topics: TopicRegistry,
        features: Features,
        topic_creation: TopicCreation,
        configs_of: Callable[[str], Mapping[str, str]],
        claim_producer_ids: Callable[[int], int],
    ) -> None:
        self._clock, self._timers, self._settings = clock, timers, settings
        self._topics, self._features = topics, features
        self._topic_creation, self._configs_of = topic_creation, configs_of
        self._claim_producer_ids = claim_producer_ids
        self.start()
        topics.observers.append(lambda topic, exists: self.groups.topic_changed(topic, exists))

    def start(self) -> None:
        """Start coordinators that read their topics, whose logs must be open. Raises LogError."""
        clock, timers, settings, topics = self._clock, self._timers, self._settings, self._topics
        offsets, states = (
            CoordinatorTopic(
                name, decoder, count, topics=topics, clock=clock, create_missing=self._topic_creation.create_missing
            )
            for name, decoder, count in (
                (GROUPS_TOPIC, decode_group, lambda: settings.offsets_topic_num_partitions),
                (SHARE_STATE_TOPIC, decode_share_state, lambda: settings.share_coordinator_state_topic_num_partitions),
            )
        )
        self.share_states = ShareCoordinator(clock, settings, topics, states)
        store = GroupStore(clock, timers, settings, topics, offsets, self._configs_of)
        self.groups = GroupCoordinator(store, self.share_states)
        self.share_partitions = SharePartitions(
            clock,
            timers,
            store,
            self.share_states,
            DeadLetterQueues(clock, timers, store, self._topic_creation.dead_letter_topic),
            lambda: self._features.has_dead_letter_queues,
        )
        self.share_states.replaced = self.share_partitions.forget_one
        self.markers = PartitionMarkers(topics, self.groups, clock)
        self.transactions = TransactionCoordinator(
            clock=clock,
            timers=timers,
            settings=settings,
            transaction_version=lambda: self._features.transaction_version,
            log=TransactionStateLog(topics, self._features, clock, self._topic_creation.create_missing),
            markers=self.markers,
            producer_ids=ProducerIds(self._claim_producer_ids),
        )
        self.share_states.load()
        self.groups.start()
        try:
            self.transactions.start()
        except BaseException:
            self.groups.stop()
            raise

    def stop(self) -> None:
        """Stop the coordinators; waiting members get NOT_COORDINATOR."""
        self.transactions.stop()
        self.groups.stop()
        self.share_partitions.close()

    # --- where they are

    def partition_of(self, topic_name: str, key: str) -> Partition:
        """Return the partition of an internal topic that holds a group or transactional id; creates the topic.

        Raises BrokerError as Controller.create_topic does.
        """
        topic = self._topic_creation.create_missing(topic_name)
        return topic.partitions[partition_for(key, len(topic.partitions))]

    def leader_of(self, topic_name: str, key: str) -> int:
        """Return the coordinator of a group or transactional id, NO_LEADER without one."""
        topic = self._topics.get(topic_name)
        if topic is None:
            return NO_LEADER
        return topic.partitions[partition_for(key, len(topic.partitions))].state.leader

    def leader_changed(self, partition: Partition) -> None:
        """Follow the leader of a partition: read what it holds again. Raises LogError."""
        name, index = partition.topic.name, partition.index
        self.share_partitions.forget_partition(partition.topic.topic_id, index)
        has_leader = partition.state.leader != NO_LEADER
        if name == GROUPS_TOPIC:
            self.groups.resign(index)
            if has_leader:
                self.groups.elect(index)
        elif name == SHARE_STATE_TOPIC:
            self.share_states.unload(index)
            if has_leader:
                self.share_states.load(index)
        elif name == TRANSACTIONS_TOPIC:
            count = len(partition.topic.partitions)
            self.transactions.resign(lambda key: partition_for(key, count) == index)
            if has_leader:
                self.transactions.elect(index)
