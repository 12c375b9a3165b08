"""A real PostgreSQL server for tests, in a folder of its own. `apt-get install postgresql` brings it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.kafka import Unavailable

__all__ = ["PASSWORD", "Postgres", "running"]

PASSWORD = "hunter2-password"
TIMEOUT_S = 60


@dataclass(slots=True)
class Postgres:
    """A server. user: who runs it, since PostgreSQL refuses root; None for this user."""

    folder: Path
    port: int
    user: str | None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def uri(self, *, database: str = "postgres", password: str = PASSWORD, port: int | None = None) -> str:
        """Return the URL of a database for SQLAlchemy."""
        return f"postgresql+psycopg2://kwire:{password}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        command = [program("postgres"), "-D", f"{self.folder}/data", "-p", str(self.port), "-k", str(self.folder)]
        with (self.folder / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
                stderr=log,
                user=self.user,
                cwd=self.folder,
            )
        ready = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + TIMEOUT_S
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'postgres.log').read_text()[-1000:]}")
            time.sleep(0.05)

    def stop(self, kind: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server, by default at once as in a crash: clients get no response."""
        if self._process is not None:
            self._process.send_signal(kind)
            self._process.wait(timeout=TIMEOUT_S)
            self._process = None

    def run(self, statement: str) -> str:
        """Run SQL statements and return their rows as text."""
        command = [program("psql"), "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(self.port), "-U", "kwire"]
        done = subprocess.run(
            [*command, "-d", "postgres", "-c", statement],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@contextmanager
def running() -> Iterator[Postgres]:
    """Run a server with an empty database, whose only account is kwire. Raises Unavailable."""
    user = "nobody" if os.geteuid() == 0 else None
    initdb = program("initdb")
    folder = Path(tempfile.mkdtemp(prefix="kwire-postgres-"))  # which the other user can reach, unlike pytest's
    try:
        (folder / "password").write_text(PASSWORD)
        if user is not None:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        options = ["-U", "kwire", "-A", "scram-sha-256", "--no-sync", "--locale=C", "--encoding=UTF8"]
        create = [initdb, "-D", f"{folder}/data", f"--pwfile={folder}/password", *options]
        subprocess.run(create, user=user, cwd=folder, check=True, capture_output=True)
        server = Postgres(folder, free_port(), user)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs. Raises Unavailable."""
    places = [os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise Unavailable(f"{name} is not installed; on Debian or Ubuntu: apt-get install postgresql")
    return found


def free_port() -> int:
    """Return a port that no server has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
