"""Files in the directory of an Iceberg table that none of its snapshots refers to.

Files are listed first and the table is loaded after that, so that a commit in between is seen. Young files may belong
to a commit that is still to come; callers set the age. Source: Iceberg's remove_orphan_files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kwire.lake.table import Orphan

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

__all__ = ["find_orphans", "only_used_by"]


def find_orphans(table: Table, refreshed: Callable[[], Table], older_than_s: float) -> list[Orphan]:
    """Return the orphans of a table, by path. refreshed(): the table as of the call."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    roots = {table.location()}
    roots.update(
        table.properties[name] for name in ("write.data.path", "write.metadata.path") if name in table.properties
    )
    files = PyArrowFileIO(table.io.properties)
    limit_ms = (time.time() - older_than_s) * 1000
    listed: dict[str, Orphan] = {}
    for root in roots:
        scheme, netloc, path = PyArrowFileIO.parse_location(root.rstrip("/"), table.io.properties)
        system = files.fs_by_scheme(scheme, netloc)
        prefix = root.rstrip("/")
        for info in system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True)):
            if info.type != FileType.File or _is_hidden(info.path.removeprefix(path)):
                continue
            modified_ms = info.mtime_ns // 1_000_000
            if modified_ms <= limit_ms:
                name = prefix + info.path.removeprefix(path)
                listed[_plain(name)] = Orphan(path=name, size_bytes=info.size, modified_ms=modified_ms)
    used = {_plain(name) for name in _referenced(refreshed())}
    return [listed[name] for name in sorted(listed.keys() - used)]


def only_used_by(table: Table, snapshots: set[int]) -> list[str]:
    """Return the files that these snapshots of a table have, and no other."""
    metadata = table.metadata
    kept = [each for each in metadata.snapshots if each.snapshot_id not in snapshots]
    every = _referenced(table)
    found = _referenced(table, kept)
    return sorted(every - found)


def _is_hidden(path: str) -> bool:
    """Return whether a file is not the table's own, such as the checksums of Hadoop's file systems.

    A folder of a partition, `_column=value`, is not hidden. Source: Iceberg's HiddenPathFilter.
    """
    *folders, name = path.split("/")
    return name[:1] in (".", "_") or any(each[:1] in (".", "_") and "=" not in each for each in folders)


def _referenced(table: Table, snapshots: Sequence[Snapshot] | None = None) -> set[str]:
    """Return every file of a table's metadata and of its snapshots, or some of them."""
    from pyiceberg.manifest import ManifestFile

    metadata = table.metadata
    paths = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    paths.update(each.statistics_path for each in metadata.statistics)
    paths.update(each.statistics_path for each in metadata.partition_statistics)
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots if snapshots is None else snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            manifests[manifest.manifest_path] = manifest
    paths.update(manifests)
    for manifest in manifests.values():
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            paths.add(entry.data_file.file_path)
    return paths


def _plain(path: str) -> str:
    """Return a path that compares: file:/x, file:///x and /x are the same, and so are s3:// and s3a://."""
    parts = urlsplit(path)
    scheme = {"file": "", "s3a": "s3", "s3n": "s3"}.get(parts.scheme, parts.scheme)
    place = path.split("://", 1)[-1] if "://" in path else path.split(":", 1)[-1] if parts.scheme else path
    return f"{scheme}:{place.lstrip('/') if not scheme else place}"
