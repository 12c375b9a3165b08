"""The broker's loggers as configs of the resource type BROKER_LOGGER: Python's loggers below `kwire`.

`root` is the logger `kwire`: a broker may run inside another program, whose own loggers are none of its clients'
business. Kafka's levels are Python's, with TRACE below DEBUG and FATAL for CRITICAL. Changes last until the broker
stops or is reset.

Source: org.apache.kafka.server.logger.LoggingController, kafka.server.ConfigAdminManager 4.4.0; KIP-412.
"""

from __future__ import annotations

import logging

from kwire.broker.configs.definitions import ConfigType
from kwire.broker.configs.entries import ConfigOperation, ConfigSource, Entry
from kwire.messages.incremental_alter_configs_request import AlterableConfig
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["Loggers"]

ROOT, TOP = "root", "kwire"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def known_loggers() -> dict[str, logging.Logger]:
    """Return the loggers by name, in order. Modules that are not imported yet have none."""
    below = sorted(name for name in logging.root.manager.loggerDict if name.startswith(f"{TOP}."))
    entries = {name: logging.root.manager.loggerDict[name] for name in below}
    loggers = {name: each for name, each in entries.items() if isinstance(each, logging.Logger)}
    return {ROOT: logging.getLogger(TOP), **loggers}


def level_name(logger: logging.Logger) -> str:
    """Return Kafka's name of the lowest level that a logger writes."""
    level = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")


class Loggers:
    """The levels of the loggers."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def entries(self) -> list[Entry]:
        """Describe all loggers."""
        return [
            Entry(
                name=name,
                value=level_name(logger),
                source=ConfigSource.DYNAMIC_BROKER_LOGGER,
                kind=ConfigType.UNKNOWN,
                read_only=False,
                synonyms=[],
            )
            for name, logger in known_loggers().items()
        ]

    def check(self, changes: list[AlterableConfig]) -> None:
        """Validate changes of levels. Raises BrokerError for the first invalid one."""
        loggers = known_loggers()
        for each in changes:
            if each.config_operation not in (ConfigOperation.SET, ConfigOperation.DELETE):
                what = f"Unknown operation type {each.config_operation}"
                if each.config_operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
                    what = f"{ConfigOperation(each.config_operation).name} operation"
                raise refusal(ErrorCode.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
            if each.name not in loggers:
                raise refusal(ErrorCode.INVALID_CONFIG, f"Logger {each.name} does not exist!")
            if each.config_operation == ConfigOperation.DELETE:
                if each.name == ROOT:
                    raise refusal(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
            elif each.value not in LEVELS:
                raise refusal(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {each.name} to {each.value} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(sorted(LEVELS))}",
                )

    def alter(self, changes: list[AlterableConfig]) -> None:
        """Change levels after `check`; a logger without an own level has that of the one above it."""
        loggers = known_loggers()
        for each in changes:
            logger = loggers[each.name]
            self._before.setdefault(each.name, logger.level)
            is_set = each.config_operation == ConfigOperation.SET
            logger.setLevel(LEVELS[each.value or ""] if is_set else logging.NOTSET)

    def restore(self) -> None:
        """Give all loggers the levels that they had before the first change."""
        loggers = known_loggers()
        for name, level in self._before.items():
            loggers[name].setLevel(level)
        self._before.clear()
