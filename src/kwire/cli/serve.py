"""`kwire serve`: the embedded broker for other processes."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, add_command
from kwire.errors import LogError, OptionError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `serve` to the app."""
    add_command(app, "serve", serve)


def serve(
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", help="Kafka log directory, made or recovered; default: a temporary one.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 9092,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", help="A broker setting, key=value. Repeatable.", metavar="KEY=VALUE"),
    ] = None,
    config_file: Annotated[
        str | None, typer.Option("--config-file", help="Settings as in Kafka's server.properties.", metavar="FILE")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say on standard error who comes and goes.")] = False,
) -> int:
    """Run a Kafka broker until it is interrupted.

    The first line on standard output is BROKERS=host:port. Stops cleanly on Ctrl-C and SIGTERM.
    """
    import logging

    from kwire.broker import Broker

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    settings = {**(_properties(config_file) if config_file else {}), **_pairs(config or [])}
    if "listeners" not in settings:
        settings["listeners"] = f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Broker(data_dir=data_dir, **settings) as broker:
        print(f"BROKERS={broker.bootstrap_servers}", flush=True)
        if data_dir is None:
            terminal.warn("the data is in a temporary directory and goes with this process; --data-dir keeps it")
        threading.Thread(target=_keep_code_out_of_collections, daemon=True).start()
        stop.wait()
    return FINE


def _keep_code_out_of_collections() -> None:
    """Once everything is loaded, let the collector pass over it: to look at it all stops every client for 60 ms.

    Only here, where the process is the broker's own: a host's garbage would stay with it.
    """
    import gc

    from kwire.broker.warm_up import loaded

    gc.freeze()
    loaded.wait()
    gc.freeze()


def _pairs(texts: list[str]) -> dict[str, Any]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise OptionError(f"--config {text!r}: expected KEY=VALUE, such as num.partitions=3")
        found[key.strip().replace(".", "_")] = value.strip()
    return found


def _properties(path: str) -> dict[str, Any]:
    """The settings of a properties file that mean something here; a file for Kafka has many that do not.

    Listeners and folders are options: those of a file are another machine's.
    """
    from dataclasses import fields

    from kwire.broker.settings import Settings
    from kwire.log.checkpoints import parse_properties

    try:
        given = parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
    known = {field.name for field in fields(Settings)} - {"listeners", "advertised_listeners"}
    if passed := [name for name in given if name.replace(".", "_") not in known]:
        terminal.warn(f"{path}: passed over, because they mean nothing here: {', '.join(passed)}")
    return {name: value for name, value in given.items() if name not in passed}
