"""`kwire serve`: the embedded broker for other processes."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, add_command
from kwire.errors import LogError, OptionError

__all__ = ["register"]

OF_OPTIONS = frozenset({"listeners", "advertised.listeners", "users"})
"""Settings that a config file does not give: addresses are those of another machine, users have other forms."""
SECRET_PARTS = ("password", "jaas.config", "secret.key", "users")
"""Parts of the names of settings whose values no command line may have."""


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
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            help="User of SASL/PLAIN and SCRAM. Repeatable. The password comes from --password-file or the environment "
            "variable KWIRE_USER_NAME_PASSWORD (NAME in capitals, other characters than letters and digits as _).",
            metavar="NAME",
        ),
    ] = None,
    password_file: Annotated[
        list[str] | None,
        typer.Option(
            "--password-file",
            help="File with the password of a --user on its first line. With several users: one for each, in order.",
            metavar="FILE",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say on standard error who comes and goes.")] = False,
) -> int:
    """Run a Kafka broker until it is interrupted.

    With users, of --user or of sasl.jaas.config in the config file, clients log in: the listener is SASL_PLAINTEXT, or
    SASL_SSL with ssl.certfile. The first line on standard output is BROKERS=host:port. Stops cleanly on Ctrl-C and
    SIGTERM.
    """
    import logging

    from kwire.broker import Broker

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    settings = {**(_properties(config_file) if config_file else {}), **_pairs(config or [])}
    users = {**settings.get("users", {}), **passwords_of(user or [], password_file or [], os.environ)}
    if users:
        settings["users"] = users
    if "listeners" not in settings:
        protocol = "PLAINTEXT" if not users else "SASL_SSL" if "ssl_certfile" in settings else "SASL_PLAINTEXT"
        settings["listeners"] = f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"
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
        name = key.strip().replace("_", ".")
        if any(part in name for part in SECRET_PARTS):
            raise OptionError(f"--config {name}: a secret on the command line can be read by others; use --config-file")
        found[name.replace(".", "_")] = value.strip()
    return found


def _properties(path: str) -> dict[str, Any]:
    """The settings of a properties file that mean something here; a file for Kafka has many that do not.

    Listeners and folders are options: those of a file are another machine's. Users of sasl.jaas.config are in `users`.
    """
    from dataclasses import fields

    from kwire.broker.security.jaas import JAAS_CONFIG, users_of_properties
    from kwire.broker.settings import Settings
    from kwire.storage.checkpoints import parse_properties

    try:
        given = parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
    known = {field.name.replace("_", ".") for field in fields(Settings)} - OF_OPTIONS
    users = users_of_properties(given)
    ignored = [name for name in given if name not in known and not name.endswith(JAAS_CONFIG)]
    if ignored:
        terminal.warn(f"{path}: ignored settings without an effect here: {', '.join(ignored)}")
    settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in given.items() if name in known}
    return {**settings, "users": users} if users else settings


def passwords_of(users: list[str], files: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the password of each user, of the file in its place or of its environment variable.

    Raises OptionError, LogError: which user or file, never a password.
    """
    if files and len(files) != len(users):
        raise OptionError(f"--password-file: expected one for each --user, found {len(files)} for {len(users)}")
    variables = [f"KWIRE_USER_{re.sub('[^A-Z0-9]', '_', name.upper())}_PASSWORD" for name in users]
    found = {}
    for place, (name, variable) in enumerate(zip(users, variables, strict=True)):
        if not name or name in found:
            raise OptionError(f"--user {name!r}: names must be different and not empty")
        if files:
            password, source = _first_line(files[place]), files[place]
        else:
            if variables.count(variable) > 1:
                raise OptionError(f"--user {name}: {variable} would be of several users; use --password-file")
            if variable not in environment:
                raise OptionError(f"--user {name}: no password; set {variable} or give --password-file")
            password, source = environment[variable], variable
        if not password:
            raise OptionError(f"--user {name}: the password in {source} is empty")
        found[name] = password
    return found


def _first_line(path: str) -> str:
    """The first line of a file, without its end. Raises LogError."""
    try:
        return Path(path).read_text("utf-8").partition("\n")[0].removesuffix("\r")
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
    except UnicodeDecodeError:
        raise LogError("is not UTF-8 text", path) from None
