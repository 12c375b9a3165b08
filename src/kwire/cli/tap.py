"""`kwire tap`: a proxy before a cluster, with faults, a request log and recordings."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, add_command
from kwire.cli.serve import CONTROL, KEPT_REQUESTS, UNTIL, WAITS, Until, log_to_stderr, parse_control
from kwire.errors import OptionError, counted

if TYPE_CHECKING:
    from kwire.tap import Tap

__all__ = ["register"]

CONNECT_S = 2.0


def register(app: typer.Typer) -> None:
    """Add `tap` to the app."""
    add_command(
        app,
        "tap",
        tap,
        "kwire tap --listen 9192 --to broker:9092 --control 9199",
        "kwire tap --listen 9192 --to broker:9092 --record session.pcapng",
        "kwire tap --listen 9192 --replay session.pcapng",
        "kwire tap --listen 9192 --to broker:9093 --to-config client.properties --listen-config listener.properties",
        section="Broker",
    )


def tap(
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="HOST:PORT", help="Address of the cluster; several are separated by commas."),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Where clients connect, on 127.0.0.1 unless a host is given. 0 is any free port. Nodes of the cluster "
            "get the ports after it.",
        ),
    ] = "0",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what clients send and receive to a new capture file (pcapng)."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Respond from a recording, without a cluster. Exit code 1 for mismatches."),
    ] = None,
    control: Annotated[str | None, CONTROL] = None,
    to_config: Annotated[
        str | None,
        typer.Option("--to-config", metavar="FILE", help="TLS to the cluster, in the format of client.properties."),
    ] = None,
    listen_config: Annotated[
        str | None,
        typer.Option(
            "--listen-config", metavar="FILE", help="TLS of the listeners, ssl.* in the format of server.properties."
        ),
    ] = None,
    until: Annotated[Until | None, UNTIL] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Connections and nodes on standard error.")] = False,
) -> int:
    """Run a proxy before a Kafka cluster until Ctrl-C or SIGTERM.

    The first line on standard output is BROKERS=host:port, for bootstrap.servers of clients; with --control, the second
    is CONTROL= with a URL. Clients reach every node through the tap: addresses in responses are replaced. They log in
    to the cluster themselves. Exit code 1 if a recording is incomplete, or a replay had mismatches.
    """
    from kwire.cli.client_configs import read_properties

    log_to_stderr(verbose)
    if replay is not None:
        others = {"--to": to, "--record": record, "--control": control, "--to-config": to_config}
        for name, given in {**others, "--listen-config": listen_config}.items():
            if given is not None:
                raise OptionError(f"--replay and {name} are mutually exclusive")
        return run_replay(replay, listen, until)
    if to is None:
        raise OptionError("--to or --replay is required")
    from kwire.tap import Tap

    running = Tap(
        to,
        listen,
        record=record,
        keep_requests=0 if control is None else KEPT_REQUESTS,
        listen_configs=None if listen_config is None else read_properties(listen_config),
        **({} if to_config is None else read_properties(to_config)),
    )
    address = None if control is None else parse_control(control)
    stop = stopping(until)
    with running, controlled(running, address) as url:
        print(f"BROKERS={running.bootstrap_servers}", *url, sep="\n", flush=True)
        warn_of_unreachable(to)
        stop.wait()
    if running.problem:
        terminal.warn(running.problem)
        return FOUND
    return FINE


def stopping(until: Until | None) -> threading.Event:
    """Return the event that ends the command: a signal, or what is asked for."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            signal.signal(number, lambda *_: stop.set())
    if until is not None:
        threading.Thread(target=WAITS[until], args=(stop,), name=f"until {until}", daemon=True).start()
    return stop


def run_replay(path: str, listen: str, until: Until | None) -> int:
    """Respond from a recording until the end; prints what did not match."""
    import logging

    from kwire.tap import Replay

    logger = logging.getLogger("kwire.tap")
    level = logger.level
    running = Replay(path, listen)
    stop = stopping(until)
    logger.setLevel(logging.ERROR)  # mismatches are printed at the end
    try:
        with running:
            print(f"BROKERS={running.bootstrap_servers}", flush=True)
            stop.wait()
    finally:
        logger.setLevel(level)
    for each in running.mismatches:
        print(each)
    recording = running.recording
    mismatches = counted(running.mismatch_count, "mismatch", "mismatches")
    recorded = counted(len(recording.all), "recorded request")
    responses = counted(running.answered, "response")
    print(f"{responses} sent, {mismatches}; of {recorded}, {recording.unused} were not sent")
    if recording.problems:
        terminal.warn(f"{path}: {counted(recording.problems, 'request')} cannot be replayed: parts were not recorded")
    return FOUND if running.mismatch_count else FINE


@contextlib.contextmanager
def controlled(running: Tap, address: tuple[str, int] | None) -> Iterator[list[str]]:
    """Run the control server, if one is asked for; the value is the line to print."""
    if address is None:
        yield []
        return
    from kwire.broker.control import ControlServer
    from kwire.tap.control import TAP_ROUTES

    with ControlServer(running, *address, routes=TAP_ROUTES) as server:
        yield [f"CONTROL={server.address}"]


def warn_of_unreachable(to: str) -> None:
    """Warn if no server of the cluster can be reached now. Clients are disconnected until then, and try again."""
    from kwire.client.settings import parse_config

    parsed = parse_config("bootstrap.servers", to)
    servers: tuple[tuple[str, int], ...] = parsed[1] if parsed is not None else ()  # type: ignore[assignment]
    problems = []
    for host, port in servers:
        try:
            socket.create_connection((host, port), CONNECT_S).close()
        except (OSError, UnicodeError) as error:
            problems.append(f"{host}:{port}: cannot connect: {getattr(error, 'strerror', None) or error}")
        else:
            return
    terminal.warn("; ".join(problems) + "; clients are disconnected until the cluster can be reached")
