"""Surveys of a cluster that is being copied, made in a thread beside the one that copies.

A broker that does not respond holds up a survey, never the copying.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from kwire.client.cluster import Cluster
from kwire.errors import BrokerError, ConnectionFailed, KwireError, UnsupportedVersion
from kwire.identifiers import TopicPartition
from kwire.maintenance.pull import coordinators
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.coordinators import Described
from kwire.maintenance.pull.manifest import ClusterEntry

__all__ = ["Known", "Survey", "Surveyor", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """State of a run before a survey.

    partitions, topics: those that it copies. chosen: numbers of the partitions to copy, None for all. cluster: the last
    description. made: keys in logs made from admin APIs, by partition. exact: coordinators' topics that an earlier run
    could read.
    """

    topics: Collection[str]
    partitions: Collection[TopicPartition]
    chosen: Sequence[int] | None
    cluster: ClusterEntry | None
    made: Mapping[str, Sequence[Collection[bytes]]]
    exact: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Present state of a cluster.

    described: the cluster itself. made: contents of coordinators' topics that the account may not read. topics: those
    to copy that are new. bounds: of partitions to copy that are new; errors: of those whose bounds are unknown.
    """

    cluster: Cluster
    described: ClusterEntry | None
    made: Mapping[str, Described]
    topics: Sequence[PulledTopic]
    bounds: Mapping[TopicPartition, Bounds]
    errors: Mapping[TopicPartition, KwireError]


class Surveyor:
    """Makes surveys, one at a time, each in a thread. source: with a client that nothing else uses meanwhile."""

    def __init__(self, source: SourceCluster) -> None:
        self.source = source
        self._current: Future[Survey] | None = None

    def begin(self, known: Known) -> None:
        """Begin a survey, unless the last one is still going on."""
        if self._current is None:
            self._current = Future()
            threading.Thread(target=self._run, args=(self._current, known), daemon=True).start()

    def take(self) -> Survey | None:
        """Return a survey that has ended, None if there is none. Raises what ended it."""
        if self._current is None or not self._current.done():
            return None
        done, self._current = self._current, None
        return done.result()

    def close(self) -> None:
        """Close the client, once a survey that is going on has ended: nobody waits for it."""
        if self._current is None:
            self.source.client.close()
        else:
            self._current.add_done_callback(lambda _: self.source.client.close())

    def _run(self, current: Future[Survey], known: Known) -> None:
        try:
            current.set_result(survey(self.source, known))
        except BaseException as error:  # raised by take()
            current.set_exception(error)


def survey(source: SourceCluster, known: Known) -> Survey:
    """Make a survey. Raises BrokerError, ConnectionFailed."""
    cluster = source.metadata()
    if source.with_groups:
        source.find_unreadable(cluster, known.topics)
    described, made = describe(source, cluster, known)
    topics = [topic for topic in source.select(cluster) if not topic.error_code]
    bounds, errors = source.bounds(topics, known.chosen, known.partitions)
    return Survey(
        cluster=cluster,
        described=described,
        made=made,
        topics=source.configs([topic for topic in topics if topic.name not in known.topics]),
        bounds=bounds,
        errors=errors | source.not_copied(cluster),
    )


def describe(source: SourceCluster, cluster: Cluster, known: Known) -> tuple[ClusterEntry | None, dict[str, Described]]:
    """Describe the cluster itself, and the contents of coordinators' topics that the account may not read."""
    away: list[str] = []
    entry = source.describe(known.cluster, away) if source.with_cluster else None
    made: dict[str, Described] = {}
    for name in sorted(coordinators.DESCRIBED & source.unreadable):
        if name in known.exact:
            source.hide(f"topic {name}: its copy has nothing later than the run that could read it")
            continue
        topic = cluster.topics.get(name)
        count = len(known.made.get(name, ())) or len(() if topic is None else topic.partitions)
        try:
            contents = coordinators.describe(
                source.client, name, count or coordinators.PARTITIONS, known.made.get(name, ())
            )
        except (BrokerError, ConnectionFailed, UnsupportedVersion) as error:
            if not isinstance(error, UnsupportedVersion) and source.client.is_retriable(error):
                away.append(f"contents of topic {name}: {error}")
            else:
                source.hide(f"contents of topic {name}: {error}")
            continue
        source.note(contents.requests, away)
        made[name] = contents
    source.away = away
    return entry, made
