"""The lease of a copy in a store: one pull at a time writes there.

A file that its owner renews. A lease that is not renewed for EXPIRES_S belongs to a process that has died, and can be
taken; so can that of an earlier process on this machine that held the same staging directory. An owner that finds
another's lease stops. Between a stall of more than EXPIRES_S and that check it may still finish what it was writing.
"""

from __future__ import annotations

import os
import socket
import time
import uuid

import msgspec

from kwire.errors import DirectoryInUse, LogError
from kwire.storage.writable_store import WritableStore

__all__ = ["Lease"]

RENEW_S = 10.0
EXPIRES_S = 60.0
POLL_S = 1.0


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the file. staging: the local directory of the owner. renewals: so far."""

    id: str
    host: str
    pid: int
    staging: str
    renewals: int = 0


class Lease:
    """A lease that is held until release()."""

    def __init__(self, store: WritableStore, path: str, staging: str) -> None:
        """Take the lease. staging: a local directory that this process has locked.

        Waits up to EXPIRES_S for a lease that is not renewed. Raises OptionError for one that is, LogError.
        """
        self._store, self._path = store, path
        self._own = Owner(id=uuid.uuid4().hex, host=socket.gethostname(), pid=os.getpid(), staging=staging)
        self._due = 0.0
        if store.create(path, msgspec.json.encode(self._own)):
            self._due = time.monotonic() + RENEW_S
            return
        self._wait()
        self._write()
        self.check()

    def _wait(self) -> None:
        """Wait until the present lease has expired."""
        holder = self._read()
        if holder is None or (holder.host, holder.staging) == (self._own.host, self._own.staging):
            return
        expires = time.monotonic() + EXPIRES_S
        while time.monotonic() < expires:
            time.sleep(POLL_S)
            now = self._read()
            if now is None:
                return
            if now != holder:
                where = self._store.url_of("")
                raise DirectoryInUse(f"process {now.pid} on {now.host} is pulling into it; stop that one first", where)

    def _read(self) -> Owner | None:
        try:
            return msgspec.json.decode(self._store.read_all(self._path), type=Owner)
        except msgspec.DecodeError:
            return None
        except LogError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _write(self) -> None:
        self._own = msgspec.structs.replace(self._own, renewals=self._own.renewals + 1)
        self._store.write(self._path, msgspec.json.encode(self._own))
        self._due = time.monotonic() + RENEW_S

    def renew_if_due(self) -> None:
        """Renew the lease every RENEW_S. Raises LogError if another process has taken it."""
        if time.monotonic() >= self._due:
            self.check()
            self._write()

    def check(self) -> None:
        """Check that this process still has the lease. Raises LogError if another process has taken it."""
        holder = self._read()
        if holder is None or holder.id != self._own.id:
            owner = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
            raise LogError(f"{owner} has taken over this copy; stop one of them", self._store.url_of(self._path))

    def release(self) -> None:
        """Remove the lease."""
        self._store.remove(self._path)
