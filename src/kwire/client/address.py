"""URLs of clusters: `kafka://host:port[,host:port][/topic[-partition]]`.

The port is 9092 by default; an IPv6 address stands in brackets. Settings of the client, such as its security, are not
part of the URL. `orders-0` may be a partition or a topic of that name: the cluster's metadata decides, see `resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kwire.client.client import Client
from kwire.client.settings import warn_of
from kwire.client.unused_configs import OF_CALLS
from kwire.errors import BrokerError, OptionError, did_you_mean
from kwire.protocol.error_codes import ErrorCode

__all__ = ["SCHEME", "ClusterAddress", "is_cluster_url"]

SCHEME = "kafka://"
DEFAULT_PORT = 9092
FORM = f"{SCHEME}host:port[,host:port][/topic[-partition]]"
SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[\w.-]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
MAX_NAMED = 500  # characters of a list of topics in a message
NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


def is_cluster_url(text: str) -> bool:
    """Return whether a path is the URL of a cluster."""
    return text[: len(SCHEME)].lower() == SCHEME


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """The parsed URL of a cluster.

    servers: (host, port), without brackets. name: what follows the servers, a topic or a partition; None for the whole
    cluster.
    """

    servers: tuple[tuple[str, int], ...]
    name: str | None = None

    @classmethod
    def parse(cls, url: str) -> ClusterAddress:
        """Parse a URL. Raises OptionError with the part that is wrong; user names and passwords are refused."""
        location, _, path = url[len(SCHEME) :].partition("/")
        if not is_cluster_url(url):
            raise OptionError(f"{url!r}: expected {FORM}")
        if "@" in location:
            raise OptionError(f"{SCHEME}...@...: credentials belong in --config-file, not in a URL; expected {FORM}")
        servers = tuple(_server(part, url) for part in location.split(","))
        name = path.removesuffix("/") or None
        if name is not None:
            try:
                _check_name(name)
            except OptionError as error:
                raise OptionError(f"{url[:300]!r}: {error}; expected {FORM}") from None
        return cls(servers=servers, name=name)

    @property
    def bootstrap_servers(self) -> str:
        """The servers as a value of bootstrap.servers."""
        return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers)

    def __str__(self) -> str:
        return f"{SCHEME}{self.bootstrap_servers}" + (f"/{self.name}" if self.name else "")

    def connect(self, settings: Mapping[str, object] | None = None) -> Client:
        """Return a client of the cluster. settings: as of Client; their bootstrap.servers is replaced.

        Connects on the first request. Raises OptionError for a wrong setting.
        """
        names = ("bootstrap.servers", "bootstrap_servers", "metadata.broker.list")
        given = {name: value for name, value in (settings or {}).items() if name not in names}
        client = Client(self.bootstrap_servers, **given)
        warn_of([name for name in (each.replace("_", ".") for each in given) if name in OF_CALLS])
        return client

    def resolve(self, client: Client) -> tuple[str | None, int | None]:
        """Return the topic and partition that `name` stands for; None for all.

        A name that is both a topic (`orders-0`) and a partition of another topic (0 of `orders`) is refused.
        Raises OptionError for that and for a missing topic or partition, BrokerError, ConnectionFailed.
        """
        if self.name is None:
            return None, None
        topic, partition = self.name, None
        split = _partition_name(self.name)
        described = client.metadata([topic] if split is None else [topic, split[0]]).topics
        topics = {name: each for name, each in described.items() if each.error_code not in NO_TOPIC}
        whole, other = topics.get(topic), None if split is None else topics.get(split[0])
        is_topic = whole is not None and not whole.error_code
        if split is not None and other is not None and split[1] in other.partitions:
            if is_topic:
                raise OptionError(
                    f"{self}: topic {topic!r} and partition {split[1]} of topic {split[0]!r} both exist; "
                    f"use {self.cluster} with --topic {topic}, or with --topic {split[0]} and --partition {split[1]}"
                )
            return split
        if is_topic:
            return topic, partition
        for each in (other, whole):
            if each is not None and each.error_code:
                raise BrokerError(f"topic {each.name!r}: {each.error_code.name}", each.error_code)
        if split is not None and other is not None:
            raise OptionError(
                f"{self}: topic {split[0]!r} has no partition {split[1]}: {len(other.partitions)} partitions"
            )
        available = sorted(client.metadata().topics)
        raise OptionError(
            f"{self}: no topic {topic!r}{did_you_mean(topic, available)}; "
            f"available: {', '.join(available)[:MAX_NAMED] or 'none'}"
        )

    @property
    def cluster(self) -> ClusterAddress:
        """The address of the whole cluster."""
        return ClusterAddress(servers=self.servers)


def _server(text: str, url: str) -> tuple[str, int]:
    match = SERVER.fullmatch(text)
    port = DEFAULT_PORT if match is None or match["port"] is None else int(match["port"])
    if match is None or not 0 < port < 1 << 16:
        raise OptionError(
            f"{url[:300]!r}: {text[:100]!r} is not host:port; an IPv6 address needs brackets; expected {FORM}"
        )
    return match["host"].strip("[]"), port


def _partition_name(name: str) -> tuple[str, int] | None:
    """Return the topic and partition of `orders-0`, as Kafka writes it: without leading zeros."""
    from kwire.log.files.file_names import parse_partition_directory  # not needed by clients without URLs

    split = parse_partition_directory(name)
    return split if split is not None and f"{split[0]}-{split[1]}" == name else None


def _check_name(name: str) -> None:
    from kwire.log.files.file_names import check_topic

    split = _partition_name(name)
    check_topic(name if split is None else split[0])
