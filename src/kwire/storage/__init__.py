"""Bytes at rest: stores to read from and the local file system to write to.

A Store reads local paths, fsspec URLs and tiered storage, optionally through a cache. All writes go through FileSystem,
which tests replace to inject faults and crashes. `checkpoints` parses and renders Kafka's small text files.
"""

from kwire.storage.file_system import FileSystem, OpenFile
from kwire.storage.open_store import open_store
from kwire.storage.store import Entry, Store, StoredFile

__all__ = ["Entry", "FileSystem", "OpenFile", "Store", "StoredFile", "open_store"]
