"""Kafka's `listeners` config: NAME://HOST:PORT,..., where a name maps to a security protocol.

Listeners in controller.listener.names are ignored: nothing connects to the controller of a single node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.broker.configs.settings import Settings

__all__ = ["CONTROLLER_NAMES", "PROTOCOLS", "Listener", "listener_names", "move_listeners", "parse_listeners"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CONTROLLER_NAMES = "controller.listener.names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listener. host: "" for all interfaces. port: 0 for any free port. protocol: one of PROTOCOLS."""

    name: str
    host: str
    port: int
    protocol: str

    @property
    def is_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")


def split(text: str, controllers: str) -> Iterator[tuple[str, str, str]]:
    """Split `listeners` into (part, name, address), but no controllers' listeners. Malformed parts have no address."""
    controller_names = split_names(controllers)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, address = part.partition("://")
        if name.upper() not in controller_names:
            yield part, name.upper(), address


def split_names(controllers: str) -> set[str]:
    """Return the names in controller.listener.names."""
    return {name.strip().upper() for name in controllers.split(",") if name.strip()}


def listener_names(configs: Mapping[str, object]) -> tuple[list[str], set[str]]:
    """Return the names of the listeners in configs, and the names of the controllers' listeners."""
    controllers = str(configs.get(CONTROLLER_NAMES, ""))
    return [name for _, name, _ in split(str(configs.get("listeners", "")), controllers)], split_names(controllers)


def move_listeners(configs: Mapping[str, object], host: str | None, port: int | None) -> str:
    """Return `listeners` of configs with another host, another port or both; None keeps each listener's own.

    Raises OptionError if several listeners would get the same port; 0, for any free port, is allowed.
    """
    listeners = list(split(str(configs["listeners"]), str(configs.get(CONTROLLER_NAMES, ""))))
    if port and len(listeners) > 1:
        raise OptionError(f"port {port} cannot be that of {len(listeners)} listeners; use 0, or change listeners")
    moved = []
    for _, name, address in listeners:
        own_host, _, own_port = address.rpartition(":")
        shown = own_host if host is None else f"[{host}]" if ":" in host else host
        moved.append(f"{name}://{shown}:{own_port if port is None else port}")
    return ",".join(moved)


def parse_listeners(settings: Settings, text: str) -> list[Listener]:
    """Parse the value of `listeners` or `advertised.listeners`. Raises OptionError."""
    pairs = (pair.strip().partition(":") for pair in settings.listener_security_protocol_map.split(","))
    protocols = {name.upper(): protocol.upper() for name, _, protocol in pairs}
    listeners: dict[str, Listener] = {}
    for each, name, address in split(text, settings.others.get(CONTROLLER_NAMES, "")):
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise OptionError(f"listener {each!r}: expected NAME://HOST:PORT, such as PLAINTEXT://127.0.0.1:9092")
        protocol = protocols.get(name)
        if protocol not in PROTOCOLS:
            raise OptionError(f"listener {name!r}: no security protocol in listener.security.protocol.map")
        if name in listeners:
            raise OptionError(f"listener {name!r} is defined twice")
        listeners[name] = Listener(name=name, host=host.strip("[]"), port=int(port), protocol=protocol)
    if not listeners:
        raise OptionError("no listener is configured; set listeners to NAME://HOST:PORT")
    return list(listeners.values())
