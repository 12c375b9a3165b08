"""Free space of a disk: what is enough, and how sizes are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space

KIB = 1024


class SmallDisk(FileSystem):
    """A disk with so many free bytes."""

    free = 0

    def free_bytes(self, path: str) -> int:
        """Return the same for each path."""
        return self.free


@pytest.mark.parametrize("free", [0, 1, 1000, 5 * KIB])
def test_space_is_enough_for_as_many_bytes_as_are_free(free: int, tmp_path: Path) -> None:
    disk = SmallDisk()
    disk.free = free
    need_space(disk, str(tmp_path), free)
    with pytest.raises(LogError, match="not enough disk space"):
        need_space(disk, str(tmp_path), free + 1)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1 bytes"),
        (KIB - 1, "1023 bytes"),
        (KIB, "1.0 KiB"),
        (KIB + 512, "1.5 KiB"),
        (KIB**2, "1.0 MiB"),
        (3 * KIB**3, "3.0 GiB"),
        (KIB**4, "1.0 TiB"),
        (KIB**5, "1024.0 TiB"),
        (KIB**6, "1048576.0 TiB"),
    ],
)
def test_sizes_have_the_largest_unit_below_them(size: int, text: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=f"at least {text} required, 0 bytes available"):
        need_space(SmallDisk(), str(tmp_path), size)
