"""Kafka's `listeners` config: NAME://HOST:PORT,..., where a name maps to a security protocol."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.broker.settings import Settings
from kwire.errors import OptionError

__all__ = ["PROTOCOLS", "Listener", "parse_listeners"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


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


def parse_listeners(settings: Settings, text: str) -> list[Listener]:
    """Parse the value of `listeners` or `advertised.listeners`. Raises OptionError."""
    pairs = (pair.strip().partition(":") for pair in settings.listener_security_protocol_map.split(","))
    protocols = {name.upper(): protocol.upper() for name, _, protocol in pairs}
    found: dict[str, Listener] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, separator, address = each.partition("://")
        host, colon, port = address.rpartition(":")
        name = name.upper()
        if not separator or not colon or not port.isdigit() or int(port) > 65535:
            raise OptionError(f"listener {each!r}: expected NAME://HOST:PORT, such as PLAINTEXT://127.0.0.1:9092")
        protocol = protocols.get(name)
        if protocol not in PROTOCOLS:
            raise OptionError(f"listener {name!r}: no security protocol in listener.security.protocol.map")
        if name in found:
            raise OptionError(f"listener {name!r} is defined twice")
        found[name] = Listener(name=name, host=host.strip("[]"), port=int(port), protocol=protocol)
    if not found:
        raise OptionError("no listener is configured; set listeners to NAME://HOST:PORT")
    return list(found.values())
