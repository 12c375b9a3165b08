"""Settings of a tap: addresses, TLS towards clients and the cluster. What would be lost is refused or named."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping

from kwire.broker.configs.given import dotted, parse_settings
from kwire.broker.network.listeners import parse_listeners
from kwire.broker.security.tls import server_context
from kwire.client.settings import ClientSettings, parse_config
from kwire.errors import OptionError

__all__ = ["LOCALHOST", "client_settings", "listener_tls", "parse_listen"]

log = logging.getLogger("kwire.tap")

LOCALHOST = "127.0.0.1"
PROTOCOL = "security.protocol"
USED = ("socket.connection.setup.timeout.ms",)


def parse_listen(text: str) -> tuple[str, int]:
    """Parse PORT or HOST:PORT. Raises OptionError."""
    host, _, port = str(text).strip().rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 2**16):
        raise OptionError(f"listen {text!r}: expected PORT or HOST:PORT, such as 9092 or 0.0.0.0:9092")
    return host.removeprefix("[").removesuffix("]") or LOCALHOST, int(port)


def listener_tls(configs: Mapping[str, object] | None) -> ssl.SSLContext | None:
    """Return the TLS of listeners by a broker's configs, None for no TLS. configs: None for none given.

    Raises OptionError for configs that are not about TLS, and for given ones that do not turn it on.
    """
    if configs is None:
        return None
    for name in map(dotted, configs):
        if name.startswith("sasl."):
            raise OptionError(f"config {name}: the tap passes logins on to the cluster; remove it")
        if not name.startswith("ssl."):
            raise OptionError(f"config {name} is not supported: only TLS of listeners can be configured, with ssl.*")
    settings = parse_settings(configs)
    (listener,) = parse_listeners(settings, settings.listeners)
    if not listener.is_tls:
        raise OptionError("the configs of listeners ask for no TLS: set ssl.certfile and ssl.keyfile, or give none")
    if settings.ssl_cafile and settings.ssl_client_auth.lower() == "none":
        raise OptionError(
            "config ssl.cafile has no effect: clients are asked for no certificate; set ssl.client.auth=required, or"
            " remove it"
        )
    return server_context(settings)


def client_settings(servers: str, configs: Mapping[str, object]) -> ClientSettings:
    """Return the settings of connections to the cluster, by a client's configs.

    Logins are those of the tap's own clients: configs of SASL are left out, with a warning. Raises OptionError for
    an unknown config, and for configs of TLS without a protocol that uses it.
    """
    used: dict[str, object] = {"bootstrap.servers": servers}
    idle = []
    for given, value in configs.items():
        name = given.replace("_", ".")
        if name.startswith("ssl.") or name in USED:
            used[name] = value
        elif name == PROTOCOL:
            used[name] = str(value).strip().upper().removeprefix("SASL_")
        elif name not in ("bootstrap.servers", "metadata.broker.list"):
            parse_config(name, value)  # raises OptionError if it is unknown
            idle.append(name)
    settings = ClientSettings.parse(used)
    tls = next((name for name in used if name.startswith("ssl.")), None)
    if tls is not None and not settings.uses_tls:
        raise OptionError(f"config '{tls}' has no effect without TLS: set {PROTOCOL}=SSL, or remove it")
    if idle:
        log.warning("configs without an effect on the tap, whose clients use their own: %s", ", ".join(idle))
    return settings
