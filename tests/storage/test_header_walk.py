"""Following batch headers: where a walk ends, and how much of a file it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.records import write_batch
from kwire.storage.header_walk import HeaderWalk, PlainBatches, is_zero_tail, plain_batches
from kwire.storage.store import REMOTE_MOST_WINDOW_BYTES, REMOTE_WINDOW_BYTES, LocalFile
from tests.log.writing import NOW, batch, record


def written(path: Path, magic: int, count: int = 4) -> list[int]:
    """Write batches of one record; return where each starts, and the size of the file."""
    starts = [0]
    for offset in range(count):
        with path.open("ab") as file:
            file.write(write_batch([record(b"x" * offset, NOW)], magic=magic, base_offset=offset))
        starts.append(path.stat().st_size)
    return starts


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_walk_has_the_batches_that_start_before_its_stop(magic: int, more: int, tmp_path: Path) -> None:
    *starts, size = written(tmp_path / "x.log", magic)
    with LocalFile(str(tmp_path / "x.log")) as file:
        for number, start in enumerate(starts):
            walk = HeaderWalk(file, 0, start + more)
            assert [header.position for header in walk] == starts[: number + (more > 0)]
        walk = HeaderWalk(file, starts[1], size + more)
        assert [header.position for header in walk] == starts[1:]
        assert (walk.position, walk.damage) == (size, None)


@pytest.mark.parametrize(("tail", "is_zero"), [(b"", True), (b"\0" * 9, True), (b"\0" * 8 + b"x", False)])
@pytest.mark.parametrize("zeros", [0, 1 << 20])
def test_a_tail_is_zero_up_to_its_last_byte(zeros: int, tail: bytes, is_zero: bool, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"batch" + b"\0" * zeros + tail)
    with LocalFile(str(tmp_path / "x.log")) as file:
        assert is_zero_tail(file, 5) is is_zero
        assert not is_zero_tail(file, 4)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_walk_ends_before_a_batch_that_the_file_cuts(magic: int, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    *starts, size = written(path, magic)
    whole = path.read_bytes()
    for end in range(starts[-1], size + 1):
        path.write_bytes(whole[:end])
        with LocalFile(str(path)) as file:
            walk = HeaderWalk(file)
            found = [header.position for header in walk]
        assert found == (starts if end == size else starts[:-1])
        assert (walk.position, walk.damage) == (size if end == size else starts[-1], None)


@pytest.mark.parametrize("window_bytes", [*range(55, 70), 130, 140, 4096])
def test_batches_at_the_end_of_a_window_are_found(window_bytes: int, tmp_path: Path) -> None:
    """A header that a window cuts is read again."""
    path = tmp_path / "x.log"
    data = b"".join(
        write_batch([record(b"x" * (offset % 7), NOW)], magic=offset % 3, base_offset=offset) for offset in range(60)
    )
    path.write_bytes(data + batch(b"last", base_offset=60))
    with LocalFile(str(path)) as file:
        expected = [header.position for header in HeaderWalk(file)]
        file.window_bytes = window_bytes
        assert [header.position for header in HeaderWalk(file)] == expected
    assert len(expected) == 61


class RemoteFile(LocalFile):
    """A file of a store; keeps the sizes of its requests."""

    window_bytes, most_window_bytes = REMOTE_WINDOW_BYTES, REMOTE_MOST_WINDOW_BYTES

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.requests: list[int] = []

    def pread(self, position: int, n: int) -> bytes:
        self.requests.append(n >> 20)
        return super().pread(position, n)


@pytest.mark.parametrize(
    ("batch_bytes", "batches", "requests"),
    [(30_000, 1000, [1, 2, 4, 8, 8, 8]), (1_040_000, 8, [1, 2, 4]), (2_500_000, 5, [1, 1, 1, 1, 1])],
)
def test_a_long_walk_over_a_store_makes_few_requests(
    batch_bytes: int, batches: int, requests: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "x.log"
    data = [write_batch([record(b"x" * batch_bytes, NOW)], base_offset=offset) for offset in range(batches)]
    path.write_bytes(b"".join(data))
    with RemoteFile(path) as file:
        assert [header.stored_offset for header in HeaderWalk(file)] == list(range(batches))
        assert file.requests == requests


def end_of(plain: PlainBatches | None) -> int:
    assert plain is not None
    return plain.end


def test_plain_batches_end_where_a_walk_has_another_one(tmp_path: Path) -> None:
    """Each bit of a header may be wrong: what is skipped is what a walk finds plain, and no more."""
    path = tmp_path / "x.log"
    *starts, size = written(path, 2)
    whole = path.read_bytes()
    for place in (*range(starts[2] * 8, (starts[2] + 27) * 8), None):
        changed = bytearray(whole)
        if place is not None:
            changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        with LocalFile(str(path)) as file:
            walk = HeaderWalk(file)
            plain = [each for each in walk if each.magic == 2 and not each.is_transactional]
            reached = end_of(plain_batches(file, 0))
            assert reached == starts[2] or reached == plain[-1].position + plain[-1].size_bytes
            assert (reached > starts[2]) == (starts[2] in {each.position for each in plain}), place
            assert end_of(plain_batches(file, 0, 1)) == starts[1]
            assert plain_batches(file, 0, 0) is None
    for end in range(starts[-1], size + 1):
        path.write_bytes(whole[:end])
        with LocalFile(str(path)) as file:
            assert end_of(plain_batches(file, 0)) == (size if end == size else starts[-1])


class CountingFile(LocalFile):
    """A file that counts its reads."""

    reads = 0

    def pread(self, position: int, n: int) -> bytes:
        self.reads += 1
        return super().pread(position, n)


def test_plain_batches_that_are_known_are_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    *starts, size = written(path, 2, count=50)
    with CountingFile(str(path)) as file:
        first = plain_batches(file, starts[10], 30)
        assert first is not None
        assert (first.start, first.end, first.last) == (starts[10], starts[30], starts[29])
        file.reads = 0
        again = plain_batches(file, starts[20], 30, first)
        assert again == first
        assert file.reads == 3, "the last one that is known, the one after it, and the last one again"
        longer = plain_batches(file, starts[29], None, first)
        assert longer is not None
        assert (longer.start, longer.end) == (starts[10], size)
        for outside in (starts[9], starts[30]):
            other = plain_batches(file, outside, 31, first)
            assert other is not None
            assert other.start == outside


def test_plain_batches_are_read_again_in_a_file_that_was_replaced_or_cut(tmp_path: Path) -> None:
    """A follower cuts its log, and compaction replaces a file: what was known may be a transaction now."""
    path = tmp_path / "x.log"
    *starts, size = written(path, 2, count=10)
    with LocalFile(str(path)) as file:
        known = plain_batches(file, 0)
    assert known is not None
    assert known.end == size
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[starts[4] + 22] |= 0x10  # transactional
    path.write_bytes(changed[: starts[9]] + write_batch([record(b"y" * 9, NOW)], base_offset=9))
    with LocalFile(str(path)) as file:
        assert end_of(plain_batches(file, 0, None, known)) == starts[4], "the last batch is another one"
    (tmp_path / "cleaned").write_bytes(changed)
    (tmp_path / "cleaned").replace(path)
    with LocalFile(str(path)) as file:
        assert end_of(plain_batches(file, 0, None, known)) == starts[4], "another file, with the last batch as it was"
