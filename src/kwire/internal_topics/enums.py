"""Numbers that metadata records use, with the words that Kafka's tools print for them.

Source: ConfigResource.Type, ResourceType, PatternType, AclOperation, AclPermissionType, ScramMechanism,
SecurityProtocol.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

__all__ = [
    "ConfigResource",
    "NamedNumber",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "ScramMechanism",
    "SecurityProtocol",
    "StateNumber",
    "label",
]


class NamedNumber(IntEnum):
    """A number on the wire with a word for it."""

    @property
    def label(self) -> str:
        """The word that Kafka's tools print."""
        return self.name

    @classmethod
    def of(cls, number: int) -> Self | int:
        """Return the member for a number; the number itself when no member has it, as in records of a newer Kafka."""
        try:
            return cls(number)
        except ValueError:
            return number


def label(number: int) -> str:
    """Return the word for a number that NamedNumber.of returned; the digits when there is none."""
    return number.label if isinstance(number, NamedNumber) else str(number)


class StateNumber(NamedNumber):
    """The number of a state, whose name Kafka writes in camel case."""

    @property
    def label(self) -> str:
        """The state's name in camel case."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ConfigResource(NamedNumber):
    """Kinds of resources that have configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @property
    def label(self) -> str:
        """The word in lower case."""
        return self.name.lower()


class ResourceType(NamedNumber):
    """Kinds of resources that ACLs protect."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(NamedNumber):
    """How an ACL's resource name is matched."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(NamedNumber):
    """Operations that ACLs allow or deny."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(NamedNumber):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(NamedNumber):
    """A SCRAM mechanism."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def label(self) -> str:
        """The name of the SASL mechanism."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def algorithm(self) -> str:
        """The name of the hash function in hashlib."""
        return self.name.replace("_", "").lower()


class SecurityProtocol(NamedNumber):
    """How a listener encrypts and authenticates."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3
