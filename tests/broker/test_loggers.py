"""Levels of loggers (config resource type BROKER_LOGGER): the answers of Kafka 4.4.0, and what the broker then logs.

tests/interop/test_broker_admin.py sends the same requests to Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.messages.error_codes import ErrorCode
from tests.broker.test_config_changes import alter
from tests.broker.wire import RawClient

BROKER, LOGGER = 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
REQUEST, CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
OURS = "kwire.broker"
NO_LEVEL = (
    "Cannot set the log level of root to {} as it is not a supported log level. "
    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
)
NOT_REMOVED = "Removing the log level of the root logger is not allowed"
NOT_ALLOWED = "{} is not allowed for the BROKER_LOGGER resource"
DUPLICATE = "Error due to duplicate config keys"
Ops = list[list[Any]]
REFUSED: list[tuple[Ops, int, str]] = [
    *(
        ([["root", SET, level]], CONFIG, NO_LEVEL.format(level))
        for level in ("nope", "debug", " INFO ", "", "OFF", "ALL", "WARNING", "CRITICAL")
    ),
    ([["root", SET, None]], REQUEST, "Null value not supported for : root"),
    ([["root", SET, None], ["a", APPEND, None]], REQUEST, "Null value not supported for : root, a"),
    *(
        ([[name, operation, value]], CONFIG, f"Logger {name} does not exist!")
        for name in ("nope.logger", "", "ROOT", "kwir")
        for operation, value in ((SET, "INFO"), (SET, "nope"), (DELETE, None))
    ),
    ([["root", DELETE, None]], REQUEST, NOT_REMOVED),
    ([["root", DELETE, "INFO"]], REQUEST, NOT_REMOVED),
    *(
        ([[name, operation, "INFO"]], REQUEST, NOT_ALLOWED.format(what))
        for name in ("root", "nope.logger")
        for operation, what in (
            (APPEND, "APPEND operation"),
            (SUBTRACT, "SUBTRACT operation"),
            (4, "Unknown operation type 4"),
            (-1, "Unknown operation type -1"),
        )
    ),
    ([["root", SET, "INFO"], ["root", SET, "WARN"]], REQUEST, DUPLICATE),
    ([["root", SET, None], ["root", APPEND, "WARN"]], REQUEST, DUPLICATE),
    ([["root", SET, "ERROR"], ["nope.logger", SET, "INFO"]], CONFIG, "Logger nope.logger does not exist!"),
    ([["root", SET, "bad"], ["nope.logger", SET, "INFO"]], CONFIG, NO_LEVEL.format("bad")),
    ([["nope.logger", SET, "INFO"], ["root", SET, "bad"]], CONFIG, "Logger nope.logger does not exist!"),
]
NOT_AN_ID = ("", "x", "1 ", " 1", "1.0", "2147483648", "\u0661")


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in ("kwire", OURS)}
    logging.getLogger("kwire").setLevel(logging.INFO)
    logging.getLogger(OURS).setLevel(logging.WARNING)
    yield
    assert logging.getLogger(OURS).level == logging.WARNING, "the broker has not restored it"
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def describe(client: RawClient, name: str, keys: list[str] | None = None, kind: int = LOGGER) -> Any:
    cls = messages.DescribeConfigsRequest
    resource = cls.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return client.ask(cls(resources=[resource], include_synonyms=True, include_documentation=True), 4).results[0]


def levels_of(client: RawClient, *names: str) -> dict[str, str]:
    found = describe(client, "1", list(names) or None)
    assert found.error_code == 0
    assert all((e.config_source, e.config_type, e.synonyms, e.documentation) == (6, 0, [], "") for e in found.configs)
    assert not any(e.read_only or e.is_sensitive or e.is_default for e in found.configs)
    return {entry.name: entry.value for entry in found.configs}


def check_loggers(client: RawClient, name: str) -> None:
    """Change levels. name: of a logger with level WARN; the root logger has INFO."""
    both = ["root", name]
    assert {**levels_of(client), **levels_of(client, *both)} == levels_of(client)
    assert levels_of(client, *both, "nope") == {"root": "INFO", name: "WARN"}
    assert alter(client, LOGGER, "1", []) == (0, None)
    for ops, code, message in REFUSED:
        for validate_only in (True, False):
            assert alter(client, LOGGER, "1", ops, validate_only=validate_only) == (code, message), ops
    assert levels_of(client, *both) == {"root": "INFO", name: "WARN"}
    for level in ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"):
        assert alter(client, LOGGER, "1", [[name, SET, level]], validate_only=True) == (0, None)
        assert alter(client, LOGGER, "+1", [["root", SET, "ERROR"], [name, SET, level]]) == (0, None)
        assert levels_of(client, *both) == {"root": "ERROR", name: level}
        assert alter(client, LOGGER, "01", [["root", SET, level], [name, DELETE, None]]) == (0, None)
        assert levels_of(client, *both) == {"root": level, name: level}
    for text in NOT_AN_ID:
        for ops in ([], [["root", SET, "bad"]]):
            if text != "\u0661":  # Java accepts the digits of all scripts
                assert alter(client, LOGGER, text, ops) == (REQUEST, f"Node id must be an integer, but it is: {text}")
        if text and text != "\u0661":
            found = describe(client, text)
            what = f"Broker id must be an integer, but it is: {text}"
            assert (found.error_code, found.error_message) == (REQUEST, what)
    found = describe(client, "")
    assert (found.error_code, found.error_message) == (REQUEST, "Broker id must not be empty")
    for text in ("9", "-1"):
        assert alter(client, LOGGER, text, []) == (REQUEST, f"Unexpected node id. Expected 1, but received {text}")
        for kind, expected in ((LOGGER, "1"), (BROKER, "1 or empty string,")):
            found = describe(client, text, kind=kind)
            what = f"Unexpected broker id, expected {expected} but received {text}"
            assert (found.error_code, found.error_message) == (REQUEST, what)
    cls = messages.IncrementalAlterConfigsRequest
    assert repeated_resources(client, cls) == REPEATED
    resource = messages.AlterConfigsRequest.AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=[])
    [response] = client.ask(messages.AlterConfigsRequest(resources=[resource]), 2).responses
    assert (response.error_code, response.error_message) == (REQUEST, "Unknown resource type 8")


REPEATED = [(LOGGER, REQUEST, "Each resource must appear at most once."), (BROKER, 0, None)]
REPEATED.append(REPEATED[0])


def repeated_resources(client: RawClient, cls: Any) -> list[tuple[int, int, str | None]]:
    """Send a request that names a resource twice, and another one once."""
    asked = [
        cls.AlterConfigsResource(resource_type=kind, resource_name="1", configs=[]) for kind in (LOGGER, BROKER, LOGGER)
    ]
    return [(r.resource_type, r.error_code, r.error_message) for r in client.ask(cls(resources=asked), 1).responses]


def test_alter_configs_with_a_repeated_resource_is_answered() -> None:
    """Kafka 4.4.0 never answers it."""
    with Broker() as broker, RawClient(broker) as client:
        assert repeated_resources(client, messages.AlterConfigsRequest) == REPEATED


def test_levels_change_as_in_kafka() -> None:
    with Broker() as broker, RawClient(broker) as client:
        check_loggers(client, OURS)


def test_a_changed_level_is_obeyed_until_the_broker_stops(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(OURS)
    with Broker() as broker, RawClient(broker) as client:
        assert alter(client, LOGGER, "1", [[OURS, SET, "TRACE"]])[0] == 0
        assert alter(client, LOGGER, "1", [[OURS, SET, "ERROR"]])[0] == 0
        logger.warning("not written")
        assert alter(client, LOGGER, "1", [[OURS, SET, "DEBUG"]])[0] == 0
        logger.debug("written")
    logger.info("not written either")
    assert [message for message in caplog.messages if "written" in message] == ["written"]


def test_reset_takes_a_changed_level_back() -> None:
    with Broker() as broker, RawClient(broker) as client:
        before = levels_of(client)
        assert alter(client, LOGGER, "1", [[OURS, SET, "TRACE"]])[0] == 0
        broker.reset()
        assert levels_of(client) == before


def test_loggers_need_a_permission() -> None:
    with Broker(acls=True) as broker, RawClient(broker) as client:
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert alter(client, LOGGER, "1", [[OURS, SET, "TRACE"]])[0] == denied
        assert describe(client, "1").error_code == denied
    assert logging.getLogger(OURS).level == logging.WARNING


@pytest.mark.parametrize(
    ("level", "name"),
    [(1, "TRACE"), (5, "TRACE"), (6, "DEBUG"), (10, "DEBUG"), (11, "INFO"), (50, "FATAL"), (99, "FATAL")],
)
def test_a_level_of_python_has_the_name_of_the_lowest_that_is_written(level: int, name: str) -> None:
    with Broker() as broker, RawClient(broker) as client:
        logging.getLogger("kwire").setLevel(level)
        assert levels_of(client, "root") == {"root": name}


def test_loggers_of_other_packages_are_not_listed() -> None:
    logging.getLogger("kwirelike")
    with Broker() as broker, RawClient(broker) as client:
        found = levels_of(client)
    assert all(name == "root" or name.startswith("kwire.") for name in found)
    assert {"root", OURS} <= found.keys()
