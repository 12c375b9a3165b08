"""Bytes at rest: files to read, local or behind a URL, and local files to write.

Store reads: local paths, fsspec URLs, tiered storage, with caches in front. FileSystem writes, and is the one place
where a test can stop, fail or lose a change. Kafka's small text files are in `checkpoints`.
"""

from kwire.storage.file_system import FileSystem, OpenFile
from kwire.storage.open_store import open_store
from kwire.storage.store import Entry, Store, StoredFile

__all__ = ["Entry", "FileSystem", "OpenFile", "Store", "StoredFile", "open_store"]
