"""Write the metadata of adopted log directories.

    PATH/orders-0                         a stray, PATH/orders-0.ID-stray, under its own name again
    PATH/orders-0/partition.metadata      the topic id, where it was missing or unreadable
    PATH/meta.properties                  version 1 with a directory id, where it was older or missing
    PATH/__cluster_metadata-0             the new metadata log; a former one is copied to PATH.metadata-N first
    PATH/__cluster_metadata-0.ID-delete   the new metadata log while it is written; brokers remove directories of that
                                          name when they start

One rename per node makes its metadata log valid: of the staged directory, or of the snapshot in it into the former
metadata log, which it replaces because it ends at a higher offset and epoch. Brokers truncate their log to such a
snapshot. After a crash, running it again completes it.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

from kwire.errors import OptionError
from kwire.identifiers import render_uuid
from kwire.maintenance.adopt.inventory import FoundDirectory
from kwire.maintenance.adopt.plan import Adoption
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY, write_metadata_log
from kwire.maintenance.new_directory import name_of
from kwire.storage.checkpoints import PARTITION_METADATA, render_partition_metadata
from kwire.storage.directory_lock import DirectoryLock
from kwire.storage.file_system import FileSystem
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.staged_directory import StagedDirectory, remove_tree

__all__ = ["apply_adoption"]


def apply_adoption(adoption: Adoption, *, now_ms: int, files: FileSystem | None = None) -> list[str]:
    """Carry out a plan; return the copies of former metadata logs.

    Raises OptionError for a plan with problems, LogError for a directory in use or a failed write.
    """
    files = files or FileSystem()
    if adoption.problems:
        raise OptionError(f"cannot be adopted: {adoption.problems[0]}")
    with locked(each.path for each in adoption.directories):
        for directory in adoption.directories:
            write_ids(files, directory, adoption, now_ms)
        staged = {path: stage(files, path, adoption, now_ms) for path in adoption.metadata_directories()}
        for controller in adoption.controllers:
            ids = MetaProperties(
                node_id=controller.node_id,
                cluster_id=adoption.cluster_id,
                directory_id=render_uuid(controller.directory_id),
            )
            new = StagedDirectory(files, controller.path)
            new.create()
            ids.write(files, new.part, now_ms)
            write_log(files, f"{new.part}/{METADATA_DIRECTORY}", adoption, now_ms)
            new.publish()
        copies = [copy_former(files, path) for path in staged]
        for path, part in staged.items():
            publish(files, part, f"{path}/{METADATA_DIRECTORY}")
    return [each for each in copies if each is not None]


@contextlib.contextmanager
def locked(paths: Iterator[str]) -> Iterator[None]:
    """Hold the locks of log directories. Raises LogError for one in use."""
    with contextlib.ExitStack() as stack:
        for path in paths:
            stack.callback(DirectoryLock(path).release)
        yield


def write_ids(files: FileSystem, directory: FoundDirectory, adoption: Adoption, now_ms: int) -> None:
    """Write the ids that a directory lacks: of topics, of itself and its cluster. Strays get their names back."""
    for replica in directory.replicas:
        path = f"{directory.path}/{name_of((replica.topic, replica.partition))}"
        if replica.path != path:
            files.rename(replica.path, path)
            files.sync_directory(directory.path)
        if replica.topic_id is None:
            topic_id = adoption.topics[replica.topic].topic_id
            files.write_atomically(f"{path}/{PARTITION_METADATA}", render_partition_metadata(topic_id))
    if not directory.is_current:
        ids = directory.properties
        MetaProperties(node_id=ids.node_id, cluster_id=adoption.cluster_id, directory_id=ids.directory_id).write(
            files, directory.path, now_ms
        )


def stage(files: FileSystem, path: str, adoption: Adoption, now_ms: int) -> str:
    """Write the metadata log beside its final place; return its directory. Remains of interrupted runs are removed."""
    for name in files.list(path):
        if name.startswith(f"{METADATA_DIRECTORY}.") and name.endswith("-delete"):
            remove_tree(files, f"{path}/{name}")
    part = f"{path}/{METADATA_DIRECTORY}.{uuid.uuid4().hex}-delete"
    write_log(files, part, adoption, now_ms)
    return part


def write_log(files: FileSystem, path: str, adoption: Adoption, now_ms: int) -> None:
    """Write the metadata log of a plan into a directory."""
    write_metadata_log(
        files,
        path,
        adoption.cluster,
        now_ms=now_ms,
        end_offset=adoption.end_offset,
        leader_epoch=adoption.leader_epoch,
        voters=adoption.voters,
    )


def copy_former(files: FileSystem, path: str) -> str | None:
    """Copy a former metadata log to a directory beside the log directory; return its path, None without one."""
    former = f"{path}/{METADATA_DIRECTORY}"
    if not files.is_directory(former):
        return None
    number = 1
    while os.path.lexists(target := f"{path}.metadata-{number}"):
        number += 1
    copy = StagedDirectory(files, target)
    copy.create()
    for name in files.list(former):
        if not files.is_directory(f"{former}/{name}"):
            files.copy(f"{former}/{name}", f"{copy.part}/{name}")
    copy.publish()
    return target


def publish(files: FileSystem, part: str, target: str) -> None:
    """Move a staged metadata log to its place."""
    parent = os.path.dirname(target)
    if not files.exists(target):
        files.sync_directory(part)
        files.rename(part, target)
        files.sync_directory(parent)
        return
    names = files.list(part)
    for snapshot in [name for name in names if name.endswith(".checkpoint")]:
        files.rename(f"{part}/{snapshot}", f"{target}/{snapshot}")
    files.sync_directory(target)
    for name in files.list(target):  # what brokers would remove
        if files.is_directory(f"{target}/{name}"):
            remove_tree(files, f"{target}/{name}")
        elif name not in names:
            files.remove(f"{target}/{name}")
    for name in files.list(part):
        files.rename(f"{part}/{name}", f"{target}/{name}")
    files.sync_directory(target)
    files.remove(part)
    files.sync_directory(parent)
