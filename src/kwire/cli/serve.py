"""`kwire serve`: the embedded broker for other processes."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, add_command
from kwire.errors import OptionError, counted

if TYPE_CHECKING:
    from kwire.broker import Broker
    from kwire.broker.node import Node

__all__ = ["register"]

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
KEPT_REQUESTS = 1000
ADVERTISED = "advertised.listeners"


PARENT = os.getppid()
PARENT_CHECK_S = 0.2


class Until(StrEnum):
    """Events that end `kwire serve`, besides signals."""

    STDIN = "stdin"
    PARENT = "parent"


def register(app: typer.Typer) -> None:
    """Add `serve` to the app."""
    add_command(
        app,
        "serve",
        serve,
        "kwire serve --port 9092",
        "kwire serve --data-dir /var/lib/kwire/data -c num.partitions=3",
        "kwire serve --port 0 --topic orders:3 --until stdin",
        "kwire serve --nodes 3 --port 9092",
        "kwire serve --port 0 --control 0 --until stdin",
        "kwire serve --host 0.0.0.0 --user alice --password-file alice.password",
        section="Broker",
    )


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Disable the garbage collector while modules load: what they make is kept, and collections slow them down."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


UNTIL = typer.Option(
    help="Also stop when standard input ends, or when the parent process has ended: a broker that tests start does not "
    "outlive them if they are killed."
)
CONTROL = typer.Option(
    help="Also listen for HTTP requests that add faults, wait, and change topics and time; on 127.0.0.1 unless an "
    "address is given. 0 is a free port.",
    metavar="[ADDRESS:]PORT",
)


@without_collections()
def serve(
    data_dir: Annotated[
        str | None,
        typer.Option("--data-dir", metavar="DIR", help="Log directory, created if missing; temporary by default."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", help=f"Port to listen on, {DEFAULT_PORT} by default; 0 is any free port.", min=0, max=65535
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help=f"Address to listen on, {DEFAULT_HOST} by default; 0.0.0.0 for all interfaces."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", help="Broker config, such as num.partitions=3. Repeatable.", metavar="NAME=VALUE"
        ),
    ] = None,
    config_file: Annotated[
        str | None,
        typer.Option("--config-file", help="Broker configs in the format of server.properties.", metavar="FILE"),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            help="User of SASL/PLAIN and SCRAM. Repeatable. The password is read from --password-file or from the "
            "environment variable KWIRE_USER_NAME_PASSWORD (NAME in upper case, with _ for other characters).",
            metavar="NAME",
        ),
    ] = None,
    password_file: Annotated[
        list[str] | None,
        typer.Option(
            "--password-file",
            help="File with the password of a --user on its first line. Repeatable: one per user, in order.",
            metavar="FILE",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Topic to create if it is missing, with num.partitions or a given number of partitions. Repeatable.",
            metavar="NAME[:PARTITIONS]",
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(help="Number of nodes, on one port after the other.", metavar="N", min=1)] = 1,
    rack: Annotated[
        list[str] | None,
        typer.Option("--rack", help="Rack of a node. Repeatable: one per node, in order.", metavar="NAME"),
    ] = None,
    until: Annotated[Until | None, UNTIL] = None,
    control: Annotated[str | None, CONTROL] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Connections and logins on standard error.")] = False,
) -> int:
    """Run a Kafka broker, or a cluster of several nodes, until Ctrl-C or SIGTERM.

    The first line on standard output is BROKERS=host:port; with --nodes it has the address of each node, separated by
    commas. With --control, the second line is CONTROL= with a URL. Unless listeners is set, the listener has the
    security protocol that users and configs ask for: SASL with users or sasl configs, SSL with ssl configs. --host and
    --port replace the address in listeners of the config file. Configs that would protect the broker and are not
    supported are refused.
    """
    log_to_stderr(verbose)
    settings = settings_of(host, port, config or [], config_file)
    if users := passwords_of(user or [], password_file or [], os.environ):
        settings["users"] = users
    if nodes > 1 or rack:
        settings |= {"nodes": nodes, "racks": rack}
    topics = [parse_topic(text) for text in topic or []]
    return run_broker(data_dir, settings, topics, until, None if control is None else parse_control(control))


def log_to_stderr(verbose: bool) -> None:
    """Print warnings, and connections and logins too with verbose."""
    import logging

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def settings_of(host: str | None, port: int | None, configs: list[str], config_file: str | None) -> dict[str, Any]:
    """Return the settings in the options and in the config file. Raises OptionError."""
    of_file, of_options = _properties(config_file) if config_file else {}, _pairs(configs)
    address = listener_address(host, port, of_file, of_options)
    return {**address, **of_file, **of_options}


def listener_address(
    host: str | None, port: int | None, of_file: dict[str, str], of_options: dict[str, str]
) -> dict[str, Any]:
    """Return the address of a broker without `listeners`, else move the listeners of the file. Raises OptionError."""
    from kwire.broker.network.listeners import move_listeners

    if "listeners" in of_options:
        if host is not None or port is not None:
            raise OptionError("--config listeners and --host or --port are mutually exclusive")
    elif "listeners" not in of_file:
        return {"host": host or DEFAULT_HOST, "port": DEFAULT_PORT if port is None else port}
    elif host is not None or port is not None:
        of_file["listeners"] = move_listeners(of_file, host, port)
        of_file.pop(ADVERTISED, None)  # it belongs to the address in the file
    return {}


def run_broker(
    data_dir: str | None,
    settings: dict[str, Any],
    topics: list[tuple[str, int | None]],
    until: Until | None,
    control: tuple[str, int] | None = None,
) -> int:
    """Run a broker, or a cluster if there are nodes, until a signal, or what else is asked for.

    control: address and port of the control server, None for none.
    """
    from kwire.storage.staged_directory import check_writable

    kept = 0 if control is None else KEPT_REQUESTS
    served = new_broker({"data_dir": data_dir, "keep_requests": kept, **settings})
    if data_dir is not None:
        check_writable(data_dir)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            signal.signal(number, lambda *_: stop.set())
    if until is not None:
        threading.Thread(target=WAITS[until], args=(stop,), name=f"until {until}", daemon=True).start()
    with served as broker, controlled(broker, control) as url:
        for name, partitions in topics:
            broker.call(functools.partial(ensure_topic, name, partitions))
        print(f"BROKERS={broker.bootstrap_servers}", *url, sep="\n", flush=True)
        if data_dir is None:
            terminal.warn("the data is in a temporary directory and is deleted at exit; keep it with --data-dir")
        gc.freeze()  # else a full collection, which visits all loaded code, stops every client for milliseconds
        broker.is_warm.wait()
        gc.freeze()
        gc.enable()
        stop.wait()
    return FINE


@contextlib.contextmanager
def controlled(broker: Broker, address: tuple[str, int] | None) -> Iterator[list[str]]:
    """Run the control server, if one is asked for; the value is the line to print."""
    if address is None:
        yield []
        return
    from kwire.broker.control import ControlServer

    with ControlServer(broker, *address) as server:
        yield [f"CONTROL={server.address}"]


def parse_control(text: str) -> tuple[str, int]:
    """Parse PORT or ADDRESS:PORT. Raises OptionError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 2**16):
        raise OptionError(f"--control {text!r}: expected PORT or ADDRESS:PORT, such as 9099")
    return host.removeprefix("[").removesuffix("]") or DEFAULT_HOST, int(port)


