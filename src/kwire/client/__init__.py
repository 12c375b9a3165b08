"""A blocking Kafka client: metadata, offsets, ranges of records, complete batches, transactions."""

from kwire.client.address import ClusterAddress, is_cluster_url
from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, OffsetAndTimestamp
from kwire.client.cluster import Cluster, Partition, Topic
from kwire.client.fetch_requests import Fetched
from kwire.client.producer import OpenTransaction, OutgoingBatch, Produced, Producer
from kwire.client.settings import ClientSettings

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "Client",
    "ClientSettings",
    "Cluster",
    "ClusterAddress",
    "Fetched",
    "OffsetAndTimestamp",
    "OpenTransaction",
    "OutgoingBatch",
    "Partition",
    "Produced",
    "Producer",
    "Topic",
    "is_cluster_url",
]
