"""Client configs of a command line: -c NAME=VALUE and --config-file, for paths that are kafka:// URLs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kwire.cli import terminal
from kwire.errors import OptionError

__all__ = ["CLUSTER", "client_configs", "is_cluster", "read_properties"]

CLUSTER = "kafka://"
"""Begin of a path that is a cluster; kwire.client.address, which parses it, takes long to import."""

CONNECT_S = 2.0


def is_cluster(path: str) -> bool:
    """Return whether a path is the URL of a cluster; the case of a scheme does not matter."""
    return path[: len(CLUSTER)].lower() == CLUSTER


def client_configs(path: str, configs: Sequence[str] | None, config_file: str | None) -> dict[str, object]:
    """Return the client configs of --config-file and -c; -c takes precedence.

    path: what they are for. Raises OptionError unless it is a kafka:// URL of servers that listen, for a secret in
    -c, and for a file that cannot be read; messages never contain a value.
    """
    if not is_cluster(path):
        if given := "--config" if configs else "--config-file" if config_file else None:
            raise OptionError(f"{given} requires a path that begins with {CLUSTER}")
        return {}
    terminal.show_warnings("kwire.client")  # such as a broker that refuses connections
    settings = _from_file(config_file) if config_file else {}
    for text in configs or ():
        name, value = _pair(text)
        settings[name] = value
    _check_listening(path)
    return settings


def _check_listening(path: str) -> None:
    """Raise OptionError if nobody listens at any of the servers: a wrong port.

    Clients try again for default.api.timeout.ms (a minute), as brokers come back. All other failures are theirs.
    """
    import socket

    from kwire.client.address import ClusterAddress

    refused = ""
    for host, port in ClusterAddress.parse(path).servers:
        try:
            socket.create_connection((host, port), CONNECT_S).close()
        except ConnectionRefusedError as error:
            refused = f"{host}:{port}: cannot connect: {error.strerror}"
        except OSError:
            return
        else:
            return
    raise OptionError(refused)


def _from_file(path: str) -> dict[str, object]:
    from kwire.client.settings import parse_config

    configs: dict[str, object] = dict(read_properties(path))
    try:
        for name, value in configs.items():
            parse_config(name, value)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return dict(configs)


def read_properties(path: str) -> dict[str, str]:
    """Read NAME=VALUE lines. Raises OptionError."""
    from kwire.storage.checkpoints import parse_properties

    try:
        return parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror}") from None


def _pair(text: str) -> tuple[str, str]:
    from kwire.protocol.secrets import is_secret_setting

    key, equals, value = text.partition("=")
    name = key.strip().replace("_", ".")
    if is_secret_setting(name):
        name = name.split()[0].rstrip(":")  # without a value that follows it in another form
        raise OptionError(f"--config {name}: secrets on a command line are visible to others; use --config-file")
    if not equals or not name:
        raise OptionError("--config: expected NAME=VALUE, such as security.protocol=SSL")
    if name in ("bootstrap.servers", "metadata.broker.list"):
        raise OptionError(f"--config {name}: the URL has the servers; remove this config")
    return name, value.strip()
