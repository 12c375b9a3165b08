"""Fetch sessions (KIP-227)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from kwire.broker.clock import ManualClock
from kwire.broker.fetch_sessions import EVICTION_MS, NO_SESSION, FetchSessions
from kwire.errors import BrokerError
from kwire.messages import FetchRequest, FetchResponse
from kwire.protocol.error_codes import ErrorCode

VERSION = 11


def request(session_id: int, epoch: int, *indexes: int, forget: tuple[int, ...] = (), offset: int = 0) -> FetchRequest:
    cls = FetchRequest
    partitions = [cls.FetchPartition(partition=index, fetch_offset=offset) for index in indexes]
    return cls(
        session_id=session_id,
        session_epoch=epoch,
        topics=[cls.FetchTopic(topic="t", partitions=partitions)] if indexes else [],
        forgotten_topics_data=[cls.ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def response(index: int, *, high_watermark: int = 5, records: bytes = b"", error: int = 0) -> Any:
    return FetchResponse.PartitionData(
        partition_index=index, high_watermark=high_watermark, log_start_offset=0, records=records, error_code=error
    )


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(ManualClock(), limit=2)


def new_session(sessions: FetchSessions, *indexes: int) -> int:
    """Create a session whose client has received all partitions."""
    view = sessions.view(request(NO_SESSION, 0, *indexes), VERSION)
    for partition in view.partitions:
        assert view.has_changed(partition, response(partition.index))
        view.mark_sent(partition, response(partition.index))
    return view.session_id


def test_a_sessionless_fetch_returns_every_partition(sessions: FetchSessions) -> None:
    view = sessions.view(request(NO_SESSION, -1, 0, 1), VERSION)
    assert view.session_id == NO_SESSION
    assert not view.is_incremental
    assert all(view.has_changed(partition, response(partition.index)) for partition in view.partitions)
    assert len(sessions) == 0


def test_incremental_fetches_return_changed_partitions(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0, 1, 2)
    view = sessions.view(request(session_id, 1), VERSION)
    assert [partition.index for partition in view.partitions] == [0, 1, 2]
    first = view.partitions[0]
    assert not view.has_changed(first, response(0))
    assert view.has_changed(first, response(0, high_watermark=6))
    assert view.has_changed(first, response(0, records=b"x"))
    assert view.has_changed(first, response(0, error=3))


def test_a_partition_with_records_moves_to_the_end(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0, 1, 2)
    view = sessions.view(request(session_id, 1), VERSION)
    view.mark_sent(view.partitions[0], response(0, records=b"x"))
    assert [p.index for p in sessions.view(request(session_id, 2), VERSION).partitions] == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0, 1)
    view = sessions.view(request(session_id, 1, 1, 2, forget=(0,), offset=9), VERSION)
    assert [(p.index, p.request.fetch_offset) for p in view.partitions] == [(1, 9), (2, 9)]


def test_a_session_without_partitions_ends(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0)
    assert sessions.view(request(session_id, 1, forget=(0,)), VERSION).session_id == NO_SESSION
    assert len(sessions) == 0


@pytest.mark.parametrize(
    ("session_id", "epoch", "version", "code"),
    [
        (77, 1, VERSION, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, VERSION, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 1, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_an_invalid_session_is_rejected(
    sessions: FetchSessions, session_id: int | None, epoch: int, version: int, code: ErrorCode
) -> None:
    known = new_session(sessions, 0)
    with pytest.raises(BrokerError) as found:
        sessions.view(request(known if session_id is None else session_id, epoch), version)
    assert found.value.code == code


def test_a_full_fetch_ends_the_old_session(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0)
    sessions.view(request(session_id, -1, 0), VERSION)
    assert len(sessions) == 0


def test_only_a_long_unused_session_is_evicted() -> None:
    clock = ManualClock()
    sessions = FetchSessions(clock, limit=1)
    first = new_session(sessions, 0)
    assert sessions.view(request(NO_SESSION, 0, 1), VERSION).session_id == NO_SESSION
    clock.advance(EVICTION_MS + 1)
    second = sessions.view(request(NO_SESSION, 0, 1), VERSION).session_id
    assert second not in (NO_SESSION, first)
    assert len(sessions) == 1


def test_a_session_is_evicted_once_it_was_unused_for_longer_than_the_time() -> None:
    for unused_ms, is_evicted in ((EVICTION_MS, False), (EVICTION_MS + 1, True)):
        clock = ManualClock()
        sessions = FetchSessions(clock, limit=2)
        used, unused = new_session(sessions, 0), new_session(sessions, 0)
        clock.advance(unused_ms)
        sessions.view(request(used, 1), VERSION)
        assert (new_session(sessions, 0) != NO_SESSION) is is_evicted
        with pytest.raises(BrokerError) if is_evicted else contextlib.nullcontext():
            sessions.view(request(unused, 1), VERSION)
        assert sessions.view(request(used, 2), VERSION).session_id == used


@pytest.mark.parametrize(
    ("age_ms", "size", "is_evicted"),
    [
        (EVICTION_MS, 9, False),  # too young to go
        (EVICTION_MS + 1, 1, False),
        (EVICTION_MS + 1, 2, False),  # of the same size: the session that exists stays, as in Kafka's EvictableKey
        (EVICTION_MS + 1, 3, True),
    ],
)
def test_of_sessions_in_use_the_smallest_old_one_makes_room_for_a_larger_one(
    age_ms: int, size: int, is_evicted: bool
) -> None:
    clock = ManualClock()
    sessions = FetchSessions(clock, limit=3)
    large, small = new_session(sessions, *range(5)), new_session(sessions, 0, 1)
    clock.advance(age_ms)
    for each in (large, small):
        sessions.view(request(each, 1), VERSION)
    young = new_session(sessions, 0)
    assert (new_session(sessions, *range(size)) != NO_SESSION) is is_evicted
    for each, is_left in ((large, True), (small, not is_evicted), (young, True)):
        epoch = 1 if each == young else 2
        with contextlib.nullcontext() if is_left else pytest.raises(BrokerError):
            assert sessions.view(request(each, epoch), VERSION).session_id == each


def test_watermarks_sent_with_an_error_are_sent_again(sessions: FetchSessions) -> None:
    session_id = new_session(sessions, 0)
    view = sessions.view(request(session_id, 1), VERSION)
    view.mark_sent(view.partitions[0], response(0, error=3))
    view = sessions.view(request(session_id, 2), VERSION)
    assert view.has_changed(view.partitions[0], response(0))
