"""What is in a table's directory, found without kwire: its files, those that its metadata refers to, and its rows."""

from __future__ import annotations

import json
import os
import queue
import re
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.soak.file_watch import FileWatch
from tests.soak.object_store_process import BUCKET, KEYS, ObjectStoreProcess

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAME", "TableFiles"]

NAME = "soak.rows"
LOG_NAME = re.compile(r"_delta_log/(\d{20}\.json|\d{20}\.checkpoint\.parquet|_last_checkpoint)")


@dataclass
class TableFiles:
    """A table of a format, "iceberg" or "delta", below a folder or in an object store; paths are relative to it.

    suffix: of its name, which tables by record type have. moments_of: suffix of the table whose files are waited for.
    is_vacuumed: whether other programs delete the files that only older versions of a Delta table need.
    """

    format: str
    folder: Path
    store: ObjectStoreProcess | None = None
    suffix: str = ""
    moments_of: str = ""
    is_vacuumed: bool = False
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def catalog(self) -> dict[str, str]:
        """Properties of the catalog of an Iceberg table."""
        found = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}/lake"}
        if self.store is not None:
            secrets = {"s3.access-key-id": KEYS["access_key"], "s3.secret-access-key": KEYS["secret_key"]}
            found |= {"warehouse": f"s3://{BUCKET}", "s3.endpoint": self.store.endpoint, "s3.region": KEYS["region"]}
            found |= secrets | {"s3.request-timeout": "60"}  # of a server on a busy machine
        return found

    @property
    def storage(self) -> dict[str, str]:
        """Options of the object store of a Delta table."""
        if self.store is None:
            return {}
        return {
            "aws_endpoint_url": self.store.endpoint,
            "aws_access_key_id": KEYS["access_key"],
            "aws_secret_access_key": KEYS["secret_key"],
            "aws_region": KEYS["region"],
            "aws_allow_http": "true",
        }

    @property
    def settings(self) -> list[str]:
        """Options of `kwire lake` that say where the table is, without secrets."""
        option, found = ("--catalog", self.catalog) if self.format == "iceberg" else ("--storage", self.storage)
        public = {name: value for name, value in found.items() if "access" not in name}
        return [word for pair in public.items() for word in (option, "=".join(pair))]

    @property
    def secrets(self) -> dict[str, str]:
        """Environment variables of `kwire lake` with the keys of the object store."""
        return {
            "PYICEBERG_CATALOG__DEFAULT__S3__ACCESS_KEY_ID": KEYS["access_key"],
            "PYICEBERG_CATALOG__DEFAULT__S3__SECRET_ACCESS_KEY": KEYS["secret_key"],
            "AWS_ACCESS_KEY_ID": KEYS["access_key"],
            "AWS_SECRET_ACCESS_KEY": KEYS["secret_key"],
        }

    @property
    def directory(self) -> str:
        """The table's directory, as a path of the file system or of the bucket."""
        return self._directory(self.suffix)

    def _directory(self, suffix: str) -> str:
        if self.store is not None:
            return f"{BUCKET}/soak/rows{suffix}" if self.format == "iceberg" else f"{BUCKET}/rows{suffix}"
        return str(self.folder / ("lake/soak/rows" if self.format == "iceberg" else "table")) + suffix

    @property
    def name(self) -> str:
        """The table as the command line names it."""
        if self.format == "iceberg":
            return f"{NAME}{self.suffix}"
        return self.directory if self.store is None else f"s3://{self.directory}"

    def all(self) -> set[str]:
        """Return every file of the directory, whatever its name."""
        if self.store is not None:
            from pyarrow.fs import FileSelector, FileType

            every = self.store.files.get_file_info(FileSelector(self.directory, recursive=True, allow_not_found=True))
            return {os.path.relpath(each.path, self.directory) for each in every if each.type == FileType.File}
        return {
            os.path.relpath(os.path.join(place, name), self.directory)
            for place, _, names in os.walk(self.directory)
            for name in names
        }

    def exists(self) -> bool:
        """Return whether there is a table."""
        if self.format == "iceberg":
            return self.iceberg() is not None
        from deltalake import DeltaTable

        return DeltaTable.is_deltatable(self.name, storage_options=self.storage)

    def unreferenced(self) -> set[str]:
        """Return the files that no snapshot refers to. Raises AssertionError if one that it needs is missing."""
        every = self.all()
        referenced = self.referenced()
        missing = (self._of_this_version() if self.is_vacuumed else referenced) - self.all()
        assert not missing, f"{len(missing)} files are missing, such as {sorted(missing)[:3]}"
        return every - referenced

    def referenced(self) -> set[str]:
        """Return the files that the table's metadata refers to, of all its snapshots."""
        return self._of_iceberg() if self.format == "iceberg" else self._of_delta()

    def _of_this_version(self) -> set[str]:
        from deltalake import DeltaTable

        assert self.format == "delta"
        paths = DeltaTable(self.name, storage_options=self.storage).file_uris()
        return {unquote(path).partition(f"{self.directory}/")[2] for path in paths}

    def _of_delta(self) -> set[str]:
        found = set()
        for name in filter(LOG_NAME.fullmatch, self.all()):
            found.add(name)
            if name.endswith(".json"):
                for line in self._read(name).splitlines():
                    action = json.loads(line)
                    path = (action.get("add") or action.get("remove") or {}).get("path")
                    found |= {unquote(path)} if path else set()
        return found

    def _of_iceberg(self) -> set[str]:
        table = self.iceberg()
        if table is None:
            return set()
        metadata = table.metadata
        paths = [table.metadata_location, *(each.metadata_file for each in metadata.metadata_log)]
        for snapshot in metadata.snapshots:
            paths.append(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                paths.append(manifest.manifest_path)
                paths += [each.data_file.file_path for each in manifest.fetch_manifest_entry(table.io)]
        start = metadata.location.rstrip("/") + "/"
        assert all(path.startswith(start) for path in paths)
        return {path.removeprefix(start) for path in paths}

    def iceberg(self) -> Any:
        """Load the Iceberg table; None if it does not exist yet."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with suppress(NoSuchTableError, NoSuchNamespaceError):
            return load_catalog(**self.catalog).load_table(self.name)

    @property
    def dead_letters(self) -> str:
        """A table for dead letters beside it."""
        return f"{self.name}_dead"

    def rows(self, name: str | None = None) -> pa.Table:
        """Return the rows of the table, or of another one, by a scan of PyIceberg or delta-rs."""
        if self.format == "iceberg":
            from pyiceberg.catalog import load_catalog

            return load_catalog(**self.catalog).load_table(name or self.name).scan().to_arrow()
        from deltalake import DeltaTable

        return DeltaTable(name or self.name, storage_options=self.storage).to_pyarrow_table()

    def last_batch(self, query: str) -> int:
        """Return the last micro-batch of a query in the table."""
        if self.format == "iceberg":
            table = self.iceberg()
            snapshots = () if table is None else table.metadata.snapshots
            marks = [dict(each.summary.additional_properties) for each in snapshots]
            return max((int(each["kwire.batch"]) for each in marks if each.get("kwire.query") == query), default=-1)
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with suppress(TableNotFoundError):
            found = DeltaTable(self.name, storage_options=self.storage).transaction_version(query)
            return -1 if found is None else found
        return -1

    def make_older(self, paths: set[str], seconds: float) -> None:
        """Change the modification time of files; not in an object store."""
        for path in paths:
            then = time.time() - seconds
            os.utime(os.path.join(self.directory, path), (then, then))

    def age_s(self, path: str) -> float:
        """Return the time since a file was changed; not in an object store."""
        return time.time() - os.path.getmtime(os.path.join(self.directory, path))

    def _read(self, name: str) -> str:
        path = f"{self.directory}/{name}"
        if self.store is None:
            return Path(path).read_text()
        with self.store.files.open_input_stream(path) as file:
            return bytes(file.read()).decode()

    # ---- moments

    def wait_for(self, moment: str, timeout_s: float, look: Callable[[], None]) -> bool:
        """Wait for a new file of "data" or "metadata", a "metadata.json" or a "commit"; False after a timeout.

        look: called all the time.
        """
        deadline = time.monotonic() + timeout_s
        with closing(self._moments(moment)) as moments:
            for is_now in moments:
                if is_now or time.monotonic() > deadline:
                    return is_now
                look()
        raise AssertionError("moments are endless")

    def _moments(self, moment: str) -> Generator[bool]:
        """Return several times a second whether it is the moment, and at once when it is."""
        if moment == "commit" and self.format == "iceberg":
            before = self._pointer()
            while True:
                yield self._pointer() != before
                time.sleep(0.004)
        if self.store is None:
            with FileWatch(self._directory(self.moments_of or self.suffix), self.folder) as watch:
                while True:
                    yield any(self._is_of(path, moment) for path in watch.new_files(0.2))
        writes, verb = self.store.writes, "end" if moment == "commit" else "begin"
        while not writes.empty():
            writes.get()
        while True:
            with suppress(queue.Empty):
                found, _, path = writes.get(timeout=0.2).partition(" ")
                yield found == verb and self._is_of(path.partition(f"{self.directory}/")[2], moment)
                continue
            yield False

    def _is_of(self, path: str, moment: str) -> bool:
        """Return whether a new file means a moment."""
        is_metadata = path.startswith(("metadata/", "_delta_log/"))
        return {
            "data": ".parquet" in path and not is_metadata,
            "metadata": is_metadata,
            "metadata.json": path.endswith(".metadata.json"),
            "commit": path.startswith("_delta_log/") and path.endswith(".json"),
        }[moment]

    def _pointer(self) -> object:
        """Return what the catalog has of the table."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.folder / "catalog.db", timeout=0.02)) as catalog:
            return catalog.execute("SELECT metadata_location FROM iceberg_tables").fetchall()
        return None
