"""Sail in a separate process, with the PySpark that it supports: the environment's is newer.

`./dev test` installs both into build/sail.
"""

from __future__ import annotations

from tools.kafka import Unavailable
from tools.session_process import ROOT, SessionError, SessionProcess, serve, variables

PACKAGES = ROOT / "build" / "sail"


class SailError(SessionError):
    """An exception of the process: its type and message."""


def environment() -> dict[str, str]:
    """Return the environment variables of a process with Sail. Raises Unavailable."""
    if not (PACKAGES / ".stamp").exists():
        raise Unavailable("Sail is not installed in build/sail; ./dev test installs it")
    return {**variables(PACKAGES), "RUST_LOG": "error"}


class SailEngine(SessionProcess):
    """A running Sail server and its client."""

    error = SailError

    def __init__(self) -> None:
        super().__init__("tools.sail", environment())


def main() -> None:
    """Run the functions that the caller sends."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()

    def start() -> SparkSession:
        server.start(background=True)
        assert server.listening_address is not None
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session

    serve(start)
    server.stop()


if __name__ == "__main__":
    main()
