"""Read ranges of several partitions with common Fetch requests: for many small ranges, which end after a response.

`Client.read` reads one range with retries. This gives up at the first problem, and its caller reads the rest with
`Client.read`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

from kwire.client.client import Client
from kwire.client.fetch_requests import Fetched
from kwire.client.fetcher import Diverged, FetchedBatches, Fetcher, FetchError, Position
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch
from kwire.identifiers import TopicPartition

__all__ = ["read_together"]


def read_together(
    client: Client,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    isolation: str,
    topic_ids: Mapping[str, uuid.UUID],
) -> Iterator[tuple[TopicPartition, Fetched]]:
    """Yield the batches of partitions with offsets in [start, end), several partitions of a leader in a request.

    Yields (topic, partition) and the response for it. The batches of a partition come in order; batches of different
    partitions alternate. A response has at most max.partition.fetch.bytes. The client is free for other requests.
    A partition with an error is left out from then on; a response without any records ends the iteration.
    topic_ids: as topic_id of Client.read.
    Raises CorruptBatch; LogTruncated if a new leader does not have the batches that were read.
    """
    with Fetcher(client, isolation=isolation, max_bytes=client.settings.max_partition_fetch_bytes) as fetcher:
        for key, (start, end) in ranges.items():
            fetcher.add(key, Position(start, -1, topic_ids.get(key[0])), end=end)
        has_records = True
        while has_records and len(fetcher):
            try:
                results = fetcher.poll()
            except (BrokerError, ConnectionFailed):
                return
            has_records = False
            for result in results:
                match result:
                    case FetchedBatches(key, fetched, _) if len(fetched.records):
                        has_records = True
                        yield key, fetched
                    case Diverged():
                        raise result.error()
                    case FetchError(key, error):
                        fetcher.remove(key)
                        if isinstance(error, CorruptBatch):
                            raise error