def new_broker(settings: dict[str, Any]) -> Broker:
    """Return a broker, or a cluster if the settings have nodes. Raises OptionError."""
    if "nodes" in settings:
        from kwire.broker import Cluster

        return Cluster(**settings)
    from kwire.broker import Broker

    return Broker(**settings)


def parse_topic(text: str) -> tuple[str, int | None]:
    """Parse NAME or NAME:PARTITIONS. Raises OptionError."""
    name, colon, count = text.partition(":")
    if not name or (colon and not (count.isascii() and count.isdigit() and int(count) > 0)):
        raise OptionError(f"--topic {text!r}: expected NAME or NAME:PARTITIONS, such as orders:3")
    return name, int(count) if colon else None


def ensure_topic(name: str, partitions: int | None, node: Node) -> None:
    """Create a topic unless it exists. Raises OptionError if it has another number of partitions, BrokerError."""
    topic = node.topics.get(name)
    if topic is None:
        node.controller.create_topic(name, node.settings.num_partitions if partitions is None else partitions)
    elif partitions not in (None, len(topic.partitions)):
        raise OptionError(f"--topic {name}:{partitions}: it exists with {counted(len(topic.partitions), 'partition')}")


def wait_for_stdin(stop: threading.Event) -> None:
    """Set the event when standard input ends."""
    with contextlib.suppress(OSError):
        while os.read(0, 1 << 16):
            pass
    stop.set()


