"""What may be done to what: the words of Kafka's access control, as numbers on the wire.

Source: org.apache.kafka.common.acl.AclOperation, org.apache.kafka.common.resource.ResourceType.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["CLUSTER", "NO_OPERATIONS", "Operation", "ResourceType", "operations_mask"]

CLUSTER = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
NO_OPERATIONS = -(2**31)
"""What a response has where it was not asked for the operations allowed."""


class Operation(IntEnum):
    """What is done."""

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


class ResourceType(IntEnum):
    """To what it is done."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


def operations_mask(operations: list[Operation]) -> int:
    """Operations as the bits of an int32."""
    return sum(1 << operation for operation in operations)
