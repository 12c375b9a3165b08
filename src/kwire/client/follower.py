"""Follow partitions as records are written, for a reader that wants all that the cluster still has.

with Follower(client) as follower:
    follower.add(("orders", 0), 4711)
    while len(follower):
        for key, fetched in follower.poll(): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.fetcher import MISSING, Diverged, FetchedBatches, Fetcher, FetchError, Position
from kwire.errors import BrokerError, LogError
from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from types import TracebackType

    from kwire.client.fetch_requests import Fetched

__all__ = ["Follower"]


class Follower:
    """Fetches the records of several partitions from given offsets on, until close().

    lost: (partition, first offset, offset after the last one) that retention deleted before they were fetched.
    deleted: partitions of topics that were deleted, which are no longer followed.
    """

    def __init__(self, client: Client, *, isolation: str = "read_uncommitted") -> None:
        self._client = client
        self._fetcher = Fetcher(client, isolation=isolation)
        self.lost: list[tuple[TopicPartition, int, int]] = []
        self.deleted: list[TopicPartition] = []

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fetcher.close()

    def add(self, key: TopicPartition, offset: int, *, end: int | None = None) -> None:
        """Follow a partition from an offset on. end: remove it once everything below this offset is fetched."""
        self._fetcher.add(key, Position(offset), end=end)

    def remove(self, key: TopicPartition) -> None:
        """Do not follow a partition any more."""
        self._fetcher.remove(key)

    def __len__(self) -> int:
        return len(self._fetcher)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._fetcher

    def poll(self) -> Iterator[tuple[TopicPartition, Fetched]]:
        """Wait for the next responses, for about half a second if there are no records, and yield those with records.

        The client is free for other requests. Raises LogError for a log that was truncated, CorruptBatch, BrokerError
        that is not retriable, and ConnectionFailed without any response for default.api.timeout.ms.
        """
        for result in self._fetcher.poll():
            match result:
                case FetchedBatches(key, fetched, _):
                    if len(fetched.records):
                        yield key, fetched
                case Diverged(key):
                    error = result.error()
                    raise LogError(error.what, f"{key[0]}-{key[1]}") from error
                case FetchError():
                    self._solve(result)

    def _solve(self, failure: FetchError) -> None:
        """Correct a partition's position, or continue where the error may pass. Raises what ends the reading."""
        key, error, position = failure
        if not isinstance(error, BrokerError):
            raise error
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._find_range(key, error, position)
        elif error.code in MISSING:
            self._fetcher.remove(key)
            self.deleted.append(key)
        elif ErrorCode(error.code).retriable:
            self._fetcher.seek(key, position)
        else:
            raise error

    def _find_range(self, key: TopicPartition, error: BrokerError, position: Position) -> None:
        if position.leader_epoch >= 0:  # perhaps the leader does not know that epoch
            self._fetcher.seek(key, Position(position.offset))
            return
        first, last = (
            self._client.list_offsets({key: each})[key].offset for each in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        )
        if first <= position.offset:
            what = f"the log ended below offset {position.offset}, up to which it was read, and ends at offset {last}"
            what += " now: it was truncated, or the topic was created again"
            raise LogError(what, f"{key[0]}-{key[1]}") from error
        self.lost.append((key, position.offset, first))
        self._fetcher.seek(key, Position(first))
