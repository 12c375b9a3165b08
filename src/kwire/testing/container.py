"""A broker with the interface of testcontainers' Kafka class, without Docker: only the import of a test changes.

    from kwire.testing import KafkaContainer      # in place of testcontainers.community.kafka

    with KafkaContainer() as kafka:
        producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})

There is no container: what needs one raises an error that says so. Variables KAFKA_... are the broker's configs, by the
rule of Confluent's images. Image and name have no effect, nor do variables of a JVM.
Source: testcontainers 4.15, testcontainers.community.kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn

from kwire.broker import Broker
from kwire.errors import OptionError

__all__ = ["KafkaContainer"]

LOGGER = logging.getLogger("kwire.testing")
LOCALHOST = "127.0.0.1"
PREFIX = "KAFKA_"
OF_THE_JVM = ("GC_", "HEAP_OPTS", "JMX_", "JVM_", "LOG4J", "TOOLS_")
"""Beginnings of variables that configure a JVM and its log files."""
OWN = ("ADVERTISED_LISTENERS", "HOST", "LISTENERS", "LISTENER_SECURITY_PROTOCOL_MAP", "PORT")
ADDRESS = "the container sets its listener: use `port`, with_bind_ports and listener_name"
NO_CONTAINER = "there is no container"
BROKER = "use the attribute `broker`, a kwire.broker.Broker"
UNSUPPORTED = {
    "copy_from_container": NO_CONTAINER,
    "copy_into_container": NO_CONTAINER,
    "create_file": NO_CONTAINER,
    "exec": f"{NO_CONTAINER} to run a command in; {BROKER}, or any client",
    "get_container_id": NO_CONTAINER,
    "get_container_info": NO_CONTAINER,
    "get_docker_client": "there is no Docker",
    "get_logs": f"{NO_CONTAINER}; {BROKER}: its `requests` are what clients sent",
    "get_wrapped_container": f"{NO_CONTAINER}; {BROKER}",
    "reload": NO_CONTAINER,
    "status": f"{NO_CONTAINER}; {BROKER}: its `is_running`",
    "tc_start": f"{NO_CONTAINER}; use start",
    "wait": NO_CONTAINER,
    "with_cluster_id": "the broker makes its id",
    "with_command": NO_CONTAINER,
    "with_copy_into_container": NO_CONTAINER,
    "with_env_file": "use with_envs",
    "with_network": f"{NO_CONTAINER} in a network: other containers reach the broker with kwire serve only",
    "with_network_aliases": f"{NO_CONTAINER} in a network",
    "with_tmpfs_mount": f"{NO_CONTAINER}; use kwire.broker.Broker(data_dir) to keep data",
    "with_volume_mapping": f"{NO_CONTAINER}; use kwire.broker.Broker(data_dir) to keep data",
}


class KafkaContainer:
    """A broker for tests.

    image: without effect. port: the number that get_exposed_port takes; clients use another, which is free.
    listener_name: of the only listener. env: as with_envs. Raises OptionError for what cannot be obeyed.
    """

    def __init__(
        self,
        image: str = "",
        port: int = 9093,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        *,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        **unsupported: object,
    ) -> None:
        if unsupported:
            refuse(next(iter(unsupported)), f"{NO_CONTAINER}; supported are image, port, listener_name, env and name")
        if security_protocol != "PLAINTEXT":
            refuse("security_protocol", "only PLAINTEXT; kwire.broker.Broker has TLS and SASL")
        self.image, self.port, self.listener_name = image, port, listener_name
        self.security_protocol, self.kraft_enabled = security_protocol, False
        self.env: dict[str, str] = dict(env or {})
        self._host_port = 0
        self._broker: Broker | None = None
        self._idle = [f"image {image}"] if image else []
        if name is not None:
            self._idle.append(f"name {name}")
        if wait_strategy_check_string:
            self._idle.append("wait_strategy_check_string")

    # Set up

    def with_kraft(self) -> KafkaContainer:
        """Set kraft_enabled, without effect: the broker has no ZooKeeper."""
        self.kraft_enabled = True
        return self

    def maybe_emulate_amd64(self) -> KafkaContainer:
        """Do nothing: the broker runs in this process."""
        return self

    def waiting_for(self, strategy: object) -> KafkaContainer:
        """Do nothing: start returns when clients can connect."""
        self._idle.append(f"waiting_for {type(strategy).__name__}")
        return self

    def with_name(self, name: str) -> KafkaContainer:
        """Set a name, without effect."""
        self._idle.append(f"name {name}")
        return self

    def with_env(self, key: str, value: str) -> KafkaContainer:
        """Set a config of the broker: KAFKA_NUM_PARTITIONS for num.partitions."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: str) -> KafkaContainer:
        """Set configs of the broker, see with_env."""
        self.env.update(variables)
        return self

    def with_kwargs(self, **arguments: object) -> KafkaContainer:
        """Refuse arguments of Docker."""
        for name in arguments:
            refuse(name, NO_CONTAINER)
        return self

    def with_exposed_ports(self, *ports: int | str) -> KafkaContainer:
        """Check that the ports are the one that the broker has."""
        for port in ports:
            self._check_port(port)
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> KafkaContainer:
        """Set the port that clients use. host: by default a free one."""
        self._check_port(container)
        self._host_port = int(host or 0)
        return self

    # Start and stop

    def start(self, timeout: int = 30) -> KafkaContainer:
        """Start a broker without topics. It takes a tenth of a second, so timeout has no effect."""
        if self._broker is not None:
            raise OptionError("the broker is already running")
        name = self.listener_name
        configs, idle = configs_of(self.env)
        broker = Broker(
            listeners=f"{name}://{LOCALHOST}:{self._host_port}",
            listener_security_protocol_map=f"{name}:PLAINTEXT",
            **configs,
        )
        if idle := [*self._idle, *idle]:
            LOGGER.warning("KafkaContainer runs kwire's broker, without effect are: %s", ", ".join(idle))
        broker.__enter__()
        self._broker = broker
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and remove its data. Stopping twice does no harm; start() starts another one."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.__exit__(None, None, None)

    def __enter__(self) -> KafkaContainer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Use

    @property
    def broker(self) -> Broker:
        """The running broker. Raises OptionError."""
        if self._broker is None:
            raise OptionError("the broker is not running; use KafkaContainer as a context manager, or start()")
        return self._broker

    def get_bootstrap_server(self) -> str:
        """Return host:port for clients. Raises OptionError if the broker is not running."""
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host for clients."""
        return LOCALHOST

    def get_exposed_port(self, port: int) -> int:
        """Return the port for clients. Raises OptionError for another one than `port` of the container."""
        self._check_port(port)
        return self.broker.port

    def __getattr__(self, name: str) -> NoReturn:
        if name in UNSUPPORTED:
            raise AttributeError(f"KafkaContainer.{name}: not supported, {UNSUPPORTED[name]}")
        raise AttributeError(f"'KafkaContainer' has no attribute {name!r}")

    def _check_port(self, port: int | str) -> None:
        if str(port).removesuffix("/tcp") != str(self.port):
            raise OptionError(f"port {port}: the broker has {self.port} only")


def configs_of(env: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the broker's configs of variables, and those without effect. Raises OptionError."""
    configs: dict[str, Any] = {}
    idle = []
    for variable, value in env.items():
        name = variable.removeprefix(PREFIX)
        if name == variable or name.startswith(OF_THE_JVM):
            idle.append(f"variable {variable}")
        elif name in OWN:
            refuse(variable, ADDRESS)
        elif name == "OPTS":
            refuse(variable, "there is no JVM, and options of one may be about security")
        else:
            config = name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
            configs[config] = value
    return configs, idle


def refuse(name: str, reason: str) -> NoReturn:
    """Raise OptionError for an argument that cannot be obeyed."""
    raise OptionError(f"KafkaContainer {name}: not supported, {reason}")
