"""The logs of topics: created, opened again, deleted and configured as the topics are."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.broker.configs.broker_configs import topic_log_config
from kwire.errors import LogError

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.broker.topics import Topic, TopicRegistry
    from kwire.log.writing.log_manager import LogManager

__all__ = ["TopicLogs"]

log = logging.getLogger("kwire.broker")


class TopicLogs:
    """The logs of a cluster's topics. manager: the log directory. configs: the broker's, defaults of the topics'."""

    def __init__(self, manager: LogManager, topics: TopicRegistry, configs: BrokerConfigs, clock: Clock) -> None:
        self.manager = manager
        self._topics, self._configs, self._clock = topics, configs, clock

    def open_all(self) -> None:
        """Open the log of every partition, creating missing ones. Raises LogError."""
        known = {(topic.name, index) for topic in self._topics for index in topic.partitions}
        for name, index in sorted(set(self.manager.logs) - known):
            log.warning("log %s-%s ignored: no such topic", name, index)
        for topic in self._topics:
            for _ in self.open(topic):
                pass

    def open(self, topic: Topic) -> Iterator[None]:
        """Open the logs of a topic's partitions, creating missing ones; yields after each that was created.

        Stops if the topic is deleted in the meantime.
        """
        now_ms = self._clock.now_ms()
        config = topic_log_config(self._configs.settings, topic.configs)
        self.manager.set_config(topic.name, config)
        created = False
        for index, partition in list(topic.partitions.items()):
            if partition.log is not None:
                continue
            log = self.manager.logs.get((topic.name, index))
            if log is None:
                created = True
                log = self.manager.create(
                    topic.name, index, now_ms=now_ms, topic_id=topic.topic_id, config=config, sync=False
                )
            elif log.topic_id is None:
                log.assign_topic_id(topic.topic_id)
            partition.attach(log)
            if created:
                yield
                if topic.is_deleted:
                    return
        if created:
            self.manager.sync_directory()

    def reopen(self) -> None:
        """Retry to open logs that could not be created or written, such as on a full disk."""
        for partition in self._topics.partitions():
            topic = partition.topic
            if not topic.is_opening and (partition.log is None or partition.log.has_failed):
                try:
                    reopened = self.manager.reopen(
                        topic.name, partition.index, now_ms=self._clock.now_ms(), topic_id=topic.topic_id
                    )
                    partition.attach(reopened)
                except LogError as error:
                    log.warning("%s cannot be written: %s", partition.name, error)
                else:
                    reopened.high_watermark = reopened.log_end_offset

    def delete(self, topic: Topic) -> None:
        """Delete a topic's logs. Fetches that wait for its records are completed with an error."""
        now_ms = self._clock.now_ms()
        topic.is_deleted = True
        for index, partition in topic.partitions.items():
            if partition.log is not None:
                partition.log = None
                self.manager.delete(topic.name, index, now_ms=now_ms, sync=False)
            partition.notify()
        self.manager.sync_directory()
        self.manager.set_config(topic.name, None)

    def apply_configs(self, topic: Topic) -> None:
        """Apply a topic's configs to its logs."""
        self.manager.set_config(topic.name, topic_log_config(self._configs.settings, topic.configs))

    def apply_default_configs(self) -> None:
        """Apply the broker's configs to the logs of all topics."""
        self.manager.default_config = topic_log_config(self._configs.settings, {})
        for topic in self._topics:
            self.apply_configs(topic)
