"""Where the commands for internal topics get a state from: the topics, or the admin APIs of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from kwire.cli import terminal
from kwire.cli.client_configs import client_configs, is_cluster
from kwire.cli.internal.moment import Moment, require_topic
from kwire.cli.log.directories import open_cluster, open_directory
from kwire.errors import BrokerError, OptionError
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.client import Client
    from kwire.client.admin.requests import AdminRequests
    from kwire.client.cluster_logs import ClusterLogs
    from kwire.log.reading.readable_log import LogSource, ReadableLog

__all__ = ["InternalSource", "open_source", "report_requests"]

T = TypeVar("T")


class InternalSource:
    """A log directory or a cluster that has, or should have, an internal topic.

    logs: its partitions. cluster: the same, None for a directory.
    """

    def __init__(self, path: str, topic: str, config: Sequence[str] | None, config_file: str | None) -> None:
        """Raises OptionError for a path without logs, or a cluster's URL with another topic."""
        self.topic = topic
        self.cluster, logs = open_source(path, config, config_file)
        self.logs = cast("LogSource[ReadableLog]", logs)
        others = {name for name, _ in self.logs} - {topic}
        if self.cluster is not None and self.cluster.address.name is not None and others:
            raise OptionError(f"{path}: expected {self.cluster.address.cluster} or a partition of '{topic}'")

    def require(self, moment: Moment, name: str | None, what: str) -> None:
        """Raise OptionError if a directory lacks the topic, or --at-offset applies to several partitions."""
        count = sum(topic == self.topic for topic, _ in self.logs)
        if self.cluster is None:
            count = require_topic(self.logs, self.topic)
        if moment.at_offset is not None and count > 1 and name is None:
            raise OptionError(f"--at-offset applies to one partition of {count}; name {what} or a partition directory")

    def state(
        self, replay: Callable[[], T], describe: Callable[[Client], tuple[T, AdminRequests]], moment: Moment
    ) -> T:
        """Return replay(); of a cluster whose account may not read the topic, the state of its admin APIs.

        Says on standard error which of them a cluster's state is from. Raises BrokerError if a past state is requested
        and the topic may not be read.
        """
        from kwire.client.admin.requests import NOT_ALLOWED

        if self.cluster is None:
            return replay()
        refused = None
        if any(topic == self.topic for topic, _ in self.logs):
            try:
                state = replay()
            except BrokerError as error:
                if error.code not in NOT_ALLOWED:
                    raise
                refused = error
            else:
                terminal.warn(f"from {self.topic}")
                return state
        why = f"the account may not read {self.topic}"
        if refused is None and self._is_missing(self.cluster):
            why = f"the cluster has no {self.topic} yet"
        if moment.is_past:
            what = f"a past state requires READ on the topic '{self.topic}'"
            raise OptionError(f"{what}: {refused or why}")
        described, requests = describe(self.cluster.client)
        report_requests(requests, why)
        return described

    def _is_missing(self, cluster: ClusterLogs) -> bool:
        """Whether a cluster has not created the topic: by name, it is not hidden from the account."""
        found = cluster.client.metadata([self.topic]).topics.get(self.topic)
        from kwire.protocol.error_codes import ErrorCode

        return found is not None and found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def open_source(path: str, config: Sequence[str] | None, config_file: str | None) -> tuple[ClusterLogs | None, object]:
    """Open a directory or a cluster. Returns the cluster, None for a directory, and the logs."""
    settings = client_configs(path, config, config_file)
    if not is_cluster(path):
        return None, open_directory(path)
    cluster = open_cluster(path, settings)
    return cluster, cluster


def report_requests(requests: AdminRequests, why: str = "") -> None:
    """Print which requests a state was made from, and what it lacks."""
    terminal.warn(f"from {', '.join(requests.apis)}" + (f": {why}" if why else ""))
    for what, reason in requests.unseen.items():
        terminal.warn(printable(f"not visible: {what}: {reason}"))