def wait_for_parent(stop: threading.Event) -> None:
    """Set the event when the process that started this one has ended."""
    while os.getppid() == PARENT and not stop.wait(PARENT_CHECK_S):
        pass
    stop.set()


WAITS = {Until.STDIN: wait_for_stdin, Until.PARENT: wait_for_parent}


def _pairs(texts: list[str]) -> dict[str, str]:
    """Return the configs of --config, with dots in their names."""
    from kwire.broker.configs.given import dotted
    from kwire.broker.configs.protection import is_secret

    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            # without the text, which may be a secret
            raise OptionError("--config: expected NAME=VALUE, such as num.partitions=3")
        name = dotted(key.strip())
        if is_secret(name):
            raise OptionError(f"--config {name}: secrets on a command line are visible to others; use --config-file")
        pairs[name] = value.strip()
    return pairs


def _properties(path: str) -> dict[str, str]:
    """Return the configs of a properties file that are Kafka's or the broker's, and warn of the others.

    Raises OptionError for a name that may be meant to protect the broker.
    """
    from kwire.broker.configs.given import check_misspelled, is_known
    from kwire.storage.checkpoints import parse_properties

    try:
        given = parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None
    if "users" in given:
        raise OptionError(
            f"{path}: users is not supported in a file; set listener.name.LISTENER.MECHANISM.sasl.jaas.config, or use "
            "--user"
        )
    unknown = [name for name in given if not is_known(name)]
    for name in unknown:
        try:
            check_misspelled(name)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from None
    if unknown:
        terminal.warn(f"{path}: ignored unknown configs: {', '.join(unknown)}")
    return {name: value for name, value in given.items() if name not in unknown}


def passwords_of(users: list[str], files: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the password of each user, from its file or its environment variable.

    Raises OptionError with the user or the file, never with a password.
    """
    if files and len(files) != len(users):
        raise OptionError(f"--password-file: expected one per --user, found {len(files)} for {len(users)}")
    variables = [f"KWIRE_USER_{re.sub('[^A-Z0-9]', '_', name.upper())}_PASSWORD" for name in users]
    passwords = {}
    for place, (name, variable) in enumerate(zip(users, variables, strict=True)):
        if not name or name in passwords:
            raise OptionError(f"--user {name!r}: names must be unique and not empty")
        if files:
            password, source = _first_line(files[place]), files[place]
        else:
            if variables.count(variable) > 1:
                raise OptionError(f"--user {name}: several users share {variable}; use --password-file")
            if variable not in environment:
                raise OptionError(f"--user {name}: no password; set {variable} or --password-file")
            password, source = environment[variable], variable
        if not password:
            raise OptionError(f"--user {name}: the password in {source} is empty")
        passwords[name] = password
    return passwords


def _first_line(path: str) -> str:
    """Return the first line of a file without its line break. Raises OptionError."""
    try:
        return Path(path).read_text("utf-8").partition("\n")[0].removesuffix("\r")
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path}: not UTF-8 text") from None
